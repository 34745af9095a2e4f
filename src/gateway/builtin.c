/* Builtin paths: the published policy, the pages about problems, preflights, and the
 * way to operations (builtin_operation.c) and webhooks (webhook.c). */
#include "gateway/steps.h"

#include "base/json_writer.h"
#include "base/status.h"
#include "gateway/webhook.h"
#include "http/cors.h"
#include "http/field.h"
#include "http/method.h"

#define JSON HPX_SPAN("application/json")
#define PAGE_BYTES_MAX (1024 * 1024)
/* The fields of a preflight's answer: as many names as a request head can hold, and
 * those of hapax. */
#define FIELDS_BYTES_MAX (64 * 1024)

bool hpx_builtin_is(struct hpx_span path)
{
	return hpx_span_eq(path, HPX_SPAN(HPX_BUILTIN_ROOT)) ||
	       hpx_span_starts(path, HPX_SPAN(HPX_BUILTIN_ROOT "/"));
}

/* ---- the published policy ---- */

static void list(struct hpx_json_writer *json, const char *member, const struct hpx_span *items, size_t count)
{
	hpx_json_begin_array(json, member);
	for (size_t i = 0; i < count; i++)
		hpx_json_put_string(json, NULL, items[i]);
	hpx_json_end_array(json);
}

static void methods_of(struct hpx_json_writer *json, const char *member, enum hpx_method_kind kind)
{
	size_t count;
	const struct hpx_method *all = hpx_methods(&count);

	hpx_json_begin_array(json, member);
	for (size_t i = 0; i < count; i++)
		if (all[i].kind == kind)
			hpx_json_put_string(json, NULL, all[i].name);
	hpx_json_end_array(json);
}

/* What happens to a method that no route names. */
static void methods(struct hpx_json_writer *json)
{
	hpx_json_begin_object(json, "methods");
	methods_of(json, "guarded", HPX_METHOD_NEITHER);
	methods_of(json, "passed_unless_a_route_names_them", HPX_METHOD_IDEMPOTENT);
	methods_of(json, "passed", HPX_METHOD_SAFE);
	methods_of(json, "refused", HPX_METHOD_TUNNEL);
	hpx_json_put_text(json, "others", "guarded");
	hpx_json_end_object(json);
}

/* Where the key is; left out where it is in key_header alone. */
static void key_sources(struct hpx_json_writer *json, const struct hpx_key_sources *sources)
{
	static const char *const places[] = { "header", "body", "query" };

	if (sources->count == 0)
		return;
	hpx_json_begin_array(json, "key_from");
	for (size_t i = 0; i < sources->count; i++) {
		hpx_json_begin_object(json, NULL);
		hpx_json_put_string(json, places[sources->at[i].place], sources->at[i].name);
		hpx_json_end_object(json);
	}
	hpx_json_end_array(json);
}

static void route(struct hpx_json_writer *json, const char *name, const struct hpx_route *r, bool observe)
{
	hpx_json_begin_object(json, name);
	hpx_json_put_string(json, "match", r->pattern);
	hpx_json_put_text(json, "key", hpx_key_rule_name(r->policy.key));
	key_sources(json, &r->key_from);
	hpx_json_put_number(json, "key_bytes_min", r->key_demand.bytes_min);
	hpx_json_put_number(json, "key_bytes_max", r->key_demand.bytes_max);
	hpx_json_begin_array(json, "key_refuses");
	if ((r->key_demand.refuse & HPX_KEY_EMAIL) != 0)
		hpx_json_put_text(json, NULL, "email");
	if ((r->key_demand.refuse & HPX_KEY_CARD) != 0)
		hpx_json_put_text(json, NULL, "card");
	hpx_json_end_array(json);
	hpx_json_put_text(json, "key_storage", r->key_storage == HPX_KEY_STORAGE_HASH ? "hash" : "plain");
	if (r->max_age.header.ptr != NULL) {
		hpx_json_begin_object(json, "max_age");
		hpx_json_put_string(json, "header", r->max_age.header);
		hpx_json_put_seconds(json, "within_seconds", r->max_age.within_ms);
		hpx_json_put_seconds(json, "skew_seconds", r->max_age.skew_ms);
		hpx_json_end_object(json);
	}
	hpx_json_put_text(json, "scope", hpx_scope_rule_name(r->policy.scope));
	hpx_json_put_seconds(json, "retention_seconds", r->policy.retention_ms);
	hpx_json_put_seconds(json, "tombstone_seconds", r->policy.tombstone_ms);
	hpx_json_put_text(json, "expired", hpx_expired_name(r->policy.expired));
	hpx_json_put_text(json, "server_error", hpx_server_error_name(r->policy.server_error));
	hpx_json_put_text(json, "on_lost", hpx_on_lost_name(r->policy.on_lost));
	hpx_json_put_text(json, "completes", hpx_completes_name(r->policy.completes));
	hpx_json_put_text(json, "deliver", hpx_deliver_name(r->policy.deliver));
	hpx_json_put_text(json, "concurrent", hpx_concurrent_name(r->policy.concurrent));
	if (r->policy.concurrent == HPX_CONCURRENT_WAIT || r->policy.deliver == HPX_DELIVER_ASYNC)
		hpx_json_put_seconds(json, "wait_seconds", r->policy.wait_ms);
	hpx_json_put_text(json, "store", hpx_keep_name(r->policy.keep));
	list(json, "fingerprint_ignores", r->recipe.ignore, r->recipe.ignore_count);
	list(json, "fingerprint_only", r->recipe.only, r->recipe.only_count);
	list(json, "fingerprint_headers", r->recipe.headers, r->recipe.header_count);
	hpx_json_put_bool(json, "observe", observe || r->observe);
	hpx_json_end_object(json);
}

