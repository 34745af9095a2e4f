/* Shows that a request finds the most specific route by method, host and
 * whole segments of its normalised path, and that bad patterns are refused
 * with a reason. */
#include "../test.h"

#include "settings/settings.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void bad_patterns_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text;
		const char *reason; /* a part of it */
	} rows[] = {
		{ "", "begins with a method" },
		{ "/payments", "begins with a method" },
		{ "POST", "has no path" },
		{ "POST ", "has no path" },
		{ "POST payments", "has no path" },
		{ "post /payments", "written POST" },
		{ "Patch /payments", "written PATCH" },
		{ "get /payments", "written GET" },
		{ "Version-Control /payments", "written VERSION-CONTROL" },
		{ "PO@T /payments", "begins with a method" },
		{ "GET /payments", "never guarded" },
		{ "HEAD /payments", "never guarded" },
		{ "OPTIONS /payments", "never guarded" },
		{ "TRACE /payments", "never guarded" },
		{ "PROPFIND /payments", "never guarded" },
		{ "REPORT /payments", "never guarded" },
		{ "SEARCH /payments", "never guarded" },
		{ "QUERY /payments", "never guarded" },
		{ "CONNECT /payments", "always refused" },
		{ "POST /a/../b", ". or .. segment" },
		{ "POST /a/%2e/b", ". or .. segment" },
		{ "POST /a/*/b", "not the whole last segment" },
		{ "POST /a*", "not the whole last segment" },
		{ "POST /a/{}", "not a whole segment" },
		{ "POST /a/x{id}", "not a whole segment" },
		{ "POST /a/{i d}", "not a whole segment" },
		{ "POST /a?x=1", "query" },
		{ "POST /a#x", "query" },
		{ "POST /a\\b", "backslash" },
		{ "POST /a/%zz", "hexadecimal" },
		{ "POST /a/%00", "control byte" },
		{ "POST api.example:80/a", "port" },
		{ "POST a@b/a", "host" },
		{ "POST api.example x/a", "host" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_arena arena;
		struct hpx_route route = { .line = 7 };
		const char *reason = "none";

		hpx_arena_init(&arena, 1 << 20);
		enum hpx_status status =
			hpx_route_parse(hpx_span_of(rows[i].text), &arena, &route, &reason);
		if (status != HPX_INVALID || strstr(reason, rows[i].reason) == NULL ||
		    route.segments != NULL || route.line != 7)
			fail_msg("\"%s\": got %s, \"%s\"; want INVALID, \"%s\"",
				 rows[i].text, hpx_status_name(status), reason,
				 rows[i].reason);
		hpx_arena_done(&arena);
	}
}

static void add(struct hpx_settings *settings, const char *pattern)
{
	struct hpx_route *route = &settings->routes[settings->route_count++];
	const char *reason = "";

	enum hpx_status status =
		hpx_route_parse(hpx_span_of(pattern), &settings->arena, route, &reason);
	if (status != HPX_OK)
		fail_msg("\"%s\": got %s (%s)", pattern, hpx_status_name(status), reason);
}

static struct hpx_settings *settings_of(const char *const *patterns, size_t count)
{
	struct hpx_settings *settings = hpx_settings_new();

	assert_non_null(settings);
	settings->fallback.pattern = HPX_SPAN("defaults");
	settings->routes =
		hpx_arena_zalloc(&settings->arena, count, sizeof(*settings->routes));
	assert_non_null(settings->routes);
	for (size_t i = 0; i < count; i++)
		add(settings, patterns[i]);
	return settings;
}

