/* Rules about routes: options that have no effect there, and the choice that
 * money should not be left to a default. */
#include <stdio.h>

#include "config/reading.h"

/* The words in a path that smell of money or of things sent out. */
static const struct hpx_span costly[] = {
	HPX_SPAN_INIT("payment"),  HPX_SPAN_INIT("charge"),	HPX_SPAN_INIT("refund"),
	HPX_SPAN_INIT("transfer"), HPX_SPAN_INIT("order"),	HPX_SPAN_INIT("payout"),
	HPX_SPAN_INIT("invoice"),  HPX_SPAN_INIT("checkout"),	HPX_SPAN_INIT("purchase"),
	HPX_SPAN_INIT("billing"),  HPX_SPAN_INIT("withdrawal"), HPX_SPAN_INIT("deposit"),
};

static bool is_costly_word(struct hpx_span word)
{
	for (size_t i = 0; i < sizeof(costly) / sizeof(costly[0]); i++)
		if (hpx_span_istarts(word, costly[i]) && word.len <= costly[i].len + 1)
			return true;
	return false;
}

/* "/v1/payment_intents" and "/Payments" count, "/reorderings" does not: words
 * end at -, _ and ., and may have an s. */
static bool is_costly(const struct hpx_route *route)
{
	for (size_t i = 0; i < route->segment_count; i++) {
		struct hpx_span text = route->segments[i].text;
		size_t begin = 0;
		if (route->segments[i].kind != HPX_SEGMENT_LITERAL)
			continue;
		for (size_t at = 0; at <= text.len; at++) {
			if (at < text.len && strchr("-_.", text.ptr[at]) == NULL)
				continue;
			if (is_costly_word(hpx_span(text.ptr + begin, at - begin)))
				return true;
			begin = at + 1;
		}
	}
	return false;
}

static void check_server_error(struct hpx_reading *reading, size_t n)
{
	const struct hpx_settings *settings = reading->settings;
	const struct hpx_route *route = &settings->routes[n];
	const struct hpx_given *match =
		hpx_reading_given(reading, "routes[].match", &reading->routes[n]);

	if (route->policy.key == HPX_KEY_IGNORE || !is_costly(route) ||
	    route->policy.deliver == HPX_DELIVER_ASYNC ||
	    settings->profile == HPX_PROFILE_STRIPE ||
	    hpx_reading_given(reading, "routes[].server_error", &reading->routes[n])
		    ->given ||
	    hpx_reading_given(reading, "defaults.server_error", NULL)->given)
		return;
	hpx_config_remark(
		reading->report, HPX_CONFIG_WARNING, match->line, match->column,
		HPX_SPAN("routes[].server_error"),
		"is not given for %.*s: by default a 500 of the upstream may be "
		"executed again; say retry if a 5xx means that it rolled back, else "
		"unknown or replay",
		HPX_SPAN_ARG(hpx_span_first(route->pattern, 60)));
}

/* With `key: ignore` nothing is guarded, so nothing else matters. */
static void check_ignored(struct hpx_reading *reading, size_t n)
{
	char path[HPX_OPTION_PATH_SIZE];

	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		const struct hpx_given *given = &reading->routes[n].at[i];
		if (!given->given || option->place != HPX_PLACE_POLICY ||
		    strcmp(option->name, "key") == 0)
			continue;
		snprintf(path, sizeof(path), "routes[].%s", option->name);
		hpx_config_remark(reading->report, HPX_CONFIG_WARNING, given->line,
				  given->column, hpx_span_of(path),
				  "has no effect where key is ignore");
	}
}

static void check_wait(struct hpx_reading *reading, const char *path,
		       const struct hpx_route *route, const struct hpx_given_set *set)
{
	const struct hpx_given *given = hpx_reading_given(reading, path, set);

	/* What is delivered later can be waited for too, by Prefer: wait. */
	if (given->given && route->policy.concurrent != HPX_CONCURRENT_WAIT &&
	    route->policy.deliver != HPX_DELIVER_ASYNC)
		hpx_config_remark(reading->report, HPX_CONFIG_WARNING, given->line,
				  given->column, hpx_span_of(path),
				  "has no effect unless concurrent is wait");
}

/* Where a policy's option was given: in its route, or in `defaults`. */
static void policy_mistake(struct hpx_reading *reading, const char *name,
			   const struct hpx_given_set *set, const char *message)
{
	char path[HPX_OPTION_PATH_SIZE];

	snprintf(path, sizeof(path), set != NULL ? "routes[].%s" : "defaults.%s", name);
	const struct hpx_given *given = hpx_reading_given(reading, path, set);
	hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, given->line, given->column,
			  hpx_span_of(path), "%s", message);
}

/* What an application that takes part must be able to keep. */
static void check_part(struct hpx_reading *reading, const struct hpx_route *route,
		       const struct hpx_given_set *set)
{
	const struct hpx_policy *policy = &route->policy;
	struct hpx_span store = reading->settings->store;

	if (policy->on_lost == HPX_ON_LOST_RESUME && !policy->fenced &&
	    policy->honours_keys_ms == 0)
		policy_mistake(reading, "on_lost", set,
			       "is resume, which could run twice what an earlier attempt still "
			       "does; say fenced: yes or honours_keys of a service that keeps "
			       "its word, or unknown");
	if (policy->on_lost == HPX_ON_LOST_RESUME && !policy->fenced &&
	    policy->honours_keys_ms > 0 && policy->honours_keys_ms < policy->retention_ms)
		policy_mistake(reading, "honours_keys", set,
			       "is shorter than retention: a retry could come after the service "
			       "forgot the key; make retention shorter");
	if (policy->completes == HPX_COMPLETES_APPLICATION &&
	    hpx_span_starts(store, HPX_SPAN("memory:")))
		policy_mistake(reading, "completes", set,
			       "is application, which needs the store in the application's own "
			       "database; give store: postgres://… or sqlite:PATH");
}

static bool is_part_given(const struct hpx_reading *reading, const struct hpx_given_set *set)
{
	return hpx_reading_given(reading, "routes[].on_lost", set)->given ||
	       hpx_reading_given(reading, "routes[].completes", set)->given ||
	       hpx_reading_given(reading, "routes[].fenced", set)->given ||
	       hpx_reading_given(reading, "routes[].honours_keys", set)->given ||
	       hpx_reading_given(reading, "routes[].retention", set)->given;
}

void hpx_reading_route_rules(struct hpx_reading *reading)
{
	struct hpx_settings *settings = reading->settings;
	bool waits = settings->fallback.policy.concurrent == HPX_CONCURRENT_WAIT;

	for (size_t n = 0; n < settings->route_count; n++) {
		const struct hpx_route *route = &settings->routes[n];
		waits = waits || route->policy.concurrent == HPX_CONCURRENT_WAIT ||
			route->policy.deliver == HPX_DELIVER_ASYNC;
		if (route->policy.key == HPX_KEY_IGNORE)
			check_ignored(reading, n);
		else
			check_wait(reading, "routes[].wait", route, &reading->routes[n]);
		check_server_error(reading, n);
		/* What it inherits is told of `defaults`, once. */
		if (is_part_given(reading, &reading->routes[n]))
			check_part(reading, route, &reading->routes[n]);
	}
	check_part(reading, &settings->fallback, NULL);
	/* A default may be meant for a route. */
	if (!waits)
		check_wait(reading, "defaults.wait", &settings->fallback, NULL);
}
