/* The tracer: the spans that wait to be exported, in bounded memory. Any thread adds spans;
 * one thread, the exporter's (worker/trace_exporter.h), takes them in batches. Adding costs
 * a lock and a copy and never waits: where there is no room, the spans are dropped and
 * counted. The word "span" alone is a piece of text here (base/span.h); a span of a trace is
 * a struct hpx_trace_span.
 *
 * A span has no key, credential, query, path or body in it, and of the tenant a short hash. */
#ifndef HPX_SERVICE_TRACER_H
#define HPX_SERVICE_TRACER_H

#include "base/bytes.h"
#include "base/metric.h"
#include "base/thread.h"
#include "core/operation.h"
#include "http/trace_context.h"
#include "settings/external_service.h"

/* X(kind, name, OTLP's number of its kind: 1 internal, 2 server, 3 client) */
#define HPX_TRACE_KIND_LIST(X) \
	X(REQUEST, "hapax.request", 2) \
	X(RESERVE, "hapax.reserve", 1) \
	X(UPSTREAM, "hapax.upstream", 3) \
	X(COMPLETE, "hapax.complete", 1) \
	X(DELIVER, "hapax.deliver", 3) \
	X(PROBE, "hapax.probe", 3)

enum hpx_trace_kind {
#define X(kind, name, number) HPX_TRACE_##kind,
	HPX_TRACE_KIND_LIST(X)
#undef X
};

/* So much of a tenant's SHA-256 is shown, here and in the access log. */
#define HPX_TENANT_SHOWN_BYTES 6

/* One span. A text that is empty, a number that is 0 and a pointer that is NULL are not
 * exported. */
struct hpx_trace_span {
	enum hpx_trace_kind kind;
	struct hpx_trace_context context;       /* its own */
	uint8_t parent[HPX_TRACE_SPAN_ID_SIZE]; /* zeros: it begins the trace */
	struct hpx_trace_context link;          /* the first execution of a replay */
	int64_t began_us, ended_us;             /* wall clock */
	bool failed;
	unsigned status;      /* http.response.status_code */
	unsigned attempt;     /* hapax.attempt */
	int64_t job;          /* hapax.job */
	const char *decision; /* hapax.decision; static */
	const char *error;    /* error.type; static */
	char method[16];      /* http.request.method */
	char route[96];       /* http.route, or the part of it that has room */
	char target[48];      /* hapax.target */
	char operation[HPX_REFERENCE_SIZE];
	char tenant[2 * HPX_TENANT_SHOWN_BYTES + 1];
};

/* So many spans leave in one request to the collector. */
#define HPX_TRACE_BATCH 512

struct hpx_tracer {
	struct hpx_thread thread; /* the exporter's */
	/* Under its lock: a ring. */
	struct hpx_trace_span *spans;
	size_t first, count, max;
	struct hpx_counter exported;
	struct hpx_counter dropped;
};

/* NULL where the settings have no collector, or (HPX_NOMEM) there is no memory. */
enum hpx_status hpx_tracer_new(const struct hpx_trace_settings *settings,
			       struct hpx_tracer **ret_tracer);
/* When no thread adds or takes any more. NULL does nothing. */
void hpx_tracer_free(struct hpx_tracer *tracer);

/* Adds all of them, or none. From any thread. */
void hpx_tracer_add(struct hpx_tracer *tracer, const struct hpx_trace_span *spans, size_t count);
/* With the thread's lock: moves at most `max` spans into `out`, the oldest first. */
size_t hpx_tracer_take(struct hpx_tracer *tracer, struct hpx_trace_span *out, size_t max);
void hpx_tracer_print_metrics(const struct hpx_tracer *tracer, struct hpx_metric_page *page);

/* ---- making spans ---- */

/* The context of a span that is about to begin: a child of `parent` and sampled as that is;
 * where there is none (NULL), of a new trace, sampled by the settings. `random` has
 * HPX_TRACE_RANDOM_BYTES. */
#define HPX_TRACE_RANDOM_BYTES (HPX_TRACE_ID_SIZE + HPX_TRACE_SPAN_ID_SIZE)
void hpx_trace_begin(const struct hpx_trace_settings *settings,
		     const struct hpx_trace_context *parent,
		     const uint8_t random[HPX_TRACE_RANDOM_BYTES],
		     struct hpx_trace_context *ret_context);
/* A span of a worker: one request that leaves the process. Zeros: there is none. */
struct hpx_trace_call {
	struct hpx_trace_context parent; /* zeros: it begins a trace */
	struct hpx_trace_context context;
	int64_t began_us, ended_us; /* wall clock */
};
/* Begins it, as a child of the traceparent in these header lines where they have one that can
 * be read. Nothing where traces are off (`tracer` NULL). */
void hpx_trace_call_begin(struct hpx_trace_call *call, const struct hpx_tracer *tracer,
			  const struct hpx_trace_settings *settings, struct hpx_span lines);
/* Whether a header line of that name travels with the call. */
bool hpx_trace_call_takes(const struct hpx_trace_call *call, struct hpx_span name);
/* Appends the line traceparent; nothing where traces are off. */
enum hpx_status hpx_trace_call_write(const struct hpx_trace_call *call, struct hpx_buffer *lines);
/* The times and ids of its span, where it is sampled; the caller adds the rest, and the span. */
bool hpx_trace_call_end(const struct hpx_trace_call *call, enum hpx_trace_kind kind,
			struct hpx_trace_span *ret_span);

/* The context that is sent on: of a sampled span its own; else the parent's, where there is
 * one, as it came. */
const struct hpx_trace_context *hpx_trace_sent_on(const struct hpx_trace_context *parent,
						  const struct hpx_trace_context *own);
/* Copies a text into a member of a span; what has no room is cut off at a character's end. */
void hpx_trace_put(char *out, size_t size, struct hpx_span text);
#define HPX_TRACE_PUT(member, text) hpx_trace_put(member, sizeof(member), text)

#endif
