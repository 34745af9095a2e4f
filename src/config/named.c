/* `targets` and `webhooks`: things under names of their own. Each begins with
 * the defaults of its kind. */
#include "config/reading.h"
#include "config/value_outside.h"

/* One of the two maps. */
struct map {
	struct hpx_span word;
	const void *standard;
	size_t size;
	size_t name; /* offset of struct hpx_span */
	size_t line; /* offset of unsigned */
};

struct things {
	void *list;
	struct hpx_named *places;
	size_t count;
};

static bool check_name(struct hpx_reading *reading, const struct map *map,
		       const struct hpx_yaml_node *node)
{
	bool good = hpx_value_is_name(node->name);

	if (!good)
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, map->word,
				  "\"%.*s\" is no name: 1 to %d of a-z, 0-9, _ and -",
				  HPX_SPAN_ARG(hpx_span_first(node->name, 60)),
				  HPX_VALUE_NAME_MAX);
	return good;
}

static enum hpx_status take_thing(struct hpx_reading *reading, const struct map *map,
				  size_t index, struct things *things)
{
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	char *thing = (char *)things->list + things->count * map->size;
	struct hpx_named *place = &things->places[things->count];
	struct hpx_span path = hpx_arena_printf(reading->scratch, "%.*s.%.*s",
						HPX_SPAN_ARG(map->word),
						HPX_SPAN_ARG(node->name));
	struct hpx_span name = hpx_arena_dup(&reading->settings->arena, node->name);

	if (path.ptr == NULL || name.ptr == NULL)
		return HPX_NOMEM;
	memcpy(thing, map->standard, map->size);
	memcpy(thing + map->name, &name, sizeof(name));
	memcpy(thing + map->line, &node->line, sizeof(node->line));
	place->line = node->line;
	place->column = node->column;
	things->count++;
	if (node->kind == HPX_YAML_MAPPING)
		return hpx_reading_walk(reading, index, path, thing, &place->set);
	hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line, node->column, path,
			  "must be a mapping of options, not %s",
			  hpx_yaml_kind_words(node->kind));
	return HPX_OK;
}

static enum hpx_status take_map(struct hpx_reading *reading, const struct map *map,
				struct things *things)
{
	size_t index = hpx_reading_member(reading, map->word);
	enum hpx_status status = HPX_OK;

	if (index == 0)
		return HPX_OK;
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return HPX_OK;
	if (node->kind != HPX_YAML_MAPPING) {
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, map->word,
				  "must be a mapping of names, each with its own options, not "
				  "%s",
				  hpx_yaml_kind_words(node->kind));
		return HPX_OK;
	}
	size_t count = hpx_reading_children(reading, index);
	things->list = hpx_arena_zalloc(&reading->settings->arena, count, map->size);
	things->places = hpx_arena_zalloc(reading->scratch, count, sizeof(*things->places));
	if (things->list == NULL || things->places == NULL)
		return HPX_NOMEM;
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = reading->tree.nodes[i].end)
		if (check_name(reading, map, &reading->tree.nodes[i]))
			status = take_thing(reading, map, i, things);
	return status;
}

enum hpx_status hpx_reading_named(struct hpx_reading *reading)
{
	const struct map targets = {
		HPX_SPAN("targets"),
		&reading->standard_target,
		sizeof(struct hpx_job_target),
		offsetof(struct hpx_job_target, name),
		offsetof(struct hpx_job_target, line),
	};
	const struct map webhooks = {
		HPX_SPAN("webhooks"),
		&reading->standard_webhook,
		sizeof(struct hpx_webhook),
		offsetof(struct hpx_webhook, name),
		offsetof(struct hpx_webhook, line),
	};
	struct things found = { NULL, NULL, 0 };
	enum hpx_status status = take_map(reading, &targets, &found);

	reading->settings->targets = reading->targets = found.list;
	reading->settings->target_count = found.count;
	reading->target_places = found.places;
	found = (struct things){ NULL, NULL, 0 };
	if (status == HPX_OK)
		status = take_map(reading, &webhooks, &found);
	reading->settings->webhooks = reading->webhooks = found.list;
	reading->settings->webhook_count = found.count;
	reading->webhook_places = found.places;
	return status;
}
