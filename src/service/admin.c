/* The admin listener: a small server for four pages. One request per connection,
 * read by the strict reader that the gateway uses. /readyz fails while the process starts or drains,
 * not when the store is down: the other nodes have the same store, and taking
 * all of them out of service helps nobody. */
#include "service/service.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "http/field.h"
#include "http/problem.h"
#include "http/write.h"
#include "net/listener.h"
#include "net/tls.h"
#include "service/tracer.h"

#define HEAD_BYTES_MAX 8192
/* More than metrics of 1,000 routes take, and 64 loops with paths of their own. */
#define PAGE_BYTES_MAX ((size_t)16 << 20)
#define CONNECTIONS_MAX 256
/* The admin listener may use descriptors that client connections may not, but not all:
 * the store and the upstream need some. */
#define DESCRIPTORS_KEPT_FREE 16
#define REQUEST_MS 5000
#define LINGER_MS 1000

/* ---- the page of metrics ----
 *
 * What the process adds (the gateway's loops), then jobs, unknown outcomes and the
 * store. Reads only atomics: asking for metrics never holds up a request. */

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
	hpx_metric_head(page, "hapax_jobs_stored", "gauge", "Jobs in the store, by state.");
	for (int s = HPX_JOB_QUEUED; s < HPX_JOB_STATE_COUNT; s++)
		hpx_metric_sample(page, "hapax_jobs_stored", "state",
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
	hpx_metric_head(page, "hapax_attempt_errors_total", "counter",
			"Attempts that did not end well, by last_error.");
	for (int e = HPX_LAST_ERROR_NONE + 1; e < HPX_LAST_ERROR_OTHER; e++)
		hpx_metric_sample(page, "hapax_attempt_errors_total", "error",
				  hpx_span_of(hpx_last_error_name((enum hpx_last_error)e)),
				  hpx_counter_read(e == HPX_LAST_ERROR_LEASE_LOST ? &counters->leases_lost :
										    &counters->attempt_errors[e]));
	hpx_metric_counter(page, "hapax_reaped_total", "Expired operations that were deleted.",
			   hpx_counter_read(&counters->reaped));
	hpx_metric_head(page, "hapax_store_updates_total", "counter",
			"Changed rows of operations, as the database counts them for all gateways.");
	hpx_metric_sample(page, "hapax_store_updates_total", "kind", HPX_SPAN("hot"),
			  hpx_counter_read(&counters->updates_hot));
	hpx_metric_sample(page, "hapax_store_updates_total", "kind", HPX_SPAN("moved"),
			  hpx_counter_read(&counters->updates_moved));
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

/* ---- the process, by the names that every Prometheus client gives it ---- */

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* In bytes; 0 where /proc is not there. */
static void read_memory(uint64_t *ret_virtual, uint64_t *ret_resident)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long all = 0, resident = 0;
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

	if (file != NULL && fscanf(file, "%llu %llu", &all, &resident) != 2)
		all = resident = 0;
	if (file != NULL)
		fclose(file);
	*ret_virtual = all * page_bytes;
	*ret_resident = resident * page_bytes;
}

/* By open(), not opendir(): TSan does not see the latter, and takes the number of a
 * descriptor that a connection had before for that connection's still. */
static uint64_t count_descriptors(void)
{
	int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	uint64_t count = 0;

	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count - 1; /* the folder's own */
}

static void print_process(const struct hpx_service *service, struct hpx_metric_page *page)
{
	struct rusage usage = { 0 };
	struct rlimit limit = { 0 };
	uint64_t memory = 0, resident = 0;

	getrusage(RUSAGE_SELF, &usage);
	getrlimit(RLIMIT_NOFILE, &limit);
	read_memory(&memory, &resident);
	hpx_metric_head(page, "hapax_build_info", "gauge", "The version; always 1.");
	hpx_metric_sample(page, "hapax_build_info", "version", HPX_SPAN(HPX_VERSION), 1);
	hpx_metric_counter(page, "hapax_log_dropped_total",
			   "Lines of events that were dropped, because standard error did not take them.",
			   hpx_log_dropped());
	hpx_metric_seconds(page, "process_cpu_seconds_total", "counter",
			   "Processor time of the process, user and system.",
			   seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime));
	hpx_metric_seconds(page, "process_start_time_seconds", "gauge",
			   "When the process was started, in seconds since 1970.",
			   (double)service->started_wall_ms / 1000);
	hpx_metric_gauge(page, "process_resident_memory_bytes", "Memory that is in use.", resident);
	hpx_metric_gauge(page, "process_virtual_memory_bytes", "Address space that is in use.", memory);
	hpx_metric_gauge(page, "process_open_fds", "Open file descriptors.", count_descriptors());
	hpx_metric_gauge(page, "process_max_fds", "How many may be open.", limit.rlim_cur);
}

enum hpx_status hpx_service_metrics(struct hpx_service *service, bool openmetrics,
				    struct hpx_buffer *out)
{
	struct hpx_metric_page page = { .out = out, .openmetrics = openmetrics };

