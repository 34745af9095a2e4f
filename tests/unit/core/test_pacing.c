/* Shows how long a delay can be at every attempt, that all of its range is
 * used evenly, what Retry-After changes, and each move of the breaker. */
#include "../test.h"

#include "core/pacing.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void delays(void **state)
{
	static const struct {
		int64_t base_ms, cap_ms;
		uint32_t attempt;
		uint64_t random;
		int64_t want;
	} rows[] = {
		/* The whole range, from nothing to the ceiling. */
		{ 1000, 60000, 1, 0, 0 },
		{ 1000, 60000, 1, UINT64_MAX, 1000 },
		{ 1000, 60000, 1, UINT64_MAX / 2, 500 },
		/* It doubles. */
		{ 1000, 60000, 2, UINT64_MAX, 2000 },
		{ 1000, 60000, 3, UINT64_MAX, 4000 },
		{ 1000, 60000, 6, UINT64_MAX, 32000 },
		{ 1000, 60000, 3, UINT64_MAX / 4, 1000 },
		/* Up to the cap, and for ever. */
		{ 1000, 60000, 7, UINT64_MAX, 60000 },
		{ 1000, 60000, 63, UINT64_MAX, 60000 },
		{ 1000, 60000, 64, UINT64_MAX, 60000 },
		{ 1000, 60000, 65, UINT64_MAX, 60000 },
		{ 1000, 60000, UINT32_MAX, UINT64_MAX, 60000 },
		{ 1000, 64000, 7, UINT64_MAX, 64000 },
		{ 1000, 63999, 7, UINT64_MAX, 63999 },
		{ 1000, 60000, UINT32_MAX, 0, 0 },
		{ 1, INT64_MAX, 63, UINT64_MAX, (int64_t)1 << 62 },
		{ 1, INT64_MAX, 64, UINT64_MAX, INT64_MAX },
		{ INT64_MAX, INT64_MAX, 1, UINT64_MAX, INT64_MAX },
		{ INT64_MAX, INT64_MAX, 2, UINT64_MAX, INT64_MAX },
		/* Settings that leave nothing. */
		{ 1000, 60000, 0, UINT64_MAX, 1000 },
		{ 5000, 1000, 1, UINT64_MAX, 1000 },
		{ 0, 60000, 5, UINT64_MAX, 0 },
		{ 0, 60000, UINT32_MAX, UINT64_MAX, 0 },
		{ 1000, 0, 5, UINT64_MAX, 0 },
		{ -1, 60000, 5, UINT64_MAX, 0 },
		{ 1000, -1, 5, UINT64_MAX, 0 },
		{ INT64_MIN, INT64_MIN, 9, UINT64_MAX, 0 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_backoff backoff = { rows[i].base_ms, rows[i].cap_ms };
		int64_t got = hpx_backoff_delay(&backoff, rows[i].attempt, rows[i].random);
		if (got != rows[i].want)
			fail_msg("row %zu: got %lld, want %lld", i, (long long)got,
				 (long long)rows[i].want);
	}
}

/* Cut into as many equal parts as there are delays, each part gives its own. */
static void every_delay_is_as_likely(void **state)
{
	const struct hpx_backoff backoff = { 9, 9 };
	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t part = UINT64_MAX / 10;
		assert_int_equal(hpx_backoff_delay(&backoff, 1, part * i + 10), i);
		assert_int_equal(hpx_backoff_delay(&backoff, 1, part * (i + 1) - 10), i);
	}
}

