/* run(): what one op after the other makes of the operations, without ever
 * waiting for a row that somebody else has locked.
 *
 * What needs no lock goes first, in one round trip and a transaction of its own
 * (fast_path.c): of a batch of first attempts, their answers and retries, nothing is
 * left. The rest, in one transaction:
 *
 *  1. Look: rows that will be written for certain (answers, failures, a
 *     person's word) are locked; all rows are read; the time is asked. One
 *     round trip. A batch of replays locks nothing and opens no transaction.
 *  2. A reservation of an existing row may have to write it (another attempt,
 *     an expired key, a lost lease): those rows are locked and read again.
 *  3. Decide, in order, in memory (row_decision.c). What wrote nothing and rests on
 *     nothing that this batch writes is told at once: a replay waits for no
 *     fsync.
 *  4. Write and commit, one round trip. An operation that another gateway
 *     inserted in between is decided again, on its row.
 *
 * A row that is there and could not be locked counts as alive: a reservation is
 * told what the row says, at most "in progress"; a write is put off (its op's
 * status is HPX_BUSY); a renewal needs no lock, since it has its own table. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/postgres/outbox.h"

/* After this many inserts that came too late, the caller shall try again. */
#define ROUNDS_MAX 4

struct slow_round {
	struct hpx_pg_store *s;
	struct hpx_store_op **ops;
	size_t count;
	bool *todo; /* of each op: it is not settled yet */
	bool *free; /* of each op: it may be told before the commit */
	struct hpx_pg_batch batch;
	struct hpx_pg_look look;
	char *problem;
};

/* ---- 1 and 2: what is there ---- */

static bool needs_answer(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE || hpx_verb_has(op->verb, HPX_TRAIT_REMOVES);
}

static bool is_todo(const struct slow_round *round, size_t i)
{
	return round->ops[i] != NULL && round->todo[i];
}

static struct hpx_pg_pending_row *pending_of(struct slow_round *round, size_t i)
{
	return hpx_pg_batch_find(&round->batch, hpx_op_id(round->ops[i]));
}

static enum hpx_status look_first(struct slow_round *round)
{
	for (size_t i = 0; i < round->count; i++)
		if (is_todo(round, i))
			hpx_pg_batch_add(&round->batch, hpx_op_id(round->ops[i]));
	hpx_pg_batch_sort(&round->batch);
	for (size_t i = 0; i < round->count; i++)
		if (is_todo(round, i)) {
			pending_of(round, i)->to_read = true;
			pending_of(round, i)->to_lock |= hpx_pg_needs_lock(round->ops[i]);
		}
	return hpx_pg_look(round->s, &round->batch, &round->look, round->problem);
}

static enum hpx_status look_closer(struct slow_round *round)
{
	bool any = false;

	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i) || round->ops[i]->verb != HPX_VERB_RESERVE)
			continue;
		struct hpx_pg_pending_row *pending = pending_of(round, i);
		if (!pending->stored || pending->locked ||
		    !hpx_pg_would_write(pending, round->ops[i], &round->look.now))
			continue;
		pending->to_lock = pending->to_read = any = true;
	}
	return any ? hpx_pg_look(round->s, &round->batch, &round->look, round->problem) : HPX_OK;
}

static enum hpx_status look_answers(struct slow_round *round)
{
	bool any = false;

	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i) || !needs_answer(round->ops[i]))
			continue;
		struct hpx_pg_pending_row *pending = pending_of(round, i);
		if (pending->stored && pending->found.readable &&
		    pending->found.record.state == HPX_STATE_COMPLETED)
			pending->to_load = any = true;
	}
	return any ? hpx_pg_look_answers(round->s, &round->batch, round->problem) : HPX_OK;
}

static enum hpx_status look(struct slow_round *round)
{
	enum hpx_status status = look_first(round);

	if (status == HPX_OK)
		status = look_closer(round);
	if (status == HPX_OK)
		status = look_answers(round);
	return status;
}

/* ---- 3: decide ---- */

static void decide(struct slow_round *round, struct hpx_pg_pending_row *pending, struct hpx_store_op *op)
{
	struct hpx_change change;

	hpx_pg_decide(pending, op, &round->look.now, &change);
	hpx_pg_pending_row_change(&round->batch, pending, &change, op);
}

static void decide_all(struct slow_round *round)
{
	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i))
			continue;
		struct hpx_pg_pending_row *pending = pending_of(round, i);
		bool written_before = hpx_pg_pending_row_dirty(pending);
		decide(round, pending, round->ops[i]);
		round->free[i] = !written_before && !hpx_pg_pending_row_dirty(pending) &&
				 round->ops[i]->status != HPX_BUSY && !hpx_pg_begins(round->ops[i]);
	}
}

static void release_free(struct slow_round *round)
{
	if (round->s->unsure)
		return;
	for (size_t i = 0; i < round->count; i++)
		if (is_todo(round, i) && round->free[i])
			hpx_store_release(&round->s->base, &round->ops[i]);
}

/* ---- 4: write ---- */

