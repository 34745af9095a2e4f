/* `hapax serve`: the gateway with its store and its workers, until SIGTERM.
 * The main thread keeps the signals and the admin listener; everything a
 * request needs runs on the gateway's own loops. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/crew.h"
#include "egress/egress.h"
#include "gateway/admin.h"
#include "gateway/gateway.h"
#include "gateway/tenant.h"
#include "net/dial.h"

/* For the committer to write what is queued when the loops have ended. */
#define LAST_COMMIT_MS 5000
/* Authorisation subrequests under way at once; the others wait their turn. */
#define SUBREQUESTS_MAX 256
/* A sentence, and two lists of names. */
#define TENANT_TEXT_MAX ((size_t)64 << 10)

struct server {
	const struct hpx_config_flags *flags;
	struct hpx_settings *settings;
	struct hpx_store *store;
	struct hpx_waitlist *waitlist;
	struct hpx_committer *committer;
	struct hpx_egress *egress; /* for the gateway; NULL: it asks nobody */
	struct hpx_gateway *gateway;
	struct hpx_crew crew;
	struct hpx_loop loop;
	struct hpx_admin *admin;
	struct hpx_resolver *resolver; /* of the upstream's name, once, at the start */
	struct hpx_resolve_wait resolving;
	uv_signal_t term, interrupt, hangup, user1, user2;
	int64_t drain_since_ms;
	pthread_t drainer;
	bool has_drainer; /* false: the main thread drains */
	bool draining;
	struct hpx_message drained;
	pthread_t reloader;
	enum { RELOAD_NONE,
	       RELOAD_STORES,
	       RELOAD_TAKEN_UP } reload; /* its phase */
	struct hpx_settings *next_settings;
	enum hpx_status reload_status;
	struct hpx_message recipes_stored;
	struct hpx_message settings_taken;
};

static int say(const char *what, const char *problem)
{
	fprintf(stderr, "hapax: %s: %s\n", what, problem);
	return HPX_EXIT_FAILED;
}

/* Every recipe in use is in the store before a record can name it. */
static enum hpx_status store_recipe(struct server *server, const struct hpx_route *route)
{
	struct hpx_buffer text;
	enum hpx_status status;

	hpx_buffer_init(&text, HPX_RECIPE_TEXT_MAX);
	status = hpx_recipe_print(&route->recipe, &text);
	if (status == HPX_OK) {
		struct hpx_store_op op = { .verb = HPX_VERB_RECIPE,
					   .recipe = route->recipe_id,
					   .recipe_text = hpx_buffer_span(&text) };
		hpx_committer_submit_wait(server->committer, &op);
		status = op.status;
	}
	hpx_buffer_done(&text);
	return status;
}

static enum hpx_status store_recipes(struct server *server, const struct hpx_settings *settings)
{
	enum hpx_status status = store_recipe(server, &settings->fallback);

	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++)
		status = store_recipe(server, &settings->routes[i]);
	return status;
}

static int open_store(struct server *server)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	const struct hpx_settings *settings = server->settings;

	if (hpx_crew_open_store(&server->crew, settings, &server->store, problem) == HPX_OK)
		return HPX_EXIT_OK;
	if (!settings->observe)
		return say("the store cannot be opened", problem);
	/* Observing fails open: nothing is guarded, so nothing needs a store. */
	hpx_log(HPX_LOG_WARN, "observing_without_store", "reason=\"%s\"", problem);
	return HPX_EXIT_OK;
}

static int start_committer(struct server *server)
{
	struct hpx_committer_options options = { .store = server->store,
						 .waitlist = server->waitlist,
						 .changed = hpx_crew_store_changed };

	if (server->store == NULL)
		return HPX_EXIT_OK;
	enum hpx_status status = hpx_committer_start(&options, &server->committer);
	if (status == HPX_OK)
		status = store_recipes(server, server->settings);
	return status == HPX_OK ? HPX_EXIT_OK :
				  say("the store cannot be written", hpx_status_text(status));
}

static void tell_lost(struct server *server)
{
	uint64_t lost = hpx_counter_read(&server->store->lost_at_open);

	hpx_counter_add(&server->gateway->leases_lost, lost);
	hpx_crew_tell_lost(&server->crew);
}

