/* When to try again: exponential backoff with full jitter, what a Retry-After
 * adds to it, and a circuit breaker for one target. Time and randomness come
 * in as arguments; any clock will do if it is always the same. */
#ifndef HPX_CORE_BACKOFF_H
#define HPX_CORE_BACKOFF_H

#include <stdint.h>

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

#endif
