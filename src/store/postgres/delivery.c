/* Jobs.
 *
 * CLAIM: due jobs begin to be sent. The rows are taken by one statement that skips what
 * other claims hold, so any number of workers share the work and none waits; the claims are
 * written with the commit. Two round trips, however many jobs. A claim of what may not be
 * sent any more changes its operation too, if the job answers. That is rare, and costs
 * another look, in which the operation's row is locked as well.
 *
 * What becomes of claimed jobs: JOB, many in one transaction; SWEEP_JOBS, lost claims; and
 * operations that were not delivered in time. A claim is lost by its lease alone, on the
 * database's clock, whichever process finds it. */
#include <stdlib.h>

#include "store/postgres/outbox.h"

/* Beyond every time that a row can hold, with the clock added to it. */
#define EVER_MS (INT64_MAX / 4)

struct claiming {
	struct hpx_pg_store *s;
	struct hpx_store_op *op;
	struct hpx_token token; /* of all claims of this op */
	struct hpx_pg_outbox outbox;
	bool again; /* a commit that was not heard of took them */
	char *problem;
};

static size_t room_of(const struct hpx_store_op *op)
{
	size_t room = 0;

	for (size_t i = 0; i < op->claim.claim_count && room < HPX_PG_ITEMS_MAX; i++)
		room += op->claim.claims[i].room;
	return room < HPX_PG_ITEMS_MAX ? room : HPX_PG_ITEMS_MAX;
}

/* ---- asking ---- */

/* The time from which, and until which, a job is due. */
static void add_window(struct claiming *c, struct hpx_pg_params *params, int64_t from_ms,
		       int64_t until_ms)
{
	int64_t shift_ms = atomic_load(&c->s->base.wall_shift_ms);

	hpx_pg_add_int8(params, from_ms + shift_ms);
	hpx_pg_add_int8(params, until_ms + shift_ms);
}

/* What is due, and what is due so late that the clock must have been set back:
 * the same statement over two windows. */
static void send_windows(struct claiming *c, struct hpx_pg_pipe *pipe, struct hpx_pg_columns *columns)
{
	struct hpx_pg_params params = { .count = 0 };
	enum hpx_status status = hpx_pg_columns_param(columns, &params);

	if (status != HPX_OK && pipe->status == HPX_OK)
		pipe->status = status;
	struct hpx_pg_params ahead = params;
	add_window(c, &params, -EVER_MS, 0);
	add_window(c, &ahead, HPX_JOB_AHEAD_MAX_MS, EVER_MS);
	hpx_pg_send(pipe, HPX_PG_CLAIM, &params);
	hpx_pg_send(pipe, HPX_PG_CLAIM, &ahead);
}

static void send_claims(struct claiming *c, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_TEXT, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 2);
	for (size_t i = 0; i < c->op->claim.claim_count; i++) {
		hpx_pg_put_text(&columns, c->op->claim.claims[i].target);
		hpx_pg_put_int(&columns, c->op->claim.claims[i].room);
	}
	send_windows(c, pipe, &columns);
	hpx_pg_columns_done(&columns);
}

static void send_recognise(struct claiming *c, struct hpx_pg_pipe *pipe)
{
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_bytes(&params, hpx_span(c->token.bytes, sizeof(c->token.bytes)));
	hpx_pg_add_int8(&params, atomic_load(&c->s->base.lease_shift_ms));
	hpx_pg_send(pipe, HPX_PG_CLAIMED, &params);
}

/* ---- taking ---- */

static const struct hpx_claim *claim_of(const struct claiming *c, const struct hpx_job_entry *entry)
{
	for (size_t i = 0; i < c->op->claim.claim_count; i++)
		if (hpx_span_eq(c->op->claim.claims[i].target, entry->job.target))
			return &c->op->claim.claims[i];
	return NULL;
}

static unsigned taken_for(const struct claiming *c, const struct hpx_claim *claim)
{
	unsigned count = 0;

	for (size_t i = 0; i < c->outbox.count; i++)
		count += claim_of(c, c->outbox.item[i].entry) == claim;
	return count;
}

