/* The metrics of the gateway's event loops, each counter as the sum over all
 * loops. Reads only atomics: asking for metrics never holds up a request. */
#include "gateway/meter.h"

#include <stdlib.h>

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

/* ---- by route ---- */

#define OTHER_ROUTES HPX_SPAN("(others)")
#define OWN_PATHS HPX_SPAN("(own)")

/* The label of a row of the meter: the route's pattern, (others) for the row that many routes
 * share, (own) for the one behind them; empty: there is no such row. */
static struct hpx_span label_of_row(const struct hpx_settings *settings, size_t row)
{
	if (row == HPX_METER_ROUTES)
		return OWN_PATHS;
	if (row == HPX_METER_ROUTES - 1 && settings->route_count >= HPX_METER_ROUTES)
		return OTHER_ROUTES;
	if (row > settings->route_count)
		return HPX_SPAN("");
	return row < settings->route_count ? settings->routes[row].pattern : settings->fallback.pattern;
}

/* Whether a row comes first with its label. Two routes may have one pattern, for two hosts:
 * they are one series, which every row with the label adds to. */
static bool begins_series(const struct hpx_settings *settings, size_t row, struct hpx_span label)
{
	if (label.len == 0)
		return false;
	for (size_t i = 0; i < row; i++)
		if (hpx_span_eq(label_of_row(settings, i), label))
			return false;
	return true;
}

/* A table of counters in struct hpx_meter: a row for each route, with columns. */
struct route_table {
	size_t offset;
	size_t rows;
	size_t columns;
	const char *label; /* of the columns; NULL: there is one */
	const char *const *names;
};

/* One column of the rows with this label, from the first of them on. */
static uint64_t sum_rows(const struct hpx_gateway *gateway, const struct route_table *table,
			 size_t first, struct hpx_span label, size_t column)
{
	uint64_t total = 0;

	for (size_t i = first; i < table->rows; i++)
		if (hpx_span_eq(label_of_row(gateway->service->settings, i), label))
			total += sum(gateway, table->offset + (i * table->columns + column) *
								      sizeof(struct hpx_counter));
	return total;
}

static void print_table(const struct hpx_gateway *gateway, struct hpx_metric_page *page,
			const char *metric, const struct route_table *table)
{
	const struct hpx_settings *settings = gateway->service->settings;

	for (size_t i = 0; i < table->rows; i++) {
		struct hpx_span label = label_of_row(settings, i);

		if (!begins_series(settings, i, label))
			continue;
		for (size_t c = 0; c < table->columns; c++) {
			HPX_METRIC_PRINT(page, "%s{route=\"", metric);
			hpx_metric_label(page, label);
			if (table->label != NULL)
				HPX_METRIC_PRINT(page, "\",%s=\"%s", table->label, table->names[c]);
			HPX_METRIC_PRINT(page, "\"} %llu\n",
					 (unsigned long long)sum_rows(gateway, table, i, label, c));
		}
	}
}

static void print_unkeyed(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct route_table table = { .offset = offsetof(struct hpx_meter, unkeyed),
					   .rows = HPX_METER_ROUTES,
					   .columns = 1 };

	hpx_metric_head(page, "hapax_unkeyed_total", "counter",
			"State-changing requests that came without a key, by route.");
	print_table(gateway, page, "hapax_unkeyed_total", &table);
}

static void print_observed(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	const struct route_table table = { .offset = offsetof(struct hpx_meter, observed),
					   .rows = HPX_METER_ROUTES,
					   .columns = HPX_OBSERVED_COUNT,
					   .label = "would",
					   .names = observed_names };

	hpx_metric_head(page, "hapax_observed_total", "counter",
			"Observed requests by route and what would have happened.");
	print_table(gateway, page, "hapax_observed_total", &table);
}

static void print_answered(const struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	static const char *const classes[HPX_METER_CLASSES] = { "1xx", "2xx", "3xx", "4xx", "5xx" };
	const struct route_table table = { .offset = offsetof(struct hpx_meter, requests),
					   .rows = HPX_METER_ROUTES + 1,
					   .columns = HPX_METER_CLASSES,
					   .label = "status",
					   .names = classes };

	hpx_metric_head(page, "hapax_requests_total", "counter",
			"Requests answered, by route and class of status.");
	print_table(gateway, page, "hapax_requests_total", &table);
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
			"Authorisation subrequests, by their answer.");
	for (int r = 0; r < HPX_SUBREQUEST_COUNT; r++) {
		enum hpx_subrequest_result result = (enum hpx_subrequest_result)r;

		hpx_metric_sample(page, "hapax_subrequests_total", "result",
				  hpx_span_of(hpx_subrequest_result_name(result)),
				  hpx_subrequests_count(gateway->subrequests, result));
	}
}

