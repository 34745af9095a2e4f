/* Prometheus text from the counters of all loops. Reads only atomics: asking
 * for metrics never holds up a request. */
#include "gateway/gateway.h"

#include "base/utf8.h"
#include "core/record.h"
#include "gateway/subrequest.h"
#include "gateway/webhook.h"
#include "service/outbox_meter.h"

struct page {
	struct hpx_gateway *gateway;
	struct hpx_buffer *out;
	enum hpx_status status; /* the first failure stays */
};

#define PRINT(page, ...) \
	do { \
		if ((page)->status == HPX_OK) \
			(page)->status = hpx_buffer_printf((page)->out, __VA_ARGS__); \
	} while (0)

static void head(struct page *p, const char *name, const char *type, const char *help)
{
	PRINT(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The sum over all loops of the counter at this place in struct hpx_meter. */
static unsigned long long sum(const struct page *p, size_t offset)
{
	unsigned long long total = 0;

	for (unsigned i = 0; i < p->gateway->shard_count; i++)
		total += hpx_counter_read((const struct hpx_counter *)((const char *)&p->gateway->shards[i].meter + offset));
	return total;
}

#define SUM(p, member) sum((p), offsetof(struct hpx_meter, member))

static void counter(struct page *p, const char *name, const char *help, unsigned long long value)
{
	head(p, name, "counter", help);
	PRINT(p, "%s %llu\n", name, value);
}

static void gauge(struct page *p, const char *name, const char *help, unsigned long long value)
{
	head(p, name, "gauge", help);
	PRINT(p, "%s %llu\n", name, value);
}

static void print_reservations(struct page *p)
{
	head(p, "hapax_reserve_total", "counter", "Guarded requests by what they got.");
	for (int v = 0; v < HPX_VERDICT_COUNT; v++)
		if (v != HPX_VERDICT_REFINGERPRINT)
			PRINT(p, "hapax_reserve_total{outcome=\"%s\"} %llu\n",
			      hpx_verdict_name((enum hpx_verdict)v),
			      sum(p, offsetof(struct hpx_meter, reserved) +
					     (size_t)v * sizeof(struct hpx_counter)));
	head(p, "hapax_observed_total", "counter", "Observed requests by what would have happened.");
	for (int o = 0; o < HPX_OBSERVED_COUNT; o++)
		PRINT(p, "hapax_observed_total{would=\"%s\"} %llu\n",
		      hpx_observed_name((enum hpx_observed)o),
		      sum(p, offsetof(struct hpx_meter, observed) +
				     (size_t)o * sizeof(struct hpx_counter)));
	head(p, "hapax_problems_total", "counter", "Answers of hapax's own, by code.");
	for (int c = 0; c < HPX_PROBLEM_COUNT; c++)
		PRINT(p, "hapax_problems_total{code=\"%s\"} %llu\n",
		      hpx_problem_kind((enum hpx_problem_code)c)->code,
		      sum(p, offsetof(struct hpx_meter, problems) +
				     (size_t)c * sizeof(struct hpx_counter)));
}

/* A label's value: quotes and backslashes escaped. A tenant's name may have any
 * bytes and was cut to its length; one byte that is no UTF-8 would have the whole
 * page refused, so that such a byte, and a control byte, is written as \\xNN. */
static void label(struct page *p, struct hpx_span text)
{
	while (text.len > 0 && p->status == HPX_OK) {
		size_t len = hpx_utf8_sequence(text);
		unsigned char first = (unsigned char)text.ptr[0];
		struct hpx_span piece = hpx_span_first(text, len > 0 ? len : 1);
		if (len == 0 || first < 0x20)
			p->status = hpx_buffer_printf(p->out, "\\\\x%02x", first);
		else if (first == '"' || first == '\\')
			p->status = hpx_buffer_byte(p->out, '\\');
		if (p->status == HPX_OK && len > 0 && first >= 0x20)
			p->status = hpx_buffer_append(p->out, piece);
		text = hpx_span_skip(text, piece.len);
	}
}

static void print_unkeyed(struct page *p, const struct hpx_settings *settings)
{
	head(p, "hapax_unkeyed_total", "counter",
	     "State-changing requests that came without a key, by route.");
	for (size_t i = 0; i <= settings->route_count && i < HPX_METER_ROUTES; i++) {
		const struct hpx_route *route =
			i < settings->route_count ? &settings->routes[i] : &settings->fallback;
		size_t number = route->number < HPX_METER_ROUTES ? route->number :
								   HPX_METER_ROUTES - 1;
		PRINT(p, "hapax_unkeyed_total{route=\"");
		label(p, route->pattern);
		PRINT(p, "\"} %llu\n", sum(p, offsetof(struct hpx_meter, unkeyed) + number * sizeof(struct hpx_counter)));
	}
}

static void print_async(struct page *p)
{
	head(p, "hapax_async_total", "counter",
	     "Requests on routes that deliver later, by what they got.");
	for (int a = 0; a < HPX_ASYNC_COUNT; a++)
		PRINT(p, "hapax_async_total{result=\"%s\"} %llu\n",
		      hpx_async_name((enum hpx_async)a),
		      sum(p, offsetof(struct hpx_meter, async) +
				     (size_t)a * sizeof(struct hpx_counter)));
}

static void print_webhooks(struct page *p, const struct hpx_settings *settings)
{
	if (settings->webhook_count == 0 || p->gateway->hooks == NULL)
		return;
	head(p, "hapax_webhooks_total", "counter", "Webhooks by what they came to.");
	for (size_t i = 0; i < settings->webhook_count; i++) {
		for (int r = 0; r < HPX_HOOK_COUNT; r++) {
			PRINT(p, "hapax_webhooks_total{webhook=\"");
			label(p, settings->webhooks[i].name);
			PRINT(p, "\",result=\"%s\"} %llu\n",
			      hpx_hook_result_name((enum hpx_hook_result)r),
			      (unsigned long long)hpx_hooks_count(p->gateway->hooks, i,
								  (enum hpx_hook_result)r));
		}
	}
}

static void print_subrequests(struct page *p)
{
	if (p->gateway->subrequests == NULL)
		return;
	head(p, "hapax_subrequests_total", "counter",
	     "Questions whom credentials belong to, by their answer.");
	for (int r = 0; r < HPX_SUBREQUEST_COUNT; r++)
		PRINT(p, "hapax_subrequests_total{result=\"%s\"} %llu\n",
		      hpx_subrequest_result_name((enum hpx_subrequest_result)r),
		      (unsigned long long)hpx_subrequests_count(p->gateway->subrequests,
								(enum hpx_subrequest_result)r));
}

static void print_deliveries(struct page *p, const struct hpx_settings *settings)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_JOB_RESULT_LIST(X)
#undef X
	};
	const struct hpx_target_meter *targets = p->gateway->outbox->targets;

	head(p, "hapax_jobs_total", "counter", "Sendings of jobs, by target and how they ended.");
	for (size_t t = 0; targets != NULL && t < settings->target_count; t++) {
		for (int r = 0; r < HPX_JOB_RESULT_COUNT; r++) {
			PRINT(p, "hapax_jobs_total{target=\"");
			label(p, settings->targets[t].name);
			PRINT(p, "\",result=\"%s\"} %llu\n", names[r],
			      (unsigned long long)hpx_counter_read(&targets[t].results[r]));
		}
	}
}

