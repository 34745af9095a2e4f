/* Shows which addresses are taken and how they are understood. */
#include "../test.h"

#include "base/address.h"

struct row {
	const char *text;
	const char *host; /* NULL: refused */
	uint16_t port;
	const char *path;
};

static const struct row listen_rows[] = {
	{ "127.0.0.1:8080", "127.0.0.1", 8080, "" },
	{ "127.0.0.1:0", "127.0.0.1", 0, "" },
	{ "0.0.0.0:65535", "0.0.0.0", 65535, "" },
	{ "[::1]:80", "::1", 80, "" },
	{ "[::]:80", "::", 80, "" },
	{ "[fe80::1%eth0]:80", "fe80::1%eth0", 80, "" },
	{ "localhost:80", "localhost", 80, "" },
	{ "my_host-1.example.:80", "my_host-1.example.", 80, "" },
	{ "unix:/run/hapax.sock", "", 0, "/run/hapax.sock" },
	{ "unix:a", "", 0, "a" },
	{ "", NULL, 0, NULL },
	{ ":80", NULL, 0, NULL },
	{ "localhost", NULL, 0, NULL },
	{ "localhost:", NULL, 0, NULL },
	{ "localhost:65536", NULL, 0, NULL },
	{ "localhost:000080", NULL, 0, NULL },
	{ "localhost:-1", NULL, 0, NULL },
	{ "localhost:80x", NULL, 0, NULL },
	{ "local host:80", NULL, 0, NULL },
	{ "::1:80", NULL, 0, NULL },
	{ "[::1:80", NULL, 0, NULL },
	{ "[::1]", NULL, 0, NULL },
	{ "[::1]80", NULL, 0, NULL },
	{ "[]:80", NULL, 0, NULL },
	{ "[%eth0]:80", NULL, 0, NULL },
	{ "[0000:0000:0000:0000:0000:0000:0000:0000:0000:01]:80", NULL, 0, NULL },
	{ "[localhost]:80", NULL, 0, NULL },
	{ "127.1:80", NULL, 0, NULL },
	{ "2130706433:80", NULL, 0, NULL },
	{ "256.0.0.1:80", NULL, 0, NULL },
	{ "unix:", NULL, 0, NULL },
};

static const struct row upstream_rows[] = {
	{ "http://127.0.0.1:9000", "127.0.0.1", 9000, "" },
	{ "HTTP://127.0.0.1:9000/", "127.0.0.1", 9000, "" },
	{ "http://api.example", "api.example", 80, "" },
	{ "http://[::1]", "::1", 80, "" },
	{ "http://[::1]:9000/", "::1", 9000, "" },
	{ "unix:/run/api.sock", "", 0, "/run/api.sock" },
	{ "https://api.example", "api.example", 443, "" },
	{ "https://api.example:8443/", "api.example", 8443, "" },
	{ "HTTPS://[::1]", "::1", 443, "" },
	{ "https://", NULL, 0, NULL },
	{ "https://api.example/v1", NULL, 0, NULL },
	{ "http://api.example/v1", NULL, 0, NULL },
	{ "http://api.example//", NULL, 0, NULL },
	{ "http://api.example?x", NULL, 0, NULL },
	{ "http://user:secret@api.example", NULL, 0, NULL },
	{ "http://api.example:0", NULL, 0, NULL },
	{ "http://api.example:", NULL, 0, NULL },
	{ "http://", NULL, 0, NULL },
	{ "http:///", NULL, 0, NULL },
	{ "api.example:80", NULL, 0, NULL },
	{ "", NULL, 0, NULL },
};

typedef enum hpx_status parse_fn(struct hpx_span text, struct hpx_address *ret_address,
				 const char **ret_reason);

static void check_rows(parse_fn *parse, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		struct hpx_address address = { 0 };
		const char *reason = NULL;
		enum hpx_status status = parse(hpx_span_of(row->text), &address, &reason);

		print_message("%s: %s\n", row->text, reason != NULL ? reason : "taken");
		assert_status(status, row->host != NULL ? HPX_OK : HPX_INVALID);
		if (row->host == NULL) {
			assert_non_null(reason);
			continue;
		}
		assert_string_equal(address.host, row->host);
		assert_int_equal(address.port, row->port);
		assert_string_equal(address.path, row->path);
		assert_string_equal(address.text, row->text);
		assert_int_equal(address.is_unix, row->path[0] != '\0');
	}
}

static void addresses_to_listen_on(void **state)
{
	(void)state;
	check_rows(hpx_address_parse, listen_rows, sizeof(listen_rows) / sizeof(*listen_rows));
}

static void addresses_of_upstreams(void **state)
{
	(void)state;
	check_rows(hpx_address_parse_upstream, upstream_rows,
		   sizeof(upstream_rows) / sizeof(*upstream_rows));
}

static void lengths_are_bounded(void **state)
{
	struct hpx_address address;
	const char *reason;
	char text[400];

	(void)state;
	for (size_t len = 1; len < sizeof(text); len++) {
		memset(text, 'a', len);
		bool fits = len <= 107 + 5;
		memcpy(text, "unix:", len < 5 ? len : 5);
		enum hpx_status status =
			hpx_address_parse(hpx_span(text, len), &address, &reason);
		assert_status(status, fits && len > 5 ? HPX_OK : HPX_INVALID);
	}
	for (size_t len = 3; len < sizeof(text); len++) {
		memset(text, 'a', len);
		memcpy(text + len - 2, ":1", 2);
		enum hpx_status status =
			hpx_address_parse(hpx_span(text, len), &address, &reason);
		assert_status(status, len - 2 <= 255 ? HPX_OK : HPX_INVALID);
	}
	assert_status(hpx_address_parse(hpx_span("unix:a\0b", 8), &address, &reason),
		      HPX_INVALID);
	assert_status(hpx_address_parse(hpx_span("a\0b:1", 5), &address, &reason), HPX_INVALID);
}

/* A listener on all addresses is reachable from afar, whoever connects. */
static void what_only_this_machine_reaches(void **state)
{
	static const struct {
		const char *text;
		bool local;
	} rows[] = {
		{ "127.0.0.1:80", true },
		{ "127.255.1.2:80", true },
		{ "[::1]:80", true },
		{ "[::ffff:127.0.0.1]:80", true },
		{ "localhost:80", true },
		{ "LocalHost:80", true },
		{ "unix:/run/x", true },
		{ "0.0.0.0:80", false },
		{ "[::]:80", false },
		{ "128.0.0.1:80", false },
		{ "10.0.0.1:80", false },
		{ "[::2]:80", false },
		{ "[::1%lo]:80", true },
		{ "[fe80::1%lo]:80", false },
		{ "[fe80::1]:80", false },
		{ "[::ffff:10.0.0.1]:80", false },
		{ "host.example:80", false },
		{ "localhost.example:80", false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_address address;
		const char *reason = NULL;
		assert_status(hpx_address_parse(hpx_span_of(rows[i].text), &address, &reason),
			      HPX_OK);
		if (hpx_address_is_local(&address) != rows[i].local)
			fail_msg("%s: got %s", rows[i].text, rows[i].local ? "afar" : "local");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_to_listen_on),
		cmocka_unit_test(addresses_of_upstreams),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(what_only_this_machine_reaches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
