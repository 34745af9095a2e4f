/* Verbs about many operations: lost leases and expired records, a bounded number each, and
 * never one that somebody has locked. Any gateway does this for all of them: nothing is
 * lost by its owner's death but by its lease.
 *
 * Who is to be looked at is written down in `flight` and `due`, with every change that
 * begins an attempt or sets a time. Such a row is taken when its time has come, and in the
 * same transaction each of its ids
 *  - is swept or deleted, if its time has come and nobody holds it;
 *  - goes into a new row, if its time has not come (the lease was renewed, the expiry
 *    put off) or somebody holds it;
 *  - is dropped, if there is no such time or no record any more.
 * A crash before the commit leaves the row as it was. An id may be in several rows: the
 * first of them that finds its time come does the work, the others drop it. */
#include "store/postgres/outbox.h"

/* Whatever the submitter asks for: one op must not hold rows for long. */
#define LIMIT_MAX 1000
/* Rows of flight, or due, that one op takes at most; each holds the ids of a batch. */
#define QUEUE_ROWS 64
/* Ids of flight that one op takes, each a look-up in a table that may not be in memory.
 * Of most of them the attempt has ended, so they are many more than an op may sweep; of
 * due, an op takes as many as it may delete. */
#define FLIGHT_IDS 1000
/* Old events that one REAP deletes besides. */
#define EVENTS_MAX 5000
/* And old entries of the history. */
#define HISTORY_MAX 2000
/* Rows that one REAP looks at while the slow round is under way. */
#define ROUND_ROWS 2000
/* When an attempt is looked at again that somebody holds. */
#define HELD_MS 1000

static int64_t bounded(unsigned limit)
{
	if (limit == 0)
		return 1;
	return limit < LIMIT_MAX ? (int64_t)limit : LIMIT_MAX;
}

/* ---- SWEEP ---- */

/* Attempts whose lease may be over. */
struct sweep_round {
	struct hpx_pg_store *s;
	struct hpx_store_op *op;
	PGresult *taken; /* its first row is a count, the others are ids */
	struct hpx_pg_batch batch;
	struct hpx_pg_look look;
	struct hpx_pg_columns back; /* ids that go into a new row of flight */
	int64_t back_ms;
	char *problem;
};

static enum hpx_status take_flight(struct sweep_round *round)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&round->s->writer, round->problem);
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_int8(&params, round->look.now.lease_ms);
	hpx_pg_add_int8(&params, QUEUE_ROWS);
	hpx_pg_add_int8(&params, FLIGHT_IDS);
	hpx_pg_add_int8(&params, bounded(round->op->sweep.limit));
	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	hpx_pg_send(&pipe, HPX_PG_TAKE_FLIGHT, &params);
	PQclear(hpx_pg_take(&pipe));
	round->taken = hpx_pg_take(&pipe);
	round->look.begun = true;
	return hpx_pg_end(&pipe);
}

static void put_back(struct sweep_round *round, const struct hpx_operation_id *id, int64_t at_ms)
{
	hpx_pg_put_id(&round->back, id);
	if (at_ms < round->back_ms)
		round->back_ms = at_ms;
}

/* All that were taken, no more than the op may sweep. */
static void look_at_taken(struct sweep_round *round)
{
	struct hpx_operation_id id;

	HPX_ASSERT(PQntuples(round->taken) - 1 <= bounded(round->op->sweep.limit));
	for (int row = 1; row < PQntuples(round->taken); row++)
		if (hpx_pg_id_read(round->taken, row, &id))
			hpx_pg_batch_add(&round->batch, &id);
	hpx_pg_batch_sort(&round->batch);
	for (size_t i = 0; i < round->batch.row_count; i++)
		round->batch.rows[i].to_lock = round->batch.rows[i].to_read = true;
}

