/* What belongs to an operation besides its row: the jobs and the recovery point's data
 * that an application leaves, and the job of an operation that is delivered later.
 * Always inside the batch's transaction. */
#include "store/sqlite/driver.h"

static enum hpx_status compare(struct hpx_sqlite_db *db, const struct hpx_record *record,
			       const struct hpx_job *job, bool *ret_same)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_SAME_JOB);
	enum hpx_status status;
	bool same;

	hpx_sqlite_job_bind(&stmt, &record->id, &record->mark, job);
	same = hpx_sqlite_next(&stmt);
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_same = same;
	return status;
}

static enum hpx_status find_named(struct hpx_sqlite_db *db, const struct hpx_record *record,
				  struct hpx_span name, struct hpx_job_entry **ret_entry)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOB_NAMED);
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status;

	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(&stmt, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_bind_text(&stmt, name);
	if (hpx_sqlite_next(&stmt))
		entry = hpx_sqlite_delivery_read(&stmt);
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && entry == NULL)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		*ret_entry = entry;
	else
		hpx_job_entry_free(entry);
	return status;
}

static enum hpx_status replace(struct hpx_sqlite_db *db, const struct hpx_record *record,
			       const struct hpx_job *job)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_REPLACE_JOB);

	hpx_sqlite_job_bind(&stmt, &record->id, &record->mark, job);
	return hpx_sqlite_finish(&stmt);
}

/* Executed again: the job is there from the attempt before, and has another
 * attempt's request to deliver. */
static enum hpx_status requeue(struct hpx_sqlite_store *s, const struct hpx_change *change,
			       const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_outbox_change job_change = { .write_job = false };
	struct hpx_sqlite_outbox_rows rows = { .entry = NULL };
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status = find_named(&s->writer, &change->record, change->job->name, &entry);

	if (status == HPX_OK)
		status = hpx_sqlite_outbox_rows_of_job(s, entry, &rows);
	if (status == HPX_OK)
		op->status = rows.found.delivery.answers ?
				     hpx_outbox_requeue(&rows.found, now, &job_change) :
				     HPX_CONFLICT;
	if (status == HPX_OK && op->status == HPX_OK && job_change.write_job)
		status = replace(&s->writer, &change->record, change->job);
	if (status == HPX_OK && op->status == HPX_OK)
		status = hpx_sqlite_outbox_rows_write(s, &rows, &job_change, now->wall_ms, op);
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

static enum hpx_status insert(struct hpx_sqlite_db *db, const struct hpx_change *change,
			      bool answers, bool *ret_new)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_JOB);
	enum hpx_status status;

	hpx_sqlite_job_bind(&stmt, &change->record.id, &change->record.mark, change->job);
	hpx_sqlite_bind_int(&stmt, change->at_ms);
	hpx_sqlite_bind_int(&stmt, answers);
	status = hpx_sqlite_finish(&stmt);
	if (status == HPX_OK)
		*ret_new = sqlite3_changes64(db->handle) != 0;
	return status;
}

enum hpx_status hpx_sqlite_job_put(struct hpx_sqlite_store *s, const struct hpx_change *change,
				   const struct hpx_moment *now, struct hpx_store_op *op)
{
	bool answers = op->verb == HPX_VERB_RESERVE;
	bool new_one = true, same = true;
	enum hpx_status status;

	if (change->job == NULL)
		return HPX_OK;
	HPX_ASSERT(change->job == hpx_op_job(op));
	status = insert(&s->writer, change, answers, &new_one);
	if (status != HPX_OK || new_one)
		return status;
	if (answers)
		return requeue(s, change, now, op);
	status = compare(&s->writer, &change->record, change->job, &same);
	if (status == HPX_OK && !same)
		op->status = HPX_CONFLICT;
	return status;
}

/* Only an aside row has a recovery point. */
enum hpx_status hpx_sqlite_read_point(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
				      struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt;
	enum hpx_status kept = HPX_OK, status;

	HPX_ASSERT(op->verb == HPX_VERB_READ_POINT);
	hpx_buffer_init(&op->read_point.data, HPX_POINT_DATA_MAX);
	if (row->place != HPX_SQLITE_ASIDE)
		return HPX_OK;
	stmt = hpx_sqlite_statement(db, HPX_SQL_POINT_DATA);
	hpx_sqlite_bind_int(&stmt, row->aside);
	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span data = hpx_sqlite_bytes(&stmt, 0);
		uint32_t crc = data.ptr == NULL ? 0 :
						  hpx_sqlite_bytes_crc(&row->found.record.id, data, HPX_SPAN(""));
		kept = crc == row->point_crc ? hpx_buffer_append(&op->read_point.data, data) : HPX_CORRUPT;
	}
	status = hpx_sqlite_end(&stmt);
	if (kept != HPX_OK)
		op->status = kept;
	return status;
}
