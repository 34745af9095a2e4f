/* The TLS contexts of a process: made at start, counted for /metrics, and made anew when
 * the configuration is reloaded, when one of their files changes, and every few hours for
 * fresh ticket keys. Connections that are open go on with what they began with.
 *
 * A pair of files is not replaced in one moment: a certificate that does not fit its key
 * yet is tried again when the files change again, and the old pair stays in force. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "config/config.h"
#include "net/listener.h"
#include "net/tls.h"
#include "service/service.h"

/* How often the files are looked at. They count as changed when two looks in a row saw the
 * same new state: somebody may still be writing. */
#define LOOK_MS 1000
/* A ticket that is stolen with its key is worth nothing after this. */
#define TICKET_KEYS_MS (6 * 3600 * 1000LL)
#define DAY_SECONDS 86400
#define EXPIRES_SOON_DAYS 14

/* ---- every use of TLS in the settings ---- */

struct use {
	const char *option; /* "listen[].tls" */
	const char *place;  /* "127.0.0.1:8443", for people and labels */
	enum hpx_tls_side side;
	const struct hpx_tls_settings *settings;
	unsigned line, column;
};

#define USES_FIXED 2 /* the upstream and the admin listener; then the listeners */

static size_t count_uses(const struct hpx_settings *settings)
{
	return USES_FIXED + settings->listener_count;
}

/* False: no TLS is spoken there. */
static bool use_at(const struct hpx_settings *settings, size_t n, struct use *ret_use)
{
	if (n == 0) {
		*ret_use = (struct use){ "upstream_tls", "upstream", HPX_TLS_CLIENT,
					 &settings->upstream_tls, 0, 0 };
		return settings->upstream.tls;
	}
	if (n == 1) {
		*ret_use = (struct use){ "admin_tls", "admin", HPX_TLS_SERVER, &settings->admin_tls,
					 0, 0 };
		return settings->has_admin && hpx_tls_given(&settings->admin_tls);
	}
	const struct hpx_listener_settings *listener = &settings->listeners[n - USES_FIXED];
	*ret_use = (struct use){ "listen[].tls", listener->address.text, HPX_TLS_SERVER,
				 &listener->tls, listener->line, listener->column };
	return hpx_tls_given(&listener->tls);
}

static struct hpx_tls **context_at(struct hpx_service *service, size_t n)
{
	if (n == 0)
		return &service->tls.upstream;
	if (n == 1)
		return &service->tls.admin;
	return &service->tls.listeners[n - USES_FIXED];
}

/* ---- hapax check, and every load of the configuration ---- */

static void check_certificate(const struct use *use, const char *file,
			      struct hpx_config_report *report)
{
	struct hpx_certificate_facts facts;
	char problem[HPX_PROBLEM_SIZE];
	struct hpx_span option = hpx_span_of(use->option);

	if (hpx_certificate_read(file, &facts, problem) != HPX_OK)
		return; /* hpx_tls_new has said it */
	if (facts.expires_s <= 0)
		hpx_config_remark(report, HPX_CONFIG_MISTAKE, use->line, use->column, option,
				  "%s: the certificate has expired; put a renewed one there", file);
	else if (facts.expires_s < (int64_t)EXPIRES_SOON_DAYS * DAY_SECONDS)
		hpx_config_remark(report, HPX_CONFIG_WARNING, use->line, use->column, option,
				  "%s: the certificate expires in %" PRId64 " days; renew it", file,
				  facts.expires_s / DAY_SECONDS);
	if (facts.begins_s > 0)
		hpx_config_remark(report, HPX_CONFIG_WARNING, use->line, use->column, option,
				  "%s: the certificate is not valid yet", file);
	if (!facts.ordered)
		hpx_config_remark(report, HPX_CONFIG_WARNING, use->line, use->column, option,
				  "%s: the certificates are not in order: each must be issued by the "
				  "one behind it, or some clients cannot verify the first",
				  file);
}

