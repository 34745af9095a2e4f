/* The end of an attempt. An answer that would be replayed is durable before the
 * client sees it (guarantee 3). Where the store does not take the answer in time, the
 * client is told 504, and hapax goes on storing: the committer tries until it
 * succeeds, and the late answer of the same lease still completes the record.
 *
 * An application may have committed the answer itself, in its own transaction. That
 * answer is the truth, whatever HTTP said: it is read and given. Where only the
 * application completes (CONCLUDE), the end of the exchange decides nothing: either
 * the application's answer is there, or its token is void from now on, which proves
 * that nothing happened. */
#include "gateway/steps.h"

#include "base/log.h"
#include "base/status.h"
#include "http/field.h"

/* Of an answer that is not kept, only the Location is stored. */
static struct hpx_span location_line(const struct hpx_request *request)
{
	struct hpx_field_line line;

	return hpx_field_line_find(hpx_buffer_span(&request->answer.kept_head), HPX_SPAN("Location"), &line) ?
		       line.whole :
		       (struct hpx_span){ NULL, 0 };
}

/* The status of the answer; 0 where there is no complete answer. */
static unsigned status_seen(const struct hpx_request *request)
{
	return hpx_request_answer_is_lost(request) ? 0 : request->answer.status;
}

/* Why there is no complete answer. CLOSED is the upstream's doing only after a byte left,
 * and a deadline that closes it is the gateway's own end. */
static enum hpx_last_error error_of_failure(const struct hpx_exchange_failure *failure)
{
	bool ours = failure->status == HPX_NOMEM || failure->status == HPX_FULL ||
		    (failure->status == HPX_CLOSED && (failure->timed_out || !failure->any_byte_left));

	if (!failure->any_byte_left)
		return ours ? HPX_LAST_ERROR_NOT_SENT : HPX_LAST_ERROR_UPSTREAM_UNREACHABLE;
	if (ours)
		return HPX_LAST_ERROR_INTERRUPTED;
	if (failure->timed_out)
		return HPX_LAST_ERROR_UPSTREAM_TIMEOUT;
	return failure->status == HPX_INVALID ? HPX_LAST_ERROR_UPSTREAM_INVALID :
						HPX_LAST_ERROR_UPSTREAM_RESET;
}

/* NONE where the status tells it, or the verb. */
static enum hpx_last_error error_of(const struct hpx_request *request)
{
	if (request->answer.state == HPX_ANSWER_COLLECTING)
		return HPX_LAST_ERROR_NOT_SENT;
	return hpx_request_answer_is_lost(request) ? error_of_failure(&request->attempt.failure) :
						     HPX_LAST_ERROR_NONE;
}

static const struct hpx_answer *answer_to_store(struct hpx_request *request)
{
	bool kept = !hpx_request_answer_is_held_back(request);

	HPX_ASSERT(request->answer.state == HPX_ANSWER_COLLECTED ||
		   hpx_request_answer_is_held_back(request));
	if (kept)
		hpx_request_trace_keep(request, &request->answer.kept_head);
	request->answer.to_store = (struct hpx_answer){
		.status = request->answer.status,
		.kept = kept,
		.headers = kept ? hpx_buffer_span(&request->answer.kept_head) : location_line(request),
		.body = kept ? hpx_buffer_span(&request->answer.body) : (struct hpx_span){ NULL, 0 },
	};
	return &request->answer.to_store;
}

/* The event upstream_down has been logged: a warning for each request that finds the
 * upstream down would hide everything else. */
static bool is_logged_already(const struct hpx_request *request)
{
	return hpx_request_answer_is_lost(request) && !request->attempt.failure.any_byte_left &&
	       atomic_load(&request->shard->gateway->upstream_state.down);
}

static enum hpx_log_level level_of(const struct hpx_request *request)
{
	if (request->attempt.outcome == HPX_OUTCOME_UNKNOWN)
		return HPX_LOG_WARN;
	return is_logged_already(request) ? HPX_LOG_DEBUG : HPX_LOG_INFO;
}

static const char *event_of(const struct hpx_request *request)
{
	if (request->attempt.outcome == HPX_OUTCOME_UNKNOWN)
		return "outcome_unknown";
	return request->attempt.outcome_assumed && !hpx_request_answer_is_lost(request) ? "assumed_not_executed" :
											  "not_executed";
}

