/* Shows what a configuration comes out as: the defaults, both profiles, flags
 * over the file, routes that begin as the defaults are, and their recipes. */
#include "config_test.h"

#include "config/option_parse.h"

#include <unistd.h>

#define UP "upstream: http://127.0.0.1:9000\n"

/* A number, choice or switch of the settings, of their defaults, or of the
 * route with this pattern, as it would be written. */
static void expect(const struct hpx_settings *settings, const char *pattern,
		   const char *path, const char *want)
{
	const struct hpx_option *option = hpx_option_find(&hpx_config_options, hpx_span_of(path));
	const void *base = settings;
	char got[HPX_UNIT_SIZE];

	assert_non_null(option);
	if (option->place != HPX_PLACE_GLOBAL)
		base = &settings->fallback;
	for (size_t i = 0; pattern != NULL && i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, hpx_span_of(pattern)))
			base = &settings->routes[i];
	hpx_value_print(option, base, got);
	if (strcmp(got, want) != 0)
		fail_msg("%s %s: got %s, want %s", pattern ? pattern : "", path, got, want);
}

static void the_defaults_are_those_of_the_design(void **state)
{
	static const struct {
		const char *path;
		const char *value;
	} rows[] = {
		{ "store_create", "always" },
		{ "loops", "0" },
		{ "profile", "ietf" },
		{ "observe", "false" },
		{ "own_paths", "true" },
		{ "cors.credentials", "false" },
		{ "key_syntax", "ietf" },
		{ "mismatch_status", "422" },
		{ "errors", "problem" },
		{ "tenant.from", "automatic" },
		{ "tenant.anonymous", "local" },
		{ "cache", "16MiB" },
		{ "cache_entries", "16384" },
		{ "limits.head", "32KiB" },
		{ "limits.fields", "100" },
		{ "limits.request_body", "1MiB" },
		{ "limits.response_body", "1MiB" },
		{ "limits.bodies", "64MiB" },
		{ "limits.connections", "10000" },
		{ "limits.upstream_connections", "256" },
		{ "limits.upstream_queue", "4096" },
		{ "limits.pass_share", "75" },
		{ "limits.tunnel_share", "25" },
		{ "limits.waiters", "1000" },
		{ "limits.waiters_per_operation", "100" },
		{ "limits.free_space", "64MiB" },
		{ "limits.body_rate", "256" },
		{ "limits.preset", "none" },
		{ "limits.tenant.active_keys", "0" },
		{ "limits.tenant.stored", "0" },
		{ "timeouts.head", "10s" },
		{ "timeouts.body", "30s" },
		{ "timeouts.whole_body", "2m" },
		{ "timeouts.keep_alive", "75s" },
		{ "timeouts.connect", "3s" },
		{ "timeouts.send", "30s" },
		{ "timeouts.first_byte", "1m" },
		{ "timeouts.idle", "1m" },
		{ "timeouts.whole", "5m" },
		{ "timeouts.queue", "10s" },
		{ "timeouts.reuse_idle", "1s" },
		{ "timeouts.store", "5s" },
		{ "timeouts.drain", "25s" },
		{ "events.retention", "30d" },
		{ "sweep.every", "1s" },
		{ "reap.every", "1s" },
		{ "reap.batch", "100" },
		{ "log_level", "info" },
		{ "traces.sample", "1" },
		{ "traces.spans", "8192" },
		{ "defaults.key", "required" },
		{ "defaults.scope", "path" },
		{ "defaults.retention", "24h" },
		{ "defaults.lease", "30s" },
		{ "defaults.server_error", "retry" },
		{ "defaults.on_lost", "unknown" },
		{ "defaults.concurrent", "conflict" },
		{ "defaults.wait", "10s" },
		{ "defaults.store", "answer" },
		{ "defaults.observe", "false" },
	};
	struct hpx_settings *settings = test_settings(UP, NULL);
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		expect(settings, NULL, rows[i].path, rows[i].value);
	assert_string_equal(settings->listen.text, "127.0.0.1:8080");
	assert_string_equal(settings->admin.text, "127.0.0.1:8081");
	assert_true(settings->has_admin);
	assert_string_equal(settings->upstream.text, "http://127.0.0.1:9000");
	assert_span(settings->upstream_name, "default");
	assert_span(settings->store, "sqlite:hapax.db");
	assert_span(settings->key_header, "Idempotency-Key");
	assert_null(settings->tenant.name.ptr);
	assert_int_equal(settings->trusted_peer_count, 0);
	assert_span(settings->fallback.pattern, "defaults");
	assert_int_equal(settings->fallback.number, 0);
	assert_int_equal(settings->fallback.recipe.version, HPX_RECIPE_VERSION);
	assert_int_equal(settings->route_count, 0);
	hpx_settings_unref(settings);
}

