/* Shares: nothing is refused below three quarters; above, everybody gets an equal part,
 * and room is left for a newcomer. */
#include "../test.h"

#include "base/status.h"
#include "gateway/share.h"

static struct hpx_share share;

/* Takes as many of `whole` as the share allows; returns how many. */
static size_t take_all(uint64_t caller, size_t *in_use, size_t whole)
{
	size_t got = 0;

	while (*in_use < whole && hpx_share_allows(&share, caller, 1, *in_use, whole, 1)) {
		hpx_share_add(&share, caller, 1);
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
	hpx_share_remove(&share, 0x200000002, 25);
	in_use -= 25;
	/* Still above its part. */
	assert_int_equal(take_all(0x100000001, &in_use, 100), 0);
	hpx_share_remove(&share, 0x100000001, 75);
	assert_int_equal(atomic_load(&share.holders), 0);
}

/* A caller whose cell in one row is full of others is counted by the other row. */
static void a_shared_cell_is_not_held_against_anybody(void **state)
{
	size_t in_use = 80;

	(void)state;
	hpx_share_add(&share, 0x100000005, 80); /* the first row's cell 5 */
	assert_true(hpx_share_allows(&share, 0x900000005, 1, in_use, 100, 1));
	assert_false(hpx_share_allows(&share, 0x100000005, 1, in_use, 100, 1));
	hpx_share_remove(&share, 0x100000005, 80);
}

static void the_exempt_are_not_counted(void **state)
{
	size_t in_use = 0;

	(void)state;
	assert_int_equal(take_all(0, &in_use, 100), 100);
	assert_int_equal(atomic_load(&share.holders), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_caller_gets_three_quarters),
		cmocka_unit_test(a_shared_cell_is_not_held_against_anybody),
		cmocka_unit_test(the_exempt_are_not_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
