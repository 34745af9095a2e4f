/* An operation as it is stored, and between its columns and the record. A row is hostile
 * until its lengths, types, check and invariants are found right; one that is not
 * counts as unknown.
 *
 * The look-up, the same for every writer and reader: the aside row first, which rules;
 * then the generations, newest first, each by its filter where it is closed and has
 * one, and by its index. An id is in one generation only. */
#include <zlib.h>

#include "store/sqlite/driver.h"

/* ---- checks ---- */

/* Checks of rows: CRC-32 over columns, however the machine keeps its numbers. Small
 * values are collected, because each call of the CRC costs more than a few bytes do. */

static void flush(struct hpx_sqlite_crc *crc)
{
	if (crc->len != 0)
		crc->value = crc32_z(crc->value, crc->bytes, crc->len);
	crc->len = 0;
}

void hpx_sqlite_crc_fixed(struct hpx_sqlite_crc *crc, const void *bytes, size_t len)
{
	if (len == 0)
		return;
	if (len > sizeof(crc->bytes) - crc->len)
		flush(crc);
	if (len > sizeof(crc->bytes)) {
		crc->value = crc32_z(crc->value, bytes, len);
		return;
	}
	memcpy(crc->bytes + crc->len, bytes, len);
	crc->len += len;
}

void hpx_sqlite_crc_int(struct hpx_sqlite_crc *crc, int64_t value)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
	hpx_sqlite_crc_fixed(crc, bytes, sizeof(bytes));
}

void hpx_sqlite_crc_span(struct hpx_sqlite_crc *crc, struct hpx_span bytes)
{
	hpx_sqlite_crc_int(crc, (int64_t)bytes.len);
	hpx_sqlite_crc_fixed(crc, bytes.ptr, bytes.len);
}

uint32_t hpx_sqlite_crc_end(struct hpx_sqlite_crc *crc)
{
	flush(crc);
	return (uint32_t)crc->value;
}

/* The columns of HPX_SQL_ASIDE, in order. */
enum {
	ASIDE_SEQ,
	ASIDE_GENERATION,
	ASIDE_NUMBER,
	ASIDE_ID,
	ASIDE_STATE,
	ASIDE_ATTEMPT,
	ASIDE_TOKEN,
	ASIDE_MARK,
	ASIDE_FINGERPRINT,
	ASIDE_RECIPE,
	ASIDE_TENANT_HASH,
	ASIDE_OWNER,
	ASIDE_CREATED,
	ASIDE_CHANGED,
	ASIDE_EXPIRES,
	ASIDE_RETENTION,
	ASIDE_TOMBSTONE,
	ASIDE_STATUS,
	ASIDE_KEPT,
	ASIDE_WHEN_LOST,
	ASIDE_ADVANCED,
	ASIDE_LAST_ERROR,
	ASIDE_POINT,
	ASIDE_TEXT_CRC,
	ASIDE_POINT_CRC,
	ASIDE_ANSWER_CRC,
	ASIDE_CRC,
	ASIDE_TEXTS,
	ASIDE_HEADERS = ASIDE_TEXTS + 6,
	ASIDE_BODY,
	ASIDE_LEASE,
};

/* The columns of HPX_SQL_PLAIN, in order. */
enum {
	PLAIN_SEQ,
	PLAIN_ID,
	PLAIN_REST,
	PLAIN_TOKEN,
	PLAIN_FINGERPRINT,
	PLAIN_RECIPE,
	PLAIN_TENANT_HASH,
	PLAIN_OWNER,
	PLAIN_CREATED,
	PLAIN_RETENTION,
	PLAIN_TOMBSTONE,
	PLAIN_WHEN_LOST,
	PLAIN_CRC,
	PLAIN_TEXTS,
	PLAIN_ANSWER = PLAIN_TEXTS + 6,
	PLAIN_CHANGED,
	PLAIN_EXPIRES,
	PLAIN_STATUS,
	PLAIN_KEPT,
	PLAIN_HEADERS,
	PLAIN_BODY,
	PLAIN_ANSWER_CRC,
	PLAIN_LEASE,
};

/* ---- checks ---- */

static void crc_texts(struct hpx_sqlite_crc *crc, const struct hpx_description *d)
{
	hpx_sqlite_crc_span(crc, d->tenant);
	hpx_sqlite_crc_span(crc, d->scope);
	hpx_sqlite_crc_span(crc, d->key);
	hpx_sqlite_crc_span(crc, d->method);
	hpx_sqlite_crc_span(crc, d->path);
	hpx_sqlite_crc_span(crc, d->route);
}

