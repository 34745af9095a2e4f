/* What an application does through this process, on a connection of the
 * store's own: a phase is done, a job is owed, where an earlier attempt got to, what
 * became of an outcome that nobody knew.
 * Rare, so each is a transaction of its own, and the writing is left to the
 * SQL functions that applications call themselves. The row is locked without
 * waiting before they are called: whoever holds it delays this op alone.
 * And the one event that changes no row: the first misuse of a key. */
#include "store/postgres/driver.h"

/* Troubles of the op, which say nothing about the store. */
bool hpx_pg_is_ops_own(enum hpx_status status)
{
	switch (status) {
	case HPX_STALE:
	case HPX_REFUSED:
	case HPX_CONFLICT:
	case HPX_INVALID:
	case HPX_TOO_LARGE:
	case HPX_BUSY:
		return true;
	default:
		return false;
	}
}

static enum hpx_status send_advance(struct hpx_pg_store *s, const struct hpx_store_op *op,
				    struct hpx_span lease, char *problem)
{
	struct hpx_pg_params params = { .count = 0 };

	HPX_ASSERT(op->verb == HPX_VERB_ADVANCE);
	hpx_pg_add_bytes(&params, lease);
	hpx_pg_add_bytes(&params, op->advance.point);
	hpx_pg_add_bytes(&params, op->advance.data);
	return hpx_pg_commit_call(s, HPX_PG_ADVANCE, &params, problem);
}

static enum hpx_status send_enqueue(struct hpx_pg_store *s, const struct hpx_store_op *op,
				    struct hpx_span lease, char *problem)
{
	const struct hpx_job *job = op->enqueue.job;
	struct hpx_pg_params params = { .count = 0 };

	HPX_ASSERT(op->verb == HPX_VERB_ENQUEUE);
	hpx_pg_add_bytes(&params, lease);
	hpx_pg_add_bytes(&params, job->name);
	hpx_pg_add_bytes(&params, job->target);
	hpx_pg_add_bytes(&params, job->method);
	hpx_pg_add_bytes(&params, job->path);
	hpx_pg_add_bytes(&params, job->headers);
	hpx_pg_add_bytes(&params, job->body);
	return hpx_pg_commit_call(s, HPX_PG_ENQUEUE, &params, problem);
}

static enum hpx_status send_provider_id(struct hpx_pg_store *s, const struct hpx_store_op *op,
					struct hpx_span lease, char *problem)
{
	struct hpx_pg_params params = { .count = 0 };

	HPX_ASSERT(op->verb == HPX_VERB_PROVIDER_ID);
	hpx_pg_add_bytes(&params, lease);
	hpx_pg_add_bytes(&params, op->provider_id.text);
	return hpx_pg_commit_call(s, HPX_PG_PROVIDER_ID, &params, problem);
}

/* The row is ours: what the function still refuses is the op's own. */
static enum hpx_status call_function(struct hpx_pg_store *s, struct hpx_store_op *op,
				     char *problem)
{
	char text[HPX_LEASE_SIZE];
	struct hpx_span lease = hpx_span(text, HPX_LEASE_LEN);
	enum hpx_status status;

	hpx_lease_print(&op->id, &op->token, text);
	HPX_ASSERT(op->status == HPX_OK);
	if (op->verb == HPX_VERB_ADVANCE)
		status = send_advance(s, op, lease, problem);
	else if (op->verb == HPX_VERB_PROVIDER_ID)
		status = send_provider_id(s, op, lease, problem);
	else
		status = send_enqueue(s, op, lease, problem);
	if (!hpx_pg_is_ops_own(status))
		return status;
	op->status = status;
	return HPX_OK;
}

/* One statement, so that the point and what was saved there belong together.
 * No row: the lease was lost since the look. */
static enum hpx_status read_point(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result;

	hpx_pg_add_id(&params, &op->id);
	hpx_pg_add_rest(&params, &op->id);
	hpx_pg_add_bytes(&params, hpx_span(op->token.bytes, sizeof(op->token.bytes)));
	hpx_pg_send(&pipe, HPX_PG_READ_POINT, &params);
	result = hpx_pg_take(&pipe);
	if (result != NULL && PQntuples(result) == 1)
		op->status = hpx_pg_point_read(result, 0, op);
	else if (result != NULL)
		op->status = HPX_STALE;
	PQclear(result);
	return hpx_pg_end(&pipe);
}

enum hpx_status hpx_pg_point_read(const PGresult *result, int column, struct hpx_store_op *op)
{
	struct hpx_record *record = &op->decision.record;
	struct hpx_span point = hpx_pg_bytes(result, 0, column);

