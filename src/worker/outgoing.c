/* One job on its way out: the request that it makes, what the answer means, and
 * the result that is stored. The target says where the request goes and with which
 * credentials; the job says path, fields and body; hapax adds the key and the
 * operation's reference.
 *
 *   CLAIMED ─▶ SENT ─▶ STORING ─▶ freed     hpx_outgoing_state
 *      └─────────────────▲                  (returned or refused: not sent)
 *
 *   CLAIMED ─▶ SENT      hpx_outgoing_send
 *   ─▶ STORING           store_result
 *   STORING ─▶ freed     stored
 *
 *  1. One thread has an outgoing job at a time: see hpx_outgoing_state.
 *  2. The slot of the target is free before the result is handed to the store. */
#include "worker/outgoing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/status.h"
#include "core/json.h"
#include "http/field.h"
#include "http/write.h"

#define URL_BYTES_MAX 16384
#define METHOD_BYTES_MAX 64
/* Holds the provider's id. The tree of the answer has memory of its own. */
#define ARENA_BYTES_MAX 4096

struct hpx_outgoing *hpx_outgoing_new(struct hpx_deliverer *deliverer, struct hpx_target_queue *queue,
				      struct hpx_job_entry *entry)
{
	struct hpx_outgoing *outgoing = calloc(1, sizeof(*outgoing));

	if (outgoing == NULL)
		return NULL;
	outgoing->deliverer = deliverer;
	outgoing->queue = queue;
	outgoing->entry = entry;
	hpx_buffer_init(&outgoing->url, URL_BYTES_MAX);
	hpx_buffer_init(&outgoing->method, METHOD_BYTES_MAX);
	hpx_buffer_init(&outgoing->headers, HPX_EGRESS_HEAD_BYTES_MAX);
	hpx_buffer_init(&outgoing->kept_headers, 2 * HPX_EGRESS_HEAD_BYTES_MAX);
	hpx_arena_init(&outgoing->arena, ARENA_BYTES_MAX);
	return outgoing;
}

static void outgoing_free(struct hpx_outgoing *outgoing)
{
	hpx_egress_request_done(&outgoing->request);
	hpx_arena_done(&outgoing->arena);
	hpx_buffer_done(&outgoing->kept_headers);
	hpx_buffer_done(&outgoing->headers);
	hpx_buffer_done(&outgoing->method);
	hpx_buffer_done(&outgoing->url);
	hpx_job_entry_free(outgoing->entry);
	free(outgoing);
}

/* ---- the request ---- */

/* What frames the message is the engine's; the host, the credentials and the
 * key are the target's and hapax's, whatever a job says. */
static bool is_ours(const struct hpx_job_target *target, struct hpx_span name)
{
	static const struct hpx_http_head none;
	struct hpx_field_line line;

	return hpx_field_is_hop(&none, name) || hpx_field_is_ours(name) ||
	       hpx_span_ieq(name, HPX_SPAN("Host")) ||
	       hpx_span_ieq(name, HPX_SPAN("Content-Length")) ||
	       hpx_span_ieq(name, HPX_SPAN("Expect")) ||
	       hpx_span_ieq(name, target->key_header) ||
	       hpx_field_line_find(target->caller.headers, name, &line);
}

/* A line that is no field travels on to the engine, which says what is wrong. */
static enum hpx_status add_job_headers(struct hpx_outgoing *outgoing)
{
	struct hpx_span rest = outgoing->entry->job.headers;
	enum hpx_status status = HPX_OK;
	struct hpx_field_line line;

	while (status == HPX_OK && hpx_field_line_next(&rest, &line))
		if (line.name.ptr == NULL || (!is_ours(outgoing->queue->target, line.name) &&
					      hpx_trace_call_takes(&outgoing->trace, line.name)))
			status = hpx_buffer_append(&outgoing->headers, line.whole);
	return status;
}

static enum hpx_status add_our_headers(struct hpx_outgoing *outgoing)
{
	const struct hpx_job_target *target = outgoing->queue->target;
	const struct hpx_delivery *delivery = &outgoing->entry->delivery;
	struct hpx_buffer *out = &outgoing->headers;
	char reference[HPX_REFERENCE_SIZE], key[HPX_JOB_KEY_SIZE];
	enum hpx_status status;

