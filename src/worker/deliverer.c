/* The deliverer's thread: claims jobs, hands them to the engine, waits until there
 * is room or something new. The thread never waits for the store or for a target:
 * the claim comes back by the committer's call, the answers by the engine's.
 *
 *   IDLE ─▶ SUBMITTED ─▶ BACK ─▶ IDLE     hpx_claim_state
 *   submit_claim, claimed, use_claim      move ─▶ function
 *
 *  1. One claim at a time.
 *  2. deliverer->under_way is the sum over all queues; under_way <= alive, and
 *     under_way <= outgoing_max. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/outgoing.h"

#define POLL_DEFAULT_MS 250
/* Holds the description of one operation. */
#define ARENA_BYTES_MAX 65536
/* The store gets this long for a claim. Jobs that come back later are returned:
 * too much of their lease is over. */
#define CLAIM_STORE_MS 10000

/* ---- news for the thread ---- */

/* With the lock held. */
static void wake(struct hpx_deliverer *d)
{
	d->woken = true;
	hpx_thread_wake(&d->thread);
}

void hpx_deliverer_wake(struct hpx_deliverer *deliverer)
{
	hpx_thread_lock(&deliverer->thread);
	wake(deliverer);
	hpx_thread_unlock(&deliverer->thread);
}

/* Whether this end tells against the target's health. */
static bool blames_target(const struct hpx_egress_request *request)
{
	return request->end != HPX_EGRESS_ANSWERED || request->status >= 500 ||
	       request->status == 429;
}

static void log_breaker(const struct hpx_target_queue *queue, enum hpx_breaker_state before)
{
	enum hpx_breaker_state now = queue->breaker.state;

	if (now != before && (now == HPX_BREAKER_OPEN || now == HPX_BREAKER_CLOSED))
		hpx_log(now == HPX_BREAKER_OPEN ? HPX_LOG_WARN : HPX_LOG_INFO,
			now == HPX_BREAKER_OPEN ? "target_down" : "target_up", "target=%.*s",
			HPX_SPAN_ARG(queue->target->name));
}

void hpx_deliverer_slot_free(struct hpx_deliverer *d, struct hpx_target_queue *queue,
			     const struct hpx_egress_request *ended)
{
	enum hpx_breaker_state before;

	hpx_thread_lock(&d->thread);
	before = queue->breaker.state;
	HPX_ASSERT(queue->under_way > 0 && d->under_way > 0);
	queue->under_way--;
	d->under_way--;
	if (ended != NULL && blames_target(ended))
		hpx_breaker_failed(&queue->breaker, &queue->target->breaker, hpx_clock_boot_ms());
	else if (ended != NULL)
		hpx_breaker_succeeded(&queue->breaker);
	log_breaker(queue, before);
	wake(d);
	hpx_thread_unlock(&d->thread);
}

/* The next job of the same operation may be sent now. */
void hpx_deliverer_ended(struct hpx_deliverer *d)
{
	hpx_thread_lock(&d->thread);
	HPX_ASSERT(d->alive > 0);
	d->alive--;
	wake(d);
	hpx_thread_unlock(&d->thread);
}

/* ---- how much is claimed ---- */

/* A lease is as long as a delivery can take, plus twice the time for the name, the
 * connection and the store. The first half holds the claim's way back and the
 * connection, so that the first byte leaves within it; after the answer there is
 * time left to store the result. */
static int64_t lease_ms_of(const struct hpx_target_queue *queue)
{
	const struct hpx_caller *caller = &queue->target->caller;

	return 2 * (caller->connect_timeout_ms + CLAIM_STORE_MS) + caller->timeout_ms;
}

/* How many jobs the slots and the breaker let through. Only looks at the breaker: a
 * job becomes its probe in take_slot. */
static unsigned let_through(const struct hpx_target_queue *queue, int64_t now_ms)
{
	unsigned concurrency = queue->target->concurrency;

	if (queue->under_way >= concurrency)
		return 0;
	if (queue->breaker.state != HPX_BREAKER_CLOSED)
		return hpx_breaker_ready_ms(&queue->breaker) <= now_ms ? 1 : 0;
	return concurrency - queue->under_way;
}

