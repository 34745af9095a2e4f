/* Shows that the table of options is whole: every member of the settings has
 * an option, every name is found by its path, every default is in bounds. */
#include "config_test.h"

static void mark(unsigned char *seen, size_t offset, size_t width)
{
	memset(seen + offset, 1, width);
}

/* Bytes between `begin` and `end` that no row points at; runs shorter than a
 * pointer are padding. */
static void no_hole(const unsigned char *seen, size_t begin, size_t end, const char *what)
{
	size_t run = 0;

	for (size_t i = begin; i < end; i++) {
		run = seen[i] ? 0 : run + 1;
		if (run >= sizeof(void *))
			fail_msg("%s: no option for the bytes at offset %zu", what,
				 i + 1 - run);
	}
}

#define MARK(seen, type, member) \
	mark(seen, offsetof(struct type, member), sizeof(((struct type *)0)->member))

static void every_member_has_an_option(void **state)
{
	static unsigned char settings[sizeof(struct hpx_settings)];
	static unsigned char route[sizeof(struct hpx_route)];
	static unsigned char listener[sizeof(struct hpx_listener_settings)];
	static unsigned char target[sizeof(struct hpx_job_target)];
	static unsigned char webhook[sizeof(struct hpx_webhook)];
	static unsigned char *const seen_of[] = {
		[HPX_PLACE_GLOBAL] = settings,
		[HPX_PLACE_POLICY] = route,
		[HPX_PLACE_ROUTE] = route,
		[HPX_PLACE_LISTENER] = listener,
		[HPX_PLACE_TARGET] = target,
		[HPX_PLACE_WEBHOOK] = webhook,
		[HPX_PLACE_COMMAND] = NULL,
	};
	(void)state;
	for (size_t i = 0; i < hpx_config_options.count; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		unsigned char *seen = seen_of[option->place];
		if (option->place == HPX_PLACE_COMMAND)
			continue;
		mark(seen, option->offset, option->width);
		if (hpx_option_kind_is_list(option->kind) && option->companion_offset > 0)
			mark(seen, option->companion_offset, sizeof(size_t));
		if (option->off)
			mark(seen, option->companion_offset, sizeof(bool));
	}
	/* What is made of the values. */
	MARK(settings, hpx_settings, listeners);
	MARK(settings, hpx_settings, listener_count);
	/* Of upstreams only. */
	MARK(settings, hpx_settings, admin_tls.name);
	MARK(listener, hpx_listener_settings, tls.name);
	MARK(settings, hpx_settings, targets);
	MARK(settings, hpx_settings, target_count);
	MARK(settings, hpx_settings, webhooks);
	MARK(settings, hpx_settings, webhook_count);
	MARK(settings, hpx_settings, tenant.subrequest.caller.credentials);
	MARK(settings, hpx_settings, tenant.subrequest.caller.headers);
	MARK(settings, hpx_settings, tenant.subrequest.cache_entries_max);
	MARK(settings, hpx_settings, traces.caller.headers);
	MARK(settings, hpx_settings, tenant.jwt.keys_by_url);
	MARK(settings, hpx_settings, tenant.jwt.cache_entries_max);
	MARK(route, hpx_route, matched_by_key);
	MARK(route, hpx_route, amount_request);
	MARK(route, hpx_route, target);
	MARK(route, hpx_route, reconcile.given);
	MARK(route, hpx_route, reconcile.probe.given);
	MARK(route, hpx_route, reconcile.probe.caller.headers);
	MARK(target, hpx_job_target, caller.headers);
	MARK(target, hpx_job_target, breaker);
	MARK(target, hpx_job_target, reconcile.given);
	MARK(target, hpx_job_target, reconcile.probe.given);
	MARK(target, hpx_job_target, reconcile.probe.caller.headers);
	MARK(webhook, hpx_webhook, signature.keys);
	MARK(webhook, hpx_webhook, signature.key_count);
	no_hole(route, offsetof(struct hpx_route, target_name),
		offsetof(struct hpx_route, line), "route");
	no_hole(listener, 0, offsetof(struct hpx_listener_settings, line), "listener");
	no_hole(target, offsetof(struct hpx_job_target, caller),
		offsetof(struct hpx_job_target, line), "target");
	no_hole(webhook, offsetof(struct hpx_webhook, secret_file),
		offsetof(struct hpx_webhook, line), "webhook");
	no_hole(settings, offsetof(struct hpx_settings, listen),
		offsetof(struct hpx_settings, fallback), "settings");
	no_hole(route, offsetof(struct hpx_route, policy),
		offsetof(struct hpx_route, recipe) + offsetof(struct hpx_recipe, version),
		"route");
	no_hole(route, offsetof(struct hpx_route, recipe.ignore),
		offsetof(struct hpx_route, recipe.id), "recipe");
}

static void every_row_is_found_and_documented(void **state)
{
	char path[HPX_OPTION_PATH_SIZE];
	(void)state;
	assert_true(hpx_config_options.count <= HPX_OPTION_MAX);
	for (size_t i = 0; i < hpx_config_options.count; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		static const char *const prefix[] = { "", "defaults.",
						      "routes[].", "listen[].", "targets.a-b.",
						      "webhooks.x.", "" };
		snprintf(path, sizeof(path), "%s%s", prefix[option->place], option->name);
		const struct hpx_option *found = hpx_option_find(&hpx_config_options, hpx_span_of(path));
		if (found != (option->place == HPX_PLACE_COMMAND ? NULL : option))
			fail_msg("%s: not found by its path", path);
		if (option->text == NULL || option->text[strlen(option->text) - 1] != '.')
			if (option->text == NULL ||
			    strcmp(option->text + strlen(option->text) - 2, ".)") != 0)
				fail_msg("%s: its text is no sentence", path);
		if (option->default_value == NULL && option->example == NULL &&
		    option->flag == NULL)
			fail_msg("%s: neither a default nor an example", path);
		assert_int_equal(hpx_option_index(&hpx_config_options, option), i);
	}
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("defaults.match")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("defaults.listen")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("lease")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("config")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("targets")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("targets.url")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("targets.a.b.url")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("webhooks.a.url")));
	assert_null(hpx_option_find(&hpx_config_options, HPX_SPAN("url")));
}

