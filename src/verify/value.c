/* The values of a description, each read by its kind. */
#include <stdio.h>
#include <stdlib.h>

#include "config/suggestion.h"
#include "config/unit.h"
#include "core/json.h"
#include "http/field.h"
#include "http/octet.h"
#include "verify/reading.h"
#include "verify/row.h"
#include "verify/template.h"

/* How much of a given value is said again. */
#define SHOWN_MAX 80

/* What a value needs, in one place. */
struct value {
	struct hpx_spec_reading *reading;
	const struct hpx_verify_option *option;
	const struct hpx_spec_given *given;
	void *member;
	void *base;
};

static struct hpx_span text_of(const struct value *value)
{
	return value->given->items[0];
}

static enum hpx_status refuse(const struct value *value, const char *problem)
{
	hpx_spec_remark(value->reading, value->given, "%s", problem);
	return HPX_OK;
}

/* What was given, and what it should be. */
static enum hpx_status refuse_given(const struct value *value, const char *problem)
{
	hpx_spec_remark(value->reading, value->given, "\"%.*s\" %s",
			HPX_SPAN_ARG(hpx_span_first(text_of(value), SHOWN_MAX)), problem);
	return HPX_OK;
}

static enum hpx_status put_text(const struct value *value, struct hpx_span text)
{
	struct hpx_span copy = hpx_arena_dup(&value->reading->spec->arena, text);

	if (copy.ptr == NULL)
		return HPX_NOMEM;
	*(struct hpx_span *)value->member = copy;
	return HPX_OK;
}

/* ---- one value ---- */

static enum hpx_status read_url(const struct value *value)
{
	struct hpx_spec_reading *reading = value->reading;
	struct hpx_verify_spec *spec = reading->spec;
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];
	const char *reason;

	if (hpx_verify_url_parse(text_of(value), &reading->url, &reason) != HPX_OK)
		return refuse(value, reason);
	if (hpx_template_check(reading->url.path, HPX_TEMPLATE_PATH, problem) != HPX_OK)
		return refuse(value, problem);
	reading->has_url = true;
	spec->tls = reading->url.tls;
	spec->port = reading->url.port;
	spec->host = hpx_arena_dup(&spec->arena, hpx_span_of(reading->url.host));
	spec->requests[HPX_REQUEST_main].path = hpx_arena_dup(&spec->arena, reading->url.path);
	return spec->host.ptr != NULL && spec->requests[HPX_REQUEST_main].path.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status read_path(const struct value *value)
{
	struct hpx_spec_reading *reading = value->reading;
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];
	struct hpx_span path;
	const char *reason;

	/* Without a URL that was said already, and nothing can be compared. */
	if (!reading->has_url)
		return HPX_OK;
	if (hpx_verify_path_parse(text_of(value), &reading->url, &path, &reason) != HPX_OK)
		return refuse_given(value, reason);
	if (hpx_template_check(path, HPX_TEMPLATE_PATH, problem) != HPX_OK)
		return refuse(value, problem);
	return put_text(value, path);
}

static enum hpx_status read_method(const struct value *value)
{
	if (!hpx_is_token(text_of(value)) || hpx_span_ieq(text_of(value), HPX_SPAN("CONNECT")))
		return refuse_given(value, "is no method that can be sent; POST, PUT, PATCH, DELETE");
	return put_text(value, text_of(value));
}

static enum hpx_status read_body(const struct value *value)
{
	struct hpx_span text = text_of(value);
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];
	const char *reason;

	if (text.len > 0 && text.ptr[0] == '@') {
		struct hpx_span folder = value->given->by_flag ? HPX_SPAN("") : value->reading->folder;
		enum hpx_status status =
			hpx_spec_file(folder, hpx_span_skip(text, 1), HPX_VERIFY_BODY_MAX,
				      &value->reading->spec->arena, &text, &reason);
		if (status == HPX_INVALID)
			return refuse_given(value, reason);
		if (status != HPX_OK)
			return status;
	}
	if (hpx_template_check(text, HPX_TEMPLATE_BODY, problem) != HPX_OK)
		return refuse(value, problem);
	return put_text(value, text);
}

static enum hpx_status read_pointer(const struct value *value)
{
	struct hpx_span text = text_of(value);

	if (hpx_json_pointer_valid(text))
		return put_text(value, text);
	if (text.ptr[0] == '/')
		return refuse_given(value, "is no JSON pointer: \"~\" is written ~0 there");
	hpx_spec_remark(value->reading, value->given,
			"\"%.*s\" is no JSON pointer; write \"/%.*s\" for the member of that name",
			HPX_SPAN_ARG(hpx_span_first(text, SHOWN_MAX)),
			HPX_SPAN_ARG(hpx_span_first(text, SHOWN_MAX)));
	return HPX_OK;
}

