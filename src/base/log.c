/* One line, one write(2). The format of a call, "op=%s reason=\"%s\"", says which fields there
 * are: they are found in the format and not in the text that it makes, so that nothing in an
 * argument can add one. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/span.h"
#include "base/status.h"

/* The text of the fields, and what escaping may make of it with the first three. */
#define TEXT_MAX_BYTES 1024
#define LINE_MAX_BYTES (2 * TEXT_MAX_BYTES + 256)
#define FIELDS_MAX 16
/* Around the values, while the text is made. */
#define VALUE_BEGIN '\001'
#define VALUE_END '\002'

/* The only process-wide variables: what a person asked to see, and how. */
static _Atomic int lowest_level = HPX_LOG_INFO;
static _Atomic int line_format = HPX_LOG_TEXT;

void hpx_log_set_level(enum hpx_log_level level)
{
	atomic_store(&lowest_level, (int)level);
}

void hpx_log_set_format(enum hpx_log_format format)
{
	atomic_store(&line_format, (int)format);
}

/* ---- the fields of a format ---- */

struct field {
	struct hpx_span name;
	bool quoted;
	bool number; /* by its conversion */
};

struct fields {
	struct field all[FIELDS_MAX];
	size_t count;
	char marked[TEXT_MAX_BYTES]; /* the format, with marks around the values */
};

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* False: the format is no list of fields, or a very long one. */
static bool find_fields(const char *format, struct fields *fields)
{
	struct hpx_span rest = hpx_span_of(format);
	size_t at = 0;

	fields->count = 0;
	while (rest.len > 0) {
		struct field *field = &fields->all[fields->count];
		size_t name = 0;

		while (name < rest.len && is_name_byte(rest.ptr[name]))
			name++;
		if (fields->count == FIELDS_MAX || name == 0 || name == rest.len || rest.ptr[name] != '=')
			return false;
		field->name = hpx_span_first(rest, name);
		rest = hpx_span_skip(rest, name + 1);
		field->quoted = rest.len > 0 && rest.ptr[0] == '"';
		rest = hpx_span_skip(rest, field->quoted ? 1 : 0);
		struct hpx_span value = hpx_span_first(rest, hpx_span_index(rest, field->quoted ? '"' : ' '));
		char last = value.len > 0 ? value.ptr[value.len - 1] : ' ';
		field->number = !field->quoted && value.len > 0 && value.ptr[0] == '%' && (last == 'd' || last == 'u');
		if (at + value.len + 3 > sizeof(fields->marked) || (field->quoted && value.len == rest.len))
			return false;
		fields->marked[at++] = VALUE_BEGIN;
		memcpy(fields->marked + at, value.ptr, value.len);
		at += value.len;
		fields->marked[at++] = VALUE_END;
		rest = hpx_span_skip(rest, value.len + (field->quoted ? 1 : 0));
		if (rest.len > 0 && rest.ptr[0] != ' ')
			return false;
		rest = hpx_span_skip(rest, rest.len > 0 ? 1 : 0);
		fields->count++;
	}
	fields->marked[at] = '\0';
	return true;
}

/* ---- the line ---- */

struct event_line {
	char bytes[LINE_MAX_BYTES];
	size_t len;
	bool json;
};

static void put(struct event_line *line, struct hpx_span text)
{
	size_t room = sizeof(line->bytes) - 3 - line->len;
	size_t len = text.len < room ? text.len : room;

	memcpy(line->bytes + line->len, text.ptr, len);
	line->len += len;
}

static void put_escaped(struct event_line *line, struct hpx_span text)
{
	while (text.len > 0) {
		size_t len = hpx_utf8_sequence(text);
		unsigned char first = (unsigned char)text.ptr[0];

		if (len == 0 || first < 0x20 || first == 0x7f) {
			put(line, HPX_SPAN("?"));
			len = 1;
		} else {
			if (first == '"' || first == '\\')
				put(line, HPX_SPAN("\\"));
			put(line, hpx_span_first(text, len));
		}
		text = hpx_span_skip(text, len);
	}
}

static bool is_number(struct hpx_span value)
{
	size_t digits = 0;

	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] >= '0' && value.ptr[i] <= '9')
			digits++;
		else if (i > 0 || value.ptr[i] != '-')
			return false;
	}
	return digits > 0;
}

static void put_field(struct event_line *line, const struct field *field, struct hpx_span value)
{
	bool number = line->json && field->number && is_number(value);
	bool quoted = line->json ? !number : field->quoted;

	if (line->len > 1)
		put(line, line->json ? HPX_SPAN(",") : HPX_SPAN(" "));
	if (line->json)
		put(line, HPX_SPAN("\""));
	put(line, field->name);
	put(line, line->json ? HPX_SPAN("\":") : HPX_SPAN("="));
	if (quoted)
		put(line, HPX_SPAN("\""));
	put_escaped(line, value);
	if (quoted)
		put(line, HPX_SPAN("\""));
}

static void put_plain(struct event_line *line, const char *name, const char *value)
{
	struct field field = { .name = hpx_span_of(name) };

	put_field(line, &field, hpx_span_of(value));
}

static size_t count_byte(struct hpx_span text, char byte)
{
	size_t count = 0;

	for (size_t i = 0; i < text.len; i++)
		count += text.ptr[i] == byte;
	return count;
}

/* The values between the marks. Text that was too long ends in the middle of one. */
static void put_fields(struct event_line *line, const struct fields *fields, struct hpx_span text)
{
	for (size_t i = 0; i < fields->count && text.len > 0; i++) {
		struct hpx_span value = hpx_span_skip(text, 1);
		size_t end = hpx_span_index(value, VALUE_END);

		put_field(line, &fields->all[i], hpx_span_first(value, end));
		text = hpx_span_skip(value, end < value.len ? end + 1 : end);
	}
}

/* Prints the fields; where a mark is in an argument too, or the format is no list of fields,
 * the text is one field. */
static void put_text(struct event_line *line, const char *format, va_list args)
{
	static const struct field whole = { .name = HPX_SPAN_INIT("text"), .quoted = true };
	struct fields fields;
	char text[TEXT_MAX_BYTES];
	bool found = find_fields(format, &fields);
	int n = vsnprintf(text, sizeof(text), found ? fields.marked : format, args);
	struct hpx_span made = hpx_span(text, n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n :
										     sizeof(text) - 1);

	if (found && count_byte(made, VALUE_BEGIN) <= fields.count &&
	    count_byte(made, VALUE_END) <= fields.count)
		put_fields(line, &fields, made);
	else
		put_field(line, &whole, made);
}

void hpx_log(enum hpx_log_level level, const char *event, const char *format, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	struct event_line line;
	char when[HPX_RFC3339_SIZE];

	if ((int)level < atomic_load_explicit(&lowest_level, memory_order_relaxed))
		return;
	line.len = 0;
	line.json = atomic_load_explicit(&line_format, memory_order_relaxed) == HPX_LOG_JSON;
	hpx_clock_rfc3339(hpx_clock_wall_ms(), when);
	if (line.json)
		put(&line, HPX_SPAN("{"));
	put_plain(&line, "time", when);
	put_plain(&line, "level", names[level]);
	put_plain(&line, "event", event);
	va_list args;
	va_start(args, format);
	put_text(&line, format, args);
	va_end(args);
	if (line.json)
		line.bytes[line.len++] = '}';
	line.bytes[line.len++] = '\n';
	/* Nobody is left to tell when standard error is gone. */
	ssize_t ignored = write(STDERR_FILENO, line.bytes, line.len);
	(void)ignored;
}
