/* Shows that equivalent paths have one normal form, that different ones keep
 * theirs, and that what servers are known to read in two ways is refused. */
#include "../test.h"
#include "http/target.h"

static void paths_have_one_normal_form(void **state)
{
	static const struct {
		const char *target;
		const char *path;
	} rows[] = {
		{ "/", "/" },
		{ "/a/b", "/a/b" },
		{ "/a/", "/a/" },
		/* Case of escapes, §6.2.2.1. */
		{ "/%c3%a4", "/%C3%A4" },
		{ "/%C3%a4", "/%C3%A4" },
		{ "/A", "/A" },
		/* Escapes of unreserved characters, §6.2.2.2. */
		{ "/%61%7e%2D%5f%2E%39", "/a~-_.9" },
		{ "/%41", "/A" },
		/* Reserved ones keep their escape: it means something else. */
		{ "/a%2fb", "/a%2Fb" },
		{ "/a%2Fb", "/a%2Fb" },
		{ "/%3f%23%40%3a%25", "/%3F%23%40%3A%25" },
		{ "/%252e%252e/a", "/%252e%252e/a" },
		{ "/%20", "/%20" },
		{ "/%80%ff", "/%80%FF" },
		/* Dot segments, §6.2.2.3 and §5.2.4. */
		{ "/.", "/" },
		{ "/..", "/" },
		{ "/./", "/" },
		{ "/../", "/" },
		{ "/../../a", "/a" },
		{ "/a/.", "/a/" },
		{ "/a/..", "/" },
		{ "/a/b/..", "/a/" },
		{ "/a/b/../", "/a/" },
		{ "/a/./b", "/a/b" },
		{ "/a/../b", "/b" },
		{ "/a/b/c/./../../g", "/a/g" },
		{ "/mid/content=5/../6", "/mid/6" },
		{ "/a/%2e%2e/b", "/b" },
		{ "/a/%2E./b", "/b" },
		{ "/a/.%2e", "/" },
		{ "/%2e/a", "/a" },
		{ "/...", "/..." },
		{ "/.a/..b/c./d..", "/.a/..b/c./d.." },
		{ "/a/..;/b", "/a/..;/b" },
		{ "/a/..%2fb", "/a/..%2Fb" },
		/* Empty segments are segments. */
		{ "//", "//" },
		{ "//a//b//", "//a//b//" },
		{ "/a//../b", "/a/b" },
		{ "//../a", "/a" },
		{ "/a//.", "/a//" },
		{ "//.", "//" },
		{ "//..", "/" },
		/* What may not stand in a path is escaped. */
		{ "/{a}|\"<>^`", "/%7Ba%7D%7C%22%3C%3E%5E%60" },
		{ "/[1]", "/%5B1%5D" },
		{ "/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@-._~" },
	};
	struct hpx_target target;
	struct hpx_arena arena;
	const char *reason;

	(void)state;
	hpx_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_status(hpx_target_parse(HPX_SPAN("POST"), hpx_span_of(rows[i].target),
					       &arena, &target, &reason),
			      HPX_OK);
		if (!hpx_span_eq(target.path, hpx_span_of(rows[i].path)))
			fail_msg("%s: got %.*s, want %s", rows[i].target,
				 HPX_SPAN_ARG(target.path), rows[i].path);
		/* The normal form is its own normal form. */
		assert_status(hpx_target_parse(HPX_SPAN("POST"), target.path, &arena, &target,
					       &reason),
			      HPX_OK);
		assert_span(target.path, rows[i].path);
	}
	hpx_arena_done(&arena);
}

