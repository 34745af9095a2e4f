/* Values: defaults first, by the profile; then the file; then the flags. A
 * route begins as a copy of `defaults`, so routes are read last, wherever they
 * stand. Targets and webhooks begin with the defaults of their kind. */
#include <stdio.h>

#include "base/status.h"
#include "config/parse_context.h"
#include "config/profile.h"

/* The profile decides the defaults, so it is looked at before anything else. A wrong
 * value is reported later, with the other options. */
static enum hpx_profile profile_of(const struct hpx_parse_context *context)
{
	size_t index = hpx_yaml_member(&context->tree, HPX_SPAN("profile"));

	return index > 0 ? hpx_profile_of(context->tree.nodes[index].text) : HPX_PROFILE_IETF;
}

static struct hpx_option_parser parser_of(struct hpx_parse_context *context)
{
	return (struct hpx_option_parser){
		.table = &hpx_config_options,
		.tree = &context->tree,
		.report = context->report,
		.scratch = context->scratch,
		.values = &context->settings->arena,
	};
}

/* The same for limits.preset. */
static bool is_public(const struct hpx_parse_context *context)
{
	const struct hpx_yaml *tree = &context->tree;
	size_t limits = hpx_yaml_member(tree, HPX_SPAN("limits"));

	if (limits == 0 || tree->nodes[limits].kind != HPX_YAML_MAPPING)
		return false;
	for (size_t i = limits + 1; i < tree->nodes[limits].end; i = tree->nodes[i].end)
		if (hpx_span_eq(tree->nodes[i].name, HPX_SPAN("preset")))
			return hpx_span_eq(tree->nodes[i].text, HPX_SPAN("public"));
	return false;
}

static enum hpx_status put_public(struct hpx_parse_context *context)
{
	enum hpx_status status = HPX_OK;
	char problem[HPX_VALUE_PROBLEM_SIZE];

	for (size_t i = 0; i < hpx_config_options.count && status == HPX_OK; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		struct hpx_span text = hpx_span_of(option->public_value);

		if (text.ptr == NULL)
			continue;
		HPX_ASSERT(option->place == HPX_PLACE_GLOBAL);
		status = hpx_value_read(option, &text, 1, &context->settings->arena, context->settings,
					problem);
		HPX_ASSERT(status != HPX_INVALID);
	}
	return status;
}

static enum hpx_status put_defaults(struct hpx_parse_context *context, enum hpx_profile profile)
{
	const struct hpx_option_parser parser = parser_of(context);
	struct hpx_settings *settings = context->settings;
	const struct hpx_option_sink sinks[HPX_PLACE_COUNT] = {
		[HPX_PLACE_GLOBAL] = { settings, NULL },
		[HPX_PLACE_POLICY] = { &settings->fallback, NULL },
		[HPX_PLACE_ROUTE] = { &settings->fallback, NULL },
		[HPX_PLACE_LISTENER] = { &context->default_listener, NULL },
		[HPX_PLACE_TARGET] = { &context->default_target, NULL },
		[HPX_PLACE_WEBHOOK] = { &context->default_webhook, NULL },
	};
	enum hpx_status status = hpx_option_put_defaults(&parser, profile, sinks);

	if (status == HPX_OK && is_public(context))
		status = put_public(context);

	settings->fallback.pattern = HPX_SPAN("defaults");
	settings->fallback.recipe.version = HPX_RECIPE_VERSION;
	return status;
}

static enum hpx_status parse_flags(struct hpx_parse_context *context,
				   const struct hpx_config_flags *flags)
{
	const struct hpx_option_parser parser = parser_of(context);
	const struct hpx_option_sink sink = { context->settings, &context->global };
	enum hpx_status status = HPX_OK;
	const struct hpx_option *option;

	for (size_t n = 0; status == HPX_OK &&
			   (option = hpx_option_flag(&hpx_config_options, n)) != NULL;
	     n++) {
		struct hpx_span text = hpx_span_of(flags->value[n]);

		if (text.ptr != NULL && option->place == HPX_PLACE_GLOBAL)
			status = hpx_option_parse_flag(&parser, option, &text, 1, &sink);
	}
	return status;
}

static size_t child_count(const struct hpx_parse_context *context, size_t index)
{
	const struct hpx_yaml *tree = &context->tree;
	size_t count = 0;

	for (size_t i = index + 1; i < tree->nodes[index].end; i = tree->nodes[i].end)
		count++;
	return count;
}

/* The options of one section into `base`, a route, a target or a webhook; those of
 * the root into the settings. */
enum hpx_status hpx_parse_section(struct hpx_parse_context *context, size_t index,
				  struct hpx_span prefix, void *base, struct hpx_given_set *given)
{
	const struct hpx_option_parser parser = parser_of(context);
	struct hpx_option_sink sinks[HPX_PLACE_COUNT];

	for (size_t place = 0; place < HPX_PLACE_COUNT; place++)
		sinks[place] = (struct hpx_option_sink){ base, given };
	sinks[HPX_PLACE_GLOBAL] =
		(struct hpx_option_sink){ context->settings, &context->global };
	return hpx_option_parse(&parser, index, prefix, sinks);
}

static enum hpx_status parse_route(struct hpx_parse_context *context, size_t index)
{
	struct hpx_settings *settings = context->settings;
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	size_t n = settings->route_count++;
	struct hpx_route *route = &settings->routes[n];

