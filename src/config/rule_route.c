/* Rules about routes and `defaults`: options that have no effect there, deliver:
 * async, reconcile, and the one question that no default can answer: what a 5xx
 * of the service means. */
#include <stdio.h>

#include "base/status.h"
#include "config/parse_context.h"
#include "config/profile.h"
#include "store/store.h"

#define HOUR_MS ((int64_t)3600 * 1000)

/* Whether somebody chose what a 5xx means. A profile is a choice. */
static bool is_server_error_given(const struct hpx_parse_context *context,
				  const struct hpx_given_set *set)
{
	const struct hpx_option *option =
		hpx_option_find(&hpx_config_options, HPX_SPAN("defaults.server_error"));

	HPX_ASSERT(option != NULL);
	return hpx_profile_default(context->settings->profile, option) != NULL ||
	       hpx_context_given(context, "defaults.server_error", NULL)->given ||
	       (set != NULL && hpx_context_given(context, "routes[].server_error", set)->given);
}

/* With `key: ignore` nothing is guarded, so nothing else matters. */
static void check_ignored(struct hpx_parse_context *context, size_t n)
{
	char path[HPX_OPTION_PATH_SIZE];

	for (size_t i = 0; i < hpx_config_options.count; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		const struct hpx_given *given = &context->routes[n].at[i];
		if (!given->given || option->place != HPX_PLACE_POLICY ||
		    strcmp(option->name, "key") == 0)
			continue;
		snprintf(path, sizeof(path), "routes[].%s", option->name);
		hpx_config_remark(context->report, HPX_CONFIG_WARNING, given->line,
				  given->column, hpx_span_of(path),
				  "has no effect where key is ignore");
	}
}

static void check_wait(struct hpx_parse_context *context, const char *path,
		       const struct hpx_route *route, const struct hpx_given_set *set)
{
	const struct hpx_given *given = hpx_context_given(context, path, set);

	/* A client can wait for a later delivery too, by Prefer: wait. */
	if (given->given && route->policy.concurrent != HPX_CONCURRENT_WAIT &&
	    route->policy.deliver != HPX_DELIVER_ASYNC)
		hpx_config_remark(context->report, HPX_CONFIG_WARNING, given->line,
				  given->column, hpx_span_of(path),
				  "has no effect unless concurrent is wait");
}

/* A mistake at the option of a route (`set`), or of `defaults` (NULL). */
static void policy_mistake(struct hpx_parse_context *context, const char *name,
			   const struct hpx_given_set *set, const char *message)
{
	char path[HPX_OPTION_PATH_SIZE];

	snprintf(path, sizeof(path), set != NULL ? "routes[].%s" : "defaults.%s", name);
	const struct hpx_given *given = hpx_context_given(context, path, set);
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, given->line, given->column,
			  hpx_span_of(path), "%s", message);
}

/* Promises of an application that takes part: it must be able to keep them. */
static void check_participation(struct hpx_parse_context *context, const struct hpx_route *route,
				const struct hpx_given_set *set)
{
	const struct hpx_policy *policy = &route->policy;
	struct hpx_span store = context->settings->store;

	if (policy->on_lost == HPX_ON_LOST_RESUME && !policy->fenced &&
	    policy->honours_keys_ms == 0)
		policy_mistake(context, "on_lost", set,
			       "is resume, but an earlier attempt may still be running, and "
			       "its work would be done twice; add fenced: yes or honours_keys "
			       "if the service prevents that, or write on_lost: unknown");
	if (policy->on_lost == HPX_ON_LOST_RESUME && !policy->fenced &&
	    policy->honours_keys_ms > 0 && policy->honours_keys_ms < policy->retention_ms)
		policy_mistake(context, "honours_keys", set,
			       "is shorter than retention: a retry could come after the service "
			       "forgot the key; make retention shorter");
	if (policy->retention_max_ms > 0 && policy->retention_max_ms < policy->retention_ms)
		policy_mistake(context, "retention_max", set,
			       "is shorter than retention, so that it never has an effect; make it "
			       "longer, or leave it out");
	if (policy->completes == HPX_COMPLETES_APPLICATION &&
	    !hpx_store_url_can(store, HPX_STORE_PERSISTS))
		policy_mistake(context, "completes", set,
			       "is application, which needs the store in the application's own "
			       "database; give store: postgres://… or sqlite:PATH");
}