static void sweep_row(struct sweep_round *round, struct hpx_pg_row *row)
{
	struct hpx_op_sweep *sweep = &round->op->sweep;
	const struct hpx_moment *now = &round->look.now;
	const struct hpx_record *record = &row->found.record;
	struct hpx_change change;

	/* What cannot be read is aside, and a person's. */
	if (!row->stored || !row->found.readable || record->state != HPX_STATE_IN_PROGRESS)
		return;
	if (!row->locked || !hpx_change_sweep(record, false, now, &change)) {
		put_back(round, &row->id, record->lease_until_ms > now->lease_ms + HELD_MS ? record->lease_until_ms : now->lease_ms + HELD_MS);
		return;
	}
	hpx_pg_row_change(&round->batch, row, &change, round->op);
	if (sweep->touched != NULL)
		sweep->touched[sweep->count] = (struct hpx_touched){ row->id, change.record.state };
	sweep->count++;
}

static enum hpx_status send_back(struct sweep_round *round)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&round->s->writer, round->problem);

	if (hpx_pg_send_columns(&pipe, HPX_PG_PUT_FLIGHT, &round->back, &round->back_ms))
		PQclear(hpx_pg_take(&pipe));
	return hpx_pg_end(&pipe);
}

static enum hpx_status sweep_taken(struct sweep_round *round)
{
	enum hpx_status status = HPX_OK;

	look_at_taken(round);
	if (round->batch.row_count > 0)
		status = hpx_pg_look(round->s, &round->batch, &round->look, round->problem);
	if (status != HPX_OK)
		return status;
	HPX_ASSERT(round->op->verb == HPX_VERB_SWEEP && round->batch.row_count <= LIMIT_MAX);
	for (size_t i = 0; i < round->batch.row_count; i++)
		sweep_row(round, &round->batch.rows[i]);
	return hpx_pg_columns_rows(&round->back) > 0 ? send_back(round) : HPX_OK;
}

static enum hpx_status run_sweep(struct sweep_round *round)
{
	int64_t taken = 0, more = 0;
	enum hpx_status status = hpx_pg_look_time(round->s, &round->look.now, round->problem);

	if (status == HPX_OK)
		status = take_flight(round);
	if (status == HPX_OK && (!hpx_pg_int(round->taken, 0, 2, 0, QUEUE_ROWS, &taken) ||
				 !hpx_pg_int(round->taken, 0, 3, 0, 1, &more)))
		status = HPX_CORRUPT;
	if (status == HPX_OK && taken > 0) {
		round->batch.written = true;
		status = sweep_taken(round);
	}
	if (status != HPX_OK)
		return hpx_pg_undo(round->s, status);
	round->op->sweep.more = more != 0;
	return hpx_pg_commit(round->s, &round->batch, &round->look, round->problem);
}

enum hpx_status hpx_pg_sweep(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	static const enum hpx_pg_type type = HPX_PG_UUID;
	struct sweep_round round = { .s = s, .op = op, .back_ms = INT64_MAX, .problem = problem };
	enum hpx_status status = hpx_pg_batch_init(&round.batch, LIMIT_MAX, LIMIT_MAX);

	if (status != HPX_OK)
		return status;
	hpx_pg_columns_init(&round.back, &type, 1);
	status = run_sweep(&round);
	hpx_pg_columns_done(&round.back);
	hpx_pg_batch_done(&round.batch);
	PQclear(round.taken);
	return status;
}

/* ---- REAP ---- */

/* What is older than a time, so many of it; nothing where it is kept for ever. */
static void send_old(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement, int64_t wall_ms,
		     int64_t retention_ms, int64_t limit)
{
	struct hpx_pg_params params = { .count = 0 };

	if (retention_ms <= 0)
		return;
	hpx_pg_add_int8(&params, wall_ms - retention_ms);
	hpx_pg_add_int8(&params, limit);
	hpx_pg_send(pipe, statement, &params);
}

/* Of how long entries stay, the database knows. */
static void send_reap_history(struct hpx_pg_pipe *pipe, int64_t wall_ms)
{
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_int8(&params, wall_ms);
	hpx_pg_add_int8(&params, HISTORY_MAX);
	hpx_pg_send(pipe, HPX_PG_REAP_HISTORY, &params);
}

