/* `key_from`: a list of places, each as "header NAME", "body POINTER" or "query NAME", which
 * is how the reader of the file hands over {header: NAME}. */
#include "config/option_parse.h"
#include "config/parse_context.h"
#include "core/json.h"
#include "http/field.h"

static const struct hpx_span place_names[] = {
	[HPX_KEY_IN_HEADER] = HPX_SPAN_INIT("header"),
	[HPX_KEY_IN_BODY] = HPX_SPAN_INIT("body"),
	[HPX_KEY_IN_QUERY] = HPX_SPAN_INIT("query"),
};
#define PLACE_COUNT (sizeof(place_names) / sizeof(place_names[0]))

/* What is wrong with the name; NULL: nothing. */
static const char *fault_of(const struct hpx_key_source *source)
{
	switch (source->place) {
	case HPX_KEY_IN_HEADER:
		return hpx_is_token(source->name) && hpx_rule_is_key_header(source->name) ?
			       NULL :
			       "names a header that can carry no key";
	case HPX_KEY_IN_BODY:
		return source->name.len > 1 && hpx_json_pointer_valid(source->name) ?
			       NULL :
			       "names no member of the body: write a JSON pointer, {body: /idempotency_key}";
	default:
		return hpx_is_token(source->name) ? NULL : "names no query parameter";
	}
}

static enum hpx_status read_source(struct hpx_span text, struct hpx_arena *arena,
				   struct hpx_key_source *source, char *problem)
{
	size_t blank = hpx_span_index(text, ' ');
	struct hpx_span place = hpx_span_first(text, blank);
	size_t at = 0;

	while (at < PLACE_COUNT && !hpx_span_eq(place, place_names[at]))
		at++;
	if (at == PLACE_COUNT || blank == text.len)
		return hpx_value_refuse(problem, "is a list of {header: NAME}, {body: POINTER} and {query: NAME}");
	source->place = (enum hpx_key_place)at;
	source->name = hpx_arena_dup(arena, hpx_span_skip(text, blank + 1));
	if (source->name.ptr == NULL)
		return HPX_NOMEM;
	const char *fault = fault_of(source);
	return fault == NULL ? HPX_OK : hpx_value_refuse(problem, "%s", fault);
}

enum hpx_status hpx_key_sources_read(const struct hpx_option *option, const struct hpx_span *items,
				     size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_key_sources *sources = (struct hpx_key_sources *)((char *)base + option->offset);
	struct hpx_key_sources read = { .count = 0 };

	if (count > HPX_KEY_SOURCES_MAX)
		return hpx_value_refuse(problem, "has more than %d places", HPX_KEY_SOURCES_MAX);
	for (size_t i = 0; i < count; i++) {
		enum hpx_status status = read_source(items[i], arena, &read.at[i], problem);
		if (status != HPX_OK)
			return status;
		read.count++;
	}
	*sources = read;
	return HPX_OK;
}
