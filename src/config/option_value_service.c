/* Reads values about external services: URLs, probes, and what their answers
 * mean. A URL is never shown: somebody may have put a password into it. */
#include <stdio.h>

#include "base/status.h"
#include "config/option_parse.h"
#include "settings/external_service.h"

#define URL_MAX 1024
#define FILE_MAX 1024
#define PROBE_MAX 1024
#define VARIABLE_MAX 255
#define POINTER_MAX 255
/* Each answer is compared with all of them. */
#define SIGNS_MAX 64
#define WORD_MAX 255

static enum hpx_status put_string(const struct hpx_option *option, struct hpx_span text,
				  struct hpx_arena *arena, void *base)
{
	struct hpx_span copy = hpx_arena_dup(arena, text);

	if (copy.ptr == NULL)
		return HPX_NOMEM;
	*(const char **)hpx_option_member(option, base) = copy.ptr;
	return HPX_OK;
}

static bool is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool hpx_value_is_name(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_lower(text.ptr[i]) && text.ptr[i] != '-')
			return false;
	return text.len > 0 && text.len <= HPX_VALUE_NAME_MAX;
}

enum hpx_status hpx_value_read_name(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem)
{
	if (!hpx_value_is_name(text))
		return hpx_value_refuse(problem,
					"\"%.*s\" is no name: 1 to %d of a-z, 0-9, _ and -",
					HPX_VALUE_SHOW(text), HPX_VALUE_NAME_MAX);
	return hpx_option_put_text(option, text, arena, base);
}

enum hpx_status hpx_value_read_file(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem)
{
	if (text.len == 0 || text.len > FILE_MAX)
		return hpx_value_refuse(problem, "must have 1 to %d characters", FILE_MAX);
	return put_string(option, text, arena, base);
}

/* A listener has few names. */
#define FILES_MAX 64

enum hpx_status hpx_value_read_files(const struct hpx_option *option, const struct hpx_span *items,
				     size_t count, struct hpx_arena *arena, void *base,
				     char *problem)
{
	const char **files = hpx_arena_zalloc(arena, count, sizeof(*files));

	if (count > FILES_MAX)
		return hpx_value_refuse(problem, "has %zu elements; at most %d", count, FILES_MAX);
	if (files == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++) {
		if (items[i].len == 0 || items[i].len > FILE_MAX)
			return hpx_value_refuse(problem, "must have 1 to %d characters", FILE_MAX);
		files[i] = hpx_arena_dup(arena, items[i]).ptr;
		if (files[i] == NULL)
			return HPX_NOMEM;
	}
	*(const char *const **)hpx_option_member(option, base) = files;
	memcpy((char *)base + option->companion_offset, &count, sizeof(count));
	return HPX_OK;
}

/* Not shown: somebody may have written the secret itself here. */
enum hpx_status hpx_value_read_variable(const struct hpx_option *option,
					struct hpx_span text, struct hpx_arena *arena,
					void *base, char *problem)
{
	bool good = text.len > 0 && text.len <= VARIABLE_MAX &&
		    !(text.ptr[0] >= '0' && text.ptr[0] <= '9');

	for (size_t i = 0; i < text.len && good; i++)
		good = is_lower(text.ptr[i]) || (text.ptr[i] >= 'A' && text.ptr[i] <= 'Z');
	if (!good)
		return hpx_value_refuse(problem,
					"is no name of a variable: letters, digits and _, "
					"e.g. %s; the secret itself never stands here",
					option->example);
	return hpx_option_put_text(option, text, arena, base);
}

enum hpx_status hpx_value_read_pointer(const struct hpx_option *option,
				       struct hpx_span text, struct hpx_arena *arena,
				       void *base, char *problem)
{
	if (text.len > POINTER_MAX || !hpx_value_is_pointer(text))
		return hpx_value_refuse(
			problem,
			"\"%.*s\" is no JSON pointer to a member: write e.g. %s, with ~1 "
			"for / and ~0 for ~ in a name",
			HPX_VALUE_SHOW(text), option->example);
	return hpx_option_put_text(option, text, arena, base);
}

/* Visible ASCII without those that a URL's path or query writes as %XX. */
static bool is_visible(struct hpx_span text, const char *without)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] <= ' ' || text.ptr[i] > '~' ||
		    strchr(without, text.ptr[i]) != NULL)
			return false;
	return true;
}

/* Host and port follow the rules of an upstream. */
const char *hpx_value_url_problem(struct hpx_span text)
{
	struct hpx_span schemes[] = { HPX_SPAN("https://"), HPX_SPAN("http://") };
	const char *reason = NULL;
	struct hpx_address address;
	char upstream[sizeof(address.text)];
	size_t i = 0;

	while (i < 2 && !hpx_span_istarts(text, schemes[i]))
		i++;
	if (i == 2)
		return "begins with neither https:// nor http://";
	struct hpx_span rest = hpx_span_skip(text, schemes[i].len);
	size_t slash = hpx_span_index(rest, '/');
	struct hpx_span authority = hpx_span_first(rest, slash);
	if (hpx_span_index(authority, '@') < authority.len)
		return "has a credential in it; give that by a file or by the environment";
	if (hpx_span_index(rest, '?') < rest.len || hpx_span_index(rest, '#') < rest.len)
		return "has a query or a fragment; leave it out";
	if (!is_visible(hpx_span_skip(rest, slash), "\"<>\\^`{|}") || text.len > URL_MAX)
		return "has a path with bytes that must be written as %XX, or is too long";
	int len = snprintf(upstream, sizeof(upstream), "http://%.*s", HPX_SPAN_ARG(authority));
	if (len < 0 || (size_t)len >= sizeof(upstream))
		return "has a host that is too long";
	if (hpx_address_parse_upstream(hpx_span_of(upstream), &address, &reason) != HPX_OK)
		return reason;
	return NULL;
}

