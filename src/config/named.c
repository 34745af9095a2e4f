/* `targets` and `webhooks`: things under names of their own. Each begins with
 * the defaults of its kind. */
#include "config/reading.h"
#include "config/value_outside.h"

/* One of the two maps. */
struct map {
	struct hpx_span word;
	const void *default_value;
	size_t size;
	size_t name; /* offset of struct hpx_span */
	size_t line; /* offset of unsigned */
};

struct things {
	void *list;
	struct hpx_section_given *places;
	size_t count;
};

static bool check_name(struct hpx_parse_context *context, const struct map *map,
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

static enum hpx_status take_thing(struct hpx_parse_context *context, const struct map *map,
				  size_t index, struct things *things)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	char *thing = (char *)things->list + things->count * map->size;
	struct hpx_section_given *place = &things->places[things->count];
	struct hpx_span path = hpx_arena_printf(context->scratch, "%.*s.%.*s",
						HPX_SPAN_ARG(map->word),
						HPX_SPAN_ARG(node->name));
	struct hpx_span name = hpx_arena_dup(&context->settings->arena, node->name);

	if (path.ptr == NULL || name.ptr == NULL)
		return HPX_NOMEM;
	memcpy(thing, map->default_value, map->size);
	memcpy(thing + map->name, &name, sizeof(name));
	memcpy(thing + map->line, &node->line, sizeof(node->line));
	place->line = node->line;
	place->column = node->column;
	things->count++;
	if (node->kind == HPX_YAML_MAPPING)
		return hpx_parse_mapping(context, index, path, thing, &place->set);
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column, path,
			  "must be a mapping of options, not %s",
			  hpx_yaml_kind_words(node->kind));
	return HPX_OK;
}

static enum hpx_status take_map(struct hpx_parse_context *context, const struct map *map,
				struct things *things)
{
	size_t index = hpx_context_member(context, map->word);
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
	size_t count = hpx_child_count(context, index);
	things->list = hpx_arena_zalloc(&context->settings->arena, count, map->size);
	things->places = hpx_arena_zalloc(context->scratch, count, sizeof(*things->places));
	if (things->list == NULL || things->places == NULL)
		return HPX_NOMEM;
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = context->tree.nodes[i].end)
		if (check_name(context, map, &context->tree.nodes[i]))
			status = take_thing(context, map, i, things);
	return status;
}

enum hpx_status hpx_parse_services(struct hpx_parse_context *context)
{
	const struct map targets = {
		HPX_SPAN("targets"),
		&context->standard_target,
		sizeof(struct hpx_job_target),
		offsetof(struct hpx_job_target, name),
		offsetof(struct hpx_job_target, line),
	};
	const struct map webhooks = {
		HPX_SPAN("webhooks"),
		&context->standard_webhook,
		sizeof(struct hpx_webhook),
		offsetof(struct hpx_webhook, name),
		offsetof(struct hpx_webhook, line),
	};
	struct things found = { NULL, NULL, 0 };
	enum hpx_status status = take_map(context, &targets, &found);

	context->settings->targets = context->targets = found.list;
	context->settings->target_count = found.count;
	context->target_sections = found.places;
	found = (struct things){ NULL, NULL, 0 };
	if (status == HPX_OK)
		status = take_map(context, &webhooks, &found);
	context->settings->webhooks = context->webhooks = found.list;
	context->settings->webhook_count = found.count;
	context->webhook_sections = found.places;
	return status;
}