static void log_end(const struct hpx_request *request)
{
	char reference[HPX_REFERENCE_SIZE];

	if (request->attempt.outcome == HPX_OUTCOME_ANSWERED || request->attempt.outcome == HPX_OUTCOME_RELEASED)
		return;
	hpx_reference_print(&request->identity.ask.id, &request->reservation.record.mark, reference);
	hpx_log(level_of(request), event_of(request),
		"operation=%s attempt=%u status=%u reason=\"%s\"", reference,
		request->reservation.record.attempt, status_seen(request),
		hpx_request_answer_is_lost(request) ? request->attempt.failure.reason : request->attempt.outcome_reason);
}

/* The store refused the answer because the lease is lost: the operation was settled
 * by somebody else. */
static void log_refused(const struct hpx_request *request)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&request->identity.ask.id, &request->reservation.record.mark, reference);
	hpx_log(HPX_LOG_WARN, "answer_not_stored", "operation=%s verb=%s problem=%s", reference,
		hpx_verb_name(request->reservation.op.verb), hpx_status_name(request->reservation.op.status));
}

static bool only_application_completes(const struct hpx_request *request)
{
	return request->head.route->policy.completes == HPX_COMPLETES_APPLICATION;
}

/* Whether the application has completed the operation itself. A move with the right
 * token is refused only if the record is completed; under CONCLUDE, a lost lease may
 * be another attempt's by now. */
static bool is_decided_elsewhere(const struct hpx_store_op *op)
{
	if (op->status == HPX_OK)
		return (op->verb == HPX_VERB_COMPLETE && op->complete.already) ||
		       (op->verb == HPX_VERB_CONCLUDE && op->conclude.already);
	return op->status == HPX_REFUSED ||
	       (op->status == HPX_STALE && op->verb == HPX_VERB_CONCLUDE);
}

static void log_uncommitted(const struct hpx_request *request)
{
	char reference[HPX_REFERENCE_SIZE];
	bool success = !hpx_request_answer_is_lost(request) && request->answer.status < 400;

	hpx_reference_print(&request->identity.ask.id, &request->reservation.record.mark, reference);
	hpx_log(success ? HPX_LOG_WARN : HPX_LOG_INFO, "not_committed",
		"operation=%s attempt=%u status=%u reason=\"%s\"", reference,
		request->reservation.record.attempt, status_seen(request),
		hpx_request_answer_is_lost(request) ? request->attempt.failure.reason :
						      "the application answered without hapax.complete");
}

/* The verbs whose result must be known before the client sees anything. */
static bool is_awaited(enum hpx_verb verb)
{
	return verb == HPX_VERB_COMPLETE || verb == HPX_VERB_CONCLUDE;
}

/* The result of the op, where the application had not completed the operation. */
static void take_result(struct hpx_request *request)
{
	const struct hpx_store_op *op = &request->reservation.op;

	if (op->status != HPX_OK) {
		if (op->status != HPX_STALE || op->verb == HPX_VERB_COMPLETE)
			log_refused(request);
		return;
	}
	if (op->verb == HPX_VERB_COMPLETE) {
		hpx_cached_keep(request, op->judged_ms, &op->decision.record, op->complete.answer);
		hpx_limit_stored(request, op->complete.answer != NULL ? op->complete.answer->body.len : 0);
	}
	/* A released record is gone; its reference still names the attempt. */
	if (op->decision.record.state != HPX_STATE_NONE)
		request->reservation.record = op->decision.record;
	if (op->verb != HPX_VERB_COMPLETE && op->decision.record.state != HPX_STATE_NONE)
		hpx_counter_add(&request->shard->service->counters.attempt_errors[op->decision.record.last_error], 1);
	if (op->verb == HPX_VERB_CONCLUDE)
		log_uncommitted(request);
	HPX_CRASH_POINT(complete_done);
}

enum hpx_next hpx_step_stored(struct hpx_request *request)
{
	if (is_decided_elsewhere(&request->reservation.op))
		return HPX_NEXT_COMMITTED;
	take_result(request);
	return HPX_NEXT_ANSWER;
}

void hpx_settle_late(struct hpx_request *request)
{
	const struct hpx_store_op *op = &request->reservation.op;

	if (is_decided_elsewhere(op))
		return;
	take_result(request);
	if (op->verb == HPX_VERB_COMPLETE && op->status == HPX_OK)
		hpx_counter_add(&request->shard->meter.late_answers, 1);
}

