/* The slow path: what one op after the other makes of the operations, without ever
 * waiting for a row that somebody else has locked. In one transaction:
 *
 *  1. Look: rows that will be written for certain (answers, failures, a person's word)
 *     are locked; all rows are read; the time is asked. One round trip. A batch of
 *     replays locks nothing and opens no transaction.
 *  2. A reservation of an existing row may have to write it (another attempt, an expired
 *     key, a lost lease): those rows are locked and read again.
 *  3. Decide, in order, in memory (row.c). What wrote nothing and rests on nothing that
 *     this batch writes is told at once: a replay waits for no fsync.
 *  4. Write and commit, one round trip. An operation that another gateway inserted in
 *     between is decided again, on its row.
 *
 * A row that is there and could not be locked counts as alive: a reservation is told what
 * the row says, at most "in progress"; a write is put off (its op's status is HPX_BUSY); a
 * renewal needs no lock, since it has its own table.
 *
 * A look is LOCK, which skips what somebody else has locked; READ, of all rows with their
 * renewals: each statement of a READ COMMITTED transaction sees what is committed when it
 * begins, so this shows the rows as they were locked; and CLOCK: no decision is older than
 * its row. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/postgres/outbox.h"

#define TIME_MAX (INT64_MAX / 4)

/* Answers are large: so many at a time are held twice. */
#define ANSWERS_AT_ONCE 16

static bool is_to_lock(const struct hpx_pg_row *row)
{
	return row->to_lock;
}

static bool is_to_read(const struct hpx_pg_row *row)
{
	return row->to_read;
}

static bool is_to_load(const struct hpx_pg_row *row)
{
	return row->to_load;
}

static bool any(const struct hpx_pg_batch *batch, bool (*wanted)(const struct hpx_pg_row *))
{
	for (size_t i = 0; i < batch->row_count; i++)
		if (wanted(&batch->rows[i]))
			return true;
	return false;
}

static void take_locks(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;

	for (int i = 0; result != NULL && i < PQntuples(result); i++) {
		struct hpx_pg_row *row =
			hpx_pg_id_read(result, i, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
		if (row != NULL)
			row->locked = true;
	}
	PQclear(result);
}

static void take_rows(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);

	if (result == NULL)
		return;
	for (size_t i = 0; i < batch->row_count; i++)
		if (batch->rows[i].to_read) {
			batch->rows[i].stored = batch->rows[i].taken = false;
			batch->rows[i].found = (struct hpx_found){ .exists = false };
		}
	for (int row = 0; row < PQntuples(result); row++)
		hpx_pg_batch_take(batch, result, row);
	PQclear(result);
}

/* Both clocks are the database's, so that all gateways judge alike. */
void hpx_pg_take_time(struct hpx_pg_store *s, struct hpx_pg_pipe *pipe, struct hpx_moment *ret_now)
{
	PGresult *result = hpx_pg_take(pipe);
	int64_t clock_ms = 0;

	if (result == NULL)
		return;
	if (PQntuples(result) != 1 || !hpx_pg_int(result, 0, 0, 0, TIME_MAX, &clock_ms))
		pipe->status = HPX_CORRUPT;
	*ret_now = (struct hpx_moment){
		.wall_ms = clock_ms + atomic_load(&s->base.wall_shift_ms),
		.lease_ms = clock_ms + atomic_load(&s->base.lease_shift_ms),
	};
	PQclear(result);
}

static void clear_marks(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->row_count; i++)
		batch->rows[i].to_lock = batch->rows[i].to_read = false;
}

enum hpx_status hpx_pg_look(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			    struct hpx_pg_look *look, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	bool locks = any(batch, is_to_lock);
	bool begins = locks && !look->begun;

	if (begins)
		hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	if (locks)
		hpx_pg_send_ids(&pipe, HPX_PG_LOCK, batch, is_to_lock);
	hpx_pg_send_ids(&pipe, HPX_PG_READ, batch, is_to_read);
	hpx_pg_send(&pipe, HPX_PG_CLOCK, NULL);
	if (begins)
		PQclear(hpx_pg_take(&pipe));
	if (locks)
		take_locks(&pipe, batch);
	take_rows(&pipe, batch);
	hpx_pg_take_time(s, &pipe, &look->now);
	look->begun |= begins;
	clear_marks(batch);
	return hpx_pg_end(&pipe);
}

enum hpx_status hpx_pg_look_time(struct hpx_pg_store *s, struct hpx_moment *ret_now, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_moment now = { .wall_ms = 0 };
	enum hpx_status status;

	hpx_pg_send(&pipe, HPX_PG_CLOCK, NULL);
	hpx_pg_take_time(s, &pipe, &now);
	status = hpx_pg_end(&pipe);
	if (status == HPX_OK)
		*ret_now = now;
	return status;
}

