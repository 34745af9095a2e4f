/* `hapax work`: the workers alone, beside any number of gateways on the same
 * PostgreSQL: jobs are delivered, unknown outcomes asked about, lost leases
 * swept and what has expired reaped, until SIGTERM. */
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/crew.h"
#include "gateway/admin.h"

/* For the committer to write what is queued when nothing is sent any more. */
#define LAST_COMMIT_MS 5000

struct office {
	struct hpx_settings *settings;
	/* One without loops: it holds the store, the counters and the page. */
	struct hpx_gateway gateway;
	struct hpx_crew crew;
	struct hpx_loop loop;
	struct hpx_admin *admin;
	uv_signal_t term, interrupt, user1, user2;
	int64_t drain_since_ms;
	pthread_t drainer;
	bool has_drainer; /* false: the main thread drains */
	bool draining;
	struct hpx_message drained;
};

static int say(const char *what, const char *problem)
{
	fprintf(stderr, "hapax work: %s: %s\n", what, problem);
	return HPX_EXIT_FAILED;
}

static void on_drained(struct hpx_message *message)
{
	struct office *office = HPX_CONTAINER(message, struct office, drained);

	hpx_loop_stop(&office->loop);
}

static void *drain(void *user)
{
	struct office *office = user;

	hpx_crew_stop(&office->crew, office->settings->drain_ms);
	hpx_loop_post(&office->loop, &office->drained);
	return NULL;
}

static void on_terminate(uv_signal_t *handle, int number)
{
	struct office *office = handle->data;

	if (office->draining) {
		hpx_crew_stop_again(office->drain_since_ms, number);
		return;
	}
	office->draining = true;
	office->drain_since_ms = hpx_clock_boot_ms();
	atomic_store(&office->gateway.ready, false);
	hpx_log(HPX_LOG_INFO, "draining", "signal=%d for_ms=%lld", number,
		(long long)office->settings->drain_ms);
	office->drained.handle = on_drained;
	office->has_drainer = hpx_crew_drain(&office->drainer, drain, office);
}

static int watch_signals(struct office *office)
{
	const struct hpx_crew_signal signals[] = {
		{ &office->term, SIGTERM, on_terminate },
		{ &office->interrupt, SIGINT, on_terminate },
		{ &office->user1, SIGUSR1, hpx_crew_ignored_signal },
		{ &office->user2, SIGUSR2, hpx_crew_ignored_signal },
	};
	const char *problem = hpx_crew_watch_signals(&office->loop, signals,
						     sizeof(signals) / sizeof(signals[0]), office);

	return problem == NULL ? HPX_EXIT_OK : say("signals cannot be watched", problem);
}

static int open_store(struct office *office)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_committer_options options = { .changed = hpx_crew_store_changed };

	if (hpx_crew_open_store(&office->crew, office->settings, &office->gateway.store,
				problem) != HPX_OK)
		return say("the store cannot be opened", problem);
	options.store = office->gateway.store;
	enum hpx_status status = hpx_committer_start(&options, &office->gateway.committer);
	return status == HPX_OK ? HPX_EXIT_OK :
				  say("the store cannot be written", hpx_status_text(status));
}

static int start(struct office *office, bool admin)
{
	char problem[HPX_PROBLEM_SIZE] = "";
	enum hpx_status status =
		hpx_crew_start(&office->crew, &office->gateway, office->settings, true);

	if (status != HPX_OK)
		return say("the workers cannot start", hpx_status_text(status));
	if (admin && office->settings->has_admin &&
	    hpx_admin_start(&office->loop, &office->gateway, &office->admin, problem) != HPX_OK)
		return say("the admin listener cannot start", problem);
	return HPX_EXIT_OK;
}

