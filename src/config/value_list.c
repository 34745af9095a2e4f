/* Reading lists. A list replaces what was there before, the empty one too. */
#include "config/value_list.h"

#include <stdlib.h>

#include "config/member.h"
#include "config/value_outside.h"
#include "http/field.h"
#include "http/origin.h"
#include "settings/settings.h"

/* Proxies are few; a request looks through all of them. */
#define NETWORKS_MAX 256
#define SHOWN 60
#define SHOW(text) HPX_SPAN_ARG(hpx_span_first((text), SHOWN))

static enum hpx_status check_header(struct hpx_span *item, struct hpx_arena *arena,
				    char *problem)
{
	if (!hpx_is_token(*item))
		return hpx_value_refuse(problem, "\"%.*s\" is no name of a header",
					SHOW(*item));
	char *lower = hpx_arena_alloc(arena, item->len);
	if (lower == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < item->len; i++) {
		char c = item->ptr[i];
		lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	*item = hpx_span(lower, item->len);
	return HPX_OK;
}

bool hpx_value_is_pointer(struct hpx_span text)
{
	bool good = text.len > 1 && text.ptr[0] == '/';

	for (size_t i = 0; i < text.len && good; i++)
		if (text.ptr[i] == '~')
			good = i + 1 < text.len &&
			       (text.ptr[i + 1] == '0' || text.ptr[i + 1] == '1');
	return good;
}

/* "" would be the whole body: then nothing would tell two requests apart. */
static enum hpx_status check_pointer(struct hpx_span *item, struct hpx_arena *arena,
				     char *problem)
{
	if (!hpx_value_is_pointer(*item))
		return hpx_value_refuse(
			problem,
			"\"%.*s\" is no JSON pointer to a member: write e.g. "
			"/metadata/sent_at, with ~1 for / and ~0 for ~ in a name",
			SHOW(*item));
	*item = hpx_arena_dup(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status check_origin(struct hpx_span *item, struct hpx_arena *arena,
				    char *problem)
{
	const char *reason = "";

	if (!hpx_span_eq(*item, HPX_SPAN("*")) && !hpx_origin_valid(*item, &reason))
		return hpx_value_refuse(problem, "\"%.*s\" %s", SHOW(*item), reason);
	*item = hpx_arena_dup(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* How one of a list of texts is checked, and put into its form. */
static enum hpx_status check_text(enum hpx_option_kind kind, struct hpx_span *item,
				  struct hpx_arena *arena, char *problem)
{
	switch (kind) {
	case HPX_OPTION_HEADERS:
		return check_header(item, arena, problem);
	case HPX_OPTION_ORIGINS:
		return check_origin(item, arena, problem);
	default:
		return check_pointer(item, arena, problem);
	}
}

static int compare(const void *a, const void *b)
{
	const struct hpx_span *left = a;
	const struct hpx_span *right = b;

	return hpx_span_cmp(*left, *right);
}

static enum hpx_status read_texts(const struct hpx_option *option,
				  const struct hpx_span *items, size_t count,
				  struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_span *list = hpx_arena_zalloc(arena, count, sizeof(*list));

	if (count > HPX_RECIPE_LIST_MAX)
		return hpx_value_refuse(problem, "has %zu elements; at most %d", count,
					HPX_RECIPE_LIST_MAX);
	if (list == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++) {
		list[i] = items[i];
		enum hpx_status status = check_text(option->kind, &list[i], arena, problem);
		if (status != HPX_OK)
			return status;
	}
	qsort(list, count, sizeof(*list), compare);
	for (size_t i = 1; i < count; i++)
		if (hpx_span_eq(list[i - 1], list[i]))
			return hpx_value_refuse(problem, "names \"%.*s\" twice",
						SHOW(list[i]));
	*(const struct hpx_span **)hpx_option_member(option, base) = list;
	*hpx_option_list_count(option, base) = count;
	return HPX_OK;
}

static enum hpx_status read_networks(const struct hpx_option *option,
				     const struct hpx_span *items, size_t count,
				     struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_network *list = hpx_arena_zalloc(arena, count, sizeof(*list));

	if (count > NETWORKS_MAX)
		return hpx_value_refuse(problem, "has %zu elements; at most %d", count,
					NETWORKS_MAX);
	if (list == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++)
		if (!hpx_network_parse(items[i], &list[i]))
			return hpx_value_refuse(
				problem,
				"\"%.*s\" is no address or network: write e.g. "
				"10.0.0.0/8, 192.0.2.7 or \"::1\"",
				SHOW(items[i]));
	*(const struct hpx_network **)hpx_option_member(option, base) = list;
	*hpx_option_list_count(option, base) = count;
	return HPX_OK;
}

enum hpx_status hpx_value_read_list(const struct hpx_option *option,
				    const struct hpx_span *items, size_t count,
				    struct hpx_arena *arena, void *base,
				    char problem[HPX_VALUE_PROBLEM_SIZE])
{
	if (option->kind == HPX_OPTION_NETWORKS)
		return read_networks(option, items, count, arena, base, problem);
	if (option->kind == HPX_OPTION_MATCHES || option->kind == HPX_OPTION_WORDS)
		return hpx_value_read_matches(option, items, count, arena, base, problem);
	return read_texts(option, items, count, arena, base, problem);
}
