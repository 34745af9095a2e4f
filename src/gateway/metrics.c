/* The metrics of the gateway's event loops, each counter as the sum over all
 * loops. Reads only atomics: asking for metrics never holds up a request. */
#include "gateway/meter.h"

#include "base/log_writer.h"
#include "gateway/gateway.h"
#include "gateway/subrequest.h"
#include "gateway/verified_caller.h"
#include "gateway/webhook.h"

static const char *const observed_names[] = {
#define X(name) #name,
	HPX_OBSERVED_LIST(X)
#undef X
};
static const char *const async_names[] = {
#define X(name) #name,
	HPX_ASYNC_LIST(X)
#undef X
};
static const char *const queued_names[] = {
#define X(name) #name,
	HPX_QUEUED_LIST(X)
#undef X
};

static const char *const limited_names[] = {
#define X(name) #name,
	HPX_LIMITED_LIST(X)
#undef X
};

/* The sum over all loops of the counter at this offset in struct hpx_meter. */
static uint64_t sum(const struct hpx_gateway *gateway, size_t offset)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < gateway->shard_count; i++) {
		const char *meter = (const char *)&gateway->shards[i].meter;
		total += hpx_counter_read((const struct hpx_counter *)(meter + offset));
	}
	return total;
}

#define SUM(gateway, member) sum((gateway), offsetof(struct hpx_meter, member))
/* Of the counter with that index in an array of them. */
#define SUM_AT(gateway, member, index) \
	sum((gateway), offsetof(struct hpx_meter, member) + \
			       (size_t)(index) * sizeof(struct hpx_counter))

static void print_reservations(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_reserve_total", "counter", "Guarded requests by what they got.");
	for (int v = 0; v < HPX_DECISION_COUNT; v++)
		if (v != HPX_DECISION_REFINGERPRINT)
			hpx_metric_sample(page, "hapax_reserve_total", "outcome",
					  hpx_span_of(hpx_decision_name((enum hpx_decision_kind)v)),
					  SUM_AT(gateway, reserved, v));
	hpx_metric_sample(page, "hapax_reserve_total", "outcome", HPX_SPAN("after_expiry"),
			  SUM(gateway, after_expiry));
	hpx_metric_head(page, "hapax_problems_total", "counter", "Answers of hapax's own, by code.");
	for (int c = 0; c < HPX_PROBLEM_COUNT; c++)
		hpx_metric_sample(page, "hapax_problems_total", "code",
				  hpx_span_of(hpx_problem_kind((enum hpx_problem_code)c)->code),
				  SUM_AT(gateway, problems, c));
}

/* The route of a row; NULL behind the last one. */
static const struct hpx_route *route_at(const struct hpx_gateway *gateway, size_t i)
{
	const struct hpx_settings *settings = gateway->service->settings;

	if (i > settings->route_count || i >= HPX_METER_ROUTES)
		return NULL;
	return i < settings->route_count ? &settings->routes[i] : &settings->fallback;
}

static void print_unkeyed(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct hpx_route *route;

	hpx_metric_head(page, "hapax_unkeyed_total", "counter",
			"State-changing requests that came without a key, by route.");
	for (size_t i = 0; (route = route_at(gateway, i)) != NULL; i++)
		hpx_metric_sample(page, "hapax_unkeyed_total", "route", route->pattern,
				  SUM_AT(gateway, unkeyed, hpx_meter_route(route)));
}

static void print_observed(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct hpx_route *route;

	hpx_metric_head(page, "hapax_observed_total", "counter",
			"Observed requests by what would have happened.");
	for (size_t i = 0; (route = route_at(gateway, i)) != NULL; i++)
		for (size_t o = 0; o < HPX_OBSERVED_COUNT; o++) {
			HPX_METRIC_PRINT(page, "hapax_observed_total{route=\"");
			hpx_metric_label(page, route->pattern);
			HPX_METRIC_PRINT(page, "\",would=\"%s\"} %llu\n", observed_names[o],
					 (unsigned long long)SUM_AT(gateway, observed,
								    hpx_meter_route(route) * HPX_OBSERVED_COUNT + o));
		}
}

static void print_async(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_async_total", "counter",
			"Requests on routes that deliver later, by what they got.");
	for (int a = 0; a < HPX_ASYNC_COUNT; a++)
		hpx_metric_sample(page, "hapax_async_total", "result",
				  hpx_span_of(async_names[a]),
				  SUM_AT(gateway, async, a));
}