static void send_look_over(struct hpx_pg_pipe *pipe, int64_t wall_ms)
{
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_int8(&params, wall_ms);
	hpx_pg_add_int8(&params, ROUND_ROWS);
	hpx_pg_send(pipe, HPX_PG_LOOK_OVER, &params);
}

/* One implicit transaction. A lost answer does no harm: what is gone had expired, and the
 * next REAP counts what is left. The result is the caller's to clear. */
static enum hpx_status reap_due(struct hpx_pg_store *s, const struct hpx_store_op *op,
				PGresult **ret_result, char *problem)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_moment now;
	enum hpx_status status = hpx_pg_look_time(s, &now, problem);

	if (status != HPX_OK)
		return status;
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	hpx_pg_add_int8(&params, now.wall_ms);
	hpx_pg_add_int8(&params, bounded(op->reap.limit));
	hpx_pg_add_int8(&params, QUEUE_ROWS);
	hpx_pg_send(&pipe, HPX_PG_REAP, &params);
	send_old(&pipe, HPX_PG_REAP_EVENTS, now.wall_ms, s->event_retention_ms, EVENTS_MAX);
	send_old(&pipe, HPX_PG_REAP_JOBS, now.wall_ms, s->job_retention_ms, bounded(op->reap.limit));
	send_reap_history(&pipe, now.wall_ms);
	send_look_over(&pipe, now.wall_ms);
	*ret_result = hpx_pg_take(&pipe);
	return hpx_pg_end(&pipe);
}

/* Pending operations whose time is over come back, and are ended behind it; until then
 * they stay written down. */
enum hpx_status hpx_pg_reap(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	PGresult *result = NULL;
	int64_t count = 0, more = 0;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	status = reap_due(s, op, &result, problem);
	if (status == HPX_OK &&
	    (result == NULL || !hpx_pg_int(result, 0, 2, 0, LIMIT_MAX, &count) ||
	     !hpx_pg_int(result, 0, 3, 0, 1, &more)))
		status = HPX_CORRUPT;
	if (status != HPX_OK) {
		PQclear(result);
		return hpx_pg_undo(s, status);
	}
	op->reap.count = (unsigned)count;
	op->reap.more = more != 0;
	if (PQntuples(result) > 1)
		status = hpx_pg_abandon(s, op, result, 1, problem);
	PQclear(result);
	return status;
}

/* ---- RECIPE ---- */

enum hpx_status hpx_pg_put_recipe(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);

	HPX_ASSERT(op->verb == HPX_VERB_RECIPE);
	hpx_pg_add_bytes(&params, hpx_span(op->recipe.id.bytes, sizeof(op->recipe.id.bytes)));
	hpx_pg_add_bytes(&params, op->recipe.text.len != 0 ? op->recipe.text : HPX_SPAN(""));
	hpx_pg_send(&pipe, HPX_PG_PUT_RECIPE, &params);
	PQclear(hpx_pg_take(&pipe));
	return hpx_pg_undo(s, hpx_pg_end(&pipe));
}

/* ---- LANE ---- */

enum hpx_status hpx_pg_put_lane(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	const struct hpx_lane_settings *lane = op->lane.settings;
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);

	HPX_ASSERT(op->verb == HPX_VERB_LANE);
	hpx_pg_add_bytes(&params, lane->upstream.len != 0 ? lane->upstream : HPX_SPAN(""));
	hpx_pg_add_bytes(&params, lane->name);
	hpx_pg_add_int8(&params, lane->settle_after_ms);
	hpx_pg_add_int8(&params, lane->confirm_after_ms);
	hpx_pg_add_int8(&params, lane->matched_by_key ? HPX_KEYED_LATER_MS : 0);
	hpx_pg_add_int8(&params, atomic_load(&s->base.wall_shift_ms));
	hpx_pg_send(&pipe, HPX_PG_PUT_LANE, &params);
	PQclear(hpx_pg_take(&pipe));
	return hpx_pg_undo(s, hpx_pg_end(&pipe));
}
