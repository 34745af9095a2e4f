/* The ring of spans, and how a span gets its ids: see tracer.h. */
#include "service/tracer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "http/write.h"

enum hpx_status hpx_tracer_new(const struct hpx_trace_settings *settings,
			       struct hpx_tracer **ret_tracer)
{
	struct hpx_tracer *tracer;

	*ret_tracer = NULL;
	if (settings->caller.url == NULL)
		return HPX_OK;
	tracer = calloc(1, sizeof(*tracer));
	if (tracer == NULL)
		return HPX_NOMEM;
	tracer->max = settings->spans_max;
	tracer->spans = calloc(tracer->max, sizeof(*tracer->spans));
	if (tracer->spans == NULL || hpx_thread_init(&tracer->thread) != HPX_OK) {
		free(tracer->spans);
		free(tracer);
		return HPX_NOMEM;
	}
	*ret_tracer = tracer;
	return HPX_OK;
}

void hpx_tracer_free(struct hpx_tracer *tracer)
{
	if (tracer == NULL)
		return;
	hpx_thread_done(&tracer->thread);
	free(tracer->spans);
	free(tracer);
}

void hpx_tracer_add(struct hpx_tracer *tracer, const struct hpx_trace_span *spans, size_t count)
{
	hpx_thread_lock(&tracer->thread);
	bool room = count <= tracer->max - tracer->count;
	bool was_less = tracer->count < HPX_TRACE_BATCH;
	for (size_t i = 0; room && i < count; i++)
		tracer->spans[(tracer->first + tracer->count++) % tracer->max] = spans[i];
	bool wake = was_less && tracer->count >= HPX_TRACE_BATCH;
	hpx_thread_unlock(&tracer->thread);
	if (!room)
		hpx_counter_add(&tracer->dropped, count);
	/* A batch is full; before that, the exporter looks once in a while. */
	if (wake)
		hpx_thread_wake(&tracer->thread);
}

size_t hpx_tracer_take(struct hpx_tracer *tracer, struct hpx_trace_span *out, size_t max)
{
	size_t count = tracer->count < max ? tracer->count : max;

	for (size_t i = 0; i < count; i++)
		out[i] = tracer->spans[(tracer->first + i) % tracer->max];
	tracer->first = (tracer->first + count) % tracer->max;
	tracer->count -= count;
	return count;
}

/* Zeros where traces are off, so that the page has the same metrics everywhere. */
void hpx_tracer_print_metrics(const struct hpx_tracer *tracer, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_trace_spans_total", "counter",
			"Spans of traces, by what became of them.");
	hpx_metric_sample(page, "hapax_trace_spans_total", "result", HPX_SPAN("exported"),
			  tracer != NULL ? hpx_counter_read(&tracer->exported) : 0);
	hpx_metric_sample(page, "hapax_trace_spans_total", "result", HPX_SPAN("dropped"),
			  tracer != NULL ? hpx_counter_read(&tracer->dropped) : 0);
}

/* ---- making spans ---- */

/* By the trace's id, so that whoever else goes by the same share and the same id decides the
 * same; its last seven bytes, which every maker of ids makes random. */
static bool is_sampled(const struct hpx_trace_settings *settings,
		       const struct hpx_trace_context *context)
{
	uint64_t number = 0;

	for (size_t i = HPX_TRACE_ID_SIZE - 7; i < HPX_TRACE_ID_SIZE; i++)
		number = number << 8 | context->trace_id[i];
	return number < ((UINT64_C(1) << 56) / HPX_MILLION + 1) * settings->sample_millionths;
}

void hpx_trace_begin(const struct hpx_trace_settings *settings,
		     const struct hpx_trace_context *parent,
		     const uint8_t random[HPX_TRACE_RANDOM_BYTES],
		     struct hpx_trace_context *ret_context)
{
	struct hpx_trace_context context = { .flags = HPX_TRACE_RANDOM };

	memcpy(context.span_id, random, sizeof(context.span_id));
	context.span_id[0] |= 1; /* never all zeros, like the next */
	if (parent != NULL) {
		memcpy(context.trace_id, parent->trace_id, sizeof(context.trace_id));
		context.flags = parent->flags;
	} else {
		memcpy(context.trace_id, random + sizeof(context.span_id), sizeof(context.trace_id));
		context.trace_id[0] |= 1;
		if (is_sampled(settings, &context))
			context.flags |= HPX_TRACE_SAMPLED;
	}
	*ret_context = context;
}

const struct hpx_trace_context *hpx_trace_sent_on(const struct hpx_trace_context *parent,
						  const struct hpx_trace_context *own)
{
	return hpx_trace_is_sampled(own) || !hpx_trace_is_given(parent) ? own : parent;
}

/* ---- requests that leave the process ---- */

void hpx_trace_call_begin(struct hpx_trace_call *call, const struct hpx_tracer *tracer,
			  const struct hpx_trace_settings *settings, struct hpx_span lines)
{
	uint8_t random[HPX_TRACE_RANDOM_BYTES];

	*call = (struct hpx_trace_call){ .began_us = 0 };
	if (tracer == NULL)
		return;
	bool has_parent = hpx_trace_context_in_lines(lines, &call->parent);
	hpx_random(random, sizeof(random));
	hpx_trace_begin(settings, has_parent ? &call->parent : NULL, random, &call->context);
	call->began_us = hpx_clock_wall_us();
}

bool hpx_trace_call_takes(const struct hpx_trace_call *call, struct hpx_span name)
{
	if (!hpx_trace_is_given(&call->context) || !hpx_trace_is_field(name))
		return true;
	/* A tracestate belongs to its traceparent (§3.3 of the specification), which is
	 * written anew. */
	return hpx_span_ieq(name, HPX_SPAN("tracestate")) && hpx_trace_is_given(&call->parent);
}

enum hpx_status hpx_trace_call_write(const struct hpx_trace_call *call, struct hpx_buffer *lines)
{
	char text[HPX_TRACEPARENT_SIZE];

	if (!hpx_trace_is_given(&call->context))
		return HPX_OK;
	hpx_traceparent_print(hpx_trace_sent_on(&call->parent, &call->context), text);
	return HPX_WRITE_FIELD(lines, "traceparent", hpx_span_of(text));
}

bool hpx_trace_call_end(const struct hpx_trace_call *call, enum hpx_trace_kind kind,
			struct hpx_trace_span *ret_span)
{
	if (!hpx_trace_is_sampled(&call->context))
		return false;
	*ret_span = (struct hpx_trace_span){ .kind = kind,
					     .context = call->context,
					     .began_us = call->began_us,
					     .ended_us = call->ended_us };
	memcpy(ret_span->parent, call->parent.span_id, sizeof(ret_span->parent));
	return true;
}

void hpx_trace_put(char *out, size_t size, struct hpx_span text)
{
	size_t len = text.len < size ? text.len : size - 1;

	while (len < text.len && len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
		len--;
	memcpy(out, len > 0 ? text.ptr : "", len);
	out[len] = '\0';
}
