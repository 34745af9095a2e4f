/* The fast path of a batch: reservations of new keys and answers to first attempts, in
 * one round trip and one implicit transaction, which the pipeline's sync commits. What
 * is not eligible, or was not written, takes the slow path (slow_path.c).
 *
 * A reservation inserts what is not there. A row that can be seen is left out before the
 * INSERT, which would wait for whoever is changing that row. What was left out is read
 * beside the commit (replay.c), and a retry that only has to be told what is there is told
 * at once: a replay waits for no fsync. A retry that would write, or of which nothing was
 * found, takes the slow path.
 *
 * A completion knows its row from the reservation: it finds the row only as its attempt
 * left it, of the same revision, and never renewed, so that there is no lease row to
 * remove either. A row that somebody else has locked is not found: nothing is waited for.
 * What is written is still what the rules say, of no record and of the record believed;
 * where the row turns out to be another, nothing was written, and the slow path looks.
 *
 * The time is the database's, and known when the row is written. The rules are asked with
 * the time here, in its place; what is sent is how far from it each time lies, and what
 * comes back says how far off it was. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "store/postgres/driver.h"

#define TIME_MAX (INT64_MAX / 4)

/* An op of the batch, and what the fast path makes of it. */
struct fast_op {
	struct hpx_store_op *op;         /* not to be touched once it was told */
	struct hpx_operation_id id;      /* its own copy, for the same reason */
	size_t at;                       /* in the batch */
	const struct hpx_answer *answer; /* to be stored; or NULL */
	bool eligible;                   /* it is sent; the rules say that it is one plain write */
	bool answerable;                 /* a RESERVE: where the row is there, it may be told what was read */
	bool written;
};

struct fast_batch {
	struct hpx_pg_store *s;
	struct hpx_store_op **ops; /* the batch; NULL once it was told */
	bool *todo;                /* of each of them */
	struct fast_op *fast_ops;  /* sorted by id */
	size_t count;
	struct hpx_moment now; /* the rules', by the clock here */
	int64_t base_ms;       /* that clock */
	char *problem;
};

