/* Reads one value by the kind of its option: numbers, choices, addresses, names,
 * and lists. Values about external services are in option_value_service.c. A
 * message says what was given and what would be right. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "config/option_parse.h"
#include "config/suggestion.h"
#include "core/json.h"
#include "http/cors.h"
#include "http/field.h"
#include "settings/settings.h"
#include "store/store.h"

#define TEXT_MAX 255
#define LIST_TEXT_MAX 255
/* Proxies are few; a request looks through all of them. */
#define NETWORKS_MAX 256
/* Of a rate and of its burst: a burst of so many hours fits into microseconds. */
#define RATE_MAX 1000000
/* A fraction is kept in millionths. */
#define FRACTION_DIGITS 6

enum hpx_status hpx_value_refuse(char problem[HPX_VALUE_PROBLEM_SIZE], const char *format,
				 ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(problem, HPX_VALUE_PROBLEM_SIZE, format, args);
	va_end(args);
	return HPX_INVALID;
}

void hpx_option_put_number(const struct hpx_option *option, void *base, uint64_t value)
{
	bool bit = value != 0;
	uint32_t word = (uint32_t)value;
	void *member = hpx_option_member(option, base);

	HPX_ASSERT(option->width == 1 || option->width == 4 || option->width == 8);
	if (option->width == 1)
		memcpy(member, &bit, sizeof(bit));
	else if (option->width == 4)
		memcpy(member, &word, sizeof(word));
	else
		memcpy(member, &value, sizeof(value));
}

uint64_t hpx_option_get_number(const struct hpx_option *option, const void *base)
{
	const char *member = (const char *)base + option->offset;
	bool bit;
	uint32_t word;
	uint64_t value;

	if (option->width == 1) {
		memcpy(&bit, member, sizeof(bit));
		return bit;
	}
	if (option->width == 4) {
		memcpy(&word, member, sizeof(word));
		return word;
	}
	memcpy(&value, member, sizeof(value));
	return value;
}

enum hpx_status hpx_option_put_text(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base)
{
	struct hpx_span copy = hpx_arena_dup(arena, text);

	if (copy.ptr == NULL)
		return HPX_NOMEM;
	*(struct hpx_span *)hpx_option_member(option, base) = copy;
	return HPX_OK;
}

static enum hpx_status read_text(const struct hpx_option *option, struct hpx_span text,
				 struct hpx_arena *arena, void *base, char *problem)
{
	if (text.len == 0 || text.len > TEXT_MAX)
		return hpx_value_refuse(problem, "must have 1 to %d characters", TEXT_MAX);
	return hpx_option_put_text(option, text, arena, base);
}

static enum hpx_status read_token(const struct hpx_option *option, struct hpx_span text,
				  struct hpx_arena *arena, void *base, char *problem)
{
	if (text.len > TEXT_MAX || !hpx_is_token(text))
		return hpx_value_refuse(
			problem,
			"\"%.*s\" is no name of a header or cookie: letters, "
			"digits and -_ without spaces, e.g. %s",
			HPX_VALUE_SHOW(text), option->example ? option->example : option->default_value);
	return hpx_option_put_text(option, text, arena, base);
}

/* A store's URL can carry a password: it is never shown. */
static enum hpx_status read_store(const struct hpx_option *option, struct hpx_span text,
				  struct hpx_arena *arena, void *base, char *problem)
{
	if (!hpx_store_url_valid(text))
		return hpx_value_refuse(
			problem, "is no store that this version knows: write sqlite:PATH, "
				 "e.g. sqlite:hapax.db, or postgres://user@host/database");
	return hpx_option_put_text(option, text, arena, base);
}

/* The problem says what would be right; a port alone is shown with its host. */
static enum hpx_status refuse_address(const struct hpx_option *option, struct hpx_span text,
				      const char *reason, char *problem)
{
	const char *example = option->default_value ? option->default_value : option->example;
	const char *off = option->off ? " or off" : "";
	uint64_t port;

	if (hpx_span_starts(text, HPX_SPAN(":")))
		text = hpx_span_skip(text, 1);
	if (option->kind == HPX_OPTION_ADDRESS && hpx_span_u64(text, UINT16_MAX, &port))
		return hpx_value_refuse(problem, "%s; write e.g. 127.0.0.1:%" PRIu64 "%s",
					reason, port, off);
	/* Not shown: somebody may have put a password into the URL. */
	return hpx_value_refuse(problem, "%s; write e.g. %s%s", reason, example, off);
}

