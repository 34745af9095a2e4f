/* Values: defaults first, by the profile; then the file; then the flags. A
 * route begins as a copy of the defaults, so routes are read last, wherever
 * they stand. */
#include <stdio.h>

#include "base/assert.h"
#include "config/reading.h"
#include "config/value.h"

size_t hpx_context_member(const struct hpx_parse_context *context, struct hpx_span name)
{
	const struct hpx_yaml *tree = &context->tree;

	for (size_t i = 1; i < tree->count; i = tree->nodes[i].end)
		if (hpx_span_eq(tree->nodes[i].name, name))
			return i;
	return 0;
}

/* The profile decides the defaults, so it is looked at before anything else.
 * Whether its value is right is said later, in its turn. */
static bool is_stripe(const struct hpx_parse_context *context)
{
	size_t index = hpx_context_member(context, HPX_SPAN("profile"));

	return index > 0 &&
	       hpx_span_eq(context->tree.nodes[index].text, HPX_SPAN("stripe"));
}

/* Where the defaults of a place go. */
static void *standard_of(struct hpx_parse_context *context, enum hpx_option_place place)
{
	switch (place) {
	case HPX_PLACE_GLOBAL:
		return context->settings;
	case HPX_PLACE_TARGET:
		return &context->standard_target;
	case HPX_PLACE_WEBHOOK:
		return &context->standard_webhook;
	default:
		return &context->settings->fallback;
	}
}

static enum hpx_status put_defaults(struct hpx_parse_context *context, bool stripe)
{
	struct hpx_settings *settings = context->settings;
	char problem[HPX_VALUE_PROBLEM_SIZE];

	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		struct hpx_span text = hpx_span_of(
			stripe && option->stripe_default ? option->stripe_default : option->default_value);
		if (text.ptr == NULL)
			continue;
		enum hpx_status status = hpx_value_read(
			option, &text, text.len > 0, &settings->arena,
			standard_of(context, option->place), problem);
		HPX_ASSERT(status != HPX_INVALID);
		if (status != HPX_OK)
			return status;
	}
	settings->fallback.pattern = HPX_SPAN("defaults");
	settings->fallback.recipe.version = HPX_RECIPE_VERSION;
	return HPX_OK;
}

static enum hpx_status take_flags(struct hpx_parse_context *context,
				  const struct hpx_config_flags *flags)
{
	const struct hpx_option *option;
	char problem[HPX_VALUE_PROBLEM_SIZE];
	char name[HPX_OPTION_PATH_SIZE];

	for (size_t n = 0; (option = hpx_option_flag(n)) != NULL; n++) {
		struct hpx_span text = hpx_span_of(flags->value[n]);
		if (text.ptr == NULL || option->place != HPX_PLACE_GLOBAL)
			continue;
		context->global.at[hpx_option_index(option)] =
			(struct hpx_given){ .given = true };
		enum hpx_status status =
			hpx_value_read(option, &text, 1, &context->settings->arena,
				       context->settings, problem);
		if (status == HPX_NOMEM)
			return status;
		if (status == HPX_OK)
			continue;
		snprintf(name, sizeof(name), "--%s", option->flag);
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, 0, 0,
				  hpx_span_of(name), "%s", problem);
	}
	return HPX_OK;
}

static enum hpx_status take_route(struct hpx_parse_context *context, size_t index)
{
	struct hpx_settings *settings = context->settings;
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	size_t n = settings->route_count++;
	struct hpx_route *route = &settings->routes[n];

	*route = settings->fallback;
	route->pattern = (struct hpx_span){ NULL, 0 };
	route->line = node->line;
	route->column = node->column;
	if (node->kind != HPX_YAML_MAPPING) {
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, HPX_SPAN("routes[]"),
				  "must be a mapping of options, not %s",
				  hpx_yaml_kind_words(node->kind));
		return HPX_OK;
	}
	enum hpx_status status = hpx_parse_mapping(context, index, HPX_SPAN("routes[]"),
						   route, &context->routes[n]);
	if (status != HPX_OK)
		return status;
	const struct hpx_given *match =
		hpx_context_given(context, "routes[].match", &context->routes[n]);
	if (match->given)
		route->line = match->line;
	else
		hpx_config_remark(
			context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
			HPX_SPAN("routes[].match"),
			"is missing; say which requests, e.g. match: POST /payments");
	return HPX_OK;
}

size_t hpx_child_count(const struct hpx_parse_context *context, size_t index)
{
	const struct hpx_yaml *tree = &context->tree;
	size_t count = 0;

	for (size_t i = index + 1; i < tree->nodes[index].end; i = tree->nodes[i].end)
		count++;
	return count;
}

static enum hpx_status take_routes(struct hpx_parse_context *context, size_t index)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	size_t count = hpx_child_count(context, index);
	struct hpx_settings *settings = context->settings;
	enum hpx_status status = HPX_OK;

	if (node->kind != HPX_YAML_LIST) {
		if (!node->empty)
			hpx_config_remark(
				context->report, HPX_CONFIG_MISTAKE, node->line,
				node->column, node->name,
				"must be a list, each element with its own match, "
				"not %s",
				hpx_yaml_kind_words(node->kind));
		return HPX_OK;
	}
	if (count > HPX_CONFIG_ROUTES_MAX) {
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, node->name, "has %zu elements; at most %d",
				  count, HPX_CONFIG_ROUTES_MAX);
		return HPX_OK;
	}
	settings->routes =
		hpx_arena_zalloc(&settings->arena, count, sizeof(*settings->routes));
	context->routes =
		hpx_arena_zalloc(context->scratch, count, sizeof(*context->routes));
	if (settings->routes == NULL || context->routes == NULL)
		return HPX_NOMEM;
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = context->tree.nodes[i].end)
		status = take_route(context, i);
	return status;
}

static enum hpx_status take_file(struct hpx_parse_context *context)
{
	const struct hpx_yaml_node *root = context->tree.nodes;

	if (context->tree.count == 0 || root->empty)
		return HPX_OK;
	if (root->kind != HPX_YAML_MAPPING) {
		hpx_config_remark(
			context->report, HPX_CONFIG_MISTAKE, root->line, root->column,
			HPX_SPAN(""),
			"a configuration is a mapping of options (listen: ...), not %s",
			hpx_yaml_kind_words(root->kind));
		return HPX_OK;
	}
	return hpx_parse_mapping(context, 0, HPX_SPAN(""), &context->settings->fallback,
				 &context->defaults);
}

enum hpx_status hpx_parse_values(struct hpx_parse_context *context,
				 const struct hpx_config_flags *flags)
{
	enum hpx_status status = put_defaults(context, is_stripe(context));
	size_t routes = hpx_context_member(context, HPX_SPAN("routes"));

	if (status == HPX_OK)
		status = take_file(context);
	if (status == HPX_OK)
		status = take_flags(context, flags);
	if (status == HPX_OK && routes > 0)
		status = take_routes(context, routes);
	if (status == HPX_OK)
		status = hpx_parse_services(context);
	return status;
}
