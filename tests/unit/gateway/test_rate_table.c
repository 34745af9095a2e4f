/* The table of budgets: every caller has its own, whoever else comes, and nobody gets a
 * fresh one by filling the table. */
#include "../test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/status.h"
#include "gateway/rate_table.h"

static const struct hpx_rate ten = { .count = 10, .burst = 10, .period_ms = 1000 };

static unsigned take_all(struct hpx_rate_table *table, uint64_t caller, int64_t now_us)
{
	unsigned count = 0;
	int64_t wait_us;

	while (count < 1000 && hpx_rate_table_take(table, caller, &ten, now_us, &wait_us))
		count++;
	return count;
}

/* A burst at once, then one in each tenth of a second; another caller is untouched. */
static void every_caller_has_its_own_budget(void **state)
{
	struct hpx_rate_table *table = hpx_rate_table_new();
	int64_t wait_us = 0;

	(void)state;
	assert_int_equal(take_all(table, 1, 5000000), 10);
	assert_false(hpx_rate_table_take(table, 1, &ten, 5000000, &wait_us));
	assert_int_equal(wait_us, 100000);
	assert_int_equal(take_all(table, 2, 5000000), 10);
	assert_int_equal(take_all(table, 1, 5000000 + 250000), 2);
	assert_int_equal(take_all(table, 1, 5000000 + 10000000), 10);
	hpx_rate_table_give_back(table, 1, &ten);
	assert_int_equal(take_all(table, 1, 5000000 + 10000000), 1);
	hpx_rate_table_free(table);
}

/* A million other callers come in between, one request each, faster than their cells
 * become free. The greedy one never gets more than its burst and what came back. */
static void a_greedy_caller_gets_no_fresh_budget(void **state)
{
	struct hpx_rate_table *table = hpx_rate_table_new();
	struct hpx_caller_seed seed;
	int64_t now_us = 1000000, wait_us;
	unsigned got = 0;

	(void)state;
	hpx_caller_seed_init(&seed);
	for (uint64_t i = 0; i < 1000000; i++, now_us++) {
		uint64_t other = hpx_caller_hash(&seed, hpx_span((const char *)&i, sizeof(i)));
		(void)hpx_rate_table_take(table, other, &ten, now_us, &wait_us);
		got += hpx_rate_table_take(table, 77, &ten, now_us, &wait_us);
	}
	/* One second: its burst, and ten that came back. */
	assert_in_range(got, 1, 20);
	hpx_rate_table_free(table);
}

/* Within its rate nobody is refused, however many there are at a time that a table of
 * this size is for. */
static void honest_callers_are_not_refused(void **state)
{
	struct hpx_rate_table *table = hpx_rate_table_new();
	struct hpx_caller_seed seed;
	int64_t wait_us;
	unsigned refused = 0;

	(void)state;
	hpx_caller_seed_init(&seed);
	/* 10,000 callers, each five requests a second, for two seconds. */
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t number = i % 10000;
		uint64_t caller = hpx_caller_hash(&seed, hpx_span((const char *)&number, sizeof(number)));
		refused += !hpx_rate_table_take(table, caller, &ten, 1000000 + (int64_t)i * 20, &wait_us);
	}
	assert_int_equal(refused, 0);
	hpx_rate_table_free(table);
}

/* Names that differ in one bit, in their length or in zeros at the end are others. */
static void hashes_tell_names_apart(void **state)
{
	struct hpx_caller_seed seed, other;

	(void)state;
	hpx_caller_seed_init(&seed);
	hpx_caller_seed_init(&other);
	assert_true(hpx_caller_hash(&seed, HPX_SPAN("a")) != hpx_caller_hash(&seed, HPX_SPAN("b")));
	assert_true(hpx_caller_hash(&seed, hpx_span("a\0", 2)) != hpx_caller_hash(&seed, HPX_SPAN("a")));
	assert_true(hpx_caller_hash(&seed, HPX_SPAN("")) != 0);
	assert_true(hpx_caller_hash(&seed, HPX_SPAN("a")) != hpx_caller_hash(&other, HPX_SPAN("a")));
}

#define THREADS 8
#define ROUNDS 20000
#define SHARED 7

static const struct hpx_rate many = { .count = 1000, .burst = 1000, .period_ms = 1000 };

struct crowd {
	struct hpx_rate_table *table;
	_Atomic unsigned kept;    /* of the shared caller's budget */
	_Atomic uint64_t another; /* callers that come once */
};

/* Takes from the budget that all threads share, and gives two of three back; in between
 * other callers come once, in every row. Time stands still. */
static void *take_and_give_back(void *user)
{
	struct crowd *crowd = user;
	int64_t wait_us;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t once = atomic_fetch_add(&crowd->another, 1);
		if (hpx_rate_table_take(crowd->table, once << 32 | (once % 5 + 8), &ten, 1000000, &wait_us))
			hpx_rate_table_give_back(crowd->table, once << 32 | (once % 5 + 8), &ten);
		if (!hpx_rate_table_take(crowd->table, SHARED, &many, 1000000, &wait_us))
			continue;
		if (i % 3 != 0)
			hpx_rate_table_give_back(crowd->table, SHARED, &many);
		else
			atomic_fetch_add(&crowd->kept, 1);
	}
	return NULL;
}

/* However many take at once, a budget is handed out once. */
static void many_threads_share_a_budget(void **state)
{
	struct crowd crowd = { .table = hpx_rate_table_new(), .another = 1 };
	pthread_t threads[THREADS];
	int64_t wait_us;

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, &crowd), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	unsigned left = 0;
	while (hpx_rate_table_take(crowd.table, SHARED, &many, 1000000, &wait_us))
		left++;
	assert_int_equal(atomic_load(&crowd.kept) + left, 1000);
	hpx_rate_table_free(crowd.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_caller_has_its_own_budget),
		cmocka_unit_test(a_greedy_caller_gets_no_fresh_budget),
		cmocka_unit_test(honest_callers_are_not_refused),
		cmocka_unit_test(hashes_tell_names_apart),
		cmocka_unit_test(many_threads_share_a_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
