/* GET /.hapax/policy: what the draft's §2.5.2 asks a resource to publish. */
#include "gateway/own.h"
#include "http/method.h"

struct printer {
	struct hpx_buffer *out;
	enum hpx_status status; /* the first failure stays */
	bool first;             /* no comma before the next member */
};

static void raw(struct printer *p, const char *text)
{
	if (p->status == HPX_OK)
		p->status = hpx_buffer_text(p->out, text);
}

static void quoted(struct printer *p, struct hpx_span text)
{
	raw(p, "\"");
	if (p->status == HPX_OK)
		p->status = hpx_buffer_json(p->out, text);
	raw(p, "\"");
}

static void name(struct printer *p, const char *member)
{
	raw(p, p->first ? "" : ",");
	p->first = false;
	quoted(p, hpx_span_of(member));
	raw(p, ":");
}

static void text(struct printer *p, const char *member, const char *value)
{
	name(p, member);
	quoted(p, hpx_span_of(value));
}

static void seconds(struct printer *p, const char *member, int64_t ms)
{
	name(p, member);
	if (p->status == HPX_OK)
		p->status = hpx_buffer_printf(p->out, "%.10g", (double)ms / 1000);
}

static void list(struct printer *p, const char *member, const struct hpx_span *items, size_t count)
{
	name(p, member);
	raw(p, "[");
	for (size_t i = 0; i < count; i++) {
		raw(p, i > 0 ? "," : "");
		quoted(p, items[i]);
	}
	raw(p, "]");
}

static void methods_of(struct printer *p, const char *member, enum hpx_method_kind kind)
{
	size_t count;
	const struct hpx_method *all = hpx_methods(&count);
	const char *comma = "";

	name(p, member);
	raw(p, "[");
	for (size_t i = 0; i < count; i++) {
		if (all[i].kind != kind)
			continue;
		raw(p, comma);
		quoted(p, all[i].name);
		comma = ",";
	}
	raw(p, "]");
}

/* What happens to a method without a route for it. */
static void methods(struct printer *p)
{
	name(p, "methods");
	raw(p, "{");
	p->first = true;
	methods_of(p, "guarded", HPX_METHOD_NEITHER);
	methods_of(p, "passed_unless_a_route_names_them", HPX_METHOD_IDEMPOTENT);
	methods_of(p, "passed", HPX_METHOD_SAFE);
	methods_of(p, "refused", HPX_METHOD_TUNNEL);
	text(p, "others", "guarded");
	raw(p, "}");
	p->first = false;
}

static void route(struct printer *p, const struct hpx_route *r, bool observe)
{
	raw(p, "{");
	p->first = true;
	name(p, "match");
	quoted(p, r->pattern);
	text(p, "key", hpx_key_rule_name(r->policy.key));
	text(p, "scope", hpx_scope_rule_name(r->policy.scope));
	seconds(p, "retention_seconds", r->policy.retention_ms);
	text(p, "server_error", hpx_server_error_name(r->policy.server_error));
	text(p, "on_lost", hpx_on_lost_name(r->policy.on_lost));
	text(p, "completes", hpx_completes_name(r->policy.completes));
	text(p, "deliver", hpx_deliver_name(r->policy.deliver));
	text(p, "concurrent", hpx_concurrent_name(r->policy.concurrent));
	if (r->policy.concurrent == HPX_CONCURRENT_WAIT || r->policy.deliver == HPX_DELIVER_ASYNC)
		seconds(p, "wait_seconds", r->policy.wait_ms);
	text(p, "store", hpx_keep_name(r->policy.keep));
	list(p, "fingerprint_ignores", r->recipe.ignore, r->recipe.ignore_count);
	list(p, "fingerprint_headers", r->recipe.headers, r->recipe.header_count);
	name(p, "observe");
	raw(p, observe || r->observe ? "true" : "false");
	raw(p, "}");
	p->first = false;
}

enum hpx_status hpx_own_policy_print(const struct hpx_settings *settings, struct hpx_buffer *out)
{
	static const char *const syntaxes[] = { "ietf", "strict", "bare" };
	struct printer p = { .out = out, .first = true };

	raw(&p, "{");
	name(&p, "key_header");
	quoted(&p, settings->key_header);
	text(&p, "key_syntax", syntaxes[settings->key_syntax]);
	name(&p, "key_bytes_max");
	raw(&p, "255");
	text(&p, "replay_marker", "Idempotent-Replayed");
	text(&p, "expires_header", "Idempotency-Expires");
	name(&p, "mismatch_status");
	if (p.status == HPX_OK)
		p.status = hpx_buffer_printf(out, "%u", settings->mismatch_status);
	methods(&p);
	name(&p, "routes");
	raw(&p, "[");
	for (size_t i = 0; i < settings->route_count; i++) {
		raw(&p, i > 0 ? "," : "");
		route(&p, &settings->routes[i], settings->observe);
	}
	raw(&p, "]");
	name(&p, "defaults");
	route(&p, &settings->fallback, settings->observe);
	raw(&p, "}\n");
	return p.status;
}
