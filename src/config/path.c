/* Options by the path that they have in the file: "limits.head",
 * "defaults.lease", "routes[].lease". */
#include <stdio.h>

#include "config/nearest.h"
#include "config/option.h"

/* Which rows lie below a prefix of the file. */
static const struct section {
	struct hpx_span prefix;
	bool places[HPX_PLACE_COMMAND + 1];
} sections[] = {
	{ HPX_SPAN_INIT("defaults."), { [HPX_PLACE_POLICY] = true } },
	{ HPX_SPAN_INIT("routes[]."),
	  { [HPX_PLACE_POLICY] = true, [HPX_PLACE_ROUTE] = true } },
	{ HPX_SPAN_INIT(""), { [HPX_PLACE_GLOBAL] = true } },
};

#define SECTION_COUNT (sizeof(sections) / sizeof(sections[0]))

/* The section that a path lies in; the last one has no prefix. */
static const struct section *section_of(struct hpx_span path)
{
	size_t i = 0;

	while (i + 1 < SECTION_COUNT && !hpx_span_starts(path, sections[i].prefix))
		i++;
	return &sections[i];
}

const struct hpx_option *hpx_option_find(struct hpx_span path)
{
	const struct section *section = section_of(path);
	struct hpx_span name = hpx_span_skip(path, section->prefix.len);

	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (section->places[option->place] &&
		    hpx_span_eq(name, hpx_span_of(option->name)))
			return option;
	}
	return NULL;
}

/* "limits" of "limits.head"; empty where the name has no dot. */
static struct hpx_span group_of(const struct hpx_option *option)
{
	struct hpx_span name = hpx_span_of(option->name);
	size_t dot = hpx_span_index(name, '.');

	return dot < name.len ? hpx_span_first(name, dot) : hpx_span_first(name, 0);
}

bool hpx_option_is_group(struct hpx_span path)
{
	const struct section *section = section_of(path);
	struct hpx_span name = hpx_span_skip(path, section->prefix.len);

	if (hpx_span_eq(path, HPX_SPAN("defaults")) ||
	    hpx_span_eq(path, HPX_SPAN("routes[]")))
		return true;
	for (size_t i = 0; i < hpx_option_count() && name.len > 0; i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (section->places[option->place] && hpx_span_eq(name, group_of(option)))
			return true;
	}
	return false;
}

/* Nearest among the names of one section: whole names, and groups. */
static void try_section(const struct section *section, struct hpx_span name,
			struct hpx_nearest *nearest)
{
	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (!section->places[option->place])
			continue;
		hpx_nearest_try(nearest, name, hpx_span_of(option->name));
		hpx_nearest_try(nearest, name, group_of(option));
	}
	if (section->prefix.len == 0) {
		hpx_nearest_try(nearest, name, HPX_SPAN("defaults"));
		hpx_nearest_try(nearest, name, HPX_SPAN("routes"));
	}
}

/* An option of exactly this name that lies elsewhere: `lease` at the top is
 * defaults.lease, `head` is limits.head. */
static const struct hpx_option *find_elsewhere(struct hpx_span path)
{
	size_t last = path.len;

	while (last > 0 && path.ptr[last - 1] != '.')
		last--;
	struct hpx_span leaf = hpx_span_skip(path, last);
	for (size_t i = 0; i < hpx_option_count() && leaf.len > 0; i++) {
		const struct hpx_option *option = hpx_option_at(i);
		size_t group = group_of(option).len;
		struct hpx_span name = hpx_span_of(option->name);
		if (option->place <= HPX_PLACE_ROUTE &&
		    hpx_span_eq(leaf, hpx_span_skip(name, group > 0 ? group + 1 : 0)))
			return option;
	}
	return NULL;
}

void hpx_option_nearest(struct hpx_span path, char out[HPX_OPTION_PATH_SIZE])
{
	static const char *const prefixes[] = {
		[HPX_PLACE_GLOBAL] = "",
		[HPX_PLACE_POLICY] = "defaults.",
		[HPX_PLACE_ROUTE] = "routes[].",
	};
	const struct section *section = section_of(path);
	struct hpx_nearest nearest = { 0 };

	out[0] = '\0';
	try_section(section, hpx_span_skip(path, section->prefix.len), &nearest);
	if (nearest.word.ptr != NULL) {
		snprintf(out, HPX_OPTION_PATH_SIZE, "%.*s%.*s",
			 HPX_SPAN_ARG(section->prefix), HPX_SPAN_ARG(nearest.word));
		return;
	}
	const struct hpx_option *option = find_elsewhere(path);
	if (option != NULL)
		snprintf(out, HPX_OPTION_PATH_SIZE, "%s%s", prefixes[option->place],
			 option->name);
}