static void forms_are_taken_apart(void **state)
{
	static const struct {
		const char *method;
		const char *target;
		const char *authority;
		const char *path;
		const char *query;
	} rows[] = {
		{ "GET", "/a?b=c", NULL, "/a", "b=c" },
		{ "GET", "/a?", NULL, "/a", "" },
		{ "GET", "/a?b?c/../%2e%zz{", NULL, "/a", "b?c/../%2e%zz{" },
		{ "GET", "/a/..?/..", NULL, "/", "/.." },
		{ "GET", "http://a/b?c", "a", "/b", "c" },
		{ "GET", "HTTPS://A:443/./b", "A:443", "/b", NULL },
		{ "GET", "http://a", "a", "/", NULL },
		{ "GET", "http://a?b", "a", "/", "b" },
		{ "GET", "http://[::1]:80/", "[::1]:80", "/", NULL },
		{ "OPTIONS", "*", NULL, "*", NULL },
		{ "OPTIONS", "http://a", "a", "*", NULL },
		{ "OPTIONS", "http://a?", "a", "/", "" },
		{ "OPTIONS", "http://a/", "a", "/", NULL },
		{ "GET", "//a/b", NULL, "//a/b", NULL },
		{ "GET", "/http://a/", NULL, "/http://a/", NULL },
	};
	struct hpx_target target;
	struct hpx_arena arena;
	const char *reason;

	(void)state;
	hpx_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_status(hpx_target_parse(hpx_span_of(rows[i].method),
					       hpx_span_of(rows[i].target), &arena, &target,
					       &reason),
			      HPX_OK);
		assert_span(target.path, rows[i].path);
		assert_int_equal(target.authority.ptr == NULL, rows[i].authority == NULL);
		assert_int_equal(target.query.ptr == NULL, rows[i].query == NULL);
		assert_span(target.authority, rows[i].authority);
		assert_span(target.query, rows[i].query);
	}
	hpx_arena_done(&arena);
}

static void what_has_two_readings_is_refused(void **state)
{
	static const struct {
		const char *method;
		struct hpx_span target;
	} rows[] = {
		{ "GET", HPX_SPAN_INIT("") },
		{ "GET", HPX_SPAN_INIT("a") },
		{ "GET", HPX_SPAN_INIT("*") },
		{ "OPTIONS", HPX_SPAN_INIT("**") },
		{ "GET", HPX_SPAN_INIT("?a") },
		{ "GET", HPX_SPAN_INIT("ftp://a/") },
		{ "GET", HPX_SPAN_INIT("http:/a") },
		{ "GET", HPX_SPAN_INIT("http://") },
		{ "GET", HPX_SPAN_INIT("http:///a") },
		{ "GET", HPX_SPAN_INIT("http://u:p@a/") },
		{ "GET", HPX_SPAN_INIT("http://a:b/") },
		{ "CONNECT", HPX_SPAN_INIT("a:443") },
		{ "GET", HPX_SPAN_INIT("/a\\b") },
		{ "GET", HPX_SPAN_INIT("/a%5cb") },
		{ "GET", HPX_SPAN_INIT("/a%5Cb") },
		{ "GET", HPX_SPAN_INIT("/a\0b") },
		{ "GET", HPX_SPAN_INIT("/a%00b") },
		{ "GET", HPX_SPAN_INIT("/a%0ab") },
		{ "GET", HPX_SPAN_INIT("/a%0D%0Ab") },
		{ "GET", HPX_SPAN_INIT("/a%1f") },
		{ "GET", HPX_SPAN_INIT("/a%7F") },
		{ "GET", HPX_SPAN_INIT("/a\177") },
		{ "GET", HPX_SPAN_INIT("/a b") },
		{ "GET", HPX_SPAN_INIT("/a\tb") },
		{ "GET", HPX_SPAN_INIT("/\303\244") },
		{ "GET", HPX_SPAN_INIT("/a#b") },
		{ "GET", HPX_SPAN_INIT("/a?b#c") },
		{ "GET", HPX_SPAN_INIT("/a?b\nc") },
		{ "GET", HPX_SPAN_INIT("/%") },
		{ "GET", HPX_SPAN_INIT("/%4") },
		{ "GET", HPX_SPAN_INIT("/%4g") },
		{ "GET", HPX_SPAN_INIT("/%g4") },
		{ "GET", HPX_SPAN_INIT("/%%41") },
		{ "GET", HPX_SPAN_INIT("/%u0041") },
	};
	struct hpx_target target;
	struct hpx_arena arena;

	(void)state;
	hpx_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *reason = NULL;
		enum hpx_status status = hpx_target_parse(hpx_span_of(rows[i].method),
							  rows[i].target, &arena, &target,
							  &reason);
		if (status != HPX_INVALID || reason == NULL)
			fail_msg("%s %.*s: got %s, want INVALID and a reason", rows[i].method,
				 HPX_SPAN_ARG(rows[i].target), hpx_status_name(status));
	}
	hpx_arena_done(&arena);
}