	hpx_reference_print(&delivery->operation, &delivery->mark, reference);
	status = hpx_job_key(&delivery->operation, &delivery->mark, outgoing->entry->job.name, key);
	if (status == HPX_OK)
		status = hpx_buffer_append(out, target->caller.headers);
	if (status == HPX_OK && target->key_header.len > 0)
		status = hpx_write_field(out, target->key_header, hpx_span_of(key));
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Hapax-Operation", reference);
	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Hapax-Attempt", delivery->attempt);
	return status == HPX_OK ? hpx_trace_call_write(&outgoing->trace, out) : status;
}

static enum hpx_status add_where(struct hpx_outgoing *outgoing)
{
	const struct hpx_job *job = &outgoing->entry->job;
	enum hpx_status status = hpx_buffer_text(&outgoing->url, outgoing->queue->target->caller.url);

	if (status == HPX_OK)
		status = hpx_buffer_append(&outgoing->url, job->path);
	if (status == HPX_OK)
		status = hpx_buffer_byte(&outgoing->url, '\0');
	if (status == HPX_OK)
		status = hpx_buffer_append(&outgoing->method, job->method);
	return status == HPX_OK ? hpx_buffer_byte(&outgoing->method, '\0') : status;
}

static enum hpx_status build(struct hpx_outgoing *outgoing)
{
	enum hpx_status status = add_where(outgoing);

	hpx_trace_call_begin(&outgoing->trace, outgoing->deliverer->service->tracer,
			     &outgoing->deliverer->settings->traces, outgoing->entry->job.headers);
	if (status == HPX_OK)
		status = add_job_headers(outgoing);
	return status == HPX_OK ? add_our_headers(outgoing) : status;
}

/* ---- the answer ---- */

static enum hpx_sent sent_of(enum hpx_egress_end end)
{
	switch (end) {
	case HPX_EGRESS_NOT_SENT:
		return HPX_SENT_NOTHING;
	case HPX_EGRESS_ANSWERED:
		return HPX_SENT_ANSWERED;
	case HPX_EGRESS_NO_ANSWER:
		break;
	}
	return HPX_SENT_NO_ANSWER;
}

/* The head that the engine's lines came from. */
static struct hpx_http_head head_of(struct hpx_span lines,
				    struct hpx_field fields[HPX_HTTP_FIELDS_MAX])
{
	struct hpx_http_head head = { .fields = fields };
	struct hpx_field_line line;

	while (head.field_count < HPX_HTTP_FIELDS_MAX && hpx_field_line_next(&lines, &line))
		if (line.name.ptr != NULL)
			fields[head.field_count++] = (struct hpx_field){ line.name, line.value };
	return head;
}

static bool is_event_stream(const struct hpx_http_head *head)
{
	struct hpx_span type = hpx_field_value(head, HPX_SPAN("Content-Type"));

	return hpx_span_ieq(hpx_span_trim(hpx_span_first(type, hpx_span_index(type, ';'))),
			    HPX_SPAN("text/event-stream"));
}

/* Keeps headers by the gateway's rule. Of an answer that is not kept, only Location
 * is: where the resource is. */
static enum hpx_status keep_headers(struct hpx_outgoing *outgoing, const struct hpx_http_head *head,
				    bool kept)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++) {
		const struct hpx_field *field = &head->fields[i];
		if (kept ? hpx_field_is_kept(head, field->name) :
			   hpx_span_ieq(field->name, HPX_SPAN("Location")))
			status = hpx_write_field(&outgoing->kept_headers, field->name, field->value);
	}
	return status;
}

/* For the replays of the answer, which are linked to this delivery. */
static enum hpx_status keep_trace(struct hpx_outgoing *outgoing, bool kept)
{
	if (!kept || !hpx_trace_is_sampled(&outgoing->trace.context))
		return HPX_OK;
	return hpx_trace_line_write(&outgoing->kept_headers, &outgoing->trace.context);
}

static void take_answer(struct hpx_outgoing *outgoing)
{
	const struct hpx_egress_request *request = &outgoing->request;
	struct hpx_field fields[HPX_HTTP_FIELDS_MAX];
	struct hpx_http_head head = head_of(hpx_buffer_span(&request->headers_in), fields);
	bool kept = !request->body_dropped && !outgoing->status_only && !is_event_stream(&head);

	/* Out of memory: only the fact that the job was executed is stored. */
	if (keep_headers(outgoing, &head, kept) != HPX_OK || keep_trace(outgoing, kept) != HPX_OK) {
		outgoing->kept_headers.len = 0;
		kept = false;
	}
	outgoing->answer = (struct hpx_answer){
		.status = request->status,
		.kept = kept,
		.headers = hpx_buffer_span(&outgoing->kept_headers),
		.body = kept ? hpx_buffer_span(&request->body_in) : hpx_span(NULL, 0),
	};
	outgoing->update.answer = &outgoing->answer;
}

