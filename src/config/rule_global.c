/* Rules about options at the top of the file: options that contradict each other,
 * or are probably not meant. Checked when every value is in its place. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "config/parse_context.h"
#include "http/field.h"
#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A remark about the option of this path, where it was given. */
static void remark(struct hpx_parse_context *context, enum hpx_config_severity severity,
		   const struct hpx_given *given, const char *path, const char *message)
{
	hpx_config_remark(context->report, severity, given->line, given->column,
			  hpx_span_of(path), "%s", message);
}

static void mistake(struct hpx_parse_context *context, const char *path, const char *message)
{
	remark(context, HPX_CONFIG_MISTAKE, hpx_context_given(context, path, NULL), path,
	       message);
}

static void warn(struct hpx_parse_context *context, const char *path, const char *message)
{
	remark(context, HPX_CONFIG_WARNING, hpx_context_given(context, path, NULL), path,
	       message);
}

static bool is_given(const struct hpx_parse_context *context, const char *path)
{
	return hpx_context_given(context, path, NULL)->given;
}

/* Whether a request to one of them arrives at the other. */
static bool is_same_place(const struct hpx_address *a, const struct hpx_address *b)
{
	return a->is_unix == b->is_unix && a->port == b->port &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->path, b->path) == 0;
}

static void check_addresses(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;

	if (!is_given(context, "upstream") && !context->without_gateway && !context->without_secrets)
		mistake(context, "upstream",
			"is missing; say where the API is, e.g. upstream: "
			"http://127.0.0.1:9000, or --upstream on the command line");
	for (size_t i = 0; i < settings->listener_count; i++) {
		const struct hpx_address *listen = &settings->listeners[i].address;
		/* Port 0 is any free port: two of them are never the same. */
		if (settings->has_admin && strcmp(listen->text, settings->admin.text) == 0 &&
		    (listen->is_unix || listen->port != 0))
			mistake(context, "admin",
				"is the same address as listen; give it its own, or off");
		if (is_same_place(listen, &settings->upstream))
			mistake(context, "upstream",
				"is the address that hapax itself listens on; give the API's");
	}
	if (settings->has_admin && is_same_place(&settings->admin, &settings->upstream))
		mistake(context, "upstream",
			"is hapax's own admin address; give the API's, or admin another");
}

/* Services that share a database tell their keys apart by the upstream's name. It is
 * the first word of every scope, so it has no space. Commands that only look into
 * the store make no scope, and need no name. */
static void check_upstream_name(struct hpx_parse_context *context)
{
	struct hpx_span name = context->settings->upstream_name;

	if (memchr(name.ptr, ' ', name.len) != NULL || !hpx_utf8_valid(name)) {
		mistake(context, "upstream_name",
			"must be UTF-8 and have no space, because a scope's first space ends it: "
			"write e.g. shop-payments");
		return;
	}
	if (is_given(context, "upstream_name") || context->without_secrets ||
	    !hpx_store_url_can(context->settings->store, HPX_STORE_SHARED))
		return;
	mistake(context, "upstream_name",
		"is missing; several services may share a PostgreSQL, and a key belongs to one "
		"of them: write e.g. upstream_name: payments, or --upstream-name payments on the "
		"command line; the same name for all gateways of one service, whatever its "
		"address, and another name for another service");
}

/* A file that others may read shows them every answer; one that they may write, or a
 * directory in which they may put another file in its place, lets them make answers. */
static void check_store_modes(struct hpx_parse_context *context, struct hpx_span path)
{
	char folder[PATH_MAX];
	struct stat about;

	if (path.len >= sizeof(folder))
		return;
	memcpy(folder, path.ptr, path.len);
	folder[path.len] = '\0';
	if (stat(folder, &about) == 0 && S_ISREG(about.st_mode) &&
	    (about.st_mode & (S_IROTH | S_IWOTH)) != 0)
		warn(context, "store",
		     "can be read or written by every user, and holds keys and answers; chmod 600 it, "
		     "and the files beside it, as the user that hapax runs as");
	char *slash = strrchr(folder, '/');
	if (slash == NULL)
		snprintf(folder, sizeof(folder), ".");
	else
		slash[slash == folder] = '\0';
	if (stat(folder, &about) == 0 && (about.st_mode & S_IWOTH) != 0)
		warn(context, "store",
		     "is in a directory that every user may write, so that any user could "
		     "replace the file; use a directory of hapax's own (chmod 700)");
}

