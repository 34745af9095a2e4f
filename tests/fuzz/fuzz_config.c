/* Fuzzes the reader of the configuration: any text gives settings or a list
 * of mistakes, never both, never neither; what it gives holds together. */
#include <stdlib.h>

#include "base/status.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_probe(const struct hpx_probe *probe)
{
	HPX_ASSERT(probe->given == (probe->get.len > 0));
	HPX_ASSERT(!probe->given || probe->caller.url != NULL);
}

static void check_services(const struct hpx_settings *settings)
{
	for (size_t i = 0; i < settings->target_count; i++) {
		const struct hpx_job_target *target = &settings->targets[i];
		HPX_ASSERT(target->name.len > 0 && target->caller.url != NULL);
		HPX_ASSERT(target->concurrency > 0 && target->attempts_max > 0);
		check_probe(&target->reconcile.probe);
	}
	for (size_t i = 0; i < settings->webhook_count; i++) {
		const struct hpx_webhook *webhook = &settings->webhooks[i];
		HPX_ASSERT(webhook->name.len > 0 && webhook->signature.key_count > 0);
		HPX_ASSERT(webhook->operation.len > 0 || webhook->provider_id.len > 0);
		HPX_ASSERT(webhook->mapping.pointer.len > 0);
	}
}

static void check_route(const struct hpx_settings *settings, const struct hpx_route *route)
{
	HPX_ASSERT(route->segment_count > 0);
	HPX_ASSERT(route->policy.lease_ms >= 1000);
	HPX_ASSERT(route->recipe.ignore_count <= HPX_RECIPE_LIST_MAX);
	HPX_ASSERT(!hpx_route_guards(route, HPX_SPAN("GET")));
	HPX_ASSERT((route->policy.deliver == HPX_DELIVER_ASYNC) == (route->target != NULL));
	check_probe(&route->reconcile.probe);
	HPX_ASSERT(hpx_route_match(settings, HPX_SPAN("POST"), HPX_SPAN("h"),
				   HPX_SPAN("/a/b")) != NULL);
}

static void check_settings(const struct hpx_settings *settings)
{
	struct hpx_buffer changes;

	HPX_ASSERT(settings->upstream.text[0] != '\0');
	HPX_ASSERT(settings->route_count <= HPX_CONFIG_ROUTES_MAX);
	for (size_t i = 0; i < settings->route_count; i++) {
		HPX_ASSERT(settings->routes[i].number == i);
		check_route(settings, &settings->routes[i]);
	}
	check_services(settings);
	hpx_buffer_init(&changes, 1 << 20);
	HPX_ASSERT(hpx_config_changes(settings, settings, &changes) == HPX_OK);
	HPX_ASSERT(changes.len == 0);
	hpx_buffer_done(&changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hpx_config_flags flags;
	struct hpx_config_report report;
	struct hpx_settings *settings = NULL;
	struct hpx_buffer out;

	/* Something for a file that names it. */
	setenv("S", "whsec_b25l", 1);
	hpx_config_report_init(&report);
	hpx_buffer_init(&out, 1 << 20);
	enum hpx_status status =
		hpx_config_read(hpx_span(data, size), &flags, &report, &settings);
	HPX_ASSERT(status == HPX_OK || status == HPX_INVALID || status == HPX_NOMEM);
	HPX_ASSERT((status == HPX_OK) == (settings != NULL));
	HPX_ASSERT((status == HPX_INVALID) == (report.mistakes > 0) || status == HPX_NOMEM);
	HPX_ASSERT(hpx_config_report_print(&report, "f", &out) == HPX_OK);
	for (size_t i = 0; i < out.len; i++)
		HPX_ASSERT(out.ptr[i] == '\n' || (unsigned char)out.ptr[i] >= 0x20);
	if (settings != NULL)
		check_settings(settings);
	hpx_settings_unref(settings);
	hpx_buffer_done(&out);
	hpx_config_report_done(&report);
	return 0;
}