	if (service->options.print_metrics != NULL)
		service->options.print_metrics(service->options.user, &page);
	print_deliveries(service, &page);
	print_jobs(&service->counters, &page);
	print_reconciliation(&service->counters, &page);
	print_operations(&service->counters, &page);
	hpx_service_print_tls(service, &page);
	hpx_tracer_print_metrics(service->tracer, &page);
	if (service->store != NULL)
		print_store(service, &page);
	print_process(service, &page);
	hpx_metric_end(&page);
	return page.status;
}

/* ---- the listener ---- */

struct hpx_admin {
	struct hpx_service *service;
	struct hpx_listener *listener;
	struct hpx_address address;
	uint16_t port;
	unsigned connections;
	struct admin_connection *first; /* the newest */
};

/* A connection with its one request. */
struct admin_connection {
	struct hpx_admin *admin;
	struct hpx_transport *transport;
	struct admin_connection *prev, *next;
	uv_timer_t timer;
	struct hpx_buffer in;
	struct hpx_arena arena;
	struct hpx_http_reader reader;
};

static void timer_closed(uv_handle_t *handle)
{
	struct admin_connection *connection = handle->data;

	hpx_buffer_done(&connection->in);
	hpx_arena_done(&connection->arena);
	free(connection);
}

/* The transport is closed or closing; the rest goes with the timer's handle. */
static void drop(struct admin_connection *connection)
{
	if (connection->prev != NULL)
		connection->prev->next = connection->next;
	else
		connection->admin->first = connection->next;
	if (connection->next != NULL)
		connection->next->prev = connection->prev;
	HPX_ASSERT(connection->admin->connections > 0);
	connection->admin->connections--;
	uv_close((uv_handle_t *)&connection->timer, timer_closed);
}

static void cut(struct admin_connection *connection)
{
	hpx_transport_close(connection->transport);
	drop(connection);
}

static void answer(struct admin_connection *connection, unsigned status, const char *content_type,
		   struct hpx_span body)
{
	struct hpx_buffer head;

	hpx_buffer_init(&head, HEAD_BYTES_MAX);
	if (hpx_write_status_line(&head, status, hpx_span_of(hpx_reason_phrase(status))) == HPX_OK &&
	    hpx_write_field_text(&head, "Content-Type", content_type) == HPX_OK &&
	    hpx_write_field_u64(&head, "Content-Length", body.len) == HPX_OK &&
	    hpx_write_field_text(&head, "Cache-Control", "no-store") == HPX_OK &&
	    hpx_write_field_text(&head, "Connection", "close") == HPX_OK &&
	    hpx_write_head_end(&head) == HPX_OK) {
		struct hpx_span pieces[] = { hpx_buffer_span(&head), body };
		(void)hpx_transport_send(connection->transport, pieces, 2, NULL);
	}
	hpx_buffer_done(&head);
	hpx_transport_close_gently(connection->transport, LINGER_MS);
	drop(connection);
}

static void answer_text(struct admin_connection *connection, unsigned status, const char *text)
{
	answer(connection, status, "text/plain; charset=utf-8", hpx_span_of(text));
}

/* Prometheus asks for OpenMetrics first, and names both. */
static bool wants_openmetrics(const struct hpx_http_head *head)
{
	struct hpx_span accept = hpx_field_value(head, HPX_SPAN("Accept"));

	return accept.len > 0 && memmem(accept.ptr, accept.len, "application/openmetrics-text", 28) != NULL;
}

static void answer_metrics(struct admin_connection *connection, const struct hpx_http_head *head)
{
	bool openmetrics = wants_openmetrics(head);
	struct hpx_buffer body;

	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	if (hpx_service_metrics(connection->admin->service, openmetrics, &body) == HPX_OK)
		answer(connection, 200,
		       openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
				     "text/plain; version=0.0.4; charset=utf-8",
		       hpx_buffer_span(&body));
	else
		answer_text(connection, 500, "the metrics did not fit into memory\n");
	hpx_buffer_done(&body);
}

static void answer_coverage(struct admin_connection *connection)
{
	struct hpx_service *service = connection->admin->service;
	struct hpx_buffer body;

	if (service->options.print_coverage == NULL) {
		answer_text(connection, 404, "this process takes no requests\n");
		return;
	}
	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	if (service->options.print_coverage(service->options.user, &body) == HPX_OK)
		answer(connection, 200, "application/json", hpx_buffer_span(&body));
	else
		answer_text(connection, 500, "the page did not fit into memory\n");
	hpx_buffer_done(&body);
}

static void answer_ready(struct admin_connection *connection)
{
	if (atomic_load(&connection->admin->service->ready))
		answer_text(connection, 200, "ready\n");
	else
		answer_text(connection, 503, "not ready: starting or draining\n");
}