static int by_id(const void *a, const void *b)
{
	const struct fast_op *x = a;
	const struct fast_op *y = b;

	return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* Behind the last op about the same operation. */
static size_t group_end(const struct fast_batch *batch, size_t from)
{
	size_t to = from + 1;

	while (to < batch->count && by_id(&batch->fast_ops[from], &batch->fast_ops[to]) == 0)
		to++;
	return to;
}

static bool is_eligible_as(const struct fast_op *fast_op, enum hpx_verb verb)
{
	return fast_op->eligible && fast_op->op->verb == verb;
}

/* As it came, for the slow path. */
static void put_back(struct hpx_store_op *op)
{
	op->status = HPX_OK;
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
}

/* ---- who goes ---- */

static bool reserves(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE && op->reserve.ask != NULL &&
	       op->reserve.job == NULL && !op->reserve.look;
}

static bool completes(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_COMPLETE && op->complete.believed != NULL &&
	       op->complete.row > 0 && op->complete.row <= INT32_MAX &&
	       op->complete.believed->state == HPX_STATE_IN_PROGRESS &&
	       op->complete.believed->expires_ms == 0;
}

/* What RESERVE writes without being told. */
static bool is_first(const struct hpx_record *record, const struct hpx_moment *now)
{
	return record->state == HPX_STATE_IN_PROGRESS && record->attempt == 1 &&
	       record->created_ms == now->wall_ms && record->changed_ms == now->wall_ms &&
	       record->expires_ms == 0 && record->status == 0 && !record->kept &&
	       !record->advanced && record->point[0] == '\0';
}

static bool judge(struct fast_op *fast_op, const struct hpx_moment *now)
{
	struct hpx_store_op *op = fast_op->op;
	struct hpx_found found = { .exists = false };
	struct hpx_change change;

	if (!reserves(op) && !completes(op))
		return false;
	if (op->verb == HPX_VERB_COMPLETE)
		found = (struct hpx_found){ .exists = true, .readable = true, .record = *op->complete.believed };
	hpx_change_make(&found, op, now, false, &change);
	fast_op->answer = change.answer;
	if (op->status != HPX_OK || change.event != NULL || change.job != NULL)
		return false;
	return op->verb == HPX_VERB_RESERVE ?
		       change.write == HPX_WRITE_INSERT && is_first(&change.record, now) :
		       change.write == HPX_WRITE_UPDATE;
}

/* Ops about the same operation depend on each other: none of them goes. Those that are
 * all reservations may find that there is nothing to be done. */
static size_t judge_group(struct fast_batch *batch, size_t from, size_t to)
{
	struct fast_op *first = &batch->fast_ops[from];
	bool answerable = true;

	HPX_ASSERT(from < to && to <= batch->count);
	for (size_t i = from; i < to; i++)
		answerable &= batch->fast_ops[i].op->verb == HPX_VERB_RESERVE;
	for (size_t i = from; i < to; i++)
		batch->fast_ops[i].answerable = answerable;
	first->eligible = to == from + 1 && judge(first, &batch->now);
	for (size_t i = from; i < to; i++)
		if (!batch->fast_ops[i].eligible)
			put_back(batch->fast_ops[i].op);
	return first->eligible;
}

/* Sorted, because two gateways that insert the same ids in different orders would wait
 * for each other. How many go. */
static size_t judge_all(struct fast_batch *batch)
{
	size_t going = 0;

	for (size_t i = 0; i < batch->count; i++)
		batch->fast_ops[i] = (struct fast_op){ .op = batch->ops[i],
						       .id = *hpx_op_id(batch->ops[i]),
						       .at = i };
	qsort(batch->fast_ops, batch->count, sizeof(*batch->fast_ops), by_id);
	for (size_t from = 0; from < batch->count; from = group_end(batch, from))
		going += judge_group(batch, from, group_end(batch, from));
	return going;
}

/* ---- sending ---- */

static void put_reservation(struct fast_batch *batch, struct hpx_pg_columns *columns,
			    const struct hpx_store_op *op)
{
	const struct hpx_record *record = &op->decision.record;

	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_rest(columns, &record->id);
	hpx_pg_put_token(columns, &record->token);
	hpx_pg_put_mark(columns, &record->mark);
	hpx_pg_put_bytes(columns, hpx_span(record->recipe.bytes, sizeof(record->recipe.bytes)));
	hpx_pg_put_int(columns, (int64_t)record->owner);
	hpx_pg_put_int(columns, record->retention_ms);
	hpx_pg_put_bytes(columns, hpx_span(record->fingerprint, sizeof(record->fingerprint)));
	hpx_pg_put_bytes(columns, hpx_span(record->tenant, sizeof(record->tenant)));
	hpx_pg_put_description(columns, op);
	hpx_pg_put_int(columns, record->lease_until_ms - batch->base_ms);
	hpx_pg_put_int(columns, record->when_lost);
	hpx_pg_put_int(columns, record->tombstone_ms);
}

/* Of any batch but one of a single op, which waits for nothing but itself, the server
 * sends what it inserted before it works on the rest. */
static bool send_reservations(struct fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = {
		HPX_PG_UUID, HPX_PG_UUID, HPX_PG_UUID, HPX_PG_UUID, HPX_PG_UUID, HPX_PG_INT8,
		HPX_PG_INT8, HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_TEXT, HPX_PG_TEXT, HPX_PG_TEXT,
		HPX_PG_TEXT, HPX_PG_TEXT, HPX_PG_TEXT, HPX_PG_INT8, HPX_PG_INT2, HPX_PG_INT8
	};
	int64_t off_ms = batch->now.wall_ms - batch->base_ms;
	struct hpx_pg_columns columns;
	bool any;

	hpx_pg_columns_init(&columns, types, sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < batch->count; i++)
		if (is_eligible_as(&batch->fast_ops[i], HPX_VERB_RESERVE))
			put_reservation(batch, &columns, batch->fast_ops[i].op);
	any = hpx_pg_send_columns(pipe, HPX_PG_RESERVE, &columns, &off_ms);
	if (any && batch->count > 1)
		hpx_pg_ask_early(pipe);
	return any;
}

/* Of routes that are matched by key, and of no others; behind the reservations. */
static bool send_route_keys(struct fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	struct hpx_pg_columns columns;

	hpx_pg_route_keys_init(&columns);
	for (size_t i = 0; i < batch->count; i++) {
		const struct fast_op *fast_op = &batch->fast_ops[i];
		if (is_eligible_as(fast_op, HPX_VERB_RESERVE) && fast_op->op->reserve.route_key != NULL)
			hpx_pg_put_route_key(&columns, &fast_op->op->decision.record,
					     fast_op->op->reserve.route_key);
	}
	return hpx_pg_send_columns(pipe, HPX_PG_PUT_ROUTE_KEYS, &columns, NULL);
}

static void put_completion(struct fast_batch *batch, struct hpx_pg_columns *columns,
			   const struct fast_op *fast_op)
{
	const struct hpx_record *record = &fast_op->op->decision.record;

	HPX_ASSERT(record->state == HPX_STATE_COMPLETED);
	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_token(columns, &record->token);
	hpx_pg_put_int(columns, fast_op->op->complete.row);
	hpx_pg_put_int(columns, record->status);
	hpx_pg_put_int(columns, record->kept);
	hpx_pg_put_int(columns, record->expires_ms - batch->base_ms);
	hpx_pg_put_answer(columns, &record->id, fast_op->answer);
}

static void completions_init(struct hpx_pg_columns *columns)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID, HPX_PG_UUID, HPX_PG_INT4,
						  HPX_PG_INT4, HPX_PG_BOOL, HPX_PG_INT8,
						  HPX_PG_BYTEA };

	hpx_pg_columns_init(columns, types, sizeof(types) / sizeof(types[0]));
}

