/* Shares: nothing is refused below three quarters; above, everybody gets an equal part,
 * and room is left for a newcomer. */
#include "../test.h"

#include <pthread.h>

#include "base/status.h"
#include "gateway/share.h"

static struct hpx_shares shares;
static struct hpx_share *const peers = &shares.peers;

/* Takes as many of `whole` as the share allows; returns how many. */
static size_t take_all(uint64_t caller, size_t *in_use, size_t whole)
{
	size_t got = 0;

	while (*in_use < whole && hpx_share_allows_peer(&shares, caller, 1, &(struct hpx_scarce){ *in_use, whole, 1 })) {
		hpx_share_add(peers, caller, 1);
		++*in_use;
		got++;
	}
	return got;
}

static void a_lone_caller_gets_three_quarters(void **state)
{
	size_t in_use = 0;

	(void)state;
	assert_int_equal(take_all(0x100000001, &in_use, 100), 75);
	assert_int_equal(take_all(0x200000002, &in_use, 100), 25);
	hpx_share_remove(peers, 0x200000002, 25);
	in_use -= 25;
	/* Still above its part. */
	assert_int_equal(take_all(0x100000001, &in_use, 100), 0);
	hpx_share_remove(peers, 0x100000001, 75);
	assert_int_equal(atomic_load(&peers->holders), 0);
}

/* A caller whose cell in one row is full of others is counted by the other row. */
static void a_shared_cell_is_not_held_against_anybody(void **state)
{
	const struct hpx_scarce scarce = { .in_use = 80, .whole = 100, .least = 1 };

	(void)state;
	hpx_share_add(peers, 0x100000005, 80); /* the first row's cell 5 */
	assert_true(hpx_share_allows_peer(&shares, 0x900000005, 1, &scarce));
	assert_false(hpx_share_allows_peer(&shares, 0x100000005, 1, &scarce));
	hpx_share_remove(peers, 0x100000005, 80);
}

/* One address that invents forty tenants does not make a tenant's part smaller. */
static void invented_tenants_take_nothing_from_others(void **state)
{
	const struct hpx_scarce scarce = { .in_use = 80, .whole = 100, .least = 1 };
	uint64_t attacker = 0x100000001;
	uint64_t honest = 0x200000002;

	(void)state;
	hpx_share_add(peers, attacker, 80);
	for (uint64_t i = 1; i <= 40; i++)
		hpx_share_add(&shares.tenants, 0x500000005 * i, 2);
	assert_true(hpx_share_allows_peer(&shares, honest, 20, &scarce));
	assert_true(hpx_share_allows_tenant(&shares, honest, 20, &scarce));
	assert_false(hpx_share_allows_tenant(&shares, honest, 60, &scarce));
	for (uint64_t i = 1; i <= 40; i++)
		hpx_share_remove(&shares.tenants, 0x500000005 * i, 2);
	hpx_share_remove(peers, attacker, 80);
}

/* One tenant from forty addresses gets a tenant's part, not forty. */
static void a_tenant_of_many_addresses_gets_one_part(void **state)
{
	const struct hpx_scarce scarce = { .in_use = 80, .whole = 100, .least = 1 };
	uint64_t tenant = 0x100000001;

	(void)state;
	for (uint64_t i = 1; i <= 40; i++)
		hpx_share_add(peers, 0x500000005 * i, 2);
	hpx_share_add(&shares.tenants, tenant, 80);
	assert_false(hpx_share_allows_tenant(&shares, tenant, 1, &scarce));
	assert_true(hpx_share_allows_tenant(&shares, 0x200000002, 20, &scarce));
	hpx_share_remove(&shares.tenants, tenant, 80);
	for (uint64_t i = 1; i <= 40; i++)
		hpx_share_remove(peers, 0x500000005 * i, 2);
}

static void the_exempt_are_not_counted(void **state)
{
	size_t in_use = 0;

	(void)state;
	assert_int_equal(take_all(0, &in_use, 100), 100);
	assert_int_equal(atomic_load(&peers->holders), 0);
}

#define THREADS 8
#define ROUNDS 20000

static atomic_size_t too_many; /* holders that were seen, where there cannot be so many */

/* Takes and gives back, for a caller of its own, one that all threads are, and one that
 * shares its first cell with that. */
static void *hold_and_leave(void *own)
{
	const uint64_t callers[] = { (uint64_t)(uintptr_t)own, 0x700000007, 0x800000007 };
	const struct hpx_scarce scarce = { .in_use = 90, .whole = 100, .least = 1 };

	for (size_t i = 0; i < ROUNDS; i++) {
		uint64_t caller = callers[i % 3];
		(void)hpx_share_allows_peer(&shares, caller, 1, &scarce);
		hpx_share_add(peers, caller, i % 5 + 1);
		size_t holders = atomic_load(&peers->holders);
		if (holders > THREADS + 1)
			atomic_store(&too_many, holders);
		hpx_share_remove(peers, caller, i % 5 + 1);
	}
	return NULL;
}

/* Whatever the threads do at once, in the end nobody holds anything, and meanwhile nobody is
 * counted who does not. */
static void many_threads_hold_and_leave(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hold_and_leave,
						(void *)(0x100000001 * (100 + i))),
				 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&too_many), 0);
	assert_int_equal(atomic_load(&peers->holders), 0);
	for (size_t i = 0; i < HPX_SHARE_CELLS; i++) {
		assert_int_equal(atomic_load(&peers->rows[0][i]), 0);
		assert_int_equal(atomic_load(&peers->rows[1][i]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_caller_gets_three_quarters),
		cmocka_unit_test(a_shared_cell_is_not_held_against_anybody),
		cmocka_unit_test(invented_tenants_take_nothing_from_others),
		cmocka_unit_test(a_tenant_of_many_addresses_gets_one_part),
		cmocka_unit_test(the_exempt_are_not_counted),
		cmocka_unit_test(many_threads_hold_and_leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