static void print_webhooks(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct hpx_settings *settings = gateway->service->settings;

	if (settings->webhook_count == 0)
		return;
	hpx_metric_head(page, "hapax_webhooks_total", "counter", "Webhooks by what they came to.");
	for (size_t i = 0; i < settings->webhook_count; i++) {
		for (int r = 0; r < HPX_WEBHOOK_COUNT; r++) {
			enum hpx_webhook_result result = (enum hpx_webhook_result)r;

			HPX_METRIC_PRINT(page, "hapax_webhooks_total{webhook=\"");
			hpx_metric_label(page, settings->webhooks[i].name);
			HPX_METRIC_PRINT(page, "\",result=\"%s\"} %llu\n", hpx_webhook_result_name(result),
					 (unsigned long long)hpx_webhook_states_count(gateway->webhooks, i, result));
		}
	}
}

static void print_subrequests(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	if (gateway->subrequests == NULL)
		return;
	hpx_metric_head(page, "hapax_subrequests_total", "counter",
			"Questions whom credentials belong to, by their answer.");
	for (int r = 0; r < HPX_SUBREQUEST_COUNT; r++) {
		enum hpx_subrequest_result result = (enum hpx_subrequest_result)r;

		hpx_metric_sample(page, "hapax_subrequests_total", "result",
				  hpx_span_of(hpx_subrequest_result_name(result)),
				  hpx_subrequests_count(gateway->subrequests, result));
	}
}

/* A counter of each tenant's row, which is at `offset`, and the sum for the others. The
 * same tenant may have a row on several loops: the loop is a label. */
static void print_tenant_counters(struct hpx_gateway *gateway, struct hpx_metric_page *page,
				  const char *name, size_t offset, uint64_t others)
{
	HPX_ASSERT(offset + sizeof(struct hpx_counter) <= sizeof(struct hpx_meter_tenant));
	for (unsigned s = 0; s < gateway->shard_count; s++) {
		struct hpx_meter *meter = &gateway->shards[s].meter;

		for (size_t i = 0; i < HPX_METER_TENANTS; i++) {
			struct hpx_meter_tenant *row = &meter->tenants[i];
			if (!atomic_load_explicit(&row->ready, memory_order_acquire))
				break;
			HPX_METRIC_PRINT(page, "%s{loop=\"%u\",tenant=\"", name, s);
			hpx_metric_label(page, hpx_span_of(row->name));
			HPX_METRIC_PRINT(page, "\"} %llu\n",
					 (unsigned long long)hpx_counter_read(
						 (struct hpx_counter *)((char *)row + offset)));
		}
	}
	HPX_METRIC_PRINT(page, "%s{loop=\"all\",tenant=\"(others)\"} %llu\n", name,
			 (unsigned long long)others);
}

static void print_tenants(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_duplicates_total", "counter",
			"Requests for a known operation, by tenant.");
	print_tenant_counters(gateway, page, "hapax_duplicates_total",
			      offsetof(struct hpx_meter_tenant, duplicates),
			      SUM(gateway, other_duplicates));
	hpx_metric_head(page, "hapax_mismatch_total", "counter",
			"Requests with the key of another request, by tenant.");
	print_tenant_counters(gateway, page, "hapax_mismatch_total",
			      offsetof(struct hpx_meter_tenant, mismatches),
			      SUM(gateway, other_mismatches));
}

/* A tenant's row has a sample for each limit that it met, so that the page stays small;
 * the others together have one for every limit. */
static void print_limited(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_limited_total", "counter",
			"Requests and connections refused by a limit, by tenant.");
	for (unsigned s = 0; s < gateway->shard_count; s++) {
		struct hpx_meter *meter = &gateway->shards[s].meter;

		for (size_t i = 0; i < HPX_METER_TENANTS; i++) {
			struct hpx_meter_tenant *row = &meter->tenants[i];
			if (!atomic_load_explicit(&row->ready, memory_order_acquire))
				break;
			for (int l = 0; l < HPX_LIMITED_COUNT; l++) {
				uint64_t count = hpx_counter_read(&row->limited[l]);
				if (count == 0)
					continue;
				HPX_METRIC_PRINT(page, "hapax_limited_total{limit=\"%s\",loop=\"%u\",tenant=\"",
						 limited_names[l], s);
				hpx_metric_label(page, hpx_span_of(row->name));
				HPX_METRIC_PRINT(page, "\"} %llu\n", (unsigned long long)count);
			}
		}
	}
	for (int l = 0; l < HPX_LIMITED_COUNT; l++)
		HPX_METRIC_PRINT(page, "hapax_limited_total{limit=\"%s\",loop=\"all\",tenant=\"(others)\"} %llu\n",
				 limited_names[l], (unsigned long long)SUM_AT(gateway, other_limited, l));
}

