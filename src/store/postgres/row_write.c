/* The batch's writes: a handful of statements, however many operations, each
 * over arrays in the order of their ids. */
#include "store/postgres/driver.h"

/* An event is for people; whatever somebody typed is cut to what one reads. */
#define ACTOR_BYTES_MAX 128
#define REASON_BYTES_MAX 1024

static const enum hpx_pg_type record_types[] = {
	HPX_PG_BYTEA,
	HPX_PG_INT2,
	HPX_PG_INT8,
	HPX_PG_BYTEA,
	HPX_PG_BYTEA,
	HPX_PG_BYTEA,
	HPX_PG_BYTEA,
	HPX_PG_BYTEA,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT4,
	HPX_PG_BOOL,
	HPX_PG_INT2,
	HPX_PG_BOOL,
	HPX_PG_TEXT,
	/* The description's; an UPDATE leaves them out. */
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
};
#define RECORD_COLUMNS 19
#define TEXT_COLUMNS 6

/* ---- rows ---- */

void hpx_pg_put_id(struct hpx_pg_columns *columns, const struct hpx_operation_id *id)
{
	hpx_pg_put_bytes(columns, hpx_span(id->bytes, sizeof(id->bytes)));
}

void hpx_pg_put_token(struct hpx_pg_columns *columns, const struct hpx_token *token)
{
	hpx_pg_put_bytes(columns, hpx_span(token->bytes, sizeof(token->bytes)));
}

void hpx_pg_put_mark(struct hpx_pg_columns *columns, const struct hpx_mark *mark)
{
	hpx_pg_put_bytes(columns, hpx_span(mark->bytes, sizeof(mark->bytes)));
}

static void put_record(struct hpx_pg_columns *columns, const struct hpx_record *record)
{
	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_int(columns, record->state);
	hpx_pg_put_int(columns, record->attempt);
	hpx_pg_put_token(columns, &record->token);
	hpx_pg_put_mark(columns, &record->mark);
	hpx_pg_put_bytes(columns, hpx_span(record->fingerprint, sizeof(record->fingerprint)));
	hpx_pg_put_bytes(columns, hpx_span(record->recipe.bytes, sizeof(record->recipe.bytes)));
	hpx_pg_put_bytes(columns, hpx_span(record->tenant, sizeof(record->tenant)));
	hpx_pg_put_int(columns, (int64_t)record->owner);
	hpx_pg_put_int(columns, record->created_ms);
	hpx_pg_put_int(columns, record->changed_ms);
	if (record->expires_ms != 0)
		hpx_pg_put_int(columns, record->expires_ms);
	else
		hpx_pg_put_null(columns);
	hpx_pg_put_int(columns, record->retention_ms);
	hpx_pg_put_int(columns, record->lease_until_ms);
	hpx_pg_put_int(columns, record->status);
	hpx_pg_put_int(columns, record->kept);
	hpx_pg_put_int(columns, record->when_lost);
	hpx_pg_put_int(columns, record->advanced);
	hpx_pg_put_text(columns, hpx_span_of(record->point));
}

void hpx_pg_put_description(struct hpx_pg_columns *columns, const struct hpx_store_op *op)
{
	static const struct hpx_description nothing;
	const struct hpx_description *d =
		op != NULL && op->reserve.description != NULL ? op->reserve.description : &nothing;

	HPX_ASSERT(op == NULL || op->verb == HPX_VERB_RESERVE);
	hpx_pg_put_text(columns, d->tenant);
	hpx_pg_put_text(columns, d->scope);
	hpx_pg_put_text(columns, d->key);
	hpx_pg_put_text(columns, d->method);
	hpx_pg_put_text(columns, d->path);
	hpx_pg_put_text(columns, d->route);
}

/* ---- which slots want which statement ---- */

static bool wants_insert(const struct hpx_pg_pending_row *pending)
{
	return pending->changed && !pending->stored && pending->found.exists;
}

static bool wants_update(const struct hpx_pg_pending_row *pending)
{
	return pending->changed && pending->stored && pending->found.exists;
}

static bool wants_describe(const struct hpx_pg_pending_row *pending)
{
	return wants_update(pending) && pending->described != NULL;
}

static bool wants_remove(const struct hpx_pg_pending_row *pending)
{
	return pending->changed && pending->stored && !pending->found.exists;
}

static bool wants_answer(const struct hpx_pg_pending_row *pending)
{
	return pending->changed && pending->found.exists && pending->answer != NULL;
}

static bool wants_answer_gone(const struct hpx_pg_pending_row *pending)
{
	return pending->answer_gone && !wants_answer(pending);
}

static bool wants_lease(const struct hpx_pg_pending_row *pending)
{
	return pending->lease && pending->found.exists;
}

static bool wants_lease_gone(const struct hpx_pg_pending_row *pending)
{
	return pending->lease_gone && !pending->lease;
}

/* ---- statements ---- */

void hpx_pg_send_columns(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
			 struct hpx_pg_columns *columns)
{
	struct hpx_pg_params params = { .count = 0 };
	enum hpx_status status = HPX_OK;

	if (hpx_pg_columns_rows(columns) > 0) {
		status = hpx_pg_columns_param(columns, &params);
		if (status == HPX_OK)
			hpx_pg_send(pipe, statement, &params);
		else if (pipe->status == HPX_OK)
			pipe->status = status;
	}
	hpx_pg_columns_done(columns);
}

void hpx_pg_send_ids(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
		     const struct hpx_pg_batch *batch, bool (*wanted)(const struct hpx_pg_pending_row *))
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < batch->pending_count; i++)
		if (wanted(&batch->pending[i]))
			hpx_pg_put_id(&columns, &batch->pending[i].id);
	hpx_pg_send_columns(pipe, statement, &columns);
}

