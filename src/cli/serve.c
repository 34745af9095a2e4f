/* `hapax serve`: a service with a gateway and workers, until SIGTERM. Requests run
 * on the gateway's own loops; the main thread has the service's loop. */
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/cli.h"
#include "egress/egress.h"
#include "gateway/gateway.h"
#include "gateway/tenant.h"
#include "net/dial.h"
#include "worker/trace_exporter.h"
#include "worker/workers.h"

/* Authorisation subrequests under way at once; the others wait. */
#define SUBREQUESTS_MAX 256
/* A sentence, and two lists of names. */
#define LISTENERS_TEXT_MAX ((size_t)16 << 10)
#define TENANT_TEXT_MAX ((size_t)64 << 10)

struct server {
	const struct hpx_config_flags *flags;
	struct hpx_service service;
	struct hpx_egress *egress; /* for subrequests and keys; NULL: the gateway asks nobody */
	struct hpx_gateway *gateway;
	struct hpx_workers workers;
	struct hpx_trace_exporter *exporter; /* NULL: traces are off */
	struct hpx_resolver *resolver;       /* of the upstream's name, once, at the start */
	struct hpx_resolve_wait resolving;
};

static int fail(const char *problem)
{
	hpx_log_not_started("hapax", problem);
	return HPX_EXIT_FAILED;
}

static int fail_part(const char *part, const char *problem)
{
	char both[2 * HPX_PROBLEM_SIZE];

	snprintf(both, sizeof(both), "%s: %s", part, problem);
	return fail(both);
}

/* ---- what the service calls ---- */

static struct hpx_settings *load(void *user)
{
	const struct server *server = user;

	if (hpx_config_path(server->flags) == NULL) {
		hpx_log(HPX_LOG_WARN, "reload_refused",
			"reason=\"there is no configuration file; start with --config\"");
		return NULL;
	}
	return hpx_cli_load_again(server->flags);
}

static void reload(void *user, struct hpx_settings *settings, struct hpx_message *taken)
{
	struct server *server = user;

	hpx_workers_reload(&server->workers, settings);
	hpx_gateway_reload(server->gateway, settings, taken);
}

static void reopen_logs(void *user)
{
	hpx_gateway_reopen_log(((struct server *)user)->gateway);
}

static void drain(void *user, int64_t until_ms)
{
	struct server *server = user;

	hpx_gateway_drain(server->gateway);
	int64_t left_ms = until_ms - hpx_clock_boot_ms();
	hpx_workers_stop(&server->workers, left_ms > 0 ? left_ms : 0);
}

static void print_metrics(void *user, struct hpx_metric_page *page)
{
	hpx_gateway_metrics(((struct server *)user)->gateway, page);
}

static enum hpx_status print_coverage(void *user, struct hpx_buffer *out)
{
	return hpx_gateway_coverage(((struct server *)user)->gateway, out);
}

/* ---- start ---- */

static int open_service(struct server *server, struct hpx_settings *settings)
{
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";
	struct hpx_service_options options = { .settings = settings,
					       .takes_requests = true,
					       .has_admin = true,
					       .user = server,
					       .drain = drain,
					       .load = load,
					       .reload = reload,
					       .reopen_logs = reopen_logs,
					       .print_metrics = print_metrics,
					       .print_coverage = print_coverage };

	if (hpx_service_open(&server->service, &options, problem) != HPX_OK)
		return fail(problem);
	return HPX_EXIT_OK;
}

static int start_egress(struct server *server)
{
	struct hpx_egress_options options = { .running_max = SUBREQUESTS_MAX };

	const struct hpx_tenant_settings *tenant = &server->service.settings->tenant;

	if (tenant->from != HPX_TENANT_SUBREQUEST &&
	    !(tenant->from == HPX_TENANT_JWT && tenant->jwt.keys_by_url))
		return HPX_EXIT_OK;
	enum hpx_status status = hpx_egress_start(&options, &server->egress);
	return status == HPX_OK ? HPX_EXIT_OK :
				  fail_part("neither subrequests nor requests for keys can be made",
					    hpx_status_text(status));
}

static int start_traces(struct server *server)
{
	enum hpx_status status = hpx_trace_exporter_start(&server->service, &server->exporter);

	return status == HPX_OK ? HPX_EXIT_OK :
				  fail_part("traces cannot be sent", hpx_status_text(status));
}

static int make_gateway(struct server *server)
{
	char problem[HPX_PROBLEM_SIZE] = "";
	struct hpx_gateway_options options = { .service = &server->service,
					       .egress = server->egress,
					       .accepted = hpx_workers_wake,
					       .accepted_user = &server->workers };

	if (hpx_gateway_new(&options, &server->gateway, problem) != HPX_OK)
		return fail_part("the gateway cannot start", problem);
	return HPX_EXIT_OK;
}

static int listen_for_signals(struct server *server)
{
	char problem[HPX_SERVICE_PROBLEM_SIZE] = "";

	return hpx_service_listen(&server->service, problem) == HPX_OK ? HPX_EXIT_OK : fail(problem);
}

static int start_workers(struct server *server)
{
	if (server->service.store == NULL)
		return HPX_EXIT_OK; /* observing without a store */
	enum hpx_status status = hpx_workers_start(&server->workers, &server->service,
						   server->service.settings->work);
	return status == HPX_OK ? HPX_EXIT_OK :
				  fail_part("the workers cannot start", hpx_status_text(status));
}

