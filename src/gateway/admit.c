/* The first steps: the route, whether the request is guarded, its key and its tenant.
 * Nothing is sent on or stored before all of these are known. */
#include "gateway/steps.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "gateway/field_rule.h"
#include "http/field.h"
#include "http/method.h"
#include "http/retry_after.h"

/* How many bytes of a header name the log shows. */
#define SUSPECT_SHOWN_MAX 64

/* The message cannot be framed, so nothing behind it can be trusted: the
 * connection ends with the answer (RFC 9112 §6.3). */
static enum hpx_next refuse_message(struct hpx_request *request, enum hpx_http_error error)
{
	unsigned status = hpx_http_error_status(error);
	struct hpx_refusal refusal = { .detail = hpx_http_error_text(error), .status = status };

	request->head.http.minor = 1;
	return hpx_respond_refuse(request,
				  status == 431 ? HPX_PROBLEM_headers_too_large : HPX_PROBLEM_bad_request,
				  &refusal, HPX_RESPOND_CLOSE);
}

/* A client that sends such a target, or such header names, is broken or hostile: its
 * connection ends with the answer. */
static enum hpx_next refuse_target(struct hpx_request *request, const char *reason)
{
	struct hpx_refusal refusal = { .detail = reason };

	return hpx_respond_refuse(request, HPX_PROBLEM_bad_request, &refusal, HPX_RESPOND_CLOSE);
}

static bool observes(const struct hpx_request *request)
{
	return request->settings->observe || request->head.route->observe;
}

static void count_unkeyed(struct hpx_request *request)
{
	hpx_counter_add(&request->shard->meter.unkeyed[hpx_meter_route(request->head.route)], 1);
}

/* Counts a state-changing request for /api/v1/coverage. */
static void count_seen(struct hpx_request *request, bool keyed)
{
	hpx_meter_see(&request->shard->meter, request->head.route, request->head.http.method,
		      request->head.target.path, keyed);
}

/* Observe mode changes nothing: a request that would have been refused is counted and
 * passed on. */
static enum hpx_next observe(struct hpx_request *request, enum hpx_observed observed)
{
	hpx_meter_observe(&request->shard->meter, request->head.route, observed);
	return HPX_NEXT_PASS;
}

/* Why the upstream might read another request than hapax does; NULL where it
 * cannot. A method in another spelling: the upstream may take `post` for POST,
 * and hapax would have passed it on unguarded. */
static const char *ambiguity(struct hpx_request *request, struct hpx_span meant)
{
	if (hpx_span_eq(meant, request->head.http.method))
		return hpx_field_rule_fault(request->settings, request->head.route, &request->head.http,
					    &request->arena);
	struct hpx_span text = hpx_arena_printf(
		&request->arena, "the method is written %.*s", HPX_SPAN_ARG(meant));
	return text.ptr != NULL ? text.ptr : "the method is another spelling of a known one";
}

/* Some servers heed a method override on any request, even a GET (Slim, Yii). Such a
 * request is guarded as if it had the overriding method. */
static bool is_overridden(const struct hpx_http_head *head)
{
	if (hpx_field_known(head, HPX_NAME_X_HTTP_METHOD_OVERRIDE) == NULL &&
	    hpx_field_known(head, HPX_NAME_X_HTTP_METHOD) == NULL &&
	    hpx_field_known(head, HPX_NAME_X_METHOD_OVERRIDE) == NULL)
		return false;
	for (size_t i = 0; i < head->field_count; i++)
		for (size_t n = 0; n < HPX_METHOD_OVERRIDE_COUNT; n++)
			if (hpx_span_ieq(head->fields[i].name, hpx_method_override[n]) &&
			    head->fields[i].value.len > 0 &&
			    hpx_method_kind(head->fields[i].value) == HPX_METHOD_NEITHER)
				return true;
	return false;
}

static bool is_guarded(const struct hpx_request *request)
{
	return hpx_route_guards(request->head.route, request->head.http.method) ||
	       (request->head.route->policy.key != HPX_KEY_IGNORE && is_overridden(&request->head.http));
}

/* The route is matched by the method in its normal spelling, so that a route in
 * observe mode observes every spelling. */
static enum hpx_next route_request(struct hpx_request *request)
{
	struct hpx_span method = request->head.http.method;
	struct hpx_span meant = hpx_route_method_meant(request->settings, method);

