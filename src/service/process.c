/* The main thread of a process: its loop, with the signals, the reload and the
 * drain.
 *
 *   SIGHUP: load ─▶ STORING (the reload's thread) ─▶ TAKING_UP ─▶ NONE
 *   SIGTERM, SIGINT: draining (the drain's thread) ─▶ the loop ends
 *
 *  1. One reload at a time, and none during a drain.
 *  2. A configuration is in force as a whole or not at all: a change that needs a
 *     restart refuses the whole reload.
 *  3. The main thread waits neither for the store nor for the drain: the admin
 *     listener answers, and a second signal is heard. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "config/config.h"
#include "net/listener.h"
#include "service/service.h"

/* Two signals within this time are one stop: timeout(1) sends its signal to the
 * process and to the process group. */
#define SAME_STOP_MS 1000
/* The exit code where a second signal ended the drain. */
#define EXIT_STOPPED 1

/* ---- reload ---- */

/* Every loop goes by the new settings: from here on, every answer does. */
static void on_settings_taken(struct hpx_message *message)
{
	struct hpx_service *service = HPX_CONTAINER(message, struct hpx_service, settings_taken);

	HPX_ASSERT(service->reload == HPX_RELOAD_TAKING_UP);
	service->reload = HPX_RELOAD_NONE;
	hpx_log(HPX_LOG_INFO, "reloaded", "routes=%zu", service->settings->route_count);
}

static void on_routes_stored(struct hpx_message *message)
{
	struct hpx_service *service = HPX_CONTAINER(message, struct hpx_service, routes_stored);
	struct hpx_settings *settings = service->next_settings;

	if (service->draining)
		return; /* too late: hpx_service_stop_writing cleans up */
	HPX_ASSERT(service->reload == HPX_RELOAD_STORING);
	pthread_join(service->reloader, NULL);
	service->reload = HPX_RELOAD_NONE;
	if (service->reload_status != HPX_OK) {
		hpx_log(HPX_LOG_ERROR, "reload_refused", "problem=%s",
			hpx_status_name(service->reload_status));
		hpx_settings_unref(settings);
		return;
	}
	hpx_settings_unref(service->settings);
	service->settings = settings;
	hpx_log_set_level(settings->log_level);
	hpx_log_set_format(settings->log_format);
	hpx_service_reload_tls(service);
	service->reload = HPX_RELOAD_TAKING_UP;
	service->settings_taken.handle = on_settings_taken;
	service->options.reload(service->options.user, settings, &service->settings_taken);
}

static void *run_reload(void *user)
{
	struct hpx_service *service = user;

	service->reload_status =
		service->store != NULL ?
			hpx_service_store_routes(service, service->next_settings) :
			HPX_OK;
	hpx_loop_post(&service->loop, &service->routes_stored);
	return NULL;
}

/* Whether nothing has changed that cannot change while hapax runs. */
static bool may_reload(struct hpx_service *service, const struct hpx_settings *settings)
{
	struct hpx_buffer fixed;

	if (service->store == NULL && !settings->observe) {
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"needs_restart=\"observe\" reason=\"it was started without its store, which "
			"guarding needs\"");
		return false;
	}
	hpx_buffer_init(&fixed, 4096);
	enum hpx_status status = hpx_config_changes(service->settings, settings, &fixed);
	if (status == HPX_OK && fixed.len > 0)
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"needs_restart=\"%.*s\" reason=\"the old configuration stays in force\"",
			HPX_SPAN_ARG(hpx_buffer_span(&fixed)));
	else if (status != HPX_OK)
		hpx_log(HPX_LOG_ERROR, "reload_refused", "problem=%s", hpx_status_name(status));
	bool may = status == HPX_OK && fixed.len == 0;
	hpx_buffer_done(&fixed);
	return may;
}

static void reload(struct hpx_service *service)
{
	struct hpx_settings *settings = service->options.load(service->options.user);

	if (settings == NULL)
		return;
	if (!may_reload(service, settings)) {
		hpx_settings_unref(settings);
		return;
	}
	service->next_settings = settings;
	service->routes_stored.handle = on_routes_stored;
	service->reload = HPX_RELOAD_STORING;
	if (hpx_thread_start(&service->reloader, run_reload, service) != HPX_OK) {
		service->reload = HPX_RELOAD_NONE;
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"reason=\"the system has no thread for it; the old configuration stays in force\"");
		hpx_settings_unref(settings);
	}
}

/* ---- drain ---- */

static void on_drained(struct hpx_message *message)
{
	struct hpx_service *service = HPX_CONTAINER(message, struct hpx_service, drained);

	hpx_loop_stop(&service->loop);
}

static void *run_drain(void *user)
{
	struct hpx_service *service = user;

	service->options.drain(service->options.user,
			       hpx_clock_boot_ms() + service->settings->drain_ms);
	hpx_loop_post(&service->loop, &service->drained);
	return NULL;
}

static void drain(struct hpx_service *service)
{
	service->drained.handle = on_drained;
	service->has_drainer = hpx_thread_start(&service->drainer, run_drain, service) == HPX_OK;
	if (service->has_drainer)
		return;
	hpx_log(HPX_LOG_WARN, "drain_blocks",
		"reason=\"the system has no thread for the drain: health, metrics and a second "
		"signal wait until it is over\"");
	run_drain(service);
}

