/* Shows that a description is read whole, that flags win over it, and that every
 * mistake is told with its place and what to do. */
#include "helper.h"

#include <unistd.h>

static const char whole[] =
	"url: https://a.example:8443/payments\n"
	"method: PUT\n"
	"headers: ['Authorization: Bearer {{env:HPX_TEST_SET}}', 'X-A: 1']\n"
	"body: '{\"amount\": {{n}}}'\n"
	"other_body: '{\"amount\": 1}'\n"
	"number: /amount\n"
	"resource: /id\n"
	"effects: {get: 'https://a.example:8443/payments?n={{n}}', count: /items}\n"
	"second_tenant: ['Authorization: Bearer b']\n"
	"dialect: stripe\n"
	"key_header: X-Key\n"
	"skip: [retry]\n"
	"only: [first, retry]\n"
	"limits: {requests: 7, time: 2m, concurrency: 3, timeout: 500ms, settle: 4s}\n"
	"crash: {kill: 'kill 1', start: ./run, times: 2}\n"
	"seed: 12\n"
	"cacert: ca.pem\n"
	"requests:\n"
	"  other: {path: /refunds, headers: ['X-A: 2', 'X-B: 3'], body: plain}\n"
	"  slow: {body: '{\"slow\": true}'}\n"
	"  get: {path: /payments}\n"
	"  delete: {path: /payments/1}\n";

static void test_whole(void **state)
{
	struct hpx_verify_spec spec;

	(void)state;
	spec_read(&spec, "%s", whole);
	assert_true(spec.tls);
	assert_span(spec.host, "a.example");
	assert_int_equal(spec.port, 8443);
	assert_span(spec.requests[HPX_REQUEST_main].path, "/payments");
	assert_span(spec.requests[HPX_REQUEST_main].method, "PUT");
	assert_int_equal(spec.requests[HPX_REQUEST_main].header_count, 3);
	assert_span(spec.requests[HPX_REQUEST_main].headers[2], "Content-Type: application/json");
	assert_span(spec.other_body, "{\"amount\": 1}");
	assert_span(spec.number, "/amount");
	assert_span(spec.resource, "/id");
	assert_span(spec.effects_path, "/payments?n={{n}}");
	assert_span(spec.effects_count, "/items");
	assert_int_equal(spec.tenant_header_count, 1);
	assert_int_equal(spec.dialect, HPX_DIALECT_STRIPE);
	assert_span(spec.key_header, "X-Key");
	assert_span(spec.skip[0], "retry");
	assert_int_equal(spec.only_count, 2);
	assert_int_equal(spec.requests_max, 7);
	assert_int_equal(spec.time_max_ms, 120000);
	assert_int_equal(spec.concurrency_max, 3);
	assert_int_equal(spec.answer_timeout_ms, 500);
	assert_int_equal(spec.settle_ms, 4000);
	assert_span(spec.crash_cmd, "kill 1");
	assert_span(spec.start_cmd, "./run");
	assert_int_equal(spec.crashes, 2);
	assert_int_equal(spec.seed, 12);
	assert_span(spec.ca_file, "ca.pem");
	hpx_verify_spec_done(&spec);
}

/* What a named request does not say is the main one's. */
static void test_named(void **state)
{
	struct hpx_verify_spec spec;

	(void)state;
	spec_read(&spec, "%s", whole);
	const struct hpx_verify_request *other = &spec.requests[HPX_REQUEST_other];
	assert_true(other->given);
	assert_span(other->method, "PUT");
	assert_span(other->path, "/refunds");
	assert_int_equal(other->header_count, 3);
	assert_span(other->headers[1], "X-A: 2");
	assert_span(other->headers[2], "X-B: 3");
	assert_span(other->body, "plain");
	const struct hpx_verify_request *slow = &spec.requests[HPX_REQUEST_slow];
	assert_span(slow->path, "/payments");
	assert_span(slow->headers[2], "Content-Type: application/json");
	const struct hpx_verify_request *get = &spec.requests[HPX_REQUEST_get];
	assert_span(get->method, "GET");
	assert_span(get->body, "");
	assert_int_equal(get->header_count, 2);
	assert_span(spec.requests[HPX_REQUEST_delete].method, "DELETE");
	assert_false(spec.requests[HPX_REQUEST_binary].given);
	hpx_verify_spec_done(&spec);
}

