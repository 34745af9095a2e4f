/* Shows that one JSON value has one canonical form and two different values
 * never share one, and that what has no form is refused within its bounds. */
#include "../test.h"

#include "core/json.h"

#define OUT_MAX (4u << 20)

static enum hpx_status canonical(struct hpx_span text, const char *const *ignore,
				 size_t ignore_count, struct hpx_buffer *out)
{
	struct hpx_span pointers[HPX_JSON_IGNORE_MAX + 1];

	for (size_t i = 0; i < ignore_count; i++)
		pointers[i] = hpx_span_of(ignore[i]);
	return hpx_json_canonical(text, &hpx_json_limits_default, pointers, ignore_count, out);
}

static void check(struct hpx_span text, const char *ignore, const char *want)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, OUT_MAX);
	enum hpx_status status = canonical(text, &ignore, ignore != NULL, &out);
	if (status != (want ? HPX_OK : HPX_INVALID))
		fail_msg("<%.*s>: got %s, want %s", HPX_SPAN_ARG(text), hpx_status_name(status),
			 want ? want : "INVALID");
	assert_span(hpx_buffer_span(&out), want ? want : "");
	hpx_buffer_done(&out);
}

static const struct {
	const char *text;
	const char *want; /* NULL: refused */
} values[] = {
	{ "null", "null" },
	{ " true ", "true" },
	{ "\t\r\n false", "false" },
	{ "\"\"", "\"\"" },
	{ "[]", "[]" },
	{ "{}", "{}" },
	{ "[ { } , [ ] ]", "[{},[]]" },
	/* Members in another order are the same (what others get wrong, 18). */
	{ "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}" },
	{ "{ \"b\" : 2 , \"a\" : 1 }", "{\"a\":1,\"b\":2}" },
	{ "{\"aa\":1,\"a\":2,\"\":3,\"ab\":4}", "{\"\":3,\"a\":2,\"aa\":1,\"ab\":4}" },
	{ "[2,1]", "[2,1]" },
	/* By UTF-16 code units: U+1F602 (D83D...) before U+FB33 and U+E000. */
	{ "{\"\xef\xac\xb3\":1,\"\xf0\x9f\x98\x82\":2,\"\xee\x80\x80\":3,\"\xed\x9f\xbf\":4}",
	  "{\"\xed\x9f\xbf\":4,\"\xf0\x9f\x98\x82\":2,\"\xee\x80\x80\":3,\"\xef\xac\xb3\":1}" },
	/* Escapes: as few as RFC 8785 has. */
	{ "\"\\u0061\\/\\u00e9\\ud83d\\ude02\"", "\"a/\xc3\xa9\xf0\x9f\x98\x82\"" },
	{ "\"\\b\\f\\n\\r\\t\\\"\\\\\"", "\"\\b\\f\\n\\r\\t\\\"\\\\\"" },
	{ "\"\\u0008\\u000C\\u000a\\u000d\\u0009\\u0022\\u005c\"",
	  "\"\\b\\f\\n\\r\\t\\\"\\\\\"" },
	{ "\"\\u0000\\u001F\\u007f\x7f\\u2028\"", "\"\\u0000\\u001f\x7f\x7f\xe2\x80\xa8\"" },
	/* Duplicate names, also when spelled differently. */
	{ "{\"a\":1,\"a\":1}", NULL },
	{ "{\"a\":1,\"\\u0061\":2}", NULL },
	{ "{\"x\":{\"b\":1,\"c\":2,\"b\":3}}", NULL },
	{ "{\"a\":{\"a\":1}}", "{\"a\":{\"a\":1}}" },
	/* Surrogates alone, invalid UTF-8. */
	{ "\"\\ud800\"", NULL },
	{ "\"\\udc00\"", NULL },
	{ "\"\\ud800\\ud800\"", NULL },
	{ "\"\\ud800x\"", NULL },
	{ "\"\\ud800\\n\"", NULL },
	{ "\"\xff\"", NULL },
	{ "\"\xed\xa0\x80\"", NULL },
	{ "\"\xc0\xaf\"", NULL },
	{ "{\"\xff\":1}", NULL },
	/* Not JSON. */
	{ "", NULL },
	{ " ", NULL },
	{ "[", NULL },
	{ "]", NULL },
	{ "[1", NULL },
	{ "[1,", NULL },
	{ "[1,]", NULL },
	{ "[,1]", NULL },
	{ "[1 2]", NULL },
	{ "[}", NULL },
	{ "{]", NULL },
	{ "{", NULL },
	{ "{\"a\"", NULL },
	{ "{\"a\":", NULL },
	{ "{\"a\":1", NULL },
	{ "{\"a\":1,}", NULL },
	{ "{,}", NULL },
	{ "{1:1}", NULL },
	{ "{\"a\" 1}", NULL },
	{ "1 1", NULL },
	{ "nul", NULL },
	{ "nulll", NULL },
	{ "True", NULL },
	{ "'a'", NULL },
	{ "\"\n\"", NULL },
	{ "\"\\x\"", NULL },
	{ "\"\\u12g4\"", NULL },
	{ "\"", NULL },
	{ "\"\\", NULL },
	{ "\"\\u00", NULL },
	{ "\xef\xbb\xbf{}", NULL },
	{ "[1]x", NULL },
	{ "//", NULL },
	{ "[1\v]", NULL },
	/* Numbers that are none. */
	{ "01", NULL },
	{ "+1", NULL },
	{ "-", NULL },
	{ ".5", NULL },
	{ "5.", NULL },
	{ "1e", NULL },
	{ "1e+", NULL },
	{ "1.e1", NULL },
	{ "0x1", NULL },
	{ "-01", NULL },
	{ "NaN", NULL },
	{ "Infinity", NULL },
	{ "-Infinity", NULL },
	/* Equal values agree. */
	{ "1", "1" },
	{ "1.0", "1" },
	{ "1e0", "1" },
	{ "10e-1", "1" },
	{ "0.01E+2", "1" },
	{ "-1.50", "-1.5" },
	{ "100", "100" },
	{ "1e2", "100" },
	{ "0.1", "0.1" },
	{ "100e-3", "0.1" },
	{ "12.0", "12" },
	{ "0.00120e1", "0.012" },
	/* Zero of any sign and exponent. */
	{ "0", "0" },
	{ "-0", "0" },
	{ "0.000", "0" },
	{ "-0.0e-5", "0" },
	{ "0e999999999999", "0" },
	/* ECMAScript's layout and its edges. */
	{ "1e20", "100000000000000000000" },
	{ "1e21", "1e+21" },
	{ "1e-6", "0.000001" },
	{ "1e-7", "1e-7" },
	{ "123e-8", "0.00000123" },
	{ "12e-8", "1.2e-7" },
	{ "123456789012345678901", "123456789012345678901" },
	{ "1234567890123456789012", "1.234567890123456789012e+21" },
	{ "1.5e300", "1.5e+300" },
	{ "1e400", "1e+400" },
	{ "-1e-400", "-1e-400" },
	/* What a double does not hold is kept as it is. */
	{ "9007199254740992", "9007199254740992" },
	{ "9007199254740993", "9007199254740993" },
	{ "1.000000000000000001", "1.000000000000000001" },
	{ "1.000000000000000002", "1.000000000000000002" },
	{ "333333333.33333329", "333333333.33333329" },
	/* 2^68: a double holds it, yet RFC 8785 would print ...830000, which is
	 * another amount. */
	{ "295147905179352825856", "295147905179352825856" },
	{ "295147905179352830000", "295147905179352830000" },
};

