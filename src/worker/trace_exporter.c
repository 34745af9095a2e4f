/* The exporter of traces: see trace_exporter.h. The thread's lock is the tracer's; the
 * engine's thread only says under it that a request has ended. */
#include "worker/trace_exporter.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "core/pacing.h"
#include "egress/egress.h"
#include "service/tracer.h"

/* How long a span waits at most for others, where the collector takes them. */
#define EVERY_MS 1000
#define ANSWER_BYTES_MAX ((size_t)64 * 1024)
#define HEADER_BYTES_MAX ((size_t)16 * 1024)
#define RETRY_AFTER_MAX_MS 60000
/* What is left is sent within this time when the process ends. */
#define LAST_MS 2000

static const struct hpx_backoff backoff = { .base_ms = 1000, .cap_ms = 30000 };

struct hpx_trace_exporter {
	struct hpx_tracer *tracer;
	struct hpx_settings *settings; /* of the start: the collector is theirs */
	struct hpx_egress *egress;
	/* Under the tracer's lock. */
	bool under_way; /* the engine has the request */
	bool over;      /* the thread sends nothing more */
	/* The thread's own, and the owner's after it has ended. */
	struct hpx_trace_span *batch;
	size_t batch_count;
	uint32_t failures; /* in a row */
	struct hpx_buffer headers, body;
	struct hpx_egress_request request;
};

/* ---- one request ---- */

/* On the engine's thread. */
static void on_ended(struct hpx_egress_request *request)
{
	struct hpx_trace_exporter *exporter = HPX_CONTAINER(request, struct hpx_trace_exporter, request);

	hpx_thread_lock(&exporter->tracer->thread);
	exporter->under_way = false;
	hpx_thread_wake(&exporter->tracer->thread);
	hpx_thread_unlock(&exporter->tracer->thread);
}

static enum hpx_status make_body(struct hpx_trace_exporter *exporter)
{
	exporter->body.len = 0;
	return hpx_otlp_print(exporter->batch, exporter->batch_count, exporter->settings->traces.service_name,
			      &exporter->body);
}

static enum hpx_status submit(struct hpx_trace_exporter *exporter, int64_t timeout_ms)
{
	const struct hpx_caller *caller = &exporter->settings->traces.caller;
	enum hpx_status status = make_body(exporter);

	if (status != HPX_OK)
		return status;
	exporter->request = (struct hpx_egress_request){
		.url = caller->url,
		.method = "POST",
		.headers = hpx_buffer_span(&exporter->headers),
		.body = hpx_buffer_span(&exporter->body),
		/* Spans that arrive twice are the same spans. */
		.reuse = true,
		.connect_timeout_ms = caller->connect_timeout_ms < timeout_ms ? caller->connect_timeout_ms : timeout_ms,
		.timeout_ms = timeout_ms,
		.answer_bytes_max = ANSWER_BYTES_MAX,
		.ca_file = caller->ca_file,
		.done = on_ended,
	};
	exporter->under_way = true;
	status = hpx_egress_submit(exporter->egress, &exporter->request);
	if (status != HPX_OK)
		exporter->under_way = false;
	return status;
}

/* ---- what became of it ---- */

static void drop_batch(struct hpx_trace_exporter *exporter)
{
	hpx_counter_add(&exporter->tracer->dropped, exporter->batch_count);
	exporter->batch_count = 0;
}

/* The collector has answered that it has the spans, all or some of them. */
static bool is_taken(const struct hpx_egress_request *request, uint64_t *ret_rejected)
{
	return request->end == HPX_EGRESS_ANSWERED && request->status >= 200 && request->status < 300 &&
	       !request->body_dropped && hpx_otlp_read_answer(hpx_buffer_span(&request->body_in), ret_rejected);
}

/* The protocol's own list; and where there was no answer, the batch is sent again too. */
static bool may_retry(const struct hpx_egress_request *request)
{
	return request->end != HPX_EGRESS_ANSWERED || request->status == 429 || request->status == 502 ||
	       request->status == 503 || request->status == 504;
}