	HPX_ASSERT(op->verb == HPX_VERB_READ_POINT);
	memset(record->point, 0, sizeof(record->point));
	if (point.len == 0)
		return HPX_OK;
	if (!hpx_point_valid(point))
		return HPX_CORRUPT;
	memcpy(record->point, point.ptr, point.len);
	return hpx_buffer_append(&op->read_point.data, hpx_pg_bytes(result, 0, column + 1));
}

/* Looks at the row, in a lock where it is to be written, and decides as for
 * every op. */
static enum hpx_status look(struct hpx_pg_store *s, struct hpx_store_op *op,
			    struct hpx_pg_batch *batch, struct hpx_pg_look *ret_look, char *problem)
{
	struct hpx_pg_row *row = batch->rows;
	struct hpx_change change;
	enum hpx_status status;

	hpx_pg_batch_add(batch, &op->id);
	row->to_read = true;
	row->to_lock = op->verb != HPX_VERB_READ_POINT;
	status = hpx_pg_look(s, batch, ret_look, problem);
	if (status != HPX_OK)
		return status;
	if (op->verb != HPX_VERB_READ_POINT && row->stored && !row->locked)
		op->status = HPX_BUSY;
	else
		hpx_change_make(&row->found, op, &ret_look->now, false, &change);
	return HPX_OK;
}

/* hpx_pg_commit() ends what the look began, and tells nothing that rests on a
 * commit which may be lost. */
static enum hpx_status run(struct hpx_pg_store *s, struct hpx_store_op *op,
			   struct hpx_pg_batch *batch, char *problem)
{
	struct hpx_pg_look seen = { .begun = false };
	enum hpx_status status = look(s, op, batch, &seen, problem);

	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	if (op->status == HPX_OK && op->verb != HPX_VERB_READ_POINT)
		return call_function(s, op, problem);
	if (op->status == HPX_OK)
		status = read_point(s, op, problem);
	if (status == HPX_OK)
		return hpx_pg_commit(s, batch, &seen, problem);
	return hpx_pg_undo(s, status);
}

/* ---- RULE by the store's own rule: hapax.settle ---- */

enum hpx_status hpx_pg_settlement_read(const PGresult *result, struct hpx_store_op *op)
{
	struct hpx_span text = hpx_pg_bytes(result, 0, 0);
	struct hpx_ruling_update *update = op->rule.update;

	HPX_ASSERT(op->verb == HPX_VERB_RULE);
	for (int i = 0; i < HPX_SETTLEMENT_COUNT; i++)
		if (hpx_span_eq(text, hpx_span_of(hpx_settlement_name((enum hpx_settlement)i)))) {
			update->settlement = (enum hpx_settlement)i;
			return HPX_OK;
		}
	return HPX_CORRUPT;
}

static enum hpx_status call_settle(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	const struct hpx_answer *answer = op->rule.update->answer;
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_span none = { NULL, 0 };
	char reference[HPX_REFERENCE_SIZE];
	enum hpx_status status = HPX_OK;
	PGresult *result;

	hpx_reference_print(&op->id, &op->mark, reference);
	hpx_pg_add_bytes(&params, hpx_span_of(reference));
	hpx_pg_add_bytes(&params, hpx_span_of(hpx_ruling_name(op->rule.update->received.ruling)));
	if (answer != NULL)
		hpx_pg_add_int8(&params, answer->status);
	else
		hpx_pg_add_bytes(&params, none);
	hpx_pg_add_bytes(&params, answer != NULL ? answer->headers : none);
	hpx_pg_add_bytes(&params, answer != NULL ? answer->body : none);
	hpx_pg_add_bytes(&params, op->reason);
	hpx_pg_send(&pipe, HPX_PG_SETTLE, &params);
	result = hpx_pg_take(&pipe);
	if (result != NULL)
		status = hpx_pg_settlement_read(result, op);
	PQclear(result);
	enum hpx_status ended = hpx_pg_end(&pipe);
	return ended != HPX_OK ? ended : status;
}

/* What the function refuses says nothing about the store. */
bool hpx_pg_is_settlers_own(enum hpx_status status)
{
	return hpx_pg_is_ops_own(status) || status == HPX_NOT_FOUND || status == HPX_UNSUPPORTED;
}

static enum hpx_status settle(struct hpx_pg_store *s, struct hpx_store_op *op,
			      struct hpx_pg_batch *batch, char *problem)
{
	struct hpx_pg_look seen = { .begun = false };
	struct hpx_pg_row *row = batch->rows;
	enum hpx_status status;

	hpx_pg_batch_add(batch, &op->id);
	row->to_read = row->to_lock = true;
	status = hpx_pg_look(s, batch, &seen, problem);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	if (row->stored && !row->locked) {
		op->status = HPX_BUSY;
		return hpx_pg_undo(s, HPX_OK);
	}
	op->judged_ms = seen.now.wall_ms;
	status = call_settle(s, op, problem);
	if (status == HPX_OK) {
		batch->written = true;
		return hpx_pg_commit(s, batch, &seen, problem);
	}
	/* A row that cannot be read is no more than one operation's trouble. */
	if (!hpx_pg_is_settlers_own(status) && status != HPX_CORRUPT)
		return hpx_pg_undo(s, status);
	op->status = status;
	return hpx_pg_undo(s, HPX_OK);
}