static void check_store(struct hpx_parse_context *context)
{
	struct hpx_span url = context->settings->store;
	struct hpx_span path = hpx_store_url_path(url);

	/* Without a file, somebody is trying hapax out. */
	if (context->tree.count > 0 && path.len > 0 && path.ptr[0] != '/')
		remark(context, HPX_CONFIG_NOTE, hpx_context_given(context, "store", NULL),
		       "store",
		       "is a relative path: started in another directory, hapax would use "
		       "another, empty store; write an absolute path for a service");
	if (path.len > 0)
		check_store_modes(context, path);
	if (!hpx_store_url_can(url, HPX_STORE_PERSISTS))
		warn(context, "store",
		     "keeps operations in memory: after a restart, every key is executed "
		     "again");
}

static void check_subrequest(struct hpx_parse_context *context)
{
	static const char *const names[] = { "tenant.url", "tenant.header",
					     "tenant.cache", "tenant.ca_file",
					     "tenant.timeout", "tenant.connect_timeout" };
	bool used = context->settings->tenant.from == HPX_TENANT_SUBREQUEST;
	/* How it is called holds for the keys of tokens too. */
	size_t own = context->settings->tenant.from == HPX_TENANT_JWT ? 3 : sizeof(names) / sizeof(names[0]);

	if (used && !is_given(context, "tenant.url"))
		mistake(context, "tenant.from",
			"is subrequest, but no service is named; add e.g. tenant.url: "
			"http://127.0.0.1:9001/verify");
	if (used && !is_given(context, "tenant.header"))
		mistake(context, "tenant.from",
			"is subrequest, but nothing says which header of its answer names the "
			"tenant; add e.g. tenant.header: X-Tenant");
	for (size_t i = 0; i < own; i++)
		if (!used && is_given(context, names[i]))
			warn(context, names[i],
			     "has no effect unless tenant.from is subrequest");
	if (used && is_given(context, "tenant.anonymous"))
		warn(context, "tenant.anonymous",
		     "has no effect where tenant.from is subrequest: a caller that the service "
		     "does not name is refused");
}

static bool has_name(const struct hpx_span *names, size_t count, struct hpx_span name)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_ieq(names[i], name))
			return true;
	return false;
}

/* The key, and headers of one message or connection, never name a caller; Host may. */
static bool may_name_tenant(const struct hpx_parse_context *context, struct hpx_span name)
{
	return !hpx_span_ieq(name, context->settings->key_header) &&
	       !hpx_span_ieq(name, HPX_SPAN("Cookie")) &&
	       !hpx_rule_is_rewritten(context->settings, name) &&
	       (hpx_span_ieq(name, HPX_SPAN("Host")) || !hpx_rule_is_framing(name));
}

static void check_tenant_lists(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	bool looks = settings->tenant.from == HPX_TENANT_AUTOMATIC ||
		     settings->tenant.from == HPX_TENANT_AUTHORIZATION ||
		     settings->tenant.from == HPX_TENANT_SUBREQUEST ||
		     settings->tenant.anonymous == HPX_ANONYMOUS_LOCAL;

	for (size_t i = 0; i < settings->tenant.with_count; i++) {
		struct hpx_span name = settings->tenant.with[i];
		if (!may_name_tenant(context, name))
			mistake(context, "tenant.with",
				"names a header that cannot be part of a tenant: the key's, "
				"Cookie, or one that belongs to the message or the connection, or "
				"that hapax writes anew");
		if (has_name(settings->tenant.ignore, settings->tenant.ignore_count, name))
			mistake(context, "tenant.ignore",
				"names a header that tenant.with names too; leave it out of "
				"one of them");
	}
	if (!looks && settings->tenant.ignore_count > 0)
		warn(context, "tenant.ignore",
		     "has no effect here: only what tenant.from and tenant.with name is looked "
		     "at");
}

