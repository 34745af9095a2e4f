/* Waiting for what another brings about. The waiter is listed first and looks
 * second, so a completion between the two cannot be missed; it is woken by
 * the committer, after the answer is durable, through its loop's inbox. */
#include "gateway/wait.h"

#include "base/container.h"
#include "gateway/own.h"
#include "gateway/prefer.h"
#include "gateway/respond.h"
#include "http/field.h"

#define IN_PROGRESS_RETRY_AFTER_S 1

static enum hpx_next in_progress(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = IN_PROGRESS_RETRY_AFTER_S };

	hpx_respond_refuse(request, HPX_PROBLEM_idempotency_key_in_progress, &refusal,
			   HPX_RESPOND_KEEP);
	return HPX_NEXT_DONE;
}

enum hpx_next hpx_wait_over(struct hpx_request *request)
{
	if (request->wait.look_again == HPX_NEXT_FIND)
		return hpx_operation_show(request);
	if (request->reservation.record.state != HPX_STATE_PENDING)
		return in_progress(request);
	hpx_counter_add(&request->shard->meter.async[HPX_ASYNC_pending], 1);
	hpx_own_accepted(request);
	return HPX_NEXT_DONE;
}

/* Woken: look again. The wake message holds the request. */
static void came_awake(struct hpx_message *message)
{
	struct hpx_request *request =
		HPX_CONTAINER(message, struct hpx_request, wait.wake_message);

	request->wait.waiting = false;
	if (request->wait.phase == HPX_PHASE_WAITING)
		hpx_request_go(request, request->wait.look_again);
	hpx_request_drop(request);
}

/* On the committer's thread. */
static void wake(struct hpx_waiter *waiter)
{
	struct hpx_request *request = waiter->user;
	hpx_loop_post(&request->shard->loop, &request->wait.wake_message);
}

void hpx_wait_leave(struct hpx_request *request)
{
	if (!request->wait.waiting)
		return;
	/* Already woken: the message is on its way and drops the hold itself. */
	if (!hpx_waitlist_remove(request->shard->service->waitlist, &request->wait.waiter))
		return;
	request->wait.waiting = false;
	hpx_request_drop(request);
}

/* Too many wait. What is delivered later is told as it is; of another's answer
 * only this can be said: this request is not executed, but what it asks for is
 * under way. */
static enum hpx_next no_room(struct hpx_request *request)
{
	struct hpx_refusal overloaded = { .retry_after_s = 1,
					  .executed = "unknown",
					  .detail = "Too many requests wait for the answer to the "
						    "first one with this key. Send it again with "
						    "the same key after Retry-After." };

	if (request->wait.look_again == HPX_NEXT_FIND || request->reservation.record.state == HPX_STATE_PENDING)
		return hpx_wait_over(request);
	hpx_respond_refuse(request, HPX_PROBLEM_overloaded, &overloaded, HPX_RESPOND_KEEP);
	return HPX_NEXT_DONE;
}

static enum hpx_next begin_wait(struct hpx_request *request)
{
	request->wait.waiter = (struct hpx_waiter){ .id = request->identity.ask.id, .wake = wake, .user = request };
	request->wait.wake_message.handle = came_awake;
	request->wait.phase = HPX_PHASE_WAITING;
	hpx_request_hold(request);
	request->wait.waiting = true;
	if (hpx_waitlist_add(request->shard->service->waitlist, &request->wait.waiter) != HPX_OK) {
		request->wait.waiting = false;
		hpx_request_drop(request);
		return no_room(request);
	}
	return request->wait.look_again;
}

enum hpx_next hpx_wait_for(struct hpx_request *request, int64_t wait_ms, enum hpx_next look)
{
	uint64_t now_ms = hpx_loop_now_ms(&request->shard->loop);

	if (!request->wait.waited) {
		request->wait.waited = true;
		request->wait.look_again = look;
		request->wait.until_ms = now_ms + (uint64_t)wait_ms;
	}
	/* Listed already and looked again: the answer is not there yet. */
	if (request->wait.waiting) {
		request->wait.phase = HPX_PHASE_WAITING;
		return HPX_NEXT_WAIT;
	}
	return now_ms < request->wait.until_ms ? begin_wait(request) : hpx_wait_over(request);
}

enum hpx_next hpx_wait_or_refuse(struct hpx_request *request)
{
	switch (request->head.route->policy.concurrent) {
	case HPX_CONCURRENT_CONFLICT:
		return in_progress(request);
	case HPX_CONCURRENT_ACCEPTED:
		hpx_own_accepted(request);
		return HPX_NEXT_DONE;
	case HPX_CONCURRENT_WAIT:
		break;
	}
	return hpx_wait_for(request, request->head.route->policy.wait_ms, HPX_NEXT_LOOKUP);
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

void hpx_wait_tick(struct hpx_request *request, uint64_t now_ms)
{
	if (now_ms < request->wait.until_ms)
		return;
	hpx_request_hold(request);
	hpx_wait_leave(request);
	hpx_request_go(request, hpx_wait_over(request));
	hpx_request_drop(request);
}