uint32_t hpx_sqlite_plain_crc(const struct hpx_record *record, const struct hpx_description *d)
{
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_fixed(&crc, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_crc_fixed(&crc, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_crc_fixed(&crc, record->fingerprint, sizeof(record->fingerprint));
	hpx_sqlite_crc_fixed(&crc, record->recipe.bytes, sizeof(record->recipe.bytes));
	hpx_sqlite_crc_fixed(&crc, record->tenant, sizeof(record->tenant));
	hpx_sqlite_crc_int(&crc, (int64_t)record->owner);
	hpx_sqlite_crc_int(&crc, record->created_ms);
	hpx_sqlite_crc_int(&crc, record->retention_ms);
	hpx_sqlite_crc_int(&crc, record->tombstone_ms);
	hpx_sqlite_crc_int(&crc, record->when_lost);
	crc_texts(&crc, d);
	return hpx_sqlite_crc_end(&crc);
}

/* The id is part of it, so that an answer can only be read as that of the
 * operation it was stored for (guarantee 5), and the token, so that it is that of the
 * attempt; the lengths, so that no byte can change sides between headers and body. */
uint32_t hpx_sqlite_answer_crc(const struct hpx_record *record, bool tombstone,
			       struct hpx_span headers, struct hpx_span body)
{
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_fixed(&crc, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_crc_fixed(&crc, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_crc_int(&crc, record->changed_ms);
	hpx_sqlite_crc_int(&crc, record->expires_ms);
	hpx_sqlite_crc_int(&crc, record->status);
	hpx_sqlite_crc_int(&crc, tombstone ? HPX_SQLITE_TOMBSTONE : record->kept);
	hpx_sqlite_crc_span(&crc, headers);
	hpx_sqlite_crc_span(&crc, body);
	return hpx_sqlite_crc_end(&crc);
}

uint32_t hpx_sqlite_text_crc(const struct hpx_operation_id *id, const struct hpx_description *d)
{
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_fixed(&crc, id->bytes, sizeof(id->bytes));
	crc_texts(&crc, d);
	return hpx_sqlite_crc_end(&crc);
}

uint32_t hpx_sqlite_bytes_crc(const struct hpx_operation_id *id, struct hpx_span first,
			      struct hpx_span second)
{
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	if (first.ptr == NULL && second.ptr == NULL)
		return 0;
	hpx_sqlite_crc_fixed(&crc, id->bytes, sizeof(id->bytes));
	hpx_sqlite_crc_span(&crc, first);
	hpx_sqlite_crc_span(&crc, second);
	return hpx_sqlite_crc_end(&crc);
}

uint32_t hpx_sqlite_aside_crc(const struct hpx_sqlite_row *row, const struct hpx_record *record)
{
	const int64_t numbers[] = { row->generation, row->number, record->state, record->attempt,
				    (int64_t)record->owner, record->created_ms,
				    record->changed_ms, record->expires_ms, record->retention_ms,
				    record->tombstone_ms, record->status,
				    row->tombstone ? HPX_SQLITE_TOMBSTONE : record->kept,
				    record->when_lost,
				    record->advanced, row->text_crc, row->point_crc,
				    row->answer_crc };
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_fixed(&crc, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_crc_fixed(&crc, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_crc_fixed(&crc, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_crc_fixed(&crc, record->fingerprint, sizeof(record->fingerprint));
	hpx_sqlite_crc_fixed(&crc, record->recipe.bytes, sizeof(record->recipe.bytes));
	hpx_sqlite_crc_fixed(&crc, record->tenant, sizeof(record->tenant));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		hpx_sqlite_crc_int(&crc, numbers[i]);
	hpx_sqlite_crc_span(&crc, hpx_span_of(hpx_last_error_name(record->last_error)));
	hpx_sqlite_crc_span(&crc, hpx_span_of(record->point));
	return hpx_sqlite_crc_end(&crc);
}

/* ---- what both have ---- */

/* Borrowed until the next step. False: a column is no text. */
static bool read_texts(struct hpx_sqlite_statement *stmt, int column, struct hpx_description *d)
{
	struct hpx_span *const fields[] = { &d->tenant, &d->scope, &d->key,
					    &d->method, &d->path, &d->route };
	bool ok = true;

	for (int i = 0; i < (int)(sizeof(fields) / sizeof(fields[0])); i++) {
		*fields[i] = hpx_sqlite_bytes(stmt, column + i);
		ok &= fields[i]->ptr != NULL;
	}
	return ok;
}

static enum hpx_status keep_texts(const struct hpx_sqlite_want *want, const struct hpx_description *d)
{
	const struct hpx_span *from[] = { &d->tenant, &d->scope, &d->key,
					  &d->method, &d->path, &d->route };
	struct hpx_description copy;
	struct hpx_span *to[] = { &copy.tenant, &copy.scope, &copy.key,
				  &copy.method, &copy.path, &copy.route };

	if (want == NULL || want->arena == NULL)
		return HPX_OK;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		*to[i] = hpx_arena_dup(want->arena, from[i]->ptr != NULL ? *from[i] : HPX_SPAN(""));
		if (to[i]->ptr == NULL)
			return HPX_NOMEM;
	}
	*want->description = copy;
	return HPX_OK;
}

/* Of an answer that is not kept there may be nothing, and that is whole. */
static enum hpx_status keep_answer(const struct hpx_sqlite_want *want, const struct hpx_record *record,
				   struct hpx_span headers, struct hpx_span body)
{
	if (want == NULL || want->answer == NULL || record->state != HPX_STATE_COMPLETED ||
	    headers.ptr == NULL || (!record->kept && headers.len == 0))
		return HPX_OK;
	*want->answer = hpx_answer_new(record->status, record->kept, headers, body);
	return *want->answer != NULL ? HPX_OK : HPX_NOMEM;
}

/* Until when the attempt's lease holds. Of a server's attempt only the server knows;
 * to everybody else it is in progress. `renewed`: of hapax_lease, 0 where there is
 * none. */
static void fill_lease(struct hpx_sqlite_store *s, int64_t renewed_ms, struct hpx_record *record)
{
	int64_t until_ms = renewed_ms;

	if (record->state != HPX_STATE_IN_PROGRESS)
		return;
	if (record->owner != 0 && s->serve) {
		int64_t held_ms = hpx_sqlite_lease_until(&s->leases, &record->token, &record->id);
		until_ms = held_ms > renewed_ms ? held_ms : renewed_ms;
	} else if (record->owner != 0) {
		until_ms = HPX_SQLITE_TIME_MAX;
	}
	record->lease_until_ms = until_ms;
}

static int64_t lease_column(struct hpx_sqlite_statement *stmt, int column)
{
	int64_t until_ms = 0;

	(void)hpx_sqlite_time(stmt, column, -HPX_SQLITE_TIME_MAX, &until_ms);
	return until_ms;
}

static bool read_crc(struct hpx_sqlite_statement *stmt, int column, uint32_t *ret_crc)
{
	int64_t value = 0;
	bool ok = hpx_sqlite_int(stmt, column, 0, UINT32_MAX, &value);

	*ret_crc = (uint32_t)value;
	return ok;
}

static bool read_when_lost(struct hpx_sqlite_statement *stmt, int column, struct hpx_record *record)
{
	int64_t value = 0;
	bool ok = hpx_sqlite_int(stmt, column, 0, HPX_WHEN_LOST_COUNT - 1, &value);

	record->when_lost = (enum hpx_when_lost)value;
	return ok;
}

static bool read_owner(struct hpx_sqlite_statement *stmt, int column, struct hpx_record *record)
{
	int64_t owner = 0;
	bool ok = hpx_sqlite_int(stmt, column, INT64_MIN, INT64_MAX, &owner);

	record->owner = (uint64_t)owner;
	return ok;
}

static bool read_status(struct hpx_sqlite_statement *stmt, int column, struct hpx_sqlite_row *row)
{
	struct hpx_record *record = &row->found.record;
	int64_t status = 0, kept = 0;
	bool ok = hpx_sqlite_int(stmt, column, 0, 999, &status);

	ok &= hpx_sqlite_int(stmt, column + 1, 0, HPX_SQLITE_TOMBSTONE, &kept);
	record->status = (uint32_t)status;
	record->kept = kept == 1;
	row->tombstone = kept == HPX_SQLITE_TOMBSTONE;
	return ok;
}

/* ---- an aside row ---- */

static bool read_aside_names(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	bool ok = hpx_sqlite_fixed(stmt, ASIDE_ID, record->id.bytes, sizeof(record->id.bytes));

	ok &= hpx_sqlite_fixed(stmt, ASIDE_TOKEN, record->token.bytes, sizeof(record->token.bytes));
	ok &= hpx_sqlite_fixed(stmt, ASIDE_MARK, record->mark.bytes, sizeof(record->mark.bytes));
	ok &= hpx_sqlite_fixed(stmt, ASIDE_FINGERPRINT, record->fingerprint,
			       sizeof(record->fingerprint));
	ok &= hpx_sqlite_fixed(stmt, ASIDE_RECIPE, record->recipe.bytes,
			       sizeof(record->recipe.bytes));
	ok &= hpx_sqlite_fixed(stmt, ASIDE_TENANT_HASH, record->tenant, sizeof(record->tenant));
	return ok;
}

static bool read_aside_small(struct hpx_sqlite_statement *stmt, struct hpx_sqlite_row *row)
{
	struct hpx_record *record = &row->found.record;
	struct hpx_span error = hpx_sqlite_bytes(stmt, ASIDE_LAST_ERROR);
	struct hpx_span point = hpx_sqlite_bytes(stmt, ASIDE_POINT);
	int64_t state = 0, attempt = 0, advanced = 0;
	bool ok = hpx_sqlite_int(stmt, ASIDE_STATE, HPX_STATE_IN_PROGRESS, HPX_STATE_COUNT - 1,
				 &state);

	record->state = ok ? (enum hpx_state)state : HPX_STATE_UNKNOWN;
	ok &= hpx_sqlite_int(stmt, ASIDE_ATTEMPT, 1, UINT32_MAX, &attempt);
	record->attempt = (uint32_t)attempt;
	ok &= hpx_sqlite_int(stmt, ASIDE_ADVANCED, 0, 1, &advanced);
	record->advanced = advanced == 1;
	ok &= read_status(stmt, ASIDE_STATUS, row);
	ok &= read_when_lost(stmt, ASIDE_WHEN_LOST, record);
	record->last_error = hpx_last_error_by_name(error);
	if (point.ptr == NULL || (point.len > 0 && !hpx_point_valid(point)))
		return false;
	memcpy(record->point, point.ptr, point.len);
	return ok;
}

static bool read_aside_times(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	bool ok = read_owner(stmt, ASIDE_OWNER, record);

	ok &= hpx_sqlite_time(stmt, ASIDE_CREATED, 0, &record->created_ms);
	ok &= hpx_sqlite_time(stmt, ASIDE_CHANGED, 0, &record->changed_ms);
	if (sqlite3_column_type(stmt->handle, ASIDE_EXPIRES) != SQLITE_NULL)
		ok &= hpx_sqlite_time(stmt, ASIDE_EXPIRES, 1, &record->expires_ms);
	ok &= hpx_sqlite_time(stmt, ASIDE_RETENTION, 0, &record->retention_ms);
	ok &= hpx_sqlite_time(stmt, ASIDE_TOMBSTONE, 0, &record->tombstone_ms);
	return ok;
}

static bool read_aside_crcs(struct hpx_sqlite_statement *stmt, const struct hpx_description *texts,
			    struct hpx_span headers, struct hpx_span body, struct hpx_sqlite_row *row)
{
	const struct hpx_record *record = &row->found.record;
	uint32_t crc = 0;
	bool ok = read_crc(stmt, ASIDE_TEXT_CRC, &row->text_crc);

	ok &= read_crc(stmt, ASIDE_POINT_CRC, &row->point_crc);
	ok &= read_crc(stmt, ASIDE_ANSWER_CRC, &row->answer_crc);
	ok &= read_crc(stmt, ASIDE_CRC, &crc);
	return ok && crc == hpx_sqlite_aside_crc(row, record) &&
	       row->text_crc == hpx_sqlite_text_crc(&record->id, texts) &&
	       row->answer_crc == hpx_sqlite_bytes_crc(&record->id, headers, body) &&
	       (!record->kept || headers.ptr != NULL);
}

enum hpx_status hpx_sqlite_aside_read(struct hpx_sqlite_store *s, struct hpx_sqlite_statement *stmt,
				      const struct hpx_sqlite_want *want,
				      struct hpx_sqlite_row *ret_row)
{
	struct hpx_record *record = &ret_row->found.record;
	struct hpx_span headers = hpx_sqlite_bytes(stmt, ASIDE_HEADERS);
	struct hpx_span body = hpx_sqlite_bytes(stmt, ASIDE_BODY);
	struct hpx_description texts;
	enum hpx_status status;
	bool ok;

	*ret_row = (struct hpx_sqlite_row){
		.place = HPX_SQLITE_ASIDE,
		.aside = sqlite3_column_int64(stmt->handle, ASIDE_SEQ),
		.generation = sqlite3_column_int64(stmt->handle, ASIDE_GENERATION),
		.number = sqlite3_column_int64(stmt->handle, ASIDE_NUMBER),
		.found = { .exists = true },
	};
	ok = read_aside_names(stmt, record);
	ok &= read_aside_small(stmt, ret_row);
	ok &= read_aside_times(stmt, record);
	ok &= read_texts(stmt, ASIDE_TEXTS, &texts);
	ok = ok && read_aside_crcs(stmt, &texts, headers, body, ret_row);
	fill_lease(s, lease_column(stmt, ASIDE_LEASE), record);
	ret_row->found.readable = ok && hpx_record_valid(record);
	status = keep_texts(want, &texts);
	if (status == HPX_OK && ret_row->found.readable)
		status = keep_answer(want, record, headers, body);
	return status;
}

/* ---- a plain row ---- */

static bool read_plain_names(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	/* Whatever else cannot be read: by its reference a person names it. */
	bool ok = hpx_sqlite_fixed(stmt, PLAIN_TOKEN, record->token.bytes, sizeof(record->token.bytes)) &&
		  hpx_mark_make(&record->token, &record->mark) == HPX_OK;

	ok &= hpx_sqlite_fixed(stmt, PLAIN_ID, record->id.bytes, HPX_SQLITE_ID_BYTES);
	ok &= hpx_sqlite_fixed(stmt, PLAIN_REST, record->id.bytes + HPX_SQLITE_ID_BYTES,
			       sizeof(record->id.bytes) - HPX_SQLITE_ID_BYTES);
	ok &= hpx_sqlite_fixed(stmt, PLAIN_FINGERPRINT, record->fingerprint,
			       sizeof(record->fingerprint));
	ok &= hpx_sqlite_fixed(stmt, PLAIN_RECIPE, record->recipe.bytes,
			       sizeof(record->recipe.bytes));
	ok &= hpx_sqlite_fixed(stmt, PLAIN_TENANT_HASH, record->tenant, sizeof(record->tenant));
	return ok;
}

static bool read_plain_numbers(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	bool ok = read_owner(stmt, PLAIN_OWNER, record);

	record->attempt = 1;
	ok &= hpx_sqlite_time(stmt, PLAIN_CREATED, 0, &record->created_ms);
	ok &= hpx_sqlite_time(stmt, PLAIN_RETENTION, 0, &record->retention_ms);
	ok &= hpx_sqlite_time(stmt, PLAIN_TOMBSTONE, 0, &record->tombstone_ms);
	ok &= read_when_lost(stmt, PLAIN_WHEN_LOST, record);
	record->changed_ms = record->created_ms;
	return ok;
}

/* Without an answer the attempt is in progress, unless its generation is not marked:
 * then the answer is lost. */
static bool read_plain_answer(struct hpx_sqlite_statement *stmt, const struct hpx_sqlite_generation *g,
			      struct hpx_span headers, struct hpx_span body,
			      struct hpx_sqlite_row *row)
{
	struct hpx_record *record = &row->found.record;
	bool ok;

	row->answered = sqlite3_column_type(stmt->handle, PLAIN_ANSWER) != SQLITE_NULL;
	record->state = row->answered ? HPX_STATE_COMPLETED :
			g->marked     ? HPX_STATE_IN_PROGRESS :
					HPX_STATE_UNKNOWN;
	if (!row->answered)
		return g->marked;
	ok = hpx_sqlite_time(stmt, PLAIN_CHANGED, 0, &record->changed_ms);
	ok &= hpx_sqlite_time(stmt, PLAIN_EXPIRES, 1, &record->expires_ms);
	ok &= read_status(stmt, PLAIN_STATUS, row);
	ok &= read_crc(stmt, PLAIN_ANSWER_CRC, &row->answer_crc);
	return ok && headers.ptr != NULL && body.ptr != NULL &&
	       row->answer_crc == hpx_sqlite_answer_crc(record, row->tombstone, headers, body);
}

enum hpx_status hpx_sqlite_plain_read(struct hpx_sqlite_store *s, struct hpx_sqlite_statement *stmt,
				      const struct hpx_sqlite_generation *g,
				      const struct hpx_sqlite_want *want,
				      struct hpx_sqlite_row *ret_row)
{
	struct hpx_record *record = &ret_row->found.record;
	struct hpx_span headers = hpx_sqlite_bytes(stmt, PLAIN_HEADERS);
	struct hpx_span body = hpx_sqlite_bytes(stmt, PLAIN_BODY);
	struct hpx_description texts;
	enum hpx_status status;
	uint32_t crc = 0;
	bool ok;

	*ret_row = (struct hpx_sqlite_row){
		.place = HPX_SQLITE_PLAIN,
		.generation = g->number,
		.number = sqlite3_column_int64(stmt->handle, PLAIN_SEQ),
		.found = { .exists = true },
	};
	ok = read_plain_names(stmt, record);
	ok &= read_plain_numbers(stmt, record);
	ok &= read_texts(stmt, PLAIN_TEXTS, &texts);
	ok &= read_crc(stmt, PLAIN_CRC, &crc);
	ok = ok && crc == hpx_sqlite_plain_crc(record, &texts);
	ok &= read_plain_answer(stmt, g, headers, body, ret_row);
	fill_lease(s, lease_column(stmt, PLAIN_LEASE), record);
	ret_row->found.readable = ok && hpx_record_valid(record);
	status = keep_texts(want, &texts);
	if (status == HPX_OK && ret_row->found.readable)
		status = keep_answer(want, record, headers, body);
	return status;
}

/* ---- the look-up ---- */

static enum hpx_status find_aside(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				  const struct hpx_operation_id *id,
				  const struct hpx_sqlite_want *want, struct hpx_sqlite_row *row)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_FIND_ASIDE);
	enum hpx_status read = HPX_OK, status;

	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	if (hpx_sqlite_next(&stmt))
		read = hpx_sqlite_aside_read(s, &stmt, want, row);
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

/* `*ret_passed`: it is there, and counts for nothing any more.
 * A row of another operation with the same first half is not this one; neither may be
 * executed, since nobody can tell them apart by the index. */
static enum hpx_status find_plain(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				  struct hpx_sqlite_generation *g, const struct hpx_operation_id *id,
				  const struct hpx_sqlite_want *want, struct hpx_sqlite_row *row,
				  bool *ret_passed)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_FIND);
	enum hpx_status read = HPX_OK, status;

	hpx_sqlite_bind_blob(&stmt, id->bytes, HPX_SQLITE_ID_BYTES);
	bool there = hpx_sqlite_next(&stmt);
	*ret_passed = there && sqlite3_column_int64(stmt.handle, PLAIN_SEQ) <= g->moved;
	if (there && !*ret_passed) {
		read = hpx_sqlite_plain_read(s, &stmt, g, want, row);
		if (!hpx_operation_id_eq(&row->found.record.id, id))
			row->found.readable = false;
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

enum hpx_status hpx_sqlite_plain_find(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				      const struct hpx_operation_id *id,
				      const struct hpx_sqlite_want *want,
				      struct hpx_sqlite_row *ret_row)
{
	enum hpx_status status = HPX_OK;
	bool unsure = false, passed;
	size_t at = 0;

	*ret_row = (struct hpx_sqlite_row){ .place = HPX_SQLITE_NOWHERE };
	for (size_t i = 0; i < db->generation_count && status == HPX_OK && !ret_row->found.exists; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state == HPX_GENERATION_DEAD || !hpx_sqlite_filter_may_have(s, db, g, id, &at))
			continue;
		status = find_plain(s, db, g, id, want, ret_row, &passed);
		unsure |= !passed && !ret_row->found.exists && !hpx_sqlite_miss_counts(s, g->number);
	}
	/* An index that was not compared with its table may lack it. */
	return status == HPX_OK && !ret_row->found.exists && unsure ? HPX_UNAVAILABLE : status;
}

enum hpx_status hpx_sqlite_row_find(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				    const struct hpx_operation_id *id,
				    const struct hpx_sqlite_want *want,
				    struct hpx_sqlite_row *ret_row)
{
	enum hpx_status status;

	*ret_row = (struct hpx_sqlite_row){ .place = HPX_SQLITE_NOWHERE };
	status = find_aside(s, db, id, want, ret_row);
	if (status == HPX_OK && !ret_row->found.exists)
		status = hpx_sqlite_plain_find(s, db, id, want, ret_row);
	/* Whatever could be read of it, it is the one that was asked for. */
	if (ret_row->found.exists)
		ret_row->found.record.id = *id;
	return status;
}

enum hpx_status hpx_sqlite_row_covered(struct hpx_sqlite_db *db, int64_t generation, int64_t number,
				       bool *ret_covered)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_HAS_COPY);

	hpx_sqlite_bind_int(&stmt, generation);
	hpx_sqlite_bind_int(&stmt, number);
	*ret_covered = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}
