/* The queues of the reconciler: one for each probe, with its slots, its rate and
 * the calls that wait.
 *
 *  1. under_way <= slots when a call is sent (a reload may lower the slots later);
 *     a queue sends no faster than its rate.
 *  2. under_way + waiting_count <= alive <= ALIVE_SHARE * slots when a claim is
 *     planned: memory is bounded by the slots.
 *  3. No queue is ever removed: a call may point to it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "worker/probe_call.h"

/* In slots of a queue: calls that are alive, and claimed ahead. */
#define ALIVE_SHARE 8
#define AHEAD_SHARE 4

/* ---- making and finding ---- */

static struct hpx_span name_of(const struct hpx_probe_queue *queue)
{
	return hpx_span(queue->name, queue->name_len);
}

struct hpx_probe_queue *hpx_probe_queue_find(const struct hpx_reconciler *r, struct hpx_span name)
{
	struct hpx_probe_queue *queue = r->queues;

	while (queue != NULL && !hpx_span_eq(name_of(queue), name))
		queue = queue->next;
	return queue;
}

static struct hpx_probe_queue *find_of_target(const struct hpx_reconciler *r,
					      struct hpx_span target)
{
	struct hpx_span prefix = HPX_SPAN(HPX_LANE_TARGET);

	for (struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next)
		if (hpx_span_starts(name_of(queue), prefix) &&
		    hpx_span_eq(hpx_span_skip(name_of(queue), prefix.len), target))
			return queue;
	return NULL;
}

static enum hpx_status add(struct hpx_reconciler *r, const char *prefix, struct hpx_span name,
			   const struct hpx_reconcile_settings *reconcile)
{
	size_t len = strlen(prefix) + name.len;
	struct hpx_probe_queue *queue = *prefix != '\0' ? find_of_target(r, name) :
							  hpx_probe_queue_find(r, name);

	if (!reconcile->given || !reconcile->probe.given)
		return HPX_OK;
	if (queue == NULL) {
		queue = calloc(1, sizeof(*queue) + len + 1);
		if (queue == NULL)
			return HPX_NOMEM;
		snprintf(queue->name, len + 1, "%s%.*s", prefix, HPX_SPAN_ARG(name));
		queue->name_len = len;
		queue->waiting_end = &queue->waiting;
		queue->next = r->queues;
		r->queues = queue;
	}
	/* Of two routes with one pattern, the first one counts, as in
	 * hpx_settings_find_route. */
	if (queue->reconcile == NULL)
		queue->reconcile = reconcile;
	return HPX_OK;
}

static void share_slots(struct hpx_reconciler *r)
{
	size_t wanted = 0;
	unsigned count = 0;

	for (const struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next)
		if (queue->reconcile != NULL) {
			wanted += queue->reconcile->probe.concurrency;
			count++;
		}
	for (struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next) {
		unsigned share = wanted > HPX_PROBE_CALLS_MAX ? HPX_PROBE_CALLS_MAX / count :
								HPX_PROBE_CALLS_MAX;
		queue->slots = queue->reconcile != NULL ? queue->reconcile->probe.concurrency : 0;
		if (queue->slots > share)
			queue->slots = share > 0 ? share : 1;
	}
}

/* A queue that cannot be added for lack of memory is one that nobody probes: its
 * unknowns wait. */
enum hpx_status hpx_probe_queues_make(struct hpx_reconciler *r)
{
	const struct hpx_settings *settings = r->settings;
	enum hpx_status status = HPX_OK;

	for (struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next)
		queue->reconcile = NULL;
	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++)
		status = add(r, "", settings->routes[i].pattern, &settings->routes[i].reconcile);
	if (status == HPX_OK)
		status = add(r, "", settings->fallback.pattern, &settings->fallback.reconcile);
	for (size_t i = 0; i < settings->target_count && status == HPX_OK; i++)
		status = add(r, HPX_LANE_TARGET, settings->targets[i].name,
			     &settings->targets[i].reconcile);
	share_slots(r);
	return status;
}

void hpx_probe_queues_free(struct hpx_reconciler *r)
{
	while (r->queues != NULL) {
		struct hpx_probe_queue *next = r->queues->next;

		HPX_ASSERT(r->queues->alive == 0);
		free(r->queues);
		r->queues = next;
	}
}

/* ---- the way of a call through its queue ---- */

