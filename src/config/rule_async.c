/* Rules about deliver: async, and about reconcile of routes. */
#include "config/rule.h"
#include "config/suggestion.h"

static bool is_verified(const struct hpx_settings *settings)
{
	return settings->tenant_from == HPX_TENANT_SUBREQUEST ||
	       (settings->tenant_from == HPX_TENANT_HEADER &&
		settings->tenant_anonymous == HPX_ANONYMOUS_REFUSE);
}

static void check_target(struct hpx_parse_context *context, const struct hpx_location *location,
			 const struct hpx_route *route)
{
	const struct hpx_settings *settings = context->settings;
	struct hpx_suggestion suggestion = { 0 };

	if (route->target != NULL)
		return;
	if (route->target_name.ptr == NULL) {
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "deliver",
				    "is async, but nothing says where to; add target: and one of "
				    "targets");
		return;
	}
	for (size_t i = 0; i < settings->target_count; i++)
		hpx_suggestion_consider(&suggestion, route->target_name, settings->targets[i].name);
	if (suggestion.word.ptr != NULL)
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "\"%.*s\" is none of targets; did you mean \"%.*s\"?",
				    HPX_SPAN_ARG(route->target_name), HPX_SPAN_ARG(suggestion.word));
	else
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "target",
				    "\"%.*s\" is none of targets; add it there, with its url",
				    HPX_SPAN_ARG(route->target_name));
}

/* What an upstream's answer or an application would decide, which an async
 * request never reaches. */
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
				    "is resume, but what is sent again is the target's to say "
				    "(honours_keys); say on_lost: unknown, or deliver: now");
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
					    "has no effect where deliver is async; what the target "
					    "does stands under targets");
	if (hpx_location_any_given(location, "reconcile."))
		hpx_location_remark(context, location, HPX_CONFIG_WARNING, "", "deliver",
				    "is async: what its target's reconcile says counts, not what is "
				    "said here");
}

/* What `deliver` itself needs. */
static void check_deliver(struct hpx_parse_context *context, const struct hpx_location *location,
			  const struct hpx_route *route)
{
	if (!is_verified(context->settings))
		hpx_location_remark(context, location, HPX_CONFIG_MISTAKE, "", "deliver",
				    "is async, and no upstream checks who is calling; say "
				    "tenant.from: subrequest, or header with tenant.anonymous: refuse");
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

/* What a route inherits is told of `defaults`, once. */
static void check_async(struct hpx_parse_context *context, const struct hpx_location *location,
			const struct hpx_route *route)
{
	static const char *const names[] = { "deliver", "target", "key",
					     "completes", "on_lost", "concurrent" };
	bool told = location->set != &context->defaults;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		told = told && !hpx_location_given(location, "", names[i])->given;
	if (!told) {
		check_target(context, location, route);
		check_contradictions(context, location, &route->policy);
	}
	/* What stands in `defaults` may be meant for other routes. */
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
	if (hpx_location_any_given(location, "reconcile."))
		hpx_rule_reconcile(context, location, &route->reconcile, false);
}

void hpx_check_deliveries(struct hpx_parse_context *context)
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
