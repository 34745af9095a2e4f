/* Waiting for a connection slot. The rules of the queue are net/connection_slot.h's; here
 * is what a request does with it: it holds on to itself while it is queued,
 * gives up after `timeouts.queue`, and is counted. */
#include "gateway/queue.h"

#include "base/assert.h"
#include "base/container.h"

static void count(struct hpx_request *request, enum hpx_queued result)
{
	hpx_counter_add(&request->shard->meter.queued[result], 1);
}

/* The request is in the queue no longer. */
static void measure(struct hpx_request *request, enum hpx_queued result)
{
	count(request, result);
	hpx_histogram_add(&request->shard->meter.queue_us,
			  (uint64_t)(hpx_clock_boot_us() - request->wait.queued_us));
}

static void granted(struct hpx_slot *slot)
{
	struct hpx_request *request = HPX_CONTAINER(slot, struct hpx_request, attempt.slot);

	HPX_ASSERT(request->wait.kind == HPX_WAIT_SLOT);
	measure(request, HPX_QUEUED_granted);
	hpx_request_go(request, request->wait.result);
	hpx_request_drop(request);
}

bool hpx_queue_take(struct hpx_request *request, enum hpx_slot_kind kind)
{
	return hpx_slot_take(hpx_upstream_slots(request->shard->upstream), &request->attempt.slot, kind);
}

bool hpx_queue_enter(struct hpx_request *request, enum hpx_slot_kind kind, enum hpx_next next,
		     enum hpx_next late)
{
	struct hpx_slots *slots = hpx_upstream_slots(request->shard->upstream);

	if (!hpx_slot_queue(slots, &request->attempt.slot, kind, granted)) {
		count(request, HPX_QUEUED_full);
		return false;
	}
	hpx_request_hold(request);
	request->wait.queued_us = hpx_clock_boot_us();
	(void)hpx_request_await(request, HPX_WAIT_SLOT, NULL, request->settings->queue_timeout_ms, next,
				late);
	return true;
}

void hpx_queue_leave(struct hpx_request *request)
{
	HPX_ASSERT(request->wait.kind != HPX_WAIT_SLOT);
	hpx_slot_release(&request->attempt.slot);
}

void hpx_queue_give_up(struct hpx_request *request, enum hpx_queued result)
{
	HPX_ASSERT(request->wait.kind == HPX_WAIT_SLOT);
	hpx_slot_release(&request->attempt.slot);
	measure(request, result);
	request->wait.kind = HPX_WAIT_OVER;
	hpx_request_drop(request);
}

bool hpx_queue_is_granted(const struct hpx_request *request)
{
	return request->wait.kind == HPX_WAIT_SLOT && request->attempt.slot.state == HPX_SLOT_HELD;
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
