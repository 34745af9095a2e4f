/* The trace that a message belongs to, as W3C Trace Context writes it: `traceparent` is read
 * and written; `tracestate` belongs to others, and travels as it is or not at all. */
#ifndef HPX_HTTP_TRACE_CONTEXT_H
#define HPX_HTTP_TRACE_CONTEXT_H

#include "base/buffer.h"
#include "http/message.h"

#define HPX_TRACE_ID_SIZE 16
#define HPX_TRACE_SPAN_ID_SIZE 8

/* The flags that hapax knows; others are not passed on. */
#define HPX_TRACE_SAMPLED 0x01 /* whoever sent it keeps its spans */
#define HPX_TRACE_RANDOM 0x02  /* the trace's id is random (level 2 of the specification) */

/* One span of a trace. An id is never all zeros; a context of zeros is none. */
struct hpx_trace_context {
	uint8_t trace_id[HPX_TRACE_ID_SIZE];
	uint8_t span_id[HPX_TRACE_SPAN_ID_SIZE];
	uint8_t flags;
};

static inline bool hpx_trace_is_sampled(const struct hpx_trace_context *context)
{
	return (context->flags & HPX_TRACE_SAMPLED) != 0;
}
/* There is a trace. */
bool hpx_trace_is_given(const struct hpx_trace_context *context);

/* Reads the value of one `traceparent`. False: it breaks a rule of the specification, and a
 * new trace is to be begun. Of a version that is not known yet, what version 00 has is
 * read. */
bool hpx_traceparent_read(struct hpx_span value, struct hpx_trace_context *ret_context);
/* The context that a message came with. False: it has no traceparent, more than one, or one
 * that cannot be read. */
bool hpx_trace_context_in_head(const struct hpx_http_head *head,
			       struct hpx_trace_context *ret_context);
/* The same in "Name: value" lines. */
bool hpx_trace_context_in_lines(struct hpx_span lines, struct hpx_trace_context *ret_context);
/* Whether a field of this name belongs to the context of a trace: traceparent or tracestate. */
bool hpx_trace_is_field(struct hpx_span name);

#define HPX_TRACEPARENT_LEN 55
#define HPX_TRACEPARENT_SIZE (HPX_TRACEPARENT_LEN + 1)
/* In version 00. */
void hpx_traceparent_print(const struct hpx_trace_context *context,
			   char out[HPX_TRACEPARENT_SIZE]);

/* ---- kept with a stored answer ----
 *
 * A replay is linked to the trace of its first execution, so the answer's context is kept
 * as the last line of its headers, `Hapax-Trace`. The name is hapax's own: neither an
 * upstream nor an application can have it stored. */

/* Appends the line. */
enum hpx_status hpx_trace_line_write(struct hpx_buffer *lines,
				     const struct hpx_trace_context *context);
/* Takes the line off the end of `*lines`; false: there is none, and the lines stay. */
bool hpx_trace_line_take(struct hpx_span *lines, struct hpx_trace_context *ret_context);

#endif
