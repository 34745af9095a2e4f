/* The exporter of traces: a thread that takes spans from the tracer and sends them to the
 * collector in batches, as OTLP over HTTP in JSON, through an egress engine of its own.
 *
 *   tracer's ring ─▶ batch ─▶ sent ─▶ exported
 *                      ▲        │
 *                      └────────┴▶ dropped (refused for good, given up at the end)
 *
 *  1. Nothing waits for the collector but this thread. Memory is that of the ring, of one
 *     batch and of one request.
 *  2. A batch that could not be delivered is sent again, with growing pauses; meanwhile the
 *     ring fills, and what has no room in it is dropped and counted.
 *  3. One log line when the collector stops taking spans, and one when it takes them again. */
#ifndef HPX_WORKER_TRACE_EXPORTER_H
#define HPX_WORKER_TRACE_EXPORTER_H

#include "service/service.h"

struct hpx_trace_exporter;

/* `*ret_exporter` is NULL where traces are off. */
enum hpx_status hpx_trace_exporter_start(struct hpx_service *service,
					 struct hpx_trace_exporter **ret_exporter);
/* Sends what is there once more, within a short time, and ends. When nobody adds spans any
 * more. NULL does nothing. */
void hpx_trace_exporter_stop(struct hpx_trace_exporter *exporter);

/* ---- inside ---- */

struct hpx_trace_span;

/* Holds a full batch of the largest spans: some 4 KiB each, where every character of their
 * texts is escaped; most have 1 KiB. */
#define HPX_OTLP_BYTES_MAX ((size_t)4 << 20)
/* otlp.c: the spans as an ExportTraceServiceRequest. */
enum hpx_status hpx_otlp_print(const struct hpx_trace_span *spans, size_t count,
			       struct hpx_span service_name, struct hpx_buffer *out);
/* What the collector's answer to it says. False: it is no such answer, and nobody knows
 * what became of the spans; else `*ret_rejected` of them were refused. */
bool hpx_otlp_read_answer(struct hpx_span body, uint64_t *ret_rejected);

#endif
