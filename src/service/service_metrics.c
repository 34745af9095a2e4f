/* The page of /metrics: what the process adds (the gateway's loops), then jobs,
 * unknown outcomes and the store. Reads only atomics: asking for metrics never
 * holds up a request. */
#include "service/service.h"

static void print_deliveries(const struct hpx_service *service, struct hpx_metric_page *page)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_JOB_RESULT_LIST(X)
#undef X
	};
	const struct hpx_settings *settings = service->settings;

	hpx_metric_head(page, "hapax_jobs_total", "counter",
			"Sendings of jobs, by target and how they ended.");
	for (size_t t = 0; t < settings->target_count; t++) {
		const struct hpx_target_counters *target = &service->counters.targets[t];

		for (int r = 0; r < HPX_JOB_RESULT_COUNT; r++) {
			HPX_METRIC_PRINT(page, "hapax_jobs_total{target=\"");
			hpx_metric_label(page, settings->targets[t].name);
			HPX_METRIC_PRINT(page, "\",result=\"%s\"} %llu\n", names[r],
					 (unsigned long long)hpx_counter_read(&target->results[r]));
		}
	}
}

static void print_jobs(const struct hpx_service_counters *counters, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_jobs", "gauge", "Jobs in the store, by state.");
	for (int s = HPX_JOB_QUEUED; s < HPX_JOB_STATE_COUNT; s++)
		hpx_metric_sample(page, "hapax_jobs", "state",
				  hpx_span_of(hpx_job_state_name((enum hpx_job_state)s)),
				  hpx_counter_read(&counters->jobs[s]));
	hpx_metric_gauge(page, "hapax_oldest_queued_job_seconds",
			 "How long the job that waits longest has been due.",
			 hpx_counter_read(&counters->oldest_queued_s));
}

static void print_reconciliation(const struct hpx_service_counters *counters,
				 struct hpx_metric_page *page)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_RECONCILED_LIST(X)
#undef X
	};

	hpx_metric_head(page, "hapax_reconcile_total", "counter",
			"Unknown outcomes by what became of them.");
	for (int r = 0; r < HPX_RECONCILED_COUNT; r++)
		hpx_metric_sample(page, "hapax_reconcile_total", "result", hpx_span_of(names[r]),
				  hpx_counter_read(&counters->reconciled[r]));
	hpx_metric_gauge(page, "hapax_probes_under_way", "Questions asked and not answered yet.",
			 hpx_counter_read(&counters->probes_under_way));
	hpx_metric_head(page, "hapax_dead", "gauge", "What only a person can settle.");
	hpx_metric_sample(page, "hapax_dead", "kind", HPX_SPAN("operation"),
			  hpx_counter_read(&counters->dead_operations));
	hpx_metric_sample(page, "hapax_dead", "kind", HPX_SPAN("job"),
			  hpx_counter_read(&counters->dead_jobs));
}

static void print_operations(const struct hpx_service_counters *counters,
			     struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_operations", "gauge", "Operations in the store, by state.");
	for (int s = HPX_STATE_NONE + 1; s < HPX_STATE_COUNT; s++)
		hpx_metric_sample(page, "hapax_operations", "state",
				  hpx_span_of(hpx_state_name((enum hpx_state)s)),
				  hpx_counter_read(&counters->operations[s]));
	hpx_metric_gauge(page, "hapax_oldest_unknown_seconds",
			 "Age of the oldest operation with an unknown outcome.",
			 hpx_counter_read(&counters->oldest_unknown_s));
	hpx_metric_counter(page, "hapax_leases_lost_total", "Leases that were lost.",
			   hpx_counter_read(&counters->leases_lost));
	hpx_metric_counter(page, "hapax_reaped_total", "Expired operations that were deleted.",
			   hpx_counter_read(&counters->reaped));
}

/* All of it 0 where the store looks at no disk. */
static void print_space(struct hpx_store *store, struct hpx_metric_page *page)
{
	hpx_metric_gauge(page, "hapax_space_low",
			 "Less than limits.free_space is free: new keys are refused.",
			 atomic_load(&store->space_low));
	hpx_metric_head(page, "hapax_space_free_bytes", "gauge",
			"What the store may still write into.");
	hpx_metric_sample(page, "hapax_space_free_bytes", "where", HPX_SPAN("disk"),
			  atomic_load(&store->space.disk_bytes));
	hpx_metric_sample(page, "hapax_space_free_bytes", "where", HPX_SPAN("file"),
			  atomic_load(&store->space.file_bytes));
	hpx_metric_gauge(page, "hapax_store_log_bytes", "The size of the store's log.",
			 atomic_load(&store->space.log_bytes));
}

static void print_store(const struct hpx_service *service, struct hpx_metric_page *page)
{
	struct hpx_store *store = service->store;

	hpx_metric_counter(page, "hapax_store_errors_total", "Calls into the store that failed.",
			   hpx_counter_read(&store->errors));
	hpx_metric_gauge(page, "hapax_store_up", "Whether the store took the last write.",
			 hpx_committer_healthy(service->committer));
	print_space(store, page);
	hpx_metric_gauge(page, "hapax_expiry_held",
			 "Wall clock and boot clock have parted: nothing expires.",
			 atomic_load(&store->expiry_held));
	hpx_metric_histogram(page, "hapax_commit_seconds", "Time of a batch in the store.",
			     &store->commit_us, 1e6);
	hpx_metric_histogram(page, "hapax_batch_operations", "Operations in one batch.",
			     &store->batch_ops, 1);
}

enum hpx_status hpx_service_metrics(struct hpx_service *service, struct hpx_buffer *out)
{
	struct hpx_metric_page page = { .out = out };

	if (service->options.print_metrics != NULL)
		service->options.print_metrics(service->options.user, &page);
	print_deliveries(service, &page);
	print_jobs(&service->counters, &page);
	print_reconciliation(&service->counters, &page);
	print_operations(&service->counters, &page);
	if (service->store != NULL)
		print_store(service, &page);
	return page.status;
}