static void every_value_has_one_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		check(hpx_span_of(values[i].text), NULL, values[i].want);
	check(HPX_SPAN("\"a\0b\""), NULL, NULL);
	check(HPX_SPAN("1\0"), NULL, NULL);
}

/* Strings are looked at eight bytes at a time: each kind of byte at each place of
 * strings that end at each place. */
static void a_byte_counts_wherever_it_stands(void **state)
{
	static const struct {
		const char *text;
		const char *want; /* NULL: refused */
	} pieces[] = {
		{ "\x1f", NULL },
		{ "\x01", NULL },
		{ "\xff", NULL },
		{ "\x80", NULL },
		{ "\\", NULL },
		{ "\"", NULL },
		{ " ", " " },
		{ "!", "!" },
		{ "#", "#" },
		{ "[", "[" },
		{ "]", "]" },
		{ "\x7f", "\x7f" },
		{ "\xc3\xa9", "\xc3\xa9" },
		{ "\\u0041", "A" },
		{ "\\\"", "\\\"" },
		{ "\\n", "\\n" },
	};
	char text[64], want[64];

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		for (int before = 0; before < 20; before++)
			for (int behind = 0; behind < 20; behind++) {
				snprintf(text, sizeof(text), "\"%.*s%s%.*s\"", before,
					 "xxxxxxxxxxxxxxxxxxxx", pieces[i].text, behind,
					 "~~~~~~~~~~~~~~~~~~~~");
				snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", before,
					 "xxxxxxxxxxxxxxxxxxxx",
					 pieces[i].want ? pieces[i].want : "", behind,
					 "~~~~~~~~~~~~~~~~~~~~");
				check(hpx_span_of(text), NULL, pieces[i].want ? want : NULL);
			}
}

