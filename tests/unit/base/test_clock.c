/* Shows that times are written as RFC 3339 and RFC 9110 §5.6.7 have them. */
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
		cmocka_unit_test(the_boot_clock_does_not_go_back),
	};
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