/* The fingerprint must count only headers that are forwarded as they came. */
static void check_compared_headers(struct hpx_parse_context *context, const struct hpx_route *route,
				   const struct hpx_given_set *set)
{
	for (size_t i = 0; i < route->recipe.header_count; i++) {
		if (!hpx_rule_is_rewritten(context->settings, route->recipe.headers[i]))
			continue;
		policy_mistake(context, "fingerprint.headers", set,
			       "names a header that does not reach the service as the client sent "
			       "it: one that belongs to the connection, or that hapax writes anew "
			       "(Via, X-Forwarded-For, Accept-Encoding …); leave it out");
		return;
	}
}

/* A selection and a list of exceptions in one place: nobody could say which counts. */
static void check_selection(struct hpx_parse_context *context, const struct hpx_route *route,
			    const struct hpx_given_set *set)
{
	if (route->recipe.only_count > 0 && route->recipe.ignore_count > 0)
		policy_mistake(context, "fingerprint.only", set,
			       "cannot be combined with fingerprint.ignore, because members "
			       "outside of only are ignored in any case; leave one of them "
			       "out, or write ignore: [] if it comes from defaults");
}

/* People and queues retry after a night; what has expired by then is executed again. */
static void check_short_retention(struct hpx_parse_context *context, const char *path,
				  const struct hpx_route *route, const struct hpx_given_set *set)
{
	const struct hpx_given *given = hpx_context_given(context, path, set);

	if (given->given && route->policy.retention_ms < HOUR_MS)
		hpx_config_remark(context->report, HPX_CONFIG_WARNING, given->line, given->column,
				  hpx_span_of(path),
				  "is below one hour: a retry that comes later is executed again; 24h is "
				  "usual, and expired: refuse with a tombstone refuses it");
}

/* Inherited lengths are reported at `defaults`, or at the one that the route changed. */
static void check_key_length(struct hpx_parse_context *context, const struct hpx_route *route,
			     const struct hpx_given_set *set)
{
	const char *section = set != NULL ? "routes[]" : "defaults";
	char path[HPX_OPTION_PATH_SIZE];

	if (route->key_demand.bytes_min <= route->key_demand.bytes_max)
		return;
	snprintf(path, sizeof(path), "%s.key_min", section);
	bool min_given = hpx_context_given(context, path, set)->given;
	snprintf(path, sizeof(path), "%s.key_max", section);
	bool max_given = hpx_context_given(context, path, set)->given;
	if (min_given)
		policy_mistake(context, "key_min", set,
			       "is above key_max: every new key would be refused; make it smaller");
	else if (max_given || set == NULL)
		policy_mistake(context, "key_max", set,
			       "is below key_min: every new key would be refused; make it larger");
}

/* Without the header there is no time to compare. */
static void check_age(struct hpx_parse_context *context, const char *section,
		      const struct hpx_route *route, const struct hpx_given_set *set)
{
	static const char *const names[] = { "within", "skew" };
	char path[HPX_OPTION_PATH_SIZE];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s.max_age.%s", section, names[i]);
		const struct hpx_given *given = hpx_context_given(context, path, set);
		if (given->given && route->max_age.header.ptr == NULL)
			hpx_config_remark(context->report, HPX_CONFIG_WARNING, given->line, given->column,
					  hpx_span_of(path), "has no effect without max_age.header");
	}
}

