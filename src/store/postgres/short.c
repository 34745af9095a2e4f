/* The two writes of nearly every request, without a look beforehand: one round
 * trip and one commit for all of them in a batch.
 *
 * A reservation of a key that is not there is an INSERT, and the primary key
 * tells whether it was (an id that can be seen is left out before: INSERT would
 * wait for whoever is changing its row). A completion knows its row from the reservation: it
 * finds the row only as its attempt left it, the first one, with nothing of it
 * committed by the application, and never renewed, so that there is no lease row
 * to remove either. A row that somebody else has locked is not found: nothing is
 * waited for. What is written is still what the rules say, of no record and of
 * the record believed; where the row turns out to be another, nothing was
 * written, and the long way looks.
 *
 * The time is the database's, and known when the row is written. The rules are
 * asked with the time here, in its place; what is sent is how far from it each
 * time lies, and what comes back says how far off it was. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/step.h"
#include "store/postgres/driver.h"

#define TIME_MAX (INT64_MAX / 4)

/* An op that may go. */
struct walker {
	struct hpx_store_op *op;
	const struct hpx_operation_id *id;
	size_t at;                        /* in the batch */
	const struct hpx_answer *answer;  /* to be stored; or NULL */
	bool goes;
	bool there;                       /* it was written */
};

struct walk {
	struct hpx_pg_store *s;
	struct walker *walkers;           /* sorted by id */
	size_t count;
	struct hpx_moment now;            /* the rules', by the clock here */
	int64_t base_ms;                  /* that clock */
	char *problem;
};

/* ---- who goes ---- */

static bool reserves(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE && op->ask != NULL && op->job == NULL && !op->look;
}

static bool completes(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_COMPLETE && op->believed != NULL &&
	       op->believed->state == HPX_STATE_IN_PROGRESS && op->believed->expires_ms == 0;
}

/* What INSERT_ABSENT writes without being told. */
static bool is_first(const struct hpx_record *record, const struct hpx_moment *now)
{
	return record->state == HPX_STATE_IN_PROGRESS && record->attempt == 1 &&
	       hpx_token_eq(&record->first, &record->token) &&
	       record->created_ms == now->wall_ms && record->changed_ms == now->wall_ms &&
	       record->expires_ms == 0 && record->status == 0 && !record->kept &&
	       !record->advanced && record->point[0] == '\0';
}

static bool judge(struct walker *walker, const struct hpx_moment *now)
{
	struct hpx_store_op *op = walker->op;
	struct hpx_found found = { .exists = false };
	struct hpx_change change;

	if (!reserves(op) && !completes(op))
		return false;
	if (op->verb == HPX_VERB_COMPLETE)
		found = (struct hpx_found){ .exists = true, .readable = true,
					    .record = *op->believed };
	hpx_change_make(&found, op, now, false, &change);
	walker->answer = change.answer;
	if (op->status != HPX_OK || change.event != NULL || change.job != NULL)
		return false;
	return op->verb == HPX_VERB_RESERVE ?
		       change.write == HPX_WRITE_INSERT && is_first(&change.record, now) :
		       change.write == HPX_WRITE_UPDATE;
}

static int by_id(const void *a, const void *b)
{
	const struct walker *x = a;
	const struct walker *y = b;

	return memcmp(x->id->bytes, y->id->bytes, sizeof(x->id->bytes));
}

/* Ops about the same operation depend on each other: none of them goes. */
static bool is_alone(const struct walk *walk, size_t i)
{
	const struct walker *walker = &walk->walkers[i];

	return (i == 0 || by_id(walker - 1, walker) != 0) &&
	       (i + 1 == walk->count || by_id(walker, walker + 1) != 0);
}

/* As it came, for the long way. */
static void put_back(struct hpx_store_op *op)
{
	op->status = HPX_OK;
	op->decision = (struct hpx_decision){ .verdict = HPX_VERDICT_COUNT };
}

/* Sorted, because two gateways that insert the same ids in different orders
 * would wait for each other. How many go. */
static size_t gather(struct walk *walk, struct hpx_store_op **ops)
{
	size_t going = 0;

	for (size_t i = 0; i < walk->count; i++)
		walk->walkers[i] = (struct walker){ .op = ops[i], .id = hpx_op_id(ops[i]),
						    .at = i };
	qsort(walk->walkers, walk->count, sizeof(*walk->walkers), by_id);
	for (size_t i = 0; i < walk->count; i++) {
		struct walker *walker = &walk->walkers[i];
		walker->goes = is_alone(walk, i) && judge(walker, &walk->now);
		if (!walker->goes)
			put_back(walker->op);
		going += walker->goes;
	}
	return going;
}

/* ---- sending ---- */

/* The arrays, and behind them how far the rules' time is from the clock here.
 * False: there was nothing to send. */
static bool send_columns(struct walk *walk, struct hpx_pg_pipe *pipe,
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

static bool goes_as(const struct walker *walker, enum hpx_verb verb)
{
	return walker->goes && walker->op->verb == verb;
}

static void put_first(struct walk *walk, struct hpx_pg_columns *columns,
		      const struct hpx_store_op *op)
{
	const struct hpx_record *record = &op->decision.record;

	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_token(columns, &record->token);
	hpx_pg_put_bytes(columns, hpx_span(record->fingerprint, sizeof(record->fingerprint)));
	hpx_pg_put_bytes(columns, hpx_span(record->recipe.bytes, sizeof(record->recipe.bytes)));
	hpx_pg_put_bytes(columns, hpx_span(record->tenant, sizeof(record->tenant)));
	hpx_pg_put_int(columns, (int64_t)record->owner);
	hpx_pg_put_int(columns, record->retention_ms);
	hpx_pg_put_int(columns, record->lease_until_ms - walk->base_ms);
	hpx_pg_put_int(columns, record->when_lost);
	hpx_pg_put_description(columns, op);
}

static bool send_reservations(struct walk *walk, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = {
		HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_BYTEA,
		HPX_PG_INT8,  HPX_PG_INT8,  HPX_PG_INT8,  HPX_PG_INT2,	HPX_PG_TEXT,
		HPX_PG_TEXT,  HPX_PG_TEXT,  HPX_PG_TEXT,  HPX_PG_TEXT,	HPX_PG_TEXT,
	};
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < walk->count; i++)
		if (goes_as(&walk->walkers[i], HPX_VERB_RESERVE))
			put_first(walk, &columns, walk->walkers[i].op);
	return send_columns(walk, pipe, HPX_PG_INSERT_ABSENT, &columns);
}

