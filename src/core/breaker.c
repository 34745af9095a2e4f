/* The breaker's moves:
 *   closed → open         hpx_breaker_failed
 *   open → half-open      hpx_breaker_may_send
 *   half-open → open      hpx_breaker_failed
 *   half-open → closed    hpx_breaker_succeeded
 * Results of requests that were sent before it opened come late: while it is
 * open they change nothing, since only a probe shows how the target is now. */
#include "core/breaker.h"

#include "core/backoff.h"

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

/* Without jitter: one probe per target and process is no herd. */
static void open_again(struct hpx_breaker *breaker, const struct hpx_breaker_rule *rule,
		       int64_t now_ms)
{
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
