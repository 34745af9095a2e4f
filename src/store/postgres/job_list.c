/* Jobs and questions for people, for webhooks and for metrics. */
#include "base/span.h"
#include "store/postgres/outbox.h"

/* The narrowest index. */
static enum hpx_pg_statement statement_of(const struct hpx_job_query *query)
{
	if (query->number != 0)
		return HPX_PG_LIST_JOBS_BY_NUMBER;
	if (query->operation != NULL)
		return HPX_PG_LIST_JOBS_BY_OPERATION;
	if (query->provider_id.ptr != NULL)
		return HPX_PG_LIST_JOBS_BY_PROVIDER;
	return HPX_PG_LIST_JOBS;
}

/* Whatever is not text is nobody's name. */
static bool is_text(struct hpx_span name)
{
	return name.len == 0 ||
	       (hpx_utf8_valid(name) && memchr(name.ptr, '\0', name.len) == NULL);
}

static void add_query(struct hpx_pg_params *params, const struct hpx_job_query *query)
{
	static const struct hpx_span any = { NULL, 0 };

	hpx_pg_add_int8(params, query->state == HPX_JOB_STATE_COUNT ? -1 : (int)query->state);
	hpx_pg_add_bytes(params, query->target);
	hpx_pg_add_bytes(params, query->operation == NULL ? any :
							    hpx_span(query->operation->bytes,
								     sizeof(query->operation->bytes)));
	hpx_pg_add_bytes(params, query->provider_id);
	hpx_pg_add_int8(params, query->number);
	hpx_pg_add_int8(params, query->before);
	hpx_pg_add_int8(params, query->limit);
}

enum hpx_status hpx_pg_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
			    struct hpx_job_entry **ret_jobs)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_job_entry *jobs = NULL, **tail = &jobs;
	PGresult *result = NULL;
	enum hpx_status status;

	if (!is_text(query->target) || !is_text(query->provider_id)) {
		*ret_jobs = NULL;
		return HPX_OK;
	}
	add_query(&params, query);
	status = hpx_pg_ask(reader, statement_of(query), &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && status == HPX_OK; row++) {
		*tail = hpx_pg_job_read(result, row);
		if (*tail == NULL)
			status = HPX_NOMEM;
		else
			tail = &(*tail)->next;
	}
	PQclear(result);
	if (status == HPX_OK)
		*ret_jobs = jobs;
	else
		hpx_job_entry_free(jobs);
	return status;
}

enum hpx_status hpx_pg_question(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_next_question *ret_question)
{
	struct hpx_next_question question = { .at_ms = 0 };
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	int64_t person = 0;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
	status = hpx_pg_ask(reader, HPX_PG_NEXT_QUESTION, &params, &result);
	if (status != HPX_OK)
		return status;
	/* No row, or NULLs: nothing is scheduled. */
	if (PQntuples(result) == 1 && hpx_pg_int(result, 0, 1, 0, 1, &person))
		hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, &question.at_ms);
	PQclear(result);
	question.person = person == 1;
	*ret_question = question;
	return HPX_OK;
}

static uint64_t count_at(const PGresult *result, int column)
{
	int64_t value = 0;

	hpx_pg_int(result, 0, column, 0, INT64_MAX, &value);
	return (uint64_t)value;
}

enum hpx_status hpx_pg_count_jobs(struct hpx_store_reader *reader, struct hpx_store_stats *stats)
{
	PGresult *result = NULL;
	enum hpx_status status = hpx_pg_ask(reader, HPX_PG_COUNT_JOBS, NULL, &result);
	int column = 0;

	if (status != HPX_OK)
		return status;
	if (PQntuples(result) == 1) {
		for (int state = HPX_JOB_QUEUED; state < HPX_JOB_STATE_COUNT; state++)
			stats->jobs[state] = count_at(result, column++);
		stats->oldest_queued_ms = (int64_t)count_at(result, column++);
		int64_t lost_ms = (int64_t)count_at(result, column++);
		if (lost_ms != 0 &&
		    (stats->oldest_unknown_ms == 0 || lost_ms < stats->oldest_unknown_ms))
			stats->oldest_unknown_ms = lost_ms;
		stats->dead_operations = count_at(result, column++);
		stats->dead_jobs = count_at(result, column) + stats->jobs[HPX_JOB_DEAD];
	}
	PQclear(result);
	return HPX_OK;
}
