/* The looker's thread: takes one look after the other. */
#include "gateway/looker.h"

#include <stdlib.h>

#include "base/thread.h"

struct hpx_looker {
	struct hpx_store_reader *reader;
	struct hpx_thread thread;
	/* Under the thread's lock. */
	struct hpx_look *first;
	struct hpx_look **last;
};

/* A job's body may be large, and nobody here shows it: only what is needed
 * goes to a loop, and several of them are never held for long. */
static enum hpx_status take_bodies_off(struct hpx_job_entry *all, struct hpx_job_entry **ret_jobs)
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

static enum hpx_status look_at_jobs(struct hpx_looker *looker, struct hpx_look *look)
{
	struct hpx_job_entry *all = NULL;
	enum hpx_status status = hpx_store_jobs(looker->reader, &look->query, &all);

	if (status == HPX_OK)
		status = take_bodies_off(all, &look->jobs);
	hpx_job_entry_free(all);
	return status;
}

/* Nothing there, and a store that keeps no such thing, are no trouble. */
static enum hpx_status without_absent(enum hpx_status status)
{
	return status == HPX_NOT_FOUND || status == HPX_UNSUPPORTED ? HPX_OK : status;
}

static void run(struct hpx_looker *looker, struct hpx_look *look)
{
	look->status = HPX_OK;
	if (look->wants_jobs)
		look->status = without_absent(look_at_jobs(looker, look));
	if (look->status == HPX_OK && look->wants_question)
		look->status = without_absent(
			hpx_store_question(looker->reader, &look->id, &look->question));
	look->done(look);
}

static struct hpx_look *take(struct hpx_looker *looker)
{
	struct hpx_look *look;

	hpx_thread_lock(&looker->thread);
	while (looker->first == NULL && !looker->thread.stopping)
		hpx_thread_wait(&looker->thread, INT64_MAX);
	look = looker->first;
	if (look != NULL) {
		looker->first = look->next;
		if (looker->first == NULL)
			looker->last = &looker->first;
	}
	hpx_thread_unlock(&looker->thread);
	return look;
}

static void *looker_main(void *user)
{
	struct hpx_looker *looker = user;
	struct hpx_look *look;

	while ((look = take(looker)) != NULL)
		run(looker, look);
	return NULL;
}

enum hpx_status hpx_looker_start(struct hpx_store *store, struct hpx_looker **ret_looker)
{
	struct hpx_looker *looker = calloc(1, sizeof(*looker));
	enum hpx_status status = HPX_NOMEM;

	if (looker == NULL)
		return status;
	looker->last = &looker->first;
	if (hpx_thread_init(&looker->thread) != HPX_OK) {
		free(looker);
		return status;
	}
	status = hpx_store_reader_open(store, &looker->reader);
	if (status == HPX_OK)
		status = hpx_thread_run(&looker->thread, looker_main, looker);
	if (status != HPX_OK) {
		hpx_looker_free(looker);
		return status;
	}
	*ret_looker = looker;
	return HPX_OK;
}

void hpx_looker_submit(struct hpx_looker *looker, struct hpx_look *look)
{
	bool stopping;

	look->next = NULL;
	look->jobs = NULL;
	look->question = (struct hpx_next_question){ .at_ms = 0 };
	hpx_thread_lock(&looker->thread);
	stopping = looker->thread.stopping;
	if (!stopping) {
		*looker->last = look;
		looker->last = &look->next;
		hpx_thread_wake(&looker->thread);
	}
	hpx_thread_unlock(&looker->thread);
	if (stopping) {
		look->status = HPX_CLOSED;
		look->done(look);
	}
}

void hpx_looker_stop(struct hpx_looker *looker)
{
	if (looker != NULL)
		hpx_thread_stop(&looker->thread);
}

void hpx_looker_free(struct hpx_looker *looker)
{
	if (looker == NULL)
		return;
	hpx_store_reader_close(looker->reader);
	hpx_thread_done(&looker->thread);
	free(looker);
}
