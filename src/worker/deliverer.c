/* The deliverer's thread: claims, hands over, waits until there is room or
 * something new. It never waits for the store or for a target: the claim comes
 * back by the committer's call, the answers by the engine's. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/thread.h"
#include "worker/claim.h"
#include "worker/outgoing.h"

#define POLL_DEFAULT_MS 250
#define ARENA_BYTES_MAX 65536

/* ---- what others tell ---- */

/* With the lock held. */
static void wake(struct hpx_deliverer *d)
{
	d->woken = true;
	pthread_cond_broadcast(&d->changed);
}

void hpx_deliverer_wake(struct hpx_deliverer *deliverer)
{
	pthread_mutex_lock(&deliverer->lock);
	wake(deliverer);
	pthread_mutex_unlock(&deliverer->lock);
}

bool hpx_deliverer_is_stopping(struct hpx_deliverer *deliverer)
{
	pthread_mutex_lock(&deliverer->lock);
	bool stopping = deliverer->stopping;
	pthread_mutex_unlock(&deliverer->lock);
	return stopping;
}

static void tell_breaker(const struct hpx_lane *lane, enum hpx_breaker_state before)
{
	enum hpx_breaker_state now = lane->breaker.state;

	if (now != before && (now == HPX_BREAKER_OPEN || now == HPX_BREAKER_CLOSED))
		hpx_log(now == HPX_BREAKER_OPEN ? HPX_LOG_WARN : HPX_LOG_INFO,
			now == HPX_BREAKER_OPEN ? "target_down" : "target_up", "target=%.*s",
			HPX_SPAN_ARG(lane->target->name));
}

void hpx_deliverer_freed(struct hpx_deliverer *d, struct hpx_lane *lane,
			 const struct hpx_egress_request *ended)
{
	enum hpx_breaker_state before;

	pthread_mutex_lock(&d->lock);
	before = lane->breaker.state;
	HPX_ASSERT(lane->under_way > 0 && d->under_way > 0);
	lane->under_way--;
	d->under_way--;
	if (ended != NULL && hpx_sending_blames(ended))
		hpx_breaker_failed(&lane->breaker, &lane->target->breaker, hpx_clock_boot_ms());
	else if (ended != NULL)
		hpx_breaker_succeeded(&lane->breaker);
	tell_breaker(lane, before);
	wake(d);
	pthread_mutex_unlock(&d->lock);
}

/* The next job of the same operation may be sent now. */
void hpx_deliverer_ended(struct hpx_deliverer *d)
{
	pthread_mutex_lock(&d->lock);
	HPX_ASSERT(d->alive > 0);
	d->alive--;
	wake(d);
	pthread_mutex_unlock(&d->lock);
}

/* ---- what was claimed ---- */

static struct hpx_lane *lane_of(struct hpx_deliverer *d, struct hpx_span target)
{
	for (size_t i = 0; i < d->lane_count; i++)
		if (hpx_span_eq(d->lanes[i].target->name, target))
			return &d->lanes[i];
	return NULL;
}

static void take_slot(struct hpx_deliverer *d, struct hpx_lane *lane)
{
	pthread_mutex_lock(&d->lock);
	lane->under_way++;
	d->under_way++;
	d->alive++;
	/* Makes it the probe of a breaker that is not closed. One that opened
	 * since the claim was planned lets this one through all the same: it is
	 * claimed, and giving it back would cost as much as finding out. */
	(void)hpx_breaker_may_send(&lane->breaker, &lane->target->breaker, hpx_clock_boot_ms());
	pthread_mutex_unlock(&d->lock);
}

/* Its budget was used up, or its target does not remember it any more. */
static void tell_unsent(const struct hpx_lane *lane, const struct hpx_job_entry *entry)
{
	bool dead = entry->delivery.state == HPX_JOB_DEAD;

	if (lane != NULL && entry->delivery.state != HPX_JOB_SENDING)
		hpx_counter_add(&lane->counters->results[dead ? HPX_JOB_RESULT_dead :
								HPX_JOB_RESULT_lost],
				1);
	hpx_log(HPX_LOG_WARN, "job_not_sent", "job=%lld target=%.*s state=%s",
		(long long)entry->delivery.number, HPX_SPAN_ARG(entry->job.target),
		hpx_job_state_name(entry->delivery.state));
}

/* Takes the entry. NULL where it is not to be sent, or cannot be for want of
 * memory: then it is the sweeper's. */
static struct hpx_sending *begin_sending(struct hpx_deliverer *d, struct hpx_job_entry *entry)
{
	struct hpx_lane *lane = lane_of(d, entry->job.target);
	struct hpx_sending *sending = NULL;