static int start_crew(struct server *server)
{
	if (server->store == NULL)
		return HPX_EXIT_OK;
	tell_lost(server);
	enum hpx_status status = hpx_crew_start(&server->crew, server->gateway, server->settings,
						server->settings->work);
	return status == HPX_OK ? HPX_EXIT_OK :
				  say("the workers cannot start", hpx_status_text(status));
}

/* The new file is read by the rules of the old: what cannot change while
 * hapax runs is named and the whole reload refused, so that no half of a
 * configuration is ever in force. */
static bool may_reload(struct server *server, const struct hpx_settings *settings)
{
	struct hpx_buffer fixed;

	if (server->store == NULL && !settings->observe) {
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"needs_restart=\"observe\" reason=\"it was started without its store, which "
			"guarding needs\"");
		return false;
	}
	hpx_buffer_init(&fixed, 4096);
	enum hpx_status status = hpx_config_changes(server->settings, settings, &fixed);
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

/* Every loop goes by the new settings: from here on, every answer does. */
static void on_settings_taken(struct hpx_message *message)
{
	struct server *server =
		HPX_CONTAINER(message, struct server, settings_taken);

	server->reload = RELOAD_NONE;
	hpx_log(HPX_LOG_INFO, "reloaded", "routes=%zu", server->settings->route_count);
}

/* The recipes are in the store: the new settings come into force. */
static void on_recipes_stored(struct hpx_message *message)
{
	struct server *server =
		HPX_CONTAINER(message, struct server, recipes_stored);
	struct hpx_settings *settings = server->next_settings;

	if (server->draining)
		return; /* too late; tear_down() cleans up */
	pthread_join(server->reloader, NULL);
	server->reload = RELOAD_NONE;
	if (server->reload_status != HPX_OK) {
		hpx_log(HPX_LOG_ERROR, "reload_refused", "problem=%s",
			hpx_status_name(server->reload_status));
		hpx_settings_unref(settings);
		return;
	}
	hpx_crew_reload(&server->crew, settings);
	hpx_settings_unref(server->settings);
	server->settings = settings;
	server->reload = RELOAD_TAKEN_UP;
	server->settings_taken.handle = on_settings_taken;
	hpx_gateway_reload(server->gateway, settings, &server->loop, &server->settings_taken);
}

/* On a thread of its own: a store that is down must not silence the admin
 * listener and the signals. */
static void *run_reload(void *user)
{
	struct server *server = user;

	server->reload_status = server->store != NULL ?
					store_recipes(server, server->next_settings) :
					HPX_OK;
	hpx_loop_post(&server->loop, &server->recipes_stored);
	return NULL;
}

static void reload(struct server *server)
{
	struct hpx_settings *settings = hpx_cli_load(server->flags);

	if (settings == NULL) {
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"reason=\"the configuration has mistakes; the old one stays in force\"");
		return;
	}
	if (!may_reload(server, settings)) {
		hpx_settings_unref(settings);
		return;
	}
	server->next_settings = settings;
	server->recipes_stored.handle = on_recipes_stored;
	server->reload = RELOAD_STORES;
	if (hpx_thread_start(&server->reloader, run_reload, server) != HPX_OK) {
		server->reload = RELOAD_NONE;
		hpx_log(HPX_LOG_ERROR, "reload_refused",
			"reason=\"the system has no thread for it; the old configuration stays in force\"");
		hpx_settings_unref(settings);
	}
}

static void on_hangup(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;

	(void)number;
	if (hpx_config_path(server->flags) == NULL)
		hpx_log(HPX_LOG_WARN, "reload_refused",
			"reason=\"there is no configuration file; start with --config\"");
	else if (server->reload != RELOAD_NONE)
		hpx_log(HPX_LOG_WARN, "reload_refused", "reason=\"the last reload still waits for %s\"",
			server->reload == RELOAD_STORES ? "the store" : "the event loops");
	else if (!server->draining)
		reload(server);
}

static void on_drained(struct hpx_message *message)
{
	struct server *server =
		HPX_CONTAINER(message, struct server, drained);
	hpx_loop_stop(&server->loop);
}

static void *drain(void *user)
{
	struct server *server = user;
	int64_t until_ms = hpx_clock_boot_ms() + server->settings->drain_ms;

	hpx_gateway_drain(server->gateway);
	int64_t left_ms = until_ms - hpx_clock_boot_ms();
	hpx_crew_stop(&server->crew, left_ms > 0 ? left_ms : 0);
	hpx_loop_post(&server->loop, &server->drained);
	return NULL;
}