bool hpx_pg_send_inserts(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;
	bool any = false;

	hpx_pg_columns_init(&columns, record_types, RECORD_COLUMNS + TEXT_COLUMNS);
	for (size_t i = 0; i < batch->pending_count; i++) {
		const struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (!wants_insert(pending))
			continue;
		put_record(&columns, &pending->found.record);
		hpx_pg_put_description(&columns, pending->described);
		any = true;
	}
	hpx_pg_send_columns(pipe, HPX_PG_INSERT, &columns);
	return any;
}

size_t hpx_pg_take_inserts(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;
	size_t lost = 0;

	if (result == NULL)
		return 0;
	for (size_t i = 0; i < batch->pending_count; i++)
		batch->pending[i].lost = wants_insert(&batch->pending[i]);
	for (int row = 0; row < PQntuples(result); row++) {
		struct hpx_pg_pending_row *pending =
			hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
		if (pending != NULL)
			pending->lost = false;
	}
	for (size_t i = 0; i < batch->pending_count; i++)
		lost += batch->pending[i].lost;
	PQclear(result);
	return lost;
}

static void send_updates(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, record_types, RECORD_COLUMNS);
	for (size_t i = 0; i < batch->pending_count; i++)
		if (wants_update(&batch->pending[i]))
			put_record(&columns, &batch->pending[i].found.record);
	hpx_pg_send_columns(pipe, HPX_PG_UPDATE, &columns);
}

static void send_descriptions(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_TEXT, HPX_PG_TEXT,
						  HPX_PG_TEXT, HPX_PG_TEXT, HPX_PG_TEXT,
						  HPX_PG_TEXT };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1 + TEXT_COLUMNS);
	for (size_t i = 0; i < batch->pending_count; i++) {
		const struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (!wants_describe(pending))
			continue;
		hpx_pg_put_id(&columns, &pending->id);
		hpx_pg_put_description(&columns, pending->described);
	}
	hpx_pg_send_columns(pipe, HPX_PG_DESCRIBE, &columns);
}

void hpx_pg_answers_init(struct hpx_pg_columns *columns)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_BYTEA,
						  HPX_PG_BYTEA };

	hpx_pg_columns_init(columns, types, 4);
}

void hpx_pg_put_answer(struct hpx_pg_pipe *pipe, struct hpx_pg_columns *columns,
		       const struct hpx_operation_id *id, const struct hpx_answer *answer)
{
	struct hpx_change change = { .answer = answer };
	struct hpx_span body = hpx_change_body(&change);
	uint8_t digest[HPX_SHA256_SIZE];
	enum hpx_status status = hpx_pg_answer_digest(id, answer->headers, body, digest);

	if (status != HPX_OK && pipe->status == HPX_OK)
		pipe->status = status;
	if (status != HPX_OK)
		return;
	hpx_pg_put_id(columns, id);
	hpx_pg_put_bytes(columns, answer->headers);
	hpx_pg_put_bytes(columns, body);
	hpx_pg_put_bytes(columns, hpx_span(digest, sizeof(digest)));
}

static void send_answers(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_answers_init(&columns);
	for (size_t i = 0; i < batch->pending_count; i++) {
		const struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (!wants_answer(pending))
			continue;
		hpx_pg_put_answer(pipe, &columns, &pending->id, pending->answer);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_ANSWER_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_PUT_ANSWERS, &columns);
		hpx_pg_flush(pipe);
		hpx_pg_answers_init(&columns);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_ANSWERS, &columns);
}

static void send_leases(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_BYTEA, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 3);
	for (size_t i = 0; i < batch->pending_count; i++) {
		const struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (!wants_lease(pending))
			continue;
		hpx_pg_put_id(&columns, &pending->id);
		hpx_pg_put_token(&columns, &pending->found.record.token);
		hpx_pg_put_int(&columns, pending->found.record.lease_until_ms);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_LEASES, &columns);
}

static void send_events(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type types[] = { HPX_PG_BYTEA, HPX_PG_INT8, HPX_PG_INT8,
						  HPX_PG_TEXT, HPX_PG_TEXT, HPX_PG_TEXT,
						  HPX_PG_INT4 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 7);
	for (size_t i = 0; i < batch->event_count; i++) {
		const struct hpx_pg_event *event = &batch->event[i];
		struct hpx_span reason = event->op->reason.len != 0 ? event->op->reason :
								      event->reason;
		hpx_pg_put_id(&columns, &event->record.id);
		hpx_pg_put_int(&columns, event->record.changed_ms);
		hpx_pg_put_int(&columns, event->record.attempt);
		hpx_pg_put_text(&columns, hpx_span_of(event->what));
		hpx_pg_put_text(&columns, hpx_span_first(event->op->actor, ACTOR_BYTES_MAX));
		hpx_pg_put_text(&columns, hpx_span_first(reason, REASON_BYTES_MAX));
		hpx_pg_put_int(&columns, event->record.status);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_EVENTS, &columns);
}

void hpx_pg_send_changes(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	send_updates(pipe, batch);
	send_descriptions(pipe, batch);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE, batch, wants_remove);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE_QUESTIONS, batch, wants_remove);
	hpx_pg_send_items(pipe, batch);
	send_answers(pipe, batch);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE_ANSWERS, batch, wants_answer_gone);
	send_leases(pipe, batch);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE_LEASES, batch, wants_lease_gone);
	send_events(pipe, batch);
}
