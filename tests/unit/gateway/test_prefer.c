/* Shows how `Prefer: wait` is read: the first one counts, and what is no number
 * of seconds is no preference. */
#include "../test.h"

#include "gateway/steps.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void wait_is_read(void **state)
{
	static const struct {
		const char *value;
		int64_t ms; /* -1: no preference */
	} rows[] = {
		{ "wait=10", 10000 },
		{ "WAIT=10", 10000 },
		{ "respond-async, wait=3", 3000 },
		{ "respond-async,wait = 3 ", 3000 },
		{ "wait=\"7\"", 7000 },
		{ "wait=5; x=1, wait=9", 5000 },
		{ "note=\"a, wait=9\", wait=2", 2000 },
		{ "note=\"\\\", wait=9\", wait=2", 2000 },
		{ "wait=0", 0 },
		{ "wait=86400", 86400000 },
		{ "wait=86401", 86400000 },
		{ "wait=99999999999999999999999999", 86400000 },
		{ "wait", -1 },
		{ "wait=", -1 },
		{ "wait=-1", -1 },
		{ "wait=+1", -1 },
		{ "wait=1.5", -1 },
		{ "wait=x, wait=5", -1 },
		{ "waiting=5", -1 },
		{ "x; wait=5", -1 },
		{ "note=\"unended, wait=5", -1 },
		{ "\"\\", -1 },
		{ ",,;", -1 },
		{ "", -1 },
		{ NULL, -1 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t ms = -1;
		if (!hpx_prefer_wait(hpx_span_of(rows[i].value), &ms))
			ms = -1;
		if (ms != rows[i].ms)
			fail_msg("%s: got %lld ms, want %lld", rows[i].value, (long long)ms,
				 (long long)rows[i].ms);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(wait_is_read) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