static void print_outbox(struct page *p, const struct hpx_settings *settings)
{
	static const char *const reconciled[] = {
#define X(name) #name,
		HPX_RECONCILED_LIST(X)
#undef X
	};
	const struct hpx_outbox_meter *outbox = p->gateway->outbox;

	if (outbox == NULL)
		return;
	print_deliveries(p, settings);
	head(p, "hapax_jobs", "gauge", "Jobs in the store, by state.");
	for (int s = HPX_JOB_QUEUED; s < HPX_JOB_STATE_COUNT; s++)
		PRINT(p, "hapax_jobs{state=\"%s\"} %llu\n",
		      hpx_job_state_name((enum hpx_job_state)s),
		      (unsigned long long)hpx_counter_read(&outbox->jobs[s]));
	gauge(p, "hapax_oldest_queued_job_seconds",
	      "How long the job that waits longest has been due.",
	      hpx_counter_read(&outbox->oldest_queued_s));
	head(p, "hapax_reconcile_total", "counter", "Unknown outcomes by what became of them.");
	for (int r = 0; r < HPX_RECONCILED_COUNT; r++)
		PRINT(p, "hapax_reconcile_total{result=\"%s\"} %llu\n",
		      reconciled[r],
		      (unsigned long long)hpx_counter_read(&outbox->reconciled[r]));
	head(p, "hapax_probes_under_way", "gauge", "Questions asked and not answered yet.");
	PRINT(p, "hapax_probes_under_way %llu\n",
	      (unsigned long long)hpx_counter_read(&outbox->probes_under_way));
	head(p, "hapax_dead", "gauge", "What only a person can settle.");
	PRINT(p, "hapax_dead{kind=\"operation\"} %llu\nhapax_dead{kind=\"job\"} %llu\n",
	      (unsigned long long)hpx_counter_read(&outbox->dead_operations),
	      (unsigned long long)hpx_counter_read(&outbox->dead_jobs));
}