static enum hpx_status read_address(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem)
{
	bool off = option->off && hpx_span_eq(text, HPX_SPAN("off"));
	struct hpx_address address = { .port = 0 };
	const char *reason = "";
	enum hpx_status status = HPX_OK;
	(void)arena;

	if (option->kind == HPX_OPTION_UPSTREAM)
		status = hpx_address_parse_upstream(text, &address, &reason);
	else if (!off)
		status = hpx_address_parse(text, &address, &reason);
	if (status == HPX_INVALID)
		return refuse_address(option, text, reason, problem);
	if (status != HPX_OK)
		return status;
	*(struct hpx_address *)hpx_option_member(option, base) = address;
	if (option->off)
		*((bool *)base + option->companion_offset) = !off;
	return HPX_OK;
}

/* Without zeros at its end. */
static void print_fraction(uint64_t millionths, char out[HPX_UNIT_SIZE])
{
	snprintf(out, HPX_UNIT_SIZE, "%" PRIu64 ".%06" PRIu64, millionths / HPX_MILLION,
		 millionths % HPX_MILLION);
	for (size_t n = strlen(out); out[n - 1] == '0' || out[n - 1] == '.'; n--) {
		bool point = out[n - 1] == '.';
		out[n - 1] = '\0';
		if (point)
			break;
	}
}

static void print_number(const struct hpx_option *option, uint64_t value,
			 char out[HPX_UNIT_SIZE])
{
	if (option->kind == HPX_OPTION_DURATION)
		hpx_duration_print(value, out);
	else if (option->kind == HPX_OPTION_SIZE)
		hpx_size_print(value, out);
	else if (option->kind == HPX_OPTION_FRACTION)
		print_fraction(value, out);
	else
		snprintf(out, HPX_UNIT_SIZE, "%" PRIu64, value);
}

static enum hpx_status put_number(const struct hpx_option *option, struct hpx_span text,
				  uint64_t value, void *base, char *problem)
{
	char bound[HPX_UNIT_SIZE];

	HPX_ASSERT(option->min <= option->max);
	if (value < option->min || value > option->max) {
		bool small = value < option->min;
		print_number(option, small ? option->min : option->max, bound);
		return hpx_value_refuse(problem, "\"%.*s\" is too %s: at %s %s", HPX_VALUE_SHOW(text),
					small ? "small" : "large", small ? "least" : "most",
					bound);
	}
	hpx_option_put_number(option, base, value);
	return HPX_OK;
}

static enum hpx_status read_duration(const struct hpx_option *option, struct hpx_span text,
				     struct hpx_arena *arena, void *base, char *problem)
{
	uint64_t ms;
	(void)arena;

	if (!hpx_duration_parse(text, &ms))
		return hpx_value_refuse(
			problem,
			"\"%.*s\" is no duration: write a whole number and its "
			"unit, e.g. 250ms, 10s, 2m, 24h or 7d",
			HPX_VALUE_SHOW(text));
	return put_number(option, text, ms, base, problem);
}

static enum hpx_status read_size(const struct hpx_option *option, struct hpx_span text,
				 struct hpx_arena *arena, void *base, char *problem)
{
	uint64_t bytes;
	(void)arena;

	if (!hpx_size_parse(text, &bytes))
		return hpx_value_refuse(
			problem,
			"\"%.*s\" is no size: write a whole number of bytes, or "
			"with a unit, e.g. 512, 32KiB, 1MiB or 1GiB",
			HPX_VALUE_SHOW(text));
	return put_number(option, text, bytes, base, problem);
}

static enum hpx_status read_count(const struct hpx_option *option, struct hpx_span text,
				  struct hpx_arena *arena, void *base, char *problem)
{
	uint64_t count;
	(void)arena;

	if (!hpx_span_u64(text, INT64_MAX, &count))
		return hpx_value_refuse(
			problem, "\"%.*s\" is no whole number from %" PRIu64 " to %" PRIu64,
			HPX_VALUE_SHOW(text), option->min, option->max);
	return put_number(option, text, count, base, problem);
}

