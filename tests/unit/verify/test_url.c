/* Shows that a URL is taken apart, and that no path leads to another host. */
#include "../test.h"
#include "verify/spec_read.h"

static const struct {
	const char *text;
	bool tls;
	const char *host;
	unsigned port;
	const char *path;
} urls[] = {
	{ "http://a.example", false, "a.example", 80, "/" },
	{ "https://a.example/", true, "a.example", 443, "/" },
	{ "HTTPS://A.example:8443/p?q=1", true, "A.example", 8443, "/p?q=1" },
	{ "http://127.0.0.1:8080/x/{{n}}", false, "127.0.0.1", 8080, "/x/{{n}}" },
	{ "http://[::1]/p", false, "::1", 80, "/p" },
	{ "https://[::1]:444/p", true, "::1", 444, "/p" },
};

static const struct {
	const char *text;
	const char *reason;
} mistaken[] = {
	{ "", "begins with http://" },
	{ "a.example/p", "begins with http://" },
	{ "ftp://a.example/", "begins with http://" },
	{ "http://", "no host" },
	{ "http:///p", "no host" },
	{ "http://u:p@a.example/", "credentials do not stand" },
	{ "http://a.example:0/", "port 0" },
	{ "http://a.example:70000/", "port" },
	{ "http://a.example:/", "port" },
	{ "http://unix:80/", "no host" },
	{ "http://a b/", "host" },
	{ "http://a.example/p#f", "fragment" },
	{ "http://a.example/a b", "percent-encoded" },
	{ "http://a.example/a\\b", "percent-encoded" },
	{ "http://a.example?x=1", "write a path" },
};

static const struct {
	const char *text;
	const char *path; /* NULL: refused */
	const char *reason;
} paths[] = {
	{ "/x", "/x", NULL },
	{ "https://a.example:8443/y?z", "/y?z", NULL },
	{ "https://A.EXAMPLE:8443", "/", NULL },
	{ "https://b.example:8443/y", NULL, "another host" },
	{ "https://a.example/y", NULL, "another host" },
	{ "http://a.example:8443/y", NULL, "another host" },
	{ "x", NULL, "begins with \"/\"" },
	{ "", NULL, "begins with \"/\"" },
	{ "/x y", NULL, "percent-encoded" },
};

static void assert_reason(const char *text, const char *got, const char *want)
{
	if (strstr(got, want) == NULL)
		fail_msg("%s: got \"%s\", want \"%s\"", text, got, want);
}

static void test_urls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct hpx_verify_url url;
		const char *reason = "";

		assert_status(hpx_verify_url_parse(hpx_span_of(urls[i].text), &url, &reason),
			      HPX_OK);
		assert_int_equal(url.tls, urls[i].tls);
		assert_string_equal(url.host, urls[i].host);
		assert_int_equal(url.port, urls[i].port);
		assert_span(url.path, urls[i].path);
	}
}

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistaken) / sizeof(mistaken[0]); i++) {
		struct hpx_verify_url url;
		const char *reason = "";

		assert_status(hpx_verify_url_parse(hpx_span_of(mistaken[i].text), &url, &reason),
			      HPX_INVALID);
		assert_reason(mistaken[i].text, reason, mistaken[i].reason);
	}
}

static void test_paths(void **state)
{
	struct hpx_verify_url of;
	const char *reason;

	(void)state;
	assert_status(hpx_verify_url_parse(HPX_SPAN("https://a.example:8443/p"), &of, &reason),
		      HPX_OK);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct hpx_span path = HPX_SPAN("untouched");
		enum hpx_status want = paths[i].path ? HPX_OK : HPX_INVALID;

		assert_status(hpx_verify_path_parse(hpx_span_of(paths[i].text), &of, &path,
						    &reason),
			      want);
		if (want == HPX_OK)
			assert_span(path, paths[i].path);
		else
			assert_reason(paths[i].text, reason, paths[i].reason);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
