/* The traces of requests: the span of the request itself and, below it, those of the
 * reservation, of the exchange with the upstream and of the completion. All of them are made
 * when the request is freed, from the times that its steps noted: while it runs, a request
 * that is traced costs some random bytes and a header.
 *
 * Which traceparent is sent on:
 *
 *   traces are off, or the route observes │ the client's, as it came
 *   the request is sampled                │ its trace, with the span of the exchange as parent
 *   not sampled, it brought a traceparent │ that one
 *   not sampled, it brought none          │ a new one, not sampled: so nobody behind samples it
 *
 * A tracestate travels with the traceparent that it came with, else not. */
#include "gateway/steps.h"

#include "base/status.h"
#include "http/field.h"
#include "http/method.h"
#include "http/write.h"
#include "service/tracer.h"

/* A request, its reservation, its exchange and its completion. */
#define SPANS_MAX 4

void hpx_request_trace_begin(struct hpx_request *request)
{
	struct hpx_request_trace *trace = &request->trace;
	uint8_t random[HPX_TRACE_RANDOM_BYTES];

	if (request->shard->service->tracer == NULL)
		return;
	trace->on = true;
	trace->has_parent = hpx_trace_context_in_head(&request->head.http, &trace->parent);
	hpx_random_pool_take(&request->shard->random, random, sizeof(random));
	hpx_trace_begin(&request->settings->traces, trace->has_parent ? &trace->parent : NULL, random,
			&trace->context);
}

void hpx_request_trace_print(const struct hpx_request *request, char out[HPX_TRACE_ID_TEXT_SIZE])
{
	struct hpx_trace_context context = request->trace.context;

	out[0] = '\0';
	if (request->trace.on || hpx_trace_context_in_head(&request->head.http, &context))
		hpx_hex_encode(context.trace_id, sizeof(context.trace_id), out);
}

bool hpx_request_trace_replaces(const struct hpx_request *request, enum hpx_field_name known)
{
	if (!request->trace.on || request->head.observed)
		return false;
	return known == HPX_NAME_TRACEPARENT ||
	       (known == HPX_NAME_TRACESTATE && !request->trace.has_parent);
}

struct hpx_span hpx_request_trace_upstream(struct hpx_request *request,
					   char out[HPX_TRACEPARENT_SIZE])
{
	struct hpx_request_trace *trace = &request->trace;

	if (!trace->on || request->head.observed)
		return hpx_span("", 0);
	struct hpx_trace_context sent = *hpx_trace_sent_on(&trace->parent, &trace->context);
	if (hpx_trace_is_sampled(&trace->context)) {
		hpx_random_pool_take(&request->shard->random, trace->upstream, sizeof(trace->upstream));
		trace->upstream[0] |= 1; /* never all zeros */
		memcpy(sent.span_id, trace->upstream, sizeof(sent.span_id));
	}
	hpx_traceparent_print(&sent, out);
	return hpx_span_of(out);
}

enum hpx_status hpx_request_trace_job(struct hpx_request *request, struct hpx_buffer *lines)
{
	const struct hpx_request_trace *trace = &request->trace;
	struct hpx_span rest = hpx_buffer_span(lines);
	char text[HPX_TRACEPARENT_SIZE];
	struct hpx_field_line line;

	if (!trace->on)
		return HPX_OK;
	/* Lines that stay move up over those that go. */
	lines->len = 0;
	while (hpx_field_line_next(&rest, &line)) {
		if (hpx_request_trace_replaces(request, hpx_field_name_of(line.name)))
			continue;
		memmove(lines->ptr + lines->len, line.whole.ptr, line.whole.len);
		lines->len += line.whole.len;
	}
	hpx_traceparent_print(hpx_trace_sent_on(&trace->parent, &trace->context), text);
	return HPX_WRITE_FIELD(lines, "traceparent", hpx_span_of(text));
}

void hpx_request_trace_keep(struct hpx_request *request, struct hpx_buffer *lines)
{
	/* Without room, a replay has no link. */
	if (hpx_trace_is_sampled(&request->trace.context))
		(void)hpx_trace_line_write(lines, &request->trace.context);
}

/* ---- the spans ---- */

struct span_list {
	struct hpx_request *request;
	int64_t wall_us; /* what the boot clock lacks to the wall clock */
	int64_t now_us;  /* boot clock */
	struct hpx_trace_span spans[SPANS_MAX];
	size_t count;
};

/* A span of the request's trace. Something that has not ended, ends now. */
static struct hpx_trace_span *add_span(struct span_list *list, enum hpx_trace_kind kind,
				       const struct hpx_interval *interval)
{
	const struct hpx_request_trace *trace = &list->request->trace;
	struct hpx_trace_span *span = &list->spans[list->count++];

	HPX_ASSERT(list->count <= SPANS_MAX);
	*span = (struct hpx_trace_span){
		.kind = kind,
		.context = trace->context,
		.began_us = list->wall_us + interval->from_us,
		.ended_us = list->wall_us + (interval->to_us != 0 ? interval->to_us : list->now_us),
	};
	return span;
}