static void check_tenant_name(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	bool header = settings->tenant.from == HPX_TENANT_HEADER ||
		      settings->tenant.from == HPX_TENANT_CREDENTIAL;
	bool named = header || settings->tenant.from == HPX_TENANT_COOKIE;

	if (named && !is_given(context, "tenant.name"))
		mistake(context, "tenant.from",
			settings->tenant.from == HPX_TENANT_HEADER ?
				"is header, but no header is named; add e.g. "
				"tenant.name: X-Tenant" :
			settings->tenant.from == HPX_TENANT_COOKIE ?
				"is cookie, but no cookie is named; add e.g. "
				"tenant.name: session" :
				"is credential, but no header is named; add e.g. "
				"tenant.name: X-Auth-Token");
	if (!named && is_given(context, "tenant.name"))
		warn(context, "tenant.name",
		     "has no effect unless tenant.from is credential, header or cookie");
	if (!header || settings->tenant.name.ptr == NULL)
		return;
	if (!may_name_tenant(context, settings->tenant.name))
		mistake(context, "tenant.name",
			"names a header that cannot be the tenant's: the key's, Cookie (say "
			"tenant.from: cookie), or one that belongs to the message or the "
			"connection, or that hapax writes anew");
	if (has_name(settings->tenant.ignore, settings->tenant.ignore_count,
		     settings->tenant.name))
		mistake(context, "tenant.ignore",
			"names the header that tenant.name names; leave one out");
}

static void check_tenant(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;

	check_tenant_name(context);
	check_tenant_lists(context);
	if (settings->tenant.from == HPX_TENANT_ANONYMOUS &&
	    is_given(context, "tenant.anonymous") &&
	    settings->tenant.anonymous != HPX_ANONYMOUS_ALLOW)
		mistake(context, "tenant.anonymous",
			"is always allow where tenant.from is anonymous; leave one of them out");
	check_subrequest(context);
	hpx_rule_check_jwt(context);
	if (settings->tenant.from != HPX_TENANT_CERTIFICATE && is_given(context, "tenant.certificate"))
		warn(context, "tenant.certificate",
		     "has no effect unless tenant.from is certificate");
	if (settings->tenant.from == HPX_TENANT_CERTIFICATE && is_given(context, "tenant.anonymous"))
		warn(context, "tenant.anonymous",
		     "has no effect where tenant.from is certificate: every client shows one");
	if (settings->tenant.from == HPX_TENANT_HEADER &&
	    settings->trusted_peer_count == 0 && !hpx_settings_only_unix(settings))
		mistake(context, "tenant.from",
			"is header, which any client could send; list your proxies in "
			"trusted_peers, or listen on a unix socket (listen: unix:PATH)");
}

bool hpx_rule_is_framing(struct hpx_span name)
{
	static const struct hpx_span taken[] = {
		HPX_SPAN_INIT("host"),
		HPX_SPAN_INIT("connection"),
		HPX_SPAN_INIT("expect"),
		HPX_SPAN_INIT("upgrade"),
		HPX_SPAN_INIT("transfer-encoding"),
		HPX_SPAN_INIT("te"),
		HPX_SPAN_INIT("trailer"),
		HPX_SPAN_INIT("keep-alive"),
		HPX_SPAN_INIT("via"),
	};

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (hpx_span_ieq(name, taken[i]))
			return true;
	return hpx_field_is_ours(name) || hpx_span_istarts(name, HPX_SPAN("content-"));
}

bool hpx_rule_is_rewritten(const struct hpx_settings *settings, struct hpx_span name)
{
	static const struct hpx_span always[] = {
		HPX_SPAN_INIT("connection"),
		HPX_SPAN_INIT("keep-alive"),
		HPX_SPAN_INIT("te"),
		HPX_SPAN_INIT("trailer"),
		HPX_SPAN_INIT("upgrade"),
		HPX_SPAN_INIT("transfer-encoding"),
		HPX_SPAN_INIT("proxy-connection"),
		HPX_SPAN_INIT("proxy-authorization"),
		HPX_SPAN_INIT("http2-settings"),
		HPX_SPAN_INIT("expect"),
		HPX_SPAN_INIT("content-length"),
		HPX_SPAN_INIT("accept-encoding"),
		HPX_SPAN_INIT("x-forwarded-for"),
		HPX_SPAN_INIT("via"),
	};
	/* Those of a trusted peer are forwarded as they are. */
	static const struct hpx_span of_strangers[] = {
		HPX_SPAN_INIT("x-forwarded-host"),
		HPX_SPAN_INIT("x-forwarded-proto"),
	};
	bool strangers = settings->trusted_peer_count == 0 && !hpx_settings_only_unix(settings);

	return hpx_field_is_ours(name) || has_name(always, COUNT(always), name) ||
	       (strangers && has_name(of_strangers, COUNT(of_strangers), name));
}

bool hpx_rule_is_key_header(struct hpx_span name)
{
	return !hpx_rule_is_framing(name) &&
	       !hpx_span_ieq(name, HPX_SPAN("authorization")) &&
	       !hpx_span_ieq(name, HPX_SPAN("cookie"));
}

