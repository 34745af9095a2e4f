/* The access log: from a request to its line. One list of fields serves both formats for
 * programs; the line for a terminal is short and has its own order.
 *
 * Lines are printed into memory on the stack, by a pen that stops at its end, because
 * snprintf for eighteen fields would cost more than the rest of a replay. */
#include "gateway/access_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log_writer.h"
#include "gateway/steps.h"
#include "service/tracer.h"

/* What is shown of a method, and of a route's pattern. */
#define METHOD_SHOWN_MAX 16
#define ROUTE_SHOWN_MAX 256
/* Lines of a turn are handed over early when there are so many. */
#define TURN_BYTES ((size_t)16 << 10)

const char *hpx_did_name(enum hpx_did did)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_DID_LIST(X)
#undef X
	};

	return names[did];
}

/* ---- the pen ---- */

struct pen {
	bool json;
	bool any; /* a field stands before */
	size_t len;
	char bytes[HPX_LOG_LINE_MAX];
};

/* What does not fit is left out: with bounded fields everything does. */
static void put(struct pen *pen, struct hpx_span text)
{
	size_t room = sizeof(pen->bytes) - 1 - pen->len;
	size_t len = text.len < room ? text.len : room;

	memcpy(pen->bytes + pen->len, text.ptr, len);
	pen->len += len;
}

static void put_byte(struct pen *pen, char byte)
{
	put(pen, hpx_span(&byte, 1));
}

/* Nothing in it can end the value, the line, or a sequence of the terminal. */
static void put_escaped(struct pen *pen, struct hpx_span text)
{
	while (text.len > 0) {
		size_t len = hpx_utf8_sequence(text);
		unsigned char first = (unsigned char)text.ptr[0];

		if (len == 0 || first < 0x20 || first == 0x7f) {
			put_byte(pen, '?');
			len = 1;
		} else {
			if (first == '"' || first == '\\')
				put_byte(pen, '\\');
			put(pen, hpx_span_first(text, len));
		}
		text = hpx_span_skip(text, len);
	}
}

static void put_u64(struct pen *pen, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put(pen, hpx_span(digits + at, sizeof(digits) - at));
}

/* Milliseconds with three digits behind the point. */
static void put_ms(struct pen *pen, uint64_t us)
{
	char fraction[4] = { '.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10),
			     (char)('0' + us % 10) };

	put_u64(pen, us / 1000);
	put(pen, hpx_span(fraction, sizeof(fraction)));
}

/* ---- fields ---- */

static void put_name(struct pen *pen, struct hpx_span name)
{
	if (pen->any)
		put_byte(pen, pen->json ? ',' : ' ');
	pen->any = true;
	if (pen->json)
		put_byte(pen, '"');
	put(pen, name);
	put(pen, pen->json ? HPX_SPAN("\":") : HPX_SPAN("="));
}

/* `words`: the value may have blanks, so that text quotes it too. */
static void put_text(struct pen *pen, struct hpx_span name, struct hpx_span value, bool words)
{
	bool quoted = pen->json || words;

	if (value.len == 0)
		return;
	put_name(pen, name);
	if (quoted)
		put_byte(pen, '"');
	put_escaped(pen, value);
	if (quoted)
		put_byte(pen, '"');
}

static void put_number(struct pen *pen, struct hpx_span name, uint64_t value)
{
	put_name(pen, name);
	put_u64(pen, value);
}

static void put_time(struct pen *pen, struct hpx_span name, uint64_t us)
{
	if (us == HPX_ACCESS_NO_TIME)
		return;
	put_name(pen, name);
	put_ms(pen, us);
}

static struct hpx_span shown_method(const struct hpx_access_line *line)
{
	return line->method.len > 0 ? hpx_span_first(line->method, METHOD_SHOWN_MAX) : HPX_SPAN("-");
}

static struct hpx_span shown_route(const struct hpx_access_line *line)
{
	return hpx_span_first(line->route, ROUTE_SHOWN_MAX);
}