/* For the operation's events: why there was no answer, or what was assumed of one. */
static struct hpx_span reason_of(const struct hpx_request *request)
{
	if (hpx_request_answer_is_lost(request))
		return hpx_span_of(request->attempt.failure.reason);
	if (request->attempt.outcome_assumed && request->attempt.outcome != HPX_OUTCOME_ANSWERED)
		return hpx_span_of(request->attempt.outcome_reason);
	return (struct hpx_span){ NULL, 0 };
}

/* The arguments of the verb that ends an attempt. */
static void make_arguments(struct hpx_request *request, struct hpx_store_op *op)
{
	struct hpx_op_end end = {
		.status_seen = status_seen(request),
		.error = error_of(request),
	};

	switch (op->verb) {
	case HPX_VERB_COMPLETE:
		op->complete.answer = answer_to_store(request);
		op->complete.believed = &request->reservation.record;
		op->complete.row = request->reservation.row;
		op->complete.retention_ms = request->answer.retention_ms;
		break;
	case HPX_VERB_FAIL:
		op->fail = end;
		break;
	case HPX_VERB_RELEASE:
		op->release = end;
		break;
	case HPX_VERB_MARK_UNKNOWN:
		op->mark_unknown = end;
		break;
	default:
		HPX_ASSERT(op->verb == HPX_VERB_CONCLUDE);
		op->conclude.end = end;
		break;
	}
}

static void make_op(struct hpx_request *request, enum hpx_verb verb)
{
	request->reservation.op = (struct hpx_store_op){
		.verb = verb,
		.id = request->identity.ask.id,
		.token = request->identity.ask.token,
		.actor = HPX_SPAN("gateway"),
		.reason = reason_of(request),
	};
	make_arguments(request, &request->reservation.op);
	HPX_CRASH_POINT(complete_submitted);
}

static enum hpx_next settle(struct hpx_request *request, enum hpx_verb verb)
{
	hpx_request_begin(request, &request->times.complete);
	make_op(request, verb);
	return hpx_request_submit(request, HPX_WAIT_STORE, HPX_NEXT_STORED, HPX_NEXT_STORE_LATE);
}

void hpx_settle_undo(struct hpx_request *request)
{
	make_op(request, HPX_VERB_FAIL);
	hpx_request_submit_unawaited(request);
}

enum hpx_next hpx_step_store(struct hpx_request *request)
{
	static const enum hpx_verb verbs[] = {
		[HPX_OUTCOME_ANSWERED] = HPX_VERB_COMPLETE,
		[HPX_OUTCOME_NOT_EXECUTED] = HPX_VERB_FAIL,
		[HPX_OUTCOME_RELEASED] = HPX_VERB_RELEASE,
		[HPX_OUTCOME_UNKNOWN] = HPX_VERB_MARK_UNKNOWN,
	};

	HPX_ASSERT(request->answer.state != HPX_ANSWER_COLLECTING);
	if (only_application_completes(request))
		return settle(request, HPX_VERB_CONCLUDE);
	log_end(request);
	return settle(request, verbs[request->attempt.outcome]);
}

enum hpx_next hpx_step_committed_read(struct hpx_request *request)
{
	const struct hpx_store_op *op = &request->reservation.op;

	HPX_ASSERT(op->verb == HPX_VERB_RESERVE && op->reserve.look);
	if (op->status == HPX_OK && op->decision.kind == HPX_DECISION_REPLAY) {
		request->reservation.record = op->decision.record;
		request->reservation.stored = op->reserve.replay;
		hpx_cached_keep(request, op->judged_ms, &request->reservation.record, op->reserve.replay);
		hpx_request_answer_move(request, HPX_ANSWER_COMMITTED);
	} else {
		hpx_answer_free(op->reserve.replay);
	}
	return HPX_NEXT_ANSWER;
}

/* The application's answer is in the store: a RESERVE that only asks reads it. */
enum hpx_next hpx_step_committed(struct hpx_request *request)
{
	if (request->downstream == NULL) {
		hpx_request_end(request, &request->times.complete);
		hpx_attempt_cancel(request);
		return HPX_NEXT_DONE;
	}
	request->reservation.op = (struct hpx_store_op){
		.verb = HPX_VERB_RESERVE,
		.id = request->identity.ask.id,
		.token = request->identity.ask.token,
		.reserve.ask = &request->identity.ask,
		.reserve.policy = &request->head.route->policy,
		.reserve.description = &request->identity.description,
		.reserve.look = true,
		.actor = HPX_SPAN("gateway"),
	};
	return hpx_request_submit(request, HPX_WAIT_STORE, HPX_NEXT_COMMITTED_READ, HPX_NEXT_STORE_LATE);
}

