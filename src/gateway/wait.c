/* Waiting: for the end of an operation that another request brings about, and for a
 * connection slot.
 *
 * A waiter is listed first and looks second, so that a completion between the two
 * cannot be missed; the committer wakes it after the answer is durable, through the
 * inbox of its loop. The rules of the queue for slots are net/connection_slot.h's;
 * here a request enters and leaves it, and is counted. */
#include "gateway/steps.h"

#include "base/clock.h"
#include "base/status.h"
#include "http/field.h"

/* ---- for another request ---- */

#define IN_PROGRESS_RETRY_AFTER_MAX_S 30

/* Half the age of the attempt: it is looked at often while it is young, and a long one
 * is met by at most twice as much waiting as it took, not by a retry every second. */
static unsigned in_progress_retry_after_s(const struct hpx_request *request)
{
	int64_t age_ms = hpx_clock_wall_ms() - request->reservation.record.changed_ms;
	int64_t seconds = age_ms / 2 / 1000;

	if (seconds < 1)
		return 1;
	return seconds < IN_PROGRESS_RETRY_AFTER_MAX_S ? (unsigned)seconds : IN_PROGRESS_RETRY_AFTER_MAX_S;
}

static enum hpx_next in_progress(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = in_progress_retry_after_s(request) };

	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_key_in_progress, &refusal,
				  HPX_RESPOND_KEEP);
}

/* The step that finds out how the awaited operation stands now. */
static enum hpx_next look_again(const struct hpx_request *request)
{
	return request->head.purpose == HPX_PURPOSE_OPERATION ? HPX_NEXT_FIND : HPX_NEXT_LOOKUP;
}

enum hpx_next hpx_step_wait_over(struct hpx_request *request)
{
	if (request->head.purpose == HPX_PURPOSE_OPERATION)
		return hpx_operation_show(request);
	if (request->reservation.record.state != HPX_STATE_PENDING)
		return in_progress(request);
	hpx_counter_add(&request->shard->meter.async[HPX_ASYNC_pending], 1);
	hpx_operation_accepted(request);
	return HPX_NEXT_DONE;
}

/* On the committer's thread. */
static void wake(struct hpx_waiter *waiter)
{
	struct hpx_request *request = waiter->user;
	hpx_resume_post(&request->wait.woken);
}

void hpx_wait_leave(struct hpx_request *request)
{
	if (!hpx_resume_is_armed(&request->wait.woken))
		return;
	/* Otherwise woken already: the message is on its way. */
	if (hpx_waitlist_remove(request->shard->service->waitlist, &request->wait.waiter))
		hpx_resume_disarm(&request->wait.woken);
}

/* Too many requests wait. A request that is delivered later gets its 202. A request
 * that waits for another one's answer is told only that it was not executed, and that
 * the operation is under way. */
static enum hpx_next no_room(struct hpx_request *request)
{
	struct hpx_refusal overloaded = { .retry_after_s = 1,
					  .executed = "unknown",
					  .detail = "Too many requests wait for the answer to the "
						    "first one with this key. Send it again with "
						    "the same key after Retry-After." };

	if (request->head.purpose == HPX_PURPOSE_OPERATION ||
	    request->reservation.record.state == HPX_STATE_PENDING)
		return HPX_NEXT_WAIT_OVER;
	return hpx_respond_refuse(request, HPX_PROBLEM_overloaded, &overloaded, HPX_RESPOND_KEEP);
}

/* Listed first, looked second: a completion in between is not missed. */
static enum hpx_next begin_wait(struct hpx_request *request)
{
	if (!hpx_share_take_waiter(request))
		return no_room(request);
	request->wait.waiter = (struct hpx_waiter){ .id = request->identity.ask.id, .wake = wake, .user = request };
	hpx_resume_arm(&request->wait.woken, request);
	if (hpx_waitlist_add(request->shard->service->waitlist, &request->wait.waiter) != HPX_OK) {
		hpx_resume_disarm(&request->wait.woken);
		return no_room(request);
	}
	return look_again(request);
}

enum hpx_next hpx_wait_for(struct hpx_request *request, int64_t wait_ms)
{
	uint64_t now_ms = hpx_loop_now_ms(&request->shard->loop);
	struct hpx_request_wait *wait = &request->wait;