static void memory_runs_out_with_a_status(void **state)
{
	struct hpx_target target;
	struct hpx_arena arena;
	const char *reason;

	(void)state;
	hpx_arena_init(&arena, 8);
	assert_status(hpx_target_parse(HPX_SPAN("GET"), HPX_SPAN("/aaaaaaaaaaaa/%41"), &arena,
				       &target, &reason),
		      HPX_NOMEM);
	/* What is in its normal form needs none. */
	assert_status(hpx_target_parse(HPX_SPAN("GET"), HPX_SPAN("/aaaaaaaaaaaa/A"), &arena,
				       &target, &reason),
		      HPX_OK);
	hpx_arena_done(&arena);
}

static void hosts(void **state)
{
	static const struct {
		struct hpx_span host;
		bool valid;
	} rows[] = {
		{ HPX_SPAN_INIT("a"), true },
		{ HPX_SPAN_INIT("a.example"), true },
		{ HPX_SPAN_INIT("A_b-c~d.example."), true },
		{ HPX_SPAN_INIT("a:80"), true },
		{ HPX_SPAN_INIT("a:"), true },
		{ HPX_SPAN_INIT("a:65535"), true },
		{ HPX_SPAN_INIT("127.0.0.1:8080"), true },
		{ HPX_SPAN_INIT("%41.example"), true },
		{ HPX_SPAN_INIT("[::1]"), true },
		{ HPX_SPAN_INIT("[2001:db8::7]:443"), true },
		{ HPX_SPAN_INIT("[::ffff:1.2.3.4]"), true },
		{ HPX_SPAN_INIT(""), false },
		{ HPX_SPAN_INIT(":80"), false },
		{ HPX_SPAN_INIT("a:65536"), false },
		{ HPX_SPAN_INIT("a:8x"), false },
		{ HPX_SPAN_INIT("a:+8"), false },
		{ HPX_SPAN_INIT("a:80:80"), false },
		{ HPX_SPAN_INIT("::1"), false },
		{ HPX_SPAN_INIT("u@a"), false },
		{ HPX_SPAN_INIT("a/b"), false },
		{ HPX_SPAN_INIT("a?b"), false },
		{ HPX_SPAN_INIT("a#b"), false },
		{ HPX_SPAN_INIT("a b"), false },
		{ HPX_SPAN_INIT("a\\b"), false },
		{ HPX_SPAN_INIT("a\0b"), false },
		{ HPX_SPAN_INIT("a\"b"), false },
		{ HPX_SPAN_INIT("\303\244"), false },
		{ HPX_SPAN_INIT("a%4"), false },
		{ HPX_SPAN_INIT("a%zz"), false },
		{ HPX_SPAN_INIT("["), false },
		{ HPX_SPAN_INIT("[]"), false },
		{ HPX_SPAN_INIT("[::1"), false },
		{ HPX_SPAN_INIT("[::1]80"), false },
		{ HPX_SPAN_INIT("[::1]:x"), false },
		{ HPX_SPAN_INIT("[::1%25eth0]"), false },
		{ HPX_SPAN_INIT("[1.2.3.4]"), false },
		{ HPX_SPAN_INIT("[::1\0]"), false },
		{ HPX_SPAN_INIT("[v1.a]"), false },
		{ HPX_SPAN_INIT("[1:2:3:4:5:6:7:8:9:0:1:2:3:4:5:6:7:8:9:0:1:2:3:4]"), false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (hpx_host_valid(rows[i].host) != rows[i].valid)
			fail_msg("%.*s: got %d, want %d", HPX_SPAN_ARG(rows[i].host),
				 !rows[i].valid, rows[i].valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_have_one_normal_form),
		cmocka_unit_test(forms_are_taken_apart),
		cmocka_unit_test(what_has_two_readings_is_refused),
		cmocka_unit_test(memory_runs_out_with_a_status),
		cmocka_unit_test(hosts),
	};
	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