static void put_fields(struct pen *pen, const struct hpx_access_line *line)
{
	char when[HPX_RFC3339_SIZE];

	hpx_clock_rfc3339(line->wall_ms, when);
	put_text(pen, HPX_SPAN("time"), hpx_span_of(when), false);
	put_text(pen, HPX_SPAN("peer"), line->peer, false);
	put_text(pen, HPX_SPAN("method"), shown_method(line), true);
	put_text(pen, HPX_SPAN("route"), shown_route(line), true);
	put_number(pen, HPX_SPAN("status"), line->status);
	put_text(pen, HPX_SPAN("did"), hpx_span_of(hpx_did_name(line->did)), false);
	if (line->code != NULL)
		put_text(pen, HPX_SPAN("code"), hpx_span_of(line->code), false);
	if (line->attempt > 0)
		put_number(pen, HPX_SPAN("attempt"), line->attempt);
	put_text(pen, HPX_SPAN("operation"), line->operation, false);
	put_text(pen, HPX_SPAN("tenant"), line->tenant, false);
	put_time(pen, HPX_SPAN("whole_ms"), line->whole_us);
	put_time(pen, HPX_SPAN("queue_ms"), line->queue_us);
	put_time(pen, HPX_SPAN("reserve_ms"), line->reserve_us);
	put_time(pen, HPX_SPAN("upstream_ms"), line->upstream_us);
	put_time(pen, HPX_SPAN("complete_ms"), line->complete_us);
	put_number(pen, HPX_SPAN("bytes_in"), line->bytes_in);
	put_number(pen, HPX_SPAN("bytes_out"), line->bytes_out);
	put_text(pen, HPX_SPAN("trace"), line->trace, false);
}

/* ---- the line for a terminal ---- */

#define GREY "\033[2m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"

static const char *colour_of(const struct hpx_access_line *line)
{
	if (line->status >= 500 || line->status == 0)
		return RED;
	if (line->status >= 400)
		return YELLOW;
	return line->did == HPX_DID_replayed || line->did == HPX_DID_waited ? CYAN : GREEN;
}

/* "08:12:33 201 executed   12.345 ms  POST /payments", then what is worth a word. */
static void put_terminal(struct pen *pen, const struct hpx_access_line *line, bool coloured)
{
	char when[HPX_RFC3339_SIZE];
	char fixed[64];
	struct hpx_span route = line->route.len > 0 ? shown_route(line) : HPX_SPAN("-");
	uint64_t whole_us = line->whole_us != HPX_ACCESS_NO_TIME ? line->whole_us : 0;

	hpx_clock_rfc3339(line->wall_ms, when);
	snprintf(fixed, sizeof(fixed), "%s%.8s %s", coloured ? GREY : "", when + 11,
		 coloured ? PLAIN : "");
	put(pen, hpx_span_of(fixed));
	snprintf(fixed, sizeof(fixed), "%s%03u %-8s%s %8.1f ms  ", coloured ? colour_of(line) : "",
		 line->status, hpx_did_name(line->did), coloured ? PLAIN : "", (double)whole_us / 1000);
	put(pen, hpx_span_of(fixed));
	/* A route's pattern may begin with its method. */
	if (hpx_span_index(route, ' ') == route.len) {
		put_escaped(pen, shown_method(line));
		put_byte(pen, ' ');
	}
	put_escaped(pen, route);
	if (line->code != NULL) {
		put(pen, HPX_SPAN("  "));
		put_escaped(pen, hpx_span_of(line->code));
	}
	if (line->attempt > 1) {
		put(pen, HPX_SPAN("  attempt "));
		put_u64(pen, line->attempt);
	}
}

enum hpx_status hpx_access_line_print(const struct hpx_access_line *line,
				      enum hpx_access_format format, struct hpx_buffer *out)
{
	struct pen pen;

	pen.json = format == HPX_ACCESS_JSON;
	pen.any = false;
	pen.len = 0;
	if (pen.json)
		put_byte(&pen, '{');
	if (format == HPX_ACCESS_TERMINAL || format == HPX_ACCESS_COLOURED)
		put_terminal(&pen, line, format == HPX_ACCESS_COLOURED);
	else
		put_fields(&pen, line);
	if (pen.json)
		put_byte(&pen, '}');
	pen.bytes[pen.len++] = '\n';
	return hpx_buffer_append(out, hpx_span(pen.bytes, pen.len));
}

/* ---- from a request ---- */

enum hpx_access_format hpx_access_format_of(const struct hpx_settings *settings)
{
	bool terminal = settings->access_log_file == NULL && isatty(STDOUT_FILENO) == 1;
	const char *no_colour = getenv("NO_COLOR");
	const char *kind = getenv("TERM");
	bool coloured = (no_colour == NULL || no_colour[0] == '\0') &&
			(kind == NULL || strcmp(kind, "dumb") != 0);

