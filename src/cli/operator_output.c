/* How things are shown: text that must not steer a terminal, ages, times, one
 * line of a history. */
#include <inttypes.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/operator_command.h"

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

/* What was stored came from clients: it must not steer the terminal. */
void hpx_operator_print_text(struct hpx_span text, size_t width)
{
	size_t columns = 0;

	while (text.len > 0 && (width == 0 || columns < width)) {
		size_t n = hpx_utf8_sequence(text);
		unsigned char c = (unsigned char)text.ptr[0];

		if (n > 1 && hpx_utf8_decode(text) >= 0xa0)
			fwrite(text.ptr, 1, n, stdout);
		else
			putchar(n == 1 && c >= 0x20 && c < 0x7f ? c : '?');
		text = hpx_span_skip(text, n > 0 ? n : 1);
		columns++;
	}
	for (; columns < width; columns++)
		putchar(' ');
}

size_t hpx_operator_clamp(size_t value, size_t least, size_t most)
{
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

/* "POST /payments", cut or filled to the width. */
void hpx_operator_print_request(struct hpx_span method, struct hpx_span path, size_t width)
{
	char text[4 * 64 + 1];
	int n = snprintf(text, sizeof(text), "%.*s %.*s", HPX_SPAN_ARG(method), HPX_SPAN_ARG(path));

	hpx_operator_print_text(hpx_span(text, hpx_operator_clamp((size_t)(n > 0 ? n : 0), 0,
								  sizeof(text) - 1)),
				width);
}

/* A stored body must not steer the terminal either. */
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

/* ---- JSON; every text goes through the one escaping function ---- */

static void put(struct hpx_operator_json *json, const char *text)
{
	if (json->status == HPX_OK)
		json->status = hpx_buffer_text(json->out, text);
}

void hpx_operator_json_open(struct hpx_operator_json *json, const char *bracket)
{
	put(json, bracket);
	json->first = true;
}

void hpx_operator_json_close(struct hpx_operator_json *json, const char *bracket)
{
	put(json, bracket);
	json->first = false;
}

static void put_string(struct hpx_operator_json *json, struct hpx_span text)
{
	put(json, "\"");
	if (json->status == HPX_OK)
		json->status = hpx_buffer_json(json->out, text);
	put(json, "\"");
}

void hpx_operator_json_name(struct hpx_operator_json *json, const char *name)
{
	if (!json->first)
		put(json, ",");
	json->first = false;
	if (name == NULL)
		return;
	put_string(json, hpx_span_of(name));
	put(json, ":");
}

void hpx_operator_json_text(struct hpx_operator_json *json, const char *name, struct hpx_span text)
{
	hpx_operator_json_name(json, name);
	put_string(json, text);
}

void hpx_operator_json_number(struct hpx_operator_json *json, const char *name, uint64_t number)
{
	hpx_operator_json_name(json, name);
	if (json->status == HPX_OK)
		json->status = hpx_buffer_printf(json->out, "%" PRIu64, number);
}

void hpx_operator_json_bool(struct hpx_operator_json *json, const char *name, bool value)
{
	hpx_operator_json_name(json, name);
	put(json, value ? "true" : "false");
}

void hpx_operator_json_time(struct hpx_operator_json *json, const char *name, int64_t wall_ms)
{
	char when[HPX_RFC3339_SIZE];

	hpx_operator_json_name(json, name);
	if (wall_ms == 0) {
		put(json, "null");
		return;
	}
	hpx_clock_rfc3339(wall_ms, when);
	put_string(json, hpx_span_of(when));
}

static void put_base64(struct hpx_operator_json *json, struct hpx_span bytes)
{
	struct hpx_buffer *out = json->out;
	size_t len = (bytes.len + 2) / 3 * 4;

	if (json->status == HPX_OK && bytes.len > INT32_MAX)
		json->status = HPX_TOO_LARGE;
	if (json->status == HPX_OK)
		json->status = hpx_buffer_reserve(out, len + 1);
	if (json->status != HPX_OK)
		return;
	/* It writes a terminator, which does not count. */
	EVP_EncodeBlock((unsigned char *)out->ptr + out->len, (const unsigned char *)bytes.ptr,
			(int)bytes.len);
	out->len += len;
}

void hpx_operator_json_bytes(struct hpx_operator_json *json, const char *name, struct hpx_span bytes)
{
	char coded[64];

	if (hpx_utf8_valid(bytes)) {
		hpx_operator_json_text(json, name, bytes);
		return;
	}
	snprintf(coded, sizeof(coded), "%s_base64", name);
	hpx_operator_json_name(json, coded);
	put(json, "\"");
	put_base64(json, bytes);
	put(json, "\"");
}

void hpx_operator_json_event(struct hpx_operator_json *json, const struct hpx_event *event)
{
	hpx_operator_json_name(json, NULL);
	hpx_operator_json_open(json, "{");
	hpx_operator_json_time(json, "at", event->at_ms);
	hpx_operator_json_number(json, "attempt", event->attempt);
	hpx_operator_json_text(json, "what", event->what);
	hpx_operator_json_number(json, "status", event->status);
	hpx_operator_json_text(json, "actor", event->actor);
	hpx_operator_json_text(json, "reason", event->reason);
	hpx_operator_json_close(json, "}");
}

int hpx_operator_json_sign(const struct hpx_operator_command *command, struct hpx_operator_json *json,
			   const struct hpx_store_op *op)
{
	hpx_operator_json_time(json, "at", hpx_clock_wall_ms());
	hpx_operator_json_text(json, "actor", op->actor);
	hpx_operator_json_text(json, "reason", op->reason);
	hpx_operator_json_close(json, "}\n");
	if (json->status == HPX_OK)
		return hpx_cli_write(hpx_buffer_span(json->out), stdout);
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "done, but the answer cannot be printed: %s",
				     hpx_status_text(json->status));
}