static bool is_participation_given(const struct hpx_parse_context *context, const struct hpx_given_set *set)
{
	return hpx_context_given(context, "routes[].on_lost", set)->given ||
	       hpx_context_given(context, "routes[].completes", set)->given ||
	       hpx_context_given(context, "routes[].fenced", set)->given ||
	       hpx_context_given(context, "routes[].honours_keys", set)->given ||
	       hpx_context_given(context, "routes[].retention", set)->given ||
	       hpx_context_given(context, "routes[].retention_max", set)->given;
}

static void check_policies(struct hpx_parse_context *context)
{
	struct hpx_settings *settings = context->settings;
	bool waits = settings->fallback.policy.concurrent == HPX_CONCURRENT_WAIT;

	for (size_t n = 0; n < settings->route_count; n++) {
		const struct hpx_route *route = &settings->routes[n];
		waits = waits || route->policy.concurrent == HPX_CONCURRENT_WAIT ||
			route->policy.deliver == HPX_DELIVER_ASYNC;
		if (route->policy.key == HPX_KEY_IGNORE)
			check_ignored(context, n);
		else
			check_wait(context, "routes[].wait", route, &context->routes[n]);
		check_selection(context, route, &context->routes[n]);
		check_age(context, "routes[]", route, &context->routes[n]);
		check_key_length(context, route, &context->routes[n]);
		check_short_retention(context, "routes[].retention", route, &context->routes[n]);
		settings->routes[n].server_error_given =
			is_server_error_given(context, &context->routes[n]);
		/* Inherited options are reported at `defaults`, once. */
		if (is_participation_given(context, &context->routes[n]))
			check_participation(context, route, &context->routes[n]);
		if (hpx_context_given(context, "routes[].fingerprint.headers",
				      &context->routes[n])
			    ->given)
			check_compared_headers(context, route, &context->routes[n]);
	}
	check_compared_headers(context, &settings->fallback, NULL);
	check_selection(context, &settings->fallback, NULL);
	check_key_length(context, &settings->fallback, NULL);
	settings->fallback.server_error_given = is_server_error_given(context, NULL);
	check_participation(context, &settings->fallback, NULL);
	check_short_retention(context, "defaults.retention", &settings->fallback, NULL);
	/* A default may be meant for a route. */
	if (!waits)
		check_wait(context, "defaults.wait", &settings->fallback, NULL);
}

/* ---- deliver: async ---- */

static bool is_verified(const struct hpx_settings *settings)
{
	return settings->tenant.from == HPX_TENANT_SUBREQUEST ||
	       settings->tenant.from == HPX_TENANT_JWT ||
	       (settings->tenant.from == HPX_TENANT_HEADER &&
		settings->tenant.anonymous == HPX_ANONYMOUS_REFUSE);
}

static void check_target(struct hpx_parse_context *context, const struct hpx_location *location,
			 const struct hpx_route *route)
{
	if (route->target != NULL)
		return;
	if (route->target_name.ptr == NULL) {
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "deliver",
				    "is async, but no target is named; add target: with a name "
				    "of targets");
		return;
	}
	hpx_rule_unknown_target(context, location, route->target_name,
				"; add it there, with its url");
}

/* Options that need an upstream's answer or an application: a request with deliver:
 * async reaches neither. */
static void check_contradictions(struct hpx_parse_context *context, const struct hpx_location *location,
				 const struct hpx_policy *policy)
{
	if (policy->key != HPX_KEY_REQUIRED)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "key",
				    "must be required where deliver is async: a request without a "
				    "key would go to the upstream");
	if (policy->completes == HPX_COMPLETES_APPLICATION)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "completes",
				    "is application, but with deliver: async no application takes "
				    "part; say completes: upstream, or deliver: now");
	if (policy->on_lost == HPX_ON_LOST_RESUME)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "on_lost",
				    "is resume, but with deliver: async the target's "
				    "honours_keys decides what is sent again; write on_lost: "
				    "unknown, or deliver: now");
	if (policy->concurrent == HPX_CONCURRENT_WAIT &&
	    hpx_location_given(location, "", "concurrent")->given)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "concurrent",
				    "has no effect where deliver is async: the answer is 202 at "
				    "once; Prefer: wait at its Location waits");
}