/* Takes the entry over, or frees it where there is no room for it. */
static void take_entry(struct claiming *c, struct hpx_job_entry *entry)
{
	const struct hpx_claim *claim = claim_of(c, entry);
	size_t count = c->outbox.count;

	if (claim == NULL || (!c->again && taken_for(c, claim) >= claim->room) ||
	    count == c->outbox.max) {
		hpx_job_entry_free(entry);
		return;
	}
	hpx_pg_outbox_add_job(&c->outbox, entry->delivery.number);
	struct hpx_pg_item *item = &c->outbox.item[count];
	item->entry = entry;
	item->id = entry->delivery.operation;
	item->locked = true;
	item->found.job_exists = true;
	item->found.job_readable = entry->readable;
	item->found.delivery = entry->delivery;
}

static void take_rows(struct claiming *c, struct hpx_pg_pipe *pipe, bool wanted)
{
	PGresult *result = hpx_pg_take(pipe);

	for (int row = 0; wanted && result != NULL && row < PQntuples(result); row++) {
		struct hpx_job_entry *entry = hpx_pg_job_read(result, row);
		if (entry != NULL)
			take_entry(c, entry);
		else
			pipe->status = HPX_NOMEM;
	}
	PQclear(result);
}

static enum hpx_status look(struct claiming *c)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&c->s->writer, c->problem);

	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	send_recognise(c, &pipe);
	send_claims(c, &pipe);
	hpx_pg_send(&pipe, HPX_PG_CLOCK, NULL);
	PQclear(hpx_pg_take(&pipe));
	c->again = true;
	take_rows(c, &pipe, true);
	c->again = c->outbox.count > 0;
	take_rows(c, &pipe, !c->again);
	take_rows(c, &pipe, !c->again);
	hpx_pg_take_time(c->s, &pipe, &c->outbox.look.now);
	c->outbox.look.begun = true;
	return hpx_pg_end(&pipe);
}

/* ---- deciding ---- */

static bool decide(struct claiming *c, struct hpx_pg_item *item)
{
	return hpx_outbox_claim(&item->found, claim_of(c, item->entry), &c->token,
				c->s->base.owner, &c->outbox.look.now, &item->change);
}

static bool ends(const struct hpx_pg_item *item)
{
	return item->change.delivery.state != HPX_JOB_SENDING;
}

/* Whether a claim ends a job whose operation was not looked at yet. */
static bool wants_closer_look(struct claiming *c)
{
	for (size_t i = 0; i < c->outbox.count; i++) {
		struct hpx_pg_item *item = &c->outbox.item[i];
		if (item->found.delivery.answers && decide(c, item) && ends(item))
			return true;
	}
	return false;
}

static void decide_all(struct claiming *c)
{
	for (size_t i = 0; i < c->outbox.count; i++) {
		struct hpx_pg_item *item = &c->outbox.item[i];
		if (!item->locked || !decide(c, item) ||
		    (ends(item) && hpx_pg_outbox_is_held(&c->outbox, item)))
			continue;
		hpx_pg_outbox_take(&c->outbox, item, c->op);
	}
}

static void give(struct claiming *c)
{
	struct hpx_job_entry **tail = &c->op->claim.jobs;

	for (size_t i = 0; i < c->outbox.count; i++) {
		struct hpx_pg_item *item = &c->outbox.item[i];
		if (!c->again && (!item->changed || ends(item)))
			continue;
		*tail = item->entry;
		tail = &item->entry->next;
		item->entry = NULL;
	}
}

static enum hpx_status run(struct claiming *c)
{
	enum hpx_status status = look(c);

	if (status == HPX_OK && !c->again && wants_closer_look(c))
		status = hpx_pg_outbox_look(c->s, &c->outbox, true, c->problem);
	if (status != HPX_OK)
		return hpx_pg_undo(c->s, status);
	if (!c->again)
		decide_all(c);
	status = hpx_pg_outbox_commit(c->s, &c->outbox, c->problem);
	if (status == HPX_OK)
		give(c);
	return status;
}

