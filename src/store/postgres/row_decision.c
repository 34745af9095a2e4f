/* The decision on one op and one row as it was read, and the op's results. The same
 * for both paths: whether the slow path read the row (batch.c) or the fast path found
 * it (fast_path.c). Nothing is written or sent here. */
#include "store/postgres/outbox.h"

/* ---- beforehand ---- */

bool hpx_pg_needs_lock(const struct hpx_store_op *op)
{
	return op->verb != HPX_VERB_RESERVE && op->verb != HPX_VERB_FIND &&
	       op->verb != HPX_VERB_RENEW;
}

bool hpx_pg_begins(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE && op->status == HPX_OK &&
	       (op->decision.kind == HPX_DECISION_EXECUTE ||
		op->decision.kind == HPX_DECISION_EXECUTE_AGAIN);
}

/* What a copy of the op would write. */
static enum hpx_write try_on(const struct hpx_pg_pending_row *pending, struct hpx_store_op *trial,
			     const struct hpx_moment *now)
{
	struct hpx_change change;

	hpx_change_make(&pending->found, trial, now, false, &change);
	return change.write;
}

bool hpx_pg_would_write(const struct hpx_pg_pending_row *pending, const struct hpx_store_op *op,
			const struct hpx_moment *now)
{
	struct hpx_store_op trial = *op;

	return try_on(pending, &trial, now) != HPX_WRITE_NOTHING;
}

bool hpx_pg_would_only_tell(const struct hpx_pg_pending_row *pending, const struct hpx_store_op *op,
			    const struct hpx_moment *now)
{
	struct hpx_store_op trial = *op;

	return try_on(pending, &trial, now) == HPX_WRITE_NOTHING && !hpx_pg_begins(&trial);
}

/* ---- the decision ---- */

static bool is_busy(const struct hpx_pg_pending_row *pending)
{
	return pending->stored && !pending->locked;
}

/* Somebody holds the row: whatever it is about to become, the reservation is
 * not ours to make. */
static void count_as_alive(const struct hpx_pg_pending_row *pending, struct hpx_store_op *op,
			   struct hpx_change *change)
{
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_IN_PROGRESS,
					      .record = pending->found.record };
	*change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
}

static void copy_answer(const struct hpx_pg_pending_row *pending, struct hpx_store_op *op)
{
	const struct hpx_answer *from = pending->answer != NULL ? pending->answer : pending->kept;
	struct hpx_change change = { .answer = from };

	if (from == NULL)
		return;
	op->reserve.replay = hpx_answer_new(op->decision.record.status, from->kept, from->headers,
					    hpx_change_body(&change));
	if (op->reserve.replay == NULL)
		op->status = HPX_NOMEM;
}

/* A replay needs its bytes: where they cannot be read, the outcome counts as
 * unknown, and nothing is executed. */
static void load_replay(const struct hpx_pg_pending_row *pending, struct hpx_store_op *op)
{
	HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
	if (op->decision.kind != HPX_DECISION_REPLAY)
		return;
	if (pending->answer == NULL && pending->kept_status == HPX_CORRUPT)
		hpx_decision_lose_answer(&op->decision);
	else if (pending->answer == NULL && pending->kept_status != HPX_OK)
		op->status = pending->kept_status;
	else
		copy_answer(pending, op);
}

/* Before a person's word counts, the answer is part of what must be readable. */
static struct hpx_found found_by(const struct hpx_pg_pending_row *pending, const struct hpx_store_op *op)
{
	struct hpx_found found = pending->found;

	if (hpx_verb_has(op->verb, HPX_TRAIT_REMOVES) && pending->answer == NULL &&
	    pending->kept_status == HPX_CORRUPT)
		found.readable = false;
	return found;
}

void hpx_pg_decide(const struct hpx_pg_pending_row *pending, struct hpx_store_op *op,
		   const struct hpx_moment *now, struct hpx_change *ret_change)
{
	struct hpx_found found = found_by(pending, op);

	*ret_change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
	if (is_busy(pending) && hpx_pg_needs_lock(op)) {
		op->status = HPX_BUSY;
		return;
	}
	hpx_change_make(&found, op, now, false, ret_change);
	if (op->status == HPX_OK && hpx_op_job(op) != NULL && !hpx_pg_job_is_text(hpx_op_job(op)))
		op->status = HPX_INVALID;
	if (op->status == HPX_OK && op->verb == HPX_VERB_RESERVE) {
		if (is_busy(pending) && ret_change->write != HPX_WRITE_NOTHING)
			count_as_alive(pending, op, ret_change);
		load_replay(pending, op);
	}
	if (op->status != HPX_OK)
		*ret_change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
}
