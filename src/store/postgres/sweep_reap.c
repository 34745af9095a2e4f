/* Verbs about many operations: lost leases and expired records, a bounded
 * number each, and never one that somebody has locked. Any gateway does this
 * for all of them: nothing is lost by its owner's death but by its lease. */
#include "store/postgres/outbox.h"

/* Whatever the submitter asks for: one op must not hold rows for long. */
#define LIMIT_MAX 1000
/* Old events that one REAP deletes besides. */
#define EVENTS_MAX 5000

static int64_t bounded(unsigned limit)
{
	return limit < LIMIT_MAX ? (int64_t)limit : LIMIT_MAX;
}

/* Locks the rows whose lease seems lost; the batch holds them afterwards. */
static enum hpx_status lock_lost(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
				 int64_t lease_ms, int64_t limit, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_operation_id id;

	hpx_pg_add_int8(&params, lease_ms);
	hpx_pg_add_int8(&params, limit);
	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	hpx_pg_send(&pipe, HPX_PG_LOST, &params);
	PQclear(hpx_pg_take(&pipe));
	PGresult *result = hpx_pg_take(&pipe);
	for (int row = 0; result != NULL && row < PQntuples(result) && row < limit; row++)
		if (hpx_pg_id_read(result, row, &id))
			hpx_pg_batch_add(batch, &id);
	PQclear(result);
	hpx_pg_batch_sort(batch);
	return hpx_pg_end(&pipe);
}

static void sweep_pending(struct hpx_pg_batch *batch, struct hpx_store_op *op,
			  const struct hpx_moment *now)
{
	struct hpx_op_sweep *sweep = &op->sweep;
	struct hpx_change change;

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP && batch->pending_count <= LIMIT_MAX);
	for (size_t i = 0; i < batch->pending_count; i++) {
		struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (!pending->stored || !pending->found.readable ||
		    !hpx_change_sweep(&pending->found.record, false, now, &change))
			continue;
		hpx_pg_pending_row_change(batch, pending, &change, op);
		if (sweep->touched != NULL)
			sweep->touched[sweep->count] = (struct hpx_touched){ pending->id, change.record.state };
		sweep->count++;
	}
}

static enum hpx_status sweep_batch(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
				   struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_look look = { .begun = true };
	enum hpx_status status = hpx_pg_look_time(s, &look.now, problem);

	if (status == HPX_OK)
		status = lock_lost(s, batch, look.now.lease_ms, bounded(op->sweep.limit), problem);
	for (size_t i = 0; i < batch->pending_count; i++)
		batch->pending[i].to_read = true;
	/* Read again behind the locks: a renewal may have come meanwhile. */
	if (status == HPX_OK && batch->pending_count > 0)
		status = hpx_pg_look(s, batch, &look, problem);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	sweep_pending(batch, op, &look.now);
	return hpx_pg_commit(s, batch, &look, problem);
}

enum hpx_status hpx_pg_sweep(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_batch batch;
	enum hpx_status status = hpx_pg_batch_init(&batch, LIMIT_MAX, LIMIT_MAX);

	if (status != HPX_OK)
		return status;
	status = sweep_batch(s, &batch, op, problem);
	hpx_pg_batch_done(&batch);
	return status;
}

static void send_reap_events(struct hpx_pg_store *s, struct hpx_pg_pipe *pipe, int64_t wall_ms)
{
	struct hpx_pg_params params = { .count = 0 };

	if (s->event_retention_ms <= 0)
		return;
	hpx_pg_add_int8(&params, wall_ms - s->event_retention_ms);
	hpx_pg_add_int8(&params, EVENTS_MAX);
	hpx_pg_send(pipe, HPX_PG_REAP_EVENTS, &params);
}

static void send_reap_jobs(struct hpx_pg_store *s, struct hpx_pg_pipe *pipe, int64_t wall_ms,
			   int64_t limit)
{
	struct hpx_pg_params params = { .count = 0 };

	if (s->job_retention_ms <= 0)
		return;
	hpx_pg_add_int8(&params, wall_ms - s->job_retention_ms);
	hpx_pg_add_int8(&params, limit);
	hpx_pg_send(pipe, HPX_PG_REAP_JOBS, &params);
}

/* One implicit transaction. A lost answer does no harm: what is gone had
 * expired, and the next REAP counts what is left. */
static enum hpx_status reap_expired(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_moment now;
	int64_t count = 0;
	enum hpx_status status = hpx_pg_look_time(s, &now, problem);

	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	hpx_pg_add_int8(&params, now.wall_ms);
	hpx_pg_add_int8(&params, bounded(op->reap.limit));
	hpx_pg_send(&pipe, HPX_PG_REAP, &params);
	send_reap_events(s, &pipe, now.wall_ms);
	send_reap_jobs(s, &pipe, now.wall_ms, bounded(op->reap.limit));
	PGresult *result = hpx_pg_take(&pipe);
	if (result != NULL && PQntuples(result) == 1)
		hpx_pg_int(result, 0, 0, 0, LIMIT_MAX, &count);
	PQclear(result);
	status = hpx_pg_end(&pipe);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	op->reap.count = (unsigned)count;
	return HPX_OK;
}

enum hpx_status hpx_pg_reap(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	status = hpx_pg_abandon(s, op, problem);
	return status == HPX_OK ? reap_expired(s, op, problem) : status;
}

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