/* The token is the op's, where its submitter made one: run again after a commit
 * that was not heard of, the op finds by it what it took. */
enum hpx_status hpx_pg_claim(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct claiming c = { .s = s, .op = op, .token = op->token, .problem = problem };
	size_t room = room_of(op);
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_CLAIM);
	if (room == 0)
		return HPX_OK;
	if (hpx_token_is_void(&c.token))
		hpx_token_make(&c.token);
	status = hpx_pg_outbox_init(&c.outbox, room);
	if (status != HPX_OK)
		return status;
	status = run(&c);
	hpx_pg_outbox_done(&c.outbox);
	return status;
}

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
	if (op->status == HPX_OK && (item->change.write_job || item->change.remove_job))
		hpx_pg_outbox_take(outbox, item, op);
}

static void tell_update(struct hpx_pg_item *item, struct hpx_store_op *op)
{
	if (op->status != HPX_OK || item->change.remove_job)
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
		const struct hpx_pg_row *row =
			hpx_pg_batch_find(&updates->outbox.batch, &item->id);
		if (row != NULL && hpx_pg_row_dirty(row))
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

/* Candidates that were read without a lock; each is judged again under its own. */
struct candidates {
	const PGresult *result;
	int from; /* its first row */
	unsigned limit;
	struct hpx_touched *touched; /* room for `limit`, or NULL */
	void (*add)(struct hpx_pg_outbox *outbox, const PGresult *result, int row);
	bool (*decide)(struct hpx_pg_item *item, const struct hpx_moment *now);
};

static enum hpx_status run_candidates(struct hpx_pg_store *s, const struct candidates *candidates,
				      struct hpx_store_op *op, struct hpx_pg_outbox *outbox,
				      unsigned *ret_count, char *problem)
{
	enum hpx_status status = HPX_OK;

	for (int row = candidates->from; row < PQntuples(candidates->result); row++)
		candidates->add(outbox, candidates->result, row);
	if (outbox->count == 0)
		return HPX_OK;
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

static enum hpx_status find_lost(struct hpx_pg_store *s, unsigned limit, PGresult **ret_result,
				 char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_int8(&params, atomic_load(&s->base.lease_shift_ms));
	hpx_pg_add_int8(&params, limit);
	hpx_pg_send(&pipe, HPX_PG_LOST_JOBS, &params);
	*ret_result = hpx_pg_take(&pipe);
	return hpx_pg_end(&pipe);
}

enum hpx_status hpx_pg_sweep_jobs(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct candidates candidates = { .limit = op->sweep_jobs.limit,
					 .touched = op->sweep_jobs.touched,
					 .add = add_lost,
					 .decide = decide_lost };
	PGresult *result = NULL;
	enum hpx_status status = find_lost(s, op->sweep_jobs.limit, &result, problem);

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP_JOBS);
	candidates.result = result;
	status = status == HPX_OK ? run_many(s, &candidates, op, &op->sweep_jobs.count, problem) :
				    hpx_pg_undo(s, status);
	PQclear(result);
	return status;
}

/* ---- not delivered in time ---- */

/* By the job, since its row has to be locked too; by itself where it is gone. */
static void add_overdue(struct hpx_pg_outbox *outbox, const PGresult *result, int row)
{
	struct hpx_operation_id id;
	int64_t number = 0;

	if (hpx_pg_int(result, row, 2, 1, INT64_MAX, &number))
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

enum hpx_status hpx_pg_abandon(struct hpx_pg_store *s, struct hpx_store_op *op,
			       const PGresult *overdue, int from, char *problem)
{
	struct candidates candidates = { .result = overdue,
					 .from = from,
					 .limit = op->reap.limit,
					 .add = add_overdue,
					 .decide = decide_overdue };
	unsigned count;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	return run_many(s, &candidates, op, &count, problem);
}
