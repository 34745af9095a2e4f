/* Shows that dates are read in all three forms of RFC 9110 §5.6.7 and no
 * other, and that Retry-After becomes seconds within a bound. */
#include "../test.h"
#include "base/clock.h"
#include "http/retry_after.h"

/* Sun, 06 Nov 1994 08:49:37 GMT, the example of the RFC. */
#define THEN_S 784111777LL

static void dates(void **state)
{
	static const struct {
		const char *text;
		int64_t unix_s; /* -1: refused */
	} rows[] = {
		{ "Sun, 06 Nov 1994 08:49:37 GMT", THEN_S },
		{ "Sunday, 06-Nov-94 08:49:37 GMT", THEN_S },
		{ "Sun Nov  6 08:49:37 1994", THEN_S },
		{ "Wed Nov 16 08:49:37 1994", THEN_S + 10 * 86400 },
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
		{ "Thu, 29 Feb 2024 00:00:00 GMT", 1709164800 },
		{ "Tue, 29 Feb 2000 23:59:59 GMT", 951868799 },
		{ "Sat, 31 Dec 2016 23:59:60 GMT", 1483228800 },
		{ "Fri, 31 Dec 9999 23:59:59 GMT", 253402300799 },
		{ "Mon, 29 Feb 2023 00:00:00 GMT", -1 },
		{ "Mon, 29 Feb 2100 00:00:00 GMT", -1 },
		{ "Mon, 31 Apr 2023 00:00:00 GMT", -1 },
		{ "Mon, 00 Apr 2023 00:00:00 GMT", -1 },
		{ "Mon, 01 Apr 2023 24:00:00 GMT", -1 },
		{ "Mon, 01 Apr 2023 00:60:00 GMT", -1 },
		{ "Mon, 01 Apr 2023 00:00:61 GMT", -1 },
		{ "Wed, 31 Dec 1969 23:59:59 GMT", -1 },
		{ "sun, 06 Nov 1994 08:49:37 GMT", -1 },
		{ "Sun, 06 nov 1994 08:49:37 GMT", -1 },
		{ "Sun, 6 Nov 1994 08:49:37 GMT", -1 },
		{ "Sun, 06 Nov 1994 08:49:37 UTC", -1 },
		{ "Sun, 06 Nov 1994 08:49:37 +0000", -1 },
		{ "Sun, 06 Nov 1994 08:49:37", -1 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT ", -1 },
		{ "Sun, 06 Nov 94 08:49:37 GMT", -1 },
		{ "Sun, 06 Nov 1994 8:49:37 GMT", -1 },
		{ "Sun, -6 Nov 1994 08:49:37 GMT", -1 },
		{ "1994-11-06T08:49:37Z", -1 },
		{ "Sun", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t got = -1;
		hpx_date_parse(hpx_span_of(rows[i].text), THEN_S * 1000, &got);
		if (got != rows[i].unix_s)
			fail_msg("\"%s\": got %lld, want %lld", rows[i].text,
				 (long long)got, (long long)rows[i].unix_s);
	}
}

static void two_digits_mean_the_nearest_century(void **state)
{
	static const struct {
		const char *text;
		const char *now;
		const char *same;
	} rows[] = {
		{ "Sunday, 06-Nov-94 08:49:37 GMT", "Thu, 01 Jan 2026 00:00:00 GMT",
		  "Sun, 06 Nov 1994 08:49:37 GMT" },
		{ "Sunday, 06-Nov-30 08:49:37 GMT", "Thu, 01 Jan 2026 00:00:00 GMT",
		  "Wed, 06 Nov 2030 08:49:37 GMT" },
		{ "Sunday, 01-Jan-75 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT",
		  "Tue, 01 Jan 2075 00:00:00 GMT" },
		{ "Sunday, 01-Jan-77 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT",
		  "Sat, 01 Jan 1977 00:00:00 GMT" },
		{ "Sunday, 01-Jan-05 00:00:00 GMT", "Thu, 01 Jan 2099 00:00:00 GMT",
		  "Thu, 01 Jan 2105 00:00:00 GMT" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t now = 0;
		int64_t got = 0;
		int64_t want = -1;
		assert_status(hpx_date_parse(hpx_span_of(rows[i].now), 0, &now), HPX_OK);
		assert_status(hpx_date_parse(hpx_span_of(rows[i].same), 0, &want), HPX_OK);
		assert_status(hpx_date_parse(hpx_span_of(rows[i].text), now * 1000, &got),
			      HPX_OK);
		if (got != want)
			fail_msg("%s at %s: got %lld, want %lld", rows[i].text, rows[i].now,
				 (long long)got, (long long)want);
	}
}

static void dates_that_are_written_are_read(void **state)
{
	char text[HPX_HTTP_DATE_SIZE];

	(void)state;
	for (int64_t s = 0; s < 253402300799; s += 86400LL * 97 + 4321) {
		int64_t got = -1;
		hpx_clock_http_date(s * 1000, text);
		assert_status(hpx_date_parse(hpx_span_of(text), 0, &got), HPX_OK);
		if (got != s)
			fail_msg("%s: got %lld, want %lld", text, (long long)got,
				 (long long)s);
	}
}

static void retry_after_is_seconds(void **state)
{
	static const struct {
		const char *value;
		int64_t now_ms;
		enum hpx_status status;
		uint32_t seconds;
	} rows[] = {
		{ "0", 0, HPX_OK, 0 },
		{ "120", 0, HPX_OK, 120 },
		{ " 7 ", 0, HPX_OK, 7 },
		{ "31536000", 0, HPX_OK, HPX_RETRY_AFTER_MAX_S },
		{ "31536001", 0, HPX_OK, HPX_RETRY_AFTER_MAX_S },
		{ "99999999999999999999999999", 0, HPX_OK, HPX_RETRY_AFTER_MAX_S },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", (THEN_S - 30) * 1000, HPX_OK, 30 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", THEN_S * 1000 - 1, HPX_OK, 1 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", THEN_S * 1000, HPX_OK, 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", THEN_S * 1000 + 1, HPX_OK, 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", (THEN_S + 99) * 1000, HPX_OK, 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0, HPX_OK, HPX_RETRY_AFTER_MAX_S },
		{ "", 0, HPX_INVALID, 42 },
		{ "-1", 0, HPX_INVALID, 42 },
		{ "+1", 0, HPX_INVALID, 42 },
		{ "1.5", 0, HPX_INVALID, 42 },
		{ "1s", 0, HPX_INVALID, 42 },
		{ "1, 2", 0, HPX_INVALID, 42 },
		{ "soon", 0, HPX_INVALID, 42 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t got = 42;
		enum hpx_status status = hpx_retry_after_parse(hpx_span_of(rows[i].value),
							       rows[i].now_ms, &got);
		if (status != rows[i].status || got != rows[i].seconds)
			fail_msg("\"%s\": got %s %u, want %s %u", rows[i].value,
				 hpx_status_name(status), got,
				 hpx_status_name(rows[i].status), rows[i].seconds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates),
		cmocka_unit_test(two_digits_mean_the_nearest_century),
		cmocka_unit_test(dates_that_are_written_are_read),
		cmocka_unit_test(retry_after_is_seconds),
	};
	return cmocka_run_group_tests_name("retry_after", tests, NULL, NULL);
}
