/* What a process owns, from opening to closing: the store with its warnings, the
 * committer, the waitlist and the cache. The main loop is in process.c. */
#include "service/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/log.h"
#include "base/status.h"
#include "service/tracer.h"

/* How long the committer may take for the queued ops, when the parts of the process
 * have ended. */
#define LAST_COMMIT_MS 5000
/* The name of a lane: of a route or a target, as it is configured. */
#define LANE_BYTES_MAX ((size_t)64 * 1024)

/* What a process that died had under way, found when the store was opened. */
struct lost_leases {
	uint64_t operations[HPX_STATE_COUNT]; /* by the state that they have now */
	uint64_t jobs;
};

static enum hpx_status fail(char *problem, const char *part, enum hpx_status status)
{
	snprintf(problem, HPX_SERVICE_PROBLEM_SIZE, "%s: %s", part, hpx_status_text(status));
	return status;
}

/* ---- addresses ---- */

void hpx_service_print_address(const struct hpx_address *address, uint16_t port,
			       char out[HPX_SERVICE_ADDRESS_SIZE])
{
	if (address->is_unix)
		snprintf(out, HPX_SERVICE_ADDRESS_SIZE, "unix:%s", address->path);
	else
		snprintf(out, HPX_SERVICE_ADDRESS_SIZE,
			 strchr(address->host, ':') ? "[%s]:%u" : "%s:%u", address->host, port);
}

void hpx_service_print_admin(const struct hpx_service *service,
			     char out[HPX_SERVICE_ADDRESS_SIZE])
{
	if (service->admin == NULL)
		snprintf(out, HPX_SERVICE_ADDRESS_SIZE, "off");
	else
		hpx_service_print_address(&service->settings->admin,
					  hpx_admin_port(service->admin), out);
}

/* The address rather than the option's text: a slash more is no other service. */
static void print_upstream(const struct hpx_address *address, char out[HPX_STORE_UPSTREAM_SIZE])
{
	char text[HPX_SERVICE_ADDRESS_SIZE];

	hpx_service_print_address(address, address->port, text);
	snprintf(out, HPX_STORE_UPSTREAM_SIZE, "%s%s", address->is_unix ? "" : "http://", text);
}

/* ---- warnings at the start ---- */

static void warn_of_upstream(const struct hpx_store *store, struct hpx_span name,
			     const char *upstream)
{
	if (store->upstream_url_before[0] != '\0')
		hpx_log(HPX_LOG_WARN, "upstream_moved",
			"name=\"%.*s\" before=%s now=%s reason=\"the name is the same, so its keys "
			"go on: what was answered before is replayed; if this is another service, "
			"stop, and give it an upstream_name of its own\"",
			HPX_SPAN_ARG(name), store->upstream_url_before, upstream);
	if (store->upstream_name_before[0] != '\0')
		hpx_log(HPX_LOG_WARN, "upstream_renamed",
			"before=\"%s\" now=\"%.*s\" reason=\"keys of another name are other keys: a "
			"retry of an earlier request is executed again; if this is the same "
			"service, stop, and write upstream_name: %s\"",
			store->upstream_name_before, HPX_SPAN_ARG(name),
			store->upstream_name_before);
}

void hpx_service_log_lost(enum hpx_verb verb, const struct hpx_touched *touched)
{
	char id[2 * HPX_OPERATION_ID_SIZE + 1];

	HPX_ASSERT(verb == HPX_VERB_SWEEP || verb == HPX_VERB_SWEEP_JOBS);
	hpx_hex_encode(touched->id.bytes, sizeof(touched->id.bytes), id);
	if (verb == HPX_VERB_SWEEP)
		hpx_log(HPX_LOG_WARN, "lease_lost", "id=%s state=%s", id,
			hpx_state_name(touched->state));
	else
		hpx_log(HPX_LOG_WARN, "job_claim_lost", "id=%s see=\"hapax jobs ls\"", id);
}

static void on_lost(void *user, enum hpx_verb verb, const struct hpx_touched *touched)
{
	struct lost_leases *lost = user;

	HPX_ASSERT(verb != HPX_VERB_SWEEP || touched->state < HPX_STATE_COUNT);
	if (verb == HPX_VERB_SWEEP)
		lost->operations[touched->state]++;
	else
		lost->jobs++;
	hpx_service_log_lost(verb, touched);
}

static void warn_of_lost(const struct lost_leases *lost)
{
	uint64_t unknown = lost->operations[HPX_STATE_UNKNOWN];
	uint64_t retryable = lost->operations[HPX_STATE_FAILED_RETRYABLE];

	if (unknown + retryable + lost->jobs == 0)
		return;
	hpx_log(HPX_LOG_WARN, "leases_lost",
		"unknown=%llu failed_retryable=%llu jobs=%llu reason=\"the process that held them "
		"is gone\" see=\"%s\"",
		(unsigned long long)unknown, (unsigned long long)retryable,
		(unsigned long long)lost->jobs,
		unknown > 0   ? "hapax keys ls --state unknown" :
		retryable > 0 ? "hapax keys ls --state failed_retryable" :
				"hapax jobs ls");
}

