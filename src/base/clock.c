/* Reading the clocks and writing times for people and for HTTP. */
#include "base/clock.h"

#include <string.h>
#include <time.h>

static int64_t read_us(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t hpx_clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
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
