/* What becomes of claimed jobs: JOB, many in one transaction; SWEEP_JOBS, lost claims;
 * and operations that were not delivered in time. A claim is lost by its lease alone,
 * on the database's clock, whichever process finds it. */
#include "store/postgres/outbox.h"

#include <stdlib.h>

/* With what is delivered, which may be large. */
#define UPDATES_AT_ONCE 64

/* ---- JOB ---- */

/* The operation after the update, for those who wait for it. */
static void tell_record(const struct hpx_pg_item *item, struct hpx_store_op *op)
{
	if (item->change.write_operation)
		op->decision.record = item->change.operation.record;
	else if (item->found.delivery.answers && item->found.operation.exists)
		op->decision.record = item->found.operation.record;
}

static void decide_update(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
			  struct hpx_store_op *op)
{
	if (hpx_pg_outbox_is_held(outbox, item)) {
		op->status = HPX_BUSY;
		return;
	}
	HPX_ASSERT(op->verb == HPX_VERB_JOB && item->number == op->job.update->number);
	hpx_outbox_update(&item->found, op, &outbox->look.now, &item->change);
	if (op->status == HPX_OK && item->change.write_job)
		hpx_pg_outbox_take(outbox, item, op);
}

static void tell_update(struct hpx_pg_item *item, struct hpx_store_op *op)
{
	if (op->status != HPX_OK)
		return;
	tell_record(item, op);
	op->job.after = item->entry;
	item->entry = NULL;
}

/* JOBs that go into one transaction. */
struct job_updates {
	struct hpx_store_op *op[UPDATES_AT_ONCE]; /* of the item with that number */
	bool decided[UPDATES_AT_ONCE];
	struct hpx_pg_outbox outbox;
};

/* Another update of the same job has to see this one. */
static bool is_taken(const struct job_updates *updates, int64_t number)
{
	for (size_t i = 0; i < updates->outbox.count; i++)
		if (updates->outbox.item[i].number == number)
			return true;
	return false;
}

static void choose(struct job_updates *updates, struct hpx_store_op **ops, size_t count, const bool *todo)
{
	for (size_t i = 0; i < count && updates->outbox.count < UPDATES_AT_ONCE; i++) {
		if (!todo[i] || is_taken(updates, ops[i]->job.update->number))
			continue;
		updates->op[updates->outbox.count] = ops[i];
		hpx_pg_outbox_add_job(&updates->outbox, ops[i]->job.update->number);
	}
}

/* An operation that an earlier update changes is to be read again: what rests on it
 * is left for the next transaction. */
static void decide_updates(struct job_updates *updates)
{
	for (size_t i = 0; i < updates->outbox.count; i++) {
		struct hpx_pg_item *item = &updates->outbox.item[i];
		const struct hpx_pg_pending_row *pending =
			hpx_pg_batch_find(&updates->outbox.batch, &item->id);
		if (pending != NULL && hpx_pg_pending_row_dirty(pending))
			continue;
		decide_update(&updates->outbox, item, updates->op[i]);
		updates->decided[i] = true;
	}
}

static enum hpx_status run_updates(struct hpx_pg_store *s, struct job_updates *updates, char *problem)
{
	enum hpx_status status = hpx_pg_outbox_look(s, &updates->outbox, true, problem);

	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	decide_updates(updates);
	status = hpx_pg_outbox_commit(s, &updates->outbox, problem);
	for (size_t i = 0; i < updates->outbox.count && status == HPX_OK; i++)
		if (updates->decided[i])
			tell_update(&updates->outbox.item[i], updates->op[i]);
	return status;
}

/* How many were settled. */
static size_t strike(const struct job_updates *updates, struct hpx_store_op **ops, size_t count, bool *todo)
{
	size_t settled = 0;

	HPX_ASSERT(updates->outbox.count <= UPDATES_AT_ONCE);
	for (size_t i = 0, next = 0; i < count && next < updates->outbox.count; i++) {
		if (updates->op[next] != ops[i])
			continue;
		todo[i] = !updates->decided[next];
		settled += updates->decided[next++];
	}
	return settled;
}

