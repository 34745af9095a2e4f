/* An operation in memory: read from its columns, decided on by one op after the other,
 * and changed, to be written once at the end of its batch.
 *
 * A row is hostile until its lengths, types and invariants are found right; one that is
 * not counts as unknown. */
#include <stdlib.h>

#include "store/postgres/driver.h"

/* The columns of HPX_PG_SQL_RECORD, in order. */
enum {
	COLUMN_ID,
	COLUMN_REST,
	COLUMN_TOKEN,
	COLUMN_MARK,
	COLUMN_RECIPE,
	COLUMN_CREATED,
	COLUMN_OWNER,
	COLUMN_RETENTION,
	COLUMN_FINGERPRINT,
	COLUMN_TENANT_HASH,
	COLUMN_LEASE_UNTIL,
	COLUMN_EXPIRES,
	COLUMN_CHANGED,
	COLUMN_ATTEMPT,
	COLUMN_STATUS,
	COLUMN_WHEN_LOST,
	COLUMN_STATE,
	COLUMN_KEPT,
	COLUMN_ADVANCED,
	COLUMN_LAST_ERROR,
	COLUMN_POINT,
	COLUMN_TOMBSTONE,
	COLUMN_REVISION,
	COLUMN_RENEWED_TOKEN,
	COLUMN_RENEWED_UNTIL,
	COLUMN_COUNT
};
_Static_assert(COLUMN_COUNT == HPX_PG_DESCRIPTION_COLUMN, "columns follow each other");

/* A quarter of the range: sums of two times never overflow. */
#define TIME_MAX (INT64_MAX / 4)

static bool read_names(const PGresult *result, int row, struct hpx_record *record)
{
	bool ok = hpx_pg_id_read(result, row, &record->id);

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
	record->last_error = hpx_last_error_by_name(hpx_pg_bytes(result, row, COLUMN_LAST_ERROR));
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
	ok &= hpx_pg_int(result, row, COLUMN_EXPIRES, 0, TIME_MAX, &record->expires_ms);
	ok &= hpx_pg_int(result, row, COLUMN_RETENTION, 0, TIME_MAX, &record->retention_ms);
	ok &= hpx_pg_int(result, row, COLUMN_TOMBSTONE, 0, TIME_MAX, &record->tombstone_ms);
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

	*ret_row = (struct hpx_pg_row){ .stored = true, .found = { .exists = true } };
	ok = read_names(result, row, record);
	ok &= read_small(result, row, record);
	ok &= read_part(result, row, record);
	ok &= read_times(result, row, record);
	ok &= read_renewal(result, row, ret_row);
	ok &= hpx_pg_int(result, row, COLUMN_REVISION, INT32_MIN, INT32_MAX, &ret_row->revision);
	ret_row->id = record->id;
	ret_row->found.readable = ok && hpx_record_valid(record);
}

bool hpx_pg_id_read(const PGresult *result, int row, struct hpx_operation_id *ret_id)
{
	return hpx_pg_fixed(result, row, COLUMN_ID, ret_id->bytes, HPX_PG_HALF) &&
	       hpx_pg_fixed(result, row, COLUMN_REST, ret_id->bytes + HPX_PG_HALF, HPX_PG_HALF);
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

/* ---- the stored answer ---- */

#define LENGTH_BYTES 4
#define ANSWER_BYTES_MIN (HPX_SHA256_SIZE + LENGTH_BYTES)

/* SHA-256, since the SQL functions must be able to make it too (hapax.pack_answer). The
 * id is part of it, so that an answer can only be read as that of the operation it was
 * stored for (guarantee 5); the length, so that no byte can change sides between headers
 * and body. */
static enum hpx_status digest_of(const struct hpx_operation_id *id, struct hpx_span stored,
				 uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, hpx_span(id->bytes, sizeof(id->bytes)));
	hpx_sha256_add(&hash, stored);
	return hpx_sha256_done(&hash, ret_digest);
}

static uint32_t read_length(const char *bytes)
{
	uint32_t length = 0;

	for (int i = 0; i < LENGTH_BYTES; i++)
		length = length << 8 | (unsigned char)bytes[i];
	return length;
}

