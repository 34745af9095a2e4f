/* What a reload cannot change: options whose row says so, and scopes. A scope
 * is part of an operation's id; if it moved while hapax runs, the retry of an
 * executed request would be another operation and run again. */
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
	return status;
}
