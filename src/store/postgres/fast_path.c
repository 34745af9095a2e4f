/* What nearly every request asks of the store, without a lock beforehand: one
 * round trip and one commit for all of it in a batch.
 *
 * A reservation of a key that is not there is an INSERT, and the primary key
 * tells whether it was. An id that can be seen is left out before: INSERT would
 * wait for whoever is changing its row. What was seen comes back, and a retry
 * that only has to be told what is there is told at once, while the server goes
 * on with the rest: a replay waits for no fsync. A retry that would write, or of
 * which not enough came back, goes the long way.
 *
 * A completion knows its row from the reservation: it finds the row only as its
 * attempt left it, the first one, with nothing of it committed by the application,
 * and never renewed, so that there is no lease row to remove either. A row that
 * somebody else has locked is not found: nothing is waited for. What is written is
 * still what the rules say, of no record and of the record believed; where the row
 * turns out to be another, nothing was written, and the long way looks.
 *
 * The time is the database's, and known when the row is written. The rules are
 * asked with the time here, in its place; what is sent is how far from it each
 * time lies, and what comes back says how far off it was. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "store/postgres/fast_path.h"

/* ---- who goes ---- */

static bool reserves(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE && op->reserve.ask != NULL && op->reserve.job == NULL && !op->reserve.look;
}

static bool completes(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_COMPLETE && op->complete.believed != NULL &&
	       op->complete.believed->state == HPX_STATE_IN_PROGRESS && op->complete.believed->expires_ms == 0;
}

/* What INSERT_ABSENT writes without being told. */
static bool is_first(const struct hpx_record *record, const struct hpx_moment *now)
{
	return record->state == HPX_STATE_IN_PROGRESS && record->attempt == 1 &&
	       record->created_ms == now->wall_ms && record->changed_ms == now->wall_ms &&
	       record->expires_ms == 0 && record->status == 0 && !record->kept &&
	       !record->advanced && record->point[0] == '\0';
}

static bool judge(struct hpx_pg_walker *walker, const struct hpx_moment *now)
{
	struct hpx_store_op *op = walker->op;
	struct hpx_found found = { .exists = false };
	struct hpx_change change;

	if (!reserves(op) && !completes(op))
		return false;
	if (op->verb == HPX_VERB_COMPLETE)
		found = (struct hpx_found){ .exists = true, .readable = true, .record = *op->complete.believed };
	hpx_change_make(&found, op, now, false, &change);
	walker->answer = change.answer;
	if (op->status != HPX_OK || change.event != NULL || change.job != NULL)
		return false;
	return op->verb == HPX_VERB_RESERVE ?
		       change.write == HPX_WRITE_INSERT && is_first(&change.record, now) :
		       change.write == HPX_WRITE_UPDATE;
}

/* Ops about the same operation depend on each other: none of them goes. Those
 * that are all reservations may find that there is nothing to be done. */
static size_t gather_group(struct hpx_pg_walk *walk, size_t from, size_t to)
{
	struct hpx_pg_walker *first = &walk->walkers[from];
	bool looks = true;

	for (size_t i = from; i < to; i++)
		looks &= walk->walkers[i].op->verb == HPX_VERB_RESERVE;
	for (size_t i = from; i < to; i++)
		walk->walkers[i].looks = looks;
	first->goes = to == from + 1 && judge(first, &walk->now);
	for (size_t i = from; i < to; i++)
		if (!walk->walkers[i].goes)
			hpx_pg_put_back(walk->walkers[i].op);
	return first->goes;
}

/* Sorted, because two gateways that insert the same ids in different orders
 * would wait for each other. How many go. */
static size_t gather(struct hpx_pg_walk *walk)
{
	size_t going = 0;

	for (size_t i = 0; i < walk->count; i++)
		walk->walkers[i] = (struct hpx_pg_walker){ .op = walk->ops[i],
							   .id = *hpx_op_id(walk->ops[i]),
							   .at = i };
	qsort(walk->walkers, walk->count, sizeof(*walk->walkers), hpx_pg_walker_order);
	for (size_t from = 0; from < walk->count; from = hpx_pg_walk_end(walk, from))
		going += gather_group(walk, from, hpx_pg_walk_end(walk, from));
	return going;
}

/* ---- sending ---- */

/* The arrays, and behind them how far the rules' time is from the clock here.
 * False: there was nothing to send. */
static bool send_columns(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe,
			 enum hpx_pg_statement statement, struct hpx_pg_columns *columns)
{
	struct hpx_pg_params params = { .count = 0 };
	enum hpx_status status = HPX_OK;
	bool any = hpx_pg_columns_rows(columns) > 0;

	if (any)
		status = hpx_pg_columns_param(columns, &params);
	if (any && status == HPX_OK) {
		hpx_pg_add_int8(&params, walk->now.wall_ms - walk->base_ms);
		hpx_pg_send(pipe, statement, &params);
	} else if (pipe->status == HPX_OK) {
		pipe->status = status;
	}
	hpx_pg_columns_done(columns);
	return any;
}

static void put_first(struct hpx_pg_walk *walk, struct hpx_pg_columns *columns,
		      const struct hpx_store_op *op)
{
	const struct hpx_record *record = &op->decision.record;

	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_token(columns, &record->token);
	hpx_pg_put_mark(columns, &record->mark);
	hpx_pg_put_bytes(columns, hpx_span(record->fingerprint, sizeof(record->fingerprint)));
	hpx_pg_put_bytes(columns, hpx_span(record->recipe.bytes, sizeof(record->recipe.bytes)));
	hpx_pg_put_bytes(columns, hpx_span(record->tenant, sizeof(record->tenant)));
	hpx_pg_put_int(columns, (int64_t)record->owner);
	hpx_pg_put_int(columns, record->retention_ms);
	hpx_pg_put_int(columns, record->lease_until_ms - walk->base_ms);
	hpx_pg_put_int(columns, record->when_lost);
	hpx_pg_put_description(columns, op);
}

