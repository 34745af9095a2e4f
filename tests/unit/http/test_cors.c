/* Shows which header lines the page of an origin gets, by whose answer it is:
 * one origin named and only a listed one, lists merged and not doubled, and
 * nothing at all where no origin is listed. */
#include "../test.h"

#include "http/cors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHOP "https://shop.example"
#define DESK "http://127.0.0.1:3000"

#define NAMED(origin) "Access-Control-Allow-Origin: " origin "\r\n"
#define TRUSTED "Access-Control-Allow-Credentials: true\r\n"
#define EXPOSES(names) "Access-Control-Expose-Headers: " names "\r\n"
#define OURS "Hapax-Operation, Idempotent-Replayed, Idempotent-Reconstructed, Idempotency-Expires, Retry-After"
#define OWN "Location, Link, RateLimit, RateLimit-Policy"
#define VARY "Vary: Origin\r\n"
#define FIRST_SAID NAMED(DESK) TRUSTED "A: b\r\n" EXPOSES("X-One") "vary: Accept\r\n"

static const struct hpx_span listed[] = { HPX_SPAN_INIT(DESK), HPX_SPAN_INIT(SHOP) };
static const struct hpx_span everybody[] = { HPX_SPAN_INIT("*") };
static const struct hpx_cors off;
static const struct hpx_cors two = { listed, COUNT(listed), false };
static const struct hpx_cors trusting = { listed, COUNT(listed), true };
static const struct hpx_cors any = { everybody, COUNT(everybody), false };

static void lines_are_copied_replaced_and_merged(void **state)
{
	static const struct {
		const struct hpx_cors *cors;
		enum hpx_cors_answer answer;
		const char *origin; /* NULL: none was sent */
		const char *lines;
		const char *want;
	} rows[] = {
		/* Off: the bytes as they are. */
		{ &off, HPX_CORS_OWN, SHOP, "A: b\r\n", "A: b\r\n" },
		{ &off, HPX_CORS_REPLAY, SHOP, FIRST_SAID, FIRST_SAID },
		{ &off, HPX_CORS_FIRST, NULL, "", "" },
		/* Its own. */
		{ &two, HPX_CORS_OWN, SHOP, "",
		  NAMED(SHOP) EXPOSES(OURS ", " OWN) VARY },
		{ &trusting, HPX_CORS_OWN, DESK, "A: b\r\n",
		  "A: b\r\n" NAMED(DESK) TRUSTED EXPOSES(OURS ", " OWN) VARY },
		{ &any, HPX_CORS_OWN, "https://other.example", "",
		  NAMED("*") EXPOSES(OURS ", " OWN) VARY },
		{ &any, HPX_CORS_OWN, NULL, "", VARY },
		{ &two, HPX_CORS_OWN, "https://other.example", "A: b\r\n", "A: b\r\n" VARY },
		{ &two, HPX_CORS_OWN, "https://shop.exampl", "", VARY },
		{ &two, HPX_CORS_OWN, SHOP "/", "", VARY },
		{ &two, HPX_CORS_OWN, "*", "", VARY },
		{ &two, HPX_CORS_OWN, "", "", VARY },
		/* Replays. */
		{ &two, HPX_CORS_REPLAY, SHOP, FIRST_SAID,
		  "A: b\r\n" NAMED(SHOP) EXPOSES("X-One, " OURS) "Vary: Accept, Origin\r\n" },
		{ &trusting, HPX_CORS_REPLAY, SHOP, FIRST_SAID,
		  "A: b\r\n" NAMED(SHOP) TRUSTED EXPOSES("X-One, " OURS) "Vary: Accept, Origin\r\n" },
		{ &two, HPX_CORS_REPLAY, NULL, FIRST_SAID,
		  "A: b\r\n" EXPOSES("X-One") "Vary: Accept, Origin\r\n" },
		{ &two, HPX_CORS_REPLAY, "null", FIRST_SAID,
		  "A: b\r\n" EXPOSES("X-One") "Vary: Accept, Origin\r\n" },
		{ &two, HPX_CORS_REPLAY, SHOP, NAMED(DESK) NAMED("*") "access-control-allow-origin:x\r\n",
		  NAMED(SHOP) EXPOSES(OURS) VARY },
		/* First answers. */
		{ &two, HPX_CORS_FIRST, SHOP, FIRST_SAID,
		  NAMED(DESK) TRUSTED "A: b\r\n" EXPOSES("X-One, " OURS) "Vary: Accept, Origin\r\n" },
		{ &trusting, HPX_CORS_FIRST, SHOP, "A: b\r\n", "A: b\r\n" EXPOSES(OURS) VARY },
		{ &two, HPX_CORS_FIRST, NULL, FIRST_SAID,
		  NAMED(DESK) TRUSTED "A: b\r\n" EXPOSES("X-One") "Vary: Accept, Origin\r\n" },
		/* Lists: several lines are one, empty ones none, what is there is not added. */
		{ &two, HPX_CORS_FIRST, SHOP,
		  "Vary: Accept\r\nVARY:origin , X\r\nVary:\r\n" EXPOSES("retry-after") EXPOSES("*"),
		  EXPOSES("retry-after, *, Hapax-Operation, Idempotent-Replayed, Idempotent-Reconstructed, "
			  "Idempotency-Expires") "Vary: Accept, origin , X\r\n" },
		{ &two, HPX_CORS_FIRST, SHOP, "Vary: X-Origin, Origins\r\n",
		  EXPOSES(OURS) "Vary: X-Origin, Origins, Origin\r\n" },
		{ &two, HPX_CORS_REPLAY, NULL, "Vary: *\r\n", "Vary: *\r\n" },
	};
	struct hpx_buffer out;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		hpx_buffer_init(&out, 4096);
		assert_status(hpx_cors_write(rows[i].cors, rows[i].answer,
					     hpx_span_of(rows[i].origin),
					     hpx_span_of(rows[i].lines), &out),
			      HPX_OK);
		if (!hpx_span_eq(hpx_buffer_span(&out), hpx_span_of(rows[i].want)))
			print_error("row %zu\n", i);
		assert_span(hpx_buffer_span(&out), rows[i].want);
		hpx_buffer_done(&out);
	}
}