/* The same tenant may have a row on several loops: the loop is a label. */
static void print_tenants(struct page *p)
{
	head(p, "hapax_duplicates_total", "counter", "Retries of a known operation, by tenant.");
	for (unsigned s = 0; s < p->gateway->shard_count; s++) {
		struct hpx_meter *meter = &p->gateway->shards[s].meter;
		for (size_t i = 0; i < HPX_METER_TENANTS; i++) {
			struct hpx_meter_tenant *row = &meter->tenants[i];
			if (!atomic_load_explicit(&row->ready, memory_order_acquire))
				break;
			PRINT(p, "hapax_duplicates_total{loop=\"%u\",tenant=\"", s);
			label(p, hpx_span_of(row->name));
			PRINT(p, "\"} %llu\n",
			      (unsigned long long)hpx_counter_read(&row->duplicates));
		}
	}
	PRINT(p, "hapax_duplicates_total{loop=\"all\",tenant=\"(others)\"} %llu\n",
	      SUM(p, other_tenants));
}

static void print_histogram(struct page *p, const char *name, const char *help, size_t offset)
{
	struct hpx_histogram all = { 0 };

	for (unsigned i = 0; i < p->gateway->shard_count; i++)
		hpx_histogram_merge(&all, (const struct hpx_histogram *)((const char *)&p->gateway->shards[i].meter + offset));
	if (p->status == HPX_OK)
		p->status = hpx_histogram_print(&all, name, help, 1e6, p->out);
}

static void print_slots(struct page *p)
{
	static const char *const kinds[] = { [HPX_SLOT_GUARDED] = "guarded",
					     [HPX_SLOT_PASS] = "pass",
					     [HPX_SLOT_TUNNEL] = "tunnel" };

	head(p, "hapax_upstream_slots", "gauge", "Upstream connections in use or promised, by kind.");
	for (size_t kind = 0; kind < HPX_SLOT_KIND_COUNT; kind++)
		PRINT(p, "hapax_upstream_slots{kind=\"%s\"} %llu\n", kinds[kind],
		      sum(p, offsetof(struct hpx_meter, slots_held) +
				     kind * sizeof(struct hpx_counter)));
	head(p, "hapax_upstream_queue", "gauge",
	     "Requests that wait for an upstream connection, by kind.");
	for (size_t kind = 0; kind < HPX_SLOT_TUNNEL; kind++)
		PRINT(p, "hapax_upstream_queue{kind=\"%s\"} %llu\n", kinds[kind],
		      sum(p, offsetof(struct hpx_meter, slots_queued) +
				     kind * sizeof(struct hpx_counter)));
	head(p, "hapax_upstream_queue_total", "counter",
	     "Requests that found no free upstream connection, by what became of them.");
	for (int q = 0; q < HPX_QUEUED_COUNT; q++)
		PRINT(p, "hapax_upstream_queue_total{result=\"%s\"} %llu\n",
		      hpx_queued_name((enum hpx_queued)q),
		      sum(p, offsetof(struct hpx_meter, queued) +
				     (size_t)q * sizeof(struct hpx_counter)));
	print_histogram(p, "hapax_upstream_queue_seconds",
			"How long requests waited for an upstream connection.",
			offsetof(struct hpx_meter, queue_us));
}

static void print_cache(struct page *p)
{
	const struct hpx_cache *cache = p->gateway->cache;

	head(p, "hapax_cache_total", "counter",
	     "Looks into the answers kept in memory, by whether the store had to be asked.");
	PRINT(p, "hapax_cache_total{result=\"hit\"} %llu\n", SUM(p, cache_hits));
	PRINT(p, "hapax_cache_total{result=\"miss\"} %llu\n", SUM(p, cache_misses));
	gauge(p, "hapax_cache_bytes", "Answers kept in memory.",
	      cache != NULL ? hpx_cache_bytes(cache) : 0);
}

/* 0 everywhere where the store looks at no disk. */
static void print_space(struct page *p, const struct hpx_store *store)
{
	gauge(p, "hapax_space_low", "Less than limits.free_space is free: new keys are refused.",
	      atomic_load(&store->space_low));
	head(p, "hapax_space_free_bytes", "gauge", "What the store may still write into.");
	PRINT(p, "hapax_space_free_bytes{where=\"disk\"} %llu\n",
	      (unsigned long long)atomic_load(&store->space.disk_bytes));
	PRINT(p, "hapax_space_free_bytes{where=\"file\"} %llu\n",
	      (unsigned long long)atomic_load(&store->space.file_bytes));
	gauge(p, "hapax_store_log_bytes", "The size of the store's log.",
	      atomic_load(&store->space.log_bytes));
}

