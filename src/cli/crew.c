/* Starting and stopping the workers, in the order that loses nothing. */
#include "cli/crew.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli/cli.h"

/* Two signals within this time are one stop. */
#define SAME_STOP_MS 1000

enum hpx_status hpx_crew_init(struct hpx_crew *crew, const struct hpx_settings *settings)
{
	*crew = (struct hpx_crew){ .worker = NULL };
	if (settings->target_count == 0)
		return HPX_OK;
	crew->meter.targets = calloc(settings->target_count, sizeof(*crew->meter.targets));
	return crew->meter.targets != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status start_worker(struct hpx_crew *crew, struct hpx_gateway *gateway,
				    const struct hpx_settings *settings)
{
	struct hpx_worker_options options = {
		.store = gateway->store,
		.committer = gateway->committer,
		.sweep_every_ms = settings->sweep_every_ms,
		.reap_every_ms = settings->reap_every_ms,
		.reap_batch = settings->reap_batch,
		.leases_lost = &gateway->leases_lost,
		.reaped = &gateway->reaped,
		.operations = gateway->operations,
		.oldest_unknown_s = &gateway->oldest_unknown_s,
		.outbox = &crew->meter,
	};

	return hpx_worker_start(&options, &crew->worker);
}

static enum hpx_status start_outside(struct hpx_crew *crew, struct hpx_gateway *gateway,
				     struct hpx_settings *settings)
{
	struct hpx_deliverer_options deliver = { .store = gateway->store,
						 .committer = gateway->committer,
						 .settings = settings,
						 .meter = &crew->meter };
	struct hpx_reconciler_options reconcile = { .store = gateway->store,
						    .committer = gateway->committer,
						    .settings = settings,
						    .meter = &crew->meter };
	enum hpx_status status = HPX_OK;

	if (settings->target_count > 0)
		status = hpx_deliverer_start(&deliver, &crew->deliverer);
	return status == HPX_OK ? hpx_reconciler_start(&reconcile, &crew->reconciler) : status;
}

enum hpx_status hpx_crew_start(struct hpx_crew *crew, struct hpx_gateway *gateway,
			       struct hpx_settings *settings, bool outside)
{
	enum hpx_status status = start_worker(crew, gateway, settings);