/* At every bound short of all of it, the buffer is as it was. */
static void all_of_it_or_nothing(void **state)
{
	struct hpx_span lines = HPX_SPAN(FIRST_SAID);
	enum hpx_status status = HPX_TOO_LARGE;
	struct hpx_buffer out;
	size_t max = 2;

	(void)state;
	for (; status != HPX_OK && max < 4096; max++) {
		hpx_buffer_init(&out, max);
		assert_status(hpx_buffer_text(&out, "x"), HPX_OK);
		status = hpx_cors_write(&trusting, HPX_CORS_REPLAY, HPX_SPAN(SHOP), lines, &out);
		if (status != HPX_OK) {
			assert_status(status, HPX_TOO_LARGE);
			assert_span(hpx_buffer_span(&out), "x");
		}
		hpx_buffer_done(&out);
	}
	assert_status(status, HPX_OK);
	assert_true(max > lines.len);
}

static void origin_is_sent_once_or_counts_as_none(void **state)
{
	struct hpx_field fields[] = {
		{ HPX_SPAN("origin"), HPX_SPAN(SHOP) },
		{ HPX_SPAN("Host"), HPX_SPAN("a") },
		{ HPX_SPAN("Origin"), HPX_SPAN(SHOP) },
	};
	struct hpx_http_head head = { .fields = fields };

	(void)state;
	assert_null(hpx_cors_origin(&head).ptr);
	head.field_count = 2;
	assert_span(hpx_cors_origin(&head), SHOP);
	head.field_count = 3;
	assert_null(hpx_cors_origin(&head).ptr);
}

static void a_preflight_is_told_what_may_be_sent(void **state)
{
	static const struct {
		const char *asked;
		const char *more;
	} rows[] = {
		{ NULL, "" },
		{ "", "" },
		{ "x-api-key", ", x-api-key" },
		{ "authorization,PREFER , content-type,my-key", "" },
		{ "a,,b\t,c d,e\x01,f:g,\"h\"", ", a, b" },
		{ "Hapax-Lease,hapax_x,Connection,te,upgrade,transfer-encoding,ok", ", ok" },
	};
	struct hpx_buffer out;
	char want[512];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		hpx_buffer_init(&out, 4096);
		snprintf(want, sizeof(want),
			 "Access-Control-Allow-Methods: GET\r\n"
			 "Access-Control-Allow-Headers: My-Key, Authorization, Content-Type, "
			 "Prefer%s\r\nAccess-Control-Max-Age: 600\r\n",
			 rows[i].more);
		assert_status(hpx_cors_write_preflight(HPX_SPAN("GET"), HPX_SPAN("My-Key"),
						       hpx_span_of(rows[i].asked), &out),
			      HPX_OK);
		assert_span(hpx_buffer_span(&out), want);
		hpx_buffer_done(&out);
	}
}