/* ---- the result ---- */

/* The id is read whatever the status was: with it, the provider can be asked about the
 * job. */
static struct hpx_span find_provider_id(struct hpx_outgoing *outgoing)
{
	const struct hpx_egress_request *request = &outgoing->request;
	struct hpx_span pointer = outgoing->queue->target->provider_id;
	struct hpx_json_scalar scalar;

	if (pointer.ptr == NULL || request->end != HPX_EGRESS_ANSWERED || request->body_dropped ||
	    hpx_json_lookup(hpx_buffer_span(&request->body_in), pointer, HPX_PROVIDER_ID_SIZE - 1,
			    &outgoing->arena, &scalar) != HPX_OK ||
	    (scalar.kind != HPX_JSON_STRING && scalar.kind != HPX_JSON_NUMBER))
		return hpx_span(NULL, 0);
	return scalar.text;
}

static int64_t delay_ms(const struct hpx_outgoing *outgoing)
{
	const struct hpx_job_target *target = outgoing->queue->target;
	const struct hpx_delivery *delivery = &outgoing->entry->delivery;
	uint64_t random;

	hpx_random(&random, sizeof(random));
	return hpx_backoff_heed(hpx_backoff_delay(&target->backoff,
						  delivery->attempt - delivery->budget, random),
				outgoing->request.retry_after_ms, target->retry_after_max_ms);
}

static void write_reason(struct hpx_outgoing *outgoing)
{
	const struct hpx_egress_request *request = &outgoing->request;
	struct hpx_span name = hpx_span_first(outgoing->queue->target->name, 64);

	if (request->end == HPX_EGRESS_ANSWERED)
		snprintf(outgoing->reason, sizeof(outgoing->reason), "%.*s answered %u",
			 HPX_SPAN_ARG(name), request->status);
	else
		snprintf(outgoing->reason, sizeof(outgoing->reason), "%.*s: %s: %s",
			 HPX_SPAN_ARG(name), hpx_egress_end_text(request->end), request->problem);
}

/* The job's next move, when it is tried again, and the operation's answer where the
 * job brings it. */
static void judge(struct hpx_outgoing *outgoing)
{
	const struct hpx_egress_request *request = &outgoing->request;
	bool answers = outgoing->entry->delivery.answers;

	outgoing->update = (struct hpx_job_update){
		.move = hpx_job_judge(sent_of(request->end), request->status,
				      request->retry_after_ms >= 0, answers,
				      outgoing->queue->target->server_error),
		.attempts_max = outgoing->queue->target->attempts_max,
		.delay_ms = delay_ms(outgoing),
		.status = request->status,
		.provider_id = find_provider_id(outgoing),
	};
	if (request->resent)
		outgoing->update.move = hpx_job_judge_resent(outgoing->update.move, request->status);
	if (answers && outgoing->update.move == HPX_JOB_MOVE_DELIVER)
		take_answer(outgoing);
	write_reason(outgoing);
}

/* ---- storing the result ---- */

static const char *const result_events[] = {
#define X(name) "job_" #name,
	HPX_JOB_RESULT_LIST(X)
#undef X
};

static enum hpx_job_result result_of_move(enum hpx_job_move move)
{
	switch (move) {
	case HPX_JOB_MOVE_DELIVER:
		return HPX_JOB_RESULT_delivered;
	case HPX_JOB_MOVE_REJECT:
		return HPX_JOB_RESULT_rejected;
	case HPX_JOB_MOVE_POSTPONE:
		return HPX_JOB_RESULT_postponed;
	default:
		return HPX_JOB_RESULT_lost;
	}
}

/* The store decides the result: the budget may be used up, and the answer may be that
 * of an earlier delivery. */
static enum hpx_job_result result_of(const struct hpx_outgoing *outgoing)
{
	enum hpx_job_move move = outgoing->update.move;