/* ---- the store ---- */

static enum hpx_status open_store(struct hpx_service *service, char *problem)
{
	const struct hpx_settings *settings = service->settings;
	char upstream[HPX_STORE_UPSTREAM_SIZE];
	struct lost_leases lost = { .jobs = 0 };
	struct hpx_store_options options = {
		.url = settings->store,
		.create = settings->store_create,
		.serve = true,
		.free_bytes_min = settings->free_bytes_min,
		.event_retention_ms = settings->event_retention_ms,
		.job_retention_ms = settings->job_retention_ms,
		.history_retention_ms = settings->history_retention_ms,
		.upstream_name = settings->upstream_name,
		.lost = on_lost, /* called only while the store is opened */
		.lost_user = &lost,
	};

	print_upstream(&settings->upstream, upstream);
	options.upstream_url = hpx_span_of(upstream);
	enum hpx_status status = hpx_store_open(&options, &service->store, problem);
	if (status != HPX_OK)
		return status;
	if (service->store->warning[0] != '\0')
		hpx_log(HPX_LOG_WARN, "store_warning", "reason=\"%s\"", service->store->warning);
	warn_of_upstream(service->store, settings->upstream_name, upstream);
	hpx_counter_add(&service->counters.leases_lost,
			hpx_counter_read(&service->store->lost_at_open));
	warn_of_lost(&lost);
	return HPX_OK;
}

/* Observing fails open: nothing is guarded, so nothing needs a store. */
static enum hpx_status open_store_or_observe(struct hpx_service *service, char *problem)
{
	char reason[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = open_store(service, reason);

	if (status == HPX_OK)
		return HPX_OK;
	HPX_ASSERT(service->store == NULL);
	if (service->options.takes_requests && service->settings->observe) {
		hpx_log(HPX_LOG_WARN, "observing_without_store", "reason=\"%s\"", reason);
		return HPX_OK;
	}
	snprintf(problem, HPX_SERVICE_PROBLEM_SIZE, "the store cannot be opened: %s", reason);
	return status;
}

/* ---- the committer ---- */

static void on_store_changed(void *user, enum hpx_status status, const char *problem)
{
	(void)user;
	if (status == HPX_OK)
		hpx_log(HPX_LOG_INFO, "store_up", "reason=\"the store takes writes again\"");
	else
		hpx_log(HPX_LOG_ERROR, "store_down", "problem=%s reason=\"%s\"",
			hpx_status_name(status), problem);
}

static enum hpx_status store_recipe(struct hpx_service *service, const struct hpx_route *route)
{
	struct hpx_buffer text;
	enum hpx_status status;

	hpx_buffer_init(&text, HPX_RECIPE_TEXT_MAX);
	status = hpx_recipe_print(&route->recipe, &text);
	if (status == HPX_OK) {
		struct hpx_store_op op = { .verb = HPX_VERB_RECIPE,
					   .recipe.id = route->recipe_id,
					   .recipe.text = hpx_buffer_span(&text) };
		hpx_committer_submit_wait(service->committer, &op);
		status = op.status;
	}
	hpx_buffer_done(&text);
	return status;
}

static enum hpx_status store_lane(struct hpx_service *service, struct hpx_span upstream,
				  struct hpx_span name, const struct hpx_reconcile_rule *rule,
				  bool matched_by_key)
{
	struct hpx_lane_settings lane = { .upstream = upstream,
					  .name = name,
					  .settle_after_ms = rule->settle_after_ms,
					  .confirm_after_ms = rule->confirm_after_ms,
					  .matched_by_key = matched_by_key };
	struct hpx_store_op op = { .verb = HPX_VERB_LANE, .lane.settings = &lane };

	hpx_committer_submit_wait(service->committer, &op);
	return op.status;
}

static enum hpx_status store_target(struct hpx_service *service, const struct hpx_job_target *target)
{
	struct hpx_buffer name;
	enum hpx_status status;

	hpx_buffer_init(&name, LANE_BYTES_MAX);
	status = hpx_buffer_printf(&name, HPX_LANE_TARGET "%.*s", HPX_SPAN_ARG(target->name));
	if (status == HPX_OK)
		status = store_lane(service, HPX_SPAN(""), hpx_buffer_span(&name),
				    &target->reconcile.rule, false);
	hpx_buffer_done(&name);
	return status;
}

/* What is known of each lane, for those who settle without a configuration. */
static enum hpx_status store_lanes(struct hpx_service *service, const struct hpx_settings *settings)
{
	struct hpx_span upstream = settings->upstream_name;
	enum hpx_status status;

