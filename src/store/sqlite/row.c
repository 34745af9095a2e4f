/* Between columns and records. A row is hostile until its lengths, types and
 * invariants are found right; one that is not counts as unknown. */
#include <zlib.h>

#include "store/sqlite/driver.h"

/* The columns of HPX_SQL_RECORD, in order. */
enum {
	COLUMN_SEQ,
	COLUMN_ID,
	COLUMN_STATE,
	COLUMN_ATTEMPT,
	COLUMN_TOKEN,
	COLUMN_MARK,
	COLUMN_FINGERPRINT,
	COLUMN_RECIPE,
	COLUMN_TENANT_HASH,
	COLUMN_OWNER,
	COLUMN_CREATED,
	COLUMN_CHANGED,
	COLUMN_EXPIRES,
	COLUMN_RETENTION,
	COLUMN_LEASE_UNTIL,
	COLUMN_STATUS,
	COLUMN_KEPT,
	COLUMN_WHEN_LOST,
	COLUMN_ADVANCED,
	COLUMN_POINT,
	COLUMN_RENEWED_TOKEN,
	COLUMN_RENEWED_UNTIL,
	COLUMN_COUNT
};
_Static_assert(COLUMN_COUNT == HPX_SQLITE_DESCRIPTION_COLUMN, "columns follow each other");

static bool read_names(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	bool ok = hpx_sqlite_fixed(stmt, COLUMN_ID, record->id.bytes, sizeof(record->id.bytes));

	ok &= hpx_sqlite_fixed(stmt, COLUMN_TOKEN, record->token.bytes,
			       sizeof(record->token.bytes));
	ok &= hpx_sqlite_fixed(stmt, COLUMN_MARK, record->mark.bytes,
			       sizeof(record->mark.bytes));
	ok &= hpx_sqlite_fixed(stmt, COLUMN_FINGERPRINT, record->fingerprint,
			       sizeof(record->fingerprint));
	ok &= hpx_sqlite_fixed(stmt, COLUMN_RECIPE, record->recipe.bytes,
			       sizeof(record->recipe.bytes));
	ok &= hpx_sqlite_fixed(stmt, COLUMN_TENANT_HASH, record->tenant, sizeof(record->tenant));
	return ok;
}

static bool read_small(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	int64_t value = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_STATE, HPX_STATE_IN_PROGRESS, HPX_STATE_COUNT - 1,
				 &value);

	record->state = ok ? (enum hpx_state)value : HPX_STATE_UNKNOWN;
	value = 0;
	ok &= hpx_sqlite_int(stmt, COLUMN_ATTEMPT, 1, UINT32_MAX, &value);
	record->attempt = (uint32_t)value;
	value = 0;
	ok &= hpx_sqlite_int(stmt, COLUMN_STATUS, 0, 999, &value);
	record->status = (uint32_t)value;
	value = 0;
	ok &= hpx_sqlite_int(stmt, COLUMN_KEPT, 0, 1, &value);
	record->kept = value == 1;
	return ok;
}

static bool read_part(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	struct hpx_span point = hpx_sqlite_bytes(stmt, COLUMN_POINT);
	int64_t value = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_WHEN_LOST, 0, HPX_WHEN_LOST_COUNT - 1, &value);

	record->when_lost = (enum hpx_when_lost)value;
	value = 0;
	ok &= hpx_sqlite_int(stmt, COLUMN_ADVANCED, 0, 1, &value);
	record->advanced = value == 1;
	if (point.ptr == NULL || (point.len > 0 && !hpx_point_valid(point)))
		return false;
	memcpy(record->point, point.ptr, point.len);
	return ok;
}

