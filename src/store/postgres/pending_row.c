/* The operations of a batch, in memory: ops are decided one after the other on
 * what the slot holds, and what is left at the end is written once. */
#include <stdlib.h>

#include "base/assert.h"
#include "store/postgres/driver.h"

enum hpx_status hpx_pg_batch_init(struct hpx_pg_batch *batch, size_t slots, size_t events)
{
	*batch = (struct hpx_pg_batch){ .event_max = events };
	batch->slot = calloc(slots + 1, sizeof(*batch->slot));
	batch->event = calloc(events + 1, sizeof(*batch->event));
	if (batch->slot != NULL && batch->event != NULL)
		return HPX_OK;
	hpx_pg_batch_done(batch);
	return HPX_NOMEM;
}

void hpx_pg_batch_done(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->slot_count; i++)
		hpx_answer_free(batch->slot[i].kept);
	free(batch->slot);
	free(batch->event);
	*batch = (struct hpx_pg_batch){ .slot_count = 0 };
}

void hpx_pg_batch_add(struct hpx_pg_batch *batch, const struct hpx_operation_id *id)
{
	batch->slot[batch->slot_count++] = (struct hpx_pg_slot){ .id = *id };
}

static int by_id(const void *a, const void *b)
{
	const struct hpx_pg_slot *x = a;
	const struct hpx_pg_slot *y = b;

	return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* Sorted, because two gateways that insert the same ids in different orders
 * would wait for each other. */
void hpx_pg_batch_sort(struct hpx_pg_batch *batch)
{
	size_t count = 0;

	qsort(batch->slot, batch->slot_count, sizeof(*batch->slot), by_id);
	for (size_t i = 0; i < batch->slot_count; i++)
		if (count == 0 || by_id(&batch->slot[count - 1], &batch->slot[i]) != 0)
			batch->slot[count++] = batch->slot[i];
	batch->slot_count = count;
}

struct hpx_pg_slot *hpx_pg_batch_find(struct hpx_pg_batch *batch,
				      const struct hpx_operation_id *id)
{
	struct hpx_pg_slot wanted = { .id = *id };

	return bsearch(&wanted, batch->slot, batch->slot_count, sizeof(*batch->slot), by_id);
}

static void drop_answer(struct hpx_pg_slot *slot)
{
	slot->answer = NULL;
	slot->answer_gone = slot->stored;
	hpx_answer_free(slot->kept);
	slot->kept = NULL;
	slot->kept_status = HPX_OK;
}

/* The record holds the later end of the lease itself now. */
static void take_record(struct hpx_pg_slot *slot, const struct hpx_change *change)
{
	slot->found = (struct hpx_found){ .exists = change->write != HPX_WRITE_REMOVE,
					  .readable = true,
					  .record = change->record };
	slot->changed = true;
	slot->lease = false;
	slot->lease_gone = slot->renewed;
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

void hpx_pg_slot_change(struct hpx_pg_batch *batch, struct hpx_pg_slot *slot,
			const struct hpx_change *change, const struct hpx_store_op *op)
{
	switch (change->write) {
	case HPX_WRITE_NOTHING:
		return;
	case HPX_WRITE_LEASE:
		slot->found.record = change->record;
		slot->lease = true;
		return;
	case HPX_WRITE_INSERT:
	case HPX_WRITE_REPLACE:
		drop_answer(slot);
		slot->described = op;
		break;
	case HPX_WRITE_REMOVE:
		drop_answer(slot);
		slot->described = NULL;
		slot->job = NULL;
		break;
	case HPX_WRITE_UPDATE:
		if (change->answer != NULL)
			slot->answer = change->answer;
		break;
	}
	if (change->job != NULL)
		slot->job = change->job;
	take_record(slot, change);
	if (change->event != NULL)
		note_event(batch, change, op);
}

bool hpx_pg_slot_dirty(const struct hpx_pg_slot *slot)
{
	return slot->changed || slot->lease;
}