static void answer_request(struct admin_connection *connection, const struct hpx_http_head *head)
{
	struct hpx_span path = hpx_span_first(head->target, hpx_span_index(head->target, '?'));

	if (!hpx_span_eq(head->method, HPX_SPAN("GET")))
		answer_text(connection, 405, "GET only\n");
	else if (hpx_span_eq(path, HPX_SPAN("/healthz")))
		answer_text(connection, 200, "ok\n");
	else if (hpx_span_eq(path, HPX_SPAN("/readyz")))
		answer_ready(connection);
	else if (hpx_span_eq(path, HPX_SPAN("/metrics")))
		answer_metrics(connection, head);
	else if (hpx_span_eq(path, HPX_SPAN("/api/v1/coverage")))
		answer_coverage(connection);
	else
		answer_text(connection, 404,
			    "here are /healthz, /readyz, /metrics and /api/v1/coverage\n");
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct admin_connection *connection = user;
	struct hpx_http_head head;
	size_t used;

	if (hpx_buffer_append(&connection->in, bytes) != HPX_OK) {
		answer_text(connection, 431, "the request head is too large\n");
		return;
	}
	switch (hpx_http_read_head(&connection->reader, hpx_buffer_span(&connection->in), &connection->arena, &head,
				   &used)) {
	case HPX_HTTP_MORE:
		return;
	case HPX_HTTP_DONE:
		answer_request(connection, &head);
		return;
	case HPX_HTTP_BAD:
		answer_text(connection, 400, "the request is malformed\n");
		return;
	}
}

static void on_end(void *user, enum hpx_status status)
{
	(void)status;
	cut(user);
}

static void on_timer(uv_timer_t *timer)
{
	cut(timer->data);
}

static const struct hpx_transport_events events = { .on_data = on_data, .on_end = on_end };

/* Ends the connection that has kept its request back for longest: of the newcomer's
 * own address, or else of all. Whoever opens idle connections closes their own, and
 * a health check always finds room. */
static void make_room(struct hpx_admin *admin, const char *peer)
{
	struct admin_connection *oldest = NULL, *oldest_of_peer = NULL;

	if (admin->connections < CONNECTIONS_MAX)
		return;
	for (struct admin_connection *c = admin->first; c != NULL; c = c->next) {
		oldest = c;
		if (strcmp(hpx_transport_peer(c->transport), peer) == 0)
			oldest_of_peer = c;
	}
	cut(oldest_of_peer != NULL ? oldest_of_peer : oldest);
}

static void on_accept(void *user, struct hpx_transport *transport)
{
	struct hpx_admin *admin = user;
	struct hpx_http_limits limits = { .head_bytes_max = HEAD_BYTES_MAX, .fields_max = 64 };
	struct hpx_tls *tls = admin->service->tls.admin;

	if (tls != NULL)
		transport = hpx_tls_accept(tls, transport, HPX_SPAN(""));
	if (transport == NULL)
		return;
	struct admin_connection *connection = calloc(1, sizeof(*connection));
	make_room(admin, hpx_transport_peer(transport));
	if (connection == NULL) {
		hpx_transport_close(transport);
		return;
	}
	connection->admin = admin;
	connection->transport = transport;
	connection->next = admin->first;
	if (connection->next != NULL)
		connection->next->prev = connection;
	admin->first = connection;
	admin->connections++;
	hpx_buffer_init(&connection->in, HEAD_BYTES_MAX + HPX_LOOP_READ_BYTES);
	hpx_arena_init(&connection->arena, 4 * HEAD_BYTES_MAX);
	hpx_http_reader_request(&connection->reader, &limits);
	uv_timer_init(&admin->service->loop.uv, &connection->timer);
	connection->timer.data = connection;
	uv_timer_start(&connection->timer, on_timer, REQUEST_MS, 0);
	hpx_transport_attach(transport, &events, connection);
	hpx_transport_read_start(transport);
}

enum hpx_status hpx_admin_start(struct hpx_service *service, struct hpx_admin **ret_admin,
				char *problem)
{
	struct hpx_admin *admin = calloc(1, sizeof(*admin));
	int fd = -1;

	if (admin == NULL)
		return HPX_NOMEM;
	admin->service = service;
	admin->address = service->settings->admin;
	enum hpx_status status = hpx_listener_probe(&admin->address, problem);
	if (status == HPX_OK)
		status = hpx_listener_open(&admin->address, &fd, problem);
	if (status == HPX_OK) {
		admin->port = hpx_listener_port(fd);
		status = hpx_listener_start(&service->loop, fd, on_accept, admin, &admin->listener);
	}
	if (status == HPX_OK)
		hpx_listener_keep_free(admin->listener, DESCRIPTORS_KEPT_FREE, NULL);
	if (status != HPX_OK) {
		free(admin);
		return status;
	}
	*ret_admin = admin;
	return HPX_OK;
}

uint16_t hpx_admin_port(const struct hpx_admin *admin)
{
	return admin->port;
}

void hpx_admin_stop(struct hpx_admin *admin)
{
	hpx_listener_stop(admin->listener);
	hpx_listener_unlink(&admin->address);
	while (admin->first != NULL)
		cut(admin->first);
	HPX_ASSERT(admin->connections == 0);
	free(admin);
}