static void warn_without_effect(struct hpx_parse_context *context, const struct hpx_location *location)
{
	static const char *const names[] = { "server_error", "fenced", "honours_keys" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (hpx_location_given(location, "", names[i])->given)
			hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", names[i],
					    "has no effect where deliver is async; the options "
					    "of the target count");
	if (hpx_location_any_given(location, "reconcile."))
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "deliver",
				    "is async: the target's reconcile counts, and this has no "
				    "effect");
}

/* What `deliver` itself needs. */
static void check_deliver(struct hpx_parse_context *context, const struct hpx_location *location,
			  const struct hpx_route *route)
{
	if (!is_verified(context->settings))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "deliver",
				    "is async, and no upstream checks who is calling; say "
				    "tenant.from: jwt or subrequest, or header with tenant.anonymous: refuse");
	if (hpx_rule_in_memory(context))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "deliver",
				    "is async, which needs a store that outlives hapax; give store: "
				    "sqlite:PATH or postgres://…");
	if (route->observe || context->settings->observe)
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "deliver",
				    "is async, but requests are only observed: they go to the "
				    "upstream");
}

/* A job's method has capital letters only, as the store checks it. */
static void check_method(struct hpx_parse_context *context, const struct hpx_location *location,
			 struct hpx_span method)
{
	for (size_t i = 0; i < method.len; i++) {
		if (method.ptr[i] >= 'A' && method.ptr[i] <= 'Z')
			continue;
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "match",
				    "has the method %.*s, and deliver is async: a job's method is 1 to "
				    "32 capital letters",
				    HPX_SPAN_ARG(hpx_span_first(method, 60)));
		return;
	}
}

/* Inherited options are reported at `defaults`, once. */
static void check_async(struct hpx_parse_context *context, const struct hpx_location *location,
			const struct hpx_route *route)
{
	static const char *const names[] = { "deliver", "target", "key",
					     "completes", "on_lost", "concurrent" };
	bool inherited = location->set != &context->defaults;

	HPX_ASSERT(route->policy.deliver == HPX_DELIVER_ASYNC);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		inherited = inherited && !hpx_location_given(location, "", names[i])->given;
	if (!inherited) {
		check_target(context, location, route);
		check_contradictions(context, location, &route->policy);
	}
	/* Options of `defaults` may be meant for other routes. */
	if (location->set != &context->defaults) {
		warn_without_effect(context, location);
		check_method(context, location, route->method);
	}
	if (hpx_location_given(location, "", "deliver")->given)
		check_deliver(context, location, route);
}

static void check_route(struct hpx_parse_context *context, const struct hpx_location *location,
			const struct hpx_route *route)
{
	bool async = route->policy.deliver == HPX_DELIVER_ASYNC;

	if (async)
		check_async(context, location, route);
	if (route->key_storage == HPX_KEY_STORAGE_HASH && !async && hpx_rule_probe_needs_key(&route->reconcile.probe))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "key_storage",
				    "is hash, but the probe asks with {key}, which is then stored nowhere; "
				    "ask with {operation}, or say key_storage: plain");
	if (hpx_location_any_given(location, "reconcile."))
		hpx_rule_reconcile(context, location, &route->reconcile, false);
}