	if (!wait->waited) {
		wait->waited = true;
		wait->until_ms = now_ms + (uint64_t)wait_ms;
	}
	int64_t left_ms = wait->until_ms > now_ms ? (int64_t)(wait->until_ms - now_ms) : 0;
	/* Listed already and looked again: the answer is not there yet. */
	if (hpx_resume_is_armed(&wait->woken))
		return hpx_request_await(request, HPX_WAIT_OTHER, &wait->woken, left_ms,
					 look_again(request), HPX_NEXT_WAIT_OVER);
	return left_ms > 0 ? begin_wait(request) : HPX_NEXT_WAIT_OVER;
}

enum hpx_next hpx_wait_or_refuse(struct hpx_request *request)
{
	switch (request->head.route->policy.concurrent) {
	case HPX_CONCURRENT_CONFLICT:
		return in_progress(request);
	case HPX_CONCURRENT_ACCEPTED:
		hpx_operation_accepted(request);
		return HPX_NEXT_DONE;
	case HPX_CONCURRENT_WAIT:
		break;
	}
	return hpx_wait_for(request, request->head.route->policy.wait_ms);
}

int64_t hpx_wait_preferred(struct hpx_request *request, int64_t most_ms)
{
	struct hpx_span prefer =
		hpx_field_combined(&request->head.http, HPX_SPAN("Prefer"), &request->arena);
	int64_t wait_ms = 0;

	if (!hpx_prefer_wait(prefer, &wait_ms))
		return 0;
	wait_ms = wait_ms < most_ms ? wait_ms : most_ms;
	request->wait.applied_s = (unsigned)(wait_ms / 1000);
	return wait_ms;
}

/* ---- for a connection slot ---- */

static void count(struct hpx_request *request, enum hpx_queued result)
{
	hpx_counter_add(&request->shard->meter.queued[result], 1);
}

/* Counts the end of a request's time in the queue. */
static void measure(struct hpx_request *request, enum hpx_queued result)
{
	count(request, result);
	hpx_request_end(request, &request->times.queue);
	hpx_histogram_add(&request->shard->meter.queue_us, hpx_interval_us(&request->times.queue));
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
	hpx_request_begin(request, &request->times.queue);
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

/* ---- Prefer ---- */

#define WAIT_MAX_S 86400

/* Cuts the text before the next `sep` outside quotes off the front of `rest`. */
static bool split(struct hpx_span *rest, char sep, struct hpx_span *ret_item)
{
	bool quoted = false;
	size_t at = 0;

	if (rest->ptr == NULL)
		return false;
	for (; at < rest->len && (quoted || rest->ptr[at] != sep); at++) {
		if (rest->ptr[at] == '"')
			quoted = !quoted;
		else if (quoted && rest->ptr[at] == '\\' && at + 1 < rest->len)
			at++;
	}
	*ret_item = hpx_span_first(*rest, at);
	*rest = at < rest->len ? hpx_span_skip(*rest, at + 1) : hpx_span(NULL, 0);
	return true;
}

static struct hpx_span unquoted(struct hpx_span value)
{
	if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
		return hpx_span(value.ptr + 1, value.len - 2);
	return value;
}

/* Any number of digits. */
static bool seconds_of(struct hpx_span value, int64_t *ret_ms)
{
	uint64_t seconds = WAIT_MAX_S;

	if (value.len == 0)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] < '0' || value.ptr[i] > '9')
			return false;
	if (!hpx_span_u64(value, WAIT_MAX_S, &seconds))
		seconds = WAIT_MAX_S;
	*ret_ms = (int64_t)seconds * 1000;
	return true;
}

bool hpx_prefer_wait(struct hpx_span prefer, int64_t *ret_ms)
{
	struct hpx_span preference, item;

	while (split(&prefer, ',', &preference)) {
		if (!split(&preference, ';', &item))
			continue;
		size_t at = hpx_span_index(item, '=');
		if (!hpx_span_ieq(hpx_span_trim(hpx_span_first(item, at)), HPX_SPAN("wait")))
			continue;
		return at < item.len &&
		       seconds_of(unquoted(hpx_span_trim(hpx_span_skip(item, at + 1))), ret_ms);
	}
	return false;
}