/* The histogram at this offset in struct hpx_meter, over all loops. */
static struct hpx_histogram merged(const struct hpx_gateway *gateway, size_t offset)
{
	struct hpx_histogram all = { 0 };

	for (unsigned i = 0; i < gateway->shard_count; i++) {
		const char *meter = (const char *)&gateway->shards[i].meter;
		hpx_histogram_merge(&all, (const struct hpx_histogram *)(meter + offset));
	}
	return all;
}

static void print_histogram(const struct hpx_gateway *gateway, struct hpx_metric_page *page,
			    const char *name, const char *help, size_t offset)
{
	struct hpx_histogram all = merged(gateway, offset);

	hpx_metric_histogram(page, name, help, &all, 1e6);
}

static void print_upstream_time(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct hpx_route *route;

	hpx_metric_head(page, "hapax_upstream_seconds", "histogram",
			"A guarded attempt, from connecting to the end of its answer, by route.");
	for (size_t i = 0; (route = route_at(gateway, i)) != NULL; i++) {
		struct hpx_histogram all =
			merged(gateway, offsetof(struct hpx_meter, upstream_us) +
						hpx_meter_route(route) * sizeof(struct hpx_histogram));

		hpx_metric_histogram_of(page, "hapax_upstream_seconds", "route", route->pattern, &all, 1e6);
	}
}

static void print_slots(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	static const char *const kinds[] = { [HPX_SLOT_GUARDED] = "guarded",
					     [HPX_SLOT_PASS] = "pass",
					     [HPX_SLOT_TUNNEL] = "tunnel" };

	hpx_metric_head(page, "hapax_upstream_slots", "gauge",
			"Upstream connections in use or promised, by kind.");
	for (size_t kind = 0; kind < HPX_SLOT_KIND_COUNT; kind++)
		hpx_metric_sample(page, "hapax_upstream_slots", "kind", hpx_span_of(kinds[kind]),
				  SUM_AT(gateway, slots_held, kind));
	hpx_metric_head(page, "hapax_upstream_queue", "gauge",
			"Requests that wait for an upstream connection, by kind.");
	for (size_t kind = 0; kind < HPX_SLOT_TUNNEL; kind++)
		hpx_metric_sample(page, "hapax_upstream_queue", "kind", hpx_span_of(kinds[kind]),
				  SUM_AT(gateway, slots_queued, kind));
	hpx_metric_head(page, "hapax_upstream_queue_total", "counter",
			"Requests that found no free upstream connection, by what became of them.");
	for (int q = 0; q < HPX_QUEUED_COUNT; q++)
		hpx_metric_sample(page, "hapax_upstream_queue_total", "result",
				  hpx_span_of(queued_names[q]),
				  SUM_AT(gateway, queued, q));
	print_histogram(gateway, page, "hapax_upstream_queue_seconds",
			"How long requests waited for an upstream connection.",
			offsetof(struct hpx_meter, queue_us));
}

static void print_upstream(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	struct hpx_upstream_state *state = &gateway->upstream_state;

	hpx_metric_gauge(page, "hapax_upstream_up",
			 "Whether the last connection to the upstream came about (1 before the first).",
			 !atomic_load(&state->down));
	hpx_metric_counter(page, "hapax_upstream_stray_total",
			   "Times that the upstream sent bytes that nobody had asked for.",
			   atomic_load(&state->strays));
	hpx_metric_gauge(page, "hapax_upstream_quarantined",
			 "Guarded requests use no kept connection, because of stray bytes.",
			 hpx_upstream_in_quarantine(state));
}