/* Targets without a job under way: one slot is kept for each. */
static unsigned idle_queues(const struct hpx_deliverer *d)
{
	unsigned count = 0;

	for (size_t i = 0; i < d->queue_count; i++)
		count += d->queues[i].under_way == 0;
	return count;
}

/* How many more jobs may be in memory: bounded by the slots, and by the results
 * that the store has not taken yet. */
static unsigned remaining(const struct hpx_deliverer *d)
{
	HPX_ASSERT(d->under_way <= d->outgoing_max);
	unsigned slots = d->outgoing_max - d->under_way;
	unsigned unstored_max = 2 * d->outgoing_max;
	unsigned unstored = d->alive < unstored_max ? unstored_max - d->alive : 0;

	return slots < unstored ? slots : unstored;
}

/* Fills d->claims; how many. With the lock held. For each target as much as it has
 * free slots, as its breaker lets through, and as all targets may have together. */
static size_t plan_claims(struct hpx_deliverer *d)
{
	int64_t now_ms = hpx_clock_boot_ms();
	unsigned left = remaining(d);
	unsigned idle = idle_queues(d);
	size_t count = 0;

	for (size_t i = 0; i < d->queue_count; i++) {
		const struct hpx_target_queue *queue = &d->queues[i];
		unsigned others = idle - (queue->under_way == 0 && idle > 0);
		unsigned room = let_through(queue, now_ms);
		unsigned most = left > others ? left - others : 0;

		if (queue->under_way == 0) {
			idle = others;
			if (most == 0 && left > 0)
				most = 1;
		}
		if (room > most)
			room = most;
		if (room == 0)
			continue;
		left -= room;
		d->claims[count++] = (struct hpx_claim){
			.target = queue->target->name,
			.room = room,
			.lease_ms = lease_ms_of(queue),
			.honours_keys_ms = queue->target->honours_keys_ms,
			.attempts_max = queue->target->attempts_max,
		};
	}
	HPX_ASSERT(count <= d->queue_count);
	return count;
}

/* ---- what was claimed ---- */

static struct hpx_target_queue *queue_of(struct hpx_deliverer *d, struct hpx_span target)
{
	for (size_t i = 0; i < d->queue_count; i++)
		if (hpx_span_eq(d->queues[i].target->name, target))
			return &d->queues[i];
	return NULL;
}

static void take_slot(struct hpx_deliverer *d, struct hpx_target_queue *queue)
{
	hpx_thread_lock(&d->thread);
	queue->under_way++;
	d->under_way++;
	d->alive++;
	HPX_ASSERT(queue->under_way <= d->under_way && d->under_way <= d->alive);
	/* Makes the job the probe of a breaker that is not closed. A breaker that
	 * opened since the claim was planned lets this job through all the same: it
	 * is claimed, and returning it would cost as much as finding out. */
	(void)hpx_breaker_may_send(&queue->breaker, &queue->target->breaker, hpx_clock_boot_ms());
	hpx_thread_unlock(&d->thread);
}

/* The store gave the job back unclaimed: its attempts are used up, or its target
 * does not remember the key any more. */
static void log_unsent(const struct hpx_target_queue *queue, const struct hpx_job_entry *entry)
{
	bool dead = entry->delivery.state == HPX_JOB_DEAD;

	if (queue != NULL && entry->delivery.state != HPX_JOB_SENDING)
		hpx_counter_add(&queue->counters->results[dead ? HPX_JOB_RESULT_dead :
								 HPX_JOB_RESULT_lost],
				1);
	hpx_log(HPX_LOG_WARN, "job_not_sent", "job=%lld target=%.*s state=%s",
		(long long)entry->delivery.number, HPX_SPAN_ARG(entry->job.target),
		hpx_job_state_name(entry->delivery.state));
}

/* Takes the entry over. NULL: the job is not to be sent, or there is no memory; the
 * sweep finds it then. */