static void log_failure(const struct hpx_egress_request *request, enum hpx_status status)
{
	if (status != HPX_OK)
		hpx_log(HPX_LOG_WARN, "traces_down", "reason=\"the spans cannot be sent: %s %s\"",
			hpx_status_text(status), request->problem);
	else if (request->end != HPX_EGRESS_ANSWERED)
		hpx_log(HPX_LOG_WARN, "traces_down", "reason=\"%s: %s\"", hpx_egress_end_text(request->end),
			request->problem);
	else
		hpx_log(HPX_LOG_WARN, "traces_down",
			"status=%u reason=\"the collector %s; see traces.endpoint\"", request->status,
			request->status < 300 ? "answered something that is no OTLP in JSON" :
						"does not take the spans");
}

static void note_taken(struct hpx_trace_exporter *exporter, uint64_t rejected)
{
	if (rejected > exporter->batch_count)
		rejected = exporter->batch_count;
	hpx_counter_add(&exporter->tracer->exported, exporter->batch_count - rejected);
	hpx_counter_add(&exporter->tracer->dropped, rejected);
	exporter->batch_count = 0;
	if (exporter->failures > 0)
		hpx_log(HPX_LOG_INFO, "traces_up", "reason=\"the collector takes spans again\"");
	exporter->failures = 0;
}

/* Returns how long to wait before the next request. */
static int64_t note_failed(struct hpx_trace_exporter *exporter, enum hpx_status status)
{
	const struct hpx_egress_request *request = &exporter->request;
	uint64_t random;

	if (exporter->failures++ == 0)
		log_failure(request, status);
	if (status != HPX_OK || !may_retry(request))
		drop_batch(exporter);
	hpx_random(&random, sizeof(random));
	int64_t delay_ms = hpx_backoff_delay(&backoff, exporter->failures, random);
	return hpx_backoff_heed(EVERY_MS + delay_ms, status == HPX_OK ? request->retry_after_ms : -1,
				RETRY_AFTER_MAX_MS);
}

/* With the lock held, which is let go meanwhile. Returns how long to wait before the next
 * request: 0 where the collector took the batch. */
static int64_t send_batch(struct hpx_trace_exporter *exporter, int64_t timeout_ms)
{
	struct hpx_thread *thread = &exporter->tracer->thread;
	uint64_t rejected = 0;
	int64_t wait_ms = 0;

	hpx_thread_unlock(thread);
	enum hpx_status status = submit(exporter, timeout_ms);
	hpx_thread_lock(thread);
	while (exporter->under_way)
		hpx_thread_wait(thread, INT64_MAX);
	hpx_thread_unlock(thread);
	if (status == HPX_OK && is_taken(&exporter->request, &rejected))
		note_taken(exporter, rejected);
	else
		wait_ms = note_failed(exporter, status);
	hpx_egress_request_done(&exporter->request);
	hpx_thread_lock(thread);
	return wait_ms;
}

/* ---- the thread ---- */

/* With the lock held. */
static bool fill_batch(struct hpx_trace_exporter *exporter)
{
	if (exporter->batch_count == 0)
		exporter->batch_count = hpx_tracer_take(exporter->tracer, exporter->batch, HPX_TRACE_BATCH);
	return exporter->batch_count > 0;
}

static void wait_until(struct hpx_tracer *tracer, int64_t until_ms, bool for_batch)
{
	while (!tracer->thread.stopping && hpx_clock_boot_ms() < until_ms &&
	       !(for_batch && tracer->count >= HPX_TRACE_BATCH))
		hpx_thread_wait(&tracer->thread, until_ms);
}

