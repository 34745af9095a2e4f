/* Pending rows: the operations that a batch is about, in memory. Ops are decided one
 * after the other on what their pending row holds, and each row is written once, at
 * the end. */
#include <stdlib.h>

#include "base/status.h"
#include "store/postgres/driver.h"

enum hpx_status hpx_pg_batch_init(struct hpx_pg_batch *batch, size_t pending, size_t events)
{
	*batch = (struct hpx_pg_batch){ .pending_max = pending, .event_max = events };
	batch->pending = calloc(pending + 1, sizeof(*batch->pending));
	batch->event = calloc(events + 1, sizeof(*batch->event));
	if (batch->pending != NULL && batch->event != NULL)
		return HPX_OK;
	hpx_pg_batch_done(batch);
	return HPX_NOMEM;
}

void hpx_pg_batch_done(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->pending_count; i++)
		hpx_answer_free(batch->pending[i].kept);
	free(batch->pending);
	free(batch->event);
	*batch = (struct hpx_pg_batch){ .pending_count = 0 };
}

void hpx_pg_batch_add(struct hpx_pg_batch *batch, const struct hpx_operation_id *id)
{
	HPX_ASSERT(batch->pending_count < batch->pending_max);
	batch->pending[batch->pending_count++] = (struct hpx_pg_pending_row){ .id = *id };
}

static int by_id(const void *a, const void *b)
{
	const struct hpx_pg_pending_row *x = a;
	const struct hpx_pg_pending_row *y = b;

	return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* Sorted, because two gateways that insert the same ids in different orders
 * would wait for each other. */
void hpx_pg_batch_sort(struct hpx_pg_batch *batch)
{
	size_t count = 0;

	qsort(batch->pending, batch->pending_count, sizeof(*batch->pending), by_id);
	for (size_t i = 0; i < batch->pending_count; i++)
		if (count == 0 || by_id(&batch->pending[count - 1], &batch->pending[i]) != 0)
			batch->pending[count++] = batch->pending[i];
	batch->pending_count = count;
}

struct hpx_pg_pending_row *hpx_pg_batch_find(struct hpx_pg_batch *batch,
					     const struct hpx_operation_id *id)
{
	struct hpx_pg_pending_row wanted = { .id = *id };

	return bsearch(&wanted, batch->pending, batch->pending_count, sizeof(*batch->pending), by_id);
}

static void drop_answer(struct hpx_pg_pending_row *pending)
{
	pending->answer = NULL;
	pending->answer_gone = pending->stored;
	hpx_answer_free(pending->kept);
	pending->kept = NULL;
	pending->kept_status = HPX_OK;
}

/* The record holds the later end of the lease itself now. */
static void take_record(struct hpx_pg_pending_row *pending, const struct hpx_change *change)
{
	pending->found = (struct hpx_found){ .exists = change->write != HPX_WRITE_REMOVE,
					     .readable = true,
					     .record = change->record };
	pending->changed = true;
	pending->lease = false;
	pending->lease_gone = pending->renewed;
}

static void note_event(struct hpx_pg_batch *batch, const struct hpx_change *change,
		       const struct hpx_store_op *op)
{
	HPX_ASSERT(batch->event_count < batch->event_max);
	batch->event[batch->event_count++] = (struct hpx_pg_event){ .record = change->record,
								    .op = op,
								    .what = change->event,
								    .reason = change->reason };
}

void hpx_pg_pending_row_change(struct hpx_pg_batch *batch, struct hpx_pg_pending_row *pending,
			       const struct hpx_change *change, const struct hpx_store_op *op)
{
	switch (change->write) {
	case HPX_WRITE_NOTHING:
		return;
	case HPX_WRITE_LEASE:
		pending->found.record = change->record;
		pending->lease = true;
		return;
	case HPX_WRITE_INSERT:
	case HPX_WRITE_REPLACE:
		HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
		drop_answer(pending);
		pending->described = op;
		break;
	case HPX_WRITE_REMOVE:
		drop_answer(pending);
		pending->described = NULL;
		pending->job = NULL;
		break;
	case HPX_WRITE_UPDATE:
		if (change->answer != NULL)
			pending->answer = change->answer;
		break;
	}
	if (change->job != NULL)
		pending->job = change->job;
	take_record(pending, change);
	if (change->event != NULL)
		note_event(batch, change, op);
}

bool hpx_pg_pending_row_dirty(const struct hpx_pg_pending_row *pending)
{
	return pending->changed || pending->lease;
}