/* What somebody else inserted first is to be decided anew; how many ops. */
static size_t keep_lost(struct slow_round *round)
{
	size_t left = 0;

	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i))
			continue;
		struct hpx_store_op *op = round->ops[i];
		HPX_ASSERT(pending_of(round, i) != NULL); /* look_first() added each op's */
		round->todo[i] = pending_of(round, i)->lost;
		if (!round->todo[i])
			continue;
		left++;
		hpx_store_op_drop(op);
	}
	return left;
}

static enum hpx_status run_round(struct slow_round *round, size_t *ret_left)
{
	enum hpx_status status = hpx_pg_batch_init(&round->batch, round->count, round->count);

	if (status != HPX_OK)
		return status;
	round->look = (struct hpx_pg_look){ .begun = false };
	status = look(round);
	if (status == HPX_OK) {
		HPX_CRASH_POINT(batch_begun);
		decide_all(round);
		release_free(round);
		status = hpx_pg_commit(round->s, &round->batch, &round->look, round->problem);
	} else {
		hpx_pg_undo(round->s, status);
	}
	if (status == HPX_OK)
		*ret_left = keep_lost(round);
	hpx_pg_batch_done(&round->batch);
	return status;
}

static size_t count_todo(const struct slow_round *round)
{
	size_t left = 0;

	for (size_t i = 0; i < round->count; i++)
		left += round->todo[i];
	return left;
}

/* Ops about one operation each. */
static enum hpx_status run_rows(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				char *problem)
{
	struct slow_round round = { .s = s, .ops = ops, .count = count, .problem = problem };
	bool *flags = calloc(2 * count, sizeof(*flags));
	enum hpx_status status = HPX_OK;
	size_t left = count;

	if (flags == NULL)
		return HPX_NOMEM;
	round.todo = flags;
	round.free = flags + count;
	for (size_t i = 0; i < count; i++)
		round.todo[i] = ops[i]->verb != HPX_VERB_JOB && ops[i]->verb != HPX_VERB_RULE;
	/* While the store is unsure, what is read must not be told, and what is
	 * written goes with a mark. */
	if (!s->unsure) {
		status = hpx_pg_fast_path(s, ops, count, round.todo, problem);
		left = count_todo(&round);
	}
	for (unsigned i = 0; i < ROUNDS_MAX && left > 0 && status == HPX_OK; i++)
		status = run_round(&round, &left);
	if (status == HPX_OK && left > 0) {
		hpx_store_problem(problem, "other gateways insert the same operations faster");
		status = HPX_BUSY;
	}
	free(flags);
	/* Alone, it is the op's trouble and not the store's: somebody inserted
	 * the same operation and does not commit. */
	if (status == HPX_BUSY && count == 1 && ops[0] != NULL) {
		ops[0]->status = HPX_BUSY;
		status = HPX_OK;
	}
	return status;
}

enum hpx_status hpx_pg_run_row(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	return run_rows(s, &op, 1, problem);
}

static enum hpx_status check_clock(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	(void)s;
	(void)op;
	(void)problem;
	return HPX_OK; /* the database's clock is the one that counts */
}

/* X(verb, what runs it, in a transaction of its own) */
#define OTHER_LIST(X) \
	X(SWEEP, hpx_pg_sweep) \
	X(REAP, hpx_pg_reap) \
	X(RECIPE, hpx_pg_put_recipe) \
	X(ACCEPT_CLOCK, check_clock) \
	X(ADVANCE, hpx_pg_application) \
	X(ENQUEUE, hpx_pg_application) \
	X(READ_POINT, hpx_pg_application) \
	X(RESOLVE, hpx_pg_settle) \
	X(FORGET, hpx_pg_settle) \
	X(CLAIM, hpx_pg_claim) \
	X(SWEEP_JOBS, hpx_pg_sweep_jobs) \
	X(CLAIM_UNKNOWN, hpx_pg_take_due) \
	X(ESCALATE, hpx_pg_take_due)

typedef enum hpx_status run_fn(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);

/* NULL: it goes by rows, or with other turns and rulings, in the batch's
 * transactions. */
static run_fn *runner_of(const struct hpx_store_op *op)
{
	static run_fn *const runners[HPX_VERB_COUNT] = {
#define X(verb, run) [HPX_VERB_##verb] = run,
		OTHER_LIST(X)
#undef X
	};

	return runners[op->verb];
}

/* Ops about many operations, those of an application and most of the outbox's
 * come between transactions of the others: they must see what those wrote. What
 * lies between two of these has no order that anybody could know of, as long as
 * ops about the same operation, and turns of the same job, keep theirs. */
enum hpx_status hpx_pg_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			   char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(store);
	enum hpx_status status = HPX_OK;
	size_t from = 0;

	while (from < count && status == HPX_OK) {
		size_t to = from;
		while (to < count && runner_of(ops[to]) == NULL)
			to++;
		if (to == from) {
			status = runner_of(ops[from])(s, ops[from], problem);
			from++;
			continue;
		}
		status = run_rows(s, ops + from, to - from, problem);
		if (status == HPX_OK)
			status = hpx_pg_job_updates(s, ops + from, to - from, problem);
		if (status == HPX_OK)
			status = hpx_pg_rules(s, ops + from, to - from, problem);
		from = to;
	}
	return status;
}
