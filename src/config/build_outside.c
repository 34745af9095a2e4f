/* What follows from the values about services outside: secrets are read, URLs
 * lose the / at their end, probes get the service that they are for, routes
 * find their target. */
#include "config/secret.h"
#include "config/spot.h"

/* A rotation has two. */
#define KEYS_MAX 8
/* How many callers are remembered; the cache of subrequests has no option. */
#define CACHE_ENTRIES_MAX 10000
#define BREAKER_OPEN_MS 1000
/* How much longer than a delivery the breaker waits to be told of it. */
#define BREAKER_MARGIN_MS 10000

/* The secret from whichever of the two is given; ptr NULL: neither, or a
 * mistake, which is reported, or none is wanted. */
static enum hpx_status read_secret(struct hpx_parse_context *context, const struct hpx_location *location,
				   const char *group, const char *const names[2],
				   const char *file, struct hpx_span env,
				   struct hpx_span *ret_secret)
{
	struct hpx_arena *arena = &context->settings->arena;
	char problem[HPX_SECRET_PROBLEM_SIZE];
	enum hpx_status status = HPX_OK;
	bool open = false;

	*ret_secret = (struct hpx_span){ NULL, 0 };
	if (file != NULL && env.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, names[1],
				    "is given beside %s%s; leave one out", group, names[0]);
	else if (context->without_secrets)
		return HPX_OK;
	else if (file != NULL)
		status = hpx_secret_from_file(file, arena, ret_secret, &open, problem);
	else if (env.ptr != NULL)
		status = hpx_secret_from_env(env.ptr, arena, ret_secret, problem);
	if (open)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, group, names[0],
				    "can be read or written by every user; chmod 600 it, as the "
				    "user that hapax runs as");
	if (status != HPX_INVALID)
		return status;
	hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, names[file == NULL], "%s",
			    problem);
	return HPX_OK;
}

static bool is_field_value(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < ' ' || text.ptr[i] > '~')
			return false;
	return text.ptr[0] != ' ' && text.ptr[text.len - 1] != ' ';
}

static enum hpx_status build_credentials(struct hpx_parse_context *context,
					 const struct hpx_location *location, const char *group,
					 struct hpx_caller *caller)
{
	static const char *const names[2] = { "credentials.file", "credentials.env" };
	const struct hpx_credentials *from = &caller->credentials;
	struct hpx_span secret;
	enum hpx_status status = read_secret(context, location, group, names, from->file,
					     from->env, &secret);

