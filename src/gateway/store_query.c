/* The query thread: answers one query after the other. */
#include "gateway/store_query.h"

#include <stdlib.h>

#include "base/status.h"
#include "base/thread.h"

struct hpx_query_thread {
	struct hpx_store_reader *reader;
	struct hpx_thread thread;
	/* Under the thread's lock. */
	struct hpx_store_query *first;
	struct hpx_store_query **last;
};

/* Only the names go to the event loop: the body of a job may be large, and nobody
 * shows it here. */
static enum hpx_status copy_without_bodies(struct hpx_job_entry *all, struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_entry *jobs = NULL, **last = &jobs;

	for (const struct hpx_job_entry *e = all; e != NULL; e = e->next) {
		struct hpx_job brief = { .name = e->job.name, .target = e->job.target };
		*last = hpx_job_entry_new(&e->delivery, &brief);
		if (*last == NULL) {
			hpx_job_entry_free(jobs);
			return HPX_NOMEM;
		}
		(*last)->readable = e->readable;
		last = &(*last)->next;
	}
	*ret_jobs = jobs;
	return HPX_OK;
}

static enum hpx_status find_jobs(struct hpx_query_thread *queries, struct hpx_store_query *query)
{
	struct hpx_job_entry *all = NULL;
	enum hpx_status status = hpx_store_jobs(queries->reader, &query->query, &all);

	if (status == HPX_OK)
		status = copy_without_bodies(all, &query->jobs);
	hpx_job_entry_free(all);
	return status;
}

/* No row, and a store without such rows, are no errors. */
static enum hpx_status without_absent(enum hpx_status status)
{
	return status == HPX_NOT_FOUND || status == HPX_UNSUPPORTED ? HPX_OK : status;
}

static void run(struct hpx_query_thread *queries, struct hpx_store_query *query)
{
	query->status = HPX_OK;
	if (query->wants_jobs)
		query->status = without_absent(find_jobs(queries, query));
	if (query->status == HPX_OK && query->wants_provided)
		query->status = without_absent(
			hpx_store_provided(queries->reader, query->query.provider_id, query->provided,
					   sizeof(query->provided) / sizeof(query->provided[0]),
					   &query->provided_count));
	if (query->status == HPX_OK && query->wants_keyed)
		query->status = hpx_store_keyed(queries->reader, &query->key, &query->keyed);
	if (query->status == HPX_OK && query->wants_question)
		query->status = without_absent(
			hpx_store_question(queries->reader, &query->id, &query->question));
	query->done(query);
}

static struct hpx_store_query *take(struct hpx_query_thread *queries)
{
	struct hpx_store_query *query;

	hpx_thread_lock(&queries->thread);
	while (queries->first == NULL && !queries->thread.stopping)
		hpx_thread_wait(&queries->thread, INT64_MAX);
	query = queries->first;
	if (query != NULL) {
		queries->first = query->next;
		if (queries->first == NULL)
			queries->last = &queries->first;
	}
	hpx_thread_unlock(&queries->thread);
	return query;
}

static void *query_main(void *user)
{
	struct hpx_query_thread *queries = user;
	struct hpx_store_query *query;

	while ((query = take(queries)) != NULL)
		run(queries, query);
	return NULL;
}

enum hpx_status hpx_query_thread_start(struct hpx_store *store, struct hpx_query_thread **ret_queries)
{
	struct hpx_query_thread *queries = calloc(1, sizeof(*queries));
	enum hpx_status status = HPX_NOMEM;

	if (queries == NULL)
		return status;
	queries->last = &queries->first;
	if (hpx_thread_init(&queries->thread) != HPX_OK) {
		free(queries);
		return status;
	}
	status = hpx_store_reader_open(store, &queries->reader);
	if (status == HPX_OK)
		status = hpx_thread_run(&queries->thread, query_main, queries);
	if (status != HPX_OK) {
		hpx_query_thread_free(queries);
		return status;
	}
	*ret_queries = queries;
	return HPX_OK;
}

void hpx_query_thread_submit(struct hpx_query_thread *queries, struct hpx_store_query *query)
{
	bool stopping;

	HPX_ASSERT(query->wants_jobs || query->wants_keyed || query->wants_question);
	query->next = NULL;
	query->jobs = NULL;
	query->question = (struct hpx_next_question){ .at_ms = 0 };
	hpx_thread_lock(&queries->thread);
	stopping = queries->thread.stopping;
	if (!stopping) {
		*queries->last = query;
		queries->last = &query->next;
		hpx_thread_wake(&queries->thread);
	}
	hpx_thread_unlock(&queries->thread);
	if (stopping) {
		query->status = HPX_CLOSED;
		query->done(query);
	}
}

void hpx_query_thread_stop(struct hpx_query_thread *queries)
{
	if (queries != NULL)
		hpx_thread_stop(&queries->thread);
}

void hpx_query_thread_free(struct hpx_query_thread *queries)
{
	if (queries == NULL)
		return;
	HPX_ASSERT(queries->first == NULL);
	hpx_store_reader_close(queries->reader);
	hpx_thread_done(&queries->thread);
	free(queries);
}
