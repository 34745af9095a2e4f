/* Shows how durations and sizes are read and written, and which words are
 * near each other. */
#include "config_test.h"

#include "base/unit.h"
#include "config/suggestion.h"

static void durations_need_a_unit(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t ms;
		const char *printed;
	} rows[] = {
		{ "250ms", true, 250, "250ms" },
		{ "10s", true, 10000, "10s" },
		{ "2m", true, 120000, "2m" },
		{ "24h", true, 86400000, "24h" },
		{ "1d", true, 86400000, "24h" },
		{ "7d", true, 604800000, "7d" },
		{ "48h", true, 172800000, "2d" },
		{ "90s", true, 90000, "90s" },
		{ "1500ms", true, 1500, "1500ms" },
		{ "0", true, 0, "0" },
		{ "0s", true, 0, "0" },
		{ "10", false, 0, "" },
		{ "", false, 0, "" },
		{ "s", false, 0, "" },
		{ "10 s", false, 0, "" },
		{ "1.5s", false, 0, "" },
		{ "-1s", false, 0, "" },
		{ "10S", false, 0, "" },
		{ "1h30m", false, 0, "" },
		{ "9223372036854775807ms", true, INT64_MAX, "9223372036854775807ms" },
		{ "9223372036854775808ms", false, 0, "" },
		{ "106751991168d", false, 0, "" },
		{ "99999999999999999999999s", false, 0, "" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint64_t ms = 0;
		char printed[HPX_UNIT_SIZE] = "";
		bool good = hpx_duration_parse(hpx_span_of(rows[i].text), &ms);
		if (good)
			hpx_duration_print(ms, printed);
		if (good != rows[i].good || ms != rows[i].ms ||
		    strcmp(printed, rows[i].printed) != 0)
			fail_msg("\"%s\": got %d %llu \"%s\", want %d %llu \"%s\"",
				 rows[i].text, good, (unsigned long long)ms, printed,
				 rows[i].good, (unsigned long long)rows[i].ms,
				 rows[i].printed);
	}
}

static void sizes_are_bytes_or_have_a_unit(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t bytes;
		const char *printed;
	} rows[] = {
		{ "512", true, 512, "512" },
		{ "512B", true, 512, "512" },
		{ "32KiB", true, 32768, "32KiB" },
		{ "1MiB", true, 1048576, "1MiB" },
		{ "1024KiB", true, 1048576, "1MiB" },
		{ "1GiB", true, 1073741824, "1GiB" },
		{ "1KB", true, 1000, "1000" },
		{ "2MB", true, 2000000, "2000000" },
		{ "1GB", true, 1000000000, "1000000000" },
		{ "0", true, 0, "0" },
		{ "1.5MiB", false, 0, "" },
		{ "1M", false, 0, "" },
		{ "1 MiB", false, 0, "" },
		{ "MiB", false, 0, "" },
		{ "-1", false, 0, "" },
		{ "", false, 0, "" },
		{ "8589934592GiB", false, 0, "" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint64_t bytes = 0;
		char printed[HPX_UNIT_SIZE] = "";
		bool good = hpx_size_parse(hpx_span_of(rows[i].text), &bytes);
		if (good)
			hpx_size_print(bytes, printed);
		if (good != rows[i].good || bytes != rows[i].bytes ||
		    strcmp(printed, rows[i].printed) != 0)
			fail_msg("\"%s\": got %d %llu \"%s\", want %d %llu \"%s\"",
				 rows[i].text, good, (unsigned long long)bytes, printed,
				 rows[i].good, (unsigned long long)rows[i].bytes,
				 rows[i].printed);
	}
}

static void distances_count_letters(void **state)
{
	static const struct {
		const char *a;
		const char *b;
		size_t distance;
	} rows[] = {
		{ "", "", 0 },
		{ "abc", "abc", 0 },
		{ "abc", "ABC", 0 },
		{ "", "abc", 3 },
		{ "abc", "", 3 },
		{ "lease", "leas", 1 },
		{ "lease", "leese", 1 },
		{ "lease", "laese", 1 },
		{ "retry", "replay", 3 },
	};
	char longest[100] = "";
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t distance = hpx_edit_distance(hpx_span_of(rows[i].a),
						    hpx_span_of(rows[i].b));
		if (distance != rows[i].distance)
			fail_msg("\"%s\", \"%s\": got %zu, want %zu", rows[i].a, rows[i].b,
				 distance, rows[i].distance);
	}
	memset(longest, 'a', 64);
	assert_true(hpx_edit_distance(hpx_span_of(longest), HPX_SPAN("a")) == SIZE_MAX);
	assert_true(hpx_edit_distance(HPX_SPAN("a"), hpx_span_of(longest)) == SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_need_a_unit),
		cmocka_unit_test(sizes_are_bytes_or_have_a_unit),
		cmocka_unit_test(distances_count_letters),
	};
	return cmocka_run_group_tests_name("unit", tests, NULL, NULL);
}
