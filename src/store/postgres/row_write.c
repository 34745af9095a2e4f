/* The batch's writes: a handful of statements, however many operations, each
 * over arrays in the order of their ids. */
#include "store/postgres/driver.h"

/* An event is for people; whatever somebody typed is cut to what one reads. */
#define ACTOR_BYTES_MAX 128
#define REASON_BYTES_MAX 1024

/* ---- columns ---- */

static const enum hpx_pg_type record_types[] = {
	HPX_PG_UUID,
	HPX_PG_UUID,
	HPX_PG_UUID,
	HPX_PG_UUID,
	HPX_PG_UUID,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_BYTEA,
	HPX_PG_BYTEA,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT4,
	HPX_PG_INT2,
	HPX_PG_INT2,
	HPX_PG_BOOL,
	HPX_PG_BOOL,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_INT8,
	HPX_PG_BYTEA, /* the answer */
	/* The description's. */
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
};
#define RECORD_COLUMNS 23
#define TEXT_COLUMNS 6

static struct hpx_span half_of(const struct hpx_operation_id *id)
{
	return hpx_span(id->bytes, HPX_PG_HALF);
}

static struct hpx_span rest_of(const struct hpx_operation_id *id)
{
	return hpx_span(id->bytes + HPX_PG_HALF, HPX_PG_HALF);
}

void hpx_pg_put_id(struct hpx_pg_columns *columns, const struct hpx_operation_id *id)
{
	hpx_pg_put_bytes(columns, half_of(id));
}

void hpx_pg_put_rest(struct hpx_pg_columns *columns, const struct hpx_operation_id *id)
{
	hpx_pg_put_bytes(columns, rest_of(id));
}

void hpx_pg_add_id(struct hpx_pg_params *params, const struct hpx_operation_id *id)
{
	hpx_pg_add_bytes(params, half_of(id));
}

void hpx_pg_add_rest(struct hpx_pg_params *params, const struct hpx_operation_id *id)
{
	hpx_pg_add_bytes(params, rest_of(id));
}

void hpx_pg_put_token(struct hpx_pg_columns *columns, const struct hpx_token *token)
{
	hpx_pg_put_bytes(columns, hpx_span(token->bytes, sizeof(token->bytes)));
}

void hpx_pg_put_mark(struct hpx_pg_columns *columns, const struct hpx_mark *mark)
{
	hpx_pg_put_bytes(columns, hpx_span(mark->bytes, sizeof(mark->bytes)));
}

static void put_record(struct hpx_pg_columns *columns, const struct hpx_pg_row *row)
{
	const struct hpx_record *record = &row->found.record;

	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_rest(columns, &record->id);
	hpx_pg_put_token(columns, &record->token);
	hpx_pg_put_mark(columns, &record->mark);
	hpx_pg_put_bytes(columns, hpx_span(record->recipe.bytes, sizeof(record->recipe.bytes)));
	hpx_pg_put_int(columns, record->created_ms);
	hpx_pg_put_int(columns, (int64_t)record->owner);
	hpx_pg_put_int(columns, record->retention_ms);
	hpx_pg_put_bytes(columns, hpx_span(record->fingerprint, sizeof(record->fingerprint)));
	hpx_pg_put_bytes(columns, hpx_span(record->tenant, sizeof(record->tenant)));
	hpx_pg_put_int(columns, record->lease_until_ms);
	hpx_pg_put_int(columns, record->expires_ms);
	hpx_pg_put_int(columns, record->changed_ms);
	hpx_pg_put_int(columns, record->attempt);
	hpx_pg_put_int(columns, record->status);
	hpx_pg_put_int(columns, record->when_lost);
	hpx_pg_put_int(columns, record->state);
	hpx_pg_put_int(columns, record->kept);
	hpx_pg_put_int(columns, record->advanced);
	hpx_pg_put_text(columns, hpx_span_of(hpx_last_error_name(record->last_error)));
	hpx_pg_put_text(columns, hpx_span_of(record->point));
	hpx_pg_put_int(columns, record->tombstone_ms);
	hpx_pg_put_answer(columns, &record->id, row->answer);
}

