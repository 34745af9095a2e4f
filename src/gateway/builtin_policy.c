/* GET /.hapax/policy: what the draft's §2.5.2 asks a resource to publish. */
#include "base/json_writer.h"
#include "gateway/builtin.h"
#include "http/method.h"

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

/* What happens to a method without a route for it. */
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

static void route(struct hpx_json_writer *json, const char *name, const struct hpx_route *r, bool observe)
{
	hpx_json_begin_object(json, name);
	hpx_json_put_string(json, "match", r->pattern);
	hpx_json_put_text(json, "key", hpx_key_rule_name(r->policy.key));
	hpx_json_put_text(json, "scope", hpx_scope_rule_name(r->policy.scope));
	hpx_json_put_seconds(json, "retention_seconds", r->policy.retention_ms);
	hpx_json_put_text(json, "server_error", hpx_server_error_name(r->policy.server_error));
	hpx_json_put_text(json, "on_lost", hpx_on_lost_name(r->policy.on_lost));
	hpx_json_put_text(json, "completes", hpx_completes_name(r->policy.completes));
	hpx_json_put_text(json, "deliver", hpx_deliver_name(r->policy.deliver));
	hpx_json_put_text(json, "concurrent", hpx_concurrent_name(r->policy.concurrent));
	if (r->policy.concurrent == HPX_CONCURRENT_WAIT || r->policy.deliver == HPX_DELIVER_ASYNC)
		hpx_json_put_seconds(json, "wait_seconds", r->policy.wait_ms);
	hpx_json_put_text(json, "store", hpx_keep_name(r->policy.keep));
	list(json, "fingerprint_ignores", r->recipe.ignore, r->recipe.ignore_count);
	list(json, "fingerprint_headers", r->recipe.headers, r->recipe.header_count);
	hpx_json_put_bool(json, "observe", observe || r->observe);
	hpx_json_end_object(json);
}

enum hpx_status hpx_builtin_policy_print(const struct hpx_settings *settings, struct hpx_buffer *out)
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
	hpx_json_begin_array(&json, "routes");
	for (size_t i = 0; i < settings->route_count; i++)
		route(&json, NULL, &settings->routes[i], settings->observe);
	hpx_json_end_array(&json);
	route(&json, "defaults", &settings->fallback, settings->observe);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}
