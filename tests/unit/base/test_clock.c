/* Shows that times are written as RFC 3339 and RFC 9110 §5.6.7 have them, and read as
 * people write RFC 3339. */
#include "../test.h"

#include "base/clock.h"

static void times_are_written(void **state)
{
	char text[HPX_RFC3339_SIZE];
	char date[HPX_HTTP_DATE_SIZE];
	(void)state;
	hpx_clock_rfc3339(784111777000, text);
	assert_string_equal(text, "1994-11-06T08:49:37Z");
	hpx_clock_rfc3339(784111777042, text);
	assert_string_equal(text, "1994-11-06T08:49:37.042Z");
	hpx_clock_rfc3339(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999Z");
	hpx_clock_http_date(784111777000, date);
	assert_string_equal(date, "Sun, 06 Nov 1994 08:49:37 GMT");
}

static void times_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t wall_ms; /* -1: no time */
	} rows[] = {
		{ "1994-11-06T08:49:37Z", 784111777000 },
		{ "1994-11-06T08:49:37", 784111777000 },
		{ "1994-11-06 08:49:37.042999Z", 784111777042 },
		{ "1994-11-06T09:49:37+01:00", 784111777000 },
		{ "1994-11-06T03:19:37-05:30", 784111777000 },
		{ "1994-11-06", 784080000000 },
		{ "2024-02-29", 1709164800000 },
		{ "", -1 },
		{ "1994", -1 },
		{ "1994-13-06", -1 },
		{ "1994-00-06", -1 },
		{ "2023-02-29", -1 },
		{ "1994-11-31", -1 },
		{ "1994-11-06T", -1 },
		{ "1994-11-06T08:49", -1 },
		{ "1994-11-06T24:00:00Z", -1 },
		{ "1994-11-06T08:49:37.Z", -1 },
		{ "1994-11-06T08:49:37+1:00", -1 },
		{ "1994-11-06T08:49:37Zx", -1 },
		{ "+994-11-06", -1 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t got = -1;
		if (!hpx_clock_parse_rfc3339(hpx_span_of(rows[i].text), &got))
			got = -1;
		if (got != rows[i].wall_ms)
			fail_msg("<%s>: got %lld, want %lld", rows[i].text, (long long)got,
				 (long long)rows[i].wall_ms);
	}
}

static void the_boot_clock_does_not_go_back(void **state)
{
	int64_t before = hpx_clock_boot_us();
	(void)state;
	assert_true(hpx_clock_boot_us() >= before);
	assert_true(hpx_clock_wall_ms() > 1600000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_written),
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(the_boot_clock_does_not_go_back),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