void hpx_service_check_tls(const struct hpx_settings *settings, struct hpx_config_report *report)
{
	for (size_t n = 0; n < count_uses(settings); n++) {
		char problem[HPX_PROBLEM_SIZE];
		struct hpx_tls *tls = NULL;
		struct use use;
		if (!use_at(settings, n, &use))
			continue;
		if (hpx_tls_new(use.side, use.settings, &tls, problem) != HPX_OK)
			hpx_config_remark(report, HPX_CONFIG_MISTAKE, use.line, use.column,
					  hpx_span_of(use.option), "%s", problem);
		hpx_tls_free(tls);
		for (size_t i = 0; i < use.settings->certificate_count; i++)
			check_certificate(&use, use.settings->certificates[i], report);
	}
}

/* ---- making and remaking ---- */

enum hpx_status hpx_service_open_tls(struct hpx_service *service, char *problem)
{
	const struct hpx_settings *settings = service->settings;
	size_t count = service->options.takes_requests ? count_uses(settings) : USES_FIXED;
	enum hpx_status status = HPX_OK;
	char reason[HPX_PROBLEM_SIZE];

	service->tls.listeners = calloc(settings->listener_count, sizeof(*service->tls.listeners));
	service->tls.stamps = calloc(2 * count_uses(settings), sizeof(*service->tls.stamps));
	if (service->tls.listeners == NULL || service->tls.stamps == NULL)
		status = HPX_NOMEM;
	for (size_t n = 0; n < count && status == HPX_OK; n++) {
		struct use use;
		if (!use_at(settings, n, &use) || (n == 0 && !service->options.takes_requests))
			continue;
		service->tls.stamps[2 * n] = service->tls.stamps[2 * n + 1] =
			hpx_tls_stamp(use.settings);
		status = hpx_tls_new(use.side, use.settings, context_at(service, n), reason);
		if (status != HPX_OK)
			snprintf(problem, HPX_SERVICE_PROBLEM_SIZE, "%s: %s", use.option, reason);
	}
	return status;
}

void hpx_service_close_tls(struct hpx_service *service)
{
	for (size_t n = 0; service->tls.listeners != NULL && n < count_uses(service->settings); n++)
		hpx_tls_free(*context_at(service, n));
	free(service->tls.listeners);
	free(service->tls.stamps);
}

static void remake(struct hpx_service *service, size_t n, const struct use *use, const char *why)
{
	char problem[HPX_PROBLEM_SIZE];
	enum hpx_status status = hpx_tls_reload(*context_at(service, n), use->settings, problem);

	if (status == HPX_OK) {
		hpx_counter_add(&service->tls.reloads, 1);
		hpx_log(HPX_LOG_INFO, "tls_reloaded", "place=%s why=%s", use->place, why);
	} else {
		hpx_counter_add(&service->tls.reload_failures, 1);
		hpx_log(HPX_LOG_ERROR, "tls_reload_failed",
			"place=%s reason=\"%s\" effect=\"the old certificates stay in force\"",
			use->place, problem);
	}
}

void hpx_service_reload_tls(struct hpx_service *service)
{
	for (size_t n = 0; n < count_uses(service->settings); n++) {
		struct use use;
		if (*context_at(service, n) == NULL || !use_at(service->settings, n, &use))
			continue;
		service->tls.stamps[2 * n] = service->tls.stamps[2 * n + 1] =
			hpx_tls_stamp(use.settings);
		remake(service, n, &use, "reload");
	}
}

/* ---- watching ---- */

