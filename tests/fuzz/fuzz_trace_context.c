/* Any bytes as a traceparent, as header lines and as the headers of a stored answer: what is
 * read has ids that are not zero, and is read again as it is written; a line that is taken
 * off a stored answer leaves what stood before it. */
#include <stddef.h>
#include <stdint.h>

#include "http/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINES_MAX (1u << 20)

static void check_context(const struct hpx_trace_context *context)
{
	static const uint8_t zeros[HPX_TRACE_ID_SIZE];
	struct hpx_trace_context again;
	char text[HPX_TRACEPARENT_SIZE];

	HPX_ASSERT(hpx_trace_is_given(context));
	HPX_ASSERT(memcmp(context->span_id, zeros, sizeof(context->span_id)) != 0);
	HPX_ASSERT((context->flags & ~(HPX_TRACE_SAMPLED | HPX_TRACE_RANDOM)) == 0);
	hpx_traceparent_print(context, text);
	HPX_ASSERT(strlen(text) == HPX_TRACEPARENT_LEN);
	HPX_ASSERT(hpx_traceparent_read(hpx_span_of(text), &again));
	HPX_ASSERT(memcmp(&again, context, sizeof(again)) == 0);
}

static void check_line(struct hpx_span headers, const struct hpx_trace_context *context)
{
	struct hpx_trace_context taken;
	struct hpx_buffer lines;

	hpx_buffer_init(&lines, LINES_MAX);
	if (hpx_buffer_append(&lines, headers) == HPX_OK && hpx_buffer_text(&lines, "\r\n") == HPX_OK &&
	    hpx_trace_line_write(&lines, context) == HPX_OK) {
		struct hpx_span rest = hpx_buffer_span(&lines);
		HPX_ASSERT(hpx_trace_line_take(&rest, &taken));
		HPX_ASSERT(rest.len == headers.len + 2);
		HPX_ASSERT(memcmp(&taken, context, sizeof(taken)) == 0);
	}
	hpx_buffer_done(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span bytes = hpx_span(data, size), rest = bytes;
	struct hpx_trace_context context = { .flags = 0 };

	if (hpx_traceparent_read(bytes, &context)) {
		check_context(&context);
		check_line(bytes, &context);
	}
	if (hpx_trace_context_in_lines(bytes, &context))
		check_context(&context);
	if (hpx_trace_line_take(&rest, &context)) {
		check_context(&context);
		HPX_ASSERT(rest.ptr == bytes.ptr && rest.len < bytes.len);
	}
	return 0;
}