static void the_form_of_a_form_is_itself(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (values[i].want != NULL)
			check(hpx_span_of(values[i].want), NULL, values[i].want);
}

static const struct {
	const char *text;
	const char *pointer;
	const char *want;
} ignored[] = {
	{ "{\"a\":1,\"b\":2}", "/a", "{\"b\":2}" },
	{ "{\"b\":2}", "/a", "{\"b\":2}" },
	{ "{\"a\":1}", "/a", "{}" },
	{ "{\"a\":{\"x\":[1]},\"b\":2}", "/a", "{\"b\":2}" },
	{ "{\"m\":{\"sent_at\":9,\"n\":1},\"sent_at\":3}", "/m/sent_at",
	  "{\"m\":{\"n\":1},\"sent_at\":3}" },
	{ "{\"a\":{\"a\":1}}", "/a/a", "{\"a\":{}}" },
	{ "{\"a\":1,\"b\":2}", "/", "{\"a\":1,\"b\":2}" },
	{ "{\"\":1,\"b\":2}", "/", "{\"b\":2}" },
	{ "{\"\":{\"\":1,\"c\":2}}", "//", "{\"\":{\"c\":2}}" },
	{ "{\"a/b\":1,\"c\":2}", "/a~1b", "{\"c\":2}" },
	{ "{\"m~n\":1,\"c\":2}", "/m~0n", "{\"c\":2}" },
	{ "{\"~1\":1,\"/\":2}", "/~01", "{\"/\":2}" },
	{ "{\"\\u00e9\":1,\"e\":2}", "/\xc3\xa9", "{\"e\":2}" },
	{ "[10,20,30]", "/1", "[10,30]" },
	{ "[10]", "/0", "[]" },
	{ "[10,20]", "/00", "[10,20]" },
	{ "[10,20]", "/-", "[10,20]" },
	{ "[10,20]", "/2", "[10,20]" },
	{ "{\"0\":1,\"1\":[5,6]}", "/1/0", "{\"0\":1,\"1\":[6]}" },
	{ "[[1,2],[3,4]]", "/1/1", "[[1,2],[3]]" },
	{ "{\"a\":[{\"id\":1,\"t\":2},{\"id\":3,\"t\":4}]}", "/a/0/t",
	  "{\"a\":[{\"id\":1},{\"id\":3,\"t\":4}]}" },
	{ "{\"a\":1}", "/a/b", "{\"a\":1}" },
	{ "{\"a\":1}", "", "" },
	/* Not a pointer: names nothing. */
	{ "{\"a\":1}", "a", "{\"a\":1}" },
	{ "{\"a\":1,\"~\":2}", "/~", "{\"a\":1,\"~\":2}" },
	{ "{\"a~2\":1}", "/a~2", "{\"a~2\":1}" },
	/* What is left out must still be JSON without duplicates. */
	{ "{\"a\":1,\"a\":2}", "/a", NULL },
	{ "{\"a\":{\"x\":1,\"x\":2}}", "/a", NULL },
	{ "{\"a\":nul}", "/a", NULL },
};

static void pointers_leave_members_and_elements_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		check(hpx_span_of(ignored[i].text), ignored[i].pointer, ignored[i].want);
}