static void print_requests(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	hpx_metric_counter(page, "hapax_requests_total", "Requests answered.", SUM(gateway, requests));
	hpx_metric_counter(page, "hapax_passed_total", "Requests passed through unguarded.",
			   SUM(gateway, passed));
	hpx_metric_counter(page, "hapax_tenant_changed_total",
			   "New operations whose scope, key and fingerprint were seen under another "
			   "tenant.",
			   SUM(gateway, tenant_changed));
	hpx_metric_counter(page, "hapax_anonymous_total",
			   "Requests that no credential named, taken as the anonymous tenant's.",
			   SUM(gateway, anonymous));
	hpx_metric_counter(page, "hapax_unlisted_credentials_total",
			   "Requests with an unlisted *-token, *-secret or the like beside what names "
			   "their tenant.",
			   SUM(gateway, suspects));
	hpx_metric_counter(page, "hapax_leases_renewed_total", "Leases that were renewed.",
			   SUM(gateway, leases_renewed));
	hpx_metric_counter(page, "hapax_late_answers_total",
			   "Answers stored after the client was told that the outcome is unknown.",
			   SUM(gateway, late_answers));
	hpx_metric_counter(page, "hapax_proxy_refused_total",
			   "Connections closed for want of a PROXY header from a trusted peer.",
			   SUM(gateway, proxy_refused));
	hpx_metric_counter(page, "hapax_descriptors_exhausted_total",
			   "Client connections closed because no file descriptor was left for them.",
			   SUM(gateway, descriptors_exhausted));
	hpx_metric_counter(page, "hapax_access_log_dropped_total",
			   "Lines of the access log that were dropped, because they could not be written "
			   "as fast as they came.",
			   SUM(gateway, access_lost) + (gateway->access_writer != NULL ?
								hpx_log_writer_dropped(gateway->access_writer) :
								0));
	hpx_metric_gauge(page, "hapax_connections", "Client connections.",
			 atomic_load(&gateway->connections));
	hpx_metric_gauge(page, "hapax_bodies_bytes", "Bodies held in memory.",
			 atomic_load(&gateway->bodies_bytes));
	hpx_metric_gauge(page, "hapax_waiting", "Requests that wait for another's answer.",
			 hpx_waitlist_count(gateway->service->waitlist));
}

static void print_cache(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct hpx_cache *cache = gateway->service->cache;

	hpx_metric_head(page, "hapax_cache_total", "counter",
			"Looks into the answers kept in memory, by whether the store had to be asked.");
	hpx_metric_sample(page, "hapax_cache_total", "result", HPX_SPAN("hit"),
			  SUM(gateway, cache_hits));
	hpx_metric_sample(page, "hapax_cache_total", "result", HPX_SPAN("miss"),
			  SUM(gateway, cache_misses));
	hpx_metric_gauge(page, "hapax_cache_bytes", "Answers kept in memory.",
			 cache != NULL ? hpx_cache_bytes(cache) : 0);
}

void hpx_gateway_metrics(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	print_reservations(gateway, page);
	print_observed(gateway, page);
	print_unkeyed(gateway, page);
	print_tenants(gateway, page);
	print_limited(gateway, page);
	print_requests(gateway, page);
	print_slots(gateway, page);
	print_upstream(gateway, page);
	print_async(gateway, page);
	print_webhooks(gateway, page);
	print_subrequests(gateway, page);
	hpx_verified_callers_metrics(gateway->verified_callers, page);
	print_cache(gateway, page);
	print_histogram(gateway, page, "hapax_request_seconds",
			"The whole request, from its first byte.",
			offsetof(struct hpx_meter, request_us));
	print_upstream_time(gateway, page);
}

/* ---- counting ---- */

/* The tenant's row, made where there is room; NULL: it has none. */
static struct hpx_meter_tenant *row_of(struct hpx_meter *meter, struct hpx_span tenant)
{
	struct hpx_span name = hpx_span_first(tenant, HPX_METER_TENANT_SIZE - 1);

	if (name.len == 0)
		return NULL;
	for (size_t i = 0; i < HPX_METER_TENANTS; i++) {
		struct hpx_meter_tenant *row = &meter->tenants[i];
		if (!atomic_load_explicit(&row->ready, memory_order_relaxed)) {
			memcpy(row->name, name.ptr, name.len);
			row->name[name.len] = '\0';
			atomic_store_explicit(&row->ready, true, memory_order_release);
			return row;
		}
		if (hpx_span_eq(hpx_span_of(row->name), name))
			return row;
	}
	return NULL;
}

void hpx_meter_duplicate(struct hpx_meter *meter, struct hpx_span tenant, bool mismatch)
{
	struct hpx_meter_tenant *row = row_of(meter, tenant);

	hpx_counter_add(row != NULL ? &row->duplicates : &meter->other_duplicates, 1);
	hpx_counter_add(row != NULL ? &row->mismatches : &meter->other_mismatches, mismatch ? 1 : 0);
}

void hpx_meter_limited(struct hpx_meter *meter, struct hpx_span tenant, enum hpx_limited limit)
{
	struct hpx_meter_tenant *row = row_of(meter, tenant);

	hpx_counter_add(row != NULL ? &row->limited[limit] : &meter->other_limited[limit], 1);
}