static void put_id_only(struct hpx_pg_columns *columns, const struct hpx_operation_id *id)
{
	hpx_pg_put_id(columns, id);
	for (int i = 1; i < columns->count; i++)
		hpx_pg_put_null(columns);
}

/* Of any batch but one of a single op, which waits for nothing but itself, the
 * server sends what it saw before it works on the commit. */
static bool send_reservations(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = {
		HPX_PG_BYTEA,
		HPX_PG_BYTEA,
		HPX_PG_BYTEA,
		HPX_PG_BYTEA,
		HPX_PG_BYTEA,
		HPX_PG_BYTEA,
		HPX_PG_INT8,
		HPX_PG_INT8,
		HPX_PG_INT8,
		HPX_PG_INT2,
		HPX_PG_TEXT,
		HPX_PG_TEXT,
		HPX_PG_TEXT,
		HPX_PG_TEXT,
		HPX_PG_TEXT,
		HPX_PG_TEXT,
	};
	struct hpx_pg_columns columns;
	bool any;

	hpx_pg_columns_init(&columns, types, sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < walk->count; i = hpx_pg_walk_end(walk, i)) {
		const struct hpx_pg_walker *walker = &walk->walkers[i];
		if (hpx_pg_goes_as(walker, HPX_VERB_RESERVE))
			put_first(walk, &columns, walker->op);
		else if (walker->looks)
			put_id_only(&columns, &walker->id);
	}
	any = send_columns(walk, pipe, HPX_PG_INSERT_ABSENT, &columns);
	if (any && walk->count > 1)
		hpx_pg_ask_early(pipe);
	return any;
}

static void send_locks(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < walk->count; i++)
		if (hpx_pg_goes_as(&walk->walkers[i], HPX_VERB_COMPLETE))
			hpx_pg_put_id(&columns, &walk->walkers[i].id);
	hpx_pg_send_columns(pipe, HPX_PG_LOCK, &columns);
}

static bool send_completions(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_INT4,
						  HPX_PG_BOOL, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < walk->count; i++) {
		const struct hpx_record *record = &walk->walkers[i].op->decision.record;
		if (!hpx_pg_goes_as(&walk->walkers[i], HPX_VERB_COMPLETE))
			continue;
		hpx_pg_put_id(&columns, &record->id);
		hpx_pg_put_token(&columns, &record->token);
		hpx_pg_put_int(&columns, record->status);
		hpx_pg_put_int(&columns, record->kept);
		hpx_pg_put_int(&columns, record->expires_ms - walk->base_ms);
	}
	return send_columns(walk, pipe, HPX_PG_COMPLETE_BELIEVED, &columns);
}

static void send_answers(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe)
{
	struct hpx_pg_columns columns;

	hpx_pg_answers_init(&columns);
	for (size_t i = 0; i < walk->count; i++) {
		const struct hpx_pg_walker *walker = &walk->walkers[i];
		if (!walker->goes || walker->answer == NULL)
			continue;
		hpx_pg_put_answer(pipe, &columns, &walker->id, walker->answer);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_ANSWER_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_ANSWER_BELIEVED, &columns);
		hpx_pg_flush(pipe);
		hpx_pg_answers_init(&columns);
	}
	hpx_pg_send_columns(pipe, HPX_PG_ANSWER_BELIEVED, &columns);
}

/* ---- the round trip ---- */

static enum hpx_status write_all(struct hpx_pg_walk *walk)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&walk->s->writer, walk->problem);
	bool reservations, completions;

	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	reservations = send_reservations(walk, &pipe);
	send_locks(walk, &pipe);
	completions = send_completions(walk, &pipe);
	send_answers(walk, &pipe);
	hpx_pg_send(&pipe, HPX_PG_COMMIT, NULL);
	PQclear(hpx_pg_take(&pipe));
	if (reservations)
		hpx_pg_take_reservations(walk, &pipe);
	if (completions)
		hpx_pg_take_completions(walk, &pipe);
	while (pipe.status == HPX_OK && pipe.waiting > 1)
		PQclear(hpx_pg_take(&pipe));
	hpx_pg_take_commit(&pipe);
	return hpx_pg_believe(walk->s, hpx_pg_end(&pipe), walk->problem);
}

enum hpx_status hpx_pg_short_way(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem)
{
	int64_t base_ms = hpx_clock_wall_ms();
	struct hpx_pg_walk walk = { .s = s, .ops = ops, .todo = todo, .count = count, .base_ms = base_ms, .problem = problem };
	enum hpx_status status = HPX_OK;

	walk.now = (struct hpx_moment){
		.wall_ms = base_ms + atomic_load(&s->base.wall_shift_ms),
		.lease_ms = base_ms + atomic_load(&s->base.lease_shift_ms),
	};
	walk.walkers = calloc(count, sizeof(*walk.walkers));
	if (walk.walkers == NULL)
		return HPX_NOMEM;
	if (gather(&walk) > 0) {
		HPX_CRASH_POINT(batch_begun);
		HPX_CRASH_POINT(batch_written);
		status = write_all(&walk);
		if (status == HPX_OK)
			hpx_pg_walk_settle(&walk);
	}
	free(walk.walkers);
	return status;
}
