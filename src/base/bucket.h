/* A token bucket: so many a second, with as much at once. Pure; the caller has
 * the lock and the clock. */
#ifndef HPX_BASE_BUCKET_H
#define HPX_BASE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct hpx_bucket {
	int64_t full_us; /* when it is, or was, full; boot clock; 0 at first */
};

/* Takes one, or says when there will be one: milliseconds, at least 1. A
 * `per_second` of 0 is no bound. */
bool hpx_bucket_take(struct hpx_bucket *bucket, unsigned per_second, int64_t now_ms,
		     int64_t *ret_wait_ms);

#endif
