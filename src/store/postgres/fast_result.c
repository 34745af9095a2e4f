/* The results of the fast path: rows that were inserted, rows that were completed, and
 * rows that were there already. A retry of such a row is answered before the commit of
 * the others. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/postgres/fast_path.h"

#define TIME_MAX (INT64_MAX / 4)

/* `at_ms`: what the rules' time was by the database's clock. */
static void mend_times(struct hpx_pg_fast_batch *batch, struct hpx_store_op *op, int64_t at_ms)
{
	struct hpx_record *record = &op->decision.record;
	int64_t off_ms = at_ms - batch->now.wall_ms;

	record->changed_ms += off_ms;
	op->judged_ms += off_ms;
	if (op->verb == HPX_VERB_RESERVE) {
		record->created_ms += off_ms;
		record->lease_until_ms += off_ms;
	} else {
		record->expires_ms += off_ms;
	}
}

/* The first op about it; NULL where there is none. */
static struct hpx_pg_fast_op *fast_op_of(struct hpx_pg_fast_batch *batch, const struct hpx_operation_id *id)
{
	struct hpx_pg_fast_op wanted = { .id = *id };
	struct hpx_pg_fast_op *found =
		bsearch(&wanted, batch->fast_ops, batch->count, sizeof(*batch->fast_ops), hpx_pg_fast_op_order);

	if (found == NULL)
		return NULL;
	while (found > batch->fast_ops && hpx_pg_fast_op_order(found - 1, found) == 0)
		found--;
	return found;
}

static bool take_new(struct hpx_pg_fast_batch *batch, const struct hpx_operation_id *id,
		     enum hpx_verb verb, int64_t at_ms)
{
	struct hpx_pg_fast_op *fast_op = fast_op_of(batch, id);

	if (fast_op == NULL || !hpx_pg_is_eligible_as(fast_op, verb) || fast_op->written)
		return false;
	fast_op->written = true;
	mend_times(batch, fast_op->op, at_ms);
	return true;
}

/* Nothing of it rests on what this batch writes. */
static void tell(struct hpx_pg_fast_batch *batch, struct hpx_pg_fast_op *fast_op,
		 const struct hpx_pg_pending_row *seen, const struct hpx_moment *now)
{
	struct hpx_change nothing;

	HPX_ASSERT(fast_op->answerable && !fast_op->written && batch->todo[fast_op->at]);
	hpx_pg_put_back(fast_op->op);
	hpx_pg_decide(seen, fast_op->op, now, &nothing);
	fast_op->eligible = fast_op->answerable = false;
	batch->todo[fast_op->at] = false;
	hpx_store_release(&batch->s->base, &batch->ops[fast_op->at]);
}

/* All ops about it, or none. */
static bool take_seen(struct hpx_pg_fast_batch *batch, const struct hpx_pg_absent *absent)
{
	struct hpx_pg_fast_op *first = fast_op_of(batch, &absent->id);
	int64_t off_ms = absent->at_ms - batch->now.wall_ms;
	struct hpx_moment now = { .wall_ms = batch->now.wall_ms + off_ms,
				  .lease_ms = batch->now.lease_ms + off_ms };
	size_t from, to;

	if (first == NULL || !first->answerable)
		return false;
	from = (size_t)(first - batch->fast_ops);
	to = hpx_pg_fast_batch_end(batch, from);
	for (size_t i = from; i < to; i++)
		if (!absent->seen.stored ||
		    !hpx_pg_would_only_tell(&absent->seen, batch->fast_ops[i].op, &now))
			return true;
	for (size_t i = from; i < to; i++)
		tell(batch, &batch->fast_ops[i], &absent->seen, &now);
	return true;
}

void hpx_pg_take_reservations(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	PGresult *result = hpx_pg_take(pipe);
	bool ok = true;

	for (int row = 0; ok && result != NULL && row < PQntuples(result); row++) {
		struct hpx_pg_absent absent;
		ok = hpx_pg_absent_read(result, row, &absent);
		if (ok && absent.inserted)
			ok = take_new(batch, &absent.id, HPX_VERB_RESERVE, absent.at_ms);
		else if (ok)
			ok = take_seen(batch, &absent);
		hpx_answer_free(absent.seen.kept);
	}
	if (!ok)
		pipe->status = HPX_CORRUPT;
	PQclear(result);
}

void hpx_pg_take_completions(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	PGresult *result;
	struct hpx_operation_id id;
	int64_t at_ms;

	PQclear(hpx_pg_take(pipe)); /* the locks' */
	result = hpx_pg_take(pipe);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		if (!hpx_pg_id_read(result, row, &id) ||
		    !hpx_pg_int(result, row, 1, -TIME_MAX, TIME_MAX, &at_ms) ||
		    !take_new(batch, &id, HPX_VERB_COMPLETE, at_ms))
			pipe->status = HPX_CORRUPT;
	PQclear(result);
}

void hpx_pg_fast_batch_settle(struct hpx_pg_fast_batch *batch)
{
	bool any = false;

	for (size_t i = 0; i < batch->count; i++) {
		const struct hpx_pg_fast_op *fast_op = &batch->fast_ops[i];
		if (fast_op->written)
			batch->todo[fast_op->at] = false;
		else if (fast_op->eligible)
			hpx_pg_put_back(fast_op->op);
		any |= fast_op->written;
	}
	if (any)
		HPX_CRASH_POINT(batch_committed);
}