	if (outgoing->op.job.after == NULL)
		return result_of_move(move);
	switch (outgoing->op.job.after->delivery.state) {
	case HPX_JOB_DONE:
		return HPX_JOB_RESULT_delivered;
	case HPX_JOB_DEAD:
		return move == HPX_JOB_MOVE_REJECT ? HPX_JOB_RESULT_rejected : HPX_JOB_RESULT_dead;
	case HPX_JOB_QUEUED:
		return move == HPX_JOB_MOVE_POSTPONE ? HPX_JOB_RESULT_postponed :
						       HPX_JOB_RESULT_lost;
	case HPX_JOB_UNKNOWN:
		return HPX_JOB_RESULT_lost;
	default:
		return result_of_move(move);
	}
}

static const char *state_of(const struct hpx_outgoing *outgoing)
{
	return outgoing->op.job.after != NULL ? hpx_job_state_name(outgoing->op.job.after->delivery.state) : "?";
}

static void log_result(const struct hpx_outgoing *outgoing)
{
	const struct hpx_delivery *delivery = &outgoing->entry->delivery;
	enum hpx_job_result result = result_of(outgoing);
	bool stored = outgoing->op.status == HPX_OK;
	char reference[HPX_REFERENCE_SIZE];

	if (stored)
		hpx_counter_add(&outgoing->queue->counters->results[result], 1);
	hpx_reference_print(&delivery->operation, &delivery->mark, reference);
	if (stored)
		hpx_log(result == HPX_JOB_RESULT_delivered ? HPX_LOG_DEBUG : HPX_LOG_WARN,
			result_events[result],
			"job=%lld operation=%s target=%.*s attempt=%u status=%u state=%s reason=\"%s\"",
			(long long)delivery->number, reference,
			HPX_SPAN_ARG(outgoing->queue->target->name), delivery->attempt,
			outgoing->update.status, state_of(outgoing), outgoing->reason);
	else /* a person settled the job meanwhile, or the sweep will */
		hpx_log(HPX_LOG_WARN, "job_not_stored",
			"job=%lld operation=%s target=%.*s attempt=%u move=%s problem=%s reason=\"%s\"",
			(long long)delivery->number, reference,
			HPX_SPAN_ARG(outgoing->queue->target->name), delivery->attempt,
			hpx_job_move_name(outgoing->update.move), hpx_status_name(outgoing->op.status),
			outgoing->reason);
}

static void trace_result(const struct hpx_outgoing *outgoing)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_JOB_RESULT_LIST(X)
#undef X
	};
	const struct hpx_delivery *delivery = &outgoing->entry->delivery;
	const struct hpx_egress_request *request = &outgoing->request;
	enum hpx_job_result result = result_of(outgoing);
	struct hpx_trace_span span;

	if (outgoing->trace.ended_us == 0 || !hpx_trace_call_end(&outgoing->trace, HPX_TRACE_DELIVER, &span))
		return;
	span.failed = result != HPX_JOB_RESULT_delivered;
	span.status = request->status;
	span.attempt = delivery->attempt;
	span.job = delivery->number;
	span.decision = names[result];
	span.error = request->end != HPX_EGRESS_ANSWERED ? hpx_egress_end_text(request->end) : NULL;
	HPX_TRACE_PUT(span.method, outgoing->entry->job.method);
	HPX_TRACE_PUT(span.target, outgoing->queue->target->name);
	hpx_reference_print(&delivery->operation, &delivery->mark, span.operation);
	hpx_tracer_add(outgoing->deliverer->service->tracer, &span, 1);
}

static void stored(struct hpx_store_op *op)
{
	struct hpx_outgoing *outgoing = HPX_CONTAINER(op, struct hpx_outgoing, op);
	struct hpx_deliverer *deliverer = outgoing->deliverer;

	HPX_ASSERT(outgoing->state == HPX_OUTGOING_STORING);
	HPX_CRASH_POINT(job_stored);
	log_result(outgoing);
	trace_result(outgoing);
	hpx_job_entry_free(op->job.after);
	outgoing_free(outgoing);
	hpx_deliverer_ended(deliverer);
}

static void store_result(struct hpx_outgoing *outgoing)
{
	const struct hpx_delivery *delivery = &outgoing->entry->delivery;

	HPX_ASSERT(outgoing->state != HPX_OUTGOING_STORING);
	outgoing->state = HPX_OUTGOING_STORING;
	outgoing->update.number = delivery->number;
	outgoing->op = (struct hpx_store_op){
		.verb = HPX_VERB_JOB,
		.id = delivery->operation,
		.token = delivery->token,
		.job.update = &outgoing->update,
		.actor = HPX_SPAN("deliverer"),
		.reason = hpx_span_of(outgoing->reason),
		.done = stored,
	};
	hpx_committer_submit(outgoing->deliverer->service->committer, &outgoing->op);
}

