/* What becomes of jobs that were claimed: JOB, many in one transaction, lost
 * claims, and operations that were not delivered in time. A claim is lost by its
 * lease alone, on the database's clock, whichever process finds it. */
#include "store/postgres/outbox.h"

#include <stdlib.h>

/* With what is delivered, which may be large. */
#define TURNS_AT_ONCE 64

/* ---- JOB ---- */

/* The operation after the turn, for those who wait for it. */
static void tell_record(const struct hpx_pg_item *item, struct hpx_store_op *op)
{
	if (item->change.write_operation)
		op->decision.record = item->change.operation.record;
	else if (item->found.delivery.answers && item->found.operation.exists)
		op->decision.record = item->found.operation.record;
}

static void decide_turn(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
			struct hpx_store_op *op)
{
	if (hpx_pg_outbox_is_held(outbox, item)) {
		op->status = HPX_BUSY;
		return;
	}
	hpx_outbox_turn(&item->found, op, &outbox->look.now, &item->change);
	if (op->status == HPX_OK && item->change.write_job)
		hpx_pg_outbox_take(outbox, item, op);
}

static void tell_turn(struct hpx_pg_item *item, struct hpx_store_op *op)
{
	if (op->status != HPX_OK)
		return;
	tell_record(item, op);
	op->job.after = item->entry;
	item->entry = NULL;
}

/* JOBs that go into one transaction. */
struct turns {
	struct hpx_store_op *op[TURNS_AT_ONCE]; /* of the item with that number */
	bool decided[TURNS_AT_ONCE];
	struct hpx_pg_outbox outbox;
};

/* Another turn of the same job has to see this one. */
static bool is_taken(const struct turns *turns, int64_t number)
{
	for (size_t i = 0; i < turns->outbox.count; i++)
		if (turns->outbox.item[i].number == number)
			return true;
	return false;
}

static void choose(struct turns *turns, struct hpx_store_op **ops, size_t count, const bool *todo)
{
	for (size_t i = 0; i < count && turns->outbox.count < TURNS_AT_ONCE; i++) {
		if (!todo[i] || is_taken(turns, ops[i]->job.update->number))
			continue;
		turns->op[turns->outbox.count] = ops[i];
		hpx_pg_outbox_add_job(&turns->outbox, ops[i]->job.update->number);
	}
}

/* An operation that an earlier turn changes is to be read again: what rests on it
 * is left for the next transaction. */
static void decide_turns(struct turns *turns)
{
	for (size_t i = 0; i < turns->outbox.count; i++) {
		struct hpx_pg_item *item = &turns->outbox.item[i];
		const struct hpx_pg_slot *slot =
			hpx_pg_batch_find(&turns->outbox.batch, &item->id);
		if (slot != NULL && hpx_pg_slot_dirty(slot))
			continue;
		decide_turn(&turns->outbox, item, turns->op[i]);
		turns->decided[i] = true;
	}
}

static enum hpx_status run_turns(struct hpx_pg_store *s, struct turns *turns, char *problem)
{
	enum hpx_status status = hpx_pg_outbox_look(s, &turns->outbox, true, problem);

	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	decide_turns(turns);
	status = hpx_pg_outbox_commit(s, &turns->outbox, problem);
	for (size_t i = 0; i < turns->outbox.count && status == HPX_OK; i++)
		if (turns->decided[i])
			tell_turn(&turns->outbox.item[i], turns->op[i]);
	return status;
}

/* How many were settled. */
static size_t strike(const struct turns *turns, struct hpx_store_op **ops, size_t count, bool *todo)
{
	size_t settled = 0;

	for (size_t i = 0, next = 0; i < count && next < turns->outbox.count; i++) {
		if (turns->op[next] != ops[i])
			continue;
		todo[i] = !turns->decided[next];
		settled += turns->decided[next++];
	}
	return settled;
}

/* The first of them is settled in any case. */
static enum hpx_status run_some(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				bool *todo, size_t *left, char *problem)
{
	struct turns turns = { .decided = { false } };
	enum hpx_status status = hpx_pg_outbox_init(&turns.outbox, TURNS_AT_ONCE);

	if (status != HPX_OK)
		return status;
	choose(&turns, ops, count, todo);
	status = run_turns(s, &turns, problem);
	if (status == HPX_OK)
		*left -= strike(&turns, ops, count, todo);
	hpx_pg_outbox_done(&turns.outbox);
	return status;
}

static bool is_sound(struct hpx_store_op *op)
{
	if (op->job.update == NULL)
		op->status = HPX_MISUSE;
	else if (op->job.update->number <= 0)
		op->status = HPX_NOT_FOUND;
	return op->status == HPX_OK;
}

enum hpx_status hpx_pg_turns(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
			     char *problem)
{
	bool *todo = calloc(count, sizeof(*todo));
	enum hpx_status status = todo != NULL ? HPX_OK : HPX_NOMEM;
	size_t left = 0;

	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		todo[i] = ops[i] != NULL && ops[i]->verb == HPX_VERB_JOB && is_sound(ops[i]);
		left += todo[i];
	}
	while (left > 0 && status == HPX_OK)
		status = run_some(s, ops, count, todo, &left, problem);
	free(todo);
	return status;
}

