/* One probe call: from the unknown that was claimed to the ruling that is stored.
 *
 *   CLAIMED ─▶ SENT ──────────────▶ RULING ─▶ freed     hpx_probe_call_state
 *      │ │       └▶ ANSWERED ─▶───────▲                 (asked by the client's key)
 *      │ └────────────────────────────┘                 (evidence, or no probe can be made)
 *      └▶ freed                              (dropped: no probe, too early, too late)
 *
 *   CLAIMED ─▶ SENT      hpx_probe_call_send
 *   SENT ─▶ ANSWERED     hand_back
 *   ─▶ RULING            rule
 *   RULING ─▶ freed      on_ruled
 *   ─▶ freed             hpx_probe_call_drop
 *
 *  1. One thread has a call at a time: see hpx_probe_call_state.
 *  2. The slot of the queue is free before the ruling is handed to the store.
 *  3. That a key is one operation's only is looked up before the call and once more when
 *     it was answered: whatever the service knew by then was reserved before. */
#include "worker/probe_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/status.h"
#include "core/job.h"
#include "core/json.h"
#include "core/number.h"
#include "http/field.h"
#include "http/octet.h"

#define URL_BYTES_MAX 8192
/* The largest answer of a probe that is only read for its state: it is no document. */
#define ANSWER_BYTES_MAX ((size_t)256 * 1024)
/* Holds two operations with one key. */
#define ARENA_BYTES_MAX 65536
/* The store gets this long, before a call and after it. */
#define STORE_MS 10000
#define NOT_UNIQUE "another operation of the route has the same key"

/* ---- what the call is about ---- */

static bool is_job(const struct hpx_unsettled *unknown)
{
	return unknown->delivery.number != 0;
}

static const struct hpx_operation_id *operation_of(const struct hpx_unsettled *unknown)
{
	return is_job(unknown) ? &unknown->delivery.operation : &unknown->record.id;
}

/* The mark of the operation's reference. */
static const struct hpx_mark *mark_of(const struct hpx_unsettled *unknown)
{
	return is_job(unknown) ? &unknown->delivery.mark : &unknown->record.mark;
}

static void print_reference(const struct hpx_unsettled *unknown, char out[HPX_REFERENCE_SIZE])
{
	hpx_reference_print(operation_of(unknown), mark_of(unknown), out);
}

/* NULL: no probe is configured. */
static const struct hpx_reconcile_settings *reconcile_of(const struct hpx_settings *settings,
							 const struct hpx_unsettled *unknown)
{
	const struct hpx_reconcile_settings *reconcile = NULL;

	if (is_job(unknown)) {
		const struct hpx_job_target *target =
			hpx_settings_find_target(settings, unknown->target);
		reconcile = target != NULL ? &target->reconcile : NULL;
	} else {
		const struct hpx_route *route =
			hpx_settings_find_route(settings, unknown->description.route);
		reconcile = route != NULL ? &route->reconcile : NULL;
	}
	return reconcile != NULL && reconcile->given && reconcile->probe.given ? reconcile : NULL;
}

/* ---- making and freeing ---- */

static struct hpx_probe_call *call_new(struct hpx_reconciler *reconciler,
				       struct hpx_settings *settings,
				       struct hpx_unsettled *unknown)
{
	struct hpx_probe_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->reconciler = reconciler;
	call->settings = hpx_settings_ref(settings);
	call->unknown = unknown;
	call->reconcile = reconcile_of(settings, unknown);
	hpx_buffer_init(&call->url, URL_BYTES_MAX);
	hpx_buffer_init(&call->headers, HPX_EGRESS_HEAD_BYTES_MAX);
	hpx_buffer_init(&call->answer_headers, HPX_RECONSTRUCT_HEADERS_MAX);
	hpx_buffer_init(&call->answer_body, settings->response_body_bytes_max);
	return call;
}

static void call_free(struct hpx_probe_call *call)
{
	hpx_egress_request_done(&call->request);
	hpx_buffer_done(&call->url);
	hpx_buffer_done(&call->headers);
	hpx_buffer_done(&call->answer_headers);
	hpx_buffer_done(&call->answer_body);
	hpx_unsettled_free(call->unknown);
	hpx_settings_unref(call->settings);
	free(call);
}

