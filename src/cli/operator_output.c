/* How operator commands show things: ages, times, one line of a history, and text that
 * must not steer a terminal. */
#include <unistd.h>

#include "base/clock.h"
#include "base/span.h"
#include "base/status.h"
#include "cli/operator_command.h"

#define REQUEST_WIDTH_MAX 64

void hpx_operator_age(int64_t ms, char out[HPX_OPERATOR_AGE_SIZE])
{
	static const struct {
		int64_t ms;
		char unit;
	} units[] = { { 86400000, 'd' }, { 3600000, 'h' }, { 60000, 'm' } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ms >= 2 * units[i].ms) {
			snprintf(out, HPX_OPERATOR_AGE_SIZE, "%lld%c", (long long)(ms / units[i].ms),
				 units[i].unit);
			return;
		}
	}
	snprintf(out, HPX_OPERATOR_AGE_SIZE, "%llds", (long long)(ms > 0 ? ms / 1000 : 0));
}

void hpx_operator_print_text(struct hpx_span text, size_t width)
{
	hpx_operator_write_text(text, width, stdout);
}

void hpx_operator_write_text(struct hpx_span text, size_t width, FILE *to)
{
	struct hpx_span character;
	size_t columns = 0;
	bool printable;

	while ((width == 0 || columns < width) && hpx_utf8_next(&text, &character, &printable)) {
		fwrite(printable ? character.ptr : "?", 1, printable ? character.len : 1, to);
		columns++;
	}
	for (; columns < width; columns++)
		putc(' ', to);
}

size_t hpx_operator_clamp(size_t value, size_t least, size_t most)
{
	HPX_ASSERT(least <= most);
	if (value < least)
		return least;
	return value > most ? most : value;
}

void hpx_operator_print_time(const char *label, int64_t wall_ms)
{
	char when[HPX_RFC3339_SIZE];

	hpx_clock_rfc3339(wall_ms, when);
	printf("%-10s %s\n", label, when);
}

void hpx_operator_print_member(const char *label, struct hpx_span text)
{
	printf("%-10s ", label);
	hpx_operator_print_text(text, 0);
	putchar('\n');
}

void hpx_operator_print_event(const struct hpx_event *event)
{
	char when[HPX_RFC3339_SIZE];

	hpx_clock_rfc3339(event->at_ms, when);
	printf("  %-24s  attempt %u  ", when, event->attempt);
	hpx_operator_print_text(event->what, 0);
	if (event->status != 0)
		printf(" %u", event->status);
	if (event->actor.len > 0) {
		fputs(", by ", stdout);
		hpx_operator_print_text(event->actor, 0);
	}
	if (event->reason.len > 0) {
		fputs(": ", stdout);
		hpx_operator_print_text(event->reason, 0);
	}
	putchar('\n');
}

void hpx_operator_print_request(struct hpx_span method, struct hpx_span path, size_t width)
{
	/* A character of UTF-8 has at most four bytes. */
	char text[4 * REQUEST_WIDTH_MAX + 1];
	int n = snprintf(text, sizeof(text), "%.*s %.*s", HPX_SPAN_ARG(method), HPX_SPAN_ARG(path));

	HPX_ASSERT(width <= REQUEST_WIDTH_MAX);
	hpx_operator_print_text(hpx_span(text, hpx_operator_clamp((size_t)(n > 0 ? n : 0), 0,
								  sizeof(text) - 1)),
				width);
}

int hpx_operator_print_body(struct hpx_span body)
{
	if (!isatty(STDOUT_FILENO))
		return hpx_cli_write(body, stdout);
	for (size_t i = 0; i < body.len; i++) {
		unsigned char c = (unsigned char)body.ptr[i];

		if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f))
			putchar(c);
		else
			printf("\\x%02x", c);
	}
	return HPX_EXIT_OK;
}

/* ---- JSON ---- */

static void json_event(struct hpx_json_writer *json, const struct hpx_event *event)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_time(json, "at", event->at_ms);
	hpx_json_put_number(json, "attempt", event->attempt);
	hpx_json_put_string(json, "what", event->what);
	hpx_json_put_number(json, "status", event->status);
	hpx_json_put_string(json, "actor", event->actor);
	hpx_json_put_string(json, "reason", event->reason);
	hpx_json_end_object(json);
}

void hpx_operator_json_history(struct hpx_json_writer *json, const struct hpx_event *events,
			       size_t count)
{
	hpx_json_begin_array(json, "history");
	for (size_t i = 0; i < count; i++)
		json_event(json, &events[i]);
	hpx_json_end_array(json);
}

int hpx_operator_json_sign(const struct hpx_operator_command *command,
			   struct hpx_json_writer *json, const struct hpx_store_op *op)
{
	HPX_ASSERT(op->status == HPX_OK && op->actor.ptr != NULL);
	hpx_json_put_time(json, "at", hpx_clock_wall_ms());
	hpx_json_put_string(json, "actor", op->actor);
	hpx_json_put_string(json, "reason", op->reason);
	hpx_json_end_object(json);
	return hpx_cli_json_print(json, command->verb, "done, but the answer cannot be printed");
}
