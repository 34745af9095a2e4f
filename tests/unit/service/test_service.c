/* Shows the life of a service on a store in memory: opened, run until a signal has
 * drained it, reloaded on SIGHUP, closed; and what it says where it cannot start. */
#include "../test.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/service.h"

struct process {
	struct hpx_service service;
	struct hpx_settings *next; /* what load gives */
	unsigned loads, reloads, drains;
	int64_t drain_until_ms;
};

static void on_drain(void *user, int64_t until_ms)
{
	struct process *process = user;

	process->drains++;
	process->drain_until_ms = until_ms;
}

static struct hpx_settings *on_load(void *user)
{
	struct process *process = user;

	process->loads++;
	return process->next;
}

/* As a process whose parts have all taken the settings; then the end. */
static void on_reload(void *user, struct hpx_settings *settings, struct hpx_message *taken)
{
	struct process *process = user;

	assert_ptr_equal(settings, process->next);
	process->reloads++;
	hpx_loop_post(&process->service.loop, taken);
	kill(getpid(), SIGTERM);
}

static void on_print(void *user, struct hpx_metric_page *page)
{
	(void)user;
	hpx_metric_counter(page, "of_the_process", "help", 7);
}

static struct hpx_settings *make_settings(const char *store)
{
	struct hpx_settings *settings = hpx_settings_new();

	assert_non_null(settings);
	settings->store = hpx_span_of(store);
	settings->upstream_name = HPX_SPAN("name");
	settings->fallback.recipe.version = HPX_RECIPE_VERSION;
	settings->drain_ms = 60000;
	settings->waiters_max = settings->waiters_per_operation_max = 8;
	settings->log_level = HPX_LOG_ERROR;
	return settings;
}

static enum hpx_status open_process(struct process *process, struct hpx_settings *settings,
				    char problem[HPX_SERVICE_PROBLEM_SIZE])
{
	const struct hpx_service_options options = { .settings = settings,
						     .takes_requests = true,
						     .user = process,
						     .drain = on_drain,
						     .load = on_load,
						     .reload = on_reload,
						     .print_metrics = on_print };

	return hpx_service_open(&process->service, &options, problem);
}

static void close_process(struct process *process)
{
	hpx_service_stop_writing(&process->service);
	hpx_service_close(&process->service);
}

/* A service that was closed leaves its signals blocked: a process ends then. */
static int unblock_signals(void **state)
{
	sigset_t all;

	(void)state;
	sigfillset(&all);
	return pthread_sigmask(SIG_UNBLOCK, &all, NULL);
}

static void a_signal_drains(void **state)
{
	struct process process = { .drains = 0 };
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";
	int64_t before_ms = hpx_clock_boot_ms();

	(void)state;
	assert_status(open_process(&process, make_settings("memory:"), problem), HPX_OK);
	assert_non_null(process.service.waitlist);
	assert_false(atomic_load(&process.service.ready));
	assert_status(hpx_service_listen(&process.service, problem), HPX_OK);
	kill(getpid(), SIGTERM);
	hpx_service_run(&process.service);
	assert_int_equal(process.drains, 1);
	assert_in_range(process.drain_until_ms, before_ms + 60000, hpx_clock_boot_ms() + 60000);
	assert_false(atomic_load(&process.service.ready));
	close_process(&process);
}

static void a_hangup_reloads(void **state)
{
	struct process process = { .next = make_settings("memory:") };
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";

	(void)state;
	assert_status(open_process(&process, make_settings("memory:"), problem), HPX_OK);
	assert_status(hpx_service_listen(&process.service, problem), HPX_OK);
	kill(getpid(), SIGHUP);
	hpx_service_run(&process.service);
	assert_int_equal(process.loads, 1);
	assert_int_equal(process.reloads, 1);
	assert_ptr_equal(process.service.settings, process.next);
	close_process(&process);
}

/* The page begins with the metrics of the process and goes on with the service's. */
static void the_page_has_both_parts(void **state)
{
	struct process process = { .drains = 0 };
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";
	struct hpx_buffer page;

	(void)state;
	assert_status(open_process(&process, make_settings("memory:"), problem), HPX_OK);
	hpx_counter_add(&process.service.counters.reaped, 3);
	hpx_buffer_init(&page, 1 << 20);
	assert_status(hpx_service_metrics(&process.service, false, &page), HPX_OK);
	assert_status(hpx_buffer_byte(&page, '\0'), HPX_OK);
	assert_ptr_equal(strstr(page.ptr, "# HELP of_the_process help\n"), page.ptr);
	assert_non_null(strstr(page.ptr, "\nof_the_process 7\n"));
	assert_non_null(strstr(page.ptr, "\nhapax_reaped_total 3\n"));
	assert_non_null(strstr(page.ptr, "\nhapax_store_up 1\n"));
	hpx_buffer_done(&page);
	close_process(&process);
}

static void a_store_that_cannot_be_opened(void **state)
{
	struct process process = { .drains = 0 };
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";
	struct hpx_settings *settings = make_settings("nothing:");

	(void)state;
	assert_int_not_equal(open_process(&process, settings, problem), HPX_OK);
	assert_ptr_equal(strstr(problem, "the store cannot be opened: "), problem);
	close_process(&process);
	/* Observing needs none. */
	settings = make_settings("nothing:");
	settings->observe = true;
	assert_status(open_process(&process, settings, problem), HPX_OK);
	assert_null(process.service.store);
	assert_null(process.service.committer);
	close_process(&process);
}

static void addresses_are_printed(void **state)
{
	static const struct {
		struct hpx_address address;
		const char *text;
	} rows[] = {
		{ { .host = "127.0.0.1" }, "127.0.0.1:81" },
		{ { .host = "::1" }, "[::1]:81" },
		{ { .is_unix = true, .path = "/run/x" }, "unix:/run/x" },
	};
	char text[HPX_SERVICE_ADDRESS_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hpx_service_print_address(&rows[i].address, 81, text);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_signal_drains, unblock_signals),
		cmocka_unit_test_setup(a_hangup_reloads, unblock_signals),
		cmocka_unit_test(the_page_has_both_parts),
		cmocka_unit_test(a_store_that_cannot_be_opened),
		cmocka_unit_test(addresses_are_printed),
	};

	hpx_log_set_level(HPX_LOG_ERROR);
	return cmocka_run_group_tests_name("service/service", tests, NULL, NULL);
}
