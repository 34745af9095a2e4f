/* What a reload cannot change: options whose row says so, targets and webhooks
 * as a whole, the secrets that workers send, and scopes. A scope
 * is part of an operation's id; if it moved while hapax runs, the retry of an
 * executed request would be another operation and run again. */
#include <stdio.h>

#include "config/config.h"
#include "config/value.h"

static enum hpx_status name(struct hpx_buffer *out, const char *option,
			    struct hpx_span pattern)
{
	enum hpx_status status = out->len > 0 ? hpx_buffer_text(out, ", ") : HPX_OK;

	if (status == HPX_OK)
		status = hpx_buffer_text(out, option);
	if (status == HPX_OK && pattern.len > 0)
		status = hpx_buffer_printf(out, " (%.*s)", HPX_SPAN_ARG(pattern));
	return status;
}

/* Whether some request could belong to either: each segment fits the other. */
static bool overlap(const struct hpx_route *a, const struct hpx_route *b)
{
	if (a->method.ptr != NULL && b->method.ptr != NULL &&
	    !hpx_span_eq(a->method, b->method))
		return false;
	if (a->host.ptr != NULL && b->host.ptr != NULL && !hpx_span_eq(a->host, b->host))
		return false;
	for (size_t i = 0; i < a->segment_count && i < b->segment_count; i++) {
		const struct hpx_segment *left = &a->segments[i];
		const struct hpx_segment *right = &b->segments[i];
		if (left->kind == HPX_SEGMENT_REST || right->kind == HPX_SEGMENT_REST)
			return true;
		if (left->kind == HPX_SEGMENT_LITERAL &&
		    right->kind == HPX_SEGMENT_LITERAL &&
		    !hpx_span_eq(left->text, right->text))
			return false;
	}
	return a->segment_count == b->segment_count;
}

static bool scope_differs(const struct hpx_route *a, const struct hpx_route *b)
{
	if (a->policy.scope != b->policy.scope)
		return true;
	/* The pattern is the scope. */
	return a->policy.scope == HPX_SCOPE_ROUTE && !hpx_span_eq(a->pattern, b->pattern);
}

static const struct hpx_route *find_same(const struct hpx_settings *settings,
					 const struct hpx_route *route)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (hpx_route_same(&settings->routes[i], route))
			return &settings->routes[i];
	return NULL;
}

/* A route that only one of the two has: its requests belong to some other
 * route there, or to the defaults. */
static bool moves_scope(const struct hpx_route *route, const struct hpx_settings *other)
{
	const struct hpx_route *same = find_same(other, route);

	if (same != NULL)
		return scope_differs(route, same);
	for (size_t i = 0; i < other->route_count; i++)
		if (overlap(route, &other->routes[i]) &&
		    scope_differs(route, &other->routes[i]))
			return true;
	return scope_differs(route, &other->fallback);
}

static enum hpx_status name_routes(const struct hpx_settings *settings,
				   const struct hpx_settings *other, bool only_new,
				   struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &settings->routes[i];
		if (only_new && find_same(other, route) != NULL)
			continue;
		if (moves_scope(route, other))
			status = name(out, "routes[].scope", route->pattern);
	}
	return status;
}

/* Options of one place that differ and cannot change while hapax runs. Scopes
 * have their own rules, above. */
static enum hpx_status name_options(enum hpx_option_place place, const void *before,
				    const void *after, const char *prefix,
				    struct hpx_span of, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	char path[HPX_OPTION_PATH_SIZE];

	for (size_t i = 0; i < hpx_option_count() && status == HPX_OK; i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (option->place != place || option->reloadable ||
		    hpx_value_same(option, before, after) ||
		    (place == HPX_PLACE_POLICY && strcmp(option->name, "scope") == 0))
			continue;
		snprintf(path, sizeof(path), "%s%s", prefix, option->name);
		status = name(out, path, of);
	}
	return status;
}

/* How a route delivers and reconciles: workers hold what they began with. A
 * route that only one of the two has stands against the other's defaults. */
static enum hpx_status name_outside(const struct hpx_route *before,
				    const struct hpx_route *after, const char *prefix,
				    struct hpx_span pattern, struct hpx_buffer *out)
{
	enum hpx_status status =
		name_options(HPX_PLACE_POLICY, before, after, prefix, pattern, out);
	char path[HPX_OPTION_PATH_SIZE];

	snprintf(path, sizeof(path), "%sreconcile.probe.credentials", prefix);
	if (status == HPX_OK && !hpx_span_eq(before->reconcile.probe.caller.headers,
					     after->reconcile.probe.caller.headers))
		status = name(out, path, pattern);
	return status;
}

