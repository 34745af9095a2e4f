/* Shows that a bucket lets through as many at once as it lets through in a
 * second, then its rate, and says truly when the next one may come. */
#include "../test.h"

#include "base/bucket.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const unsigned rates[] = { 1, 3, 7, 100, 1000 };

/* How many pass, all at this moment. */
static unsigned take_all(struct hpx_bucket *bucket, unsigned per_second, int64_t now_ms,
			 int64_t *ret_wait_ms)
{
	unsigned count = 0;

	while (count < 100000 && hpx_bucket_take(bucket, per_second, now_ms, ret_wait_ms))
		count++;
	return count;
}

static void a_full_bucket_gives_a_second(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++) {
		struct hpx_bucket bucket = { 0 };
		int64_t wait_ms = 0;
		unsigned got = take_all(&bucket, rates[i], 5000, &wait_ms);
		if (got != rates[i])
			fail_msg("rate %u: got %u at once", rates[i], got);
		/* Long idle: full again, and no fuller. */
		got = take_all(&bucket, rates[i], 100000, &wait_ms);
		if (got != rates[i])
			fail_msg("rate %u: got %u after a rest", rates[i], got);
	}
}

static void the_time_it_tells_is_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++) {
		struct hpx_bucket bucket = { 0 };
		int64_t now_ms = 777, wait_ms = 0, unused;
		take_all(&bucket, rates[i], now_ms, &wait_ms);
		if (wait_ms < 1 || wait_ms > 1000)
			fail_msg("rate %u: told to wait %lld ms", rates[i], (long long)wait_ms);
		if (wait_ms > 1 && hpx_bucket_take(&bucket, rates[i], now_ms + wait_ms - 1, &unused))
			fail_msg("rate %u: one passed before %lld ms", rates[i], (long long)wait_ms);
		if (!hpx_bucket_take(&bucket, rates[i], now_ms + wait_ms, &unused))
			fail_msg("rate %u: none passed after %lld ms", rates[i], (long long)wait_ms);
	}
}

static void the_rate_holds_over_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++) {
		struct hpx_bucket bucket = { 0 };
		unsigned passed = 0;
		int64_t wait_ms;
		for (int64_t ms = 1; ms <= 10000; ms++)
			passed += take_all(&bucket, rates[i], ms, &wait_ms);
		/* The full bucket, and ten seconds' worth. */
		if (passed < 10 * rates[i] || passed > 11 * rates[i] + 1)
			fail_msg("rate %u: %u passed in ten seconds", rates[i], passed);
	}
}

static void no_rate_is_no_bound(void **state)
{
	struct hpx_bucket bucket = { 0 };
	int64_t wait_ms;

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_true(hpx_bucket_take(&bucket, 0, 1, &wait_ms));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_bucket_gives_a_second),
		cmocka_unit_test(the_time_it_tells_is_true),
		cmocka_unit_test(the_rate_holds_over_time),
		cmocka_unit_test(no_rate_is_no_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