/* "1", "0.25", "0.000001", kept in millionths. */
static enum hpx_status read_fraction(const struct hpx_option *option, struct hpx_span text,
				     struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_span digits;
	uint64_t whole, part = 0;
	(void)arena;

	bool good = hpx_span_split(&text, '.', &digits) && hpx_span_u64(digits, 1, &whole) &&
		    text.len <= FRACTION_DIGITS && (text.len == 0 || hpx_span_u64(text, UINT32_MAX, &part));
	for (size_t n = text.len; good && n < FRACTION_DIGITS; n++)
		part *= 10;
	if (!good || whole * HPX_MILLION + part > HPX_MILLION)
		return hpx_value_refuse(problem, "is no number from 0 to 1 with at most %d digits behind "
						 "the point; write e.g. %s",
					FRACTION_DIGITS, option->example);
	hpx_option_put_number(option, base, whole * HPX_MILLION + part);
	return HPX_OK;
}

/* "100/s", "6000/m", "100/s burst 500"; `off` is a count of 0. */
static enum hpx_status read_rate(const struct hpx_option *option, struct hpx_span text,
				 struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_rate *rate = hpx_option_member(option, base);
	size_t space = hpx_span_index(text, ' ');
	struct hpx_span words = hpx_span_first(text, space);
	size_t slash = hpx_span_index(words, '/');
	struct hpx_span unit = slash < words.len ? hpx_span_skip(words, slash + 1) : hpx_span("", 0);
	struct hpx_span rest = space < text.len ? hpx_span_skip(text, space) : hpx_span("", 0);
	uint64_t count, burst;
	(void)arena;

	if (hpx_span_eq(text, HPX_SPAN("off"))) {
		*rate = (struct hpx_rate){ .count = 0 };
		return HPX_OK;
	}
	bool good = hpx_span_u64(hpx_span_first(words, slash), RATE_MAX, &count) && count > 0 &&
		    unit.len == 1 && hpx_span_index(HPX_SPAN("smh"), unit.ptr[0]) < 3;
	burst = count;
	if (good && rest.len > 0)
		good = hpx_span_starts(rest, HPX_SPAN(" burst ")) &&
		       hpx_span_u64(hpx_span_skip(rest, 7), RATE_MAX, &burst) && burst > 0;
	if (!good)
		return hpx_value_refuse(problem,
					"\"%.*s\" is no rate: write e.g. 100/s, 6000/m, 100/s burst 500, or off; "
					"numbers from 1 to %d",
					HPX_VALUE_SHOW(text), RATE_MAX);
	*rate = (struct hpx_rate){ .count = (uint32_t)count,
				   .burst = (uint32_t)burst,
				   .period_ms = unit.ptr[0] == 's' ? 1000 : unit.ptr[0] == 'm' ? 60000 :
												 3600000 };
	return HPX_OK;
}

static enum hpx_status read_bool(const struct hpx_option *option, struct hpx_span text,
				 struct hpx_arena *arena, void *base, char *problem)
{
	static const char *const words[][2] = {
		{ "false", "true" },
		{ "no", "yes" },
		{ "off", "on" },
	};
	(void)arena;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (unsigned value = 0; value < 2; value++) {
			if (!hpx_span_eq(text, hpx_span_of(words[i][value])))
				continue;
			hpx_option_put_number(option, base, value);
			return HPX_OK;
		}
	}
	return hpx_value_refuse(problem, "\"%.*s\" is neither true nor false", HPX_VALUE_SHOW(text));
}

static enum hpx_status refuse_choice(const struct hpx_option *option, struct hpx_span text,
				     char *problem)
{
	HPX_ASSERT(option->choices != NULL && option->choices[0] != NULL);
	struct hpx_suggestion suggestion = { 0 };
	char names[HPX_VALUE_PROBLEM_SIZE / 2] = "";

	for (size_t i = 0; option->choices[i] != NULL; i++) {
		size_t len = strlen(names);
		hpx_suggestion_consider(&suggestion, text, hpx_span_of(option->choices[i]));
		snprintf(names + len, sizeof(names) - len, "%s%s", i > 0 ? ", " : "",
			 option->choices[i]);
	}
	if (suggestion.word.ptr != NULL)
		return hpx_value_refuse(problem,
					"\"%.*s\" is not one of %s; did you mean \"%.*s\"?",
					HPX_VALUE_SHOW(text), names, HPX_SPAN_ARG(suggestion.word));
	return hpx_value_refuse(problem, "\"%.*s\" is not one of %s", HPX_VALUE_SHOW(text), names);
}