static void the_most_specific_route_wins_whatever_the_order(void **state)
{
	static const char *const patterns[] = {
		"* /*",
		"POST /payments/{id}",
		"POST /payments",
		"POST /payments/{id}/refunds",
		"POST /payments/latest",
		"* /payments",
		"POST /payments/*",
		"POST API.example.com/payments",
		"* api.example.com./payments/{id}",
		"PUT /files/{name}",
		"POST /",
		"POST /slash/",
		"POST /a%7eb/%c3%a9",
		"POST /a//b",
		"POST [::1]/six",
		"POST /deep/{x}/literal",
		"POST /deep/literal/{x}",
	};
	static const struct {
		const char *method;
		const char *host;
		const char *path;
		const char *pattern;
	} rows[] = {
		{ "POST", "h", "/payments", "POST /payments" },
		{ "PATCH", "h", "/payments", "* /payments" },
		{ "POST", "api.example.com", "/payments", "POST API.example.com/payments" },
		{ "POST", "Api.Example.Com:8443", "/payments",
		  "POST API.example.com/payments" },
		{ "POST", "api.example.com.", "/payments",
		  "POST API.example.com/payments" },
		{ "PATCH", "api.example.com", "/payments", "* /payments" },
		{ "POST", "api.example.com.evil", "/payments", "POST /payments" },
		{ "POST", "h", "/payments/7", "POST /payments/{id}" },
		{ "POST", "api.example.com", "/payments/7",
		  "* api.example.com./payments/{id}" },
		{ "POST", "api.example.com", "/payments/latest", "POST /payments/latest" },
		{ "POST", "h", "/payments/latest", "POST /payments/latest" },
		{ "POST", "h", "/payments/7/refunds", "POST /payments/{id}/refunds" },
		{ "POST", "h", "/payments/7/other", "POST /payments/*" },
		{ "POST", "h", "/payments/", "POST /payments/*" },
		{ "POST", "h", "/payments/a/b/c", "POST /payments/*" },
		{ "PATCH", "h", "/payments/a/b/c", "* /*" },
		{ "POST", "h", "/paymentsx", "* /*" },
		{ "POST", "h", "/Payments", "* /*" },
		{ "PUT", "h", "/files/a", "PUT /files/{name}" },
		{ "PUT", "h", "/files/", "* /*" },
		{ "POST", "h", "/", "POST /" },
		{ "PATCH", "h", "/", "* /*" },
		{ "POST", "h", "/slash", "* /*" },
		{ "POST", "h", "/slash/", "POST /slash/" },
		{ "POST", "h", "/a~b/%C3%A9", "POST /a%7eb/%c3%a9" },
		{ "POST", "h", "/a//b", "POST /a//b" },
		{ "POST", "h", "/a/b", "* /*" },
		{ "POST", "[::1]:8080", "/six", "POST [::1]/six" },
		{ "POST", "[::2]", "/six", "* /*" },
		{ "POST", "h", "/deep/literal/literal", "POST /deep/literal/{x}" },
		{ "POST", "h", "/deep/other/literal", "POST /deep/{x}/literal" },
		{ "OPTIONS", "h", "*", "defaults" },
		{ "POST", "h", "", "defaults" },
	};
	(void)state;
	for (size_t turn = 0; turn < COUNT(patterns); turn++) {
		const char *turned[COUNT(patterns)];
		for (size_t i = 0; i < COUNT(patterns); i++)
			turned[i] = patterns[(i + turn) % COUNT(patterns)];
		struct hpx_settings *settings = settings_of(turned, COUNT(turned));
		assert_int_equal(hpx_route_sort(settings->routes, settings->route_count),
				 COUNT(turned));
		for (size_t i = 0; i < COUNT(rows); i++) {
			const struct hpx_route *route = hpx_route_match(
				settings, hpx_span_of(rows[i].method),
				hpx_span_of(rows[i].host), hpx_span_of(rows[i].path));
			if (!hpx_span_eq(route->pattern, hpx_span_of(rows[i].pattern)))
				fail_msg("%s %s%s: got \"%.*s\", want \"%s\"",
					 rows[i].method, rows[i].host, rows[i].path,
					 HPX_SPAN_ARG(route->pattern), rows[i].pattern);
		}
		hpx_settings_unref(settings);
	}
}

static void equally_specific_routes_keep_their_order(void **state)
{
	static const char *const patterns[] = { "POST /b", "POST /a/{x}", "POST /a",
						"POST /c" };
	static const char *const sorted[] = { "POST /a/{x}", "POST /b", "POST /a",
					      "POST /c" };
	(void)state;
	struct hpx_settings *settings = settings_of(patterns, COUNT(patterns));
	hpx_route_sort(settings->routes, settings->route_count);
	for (size_t i = 0; i < COUNT(sorted); i++) {
		assert_span(settings->routes[i].pattern, sorted[i]);
		assert_int_equal(settings->routes[i].number, i);
	}
	hpx_settings_unref(settings);
}

static void a_route_that_can_never_match_is_found(void **state)
{
	static const struct {
		const char *first;
		const char *second;
		bool same;
	} rows[] = {
		{ "POST /a", "POST /a", true },
		{ "POST /a/{x}", "POST /a/{y}", true },
		{ "POST /%61", "POST /a", true },
		{ "POST H/a", "POST h./a", true },
		{ "POST /a/*", "POST /a/*", true },
		{ "POST /a", "POST /a/", false },
		{ "POST /a", "PATCH /a", false },
		{ "POST /a", "* /a", false },
		{ "POST /a", "POST h/a", false },
		{ "POST /a/{x}", "POST /a/x", false },
		{ "POST /a/{x}", "POST /a/*", false },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *patterns[] = { rows[i].first, "POST /between", rows[i].second };
		struct hpx_settings *settings = settings_of(patterns, COUNT(patterns));
		bool same = hpx_route_sort(settings->routes, 3) < 3;
		if (same != rows[i].same)
			fail_msg("\"%s\" and \"%s\": got %d, want %d", rows[i].first,
				 rows[i].second, same, rows[i].same);
		hpx_settings_unref(settings);
	}
	assert_int_equal(hpx_route_sort(NULL, 0), 0);
}