	HPX_ASSERT(n < HPX_CONFIG_ROUTES_MAX);
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
	enum hpx_status status = hpx_parse_section(context, index, HPX_SPAN("routes[]"),
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

static enum hpx_status parse_routes(struct hpx_parse_context *context, size_t index)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	size_t count = child_count(context, index);
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
		status = parse_route(context, i);
	return status;
}

static enum hpx_status parse_root(struct hpx_parse_context *context)
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
	return hpx_parse_section(context, 0, HPX_SPAN(""), &context->settings->fallback,
				 &context->defaults);
}

/* `targets` or `webhooks`. */
struct service_map {
	struct hpx_span word;
	const void *default_value;
	size_t size;
	size_t name; /* offset of struct hpx_span */
	size_t line; /* offset of unsigned */
};

struct service_list {
	void *list;
	struct hpx_section_given *sections;
	size_t count;
};

static bool check_name(struct hpx_parse_context *context, const struct service_map *map,
		       const struct hpx_yaml_node *node)
{
	bool good = hpx_value_is_name(node->name);

	if (!good)
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, map->word,
				  "\"%.*s\" is no name: 1 to %d of a-z, 0-9, _ and -",
				  HPX_SPAN_ARG(hpx_span_first(node->name, 60)),
				  HPX_VALUE_NAME_MAX);
	return good;
}

static enum hpx_status parse_service(struct hpx_parse_context *context, const struct service_map *map,
				     size_t index, struct service_list *services)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	char *service = (char *)services->list + services->count * map->size;
	struct hpx_section_given *section = &services->sections[services->count];
	struct hpx_span path = hpx_arena_printf(context->scratch, "%.*s.%.*s",
						HPX_SPAN_ARG(map->word),
						HPX_SPAN_ARG(node->name));
	struct hpx_span name = hpx_arena_dup(&context->settings->arena, node->name);

	if (path.ptr == NULL || name.ptr == NULL)
		return HPX_NOMEM;
	memcpy(service, map->default_value, map->size);
	memcpy(service + map->name, &name, sizeof(name));
	memcpy(service + map->line, &node->line, sizeof(node->line));
	section->line = node->line;
	section->column = node->column;
	services->count++;
	if (node->kind == HPX_YAML_MAPPING)
		return hpx_parse_section(context, index, path, service, &section->set);
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column, path,
			  "must be a mapping of options, not %s",
			  hpx_yaml_kind_words(node->kind));
	return HPX_OK;
}

static enum hpx_status parse_map(struct hpx_parse_context *context, const struct service_map *map,
				 struct service_list *services)
{
	size_t index = hpx_yaml_member(&context->tree, map->word);
	enum hpx_status status = HPX_OK;

	if (index == 0)
		return HPX_OK;
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return HPX_OK;
	if (node->kind != HPX_YAML_MAPPING) {
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, map->word,
				  "must be a mapping of names, each with its own options, not "
				  "%s",
				  hpx_yaml_kind_words(node->kind));
		return HPX_OK;
	}
	size_t count = child_count(context, index);
	services->list = hpx_arena_zalloc(&context->settings->arena, count, map->size);
	services->sections = hpx_arena_zalloc(context->scratch, count, sizeof(*services->sections));
	if (services->list == NULL || services->sections == NULL)
		return HPX_NOMEM;
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = context->tree.nodes[i].end)
		if (check_name(context, map, &context->tree.nodes[i]))
			status = parse_service(context, map, i, services);
	return status;
}

static enum hpx_status parse_services(struct hpx_parse_context *context)
{
	const struct service_map targets = {
		HPX_SPAN("targets"),
		&context->default_target,
		sizeof(struct hpx_job_target),
		offsetof(struct hpx_job_target, name),
		offsetof(struct hpx_job_target, line),
	};
	const struct service_map webhooks = {
		HPX_SPAN("webhooks"),
		&context->default_webhook,
		sizeof(struct hpx_webhook),
		offsetof(struct hpx_webhook, name),
		offsetof(struct hpx_webhook, line),
	};
	struct service_list found = { NULL, NULL, 0 };
	enum hpx_status status = parse_map(context, &targets, &found);

	context->settings->targets = context->targets = found.list;
	context->settings->target_count = found.count;
	context->target_sections = found.sections;
	found = (struct service_list){ NULL, NULL, 0 };
	if (status == HPX_OK)
		status = parse_map(context, &webhooks, &found);
	context->settings->webhooks = context->webhooks = found.list;
	context->settings->webhook_count = found.count;
	context->webhook_sections = found.sections;
	return status;
}

enum hpx_status hpx_parse_values(struct hpx_parse_context *context,
				 const struct hpx_config_flags *flags)
{
	enum hpx_status status = put_defaults(context, profile_of(context));
	size_t routes = hpx_yaml_member(&context->tree, HPX_SPAN("routes"));

	if (status == HPX_OK)
		status = parse_root(context);
	if (status == HPX_OK)
		status = parse_flags(context, flags);
	if (status == HPX_OK)
		status = hpx_parse_listeners(context);
	if (status == HPX_OK && routes > 0)
		status = parse_routes(context, routes);
	if (status == HPX_OK)
		status = parse_services(context);
	return status;
}