static void sixty_four_pointers_work_at_once(void **state)
{
	static char text[64][16];
	const char *pointers[65];
	struct hpx_buffer out;
	struct hpx_buffer in;
	(void)state;

	hpx_buffer_init(&in, 10000);
	hpx_buffer_init(&out, 10000);
	for (unsigned i = 0; i < 64; i++) {
		snprintf(text[i], sizeof(text[i]), "/x/m%02u", i);
		pointers[i] = text[i];
		assert_status(hpx_buffer_printf(&in, "%s\"m%02u\":%u", i ? "," : "{\"x\":{\"k\":0,",
						i, i),
			      HPX_OK);
	}
	assert_status(hpx_buffer_text(&in, "}}"), HPX_OK);
	assert_status(canonical(hpx_buffer_span(&in), pointers, 64, &out), HPX_OK);
	assert_span(hpx_buffer_span(&out), "{\"x\":{\"k\":0}}");
	pointers[64] = "/y";
	assert_status(canonical(hpx_buffer_span(&in), pointers, 65, &out), HPX_MISUSE);
	hpx_buffer_done(&in);
	hpx_buffer_done(&out);
}

static const char sample[] = "{\"b\":[1.5e+3,-0.25,true,null,\"\\u00e9\\ud83d\\ude02\\n\"],"
			     "\"a\\t\":{\"z\":{},\"y\":[[]],\"\xc3\xa9\":1e-400}}";

static void every_prefix_and_every_changed_byte_is_survived(void **state)
{
	static const char bytes[] = "\0\"\\{}[]:,x0-.eu\xff\xc3";
	const char *ignore[] = { "/b/1", "/a\t/z" };
	struct hpx_buffer out;
	char copy[sizeof(sample) - 1];
	(void)state;

	hpx_buffer_init(&out, 1000);
	for (size_t n = 0; n < sizeof(copy); n++) {
		/* A copy of its own, so that a read past its end is seen. */
		char *prefix = malloc(n + 1);
		memcpy(prefix, sample, n);
		assert_status(canonical(hpx_span(prefix, n), ignore, 2, &out), HPX_INVALID);
		free(prefix);
		for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
			memcpy(copy, sample, sizeof(copy));
			copy[n] = bytes[i];
			out.len = 0;
			canonical(hpx_span(copy, sizeof(copy)), ignore, 2, &out);
		}
	}
	hpx_buffer_done(&out);
}

static void a_small_buffer_is_left_as_it_was(void **state)
{
	struct hpx_span text = hpx_span(sample, sizeof(sample) - 1);
	struct hpx_buffer whole;
	(void)state;

	hpx_buffer_init(&whole, 1000);
	assert_status(canonical(text, NULL, 0, &whole), HPX_OK);
	for (size_t max = 1; max <= whole.len; max++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, max);
		assert_status(hpx_buffer_byte(&out, 'x'), HPX_OK);
		assert_status(canonical(text, NULL, 0, &out), HPX_TOO_LARGE);
		assert_span(hpx_buffer_span(&out), "x");
		hpx_buffer_done(&out);
	}
	hpx_buffer_done(&whole);
}

static void limits_hold_at_their_edge(void **state)
{
	static const struct hpx_json_limits limits = { 3, 5, 10, 4 };
	static const struct {
		const char *text;
		enum hpx_status want;
	} rows[] = {
		{ "[[[1]]]", HPX_OK },
		{ "[[[[1]]]]", HPX_INVALID },
		{ "{\"a\":[{}]}", HPX_OK },
		{ "{\"a\":[{\"b\":[]}]}", HPX_INVALID },
		{ "12345", HPX_OK },
		{ "123456", HPX_INVALID },
		{ "123.45", HPX_OK },
		{ "0.0000012345", HPX_OK },
		{ "1234500000", HPX_OK },
		{ "1.23456", HPX_INVALID },
		{ "1e10", HPX_OK },
		{ "1e11", HPX_INVALID },
		{ "1e-10", HPX_OK },
		{ "1e-11", HPX_INVALID },
		{ "10e10", HPX_INVALID },
		{ "0.1e11", HPX_OK },
		{ "1e0000000000000010", HPX_OK },
		{ "0e11", HPX_OK },
		{ "1e9223372036854775808", HPX_INVALID },
		{ "1e-9223372036854775808", HPX_INVALID },
		{ "1e18446744073709551617", HPX_INVALID },
		{ "[1,2,3,4]", HPX_OK },
		{ "[1,2,3,4,5]", HPX_INVALID },
		{ "[{\"a\":1},{\"b\":2}]", HPX_OK },
		{ "[{\"a\":1},{\"b\":2},3]", HPX_INVALID },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 1000);
		enum hpx_status got = hpx_json_canonical(hpx_span_of(rows[i].text), &limits, NULL,
							 0, &out);
		if (got != rows[i].want)
			fail_msg("%s: got %s, want %s", rows[i].text, hpx_status_name(got),
				 hpx_status_name(rows[i].want));
		hpx_buffer_done(&out);
	}
}