/* What this gateway takes in a time; absent where there is no limit. */
static void rate(struct hpx_json_writer *json, const char *name, const struct hpx_rate *r)
{
	if (r->count == 0)
		return;
	hpx_json_begin_object(json, name);
	hpx_json_put_number(json, "count", r->count);
	hpx_json_put_seconds(json, "seconds", r->period_ms);
	hpx_json_put_number(json, "burst", r->burst);
	hpx_json_end_object(json);
}

static void limits(struct hpx_json_writer *json, const struct hpx_settings *settings)
{
	hpx_json_begin_object(json, "limits");
	hpx_json_put_text(json, "per", "gateway");
	hpx_json_begin_object(json, "tenant");
	rate(json, "new_keys", &settings->rates[HPX_RATE_NEW_KEYS]);
	rate(json, "replays", &settings->rates[HPX_RATE_REPLAYS]);
	rate(json, "status_reads", &settings->rates[HPX_RATE_STATUS_READS]);
	if (settings->active_keys_max > 0)
		hpx_json_put_number(json, "active_keys", settings->active_keys_max);
	if (settings->stored_bytes_max > 0)
		hpx_json_put_number(json, "stored_bytes", settings->stored_bytes_max);
	hpx_json_end_object(json);
	hpx_json_begin_object(json, "key");
	rate(json, "requests", &settings->rates[HPX_RATE_KEY_REQUESTS]);
	hpx_json_end_object(json);
	hpx_json_begin_object(json, "peer");
	rate(json, "new_keys", &settings->rates[HPX_RATE_PEER_NEW_KEYS]);
	hpx_json_end_object(json);
	hpx_json_end_object(json);
}

static enum hpx_status print_policy(const struct hpx_settings *settings, struct hpx_buffer *out)
{
	static const char *const syntaxes[] = { "ietf", "strict", "bare" };
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_string(&json, "key_header", settings->key_header);
	hpx_json_put_text(&json, "key_syntax", syntaxes[settings->key_syntax]);
	hpx_json_put_number(&json, "key_bytes_max", 255);
	hpx_json_put_text(&json, "replay_marker", "Idempotent-Replayed");
	hpx_json_put_text(&json, "expires_header", "Idempotency-Expires");
	hpx_json_put_number(&json, "mismatch_status", settings->mismatch_status);
	methods(&json);
	limits(&json, settings);
	hpx_json_begin_array(&json, "routes");
	for (size_t i = 0; i < settings->route_count; i++)
		route(&json, NULL, &settings->routes[i], settings->observe);
	hpx_json_end_array(&json);
	route(&json, "defaults", &settings->fallback, settings->observe);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

/* ---- preflights ---- */

/* A browser asks whether a page of another origin may send what it is about to:
 * OPTIONS with Access-Control-Request-Method, from an origin that is listed. From
 * another it is an OPTIONS like any, which builtin paths do not have. Preflights to
 * any other path are the upstream's to answer, and pass. */
static bool is_preflight(const struct hpx_request *request)
{
	const struct hpx_http_head *head = &request->head.http;
	struct hpx_span origin = hpx_cors_origin(head);

	return hpx_span_eq(head->method, HPX_SPAN("OPTIONS")) &&
	       hpx_field_find(head, HPX_SPAN("Access-Control-Request-Method")) != NULL &&
	       hpx_cors_allowed(&request->settings->cors, origin).ptr != NULL;
}

/* The answer is 204 with what the page may send; the allowed origin is added as to
 * every answer. */
static enum hpx_next answer_preflight(struct hpx_request *request)
{
	struct hpx_span asked =
		hpx_field_value(&request->head.http, HPX_SPAN("Access-Control-Request-Headers"));
	struct hpx_buffer fields;

