/* Shows that spans compare, cut and read numbers within their length, and which bytes are
 * UTF-8. */
#include "../test.h"
#include "base/span.h"

static void numbers_are_digits_within_a_maximum(void **state)
{
	static const struct {
		const char *text;
		uint64_t max;
		bool good;
		uint64_t value;
	} rows[] = {
		{ "0", 10, true, 0 },
		{ "10", 10, true, 10 },
		{ "11", 10, false, 0 },
		{ "007", 10, true, 7 },
		{ "5", 3, false, 0 },
		{ "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, false, 0 },
		{ "99999999999999999999999", UINT64_MAX, false, 0 },
		{ "", 10, false, 0 },
		{ "-1", 10, false, 0 },
		{ "+1", 10, false, 0 },
		{ " 1", 10, false, 0 },
		{ "1 ", 10, false, 0 },
		{ "0x1", 10, false, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = 0;
		bool good = hpx_span_u64(hpx_span_of(rows[i].text), rows[i].max, &value);
		if (good != rows[i].good || value != rows[i].value)
			fail_msg("\"%s\": got %d %llu, want %d %llu", rows[i].text, good,
				 (unsigned long long)value, rows[i].good,
				 (unsigned long long)rows[i].value);
	}
}

static void split_gives_every_item_once(void **state)
{
	struct hpx_span rest = HPX_SPAN("a,,b,");
	struct hpx_span item;
	(void)state;
	assert_true(hpx_span_split(&rest, ',', &item));
	assert_span(item, "a");
	assert_true(hpx_span_split(&rest, ',', &item));
	assert_span(item, "");
	assert_true(hpx_span_split(&rest, ',', &item));
	assert_span(item, "b");
	assert_true(hpx_span_split(&rest, ',', &item));
	assert_span(item, "");
	assert_false(hpx_span_split(&rest, ',', &item));
}

static void comparing_and_trimming(void **state)
{
	(void)state;
	assert_true(hpx_span_ieq(HPX_SPAN("Content-Type"), HPX_SPAN("content-tYPE")));
	assert_false(hpx_span_ieq(HPX_SPAN("a"), HPX_SPAN("ab")));
	assert_false(hpx_span_ieq(HPX_SPAN("["), HPX_SPAN("{")));
	assert_true(hpx_span_cmp(HPX_SPAN("a"), HPX_SPAN("ab")) < 0);
	assert_true(hpx_span_cmp(HPX_SPAN("b"), HPX_SPAN("ab")) > 0);
	assert_int_equal(hpx_span_cmp(HPX_SPAN(""), HPX_SPAN("")), 0);
	assert_span(hpx_span_trim(HPX_SPAN(" \t a b \t")), "a b");
	assert_span(hpx_span_trim(HPX_SPAN(" \t")), "");
	assert_int_equal(hpx_span_index(HPX_SPAN("abc"), 'c'), 2);
	assert_int_equal(hpx_span_index(HPX_SPAN("abc"), 'x'), 3);
}

static void every_code_point_goes_both_ways(void **state)
{
	char bytes[4];
	(void)state;
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		size_t n = hpx_utf8_encode(code, bytes);
		assert_int_equal(hpx_utf8_sequence(hpx_span(bytes, n)), n);
		assert_int_equal(hpx_utf8_decode(hpx_span(bytes, n)), code);
		assert_int_equal(hpx_utf8_sequence(hpx_span(bytes, n - 1)), 0);
	}
}

static void bad_sequences_are_refused(void **state)
{
	static const char *const rows[] = { "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
					    "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
					    "\xc3", "\xe2\x82", "\xff" };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (hpx_utf8_valid(hpx_span_of(rows[i])))
			fail_msg("row %zu was taken", i);
	assert_true(hpx_utf8_valid(HPX_SPAN("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")));
}

static void what_a_terminal_obeys_is_not_printable(void **state)
{
	static const struct {
		const char *bytes;
		bool printable;
	} rows[] = { { "a", true }, { "\x1b", false }, { "\x7f", false }, { "\xc2\x9b", false }, { "\xc2\xa0", true }, { "\xff", false }, { "\xf0\x9f\x98\x80", true } };
	struct hpx_span text = HPX_SPAN("a\x1b\x7f\xc2\x9b\xc2\xa0\xff\xf0\x9f\x98\x80");
	struct hpx_span character;
	bool printable;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(hpx_utf8_next(&text, &character, &printable));
		assert_span(character, rows[i].bytes);
		assert_int_equal(printable, rows[i].printable);
	}
	assert_false(hpx_utf8_next(&text, &character, &printable));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_digits_within_a_maximum),
		cmocka_unit_test(split_gives_every_item_once),
		cmocka_unit_test(comparing_and_trimming),
		cmocka_unit_test(every_code_point_goes_both_ways),
		cmocka_unit_test(bad_sequences_are_refused),
		cmocka_unit_test(what_a_terminal_obeys_is_not_printable),
	};
	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