static enum hpx_status unpack(struct hpx_span stored, const struct hpx_record *record,
			      struct hpx_answer **ret_answer)
{
	struct hpx_span parts = hpx_span_skip(stored, HPX_SHA256_SIZE);
	uint8_t wanted[HPX_SHA256_SIZE];
	struct hpx_answer *answer;

	if (digest_of(&record->id, parts, wanted) != HPX_OK)
		return HPX_NOMEM;
	if (memcmp(stored.ptr, wanted, sizeof(wanted)) != 0)
		return HPX_CORRUPT;
	size_t length = read_length(parts.ptr);
	parts = hpx_span_skip(parts, LENGTH_BYTES);
	if (length > parts.len)
		return HPX_CORRUPT;
	answer = hpx_answer_new(record->status, record->kept, hpx_span(parts.ptr, length),
				hpx_span_skip(parts, length));
	if (answer == NULL)
		return HPX_NOMEM;
	*ret_answer = answer;
	return HPX_OK;
}

/* Of an answer that is not kept there may be nothing, and that is whole. */
enum hpx_status hpx_pg_answer_read(const PGresult *result, int row, int column,
				   const struct hpx_record *record,
				   struct hpx_answer **ret_answer)
{
	struct hpx_span stored = hpx_pg_bytes(result, row, column);

	*ret_answer = NULL;
	if (stored.ptr == NULL)
		return record->kept ? HPX_CORRUPT : HPX_OK;
	return stored.len < ANSWER_BYTES_MIN ? HPX_CORRUPT : unpack(stored, record, ret_answer);
}

void hpx_pg_put_answer(struct hpx_pg_columns *columns, const struct hpx_operation_id *id,
		       const struct hpx_answer *answer)
{
	struct hpx_change change = { .answer = answer };
	uint8_t digest[HPX_SHA256_SIZE];
	char length[LENGTH_BYTES];
	struct hpx_sha256 hash;

	if (answer == NULL) {
		hpx_pg_put_null(columns);
		return;
	}
	for (int i = 0; i < LENGTH_BYTES; i++)
		length[i] = (char)(answer->headers.len >> (24 - 8 * i));
	const struct hpx_span parts[] = { hpx_span(digest, sizeof(digest)),
					  hpx_span(length, sizeof(length)), answer->headers,
					  hpx_change_body(&change) };
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, hpx_span(id->bytes, sizeof(id->bytes)));
	for (int i = 1; i < 4; i++)
		hpx_sha256_add(&hash, parts[i]);
	hpx_pg_put_parts(columns, parts, 4, hpx_sha256_done(&hash, digest));
}

/* ---- the decision on one op and one row ----
 *
 * The same for both paths: whether the slow path read the row or the fast path found it.
 * Nothing is written or sent here. */

bool hpx_pg_needs_lock(const struct hpx_store_op *op)
{
	return op->verb != HPX_VERB_RESERVE && op->verb != HPX_VERB_FIND &&
	       op->verb != HPX_VERB_RENEW;
}

bool hpx_pg_begins(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE && op->status == HPX_OK &&
	       (op->decision.kind == HPX_DECISION_EXECUTE ||
		op->decision.kind == HPX_DECISION_EXECUTE_AGAIN);
}

/* What a copy of the op would write. */
static enum hpx_write try_on(const struct hpx_pg_row *row, struct hpx_store_op *trial,
			     const struct hpx_moment *now)
{
	struct hpx_change change;

	hpx_change_make(&row->found, trial, now, false, &change);
	return change.write;
}

bool hpx_pg_would_write(const struct hpx_pg_row *row, const struct hpx_store_op *op,
			const struct hpx_moment *now)
{
	struct hpx_store_op trial = *op;

	return !row->taken && try_on(row, &trial, now) != HPX_WRITE_NOTHING;
}

bool hpx_pg_would_only_tell(const struct hpx_pg_row *row, const struct hpx_store_op *op,
			    const struct hpx_moment *now)
{
	struct hpx_store_op trial = *op;

	return try_on(row, &trial, now) == HPX_WRITE_NOTHING && !hpx_pg_begins(&trial);
}

static bool is_busy(const struct hpx_pg_row *row)
{
	return row->stored && !row->locked;
}

/* Somebody holds the row: whatever it is about to become, the reservation is
 * not ours to make. */
