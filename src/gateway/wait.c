/* Waiting for what another brings about. The waiter is listed first and looks
 * second, so a completion between the two cannot be missed; it is woken by
 * the committer, after the answer is durable, through its loop's inbox. */
#include "gateway/wait.h"

#include "gateway/builtin.h"
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

	if (request->head.purpose == HPX_PURPOSE_OPERATION ||
	    request->reservation.record.state == HPX_STATE_PENDING)
		return HPX_NEXT_WAIT_OVER;
	hpx_respond_refuse(request, HPX_PROBLEM_overloaded, &overloaded, HPX_RESPOND_KEEP);
	return HPX_NEXT_DONE;
}

/* Listed first, looked second: a completion in between is not missed. */
static enum hpx_next begin_wait(struct hpx_request *request)
{
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
