/* The attempt: the request is sent to the upstream once. Its answer is collected; or
 * held back until its outcome is durable, where it is too large, a stream, or not to
 * be kept. Then what is known of the attempt goes to the store.
 *
 * A process that dies here leaves an unknown outcome, before the first byte as well
 * as after it: only a live process knows that no byte left. */
#include "gateway/steps.h"

#include "base/log.h"
#include "base/status.h"
#include "base/unit.h"
#include "gateway/field_rule.h"
#include "http/field.h"
#include "http/write.h"

/* ---- the exchange ---- */

/* Guarantee 1: the first byte leaves within half a lease after the RESERVE was
 * submitted, or not at all. A process that was stopped meanwhile finds out here: the
 * clock itself is read, not the loop's. */
static bool on_ready(void *user)
{
	struct hpx_request *request = user;
	int64_t waited_ms = hpx_clock_boot_ms() - request->reservation.asked_boot_ms;

	if (waited_ms < request->head.route->policy.lease_ms / 2)
		return true;
	hpx_request_answer_move(request, HPX_ANSWER_TOO_LATE);
	return false;
}

/* There is no complete answer: whether a byte left decides the outcome. */
static enum hpx_next lost(struct hpx_request *request, const struct hpx_exchange_failure *failure)
{
	HPX_ASSERT(request->attempt.exchange == NULL);
	hpx_request_end(request, &request->times.upstream); /* where no exchange was begun */
	request->attempt.failure = *failure;
	if (!failure->any_byte_left)
		request->summary.did = HPX_DID_nothing; /* the access log must not count an execution */
	if (request->answer.state != HPX_ANSWER_TOO_LATE)
		hpx_request_answer_move(request, HPX_ANSWER_LOST);
	request->attempt.outcome = hpx_outcome_of_silence(failure->any_byte_left);
	return HPX_NEXT_STORE;
}

/* The answer will not be kept whole. Its outcome is made durable first, and the
 * upstream is paused meanwhile. */
static void hold_back(struct hpx_request *request)
{
	HPX_ASSERT(request->wait.kind == HPX_WAIT_UPSTREAM);
	hpx_request_answer_move(request, HPX_ANSWER_HELD_BACK);
	hpx_exchange_pause(request->attempt.exchange);
	hpx_request_go(request, HPX_NEXT_STORE);
}

static bool is_event_stream(const struct hpx_http_head *head)
{
	struct hpx_span type = hpx_field_known_value(head, HPX_NAME_CONTENT_TYPE);

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

	/* Without a client, the exchange's hold may be the last one. */
	hpx_request_hold(request);
	hpx_attempt_cancel(request);
	hpx_request_go(request, lost(request, &failure));
	hpx_request_drop(request);
}

/* Two Hapax-Outcome fields contradict each other, or might: neither counts. */
static enum hpx_declared declared_of(const struct hpx_http_head *head)
{
	if (hpx_field_known_count(head, HPX_NAME_HAPAX_OUTCOME) > 1)
		return HPX_DECLARED_UNKNOWN;
	return hpx_declared_parse(hpx_field_known_value(head, HPX_NAME_HAPAX_OUTCOME));
}

/* How long the upstream wants this answer to be kept: at most as long as the route lets it.
 * What cannot be read is told, and changes nothing. */
static int64_t retention_of(const struct hpx_request *request, const struct hpx_http_head *head)
{
	struct hpx_span value = hpx_field_known_value(head, HPX_NAME_HAPAX_RETENTION);
	int64_t max_ms = request->head.route->policy.retention_max_ms;
	uint64_t wanted_ms = 0;

	if (value.ptr == NULL || max_ms == 0)
		return 0;
	if (hpx_field_known_count(head, HPX_NAME_HAPAX_RETENTION) > 1 ||
	    !hpx_duration_parse(value, &wanted_ms)) {
		hpx_log(HPX_LOG_WARN, "retention_unreadable",
			"route=\"%.*s\" reason=\"Hapax-Retention is one whole number with a unit, as 36h "
			"or 7d\"",
			HPX_SPAN_ARG(request->identity.description.route));
		return 0;
	}
	return wanted_ms < (uint64_t)max_ms ? (int64_t)wanted_ms : max_ms;
}

static void take_outcome(struct hpx_request *request, const struct hpx_http_head *head)
{
	const struct hpx_policy *policy = &request->head.route->policy;
	bool later = hpx_field_known(head, HPX_NAME_RETRY_AFTER) != NULL;
	enum hpx_declared declared = declared_of(head);

	HPX_ASSERT(request->answer.state == HPX_ANSWER_COLLECTING);
	request->answer.retention_ms = retention_of(request, head);
	request->attempt.outcome = hpx_outcome_of_answer(head->status, later, declared, policy);
	request->attempt.outcome_assumed = hpx_outcome_is_assumed(head->status, later, declared);
	request->attempt.outcome_reason = hpx_outcome_reason(head->status, later, declared, policy,
							     request->head.route->server_error_given);
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
	HPX_ASSERT(request->attempt.exchange != NULL);
	request->attempt.exchange = NULL;
	hpx_request_end(request, &request->times.upstream);
	hpx_histogram_add(&request->shard->meter.upstream_us[hpx_meter_route(request->head.route)],
			  hpx_interval_us(&request->times.upstream));
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
	.on_informational = hpx_respond_informational,
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_failed = on_failed,
};