static enum hpx_status read_name(const struct value *value)
{
	if (!hpx_is_token(text_of(value)))
		return refuse_given(value, "is no name of a header");
	return put_text(value, text_of(value));
}

static enum hpx_status read_text(const struct value *value)
{
	struct hpx_span text = text_of(value);

	if (text.len == 0 || hpx_span_index(text, '\0') < text.len)
		return refuse(value, "is empty");
	return put_text(value, text);
}

static enum hpx_status read_file_name(const struct value *value)
{
	struct hpx_span text = text_of(value), folder = value->reading->folder;

	if (value->given->by_flag || folder.len == 0 || text.len == 0 || text.ptr[0] == '/')
		return read_text(value);
	struct hpx_span path = hpx_arena_printf(&value->reading->spec->arena, "%.*s/%.*s",
						HPX_SPAN_ARG(folder), HPX_SPAN_ARG(text));
	*(struct hpx_span *)value->member = path;
	return path.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status read_dialect(const struct value *value)
{
	static const struct hpx_span words[] = { [HPX_DIALECT_AUTO] = HPX_SPAN_INIT("auto"),
						 [HPX_DIALECT_IETF] = HPX_SPAN_INIT("ietf"),
						 [HPX_DIALECT_STRIPE] = HPX_SPAN_INIT("stripe") };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!hpx_span_eq(text_of(value), words[i]))
			continue;
		*(enum hpx_dialect *)value->member = (enum hpx_dialect)i;
		return HPX_OK;
	}
	return refuse_given(value, "is no dialect; there are auto, ietf and stripe");
}

static enum hpx_status read_count(const struct value *value)
{
	const struct hpx_verify_option *option = value->option;
	uint64_t number;

	if (!hpx_span_u64(text_of(value), option->max, &number) || number < option->min) {
		hpx_spec_remark(value->reading, value->given,
				"\"%.*s\" is not a whole number from %llu to %llu",
				HPX_SPAN_ARG(hpx_span_first(text_of(value), SHOWN_MAX)),
				(unsigned long long)option->min, (unsigned long long)option->max);
		return HPX_OK;
	}
	*(uint64_t *)value->member = number;
	return HPX_OK;
}

static enum hpx_status read_duration(const struct value *value)
{
	const struct hpx_verify_option *option = value->option;
	char min[HPX_UNIT_SIZE], max[HPX_UNIT_SIZE];
	uint64_t ms;

	if (!hpx_duration_parse(text_of(value), &ms) || ms < option->min || ms > option->max) {
		hpx_duration_print(option->min, min);
		hpx_duration_print(option->max, max);
		hpx_spec_remark(value->reading, value->given,
				"\"%.*s\" is not a duration from %s to %s, as 500ms, 30s or 5m",
				HPX_SPAN_ARG(hpx_span_first(text_of(value), SHOWN_MAX)), min, max);
		return HPX_OK;
	}
	*(uint64_t *)value->member = ms;
	return HPX_OK;
}

static enum hpx_status read_switch(const struct value *value)
{
	bool on = hpx_span_eq(text_of(value), HPX_SPAN("true")) ||
		  hpx_span_eq(text_of(value), HPX_SPAN("yes"));

	if (!on && !hpx_span_eq(text_of(value), HPX_SPAN("false")) &&
	    !hpx_span_eq(text_of(value), HPX_SPAN("no")))
		return refuse_given(value, "is neither true nor false");
	*(bool *)value->member = on;
	return HPX_OK;
}

/* ---- lists ---- */

