/* Shows what targets, webhooks, reconcile, async routes and the tenant's
 * subrequest come out as: their defaults, what is given, what a route or a
 * probe inherits, and what is made of it. */
#include "config_test.h"

#include <stdlib.h>

#include "config/option_parse.h"

#define UP "upstream: http://127.0.0.1:9000/\nstore: sqlite:/s\n"
#define VERIFIED \
	"tenant: {from: subrequest, url: 'http://127.0.0.1:1/v/', header: X-Tenant}\n"
#define BANK \
	"webhooks:\n" \
	"  bank: {scheme: stripe, secret_env: HPX_TEST_SECRETS, operation: /o,\n" \
	"         verdict: /v, applied: [ok]"

static int set_secrets(void **state)
{
	(void)state;
	setenv("HPX_TEST_SECRET", "Bearer s3cret", 1);
	setenv("HPX_TEST_OTHER", "Bearer 0ther\n", 1);
	setenv("HPX_TEST_SECRETS", "whsec_b25l\n\nwhsec_dHdv\r\n", 1);
	return 0;
}

static void expect(const void *base, const char *path, const char *want)
{
	const struct hpx_option *option = hpx_option_find(&hpx_config_options, hpx_span_of(path));
	char got[HPX_UNIT_SIZE];

	assert_non_null(option);
	hpx_value_print(option, base, got);
	if (strcmp(got, want) != 0)
		fail_msg("%s: got %s, want %s", path, got, want);
}

struct value {
	const char *path;
	const char *value;
};

static void expect_all(const void *base, const struct value *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect(base, rows[i].path, rows[i].value);
}

static void the_defaults(void **state)
{
	static const struct value globals[] = {
		{ "tenant.cache", "10s" },
		{ "tenant.timeout", "3s" },
		{ "tenant.connect_timeout", "1s" },
		{ "work.inside", "true" },
		{ "work.deliveries", "256" },
		{ "jobs.retention", "7d" },
	};
	static const struct value routes[] = {
		{ "defaults.deliver", "now" },
		{ "defaults.reconcile.settle_after", "0" },
		{ "defaults.reconcile.confirm_after", "30s" },
		{ "defaults.reconcile.tries", "20" },
		{ "defaults.reconcile.backoff", "10s" },
		{ "defaults.reconcile.backoff_max", "1h" },
		{ "defaults.reconcile.retry_after_max", "1h" },
		{ "defaults.reconcile.probe.timeout", "10s" },
		{ "defaults.reconcile.probe.connect_timeout", "5s" },
	};
	static const struct value targets[] = {
		{ "targets.t.connect_timeout", "5s" },
		{ "targets.t.timeout", "30s" },
		{ "targets.t.concurrency", "16" },
		{ "targets.t.attempts", "12" },
		{ "targets.t.backoff", "1s" },
		{ "targets.t.backoff_max", "1h" },
		{ "targets.t.retry_after_max", "1h" },
		{ "targets.t.honours_keys", "0" },
		{ "targets.t.breaker.failures", "5" },
		{ "targets.t.breaker.pause_max", "1m" },
		{ "targets.t.reconcile.tries", "20" },
	};
	static const struct value webhooks[] = {
		{ "webhooks.bank.tolerance", "5m" },
		{ "webhooks.bank.settle_after", "0" },
		{ "webhooks.bank.body", "64KiB" },
		{ "webhooks.bank.rate", "100" },
	};
	struct hpx_settings *settings = test_settings(
		UP "targets: {t: {url: 'https://t.example/api//'}}\n" BANK "}\n", NULL);
	(void)state;

	expect_all(settings, globals, COUNT(globals));
	expect_all(&settings->fallback, routes, COUNT(routes));
	assert_int_equal(settings->target_count, 1);
	expect_all(settings->targets, targets, COUNT(targets));
	assert_int_equal(settings->webhook_count, 1);
	expect_all(settings->webhooks, webhooks, COUNT(webhooks));
	assert_int_equal(settings->targets[0].breaker.open_ms, 1000);
	assert_true(settings->targets[0].breaker.probe_ms >
		    settings->targets[0].caller.timeout_ms);
	assert_span(settings->targets[0].key_header, "Idempotency-Key");
	assert_string_equal(settings->targets[0].caller.url, "https://t.example/api");
	assert_int_equal(settings->targets[0].caller.headers.len, 0);
	assert_null(settings->targets[0].provider_id.ptr);
	assert_false(settings->targets[0].reconcile.given);
	assert_false(settings->targets[0].reconcile.probe.given);
	assert_false(settings->fallback.reconcile.given);
	assert_null(settings->fallback.target);
	assert_int_equal(settings->targets[0].line, 3);
	assert_int_equal(settings->webhooks[0].line, 5);
	hpx_settings_unref(settings);
}