static void announce(struct office *office)
{
	char admin[HPX_CREW_ADDRESS_SIZE] = "off";

	if (office->admin != NULL)
		hpx_crew_print_address(&office->settings->admin, hpx_admin_port(office->admin), admin);
	hpx_log_set_level(HPX_LOG_INFO);
	hpx_log(HPX_LOG_INFO, "ready", "work=yes admin=%s targets=%zu store=%s version=%s", admin,
		office->settings->target_count, office->gateway.store->description, HPX_VERSION);
	hpx_log_set_level(office->settings->log_level);
}

static int run(struct office *office, bool admin)
{
	int code = open_store(office);

	if (code == HPX_EXIT_OK)
		code = start(office, admin);
	if (code == HPX_EXIT_OK)
		code = watch_signals(office);
	if (code != HPX_EXIT_OK)
		return code;
	atomic_store(&office->gateway.ready, true);
	announce(office);
	hpx_loop_run(&office->loop);
	if (office->has_drainer)
		pthread_join(office->drainer, NULL);
	hpx_log(HPX_LOG_INFO, "stopped", "reason=\"drained\"");
	return HPX_EXIT_OK;
}

static void tear_down(struct office *office)
{
	hpx_crew_stop(&office->crew, 0);
	if (office->gateway.committer != NULL)
		hpx_committer_stop(office->gateway.committer, LAST_COMMIT_MS);
	hpx_crew_done(&office->crew);
	if (office->admin != NULL)
		hpx_admin_stop(office->admin);
	hpx_crew_loop_done(&office->loop);
	hpx_committer_free(office->gateway.committer);
	if (office->gateway.store != NULL)
		hpx_store_close(office->gateway.store);
	hpx_settings_unref(office->settings);
}

static int check_store(const struct hpx_settings *settings)
{
	if (hpx_span_starts(settings->store, HPX_SPAN("postgres")))
		return HPX_EXIT_OK;
	return say("it needs PostgreSQL",
		   "one process serves a SQLite file or a store in memory, and that is hapax serve, "
		   "which has the workers inside");
}

static int work(struct hpx_settings *settings, bool admin)
{
	struct office office = { .settings = settings,
				 .gateway = { .settings = settings } };

	if (hpx_crew_init(&office.crew, settings) != HPX_OK ||
	    hpx_loop_init(&office.loop) != HPX_OK) {
		hpx_crew_done(&office.crew);
		hpx_settings_unref(settings);
		return say("cannot start", hpx_status_text(HPX_NOMEM));
	}
	office.gateway.outbox = &office.crew.meter;
	int code = run(&office, admin);
	tear_down(&office);
	return code;
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
		.about = "Runs the workers alone, beside any number of gateways on the same PostgreSQL:\n"
			 "delivers jobs, asks about unknown outcomes, sweeps lost leases, reaps what has\n"
			 "expired. SIGTERM lets deliveries end, and ends. On SQLite, hapax serve does it.",
		.flags = rows,
		.flag_count = sizeof(rows) / sizeof(rows[0]),
	};
	struct hpx_config_flags flags = { .value = { NULL } };
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	if (config == NULL) {
		fputs("hapax work: say which configuration: --config FILE (its targets are what jobs are "
		      "sent to)\n",
		      stderr);
		return HPX_EXIT_USAGE;
	}
	hpx_config_flags_set(&flags, "config", config);
	if (store != NULL)
		hpx_config_flags_set(&flags, "store", store);
	if (name != NULL)
		hpx_config_flags_set(&flags, "upstream-name", name);
	if (admin != NULL)
		hpx_config_flags_set(&flags, "admin", admin);
	hpx_net_ignore_sigpipe();
	hpx_crew_ignore_signals();
	struct hpx_settings *settings = hpx_cli_load(&flags);
	if (settings == NULL)
		return HPX_EXIT_FAILED;
	if (settings->core_dumps)
		hpx_crew_allow_core_dumps();
	hpx_log_set_level(settings->log_level);
	code = check_store(settings);
	if (code != HPX_EXIT_OK) {
		hpx_settings_unref(settings);
		return code;
	}
	return work(settings, admin != NULL);
}
