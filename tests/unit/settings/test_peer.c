/* Shows which peers are on this machine, and whose address a request has that came
 * through trusted peers. */
#include "../test.h"

#include "http/message.h"
#include "settings/settings.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void loopback_and_unix_are_local(void **state)
{
	static const struct {
		const char *peer;
		bool local;
	} rows[] = {
		{ "127.0.0.1", true }, { "127.9.9.9", true }, { "::1", true }, { "unix", true }, { "128.0.0.1", false }, { "126.255.255.255", false }, { "::2", false }, { "::ffff:127.0.0.1", true }, { "10.0.0.1", false }, { "unknown", false }, { "", false }
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (hpx_peer_is_local(rows[i].peer) != rows[i].local)
			fail_msg("%s: want %d", rows[i].peer, rows[i].local);
}

/* 10.0.0.0/8 and ::1 are trusted. */
static void behind_trusted_peers_the_last_stranger_counts(void **state)
{
	static const struct {
		const char *peer;
		const char *forwarded[2]; /* one field each */
		const char *want;
	} rows[] = {
		{ "192.0.2.1", { NULL }, "192.0.2.1" },
		/* A stranger's word about itself is not taken. */
		{ "192.0.2.1", { "198.51.100.7" }, "192.0.2.1" },
		{ "10.0.0.1", { NULL }, "" },
		{ "10.0.0.1", { "198.51.100.7" }, "198.51.100.7" },
		{ "10.0.0.1", { "203.0.113.9, 198.51.100.7" }, "198.51.100.7" },
		{ "10.0.0.1", { "203.0.113.9,198.51.100.7 , 10.1.1.1,\t::1" }, "198.51.100.7" },
		{ "10.0.0.1", { "203.0.113.9", "198.51.100.7, 10.2.2.2" }, "198.51.100.7" },
		{ "10.0.0.1", { "198.51.100.7", "10.2.2.2" }, "198.51.100.7" },
		{ "10.0.0.1", { "10.3.3.3" }, "" },
		{ "10.0.0.1", { "198.51.100.7, unknown" }, "" },
		{ "10.0.0.1", { "198.51.100.7, " }, "" },
		{ "10.0.0.1", { "198.51.100.7:4711" }, "198.51.100.7" },
		{ "10.0.0.1", { "[2001:db8::1]:4711" }, "2001:db8::1" },
		{ "10.0.0.1", { "[2001:db8::1]" }, "2001:db8::1" },
		{ "10.0.0.1", { "2001:db8::1" }, "2001:db8::1" },
		{ "10.0.0.1", { "[" }, "" },
		{ "10.0.0.1", { "," }, "" },
		{ "::1", { "198.51.100.7" }, "198.51.100.7" },
		{ "unix", { "198.51.100.7" }, "198.51.100.7" },
		{ "unix", { NULL }, "" },
	};
	struct hpx_network networks[2];
	struct hpx_settings settings = { .trusted_peers = networks, .trusted_peer_count = 2 };
	(void)state;
	assert_true(hpx_network_parse(HPX_SPAN("10.0.0.0/8"), &networks[0]));
	assert_true(hpx_network_parse(HPX_SPAN("::1"), &networks[1]));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_field fields[3] = { { .name = HPX_SPAN("Host"), .value = HPX_SPAN("192.0.2.99") } };
		struct hpx_http_head head = { .fields = fields, .field_count = 1 };
		for (size_t n = 0; n < 2 && rows[i].forwarded[n] != NULL; n++)
			fields[head.field_count++] =
				(struct hpx_field){ .name = HPX_SPAN("x-forwarded-for"),
						    .value = hpx_span_of(rows[i].forwarded[n]) };
		struct hpx_span got = hpx_peer_of(&settings, &head, rows[i].peer);
		if (!hpx_span_eq(got, hpx_span_of(rows[i].want)))
			fail_msg("row %zu: got \"%.*s\", want \"%s\"", i, HPX_SPAN_ARG(got),
				 rows[i].want);
	}
}

/* An IPv4 address counts by itself, IPv6 by its /64. */
static void callers_are_counted_by_network(void **state)
{
	static const struct {
		const char *one, *other;
		bool same;
	} rows[] = {
		{ "192.0.2.1", "192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.2", false },
		{ "2001:db8::1", "2001:db8::ffff:1", true },
		{ "2001:db8::1", "2001:db8:0:1::1", false },
		{ "fe80::1%eth0", "fe80::2%eth1", true },
	};
	uint8_t one[16], other[16];
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(hpx_peer_network(hpx_span_of(rows[i].one), one));
		assert_true(hpx_peer_network(hpx_span_of(rows[i].other), other));
		if ((memcmp(one, other, sizeof(one)) == 0) != rows[i].same)
			fail_msg("%s and %s: want %d", rows[i].one, rows[i].other, rows[i].same);
	}
	assert_false(hpx_peer_network(HPX_SPAN("unix"), one));
	assert_false(hpx_peer_network(hpx_span("", 0), one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_and_unix_are_local),
		cmocka_unit_test(behind_trusted_peers_the_last_stranger_counts),
		cmocka_unit_test(callers_are_counted_by_network),
	};
	return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
