/* Retry-After: digits, however many, or a date. */
#include "http/retry_after.h"

#include "http/date.h"

static bool is_digits(struct hpx_span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len > 0;
}

static uint32_t bounded(int64_t seconds)
{
	if (seconds < 0)
		return 0;
	return seconds > HPX_RETRY_AFTER_MAX_S ? HPX_RETRY_AFTER_MAX_S : (uint32_t)seconds;
}

enum hpx_status hpx_retry_after_parse(struct hpx_span value, int64_t now_wall_ms,
				      uint32_t *ret_seconds)
{
	uint64_t seconds;
	int64_t date_s;

	value = hpx_span_trim(value);
	if (is_digits(value)) {
		bool fits = hpx_span_u64(value, HPX_RETRY_AFTER_MAX_S, &seconds);
		*ret_seconds = fits ? (uint32_t)seconds : HPX_RETRY_AFTER_MAX_S;
		return HPX_OK;
	}
	enum hpx_status status = hpx_date_parse(value, now_wall_ms, &date_s);
	if (status == HPX_OK)
		*ret_seconds = bounded((date_s * 1000 - now_wall_ms + 999) / 1000);
	return status;
}