	request->head.route = hpx_route_match(request->settings, meant, request->head.host,
					      request->head.target.path);
	request->head.observed = observes(request);
	const char *reason = ambiguity(request, meant);
	if (reason != NULL)
		return request->head.observed ? observe(request, HPX_OBSERVED_bad_request) :
						refuse_target(request, reason);
	if (is_guarded(request))
		return HPX_NEXT_KEY;
	enum hpx_method_kind kind = hpx_method_kind(method);
	if (kind == HPX_METHOD_NEITHER || kind == HPX_METHOD_IDEMPOTENT)
		count_seen(request, hpx_field_count(&request->head.http, request->settings->key_header) > 0);
	return HPX_NEXT_PASS;
}

enum hpx_next hpx_step_route(struct hpx_request *request)
{
	const char *reason = NULL;

	HPX_CRASH_POINT(request_read);
	if (request->head.error != HPX_HTTP_ERROR_NONE)
		return refuse_message(request, request->head.error);
	hpx_request_trace_begin(request);
	if (hpx_span_eq(request->head.http.method, HPX_SPAN("CONNECT")))
		return refuse_target(request, "CONNECT asks for a tunnel to anywhere; hapax stands "
					      "before one service");
	if (hpx_target_parse(request->head.http.method, request->head.http.target, &request->arena,
			     &request->head.target, &reason) != HPX_OK)
		return refuse_target(request, reason);
	request->head.host = request->head.target.authority.ptr != NULL ?
				     request->head.target.authority :
				     hpx_field_known_value(&request->head.http, HPX_NAME_HOST);
	if (hpx_builtin_is(request->head.target.path))
		return HPX_NEXT_BUILTIN;
	return route_request(request);
}

enum hpx_next hpx_step_read_late(struct hpx_request *request)
{
	return hpx_respond_refuse(request, HPX_PROBLEM_request_timeout, NULL, HPX_RESPOND_CLOSE);
}

static enum hpx_next without_key(struct hpx_request *request)
{
	count_unkeyed(request);
	count_seen(request, false);
	if (request->head.observed)
		return observe(request, HPX_OBSERVED_key_missing);
	if (request->head.route->policy.key == HPX_KEY_OPTIONAL)
		return HPX_NEXT_PASS;
	return hpx_respond_problem(request, HPX_PROBLEM_idempotency_key_missing, NULL);
}

/* ---- demands on new work ----
 * They hold for what begins an attempt only: the retry of a request that was executed
 * before the demand was made must not be told that nothing happened. */

static const char *text_of_short_key(struct hpx_request *request)
{
	struct hpx_span text = hpx_arena_printf(
		&request->arena, "The key has fewer than %u characters. Make it from at least 128 random "
				 "bits, for example a UUID.",
		request->head.route->key_demand.bytes_min);

	return text.ptr != NULL ? text.ptr : "The key is too short.";
}

static const char *text_of_key_fault(struct hpx_request *request, enum hpx_key_fault fault)
{
	switch (fault) {
	case HPX_KEY_FAULT_SHORT:
		return text_of_short_key(request);
	case HPX_KEY_FAULT_LONG:
		return "The key has more characters than this route takes.";
	case HPX_KEY_FAULT_EMAIL:
		return "The key holds an e-mail address. Keys are stored and shown to operators: make "
		       "it from random bits, for example a UUID.";
	case HPX_KEY_FAULT_CARD:
		return "The key holds what looks like a card number. Keys are stored and shown to "
		       "operators: make it from random bits, for example a UUID.";
	default:
		return NULL;
	}
}

/* Seconds or milliseconds since 1970: today's have 10 and 13 digits. */
static bool read_unix_time(struct hpx_span text, int64_t *ret_wall_ms)
{
	uint64_t number;

	if ((text.len != 10 && text.len != 13) || !hpx_span_u64(text, INT64_MAX / 1000, &number))
		return false;
	*ret_wall_ms = (int64_t)number * (text.len == 10 ? 1000 : 1);
	return true;
}

static bool read_sent_time(struct hpx_span text, int64_t now_ms, int64_t *ret_wall_ms)
{
	int64_t unix_s;

	if (read_unix_time(text, ret_wall_ms) || hpx_clock_parse_rfc3339(text, ret_wall_ms))
		return true;
	if (hpx_date_parse(text, now_ms, &unix_s) != HPX_OK)
		return false;
	*ret_wall_ms = unix_s * 1000;
	return true;
}