	switch (settings->access_log) {
	case HPX_ACCESS_LOG_AUTO:
		return !terminal ? HPX_ACCESS_NONE : coloured ? HPX_ACCESS_COLOURED :
								HPX_ACCESS_TERMINAL;
	case HPX_ACCESS_LOG_TEXT:
		return !terminal ? HPX_ACCESS_TEXT : coloured ? HPX_ACCESS_COLOURED :
								HPX_ACCESS_TERMINAL;
	case HPX_ACCESS_LOG_JSON:
		return HPX_ACCESS_JSON;
	case HPX_ACCESS_LOG_OFF:
		break;
	}
	return HPX_ACCESS_NONE;
}

static enum hpx_did did_of(const struct hpx_request *request)
{
	const struct hpx_request_summary *summary = &request->summary;

	if (summary->did == HPX_DID_executed || summary->did == HPX_DID_passed)
		return summary->did;
	if (request->wait.waited)
		return HPX_DID_waited;
	if (summary->did != HPX_DID_nothing)
		return summary->did;
	if (summary->refused)
		return HPX_DID_refused;
	return summary->status != 0 ? HPX_DID_own : HPX_DID_nothing;
}

static uint64_t part(const struct hpx_interval *interval)
{
	return interval->to_us != 0 ? hpx_interval_us(interval) : HPX_ACCESS_NO_TIME;
}

static void print_request(const struct hpx_request *request, enum hpx_access_format format,
			  struct hpx_buffer *out)
{
	const struct hpx_request_summary *summary = &request->summary;
	const struct hpx_record *record = &request->reservation.record;
	const struct hpx_request_times *times = &request->times;
	/* Of a head that cannot be read, nothing is used. */
	bool readable = request->head.bytes.len > 0;
	char reference[HPX_REFERENCE_SIZE] = "";
	char tenant[2 * HPX_TENANT_SHOWN_BYTES + 1] = "";
	char trace[HPX_TRACE_ID_TEXT_SIZE] = "";

	if (readable)
		hpx_request_trace_print(request, trace);

	/* The hash of the tenant is made with the operation's id. */
	if (request->identity.description.key.ptr != NULL)
		hpx_hex_encode(request->identity.ask.tenant, HPX_TENANT_SHOWN_BYTES, tenant);
	if (record->state != HPX_STATE_NONE)
		hpx_reference_print(&record->id, &record->mark, reference);
	struct hpx_access_line line = {
		.wall_ms = hpx_clock_wall_ms(),
		.peer = hpx_span_of(request->head.peer),
		.method = readable ? request->head.http.method : HPX_SPAN(""),
		.route = request->head.route != NULL ? request->head.route->pattern : HPX_SPAN(""),
		.status = summary->status,
		.did = did_of(request),
		.code = summary->refused ? hpx_problem_kind(summary->code)->code : NULL,
		.attempt = record->state != HPX_STATE_NONE ? record->attempt : 0,
		.operation = hpx_span_of(reference),
		.tenant = hpx_span_of(tenant),
		.trace = hpx_span_of(trace),
		.whole_us = part(&times->whole),
		.queue_us = part(&times->queue),
		.reserve_us = part(&times->reserve),
		.upstream_us = part(&times->upstream),
		.complete_us = part(&times->complete),
		.bytes_in = summary->bytes_in,
		.bytes_out = summary->bytes_out,
	};
	if (hpx_access_line_print(&line, format, out) == HPX_OK)
		request->shard->access.count++;
	else
		hpx_counter_add(&request->shard->meter.access_lost, 1);
}

void hpx_access_note(struct hpx_request *request)
{
	struct hpx_shard_access *access = &request->shard->access;
	bool whole_head = request->head.bytes.len > 0;

	/* Half a head whose client is gone was no request. */
	if (request->summary.noted || access->format == HPX_ACCESS_NONE ||
	    (!whole_head && !request->summary.refused))
		return;
	request->summary.noted = true;
	print_request(request, access->format, &access->lines);
	if (access->lines.len >= TURN_BYTES)
		hpx_access_hand_over(request->shard);
}

void hpx_access_hand_over(struct hpx_shard *shard)
{
	struct hpx_shard_access *access = &shard->access;
	struct hpx_log_writer *writer = shard->gateway->access_writer;

	if (access->count == 0)
		return;
	if (writer != NULL)
		hpx_log_writer_add(writer, hpx_buffer_span(&access->lines), access->count);
	else /* a reload could not open the file */
		hpx_counter_add(&shard->meter.access_lost, access->count);
	access->lines.len = 0;
	access->count = 0;
}