	if (status != HPX_OK || secret.ptr == NULL)
		return status;
	if (!is_field_value(secret)) {
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group,
				    names[from->file == NULL],
				    "holds what no header can carry; it is one line of ASCII, the "
				    "header's whole value");
		return HPX_OK;
	}
	caller->headers = hpx_arena_printf(&context->settings->arena, "%.*s: %.*s\r\n",
					   HPX_SPAN_ARG(from->header), HPX_SPAN_ARG(secret));
	return caller->headers.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status trim_url(struct hpx_parse_context *context, const char **url)
{
	struct hpx_span text = hpx_span_of(*url);

	if (text.len == 0 || text.ptr[text.len - 1] != '/')
		return HPX_OK;
	while (text.ptr[text.len - 1] == '/')
		text.len--;
	text = hpx_arena_dup(&context->settings->arena, text);
	*url = text.ptr;
	return text.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* `service`: whom the probe asks where it does not say. */
static enum hpx_status build_probe(struct hpx_parse_context *context, const struct hpx_location *location,
				   struct hpx_probe *probe, const struct hpx_caller *service)
{
	bool own = hpx_location_any_given(location, "reconcile.probe.credentials.");
	struct hpx_caller *caller = &probe->caller;

	probe->given = probe->get.ptr != NULL;
	if (probe->given && caller->url == NULL) {
		caller->url = service->url;
		if (!own && service->headers.len > 0)
			caller->headers = service->headers;
		if (caller->ca_file == NULL)
			caller->ca_file = service->ca_file;
	}
	enum hpx_status status = trim_url(context, &caller->url);
	if (status == HPX_OK && own)
		status = build_credentials(context, location, "reconcile.probe.", caller);
	return status;
}

static enum hpx_status build_reconcile(struct hpx_parse_context *context,
				       const struct hpx_location *location,
				       struct hpx_reconcile_settings *reconcile,
				       const struct hpx_caller *service)
{
	reconcile->given = reconcile->given || hpx_location_any_given(location, "reconcile.");
	return build_probe(context, location, &reconcile->probe, service);
}

static enum hpx_status build_target(struct hpx_parse_context *context, size_t n)
{
	struct hpx_job_target *target = &context->targets[n];
	struct hpx_location location = hpx_location_target(context, n);
	enum hpx_status status = trim_url(context, &target->caller.url);

	if (location.prefix.ptr == NULL)
		return HPX_NOMEM;
	target->breaker.open_ms = BREAKER_OPEN_MS;
	target->breaker.probe_ms = target->caller.timeout_ms + BREAKER_MARGIN_MS;
	if (status == HPX_OK)
		status = build_credentials(context, &location, "", &target->caller);
	if (status == HPX_OK)
		status = build_reconcile(context, &location, &target->reconcile, &target->caller);
	return status;
}

static void find_target(const struct hpx_settings *settings, struct hpx_route *route)
{
	route->target = NULL;
	for (size_t i = 0; i < settings->target_count; i++)
		if (route->policy.deliver == HPX_DELIVER_ASYNC &&
		    hpx_span_eq(settings->targets[i].name, route->target_name))
			route->target = &settings->targets[i];
}

/* A route that names one source of a credential means that instead of the
 * other one, which `defaults` name. */
static void replace_source(const struct hpx_location *location, struct hpx_credentials *credentials)
{
	bool file = hpx_location_given(location, "reconcile.probe.credentials.", "file")->given;
	bool env = hpx_location_given(location, "reconcile.probe.credentials.", "env")->given;

	if (env && !file)
		credentials->file = NULL;
	if (file && !env)
		credentials->env = (struct hpx_span){ NULL, 0 };
}

/* A route has begun with what is written in `defaults`, and gets what that came
 * to. Credentials are for the service that they were given with. */
static enum hpx_status build_route(struct hpx_parse_context *context, size_t n,
				   const struct hpx_caller *upstream)
{
	const struct hpx_reconcile_settings *defaults = &context->settings->fallback.reconcile;
	struct hpx_route *route = &context->settings->routes[n];
	struct hpx_location location = hpx_location_route(context, n);

	find_target(context->settings, route);
	if (!hpx_location_any_given(&location, "reconcile.")) {
		route->reconcile = *defaults;
		return HPX_OK;
	}
	if (!hpx_location_given(&location, "reconcile.probe.", "url")->given)
		route->reconcile.probe.caller.headers = defaults->probe.caller.headers;
	replace_source(&location, &route->reconcile.probe.caller.credentials);
	return build_reconcile(context, &location, &route->reconcile, upstream);
}

static enum hpx_status build_routes(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	struct hpx_location location = hpx_location_defaults(context);
	bool is_unix = settings->upstream.is_unix || settings->upstream.text[0] == '\0';
	struct hpx_caller upstream = { .url = is_unix ? NULL : settings->upstream.text };
	enum hpx_status status =
		build_reconcile(context, &location, &settings->fallback.reconcile, &upstream);

	find_target(settings, &settings->fallback);
	for (size_t n = 0; n < settings->route_count && status == HPX_OK; n++)
		status = build_route(context, n, &upstream);
	return status;
}

/* The secrets of a webhook, one per line. */
static enum hpx_status build_keys(struct hpx_parse_context *context, const struct hpx_location *location,
				  struct hpx_webhook *webhook, struct hpx_span secrets)
{
	struct hpx_arena *arena = &context->settings->arena;
	struct hpx_signature_settings *signature = &webhook->signature;
	struct hpx_span *keys = hpx_arena_zalloc(arena, KEYS_MAX, sizeof(*keys));
	const char *name = webhook->secret_file != NULL ? "secret_file" : "secret_env";
	struct hpx_span line;

	if (keys == NULL)
		return HPX_NOMEM;
	signature->keys = keys;
	for (unsigned n = 1; hpx_span_line(&secrets, &line); n++) {
		if (line.len == 0)
			continue;
		if (signature->key_count == KEYS_MAX) {
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", name,
					    "holds more than %d secrets; remove the old ones",
					    KEYS_MAX);
			return HPX_OK;
		}
		enum hpx_status status = hpx_signature_key(
			signature->scheme, line, arena, &keys[signature->key_count]);
		if (status == HPX_INVALID)
			hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", name,
					    "has on line %u no secret: what follows whsec_ must be "
					    "base64",
					    n);
		else if (status != HPX_OK)
			return status;
		signature->key_count += status == HPX_OK;
	}
	return HPX_OK;
}

/* The name of a header as hpx_signature_check asks for it. */
static enum hpx_status lower(struct hpx_parse_context *context, struct hpx_span *name)
{
	char *copy = hpx_arena_alloc(&context->settings->arena, name->len);

	if (name->len == 0)
		return HPX_OK;
	if (copy == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < name->len; i++) {
		char c = name->ptr[i];
		copy[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	*name = hpx_span(copy, name->len);
	return HPX_OK;
}

static enum hpx_status build_webhook(struct hpx_parse_context *context, size_t n)
{
	static const char *const names[2] = { "secret_file", "secret_env" };
	struct hpx_webhook *webhook = &context->webhooks[n];
	struct hpx_location location = hpx_location_webhook(context, n);
	struct hpx_span secrets = { NULL, 0 };

	if (location.prefix.ptr == NULL)
		return HPX_NOMEM;
	enum hpx_status status = lower(context, &webhook->signature.header);
	if (status == HPX_OK)
		status = read_secret(context, &location, "", names, webhook->secret_file,
				     webhook->secret_env, &secrets);
	if (status == HPX_OK && secrets.ptr != NULL)
		status = build_keys(context, &location, webhook, secrets);
	return status;
}

enum hpx_status hpx_resolve_services(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	enum hpx_status status = HPX_OK;

	settings->subrequest.cache_entries_max = CACHE_ENTRIES_MAX;
	/* The service says who a caller without a credential is. */
	if (settings->tenant_from == HPX_TENANT_SUBREQUEST)
		settings->tenant_anonymous = HPX_ANONYMOUS_REFUSE;
	if (settings->tenant_from == HPX_TENANT_ANONYMOUS &&
	    !hpx_context_given(context, "tenant.anonymous", NULL)->given)
		settings->tenant_anonymous = HPX_ANONYMOUS_ALLOW;
	for (size_t n = 0; n < settings->target_count && status == HPX_OK; n++)
		status = build_target(context, n);
	if (status == HPX_OK)
		status = build_routes(context);
	for (size_t n = 0; n < settings->webhook_count && status == HPX_OK; n++)
		status = build_webhook(context, n);
	return status;
}