	hpx_buffer_init(&fields, FIELDS_BYTES_MAX);
	if (hpx_cors_write_preflight(HPX_SPAN("GET, HEAD"), request->settings->key_header, asked,
				     &fields) == HPX_OK)
		hpx_respond_direct(request, 204, (struct hpx_span){ "", 0 }, hpx_buffer_span(&fields),
				   (struct hpx_span){ "", 0 });
	else
		(void)hpx_respond_problem(request, HPX_PROBLEM_overloaded, NULL);
	hpx_buffer_done(&fields);
	return HPX_NEXT_DONE;
}

/* ---- the paths ---- */

static enum hpx_next not_found(struct hpx_request *request)
{
	return hpx_respond_problem(request, HPX_PROBLEM_not_found, NULL);
}

static enum hpx_next page(struct hpx_request *request, struct hpx_span content_type,
			  enum hpx_status status, struct hpx_buffer *body)
{
	if (status == HPX_OK)
		hpx_respond_direct(request, 200, content_type, (struct hpx_span){ "", 0 },
				   hpx_buffer_span(body));
	else
		(void)hpx_respond_problem(request, HPX_PROBLEM_overloaded, NULL);
	hpx_buffer_done(body);
	return HPX_NEXT_DONE;
}

static enum hpx_next problem_page(struct hpx_request *request, struct hpx_span code)
{
	const struct hpx_problem_kind *kind = hpx_problem_by_name(code);
	struct hpx_buffer body;

	if (kind == NULL)
		return not_found(request);
	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	return page(request, HPX_SPAN("text/html; charset=utf-8"), hpx_problem_page(kind, &body),
		    &body);
}

static enum hpx_next policy_page(struct hpx_request *request)
{
	struct hpx_buffer body;

	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	return page(request, JSON, print_policy(request->settings, &body), &body);
}

static bool is_get(const struct hpx_request *request)
{
	return hpx_span_eq(request->head.http.method, HPX_SPAN("GET")) ||
	       hpx_span_eq(request->head.http.method, HPX_SPAN("HEAD"));
}

static enum hpx_next wrong_method(struct hpx_request *request, const char *detail,
				  const char *allow)
{
	struct hpx_refusal refusal = { .detail = detail, .status = 405, .allow = allow };

	return hpx_respond_refuse(request, HPX_PROBLEM_bad_request, &refusal, HPX_RESPOND_KEEP);
}

static enum hpx_next webhook(struct hpx_request *request, struct hpx_span name)
{
	if (!hpx_webhook_find(request, name))
		return not_found(request);
	if (!hpx_span_eq(request->head.http.method, HPX_SPAN("POST")))
		return wrong_method(request, "this path is for POST", "POST");
	return HPX_NEXT_BODY;
}

enum hpx_next hpx_step_builtin(struct hpx_request *request)
{
	struct hpx_span path = request->head.target.path;
	struct hpx_span problems = HPX_SPAN(HPX_BUILTIN_ROOT "/problems/");
	struct hpx_span operations = HPX_SPAN(HPX_BUILTIN_ROOT "/operations");
	struct hpx_span webhooks = HPX_SPAN(HPX_BUILTIN_ROOT "/webhooks/");

	HPX_ASSERT(hpx_builtin_is(path));
	if (!request->settings->own_paths)
		return not_found(request);
	if (hpx_span_starts(path, webhooks))
		return webhook(request, hpx_span_skip(path, webhooks.len));
	if (is_preflight(request))
		return answer_preflight(request);
	if (!is_get(request))
		return wrong_method(request, "this path is for GET", "GET, HEAD");
	if (hpx_span_eq(path, HPX_SPAN(HPX_BUILTIN_ROOT "/policy")))
		return policy_page(request);
	if (hpx_span_starts(path, problems))
		return problem_page(request, hpx_span_skip(path, problems.len));
	if (hpx_span_eq(path, operations) ||
	    (hpx_span_starts(path, operations) && path.len > operations.len + 1 &&
	     path.ptr[operations.len] == '/')) {
		request->head.purpose = HPX_PURPOSE_OPERATION;
		return HPX_NEXT_TENANT;
	}
	return not_found(request);
}