/* The queue is left last: the reconciler is freed when its last call has left. */
void hpx_probe_call_drop(struct hpx_probe_call *call)
{
	struct hpx_reconciler *reconciler = call->reconciler;
	struct hpx_probe_queue *queue = call->queue;

	call_free(call);
	hpx_probe_queue_leave(reconciler, queue);
}

/* ---- the ruling ---- */

static enum hpx_reconciled result_of(enum hpx_reconcile_move move)
{
	switch (move) {
	case HPX_RECONCILE_SETTLE_APPLIED:
	case HPX_RECONCILE_SETTLE_DECLINED:
	case HPX_RECONCILE_SETTLE_NOT_APPLIED:
		return HPX_RECONCILED_resolved;
	case HPX_RECONCILE_A_PERSON:
		return HPX_RECONCILED_failed;
	default:
		return HPX_RECONCILED_scheduled;
	}
}

static void log_ruling(const struct hpx_probe_call *call, enum hpx_log_level level,
		       const char *event, const char *move)
{
	char reference[HPX_REFERENCE_SIZE];

	print_reference(call->unknown, reference);
	hpx_log(level, event, "operation=%s job=%lld move=%s reason=\"%s\"", reference,
		(long long)call->unknown->delivery.number, move, call->reason);
}

static void count_ruling(const struct hpx_probe_call *call, enum hpx_reconcile_move move)
{
	static const struct {
		enum hpx_log_level level;
		const char *event;
	} lines[] = {
		[HPX_RECONCILED_scheduled] = { HPX_LOG_DEBUG, "asked" },
		[HPX_RECONCILED_resolved] = { HPX_LOG_INFO, "reconciled" },
		[HPX_RECONCILED_failed] = { HPX_LOG_WARN, "left_to_a_person" },
	};
	enum hpx_reconciled result = result_of(move);

	hpx_counter_add(&call->reconciler->service->counters.reconciled[result], 1);
	log_ruling(call, lines[result].level, lines[result].event, hpx_reconcile_name(move));
}

static void on_ruled(struct hpx_store_op *op)
{
	struct hpx_probe_call *call = HPX_CONTAINER(op, struct hpx_probe_call, op);

	HPX_ASSERT(call->state == HPX_PROBE_CALL_RULING);
	HPX_CRASH_POINT(reconcile_ruled);
	if (op->status == HPX_OK)
		count_ruling(call, call->update.move);
	else /* the operation was removed or settled by a person, or the store is gone */
		log_ruling(call, HPX_LOG_WARN, "ruling_not_stored", hpx_status_name(op->status));
	hpx_probe_call_drop(call);
}

/* Hands the ruling to the store. The call is freed when it is stored. */
static void rule(struct hpx_probe_call *call, const struct hpx_received_ruling *received)
{
	HPX_ASSERT(call->state != HPX_PROBE_CALL_RULING);
	call->state = HPX_PROBE_CALL_RULING;
	call->update = (struct hpx_ruling_update){ .number = call->unknown->delivery.number,
						   .received = *received,
						   .answer = call->answer.status != 0 ? &call->answer : NULL };
	if (call->reconcile != NULL)
		call->update.rule = call->reconcile->rule;
	hpx_random(&call->update.random, sizeof(call->update.random));
	call->op = (struct hpx_store_op){
		.verb = HPX_VERB_RULE,
		.id = *operation_of(call->unknown),
		.mark = *mark_of(call->unknown),
		.rule.update = &call->update,
		.actor = HPX_SPAN("reconciler"),
		.reason = hpx_span_of(call->reason),
		.done = on_ruled,
	};
	hpx_committer_submit(call->reconciler->service->committer, &call->op);
}

/* The probe failed, or cannot be made. That is a ruling too: it says nothing, and
 * costs a try. */
static void rule_unclear(struct hpx_probe_call *call, const char *why)
{
	struct hpx_received_ruling received = { .ruling = HPX_RULING_UNCLEAR,
						.about_ms = hpx_clock_wall_ms(),
						.asked = true };

	snprintf(call->reason, sizeof(call->reason), "the probe says nothing: %s", why);
	rule(call, &received);
}

/* ---- the URL ---- */

static enum hpx_status append_encoded(struct hpx_buffer *out, struct hpx_span text)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < text.len && status == HPX_OK; i++)
		status = hpx_octet_is(text.ptr[i], HPX_OCTET_UNRESERVED) ?
				 hpx_buffer_byte(out, text.ptr[i]) :
				 hpx_buffer_printf(out, "%%%02X", (unsigned char)text.ptr[i]);
	return status;
}