static void retry_after_is_heeded(void **state)
{
	static const struct {
		int64_t delay_ms, retry_after_ms, max_ms, want;
	} rows[] = {
		{ 500, -1, 60000, 500 },
		{ 500, 0, 60000, 500 },
		{ 500, 499, 60000, 500 },
		{ 500, 501, 60000, 501 },
		{ 500, 60000, 60000, 60000 },
		{ 500, 60001, 60000, 60000 },
		{ 70000, -1, 60000, 60000 },
		{ 0, INT64_MAX, 60000, 60000 },
		{ 0, -1, 60000, 0 },
		{ 5, 7, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(hpx_backoff_heed(rows[i].delay_ms, rows[i].retry_after_ms,
						  rows[i].max_ms),
				 rows[i].want);
}

static void sums_stop_at_the_ends(void **state)
{
	(void)state;
	assert_int_equal(hpx_backoff_add(1, 2), 3);
	assert_int_equal(hpx_backoff_add(1, -2), -1);
	assert_int_equal(hpx_backoff_add(INT64_MAX - 1, 1), INT64_MAX);
	assert_int_equal(hpx_backoff_add(INT64_MAX, 1), INT64_MAX);
	assert_int_equal(hpx_backoff_add(INT64_MIN, -1), INT64_MIN);
}

#define C HPX_BREAKER_CLOSED
#define O HPX_BREAKER_OPEN
#define H HPX_BREAKER_HALF_OPEN

/* What happens at which time: 's'ucceeded, 'f'ailed, or asked and told 'y'es
 * or 'n'o; the state after it, and from when on asking is worth it. */
struct event {
	char what;
	int64_t now_ms;
	enum hpx_breaker_state state;
	int64_t ready_ms;
};

static const struct hpx_breaker_rule rule = { .failures_max = 3, .open_ms = 100, .open_max_ms = 350, .probe_ms = 50 };

static const char *const state_names[] = { [C] = "closed", [O] = "open", [H] = "half-open" };

static void play(struct hpx_breaker *breaker, const struct hpx_breaker_rule *by,
		 const struct event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct event *event = &events[i];

		if (event->what == 's')
			hpx_breaker_succeeded(breaker);
		else if (event->what == 'f')
			hpx_breaker_failed(breaker, by, event->now_ms);
		else if (hpx_breaker_may_send(breaker, by, event->now_ms) != (event->what == 'y'))
			fail_msg("event %zu: want '%c'", i, event->what);
		if (breaker->state != event->state)
			fail_msg("event %zu: got %s, want %s", i, state_names[breaker->state],
				 state_names[event->state]);
		int64_t ready = hpx_breaker_ready_ms(breaker);
		int64_t want = event->state == C ? INT64_MIN : event->ready_ms;
		if (ready != want)
			fail_msg("event %zu: ready at %lld, want %lld", i, (long long)ready,
				 (long long)want);
	}
}

static void opens_after_failures_in_a_row(void **state)
{
	static const struct event events[] = {
		{ 'y', 0, C, 0 },
		{ 'f', 1, C, 0 },
		{ 'f', 2, C, 0 },
		{ 's', 3, C, 0 },
		/* A success starts the count anew. */
		{ 'f', 4, C, 0 },
		{ 'f', 5, C, 0 },
		{ 'y', 5, C, 0 },
		{ 'f', 10, O, 110 },
		{ 'n', 10, O, 110 },
		{ 'n', 109, O, 110 },
		/* What was sent before it opened changes nothing. */
		{ 's', 20, O, 110 },
		{ 'f', 30, O, 110 },
		{ 'n', 109, O, 110 },
		/* One probe, and nobody beside it. */
		{ 'y', 110, H, 160 },
		{ 'n', 110, H, 160 },
		{ 'n', 159, H, 160 },
		{ 's', 159, C, 0 },
		{ 'y', 159, C, 0 },
		{ 'y', 159, C, 0 },
		/* All is forgotten: three failures again, the first time again. */
		{ 'f', 160, C, 0 },
		{ 'f', 160, C, 0 },
		{ 'f', 160, O, 260 },
	};
	struct hpx_breaker breaker = { 0 };
	(void)state;
	play(&breaker, &rule, events, COUNT(events));
}

static void stays_open_for_longer_and_longer(void **state)
{
	static const struct event events[] = {
		{ 'f', 0, C, 0 },
		{ 'f', 0, C, 0 },
		{ 'f', 0, O, 100 },
		{ 'y', 100, H, 150 },
		{ 'f', 120, O, 320 },
		{ 'n', 319, O, 320 },
		{ 'y', 320, H, 370 },
		{ 'f', 330, O, 680 },
		{ 'y', 1000, H, 1050 },
		{ 'f', 1000, O, 1350 },
	};
	struct hpx_breaker breaker = { 0 };
	(void)state;
	play(&breaker, &rule, events, COUNT(events));
	breaker.openings = UINT32_MAX;
	static const struct event at_the_end[] = { { 'y', 1350, H, 1400 }, { 'f', 1400, O, 1750 } };
	play(&breaker, &rule, at_the_end, COUNT(at_the_end));
}

static void a_probe_that_never_tells_is_replaced(void **state)
{
	static const struct event events[] = {
		{ 'f', 0, C, 0 },
		{ 'f', 0, C, 0 },
		{ 'f', 0, O, 100 },
		{ 'y', 100, H, 150 },
		{ 'n', 149, H, 150 },
		{ 'y', 150, H, 200 },
		{ 'n', 150, H, 200 },
	};
	struct hpx_breaker breaker = { 0 };
	(void)state;
	play(&breaker, &rule, events, COUNT(events));
}

static void odd_rules(void **state)
{
	static const struct hpx_breaker_rule never = { .failures_max = 0, .open_ms = 100, .open_max_ms = 100, .probe_ms = 50 };
	static const struct hpx_breaker_rule at_once = { .failures_max = 1, .open_ms = 100, .open_max_ms = 100, .probe_ms = 50 };
	static const struct event never_opens[] = { { 'f', 0, C, 0 }, { 'f', 0, C, 0 }, { 'y', 0, C, 0 } };
	static const struct event opens[] = { { 'f', INT64_MAX - 5, O, INT64_MAX },
					      { 'n', INT64_MAX - 1, O, INT64_MAX },
					      { 'y', INT64_MAX, H, INT64_MAX } };
	struct hpx_breaker breaker = { .failures = UINT32_MAX };
	(void)state;
	play(&breaker, &never, never_opens, COUNT(never_opens));
	assert_int_equal(breaker.failures, UINT32_MAX);
	breaker = (struct hpx_breaker){ 0 };
	play(&breaker, &at_once, opens, COUNT(opens));
}

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
		cmocka_unit_test(delays),
		cmocka_unit_test(every_delay_is_as_likely),
		cmocka_unit_test(retry_after_is_heeded),
		cmocka_unit_test(sums_stop_at_the_ends),
		cmocka_unit_test(opens_after_failures_in_a_row),
		cmocka_unit_test(stays_open_for_longer_and_longer),
		cmocka_unit_test(a_probe_that_never_tells_is_replaced),
		cmocka_unit_test(odd_rules),
		cmocka_unit_test(a_full_bucket_gives_a_second),
		cmocka_unit_test(the_time_it_tells_is_true),
		cmocka_unit_test(the_rate_holds_over_time),
		cmocka_unit_test(no_rate_is_no_bound),
	};
	return cmocka_run_group_tests_name("pacing", tests, NULL, NULL);
}