	if (lane != NULL && entry->readable && entry->delivery.state == HPX_JOB_SENDING)
		sending = hpx_sending_new(d, lane, entry);
	if (sending != NULL) {
		take_slot(d, lane);
		return sending;
	}
	tell_unsent(lane, entry);
	hpx_job_entry_free(entry);
	return NULL;
}

static struct hpx_job_entry *pop(struct hpx_job_entry **list)
{
	struct hpx_job_entry *entry = *list;

	*list = entry->next;
	entry->next = NULL;
	return entry;
}

static void return_all(struct hpx_deliverer *d, struct hpx_job_entry *list, const char *why)
{
	while (list != NULL) {
		struct hpx_sending *sending = begin_sending(d, pop(&list));
		if (sending != NULL)
			hpx_sending_return(sending, why);
	}
}

static bool any_keeps_status_only(const struct hpx_settings *settings)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (settings->routes[i].policy.deliver == HPX_DELIVER_ASYNC &&
		    settings->routes[i].policy.keep == HPX_KEEP_STATUS)
			return true;
	return false;
}

/* The answer's owner decides what of it is kept; a job does not know its route,
 * so the operation is asked, where any route would make a difference. */
static bool keeps_status_only(struct hpx_deliverer *d, const struct hpx_settings *settings,
			      const struct hpx_delivery *delivery)
{
	struct hpx_arena arena;
	struct hpx_entry entry;
	bool status_only = false;

	if (!delivery->answers || !any_keeps_status_only(settings))
		return false;
	hpx_arena_init(&arena, ARENA_BYTES_MAX);
	if (hpx_store_find(d->reader, &delivery->operation, &arena, &entry, NULL) == HPX_OK) {
		const struct hpx_route *route =
			hpx_settings_find_route(settings, entry.description.route);
		status_only = route == NULL || route->policy.keep == HPX_KEEP_STATUS;
	} else {
		status_only = true; /* what may not be kept must not be */
	}
	hpx_arena_done(&arena);
	return status_only;
}

static void send_all(struct hpx_deliverer *d, struct hpx_job_entry *list,
		     const struct hpx_settings *settings, int64_t claim_ms)
{
	while (list != NULL) {
		struct hpx_sending *sending = begin_sending(d, pop(&list));
		if (sending == NULL)
			continue;
		sending->status_only =
			keeps_status_only(d, settings, &sending->entry->delivery);
		hpx_sending_begin(sending, claim_ms + hpx_lane_lease_ms(sending->lane) / 2,
				  settings->response_body_bytes_max);
	}
}

/* ---- claiming ---- */

static void tell_failed_claim(const struct hpx_store_op *op)
{
	if (op->status != HPX_OK && op->status != HPX_CLOSED)
		hpx_log(HPX_LOG_ERROR, "claim_failed", "problem=%s", hpx_status_name(op->status));
}

static struct hpx_job_entry *take_claimed(struct hpx_deliverer *d)
{
	struct hpx_job_entry *jobs = d->claim.claim.jobs;

	d->claim.claim.jobs = NULL;
	return jobs;
}

