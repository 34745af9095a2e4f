/* Options by the path that they have in the file: "limits.head",
 * "defaults.lease", "routes[].lease", "targets.mailer.url". */
#include <stdio.h>

#include "config/option.h"
#include "config/suggestion.h"

/* Which rows lie below a prefix of the file. */
static const struct section {
	struct hpx_span prefix;
	bool named; /* one more word stands behind the prefix: a thing's own name */
	bool places[HPX_PLACE_COMMAND + 1];
} sections[] = {
	{ HPX_SPAN_INIT("defaults."), false, { [HPX_PLACE_POLICY] = true } },
	{ HPX_SPAN_INIT("routes[]."),
	  false,
	  { [HPX_PLACE_POLICY] = true, [HPX_PLACE_ROUTE] = true } },
	{ HPX_SPAN_INIT("targets."), true, { [HPX_PLACE_TARGET] = true } },
	{ HPX_SPAN_INIT("webhooks."), true, { [HPX_PLACE_WEBHOOK] = true } },
	{ HPX_SPAN_INIT(""), false, { [HPX_PLACE_GLOBAL] = true } },
};

#define SECTION_COUNT (sizeof(sections) / sizeof(sections[0]))

/* A path, taken apart. */
struct parts {
	const struct section *section;
	struct hpx_span prefix; /* all that stands before the option's own name */
	struct hpx_span name;
};

/* The last section has no prefix, so every path lies in one. */
static struct parts split(struct hpx_span path)
{
	size_t i = 0;

	while (i + 1 < SECTION_COUNT && !hpx_span_starts(path, sections[i].prefix))
		i++;
	size_t len = sections[i].prefix.len;
	if (sections[i].named) {
		len += hpx_span_index(hpx_span_skip(path, len), '.');
		len += len < path.len;
	}
	return (struct parts){ &sections[i], hpx_span_first(path, len),
			       hpx_span_skip(path, len) };
}

const struct hpx_option *hpx_option_find(struct hpx_span path)
{
	struct parts parts = split(path);

	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (parts.section->places[option->place] &&
		    hpx_span_eq(parts.name, hpx_span_of(option->name)))
			return option;
	}
	return NULL;
}

/* Whether the option lies below the group: "limits.head" below "limits". */
static bool lies_below(const struct hpx_option *option, struct hpx_span group)
{
	struct hpx_span name = hpx_span_of(option->name);

	return hpx_span_starts(name, group) && name.len > group.len &&
	       name.ptr[group.len] == '.';
}

bool hpx_option_is_group(struct hpx_span path)
{
	struct parts parts = split(path);

	if (hpx_span_eq(path, HPX_SPAN("defaults")) ||
	    hpx_span_eq(path, HPX_SPAN("routes[]")))
		return true;
	if (parts.name.len == 0)
		return parts.section->named && parts.prefix.len > parts.section->prefix.len;
	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		if (parts.section->places[option->place] && lies_below(option, parts.name))
			return true;
	}
	return false;
}

/* An option's name, and each of the groups that it lies in. */
static void try_option(const struct hpx_option *option, struct hpx_span name,
		       struct hpx_suggestion *suggestion)
{
	struct hpx_span whole = hpx_span_of(option->name);

	hpx_suggestion_consider(suggestion, name, whole);
	for (size_t i = 0; i < whole.len; i++)
		if (whole.ptr[i] == '.')
			hpx_suggestion_consider(suggestion, name, hpx_span_first(whole, i));
}

/* Nearest among the names of one section: whole names, and groups. */
static void try_section(const struct section *section, struct hpx_span name,
			struct hpx_suggestion *suggestion)
{
	static const struct hpx_span others[] = {
		HPX_SPAN_INIT("defaults"),
		HPX_SPAN_INIT("routes"),
		HPX_SPAN_INIT("targets"),
		HPX_SPAN_INIT("webhooks"),
	};

	for (size_t i = 0; i < hpx_option_count(); i++)
		if (section->places[hpx_option_at(i)->place])
			try_option(hpx_option_at(i), name, suggestion);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (section->prefix.len == 0)
			hpx_suggestion_consider(suggestion, name, others[i]);
}

static struct hpx_span leaf_of(struct hpx_span path)
{
	size_t last = path.len;

	while (last > 0 && path.ptr[last - 1] != '.')
		last--;
	return hpx_span_skip(path, last);
}

/* Among the options that stand in `defaults` itself, or among all others. */
static void try_elsewhere(bool defaults, struct hpx_span leaf, struct hpx_suggestion *suggestion,
			  const struct hpx_option **found)
{
	for (size_t i = 0; i < hpx_option_count(); i++) {
		const struct hpx_option *option = hpx_option_at(i);
		struct hpx_span own = leaf_of(hpx_span_of(option->name));
		bool inside = option->place == HPX_PLACE_POLICY && own.ptr == option->name;

		if (option->place != HPX_PLACE_COMMAND && inside == defaults &&
		    hpx_suggestion_consider(suggestion, leaf, own))
			*found = option;
	}
}

/* The option whose own name, without its groups, is nearest to the path's,
 * wherever it lies: `lease` at the top is defaults.lease, `head` is limits.head.
 * Of equals, one of `defaults` wins: that is where people look for most. */
static const struct hpx_option *find_elsewhere(struct hpx_span path,
					       struct hpx_suggestion *suggestion)
{
	const struct hpx_option *found = NULL;

	try_elsewhere(true, leaf_of(path), suggestion, &found);
	try_elsewhere(false, leaf_of(path), suggestion, &found);
	return found;
}

void hpx_option_suggest(struct hpx_span path, char out[HPX_OPTION_PATH_SIZE])
{
	static const char *const prefixes[] = {
		[HPX_PLACE_GLOBAL] = "",
		[HPX_PLACE_POLICY] = "defaults.",
		[HPX_PLACE_ROUTE] = "routes[].",
		[HPX_PLACE_TARGET] = "targets.NAME.",
		[HPX_PLACE_WEBHOOK] = "webhooks.NAME.",
	};
	struct parts parts = split(path);
	struct hpx_suggestion here = { .narrow = true };
	struct hpx_suggestion there = { .narrow = true };
	const struct hpx_option *elsewhere = find_elsewhere(path, &there);

	out[0] = '\0';
	try_section(parts.section, parts.name, &here);
	/* The wrong place counts as one more wrong letter. */
	if (here.word.ptr != NULL &&
	    (elsewhere == NULL || here.distance <= there.distance + 1))
		snprintf(out, HPX_OPTION_PATH_SIZE, "%.*s%.*s", HPX_SPAN_ARG(parts.prefix),
			 HPX_SPAN_ARG(here.word));
	else if (elsewhere != NULL)
		snprintf(out, HPX_OPTION_PATH_SIZE, "%s%s", prefixes[elsewhere->place],
			 elsewhere->name);
}