static struct hpx_outgoing *begin_outgoing(struct hpx_deliverer *d, struct hpx_job_entry *entry)
{
	struct hpx_target_queue *queue = queue_of(d, entry->job.target);
	struct hpx_outgoing *outgoing = NULL;

	if (queue != NULL && entry->readable && entry->delivery.state == HPX_JOB_SENDING)
		outgoing = hpx_outgoing_new(d, queue, entry);
	if (outgoing != NULL) {
		take_slot(d, queue);
		return outgoing;
	}
	log_unsent(queue, entry);
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
		struct hpx_outgoing *outgoing = begin_outgoing(d, pop(&list));
		if (outgoing != NULL)
			hpx_outgoing_return(outgoing, why);
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

/* The route of the operation decides how much of the answer is kept. The job does not
 * name its route, so the operation is read where routes differ in this. */
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
		status_only = true; /* its route may forbid more */
	}
	hpx_arena_done(&arena);
	return status_only;
}

static void send_all(struct hpx_deliverer *d, struct hpx_job_entry *list,
		     const struct hpx_settings *settings, int64_t claim_ms)
{
	while (list != NULL) {
		struct hpx_outgoing *outgoing = begin_outgoing(d, pop(&list));
		if (outgoing == NULL)
			continue;
		outgoing->status_only =
			keeps_status_only(d, settings, &outgoing->entry->delivery);
		hpx_outgoing_send(outgoing, claim_ms + lease_ms_of(outgoing->queue) / 2,
				  settings->response_body_bytes_max);
	}
}

/* ---- claiming ---- */

static void log_failed_claim(const struct hpx_store_op *op)
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
	hpx_thread_lock(&d->thread);
	HPX_ASSERT(d->claim_state == HPX_CLAIM_SUBMITTED);
	if (d->thread_over) {
		hpx_thread_unlock(&d->thread);
		return_all(d, take_claimed(d), "hapax stops");
		hpx_thread_lock(&d->thread);
	}
	d->claim_state = HPX_CLAIM_BACK;
	hpx_thread_wake(&d->thread);
	hpx_thread_unlock(&d->thread);
}

/* With the lock held; false where there is no room for anything. */
static bool submit_claim(struct hpx_deliverer *d)
{
	HPX_ASSERT(d->claim_state == HPX_CLAIM_IDLE);
	size_t count = plan_claims(d);

	if (count == 0)
		return false;
	d->claim = (struct hpx_store_op){ .verb = HPX_VERB_CLAIM,
					  .claim.claims = d->claims,
					  .claim.claim_count = count,
					  .actor = HPX_SPAN("deliverer"),
					  .done = claimed };
	/* A claim that must run again finds by its token which jobs it took. */
	hpx_token_make(&d->claim.token);
	d->claim_ms = hpx_clock_boot_ms();
	d->claim_state = HPX_CLAIM_SUBMITTED;
	hpx_thread_unlock(&d->thread);
	hpx_committer_submit(d->service->committer, &d->claim);
	hpx_thread_lock(&d->thread);
	return true;
}

/* With the lock held, which is let go meanwhile. */
static void use_claim(struct hpx_deliverer *d)
{
	struct hpx_settings *settings = hpx_settings_ref(d->current);
	struct hpx_job_entry *jobs = take_claimed(d);
	bool late = hpx_clock_boot_ms() - d->claim_ms > CLAIM_STORE_MS;

	d->claim_state = HPX_CLAIM_IDLE;
	hpx_thread_unlock(&d->thread);
	log_failed_claim(&d->claim);
	if (late)
		return_all(d, jobs, "the store took too long for the claim");
	else
		send_all(d, jobs, settings, d->claim_ms);
	hpx_settings_unref(settings);
	hpx_thread_lock(&d->thread);
}

static void wait_for_news(struct hpx_deliverer *d)
{
	int64_t until_ms = hpx_clock_boot_ms() + d->poll_ms;

	while (!d->thread.stopping && !d->woken && hpx_clock_boot_ms() < until_ms)
		hpx_thread_wait(&d->thread, until_ms);
}

