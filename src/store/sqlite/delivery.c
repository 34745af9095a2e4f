/* Between columns and jobs. A row is hostile until its lengths, types and
 * invariants are found right; one that is not counts as unknown, and is never
 * sent. */
#include "store/sqlite/driver.h"

/* The columns of HPX_SQL_JOB, in order. */
enum {
	COLUMN_NUMBER,
	COLUMN_OPERATION,
	COLUMN_MARK,
	COLUMN_STATE,
	COLUMN_ANSWERS,
	COLUMN_UNSURE,
	COLUMN_ATTEMPT,
	COLUMN_BUDGET,
	COLUMN_STATUS,
	COLUMN_TOKEN,
	COLUMN_OWNER,
	COLUMN_CREATED,
	COLUMN_CHANGED,
	COLUMN_DUE,
	COLUMN_LEASE_UNTIL,
	COLUMN_FIRST_SENT,
	COLUMN_RESEND_UNTIL,
	COLUMN_PROVIDER_ID,
	COLUMN_NAME,
	COLUMN_TARGET,
	COLUMN_METHOD,
	COLUMN_PATH,
	COLUMN_HEADERS,
	COLUMN_BODY,
};

static bool read_names(struct hpx_sqlite_statement *stmt, struct hpx_delivery *d)
{
	struct hpx_span provider_id = hpx_sqlite_bytes(stmt, COLUMN_PROVIDER_ID);
	bool ok = hpx_sqlite_fixed(stmt, COLUMN_OPERATION, d->operation.bytes,
				   sizeof(d->operation.bytes));

	ok &= hpx_sqlite_fixed(stmt, COLUMN_MARK, d->mark.bytes, sizeof(d->mark.bytes));
	ok &= hpx_sqlite_fixed(stmt, COLUMN_TOKEN, d->token.bytes, sizeof(d->token.bytes));
	if (provider_id.ptr == NULL || provider_id.len >= sizeof(d->provider_id))
		return false;
	memcpy(d->provider_id, provider_id.ptr, provider_id.len);
	return ok;
}

static bool read_small(struct hpx_sqlite_statement *stmt, struct hpx_delivery *d)
{
	int64_t state = 0, answers = 0, unsure = 0, attempt = 0, budget = 0, status = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_STATE, HPX_JOB_QUEUED, HPX_JOB_STATE_COUNT - 1,
				 &state);

	ok &= hpx_sqlite_int(stmt, COLUMN_ANSWERS, 0, 1, &answers);
	ok &= hpx_sqlite_int(stmt, COLUMN_UNSURE, 0, 1, &unsure);
	ok &= hpx_sqlite_int(stmt, COLUMN_ATTEMPT, 0, UINT32_MAX, &attempt);
	ok &= hpx_sqlite_int(stmt, COLUMN_BUDGET, 0, UINT32_MAX, &budget);
	ok &= hpx_sqlite_int(stmt, COLUMN_STATUS, 0, 999, &status);
	d->state = (enum hpx_job_state)state;
	d->answers = answers == 1;
	d->unsure = unsure == 1;
	d->attempt = (uint32_t)attempt;
	d->budget = (uint32_t)budget;
	d->status = (uint32_t)status;
	return ok;
}

static bool read_times(struct hpx_sqlite_statement *stmt, struct hpx_delivery *d)
{
	int64_t owner = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_OWNER, INT64_MIN, INT64_MAX, &owner);

	d->owner = (uint64_t)owner;
	ok &= hpx_sqlite_time(stmt, COLUMN_CREATED, 0, &d->created_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_CHANGED, 0, &d->changed_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_DUE, 0, &d->due_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_LEASE_UNTIL, -HPX_SQLITE_TIME_MAX, &d->lease_until_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_FIRST_SENT, 0, &d->first_sent_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_RESEND_UNTIL, 0, &d->resend_until_ms);
	return ok;
}

struct hpx_job_entry *hpx_sqlite_delivery_read(struct hpx_sqlite_statement *stmt)
{
	struct hpx_delivery delivery = { .number = sqlite3_column_int64(stmt->handle, COLUMN_NUMBER) };
	struct hpx_job job = {
		.name = hpx_sqlite_bytes(stmt, COLUMN_NAME),
		.target = hpx_sqlite_bytes(stmt, COLUMN_TARGET),
		.method = hpx_sqlite_bytes(stmt, COLUMN_METHOD),
		.path = hpx_sqlite_bytes(stmt, COLUMN_PATH),
		.headers = hpx_sqlite_bytes(stmt, COLUMN_HEADERS),
		.body = hpx_sqlite_bytes(stmt, COLUMN_BODY),
	};
	bool ok = delivery.number > 0 && hpx_job_fault(&job) == NULL;
	struct hpx_job_entry *entry;

	ok &= read_names(stmt, &delivery);
	ok &= read_small(stmt, &delivery);
	ok &= read_times(stmt, &delivery);
	ok = ok && hpx_job_valid(&delivery);
	if (!ok)
		delivery.state = HPX_JOB_UNKNOWN;
	entry = hpx_job_entry_new(&delivery, &job);
	if (entry != NULL)
		entry->readable = ok;
	return entry;
}

enum hpx_status hpx_sqlite_delivery_update(struct hpx_sqlite_db *db,
					   const struct hpx_delivery *delivery)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_UPDATE_JOB);

	hpx_sqlite_bind_int(&stmt, delivery->number);
	hpx_sqlite_bind_int(&stmt, delivery->state);
	hpx_sqlite_bind_int(&stmt, delivery->unsure);
	hpx_sqlite_bind_int(&stmt, delivery->attempt);
	hpx_sqlite_bind_int(&stmt, delivery->budget);
	hpx_sqlite_bind_int(&stmt, delivery->status);
	hpx_sqlite_bind_blob(&stmt, delivery->token.bytes, sizeof(delivery->token.bytes));
	hpx_sqlite_bind_int(&stmt, (int64_t)delivery->owner);
	hpx_sqlite_bind_int(&stmt, delivery->changed_ms);
	hpx_sqlite_bind_int(&stmt, delivery->due_ms);
	hpx_sqlite_bind_int(&stmt, delivery->lease_until_ms);
	hpx_sqlite_bind_int(&stmt, delivery->first_sent_ms);
	hpx_sqlite_bind_int(&stmt, delivery->resend_until_ms);
	hpx_sqlite_bind_text(&stmt, hpx_span_of(delivery->provider_id));
	return hpx_sqlite_finish(&stmt);
}

void hpx_sqlite_job_bind(struct hpx_sqlite_statement *stmt, const struct hpx_operation_id *operation,
			 const struct hpx_mark *mark, const struct hpx_job *job)
{
	hpx_sqlite_bind_blob(stmt, operation->bytes, sizeof(operation->bytes));
	hpx_sqlite_bind_blob(stmt, mark->bytes, sizeof(mark->bytes));
	hpx_sqlite_bind_text(stmt, job->name);
	hpx_sqlite_bind_text(stmt, job->target);
	hpx_sqlite_bind_text(stmt, job->method);
	hpx_sqlite_bind_text(stmt, job->path);
	hpx_sqlite_bind_text(stmt, job->headers);
	hpx_sqlite_bind_blob(stmt, job->body.ptr, job->body.len);
}