void hpx_pg_put_description(struct hpx_pg_columns *columns, const struct hpx_store_op *op)
{
	static const struct hpx_description nothing;
	const struct hpx_description *d = op != NULL ? hpx_op_description(op) : NULL;

	if (d == NULL)
		d = &nothing;
	hpx_pg_put_text(columns, d->tenant);
	hpx_pg_put_text(columns, d->scope);
	hpx_pg_put_text(columns, d->key);
	hpx_pg_put_text(columns, d->method);
	hpx_pg_put_text(columns, d->path);
	hpx_pg_put_text(columns, d->route);
}

/* ---- which rows want which statement ---- */

static bool wants_insert(const struct hpx_pg_row *row)
{
	return row->changed && !row->stored && row->found.exists;
}

static bool wants_update(const struct hpx_pg_row *row)
{
	return row->changed && row->stored && row->found.exists;
}

static bool wants_history(const struct hpx_pg_row *row)
{
	return row->changed && row->stored && row->told;
}

static bool wants_describe(const struct hpx_pg_row *row)
{
	return wants_update(row) && row->described != NULL;
}

static bool wants_remove(const struct hpx_pg_row *row)
{
	return row->changed && row->stored && !row->found.exists;
}

static bool wants_lease(const struct hpx_pg_row *row)
{
	return row->lease && row->found.exists;
}

static bool wants_lease_gone(const struct hpx_pg_row *row)
{
	return row->lease_gone && !row->lease;
}

/* ---- statements ---- */

bool hpx_pg_send_columns(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
			 struct hpx_pg_columns *columns, const int64_t *more)
{
	struct hpx_pg_params params = { .count = 0 };
	bool any = hpx_pg_columns_rows(columns) > 0;
	enum hpx_status status = any ? hpx_pg_columns_param(columns, &params) : HPX_OK;

	if (any && status == HPX_OK) {
		if (more != NULL)
			hpx_pg_add_int8(&params, *more);
		hpx_pg_send(pipe, statement, &params);
	} else if (pipe->status == HPX_OK) {
		pipe->status = status;
	}
	hpx_pg_columns_done(columns);
	return any;
}

void hpx_pg_send_ids(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
		     const struct hpx_pg_batch *batch, bool (*wanted)(const struct hpx_pg_row *))
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < batch->row_count; i++)
		if (wanted(&batch->rows[i]))
			hpx_pg_put_id(&columns, &batch->rows[i].id);
	hpx_pg_send_columns(pipe, statement, &columns, NULL);
}

bool hpx_pg_send_inserts(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, record_types, RECORD_COLUMNS + TEXT_COLUMNS);
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (!wants_insert(row))
			continue;
		put_record(&columns, row);
		hpx_pg_put_description(&columns, row->described);
	}
	return hpx_pg_send_columns(pipe, HPX_PG_INSERT, &columns, NULL);
}

size_t hpx_pg_take_inserts(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;
	size_t lost = 0;

	if (result == NULL)
		return 0;
	for (size_t i = 0; i < batch->row_count; i++)
		batch->rows[i].lost = wants_insert(&batch->rows[i]);
	for (int i = 0; i < PQntuples(result); i++) {
		struct hpx_pg_row *row =
			hpx_pg_id_read(result, i, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
		if (row != NULL)
			row->lost = false;
	}
	for (size_t i = 0; i < batch->row_count; i++)
		lost += batch->rows[i].lost;
	PQclear(result);
	return lost;
}

static void updates_init(struct hpx_pg_columns *columns)
{
	enum hpx_pg_type types[RECORD_COLUMNS + 1];

	memcpy(types, record_types, RECORD_COLUMNS * sizeof(types[0]));
	types[RECORD_COLUMNS] = HPX_PG_BOOL; /* whether the answer is another one */
	hpx_pg_columns_init(columns, types, RECORD_COLUMNS + 1);
}

static void send_updates(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	updates_init(&columns);
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (!wants_update(row))
			continue;
		put_record(&columns, row);
		hpx_pg_put_int(&columns, row->answer != NULL || row->answer_gone);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_UPDATE, &columns, NULL);
		hpx_pg_flush(pipe);
		updates_init(&columns);
	}
	hpx_pg_send_columns(pipe, HPX_PG_UPDATE, &columns, NULL);
}