/* Whoever asks for hundreds is given the first of them. */
static void what_may_be_asked_is_bounded(void **state)
{
	char asked[1000];
	struct hpx_buffer out;
	size_t commas = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(asked); i++)
		asked[i] = i % 2 == 0 ? 'x' : ',';
	hpx_buffer_init(&out, 4096);
	assert_status(hpx_cors_write_preflight(HPX_SPAN("GET"), HPX_SPAN("K"),
					       hpx_span(asked, sizeof(asked)), &out),
		      HPX_OK);
	for (size_t i = 0; i < out.len; i++)
		commas += out.ptr[i] == ',';
	assert_int_equal(commas, 3 + 64);
	hpx_buffer_done(&out);
	hpx_buffer_init(&out, 100);
	assert_status(hpx_cors_write_preflight(HPX_SPAN("GET"), HPX_SPAN("K"),
					       hpx_span(asked, sizeof(asked)), &out),
		      HPX_TOO_LARGE);
	assert_int_equal(out.len, 0);
	hpx_buffer_done(&out);
}

static void only_what_a_browser_sends_is_an_origin(void **state)
{
	static const struct {
		const char *text;
		const char *reason; /* how it begins; NULL: it is one */
	} rows[] = {
		{ "https://shop.example", NULL },
		{ "http://localhost", NULL },
		{ "http://127.0.0.1:3000", NULL },
		{ "https://[2001:db8::1]:8443", NULL },
		{ "https://[::1]", NULL },
		{ "https://xn--bcher-kva.example", NULL },
		{ "http://shop.example:443", NULL },
		{ "https://shop.example:80", NULL },
		{ "chrome-extension://abcdef", NULL },
		{ "null", NULL },
		{ "", "has no scheme" },
		{ "*", "has no scheme" },
		{ "shop.example", "has no scheme" },
		{ "shop.example:3000", "has no scheme" },
		{ "//shop.example", "has no scheme" },
		{ "://shop.example", "has no scheme" },
		{ "1http://shop.example", "has no scheme" },
		{ "https:/shop.example", "has no scheme" },
		{ "nulls", "has no scheme" },
		{ "https://shop.example/", "has more than scheme, host and port" },
		{ "https://shop.example/pay", "has more than scheme, host and port" },
		{ "https://shop.example?a", "has more than scheme, host and port" },
		{ "https://shop.example#a", "has more than scheme, host and port" },
		{ "https:///", "has more than scheme, host and port" },
		{ "https://Shop.example", "has capital letters" },
		{ "HTTPS://shop.example", "has capital letters" },
		{ "https://*.shop.example", "has a * inside" },
		{ "https://me@shop.example", "names a user" },
		{ "https://", "has no host and port" },
		{ "https://:80", "has no host and port" },
		{ "https://shop.example:", "has no host and port" },
		{ "https://shop.example:http", "has no host and port" },
		{ "https://shop.example:70000", "has no host and port" },
		{ "https://shop example", "has no host and port" },
		{ "https://b\xc3\xbc"
		  "cher.example",
		  "has no host and port" },
		{ "https://[::1", "has no host and port" },
		{ "https://shop.example, https://b.example", "has more than scheme, host and port" },
		{ "https://shop.example:443", "has a port as no browser writes it" },
		{ "http://shop.example:80", "has a port as no browser writes it" },
		{ "http://[::1]:80", "has a port as no browser writes it" },
		{ "http://shop.example:0", "has a port as no browser writes it" },
		{ "http://shop.example:03000", "has a port as no browser writes it" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *reason = NULL;
		bool valid = hpx_origin_valid(hpx_span_of(rows[i].text), &reason);
		const char *want = rows[i].reason;
		if (valid != (want == NULL) ||
		    (want != NULL && strncmp(reason, want, strlen(want)) != 0))
			fail_msg("%s: got %s, want %s", rows[i].text, valid ? "valid" : reason,
				 want != NULL ? want : "valid");
	}
}

static void an_origins_length_is_bounded(void **state)
{
	char text[257] = "https://";
	const char *reason = NULL;

	(void)state;
	memset(text + 8, 'a', sizeof(text) - 9);
	assert_false(hpx_origin_valid(hpx_span(text, 256), &reason));
	assert_string_equal(reason, "is longer than 255 bytes");
	assert_true(hpx_origin_valid(hpx_span(text, 255), &reason));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_copied_replaced_and_merged),
		cmocka_unit_test(all_of_it_or_nothing),
		cmocka_unit_test(origin_is_sent_once_or_counts_as_none),
		cmocka_unit_test(a_preflight_is_told_what_may_be_sent),
		cmocka_unit_test(what_may_be_asked_is_bounded),
		cmocka_unit_test(only_what_a_browser_sends_is_an_origin),
		cmocka_unit_test(an_origins_length_is_bounded),
	};
	return cmocka_run_group_tests_name("cors", tests, NULL, NULL);
}
