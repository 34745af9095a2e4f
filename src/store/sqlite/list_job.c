/* Jobs, and the next question about an unknown, for people. */
#include "store/sqlite/driver.h"

static struct hpx_sqlite_call call_for(struct hpx_sqlite_db *db, const struct hpx_job_query *query)
{
	struct hpx_sqlite_call call;

	if (query->operation != NULL) {
		call = hpx_sqlite_call(db, HPX_SQL_JOBS_OF_OPERATION);
		hpx_sqlite_bind_blob(&call, query->operation->bytes,
				     sizeof(query->operation->bytes));
	} else if (query->provider_id.ptr != NULL) {
		call = hpx_sqlite_call(db, HPX_SQL_JOBS_OF_PROVIDER);
		hpx_sqlite_bind_text(&call, query->provider_id);
	} else {
		call = hpx_sqlite_call(db, query->number != 0 ? HPX_SQL_JOBS_NUMBERED :
								HPX_SQL_JOBS);
		hpx_sqlite_bind_null(&call);
	}
	hpx_sqlite_bind_int(&call, query->state == HPX_JOB_STATE_COUNT ? 0 : (int)query->state);
	if (query->target.ptr != NULL)
		hpx_sqlite_bind_text(&call, query->target);
	else
		hpx_sqlite_bind_null(&call);
	hpx_sqlite_bind_int(&call, query->number);
	hpx_sqlite_bind_int(&call, query->before);
	if (query->provider_id.ptr != NULL)
		hpx_sqlite_bind_text(&call, query->provider_id);
	else
		hpx_sqlite_bind_null(&call);
	hpx_sqlite_bind_int(&call, query->limit);
	return call;
}

enum hpx_status hpx_sqlite_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
				struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_entry *list = NULL, **tail = &list;
	struct hpx_sqlite_call call;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);
	bool whole = true;

	if (status != HPX_OK)
		return status;
	call = call_for(db, query);
	while (whole && hpx_sqlite_next(&call)) {
		*tail = hpx_sqlite_delivery_read(&call);
		whole = *tail != NULL;
		if (whole)
			tail = &(*tail)->next;
	}
	status = hpx_sqlite_end(&call);
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
	struct hpx_sqlite_call call;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	call = hpx_sqlite_call(db, HPX_SQL_NEXT_QUESTION);
	hpx_sqlite_bind_blob(&call, id->bytes, sizeof(id->bytes));
	if (hpx_sqlite_next(&call)) {
		question.at_ms = sqlite3_column_int64(call.stmt, 0);
		question.person = sqlite3_column_int64(call.stmt, 1) == 1;
	}
	status = hpx_sqlite_end(&call);
	if (status == HPX_OK)
		*ret_question = question;
	return status;
}