/* The problem's page says that the detail names the header. */
static const char *text_of_age(struct hpx_request *request, const char *fault)
{
	struct hpx_span text =
		hpx_arena_printf(&request->arena, "The header %.*s, which says when the request was made, %s",
				 HPX_SPAN_ARG(request->head.route->max_age.header), fault);

	return text.ptr != NULL ? text.ptr : "The header that says when the request was made does not fit.";
}

/* Why the request is too old to begin something; NULL where it is not. */
static const char *fault_of_age(struct hpx_request *request)
{
	const struct hpx_age_limit *limit = &request->head.route->max_age;
	int64_t now_ms, sent_ms;

	if (limit->header.ptr == NULL)
		return NULL;
	if (hpx_field_count(&request->head.http, limit->header) != 1)
		return text_of_age(request, "is missing or was sent more than once.");
	now_ms = hpx_clock_wall_ms();
	if (!read_sent_time(hpx_field_value(&request->head.http, limit->header), now_ms, &sent_ms))
		return text_of_age(request, "cannot be read: write the time as 2026-11-15T21:06:55Z, as an "
					    "HTTP date, or in seconds since 1970.");
	if (sent_ms > now_ms + limit->skew_ms)
		return text_of_age(request, "has a time in the future: compare the clocks.");
	if (now_ms - sent_ms > limit->within_ms + limit->skew_ms)
		return text_of_age(request, "has a time that is too long ago.");
	return NULL;
}

static void judge_new(struct hpx_request *request)
{
	enum hpx_key_fault fault =
		hpx_key_judge(&request->identity.key, &request->head.route->key_demand);
	struct hpx_new_refused *refused = &request->identity.new_refused;

	*refused = (struct hpx_new_refused){ .code = HPX_PROBLEM_idempotency_key_invalid,
					     .detail = text_of_key_fault(request, fault) };
	if (refused->detail == NULL)
		*refused = (struct hpx_new_refused){ .code = HPX_PROBLEM_request_too_old,
						     .detail = fault_of_age(request) };
}

/* While observing, keys with personal data are counted on every route, so that
 * an operator sees what `key_refuse` would do. */
static void count_personal(struct hpx_request *request)
{
	static const struct hpx_key_demand none_of_it = { .refuse = HPX_KEY_EMAIL | HPX_KEY_CARD };

	if (hpx_key_judge(&request->identity.key, &none_of_it) != HPX_KEY_FAULT_NONE)
		hpx_meter_observe(&request->shard->meter, request->head.route, HPX_OBSERVED_key_personal);
}

/* The request has a key: from here on it is guarded. */
static enum hpx_next with_key(struct hpx_request *request)
{
	const char *reason =
		hpx_field_rule_repeated(request->settings, &request->head.http, &request->arena);

	if (reason != NULL)
		return request->head.observed ? observe(request, HPX_OBSERVED_bad_request) :
						hpx_respond_problem(request, HPX_PROBLEM_bad_request, reason);
	judge_new(request);
	if (request->head.observed)
		count_personal(request);
	return HPX_NEXT_TENANT;
}

static enum hpx_next refuse_key(struct hpx_request *request, const char *reason)
{
	count_seen(request, true);
	if (request->head.observed)
		return observe(request, HPX_OBSERVED_key_invalid);
	return hpx_respond_problem(request, HPX_PROBLEM_idempotency_key_invalid, reason);
}

static enum hpx_next key_is_known(struct hpx_request *request)
{
	if (!request->identity.has_key)
		return without_key(request);
	count_seen(request, true);
	return with_key(request);
}

/* While observing, nothing is buffered, so that a key in the body is not looked for: such
 * a request passes uncounted. */
enum hpx_next hpx_step_key(struct hpx_request *request)
{
	const char *reason = NULL;

	HPX_ASSERT(request->head.route != NULL && request->head.purpose == HPX_PURPOSE_UPSTREAM);
	if (hpx_request_key_in_head(request, &reason) != HPX_OK)
		return refuse_key(request, reason);
	if (!hpx_route_key_in_body(request->head.route))
		return key_is_known(request);
	if (request->head.observed)
		return request->identity.has_key ? key_is_known(request) : HPX_NEXT_PASS;
	request->body.before_key = true;
	return HPX_NEXT_BODY;
}

enum hpx_next hpx_step_key_in_body(struct hpx_request *request)
{
	const char *reason = NULL;
	enum hpx_status status = hpx_request_key_in_body(request, &reason);

