/* Rules about routes: options that have no effect there, and the one question
 * that no default can answer: what a 5xx of the service means. */
#include <stdio.h>

#include "config/reading.h"
#include "config/rule.h"

/* Whether somebody chose what a 5xx means. A profile is a choice. */
static bool is_server_error_said(const struct hpx_parse_context *context,
				 const struct hpx_given_set *set)
{
	return context->settings->profile == HPX_PROFILE_STRIPE ||
	       hpx_context_given(context, "defaults.server_error", NULL)->given ||
	       (set != NULL && hpx_context_given(context, "routes[].server_error", set)->given);
}

/* With `key: ignore` nothing is guarded, so nothing else matters. */
static void check_ignored(struct hpx_parse_context *context, size_t n)
{
	char path[HPX_OPTION_PATH_SIZE];

	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
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

	/* What is delivered later can be waited for too, by Prefer: wait. */
	if (given->given && route->policy.concurrent != HPX_CONCURRENT_WAIT &&
	    route->policy.deliver != HPX_DELIVER_ASYNC)
		hpx_config_remark(context->report, HPX_CONFIG_WARNING, given->line,
				  given->column, hpx_span_of(path),
				  "has no effect unless concurrent is wait");
}

/* Where a policy's option was given: in its route, or in `defaults`. */
static void policy_mistake(struct hpx_parse_context *context, const char *name,
			   const struct hpx_given_set *set, const char *message)
{
	char path[HPX_OPTION_PATH_SIZE];

	snprintf(path, sizeof(path), set != NULL ? "routes[].%s" : "defaults.%s", name);
	const struct hpx_given *given = hpx_context_given(context, path, set);
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, given->line, given->column,
			  hpx_span_of(path), "%s", message);
}

/* What an application that takes part must be able to keep. */
static void check_part(struct hpx_parse_context *context, const struct hpx_route *route,
		       const struct hpx_given_set *set)
{
	const struct hpx_policy *policy = &route->policy;
	struct hpx_span store = context->settings->store;

	if (policy->on_lost == HPX_ON_LOST_RESUME && !policy->fenced &&
	    policy->honours_keys_ms == 0)
		policy_mistake(context, "on_lost", set,
			       "is resume, which could run twice what an earlier attempt still "
			       "does; say fenced: yes or honours_keys of a service that keeps "
			       "its word, or unknown");
	if (policy->on_lost == HPX_ON_LOST_RESUME && !policy->fenced &&
	    policy->honours_keys_ms > 0 && policy->honours_keys_ms < policy->retention_ms)
		policy_mistake(context, "honours_keys", set,
			       "is shorter than retention: a retry could come after the service "
			       "forgot the key; make retention shorter");
	if (policy->completes == HPX_COMPLETES_APPLICATION &&
	    hpx_span_starts(store, HPX_SPAN("memory:")))
		policy_mistake(context, "completes", set,
			       "is application, which needs the store in the application's own "
			       "database; give store: postgres://… or sqlite:PATH");
}

/* What is compared must be what is forwarded. */
static void check_counted(struct hpx_parse_context *context, const struct hpx_route *route,
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

static bool is_part_given(const struct hpx_parse_context *context, const struct hpx_given_set *set)
{
	return hpx_context_given(context, "routes[].on_lost", set)->given ||
	       hpx_context_given(context, "routes[].completes", set)->given ||
	       hpx_context_given(context, "routes[].fenced", set)->given ||
	       hpx_context_given(context, "routes[].honours_keys", set)->given ||
	       hpx_context_given(context, "routes[].retention", set)->given;
}

void hpx_rule_check_routes(struct hpx_parse_context *context)
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
		settings->routes[n].server_error_said =
			is_server_error_said(context, &context->routes[n]);
		/* What it inherits is told of `defaults`, once. */
		if (is_part_given(context, &context->routes[n]))
			check_part(context, route, &context->routes[n]);
		if (hpx_context_given(context, "routes[].fingerprint.headers",
				      &context->routes[n])
			    ->given)
			check_counted(context, route, &context->routes[n]);
	}
	check_counted(context, &settings->fallback, NULL);
	settings->fallback.server_error_said = is_server_error_said(context, NULL);
	check_part(context, &settings->fallback, NULL);
	/* A default may be meant for a route. */
	if (!waits)
		check_wait(context, "defaults.wait", &settings->fallback, NULL);
}

#define QUESTION \
	"does a 500 of this service mean that it rolled back, or may it have happened? " \
	"Write server_error: retry (it rolled back; a retry runs it again) or " \
	"server_error: unknown (it may have happened; nothing runs twice)"

static bool is_unsaid(const struct hpx_settings *settings, const struct hpx_route *route)
{
	const struct hpx_policy *policy = &route->policy;

	return !route->server_error_said && policy->key != HPX_KEY_IGNORE &&
	       policy->deliver == HPX_DELIVER_NOW &&
	       policy->completes == HPX_COMPLETES_UPSTREAM && !settings->observe &&
	       !route->observe;
}

/* All of them in one line, as far as it goes. */
static void list_unsaid(const struct hpx_settings *settings, char out[200])
{
	size_t len = 0, left_out = 0;

	out[0] = '\0';
	for (size_t n = 0; n < settings->route_count; n++) {
		struct hpx_span pattern = settings->routes[n].pattern;
		if (!is_unsaid(settings, &settings->routes[n]))
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

static void ask_at_once(const struct hpx_settings *settings, struct hpx_config_report *report)
{
	bool fallback = is_unsaid(settings, &settings->fallback);
	char routes[200];

	list_unsaid(settings, routes);
	if (routes[0] == '\0' && !fallback)
		return;
	hpx_config_remark(report, HPX_CONFIG_WARNING, 0, 0, HPX_SPAN("defaults.server_error"),
			  "is not given (for %s%s%s), and a retry after a 500 runs again: " QUESTION,
			  routes, routes[0] != '\0' && fallback ? ", and " : "",
			  fallback ? "all other guarded requests" : "");
}

static void ask_each(const struct hpx_settings *settings, struct hpx_config_report *report)
{
	for (size_t n = 0; n < settings->route_count; n++) {
		const struct hpx_route *route = &settings->routes[n];
		if (is_unsaid(settings, route))
			hpx_config_remark(report, HPX_CONFIG_WARNING, route->line, route->column,
					  HPX_SPAN("routes[].server_error"),
					  "is not given for %.*s: " QUESTION,
					  HPX_SPAN_ARG(hpx_span_first(route->pattern, 60)));
	}
	if (is_unsaid(settings, &settings->fallback))
		hpx_config_remark(report, HPX_CONFIG_WARNING, 0, 0,
				  HPX_SPAN("defaults.server_error"),
				  "is not given, and holds where no route says it: " QUESTION);
}

void hpx_config_warn_server_error(const struct hpx_settings *settings, bool each,
				  struct hpx_config_report *report)
{
	if (each)
		ask_each(settings, report);
	else
		ask_at_once(settings, report);
	hpx_config_report_sort(report);
}