static enum hpx_status append_reference(const struct hpx_unsettled *unknown, struct hpx_buffer *out)
{
	char reference[HPX_REFERENCE_SIZE];

	print_reference(unknown, reference);
	return append_encoded(out, hpx_span_of(reference));
}

static enum hpx_status append_provider_id(const struct hpx_unsettled *unknown,
					  struct hpx_buffer *out, const char **ret_reason)
{
	const char *id = unknown->delivery.provider_id;

	if (!is_job(unknown) || id[0] == '\0') {
		*ret_reason = "the provider's id is not known";
		return HPX_NOT_FOUND;
	}
	return append_encoded(out, hpx_span_of(id));
}

/* Whether this is the only operation with its key, whatever the index by key has: all of
 * them are looked at. */
static enum hpx_status find_unique(const struct hpx_unsettled *unknown,
				   struct hpx_store_reader *reader, bool *ret_unique)
{
	struct hpx_walk walk = { .ended = false };
	struct hpx_query query = { .state = HPX_STATE_COUNT,
				   .key = unknown->description.key,
				   .limit = 2,
				   .walk = &walk };
	struct hpx_looked looked;
	struct hpx_entry *entries;
	struct hpx_arena arena;
	size_t count, hashed = 0;
	char hash[HPX_KEY_HASH_SIZE];

	hpx_arena_init(&arena, ARENA_BYTES_MAX);
	enum hpx_status status = hpx_store_list(reader, &query, &arena, &entries, &count, &looked);
	bool own = status == HPX_OK && looked.all && count == 1 &&
		   hpx_operation_id_eq(&entries[0].record.id, operation_of(unknown));
	/* Of a route that stores hashes. */
	if (own)
		status = hpx_key_hash_print(unknown->description.key, hash);
	if (own && status == HPX_OK) {
		query.key = hpx_span_of(hash);
		walk = (struct hpx_walk){ .ended = false };
		status = hpx_store_list(reader, &query, &arena, &entries, &hashed, &looked);
	}
	if (status == HPX_OK)
		*ret_unique = own && looked.all && hashed == 0;
	hpx_arena_done(&arena);
	return status;
}

/* Whether this is the only operation of its route with its key. Its amount is noted. */
static enum hpx_status is_unique(struct hpx_probe_call *call, bool *ret_unique)
{
	const struct hpx_unsettled *unknown = call->unknown;
	struct hpx_store_reader *reader = call->reconciler->reader;
	struct hpx_key_query query = { .upstream = call->settings->upstream_name,
				       .route = unknown->description.route,
				       .retention_ms = unknown->record.retention_ms };
	struct hpx_key_matches matches;
	const struct hpx_reference *only = &matches.of[0].reference;
	enum hpx_status status = hpx_route_key_hash(query.upstream, query.route,
						    unknown->description.key, query.hash);

	if (status == HPX_OK)
		status = hpx_store_keyed(reader, &query, &matches);
	if (status != HPX_OK)
		return status;
	bool own = matches.count == 1 && hpx_operation_id_eq(&only->id, operation_of(unknown)) &&
		   hpx_mark_eq(&only->mark, mark_of(unknown));
	if (own)
		memcpy(call->amount, matches.of[0].amount, sizeof(call->amount));
	if (matches.hidden && matches.count < 2)
		return find_unique(unknown, reader, ret_unique);
	*ret_unique = own;
	return HPX_OK;
}

/* The key that hapax sent with a job is the job's own. A client's key identifies an
 * operation only where no other one of its route has the same (another tenant's). */
static enum hpx_status append_key(struct hpx_probe_call *call, struct hpx_buffer *out,
				  const char **ret_reason)
{
	const struct hpx_unsettled *unknown = call->unknown;
	char key[HPX_JOB_KEY_SIZE];
	bool unique = false;
	enum hpx_status status;

	if (is_job(unknown)) {
		status = hpx_job_key(&unknown->delivery.operation, &unknown->delivery.mark,
				     unknown->job_name, key);
		return status == HPX_OK ? hpx_buffer_text(out, key) : status;
	}
	/* The service would not know the hash, and say that nothing happened. */
	if (hpx_key_is_hash(unknown->description.key)) {
		*ret_reason = "the key is stored as its hash only";
		return HPX_NOT_FOUND;
	}
	call->by_client_key = true;
	status = is_unique(call, &unique);
	if (status != HPX_OK)
		return status;
	if (!unique) {
		*ret_reason = NOT_UNIQUE;
		return HPX_NOT_FOUND;
	}
	return append_encoded(out, unknown->description.key);
}

