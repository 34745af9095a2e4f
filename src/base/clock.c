/* Reading the clocks and writing times for people and for HTTP. */
#include "base/clock.h"

#include <stdio.h>
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

void hpx_clock_rfc3339(int64_t wall_ms, char out[HPX_RFC3339_SIZE])
{
	struct tm tm;
	int ms;

	split(wall_ms, &tm, &ms);
	size_t n = strftime(out, HPX_RFC3339_SIZE - 6, "%Y-%m-%dT%H:%M:%S", &tm);
	if (ms != 0)
		snprintf(out + n, HPX_RFC3339_SIZE - n, ".%03dZ", ms);
	else
		snprintf(out + n, HPX_RFC3339_SIZE - n, "Z");
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
	snprintf(out, HPX_HTTP_DATE_SIZE, "%s, %02d %s %04d %02d:%02d:%02d GMT",
		 days[tm.tm_wday % 7], tm.tm_mday % 100, months[tm.tm_mon % 12],
		 (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
		 tm.tm_sec % 100);
}
