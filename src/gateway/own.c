/* Own paths: what became of an operation, the published policy, and the pages
 * about problems. A caller sees its own tenant's operations only: another's
 * does not exist for it (guarantee 5). */
#include "gateway/own.h"

#include "core/form.h"
#include "gateway/respond.h"
#include "gateway/tenant.h"
#include "http/field.h"
#include "http/write.h"

#define ROOT "/.hapax"
#define JSON HPX_SPAN("application/json")
#define PAGE_BYTES_MAX (1024 * 1024)

bool hpx_own_is(struct hpx_span path)
{
	return hpx_span_eq(path, HPX_SPAN(ROOT)) || hpx_span_starts(path, HPX_SPAN(ROOT "/"));
}

static enum hpx_next refuse(struct hpx_request *request, enum hpx_problem_code code,
			    const char *detail)
{
	struct hpx_refusal refusal = { .detail = detail };

	hpx_respond_refuse(request, code, &refusal, HPX_RESPOND_KEEP);
	return HPX_NEXT_DONE;
}

static enum hpx_next not_found(struct hpx_request *request)
{
	return refuse(request, HPX_PROBLEM_not_found, NULL);
}

static enum hpx_status print_time(struct hpx_buffer *out, const char *member, int64_t wall_ms)
{
	char when[HPX_RFC3339_SIZE];

	if (wall_ms == 0)
		return HPX_OK;
	hpx_clock_rfc3339(wall_ms, when);
	return hpx_buffer_printf(out, ",\"%s\":\"%s\"", member, when);
}

/* The operation for its caller: no key, no body, nobody's tenant. */
static enum hpx_status print_operation(const struct hpx_record *record, struct hpx_buffer *out)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&record->id, &record->first, reference);
	enum hpx_status status = hpx_buffer_printf(
		out, "{\"operation\":\"%s\",\"state\":\"%s\",\"attempt\":%u", reference,
		hpx_state_name(record->state), record->attempt);
	if (status == HPX_OK && record->status != 0)
		status = hpx_buffer_printf(out, ",\"status\":%u", record->status);
	if (status == HPX_OK && record->state == HPX_STATE_COMPLETED)
		status = hpx_buffer_printf(out, ",\"kept\":%s", record->kept ? "true" : "false");
	if (status == HPX_OK)
		status = print_time(out, "created", record->created_ms);
	if (status == HPX_OK)
		status = print_time(out, "changed", record->changed_ms);
	if (status == HPX_OK)
		status = print_time(out, "expires", record->expires_ms);
	if (status == HPX_OK)
		status = hpx_buffer_printf(out,
					   ",\"links\":{\"self\":\"" ROOT "/operations/%s\","
					   "\"policy\":\"" ROOT "/policy\"}}\n",
					   reference);
	return status;
}

static void respond_operation(struct hpx_request *request, unsigned http_status,
			      struct hpx_span fields)
{
	struct hpx_buffer body;

	hpx_buffer_init(&body, 4096);
	if (print_operation(&request->record, &body) == HPX_OK)
		hpx_respond_own(request, http_status, JSON, fields, hpx_buffer_span(&body));
	else
		(void)refuse(request, HPX_PROBLEM_overloaded, NULL);
	hpx_buffer_done(&body);
}

void hpx_own_accepted(struct hpx_request *request)
{
	char reference[HPX_REFERENCE_SIZE];

	if (request->client == NULL)
		return;
	hpx_reference_print(&request->record.id, &request->record.first, reference);
	struct hpx_span fields = hpx_arena_printf(&request->arena,
						  "Location: " ROOT "/operations/%s\r\n"
						  "Retry-After: 1\r\n",
						  reference);
	respond_operation(request, 202, fields);
}

/* The caller's operation, or nothing: another tenant's, another use of the
 * same key, and an absent one look alike. */
static enum hpx_next show(struct hpx_request *request)
{
	const struct hpx_record *record = &request->op.decision.record;
	struct hpx_moment now = { .wall_ms = hpx_clock_wall_ms(),
				  .hold_expiry = atomic_load(
					  &request->shard->gateway->store->expiry_held) };

	switch (request->op.status) {
	case HPX_OK:
		break;
	case HPX_NOT_FOUND:
		return not_found(request);
	default:
		return refuse(request, HPX_PROBLEM_idempotency_store_unavailable, NULL);
	}
	if (!hpx_bytes_same(request->ask.tenant, record->tenant, sizeof(record->tenant)) ||
	    (!hpx_token_is_void(&request->op.token) &&
	     !hpx_token_eq(&request->op.token, &record->first)))
		return not_found(request);
	request->record = *record;
	if (hpx_record_expired(record, &now))
		return refuse(request, HPX_PROBLEM_expired, NULL);
	respond_operation(request, 200, (struct hpx_span){ "", 0 });
	return HPX_NEXT_DONE;
}

static void found(struct hpx_request *request)
{
	hpx_request_go(request, show(request));
}

/* Asks the store. `first` NULL: by key, whatever its reference. */
static enum hpx_next find(struct hpx_request *request, const struct hpx_operation_id *id,
			  const struct hpx_token *first)
{
	struct hpx_sha256 hash;

	if (request->shard->gateway->committer == NULL)
		return refuse(request, HPX_PROBLEM_idempotency_store_unavailable, NULL);
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, request->tenant);
	if (hpx_sha256_done(&hash, request->ask.tenant) != HPX_OK)
		return refuse(request, HPX_PROBLEM_overloaded, NULL);
	request->op = (struct hpx_store_op){ .verb = HPX_VERB_FIND, .id = *id };
	if (first != NULL)
		request->op.token = *first;
	hpx_request_submit(request, found);
	return HPX_NEXT_WAIT;
}

