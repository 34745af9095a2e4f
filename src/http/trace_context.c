/* Trace contexts: see trace_context.h. The rules are those of W3C Trace Context, level 1
 * (§3.2, traceparent), and of level 2 for the flag of random ids. */
#include "http/trace_context.h"

#include "base/bytes.h"
#include "http/field.h"
#include "http/write.h"

#define LINE_BEGIN "Hapax-Trace: "
#define LINE_LEN (sizeof(LINE_BEGIN) - 1 + HPX_TRACEPARENT_LEN + 2)

/* Where the parts stand in "00-<32 digits>-<16 digits>-<2 digits>". */
#define TRACE_AT 3
#define SPAN_AT (TRACE_AT + 2 * HPX_TRACE_ID_SIZE + 1)
#define FLAGS_AT (SPAN_AT + 2 * HPX_TRACE_SPAN_ID_SIZE + 1)

static bool is_zero(const uint8_t *bytes, size_t len)
{
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++)
		any |= bytes[i];
	return any == 0;
}

/* Capital digits are a mistake (§3.2.2.1, §3.2.2.3). */
static bool read_hex(struct hpx_span value, size_t at, uint8_t *bytes, size_t len)
{
	struct hpx_span text = hpx_span(value.ptr + at, 2 * len);

	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] >= 'A' && text.ptr[i] <= 'F')
			return false;
	return hpx_hex_decode(text, bytes, len);
}

bool hpx_trace_is_given(const struct hpx_trace_context *context)
{
	return !is_zero(context->trace_id, sizeof(context->trace_id));
}

bool hpx_traceparent_read(struct hpx_span value, struct hpx_trace_context *ret_context)
{
	struct hpx_trace_context context;
	uint8_t version;

	if (value.len < HPX_TRACEPARENT_LEN || value.ptr[TRACE_AT - 1] != '-' ||
	    value.ptr[SPAN_AT - 1] != '-' || value.ptr[FLAGS_AT - 1] != '-' ||
	    !read_hex(value, 0, &version, 1) ||
	    !read_hex(value, TRACE_AT, context.trace_id, sizeof(context.trace_id)) ||
	    !read_hex(value, SPAN_AT, context.span_id, sizeof(context.span_id)) ||
	    !read_hex(value, FLAGS_AT, &context.flags, 1))
		return false;
	/* ff is forbidden; version 00 ends here, and a later one may go on behind a dash. */
	if (version == 0xff || (value.len > HPX_TRACEPARENT_LEN &&
				(version == 0 || value.ptr[HPX_TRACEPARENT_LEN] != '-')))
		return false;
	if (is_zero(context.trace_id, sizeof(context.trace_id)) ||
	    is_zero(context.span_id, sizeof(context.span_id)))
		return false;
	context.flags &= HPX_TRACE_SAMPLED | HPX_TRACE_RANDOM;
	*ret_context = context;
	return true;
}

bool hpx_trace_context_in_head(const struct hpx_http_head *head,
			       struct hpx_trace_context *ret_context)
{
	return hpx_field_known_count(head, HPX_NAME_TRACEPARENT) == 1 &&
	       hpx_traceparent_read(hpx_span_trim(hpx_field_known_value(head, HPX_NAME_TRACEPARENT)),
				    ret_context);
}

bool hpx_trace_context_in_lines(struct hpx_span lines, struct hpx_trace_context *ret_context)
{
	struct hpx_field_line line;
	struct hpx_span value = { NULL, 0 };
	unsigned count = 0;

	while (hpx_field_line_next(&lines, &line))
		if (line.name.ptr != NULL && hpx_span_ieq(line.name, HPX_SPAN("traceparent"))) {
			value = line.value;
			count++;
		}
	return count == 1 && hpx_traceparent_read(value, ret_context);
}

bool hpx_trace_is_field(struct hpx_span name)
{
	return hpx_span_ieq(name, HPX_SPAN("traceparent")) ||
	       hpx_span_ieq(name, HPX_SPAN("tracestate"));
}

void hpx_traceparent_print(const struct hpx_trace_context *context,
			   char out[HPX_TRACEPARENT_SIZE])
{
	memcpy(out, "00", 2);
	hpx_hex_encode(context->trace_id, sizeof(context->trace_id), out + TRACE_AT);
	hpx_hex_encode(context->span_id, sizeof(context->span_id), out + SPAN_AT);
	hpx_hex_encode(&context->flags, 1, out + FLAGS_AT);
	out[TRACE_AT - 1] = out[SPAN_AT - 1] = out[FLAGS_AT - 1] = '-';
}

enum hpx_status hpx_trace_line_write(struct hpx_buffer *lines,
				     const struct hpx_trace_context *context)
{
	char text[HPX_TRACEPARENT_SIZE];

	hpx_traceparent_print(context, text);
	return hpx_write_after(lines, HPX_SPAN(LINE_BEGIN), hpx_span_of(text));
}

bool hpx_trace_line_take(struct hpx_span *lines, struct hpx_trace_context *ret_context)
{
	if (lines->len < LINE_LEN)
		return false;
	struct hpx_span line = hpx_span_skip(*lines, lines->len - LINE_LEN);
	struct hpx_span value = hpx_span(line.ptr + sizeof(LINE_BEGIN) - 1, HPX_TRACEPARENT_LEN);
	/* A line begins here: the headers do, or another line ends before. */
	if (!hpx_span_starts(line, HPX_SPAN(LINE_BEGIN)) ||
	    (lines->len > LINE_LEN && line.ptr[-1] != '\n') ||
	    !hpx_traceparent_read(value, ret_context))
		return false;
	lines->len -= LINE_LEN;
	return true;
}
