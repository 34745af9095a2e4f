/* What follows from the values: the recipes, and the routes with their
 * segments, the most specific first. */
#include "config/reading.h"

static void refuse_recipe(struct hpx_parse_context *context, const struct hpx_route *route)
{
	bool fallback = route == &context->settings->fallback;

	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, route->line, 1,
			  fallback ? HPX_SPAN("defaults.fingerprint") : HPX_SPAN("routes[].fingerprint"),
			  "its lists are longer than %d bytes together",
			  HPX_RECIPE_TEXT_MAX);
}

static enum hpx_status build_recipe(struct hpx_parse_context *context, struct hpx_route *route)
{
	enum hpx_status status = hpx_recipe_id(&route->recipe, &route->recipe_id);

	route->recipe.id = &route->recipe_id;
	if (status != HPX_TOO_LARGE)
		return status;
	refuse_recipe(context, route);
	return HPX_OK;
}

static enum hpx_status build_route(struct hpx_parse_context *context, size_t n)
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
	return build_recipe(context, route);
}

/* Of all pairs, so that each is named; the number of routes is bounded. */
static void refuse_twins(struct hpx_parse_context *context)
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
	enum hpx_status status = build_recipe(context, &settings->fallback);

	for (size_t n = 0; n < settings->route_count && status == HPX_OK; n++)
		status = build_route(context, n);
	if (status == HPX_OK)
		refuse_twins(context);
	if (status == HPX_OK)
		status = hpx_resolve_services(context);
	settings->fallback.number = (unsigned)settings->route_count;
	return status;
}