static bool take_word(struct hpx_span *rest, struct hpx_span word)
{
	if (!hpx_span_starts(*rest, word))
		return false;
	*rest = hpx_span_skip(*rest, word.len);
	return true;
}

/* Fills call->url from the probe's template, with a NUL. HPX_NOT_FOUND: something
 * that the template names is not known, `*ret_reason` says what. */
static enum hpx_status print_url(struct hpx_probe_call *call, const char **ret_reason)
{
	const struct hpx_probe *probe = &call->reconcile->probe;
	struct hpx_span rest = probe->get;
	struct hpx_buffer *out = &call->url;
	enum hpx_status status = hpx_buffer_text(out, probe->caller.url);

	while (rest.len > 0 && status == HPX_OK) {
		if (take_word(&rest, HPX_SPAN("{operation}"))) {
			status = append_reference(call->unknown, out);
		} else if (take_word(&rest, HPX_SPAN("{provider_id}"))) {
			status = append_provider_id(call->unknown, out, ret_reason);
		} else if (take_word(&rest, HPX_SPAN("{key}"))) {
			status = append_key(call, out, ret_reason);
		} else {
			status = hpx_buffer_byte(out, rest.ptr[0]);
			rest = hpx_span_skip(rest, 1);
		}
	}
	return status == HPX_OK ? hpx_buffer_byte(out, '\0') : status;
}

/* ---- the operation's answer ---- */

static struct hpx_span header_in(void *user, struct hpx_span name)
{
	const struct hpx_egress_request *request = user;
	struct hpx_field_line line;

	return hpx_field_line_find(hpx_buffer_span(&request->headers_in), name, &line) ?
		       line.value :
		       (struct hpx_span){ NULL, 0 };
}

/* What retries get of a request that was applied. Where no answer can be made of what
 * the probe was told, the operation is settled without one. */
static void reconstruct(struct hpx_probe_call *call)
{
	const struct hpx_answer_rule *rule = &call->reconcile->probe.answer;
	struct hpx_egress_request *request = &call->request;
	struct hpx_provider_object object = { .text = hpx_buffer_span(&request->body_in),
					      .content_type = header_in(request, HPX_SPAN("Content-Type")),
					      .header = header_in,
					      .user = request };
	enum hpx_status status = request->body_dropped ? HPX_TOO_LARGE : HPX_OK;

	if (rule->status == 0)
		return;
	if (status == HPX_OK)
		status = hpx_reconstruct(rule, &object, &call->answer_headers, &call->answer_body);
	if (status == HPX_OK)
		call->answer = (struct hpx_answer){ .status = rule->status,
						    .kept = true,
						    .headers = hpx_buffer_span(&call->answer_headers),
						    .body = hpx_buffer_span(&call->answer_body) };
	else
		log_ruling(call, HPX_LOG_WARN, "answer_not_reconstructed", hpx_status_name(status));
}

/* Whether the answer may settle an operation that was asked about by the client's key. An
 * answer without an amount says nothing of what happened; that nothing did, it may say. */
static bool amount_agrees(const struct hpx_probe_call *call, enum hpx_ruling ruling)
{
	const struct hpx_probe *probe = &call->reconcile->probe;
	struct hpx_json_scalar scalar;
	struct hpx_arena arena;
	bool agrees;

	if (probe->amount.ptr == NULL || is_job(call->unknown))
		return true;
	hpx_arena_init(&arena, ARENA_BYTES_MAX);
	bool found = hpx_json_lookup(hpx_buffer_span(&call->request.body_in), probe->amount,
				     HPX_ROUTE_KEY_AMOUNT_MAX, &arena, &scalar) == HPX_OK;
	if (found && (scalar.kind == HPX_JSON_STRING || scalar.kind == HPX_JSON_NUMBER))
		agrees = hpx_amount_eq(scalar.text, hpx_span_of(call->amount));
	else
		agrees = ruling != HPX_RULING_APPLIED && ruling != HPX_RULING_DECLINED;
	hpx_arena_done(&arena);
	return agrees;
}

/* ---- sending ---- */