	/* A store in memory has no outbox. */
	if (status != HPX_OK || !outside || gateway->store->driver->jobs == NULL)
		return status;
	return start_outside(crew, gateway, settings);
}

void hpx_crew_reload(struct hpx_crew *crew, struct hpx_settings *settings)
{
	if (crew->worker != NULL)
		hpx_worker_configure(crew->worker, settings->sweep_every_ms,
				     settings->reap_every_ms, settings->reap_batch);
	if (crew->deliverer != NULL)
		hpx_deliverer_reload(crew->deliverer, settings);
	if (crew->reconciler != NULL)
		hpx_reconciler_reload(crew->reconciler, settings);
}

void hpx_crew_wake(void *user)
{
	struct hpx_crew *crew = user;

	if (crew->deliverer != NULL)
		hpx_deliverer_wake(crew->deliverer);
}

void hpx_crew_stop(struct hpx_crew *crew, int64_t grace_ms)
{
	if (crew->stopped)
		return;
	crew->stopped = true;
	if (crew->reconciler != NULL)
		hpx_reconciler_stop(crew->reconciler);
	if (crew->deliverer != NULL)
		hpx_deliverer_stop(crew->deliverer, grace_ms);
}

void hpx_crew_done(struct hpx_crew *crew)
{
	hpx_worker_stop(crew->worker);
	if (crew->deliverer != NULL)
		hpx_deliverer_free(crew->deliverer);
	if (crew->reconciler != NULL)
		hpx_reconciler_free(crew->reconciler);
	free(crew->meter.targets);
}

/* ---- what every serving process has ---- */

/* The address rather than what was written: a slash more is no other one. */
static void print_upstream(const struct hpx_address *address, char out[HPX_STORE_UPSTREAM_SIZE])
{
	char place[HPX_CREW_ADDRESS_SIZE];

	hpx_crew_print_address(address, address->port, place);
	snprintf(out, HPX_STORE_UPSTREAM_SIZE, "%s%s", address->is_unix ? "" : "http://", place);
}

static void tell_of_upstream(const struct hpx_store *store, struct hpx_span name,
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

static void on_lost(void *user, enum hpx_verb verb, const struct hpx_touched *touched)
{
	struct hpx_crew *crew = user;

	if (verb == HPX_VERB_SWEEP)
		crew->lost_operations[touched->state]++;
	else
		crew->lost_jobs++;
	hpx_sweep_tell(verb, touched);
}

void hpx_crew_tell_lost(const struct hpx_crew *crew)
{
	uint64_t unknown = crew->lost_operations[HPX_STATE_UNKNOWN];
	uint64_t retryable = crew->lost_operations[HPX_STATE_FAILED_RETRYABLE];

	if (unknown + retryable + crew->lost_jobs == 0)
		return;
	hpx_log(HPX_LOG_WARN, "leases_lost",
		"unknown=%llu failed_retryable=%llu jobs=%llu reason=\"the process that held them "
		"is gone\" see=\"%s\"",
		(unsigned long long)unknown, (unsigned long long)retryable,
		(unsigned long long)crew->lost_jobs,
		unknown > 0   ? "hapax keys ls --state unknown" :
		retryable > 0 ? "hapax keys ls --state failed_retryable" :
				"hapax jobs ls");
}

enum hpx_status hpx_crew_open_store(struct hpx_crew *crew, const struct hpx_settings *settings,
				    struct hpx_store **ret_store, char *problem)
{
	char upstream[HPX_STORE_UPSTREAM_SIZE];
	struct hpx_store_options options = {
		.url = settings->store,
		.create = settings->store_create,
		.serve = true,
		.free_bytes_min = settings->free_bytes_min,
		.event_retention_ms = settings->event_retention_ms,
		.job_retention_ms = settings->job_retention_ms,
		.upstream_name = settings->upstream_name,
		.lost = on_lost,
		.lost_user = crew,
	};

	print_upstream(&settings->upstream, upstream);
	options.upstream_url = hpx_span_of(upstream);
	enum hpx_status status = hpx_store_open(&options, ret_store, problem);
	if (status != HPX_OK)
		return status;
	if ((*ret_store)->warning[0] != '\0')
		hpx_log(HPX_LOG_WARN, "store_warning", "reason=\"%s\"", (*ret_store)->warning);
	tell_of_upstream(*ret_store, settings->upstream_name, upstream);
	return HPX_OK;
}

void hpx_crew_store_changed(void *user, enum hpx_status status, const char *problem)
{
	(void)user;
	if (status == HPX_OK)
		hpx_log(HPX_LOG_INFO, "store_up", "reason=\"the store takes writes again\"");
	else
		hpx_log(HPX_LOG_ERROR, "store_down", "problem=%s reason=\"%s\"",
			hpx_status_name(status), problem);
}

void hpx_crew_print_address(const struct hpx_address *address, uint16_t port,
			    char out[HPX_CREW_ADDRESS_SIZE])
{
	if (address->is_unix)
		snprintf(out, HPX_CREW_ADDRESS_SIZE, "unix:%s", address->path);
	else
		snprintf(out, HPX_CREW_ADDRESS_SIZE, strchr(address->host, ':') ? "[%s]:%u" : "%s:%u", address->host,
			 port);
}

const char *hpx_crew_watch_signals(struct hpx_loop *loop, const struct hpx_crew_signal *signals,
				   size_t count, void *user)
{
	for (size_t i = 0; i < count; i++) {
		int code = uv_signal_init(&loop->uv, signals[i].handle);

		signals[i].handle->data = user;
		if (code == 0)
			code = uv_signal_start(signals[i].handle, signals[i].callback,
					       signals[i].number);
		if (code != 0)
			return uv_strerror(code);
	}
	return NULL;
}

bool hpx_crew_drain(pthread_t *ret_thread, void *(*drain)(void *user), void *user)
{
	if (hpx_thread_start(ret_thread, drain, user) == HPX_OK)
		return true;
	hpx_log(HPX_LOG_WARN, "drain_blocks",
		"reason=\"the system has no thread for the drain: health, metrics and a second "
		"signal wait until it is over\"");
	drain(user);
	return false;
}

void hpx_crew_stop_again(int64_t first_ms, int number)
{
	if (hpx_clock_boot_ms() - first_ms < SAME_STOP_MS) {
		hpx_log(HPX_LOG_INFO, "signal_ignored",
			"signal=%d reason=\"within a second it is the same stop; a later one ends the "
			"drain\"",
			number);
		return;
	}
	hpx_log(HPX_LOG_WARN, "stopped", "signal=%d reason=\"a second signal\"", number);
	_exit(HPX_EXIT_FAILED);
}

void hpx_crew_ignore_signals(void)
{
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
}

void hpx_crew_ignored_signal(uv_signal_t *handle, int number)
{
	(void)handle;
	hpx_log(HPX_LOG_INFO, "signal_ignored",
		"signal=%d reason=\"it means nothing here: SIGHUP reloads, SIGTERM drains\"", number);
}

void hpx_crew_loop_done(struct hpx_loop *loop)
{
	static const int watched[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
	size_t count = sizeof(watched) / sizeof(watched[0]);
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < count; i++)
		sigaddset(&set, watched[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	hpx_loop_done(loop);
	for (size_t i = 0; i < count; i++)
		signal(watched[i], SIG_IGN);
}

void hpx_crew_allow_core_dumps(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CORE, &limit);
}
