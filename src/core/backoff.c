/* Delays, in numbers that stop at their ends instead of wrapping. */
#include "core/backoff.h"

static int64_t ceiling(const struct hpx_backoff *backoff, uint32_t attempt)
{
	int64_t base = backoff->base_ms > 0 ? backoff->base_ms : 0;
	int64_t cap = backoff->cap_ms > 0 ? backoff->cap_ms : 0;
	uint32_t doublings = attempt > 0 ? attempt - 1 : 0;

	/* base * 2^doublings > cap, without a number that large. */
	if (base > 0 && (doublings >= 63 || base > cap >> doublings))
		return cap;
	return base << (doublings < 63 ? doublings : 0);
}

int64_t hpx_backoff_delay(const struct hpx_backoff *backoff, uint32_t attempt, uint64_t random)
{
	uint64_t choices = (uint64_t)ceiling(backoff, attempt) + 1;

	/* The upper half of the product: evenly spread, unlike a remainder. */
	return (int64_t)(uint64_t)(((unsigned __int128)random * choices) >> 64);
}

int64_t hpx_backoff_heed(int64_t delay_ms, int64_t retry_after_ms, int64_t max_ms)
{
	int64_t later = retry_after_ms > delay_ms ? retry_after_ms : delay_ms;

	return later < max_ms ? later : max_ms;
}

int64_t hpx_backoff_add(int64_t time_ms, int64_t delay_ms)
{
	int64_t sum;

	if (__builtin_add_overflow(time_ms, delay_ms, &sum))
		return delay_ms < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}