enum hpx_status hpx_value_read_url(const struct hpx_option *option, struct hpx_span text,
				   struct hpx_arena *arena, void *base, char *problem)
{
	const char *reason = hpx_value_url_problem(text);

	if (reason != NULL)
		return hpx_value_refuse(problem, "%s; write e.g. %s", reason, option->example);
	return put_string(option, text, arena, base);
}

struct hpx_span hpx_value_probe_word(struct hpx_span get, size_t n)
{
	struct hpx_span rest = get;
	struct hpx_span before;

	while (hpx_span_split(&rest, '{', &before)) {
		size_t close = hpx_span_index(rest, '}');
		if (close == rest.len)
			break;
		if (n-- == 0)
			return hpx_span_first(rest, close);
	}
	return (struct hpx_span){ NULL, 0 };
}

/* Whether every { begins one of the three words and every } ends one. */
static bool has_known_words(struct hpx_span get)
{
	static const struct hpx_span words[] = {
		HPX_SPAN_INIT("operation}"),
		HPX_SPAN_INIT("provider_id}"),
		HPX_SPAN_INIT("key}"),
	};

	for (size_t at = 0; at < get.len; at++) {
		struct hpx_span rest = hpx_span_skip(get, at + 1);
		size_t i = 0;
		if (get.ptr[at] == '}')
			return false;
		if (get.ptr[at] != '{')
			continue;
		while (i < 3 && !hpx_span_starts(rest, words[i]))
			i++;
		if (i == 3)
			return false;
		at += words[i].len;
	}
	return true;
}

enum hpx_status hpx_value_read_probe(const struct hpx_option *option, struct hpx_span text,
				     struct hpx_arena *arena, void *base, char *problem)
{
	if (text.len == 0 || text.len > PROBE_MAX || text.ptr[0] != '/' ||
	    !is_visible(text, "\"<>\\^`|#"))
		return hpx_value_refuse(problem,
					"\"%.*s\" is no path and query: it begins with /, and "
					"spaces and the like are %%XX, e.g. %s",
					HPX_VALUE_SHOW(text), option->example);
	if (!has_known_words(text))
		return hpx_value_refuse(problem,
					"\"%.*s\" has braces that are none of {operation}, "
					"{provider_id} and {key}; others are %%7B and %%7D",
					HPX_VALUE_SHOW(text));
	return hpx_option_put_text(option, text, arena, base);
}

/* A number of three digits; such a word cannot be listed, and nobody says
 * "404" in a body to mean another thing than the status. */
static bool is_status(struct hpx_span text)
{
	uint64_t number;

	return text.len == 3 && hpx_span_u64(text, 999, &number);
}

static enum hpx_status check_sign(struct hpx_span text, bool status, char *problem)
{
	uint64_t number;

	if (text.len == 0 || text.len > WORD_MAX)
		return hpx_value_refuse(problem, "has a word that does not have 1 to %d "
						 "characters",
					WORD_MAX);
	if (status && (!hpx_span_u64(text, 599, &number) || number < 200))
		return hpx_value_refuse(problem, "\"%.*s\" is no status of an answer: 200 to "
						 "599",
					HPX_VALUE_SHOW(text));
	return HPX_OK;
}

static bool is_twice(const struct hpx_span *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (hpx_span_eq(items[i], items[n]))
			return true;
	return false;
}

enum hpx_status hpx_value_read_matches(const struct hpx_option *option,
				       const struct hpx_span *items, size_t count,
				       struct hpx_arena *arena, void *base, char *problem)
{
	unsigned *statuses = hpx_arena_zalloc(arena, count, sizeof(*statuses));
	struct hpx_span *values = hpx_arena_zalloc(arena, count, sizeof(*values));
	struct hpx_ruling_signs signs = { statuses, 0, values, 0 };
	uint64_t number = 0;

	if (count > SIGNS_MAX)
		return hpx_value_refuse(problem, "has %zu elements; at most %d", count,
					SIGNS_MAX);
	if (statuses == NULL || values == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++) {
		bool status = option->kind == HPX_OPTION_MATCHES && is_status(items[i]);
		enum hpx_status checked = check_sign(items[i], status, problem);
		if (checked != HPX_OK)
			return checked;
		if (is_twice(items, i))
			return hpx_value_refuse(problem, "names \"%.*s\" twice",
						HPX_VALUE_SHOW(items[i]));
		if (status && hpx_span_u64(items[i], 599, &number)) {
			statuses[signs.status_count++] = (unsigned)number;
			continue;
		}
		values[signs.value_count] = hpx_arena_dup(arena, items[i]);
		if (values[signs.value_count++].ptr == NULL)
			return HPX_NOMEM;
	}
	HPX_ASSERT(signs.status_count + signs.value_count == count);
	*(struct hpx_ruling_signs *)hpx_option_member(option, base) = signs;
	return HPX_OK;
}