/* A span below that of the request; NULL where there is nothing to tell. */
static struct hpx_trace_span *add_child(struct span_list *list, enum hpx_trace_kind kind,
					const struct hpx_interval *interval)
{
	struct hpx_trace_span *span;

	if (interval->from_us == 0)
		return NULL;
	span = add_span(list, kind, interval);
	memcpy(span->parent, list->request->trace.context.span_id, sizeof(span->parent));
	hpx_random_pool_take(&list->request->shard->random, span->context.span_id, sizeof(span->context.span_id));
	span->context.span_id[0] |= 1;
	return span;
}

/* A method of the client's own making is not repeated. */
static void put_method(struct hpx_trace_span *span, const struct hpx_request *request)
{
	const struct hpx_method *method = hpx_method_find(request->head.http.method);

	HPX_TRACE_PUT(span->method, method != NULL ? method->name : HPX_SPAN("_OTHER"));
}

/* The route's pattern without its method; not the path, which may name anything. */
static void put_route(struct hpx_trace_span *span, const struct hpx_request *request)
{
	const struct hpx_route *route = request->head.route;

	if (route == NULL) {
		if (hpx_builtin_is(request->head.target.path))
			HPX_TRACE_PUT(span->route, HPX_SPAN(HPX_BUILTIN_ROOT "/*"));
		return;
	}
	size_t blank = hpx_span_index(route->pattern, ' ');
	if (blank < route->pattern.len)
		HPX_TRACE_PUT(span->route, hpx_span_skip(route->pattern, blank + 1));
}

/* The code of hapax's own answer; NULL: the answer was another's. */
static const char *refusal_of(const struct hpx_request *request)
{
	return request->summary.refused ? hpx_problem_kind(request->summary.code)->code : NULL;
}

static void add_request(struct span_list *list)
{
	struct hpx_request *request = list->request;
	struct hpx_request_trace *trace = &request->trace;
	const struct hpx_record *record = &request->reservation.record;
	struct hpx_trace_span *span = add_span(list, HPX_TRACE_REQUEST, &request->times.whole);

	memcpy(span->parent, trace->parent.span_id, sizeof(span->parent));
	span->link = trace->link;
	span->status = request->summary.status;
	span->failed = request->summary.status >= 500;
	span->decision = trace->decision;
	span->error = refusal_of(request);
	put_method(span, request);
	put_route(span, request);
	if (record->state != HPX_STATE_NONE) {
		hpx_reference_print(&record->id, &record->mark, span->operation);
		span->attempt = record->attempt;
	}
	if (request->identity.description.key.ptr != NULL)
		hpx_hex_encode(request->identity.ask.tenant, HPX_TENANT_SHOWN_BYTES, span->tenant);
}

/* Why the upstream gave no answer, in the words of egress/egress.h; NULL: it gave one. */
static const char *silence_of(const struct hpx_request *request)
{
	if (hpx_request_answer_is_lost(request))
		return request->attempt.failure.any_byte_left ? "no answer" : "not sent";
	return request->answer.status == 0 ? refusal_of(request) : NULL;
}

static void add_upstream(struct span_list *list)
{
	struct hpx_request *request = list->request;
	struct hpx_trace_span *span = add_child(list, HPX_TRACE_UPSTREAM, &request->times.upstream);
	static const uint8_t none[HPX_TRACE_SPAN_ID_SIZE];

	if (span == NULL)
		return;
	/* The one that the upstream was told; none in observe mode. */
	if (memcmp(request->trace.upstream, none, sizeof(none)) != 0)
		memcpy(span->context.span_id, request->trace.upstream, sizeof(span->context.span_id));
	span->status = request->answer.status;
	span->error = silence_of(request);
	span->failed = span->error != NULL || span->status == 0 || span->status >= 500;
	put_method(span, request);
}

void hpx_request_trace_end(struct hpx_request *request)
{
	struct span_list list = { .request = request, .now_us = hpx_clock_boot_us() };
	struct hpx_trace_span *span;

	if (!request->trace.on || !hpx_trace_is_sampled(&request->trace.context))
		return;
	list.wall_us = hpx_clock_wall_us() - list.now_us;
	add_request(&list);
	span = add_child(&list, HPX_TRACE_RESERVE, &request->times.reserve);
	if (span != NULL && request->summary.refused &&
	    request->summary.code == HPX_PROBLEM_idempotency_store_unavailable) {
		span->failed = true;
		span->error = refusal_of(request);
	}
	add_upstream(&list);
	add_child(&list, HPX_TRACE_COMPLETE, &request->times.complete);
	hpx_tracer_add(request->shard->service->tracer, list.spans, list.count);
}