/* ---- by tenant ---- */

/* The rows of all loops, those of one tenant beside each other. */
struct tenant_rows {
	const struct hpx_meter_tenant **all; /* NULL where there are none, or no memory for them */
	size_t count;
};

static int compare_rows(const void *a, const void *b)
{
	const struct hpx_meter_tenant *const *left = a;
	const struct hpx_meter_tenant *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static void collect_rows(struct hpx_gateway *gateway, struct tenant_rows *rows)
{
	rows->count = 0;
	rows->all = calloc((size_t)gateway->shard_count * HPX_METER_TENANTS, sizeof(*rows->all));
	for (unsigned s = 0; s < gateway->shard_count && rows->all != NULL; s++) {
		for (size_t i = 0; i < HPX_METER_TENANTS; i++) {
			struct hpx_meter_tenant *row = &gateway->shards[s].meter.tenants[i];
			if (!atomic_load_explicit(&row->ready, memory_order_acquire))
				break;
			rows->all[rows->count++] = row;
		}
	}
	if (rows->count > 1)
		qsort(rows->all, rows->count, sizeof(*rows->all), compare_rows);
}

/* Adds up the counter at `offset` over the rows of one tenant, from `*at` on, and moves `*at`
 * behind them. */
static uint64_t sum_tenant(const struct tenant_rows *rows, size_t *at, size_t offset)
{
	const char *name = rows->all[*at]->name;
	uint64_t total = 0;

	HPX_ASSERT(offset + sizeof(struct hpx_counter) <= sizeof(struct hpx_meter_tenant));
	for (; *at < rows->count && strcmp(rows->all[*at]->name, name) == 0; (*at)++)
		total += hpx_counter_read(
			(const struct hpx_counter *)((const char *)rows->all[*at] + offset));
	return total;
}

static void print_tenant_counters(const struct tenant_rows *rows, struct hpx_metric_page *page,
				  const char *name, size_t offset, uint64_t others)
{
	for (size_t at = 0; at < rows->count;) {
		struct hpx_span tenant = hpx_span_of(rows->all[at]->name);
		uint64_t total = sum_tenant(rows, &at, offset);

		hpx_metric_sample(page, name, "tenant", tenant, total);
	}
	hpx_metric_sample(page, name, "tenant", HPX_SPAN("(others)"), others);
}

/* A tenant has a sample for each limit that it met, so that the page stays small; the others
 * together have one for every limit. */
static void print_limited(struct hpx_gateway *gateway, const struct tenant_rows *rows,
			  struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_limited_total", "counter",
			"Requests and connections refused by a limit, by tenant.");
	for (int l = 0; l < HPX_LIMITED_COUNT; l++) {
		size_t offset = offsetof(struct hpx_meter_tenant, limited) + (size_t)l * sizeof(struct hpx_counter);

		for (size_t at = 0; at < rows->count;) {
			struct hpx_span tenant = hpx_span_of(rows->all[at]->name);
			uint64_t total = sum_tenant(rows, &at, offset);
			if (total == 0)
				continue;
			HPX_METRIC_PRINT(page, "hapax_limited_total{limit=\"%s\",tenant=\"", limited_names[l]);
			hpx_metric_label(page, tenant);
			HPX_METRIC_PRINT(page, "\"} %llu\n", (unsigned long long)total);
		}
		HPX_METRIC_PRINT(page, "hapax_limited_total{limit=\"%s\",tenant=\"(others)\"} %llu\n",
				 limited_names[l], (unsigned long long)SUM_AT(gateway, other_limited, l));
	}
}

