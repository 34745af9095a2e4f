/* RFC 3339, as far as a person types it. */
#include "cli/when.h"

#include <time.h>

/* Takes exactly `digits` digits, and `behind` after them (0: nothing). */
static bool take(struct hpx_span *rest, size_t digits, char behind, uint64_t most, int *ret_value)
{
	uint64_t value;

	if (rest->len < digits || !hpx_span_u64(hpx_span_first(*rest, digits), most, &value))
		return false;
	*rest = hpx_span_skip(*rest, digits);
	*ret_value = (int)value;
	if (behind == 0)
		return true;
	if (rest->len == 0 || rest->ptr[0] != behind)
		return false;
	*rest = hpx_span_skip(*rest, 1);
	return true;
}

/* ".5", ".123"; what is beyond milliseconds is cut off. */
static bool take_fraction(struct hpx_span *rest, int64_t *ret_ms)
{
	int64_t ms = 0, weight = 100;

	*ret_ms = 0;
	if (rest->len == 0 || rest->ptr[0] != '.')
		return true;
	*rest = hpx_span_skip(*rest, 1);
	size_t digits = 0;
	while (digits < rest->len && rest->ptr[digits] >= '0' && rest->ptr[digits] <= '9') {
		ms += weight * (rest->ptr[digits] - '0');
		weight /= 10;
		digits++;
	}
	*rest = hpx_span_skip(*rest, digits);
	*ret_ms = ms;
	return digits > 0;
}

/* "", "Z", "+01:00"; what it adds in seconds. */
static bool take_offset(struct hpx_span rest, int64_t *ret_offset_s)
{
	int hours, minutes;

	*ret_offset_s = 0;
	if (rest.len == 0 || hpx_span_eq(rest, HPX_SPAN("Z")))
		return true;
	bool behind = rest.ptr[0] == '-';
	if (!behind && rest.ptr[0] != '+')
		return false;
	rest = hpx_span_skip(rest, 1);
	if (!take(&rest, 2, ':', 23, &hours) || !take(&rest, 2, 0, 59, &minutes) || rest.len != 0)
		return false;
	*ret_offset_s = (behind ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
	return true;
}

bool hpx_when_parse(struct hpx_span text, int64_t *ret_wall_ms)
{
	struct tm tm = { .tm_isdst = 0 };
	int64_t offset_s = 0, fraction_ms = 0;
	int year, month, day;

	if (!take(&text, 4, '-', 9999, &year) || !take(&text, 2, '-', 12, &month) ||
	    !take(&text, 2, 0, 31, &day) || month == 0 || day == 0)
		return false;
	if (text.len > 0) {
		if (text.ptr[0] != 'T' && text.ptr[0] != ' ')
			return false;
		text = hpx_span_skip(text, 1);
		if (!take(&text, 2, ':', 23, &tm.tm_hour) || !take(&text, 2, ':', 59, &tm.tm_min) ||
		    !take(&text, 2, 0, 59, &tm.tm_sec) ||
		    !take_fraction(&text, &fraction_ms) || !take_offset(text, &offset_s))
			return false;
	}
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	time_t at = timegm(&tm);
	/* The 31st of a month with 30 days is no time. */
	if (at == (time_t)-1 || tm.tm_mday != day || tm.tm_mon != month - 1)
		return false;
	*ret_wall_ms = ((int64_t)at - offset_s) * 1000 + fraction_ms;
	return true;
}