/* In as many statements as the answers' bytes need. */
static void send_completions(struct fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	int64_t off_ms = batch->now.wall_ms - batch->base_ms;
	struct hpx_pg_columns columns;

	completions_init(&columns);
	for (size_t i = 0; i < batch->count; i++) {
		if (!is_eligible_as(&batch->fast_ops[i], HPX_VERB_COMPLETE))
			continue;
		put_completion(batch, &columns, &batch->fast_ops[i]);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_COMPLETE, &columns, &off_ms);
		hpx_pg_flush(pipe);
		completions_init(&columns);
	}
	hpx_pg_send_columns(pipe, HPX_PG_COMPLETE, &columns, &off_ms);
}

/* ---- what was written ---- */

/* `at_ms`: what the rules' time was by the database's clock. */
static void mend_times(struct fast_batch *batch, struct hpx_store_op *op, int64_t at_ms)
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

static bool take_written(struct fast_batch *batch, const struct hpx_operation_id *id,
			 enum hpx_verb verb, int64_t at_ms)
{
	struct fast_op wanted = { .id = *id };
	struct fast_op *fast_op =
		bsearch(&wanted, batch->fast_ops, batch->count, sizeof(*batch->fast_ops), by_id);

	if (fast_op == NULL || !is_eligible_as(fast_op, verb) || fast_op->written)
		return false;
	fast_op->written = true;
	mend_times(batch, fast_op->op, at_ms);
	if (verb == HPX_VERB_RESERVE)
		fast_op->op->reserve.row = 1;
	return true;
}

/* The result of one statement: ids, and the time of each. */
static void take_result(struct fast_batch *batch, struct hpx_pg_pipe *pipe, enum hpx_verb verb)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;
	int64_t at_ms;

	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		if (!hpx_pg_id_read(result, row, &id) ||
		    !hpx_pg_int(result, row, 2, -TIME_MAX, TIME_MAX, &at_ms) ||
		    !take_written(batch, &id, verb, at_ms))
			pipe->status = HPX_CORRUPT;
	PQclear(result);
}

/* ---- what was there ---- */

/* Nothing of it rests on what this batch writes. */
static void tell(struct fast_batch *batch, struct fast_op *fast_op, const struct hpx_pg_row *row,
		 const struct hpx_moment *now)
{
	struct hpx_change nothing;

	HPX_ASSERT(fast_op->answerable && !fast_op->written && batch->todo[fast_op->at]);
	put_back(fast_op->op);
	hpx_pg_decide(row, fast_op->op, now, &nothing);
	fast_op->eligible = fast_op->answerable = false;
	batch->todo[fast_op->at] = false;
	hpx_store_release(&batch->s->base, &batch->ops[fast_op->at]);
}