static bool read_times(struct hpx_sqlite_statement *stmt, struct hpx_record *record)
{
	int64_t owner = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_OWNER, INT64_MIN, INT64_MAX, &owner);

	record->owner = (uint64_t)owner;
	ok &= hpx_sqlite_time(stmt, COLUMN_CREATED, 0, &record->created_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_CHANGED, 0, &record->changed_ms);
	if (sqlite3_column_type(stmt->handle, COLUMN_EXPIRES) != SQLITE_NULL)
		ok &= hpx_sqlite_time(stmt, COLUMN_EXPIRES, 1, &record->expires_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_RETENTION, 0, &record->retention_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_LEASE_UNTIL, -HPX_SQLITE_TIME_MAX,
			      &record->lease_until_ms);
	return ok;
}

/* A renewal counts for the lease whose token it carries, and no other: an old
 * owner's heartbeat must not extend a new owner's lease. */
static bool read_renewal(struct hpx_sqlite_statement *stmt, struct hpx_sqlite_row *row)
{
	struct hpx_record *record = &row->found.record;
	struct hpx_token token;
	int64_t until_ms;

	row->renewed = sqlite3_column_type(stmt->handle, COLUMN_RENEWED_UNTIL) != SQLITE_NULL;
	if (!row->renewed)
		return true;
	if (!hpx_sqlite_fixed(stmt, COLUMN_RENEWED_TOKEN, token.bytes, sizeof(token.bytes)) ||
	    !hpx_sqlite_time(stmt, COLUMN_RENEWED_UNTIL, -HPX_SQLITE_TIME_MAX, &until_ms))
		return false;
	if (hpx_token_eq(&token, &record->token) && until_ms > record->lease_until_ms)
		record->lease_until_ms = until_ms;
	return true;
}

void hpx_sqlite_row_read(struct hpx_sqlite_statement *stmt, struct hpx_sqlite_row *ret_row)
{
	struct hpx_record *record = &ret_row->found.record;
	bool ok;

	*ret_row = (struct hpx_sqlite_row){ .seq = sqlite3_column_int64(stmt->handle, COLUMN_SEQ),
					    .found = { .exists = true } };
	ok = read_names(stmt, record);
	ok &= read_small(stmt, record);
	ok &= read_part(stmt, record);
	ok &= read_times(stmt, record);
	ok &= read_renewal(stmt, ret_row);
	ret_row->found.readable = ok && hpx_record_valid(record);
}

enum hpx_status hpx_sqlite_row_find(struct hpx_sqlite_db *db, const struct hpx_operation_id *id,
				    struct hpx_sqlite_row *ret_row)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_FIND);

	*ret_row = (struct hpx_sqlite_row){ .found = { .exists = false } };
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	if (hpx_sqlite_next(&stmt))
		hpx_sqlite_row_read(&stmt, ret_row);
	return hpx_sqlite_end(&stmt);
}