static enum hpx_status read_choice(const struct hpx_option *option, struct hpx_span text,
				   struct hpx_arena *arena, void *base, char *problem)
{
	(void)arena;
	for (size_t i = 0; option->choices[i] != NULL; i++) {
		if (!hpx_span_eq(text, hpx_span_of(option->choices[i])))
			continue;
		hpx_option_put_number(option, base, i);
		return HPX_OK;
	}
	return refuse_choice(option, text, problem);
}

/* A set of choices: the bit 1 << i is choice i. */
static enum hpx_status read_choices(const struct hpx_option *option, const struct hpx_span *items,
				    size_t count, void *base, char *problem)
{
	uint64_t set = 0;

	for (size_t i = 0; i < count; i++) {
		size_t choice = 0;
		while (option->choices[choice] != NULL &&
		       !hpx_span_eq(items[i], hpx_span_of(option->choices[choice])))
			choice++;
		if (option->choices[choice] == NULL)
			return refuse_choice(option, items[i], problem);
		set |= UINT64_C(1) << choice;
	}
	hpx_option_put_number(option, base, set);
	return HPX_OK;
}

static enum hpx_status check_header(struct hpx_span *item, struct hpx_arena *arena,
				    char *problem)
{
	if (!hpx_is_token(*item))
		return hpx_value_refuse(problem, "\"%.*s\" is no name of a header",
					HPX_VALUE_SHOW(*item));
	*item = hpx_arena_lower(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

bool hpx_value_is_pointer(struct hpx_span text)
{
	return text.len > 1 && hpx_json_pointer_valid(text);
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
			HPX_VALUE_SHOW(*item));
	*item = hpx_arena_dup(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status check_origin(struct hpx_span *item, struct hpx_arena *arena,
				    char *problem)
{
	const char *reason = "";

	if (!hpx_span_eq(*item, HPX_SPAN("*")) && !hpx_origin_valid(*item, &reason))
		return hpx_value_refuse(problem, "\"%.*s\" %s", HPX_VALUE_SHOW(*item), reason);
	*item = hpx_arena_dup(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status check_field(struct hpx_span *item, struct hpx_arena *arena, char *problem)
{
	if (!hpx_answer_header_valid(*item))
		return hpx_value_refuse(problem,
					"\"%.*s\" is no header: write \"Name: value\", where {/pointer} "
					"stands for a value of the object, or a name alone",
					HPX_VALUE_SHOW(*item));
	if (!hpx_field_name_is_kept(hpx_span_first(*item, hpx_span_index(*item, ':'))))
		return hpx_value_refuse(problem, "\"%.*s\" is a header that no stored answer has",
					HPX_VALUE_SHOW(*item));
	*item = hpx_arena_dup(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status check_plain_text(struct hpx_span *item, struct hpx_arena *arena,
					char *problem)
{
	if (item->len == 0 || item->len > LIST_TEXT_MAX || !hpx_utf8_valid(*item))
		return hpx_value_refuse(problem, "has an element that is empty, longer than %d bytes, "
						 "or not UTF-8",
					LIST_TEXT_MAX);
	*item = hpx_arena_dup(arena, *item);
	return item->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* Checks one element of a list, and brings it into its form. */
static enum hpx_status check_text(enum hpx_option_kind kind, struct hpx_span *item,
				  struct hpx_arena *arena, char *problem)
{
	switch (kind) {
	case HPX_OPTION_HEADERS:
		return check_header(item, arena, problem);
	case HPX_OPTION_ORIGINS:
		return check_origin(item, arena, problem);
	case HPX_OPTION_FIELDS:
		return check_field(item, arena, problem);
	case HPX_OPTION_TEXTS:
		return check_plain_text(item, arena, problem);
	default:
		return check_pointer(item, arena, problem);
	}
}

static int compare_spans(const void *a, const void *b)
{
	const struct hpx_span *left = a;
	const struct hpx_span *right = b;

	return hpx_span_cmp(*left, *right);
}

static void put_count(const struct hpx_option *option, void *base, size_t count)
{
	memcpy((char *)base + option->companion_offset, &count, sizeof(count));
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
	qsort(list, count, sizeof(*list), compare_spans);
	for (size_t i = 1; i < count; i++)
		if (hpx_span_eq(list[i - 1], list[i]))
			return hpx_value_refuse(problem, "names \"%.*s\" twice",
						HPX_VALUE_SHOW(list[i]));
	*(const struct hpx_span **)hpx_option_member(option, base) = list;
	put_count(option, base, count);
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
				HPX_VALUE_SHOW(items[i]));
	*(const struct hpx_network **)hpx_option_member(option, base) = list;
	put_count(option, base, count);
	return HPX_OK;
}

static enum hpx_status read_list(const struct hpx_option *option,
				 const struct hpx_span *items, size_t count,
				 struct hpx_arena *arena, void *base,
				 char *problem)
{
	if (option->kind == HPX_OPTION_CHOICES)
		return read_choices(option, items, count, base, problem);
	if (option->kind == HPX_OPTION_FILES)
		return hpx_value_read_files(option, items, count, arena, base, problem);
	if (option->kind == HPX_OPTION_NETWORKS)
		return read_networks(option, items, count, arena, base, problem);
	if (option->kind == HPX_OPTION_MATCHES || option->kind == HPX_OPTION_WORDS)
		return hpx_value_read_matches(option, items, count, arena, base, problem);
	return read_texts(option, items, count, arena, base, problem);
}

static enum hpx_status (*const readers[])(const struct hpx_option *option,
					  struct hpx_span text, struct hpx_arena *arena,
					  void *base, char *problem) = {
	[HPX_OPTION_TEXT] = read_text,
	[HPX_OPTION_TOKEN] = read_token,
	[HPX_OPTION_PATTERN] = read_text,
	[HPX_OPTION_STORE] = read_store,
	[HPX_OPTION_ADDRESS] = read_address,
	[HPX_OPTION_UPSTREAM] = read_address,
	[HPX_OPTION_DURATION] = read_duration,
	[HPX_OPTION_SIZE] = read_size,
	[HPX_OPTION_COUNT] = read_count,
	[HPX_OPTION_RATE] = read_rate,
	[HPX_OPTION_FRACTION] = read_fraction,
	[HPX_OPTION_BOOL] = read_bool,
	[HPX_OPTION_CHOICE] = read_choice,
	[HPX_OPTION_NAME] = hpx_value_read_name,
	[HPX_OPTION_URL] = hpx_value_read_url,
	[HPX_OPTION_FILE] = hpx_value_read_file,
	[HPX_OPTION_VARIABLE] = hpx_value_read_variable,
	[HPX_OPTION_PROBE] = hpx_value_read_probe,
	[HPX_OPTION_POINTER] = hpx_value_read_pointer,
};

/* No value needs control characters. In an address or a name they would deceive a
 * person who reads the log. */
static bool has_control(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
			return true;
	return false;
}

enum hpx_status hpx_value_read(const struct hpx_option *option,
			       const struct hpx_span *items, size_t count,
			       struct hpx_arena *arena, void *base,
			       char problem[HPX_VALUE_PROBLEM_SIZE])
{
	HPX_ASSERT((option->read != NULL) ==
		   (option->kind == HPX_OPTION_CUSTOM || option->kind == HPX_OPTION_CUSTOM_LIST));
	if (option->read != NULL)
		return option->read(option, items, count, arena, base, problem);
	for (size_t i = 0; i < count; i++)
		if (has_control(items[i]))
			return hpx_value_refuse(problem, "has a control character");
	if (hpx_option_kind_is_list(option->kind))
		return read_list(option, items, count, arena, base, problem);
	return readers[option->kind](option, items[0], arena, base, problem);
}

void hpx_value_print(const struct hpx_option *option, const void *base,
		     char out[HPX_UNIT_SIZE])
{
	uint64_t value = hpx_option_get_number(option, base);

	HPX_ASSERT(!hpx_option_kind_is_list(option->kind));
	if (option->kind == HPX_OPTION_CHOICE)
		snprintf(out, HPX_UNIT_SIZE, "%s", option->choices[value]);
	else if (option->kind == HPX_OPTION_BOOL)
		snprintf(out, HPX_UNIT_SIZE, "%s", value ? "true" : "false");
	else
		print_number(option, value, out);
}