static void count_as_alive(const struct hpx_pg_row *row, struct hpx_store_op *op,
			   struct hpx_change *change)
{
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_IN_PROGRESS,
					      .record = row->found.record };
	*change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
}

/* The id is another operation's: nothing is executed under this key, and nothing of that
 * operation is told. */
static void count_as_mismatch(const struct hpx_pg_row *row, struct hpx_store_op *op,
			      struct hpx_change *change)
{
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_MISMATCH,
					      .record = { .id = row->id } };
	*change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
}

static void copy_answer(const struct hpx_pg_row *row, struct hpx_store_op *op)
{
	const struct hpx_answer *from = row->answer != NULL ? row->answer : row->kept;
	struct hpx_change change = { .answer = from };

	if (from == NULL)
		return;
	op->reserve.replay = hpx_answer_new(op->decision.record.status, from->kept, from->headers,
					    hpx_change_body(&change));
	if (op->reserve.replay == NULL)
		op->status = HPX_NOMEM;
}

/* A replay needs its bytes: where they cannot be read, the outcome counts as
 * unknown, and nothing is executed. */
static void load_replay(const struct hpx_pg_row *row, struct hpx_store_op *op)
{
	HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
	if (op->decision.kind != HPX_DECISION_REPLAY)
		return;
	if (row->answer == NULL && row->kept_status == HPX_CORRUPT)
		hpx_decision_lose_answer(&op->decision);
	else if (row->answer == NULL && row->kept_status != HPX_OK)
		op->status = row->kept_status;
	else
		copy_answer(row, op);
}

/* Before a person's word counts, the answer is part of what must be readable. */
static struct hpx_found found_by(const struct hpx_pg_row *row, const struct hpx_store_op *op)
{
	struct hpx_found found = row->found;

	if (hpx_verb_has(op->verb, HPX_TRAIT_REMOVES) && row->answer == NULL &&
	    row->kept_status == HPX_CORRUPT)
		found.readable = false;
	return found;
}

void hpx_pg_decide(const struct hpx_pg_row *row, struct hpx_store_op *op,
		   const struct hpx_moment *now, struct hpx_change *ret_change)
{
	struct hpx_found found = found_by(row, op);

	*ret_change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
	if (is_busy(row) && hpx_pg_needs_lock(op)) {
		op->status = HPX_BUSY;
		return;
	}
	hpx_change_make(&found, op, now, false, ret_change);
	if (row->taken && op->status == HPX_OK && op->verb == HPX_VERB_RESERVE)
		count_as_mismatch(row, op, ret_change);
	if (op->status == HPX_OK && hpx_op_job(op) != NULL && !hpx_pg_job_is_text(hpx_op_job(op)))
		op->status = HPX_INVALID;
	if (op->status == HPX_OK && op->verb == HPX_VERB_RESERVE) {
		if (is_busy(row) && ret_change->write != HPX_WRITE_NOTHING)
			count_as_alive(row, op, ret_change);
		load_replay(row, op);
	}
	if (op->status != HPX_OK)
		*ret_change = (struct hpx_change){ .write = HPX_WRITE_NOTHING };
}

/* ---- the rows of a batch ---- */

enum hpx_status hpx_pg_batch_init(struct hpx_pg_batch *batch, size_t rows, size_t events)
{
	*batch = (struct hpx_pg_batch){ .row_max = rows, .event_max = events };
	batch->rows = calloc(rows + 1, sizeof(*batch->rows));
	batch->event = calloc(events + 1, sizeof(*batch->event));
	if (batch->rows != NULL && batch->event != NULL)
		return HPX_OK;
	hpx_pg_batch_done(batch);
	return HPX_NOMEM;
}

void hpx_pg_batch_done(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->row_count; i++)
		hpx_answer_free(batch->rows[i].kept);
	free(batch->rows);
	free(batch->event);
	*batch = (struct hpx_pg_batch){ .row_count = 0 };
}

void hpx_pg_batch_add(struct hpx_pg_batch *batch, const struct hpx_operation_id *id)
{
	HPX_ASSERT(batch->row_count < batch->row_max);
	batch->rows[batch->row_count++] = (struct hpx_pg_row){ .id = *id };
}

