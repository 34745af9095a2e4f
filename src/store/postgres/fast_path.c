/* What nearly every request asks of the store, without a lock beforehand: one
 * round trip and one commit for all of it in a batch.
 *
 * A reservation of a key that is not there is an INSERT, and the primary key
 * tells whether it was. An id that can be seen is left out before: INSERT would
 * wait for whoever is changing its row. What was seen comes back, and a retry
 * that only has to be told what is there is told at once, while the server goes
 * on with the rest: a replay waits for no fsync. A retry that would write, or of
 * which not enough came back, takes the slow path.
 *
 * A completion knows its row from the reservation: it finds the row only as its
 * attempt left it, the first one, with nothing of it committed by the application,
 * and never renewed, so that there is no lease row to remove either. A row that
 * somebody else has locked is not found: nothing is waited for. What is written is
 * still what the rules say, of no record and of the record believed; where the row
 * turns out to be another, nothing was written, and the slow path looks.
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

static bool judge(struct hpx_pg_fast_op *fast_op, const struct hpx_moment *now)
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

/* Ops about the same operation depend on each other: none of them goes. Those
 * that are all reservations may find that there is nothing to be done. */
static size_t judge_group(struct hpx_pg_fast_batch *batch, size_t from, size_t to)
{
	struct hpx_pg_fast_op *first = &batch->fast_ops[from];
	bool answerable = true;

	HPX_ASSERT(from < to && to <= batch->count);
	for (size_t i = from; i < to; i++)
		answerable &= batch->fast_ops[i].op->verb == HPX_VERB_RESERVE;
	for (size_t i = from; i < to; i++)
		batch->fast_ops[i].answerable = answerable;
	first->eligible = to == from + 1 && judge(first, &batch->now);
	for (size_t i = from; i < to; i++)
		if (!batch->fast_ops[i].eligible)
			hpx_pg_put_back(batch->fast_ops[i].op);
	return first->eligible;
}

/* Sorted, because two gateways that insert the same ids in different orders
 * would wait for each other. How many go. */
static size_t judge_all(struct hpx_pg_fast_batch *batch)
{
	size_t going = 0;

	for (size_t i = 0; i < batch->count; i++)
		batch->fast_ops[i] = (struct hpx_pg_fast_op){ .op = batch->ops[i],
							      .id = *hpx_op_id(batch->ops[i]),
							      .at = i };
	qsort(batch->fast_ops, batch->count, sizeof(*batch->fast_ops), hpx_pg_fast_op_order);
	for (size_t from = 0; from < batch->count; from = hpx_pg_fast_batch_end(batch, from))
		going += judge_group(batch, from, hpx_pg_fast_batch_end(batch, from));
	return going;
}

/* ---- sending ---- */

/* The arrays, and behind them how far the rules' time is from the clock here.
 * False: there was nothing to send. */
static bool send_columns(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe,
			 enum hpx_pg_statement statement, struct hpx_pg_columns *columns)
{
	struct hpx_pg_params params = { .count = 0 };
	enum hpx_status status = HPX_OK;
	bool any = hpx_pg_columns_rows(columns) > 0;

	if (any)
		status = hpx_pg_columns_param(columns, &params);
	if (any && status == HPX_OK) {
		hpx_pg_add_int8(&params, batch->now.wall_ms - batch->base_ms);
		hpx_pg_send(pipe, statement, &params);
	} else if (pipe->status == HPX_OK) {
		pipe->status = status;
	}
	hpx_pg_columns_done(columns);
	return any;
}

static void put_first(struct hpx_pg_fast_batch *batch, struct hpx_pg_columns *columns,
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
	hpx_pg_put_int(columns, record->lease_until_ms - batch->base_ms);
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
static bool send_reservations(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe)
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
	for (size_t i = 0; i < batch->count; i = hpx_pg_fast_batch_end(batch, i)) {
		const struct hpx_pg_fast_op *fast_op = &batch->fast_ops[i];
		if (hpx_pg_is_eligible_as(fast_op, HPX_VERB_RESERVE))
			put_first(batch, &columns, fast_op->op);
		else if (fast_op->answerable)
			put_id_only(&columns, &fast_op->id);
	}
	any = send_columns(batch, pipe, HPX_PG_INSERT_ABSENT, &columns);
	if (any && batch->count > 1)
		hpx_pg_ask_early(pipe);
	return any;
}

static void send_locks(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < batch->count; i++)
		if (hpx_pg_is_eligible_as(&batch->fast_ops[i], HPX_VERB_COMPLETE))
			hpx_pg_put_id(&columns, &batch->fast_ops[i].id);
	hpx_pg_send_columns(pipe, HPX_PG_LOCK, &columns);
}

static bool send_completions(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_INT4,
						  HPX_PG_BOOL, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < batch->count; i++) {
		const struct hpx_record *record = &batch->fast_ops[i].op->decision.record;
		if (!hpx_pg_is_eligible_as(&batch->fast_ops[i], HPX_VERB_COMPLETE))
			continue;
		hpx_pg_put_id(&columns, &record->id);
		hpx_pg_put_token(&columns, &record->token);
		hpx_pg_put_int(&columns, record->status);
		hpx_pg_put_int(&columns, record->kept);
		hpx_pg_put_int(&columns, record->expires_ms - batch->base_ms);
	}
	return send_columns(batch, pipe, HPX_PG_COMPLETE_BELIEVED, &columns);
}

static void send_answers(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe)
{
	struct hpx_pg_columns columns;

	hpx_pg_answers_init(&columns);
	for (size_t i = 0; i < batch->count; i++) {
		const struct hpx_pg_fast_op *fast_op = &batch->fast_ops[i];
		if (!fast_op->eligible || fast_op->answer == NULL)
			continue;
		hpx_pg_put_answer(pipe, &columns, &fast_op->id, fast_op->answer);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_ANSWER_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_ANSWER_BELIEVED, &columns);
		hpx_pg_flush(pipe);
		hpx_pg_answers_init(&columns);
	}
	hpx_pg_send_columns(pipe, HPX_PG_ANSWER_BELIEVED, &columns);
}

/* ---- the round trip ---- */

static enum hpx_status write_all(struct hpx_pg_fast_batch *batch)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&batch->s->writer, batch->problem);
	bool reservations, completions;

	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	reservations = send_reservations(batch, &pipe);
	send_locks(batch, &pipe);
	completions = send_completions(batch, &pipe);
	send_answers(batch, &pipe);
	hpx_pg_send(&pipe, HPX_PG_COMMIT, NULL);
	PQclear(hpx_pg_take(&pipe));
	if (reservations)
		hpx_pg_take_reservations(batch, &pipe);
	if (completions)
		hpx_pg_take_completions(batch, &pipe);
	while (pipe.status == HPX_OK && pipe.waiting > 1)
		PQclear(hpx_pg_take(&pipe));
	hpx_pg_take_commit(&pipe);
	return hpx_pg_believe(batch->s, hpx_pg_end(&pipe), batch->problem);
}

enum hpx_status hpx_pg_fast_path(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem)
{
	int64_t base_ms = hpx_clock_wall_ms();
	struct hpx_pg_fast_batch batch = { .s = s, .ops = ops, .todo = todo, .count = count, .base_ms = base_ms, .problem = problem };
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
			hpx_pg_fast_batch_settle(&batch);
	}
	free(batch.fast_ops);
	return status;
}