static void *run(void *user)
{
	struct hpx_deliverer *d = user;
	struct hpx_job_entry *orphans = NULL;

	hpx_thread_lock(&d->thread);
	while (!d->thread.stopping) {
		d->woken = false;
		if (submit_claim(d)) {
			while (d->claim_state == HPX_CLAIM_SUBMITTED && !d->thread.stopping)
				hpx_thread_wait(&d->thread, INT64_MAX);
			if (!d->thread.stopping)
				use_claim(d);
		}
		wait_for_news(d);
	}
	d->thread_over = true;
	if (d->claim_state == HPX_CLAIM_BACK)
		orphans = take_claimed(d);
	hpx_thread_unlock(&d->thread);
	return_all(d, orphans, "hapax stops");
	return NULL;
}

/* ---- start and stop ---- */

static enum hpx_status make_queues(struct hpx_deliverer *d)
{
	const struct hpx_settings *settings = d->settings;
	size_t count = settings->target_count;

	d->queues = calloc(count + 1, sizeof(*d->queues));
	d->claims = calloc(count + 1, sizeof(*d->claims));
	if (d->queues == NULL || d->claims == NULL)
		return HPX_NOMEM;
	d->queue_count = count;
	for (size_t i = 0; i < count; i++) {
		d->queues[i].target = &settings->targets[i];
		d->queues[i].counters = &d->service->counters.targets[i];
	}
	/* Each target has a slot at least. */
	d->outgoing_max = settings->deliveries_max > count ? settings->deliveries_max :
							     (unsigned)count + (count == 0);
	return HPX_OK;
}

static void dispose(struct hpx_deliverer *d)
{
	hpx_egress_free(d->egress);
	hpx_store_reader_close(d->reader);
	hpx_settings_unref(d->current);
	hpx_settings_unref(d->settings);
	hpx_thread_done(&d->thread);
	free(d->claims);
	free(d->queues);
	free(d);
}

static enum hpx_status start_engine(struct hpx_deliverer *d)
{
	struct hpx_egress_options options = { .running_max = d->outgoing_max };
	enum hpx_status status = hpx_egress_start(&options, &d->egress);

	if (status != HPX_OK)
		return status;
	status = hpx_thread_run(&d->thread, run, d);
	if (status != HPX_OK)
		hpx_egress_stop(d->egress, 0);
	return status;
}

enum hpx_status hpx_deliverer_start(struct hpx_service *service, int64_t poll_ms,
				    struct hpx_deliverer **ret_deliverer)
{
	struct hpx_deliverer *d = calloc(1, sizeof(*d));
	enum hpx_status status = HPX_NOMEM;

	if (d == NULL)
		return status;
	if (hpx_thread_init(&d->thread) != HPX_OK) {
		free(d);
		return status;
	}
	d->service = service;
	d->poll_ms = poll_ms > 0 ? poll_ms : POLL_DEFAULT_MS;
	d->settings = hpx_settings_ref(service->settings);
	d->current = hpx_settings_ref(service->settings);
	status = make_queues(d);
	if (status == HPX_OK)
		status = hpx_store_reader_open(service->store, &d->reader);
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

	hpx_thread_lock(&d->thread);
	before = d->current;
	d->current = hpx_settings_ref(settings);
	hpx_thread_unlock(&d->thread);
	hpx_settings_unref(before);
}

void hpx_deliverer_stop_claiming(struct hpx_deliverer *d)
{
	if (d != NULL)
		hpx_thread_tell_stop(&d->thread);
}

void hpx_deliverer_stop(struct hpx_deliverer *d, int64_t grace_ms)
{
	if (d == NULL)
		return;
	hpx_thread_stop(&d->thread);
	hpx_egress_stop(d->egress, grace_ms);
}

void hpx_deliverer_free(struct hpx_deliverer *d)
{
	if (d == NULL)
		return;
	hpx_thread_lock(&d->thread);
	while (d->claim_state == HPX_CLAIM_SUBMITTED || d->alive > 0)
		hpx_thread_wait(&d->thread, INT64_MAX);
	HPX_ASSERT(d->under_way == 0);
	hpx_thread_unlock(&d->thread);
	dispose(d);
}
