/* What follows from the values: routes get their segments and recipes, secrets
 * are read, URLs lose the / at their end, probes get the service that they ask,
 * routes find their target. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "config/parse_context.h"

#define SECRET_BYTES_MAX ((size_t)16 << 10)
/* A shorter secret is warned of: 128 bits are beyond guessing. */
#define SECRET_BYTES_WEAK 16
#define SECRET_PROBLEM_SIZE 200
/* Secrets of one webhook; a rotation has two. */
#define KEYS_MAX 8
/* How many subrequests are remembered; there is no option for it. */
#define CACHE_ENTRIES_MAX 10000
#define BREAKER_OPEN_MS 1000
/* How much longer than a delivery the breaker waits for its result. */
#define BREAKER_MARGIN_MS 10000

/* ---- secrets: read from where the configuration says, never shown ---- */

static enum hpx_status refuse_secret(char problem[SECRET_PROBLEM_SIZE], const char *text,
				     const char *cause)
{
	snprintf(problem, SECRET_PROBLEM_SIZE, "%s%s", text, cause);
	return HPX_INVALID;
}

static enum hpx_status refuse_to_open(char problem[SECRET_PROBLEM_SIZE])
{
	snprintf(problem, SECRET_PROBLEM_SIZE,
		 "cannot be opened: %s; name the file that holds the secret, which the user "
		 "that hapax runs as must be able to read",
		 strerror(errno));
	return HPX_INVALID;
}

