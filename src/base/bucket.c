/* The bucket as one number: the moment at which it will be full again. Each
 * one taken moves that moment on by its share of a second; further than a
 * second ahead, the bucket is empty. Shares are counted in microseconds, so
 * that rates that do not divide 1000 are kept too. */
#include "base/bucket.h"

#define SECOND_US 1000000

bool hpx_bucket_take(struct hpx_bucket *bucket, unsigned per_second, int64_t now_ms,
		     int64_t *ret_wait_ms)
{
	int64_t now_us = now_ms * 1000;

	if (per_second == 0)
		return true;
	int64_t share_us = SECOND_US / per_second > 0 ? SECOND_US / per_second : 1;
	int64_t full_us = bucket->full_us > now_us ? bucket->full_us : now_us;
	int64_t over_us = full_us + share_us - (now_us + SECOND_US);
	if (over_us > 0) {
		*ret_wait_ms = (over_us + 999) / 1000;
		return false;
	}
	bucket->full_us = full_us + share_us;
	return true;
}
