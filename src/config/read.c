/* Values: defaults first, by the profile; then the file; then the flags. A
 * route begins as a copy of the defaults, so routes are read last, wherever
 * they stand. */
#include <stdio.h>

#include "base/assert.h"
#include "config/reading.h"
#include "config/value.h"

size_t hpx_reading_member(const struct hpx_reading *reading, struct hpx_span name)
{
	const struct hpx_yaml *tree = &reading->tree;

	for (size_t i = 1; i < tree->count; i = tree->nodes[i].end)
		if (hpx_span_eq(tree->nodes[i].name, name))
			return i;
	return 0;
}

/* The profile decides the defaults, so it is looked at before anything else.
 * Whether its value is right is said later, in its turn. */
static bool is_stripe(const struct hpx_reading *reading)
{
	size_t index = hpx_reading_member(reading, HPX_SPAN("profile"));

	return index > 0 &&
	       hpx_span_eq(reading->tree.nodes[index].text, HPX_SPAN("stripe"));
}

/* Where the defaults of a place go. */
static void *standard_of(struct hpx_reading *reading, enum hpx_option_place place)
{
	switch (place) {
	case HPX_PLACE_GLOBAL:
		return reading->settings;
	case HPX_PLACE_TARGET:
		return &reading->standard_target;
	case HPX_PLACE_WEBHOOK:
		return &reading->standard_webhook;
	default:
		return &reading->settings->fallback;
	}
}

static enum hpx_status put_defaults(struct hpx_reading *reading, bool stripe)
{
	struct hpx_settings *settings = reading->settings;
	char problem[HPX_VALUE_PROBLEM_SIZE];

	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		struct hpx_span text = hpx_span_of(
			stripe && option->stripe ? option->stripe : option->standard);
		if (text.ptr == NULL)
			continue;
		enum hpx_status status = hpx_value_read(
			option, &text, text.len > 0, &settings->arena,
			standard_of(reading, option->place), problem);
		HPX_ASSERT(status != HPX_INVALID);
		if (status != HPX_OK)
			return status;
	}
	settings->fallback.pattern = HPX_SPAN("defaults");
	settings->fallback.recipe.version = HPX_RECIPE_VERSION;
	return HPX_OK;
}

static enum hpx_status take_flags(struct hpx_reading *reading,
				  const struct hpx_config_flags *flags)
{
	const struct hpx_option *option;
	char problem[HPX_VALUE_PROBLEM_SIZE];
	char name[HPX_OPTION_PATH_SIZE];

	for (size_t n = 0; (option = hpx_option_flag(n)) != NULL; n++) {
		struct hpx_span text = hpx_span_of(flags->value[n]);
		if (text.ptr == NULL || option->place != HPX_PLACE_GLOBAL)
			continue;
		reading->global.at[hpx_option_index(option)] =
			(struct hpx_given){ .given = true };
		enum hpx_status status =
			hpx_value_read(option, &text, 1, &reading->settings->arena,
				       reading->settings, problem);
		if (status == HPX_NOMEM)
			return status;
		if (status == HPX_OK)
			continue;
		snprintf(name, sizeof(name), "--%s", option->flag);
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, 0, 0,
				  hpx_span_of(name), "%s", problem);
	}
	return HPX_OK;
}

static enum hpx_status take_route(struct hpx_reading *reading, size_t index)
{
	struct hpx_settings *settings = reading->settings;
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	size_t n = settings->route_count++;
	struct hpx_route *route = &settings->routes[n];

	*route = settings->fallback;
	route->pattern = (struct hpx_span){ NULL, 0 };
	route->line = node->line;
	route->column = node->column;
	if (node->kind != HPX_YAML_MAPPING) {
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, HPX_SPAN("routes[]"),
				  "must be a mapping of options, not %s",
				  hpx_yaml_kind_words(node->kind));
		return HPX_OK;
	}
	enum hpx_status status = hpx_reading_walk(reading, index, HPX_SPAN("routes[]"),
						  route, &reading->routes[n]);
	if (status != HPX_OK)
		return status;
	const struct hpx_given *match =
		hpx_reading_given(reading, "routes[].match", &reading->routes[n]);
	if (match->given)
		route->line = match->line;
	else
		hpx_config_remark(
			reading->report, HPX_CONFIG_MISTAKE, node->line, node->column,
			HPX_SPAN("routes[].match"),
			"is missing; say which requests, e.g. match: POST /payments");
	return HPX_OK;
}

size_t hpx_reading_children(const struct hpx_reading *reading, size_t index)
{
	const struct hpx_yaml *tree = &reading->tree;
	size_t count = 0;

	for (size_t i = index + 1; i < tree->nodes[index].end; i = tree->nodes[i].end)
		count++;
	return count;
}

static enum hpx_status take_routes(struct hpx_reading *reading, size_t index)
{
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	size_t count = hpx_reading_children(reading, index);
	struct hpx_settings *settings = reading->settings;
	enum hpx_status status = HPX_OK;

	if (node->kind != HPX_YAML_LIST) {
		if (!node->empty)
			hpx_config_remark(
				reading->report, HPX_CONFIG_MISTAKE, node->line,
				node->column, node->name,
				"must be a list, each element with its own match, "
				"not %s",
				hpx_yaml_kind_words(node->kind));
		return HPX_OK;
	}
	if (count > HPX_CONFIG_ROUTES_MAX) {
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, node->name, "has %zu elements; at most %d",
				  count, HPX_CONFIG_ROUTES_MAX);
		return HPX_OK;
	}
	settings->routes =
		hpx_arena_zalloc(&settings->arena, count, sizeof(*settings->routes));
	reading->routes =
		hpx_arena_zalloc(reading->scratch, count, sizeof(*reading->routes));
	if (settings->routes == NULL || reading->routes == NULL)
		return HPX_NOMEM;
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = reading->tree.nodes[i].end)
		status = take_route(reading, i);
	return status;
}

static enum hpx_status take_file(struct hpx_reading *reading)
{
	const struct hpx_yaml_node *root = reading->tree.nodes;

	if (reading->tree.count == 0 || root->empty)
		return HPX_OK;
	if (root->kind != HPX_YAML_MAPPING) {
		hpx_config_remark(
			reading->report, HPX_CONFIG_MISTAKE, root->line, root->column,
			HPX_SPAN(""),
			"a configuration is a mapping of options (listen: ...), not %s",
			hpx_yaml_kind_words(root->kind));
		return HPX_OK;
	}
	return hpx_reading_walk(reading, 0, HPX_SPAN(""), &reading->settings->fallback,
				&reading->defaults);
}

enum hpx_status hpx_reading_values(struct hpx_reading *reading,
				   const struct hpx_config_flags *flags)
{
	enum hpx_status status = put_defaults(reading, is_stripe(reading));
	size_t routes = hpx_reading_member(reading, HPX_SPAN("routes"));

	if (status == HPX_OK)
		status = take_file(reading);
	if (status == HPX_OK)
		status = take_flags(reading, flags);
	if (status == HPX_OK && routes > 0)
		status = take_routes(reading, routes);
	if (status == HPX_OK)
		status = hpx_reading_named(reading);
	return status;
}
