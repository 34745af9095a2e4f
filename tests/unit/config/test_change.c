/* Shows which changes a reload names because they need a restart, above all
 * every change of a scope. */
#include "config_test.h"

#define UP "upstream: http://h:1\n"
#define A "  - match: POST /a\n"

static void changes_that_need_a_restart_are_named(void **state)
{
	static const struct {
		const char *before;
		const char *after;
		const char *changes;
	} rows[] = {
		{ UP, UP, "" },
		{ UP, "upstream: http://h:2\n", "upstream, upstream_name" },
		{ UP, "upstream: http://h:2\nupstream_name: http://h:1\n", "upstream" },
		{ UP, UP "listen: 127.0.0.1:9\n", "listen" },
		{ UP, UP "admin: off\n", "admin" },
		{ UP, UP "store: sqlite:b\n", "store" },
		{ UP, UP "loops: 3\nlog_level: warn\n", "loops, log_level" },
		{ UP, UP "tenant: {from: cookie, name: s, required: true}\n",
		  "tenant.from, tenant.name, tenant.required" },
		{ UP, UP "limits: {bodies: 32MiB}\n", "limits.bodies" },
		{ UP, UP "profile: stripe\n", "profile, defaults.scope" },
		/* Reloadable. */
		{ UP, UP "limits: {head: 2KiB}\ntimeouts: {whole: 9m}\nobserve: true\n",
		  "" },
		{ UP, UP "trusted_peers: ['::1']\nkey_header: K\n", "" },
		{ UP, UP "defaults: {lease: 2s, fingerprint: {ignore: [/a]}}\n", "" },
		{ UP "routes:\n" A, UP "routes:\n" A "    server_error: replay\n", "" },
		{ UP, UP "routes:\n" A, "" },
		{ UP "routes:\n" A, UP, "" },
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_that_need_a_restart_are_named),
	};
	return cmocka_run_group_tests_name("change", tests, NULL, NULL);
}
