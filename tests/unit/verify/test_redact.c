/* Shows that no credential stands in what is kept of a request. */
#include "helper.h"
#include "verify/verify_request.h"

static const struct {
	const char *line;
	bool secret;
} lines[] = {
	{ "Authorization: Bearer sekret", true },
	{ "authorization: sekret", true },
	{ "Proxy-Authorization: sekret", true },
	{ "Cookie: sid=sekret", true },
	{ "X-API-Key: sekret", true },
	{ "Set-Cookie: sid=sekret", true },
	{ "X-Env: sekret", true },      /* by its template */
	{ "X-Slow-Env: sekret", true }, /* by another request's */
	{ "X-Tenant: sekret", true },   /* the second tenant's */
	{ "X-Plain: seen", false },
	{ "Idempotency-Key: seen", false },
	{ "Content-Type: seen", false },
};

static void describe(struct hpx_verify_spec *spec)
{
	spec_read(spec, "url: http://a.example/p\n"
			"headers: ['X-Env: {{env:HPX_TEST_SET}}', 'X-Plain: seen']\n"
			"second_tenant: ['X-Tenant: b']\n"
			"requests: {slow: {headers: ['X-Slow-Env: {{env:HPX_TEST_SET}}']}}\n");
}

static void test_lines(void **state)
{
	struct hpx_verify_spec spec;
	struct hpx_arena arena;

	(void)state;
	describe(&spec);
	hpx_arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct hpx_span head = hpx_arena_printf(&arena, "GET /a:b HTTP/1.1\r\n%s\r\n\r\n",
							lines[i].line);
		struct hpx_span shown = hpx_redact_head(&spec, head, &arena);
		size_t name = strcspn(lines[i].line, ":");
		struct hpx_span want = hpx_arena_printf(
			&arena, "GET /a:b HTTP/1.1\r\n%.*s: %s\r\n", (int)name, lines[i].line,
			lines[i].secret ? "(left out)" : "seen");

		assert_span(shown, want.ptr);
	}
	hpx_arena_done(&arena);
	hpx_verify_spec_done(&spec);
}

/* The real bytes carry them, what is shown does not. */
static void test_request(void **state)
{
	struct hpx_verify_spec spec;
	struct hpx_verify *run;
	struct hpx_verify_request_bytes request;

	(void)state;
	describe(&spec);
	assert_status(hpx_verify_new(&spec, &run), HPX_OK);
	const struct hpx_verify_variant variant = { .op = hpx_verify_op_draft(run, HPX_REQUEST_main) };
	assert_non_null(variant.op);
	assert_status(hpx_verify_request_build(&spec, &variant, hpx_verify_arena(run), &request),
		      HPX_OK);
	assert_non_null(memmem(request.bytes.ptr, request.bytes.len, "X-Env: sekret\r\n", 15));
	assert_null(memmem(request.shown_head.ptr, request.shown_head.len, "sekret", 6));
	assert_string_equal(request.key, variant.op->key);
	hpx_verify_free(run);
	hpx_verify_spec_done(&spec);
}

/* A key value with a line end would be another line. */
static void test_no_smuggling(void **state)
{
	struct hpx_verify_spec spec;
	struct hpx_verify *run;
	struct hpx_verify_request_bytes request;

	(void)state;
	describe(&spec);
	assert_status(hpx_verify_new(&spec, &run), HPX_OK);
	struct hpx_verify_op *op = hpx_verify_op_draft(run, HPX_REQUEST_main);
	const struct hpx_verify_variant bad[] = {
		{ .op = op, .key_values = HPX_RAW_KEY(HPX_SPAN("a\r\nX: y")), .key_count = 1 },
		{ .op = op, .key_values = HPX_RAW_KEY(HPX_SPAN("a\nX: y")), .key_count = 1 },
		{ .op = op, .content_type = HPX_SPAN("a\rb") },
		{ .op = op, .path = HPX_SPAN("/a HTTP/1.1\r\nX: y") },
		{ .op = op, .method = HPX_SPAN("GET /x") },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_status(hpx_verify_request_build(&spec, &bad[i], hpx_verify_arena(run),
						       &request),
			      HPX_INVALID);
	hpx_verify_free(run);
	hpx_verify_spec_done(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_no_smuggling),
	};

	setenv("HPX_TEST_SET", "sekret", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