	if (!hpx_store_can(service->store, HPX_STORE_OUTBOX))
		return HPX_OK;
	status = store_lane(service, upstream, settings->fallback.pattern,
			    &settings->fallback.reconcile.rule, settings->fallback.matched_by_key);
	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++) {
		const struct hpx_route *route = &settings->routes[i];
		if (hpx_settings_find_route(settings, route->pattern) == route)
			status = store_lane(service, upstream, route->pattern, &route->reconcile.rule,
					    route->matched_by_key);
	}
	for (size_t i = 0; i < settings->target_count && status == HPX_OK; i++)
		status = store_target(service, &settings->targets[i]);
	return status;
}

enum hpx_status hpx_service_store_routes(struct hpx_service *service,
					 const struct hpx_settings *settings)
{
	HPX_ASSERT(service->options.takes_requests && service->committer != NULL);
	enum hpx_status status = store_recipe(service, &settings->fallback);

	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++)
		status = store_recipe(service, &settings->routes[i]);
	return status == HPX_OK ? store_lanes(service, settings) : status;
}

static enum hpx_status start_committer(struct hpx_service *service)
{
	struct hpx_committer_options options = { .store = service->store,
						 .waitlist = service->waitlist,
						 .changed = on_store_changed };
	hpx_store_open_second(service->store);
	enum hpx_status status = hpx_committer_start(&options, &service->committer);

	if (status == HPX_OK && service->options.takes_requests)
		status = hpx_service_store_routes(service, service->settings);
	return status;
}

/* Answers are kept only where the store can tell which of them were removed. */
static enum hpx_status make_cache(struct hpx_service *service)
{
	const struct hpx_settings *settings = service->settings;

	if (!service->options.takes_requests || settings->cache_bytes_max == 0 ||
	    !hpx_store_can(service->store, HPX_STORE_TELLS_REMOVALS))
		return HPX_OK;
	service->cache = hpx_cache_new(service->store, settings->cache_bytes_max,
				       settings->cache_entries_max);
	if (service->cache == NULL)
		return HPX_NOMEM;
	return hpx_cache_invalidator_start(service->store, service->cache, &service->invalidator);
}

/* ---- opening and closing ---- */

/* Core dumps are forbidden by main(). */
static void allow_core_dumps(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CORE, &limit);
}

static enum hpx_status allocate(struct hpx_service *service)
{
	const struct hpx_settings *settings = service->settings;

	service->counters.targets =
		calloc(settings->target_count + 1, sizeof(*service->counters.targets));
	if (service->counters.targets == NULL)
		return HPX_NOMEM;
	if (service->options.takes_requests) {
		service->waitlist = hpx_waitlist_new(settings->waiters_per_operation_max,
						     settings->waiters_max);
		if (service->waitlist == NULL)
			return HPX_NOMEM;
	}
	if (hpx_tracer_new(&settings->traces, &service->tracer) != HPX_OK)
		return HPX_NOMEM;
	enum hpx_status status = hpx_loop_init(&service->loop);
	service->has_loop = status == HPX_OK;
	return status;
}

enum hpx_status hpx_service_open(struct hpx_service *service,
				 const struct hpx_service_options *options, char *problem)
{
	*service = (struct hpx_service){ .options = *options,
					 .settings = options->settings,
					 .started_wall_ms = hpx_clock_wall_ms() };
	if (service->settings->core_dumps)
		allow_core_dumps();
	hpx_log_set_level(service->settings->log_level);
	hpx_log_set_format(service->settings->log_format);
	if (allocate(service) != HPX_OK)
		return fail(problem, "cannot start", HPX_NOMEM);
	enum hpx_status status = hpx_service_open_tls(service, problem);
	if (status == HPX_OK)
		status = open_store_or_observe(service, problem);
	if (status != HPX_OK || service->store == NULL)
		return status;
	status = start_committer(service);
	if (status != HPX_OK)
		return fail(problem, "the store cannot be written", status);
	status = make_cache(service);
	return status == HPX_OK ? HPX_OK : fail(problem, "the cache cannot start", status);
}

void hpx_service_stop_writing(struct hpx_service *service)
{
	if (service->committer != NULL)
		hpx_committer_stop(service->committer, LAST_COMMIT_MS);
	if (service->reload != HPX_RELOAD_STORING)
		return;
	/* The reload's thread waits for the committer, and for nothing else. */
	pthread_join(service->reloader, NULL);
	hpx_settings_unref(service->next_settings);
	service->reload = HPX_RELOAD_NONE;
}

void hpx_service_close(struct hpx_service *service)
{
	HPX_ASSERT(service->reload != HPX_RELOAD_STORING);
	if (service->admin != NULL)
		hpx_admin_stop(service->admin);
	if (service->has_loop)
		hpx_service_loop_done(service);
	hpx_cache_invalidator_stop(service->invalidator);
	hpx_cache_free(service->cache);
	hpx_committer_free(service->committer);
	if (service->store != NULL)
		hpx_store_close(service->store);
	hpx_waitlist_free(service->waitlist);
	free(service->counters.targets);
	hpx_tracer_free(service->tracer);
	hpx_service_close_tls(service);
	hpx_settings_unref(service->settings);
}
