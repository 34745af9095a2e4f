/* `hapax work`: a service with workers and no gateway, beside any number of
 * gateways on the same PostgreSQL: delivers jobs, probes unknown outcomes, sweeps
 * lost leases and reaps what has expired, until SIGTERM. */
#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "worker/trace_exporter.h"
#include "worker/workers.h"

struct work_process {
	struct hpx_service service;
	struct hpx_workers workers;
	struct hpx_trace_exporter *exporter; /* NULL: traces are off */
};

static int fail(const char *problem)
{
	hpx_log_not_started("hapax work", problem);
	return HPX_EXIT_FAILED;
}

static void stop_taking(void *user)
{
	hpx_workers_stop_claiming(&((struct work_process *)user)->workers);
}

static void drain(void *user, int64_t until_ms)
{
	struct work_process *process = user;
	int64_t left_ms = until_ms - hpx_clock_boot_ms();

	hpx_workers_stop(&process->workers, left_ms > 0 ? left_ms : 0);
}

static int start_workers(struct work_process *process)
{
	enum hpx_status status = hpx_trace_exporter_start(&process->service, &process->exporter);

	if (status == HPX_OK)
		status = hpx_workers_start(&process->workers, &process->service, true);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	char problem[HPX_SERVICE_PROBLEM_SIZE];
	snprintf(problem, sizeof(problem), "the workers cannot start: %s", hpx_status_text(status));
	return fail(problem);
}

/* The one line that says that the process is ready, whatever the log level. */
static void announce(const struct work_process *process)
{
	const struct hpx_settings *settings = process->service.settings;
	char admin[HPX_SERVICE_ADDRESS_SIZE];

	hpx_service_print_admin(&process->service, admin);
	hpx_log_set_level(HPX_LOG_INFO);
	hpx_log(HPX_LOG_INFO, "ready", "work=yes admin=%s targets=%zu store=%s version=%s", admin,
		settings->target_count, process->service.store->description, HPX_VERSION);
	hpx_log_set_level(settings->log_level);
}

static int run(struct work_process *process, const struct hpx_service_options *options)
{
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";

	if (hpx_service_open(&process->service, options, problem) != HPX_OK ||
	    hpx_service_listen(&process->service, problem) != HPX_OK)
		return fail(problem);
	if (start_workers(process) != HPX_EXIT_OK)
		return HPX_EXIT_FAILED;
	announce(process);
	hpx_service_run(&process->service);
	return HPX_EXIT_OK;
}

static int work(struct hpx_settings *settings, bool has_admin)
{
	struct work_process process = { .workers = { .stopped = false } };
	const struct hpx_service_options options = { .settings = settings,
						     .has_admin = has_admin,
						     .user = &process,
						     .stop_taking = stop_taking,
						     .drain = drain };

	int code = run(&process, &options);
	hpx_workers_stop(&process.workers, 0);
	hpx_service_stop_writing(&process.service);
	hpx_workers_done(&process.workers);
	hpx_trace_exporter_stop(process.exporter);
	hpx_service_close(&process.service);
	return code;
}

static struct hpx_settings *load(const struct hpx_config_flags *flags)
{
	struct hpx_settings *settings = hpx_cli_load(flags);

	if (settings == NULL || hpx_store_url_can(settings->store, HPX_STORE_SHARED))
		return settings;
	fail("this command needs a PostgreSQL store. With SQLite or a store in memory, hapax serve "
	     "itself does the background work");
	hpx_settings_unref(settings);
	return NULL;
}

int hpx_cli_work(int argc, char **argv)
{
	const char *config = NULL, *admin = NULL, *store = NULL, *name = NULL;
	const struct hpx_cli_flag rows[] = {
		{ "config", "FILE", "The configuration file, the same as of hapax serve.", &config },
		{ "store", "URL", "The store, instead of the one in the file: postgres://…", &store },
		{ "upstream-name", "NAME", "The upstream's name, where the file does not say it.", &name },
		{ "admin", "ADDRESS", "Where /healthz, /readyz and /metrics are; default nowhere.", &admin },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax work --config FILE [--admin ADDRESS]",
		.about = "Runs the background work in a process of its own, beside any number of gateways\n"
			 "on the same PostgreSQL: delivers jobs, probes unknown outcomes, sweeps lost\n"
			 "leases, deletes what has expired. With SQLite, hapax serve does all this itself.\n"
			 "SIGTERM lets deliveries under way end, and ends the process.",
		.flags = rows,
		.flag_count = sizeof(rows) / sizeof(rows[0]),
	};
	struct hpx_config_flags flags = { .without_gateway = true };
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	if (config == NULL) {
		fail("--config FILE is missing (its targets are what jobs are sent to)");
		return HPX_EXIT_USAGE;
	}
	hpx_config_flags_set(&flags, "config", config);
	hpx_config_flags_set(&flags, "store", store);
	hpx_config_flags_set(&flags, "upstream-name", name);
	hpx_config_flags_set(&flags, "admin", admin);
	hpx_service_ignore_signals();
	/* From here on nobody waits for standard error. */
	if (hpx_log_start_writer() != HPX_OK)
		return fail("the log cannot be written: no memory, or no thread");
	struct hpx_settings *settings = load(&flags);
	code = settings != NULL ? work(settings, admin != NULL) : HPX_EXIT_FAILED;
	hpx_log_stop_writer();
	return code;
}
