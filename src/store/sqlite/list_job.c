/* Jobs, and the next question about an unknown, for people. */
#include "store/sqlite/driver.h"

static struct hpx_sqlite_statement call_for(struct hpx_sqlite_db *db, const struct hpx_job_query *query)
{
	struct hpx_sqlite_statement stmt;

	if (query->operation != NULL) {
		stmt = hpx_sqlite_statement(db, HPX_SQL_JOBS_OF_OPERATION);
		hpx_sqlite_bind_blob(&stmt, query->operation->bytes,
				     sizeof(query->operation->bytes));
	} else if (query->provider_id.ptr != NULL) {
		stmt = hpx_sqlite_statement(db, HPX_SQL_JOBS_OF_PROVIDER);
		hpx_sqlite_bind_text(&stmt, query->provider_id);
	} else {
		stmt = hpx_sqlite_statement(db, query->number != 0 ? HPX_SQL_JOBS_NUMBERED :
								     HPX_SQL_JOBS);
		hpx_sqlite_bind_null(&stmt);
	}
	hpx_sqlite_bind_int(&stmt, query->state == HPX_JOB_STATE_COUNT ? 0 : (int)query->state);
	if (query->target.ptr != NULL)
		hpx_sqlite_bind_text(&stmt, query->target);
	else
		hpx_sqlite_bind_null(&stmt);
	hpx_sqlite_bind_int(&stmt, query->number);
	hpx_sqlite_bind_int(&stmt, query->before);
	if (query->provider_id.ptr != NULL)
		hpx_sqlite_bind_text(&stmt, query->provider_id);
	else
		hpx_sqlite_bind_null(&stmt);
	hpx_sqlite_bind_int(&stmt, query->limit);
	return stmt;
}

enum hpx_status hpx_sqlite_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
				struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_entry *list = NULL, **tail = &list;
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);
	bool whole = true;

	if (status != HPX_OK)
		return status;
	stmt = call_for(db, query);
	while (whole && hpx_sqlite_next(&stmt)) {
		*tail = hpx_sqlite_delivery_read(&stmt);
		whole = *tail != NULL;
		if (whole)
			tail = &(*tail)->next;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && !whole)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		*ret_jobs = list;
	else
		hpx_job_entry_free(list);
	return status;
}

enum hpx_status hpx_sqlite_question(struct hpx_store_reader *reader,
				    const struct hpx_operation_id *id,
				    struct hpx_next_question *ret_question)
{
	struct hpx_next_question question = { .at_ms = 0 };
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_NEXT_QUESTION);
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	if (hpx_sqlite_next(&stmt)) {
		question.at_ms = sqlite3_column_int64(stmt.handle, 0);
		question.person = sqlite3_column_int64(stmt.handle, 1) == 1;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_question = question;
	return status;
}
