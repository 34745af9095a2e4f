/* Few routes and targets, seldom asked for: a walk through the list. */
#include "worker/lookup.h"

const struct hpx_route *hpx_lookup_route(const struct hpx_settings *settings,
					 struct hpx_span pattern)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, pattern))
			return &settings->routes[i];
	return hpx_span_eq(settings->fallback.pattern, pattern) ? &settings->fallback : NULL;
}

const struct hpx_job_target *hpx_lookup_target(const struct hpx_settings *settings,
					       struct hpx_span name)
{
	for (size_t i = 0; i < settings->target_count; i++)
		if (hpx_span_eq(settings->targets[i].name, name))
			return &settings->targets[i];
	return NULL;
}

bool hpx_lookup_any_status_only(const struct hpx_settings *settings)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (settings->routes[i].policy.deliver == HPX_DELIVER_ASYNC &&
		    settings->routes[i].policy.keep == HPX_KEEP_STATUS)
			return true;
	return false;
}