static enum hpx_status trim_secret(struct hpx_span text, struct hpx_span *ret_secret, char *problem)
{
	while (text.len > 0 &&
	       (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
		text.len--;
	if (text.len == 0)
		return refuse_secret(problem, "is empty; put the secret there", "");
	*ret_secret = text;
	return HPX_OK;
}

/* One byte more than a secret may have, to see that it has no more. */
static enum hpx_status read_bytes(int fd, char *bytes, size_t *ret_len, char *problem)
{
	size_t len = 0;

	*ret_len = 0;
	while (len <= SECRET_BYTES_MAX) {
		ssize_t n = read(fd, bytes + len, SECRET_BYTES_MAX + 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse_secret(problem, "cannot be read: ", strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
	}
	if (len > SECRET_BYTES_MAX)
		return refuse_secret(problem, "is larger than 16 KiB, the most that a secret "
					      "may have",
				     "");
	*ret_len = len;
	return HPX_OK;
}

static enum hpx_status read_open(int fd, struct hpx_arena *arena,
				 struct hpx_span *ret_secret, bool *ret_open, char *problem)
{
	struct stat about;
	struct hpx_span secret;
	char bytes[SECRET_BYTES_MAX + 1];
	size_t len;

	if (fstat(fd, &about) != 0)
		return refuse_secret(problem, "cannot be read: ", strerror(errno));
	if (!S_ISREG(about.st_mode))
		return refuse_secret(problem, "is not a file; name the file that holds the "
					      "secret",
				     "");
	enum hpx_status status = read_bytes(fd, bytes, &len, problem);
	if (status == HPX_OK)
		status = trim_secret(hpx_span(bytes, len), &secret, problem);
	if (status == HPX_OK) {
		secret = hpx_arena_dup(arena, secret);
		status = secret.ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	explicit_bzero(bytes, sizeof(bytes));
	if (status != HPX_OK)
		return status;
	*ret_secret = secret;
	*ret_open = (about.st_mode & (S_IROTH | S_IWOTH)) != 0;
	return HPX_OK;
}

static enum hpx_status secret_from_file(const char *path, struct hpx_arena *arena,
					struct hpx_span *ret_secret, bool *ret_open,
					char problem[SECRET_PROBLEM_SIZE])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return refuse_to_open(problem);
	enum hpx_status status = read_open(fd, arena, ret_secret, ret_open, problem);
	close(fd);
	return status;
}

static enum hpx_status secret_from_env(const char *name, struct hpx_arena *arena,
				       struct hpx_span *ret_secret,
				       char problem[SECRET_PROBLEM_SIZE])
{
	const char *value = getenv(name);

	if (value == NULL)
		return refuse_secret(problem, "names a variable that is not set; set it where hapax "
					      "is started, or name a file",
				     "");
	struct hpx_span copy = hpx_arena_dup(arena, hpx_span_of(value));
	if (copy.ptr == NULL)
		return HPX_NOMEM;
	return trim_secret(copy, ret_secret, problem);
}

/* The secret from the file or from the variable, whichever is given. ptr NULL:
 * neither is, or a mistake was reported, or the command wants no secrets. */
static enum hpx_status read_secret(struct hpx_parse_context *context, const struct hpx_location *location,
				   const char *group, const char *const names[2],
				   const char *file, struct hpx_span env,
				   struct hpx_span *ret_secret)
{
	struct hpx_arena *arena = &context->settings->arena;
	char problem[SECRET_PROBLEM_SIZE];
	enum hpx_status status = HPX_OK;
	bool open = false;

	*ret_secret = (struct hpx_span){ NULL, 0 };
	if (file != NULL && env.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, group, names[1],
				    "is given beside %s%s; leave one out", group, names[0]);
	else if (context->without_secrets)
		return HPX_OK;
	else if (file != NULL)
		status = secret_from_file(file, arena, ret_secret, &open, problem);
	else if (env.ptr != NULL)
		status = secret_from_env(env.ptr, arena, ret_secret, problem);
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

/* ---- external services ---- */

static bool is_field_value(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] < ' ' || text.ptr[i] > '~')
			return false;
	return text.ptr[0] != ' ' && text.ptr[text.len - 1] != ' ';
}

static enum hpx_status resolve_credentials(struct hpx_parse_context *context,
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
				    "must hold one line of ASCII: the whole value of the "
				    "header that carries it");
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

/* `service` is asked where the probe names no service itself. */
static enum hpx_status resolve_probe(struct hpx_parse_context *context, const struct hpx_location *location,
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
		status = resolve_credentials(context, location, "reconcile.probe.", caller);
	return status;
}

static enum hpx_status resolve_reconcile(struct hpx_parse_context *context,
					 const struct hpx_location *location,
					 struct hpx_reconcile_settings *reconcile,
					 const struct hpx_caller *service)
{
	reconcile->given = reconcile->given || hpx_location_any_given(location, "reconcile.");
	return resolve_probe(context, location, &reconcile->probe, service);
}

static enum hpx_status resolve_target(struct hpx_parse_context *context, size_t n)
{
	struct hpx_job_target *target = &context->targets[n];
	struct hpx_location location = hpx_location_target(context, n);
	enum hpx_status status = trim_url(context, &target->caller.url);

	if (location.prefix.ptr == NULL)
		return HPX_NOMEM;
	target->breaker.open_ms = BREAKER_OPEN_MS;
	target->breaker.probe_ms = target->caller.timeout_ms + BREAKER_MARGIN_MS;
	if (status == HPX_OK)
		status = resolve_credentials(context, &location, "", &target->caller);
	if (status == HPX_OK)
		status = resolve_reconcile(context, &location, &target->reconcile, &target->caller);
	return status;
}

static void find_target(const struct hpx_settings *settings, struct hpx_route *route)
{
	route->target = route->policy.deliver == HPX_DELIVER_ASYNC ?
				hpx_settings_find_target(settings, route->target_name) :
				NULL;
}

/* The credential's source that a route names (file or env) replaces the other one,
 * which it has from `defaults`. */
static void replace_source(const struct hpx_location *location, struct hpx_credentials *credentials)
{
	bool file = hpx_location_given(location, "reconcile.probe.credentials.", "file")->given;
	bool env = hpx_location_given(location, "reconcile.probe.credentials.", "env")->given;

	if (env && !file)
		credentials->file = NULL;
	if (file && !env)
		credentials->env = (struct hpx_span){ NULL, 0 };
}

/* A route began as a copy of `defaults` before those were resolved, so it takes the
 * resolved ones. Credentials are for the service that they were given with. */
static enum hpx_status resolve_route_service(struct hpx_parse_context *context, size_t n,
					     const struct hpx_caller *upstream)
{
	const struct hpx_reconcile_settings *defaults = &context->settings->fallback.reconcile;
	struct hpx_route *route = &context->settings->routes[n];
	struct hpx_location location = hpx_location_route(context, n);

	HPX_ASSERT(n < context->settings->route_count);
	find_target(context->settings, route);
	if (!hpx_location_any_given(&location, "reconcile.")) {
		route->reconcile = *defaults;
		return HPX_OK;
	}
	if (!hpx_location_given(&location, "reconcile.probe.", "url")->given)
		route->reconcile.probe.caller.headers = defaults->probe.caller.headers;
	replace_source(&location, &route->reconcile.probe.caller.credentials);
	return resolve_reconcile(context, &location, &route->reconcile, upstream);
}

static enum hpx_status resolve_route_services(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	struct hpx_location location = hpx_location_defaults(context);
	bool is_unix = settings->upstream.is_unix || settings->upstream.text[0] == '\0';
	struct hpx_caller upstream = { .url = is_unix ? NULL : settings->upstream.text };
	enum hpx_status status =
		resolve_reconcile(context, &location, &settings->fallback.reconcile, &upstream);

	find_target(settings, &settings->fallback);
	for (size_t n = 0; n < settings->route_count && status == HPX_OK; n++)
		status = resolve_route_service(context, n, &upstream);
	return status;
}

/* The secrets of a webhook, one per line. */
static enum hpx_status resolve_keys(struct hpx_parse_context *context, const struct hpx_location *location,
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
					    "line %u is not a secret: the text "
					    "after whsec_ must be base64",
					    n);
		else if (status != HPX_OK)
			return status;
		if (status == HPX_OK && keys[signature->key_count].len < SECRET_BYTES_WEAK)
			hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", name,
					    "has on line %u a secret of fewer than %d bytes, which can be "
					    "guessed from one signed message; ask the sender for a longer one",
					    n, SECRET_BYTES_WEAK);
		signature->key_count += status == HPX_OK;
	}
	return HPX_OK;
}