/* `decision` is what the answer says; NULL: there is none. */
static void trace_call(struct hpx_probe_call *call, const char *decision)
{
	const struct hpx_egress_request *request = &call->request;
	struct hpx_trace_span span;

	call->trace.ended_us = hpx_clock_wall_us();
	if (!hpx_trace_call_end(&call->trace, HPX_TRACE_PROBE, &span))
		return;
	span.failed = decision == NULL;
	span.status = request->status;
	span.job = call->unknown->delivery.number;
	span.decision = decision;
	span.error = request->end != HPX_EGRESS_ANSWERED ? hpx_egress_end_text(request->end) : NULL;
	HPX_TRACE_PUT(span.method, HPX_SPAN("GET"));
	HPX_TRACE_PUT(span.target, call->unknown->target);
	print_reference(call->unknown, span.operation);
	hpx_tracer_add(call->reconciler->service->tracer, &span, 1);
}

/* Rules by the answer. */
static void judge(struct hpx_probe_call *call)
{
	const struct hpx_egress_request *request = &call->request;
	struct hpx_received_ruling received = {
		.about_ms = call->sent_ms,
		.asked = true,
		.retry_after_ms = request->retry_after_ms > 0 ? request->retry_after_ms : 0,
	};

	if (hpx_ruling_of_answer(&call->reconcile->probe.mapping, request->status,
				 hpx_buffer_span(&request->body_in), &received.ruling) != HPX_OK) {
		trace_call(call, NULL);
		rule_unclear(call, hpx_status_text(HPX_NOMEM));
		return;
	}
	bool agrees = amount_agrees(call, received.ruling);
	trace_call(call, hpx_ruling_name(agrees ? received.ruling : HPX_RULING_UNCLEAR));
	if (!agrees) {
		rule_unclear(call, "the amount is not that of the request, or one of both has none");
		return;
	}
	snprintf(call->reason, sizeof(call->reason), "the probe was answered %u: %s",
		 request->status, hpx_ruling_name(received.ruling));
	if (received.ruling == HPX_RULING_APPLIED)
		reconstruct(call);
	rule(call, &received);
}

void hpx_probe_call_judge(struct hpx_probe_call *call)
{
	HPX_ASSERT(call->state == HPX_PROBE_CALL_ANSWERED && call->by_client_key);
	bool unique = false;
	enum hpx_status status = is_unique(call, &unique);

	if (status == HPX_OK && unique) {
		judge(call);
		return;
	}
	trace_call(call, hpx_ruling_name(HPX_RULING_UNCLEAR));
	rule_unclear(call, status == HPX_OK ? NOT_UNIQUE : hpx_status_text(status));
}

/* To the reconciler's thread, whose reader looks the key up; while that one stops, nobody
 * judges any more. */
static void hand_back(struct hpx_probe_call *call)
{
	struct hpx_reconciler *reconciler = call->reconciler;
	bool taken;

	hpx_thread_lock(&reconciler->thread);
	taken = !reconciler->thread.stopping;
	if (taken) {
		call->state = HPX_PROBE_CALL_ANSWERED;
		call->next = reconciler->answered;
		reconciler->answered = call;
		hpx_thread_wake(&reconciler->thread);
	}
	hpx_thread_unlock(&reconciler->thread);
	if (!taken)
		hpx_probe_call_drop(call);
}

static void on_answered(struct hpx_egress_request *request)
{
	struct hpx_probe_call *call = HPX_CONTAINER(request, struct hpx_probe_call, request);

	HPX_ASSERT(call->state == HPX_PROBE_CALL_SENT);
	hpx_probe_queue_slot_free(call);
	if (request->end == HPX_EGRESS_ANSWERED && call->by_client_key) {
		hand_back(call);
	} else if (request->end == HPX_EGRESS_ANSWERED) {
		judge(call);
	} else {
		trace_call(call, NULL);
		if (hpx_thread_is_stopping(&call->reconciler->thread))
			hpx_probe_call_drop(call);
		else
			rule_unclear(call, request->problem);
	}
}

int64_t hpx_probe_call_lease_ms(const struct hpx_reconcile_settings *reconcile)
{
	return 2 * ((reconcile != NULL ? reconcile->probe.caller.timeout_ms : 0) + STORE_MS);
}

/* The credentials, and the trace that the call belongs to. */
static enum hpx_status write_headers(struct hpx_probe_call *call)
{
	enum hpx_status status = hpx_buffer_append(&call->headers, call->reconcile->probe.caller.headers);

