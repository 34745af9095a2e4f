/* Shows which changes a reload names because they need a restart, above all
 * every change of a scope. */
#include "config_test.h"

#include <stdlib.h>

#define UP "upstream: http://h:1\n"
#define A "  - match: POST /a\n"
#define ASKED "tenant: {from: subrequest, url: 'http://a:1', header: T}\n"
#define MAILER "targets: {mailer: {url: 'https://m'}}\n"
#define BANK(more) \
	"webhooks: {bank: {scheme: stripe, secret_env: HPX_TEST_SECRET, operation: /o, " \
	"verdict: /v, applied: [ok]" more "}}\n"
#define PROBE "    reconcile: {probe: {get: '/{operation}', applied: [200]}}\n"

static void changes_that_need_a_restart_are_named(void **state)
{
	static const struct {
		const char *before;
		const char *after;
		const char *changes;
	} rows[] = {
		{ UP, UP, "" },
		{ UP, "upstream: http://h:2\n", "" },
		{ UP, "upstream: https://h:1\n", "upstream (http or https, and the certificate's name)" },
		{ "upstream: https://h:1\n", "upstream: https://h:2\n", "" },
		{ "upstream: https://h:1\n", "upstream: https://g:1\n", "upstream (http or https, and the certificate's name)" },
		{ UP, UP "upstream_name: default\n", "" },
		{ UP, UP "upstream_name: payments\n", "upstream_name" },
		{ UP, UP "listen: 127.0.0.1:9\n", "listen" },
		{ UP, UP "admin: off\n", "admin" },
		{ UP, UP "store: sqlite:b\n", "store" },
		{ UP, UP "loops: 3\ncore_dumps: true\n", "loops, core_dumps" },
		{ UP, UP "log_level: warn\nlog_format: json\naccess_log: json\naccess_log_file: /x\n", "" },
		{ UP, UP "tenant: {from: cookie, name: s, anonymous: refuse}\n",
		  "tenant.from, tenant.name, tenant.anonymous" },
		{ UP, UP "tenant: {with: [Host], ignore: [X-Auth-Token]}\n",
		  "tenant.with, tenant.ignore" },
		{ UP, UP "limits: {bodies: 32MiB}\n", "limits.bodies" },
		{ UP, UP "profile: stripe\n", "profile, defaults.scope" },
		/* Reloadable. */
		{ UP, UP "limits: {head: 2KiB}\ntimeouts: {whole: 9m}\nobserve: true\n",
		  "" },
		{ UP "listen: [127.0.0.1:1]\n", UP "listen: [127.0.0.1:2]\n", "listen[]" },
		{ UP "listen: [127.0.0.1:1]\n", UP "listen: [127.0.0.1:1, 127.0.0.1:2]\n", "listen[]" },
		{ UP "listen: {address: 127.0.0.1:1, tls: {certificate: /a, key: /b}}\n",
		  UP "listen: {address: 127.0.0.1:1, tls: {certificate: /c, key: /d, min_version: 1.3}}\n", "" },
		{ UP "listen: {address: 127.0.0.1:1, tls: {certificate: /a, key: /b}}\n",
		  UP "listen: {address: 127.0.0.1:1}\n", "listen[]" },
		{ UP, UP "admin_tls: {certificate: /a, key: /b}\n", "admin_tls.certificate" },
		{ UP "upstream_tls: {ca: /a}\n", UP "upstream_tls: {ca: /b}\n", "" },
		{ UP "upstream_tls: {name: a}\n", UP "upstream_tls: {name: b}\n", "upstream_tls.name" },
		{ UP, UP "trusted_peers: ['::1']\nkey_header: K\n", "" },
		{ UP, UP "cors: {origins: ['https://a.example'], credentials: yes}\n", "" },
		{ UP, UP "defaults: {lease: 2s, fingerprint: {ignore: [/a]}}\n", "" },
		{ UP "routes:\n" A, UP "routes:\n" A "    server_error: replay\n", "" },
		{ UP, UP "routes:\n" A, "" },
		{ UP "routes:\n" A, UP, "" },
		/* External services. */
		{ UP, UP "work: {inside: no, deliveries: 3}\njobs: {retention: 9d}\n",
		  "work.inside, work.deliveries, jobs.retention" },
		{ UP, UP ASKED, "tenant.from, tenant.anonymous, tenant.url, tenant.header" },
		{ UP MAILER, UP MAILER, "" },
		{ UP, UP MAILER, "targets.mailer" },
		{ UP MAILER, UP, "targets.mailer" },
		{ UP MAILER, UP "targets: {mailer: {url: 'https://n', attempts: 3}}\n",
		  "targets.mailer.url, targets.mailer.attempts" },
		{ UP MAILER, UP "targets: {mailer: {url: 'https://m/'}, b: {url: 'https://b'}}\n",
		  "targets.b" },
		{ UP BANK(""), UP BANK(""), "" },
		{ UP BANK(""), UP, "webhooks.bank" },
		{ UP BANK(""), UP BANK(", declined: [no]"), "webhooks.bank.declined" },
		{ UP BANK(""), UP BANK(", rate: 5"), "webhooks.bank.rate" },
		{ UP ASKED MAILER "routes:\n" A,
		  UP ASKED MAILER "routes:\n" A "    deliver: async\n    target: mailer\n",
		  "routes[].deliver (POST /a), routes[].target (POST /a)" },
		{ UP "routes:\n" A PROBE, UP "routes:\n" A PROBE, "" },
		{ UP "routes:\n" A PROBE, UP "routes:\n" A,
		  "routes[].reconcile.probe.url (POST /a), routes[].reconcile.probe.get (POST "
		  "/a), routes[].reconcile.probe.applied (POST /a)" },
		{ UP, UP "routes:\n" A "    reconcile: {tries: 3}\n",
		  "routes[].reconcile.tries (POST /a)" },
		{ UP "routes:\n" A "    reconcile: {tries: 3}\n", UP,
		  "routes[].reconcile.tries (POST /a)" },
		{ UP, UP "defaults: {reconcile: {tries: 3}}\n", "defaults.reconcile.tries" },
		/* Scopes. */
		{ UP, UP "defaults: {scope: tenant}\n", "defaults.scope" },
		{ UP "routes:\n" A, UP "routes:\n" A "    scope: tenant\n",
		  "routes[].scope (POST /a)" },
		{ UP "routes:\n" A, UP "defaults: {scope: tenant}\nroutes:\n" A,
		  "defaults.scope, routes[].scope (POST /a)" },
		{ UP, UP "routes:\n" A "    scope: route\n", "routes[].scope (POST /a)" },
		{ UP "routes:\n" A "    scope: route\n", UP, "routes[].scope (POST /a)" },
		/* A new route takes its paths out of another one's scope. */
		{ UP "routes:\n  - match: POST /a/*\n    scope: tenant\n",
		  UP "routes:\n  - match: POST /a/*\n    scope: tenant\n  - match: POST "
		     "/a/b\n",
		  "routes[].scope (POST /a/b)" },
		{ UP "routes:\n  - match: POST /x/*\n    scope: tenant\n",
		  UP "routes:\n  - match: POST /x/*\n    scope: tenant\n  - match: POST "
		     "/a/b\n",
		  "" },
		{ UP "routes:\n  - match: PUT /a/*\n    scope: tenant\n",
		  UP
		  "routes:\n  - match: PUT /a/*\n    scope: tenant\n  - match: POST /a/b\n",
		  "" },
		{ UP "routes:\n  - match: POST x/a/*\n    scope: tenant\n",
		  UP "routes:\n  - match: POST x/a/*\n    scope: tenant\n  - match: POST "
		     "y/a/b\n",
		  "" },
		{ UP "routes:\n  - match: POST /{x}/b\n    scope: tenant\n",
		  UP "routes:\n  - match: POST /{x}/b\n    scope: tenant\n  - match: POST "
		     "/a/{y}\n",
		  "routes[].scope (POST /a/{y})" },
		{ UP "routes:\n  - match: POST /{x}\n    scope: tenant\n",
		  UP "routes:\n  - match: POST /{x}\n    scope: tenant\n  - match: POST "
		     "/a/{y}\n",
		  "" },
		/* The pattern is the scope: another spelling is another one. */
		{ UP "routes:\n  - match: POST /{x}\n    scope: route\n",
		  UP "routes:\n  - match: POST /{y}\n    scope: route\n",
		  "routes[].scope (POST /{x})" },
		{ UP "routes:\n  - match: POST /{x}\n",
		  UP "routes:\n  - match: POST /{y}\n", "" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_settings *before = test_settings(rows[i].before, NULL);
		struct hpx_settings *after = test_settings(rows[i].after, NULL);
		struct hpx_buffer out;
		hpx_buffer_init(&out, 4096);
		assert_status(hpx_config_changes(before, after, &out), HPX_OK);
		if (!hpx_span_eq(hpx_buffer_span(&out), hpx_span_of(rows[i].changes)))
			fail_msg("from\n%sto\n%sgot \"%.*s\", want \"%s\"", rows[i].before,
				 rows[i].after, HPX_SPAN_ARG(hpx_buffer_span(&out)),
				 rows[i].changes);
		hpx_buffer_done(&out);
		hpx_settings_unref(before);
		hpx_settings_unref(after);
	}
}

/* A worker goes on with the credential that it began with; a webhook's secret
 * is looked at by the settings of the day. */
static void another_secret(void **state)
{
	static const char text[] =
		UP BANK("") "targets: {t: {url: 'https://t', credentials: {env: "
			    "HPX_TEST_SECRET}}}\nroutes:\n" A
			    "    reconcile: {probe: {get: '/{operation}', applied: [200], "
			    "credentials: {env: HPX_TEST_SECRET}}}\n";
	struct hpx_buffer out;
	(void)state;

	struct hpx_settings *before = test_settings(text, NULL);
	setenv("HPX_TEST_SECRET", "another", 1);
	struct hpx_settings *after = test_settings(text, NULL);
	hpx_buffer_init(&out, 4096);
	assert_status(hpx_config_changes(before, after, &out), HPX_OK);
	assert_span(hpx_buffer_span(&out),
		    "routes[].reconcile.probe.credentials (POST /a), targets.t.credentials");
	hpx_buffer_done(&out);
	hpx_settings_unref(before);
	hpx_settings_unref(after);
}

static int set_secret(void **state)
{
	(void)state;
	setenv("HPX_TEST_SECRET", "s3cret", 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_that_need_a_restart_are_named),
		cmocka_unit_test(another_secret),
	};
	return cmocka_run_group_tests_name("reload_diff", tests, set_secret, NULL);
}
