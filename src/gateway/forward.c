/* The attempt: the request goes up once, its answer is collected (or, where
 * it is too large or a stream, held back until its outcome is durable), and
 * what is known at the end goes to the store.
 *
 * What if the process dies here? Before the first byte: the lease is lost and
 * the outcome counts as unknown, because nobody can tell from outside. After
 * it: the same. Only a live process knows that nothing left. */
#include "base/container.h"
#include "base/log.h"
#include "gateway/attempt.h"
#include "gateway/queue.h"
#include "gateway/respond.h"
#include "gateway/upstream_head.h"
#include "http/field.h"

/* Guarantee 1: the first byte leaves within half a lease of asking for it, or
 * not at all. A process that was stopped finds out here. */
static bool on_ready(void *user)
{
	struct hpx_request *request = user;
	int64_t waited_ms = hpx_clock_boot_ms() - request->reservation.asked_boot_ms;

	if (waited_ms < request->head.route->policy.lease_ms / 2)
		return true;
	hpx_request_answer_move(request, HPX_ANSWER_TOO_LATE);
	return false;
}

static void on_informational(void *user, const struct hpx_http_head *head)
{
	hpx_respond_informational(user, head);
}

/* No complete answer: how far the request went decides. */
static enum hpx_next lost(struct hpx_request *request, const struct hpx_exchange_failure *failure)
{
	request->attempt.failure = *failure;
	if (request->answer.state != HPX_ANSWER_TOO_LATE)
		hpx_request_answer_move(request, HPX_ANSWER_LOST);
	request->attempt.outcome = hpx_outcome_of_silence(failure->any_byte_left);
	return HPX_NEXT_STORE;
}

/* The answer will not be kept whole: its outcome is made durable first, the
 * upstream waits meanwhile. */
static void hold_back(struct hpx_request *request)
{
	hpx_request_answer_move(request, HPX_ANSWER_HELD_BACK);
	hpx_exchange_pause(request->attempt.exchange);
	hpx_request_go(request, HPX_NEXT_STORE);
}

static bool is_event_stream(const struct hpx_http_head *head)
{
	struct hpx_span type = hpx_field_value(head, HPX_SPAN("Content-Type"));

	return hpx_span_ieq(hpx_span_trim(hpx_span_first(type, hpx_span_index(type, ';'))),
			    HPX_SPAN("text/event-stream"));
}

static bool cannot_be_kept(const struct hpx_request *request, const struct hpx_http_head *head)
{
	return request->head.route->policy.keep == HPX_KEEP_STATUS || is_event_stream(head) ||
	       (head->framing == HPX_FRAMING_LENGTH &&
		head->content_length > request->settings->response_body_bytes_max);
}

static void refuse_answer(struct hpx_request *request, const char *reason)
{
	struct hpx_exchange_failure failure = { .any_byte_left = true,
						.head_seen = true,
						.status = HPX_INVALID,
						.reason = reason };

	hpx_attempt_cancel(request);
	hpx_request_go(request, lost(request, &failure));
}

/* Two words about the outcome are none. */
static enum hpx_declared declared_of(const struct hpx_http_head *head)
{
	if (hpx_field_count(head, HPX_SPAN("Hapax-Outcome")) > 1)
		return HPX_DECLARED_UNKNOWN;
	return hpx_declared_parse(hpx_field_value(head, HPX_SPAN("Hapax-Outcome")));
}

static void take_outcome(struct hpx_request *request, const struct hpx_http_head *head)
{
	const struct hpx_policy *policy = &request->head.route->policy;
	bool later = hpx_field_find(head, HPX_SPAN("Retry-After")) != NULL;
	enum hpx_declared declared = declared_of(head);

	request->attempt.outcome = hpx_outcome_of_answer(head->status, later, declared, policy);
	request->attempt.outcome_assumed = hpx_outcome_is_assumed(head->status, later, declared);
	request->attempt.outcome_reason = hpx_outcome_reason(head->status, later, declared, policy,
							     request->head.route->server_error_said);
}

static void on_head(void *user, const struct hpx_http_head *head)
{
	struct hpx_request *request = user;

	if (!hpx_respond_take_head(request, head)) {
		refuse_answer(request, "the answer's head cannot be passed on");
		return;
	}
	take_outcome(request, head);
	if (cannot_be_kept(request, head))
		hold_back(request);
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct hpx_request *request = user;

	if (request->wait.kind == HPX_WAIT_FLOW) {
		hpx_respond_piece(request, bytes);
		return;
	}
	/* The buffer has room for one read past the bound, so that what has
	 * arrived is never dropped; out of memory, the answer is lost. */
	if (hpx_buffer_append(&request->answer.body, bytes) != HPX_OK) {
		refuse_answer(request, "the answer could not be held in memory");
		return;
	}
	bool charged = hpx_request_charge(request, bytes.len,
					  request->settings->bodies_bytes_max);
	if (!charged || request->answer.body.len > request->settings->response_body_bytes_max)
		hold_back(request);
}

static void ended(struct hpx_request *request)
{
	request->attempt.exchange = NULL;
	hpx_histogram_add(&request->shard->meter.upstream_us,
			  (uint64_t)(hpx_clock_boot_us() - request->attempt.forwarded_us));
}

