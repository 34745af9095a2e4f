/* Retry-After: digits, however many, or a date (RFC 9110 §5.6.7). Dates are read by a
 * cursor that takes fixed pieces and remembers a mismatch. Not by strptime, which follows
 * the locale and takes more than the grammar. */
#include "http/retry_after.h"

#include "base/status.h"

struct date_cursor {
	struct hpx_span rest;
	bool failed;
};

struct http_date {
	int64_t year;
	int64_t month; /* 1 to 12 */
	int64_t day;
	int64_t hour;
	int64_t minute;
	int64_t second;
};

static const char month_names[][10] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
					"Aug", "Sep", "Oct", "Nov", "Dec", "" };
static const char day_names[][10] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "" };
static const char long_day_names[][10] = { "Sunday", "Monday", "Tuesday", "Wednesday",
					   "Thursday", "Friday", "Saturday", "" };

static void take_text(struct date_cursor *cursor, const char *text)
{
	struct hpx_span want = hpx_span_of(text);

	if (cursor->failed || !hpx_span_starts(cursor->rest, want))
		cursor->failed = true;
	else
		cursor->rest = hpx_span_skip(cursor->rest, want.len);
}

static int64_t take_digits(struct date_cursor *cursor, size_t count)
{
	uint64_t value = 0;

	if (cursor->failed || cursor->rest.len < count ||
	    !hpx_span_u64(hpx_span_first(cursor->rest, count), 9999, &value))
		cursor->failed = true;
	else
		cursor->rest = hpx_span_skip(cursor->rest, count);
	return (int64_t)value;
}

/* The place of the name in the list (which ends with ""), from 1. */
static int64_t take_name(struct date_cursor *cursor, const char names[][10])
{
	for (int64_t i = 0; names[i][0] != '\0' && !cursor->failed; i++) {
		struct hpx_span name = hpx_span_of(names[i]);
		if (hpx_span_starts(cursor->rest, name)) {
			cursor->rest = hpx_span_skip(cursor->rest, name.len);
			return i + 1;
		}
	}
	cursor->failed = true;
	return 0;
}

static void take_time(struct date_cursor *cursor, struct http_date *date)
{
	date->hour = take_digits(cursor, 2);
	take_text(cursor, ":");
	date->minute = take_digits(cursor, 2);
	take_text(cursor, ":");
	date->second = take_digits(cursor, 2);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool read_fixdate(struct date_cursor cursor, struct http_date *date)
{
	take_name(&cursor, day_names);
	take_text(&cursor, ", ");
	date->day = take_digits(&cursor, 2);
	take_text(&cursor, " ");
	date->month = take_name(&cursor, month_names);
	take_text(&cursor, " ");
	date->year = take_digits(&cursor, 4);
	take_text(&cursor, " ");
	take_time(&cursor, date);
	take_text(&cursor, " GMT");
	return !cursor.failed && cursor.rest.len == 0;
}

/* "Sunday, 06-Nov-94 08:49:37 GMT"; the century is left to the caller. */
static bool read_rfc850(struct date_cursor cursor, struct http_date *date)
{
	take_name(&cursor, long_day_names);
	take_text(&cursor, ", ");
	date->day = take_digits(&cursor, 2);
	take_text(&cursor, "-");
	date->month = take_name(&cursor, month_names);
	take_text(&cursor, "-");
	date->year = take_digits(&cursor, 2);
	take_text(&cursor, " ");
	take_time(&cursor, date);
	take_text(&cursor, " GMT");
	return !cursor.failed && cursor.rest.len == 0;
}

/* "Sun Nov  6 08:49:37 1994" */
static bool read_asctime(struct date_cursor cursor, struct http_date *date)
{
	take_name(&cursor, day_names);
	take_text(&cursor, " ");
	date->month = take_name(&cursor, month_names);
	take_text(&cursor, " ");
	if (!cursor.failed && hpx_span_starts(cursor.rest, HPX_SPAN(" "))) {
		take_text(&cursor, " ");
		date->day = take_digits(&cursor, 1);
	} else {
		date->day = take_digits(&cursor, 2);
	}
	take_text(&cursor, " ");
	take_time(&cursor, date);
	take_text(&cursor, " ");
	date->year = take_digits(&cursor, 4);
	return !cursor.failed && cursor.rest.len == 0;
}

static bool is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Second 60 is a leap second. Years before 1970 have no HTTP. */
static bool is_real(const struct http_date *date)
{
	static const int64_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	if (date->year < 1970 || date->month < 1 || date->month > 12)
		return false;
	int64_t last = days[date->month - 1] + (date->month == 2 && is_leap(date->year));
	return date->day >= 1 && date->day <= last && date->hour <= 23 &&
	       date->minute <= 59 && date->second <= 60;
}

/* Days since 1970-01-01. The year is taken to begin in March, so that the
 * leap day is its last. */
static int64_t days_of(const struct http_date *date)
{
	HPX_ASSERT(date->month >= 1 && date->month <= 12);
	int64_t year = date->month <= 2 ? date->year - 1 : date->year;
	int64_t month = (date->month + 9) % 12;
	int64_t day_of_year = (153 * month + 2) / 5 + date->day - 1;
	int64_t leap_days = year / 4 - year / 100 + year / 400;

	return year * 365 + leap_days + day_of_year - 719468;
}

static int64_t seconds_of(const struct http_date *date)
{
	return days_of(date) * 86400 + date->hour * 3600 + date->minute * 60 + date->second;
}

/* RFC 9110 §5.6.7: what seems more than 50 years ahead is of the past. */
static void choose_century(struct http_date *date, int64_t now_s)
{
	int64_t fifty_years_s = 50 * 31556952LL;

	date->year += 2000;
	while (date->year < 9900 && seconds_of(date) < now_s - fifty_years_s)
		date->year += 100;
	while (date->year >= 1970 && seconds_of(date) > now_s + fifty_years_s)
		date->year -= 100;
}

enum hpx_status hpx_date_parse(struct hpx_span text, int64_t now_wall_ms,
			       int64_t *ret_unix_s)
{
	struct date_cursor cursor = { .rest = text };
	struct http_date date = { 0 };

	if (read_rfc850(cursor, &date))
		choose_century(&date, now_wall_ms / 1000);
	else if (!read_fixdate(cursor, &date) && !read_asctime(cursor, &date))
		return HPX_INVALID;
	if (!is_real(&date))
		return HPX_INVALID;
	*ret_unix_s = seconds_of(&date);
	return HPX_OK;
}

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