/* hpx_signature_check asks for the header's name in small letters. */
static enum hpx_status resolve_signature_header(struct hpx_parse_context *context,
						struct hpx_span *name)
{
	if (name->len == 0)
		return HPX_OK;
	*name = hpx_arena_lower(&context->settings->arena, *name);
	return name->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status resolve_webhook(struct hpx_parse_context *context, size_t n)
{
	static const char *const names[2] = { "secret_file", "secret_env" };
	struct hpx_webhook *webhook = &context->webhooks[n];
	struct hpx_location location = hpx_location_webhook(context, n);
	struct hpx_span secrets = { NULL, 0 };

	HPX_ASSERT(webhook->signature.key_count == 0);
	if (location.prefix.ptr == NULL)
		return HPX_NOMEM;
	enum hpx_status status =
		resolve_signature_header(context, &webhook->signature.header);
	if (status == HPX_OK)
		status = read_secret(context, &location, "", names, webhook->secret_file,
				     webhook->secret_env, &secrets);
	if (status == HPX_OK && secrets.ptr != NULL)
		status = resolve_keys(context, &location, webhook, secrets);
	return status;
}

/* Whoever looks for an operation of the route by the client's key needs its index. */
static void resolve_matching(const struct hpx_settings *settings, struct hpx_route *route)
{
	const struct hpx_probe *probe = &route->reconcile.probe;

	route->matched_by_key = probe->given && route->policy.deliver != HPX_DELIVER_ASYNC &&
				hpx_rule_probe_needs_key(probe);
	if (route->matched_by_key)
		route->amount_request = probe->amount_request;
	for (size_t n = 0; n < settings->webhook_count; n++) {
		const struct hpx_webhook *webhook = &settings->webhooks[n];
		if (webhook->key.ptr == NULL || !hpx_span_eq(webhook->route, route->pattern))
			continue;
		route->matched_by_key = true;
		if (route->amount_request.ptr == NULL)
			route->amount_request = webhook->amount_request;
	}
}

/* The collector's URL is written as its makers write it: with or without the path. */
static enum hpx_status resolve_traces(struct hpx_parse_context *context)
{
	struct hpx_caller *caller = &context->settings->traces.caller;
	struct hpx_location location = hpx_location_global(context);
	enum hpx_status status = resolve_credentials(context, &location, "traces.", caller);