/* The decoded value of a query parameter; ptr NULL where absent or bad. */
static struct hpx_span parameter(struct hpx_request *request, struct hpx_span wanted)
{
	struct hpx_span rest = request->target.query;
	struct hpx_span pair;

	while (rest.ptr != NULL && hpx_span_split(&rest, '&', &pair)) {
		size_t at = hpx_span_index(pair, '=');
		if (at == pair.len || !hpx_span_eq(hpx_span_first(pair, at), wanted))
			continue;
		char *value = hpx_arena_alloc(&request->arena, pair.len);
		size_t len = 0;
		if (value == NULL ||
		    hpx_form_decode(hpx_span_skip(pair, at + 1), value, &len) != HPX_OK)
			break;
		return hpx_span(value, len);
	}
	return (struct hpx_span){ NULL, 0 };
}

/* By key, method and path: the key in its header or as a parameter. */
static enum hpx_next by_key(struct hpx_request *request)
{
	const struct hpx_settings *settings = request->settings;
	struct hpx_span value = hpx_field_value(&request->head, settings->key_header);
	struct hpx_span method = parameter(request, HPX_SPAN("method"));
	struct hpx_span path = parameter(request, HPX_SPAN("path"));
	struct hpx_target target;
	struct hpx_operation_id id;
	struct hpx_span scope;
	const char *reason = "the key is missing: send its header, or ?key=…";

	if (value.ptr == NULL)
		value = parameter(request, HPX_SPAN("key"));
	if (method.ptr == NULL)
		method = HPX_SPAN("POST");
	if (path.ptr == NULL)
		return refuse(request, HPX_PROBLEM_bad_request,
			      "ask with ?method=POST&path=/…, and the key in its header or as key=…");
	if (value.ptr == NULL ||
	    (settings->key_syntax == HPX_KEY_SYNTAX_BARE ?
		     hpx_key_parse_bare(value, &request->key, &reason) :
		     hpx_key_parse(value, false, &request->key, &reason)) != HPX_OK)
		return refuse(request, HPX_PROBLEM_idempotency_key_invalid, reason);
	if (hpx_target_parse(method, path, &request->arena, &target, &reason) != HPX_OK)
		return refuse(request, HPX_PROBLEM_bad_request, reason);
	const struct hpx_route *route =
		hpx_route_match(settings, method, request->host, target.path);
	if (hpx_scope_of(settings, route, method, target.path, &request->arena, &scope) != HPX_OK ||
	    hpx_operation_id(request->tenant, scope,
			     hpx_span(request->key.bytes, request->key.len), &id) != HPX_OK)
		return refuse(request, HPX_PROBLEM_overloaded, NULL);
	return find(request, &id, NULL);
}

static enum hpx_next operations(struct hpx_request *request, struct hpx_span rest)
{
	const char *reason = NULL;
	struct hpx_operation_id id;
	struct hpx_token first;

	if (hpx_tenant_of(request->settings, &request->head, request->peer, &request->arena,
			  &request->tenant, &reason) != HPX_OK)
		return refuse(request, HPX_PROBLEM_unauthenticated, reason);
	if (rest.len == 0)
		return by_key(request);
	if (!hpx_reference_parse(rest, &id, &first))
		return not_found(request);
	return find(request, &id, &first);
}

static enum hpx_next page(struct hpx_request *request, struct hpx_span content_type,
			  enum hpx_status status, struct hpx_buffer *body)
{
	if (status == HPX_OK)
		hpx_respond_own(request, 200, content_type, (struct hpx_span){ "", 0 },
				hpx_buffer_span(body));
	else
		(void)refuse(request, HPX_PROBLEM_overloaded, NULL);
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
	return page(request, JSON, hpx_own_policy_print(request->settings, &body), &body);
}

enum hpx_next hpx_step_own(struct hpx_request *request)
{
	struct hpx_span path = request->target.path;
	struct hpx_refusal only_get = { .detail = "this path is for GET",
					.status = 405,
					.allow = "GET, HEAD" };
	struct hpx_span problems = HPX_SPAN(ROOT "/problems/");
	struct hpx_span one = HPX_SPAN(ROOT "/operations/");

	if (!request->settings->own_paths)
		return not_found(request);
	if (!hpx_span_eq(request->head.method, HPX_SPAN("GET")) &&
	    !hpx_span_eq(request->head.method, HPX_SPAN("HEAD"))) {
		hpx_respond_refuse(request, HPX_PROBLEM_bad_request, &only_get, HPX_RESPOND_KEEP);
		return HPX_NEXT_DONE;
	}
	if (hpx_span_eq(path, HPX_SPAN(ROOT "/policy")))
		return policy_page(request);
	if (hpx_span_starts(path, problems))
		return problem_page(request, hpx_span_skip(path, problems.len));
	if (hpx_span_eq(path, HPX_SPAN(ROOT "/operations")))
		return operations(request, (struct hpx_span){ "", 0 });
	if (hpx_span_starts(path, one) && path.len > one.len)
		return operations(request, hpx_span_skip(path, one.len));
	return not_found(request);
}