static void print_tenants(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	struct tenant_rows rows;

	collect_rows(gateway, &rows);
	hpx_metric_head(page, "hapax_duplicates_total", "counter",
			"Requests for a known operation, by tenant.");
	print_tenant_counters(&rows, page, "hapax_duplicates_total",
			      offsetof(struct hpx_meter_tenant, duplicates),
			      SUM(gateway, other_duplicates));
	hpx_metric_head(page, "hapax_mismatch_total", "counter",
			"Requests with the key of another request, by tenant.");
	print_tenant_counters(&rows, page, "hapax_mismatch_total",
			      offsetof(struct hpx_meter_tenant, mismatches),
			      SUM(gateway, other_mismatches));
	print_limited(gateway, &rows, page);
	free(rows.all);
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

/* A histogram for each of the first `rows` rows, at this offset in struct hpx_meter. */
static void print_route_times(const struct hpx_gateway *gateway, struct hpx_metric_page *page,
			      const char *name, const char *help, size_t offset, size_t rows)
{
	const struct hpx_settings *settings = gateway->service->settings;

	hpx_metric_head(page, name, "histogram", help);
	for (size_t i = 0; i < rows; i++) {
		struct hpx_span label = label_of_row(settings, i);
		struct hpx_histogram all = { 0 };

		if (!begins_series(settings, i, label))
			continue;
		for (size_t j = i; j < rows; j++) {
			if (!hpx_span_eq(label_of_row(settings, j), label))
				continue;
			struct hpx_histogram one = merged(gateway, offset + j * sizeof(struct hpx_histogram));
			hpx_histogram_merge(&all, &one);
		}
		hpx_metric_histogram_of(page, name, "route", label, &all, 1e6);
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
	hpx_metric_head(page, "hapax_upstream_waiting", "gauge",
			"Requests that wait for an upstream connection, by kind.");
	for (size_t kind = 0; kind < HPX_SLOT_TUNNEL; kind++)
		hpx_metric_sample(page, "hapax_upstream_waiting", "kind", hpx_span_of(kinds[kind]),
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
			   "Times that the upstream sent bytes that were no answer to a request.",
			   atomic_load(&state->strays));
	hpx_metric_gauge(page, "hapax_upstream_quarantined",
			 "Guarded requests use no kept connection, because of stray bytes.",
			 hpx_upstream_in_quarantine(state));
}

static void print_requests(struct hpx_gateway *gateway, struct hpx_metric_page *page)
{
	print_answered(gateway, page);
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
	print_requests(gateway, page);
	print_slots(gateway, page);
	print_upstream(gateway, page);
	print_async(gateway, page);
	print_webhooks(gateway, page);
	print_subrequests(gateway, page);
	hpx_verified_callers_metrics(gateway->verified_callers, page);
	print_cache(gateway, page);
	print_route_times(gateway, page, "hapax_request_seconds",
			  "The whole request, from its first byte, by route.",
			  offsetof(struct hpx_meter, request_us), HPX_METER_ROUTES + 1);
	print_route_times(gateway, page, "hapax_upstream_seconds",
			  "A guarded attempt, from connecting to the end of its answer, by route.",
			  offsetof(struct hpx_meter, upstream_us), HPX_METER_ROUTES);
}

/* ---- counting ---- */

void hpx_meter_answered(struct hpx_meter *meter, const struct hpx_route *route, unsigned status,
			uint64_t whole_us)
{
	size_t row = route != NULL ? hpx_meter_route(route) : HPX_METER_ROUTES;

	HPX_ASSERT(status >= 100 && status < 1000);
	/* An upstream may invent a status above 599; it counts as an error (RFC 9110 §15). */
	hpx_counter_add(&meter->requests[row][(status < 600 ? status / 100 : 5) - 1], 1);
	hpx_histogram_add(&meter->request_us[row], whole_us);
}

void hpx_meter_forget_routes(struct hpx_meter *meter)
{
	for (size_t i = 0; i < HPX_METER_ROUTES; i++) {
		hpx_counter_set(&meter->unkeyed[i], 0);
		for (size_t o = 0; o < HPX_OBSERVED_COUNT; o++)
			hpx_counter_set(&meter->observed[i][o], 0);
		hpx_histogram_clear(&meter->upstream_us[i]);
		hpx_histogram_clear(&meter->request_us[i]);
		for (size_t c = 0; c < HPX_METER_CLASSES; c++)
			hpx_counter_set(&meter->requests[i][c], 0);
	}
}

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