	if (status != HPX_OK || caller->url == NULL)
		return status;
	status = trim_url(context, &caller->url);
	if (status != HPX_OK || strchr(strstr(caller->url, "://") + 3, '/') != NULL)
		return status;
	caller->url = hpx_arena_printf(&context->settings->arena, "%s/v1/traces", caller->url).ptr;
	return caller->url != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status resolve_services(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	enum hpx_status status = HPX_OK;

	settings->tenant.subrequest.cache_entries_max = CACHE_ENTRIES_MAX;
	settings->tenant.jwt.cache_entries_max = CACHE_ENTRIES_MAX;
	if (!hpx_context_given(context, "tenant.algorithms", NULL)->given)
		settings->tenant.jwt.rule.algorithms =
			HPX_JWS_BIT(HPX_JWS_ALGORITHM_COUNT) - 1 - HPX_JWS_BIT(HPX_JWS_HS256);
	if (settings->tenant.jwt.keys != NULL)
		settings->tenant.jwt.keys_by_url =
			hpx_span_istarts(hpx_span_of(settings->tenant.jwt.keys), HPX_SPAN("https://")) ||
			hpx_span_istarts(hpx_span_of(settings->tenant.jwt.keys), HPX_SPAN("http://"));
	/* The service, or the token, says who a caller is. */
	if (settings->tenant.from == HPX_TENANT_SUBREQUEST || settings->tenant.from == HPX_TENANT_JWT)
		settings->tenant.anonymous = HPX_ANONYMOUS_REFUSE;
	if (settings->tenant.from == HPX_TENANT_ANONYMOUS &&
	    !hpx_context_given(context, "tenant.anonymous", NULL)->given)
		settings->tenant.anonymous = HPX_ANONYMOUS_ALLOW;
	for (size_t n = 0; n < settings->target_count && status == HPX_OK; n++)
		status = resolve_target(context, n);
	if (status == HPX_OK)
		status = resolve_traces(context);
	if (status == HPX_OK)
		status = resolve_route_services(context);
	for (size_t n = 0; n < settings->webhook_count && status == HPX_OK; n++)
		status = resolve_webhook(context, n);
	return status;
}

/* ---- routes ---- */

static void refuse_recipe(struct hpx_parse_context *context, const struct hpx_route *route)
{
	bool fallback = route == &context->settings->fallback;

	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, route->line, 1,
			  fallback ? HPX_SPAN("defaults.fingerprint") : HPX_SPAN("routes[].fingerprint"),
			  "its lists are longer than %d bytes together",
			  HPX_RECIPE_TEXT_MAX);
}

static enum hpx_status resolve_recipe(struct hpx_parse_context *context, struct hpx_route *route)
{
	enum hpx_status status = hpx_recipe_id(&route->recipe, &route->recipe_id);

	route->recipe.id = &route->recipe_id;
	if (status != HPX_TOO_LARGE)
		return status;
	refuse_recipe(context, route);
	return HPX_OK;
}

static enum hpx_status resolve_route(struct hpx_parse_context *context, size_t n)
{
	struct hpx_settings *settings = context->settings;
	struct hpx_route *route = &settings->routes[n];
	const struct hpx_given *match =
		hpx_context_given(context, "routes[].match", &context->routes[n]);
	const char *reason = "";

	if (route->pattern.ptr != NULL) {
		enum hpx_status status =
			hpx_route_parse(route->pattern, &settings->arena, route, &reason);
		if (status == HPX_INVALID)
			hpx_config_remark(
				context->report, HPX_CONFIG_MISTAKE, match->line,
				match->column, HPX_SPAN("routes[].match"), "\"%.*s\" %s",
				HPX_SPAN_ARG(hpx_span_first(route->pattern, 60)), reason);
		else if (status != HPX_OK)
			return status;
	}
	return resolve_recipe(context, route);
}

/* Compares all pairs, so that each is named; the number of routes is bounded. */
static void refuse_duplicates(struct hpx_parse_context *context)
{
	const struct hpx_route *routes = context->settings->routes;

	for (size_t i = 1; i < context->settings->route_count; i++) {
		for (size_t j = 0; j < i && routes[i].segments != NULL; j++) {
			if (routes[j].segments == NULL ||
			    !hpx_route_same(&routes[i], &routes[j]))
				continue;
			const struct hpx_given *match = hpx_context_given(
				context, "routes[].match", &context->routes[i]);
			hpx_config_remark(
				context->report, HPX_CONFIG_MISTAKE, match->line,
				match->column, HPX_SPAN("routes[].match"),
				"\"%.*s\" matches the same requests as the route on "
				"line %u; make them one",
				HPX_SPAN_ARG(hpx_span_first(routes[i].pattern, 60)),
				routes[j].line);
			break;
		}
	}
}

enum hpx_status hpx_parse_resolve(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	enum hpx_status status = resolve_recipe(context, &settings->fallback);

	for (size_t n = 0; n < settings->route_count && status == HPX_OK; n++)
		status = resolve_route(context, n);
	if (status == HPX_OK)
		refuse_duplicates(context);
	if (status == HPX_OK)
		status = resolve_services(context);
	resolve_matching(settings, &settings->fallback);
	for (size_t n = 0; n < settings->route_count; n++)
		resolve_matching(settings, &settings->routes[n]);
	settings->fallback.number = (unsigned)settings->route_count;
	return status;
}
