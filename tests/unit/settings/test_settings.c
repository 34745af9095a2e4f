/* Shows which peers a list of networks trusts, and that settings live as
 * long as somebody holds them. */
#include "../test.h"

#include "settings/settings.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void networks_are_read_strictly(void **state)
{
	static const struct {
		const char *text;
		bool good;
		unsigned prefix_bits;
	} rows[] = {
		{ "10.0.0.0/8", true, 104 },
		{ "192.0.2.1", true, 128 },
		{ "0.0.0.0/0", true, 96 },
		{ "::1/128", true, 128 },
		{ "::1", true, 128 },
		{ "2001:db8::/32", true, 32 },
		{ "::/0", true, 0 },
		{ "10.0.0.0/33", false, 0 },
		{ "::1/129", false, 0 },
		{ "10.0.0.0/", false, 0 },
		{ "10.0.0.0/-1", false, 0 },
		{ "10.0.0.0/8/8", false, 0 },
		{ "10.0.0/8", false, 0 },
		{ "localhost", false, 0 },
		{ "", false, 0 },
		{ "/8", false, 0 },
		{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", false, 0 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_network network = { .prefix_bits = 0 };
		bool good = hpx_network_parse(hpx_span_of(rows[i].text), &network);
		if (good != rows[i].good || network.prefix_bits != rows[i].prefix_bits)
			fail_msg("\"%s\": got %d /%u, want %d /%u", rows[i].text, good,
				 network.prefix_bits, rows[i].good, rows[i].prefix_bits);
	}
}

static void a_peer_is_trusted_by_its_network(void **state)
{
	static const struct {
		const char *network;
		const char *peer;
		bool trusted;
	} rows[] = {
		{ "10.0.0.0/8", "10.255.0.1", true },
		{ "10.0.0.0/8", "11.0.0.1", false },
		{ "10.0.0.0/8", "::ffff:10.0.0.1", true },
		{ "10.0.0.99/8", "10.1.1.1", true },
		{ "192.0.2.128/25", "192.0.2.129", true },
		{ "192.0.2.128/25", "192.0.2.127", false },
		{ "192.0.2.1", "192.0.2.1", true },
		{ "192.0.2.1", "192.0.2.2", false },
		{ "0.0.0.0/0", "203.0.113.9", true },
		{ "0.0.0.0/0", "2001:db8::1", false },
		{ "::/0", "203.0.113.9", true },
		{ "::1", "::1", true },
		{ "::1", "127.0.0.1", false },
		{ "fe80::/10", "fe80::1%eth0", true },
		{ "10.0.0.0/8", "unix", true },
		{ "10.0.0.0/8", "", false },
		{ "10.0.0.0/8", "10.0.0.1x", false },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_network network;
		struct hpx_settings *settings = hpx_settings_new();
		assert_non_null(settings);
		assert_true(hpx_network_parse(hpx_span_of(rows[i].network), &network));
		settings->trusted_peers = &network;
		settings->trusted_peer_count = 1;
		bool trusted = hpx_peer_trusted(settings, rows[i].peer);
		if (trusted != rows[i].trusted)
			fail_msg("%s in %s: got %d, want %d", rows[i].peer, rows[i].network,
				 trusted, rows[i].trusted);
		hpx_settings_unref(settings);
	}
}

static void settings_live_until_the_last_one_lets_go(void **state)
{
	struct hpx_settings *settings = hpx_settings_new();
	(void)state;
	assert_non_null(settings);
	assert_non_null(hpx_arena_alloc(&settings->arena, 100));
	assert_ptr_equal(hpx_settings_ref(settings), settings);
	hpx_settings_unref(settings);
	assert_false(hpx_peer_trusted(settings, "127.0.0.1"));
	assert_true(hpx_peer_trusted(settings, "unix"));
	hpx_settings_unref(settings);
	hpx_settings_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(networks_are_read_strictly),
		cmocka_unit_test(a_peer_is_trusted_by_its_network),
		cmocka_unit_test(settings_live_until_the_last_one_lets_go),
	};
	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