static void test_defaults(void **state)
{
	struct hpx_verify_spec spec;

	(void)state;
	spec_read(&spec, "url: http://127.0.0.1/p");
	assert_span(spec.requests[HPX_REQUEST_main].method, "POST");
	assert_span(spec.key_header, "Idempotency-Key");
	assert_int_equal(spec.requests_max, 5000);
	assert_int_equal(spec.time_max_ms, 300000);
	assert_int_equal(spec.concurrency_max, 100);
	assert_int_equal(spec.answer_timeout_ms, 30000);
	assert_int_equal(spec.settle_ms, 60000);
	assert_int_equal(spec.requests[HPX_REQUEST_main].header_count, 0);
	hpx_verify_spec_done(&spec);
}

static void set_flag(struct hpx_verify_flags *flags, const char *path, const char *value)
{
	for (size_t i = 0; i < hpx_verify_options.count; i++) {
		if (strcmp(hpx_verify_options.rows[i].name, path) != 0)
			continue;
		size_t n = 0;
		while (flags->values[i][n] != NULL)
			n++;
		flags->values[i][n] = value;
		return;
	}
	fail_msg("there is no option %s", path);
}

static void test_flags_win(void **state)
{
	struct hpx_verify_flags flags = { 0 };
	struct hpx_config_report report;
	struct hpx_verify_spec spec;

	(void)state;
	set_flag(&flags, "url", "http://b.example/q");
	set_flag(&flags, "headers", "x-a: 9");
	set_flag(&flags, "headers", "X-C: 4");
	set_flag(&flags, "limits.time", "10s");
	set_flag(&flags, "effects.get", "/count");
	set_flag(&flags, "skip", "first");
	hpx_config_report_init(&report);
	assert_status(hpx_verify_spec_read(hpx_span_of(whole), HPX_SPAN(""), &flags, &report, &spec),
		      HPX_OK);
	hpx_config_report_done(&report);
	assert_span(spec.host, "b.example");
	assert_int_equal(spec.time_max_ms, 10000);
	assert_span(spec.effects_path, "/count");
	assert_int_equal(spec.skip_count, 1);
	assert_span(spec.skip[0], "first");
	const struct hpx_verify_request *main_request = &spec.requests[HPX_REQUEST_main];
	assert_int_equal(main_request->header_count, 4);
	assert_span(main_request->headers[1], "x-a: 9");
	assert_span(main_request->headers[2], "X-C: 4");
	hpx_verify_spec_done(&spec);
}

static void test_body_of_a_file(void **state)
{
	char path[] = "/tmp/hpx-verify-XXXXXX";
	struct hpx_verify_spec spec;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{\"a\":{{n}}}", 11), 11);
	close(fd);
	spec_read(&spec, "url: http://a.example/\nbody: '@%s'", path);
	unlink(path);
	assert_span(spec.requests[HPX_REQUEST_main].body, "{\"a\":{{n}}}");
	assert_int_equal(spec.requests[HPX_REQUEST_main].header_count, 1);
	hpx_verify_spec_done(&spec);
}

#define URL "url: http://a.example/p\n"