/* A sample with a target, a probe and a webhook. */
static void a_whole_sample(void **state)
{
	struct hpx_settings *settings = test_settings(
		UP VERIFIED
		"routes:\n"
		"  - match: POST /payments\n"
		"    server_error: unknown\n"
		"    reconcile:\n"
		"      settle_after: 2m\n"
		"      probe: {get: \"/payments?operation={operation}\", applied: [200], "
		"not_applied: [404]}\n"
		"  - match: POST /emails\n"
		"    deliver: async\n"
		"    target: mailer\n"
		"targets:\n"
		"  other: {url: 'http://localhost:9'}\n"
		"  mailer: {url: \"https://mail.example/api\", honours_keys: 24h, concurrency: "
		"16, attempts: 12, provider_id: /id}\n"
		"webhooks:\n"
		"  bank: {scheme: standard-webhooks, secret_env: HPX_TEST_SECRETS, operation: "
		"/data/metadata/operation, verdict: /data/status, applied: [succeeded], "
		"declined: [failed, \"404\"], not_applied: [not_found], settle_after: 5m}\n",
		NULL);
	const struct hpx_route *emails = &settings->routes[1];
	const struct hpx_route *payments = &settings->routes[0];
	const struct hpx_probe *probe = &payments->reconcile.probe;
	const struct hpx_webhook *bank = settings->webhooks;
	(void)state;

	assert_span(emails->pattern, "POST /emails");
	assert_int_equal(emails->policy.deliver, HPX_DELIVER_ASYNC);
	assert_ptr_equal(emails->target, &settings->targets[1]);
	assert_span(emails->target->name, "mailer");
	assert_int_equal(emails->target->honours_keys_ms, 24 * 3600 * 1000);
	assert_span(emails->target->provider_id, "/id");
	assert_false(emails->reconcile.given);

	assert_null(payments->target);
	assert_true(payments->reconcile.given);
	assert_int_equal(payments->reconcile.rule.settle_after_ms, 120000);
	assert_true(probe->given);
	assert_string_equal(probe->caller.url, "http://127.0.0.1:9000");
	assert_span(probe->get, "/payments?operation={operation}");
	assert_int_equal(probe->mapping.signs[HPX_RULING_APPLIED].status_count, 1);
	assert_int_equal(probe->mapping.signs[HPX_RULING_APPLIED].statuses[0], 200);
	assert_int_equal(probe->mapping.signs[HPX_RULING_NOT_APPLIED].statuses[0], 404);

	assert_int_equal(bank->signature.scheme, HPX_SIGNATURE_SCHEME_STANDARD);
	assert_int_equal(bank->signature.key_count, 2);
	assert_span(bank->signature.keys[0], "one");
	assert_span(bank->signature.keys[1], "two");
	assert_span(bank->mapping.pointer, "/data/status");
	/* A webhook has no status: all of it are words. */
	assert_int_equal(bank->mapping.signs[HPX_RULING_DECLINED].status_count, 0);
	assert_int_equal(bank->mapping.signs[HPX_RULING_DECLINED].value_count, 2);
	assert_span(bank->mapping.signs[HPX_RULING_DECLINED].values[1], "404");
	assert_int_equal(bank->settle_after_ms, 300000);

	assert_int_equal(settings->tenant.from, HPX_TENANT_SUBREQUEST);
	assert_int_equal(settings->tenant.anonymous, HPX_ANONYMOUS_REFUSE);
	assert_string_equal(settings->tenant.subrequest.caller.url, "http://127.0.0.1:1/v/");
	assert_span(settings->tenant.subrequest.header, "X-Tenant");
	assert_true(settings->tenant.subrequest.cache_entries_max > 0);
	hpx_settings_unref(settings);
}