/* "127.0.0.1:8080,unix:/run/hapax.sock" */
static void print_listeners(const struct server *server, struct hpx_buffer *out)
{
	const struct hpx_settings *settings = server->service.settings;
	char address[HPX_SERVICE_ADDRESS_SIZE];

	hpx_buffer_init(out, LISTENERS_TEXT_MAX);
	for (size_t n = 0; n < settings->listener_count; n++) {
		hpx_service_print_address(&settings->listeners[n].address,
					  hpx_gateway_port(server->gateway, n), address);
		if (hpx_buffer_printf(out, "%s%s", n > 0 ? "," : "", address) != HPX_OK)
			return;
	}
}

/* The one line that says that the process is ready, whatever the log level. */
static void announce(const struct server *server)
{
	const struct hpx_settings *settings = server->service.settings;
	const struct hpx_store *store = server->service.store;
	char admin[HPX_SERVICE_ADDRESS_SIZE];
	struct hpx_buffer listen;

	print_listeners(server, &listen);
	hpx_service_print_admin(&server->service, admin);
	hpx_log_set_level(HPX_LOG_INFO);
	hpx_log(HPX_LOG_INFO, "ready", "listen=%.*s admin=%s upstream=%s store=%s observe=%s version=%s",
		HPX_SPAN_ARG(hpx_buffer_span(&listen)), admin, settings->upstream.text, store != NULL ? store->description : "none",
		settings->observe ? "yes" : "no", HPX_VERSION);
	hpx_log_set_level(settings->log_level);
	hpx_buffer_done(&listen);
}

/* The line about which requests count as one caller's, and which as anonymous. */
static void log_tenants(const struct hpx_settings *settings)
{
	struct hpx_buffer text;

	hpx_buffer_init(&text, TENANT_TEXT_MAX);
	if (hpx_tenant_describe(settings, &text) == HPX_OK)
		hpx_log(HPX_LOG_INFO, "tenants", "from=\"%.*s\"",
			HPX_SPAN_ARG(hpx_buffer_span(&text)));
	hpx_buffer_done(&text);
}

static void on_resolved(struct hpx_resolve_wait *wait, const struct hpx_resolved *resolved)
{
	struct server *server = HPX_CONTAINER(wait, struct server, resolving);

	if (resolved == NULL)
		hpx_upstream_note_unreachable(&server->gateway->upstream_state,
					      "the upstream's name has no address");
}

/* A name that does not resolve is logged now and not by the first request. The
 * name may get an address later: nothing waits for this lookup. */
static void look_up_upstream(struct server *server)
{
	const struct hpx_address *address = &server->service.settings->upstream;

	if (address->is_unix)
		return;
	server->resolver = hpx_resolver_new(&server->service.loop, address, 0);
	server->resolving.on_resolved = on_resolved;
	if (server->resolver != NULL && hpx_resolver_known(server->resolver) == NULL)
		(void)hpx_resolver_wait(server->resolver, &server->resolving);
}

static int run(struct server *server, struct hpx_settings *settings)
{
	int code = open_service(server, settings);

	if (code == HPX_EXIT_OK)
		code = start_egress(server);
	if (code == HPX_EXIT_OK)
		code = start_traces(server);
	if (code == HPX_EXIT_OK)
		code = make_gateway(server);
	if (code == HPX_EXIT_OK)
		code = listen_for_signals(server);
	if (code == HPX_EXIT_OK)
		code = start_workers(server);
	if (code != HPX_EXIT_OK)
		return code;
	if (hpx_gateway_start(server->gateway) != HPX_OK)
		return fail_part("the gateway cannot start", "no thread can be made");
	log_tenants(settings);
	announce(server);
	look_up_upstream(server);
	hpx_service_run(&server->service);
	return HPX_EXIT_OK;
}

/* In the order in which no part talks to another that is gone: nothing more is
 * sent; the committer stops and gives back what was submitted; the rest ends. */
static void tear_down(struct server *server)
{
	hpx_workers_stop(&server->workers, 0);
	hpx_service_stop_writing(&server->service);
	hpx_workers_done(&server->workers);
	if (server->egress != NULL)
		hpx_egress_stop(server->egress, 0);
	hpx_resolve_wait_cancel(&server->resolving);
	if (server->resolver != NULL)
		hpx_resolver_free(server->resolver);
	hpx_gateway_free(server->gateway);
	hpx_egress_free(server->egress);
	hpx_trace_exporter_stop(server->exporter);
	hpx_service_close(&server->service);
}

int hpx_cli_serve(int argc, char **argv)
{
	struct hpx_config_flags flags;
	struct hpx_cli_flag rows[HPX_CONFIG_FLAG_MAX];
	struct hpx_cli_usage usage = {
		.synopsis = "hapax serve --upstream URL [FLAGS]",
		.about = "Stands in front of an HTTP API and makes a retried POST happen once.\n"
			 "These flags, and all other options, can also be given in a file (--config).\n"
			 "SIGHUP reads the file again. SIGTERM drains and ends.",
		.flags = rows,
		.flag_count = hpx_cli_config_flags(&flags, rows),
	};
	struct server server = { .flags = &flags };
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	hpx_service_ignore_signals();
	/* From here on nobody waits for standard error. */
	if (hpx_log_start_writer() != HPX_OK)
		return fail_part("the log cannot be written", hpx_status_text(HPX_NOMEM));
	struct hpx_settings *settings = hpx_cli_load(&flags);
	code = settings != NULL ? run(&server, settings) : HPX_EXIT_FAILED;
	if (settings != NULL)
		tear_down(&server);
	hpx_log_stop_writer();
	return code;
}