/* The first of them is settled in any case. */
static enum hpx_status run_some(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				bool *todo, size_t *left, char *problem)
{
	struct job_updates updates = { .decided = { false } };
	enum hpx_status status = hpx_pg_outbox_init(&updates.outbox, UPDATES_AT_ONCE);

	if (status != HPX_OK)
		return status;
	choose(&updates, ops, count, todo);
	status = run_updates(s, &updates, problem);
	if (status == HPX_OK)
		*left -= strike(&updates, ops, count, todo);
	hpx_pg_outbox_done(&updates.outbox);
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

enum hpx_status hpx_pg_job_updates(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
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
struct candidates {
	enum hpx_pg_statement statement;
	int64_t shift_ms;
	unsigned limit;
	struct hpx_touched *touched; /* room for `limit`, or NULL */
	void (*add)(struct hpx_pg_outbox *outbox, const PGresult *result, int row);
	bool (*decide)(struct hpx_pg_item *item, const struct hpx_moment *now);
};

static enum hpx_status list(struct hpx_pg_store *s, const struct candidates *candidates, struct hpx_pg_outbox *outbox, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result;

	hpx_pg_add_int8(&params, candidates->shift_ms);
	hpx_pg_add_int8(&params, candidates->limit);
	hpx_pg_send(&pipe, candidates->statement, &params);
	result = hpx_pg_take(&pipe);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		candidates->add(outbox, result, row);
	PQclear(result);
	return hpx_pg_end(&pipe);
}

static enum hpx_status run_candidates(struct hpx_pg_store *s, const struct candidates *candidates,
				      struct hpx_store_op *op, struct hpx_pg_outbox *outbox,
				      unsigned *ret_count, char *problem)
{
	enum hpx_status status = list(s, candidates, outbox, problem);

	if (status == HPX_OK && outbox->count == 0)
		return HPX_OK;
	if (status == HPX_OK)
		status = hpx_pg_outbox_look(s, outbox, false, problem);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	for (size_t i = 0; i < outbox->count; i++) {
		struct hpx_pg_item *item = &outbox->item[i];
		if (hpx_pg_outbox_is_held(outbox, item) || !candidates->decide(item, &outbox->look.now))
			continue;
		hpx_pg_outbox_take(outbox, item, op);
		HPX_ASSERT(*ret_count < candidates->limit);
		if (candidates->touched != NULL)
			candidates->touched[*ret_count] = (struct hpx_touched){ .id = item->id };
		++*ret_count;
	}
	return hpx_pg_outbox_commit(s, outbox, problem);
}

static enum hpx_status run_many(struct hpx_pg_store *s, struct candidates *candidates,
				struct hpx_store_op *op, unsigned *ret_count, char *problem)
{
	struct hpx_pg_outbox outbox;
	enum hpx_status status;

	*ret_count = 0;
	if (candidates->limit > HPX_PG_ITEMS_MAX)
		candidates->limit = HPX_PG_ITEMS_MAX;
	status = hpx_pg_outbox_init(&outbox, candidates->limit);
	if (status != HPX_OK)
		return status;
	status = run_candidates(s, candidates, op, &outbox, ret_count, problem);
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
	struct candidates candidates = { .statement = HPX_PG_LOST_JOBS,
					 .shift_ms = atomic_load(&s->base.lease_shift_ms),
					 .limit = op->sweep_jobs.limit,
					 .touched = op->sweep_jobs.touched,
					 .add = add_lost,
					 .decide = decide_lost };

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP_JOBS);
	return run_many(s, &candidates, op, &op->sweep_jobs.count, problem);
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
	struct candidates candidates = { .statement = HPX_PG_OVERDUE,
					 .shift_ms = atomic_load(&s->base.wall_shift_ms),
					 .limit = op->reap.limit,
					 .add = add_overdue,
					 .decide = decide_overdue };
	unsigned count;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	return run_many(s, &candidates, op, &count, problem);
}