/* ---- sending ---- */

void hpx_outgoing_return(struct hpx_outgoing *outgoing, const char *why)
{
	outgoing->update = (struct hpx_job_update){ .move = HPX_JOB_MOVE_POSTPONE,
						    .unsent = true };
	snprintf(outgoing->reason, sizeof(outgoing->reason), "it was not sent: %s", why);
	hpx_deliverer_slot_free(outgoing->deliverer, outgoing->queue, NULL);
	store_result(outgoing);
}

static void ended(struct hpx_egress_request *request)
{
	struct hpx_outgoing *outgoing = HPX_CONTAINER(request, struct hpx_outgoing, request);

	HPX_ASSERT(outgoing->state == HPX_OUTGOING_SENT);
	HPX_CRASH_POINT(job_answered);
	outgoing->trace.ended_us = hpx_clock_wall_us();
	if (request->end == HPX_EGRESS_NOT_SENT &&
	    hpx_thread_is_stopping(&outgoing->deliverer->thread)) {
		hpx_outgoing_return(outgoing, request->problem);
		return;
	}
	judge(outgoing);
	hpx_deliverer_slot_free(outgoing->deliverer, outgoing->queue, request);
	store_result(outgoing);
}

/* The request cannot be made, now or later. Where an earlier delivery may have been
 * executed, the job is lost, not refused. */
static void refuse(struct hpx_outgoing *outgoing, enum hpx_status status)
{
	const struct hpx_job_target *target = outgoing->queue->target;

	outgoing->update = (struct hpx_job_update){
		.move = outgoing->entry->delivery.unsure ? HPX_JOB_MOVE_LOSE : HPX_JOB_MOVE_REJECT,
		.attempts_max = target->attempts_max,
		.delay_ms = target->backoff.cap_ms,
	};
	snprintf(outgoing->reason, sizeof(outgoing->reason), "%.*s: it cannot be sent: %s",
		 HPX_SPAN_ARG(hpx_span_first(target->name, 64)),
		 outgoing->request.problem[0] != '\0' ? outgoing->request.problem :
							hpx_status_text(status));
	hpx_deliverer_slot_free(outgoing->deliverer, outgoing->queue, NULL);
	store_result(outgoing);
}

static enum hpx_status hand_over(struct hpx_outgoing *outgoing, int64_t send_until_ms,
				 size_t answer_bytes_max)
{
	const struct hpx_job_target *target = outgoing->queue->target;
	enum hpx_status status = build(outgoing);

	if (status != HPX_OK)
		return status;
	outgoing->request = (struct hpx_egress_request){
		.url = outgoing->url.ptr,
		.method = outgoing->method.ptr,
		.headers = hpx_buffer_span(&outgoing->headers),
		.body = outgoing->entry->job.body,
		.reuse = target->honours_keys_ms > 0,
		.connect_timeout_ms = target->caller.connect_timeout_ms,
		.timeout_ms = target->caller.timeout_ms,
		.send_until_ms = send_until_ms,
		.answer_bytes_max = answer_bytes_max,
		.ca_file = target->caller.ca_file,
		.done = ended,
	};
	outgoing->state = HPX_OUTGOING_SENT; /* the engine may end it before this returns */
	status = hpx_egress_submit(outgoing->deliverer->egress, &outgoing->request);
	if (status != HPX_OK)
		outgoing->state = HPX_OUTGOING_CLAIMED;
	return status;
}

void hpx_outgoing_send(struct hpx_outgoing *outgoing, int64_t send_until_ms,
		       size_t answer_bytes_max)
{
	HPX_ASSERT(outgoing->state == HPX_OUTGOING_CLAIMED);
	enum hpx_status status = hand_over(outgoing, send_until_ms, answer_bytes_max);

	if (status == HPX_OK)
		HPX_CRASH_POINT(job_sending);
	else if (status == HPX_INVALID || status == HPX_TOO_LARGE)
		refuse(outgoing, status);
	else
		hpx_outgoing_return(outgoing, hpx_status_text(status));
}