	hpx_trace_call_begin(&call->trace, call->reconciler->service->tracer, &call->settings->traces,
			     hpx_span("", 0));
	return status == HPX_OK ? hpx_trace_call_write(&call->trace, &call->headers) : status;
}

/* The call is the engine's from the submission on, and may be freed before it
 * returns. */
static enum hpx_status submit_probe(struct hpx_probe_call *call)
{
	const struct hpx_probe *probe = &call->reconcile->probe;
	enum hpx_status status = write_headers(call);

	if (status != HPX_OK)
		return status;
	call->sent_ms = hpx_clock_wall_ms();
	call->request = (struct hpx_egress_request){
		.url = call->url.ptr,
		.method = "GET",
		.headers = hpx_buffer_span(&call->headers),
		.reuse = true,
		.connect_timeout_ms = probe->caller.connect_timeout_ms,
		.timeout_ms = probe->caller.timeout_ms,
		.answer_bytes_max = probe->answer.status != 0 ? call->settings->response_body_bytes_max :
								ANSWER_BYTES_MAX,
		.ca_file = probe->caller.ca_file,
		.done = on_answered,
	};
	if (hpx_clock_boot_ms() > call->send_until_ms)
		return HPX_CLOSED;
	call->state = HPX_PROBE_CALL_SENT;
	status = hpx_egress_submit(call->reconciler->egress, &call->request);
	if (status != HPX_OK)
		call->state = HPX_PROBE_CALL_CLAIMED;
	return status;
}

void hpx_probe_call_send(struct hpx_probe_call *call)
{
	HPX_ASSERT(call->state == HPX_PROBE_CALL_CLAIMED && call->url.len > 0);
	enum hpx_status status = submit_probe(call);

	if (status == HPX_OK) {
		HPX_CRASH_POINT(reconcile_asked);
		return;
	}
	hpx_probe_queue_slot_free(call);
	if (status == HPX_CLOSED)
		hpx_probe_call_drop(call);
	else
		rule_unclear(call, call->request.problem);
}

/* ---- the beginning ---- */

/* The last two tries are kept until their answers can count. The store makes the first
 * probe due at once, so that is checked here again. */
static bool is_too_early(const struct hpx_probe_call *call)
{
	const struct hpx_unsettled *unknown = call->unknown;
	struct hpx_reconcile state = unknown->reconcile;
	int64_t now_ms = hpx_clock_wall_ms();

	if (state.sent_ms == 0)
		state.sent_ms = is_job(unknown) ? unknown->delivery.changed_ms :
						  unknown->record.changed_ms;
	return hpx_reconcile_first_ms(&state, &call->reconcile->rule, now_ms, 0) > now_ms;
}

static bool has_evidence(const struct hpx_unsettled *unknown)
{
	return unknown->evidence == HPX_RULING_APPLIED || unknown->evidence == HPX_RULING_DECLINED;
}

static void use_evidence(struct hpx_probe_call *call)
{
	struct hpx_received_ruling received = { .ruling = call->unknown->evidence,
						.about_ms = hpx_clock_wall_ms() };

	snprintf(call->reason, sizeof(call->reason),
		 "evidence: it was said to be %s before its outcome was unknown",
		 hpx_ruling_name(received.ruling));
	rule(call, &received);
}

static void prepare(struct hpx_probe_call *call)
{
	const char *reason = "";
	enum hpx_status status = print_url(call, &reason);

	if (status != HPX_OK)
		rule_unclear(call, status == HPX_NOT_FOUND ? reason : hpx_status_text(status));
	else
		hpx_probe_queue_push(call);
}

void hpx_probe_call_begin(struct hpx_reconciler *reconciler, struct hpx_settings *settings,
			  struct hpx_unsettled *unknown)
{
	struct hpx_probe_call *call = call_new(reconciler, settings, unknown);

	if (call == NULL) {
		hpx_unsettled_free(unknown); /* the unknown is due again when the claim ends */
		return;
	}
	call->queue = hpx_probe_queue_enter(reconciler, unknown);
	call->send_until_ms = hpx_clock_boot_ms() + hpx_probe_call_lease_ms(call->reconcile) / 2;
	if (has_evidence(unknown))
		use_evidence(call);
	else if (call->reconcile == NULL || call->queue == NULL || is_too_early(call))
		hpx_probe_call_drop(call);
	else
		prepare(call);
}
