/* Reading the clocks, and times as people and HTTP write them. */
#include "base/clock.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/status.h"

static int64_t read_us(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t hpx_clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

int64_t hpx_clock_wall_ms(void)
{
	return hpx_clock_wall_us() / 1000;
}

int64_t hpx_clock_boot_us(void)
{
	return read_us(CLOCK_BOOTTIME);
}

int64_t hpx_clock_boot_ms(void)
{
	return hpx_clock_boot_us() / 1000;
}

struct hpx_now hpx_clock_now(void)
{
	return (struct hpx_now){ hpx_clock_wall_ms(), hpx_clock_boot_ms() };
}

static void split(int64_t wall_ms, struct tm *ret_tm, int *ret_ms)
{
	int64_t seconds = wall_ms / 1000;
	int64_t rest = wall_ms % 1000;

	if (rest < 0) {
		rest += 1000;
		seconds--;
	}
	time_t t = (time_t)seconds;
	if (gmtime_r(&t, ret_tm) == NULL)
		*ret_tm = (struct tm){ .tm_mday = 1, .tm_year = 70 };
	*ret_ms = (int)rest;
}

/* `width` digits of `value` and `behind`; gives the place behind them. By hand,
 * because an answer has two or three times in it. */
static char *put(char *out, int value, int width, char behind)
{
	for (int i = width - 1; i >= 0; i--) {
		out[i] = (char)('0' + value % 10);
		value /= 10;
	}
	out[width] = behind;
	return out + width + 1;
}

void hpx_clock_rfc3339(int64_t wall_ms, char out[HPX_RFC3339_SIZE])
{
	struct tm tm;
	int ms;

	split(wall_ms, &tm, &ms);
	out = put(out, (tm.tm_year + 1900) % 10000, 4, '-');
	out = put(out, tm.tm_mon + 1, 2, '-');
	out = put(out, tm.tm_mday, 2, 'T');
	out = put(out, tm.tm_hour, 2, ':');
	out = put(out, tm.tm_min, 2, ':');
	out = put(out, tm.tm_sec, 2, ms != 0 ? '.' : 'Z');
	if (ms != 0)
		out = put(out, ms, 3, 'Z');
	*out = '\0';
}

void hpx_clock_http_date(int64_t wall_ms, char out[HPX_HTTP_DATE_SIZE])
{
	/* Not strftime's names: those follow the locale. */
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct tm tm;
	int ms;

	split(wall_ms, &tm, &ms);
	memcpy(out, days[tm.tm_wday % 7], 3);
	memcpy(out + 3, ", ", 2);
	put(out + 5, tm.tm_mday, 2, ' ');
	memcpy(out + 8, months[tm.tm_mon % 12], 3);
	out[11] = ' ';
	out = put(out + 12, (tm.tm_year + 1900) % 10000, 4, ' ');
	out = put(out, tm.tm_hour, 2, ':');
	out = put(out, tm.tm_min, 2, ':');
	out = put(out, tm.tm_sec, 2, ' ');
	memcpy(out, "GMT", 4);
}

/* ---- reading ---- */

/* Takes exactly `digits` digits and the character `behind` them (0: none). */
static bool take_number(struct hpx_span *rest, size_t digits, char behind, uint64_t most,
			int *ret_value)
{
	uint64_t value;

	HPX_ASSERT(most <= INT_MAX);
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

/* ".5", ".123"; digits beyond milliseconds are dropped. */
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

/* "", "Z" or "+01:00", in seconds. */
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
	if (!take_number(&rest, 2, ':', 23, &hours) || !take_number(&rest, 2, 0, 59, &minutes) ||
	    rest.len != 0)
		return false;
	*ret_offset_s = (behind ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
	return true;
}

bool hpx_clock_parse_rfc3339(struct hpx_span text, int64_t *ret_wall_ms)
{
	struct tm tm = { .tm_isdst = 0 };
	int64_t offset_s = 0, fraction_ms = 0;
	int year, month, day;

	if (!take_number(&text, 4, '-', 9999, &year) || !take_number(&text, 2, '-', 12, &month) ||
	    !take_number(&text, 2, 0, 31, &day) || month == 0 || day == 0)
		return false;
	if (text.len > 0) {
		if (text.ptr[0] != 'T' && text.ptr[0] != ' ')
			return false;
		text = hpx_span_skip(text, 1);
		if (!take_number(&text, 2, ':', 23, &tm.tm_hour) ||
		    !take_number(&text, 2, ':', 59, &tm.tm_min) ||
		    !take_number(&text, 2, 0, 59, &tm.tm_sec) ||
		    !take_fraction(&text, &fraction_ms) || !take_offset(text, &offset_s))
			return false;
	}
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	time_t at = timegm(&tm);
	/* timegm moves the 31st of a month with 30 days to the next one. */
	if (at == (time_t)-1 || tm.tm_mday != day || tm.tm_mon != month - 1)
		return false;
	*ret_wall_ms = ((int64_t)at - offset_s) * 1000 + fraction_ms;
	return true;
}
