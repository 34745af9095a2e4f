/* Shows which headers of a request are kept with its job, and that no credential
 * is, however the route is configured; and what names a caller to the service
 * that knows the callers. */
#include "../test.h"

#include "gateway/steps.h"
#include "gateway/subrequest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct hpx_http_head head_of(struct hpx_field *fields, size_t count)
{
	return (struct hpx_http_head){ .fields = fields, .field_count = count };
}

/* A header, and whether it is kept when the route's fingerprint names it not,
 * and when it does. */
static void a_job_keeps_no_credential(void **state)
{
	static const struct {
		const char *name;
		bool kept;
		bool kept_if_named;
	} rows[] = {
		{ "Content-Type", true, true },
		{ "content-language", true, true },
		{ "Content-Encoding", true, true },
		{ "Accept", true, true },
		{ "Accept-Language", true, true },
		{ "traceparent", true, true },
		{ "Tracestate", true, true },
		{ "X-HTTP-Method-Override", true, true },
		{ "x-http-method", true, true },
		{ "X-Method-Override", true, true },
		{ "X-Currency", false, true },
		{ "User-Agent", false, true },
		{ "Authorization", false, false },
		{ "authorization", false, false },
		{ "Cookie", false, false },
		{ "X-Api-Key", false, false },
		{ "X-Auth-Token", false, false },
		{ "X-Goog-Iap-Jwt-Assertion", false, false },
		{ "Acme-Secret", false, false },
		{ "X-CSRF-Token", false, true },
		{ "Proxy-Authorization", false, false },
		{ "Proxy-Anything", false, false },
		{ "X-Tenant", false, false },
		{ "Idempotency-Key", false, false },
		{ "My-Key", false, false },
		{ "Host", false, false },
		{ "Forwarded", false, false },
		{ "X-Forwarded-For", false, false },
		{ "x-forwarded-client-cert", false, false },
		{ "Hapax-Lease", false, false },
		{ "Hapax_Operation", false, false },
		{ "Connection", false, false },
		{ "Transfer-Encoding", false, false },
		{ "TE", false, false },
		{ "Upgrade", false, false },
		{ "Keep-Alive", false, false },
		{ "Content-Length", false, false },
		{ "Expect", false, false },
		{ "Via", false, false },
		{ "Prefer", false, false },
	};
	struct hpx_settings settings = { .key_header = HPX_SPAN("My-Key"),
					 .tenant.name = HPX_SPAN("X-Tenant") };

	(void)state;
	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		bool named = i % 2 == 1;
		bool want = named ? rows[i / 2].kept_if_named : rows[i / 2].kept;
		struct hpx_field field = { hpx_span_of(rows[i / 2].name), HPX_SPAN("v") };
		struct hpx_http_head head = head_of(&field, 1);
		struct hpx_route route = { .recipe = { .headers = &field.name,
						       .header_count = named } };
		struct hpx_buffer out;
		hpx_buffer_init(&out, 1000);
		assert_status(hpx_async_headers(&settings, &route, &head, &out), HPX_OK);
		if ((out.len > 0) != want)
			fail_msg("%s%s: got \"%.*s\", want it %s", rows[i / 2].name,
				 named ? " (named)" : "", HPX_SPAN_ARG(hpx_buffer_span(&out)),
				 want ? "kept" : "left out");
		hpx_buffer_done(&out);
	}
}

static void headers_are_kept_as_lines(void **state)
{
	struct hpx_field fields[] = {
		{ HPX_SPAN("Content-Type"), HPX_SPAN("application/json") },
		{ HPX_SPAN("Authorization"), HPX_SPAN("Bearer secret") },
		{ HPX_SPAN("Accept"), HPX_SPAN("a/b") },
		{ HPX_SPAN("Accept"), HPX_SPAN("c/d") },
	};
	struct hpx_http_head head = head_of(fields, COUNT(fields));
	struct hpx_settings settings = { .key_header = HPX_SPAN("Idempotency-Key") };
	struct hpx_route route = { .number = 0 };
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 1000);
	assert_status(hpx_async_headers(&settings, &route, &head, &out), HPX_OK);
	assert_span(hpx_buffer_span(&out),
		    "Content-Type: application/json\r\nAccept: a/b\r\nAccept: c/d\r\n");
	hpx_buffer_done(&out);
}

static enum hpx_status credentials(const struct hpx_settings *settings,
				   struct hpx_field *fields, size_t count,
				   const char *want_lines, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_http_head head = head_of(fields, count);
	struct hpx_arena arena;
	struct hpx_tenant_source source = { .settings = settings, .head = &head, .host = HPX_SPAN("shop.example"), .peer = "unix", .arena = &arena };
	const char *reason = NULL;
	struct hpx_buffer out;

	hpx_arena_init(&arena, 10000);
	hpx_buffer_init(&out, 1000);
	enum hpx_status status = hpx_subrequest_credentials(&source, &out, ret_digest, &reason);
	if (status == HPX_OK)
		assert_span(hpx_buffer_span(&out), want_lines);
	else
		assert_non_null(reason);
	hpx_buffer_done(&out);
	hpx_arena_done(&arena);
	return status;
}

static void show(struct hpx_field *fields, size_t count, const char *want_lines,
		 uint8_t ret_digest[HPX_SHA256_SIZE])
{
	static const struct hpx_settings settings = { .tenant.from = HPX_TENANT_SUBREQUEST };

	assert_status(credentials(&settings, fields, count, want_lines, ret_digest), HPX_OK);
}

