/* Waiting for a connection slot. The rules of the queue are net/connection_slot.h's; here
 * is what a request does with it: it holds on to itself while it is queued,
 * gives up after `timeouts.queue`, and is counted. */
#include "gateway/queue.h"

#include "base/container.h"

static void count(struct hpx_request *request, enum hpx_queued result)
{
	hpx_counter_add(&request->shard->meter.queued[result], 1);
}

/* Leaves the queue for good, with or without a slot. */
static void stop_waiting(struct hpx_request *request, enum hpx_queued result)
{
	request->wait.deadline_ms = 0;
	request->wait.phase = HPX_PHASE_OVER;
	count(request, result);
	hpx_histogram_add(&request->shard->meter.queue_us,
			  (uint64_t)(hpx_clock_boot_us() - request->wait.queued_us));
}

static void granted(struct hpx_slot *slot)
{
	struct hpx_request *request = HPX_CONTAINER(slot, struct hpx_request, attempt.slot);

	stop_waiting(request, HPX_QUEUED_granted);
	hpx_request_go(request, request->wait.after_queue);
	hpx_request_drop(request);
}

bool hpx_queue_take(struct hpx_request *request, enum hpx_slot_kind kind)
{
	return hpx_slot_take(hpx_upstream_slots(request->shard->upstream), &request->attempt.slot, kind);
}

bool hpx_queue_enter(struct hpx_request *request, enum hpx_slot_kind kind, enum hpx_next next,
		     enum hpx_next (*too_late)(struct hpx_request *request))
{
	struct hpx_slots *slots = hpx_upstream_slots(request->shard->upstream);

	if (!hpx_slot_queue(slots, &request->attempt.slot, kind, granted)) {
		count(request, HPX_QUEUED_full);
		return false;
	}
	hpx_request_hold(request);
	request->wait.phase = HPX_PHASE_QUEUED;
	request->wait.queued_us = hpx_clock_boot_us();
	request->wait.deadline_ms = hpx_loop_now_ms(&request->shard->loop) +
				    (uint64_t)request->settings->queue_timeout_ms;
	request->wait.after_queue = next;
	request->wait.too_late = too_late;
	return true;
}

void hpx_queue_leave(struct hpx_request *request)
{
	bool queued = request->wait.phase == HPX_PHASE_QUEUED;

	hpx_slot_release(&request->attempt.slot);
	if (!queued)
		return;
	stop_waiting(request, HPX_QUEUED_left);
	hpx_request_drop(request);
}

static void give_up(struct hpx_request *request, enum hpx_queued result)
{
	hpx_slot_release(&request->attempt.slot);
	stop_waiting(request, result);
	hpx_request_go(request, request->wait.too_late(request));
	hpx_request_drop(request);
}

void hpx_queue_tick(struct hpx_request *request, uint64_t now_ms)
{
	/* HELD: the slot came, and the request is told within this turn. */
	if (now_ms >= request->wait.deadline_ms && request->attempt.slot.state == HPX_SLOT_QUEUED)
		give_up(request, HPX_QUEUED_timed_out);
}

void hpx_queue_abandon(struct hpx_request *request)
{
	give_up(request, HPX_QUEUED_left);
}

void hpx_queue_measure(struct hpx_shard *shard)
{
	if (shard->upstream == NULL)
		return;
	const struct hpx_slots *slots = hpx_upstream_slots(shard->upstream);
	for (int kind = 0; kind < HPX_SLOT_KIND_COUNT; kind++) {
		hpx_counter_set(&shard->meter.slots_held[kind], slots->held[kind]);
		hpx_counter_set(&shard->meter.slots_queued[kind], slots->queues[kind].count);
	}
}