static void on_end(void *user)
{
	struct hpx_request *request = user;

	ended(request);
	if (request->wait.kind == HPX_WAIT_FLOW) {
		request->wait.kind = HPX_WAIT_OVER;
		hpx_respond_end(request);
	} else if (request->answer.state == HPX_ANSWER_COLLECTING) {
		hpx_request_answer_move(request, HPX_ANSWER_COLLECTED);
		hpx_request_go(request, HPX_NEXT_STORE);
	}
	hpx_request_drop(request);
}

static void on_failed(void *user, const struct hpx_exchange_failure *failure)
{
	struct hpx_request *request = user;

	ended(request);
	if (request->wait.kind == HPX_WAIT_FLOW) {
		request->wait.kind = HPX_WAIT_OVER;
		hpx_respond_break(request);
	} else if (request->answer.state == HPX_ANSWER_HELD_BACK) {
		/* Its outcome is on its way already. */
		hpx_request_answer_move(request, HPX_ANSWER_HELD_BACK_LOST);
		request->attempt.failure.reason = failure->reason;
	} else {
		hpx_request_go(request, lost(request, failure));
	}
	hpx_request_drop(request);
}

static const struct hpx_exchange_events events = {
	.on_ready = on_ready,
	.on_informational = on_informational,
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_failed = on_failed,
};

enum hpx_next hpx_step_forward(struct hpx_request *request)
{
	struct hpx_exchange_failure nothing_left = { .status = HPX_NOMEM,
						     .reason = "out of memory" };

	request->attempt.forwarded_us = hpx_clock_boot_us();
	request->attempt.renew_at_ms = hpx_loop_now_ms(&request->shard->loop) +
				       (uint64_t)request->head.route->policy.lease_ms / 3;
	/* One read may come on top of the largest answer. */
	request->answer.body.max = request->settings->response_body_bytes_max + HPX_LOOP_READ_BYTES;
	enum hpx_status status = hpx_upstream_head_write(request, true);
	if (status != HPX_OK) {
		hpx_queue_leave(request);
		return lost(request, &nothing_left);
	}
	struct hpx_exchange_request up = {
		.slot = &request->attempt.slot,
		.method = request->head.http.method,
		.head = hpx_buffer_span(&request->attempt.head),
		.body = hpx_buffer_span(&request->body.bytes),
		.fresh = request->head.route->policy.reuse == HPX_REUSE_NEVER,
		.guarded = true,
	};
	hpx_request_hold(request);
	status = hpx_exchange_start(request->shard->upstream, &up, &events, request,
				    &request->attempt.exchange);
	if (status != HPX_OK) {
		hpx_queue_leave(request);
		hpx_request_drop(request);
		return lost(request, &nothing_left);
	}
	return hpx_request_await(request, HPX_WAIT_UPSTREAM, NULL, HPX_WAIT_NO_DEADLINE,
				 HPX_NEXT_STORE, HPX_NEXT_STORE);
}

void hpx_attempt_cancel(struct hpx_request *request)
{
	if (request->attempt.exchange == NULL)
		return;
	hpx_exchange_cancel(request->attempt.exchange);
	request->attempt.exchange = NULL;
	hpx_request_drop(request);
}

void hpx_attempt_abandon(struct hpx_request *request)
{
	struct hpx_exchange_failure failure = {
		.any_byte_left = request->attempt.exchange == NULL ||
				 hpx_exchange_any_byte_left(request->attempt.exchange),
		.status = HPX_CLOSED,
		.timed_out = true,
		.reason = "hapax is shutting down",
	};

	hpx_attempt_cancel(request);
	hpx_request_go(request, lost(request, &failure));
}

void hpx_attempt_renewed(struct hpx_request *request)
{
	enum hpx_status status = request->attempt.renewal.status;
	char reference[HPX_REFERENCE_SIZE];

	if (status == HPX_OK) {
		hpx_counter_add(&request->shard->meter.leases_renewed, 1);
	} else if (request->wait.kind == HPX_WAIT_UPSTREAM && status != HPX_REFUSED) {
		/* REFUSED: the application has committed its answer already. */
		hpx_reference_print(&request->reservation.record.id,
				    &request->reservation.record.mark, reference);
		hpx_log(HPX_LOG_WARN, "lease_not_renewed", "operation=%s problem=%s", reference,
			hpx_status_name(status));
	}
}

/* On the committer's thread. */
static void renewal_settled(struct hpx_store_op *op)
{
	struct hpx_request *request = op->user;
	hpx_resume_post(&request->attempt.renewed);
}

void hpx_attempt_renew(struct hpx_request *request, uint64_t now_ms)
{
	if (now_ms < request->attempt.renew_at_ms || hpx_resume_is_armed(&request->attempt.renewed) || request->attempt.exchange == NULL)
		return;
	request->attempt.renew_at_ms = now_ms + (uint64_t)request->head.route->policy.lease_ms / 3;
	request->attempt.renewal = (struct hpx_store_op){
		.verb = HPX_VERB_RENEW,
		.id = request->reservation.record.id,
		.token = request->reservation.record.token,
		.renew.lease_ms = request->head.route->policy.lease_ms,
		.done = renewal_settled,
		.user = request,
	};
	hpx_resume_arm(&request->attempt.renewed, request);
	hpx_committer_submit(request->shard->service->committer, &request->attempt.renewal);
}