static void methods_are_guarded_by_what_a_second_one_would_do(void **state)
{
	static const struct {
		const char *pattern;
		enum hpx_key_rule key;
		const char *method;
		bool guarded;
	} rows[] = {
		{ "* /a", HPX_KEY_REQUIRED, "POST", true },
		{ "* /a", HPX_KEY_REQUIRED, "PATCH", true },
		{ "* /a", HPX_KEY_REQUIRED, "PUT", false },
		{ "* /a", HPX_KEY_REQUIRED, "DELETE", false },
		{ "* /a", HPX_KEY_REQUIRED, "GET", false },
		{ "* /a", HPX_KEY_REQUIRED, "HEAD", false },
		{ "* /a", HPX_KEY_REQUIRED, "OPTIONS", false },
		{ "* /a", HPX_KEY_REQUIRED, "LOCK", true },
		{ "* /a", HPX_KEY_REQUIRED, "CHARGE", true },
		{ "* /a", HPX_KEY_REQUIRED, "charge", true },
		{ "* /a", HPX_KEY_REQUIRED, "M-SEARCH", true },
		{ "* /a", HPX_KEY_REQUIRED, "PRI", true },
		{ "* /a", HPX_KEY_REQUIRED, "UNLOCK", false },
		{ "* /a", HPX_KEY_REQUIRED, "MKCOL", false },
		{ "* /a", HPX_KEY_REQUIRED, "VERSION-CONTROL", false },
		{ "* /a", HPX_KEY_REQUIRED, "TRACE", false },
		{ "* /a", HPX_KEY_REQUIRED, "PROPFIND", false },
		{ "* /a", HPX_KEY_REQUIRED, "REPORT", false },
		{ "* /a", HPX_KEY_REQUIRED, "SEARCH", false },
		{ "* /a", HPX_KEY_REQUIRED, "QUERY", false },
		{ "* /a", HPX_KEY_IGNORE, "LOCK", false },
		{ "CHARGE /a", HPX_KEY_IGNORE, "CHARGE", false },
		{ "charge /a", HPX_KEY_REQUIRED, "charge", true },
		{ "MKCOL /a", HPX_KEY_REQUIRED, "MKCOL", true },
		{ "* /a", HPX_KEY_OPTIONAL, "POST", true },
		{ "* /a", HPX_KEY_IGNORE, "POST", false },
		{ "PUT /a", HPX_KEY_REQUIRED, "PUT", true },
		{ "DELETE /a", HPX_KEY_OPTIONAL, "DELETE", true },
		{ "DELETE /a", HPX_KEY_IGNORE, "DELETE", false },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_settings *settings = settings_of(&rows[i].pattern, 1);
		settings->routes[0].policy.key = rows[i].key;
		bool guarded =
			hpx_route_guards(&settings->routes[0], hpx_span_of(rows[i].method));
		if (guarded != rows[i].guarded)
			fail_msg("\"%s\" key %d, %s: got %d, want %d", rows[i].pattern,
				 (int)rows[i].key, rows[i].method, guarded,
				 rows[i].guarded);
		hpx_settings_unref(settings);
	}
}

static void another_spelling_is_told_from_another_method(void **state)
{
	static const char *const patterns[] = { "CHARGE /a", "Refund /a", "refund /b" };
	static const struct {
		const char *method;
		const char *meant;
	} rows[] = {
		{ "POST", "POST" },
		{ "post", "POST" },
		{ "pOST", "POST" },
		{ "get", "GET" },
		{ "Query", "QUERY" },
		{ "mkcol", "MKCOL" },
		{ "connect", "CONNECT" },
		{ "CHARGE", "CHARGE" },
		{ "charge", "CHARGE" },
		{ "Refund", "Refund" },
		{ "refund", "refund" },
		{ "SETTLE", "SETTLE" },
		{ "settle", "settle" },
		{ "POSTS", "POSTS" },
		{ "POS", "POS" },
		{ "P\xcfST", "P\xcfST" },
	};
	struct hpx_settings *settings = settings_of(patterns, COUNT(patterns));
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++)
		assert_span(hpx_route_method_meant(settings, hpx_span_of(rows[i].method)),
			    rows[i].meant);
	hpx_settings_unref(settings);
}

static void running_out_of_memory_is_a_status(void **state)
{
	struct hpx_span text = HPX_SPAN("POST Api.example/a/%7eb/{c}/*");
	bool finished = false;
	(void)state;
	for (size_t max = 0; !finished; max += 16) {
		struct hpx_arena arena;
		struct hpx_route route = { 0 };
		const char *reason = "";
		assert_true(max < 4096);
		hpx_arena_init(&arena, max);
		enum hpx_status status = hpx_route_parse(text, &arena, &route, &reason);
		finished = status == HPX_OK;
		if (!finished)
			assert_status(status, HPX_NOMEM);
		hpx_arena_done(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_patterns_are_refused_with_a_reason),
		cmocka_unit_test(the_most_specific_route_wins_whatever_the_order),
		cmocka_unit_test(equally_specific_routes_keep_their_order),
		cmocka_unit_test(a_route_that_can_never_match_is_found),
		cmocka_unit_test(methods_are_guarded_by_what_a_second_one_would_do),
		cmocka_unit_test(another_spelling_is_told_from_another_method),
		cmocka_unit_test(running_out_of_memory_is_a_status),
	};
	return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