static void on_terminate(uv_signal_t *handle, int number)
{
	struct server *server = handle->data;

	if (server->draining) {
		hpx_crew_stop_again(server->drain_since_ms, number);
		return;
	}
	server->draining = true;
	server->drain_since_ms = hpx_clock_boot_ms();
	hpx_log(HPX_LOG_INFO, "draining", "signal=%d for_ms=%lld", number,
		(long long)server->settings->drain_ms);
	server->drained.handle = on_drained;
	server->has_drainer = hpx_crew_drain(&server->drainer, drain, server);
}

static int watch_signals(struct server *server)
{
	const struct hpx_crew_signal signals[] = {
		{ &server->term, SIGTERM, on_terminate },
		{ &server->interrupt, SIGINT, on_terminate },
		{ &server->hangup, SIGHUP, on_hangup },
		{ &server->user1, SIGUSR1, hpx_crew_ignored_signal },
		{ &server->user2, SIGUSR2, hpx_crew_ignored_signal },
	};
	const char *problem = hpx_crew_watch_signals(&server->loop, signals,
						     sizeof(signals) / sizeof(signals[0]), server);

	return problem == NULL ? HPX_EXIT_OK : say("signals cannot be watched", problem);
}

/* Who counts as one caller, and who as nobody. */
static void tell_tenants(const struct hpx_settings *settings)
{
	struct hpx_buffer text;

	hpx_buffer_init(&text, TENANT_TEXT_MAX);
	if (hpx_tenant_describe(settings, &text) == HPX_OK)
		hpx_log(HPX_LOG_INFO, "tenants", "from=\"%.*s\"",
			HPX_SPAN_ARG(hpx_buffer_span(&text)));
	hpx_buffer_done(&text);
}

/* The one line that says it is ready, whatever the log level. */
static void announce(struct server *server)
{
	char listen[HPX_CREW_ADDRESS_SIZE], admin[HPX_CREW_ADDRESS_SIZE] = "off";

	hpx_crew_print_address(&server->settings->listen, hpx_gateway_port(server->gateway), listen);
	if (server->admin != NULL)
		hpx_crew_print_address(&server->settings->admin, hpx_admin_port(server->admin), admin);
	hpx_log_set_level(HPX_LOG_INFO);
	hpx_log(HPX_LOG_INFO, "ready", "listen=%s admin=%s upstream=%s store=%.*s%s version=%s",
		listen, admin, server->settings->upstream.text,
		HPX_SPAN_ARG(server->store != NULL ? hpx_span_of(server->store->description) :
						     HPX_SPAN("none")),
		server->settings->observe ? " observe=yes" : "", HPX_VERSION);
	hpx_log_set_level(server->settings->log_level);
}

static int start_egress(struct server *server)
{
	struct hpx_egress_options options = { .running_max = SUBREQUESTS_MAX };

	if (server->settings->tenant_from != HPX_TENANT_SUBREQUEST)
		return HPX_EXIT_OK;
	enum hpx_status status = hpx_egress_start(&options, &server->egress);
	return status == HPX_OK ? HPX_EXIT_OK :
				  say("authorisation subrequests cannot be made",
				      hpx_status_text(status));
}

static int start_gateway(struct server *server)
{
	char problem[HPX_PROBLEM_SIZE] = "";
	struct hpx_gateway_options options = { .settings = server->settings,
					       .store = server->store,
					       .committer = server->committer,
					       .waitlist = server->waitlist,
					       .egress = server->egress,
					       .accepted = hpx_crew_wake,
					       .accepted_user = &server->crew,
					       .outbox = &server->crew.meter };

	if (hpx_gateway_new(&options, &server->gateway, problem) != HPX_OK)
		return say("the gateway cannot start", problem);
	if (server->settings->has_admin &&
	    hpx_admin_start(&server->loop, server->gateway, &server->admin, problem) != HPX_OK)
		return say("the admin listener cannot start", problem);
	return HPX_EXIT_OK;
}

static void on_resolved(struct hpx_resolve_wait *wait, const struct hpx_resolved *resolved)
{
	struct server *server = HPX_CONTAINER(wait, struct server, resolving);

	if (resolved == NULL)
		hpx_upstream_not_reached(&server->gateway->upstream_state,
					 "the upstream's name has no address");
}

