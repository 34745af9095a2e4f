/* Shows what counts as an origin: what a browser could send, byte by byte, and
 * nothing that would never match. */
#include "../test.h"

#include "http/origin.h"

static void only_what_a_browser_sends_is_one(void **state)
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

static void its_length_is_bounded(void **state)
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
		cmocka_unit_test(only_what_a_browser_sends_is_one),
		cmocka_unit_test(its_length_is_bounded),
	};
	return cmocka_run_group_tests_name("origin", tests, NULL, NULL);
}
