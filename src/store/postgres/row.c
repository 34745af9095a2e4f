/* Between columns and records. A row is hostile until its lengths, types and
 * invariants are found right; one that is not counts as unknown. */
#include "store/postgres/driver.h"

/* The columns of HPX_PG_SQL_RECORD, in order. */
enum {
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
_Static_assert(COLUMN_COUNT == HPX_PG_DESCRIPTION_COLUMN, "columns follow each other");

/* A quarter of the range: sums of two times never overflow. */
#define TIME_MAX (INT64_MAX / 4)

static bool read_names(const PGresult *result, int row, struct hpx_record *record)
{
	bool ok = hpx_pg_fixed(result, row, COLUMN_ID, record->id.bytes, sizeof(record->id.bytes));

	ok &= hpx_pg_fixed(result, row, COLUMN_TOKEN, record->token.bytes,
			   sizeof(record->token.bytes));
	ok &= hpx_pg_fixed(result, row, COLUMN_MARK, record->mark.bytes,
			   sizeof(record->mark.bytes));
	ok &= hpx_pg_fixed(result, row, COLUMN_FINGERPRINT, record->fingerprint,
			   sizeof(record->fingerprint));
	ok &= hpx_pg_fixed(result, row, COLUMN_RECIPE, record->recipe.bytes,
			   sizeof(record->recipe.bytes));
	ok &= hpx_pg_fixed(result, row, COLUMN_TENANT_HASH, record->tenant,
			   sizeof(record->tenant));
	return ok;
}

static bool read_small(const PGresult *result, int row, struct hpx_record *record)
{
	int64_t value = 0;
	bool ok = hpx_pg_int(result, row, COLUMN_STATE, HPX_STATE_IN_PROGRESS,
			     HPX_STATE_COUNT - 1, &value);

	record->state = ok ? (enum hpx_state)value : HPX_STATE_UNKNOWN;
	value = 0;
	ok &= hpx_pg_int(result, row, COLUMN_ATTEMPT, 1, UINT32_MAX, &value);
	record->attempt = (uint32_t)value;
	value = 0;
	ok &= hpx_pg_int(result, row, COLUMN_STATUS, 0, 999, &value);
	record->status = (uint32_t)value;
	value = 0;
	ok &= hpx_pg_int(result, row, COLUMN_KEPT, 0, 1, &value);
	record->kept = value == 1;
	return ok;
}

static bool read_part(const PGresult *result, int row, struct hpx_record *record)
{
	struct hpx_span point = hpx_pg_bytes(result, row, COLUMN_POINT);
	int64_t value = 0;
	bool ok = hpx_pg_int(result, row, COLUMN_WHEN_LOST, 0, HPX_WHEN_LOST_COUNT - 1, &value);

	record->when_lost = (enum hpx_when_lost)value;
	value = 0;
	ok &= hpx_pg_int(result, row, COLUMN_ADVANCED, 0, 1, &value);
	record->advanced = value == 1;
	if (point.ptr == NULL || (point.len > 0 && !hpx_point_valid(point)))
		return false;
	memcpy(record->point, point.ptr, point.len);
	return ok;
}

static bool read_times(const PGresult *result, int row, struct hpx_record *record)
{
	int64_t owner = 0;
	bool ok = hpx_pg_int(result, row, COLUMN_OWNER, INT64_MIN, INT64_MAX, &owner);

	record->owner = (uint64_t)owner;
	ok &= hpx_pg_int(result, row, COLUMN_CREATED, 0, TIME_MAX, &record->created_ms);
	ok &= hpx_pg_int(result, row, COLUMN_CHANGED, 0, TIME_MAX, &record->changed_ms);
	if (!PQgetisnull(result, row, COLUMN_EXPIRES))
		ok &= hpx_pg_int(result, row, COLUMN_EXPIRES, 1, TIME_MAX, &record->expires_ms);
	ok &= hpx_pg_int(result, row, COLUMN_RETENTION, 0, TIME_MAX, &record->retention_ms);
	ok &= hpx_pg_int(result, row, COLUMN_LEASE_UNTIL, -TIME_MAX, TIME_MAX,
			 &record->lease_until_ms);
	return ok;
}

/* A renewal counts for the lease whose token it carries, and no other: an old
 * owner's heartbeat must not extend a new owner's lease. */
static bool read_renewal(const PGresult *result, int row, struct hpx_pg_row *ret_row)
{
	struct hpx_record *record = &ret_row->found.record;
	struct hpx_token token;
	int64_t until_ms;

	ret_row->renewed = !PQgetisnull(result, row, COLUMN_RENEWED_UNTIL);
	if (!ret_row->renewed)
		return true;
	if (!hpx_pg_fixed(result, row, COLUMN_RENEWED_TOKEN, token.bytes, sizeof(token.bytes)) ||
	    !hpx_pg_int(result, row, COLUMN_RENEWED_UNTIL, -TIME_MAX, TIME_MAX, &until_ms))
		return false;
	if (hpx_token_eq(&token, &record->token) && until_ms > record->lease_until_ms)
		record->lease_until_ms = until_ms;
	return true;
}

void hpx_pg_row_read(const PGresult *result, int row, struct hpx_pg_row *ret_row)
{
	struct hpx_record *record = &ret_row->found.record;
	bool ok;

	*ret_row = (struct hpx_pg_row){ .found = { .exists = true } };
	ok = read_names(result, row, record);
	ok &= read_small(result, row, record);
	ok &= read_part(result, row, record);
	ok &= read_times(result, row, record);
	ok &= read_renewal(result, row, ret_row);
	ret_row->found.readable = ok && hpx_record_valid(record);
}

bool hpx_pg_id_read(const PGresult *result, int row, struct hpx_operation_id *ret_id)
{
	return hpx_pg_fixed(result, row, COLUMN_ID, ret_id->bytes, sizeof(ret_id->bytes));
}

enum hpx_status hpx_pg_description_read(const PGresult *result, int row, struct hpx_arena *arena,
					struct hpx_description *ret_description)
{
	struct hpx_description d;
	struct hpx_span *const fields[] = { &d.tenant, &d.scope, &d.key,
					    &d.method, &d.path, &d.route };