/* A name that does not resolve is told of now, not by the first request. It may
 * come to have an address: nothing waits for this, and nothing is refused. */
static void look_up_upstream(struct server *server)
{
	const struct hpx_address *address = &server->settings->upstream;

	if (address->is_unix)
		return;
	server->resolver = hpx_resolver_new(&server->loop, address, 0);
	server->resolving.on_resolved = on_resolved;
	if (server->resolver != NULL && hpx_resolver_known(server->resolver) == NULL)
		(void)hpx_resolver_wait(server->resolver, &server->resolving);
}

static int run(struct server *server)
{
	int code = open_store(server);

	if (code == HPX_EXIT_OK)
		code = start_committer(server);
	if (code == HPX_EXIT_OK)
		code = start_egress(server);
	if (code == HPX_EXIT_OK)
		code = start_gateway(server);
	if (code == HPX_EXIT_OK)
		code = start_crew(server);
	if (code == HPX_EXIT_OK)
		code = watch_signals(server);
	if (code != HPX_EXIT_OK)
		return code;
	if (hpx_gateway_start(server->gateway) != HPX_OK)
		return say("the gateway cannot start", "no thread can be made");
	tell_tenants(server->settings);
	announce(server);
	look_up_upstream(server);
	hpx_loop_run(&server->loop);
	if (server->has_drainer)
		pthread_join(server->drainer, NULL);
	hpx_log(HPX_LOG_INFO, "stopped", "reason=\"drained\"");
	return HPX_EXIT_OK;
}

/* In the order that lets nobody talk to what is gone: nothing more is sent, the
 * committer stops, so that whoever still waits for it is told, and goes last. */
static void tear_down(struct server *server)
{
	hpx_crew_stop(&server->crew, 0);
	if (server->committer != NULL)
		hpx_committer_stop(server->committer, LAST_COMMIT_MS);
	if (server->reload == RELOAD_STORES) {
		pthread_join(server->reloader, NULL);
		hpx_settings_unref(server->next_settings);
	}
	hpx_crew_done(&server->crew);
	if (server->admin != NULL)
		hpx_admin_stop(server->admin);
	if (server->egress != NULL)
		hpx_egress_stop(server->egress, 0);
	hpx_resolve_wait_cancel(&server->resolving);
	if (server->resolver != NULL)
		hpx_resolver_free(server->resolver);
	hpx_gateway_free(server->gateway);
	hpx_egress_free(server->egress);
	hpx_crew_loop_done(&server->loop);
	hpx_committer_free(server->committer);
	if (server->store != NULL)
		hpx_store_close(server->store);
	hpx_waitlist_free(server->waitlist);
	hpx_settings_unref(server->settings);
}

int hpx_cli_serve(int argc, char **argv)
{
	struct hpx_config_flags flags;
	struct hpx_cli_flag rows[HPX_CONFIG_FLAG_MAX];
	struct hpx_cli_usage usage = {
		.synopsis = "hapax serve --upstream URL [FLAGS]",
		.about = "Stands in front of an HTTP API and makes a retried POST happen once.\n"
			 "Every flag has its place in the configuration file (--config), where the\n"
			 "rest is said too; SIGHUP reads it again, SIGTERM drains and ends.",
		.flags = rows,
		.flag_count = hpx_cli_config_flags(&flags, rows),
	};
	struct server server = { .flags = &flags };
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	hpx_net_ignore_sigpipe();
	hpx_crew_ignore_signals();
	server.settings = hpx_cli_load(&flags);
	if (server.settings == NULL)
		return HPX_EXIT_FAILED;
	if (server.settings->core_dumps)
		hpx_crew_allow_core_dumps();
	hpx_log_set_level(server.settings->log_level);
	server.waitlist = hpx_waitlist_new(server.settings->waiters_per_operation_max,
					   server.settings->waiters_max);
	if (server.waitlist == NULL ||
	    hpx_crew_init(&server.crew, server.settings) != HPX_OK ||
	    hpx_loop_init(&server.loop) != HPX_OK) {
		hpx_crew_done(&server.crew);
		hpx_waitlist_free(server.waitlist);
		hpx_settings_unref(server.settings);
		return say("cannot start", hpx_status_text(HPX_NOMEM));
	}
	code = run(&server);
	tear_down(&server);
	return code;
}