static void check_key_header(struct hpx_parse_context *context)
{
	if (!hpx_rule_is_key_header(context->settings->key_header))
		mistake(context, "key_header",
			"names a header that means something else; e.g. Idempotency-Key");
}

/* The origins are sorted, and "*" stands before every other. */
static void check_cors(struct hpx_parse_context *context)
{
	const struct hpx_cors *cors = &context->settings->cors;
	bool any = cors->origin_count > 0 && hpx_span_eq(cors->origins[0], HPX_SPAN("*"));

	if (any && cors->origin_count > 1)
		mistake(context, "cors.origins",
			"has \"*\" beside other origins; it stands alone, or not at all");
	if (any && cors->credentials)
		mistake(context, "cors.credentials",
			"cannot be true where cors.origins is \"*\": every page that a caller "
			"opens could act in its name; list the origins");
	if (cors->origin_count == 0 && is_given(context, "cors.credentials") &&
	    !hpx_context_given(context, "cors.origins", NULL)->wrong)
		warn(context, "cors.credentials", "has no effect unless cors.origins lists any");
	if (cors->credentials && hpx_cors_allowed(cors, HPX_SPAN("null")).ptr != NULL && !any)
		warn(context, "cors.origins",
		     "lists null, an origin that any page can have, together with "
		     "cors.credentials; leave one out");
}

/* Two options of which the first must not be the larger. */
static void check_order(struct hpx_parse_context *context, enum hpx_config_severity severity,
			const char *small, const char *large, uint64_t small_value,
			uint64_t large_value, const char *effect)
{
	const struct hpx_given *given = hpx_context_given(context, small, NULL);

	HPX_ASSERT(severity != HPX_CONFIG_NOTE);
	if (small_value <= large_value)
		return;
	if (!given->given)
		given = hpx_context_given(context, large, NULL);
	hpx_config_remark(context->report, severity, given->line, given->column,
			  hpx_span_of(small), "is larger than %s: %s", large, effect);
}

static void check_limits(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;

	check_order(context, HPX_CONFIG_MISTAKE, "limits.request_body", "limits.bodies",
		    settings->request_body_bytes_max, settings->bodies_bytes_max,
		    "such a request could never be taken");
	check_order(context, HPX_CONFIG_MISTAKE, "limits.response_body", "limits.bodies",
		    settings->response_body_bytes_max, settings->bodies_bytes_max,
		    "such an answer could never be stored");
	check_order(context, HPX_CONFIG_WARNING, "limits.waiters_per_operation",
		    "limits.waiters", settings->waiters_per_operation_max,
		    settings->waiters_max, "it is never reached");
	check_order(context, HPX_CONFIG_WARNING, "timeouts.first_byte", "timeouts.whole",
		    (uint64_t)settings->first_byte_timeout_ms,
		    (uint64_t)settings->whole_timeout_ms, "it is never reached");
	check_order(context, HPX_CONFIG_WARNING, "timeouts.connect", "timeouts.whole",
		    (uint64_t)settings->connect_timeout_ms,
		    (uint64_t)settings->whole_timeout_ms, "it is never reached");
}

static void check_access_log(struct hpx_parse_context *context)
{
	if (is_given(context, "access_log_file") && !is_given(context, "access_log"))
		mistake(context, "access_log_file",
			"names a file, and access_log does not say what to write there; add access_log: "
			"json (or text)");
}

static void check_traces(struct hpx_parse_context *context)
{
	static const char *const names[] = { "traces.sample", "traces.service_name", "traces.spans",
					     "traces.credentials.header", "traces.credentials.file",
					     "traces.credentials.env", "traces.ca_file",
					     "traces.connect_timeout", "traces.timeout" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!is_given(context, "traces.endpoint") && is_given(context, names[i]))
			warn(context, names[i], "has no effect unless traces.endpoint is given");
}

void hpx_parse_check(struct hpx_parse_context *context)
{
	check_addresses(context);
	hpx_rule_check_listeners(context);
	check_upstream_name(context);
	check_tenant(context);
	check_key_header(context);
	check_cors(context);
	check_limits(context);
	check_access_log(context);
	check_traces(context);
	hpx_rule_check_routes(context);
	hpx_rule_check_services(context);
	/* Beside mistakes, notes are noise. */
	if (context->report->mistakes == 0)
		check_store(context);
}
