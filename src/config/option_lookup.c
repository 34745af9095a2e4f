/* Options by the path that they have in the file: "limits.head",
 * "defaults.lease", "routes[].lease", "targets.mailer.url"; and the option that
 * a wrong path may mean. */
#include <stdio.h>

#include "base/status.h"
#include "config/option.h"
#include "config/suggestion.h"

size_t hpx_option_index(const struct hpx_option_table *table, const struct hpx_option *option)
{
	HPX_ASSERT(option >= table->rows && option < table->rows + table->count);
	HPX_ASSERT(table->count <= HPX_OPTION_MAX);
	return (size_t)(option - table->rows);
}

const struct hpx_option *hpx_option_flag(const struct hpx_option_table *table, size_t n)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].flag != NULL && n-- == 0)
			return &table->rows[i];
	return NULL;
}

const char *hpx_option_kind_words(enum hpx_option_kind kind)
{
	static const char *const words[] = {
#define X(name, text, list) text,
		HPX_OPTION_KIND_LIST(X)
#undef X
	};

	HPX_ASSERT(kind < sizeof(words) / sizeof(words[0]));
	return words[kind];
}

bool hpx_option_kind_is_list(enum hpx_option_kind kind)
{
	static const bool lists[] = {
#define X(name, text, list) list,
		HPX_OPTION_KIND_LIST(X)
#undef X
	};

	HPX_ASSERT(kind < sizeof(lists) / sizeof(lists[0]));
	return lists[kind];
}

/* A path, taken apart. */
struct option_path {
	const struct hpx_option_section *section;
	struct hpx_span prefix; /* all that stands before the option's own name */
	struct hpx_span name;
};

static bool section_has(const struct hpx_option_section *section,
			const struct hpx_option *option)
{
	return (section->places & HPX_PLACE_BIT(option->place)) != 0;
}

/* The root comes last and has no prefix, so every path lies in a section. */
static struct option_path split(const struct hpx_option_table *table, struct hpx_span path)
{
	const struct hpx_option_section *section = table->sections;
	const struct hpx_option_section *root = section + table->section_count - 1;

	HPX_ASSERT(root->shape == HPX_SECTION_ROOT && root->prefix.len == 0);
	while (section < root && !hpx_span_starts(path, section->prefix))
		section++;
	size_t len = section->prefix.len;
	if (section->shape == HPX_SECTION_MAP) {
		len += hpx_span_index(hpx_span_skip(path, len), '.');
		len += len < path.len;
	}
	return (struct option_path){ section, hpx_span_first(path, len),
				     hpx_span_skip(path, len) };
}

const struct hpx_option *hpx_option_find(const struct hpx_option_table *table,
					 struct hpx_span path)
{
	struct option_path parts = split(table, path);

	for (size_t i = 0; i < table->count; i++)
		if (section_has(parts.section, &table->rows[i]) &&
		    hpx_span_eq(parts.name, hpx_span_of(table->rows[i].name)))
			return &table->rows[i];
	return NULL;
}

/* Whether the option lies below the group: "limits.head" below "limits". */
static bool lies_below(const struct hpx_option *option, struct hpx_span group)
{
	struct hpx_span name = hpx_span_of(option->name);

	return hpx_span_starts(name, group) && name.len > group.len &&
	       name.ptr[group.len] == '.';
}

/* Whether the path is a section's own mapping: "defaults", "routes[]". */
static bool is_section(const struct hpx_option_table *table, struct hpx_span path)
{
	for (size_t i = 0; i < table->section_count; i++) {
		const struct hpx_option_section *section = &table->sections[i];
		if (section->shape != HPX_SECTION_MAP && section->prefix.len == path.len + 1 &&
		    hpx_span_starts(section->prefix, path))
			return true;
	}
	return false;
}

bool hpx_option_is_group(const struct hpx_option_table *table, struct hpx_span path)
{
	struct option_path parts = split(table, path);

	if (is_section(table, path))
		return true;
	if (parts.name.len == 0)
		return parts.section->shape == HPX_SECTION_MAP &&
		       parts.prefix.len > parts.section->prefix.len;
	for (size_t i = 0; i < table->count; i++)
		if (section_has(parts.section, &table->rows[i]) &&
		    lies_below(&table->rows[i], parts.name))
			return true;
	return false;
}