static void check_deliveries(struct hpx_parse_context *context)
{
	const struct hpx_settings *settings = context->settings;
	struct hpx_location defaults = hpx_location_defaults(context);
	bool async = settings->fallback.policy.deliver == HPX_DELIVER_ASYNC;

	check_route(context, &defaults, &settings->fallback);
	for (size_t n = 0; n < settings->route_count; n++) {
		struct hpx_location location = hpx_location_route(context, n);
		const struct hpx_route *route = &settings->routes[n];
		bool here = route->policy.deliver == HPX_DELIVER_ASYNC;
		check_route(context, &location, route);
		async = async || here;
		if (!here && hpx_location_given(&location, "", "target")->given)
			hpx_location_remark(context, &location, HPX_CONFIG_WARNING, "", "target",
					    "has no effect unless deliver is async");
	}
	/* A default may be meant for a route. */
	if (!async && hpx_location_given(&defaults, "", "target")->given)
		hpx_location_remark(context, &defaults, HPX_CONFIG_WARNING, "", "target",
				    "has no effect unless deliver is async");
}

void hpx_rule_check_routes(struct hpx_parse_context *context)
{
	check_policies(context);
	check_deliveries(context);
}

/* ---- what a 5xx means ---- */

#define QUESTION \
	"does a 500 of this service mean that it rolled back, or may it have happened? " \
	"Write server_error: retry (it rolled back; a retry runs it again) or " \
	"server_error: unknown (it may have happened; nothing runs twice)"

static bool is_unanswered(const struct hpx_settings *settings, const struct hpx_route *route)
{
	const struct hpx_policy *policy = &route->policy;

	return !route->server_error_given && policy->key != HPX_KEY_IGNORE &&
	       policy->deliver == HPX_DELIVER_NOW &&
	       policy->completes == HPX_COMPLETES_UPSTREAM && !settings->observe &&
	       !route->observe;
}

/* The routes without an answer in one line, as many as fit. */
static void list_unanswered(const struct hpx_settings *settings, char out[200])
{
	size_t len = 0, left_out = 0;

	out[0] = '\0';
	for (size_t n = 0; n < settings->route_count; n++) {
		struct hpx_span pattern = settings->routes[n].pattern;
		if (!is_unanswered(settings, &settings->routes[n]))
			continue;
		if (len + pattern.len + 40 > 200)
			left_out++;
		else
			len += (size_t)snprintf(out + len, 200 - len, "%s%.*s", len > 0 ? ", " : "",
						HPX_SPAN_ARG(pattern));
	}
	if (left_out > 0)
		snprintf(out + len, 200 - len, "%sand %zu more", len > 0 ? " " : "", left_out);
}

static void warn_in_one_line(const struct hpx_settings *settings, struct hpx_config_report *report)
{
	bool fallback = is_unanswered(settings, &settings->fallback);
	char routes[200];

	list_unanswered(settings, routes);
	if (routes[0] == '\0' && !fallback)
		return;
	hpx_config_remark(report, HPX_CONFIG_WARNING, 0, 0, HPX_SPAN("defaults.server_error"),
			  "is not given (for %s%s%s), and a retry after a 500 runs again: " QUESTION,
			  routes, routes[0] != '\0' && fallback ? ", and " : "",
			  !fallback         ? "" :
			  routes[0] != '\0' ? "all other guarded requests" :
					      "all guarded requests");
}

static void warn_each(const struct hpx_settings *settings, struct hpx_config_report *report)
{
	for (size_t n = 0; n < settings->route_count; n++) {
		const struct hpx_route *route = &settings->routes[n];
		if (is_unanswered(settings, route))
			hpx_config_remark(report, HPX_CONFIG_WARNING, route->line, route->column,
					  HPX_SPAN("routes[].server_error"),
					  "is not given for %.*s: " QUESTION,
					  HPX_SPAN_ARG(hpx_span_first(route->pattern, 60)));
	}
	if (is_unanswered(settings, &settings->fallback))
		hpx_config_remark(report, HPX_CONFIG_WARNING, 0, 0,
				  HPX_SPAN("defaults.server_error"),
				  "is not given in defaults, for routes that do not set it: " QUESTION);
}

void hpx_config_warn_server_error(const struct hpx_settings *settings, bool each,
				  struct hpx_config_report *report)
{
	if (each)
		warn_each(settings, report);
	else
		warn_in_one_line(settings, report);
	hpx_config_report_sort(report);
}