static const struct {
	const char *text;
	const char *want;
} mistakes[] = {
	{ "body: x", "url: is missing" },
	{ "url: a.example", "f:1:6: url: a URL begins with http" },
	{ "[]", "a description is a mapping" },
	{ URL "boby: x", "f:2:1: boby: is no option; did you mean body?" },
	{ URL "limits: {tme: 5s}", "limits.tme: is no option; did you mean limits.time?" },
	{ URL "limits: 5", "limits: must be a mapping of options, not a single value" },
	{ URL "requests: 5", "requests: must be a mapping" },
	{ URL "requests: {slo: {path: /x}}", "did you mean \"slow\"?" },
	{ URL "requests: {slow: x}", "must be a mapping with method" },
	{ URL "requests: {slow: {pth: /x}}", "requests.slow.pth: is no option; did you mean requests.slow.path?" },
	{ URL "requests:\n  slow: {path: 'http://b.example/x'}", "f:3:16: requests.slow.path: "
								 "\"http://b.example/x\" is on another host" },
	{ URL "requests: {delete: {body: x}}", "needs a path" },
	{ URL "effects: {get: 'https://a.example/p'}", "/p\" is on another host" },
	{ URL "effects: {count: /n}", "needs the GET" },
	{ URL "headers: 'A: b'", "headers: must be a list, not a single value; write e.g. [\"Name: value\"]" },
	{ URL "headers: [nonsense]", "a header line is" },
	{ URL "headers: ['Host: b']", "hapax writes Host" },
	{ URL "headers: ['Transfer-Encoding: chunked']", "hapax writes Host" },
	{ URL "headers: ['idempotency-key: k']", "hapax writes Host" },
	{ URL "key_header: X-K\nheaders: ['x-k: k']", "hapax writes Host" },
	{ URL "headers: ['A: {{env:HPX_TEST_UNSET}}']", "HPX_TEST_UNSET is not set" },
	{ URL "headers: [[x]]", "list of single values" },
	{ URL "body: [x]", "body: must be a single value, not a list; write e.g. JSON in quotes, '{\"amount\": 5}', or \"@FILE\"" },
	{ URL "body:", "has no value" },
	{ URL "body: '{{uid}}'", "did you mean {{uuid}}?" },
	{ URL "body: '@/no/such/file'", "\"@/no/such/file\" names a file that cannot be opened" },
	{ URL "body: '@/dev/zero'", "is no file" },
	{ URL "body: x\nother_body: x", "is the same as the body" },
	{ URL "number: amount", "\"amount\" is no JSON pointer; write \"/amount\"" },
	{ URL "method: 'a b'", "no method" },
	{ URL "dialect: ieft", "\"ieft\" is not one of auto, ietf, stripe, paypal, square; did you mean \"ietf\"?" },
	{ URL "skip: [frst]", "did you mean \"first\"?" },
	{ URL "only: [zzzzzz]", "--list` names them" },
	{ URL "limits: {concurrency: 0}", "\"0\" is too small: at least 1" },
	{ URL "limits: {time: 2d}", "limits.time: \"2d\" is too large: at most 24h" },
	{ URL "requests.slow.body: x", "requests.slow.body: a name has no dot; write requests: {slow: ...}" },
	{ URL "zzzzzz: 1", "zzzzzz: is no option; `hapax verify --help`" },
	{ URL "skip: [frst, retri]", "did you mean \"first\"?; there is no row \"retri\"; did you mean \"retry\"?" },
	{ URL "limits: {time: 5}", "\"5\" is no duration: write a whole number and its unit" },
	{ URL "crash: {kill: x}", "needs a way to start" },
	{ URL "crash: {start: x}", "is for crashes alone" },
	{ URL "insecure: perhaps", "neither true nor false" },
	{ URL "a: *x", "aliases" },
};

static void test_mistakes(void **state)
{
	static const struct hpx_verify_flags none;
	char got[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		spec_mistakes(mistakes[i].text, &none, got, sizeof(got));
		assert_contains(got, mistakes[i].want);
	}
}

/* A mistake names the header, never its value. */
static void test_no_secret_is_told(void **state)
{
	struct hpx_verify_flags flags = { 0 };
	char got[8192];

	(void)state;
	set_flag(&flags, "headers", "Authorization: sekret {{what}}");
	set_flag(&flags, "headers", "Transfer-Encoding: sekret");
	set_flag(&flags, "headers", "Bearer sekret");
	spec_mistakes(URL, &flags, got, sizeof(got));
	assert_contains(got, "--header: \"Authorization\": there is no variable {{what}}");
	assert_null(strstr(got, "sekret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_flags_win),
		cmocka_unit_test(test_body_of_a_file),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_no_secret_is_told),
	};

	setenv("HPX_TEST_SET", "sekret", 1);
	unsetenv("HPX_TEST_UNSET");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