/* One MiB made of `unit` again and again, between `before` and `after`. */
static void check_large(const char *before, const char *unit, const char *after,
			enum hpx_status want)
{
	struct hpx_buffer in;
	struct hpx_buffer out;

	hpx_buffer_init(&in, 2u << 20);
	hpx_buffer_init(&out, 8u << 20);
	assert_status(hpx_buffer_text(&in, before), HPX_OK);
	while (in.len < 1u << 20)
		assert_status(hpx_buffer_text(&in, unit), HPX_OK);
	assert_status(hpx_buffer_text(&in, after), HPX_OK);
	enum hpx_status got = canonical(hpx_buffer_span(&in), NULL, 0, &out);
	if (got != want)
		fail_msg("%s%s...: got %s, want %s", before, unit, hpx_status_name(got),
			 hpx_status_name(want));
	hpx_buffer_done(&in);
	hpx_buffer_done(&out);
}

static void nasty_texts_of_a_mebibyte_end(void **state)
{
	(void)state;
	check_large("", "[", "", HPX_INVALID);
	check_large("", "{\"a\":", "", HPX_INVALID);
	check_large("1", "1", "", HPX_INVALID);
	check_large("1", "0", "", HPX_INVALID);
	check_large("0.", "0", "1", HPX_INVALID);
	check_large("0.", "0", "", HPX_OK);
	check_large("1e", "9", "", HPX_INVALID);
	check_large("1e-", "9", "", HPX_INVALID);
	check_large("1e", "0", "1", HPX_OK);
	check_large("", " ", "1", HPX_OK);
	check_large("\"", "\\u0000", "\"", HPX_OK);
	check_large("[0", ",0", "]", HPX_INVALID);
	check_large("[1e20", ",1e999999999", "]", HPX_INVALID);
	check_large("{\"a\":0", ",\"a\":0", "}", HPX_INVALID);
}

static void many_members_are_sorted(void **state)
{
	struct hpx_buffer in;
	struct hpx_buffer out;
	struct hpx_buffer want;
	(void)state;

	hpx_buffer_init(&in, 2u << 20);
	hpx_buffer_init(&out, 2u << 20);
	hpx_buffer_init(&want, 2u << 20);
	for (unsigned i = 0; i < 50000; i++) {
		/* 7919 is prime to 50000: every number once, in no order. */
		hpx_buffer_printf(&in, "%s\"%06u\":0", i ? "," : "{", i * 7919u % 50000u);
		hpx_buffer_printf(&want, "%s\"%06u\":0", i ? "," : "{", i);
	}
	assert_status(hpx_buffer_byte(&in, '}'), HPX_OK);
	assert_status(hpx_buffer_text(&want, "}"), HPX_OK);
	assert_status(canonical(hpx_buffer_span(&in), NULL, 0, &out), HPX_OK);
	assert_true(hpx_span_eq(hpx_buffer_span(&out), hpx_buffer_span(&want)));
	hpx_buffer_done(&in);
	hpx_buffer_done(&out);
	hpx_buffer_done(&want);
}

static void pointers_are_judged(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} rows[] = { { "", true }, { "/", true }, { "/a/b", true }, { "/a~0~1", true }, { "a", false }, { "/~", false }, { "/~2", false }, { "/a~", false }, { "#/a", false } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (hpx_json_pointer_valid(hpx_span_of(rows[i].text)) != rows[i].valid)
			fail_msg("<%s>: got %d, want %d", rows[i].text, !rows[i].valid,
				 rows[i].valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_has_one_form),
		cmocka_unit_test(a_byte_counts_wherever_it_stands),
		cmocka_unit_test(the_form_of_a_form_is_itself),
		cmocka_unit_test(pointers_leave_members_and_elements_out),
		cmocka_unit_test(sixty_four_pointers_work_at_once),
		cmocka_unit_test(every_prefix_and_every_changed_byte_is_survived),
		cmocka_unit_test(a_small_buffer_is_left_as_it_was),
		cmocka_unit_test(limits_hold_at_their_edge),
		cmocka_unit_test(nasty_texts_of_a_mebibyte_end),
		cmocka_unit_test(many_members_are_sorted),
		cmocka_unit_test(pointers_are_judged),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