/* On the committer's thread. */
static void claimed(struct hpx_store_op *op)
{
	struct hpx_deliverer *d = HPX_CONTAINER(op, struct hpx_deliverer, claim);

	if (op->claim.jobs != NULL)
		HPX_CRASH_POINT(job_claimed);
	pthread_mutex_lock(&d->lock);
	if (d->thread_over) {
		pthread_mutex_unlock(&d->lock);
		return_all(d, take_claimed(d), "hapax stops");
		pthread_mutex_lock(&d->lock);
	}
	d->claiming = false;
	d->claim_back = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

/* With the lock held; false where there is no room for anything. */
static bool submit_claim(struct hpx_deliverer *d)
{
	size_t count = hpx_claim_plan(d);

	if (count == 0)
		return false;
	d->claim = (struct hpx_store_op){ .verb = HPX_VERB_CLAIM,
					  .claim.claims = d->claims,
					  .claim.claim_count = count,
					  .actor = HPX_SPAN("deliverer"),
					  .done = claimed };
	/* By it, a claim that has to be run again finds what it took. */
	hpx_token_make(&d->claim.token);
	d->claim_ms = hpx_clock_boot_ms();
	d->claiming = true;
	d->claim_back = false;
	pthread_mutex_unlock(&d->lock);
	hpx_committer_submit(d->options.committer, &d->claim);
	pthread_mutex_lock(&d->lock);
	return true;
}

/* With the lock held, which is let go meanwhile. */
static void use_claim(struct hpx_deliverer *d)
{
	struct hpx_settings *settings = hpx_settings_ref(d->current);
	struct hpx_job_entry *jobs = take_claimed(d);
	bool late = hpx_clock_boot_ms() - d->claim_ms > HPX_CLAIM_STORE_MS;

	pthread_mutex_unlock(&d->lock);
	tell_failed_claim(&d->claim);
	if (late)
		return_all(d, jobs, "the store took too long for the claim");
	else
		send_all(d, jobs, settings, d->claim_ms);
	hpx_settings_unref(settings);
	pthread_mutex_lock(&d->lock);
}

static void wait_for_news(struct hpx_deliverer *d)
{
	int64_t until_ms = hpx_clock_boot_ms() + d->options.poll_ms;

	while (!d->stopping && !d->woken && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&d->changed, &d->lock, until_ms);
}

static void *run(void *user)
{
	struct hpx_deliverer *d = user;
	struct hpx_job_entry *orphans = NULL;

	pthread_mutex_lock(&d->lock);
	while (!d->stopping) {
		d->woken = false;
		if (submit_claim(d)) {
			while (!d->claim_back && !d->stopping)
				hpx_cond_wait_until(&d->changed, &d->lock, INT64_MAX);
			if (d->claim_back && !d->stopping)
				use_claim(d);
		}
		wait_for_news(d);
	}
	d->thread_over = true;
	if (d->claim_back)
		orphans = take_claimed(d);
	pthread_mutex_unlock(&d->lock);
	return_all(d, orphans, "hapax stops");
	return NULL;
}

/* ---- start and stop ---- */

static enum hpx_status make_lanes(struct hpx_deliverer *d)
{
	const struct hpx_settings *settings = d->settings;
	size_t count = settings->target_count;

	d->lanes = calloc(count + 1, sizeof(*d->lanes));
	d->claims = calloc(count + 1, sizeof(*d->claims));
	if (d->lanes == NULL || d->claims == NULL)
		return HPX_NOMEM;
	d->lane_count = count;
	for (size_t i = 0; i < count; i++) {
		d->lanes[i].target = &settings->targets[i];
		d->lanes[i].counters = &d->options.counters->targets[i];
	}
	/* Each target has a slot at least. */
	d->sendings_max = settings->deliveries_max > count ? settings->deliveries_max :
							     (unsigned)count + (count == 0);
	return HPX_OK;
}

static void dispose(struct hpx_deliverer *d)
{
	hpx_egress_free(d->egress);
	if (d->reader != NULL)
		hpx_store_reader_close(d->reader);
	hpx_settings_unref(d->current);
	hpx_settings_unref(d->settings);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d->claims);
	free(d->lanes);
	free(d);
}

static enum hpx_status start_engine(struct hpx_deliverer *d)
{
	struct hpx_egress_options options = { .running_max = d->sendings_max };
	enum hpx_status status = hpx_egress_start(&options, &d->egress);

	if (status != HPX_OK)
		return status;
	status = hpx_thread_start(&d->thread, run, d);
	if (status != HPX_OK)
		hpx_egress_stop(d->egress, 0);
	return status;
}

enum hpx_status hpx_deliverer_start(const struct hpx_deliverer_options *options,
				    struct hpx_deliverer **ret_deliverer)
{
	struct hpx_deliverer *d = calloc(1, sizeof(*d));
	enum hpx_status status;

	if (d == NULL)
		return HPX_NOMEM;
	d->options = *options;
	if (d->options.poll_ms <= 0)
		d->options.poll_ms = POLL_DEFAULT_MS;
	d->settings = hpx_settings_ref(options->settings);
	d->current = hpx_settings_ref(options->settings);
	pthread_mutex_init(&d->lock, NULL);
	status = hpx_cond_init(&d->changed);
	if (status == HPX_OK)
		status = make_lanes(d);
	if (status == HPX_OK)
		status = hpx_store_reader_open(options->store, &d->reader);
	if (status == HPX_OK)
		status = start_engine(d);
	if (status == HPX_OK)
		*ret_deliverer = d;
	else
		dispose(d);
	return status;
}

void hpx_deliverer_reload(struct hpx_deliverer *d, struct hpx_settings *settings)
{
	struct hpx_settings *before;

	pthread_mutex_lock(&d->lock);
	before = d->current;
	d->current = hpx_settings_ref(settings);
	pthread_mutex_unlock(&d->lock);
	hpx_settings_unref(before);
}

void hpx_deliverer_stop(struct hpx_deliverer *d, int64_t grace_ms)
{
	if (d == NULL)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	hpx_egress_stop(d->egress, grace_ms);
}

void hpx_deliverer_free(struct hpx_deliverer *d)
{
	if (d == NULL)
		return;
	pthread_mutex_lock(&d->lock);
	while (d->claiming || d->alive > 0)
		hpx_cond_wait_until(&d->changed, &d->lock, INT64_MAX);
	pthread_mutex_unlock(&d->lock);
	dispose(d);
}