static enum hpx_next refuse_unsettled(struct hpx_request *request, unsigned status, const char *detail)
{
	struct hpx_refusal refusal = { .detail = detail, .status = status, .retry_after_s = 1 };

	return hpx_respond_refuse(request, HPX_PROBLEM_upstream_outcome_unknown, &refusal,
				  HPX_RESPOND_KEEP);
}

/* The attempt ended without an answer. */
static enum hpx_next refuse_lost(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1 };

	if (only_application_completes(request) && request->attempt.failure.any_byte_left) {
		refusal.status = request->attempt.failure.timed_out ? 504 : 502;
		return hpx_respond_refuse(request, HPX_PROBLEM_upstream_not_executed, &refusal,
					  HPX_RESPOND_KEEP);
	}
	if (hpx_request_answer_is_held_back(request)) {
		refusal = (struct hpx_refusal){ .original_status = request->answer.status };
		return hpx_respond_refuse(request, HPX_PROBLEM_response_not_kept, &refusal,
					  HPX_RESPOND_KEEP);
	}
	if (request->attempt.failure.any_byte_left)
		return refuse_unsettled(request, request->attempt.failure.timed_out ? 504 : 502, NULL);
	return hpx_respond_refuse(request,
				  request->answer.state == HPX_ANSWER_TOO_LATE ?
					  HPX_PROBLEM_overloaded :
					  HPX_PROBLEM_upstream_unreachable,
				  &refusal, HPX_RESPOND_KEEP);
}

/* The answer must be durable before it is shown, and is not; or the application's
 * answer could not be read. */
static bool may_not_be_shown(const struct hpx_request *request)
{
	const struct hpx_store_op *op = &request->reservation.op;

	return op->verb == HPX_VERB_RESERVE || (is_awaited(op->verb) && op->status != HPX_OK);
}

static enum hpx_next let_flow(struct hpx_request *request)
{
	hpx_respond_begin(request);
	if (request->downstream == NULL) {
		hpx_attempt_cancel(request);
		return HPX_NEXT_DONE;
	}
	/* No exchange: the answer ended while it was held back. */
	if (request->attempt.exchange == NULL) {
		hpx_respond_end(request);
		return HPX_NEXT_DONE;
	}
	hpx_exchange_resume(request->attempt.exchange);
	return hpx_request_await(request, HPX_WAIT_FLOW, NULL, HPX_WAIT_NO_DEADLINE, HPX_NEXT_DONE,
				 HPX_NEXT_DONE);
}

enum hpx_next hpx_step_answer(struct hpx_request *request)
{
	hpx_request_end(request, &request->times.complete);
	if (request->downstream == NULL) {
		hpx_attempt_cancel(request);
		return HPX_NEXT_DONE;
	}
	if (request->answer.state == HPX_ANSWER_COMMITTED) {
		hpx_attempt_cancel(request);
		return hpx_guard_replay(request);
	}
	if (may_not_be_shown(request)) {
		hpx_attempt_cancel(request);
		return refuse_unsettled(request, 504, NULL);
	}
	if (hpx_request_answer_is_lost(request))
		return refuse_lost(request);
	if (request->answer.state == HPX_ANSWER_HELD_BACK)
		return let_flow(request);
	HPX_ASSERT(request->answer.state == HPX_ANSWER_COLLECTED);
	hpx_respond_collected(request);
	return HPX_NEXT_DONE;
}

/* The store takes too long. An answer that would be replayed must be durable before
 * it is shown, so the client gets 504. Any other answer is shown now, and the store
 * is told when it can be. */
enum hpx_next hpx_step_store_late(struct hpx_request *request)
{
	enum hpx_verb verb = request->reservation.op.verb;

	hpx_request_end(request, &request->times.complete);
	if (!is_awaited(verb) && verb != HPX_VERB_RESERVE)
		return HPX_NEXT_ANSWER;
	hpx_attempt_cancel(request);
	return refuse_unsettled(request, 504,
				verb == HPX_VERB_COMPLETE ?
					"The service answered, but the answer could not be stored yet. "
					"Send it again with the same key: it is not executed twice." :
					"Whether the service committed its answer is not known yet. "
					"Send it again with the same key: it is not executed twice.");
}
