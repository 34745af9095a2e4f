/* What follows from the values: the recipes, and the routes with their
 * segments, the most specific first. */
#include "config/reading.h"

static void refuse_recipe(struct hpx_reading *reading, const struct hpx_route *route)
{
	bool fallback = route == &reading->settings->fallback;

	hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, route->line, 1,
			  fallback ? HPX_SPAN("defaults.fingerprint") : HPX_SPAN("routes[].fingerprint"),
			  "its lists are longer than %d bytes together",
			  HPX_RECIPE_TEXT_MAX);
}

static enum hpx_status build_recipe(struct hpx_reading *reading, struct hpx_route *route)
{
	enum hpx_status status = hpx_recipe_id(&route->recipe, &route->recipe_id);

	route->recipe.id = &route->recipe_id;
	if (status != HPX_TOO_LARGE)
		return status;
	refuse_recipe(reading, route);
	return HPX_OK;
}

static enum hpx_status build_route(struct hpx_reading *reading, size_t n)
{
	struct hpx_settings *settings = reading->settings;
	struct hpx_route *route = &settings->routes[n];
	const struct hpx_given *match =
		hpx_reading_given(reading, "routes[].match", &reading->routes[n]);
	const char *reason = "";

	if (route->pattern.ptr != NULL) {
		enum hpx_status status =
			hpx_route_parse(route->pattern, &settings->arena, route, &reason);
		if (status == HPX_INVALID)
			hpx_config_remark(
				reading->report, HPX_CONFIG_MISTAKE, match->line,
				match->column, HPX_SPAN("routes[].match"), "\"%.*s\" %s",
				HPX_SPAN_ARG(hpx_span_first(route->pattern, 60)), reason);
		else if (status != HPX_OK)
			return status;
	}
	return build_recipe(reading, route);
}

/* Of all pairs, so that each is named; the number of routes is bounded. */
static void refuse_twins(struct hpx_reading *reading)
{
	const struct hpx_route *routes = reading->settings->routes;

	for (size_t i = 1; i < reading->settings->route_count; i++) {
		for (size_t j = 0; j < i && routes[i].segments != NULL; j++) {
			if (routes[j].segments == NULL ||
			    !hpx_route_same(&routes[i], &routes[j]))
				continue;
			const struct hpx_given *match = hpx_reading_given(
				reading, "routes[].match", &reading->routes[i]);
			hpx_config_remark(
				reading->report, HPX_CONFIG_MISTAKE, match->line,
				match->column, HPX_SPAN("routes[].match"),
				"\"%.*s\" matches the same requests as the route on "
				"line %u; make them one",
				HPX_SPAN_ARG(hpx_span_first(routes[i].pattern, 60)),
				routes[j].line);
			break;
		}
	}
}

enum hpx_status hpx_reading_build(struct hpx_reading *reading)
{
	struct hpx_settings *settings = reading->settings;
	enum hpx_status status = build_recipe(reading, &settings->fallback);

	for (size_t n = 0; n < settings->route_count && status == HPX_OK; n++)
		status = build_route(reading, n);
	if (status == HPX_OK)
		refuse_twins(reading);
	if (status == HPX_OK)
		status = hpx_reading_build_outside(reading);
	settings->fallback.number = (unsigned)settings->route_count;
	return status;
}