static void print_store(struct page *p)
{
	struct hpx_gateway *gateway = p->gateway;

	head(p, "hapax_operations", "gauge", "Operations in the store, by state.");
	for (int s = HPX_STATE_NONE + 1; s < HPX_STATE_COUNT; s++)
		PRINT(p, "hapax_operations{state=\"%s\"} %llu\n",
		      hpx_state_name((enum hpx_state)s),
		      (unsigned long long)hpx_counter_read(&gateway->operations[s]));
	gauge(p, "hapax_oldest_unknown_seconds", "Age of the oldest operation with an unknown outcome.",
	      hpx_counter_read(&gateway->oldest_unknown_s));
	counter(p, "hapax_leases_lost_total", "Leases that were lost.",
		hpx_counter_read(&gateway->leases_lost));
	counter(p, "hapax_reaped_total", "Expired operations that were deleted.",
		hpx_counter_read(&gateway->reaped));
	if (gateway->store == NULL)
		return;
	counter(p, "hapax_store_errors_total", "Calls into the store that failed.",
		hpx_counter_read(&gateway->store->errors));
	gauge(p, "hapax_store_up", "Whether the store took the last write.",
	      hpx_committer_healthy(gateway->committer));
	print_space(p, gateway->store);
	gauge(p, "hapax_expiry_held", "Wall clock and boot clock have parted: nothing expires.",
	      atomic_load(&gateway->store->expiry_held));
	if (p->status == HPX_OK)
		p->status = hpx_histogram_print(&gateway->store->commit_us, "hapax_commit_seconds",
						"Time of a batch in the store.", 1e6, p->out);
	if (p->status == HPX_OK)
		p->status = hpx_histogram_print(&gateway->store->batch_ops, "hapax_batch_operations",
						"Operations in one batch.", 1, p->out);
}

/* Only where somebody talks to it: hapax work does not. */
static void print_upstream(struct page *p)
{
	struct hpx_upstream_state *state = &p->gateway->upstream_state;

	if (p->gateway->shard_count == 0)
		return;
	gauge(p, "hapax_upstream_up",
	      "Whether the last connection to the upstream came about (1 before the first).",
	      !atomic_load(&state->down));
	counter(p, "hapax_upstream_stray_total",
		"Times that the upstream sent bytes that nobody had asked for.",
		(unsigned long long)atomic_load(&state->strays));
	gauge(p, "hapax_upstream_quarantined",
	      "Guarded requests use no kept connection, because of stray bytes.",
	      hpx_upstream_in_quarantine(state));
}

enum hpx_status hpx_gateway_metrics(struct hpx_gateway *gateway, struct hpx_settings *settings,
				    struct hpx_buffer *out)
{
	struct page p = { .gateway = gateway, .out = out };

	print_reservations(&p);
	print_unkeyed(&p, settings);
	print_tenants(&p);
	counter(&p, "hapax_requests_total", "Requests answered.", SUM(&p, requests));
	counter(&p, "hapax_passed_total", "Requests passed through unguarded.", SUM(&p, passed));
	counter(&p, "hapax_tenant_changed_total",
		"New operations whose scope, key and fingerprint were seen under another tenant.",
		SUM(&p, tenant_changed));
	counter(&p, "hapax_anonymous_total",
		"Requests that no credential named, taken as the anonymous tenant's.",
		SUM(&p, anonymous));
	counter(&p, "hapax_unlisted_credentials_total",
		"Requests with an unlisted *-token, *-secret or the like beside what names their tenant.",
		SUM(&p, suspects));
	counter(&p, "hapax_leases_renewed_total", "Leases that were renewed.",
		SUM(&p, leases_renewed));
	counter(&p, "hapax_late_answers_total",
		"Answers stored after the client was told that the outcome is unknown.",
		SUM(&p, late_answers));
	gauge(&p, "hapax_connections", "Client connections.", atomic_load(&gateway->connections));
	gauge(&p, "hapax_bodies_bytes", "Bodies held in memory.",
	      atomic_load(&gateway->bodies_bytes));
	gauge(&p, "hapax_waiting", "Requests that wait for another's answer.",
	      gateway->waitlist != NULL ? hpx_waitlist_count(gateway->waitlist) : 0);
	print_slots(&p);
	print_upstream(&p);
	print_async(&p);
	print_webhooks(&p, settings);
	print_subrequests(&p);
	print_outbox(&p, settings);
	print_cache(&p);
	print_store(&p);
	print_histogram(&p, "hapax_request_seconds", "The whole request, from its first byte.",
			offsetof(struct hpx_meter, request_us));
	print_histogram(&p, "hapax_upstream_seconds", "A guarded attempt, from connecting to the end of its answer.",
			offsetof(struct hpx_meter, upstream_us));
	return p.status;
}