static void send_locks(struct walk *walk, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < walk->count; i++)
		if (goes_as(&walk->walkers[i], HPX_VERB_COMPLETE))
			hpx_pg_put_id(&columns, walk->walkers[i].id);
	hpx_pg_send_columns(pipe, HPX_PG_LOCK, &columns);
}

static bool send_completions(struct walk *walk, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_INT4,
						  HPX_PG_BOOL, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, sizeof(types) / sizeof(types[0]));
	for (size_t i = 0; i < walk->count; i++) {
		const struct hpx_record *record = &walk->walkers[i].op->decision.record;
		if (!goes_as(&walk->walkers[i], HPX_VERB_COMPLETE))
			continue;
		hpx_pg_put_id(&columns, &record->id);
		hpx_pg_put_token(&columns, &record->token);
		hpx_pg_put_int(&columns, record->status);
		hpx_pg_put_int(&columns, record->kept);
		hpx_pg_put_int(&columns, record->expires_ms - walk->base_ms);
	}
	return send_columns(walk, pipe, HPX_PG_COMPLETE_BELIEVED, &columns);
}

static void send_answers(struct walk *walk, struct hpx_pg_pipe *pipe)
{
	struct hpx_pg_columns columns;

	hpx_pg_answers_init(&columns);
	for (size_t i = 0; i < walk->count; i++) {
		const struct walker *walker = &walk->walkers[i];
		if (!walker->goes || walker->answer == NULL)
			continue;
		hpx_pg_put_answer(pipe, &columns, walker->id, walker->answer);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_ANSWER_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_ANSWER_BELIEVED, &columns);
		hpx_pg_flush(pipe);
		hpx_pg_answers_init(&columns);
	}
	hpx_pg_send_columns(pipe, HPX_PG_ANSWER_BELIEVED, &columns);
}

/* ---- what came of it ---- */

/* `at_ms`: what the rules' time was by the database's clock. */
static void mend_times(struct walk *walk, struct hpx_store_op *op, int64_t at_ms)
{
	struct hpx_record *record = &op->decision.record;
	int64_t off_ms = at_ms - walk->now.wall_ms;

	record->changed_ms += off_ms;
	op->judged_ms += off_ms;
	if (op->verb == HPX_VERB_RESERVE) {
		record->created_ms += off_ms;
		record->lease_until_ms += off_ms;
	} else {
		record->expires_ms += off_ms;
	}
}

static void take_written(struct walk *walk, struct hpx_pg_pipe *pipe)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;
	int64_t at_ms;

	for (int row = 0; result != NULL && row < PQntuples(result); row++) {
		struct walker wanted = { .id = &id }, *walker = NULL;
		if (hpx_pg_id_read(result, row, &id) &&
		    hpx_pg_int(result, row, 1, -TIME_MAX, TIME_MAX, &at_ms))
			walker = bsearch(&wanted, walk->walkers, walk->count,
					 sizeof(*walk->walkers), by_id);
		if (walker == NULL) {
			pipe->status = HPX_CORRUPT;
			break;
		}
		walker->there = true;
		mend_times(walk, walker->op, at_ms);
	}
	PQclear(result);
}

static enum hpx_status write_all(struct walk *walk)
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
		take_written(walk, &pipe);
	if (completions) {
		PQclear(hpx_pg_take(&pipe)); /* the locks' */
		take_written(walk, &pipe);
	}
	while (pipe.status == HPX_OK && pipe.waiting > 1)
		PQclear(hpx_pg_take(&pipe));
	hpx_pg_take_commit(&pipe);
	return hpx_pg_believe(walk->s, hpx_pg_end(&pipe), walk->problem);
}

static void settle(struct walk *walk, bool *todo)
{
	bool any = false;

	for (size_t i = 0; i < walk->count; i++) {
		const struct walker *walker = &walk->walkers[i];
		if (walker->there)
			todo[walker->at] = false;
		else if (walker->goes)
			put_back(walker->op);
		any |= walker->there;
	}
	if (any)
		HPX_STEP(batch_committed);
}

enum hpx_status hpx_pg_short_way(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				 bool *todo, char *problem)
{
	int64_t base_ms = hpx_clock_wall_ms();
	struct walk walk = { .s = s, .count = count, .base_ms = base_ms, .problem = problem };
	enum hpx_status status = HPX_OK;

	walk.now = (struct hpx_moment){
		.wall_ms = base_ms + atomic_load(&s->base.wall_shift_ms),
		.lease_ms = base_ms + atomic_load(&s->base.lease_shift_ms),
	};
	walk.walkers = calloc(count, sizeof(*walk.walkers));
	if (walk.walkers == NULL)
		return HPX_NOMEM;
	if (gather(&walk, ops) > 0) {
		HPX_STEP(batch_begun);
		HPX_STEP(batch_written);
		status = write_all(&walk);
		if (status == HPX_OK)
			settle(&walk, todo);
	}
	free(walk.walkers);
	return status;
}