static void *run(void *user)
{
	struct hpx_trace_exporter *exporter = user;
	struct hpx_tracer *tracer = exporter->tracer;
	int64_t timeout_ms = exporter->settings->traces.caller.timeout_ms;
	int64_t wait_ms = 0;

	hpx_thread_lock(&tracer->thread);
	while (!tracer->thread.stopping) {
		/* After a failure, a full batch does not hurry. */
		wait_until(tracer, hpx_clock_boot_ms() + (wait_ms > 0 ? wait_ms : EVERY_MS), wait_ms == 0);
		wait_ms = !tracer->thread.stopping && fill_batch(exporter) ? send_batch(exporter, timeout_ms) : 0;
	}
	/* The last ones; a collector that is down is asked once. */
	int64_t until_ms = hpx_clock_boot_ms() + LAST_MS;
	int64_t left_ms = LAST_MS;
	while (left_ms > 0 && fill_batch(exporter) &&
	       send_batch(exporter, left_ms < timeout_ms ? left_ms : timeout_ms) == 0)
		left_ms = until_ms - hpx_clock_boot_ms();
	while (fill_batch(exporter))
		drop_batch(exporter);
	exporter->over = true;
	hpx_thread_wake(&tracer->thread);
	hpx_thread_unlock(&tracer->thread);
	return NULL;
}

/* ---- start and stop ---- */

static void dispose(struct hpx_trace_exporter *exporter)
{
	hpx_egress_free(exporter->egress);
	hpx_buffer_done(&exporter->headers);
	hpx_buffer_done(&exporter->body);
	hpx_settings_unref(exporter->settings);
	free(exporter->batch);
	free(exporter);
}

static enum hpx_status make(struct hpx_trace_exporter *exporter)
{
	struct hpx_egress_options options = { .running_max = 1 };
	enum hpx_status status = hpx_buffer_text(&exporter->headers, "Content-Type: application/json\r\n");

	exporter->batch = calloc(HPX_TRACE_BATCH, sizeof(*exporter->batch));
	if (status == HPX_OK)
		status = hpx_buffer_append(&exporter->headers, exporter->settings->traces.caller.headers);
	if (status != HPX_OK || exporter->batch == NULL)
		return HPX_NOMEM;
	status = hpx_egress_start(&options, &exporter->egress);
	if (status != HPX_OK)
		return status;
	status = hpx_thread_run(&exporter->tracer->thread, run, exporter);
	if (status != HPX_OK)
		hpx_egress_stop(exporter->egress, 0);
	return status;
}

enum hpx_status hpx_trace_exporter_start(struct hpx_service *service,
					 struct hpx_trace_exporter **ret_exporter)
{
	struct hpx_trace_exporter *exporter;

	if (service->tracer == NULL)
		return HPX_OK;
	exporter = calloc(1, sizeof(*exporter));
	if (exporter == NULL)
		return HPX_NOMEM;
	exporter->tracer = service->tracer;
	exporter->settings = hpx_settings_ref(service->settings);
	hpx_buffer_init(&exporter->headers, HEADER_BYTES_MAX);
	hpx_buffer_init(&exporter->body, HPX_OTLP_BYTES_MAX);
	enum hpx_status status = make(exporter);
	if (status == HPX_OK)
		*ret_exporter = exporter;
	else
		dispose(exporter);
	return status;
}

void hpx_trace_exporter_stop(struct hpx_trace_exporter *exporter)
{
	struct hpx_thread *thread;
	int64_t until_ms = hpx_clock_boot_ms() + LAST_MS;

	if (exporter == NULL)
		return;
	thread = &exporter->tracer->thread;
	hpx_thread_lock(thread);
	thread->stopping = true;
	hpx_thread_wake(thread);
	while (!exporter->over && hpx_clock_boot_ms() < until_ms)
		hpx_thread_wait(thread, until_ms);
	hpx_thread_unlock(thread);
	/* Cuts off a request that still waits for a slow collector. */
	hpx_egress_stop(exporter->egress, 0);
	hpx_thread_stop(thread);
	dispose(exporter);
}