struct hpx_probe_queue *hpx_probe_queue_enter(struct hpx_reconciler *r,
					      const struct hpx_unsettled *unknown)
{
	struct hpx_probe_queue *queue;

	hpx_thread_lock(&r->thread);
	queue = unknown->delivery.number != 0 ? find_of_target(r, unknown->target) :
						hpx_probe_queue_find(r, unknown->description.route);
	r->call_count++;
	if (queue != NULL) {
		queue->alive++;
		queue->gotten++;
	}
	hpx_thread_unlock(&r->thread);
	return queue;
}

void hpx_probe_queue_push(struct hpx_probe_call *call)
{
	struct hpx_probe_queue *queue = call->queue;

	HPX_ASSERT(call->state == HPX_PROBE_CALL_CLAIMED);
	hpx_thread_lock(&call->reconciler->thread);
	call->next = NULL;
	*queue->waiting_end = call;
	queue->waiting_end = &call->next;
	queue->waiting_count++;
	HPX_ASSERT(queue->waiting_count <= queue->alive);
	hpx_thread_unlock(&call->reconciler->thread);
}

struct hpx_probe_call *hpx_probe_queue_pop(struct hpx_probe_queue *queue)
{
	struct hpx_probe_call *call = queue->waiting;

	HPX_ASSERT((call == NULL) == (queue->waiting_count == 0));
	if (call == NULL)
		return NULL;
	queue->waiting = call->next;
	if (queue->waiting == NULL)
		queue->waiting_end = &queue->waiting;
	queue->waiting_count--;
	return call;
}

static void count_under_way(struct hpx_reconciler *r, int change)
{
	atomic_fetch_add_explicit(&r->service->counters.probes_under_way.value,
				  (uint64_t)(int64_t)change, memory_order_relaxed);
}

/* A queue whose probe went by a reload sends the rest as it was claimed. */
struct hpx_probe_call *hpx_probe_queue_take(struct hpx_reconciler *r,
					    struct hpx_probe_queue *queue, int64_t *wake_ms)
{
	int64_t now_ms = hpx_clock_boot_ms(), wait_ms = 0;
	unsigned slots = queue->slots > 0 ? queue->slots : 1;
	unsigned rate = queue->reconcile != NULL ? queue->reconcile->probe.per_second : 1;

	if (queue->waiting == NULL || queue->under_way >= slots)
		return NULL;
	if (!hpx_bucket_take(&queue->bucket, rate, now_ms, &wait_ms)) {
		if (now_ms + wait_ms < *wake_ms)
			*wake_ms = now_ms + wait_ms;
		return NULL;
	}
	queue->under_way++;
	count_under_way(r, 1);
	return hpx_probe_queue_pop(queue);
}

void hpx_probe_queue_slot_free(struct hpx_probe_call *call)
{
	struct hpx_reconciler *r = call->reconciler;

	hpx_thread_lock(&r->thread);
	HPX_ASSERT(call->queue->under_way > 0 && call->queue->under_way <= call->queue->alive);
	call->queue->under_way--;
	call->queue->freed++;
	count_under_way(r, -1);
	hpx_thread_wake(&r->thread);
	hpx_thread_unlock(&r->thread);
}

void hpx_probe_queue_leave(struct hpx_reconciler *r, struct hpx_probe_queue *queue)
{
	hpx_thread_lock(&r->thread);
	HPX_ASSERT(r->call_count > 0 && (queue == NULL || queue->alive > 0));
	r->call_count--;
	if (queue != NULL)
		queue->alive--;
	hpx_thread_wake(&r->thread);
	hpx_thread_unlock(&r->thread);
}

/* ---- how much is claimed ---- */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned hpx_probe_queue_room(const struct hpx_probe_queue *queue)
{
	unsigned taken = queue->under_way + queue->waiting_count;
	unsigned wanted = queue->slots + least(queue->ahead, AHEAD_SHARE * queue->slots);
	unsigned alive_max = ALIVE_SHARE * queue->slots;
	unsigned room = wanted > taken ? wanted - taken : 0;

	HPX_ASSERT(taken <= queue->alive);
	if (queue->reconcile == NULL || queue->alive >= alive_max)
		return 0;
	room = least(room, alive_max - queue->alive);
	/* No more than the rate lets through within about a second. */
	unsigned rate = queue->reconcile->probe.per_second;
	return least(room, rate > queue->waiting_count ? rate - queue->waiting_count : 0);
}

bool hpx_probe_queue_wants_more(const struct hpx_probe_queue *queue)
{
	unsigned room = queue->more ? hpx_probe_queue_room(queue) : 0;

	return room > 0 && ((queue->waiting == NULL && queue->under_way < queue->slots) ||
			    room >= (queue->slots + 1) / 2);
}