/* Whom a probe asks, and with which credentials. */
static void what_a_probe_inherits(void **state)
{
#define GET "get: '/{operation}', applied: [200]"
#define SECRET "credentials: {env: HPX_TEST_SECRET}"
#define OTHER "credentials: {env: HPX_TEST_OTHER, header: X-Key}"
	static const struct {
		const char *defaults; /* of the probe */
		const char *route;
		const char *url;
		const char *headers;
	} routes[] = {
		{ "", GET, "http://127.0.0.1:9000", "" },
		{ GET, "timeout: 1s", "http://127.0.0.1:9000", "" },
		{ "url: 'https://p/x/'", GET, "https://p/x", "" },
		{ "url: 'https://p'," SECRET, GET, "https://p",
		  "Authorization: Bearer s3cret\r\n" },
		{ "url: 'https://p'," SECRET, GET "," OTHER, "https://p",
		  "X-Key: Bearer 0ther\r\n" },
		{ "url: 'https://p'," SECRET, GET ", url: 'https://q'", "https://q", "" },
		{ SECRET "," GET, GET ", url: 'https://q'," OTHER, "https://q",
		  "X-Key: Bearer 0ther\r\n" },
		{ SECRET "," GET, "", "http://127.0.0.1:9000",
		  "Authorization: Bearer s3cret\r\n" },
	};
	static const struct {
		const char *probe;
		const char *url;
		const char *headers;
		const char *ca_file;
	} targets[] = {
		{ GET, "https://t/a", "Authorization: Bearer s3cret\r\n", "/ca" },
		{ GET "," OTHER, "https://t/a", "X-Key: Bearer 0ther\r\n", "/ca" },
		{ GET ", url: 'https://q'", "https://q", "", NULL },
		{ GET ", ca_file: /own", "https://t/a", "Authorization: Bearer s3cret\r\n",
		  "/own" },
	};
	char text[600];
	(void)state;
	for (size_t i = 0; i < COUNT(routes); i++) {
		snprintf(text, sizeof(text),
			 UP "defaults: {reconcile: {probe: {%s}}}\n"
			    "routes: [{match: POST /a, reconcile: {probe: {%s}}}]\n",
			 routes[i].defaults, routes[i].route);
		struct hpx_settings *settings = test_settings(text, NULL);
		const struct hpx_probe *probe = &settings->routes[0].reconcile.probe;
		assert_true(probe->given);
		assert_string_equal(probe->caller.url, routes[i].url);
		assert_span(probe->caller.headers, routes[i].headers);
		hpx_settings_unref(settings);
	}
	for (size_t i = 0; i < COUNT(targets); i++) {
		snprintf(text, sizeof(text),
			 UP "targets: {t: {url: 'https://t/a/', ca_file: /ca, " SECRET
			    ", reconcile: {probe: {%s}}}}\n",
			 targets[i].probe);
		struct hpx_settings *settings = test_settings(text, NULL);
		const struct hpx_caller *caller = &settings->targets[0].reconcile.probe.caller;
		assert_string_equal(caller->url, targets[i].url);
		assert_span(caller->headers, targets[i].headers);
		if (targets[i].ca_file == NULL)
			assert_null(caller->ca_file);
		else
			assert_string_equal(caller->ca_file, targets[i].ca_file);
		hpx_settings_unref(settings);
	}
}

static void signs_are_statuses_or_words(void **state)
{
	struct hpx_settings *settings = test_settings(
		UP "targets: {t: {url: 'https://t', reconcile: {settle_after: 1s, probe: {\n"
		   "  get: '/{key}', verdict: /s, applied: [200, done, 1000, \"\\u00e9\"],\n"
		   "  declined: [], not_applied: [404, 410]}}}}\n",
		NULL);
	const struct hpx_ruling_signs *signs = settings->targets[0].reconcile.probe.mapping.signs;
	(void)state;

	assert_int_equal(signs[HPX_RULING_APPLIED].status_count, 1);
	assert_int_equal(signs[HPX_RULING_APPLIED].value_count, 3);
	assert_span(signs[HPX_RULING_APPLIED].values[0], "done");
	assert_span(signs[HPX_RULING_APPLIED].values[1], "1000");
	assert_int_equal(signs[HPX_RULING_DECLINED].status_count, 0);
	assert_int_equal(signs[HPX_RULING_NOT_APPLIED].status_count, 2);
	assert_int_equal(signs[HPX_RULING_NOT_APPLIED].statuses[1], 410);
	assert_int_equal(signs[HPX_RULING_NOT_YET].value_count, 0);
	hpx_settings_unref(settings);
}

static void a_body_s_signature(void **state)
{
	struct hpx_settings *settings = test_settings(
		UP "webhooks: {w: {scheme: hmac-body, secret_env: HPX_TEST_SECRET, "
		   "provider_id: /id, verdict: /v, declined: [no], header: X-Sig, "
		   "prefix: sha256=}}\n",
		NULL);
	const struct hpx_signature_settings *signature = &settings->webhooks[0].signature;
	(void)state;

	assert_span(signature->header, "x-sig");
	assert_span(signature->prefix, "sha256=");
	assert_int_equal(signature->key_count, 1);
	assert_span(signature->keys[0], "Bearer s3cret");
	hpx_settings_unref(settings);
}

/* A target that is empty is one without options; an empty map is none. */
static void empty_maps(void **state)
{
	struct hpx_settings *settings = test_settings(UP "targets:\nwebhooks: {}\n", NULL);
	(void)state;

	assert_int_equal(settings->target_count, 0);
	assert_int_equal(settings->webhook_count, 0);
	hpx_settings_unref(settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults),
		cmocka_unit_test(a_whole_sample),
		cmocka_unit_test(what_a_probe_inherits),
		cmocka_unit_test(signs_are_statuses_or_words),
		cmocka_unit_test(a_body_s_signature),
		cmocka_unit_test(empty_maps),
	};
	return cmocka_run_group_tests_name("external_service", tests, set_secrets, NULL);
}