static void a_profile_is_a_set_of_defaults(void **state)
{
	static const struct {
		const char *text;
		const char *path;
		const char *value;
	} rows[] = {
		{ "profile: stripe\n", "profile", "stripe" },
		{ "profile: stripe\n", "key_syntax", "bare" },
		{ "profile: stripe\n", "mismatch_status", "400" },
		{ "profile: stripe\n", "errors", "stripe" },
		{ "profile: stripe\n", "defaults.key", "optional" },
		{ "profile: stripe\n", "defaults.scope", "tenant" },
		{ "profile: stripe\n", "defaults.server_error", "replay" },
		{ "profile: stripe\n", "defaults.retention", "24h" },
		{ "profile: paypal\n", "mismatch_status", "422" },
		{ "profile: paypal\n", "errors", "paypal" },
		{ "profile: paypal\n", "defaults.key_max", "108" },
		{ "profile: paypal\n", "defaults.retention", "3d" },
		{ "profile: square\n", "mismatch_status", "400" },
		{ "profile: square\n", "errors", "square" },
		{ "profile: square\n", "defaults.key", "optional" },
		{ "profile: square\n", "defaults.key_max", "192" },
		{ "profile: square\ndefaults: {key_max: 45}\n", "defaults.key_max", "45" },
		{ "profile: ietf\n", "key_syntax", "ietf" },
		/* What is given wins, before and behind the profile. */
		{ "key_syntax: strict\nprofile: stripe\n", "key_syntax", "strict" },
		{ "profile: stripe\nkey_syntax: strict\n", "key_syntax", "strict" },
		{ "profile: stripe\nmismatch_status: 409\n", "mismatch_status", "409" },
		{ "defaults: {key: required}\nprofile: stripe\n", "defaults.key",
		  "required" },
		{ "profile: stripe\nerrors: problem\n", "errors", "problem" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[200];
		snprintf(text, sizeof(text), "%s%s", rows[i].text, UP);
		struct hpx_settings *settings = test_settings(text, NULL);
		expect(settings, NULL, rows[i].path, rows[i].value);
		hpx_settings_unref(settings);
	}
}

static void a_route_begins_as_the_defaults_are(void **state)
{
	struct hpx_settings *settings =
		test_settings("routes:\n"
			      "  - match: POST /b/{x}\n"
			      "    lease: 5s\n"
			      "    observe: yes\n"
			      "    fingerprint: {ignore: []}\n"
			      "  - match: POST /a\n"
			      "    store: status\n"
			      "    fingerprint:\n"
			      "      headers: [X-B, x-a]\n"
			      "defaults:\n"
			      "  lease: 7s\n"
			      "  concurrent: wait\n"
			      "  fingerprint: {ignore: [/z, /a/b]}\n" UP,
			      NULL);
	(void)state;
	assert_int_equal(settings->route_count, 2);
	assert_int_equal(settings->fallback.number, 2);
	assert_span(settings->routes[0].pattern, "POST /b/{x}");
	assert_int_equal(settings->routes[0].line, 2);
	assert_int_equal(settings->routes[1].number, 1);
	expect(settings, "POST /b/{x}", "routes[].lease", "5s");
	expect(settings, "POST /b/{x}", "routes[].concurrent", "wait");
	expect(settings, "POST /b/{x}", "routes[].observe", "true");
	expect(settings, "POST /a", "routes[].lease", "7s");
	expect(settings, "POST /a", "routes[].store", "status");
	expect(settings, "POST /a", "routes[].observe", "false");
	expect(settings, NULL, "defaults.lease", "7s");
	expect(settings, NULL, "defaults.store", "answer");

	const struct hpx_recipe *recipe = &settings->routes[1].recipe;
	assert_int_equal(recipe->header_count, 2);
	assert_span(recipe->headers[0], "x-a");
	assert_span(recipe->headers[1], "x-b");
	assert_int_equal(recipe->ignore_count, 2);
	assert_span(recipe->ignore[0], "/a/b");
	assert_span(recipe->ignore[1], "/z");
	assert_int_equal(settings->routes[0].recipe.ignore_count, 0);
	hpx_settings_unref(settings);
}

static void equal_recipes_have_one_id(void **state)
{
	struct hpx_settings *settings =
		test_settings(UP "routes:\n"
				 "  - match: POST /a\n"
				 "    fingerprint: {ignore: [/x, /y], headers: [A, b]}\n"
				 "  - match: POST /b\n"
				 "    fingerprint: {headers: [B, a], ignore: [/y, /x]}\n"
				 "  - match: POST /c\n"
				 "    fingerprint: {headers: [B, a], ignore: [/y]}\n",
			      NULL);
	const struct hpx_route *routes = settings->routes;
	struct hpx_recipe_id id;
	(void)state;
	assert_memory_equal(&routes[0].recipe_id, &routes[1].recipe_id, sizeof(id));
	assert_memory_not_equal(&routes[0].recipe_id, &routes[2].recipe_id, sizeof(id));
	assert_memory_not_equal(&routes[0].recipe_id, &settings->fallback.recipe_id,
				sizeof(id));
	assert_status(hpx_recipe_id(&settings->fallback.recipe, &id), HPX_OK);
	assert_memory_equal(&id, &settings->fallback.recipe_id, sizeof(id));
	hpx_settings_unref(settings);
}

static void flags_win_over_the_file(void **state)
{
	struct hpx_config_flags flags = { .value = { NULL } };
	(void)state;
	hpx_config_flags_set(&flags, "listen", "unix:/run/l");
	hpx_config_flags_set(&flags, "admin", "off");
	hpx_config_flags_set(&flags, "upstream", "http://10.0.0.1:81");
	hpx_config_flags_set(&flags, "store", "sqlite:/f.db");
	hpx_config_flags_set(&flags, "observe", "true");
	struct hpx_settings *settings = test_settings(
		UP
		"listen: 127.0.0.1:1\nadmin: 127.0.0.1:2\nstore: sqlite:/a\nobserve: no\n",
		&flags);
	assert_true(settings->listen.is_unix);
	assert_string_equal(settings->listen.path, "/run/l");
	assert_false(settings->has_admin);
	assert_string_equal(settings->upstream.host, "10.0.0.1");
	assert_span(settings->upstream_name, "default");
	assert_span(settings->store, "sqlite:/f.db");
	assert_true(settings->observe);
	hpx_settings_unref(settings);
}

static void every_kind_of_value_is_read(void **state)
{
	struct hpx_settings *settings =
		test_settings("{upstream: 'unix:/run/api', upstream_name: \"payments\",\n"
			      " trusted_peers: [10.0.0.0/8, '::1'], listen: '[::1]:80',\n"
			      " tenant: {from: header, name: X-Tenant, anonymous: refuse,\n"
			      "  with: [Stripe-Account, Host], ignore: [X-Session-Token]},\n"
			      " limits: {free_space: 0, head: 2048},\n"
			      " cors: {origins: ['null', 'https://a.example'], credentials: yes},\n"
			      " timeouts: {idle: 0, whole: 1d}, store_create: never,\n"
			      " traces: {endpoint: 'http://[::1]:4318/', sample: 0.000250},\n"
			      " events: ~, routes: ~, defaults: {fingerprint: }}\n",
			      NULL);
	(void)state;
	assert_true(settings->upstream.is_unix);
	assert_span(settings->upstream_name, "payments");
	assert_int_equal(settings->trusted_peer_count, 2);
	assert_int_equal(settings->trusted_peers[0].prefix_bits, 104);
	assert_int_equal(settings->trusted_peers[1].prefix_bits, 128);
	assert_string_equal(settings->listen.host, "::1");
	assert_int_equal(settings->tenant.from, HPX_TENANT_HEADER);
	assert_span(settings->tenant.name, "X-Tenant");
	assert_string_equal(settings->traces.caller.url, "http://[::1]:4318/v1/traces");
	assert_int_equal(settings->traces.sample_millionths, 250);
	expect(settings, NULL, "traces.sample", "0.00025");
	assert_int_equal(settings->tenant.anonymous, HPX_ANONYMOUS_REFUSE);
	assert_int_equal(settings->tenant.with_count, 2);
	assert_span(settings->tenant.with[0], "host");
	assert_span(settings->tenant.with[1], "stripe-account");
	assert_int_equal(settings->tenant.ignore_count, 1);
	assert_span(settings->tenant.ignore[0], "x-session-token");
	assert_true(settings->free_bytes_min == 0);
	assert_int_equal(settings->cors.origin_count, 2);
	assert_span(settings->cors.origins[0], "https://a.example");
	assert_span(settings->cors.origins[1], "null");
	assert_true(settings->cors.credentials);
	assert_int_equal(settings->head_bytes_max, 2048);
	assert_true(settings->idle_timeout_ms == 0);
	assert_true(settings->whole_timeout_ms == 86400000);
	assert_false(settings->store_create);
	hpx_settings_unref(settings);
}

static void load_file(const char *path, enum hpx_status want, const char *want_report)
{
	struct hpx_config_flags flags = { .value = { NULL } };
	struct hpx_config_report report;
	struct hpx_settings *settings = NULL;
	struct hpx_buffer out;

	hpx_config_flags_set(&flags, "config", path);
	hpx_config_flags_set(&flags, "upstream", "http://127.0.0.1:9000");
	hpx_config_report_init(&report);
	hpx_buffer_init(&out, 1 << 16);
	assert_status(hpx_config_load(&flags, &report, &settings), want);
	assert_status(hpx_config_report_print(&report, "f", &out), HPX_OK);
	assert_span(hpx_buffer_span(&out), want_report);
	hpx_buffer_done(&out);
	hpx_config_report_done(&report);
	hpx_settings_unref(settings);
}

static void files_are_read_up_to_their_bound(void **state)
{
	char path[] = "test_config_XXXXXX";
	int fd = mkstemp(path);
	static char spaces[4096];
	(void)state;

	assert_true(fd >= 0);
	load_file(path, HPX_OK, "");
	assert_int_equal(write(fd, "store: sqlite:/a\n", 17), 17);
	load_file(path, HPX_OK, "");
	assert_int_equal(write(fd, "loops: x\n", 9), 9);
	load_file(path, HPX_INVALID,
		  "f:2:8: loops: \"x\" is no whole number from 0 to 256\n");
	memset(spaces, '\n', sizeof(spaces));
	for (size_t i = 0; i < HPX_CONFIG_FILE_BYTES_MAX / sizeof(spaces); i++)
		assert_int_equal(write(fd, spaces, sizeof(spaces)), sizeof(spaces));
	load_file(path, HPX_INVALID,
		  "f: is larger than 1 MiB, which no configuration is\n");
	close(fd);
	unlink(path);
	load_file(path, HPX_INVALID, "f: cannot be opened: No such file or directory\n");
	load_file(".", HPX_INVALID, "f: cannot be read: Is a directory\n");
}

static void listen_is_a_list_too(void **state)
{
	struct hpx_settings *settings = test_settings(
		"upstream: https://api.example\n"
		"upstream_tls: {ca: /ca.pem, certificate: /me.pem, key: /me.key, name: internal, "
		"min_version: 1.3}\n"
		"trusted_peers: [10.0.0.0/8]\n"
		"admin_tls: {certificate: /a.pem, key: /a.key, client_ca: /ops.pem}\n"
		"listen:\n"
		"  - unix:/run/l\n"
		"  - address: 0.0.0.0:8443\n"
		"    proxy_protocol: true\n"
		"    tls: {certificate: [/1.pem, /2.pem], key: [/1.key, /2.key], client_ca: /c.pem}\n",
		NULL);
	(void)state;
	const struct hpx_listener_settings *second = &settings->listeners[1];
	assert_int_equal(settings->listener_count, 2);
	assert_true(settings->listeners[0].address.is_unix);
	assert_false(hpx_tls_given(&settings->listeners[0].tls));
	assert_false(settings->listeners[0].proxy_protocol);
	assert_string_equal(second->address.text, "0.0.0.0:8443");
	assert_true(second->proxy_protocol);
	assert_int_equal(second->tls.certificate_count, 2);
	assert_string_equal(second->tls.certificates[1], "/2.pem");
	assert_string_equal(second->tls.keys[0], "/1.key");
	assert_string_equal(second->tls.ca, "/c.pem");
	assert_int_equal(second->tls.min_version, HPX_TLS_1_2);
	assert_true(settings->upstream.tls);
	assert_int_equal(settings->upstream.port, 443);
	assert_string_equal(settings->upstream_tls.ca, "/ca.pem");
	assert_string_equal(settings->upstream_tls.name, "internal");
	assert_int_equal(settings->upstream_tls.certificate_count, 1);
	assert_int_equal(settings->upstream_tls.min_version, HPX_TLS_1_3);
	assert_string_equal(settings->admin_tls.ca, "/ops.pem");
	hpx_settings_unref(settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_design),
		cmocka_unit_test(a_profile_is_a_set_of_defaults),
		cmocka_unit_test(a_route_begins_as_the_defaults_are),
		cmocka_unit_test(equal_recipes_have_one_id),
		cmocka_unit_test(flags_win_over_the_file),
		cmocka_unit_test(every_kind_of_value_is_read),
		cmocka_unit_test(files_are_read_up_to_their_bound),
		cmocka_unit_test(listen_is_a_list_too),
	};
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
