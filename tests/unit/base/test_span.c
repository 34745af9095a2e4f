/* Shows that spans compare, cut and read numbers within their length. */
#include "../test.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_digits_within_a_maximum),
		cmocka_unit_test(split_gives_every_item_once),
		cmocka_unit_test(comparing_and_trimming),
	};
	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