/* ---- many at once ---- */

/* A list of candidates, read without a lock; each is judged again under its
 * own. */
struct round {
	enum hpx_pg_statement statement;
	int64_t shift_ms;
	unsigned limit;
	struct hpx_touched *touched; /* room for `limit`, or NULL */
	void (*add)(struct hpx_pg_outbox *outbox, const PGresult *result, int row);
	bool (*decide)(struct hpx_pg_item *item, const struct hpx_moment *now);
};

static enum hpx_status list(struct hpx_pg_store *s, const struct round *round, struct hpx_pg_outbox *outbox, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result;

	hpx_pg_add_int8(&params, round->shift_ms);
	hpx_pg_add_int8(&params, round->limit);
	hpx_pg_send(&pipe, round->statement, &params);
	result = hpx_pg_take(&pipe);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		round->add(outbox, result, row);
	PQclear(result);
	return hpx_pg_end(&pipe);
}

static enum hpx_status run_round(struct hpx_pg_store *s, const struct round *round,
				 struct hpx_store_op *op, struct hpx_pg_outbox *outbox,
				 unsigned *ret_count, char *problem)
{
	enum hpx_status status = list(s, round, outbox, problem);

	if (status == HPX_OK && outbox->count == 0)
		return HPX_OK;
	if (status == HPX_OK)
		status = hpx_pg_outbox_look(s, outbox, false, problem);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	for (size_t i = 0; i < outbox->count; i++) {
		struct hpx_pg_item *item = &outbox->item[i];
		if (hpx_pg_outbox_is_held(outbox, item) || !round->decide(item, &outbox->look.now))
			continue;
		hpx_pg_outbox_take(outbox, item, op);
		HPX_ASSERT(*ret_count < round->limit);
		if (round->touched != NULL)
			round->touched[*ret_count] = (struct hpx_touched){ .id = item->id };
		++*ret_count;
	}
	return hpx_pg_outbox_commit(s, outbox, problem);
}

static enum hpx_status run_many(struct hpx_pg_store *s, struct round *round,
				struct hpx_store_op *op, unsigned *ret_count, char *problem)
{
	struct hpx_pg_outbox outbox;
	enum hpx_status status;

	*ret_count = 0;
	if (round->limit > HPX_PG_ITEMS_MAX)
		round->limit = HPX_PG_ITEMS_MAX;
	status = hpx_pg_outbox_init(&outbox, round->limit);
	if (status != HPX_OK)
		return status;
	status = run_round(s, round, op, &outbox, ret_count, problem);
	hpx_pg_outbox_done(&outbox);
	return status;
}

/* ---- SWEEP_JOBS ---- */

static void add_lost(struct hpx_pg_outbox *outbox, const PGresult *result, int row)
{
	int64_t number = 0;

	if (hpx_pg_int(result, row, 0, 1, INT64_MAX, &number))
		hpx_pg_outbox_add_job(outbox, number);
}

static bool decide_lost(struct hpx_pg_item *item, const struct hpx_moment *now)
{
	return hpx_outbox_sweep(&item->found, false, now, &item->change);
}

enum hpx_status hpx_pg_sweep_jobs(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct round round = { .statement = HPX_PG_LOST_JOBS,
			       .shift_ms = atomic_load(&s->base.lease_shift_ms),
			       .limit = op->sweep_jobs.limit,
			       .touched = op->sweep_jobs.touched,
			       .add = add_lost,
			       .decide = decide_lost };

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP_JOBS);
	return run_many(s, &round, op, &op->sweep_jobs.count, problem);
}

/* ---- not delivered in time ---- */

/* By the job, since its row has to be locked too; by itself where it is gone. */
static void add_overdue(struct hpx_pg_outbox *outbox, const PGresult *result, int row)
{
	struct hpx_operation_id id;
	int64_t number = 0;

	if (hpx_pg_int(result, row, 1, 1, INT64_MAX, &number))
		hpx_pg_outbox_add_job(outbox, number);
	else if (hpx_pg_id_read(result, row, &id))
		hpx_pg_outbox_add_operation(outbox, &id);
}

static bool decide_overdue(struct hpx_pg_item *item, const struct hpx_moment *now)
{
	const struct hpx_outbox_found *found = &item->found;

	/* The key may have been forgotten and used again meanwhile. */
	if (found->job_exists &&
	    !hpx_mark_eq(&found->delivery.mark, &found->operation.record.mark))
		return false;
	return hpx_outbox_abandon(found, now, &item->change);
}

enum hpx_status hpx_pg_abandon(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct round round = { .statement = HPX_PG_OVERDUE,
			       .shift_ms = atomic_load(&s->base.wall_shift_ms),
			       .limit = op->reap.limit,
			       .add = add_overdue,
			       .decide = decide_overdue };
	unsigned count;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	return run_many(s, &round, op, &count, problem);
}
