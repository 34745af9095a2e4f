/* Delays, in numbers that stop at their ends instead of wrapping.
 *
 * The breaker's moves:
 *   closed → open         hpx_breaker_failed
 *   open → half-open      hpx_breaker_may_send
 *   half-open → open      hpx_breaker_failed
 *   half-open → closed    hpx_breaker_succeeded
 * Results of requests that were sent before it opened come late: while it is
 * open they change nothing, since only a probe shows how the target is now. 
 *
 * The bucket is one number: the moment at which it will be full again. Each one taken
 * moves that moment on by its share of the period; further ahead than a burst takes, the
 * bucket is empty. Shares are counted in microseconds, so that rates that do not divide 1000 are
 * kept too. */
#include "core/pacing.h"

#include "base/status.h"

#define SECOND_US 1000000

/* ---- backoff ---- */

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
	int64_t most = ceiling(backoff, attempt);
	uint64_t choices = (uint64_t)most + 1;

	/* The upper half of the product: evenly spread, unlike a remainder. */
	int64_t delay = (int64_t)(uint64_t)(((unsigned __int128)random * choices) >> 64);
	HPX_ASSERT(delay >= 0 && delay <= most);
	return delay;
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

/* ---- the circuit breaker ---- */

bool hpx_breaker_may_send(struct hpx_breaker *breaker, const struct hpx_breaker_rule *rule,
			  int64_t now_ms)
{
	if (breaker->state == HPX_BREAKER_CLOSED)
		return true;
	if (now_ms < breaker->until_ms)
		return false;
	breaker->state = HPX_BREAKER_HALF_OPEN;
	breaker->until_ms = hpx_backoff_add(now_ms, rule->probe_ms);
	return true;
}

int64_t hpx_breaker_ready_ms(const struct hpx_breaker *breaker)
{
	return breaker->state == HPX_BREAKER_CLOSED ? INT64_MIN : breaker->until_ms;
}

void hpx_breaker_succeeded(struct hpx_breaker *breaker)
{
	if (breaker->state != HPX_BREAKER_OPEN)
		*breaker = (struct hpx_breaker){ .state = HPX_BREAKER_CLOSED };
}

/* Without jitter: only one probe per target and process is sent. */
static void open_again(struct hpx_breaker *breaker, const struct hpx_breaker_rule *rule,
		       int64_t now_ms)
{
	HPX_ASSERT(breaker->state != HPX_BREAKER_OPEN);
	uint32_t openings = breaker->openings < UINT32_MAX ? breaker->openings + 1 : UINT32_MAX;
	const struct hpx_backoff growth = { rule->open_ms, rule->open_max_ms };
	int64_t open_ms = hpx_backoff_delay(&growth, openings, UINT64_MAX);

	*breaker = (struct hpx_breaker){ .state = HPX_BREAKER_OPEN, .openings = openings, .until_ms = hpx_backoff_add(now_ms, open_ms) };
}

void hpx_breaker_failed(struct hpx_breaker *breaker, const struct hpx_breaker_rule *rule,
			int64_t now_ms)
{
	switch (breaker->state) {
	case HPX_BREAKER_CLOSED:
		if (breaker->failures < UINT32_MAX)
			breaker->failures++;
		if (rule->failures_max > 0 && breaker->failures >= rule->failures_max)
			open_again(breaker, rule, now_ms);
		break;
	case HPX_BREAKER_HALF_OPEN:
		open_again(breaker, rule, now_ms);
		break;
	case HPX_BREAKER_OPEN:
		break;
	}
}

/* ---- the token bucket ---- */

int64_t hpx_rate_share_us(const struct hpx_rate *rate)
{
	int64_t share_us = rate->period_ms * 1000 / rate->count;

	HPX_ASSERT(rate->count > 0);
	return share_us > 0 ? share_us : 1;
}

bool hpx_rate_take(struct hpx_bucket *bucket, const struct hpx_rate *rate, int64_t now_us,
		   int64_t *ret_wait_us)
{
	int64_t share_us = hpx_rate_share_us(rate);
	int64_t full_us = bucket->full_us > now_us ? bucket->full_us : now_us;
	int64_t over_us = full_us + share_us - (now_us + share_us * rate->burst);

	if (over_us > 0) {
		*ret_wait_us = over_us;
		return false;
	}
	bucket->full_us = full_us + share_us;
	return true;
}

bool hpx_bucket_take(struct hpx_bucket *bucket, unsigned per_second, int64_t now_ms,
		     int64_t *ret_wait_ms)
{
	const struct hpx_rate rate = { .count = per_second,
				       .burst = per_second < SECOND_US ? per_second : SECOND_US,
				       .period_ms = 1000 };
	int64_t wait_us;

	if (per_second == 0 || hpx_rate_take(bucket, &rate, now_ms * 1000, &wait_us))
		return true;
	*ret_wait_ms = (wait_us + 999) / 1000;
	return false;
}