	for (int i = 0; i < (int)(sizeof(fields) / sizeof(fields[0])); i++) {
		*fields[i] = hpx_arena_dup(
			arena, hpx_pg_bytes(result, row, HPX_PG_DESCRIPTION_COLUMN + i));
		if (fields[i]->ptr == NULL)
			return HPX_NOMEM;
	}
	*ret_description = d;
	return HPX_OK;
}

/* SHA-256, since the SQL functions must be able to make it too. The id is part
 * of it, so that an answer can only be read as that of the operation it was
 * stored for (guarantee 5); the length, so that no byte can change sides
 * between headers and body. */
enum hpx_status hpx_pg_answer_digest(const struct hpx_operation_id *id, struct hpx_span headers,
				     struct hpx_span body, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, hpx_span(id->bytes, sizeof(id->bytes)));
	hpx_sha256_part(&hash, headers);
	hpx_sha256_add(&hash, body);
	return hpx_sha256_done(&hash, ret_digest);
}

enum hpx_status hpx_pg_answer_read(const PGresult *result, int row, int column,
				   const struct hpx_record *record,
				   struct hpx_answer **ret_answer)
{
	struct hpx_span headers = hpx_pg_bytes(result, row, column);
	struct hpx_span body = hpx_pg_bytes(result, row, column + 1);
	struct hpx_span digest = hpx_pg_bytes(result, row, column + 2);
	uint8_t wanted[HPX_SHA256_SIZE];
	struct hpx_answer *answer;

	if (headers.ptr == NULL || body.ptr == NULL)
		return HPX_CORRUPT;
	if (hpx_pg_answer_digest(&record->id, headers, body, wanted) != HPX_OK)
		return HPX_NOMEM;
	if (!hpx_span_eq(digest, hpx_span(wanted, sizeof(wanted))))
		return HPX_CORRUPT;
	answer = hpx_answer_new(record->status, record->kept, headers, body);
	if (answer == NULL)
		return HPX_NOMEM;
	*ret_answer = answer;
	return HPX_OK;
}