enum hpx_status hpx_pg_settle_by_function(struct hpx_pg_store *s, struct hpx_store_op *op,
					  char *problem)
{
	struct hpx_pg_batch batch;
	enum hpx_status status = hpx_pg_batch_init(&batch, 1, 0);

	HPX_ASSERT(op->verb == HPX_VERB_RULE && op->rule.update->stored_rule);
	if (status != HPX_OK)
		return status;
	status = settle(s, op, &batch, problem);
	hpx_pg_batch_done(&batch);
	return status;
}

/* ---- NOTE_MISUSE ---- */

/* Two gateways may note the same misuse: the second is put off until the first has
 * committed. The operation's row is not locked, because its attempt may be ending now. */
static enum hpx_status lock_events(struct hpx_pg_store *s, struct hpx_store_op *op,
				   struct hpx_pg_look *look, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	int64_t locked = 0;
	PGresult *result;

	hpx_pg_add_id(&params, &op->id);
	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	hpx_pg_send(&pipe, HPX_PG_LOCK_EVENTS, &params);
	PQclear(hpx_pg_take(&pipe));
	result = hpx_pg_take(&pipe);
	if (result != NULL && (PQntuples(result) != 1 || !hpx_pg_int(result, 0, 0, 0, 1, &locked)))
		pipe.status = HPX_CORRUPT;
	PQclear(result);
	look->begun = true;
	if (locked == 0)
		op->status = HPX_BUSY;
	return hpx_pg_end(&pipe);
}

static enum hpx_status send_event_once(struct hpx_pg_store *s, const struct hpx_store_op *op,
				       const struct hpx_change *change, char *problem)
{
	const struct hpx_record *record = &change->record;
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_id(&params, &record->id);
	hpx_pg_add_rest(&params, &record->id);
	hpx_pg_add_int8(&params, change->at_ms);
	hpx_pg_add_int8(&params, record->attempt);
	hpx_pg_add_bytes(&params, hpx_span_of(change->event));
	hpx_pg_add_bytes(&params, op->actor.len != 0 ? op->actor : HPX_SPAN(""));
	hpx_pg_add_bytes(&params, op->reason.len != 0 ? op->reason : change->reason);
	hpx_pg_add_int8(&params, record->status);
	hpx_pg_add_int8(&params, record->created_ms);
	return hpx_pg_commit_call(s, HPX_PG_PUT_EVENT_ONCE, &params, problem);
}

static enum hpx_status note_misuse(struct hpx_pg_store *s, struct hpx_store_op *op,
				   struct hpx_pg_batch *batch, char *problem)
{
	struct hpx_pg_look seen = { .begun = false };
	struct hpx_change change;
	enum hpx_status status = lock_events(s, op, &seen, problem);

	if (status != HPX_OK || op->status != HPX_OK)
		return hpx_pg_undo(s, status);
	hpx_pg_batch_add(batch, &op->id);
	batch->rows->to_read = true;
	status = hpx_pg_look(s, batch, &seen, problem);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	hpx_change_make(&batch->rows->found, op, &seen.now, false, &change);
	if (op->status != HPX_OK)
		return hpx_pg_commit(s, batch, &seen, problem);
	HPX_ASSERT(change.write == HPX_WRITE_NOTHING && change.event_once);
	return send_event_once(s, op, &change, problem);
}

enum hpx_status hpx_pg_note_misuse(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_batch batch;
	enum hpx_status status = hpx_pg_batch_init(&batch, 1, 0);

	HPX_ASSERT(op->verb == HPX_VERB_NOTE_MISUSE);
	if (status != HPX_OK)
		return status;
	status = note_misuse(s, op, &batch, problem);
	hpx_pg_batch_done(&batch);
	return status;
}

/* ---- the application's verbs ---- */

enum hpx_status hpx_pg_application(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_batch batch;
	enum hpx_status status = hpx_pg_batch_init(&batch, 1, 0);

	if (op->verb == HPX_VERB_READ_POINT)
		hpx_buffer_init(&op->read_point.data, HPX_POINT_DATA_MAX);
	if (status != HPX_OK)
		return status;
	status = run(s, op, &batch, problem);
	hpx_pg_batch_done(&batch);
	if (status == HPX_OK && op->status == HPX_OK)
		return HPX_OK;
	/* Nothing is told of an op that failed. */
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
	if (op->verb == HPX_VERB_READ_POINT)
		hpx_buffer_done(&op->read_point.data);
	return status;
}
