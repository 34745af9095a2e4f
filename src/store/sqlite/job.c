/* What an application leaves with its operation: jobs, and the data of a
 * recovery point. Always inside the batch's transaction. */
#include "store/sqlite/driver.h"

static void bind_job(struct hpx_sqlite_call *call, const struct hpx_record *record,
		     const struct hpx_job *job)
{
	hpx_sqlite_bind_blob(call, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(call, record->first.bytes, sizeof(record->first.bytes));
	hpx_sqlite_bind_text(call, job->name);
	hpx_sqlite_bind_text(call, job->target);
	hpx_sqlite_bind_text(call, job->method);
	hpx_sqlite_bind_text(call, job->path);
	hpx_sqlite_bind_text(call, job->headers);
	hpx_sqlite_bind_blob(call, job->body.ptr, job->body.len);
}

static enum hpx_status compare(struct hpx_sqlite_db *db, const struct hpx_record *record,
			       const struct hpx_job *job, bool *ret_same)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_SAME_JOB);
	enum hpx_status status;
	bool same;

	bind_job(&call, record, job);
	same = hpx_sqlite_next(&call);
	status = hpx_sqlite_end(&call);
	if (status == HPX_OK)
		*ret_same = same;
	return status;
}

enum hpx_status hpx_sqlite_job_put(struct hpx_sqlite_db *db, const struct hpx_change *change,
				   struct hpx_store_op *op)
{
	struct hpx_sqlite_call call;
	enum hpx_status status;
	bool same = true;

	if (change->job == NULL)
		return HPX_OK;
	call = hpx_sqlite_call(db, HPX_SQL_PUT_JOB);
	bind_job(&call, &change->record, change->job);
	hpx_sqlite_bind_int(&call, change->at_ms);
	status = hpx_sqlite_finish(&call);
	if (status == HPX_OK && sqlite3_changes64(db->handle) == 0)
		status = compare(db, &change->record, change->job, &same);
	if (status == HPX_OK && !same)
		op->status = HPX_CONFLICT;
	return status;
}

enum hpx_status hpx_sqlite_recall(struct hpx_sqlite_db *db, int64_t seq, struct hpx_store_op *op)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_POINT_DATA);
	enum hpx_status kept = HPX_OK, status;

	hpx_sqlite_bind_int(&call, seq);
	hpx_buffer_init(&op->saved, HPX_POINT_DATA_MAX);
	if (hpx_sqlite_next(&call))
		kept = hpx_buffer_append(&op->saved, hpx_sqlite_bytes(&call, 0));
	status = hpx_sqlite_end(&call);
	if (kept != HPX_OK)
		op->status = kept;
	return status;
}