enum hpx_next hpx_step_forward(struct hpx_request *request)
{
	struct hpx_exchange_failure nothing_left = { .status = HPX_NOMEM,
						     .reason = "out of memory" };

	/* Guarantee 1: the reservation is durable, and it is this request's. */
	HPX_ASSERT(request->reservation.record.state == HPX_STATE_IN_PROGRESS &&
		   !request->wait.waited);
	HPX_ASSERT(request->attempt.slot.state == HPX_SLOT_HELD && request->attempt.exchange == NULL);
	hpx_request_begin(request, &request->times.upstream);
	request->summary.did = HPX_DID_executed;
	request->attempt.renew_at_ms = hpx_loop_now_ms(&request->shard->loop) +
				       (uint64_t)request->head.route->policy.lease_ms / 3;
	/* One read may come on top of the largest answer. */
	request->answer.body.max = request->settings->response_body_bytes_max + HPX_LOOP_READ_BYTES;
	enum hpx_status status = hpx_forward_write_head(request, true);
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
	hpx_request_end(request, &request->times.upstream);
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
	hpx_resume_post_unwoken(&request->attempt.renewed);
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
	hpx_shard_submit(request->shard, &request->attempt.renewal);
}

/* ---- the request's head for the upstream ---- */

struct head_writer {
	struct hpx_request *request;
	struct hpx_buffer *out;
	enum hpx_status status; /* the first failure stays */
};

/* `before` is a literal, "Name: ". */
static void add(struct head_writer *h, struct hpx_span before, struct hpx_span value)
{
	if (h->status == HPX_OK)
		h->status = hpx_write_after(h->out, before, value);
}

/* Whether the whole body is here already: of a guarded request, and of one whose key was
 * looked for in it. */
static bool is_collected(const struct hpx_request *request, bool guarded)
{
	return guarded || request->body.before_key;
}

/* Fields of the request that are written anew below, or are not passed on. */
static bool is_rewritten(enum hpx_field_name known, bool guarded, bool collected)
{
	switch (known) {
	case HPX_NAME_HOST:
	case HPX_NAME_CONTENT_LENGTH:
	case HPX_NAME_X_FORWARDED_FOR:
	case HPX_NAME_X_FORWARDED_PROTO:
	case HPX_NAME_X_FORWARDED_HOST:
	case HPX_NAME_VIA:
	case HPX_NAME_HTTP2_SETTINGS:
		return true;
	case HPX_NAME_ACCEPT_ENCODING:
		return guarded;
	case HPX_NAME_EXPECT:
		return collected;
	default:
		return false;
	}
}

static bool is_dropped(const struct hpx_request *request, struct hpx_span name)
{
	return !request->head.observed && hpx_field_rule_drops(request->settings, request->head.route, name);
}

static void add_travelling(struct head_writer *h, bool guarded)
{
	const struct hpx_http_head *head = &h->request->head.http;

	for (size_t i = 0; i < head->field_count && h->status == HPX_OK; i++) {
		const struct hpx_field *field = &head->fields[i];
		unsigned traits = hpx_field_traits(head, field);
		if ((traits & (HPX_FIELD_HOP | HPX_FIELD_OURS)) == 0 &&
		    !hpx_request_trace_replaces(h->request, hpx_field_name_at(head, i)) &&
		    !is_rewritten(hpx_field_name_at(head, i), guarded, is_collected(h->request, guarded)) &&
		    !is_dropped(h->request, field->name))
			h->status = hpx_write_read_field(h->out, head, i);
	}
}

/* A list header: all values of the request, and one more. */
static void add_appended(struct head_writer *h, struct hpx_span before, enum hpx_field_name known,
			 struct hpx_span value)
{
	struct hpx_span sent = hpx_field_known_combined(&h->request->head.http, known,
							&h->request->arena);

	if (sent.len == 0) {
		add(h, before, value);
		return;
	}
	struct hpx_span both = hpx_arena_printf(&h->request->arena, "%.*s, %.*s",
						HPX_SPAN_ARG(sent), HPX_SPAN_ARG(value));
	if (both.ptr == NULL)
		h->status = HPX_NOMEM;
	else
		add(h, before, both);
}

/* The value that a trusted peer sent, otherwise this value. */
static void add_forwarded(struct head_writer *h, struct hpx_span before, enum hpx_field_name known,
			  struct hpx_span value, bool trusted)
{
	struct hpx_span sent = hpx_field_known_value(&h->request->head.http, known);

	add(h, before, trusted && sent.len > 0 ? sent : value);
}