/* ---- answers ---- */

static void take_answer(const PGresult *result, int at, struct hpx_pg_batch *batch)
{
	struct hpx_operation_id id;
	struct hpx_pg_row *row =
		hpx_pg_id_read(result, at, &id) ? hpx_pg_batch_find(batch, &id) : NULL;

	if (row == NULL || row->kept != NULL)
		return;
	row->kept_status = hpx_pg_answer_read(result, at, 2, &row->found.record, &row->kept);
}

static void take_answers(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);

	for (int i = 0; result != NULL && i < PQntuples(result); i++)
		take_answer(result, i, batch);
	PQclear(result);
}

/* The next few; `*from` goes on behind them. */
static enum hpx_status load_some(struct hpx_pg_store *s, struct hpx_pg_batch *batch, size_t *from,
				 char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_batch part = { .rows = batch->rows + *from };
	size_t count = 0;

	while (*from + part.row_count < batch->row_count && count < ANSWERS_AT_ONCE)
		count += batch->rows[*from + part.row_count++].to_load;
	*from += part.row_count;
	if (count == 0)
		return HPX_OK;
	hpx_pg_send_ids(&pipe, HPX_PG_ANSWERS, &part, is_to_load);
	take_answers(&pipe, batch);
	return hpx_pg_end(&pipe);
}

static enum hpx_status load_answers(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
				    char *problem)
{
	enum hpx_status status = HPX_OK;
	size_t from = 0;

	for (size_t i = 0; i < batch->row_count; i++)
		if (batch->rows[i].to_load && batch->rows[i].found.record.kept)
			batch->rows[i].kept_status = HPX_CORRUPT; /* until it is read */
	while (from < batch->row_count && status == HPX_OK)
		status = load_some(s, batch, &from, problem);
	return status;
}

/* ---- rounds ---- */

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

static struct hpx_pg_row *row_of(struct slow_round *round, size_t i)
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
			row_of(round, i)->to_read = true;
			row_of(round, i)->to_lock |= hpx_pg_needs_lock(round->ops[i]);
		}
	return hpx_pg_look(round->s, &round->batch, &round->look, round->problem);
}

static enum hpx_status look_closer(struct slow_round *round)
{
	bool any = false;

	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i) || round->ops[i]->verb != HPX_VERB_RESERVE)
			continue;
		struct hpx_pg_row *row = row_of(round, i);
		if (!row->stored || row->locked ||
		    !hpx_pg_would_write(row, round->ops[i], &round->look.now))
			continue;
		row->to_lock = row->to_read = any = true;
	}
	return any ? hpx_pg_look(round->s, &round->batch, &round->look, round->problem) : HPX_OK;
}

static enum hpx_status look_answers(struct slow_round *round)
{
	bool any = false;

	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i) || !needs_answer(round->ops[i]))
			continue;
		struct hpx_pg_row *row = row_of(round, i);
		if (row->stored && row->found.readable &&
		    row->found.record.state == HPX_STATE_COMPLETED)
			row->to_load = any = true;
	}
	return any ? load_answers(round->s, &round->batch, round->problem) : HPX_OK;
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

static void decide(struct slow_round *round, struct hpx_pg_row *row, struct hpx_store_op *op)
{
	struct hpx_change change;

	hpx_pg_decide(row, op, &round->look.now, &change);
	hpx_pg_row_change(&round->batch, row, &change, op);
	if (hpx_pg_begins(op))
		op->reserve.row = !row->stored ? 1 : row->revision + row->changed;
}

static void decide_all(struct slow_round *round)
{
	for (size_t i = 0; i < round->count; i++) {
		if (!is_todo(round, i))
			continue;
		struct hpx_pg_row *row = row_of(round, i);
		bool written_before = hpx_pg_row_dirty(row);
		decide(round, row, round->ops[i]);
		round->free[i] = !written_before && !hpx_pg_row_dirty(row) &&
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
		HPX_ASSERT(row_of(round, i) != NULL); /* look_first() added each op's */
		round->todo[i] = row_of(round, i)->lost;
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

enum hpx_status hpx_pg_slow_path(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem)
{
	struct slow_round round = { .s = s, .ops = ops, .count = count, .todo = todo, .problem = problem };
	enum hpx_status status = HPX_OK;
	size_t left = count_todo(&round);

	if (left == 0)
		return HPX_OK;
	round.free = calloc(count, sizeof(*round.free));
	if (round.free == NULL)
		return HPX_NOMEM;
	for (unsigned i = 0; i < ROUNDS_MAX && left > 0 && status == HPX_OK; i++)
		status = run_round(&round, &left);
	free(round.free);
	if (status == HPX_OK && left > 0) {
		hpx_store_problem(problem, "other gateways insert the same operations faster");
		status = HPX_BUSY;
	}
	return status;
}