static enum hpx_status name_routes_outside(const struct hpx_settings *before,
					   const struct hpx_settings *after,
					   struct hpx_buffer *out)
{
	enum hpx_status status = name_outside(&before->fallback, &after->fallback,
					      "defaults.", HPX_SPAN(""), out);

	for (size_t i = 0; i < after->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &after->routes[i];
		const struct hpx_route *old = find_same(before, route);
		status = name_outside(old != NULL ? old : &before->fallback, route,
				      "routes[].", route->pattern, out);
	}
	for (size_t i = 0; i < before->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &before->routes[i];
		if (find_same(after, route) == NULL)
			status = name_outside(route, &after->fallback, "routes[].",
					      route->pattern, out);
	}
	return status;
}

static const struct hpx_job_target *find_target(const struct hpx_settings *settings,
						struct hpx_span word)
{
	for (size_t i = 0; i < settings->target_count; i++)
		if (hpx_span_eq(settings->targets[i].name, word))
			return &settings->targets[i];
	return NULL;
}

static const struct hpx_webhook *find_webhook(const struct hpx_settings *settings,
					      struct hpx_span word)
{
	for (size_t i = 0; i < settings->webhook_count; i++)
		if (hpx_span_eq(settings->webhooks[i].name, word))
			return &settings->webhooks[i];
	return NULL;
}

/* One that only one of the two settings has, or the options that differ. */
static enum hpx_status name_thing(enum hpx_option_place place, const char *map,
				  struct hpx_span word, const void *before,
				  const void *after, struct hpx_buffer *out)
{
	char path[HPX_OPTION_PATH_SIZE];

	if (before == NULL || after == NULL) {
		snprintf(path, sizeof(path), "%s.%.*s", map, HPX_SPAN_ARG(word));
		return name(out, path, HPX_SPAN(""));
	}
	snprintf(path, sizeof(path), "%s.%.*s.", map, HPX_SPAN_ARG(word));
	return name_options(place, before, after, path, HPX_SPAN(""), out);
}

/* The secret itself is another one; a worker keeps what it began with. */
static enum hpx_status name_secret(const struct hpx_job_target *before,
				   const struct hpx_job_target *after, struct hpx_buffer *out)
{
	char path[HPX_OPTION_PATH_SIZE];

	if (after == NULL ||
	    (hpx_span_eq(before->caller.headers, after->caller.headers) &&
	     hpx_span_eq(before->reconcile.probe.caller.headers,
			 after->reconcile.probe.caller.headers)))
		return HPX_OK;
	snprintf(path, sizeof(path), "targets.%.*s.credentials", HPX_SPAN_ARG(before->name));
	return name(out, path, HPX_SPAN(""));
}

static enum hpx_status name_things(const struct hpx_settings *before,
				   const struct hpx_settings *after, bool only_new,
				   struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < before->target_count && status == HPX_OK; i++) {
		const struct hpx_job_target *one = &before->targets[i];
		const struct hpx_job_target *other = find_target(after, one->name);
		if (only_new && other != NULL)
			continue;
		status = name_thing(HPX_PLACE_TARGET, "targets", one->name, one, other, out);
		if (status == HPX_OK)
			status = name_secret(one, other, out);
	}
	for (size_t i = 0; i < before->webhook_count && status == HPX_OK; i++) {
		const struct hpx_webhook *one = &before->webhooks[i];
		const struct hpx_webhook *other = find_webhook(after, one->name);
		if (!only_new || other == NULL)
			status = name_thing(HPX_PLACE_WEBHOOK, "webhooks", one->name, one,
					    other, out);
	}
	return status;
}

enum hpx_status hpx_config_changes(const struct hpx_settings *before,
				   const struct hpx_settings *after, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_option_count() && status == HPX_OK; i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (option->reloadable || option->place != HPX_PLACE_GLOBAL)
			continue;
		if (!hpx_value_same(option, before, after))
			status = name(out, option->name, HPX_SPAN(""));
	}
	if (status == HPX_OK && scope_differs(&before->fallback, &after->fallback))
		status = name(out, "defaults.scope", HPX_SPAN(""));
	if (status == HPX_OK)
		status = name_routes(before, after, false, out);
	if (status == HPX_OK)
		status = name_routes(after, before, true, out);
	if (status == HPX_OK)
		status = name_routes_outside(before, after, out);
	if (status == HPX_OK)
		status = name_things(before, after, false, out);
	if (status == HPX_OK)
		status = name_things(after, before, true, out);
	return status;
}