static void groups_are_known(void **state)
{
	static const struct {
		const char *path;
		bool group;
	} rows[] = {
		{ "limits", true },
		{ "tenant", true },
		{ "defaults", true },
		{ "routes[]", true },
		{ "limit", false },
		{ "listen", false },
		{ "limits.head", false },
		{ "", false },
		{ "defaults.fingerprint", true },
		{ "defaults.limits", false },
		{ "fingerprint", false },
		{ "routes[].fingerprint", true },
		{ "routes[].reconcile.probe", true },
		{ "defaults.reconcile.probe.credentials", true },
		{ "defaults.reconcile.probe.get", false },
		{ "defaults.reconcile.pro", false },
		{ "reconcile", false },
		{ "targets", false },
		{ "targets.", false },
		{ "targets.a", true },
		{ "targets.a.breaker", true },
		{ "targets.a.tolerance", false },
		{ "webhooks.a", true },
		{ "webhooks.a.reconcile", false },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (hpx_option_is_group(&hpx_config_options, hpx_span_of(rows[i].path)) != rows[i].group)
			fail_msg("\"%s\": want %d", rows[i].path, rows[i].group);
}

static void unknown_names_lead_to_the_nearest(void **state)
{
	static const struct {
		const char *path;
		const char *nearest;
	} rows[] = {
		{ "lisen", "listen" },
		{ "Listen", "listen" },
		{ "limit", "limits" },
		{ "limits.haed", "limits.head" },
		{ "default", "defaults" },
		{ "route", "routes" },
		{ "routes[].server_eror", "routes[].server_error" },
		{ "defaults.fingerprint.ignored", "defaults.fingerprint.ignore" },
		{ "lease", "defaults.lease" },
		{ "server_error", "defaults.server_error" },
		{ "match", "routes[].match" },
		{ "request_body", "limits.request_body" },
		{ "routes[].listen", "listen" },
		{ "target", "targets" },
		{ "webhook", "webhooks" },
		{ "targets.mailer.ulr", "targets.mailer.url" },
		{ "targets.mailer.breker", "targets.mailer.breaker" },
		{ "targets.mailer.scheme", "webhooks.NAME.scheme" },
		{ "webhooks.bank.secretfile", "webhooks.bank.secret_file" },
		{ "routes[].settle_after", "defaults.reconcile.settle_after" },
		{ "routes[].reconcile.probe.aplied", "routes[].reconcile.probe.applied" },
		/* Of the same name, one of defaults comes before any other. */
		{ "concurrency", "defaults.reconcile.probe.concurrency" },
		{ "retention", "defaults.retention" },
		{ "targets.mailer.retention", "defaults.retention" },
		{ "limits.retention", "defaults.retention" },
		{ "retension", "defaults.retention" },
		{ "event.retention", "events.retention" },
		{ "scope", "defaults.scope" },
		{ "header", "tenant.header" },
		{ "keyz", "defaults.key" },
		{ "keys", "tenant.keys" },
		/* A word too many behind it. */
		{ "upstream_url", "upstream" },
		{ "upstream_mane", "upstream_name" },
		{ "listen_address", "listen" },
		{ "tenant_header", "tenant.header" },
		{ "wait_timeout", "defaults.wait" },
		{ "retention-days", "defaults.retention" },
		{ "limits.head_size", "limits.head" },
		{ "routes[].lease_time", "routes[].lease" },
		/* Nothing that resembles them. */
		{ "limits.xyzzy", "" },
		{ "host", "" },
		{ "port", "" },
		{ "time", "" },
		{ "code", "" },
		{ "keep", "" },
		{ "xyzzy", "" },
		{ "", "" },
		{ "defaults.", "" },
	};
	char nearest[HPX_OPTION_PATH_SIZE];
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		hpx_option_suggest(&hpx_config_options, hpx_span_of(rows[i].path), nearest);
		if (strcmp(nearest, rows[i].nearest) != 0)
			fail_msg("\"%s\": got \"%s\", want \"%s\"", rows[i].path, nearest,
				 rows[i].nearest);
	}
}

static void flags_are_those_of_the_table(void **state)
{
	static const char *const flags[] = { "config", "listen", "admin", "upstream",
					     "upstream-name", "store", "access-log", "observe" };
	(void)state;
	for (size_t n = 0; n < COUNT(flags); n++)
		assert_string_equal(hpx_option_flag(&hpx_config_options, n)->flag, flags[n]);
	assert_null(hpx_option_flag(&hpx_config_options, COUNT(flags)));
	assert_true(COUNT(flags) <= HPX_CONFIG_FLAG_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_member_has_an_option),
		cmocka_unit_test(every_row_is_found_and_documented),
		cmocka_unit_test(groups_are_known),
		cmocka_unit_test(unknown_names_lead_to_the_nearest),
		cmocka_unit_test(flags_are_those_of_the_table),
	};
	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
