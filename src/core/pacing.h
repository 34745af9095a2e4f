/* When to send: exponential backoff with full jitter and what a Retry-After adds to it, a
 * circuit breaker for one target, and a token bucket. Time and randomness come in as
 * arguments; any clock will do if it is always the same. The caller has the lock. */
#ifndef HPX_CORE_PACING_H
#define HPX_CORE_PACING_H

#include <stdbool.h>
#include <stdint.h>

/* ---- backoff ---- */

struct hpx_backoff {
	int64_t base_ms; /* the most that the first delay can be */
	int64_t cap_ms;  /* the most that any delay can be */
};

/* A time between 0 and min(cap, base * 2^(attempt - 1)), both included, evenly
 * by `random`, of which all 64 bits are to be random. `attempt` is the number
 * of attempts already made; 0 counts as 1. Settings below zero count as 0. */
int64_t hpx_backoff_delay(const struct hpx_backoff *backoff, uint32_t attempt, uint64_t random);

/* The later of the delay and what the target asked for (below zero: nothing),
 * but never more than `max_ms`, whoever asked. */
int64_t hpx_backoff_heed(int64_t delay_ms, int64_t retry_after_ms, int64_t max_ms);

/* The sum, or the end of the scale: times that come from a row or a header
 * must not overflow. */
int64_t hpx_backoff_add(int64_t time_ms, int64_t delay_ms);

/* ---- the circuit breaker ---- */

/* A circuit breaker for one target: after so many failures in a row nothing is
 * sent for a while, then one request finds out whether the target is back.
 *
 *   closed ──failures in a row──▶ open ──its time is over──▶ half-open
 *      ▲                            ▲                          │   │
 *      │                            └────────the probe fails───┘   │
 *      └─────────────────────the probe succeeds────────────────────┘
 *
 * Failures in a row, not a share of them over a window: it needs no clock and
 * no history while all is well, one success shows that the target is there,
 * and a target that fails now and then is what each job's own backoff is for.
 *
 * A failure here is a target that could not be reached, was too slow, or said
 * 5xx or 429: an answer to one request, as a 404, is a success of the target. */
enum hpx_breaker_state { HPX_BREAKER_CLOSED,
			 HPX_BREAKER_OPEN,
			 HPX_BREAKER_HALF_OPEN };

struct hpx_breaker_rule {
	uint32_t failures_max; /* so many in a row open it; 0: it never opens */
	int64_t open_ms;       /* the first time; doubles with every failed probe */
	int64_t open_max_ms;
	int64_t probe_ms; /* a probe without result for so long is given up */
};

/* All zeros is a closed breaker. */
struct hpx_breaker {
	enum hpx_breaker_state state;
	uint32_t failures; /* in a row, while closed */
	uint32_t openings; /* in a row, without a success in between */
	int64_t until_ms;  /* open: when it ends; half-open: when the probe is given up */
};

/* Whether to send now. Ask only with a request in hand: in half-open, true is
 * said once and makes that request the probe, whose result must be told. A
 * probe that never tells (its worker died) is replaced after probe_ms. */
bool hpx_breaker_may_send(struct hpx_breaker *breaker, const struct hpx_breaker_rule *rule,
			  int64_t now_ms);
/* When it is worth asking again; the past while closed. Changes nothing. */
int64_t hpx_breaker_ready_ms(const struct hpx_breaker *breaker);

void hpx_breaker_succeeded(struct hpx_breaker *breaker);
void hpx_breaker_failed(struct hpx_breaker *breaker, const struct hpx_breaker_rule *rule,
			int64_t now_ms);

/* ---- the token bucket: so many in a time, with as many or more at once (GCRA) ---- */

struct hpx_bucket {
	int64_t full_us; /* when it is, or was, full; boot clock; 0 at first */
};

struct hpx_rate {
	uint32_t count; /* so many in a period; 0: no bound */
	uint32_t burst; /* so many at once, after a time without any */
	int64_t period_ms;
};

/* The time that one takes to come back; the rate is no 0. */
int64_t hpx_rate_share_us(const struct hpx_rate *rate);
/* Takes one, or says after how many microseconds there will be one, at least 1. */
bool hpx_rate_take(struct hpx_bucket *bucket, const struct hpx_rate *rate, int64_t now_us,
		   int64_t *ret_wait_us);

/* Takes one, or says when there will be one: milliseconds, at least 1. A
 * `per_second` of 0 is no bound. */
bool hpx_bucket_take(struct hpx_bucket *bucket, unsigned per_second, int64_t now_ms,
		     int64_t *ret_wait_ms);

#endif