/* All ops about an operation, or none. */
static void tell_group(struct fast_batch *batch, size_t from, size_t to,
		       const struct hpx_pg_row *row, const struct hpx_moment *now)
{
	for (size_t i = from; i < to; i++)
		if (!hpx_pg_would_only_tell(row, batch->fast_ops[i].op, now))
			return;
	for (size_t i = from; i < to; i++)
		tell(batch, &batch->fast_ops[i], row, now);
}

static bool was_left_out(const struct fast_op *fast_op)
{
	return fast_op->answerable && !fast_op->written;
}

static void tell_replays(struct fast_batch *batch)
{
	struct hpx_pg_batch rows;
	struct hpx_moment now;

	if (hpx_pg_batch_init(&rows, batch->count, 0) != HPX_OK)
		return; /* the slow path has the same trouble, and tells of it */
	for (size_t i = 0; i < batch->count; i++)
		if (was_left_out(&batch->fast_ops[i]))
			hpx_pg_batch_add(&rows, &batch->fast_ops[i].id);
	hpx_pg_batch_sort(&rows);
	if (rows.row_count > 0)
		hpx_pg_read_replays(batch->s, &rows, &now);
	for (size_t from = 0, to; from < batch->count; from = to) {
		const struct hpx_pg_row *row = hpx_pg_batch_find(&rows, &batch->fast_ops[from].id);
		to = group_end(batch, from);
		if (row != NULL && row->stored)
			tell_group(batch, from, to, row, &now);
	}
	hpx_pg_batch_done(&rows);
}

/* ---- the round trip ---- */

static enum hpx_status write_all(struct fast_batch *batch)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&batch->s->writer, batch->problem);
	uint64_t commit = hpx_pg_commit_begins(batch->s);
	bool reservations = send_reservations(batch, &pipe);

	bool route_keys = send_route_keys(batch, &pipe);
	send_completions(batch, &pipe);
	if (reservations)
		take_result(batch, &pipe, HPX_VERB_RESERVE);
	if (pipe.status == HPX_OK)
		tell_replays(batch);
	if (route_keys)
		PQclear(hpx_pg_take(&pipe));
	while (pipe.status == HPX_OK && pipe.waiting > 0)
		take_result(batch, &pipe, HPX_VERB_COMPLETE);
	return hpx_pg_believe(batch->s, commit, hpx_pg_end(&pipe), batch->problem);
}

/* It is committed: what was written is done, the rest takes the slow path. */
static void settle(struct fast_batch *batch)
{
	bool any = false;

	for (size_t i = 0; i < batch->count; i++) {
		const struct fast_op *fast_op = &batch->fast_ops[i];
		if (fast_op->written)
			batch->todo[fast_op->at] = false;
		else if (fast_op->eligible)
			put_back(fast_op->op);
		any |= fast_op->written;
	}
	if (any)
		HPX_CRASH_POINT(batch_committed);
}

enum hpx_status hpx_pg_fast_path(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem)
{
	int64_t base_ms = hpx_clock_wall_ms();
	struct fast_batch batch = { .s = s, .ops = ops, .todo = todo, .count = count, .base_ms = base_ms, .problem = problem };
	enum hpx_status status = HPX_OK;

	batch.now = (struct hpx_moment){
		.wall_ms = base_ms + atomic_load(&s->base.wall_shift_ms),
		.lease_ms = base_ms + atomic_load(&s->base.lease_shift_ms),
	};
	batch.fast_ops = calloc(count, sizeof(*batch.fast_ops));
	if (batch.fast_ops == NULL)
		return HPX_NOMEM;
	if (judge_all(&batch) > 0) {
		HPX_CRASH_POINT(batch_begun);
		HPX_CRASH_POINT(batch_written);
		status = write_all(&batch);
		if (status == HPX_OK)
			settle(&batch);
	}
	free(batch.fast_ops);
	return status;
}