/* What hapax writes itself, or what would change where a message ends. */
static bool is_ours(struct hpx_span name, struct hpx_span key_header)
{
	static const struct hpx_span names[] = {
		HPX_SPAN_INIT("Host"),
		HPX_SPAN_INIT("Content-Length"),
		HPX_SPAN_INIT("Connection"),
		HPX_SPAN_INIT("Transfer-Encoding"),
		HPX_SPAN_INIT("Expect"),
		HPX_SPAN_INIT("Upgrade"),
		HPX_SPAN_INIT("TE"),
		HPX_SPAN_INIT("Trailer"),
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (hpx_span_ieq(name, names[i]))
			return true;
	return hpx_span_ieq(name, key_header);
}

/* NULL: the line is good. */
static const char *line_problem(const struct value *value, struct hpx_span line,
				char problem[HPX_TEMPLATE_PROBLEM_SIZE])
{
	struct hpx_span name = hpx_spec_header_name(line);

	if (name.len == line.len)
		return "a header line is \"Name: value\"; this one has no colon";
	if (!hpx_is_token(name))
		return "a header line is \"Name: value\"; what stands before the colon is no name";
	if (!hpx_octet_all(line, HPX_OCTET_VALUE))
		return "a header line has no control bytes";
	if (is_ours(name, value->reading->spec->key_header))
		return "hapax writes Host, the key, the length and what concerns the "
		       "connection itself; leave that line out";
	if (hpx_template_check(line, HPX_TEMPLATE_HEADER, problem) != HPX_OK)
		return problem;
	return NULL;
}

/* By its name only, where it has one: the rest may be a secret. */
static void refuse_line(const struct value *value, struct hpx_span line, const char *reason)
{
	struct hpx_span name = hpx_spec_header_name(line);

	if (name.len < line.len && hpx_is_token(name))
		hpx_spec_remark(value->reading, value->given, "\"%.*s\": %s",
				HPX_SPAN_ARG(hpx_span_first(name, 40)), reason);
	else
		hpx_spec_remark(value->reading, value->given, "%s", reason);
}

static enum hpx_status read_lines(const struct value *value)
{
	size_t *count = (size_t *)(void *)((char *)value->base + value->option->count);
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];

	for (size_t i = 0; i < value->given->count; i++) {
		struct hpx_span line = hpx_span_trim(value->given->items[i]);
		const char *reason = line_problem(value, line, problem);

		if (reason != NULL) {
			refuse_line(value, line, reason);
			continue;
		}
		line = hpx_arena_dup(&value->reading->spec->arena, line);
		if (line.ptr == NULL)
			return HPX_NOMEM;
		if (!hpx_spec_header(value->member, count, line))
			return refuse(value, "has more than 64 lines");
	}
	return HPX_OK;
}

static void refuse_row(const struct value *value, struct hpx_span name)
{
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < hpx_row_count; i++)
		hpx_suggestion_consider(&suggestion, name, hpx_span_of(hpx_rows[i].name));
	if (suggestion.word.ptr != NULL)
		hpx_spec_remark(value->reading, value->given,
				"there is no row \"%.*s\"; did you mean \"%.*s\"?",
				HPX_SPAN_ARG(name), HPX_SPAN_ARG(suggestion.word));
	else
		hpx_spec_remark(value->reading, value->given,
				"there is no row \"%.*s\"; `hapax verify --list` names them",
				HPX_SPAN_ARG(name));
}

static enum hpx_status read_rows(const struct value *value)
{
	size_t *count = (size_t *)(void *)((char *)value->base + value->option->count);
	struct hpx_span *rows = value->member;

	*count = 0;
	for (size_t i = 0; i < value->given->count; i++) {
		struct hpx_span name = value->given->items[i];

		if (hpx_row_by_name(name) == NULL) {
			refuse_row(value, name);
			continue;
		}
		if (*count == HPX_VERIFY_HEADERS_MAX)
			return refuse(value, "has more than 64 rows");
		rows[*count] = hpx_arena_dup(&value->reading->spec->arena, name);
		if (rows[(*count)++].ptr == NULL)
			return HPX_NOMEM;
	}
	return HPX_OK;
}

enum hpx_status hpx_spec_value(struct hpx_spec_reading *reading,
			       const struct hpx_verify_option *option,
			       const struct hpx_spec_given *given, void *base)
{
	static enum hpx_status (*const readers[])(const struct value *value) = {
		[HPX_VERIFY_URL] = read_url,
		[HPX_VERIFY_METHOD] = read_method,
		[HPX_VERIFY_LINES] = read_lines,
		[HPX_VERIFY_BODY] = read_body,
		[HPX_VERIFY_POINTER] = read_pointer,
		[HPX_VERIFY_PATH] = read_path,
		[HPX_VERIFY_ROWS] = read_rows,
		[HPX_VERIFY_DIALECT] = read_dialect,
		[HPX_VERIFY_NAME] = read_name,
		[HPX_VERIFY_COUNT] = read_count,
		[HPX_VERIFY_DURATION] = read_duration,
		[HPX_VERIFY_TEXT] = read_text,
		[HPX_VERIFY_FILE] = read_file_name,
		[HPX_VERIFY_SWITCH] = read_switch,
	};
	const struct value value = { reading, option, given, (char *)base + option->offset, base };

	return given->count > 0 ? readers[option->kind](&value) : HPX_OK;
}