static void look(uv_timer_t *timer)
{
	struct hpx_service *service = timer->data;
	int64_t now_ms = hpx_clock_boot_ms();

	for (size_t n = 0; n < count_uses(service->settings); n++) {
		struct hpx_tls *tls = *context_at(service, n);
		uint64_t *used = &service->tls.stamps[2 * n], *seen = used + 1;
		struct use use;
		if (tls == NULL || !use_at(service->settings, n, &use))
			continue;
		uint64_t stamp = hpx_tls_stamp(use.settings);
		bool settled = stamp == *seen;
		*seen = stamp;
		if (settled && stamp != *used) {
			*used = stamp;
			remake(service, n, &use, "files");
		} else if (now_ms - hpx_tls_read_ms(tls) >= TICKET_KEYS_MS) {
			remake(service, n, &use, "ticket_keys");
		}
	}
}

void hpx_service_watch_tls(struct hpx_service *service)
{
	uv_timer_t *timer = &service->tls.watch;

	/* Neither can fail: the timer has a callback. */
	(void)uv_timer_init(&service->loop.uv, timer);
	timer->data = service;
	(void)uv_timer_start(timer, look, LOOK_MS, LOOK_MS);
	uv_unref((uv_handle_t *)timer);
}

/* ---- metrics ---- */

static void print_handshakes(struct hpx_service *service, struct hpx_metric_page *page)
{
	static const char *const results[] = {
#define X(name) #name,
		HPX_TLS_RESULT_LIST(X)
#undef X
	};

	hpx_metric_head(page, "hapax_tls_handshakes_total", "counter",
			"TLS handshakes, by the place where they were made and how they ended.");
	for (size_t n = 0; n < count_uses(service->settings); n++) {
		const struct hpx_tls *tls = *context_at(service, n);
		struct use use;
		if (tls == NULL || !use_at(service->settings, n, &use))
			continue;
		for (unsigned i = 0; i < HPX_TLS_RESULT_COUNT; i++) {
			HPX_METRIC_PRINT(page, "hapax_tls_handshakes_total{place=\"");
			hpx_metric_label(page, hpx_span_of(use.place));
			HPX_METRIC_PRINT(page, "\",result=\"%s\"} %" PRIu64 "\n", results[i],
					 hpx_tls_count(tls, (enum hpx_tls_result)i));
		}
	}
}

static void print_expiry(struct hpx_service *service, struct hpx_metric_page *page)
{
	hpx_metric_head(page, "hapax_tls_certificate_expiry_seconds", "gauge",
			"Seconds until a certificate expires; negative once it has.");
	for (size_t n = 0; n < count_uses(service->settings); n++) {
		struct hpx_tls *tls = *context_at(service, n);
		int64_t seconds;
		struct use use;
		if (tls == NULL || !use_at(service->settings, n, &use))
			continue;
		for (size_t i = 0; i < use.settings->certificate_count; i++) {
			if (!hpx_tls_expiry(tls, i, &seconds))
				break;
			HPX_METRIC_PRINT(page, "hapax_tls_certificate_expiry_seconds{place=\"");
			hpx_metric_label(page, hpx_span_of(use.place));
			HPX_METRIC_PRINT(page, "\",file=\"");
			hpx_metric_label(page, hpx_span_of(use.settings->certificates[i]));
			HPX_METRIC_PRINT(page, "\"} %" PRId64 "\n", seconds);
		}
	}
}

static bool speaks_tls(struct hpx_service *service)
{
	for (size_t n = 0; n < count_uses(service->settings); n++)
		if (*context_at(service, n) != NULL)
			return true;
	return false;
}

void hpx_service_print_tls(struct hpx_service *service, struct hpx_metric_page *page)
{
	if (!speaks_tls(service))
		return;
	print_handshakes(service, page);
	print_expiry(service, page);
	hpx_metric_head(page, "hapax_tls_reloads_total", "counter",
			"How often certificates were read again while hapax ran.");
	hpx_metric_sample(page, "hapax_tls_reloads_total", "result", HPX_SPAN("done"),
			  hpx_counter_read(&service->tls.reloads));
	hpx_metric_sample(page, "hapax_tls_reloads_total", "result", HPX_SPAN("failed"),
			  hpx_counter_read(&service->tls.reload_failures));
}