static void add_path(struct head_writer *h)
{
	struct hpx_request *request = h->request;
	const char *peer = request->head.peer;
	bool trusted = hpx_peer_trusted(request->settings, peer);

	if (request->head.host.len > 0)
		add(h, HPX_SPAN("Host: "), request->head.host);
	else
		add(h, HPX_SPAN("Host: "), hpx_span_of(request->settings->upstream.is_unix ? "localhost" : request->settings->upstream.host));
	if (hpx_span_eq(hpx_span_of(peer), HPX_SPAN("unix"))) {
		struct hpx_span sent = hpx_field_known_combined(
			&request->head.http, HPX_NAME_X_FORWARDED_FOR, &request->arena);
		if (sent.len > 0)
			add(h, HPX_SPAN("X-Forwarded-For: "), sent);
	} else {
		add_appended(h, HPX_SPAN("X-Forwarded-For: "), HPX_NAME_X_FORWARDED_FOR,
			     hpx_span_of(peer));
	}
	add_forwarded(h, HPX_SPAN("X-Forwarded-Proto: "), HPX_NAME_X_FORWARDED_PROTO,
		      request->head.secure ? HPX_SPAN("https") : HPX_SPAN("http"), trusted);
	if (request->head.host.len > 0)
		add_forwarded(h, HPX_SPAN("X-Forwarded-Host: "), HPX_NAME_X_FORWARDED_HOST,
			      request->head.host, trusted);
	add_appended(h, HPX_SPAN("Via: "), HPX_NAME_VIA,
		     request->head.http.minor > 0 ? HPX_SPAN("1.1 hapax") : HPX_SPAN("1.0 hapax"));
}

/* The fields by which the upstream can fence attempts, complete the operation itself
 * and resume it. */
static void add_operation(struct head_writer *h)
{
	const struct hpx_record *record = &h->request->reservation.record;
	char text[HPX_REFERENCE_SIZE], lease[HPX_LEASE_SIZE];

	hpx_reference_print(&record->id, &record->mark, text);
	add(h, HPX_SPAN("Hapax-Operation: "), hpx_span_of(text));
	hpx_lease_print_beside(text, &record->token, lease);
	add(h, HPX_SPAN("Hapax-Lease: "), hpx_span_of(lease));
	if (h->status == HPX_OK)
		h->status = HPX_WRITE_FIELD_U64(h->out, "Hapax-Attempt", record->attempt);
	if (record->point[0] != '\0')
		add(h, HPX_SPAN("Hapax-Recovery-Point: "), hpx_span_of(record->point));
}

static void add_framing(struct head_writer *h, bool collected)
{
	const struct hpx_http_head *head = &h->request->head.http;

	if (h->status != HPX_OK)
		return;
	if (collected && head->framing != HPX_FRAMING_NONE)
		h->status = HPX_WRITE_FIELD_U64(h->out, "Content-Length", h->request->body.bytes.len);
	else if (head->framing == HPX_FRAMING_CHUNKED)
		add(h, HPX_SPAN("Transfer-Encoding: "), HPX_SPAN("chunked"));
	else if (head->has_content_length)
		h->status = HPX_WRITE_FIELD_U64(h->out, "Content-Length", head->content_length);
}

/* Only WebSocket: an upgrade to h2c would be another way into HTTP, past hapax. */
static bool wants_tunnel(const struct hpx_http_head *head)
{
	return head->upgrade && hpx_field_known_count(head, HPX_NAME_UPGRADE) == 1 &&
	       hpx_span_ieq(hpx_field_known_value(head, HPX_NAME_UPGRADE), HPX_SPAN("websocket"));
}

enum hpx_status hpx_forward_write_head(struct hpx_request *request, bool guarded)
{
	struct head_writer h = { .request = request, .out = &request->attempt.head };
	char trace[HPX_TRACEPARENT_SIZE];

	h.status = hpx_write_request_line(h.out, request->head.http.method, request->head.target.path,
					  request->head.target.query);
	add_path(&h);
	add_travelling(&h, guarded);
	struct hpx_span traceparent = hpx_request_trace_upstream(request, trace);
	if (traceparent.len > 0)
		add(&h, HPX_SPAN("traceparent: "), traceparent);
	if (guarded) {
		if (request->head.route->policy.reuse == HPX_REUSE_NEVER)
			add(&h, HPX_SPAN("Connection: "), HPX_SPAN("close"));
		add(&h, HPX_SPAN("Accept-Encoding: "), HPX_SPAN("identity"));
		add_operation(&h);
	} else if (wants_tunnel(&request->head.http)) {
		request->pass.tunnel = HPX_TUNNEL_ASKED;
		add(&h, HPX_SPAN("Connection: "), HPX_SPAN("Upgrade"));
		add(&h, HPX_SPAN("Upgrade: "), hpx_field_known_value(&request->head.http, HPX_NAME_UPGRADE));
	}
	add_framing(&h, is_collected(request, guarded));
	return h.status == HPX_OK ? hpx_write_head_end(h.out) : h.status;
}