bool hpx_option_is_collection(const struct hpx_option_table *table, struct hpx_span path)
{
	for (size_t i = 0; i < table->section_count; i++) {
		enum hpx_section_shape shape = table->sections[i].shape;
		if ((shape == HPX_SECTION_LIST || shape == HPX_SECTION_MAP) &&
		    hpx_span_eq(path, table->sections[i].name))
			return true;
	}
	return false;
}

/* An option's name, and each of the groups that it lies in. */
static void consider_option(const struct hpx_option *option, struct hpx_span name,
			    struct hpx_suggestion *suggestion)
{
	struct hpx_span whole = hpx_span_of(option->name);

	hpx_suggestion_consider(suggestion, name, whole);
	for (size_t i = 0; i < whole.len; i++)
		if (whole.ptr[i] == '.')
			hpx_suggestion_consider(suggestion, name, hpx_span_first(whole, i));
}

/* The names of one section: options and groups; at the root the sections too. */
static void consider_section(const struct hpx_option_table *table,
			     const struct hpx_option_section *section, struct hpx_span name,
			     struct hpx_suggestion *suggestion)
{
	for (size_t i = 0; i < table->count; i++)
		if (section_has(section, &table->rows[i]))
			consider_option(&table->rows[i], name, suggestion);
	for (size_t i = 0; i + 1 < table->section_count; i++)
		if (section->shape == HPX_SECTION_ROOT)
			hpx_suggestion_consider(suggestion, name, table->sections[i].name);
}

static struct hpx_span leaf_of(struct hpx_span path)
{
	size_t last = path.len;

	while (last > 0 && path.ptr[last - 1] != '.')
		last--;
	return hpx_span_skip(path, last);
}

/* The first section that the option lies in; NULL: not in the file at all. */
static const struct hpx_option_section *section_of(const struct hpx_option_table *table,
						   const struct hpx_option *option)
{
	for (size_t i = 0; i < table->section_count; i++)
		if (section_has(&table->sections[i], option))
			return &table->sections[i];
	return NULL;
}

/* Among the options directly in the first section, or among all others. */
static void consider_elsewhere(const struct hpx_option_table *table, bool first,
			       struct hpx_span leaf, struct hpx_suggestion *suggestion,
			       const struct hpx_option **found)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct hpx_option *option = &table->rows[i];
		const struct hpx_option_section *section = section_of(table, option);
		struct hpx_span own = leaf_of(hpx_span_of(option->name));
		bool directly = section == table->sections && own.ptr == option->name;

		if (section != NULL && directly == first &&
		    hpx_suggestion_consider(suggestion, leaf, own))
			*found = option;
	}
}

/* The option whose own name, without its groups, is nearest to the path's,
 * wherever it lies: `lease` at the top is defaults.lease, `head` is limits.head.
 * Of equals, one of `defaults` wins: that is where people look for most. */
static const struct hpx_option *find_elsewhere(const struct hpx_option_table *table,
					       struct hpx_span path,
					       struct hpx_suggestion *suggestion)
{
	const struct hpx_option *found = NULL;

	consider_elsewhere(table, true, leaf_of(path), suggestion, &found);
	consider_elsewhere(table, false, leaf_of(path), suggestion, &found);
	return found;
}

void hpx_option_suggest(const struct hpx_option_table *table, struct hpx_span path,
			char out[HPX_OPTION_PATH_SIZE])
{
	struct option_path parts = split(table, path);
	struct hpx_suggestion here = { .narrow = true };
	struct hpx_suggestion there = { .narrow = true };
	const struct hpx_option *elsewhere = find_elsewhere(table, path, &there);

	out[0] = '\0';
	consider_section(table, parts.section, parts.name, &here);
	/* The wrong section counts as one more wrong letter. */
	if (here.word.ptr != NULL &&
	    (elsewhere == NULL || here.distance <= there.distance + 1)) {
		snprintf(out, HPX_OPTION_PATH_SIZE, "%.*s%.*s", HPX_SPAN_ARG(parts.prefix),
			 HPX_SPAN_ARG(here.word));
	} else if (elsewhere != NULL) {
		const struct hpx_option_section *section = section_of(table, elsewhere);
		snprintf(out, HPX_OPTION_PATH_SIZE, "%.*s%s%s", HPX_SPAN_ARG(section->prefix),
			 section->shape == HPX_SECTION_MAP ? "NAME." : "", elsewhere->name);
	}
}