static int by_id(const void *a, const void *b)
{
	const struct hpx_pg_row *x = a;
	const struct hpx_pg_row *y = b;

	return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* Sorted, because two gateways that insert the same ids in different orders
 * would wait for each other. */
void hpx_pg_batch_sort(struct hpx_pg_batch *batch)
{
	size_t count = 0;

	qsort(batch->rows, batch->row_count, sizeof(*batch->rows), by_id);
	for (size_t i = 0; i < batch->row_count; i++)
		if (count == 0 || by_id(&batch->rows[count - 1], &batch->rows[i]) != 0)
			batch->rows[count++] = batch->rows[i];
	batch->row_count = count;
}

struct hpx_pg_row *hpx_pg_batch_find(struct hpx_pg_batch *batch,
				     const struct hpx_operation_id *id)
{
	struct hpx_pg_row wanted = { .id = *id };

	return bsearch(&wanted, batch->rows, batch->row_count, sizeof(*batch->rows), by_id);
}

static int by_half(const void *a, const void *b)
{
	const struct hpx_pg_row *x = a;
	const struct hpx_pg_row *y = b;

	return memcmp(x->id.bytes, y->id.bytes, HPX_PG_HALF);
}

/* Two operations of which the first halves of the ids agree are never seen, and must
 * never be taken for one. */
void hpx_pg_batch_take(struct hpx_pg_batch *batch, const PGresult *result, int row)
{
	struct hpx_pg_row read, *at;

	hpx_pg_row_read(result, row, &read);
	at = bsearch(&read, batch->rows, batch->row_count, sizeof(*batch->rows), by_half);
	while (at != NULL && at > batch->rows && by_half(at - 1, &read) == 0)
		at--;
	for (; at != NULL && at < batch->rows + batch->row_count && by_half(at, &read) == 0; at++) {
		at->taken = by_id(at, &read) != 0;
		at->stored = !at->taken;
		at->found = at->taken ? (struct hpx_found){ .exists = false } : read.found;
		at->renewed = read.renewed;
		at->revision = read.revision;
	}
}

static void drop_answer(struct hpx_pg_row *row)
{
	row->answer = NULL;
	row->answer_gone = row->stored;
	hpx_answer_free(row->kept);
	row->kept = NULL;
	row->kept_status = HPX_OK;
}

/* The record holds the later end of the lease itself now. */
static void take_record(struct hpx_pg_row *row, const struct hpx_change *change)
{
	row->found = (struct hpx_found){ .exists = change->write != HPX_WRITE_REMOVE,
					 .readable = true,
					 .record = change->record };
	row->changed = true;
	row->lease = false;
	row->lease_gone = row->renewed;
}

static void note_event(struct hpx_pg_batch *batch, const struct hpx_change *change,
		       const struct hpx_store_op *op)
{
	HPX_ASSERT(batch->event_count < batch->event_max);
	batch->event[batch->event_count++] = (struct hpx_pg_event){ .record = change->record,
								    .op = op,
								    .what = change->event,
								    .reason = change->reason };
}

void hpx_pg_row_change(struct hpx_pg_batch *batch, struct hpx_pg_row *row,
		       const struct hpx_change *change, const struct hpx_store_op *op)
{
	switch (change->write) {
	case HPX_WRITE_NOTHING:
		return;
	case HPX_WRITE_LEASE:
		row->found.record = change->record;
		row->lease = true;
		return;
	case HPX_WRITE_INSERT:
	case HPX_WRITE_REPLACE:
		row->told |= change->write == HPX_WRITE_REPLACE;
		drop_answer(row);
		row->described = op;
		break;
	case HPX_WRITE_REMOVE:
		row->told |= op->verb == HPX_VERB_FORGET && row->found.readable;
		drop_answer(row);
		row->described = NULL;
		row->job = NULL;
		row->route_key = NULL;
		break;
	case HPX_WRITE_UPDATE:
		if (change->answer != NULL)
			row->answer = change->answer;
		break;
	}
	if (change->job != NULL)
		row->job = change->job;
	if (change->route_key != NULL)
		row->route_key = change->route_key;
	take_record(row, change);
	if (change->event != NULL)
		note_event(batch, change, op);
}

bool hpx_pg_row_dirty(const struct hpx_pg_row *row)
{
	return row->changed || row->lease;
}