static void stop_again(const struct hpx_service *service, int number)
{
	if (hpx_clock_boot_ms() - service->drain_since_ms < SAME_STOP_MS) {
		hpx_log(HPX_LOG_INFO, "signal_ignored",
			"signal=%d reason=\"within a second it is the same stop; a later one ends the "
			"drain\"",
			number);
		return;
	}
	hpx_log(HPX_LOG_WARN, "stopped", "signal=%d reason=\"a second signal\"", number);
	hpx_log_stop_writer();
	_exit(EXIT_STOPPED);
}

/* ---- signals ---- */

static void on_terminate(uv_signal_t *handle, int number)
{
	struct hpx_service *service = handle->data;

	if (service->draining) {
		stop_again(service, number);
		return;
	}
	service->draining = true;
	service->drain_since_ms = hpx_clock_boot_ms();
	atomic_store(&service->ready, false);
	if (service->options.stop_taking != NULL)
		service->options.stop_taking(service->options.user);
	hpx_log(HPX_LOG_INFO, "draining", "signal=%d for_ms=%lld", number,
		(long long)service->settings->drain_ms);
	drain(service);
}

static void on_hangup(uv_signal_t *handle, int number)
{
	struct hpx_service *service = handle->data;

	(void)number;
	if (service->options.reopen_logs != NULL)
		service->options.reopen_logs(service->options.user);
	if (service->reload != HPX_RELOAD_NONE)
		hpx_log(HPX_LOG_WARN, "reload_refused", "reason=\"the last reload still waits for %s\"",
			service->reload == HPX_RELOAD_STORING ? "the store" : "the event loops");
	else if (!service->draining)
		reload(service);
}

/* SIGUSR1 and SIGUSR2: a line, and nothing else. */
static void on_ignored(uv_signal_t *handle, int number)
{
	(void)handle;
	hpx_log(HPX_LOG_INFO, "signal_ignored",
		"signal=%d reason=\"it means nothing here: SIGHUP reloads, SIGTERM drains\"", number);
}

/* SIGHUP is the last: a process that cannot reload does not watch it. */
static const struct {
	int number;
	uv_signal_cb callback;
} watched[HPX_SERVICE_SIGNALS_MAX] = {
	{ SIGTERM, on_terminate },
	{ SIGINT, on_terminate },
	{ SIGUSR1, on_ignored },
	{ SIGUSR2, on_ignored },
	{ SIGHUP, on_hangup },
};

static enum hpx_status watch_signals(struct hpx_service *service, char *problem)
{
	size_t count = HPX_SERVICE_SIGNALS_MAX - (service->options.load == NULL);

	for (size_t i = 0; i < count; i++) {
		uv_signal_t *handle = &service->signals[i];
		int code = uv_signal_init(&service->loop.uv, handle);

		handle->data = service;
		if (code == 0)
			code = uv_signal_start(handle, watched[i].callback, watched[i].number);
		if (code != 0) {
			snprintf(problem, HPX_SERVICE_PROBLEM_SIZE, "signals cannot be watched: %s",
				 uv_strerror(code));
			return HPX_IO;
		}
	}
	return HPX_OK;
}

void hpx_service_ignore_signals(void)
{
	hpx_net_ignore_sigpipe();
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	/* The first process of a container inherits every orphan in it, from health checks and
	 * from people who look around. Ignored, they leave no zombie; none is of hapax's own. */
	if (getpid() == 1)
		signal(SIGCHLD, SIG_IGN);
}

/* libuv gives the signals that a loop watched back their default, which is to end
 * the process in the middle of its last writes. */
void hpx_service_loop_done(struct hpx_service *service)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < HPX_SERVICE_SIGNALS_MAX; i++)
		sigaddset(&set, watched[i].number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	hpx_loop_done(&service->loop);
	for (size_t i = 0; i < HPX_SERVICE_SIGNALS_MAX; i++)
		signal(watched[i].number, SIG_IGN);
}

/* ---- the life of the loop ---- */

static enum hpx_status start_admin(struct hpx_service *service, char *problem)
{
	char reason[HPX_PROBLEM_SIZE] = "";

	if (!service->options.has_admin || !service->settings->has_admin)
		return HPX_OK;
	enum hpx_status status = hpx_admin_start(service, &service->admin, reason);
	if (status != HPX_OK)
		snprintf(problem, HPX_SERVICE_PROBLEM_SIZE, "the admin listener cannot start: %s",
			 reason);
	return status;
}

enum hpx_status hpx_service_listen(struct hpx_service *service, char *problem)
{
	enum hpx_status status = start_admin(service, problem);

	hpx_service_watch_tls(service);
	return status == HPX_OK ? watch_signals(service, problem) : status;
}

void hpx_service_run(struct hpx_service *service)
{
	HPX_ASSERT(!service->draining);
	atomic_store(&service->ready, true);
	hpx_loop_run(&service->loop);
	HPX_ASSERT(service->draining);
	if (service->has_drainer)
		pthread_join(service->drainer, NULL);
	hpx_log(HPX_LOG_INFO, "stopped", "reason=\"drained\"");
}