static void send_descriptions(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID, HPX_PG_TEXT, HPX_PG_TEXT,
						  HPX_PG_TEXT, HPX_PG_TEXT, HPX_PG_TEXT,
						  HPX_PG_TEXT };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 1 + TEXT_COLUMNS);
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (!wants_describe(row))
			continue;
		hpx_pg_put_id(&columns, &row->id);
		hpx_pg_put_description(&columns, row->described);
	}
	hpx_pg_send_columns(pipe, HPX_PG_DESCRIBE, &columns, NULL);
}

static void send_leases(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID, HPX_PG_UUID, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 3);
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (!wants_lease(row))
			continue;
		hpx_pg_put_id(&columns, &row->id);
		hpx_pg_put_token(&columns, &row->found.record.token);
		hpx_pg_put_int(&columns, row->found.record.lease_until_ms);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_LEASES, &columns, NULL);
}

void hpx_pg_route_keys_init(struct hpx_pg_columns *columns)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID, HPX_PG_UUID, HPX_PG_UUID, HPX_PG_TEXT };

	hpx_pg_columns_init(columns, types, sizeof(types) / sizeof(types[0]));
}

void hpx_pg_put_route_key(struct hpx_pg_columns *columns, const struct hpx_record *record,
			  const struct hpx_route_key *key)
{
	hpx_pg_put_id(columns, &record->id);
	hpx_pg_put_mark(columns, &record->mark);
	hpx_pg_put_bytes(columns, hpx_span(key->hash, sizeof(key->hash)));
	hpx_pg_put_text(columns, key->amount);
}

static void send_route_keys(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_route_keys_init(&columns);
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (row->route_key != NULL && row->found.exists)
			hpx_pg_put_route_key(&columns, &row->found.record, row->route_key);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_ROUTE_KEYS, &columns, NULL);
}

static void send_events(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID, HPX_PG_UUID, HPX_PG_INT8,
						  HPX_PG_INT8, HPX_PG_TEXT, HPX_PG_TEXT,
						  HPX_PG_TEXT, HPX_PG_INT4 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 8);
	for (size_t i = 0; i < batch->event_count; i++) {
		const struct hpx_pg_event *event = &batch->event[i];
		struct hpx_span reason = event->op->reason.len != 0 ? event->op->reason :
								      event->reason;
		hpx_pg_put_id(&columns, &event->record.id);
		hpx_pg_put_rest(&columns, &event->record.id);
		hpx_pg_put_int(&columns, event->record.changed_ms);
		hpx_pg_put_int(&columns, event->record.attempt);
		hpx_pg_put_text(&columns, hpx_span_of(event->what));
		hpx_pg_put_text(&columns, hpx_span_first(event->op->actor, ACTOR_BYTES_MAX));
		hpx_pg_put_text(&columns, hpx_span_first(reason, REASON_BYTES_MAX));
		hpx_pg_put_int(&columns, event->record.status);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_EVENTS, &columns, NULL);
}

void hpx_pg_send_changes(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	/* Before the rows are written: of the operation that each was until now. */
	hpx_pg_send_ids(pipe, HPX_PG_KEEP_HISTORY, batch, wants_history);
	send_updates(pipe, batch);
	send_descriptions(pipe, batch);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE, batch, wants_remove);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE_QUESTIONS, batch, wants_remove);
	hpx_pg_send_items(pipe, batch);
	send_route_keys(pipe, batch);
	send_leases(pipe, batch);
	hpx_pg_send_ids(pipe, HPX_PG_REMOVE_LEASES, batch, wants_lease_gone);
	send_events(pipe, batch);
}