static void only_credentials_are_shown(void **state)
{
	struct hpx_field fields[] = {
		{ HPX_SPAN("Cookie"), HPX_SPAN("a=1") },
		{ HPX_SPAN("Content-Type"), HPX_SPAN("application/json") },
		{ HPX_SPAN("authorization"), HPX_SPAN("Bearer t") },
		{ HPX_SPAN("X-Api-Key"), HPX_SPAN("k") },
		{ HPX_SPAN("Proxy-Authorization"), HPX_SPAN("Basic x") },
		{ HPX_SPAN("Cookie"), HPX_SPAN("b=2") },
	};
	uint8_t all[HPX_SHA256_SIZE], none[HPX_SHA256_SIZE], other[HPX_SHA256_SIZE];

	(void)state;
	show(fields, COUNT(fields),
	     "Cookie: a=1\r\nauthorization: Bearer t\r\nX-Api-Key: k\r\nCookie: b=2\r\n", all);
	show(NULL, 0, "", none);
	assert_memory_not_equal(all, none, sizeof(all));
	/* Another header changes nothing, another credential does. */
	fields[1].value = HPX_SPAN("text/plain");
	show(fields, COUNT(fields),
	     "Cookie: a=1\r\nauthorization: Bearer t\r\nX-Api-Key: k\r\nCookie: b=2\r\n", other);
	assert_memory_equal(all, other, sizeof(all));
	fields[5].value = HPX_SPAN("b=3");
	show(fields, COUNT(fields),
	     "Cookie: a=1\r\nauthorization: Bearer t\r\nX-Api-Key: k\r\nCookie: b=3\r\n", other);
	assert_memory_not_equal(all, other, sizeof(all));
}

static void the_same_value_elsewhere_is_another_caller(void **state)
{
	struct hpx_field as_key = { HPX_SPAN("X-Api-Key"), HPX_SPAN("v") };
	struct hpx_field as_cookie = { HPX_SPAN("Cookie"), HPX_SPAN("v") };
	uint8_t a[HPX_SHA256_SIZE], b[HPX_SHA256_SIZE];

	(void)state;
	show(&as_key, 1, "X-Api-Key: v\r\n", a);
	show(&as_cookie, 1, "Cookie: v\r\n", b);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void a_credential_sent_twice_is_refused(void **state)
{
	static const char *const names[] = { "Authorization", "X-Api-Key", "X-Auth-Token",
					     "x-amzn-oidc-data", "X-My-Token" };
	static const struct hpx_settings settings = { .tenant.from = HPX_TENANT_SUBREQUEST };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct hpx_field fields[] = { { hpx_span_of(names[i]), HPX_SPAN("a") },
					      { hpx_span_of(names[i]), HPX_SPAN("a") } };
		uint8_t digest[HPX_SHA256_SIZE];
		assert_status(credentials(&settings, fields, 2, "", digest), HPX_INVALID);
	}
}

/* The listed headers, and those of `with`; not the harmless ones, nor `ignore`. */
static void what_may_name_a_caller_is_shown(void **state)
{
	struct hpx_span with[] = { HPX_SPAN("host"), HPX_SPAN("stripe-account") };
	struct hpx_span ignore[] = { HPX_SPAN("x-session-token") };
	const struct hpx_settings settings = { .tenant.from = HPX_TENANT_SUBREQUEST,
					       .tenant.with = with,
					       .tenant.with_count = 2,
					       .tenant.ignore = ignore,
					       .tenant.ignore_count = 1 };
	struct hpx_field fields[] = {
		{ HPX_SPAN("Host"), HPX_SPAN("shop.example") },
		{ HPX_SPAN("X-Auth-Token"), HPX_SPAN("t") },
		{ HPX_SPAN("X-CSRF-Token"), HPX_SPAN("c") },
		{ HPX_SPAN("X-Session-Token"), HPX_SPAN("s") },
		{ HPX_SPAN("Stripe-Account"), HPX_SPAN("a") },
		{ HPX_SPAN("x-amzn-oidc-data"), HPX_SPAN("d") },
	};
	uint8_t first[HPX_SHA256_SIZE], other[HPX_SHA256_SIZE];
	const char *lines = "X-Auth-Token: t\r\nStripe-Account: a\r\nx-amzn-oidc-data: d\r\n"
			    "X-Original-Host: shop.example\r\n";

	(void)state;
	assert_status(credentials(&settings, fields, COUNT(fields), lines, first), HPX_OK);
	fields[2].value = fields[3].value = HPX_SPAN("rotated");
	assert_status(credentials(&settings, fields, COUNT(fields), lines, other), HPX_OK);
	assert_memory_equal(first, other, sizeof(first));
	fields[1].value = HPX_SPAN("u");
	assert_status(credentials(&settings, fields, COUNT(fields),
				  "X-Auth-Token: u\r\nStripe-Account: a\r\nx-amzn-oidc-data: d\r\n"
				  "X-Original-Host: shop.example\r\n",
				  other),
		      HPX_OK);
	assert_memory_not_equal(first, other, sizeof(first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_keeps_no_credential),
		cmocka_unit_test(headers_are_kept_as_lines),
		cmocka_unit_test(only_credentials_are_shown),
		cmocka_unit_test(the_same_value_elsewhere_is_another_caller),
		cmocka_unit_test(a_credential_sent_twice_is_refused),
		cmocka_unit_test(what_may_name_a_caller_is_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