	if (status == HPX_INVALID)
		return refuse_key(request, reason);
	return status == HPX_OK ? key_is_known(request) : HPX_NEXT_OVERLOADED;
}

enum hpx_next hpx_tenant_found(struct hpx_request *request)
{
	struct hpx_limit_met met;

	HPX_ASSERT(request->identity.tenant.ptr != NULL);
	if (!hpx_share_take_connection(request))
		return HPX_NEXT_OVERLOADED;
	if (request->head.purpose == HPX_PURPOSE_OPERATION)
		return hpx_limit_status_reads(request, &met) ? HPX_NEXT_OPERATION :
							       hpx_limit_refuse(request, &met, "no");
	/* Whether the key is in progress is not looked up: a storm must be cheap to refuse. */
	if (!request->head.observed)
		return hpx_limit_key(request, &met) ? HPX_NEXT_BODY :
						      hpx_limit_refuse(request, &met, "unknown");
	if (request->head.route->policy.deliver == HPX_DELIVER_ASYNC)
		hpx_counter_add(&request->shard->meter.async[HPX_ASYNC_observed], 1);
	hpx_observe_begin(request);
	return HPX_NEXT_PASS;
}

enum hpx_next hpx_tenant_missing(struct hpx_request *request, enum hpx_problem_code code,
				 const struct hpx_refusal *refusal)
{
	if (request->head.observed)
		return observe(request, HPX_OBSERVED_unauthenticated);
	return hpx_respond_refuse(request, code, refusal, HPX_RESPOND_KEEP);
}

struct hpx_tenant_source hpx_tenant_source_of(struct hpx_request *request)
{
	return (struct hpx_tenant_source){ .settings = request->settings,
					   .head = &request->head.http,
					   .host = request->head.host,
					   .peer = request->head.peer,
					   .local = request->head.local,
					   .certificate = request->head.certificate.name.len > 0 ?
								  &request->head.certificate :
								  NULL,
					   .arena = &request->arena };
}

/* Logs an unlisted credential header once per name. The table is bounded, because
 * clients can invent names. */
static void tell_suspect(struct hpx_gateway *gateway, struct hpx_span name)
{
	struct hpx_span shown = hpx_span_first(name, SUSPECT_SHOWN_MAX);
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < shown.len; i++)
		hash = (hash ^ ((unsigned char)shown.ptr[i] | 0x20u)) * 16777619u;
	hash |= 1; /* 0 is a free place */
	for (size_t i = 0; i < HPX_SUSPECTS_LOGGED; i++) {
		uint_least32_t seen = 0;
		if (atomic_compare_exchange_strong(&gateway->suspects_logged[i], &seen, hash)) {
			hpx_log(HPX_LOG_WARN, "unlisted_credential",
				"header=%.*s reason=\"it may name the caller, and is not part of the "
				"tenant\" remedy=\"tenant: {with: [%.*s]} if it does, {ignore: "
				"[%.*s]} if not\"",
				HPX_SPAN_ARG(shown), HPX_SPAN_ARG(shown), HPX_SPAN_ARG(shown));
			return;
		}
		if (seen == hash)
			return;
	}
}

static void count_tenant(struct hpx_request *request, const struct hpx_tenant *tenant)
{
	struct hpx_meter *meter = &request->shard->meter;

	if (tenant->anonymous)
		hpx_counter_add(&meter->anonymous, 1);
	if (tenant->suspect.len > 0) {
		hpx_counter_add(&meter->suspects, 1);
		tell_suspect(request->shard->gateway, tenant->suspect);
	}
}

enum hpx_next hpx_step_tenant(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .detail = NULL };

	if (request->settings->tenant.from == HPX_TENANT_SUBREQUEST)
		return hpx_subrequest_ask(request);
	if (request->settings->tenant.from == HPX_TENANT_JWT)
		return hpx_verified_caller_find(request);
	const struct hpx_tenant_source source = hpx_tenant_source_of(request);
	struct hpx_tenant tenant;
	enum hpx_status status = hpx_tenant_of(&source, &tenant);
	request->identity.tenant = tenant.name;
	refusal.detail = tenant.reason;
	switch (status) {
	case HPX_OK:
		count_tenant(request, &tenant);
		return hpx_tenant_found(request);
	case HPX_INVALID:
		return hpx_tenant_missing(request, HPX_PROBLEM_unauthenticated, &refusal);
	default:
		return hpx_tenant_missing(request, HPX_PROBLEM_overloaded, &refusal);
	}
}
