/* Shows that exactly the sequences of RFC 3629 are valid, and both ways agree. */
#include "../test.h"

#include "base/utf8.h"

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
		cmocka_unit_test(every_code_point_goes_both_ways),
		cmocka_unit_test(bad_sequences_are_refused),
		cmocka_unit_test(what_a_terminal_obeys_is_not_printable),
	};
	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
