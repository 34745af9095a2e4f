/* One line is one piece for whoever writes it. The format of a call, "op=%s reason=\"%s\"",
 * says which fields there are: they are found in the format and not in the text that it makes,
 * so that nothing in an argument can add one. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_writer.h"
#include "base/span.h"
#include "base/status.h"

#define TEXT_MAX_BYTES 1024
_Static_assert(HPX_LOG_LINE_MAX >= 2 * TEXT_MAX_BYTES + 256,
	       "room for the text of the fields, escaped, and for the first three");
#define FIELDS_MAX 16
/* Around the values, while the text is made. */
#define VALUE_BEGIN '\001'
#define VALUE_END '\002'

/* How long the lines before a failed assertion may take. */
#define ABORT_WAIT_MS 1000

/* The only process-wide variables: what a person asked to see, and how … */
static _Atomic int lowest_level = HPX_LOG_INFO;
static _Atomic int line_format = HPX_LOG_TEXT;
/* … and the thread that writes it; NULL: the caller writes. The lock is held while a line is
 * handed over, so that the thread does not end meanwhile. */
static pthread_mutex_t writer_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hpx_log_writer *writer;

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
	char bytes[HPX_LOG_LINE_MAX];
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

	if (found && hpx_span_count(made, VALUE_BEGIN) <= fields.count &&
	    hpx_span_count(made, VALUE_END) <= fields.count)
		put_fields(line, &fields, made);
	else
		put_field(line, &whole, made);
}

static void make_line(struct event_line *line, enum hpx_log_level level, const char *event,
		      const char *format, va_list args)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	char when[HPX_RFC3339_SIZE];

	line->len = 0;
	line->json = atomic_load_explicit(&line_format, memory_order_relaxed) == HPX_LOG_JSON;
	hpx_clock_rfc3339(hpx_clock_wall_ms(), when);
	if (line->json)
		put(line, HPX_SPAN("{"));
	put_plain(line, "time", when);
	put_plain(line, "level", names[level]);
	put_plain(line, "event", event);
	put_text(line, format, args);
	if (line->json)
		line->bytes[line->len++] = '}';
	line->bytes[line->len++] = '\n';
}

/* ---- who writes ---- */

/* False: there is no thread for it. */
static bool hand_over(struct hpx_span lines)
{
	pthread_mutex_lock(&writer_lock);
	bool handed = writer != NULL;
	if (handed)
		hpx_log_writer_add(writer, lines, hpx_span_count(lines, '\n'));
	pthread_mutex_unlock(&writer_lock);
	return handed;
}

void hpx_log_lines(struct hpx_span lines)
{
	if (hand_over(lines))
		return;
	/* Nobody is left to tell when standard error is gone. */
	ssize_t ignored = write(STDERR_FILENO, lines.ptr, lines.len);
	(void)ignored;
}

void hpx_log(enum hpx_log_level level, const char *event, const char *format, ...)
{
	struct event_line line;
	va_list args;

	if ((int)level < atomic_load_explicit(&lowest_level, memory_order_relaxed))
		return;
	va_start(args, format);
	make_line(&line, level, event, format, args);
	va_end(args);
	hpx_log_lines(hpx_span(line.bytes, line.len));
}

size_t hpx_log_print(char out[HPX_LOG_LINE_MAX], enum hpx_log_level level, const char *event,
		     const char *format, ...)
{
	struct event_line line;
	va_list args;

	va_start(args, format);
	make_line(&line, level, event, format, args);
	va_end(args);
	memcpy(out, line.bytes, line.len);
	return line.len;
}

void hpx_log_not_started(const char *program, const char *problem)
{
	char line[HPX_LOG_LINE_MAX];

	if (atomic_load_explicit(&line_format, memory_order_relaxed) == HPX_LOG_JSON) {
		hpx_log(HPX_LOG_ERROR, "not_started", "reason=\"%s\"", problem);
		return;
	}
	int n = snprintf(line, sizeof(line) - 1, "%s: %s", program, problem);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(line) - 1 ? (size_t)n :
								sizeof(line) - 2;
	line[len++] = '\n';
	hpx_log_lines(hpx_span(line, len));
}

/* ---- the thread that writes ---- */

/* The thread that failed may hold the lock itself, so it does not wait for it. */
static bool is_written(void)
{
	if (pthread_mutex_trylock(&writer_lock) != 0)
		return false;
	bool written = writer == NULL || hpx_log_writer_idle(writer);
	pthread_mutex_unlock(&writer_lock);
	return written;
}

static void write_before_abort(void)
{
	int64_t until_ms = hpx_clock_boot_ms() + ABORT_WAIT_MS;

	while (!is_written() && hpx_clock_boot_ms() < until_ms)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

enum hpx_status hpx_log_start_writer(void)
{
	struct hpx_log_writer *events;
	enum hpx_status status = hpx_log_writer_start_events(&events);

	if (status != HPX_OK)
		return status;
	pthread_mutex_lock(&writer_lock);
	HPX_ASSERT(writer == NULL);
	writer = events;
	pthread_mutex_unlock(&writer_lock);
	hpx_before_abort(write_before_abort);
	return HPX_OK;
}

void hpx_log_stop_writer(void)
{
	pthread_mutex_lock(&writer_lock);
	struct hpx_log_writer *events = writer;
	writer = NULL;
	pthread_mutex_unlock(&writer_lock);
	hpx_log_writer_stop(events);
}

uint64_t hpx_log_dropped(void)
{
	pthread_mutex_lock(&writer_lock);
	uint64_t dropped = writer != NULL ? hpx_log_writer_dropped(writer) : 0;
	pthread_mutex_unlock(&writer_lock);
	return dropped;
}
