/* Spans as OTLP in JSON: an ExportTraceServiceRequest, by the rules of the OpenTelemetry
 * protocol for JSON: ids in hexadecimal, 64-bit numbers as strings, enums as numbers. And the
 * collector's answer to it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "core/json.h"
#include "service/tracer.h"
#include "worker/trace_exporter.h"

/* A number in decimal, with three zeros behind it. */
#define NUMBER_SIZE 32
/* Of a number or a short text in the answer. */
#define ANSWER_ARENA_MAX ((size_t)64 * 1024)
/* OTLP's status of a span: 0 unset, 2 error. */
#define STATUS_ERROR 2

static const struct {
	const char *name;
	unsigned number;
} kinds[] = {
#define X(kind, name, number) { name, number },
	HPX_TRACE_KIND_LIST(X)
#undef X
};

static void put_id(struct hpx_json_writer *json, const char *name, const uint8_t *bytes, size_t len)
{
	char text[2 * HPX_TRACE_ID_SIZE + 1];

	HPX_ASSERT(len <= HPX_TRACE_ID_SIZE);
	hpx_hex_encode(bytes, len, text);
	hpx_json_put_text(json, name, text);
}

static void put_time(struct hpx_json_writer *json, const char *name, int64_t wall_us)
{
	char text[NUMBER_SIZE];

	snprintf(text, sizeof(text), "%" PRId64 "000", wall_us);
	hpx_json_put_text(json, name, text);
}

/* An attribute; `kind` is the name that OTLP has for its type. */
static void put_attribute(struct hpx_json_writer *json, const char *key, const char *kind,
			  const char *value)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "key", key);
	hpx_json_begin_object(json, "value");
	hpx_json_put_text(json, kind, value);
	hpx_json_end_object(json);
	hpx_json_end_object(json);
}

static void put_text(struct hpx_json_writer *json, const char *key, const char *value)
{
	if (value != NULL && value[0] != '\0')
		put_attribute(json, key, "stringValue", value);
}

static void put_number(struct hpx_json_writer *json, const char *key, int64_t value)
{
	char text[NUMBER_SIZE];

	snprintf(text, sizeof(text), "%" PRId64, value);
	if (value != 0)
		put_attribute(json, key, "intValue", text);
}

/* A request's span is named as the conventions for HTTP want it: method and route. */
static void put_name(struct hpx_json_writer *json, const struct hpx_trace_span *span)
{
	char name[sizeof(span->method) + sizeof(span->route)];

	if (span->kind != HPX_TRACE_REQUEST || span->method[0] == '\0') {
		hpx_json_put_text(json, "name", kinds[span->kind].name);
		return;
	}
	snprintf(name, sizeof(name), "%s%s%s", span->method, span->route[0] != '\0' ? " " : "", span->route);
	hpx_json_put_text(json, "name", name);
}

static void put_attributes(struct hpx_json_writer *json, const struct hpx_trace_span *span)
{
	hpx_json_begin_array(json, "attributes");
	put_text(json, "http.request.method", span->method);
	put_text(json, "http.route", span->route);
	put_number(json, "http.response.status_code", span->status);
	put_text(json, "error.type", span->error);
	put_text(json, "hapax.decision", span->decision);
	put_text(json, "hapax.operation", span->operation);
	put_number(json, "hapax.attempt", span->attempt);
	put_text(json, "hapax.tenant", span->tenant);
	put_text(json, "hapax.target", span->target);
	put_number(json, "hapax.job", span->job);
	hpx_json_end_array(json);
}

static void put_link(struct hpx_json_writer *json, const struct hpx_trace_context *link)
{
	if (!hpx_trace_is_given(link))
		return;
	hpx_json_begin_array(json, "links");
	hpx_json_begin_object(json, NULL);
	put_id(json, "traceId", link->trace_id, sizeof(link->trace_id));
	put_id(json, "spanId", link->span_id, sizeof(link->span_id));
	hpx_json_put_number(json, "flags", link->flags);
	hpx_json_end_object(json);
	hpx_json_end_array(json);
}

static void put_span(struct hpx_json_writer *json, const struct hpx_trace_span *span)
{
	static const uint8_t none[HPX_TRACE_SPAN_ID_SIZE];

	hpx_json_begin_object(json, NULL);
	put_id(json, "traceId", span->context.trace_id, sizeof(span->context.trace_id));
	put_id(json, "spanId", span->context.span_id, sizeof(span->context.span_id));
	if (memcmp(span->parent, none, sizeof(none)) != 0)
		put_id(json, "parentSpanId", span->parent, sizeof(span->parent));
	hpx_json_put_number(json, "flags", span->context.flags);
	put_name(json, span);
	hpx_json_put_number(json, "kind", kinds[span->kind].number);
	put_time(json, "startTimeUnixNano", span->began_us);
	put_time(json, "endTimeUnixNano", span->ended_us > span->began_us ? span->ended_us : span->began_us);
	put_attributes(json, span);
	put_link(json, &span->link);
	hpx_json_begin_object(json, "status");
	if (span->failed)
		hpx_json_put_number(json, "code", STATUS_ERROR);
	hpx_json_end_object(json);
	hpx_json_end_object(json);
}

static void put_resource(struct hpx_json_writer *json, struct hpx_span service_name)
{
	char name[256];

	hpx_trace_put(name, sizeof(name), service_name);
	hpx_json_begin_object(json, "resource");
	hpx_json_begin_array(json, "attributes");
	put_text(json, "service.name", name);
	put_text(json, "service.version", HPX_VERSION);
	hpx_json_end_array(json);
	hpx_json_end_object(json);
}

enum hpx_status hpx_otlp_print(const struct hpx_trace_span *spans, size_t count,
			       struct hpx_span service_name, struct hpx_buffer *out)
{
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_begin_array(&json, "resourceSpans");
	hpx_json_begin_object(&json, NULL);
	put_resource(&json, service_name);
	hpx_json_begin_array(&json, "scopeSpans");
	hpx_json_begin_object(&json, NULL);
	hpx_json_begin_object(&json, "scope");
	hpx_json_put_text(&json, "name", "hapax");
	hpx_json_put_text(&json, "version", HPX_VERSION);
	hpx_json_end_object(&json);
	hpx_json_begin_array(&json, "spans");
	for (size_t i = 0; i < count; i++)
		put_span(&json, &spans[i]);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

/* Collectors answer {} or {"partialSuccess": {"rejectedSpans": "3"}}, the number as a string
 * or as a number; some answer nothing at all. */
bool hpx_otlp_read_answer(struct hpx_span body, uint64_t *ret_rejected)
{
	struct hpx_json_scalar scalar;
	struct hpx_arena arena;
	uint64_t rejected = 0;
	bool good = true;

	if (hpx_span_trim(body).len > 0) {
		hpx_arena_init(&arena, ANSWER_ARENA_MAX);
		enum hpx_status status = hpx_json_lookup(body, HPX_SPAN("/partialSuccess/rejectedSpans"),
							 NUMBER_SIZE, &arena, &scalar);
		good = status == HPX_NOT_FOUND ||
		       (status == HPX_OK && hpx_span_u64(scalar.text, UINT64_MAX, &rejected));
		hpx_arena_done(&arena);
	}
	if (good)
		*ret_rejected = rejected;
	return good;
}
