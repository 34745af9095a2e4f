/* The reconciler's thread: takes what is due, begins its questions, waits. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/thread.h"
#include "worker/question.h"

#define EVERY_DEFAULT_MS 1000
/* Beside the longest question: for the store, before it and after. */
#define STORE_MS 20000

/* ---- the list of questions ---- */

/* Of the same service; a URL is compared as it is written. */
static unsigned count_at(const struct hpx_reconciler *r, const char *url)
{
	unsigned count = 0;

	for (const struct hpx_question *q = r->questions; q != NULL; q = q->next)
		count += q->asked_url != NULL && strcmp(q->asked_url, url) == 0;
	return count;
}

bool hpx_reconciler_enlist(struct hpx_reconciler *r, struct hpx_question *question)
{
	bool taken;

	pthread_mutex_lock(&r->lock);
	taken = question->asked_url == NULL ||
		count_at(r, question->asked_url) < HPX_QUESTIONS_EACH_MAX;
	if (taken) {
		question->next = r->questions;
		if (question->next != NULL)
			question->next->prev = question;
		r->questions = question;
		r->question_count++;
	}
	pthread_mutex_unlock(&r->lock);
	return taken;
}

void hpx_reconciler_strike(struct hpx_reconciler *r, struct hpx_question *question)
{
	pthread_mutex_lock(&r->lock);
	if (question->prev != NULL)
		question->prev->next = question->next;
	else
		r->questions = question->next;
	if (question->next != NULL)
		question->next->prev = question->prev;
	pthread_mutex_unlock(&r->lock);
}

void hpx_reconciler_ended(struct hpx_reconciler *r)
{
	pthread_mutex_lock(&r->lock);
	HPX_ASSERT(r->question_count > 0);
	r->question_count--;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

bool hpx_reconciler_is_stopping(struct hpx_reconciler *r)
{
	pthread_mutex_lock(&r->lock);
	bool stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping;
}

/* ---- looking ---- */

static int64_t longer(int64_t ms, const struct hpx_reconcile_settings *how)
{
	return how->given && how->probe.given && how->probe.caller.timeout_ms > ms ?
		       how->probe.caller.timeout_ms : ms;
}

static int64_t longest_question_ms(const struct hpx_settings *settings)
{
	int64_t ms = longer(0, &settings->fallback.reconcile);

	for (size_t i = 0; i < settings->route_count; i++)
		ms = longer(ms, &settings->routes[i].reconcile);
	for (size_t i = 0; i < settings->target_count; i++)
		ms = longer(ms, &settings->targets[i].reconcile);
	return ms;
}

/* On the committer's thread. */
static void looked(struct hpx_store_op *op)
{
	struct hpx_reconciler *r = HPX_CONTAINER(op, struct hpx_reconciler, look);

	pthread_mutex_lock(&r->lock);
	r->looking = false;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* With the lock held, which is let go meanwhile. False: it stops, or there is
 * no room. */
static bool look(struct hpx_reconciler *r)
{
	if (r->question_count >= HPX_QUESTIONS_MAX)
		return false;
	r->look = (struct hpx_store_op){
		.verb = HPX_VERB_UNSETTLED,
		.limit = HPX_QUESTIONS_MAX - r->question_count,
		.lease_ms = longest_question_ms(r->settings) + STORE_MS,
		.actor = HPX_SPAN("reconciler"),
		.done = looked,
	};
	r->looking = true;
	pthread_mutex_unlock(&r->lock);
	hpx_committer_submit(r->options.committer, &r->look);
	pthread_mutex_lock(&r->lock);
	while (r->looking && !r->stopping)
		hpx_cond_wait_until(&r->changed, &r->lock, INT64_MAX);
	return !r->stopping;
}

static unsigned begin_all(struct hpx_reconciler *r, struct hpx_settings *settings)
{
	struct hpx_unsettled *list = r->look.unsettled;
	unsigned count = 0;

	r->look.unsettled = NULL;
	while (list != NULL) {
		struct hpx_unsettled *about = list;
		list = list->next;
		about->next = NULL;
		hpx_question_begin(r, settings, about);
		count++;
	}
	return count;
}

/* With the lock held. True: there may be more. */
static bool look_and_ask(struct hpx_reconciler *r)
{
	struct hpx_settings *settings;
	bool more;

	if (!look(r))
		return false;
	settings = hpx_settings_ref(r->settings);
	pthread_mutex_unlock(&r->lock);
	if (r->look.status != HPX_OK && r->look.status != HPX_CLOSED)
		hpx_log(HPX_LOG_ERROR, "reconcile_failed", "problem=%s",
			hpx_status_name(r->look.status));
	more = begin_all(r, settings) >= r->look.limit;
	hpx_settings_unref(settings);
	pthread_mutex_lock(&r->lock);
	return more;
}

static void *run(void *user)
{
	struct hpx_reconciler *r = user;

	pthread_mutex_lock(&r->lock);
	while (!r->stopping) {
		if (look_and_ask(r))
			continue;
		int64_t until_ms = hpx_clock_boot_ms() + r->options.every_ms;
		while (!r->stopping && hpx_clock_boot_ms() < until_ms)
			hpx_cond_wait_until(&r->changed, &r->lock, until_ms);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- start and stop ---- */

static void dispose(struct hpx_reconciler *r)
{
	hpx_egress_free(r->egress);
	if (r->reader != NULL)
		hpx_store_reader_close(r->reader);
	hpx_unsettled_free(r->look.unsettled);
	hpx_settings_unref(r->settings);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static enum hpx_status start_engine(struct hpx_reconciler *r)
{
	struct hpx_egress_options options = { .running_max = HPX_QUESTIONS_MAX };
	enum hpx_status status = hpx_egress_start(&options, &r->egress);

	if (status != HPX_OK)
		return status;
	status = hpx_thread_start(&r->thread, run, r);
	if (status != HPX_OK)
		hpx_egress_stop(r->egress, 0);
	return status;
}

enum hpx_status hpx_reconciler_start(const struct hpx_reconciler_options *options,
				     struct hpx_reconciler **ret_reconciler)
{
	struct hpx_reconciler *r = calloc(1, sizeof(*r));
	enum hpx_status status;

	if (r == NULL)
		return HPX_NOMEM;
	r->options = *options;
	if (r->options.every_ms <= 0)
		r->options.every_ms = EVERY_DEFAULT_MS;
	r->settings = hpx_settings_ref(options->settings);
	pthread_mutex_init(&r->lock, NULL);
	status = hpx_cond_init(&r->changed);
	if (status == HPX_OK)
		status = hpx_store_reader_open(options->store, &r->reader);
	if (status == HPX_OK)
		status = start_engine(r);
	if (status == HPX_OK)
		*ret_reconciler = r;
	else
		dispose(r);
	return status;
}

void hpx_reconciler_reload(struct hpx_reconciler *r, struct hpx_settings *settings)
{
	struct hpx_settings *before;

	pthread_mutex_lock(&r->lock);
	before = r->settings;
	r->settings = hpx_settings_ref(settings);
	pthread_mutex_unlock(&r->lock);
	hpx_settings_unref(before);
}

void hpx_reconciler_stop(struct hpx_reconciler *r)
{
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	hpx_egress_stop(r->egress, 0);
}

void hpx_reconciler_free(struct hpx_reconciler *r)
{
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	while (r->looking || r->question_count > 0)
		hpx_cond_wait_until(&r->changed, &r->lock, INT64_MAX);
	pthread_mutex_unlock(&r->lock);
	dispose(r);
}