void hpx_sqlite_record_bind(struct hpx_sqlite_statement *stmt, const struct hpx_record *record)
{
	hpx_sqlite_bind_blob(stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_int(stmt, record->state);
	hpx_sqlite_bind_int(stmt, record->attempt);
	hpx_sqlite_bind_blob(stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_blob(stmt, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_bind_blob(stmt, record->fingerprint, sizeof(record->fingerprint));
	hpx_sqlite_bind_blob(stmt, record->recipe.bytes, sizeof(record->recipe.bytes));
	hpx_sqlite_bind_blob(stmt, record->tenant, sizeof(record->tenant));
	hpx_sqlite_bind_int(stmt, (int64_t)record->owner);
	hpx_sqlite_bind_int(stmt, record->created_ms);
	hpx_sqlite_bind_int(stmt, record->changed_ms);
	if (record->expires_ms != 0)
		hpx_sqlite_bind_int(stmt, record->expires_ms);
	else
		hpx_sqlite_bind_null(stmt);
	hpx_sqlite_bind_int(stmt, record->retention_ms);
	hpx_sqlite_bind_int(stmt, record->lease_until_ms);
	hpx_sqlite_bind_int(stmt, record->status);
	hpx_sqlite_bind_int(stmt, record->kept);
	hpx_sqlite_bind_int(stmt, record->when_lost);
	hpx_sqlite_bind_int(stmt, record->advanced);
	hpx_sqlite_bind_text(stmt, hpx_span_of(record->point));
}

void hpx_sqlite_description_bind(struct hpx_sqlite_statement *stmt,
				 const struct hpx_description *description)
{
	static const struct hpx_description nothing;
	const struct hpx_description *d = description != NULL ? description : &nothing;

	hpx_sqlite_bind_text(stmt, d->tenant);
	hpx_sqlite_bind_text(stmt, d->scope);
	hpx_sqlite_bind_text(stmt, d->key);
	hpx_sqlite_bind_text(stmt, d->method);
	hpx_sqlite_bind_text(stmt, d->path);
	hpx_sqlite_bind_text(stmt, d->route);
}

enum hpx_status hpx_sqlite_description_read(struct hpx_sqlite_statement *stmt, struct hpx_arena *arena,
					    struct hpx_description *ret_description)
{
	struct hpx_description d;
	struct hpx_span *const fields[] = { &d.tenant, &d.scope, &d.key,
					    &d.method, &d.path, &d.route };

	for (int i = 0; i < (int)(sizeof(fields) / sizeof(fields[0])); i++) {
		*fields[i] = hpx_arena_dup(
			arena, hpx_sqlite_bytes(stmt, HPX_SQLITE_DESCRIPTION_COLUMN + i));
		if (fields[i]->ptr == NULL)
			return HPX_NOMEM;
	}
	*ret_description = d;
	return HPX_OK;
}

static unsigned long crc_add(unsigned long crc, struct hpx_span bytes)
{
	return crc32_z(crc, (const unsigned char *)bytes.ptr, bytes.len);
}

/* The id is part of it, so that an answer can only be read as that of the
 * operation it was stored for (guarantee 5); the length, so that no byte can
 * change sides between headers and body. */
uint32_t hpx_sqlite_answer_crc(const struct hpx_operation_id *id, struct hpx_span headers,
			       struct hpx_span body)
{
	uint64_t len = headers.len;
	unsigned long crc = crc32_z(0, NULL, 0);
	unsigned char length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(len >> (8 * i));
	crc = crc32_z(crc, id->bytes, sizeof(id->bytes));
	crc = crc32_z(crc, length, sizeof(length));
	if (headers.len != 0)
		crc = crc_add(crc, headers);
	if (body.len != 0)
		crc = crc_add(crc, body);
	return (uint32_t)crc;
}

static enum hpx_status answer_of_row(struct hpx_sqlite_statement *stmt, const struct hpx_record *record,
				     struct hpx_answer **ret_answer)
{
	struct hpx_span headers = hpx_sqlite_bytes(stmt, 0);
	struct hpx_span body = hpx_sqlite_bytes(stmt, 1);
	struct hpx_answer *answer;

	if (headers.ptr == NULL || body.ptr == NULL ||
	    sqlite3_column_int64(stmt->handle, 2) !=
		    hpx_sqlite_answer_crc(&record->id, headers, body))
		return HPX_CORRUPT;
	answer = hpx_answer_new(record->status, record->kept, headers, body);
	if (answer == NULL)
		return HPX_NOMEM;
	*ret_answer = answer;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_answer_read(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
				       struct hpx_answer **ret_answer)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_ANSWER);
	struct hpx_answer *answer = NULL;
	/* Of an answer that is not kept there may be nothing, and that is whole. */
	enum hpx_status read = row->found.record.kept ? HPX_CORRUPT : HPX_OK;
	enum hpx_status ended;

	hpx_sqlite_bind_int(&stmt, row->seq);
	if (hpx_sqlite_next(&stmt))
		read = answer_of_row(&stmt, &row->found.record, &answer);
	ended = hpx_sqlite_end(&stmt);
	if (ended == HPX_OK && read == HPX_OK) {
		*ret_answer = answer;
		return HPX_OK;
	}
	hpx_answer_free(answer);
	return ended != HPX_OK ? ended : read;
}
