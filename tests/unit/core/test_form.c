/* Shows that a query or form has one canonical form: sorted where names are
 * distinct, in its own order otherwise, and no two meanings share one. */
#include "../test.h"

#include "core/form.h"

static const struct {
	struct hpx_span text;
	const char *want; /* NULL: refused */
} rows[] = {
#define ROW(text, want) \
	{ \
		HPX_SPAN_INIT(text), want \
	}
	ROW("", ""),
	ROW("a=1", "1:a=1:1"),
	ROW("b=2&a=1", "1:a=1:11:b=1:2"),
	ROW("a=1&b=2", "1:a=1:11:b=1:2"),
	/* A name twice: the order of all counts. */
	ROW("b=2&a=1&a=0", "1:b=1:21:a=1:11:a=1:0"),
	ROW("a=0&a=1&b=2", "1:a=1:01:a=1:11:b=1:2"),
	ROW("b&a&%61", "1:b;1:a;1:a;"),
	/* No '=', and an empty value. */
	ROW("a", "1:a;"),
	ROW("a=", "1:a=0:"),
	ROW("=", "0:=0:"),
	ROW("=a", "0:=1:a"),
	ROW("a=b=c", "1:a=3:b=c"),
	/* Nothing between separators is no pair. */
	ROW("&", ""),
	ROW("&a=1&&b=2&", "1:a=1:11:b=1:2"),
	/* Decoding. */
	ROW("a%20b=c+d", "3:a b=3:c d"),
	ROW("a+b=c%20d", "3:a b=3:c d"),
	ROW("%61=%3d%26", "1:a=2:=&"),
	ROW("a=%2B%2b", "1:a=2:++"),
	ROW("a=%zz", NULL),
	ROW("a=%4", NULL),
	ROW("a=%", NULL),
	ROW("%", NULL),
	ROW("a=1&b=%g0", NULL),
	/* What is decoded cannot pass for structure. */
	ROW("a=1%26b=2", "1:a=5:1&b=2"),
	ROW("a=1:1", "1:a=3:1:1"),
	/* ';' is no separator. */
	ROW("a=1;b=2", "1:a=5:1;b=2"),
};

static void every_row_has_its_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 1000);
		enum hpx_status got = hpx_form_canonical(rows[i].text, &out);
		if (got != (rows[i].want ? HPX_OK : HPX_INVALID))
			fail_msg("%.*s: got %s", HPX_SPAN_ARG(rows[i].text), hpx_status_name(got));
		assert_span(hpx_buffer_span(&out), rows[i].want ? rows[i].want : "");
		hpx_buffer_done(&out);
	}
}

static void bytes_of_any_value_pass(void **state)
{
	struct hpx_buffer out;
	(void)state;
	hpx_buffer_init(&out, 100);
	assert_status(hpx_form_canonical(HPX_SPAN("a=%00%ff\xfe"), &out), HPX_OK);
	assert_int_equal(out.len, 9);
	assert_memory_equal(out.ptr, "1:a=3:\0\xff\xfe", 9);
	hpx_buffer_done(&out);
}

static void bounds_leave_the_buffer_as_it_was(void **state)
{
	struct hpx_buffer in;
	struct hpx_buffer out;
	(void)state;

	for (size_t max = 1; max < 16; max++) {
		hpx_buffer_init(&out, max);
		assert_status(hpx_buffer_byte(&out, 'x'), HPX_OK);
		assert_status(hpx_form_canonical(HPX_SPAN("bb=22&a=1"), &out), HPX_TOO_LARGE);
		assert_span(hpx_buffer_span(&out), "x");
		hpx_buffer_done(&out);
	}
	hpx_buffer_init(&in, 1u << 20);
	hpx_buffer_init(&out, 4u << 20);
	for (size_t i = 0; i < HPX_FORM_PAIRS_MAX; i++)
		assert_status(hpx_buffer_text(&in, "a&"), HPX_OK);
	assert_status(hpx_form_canonical(hpx_buffer_span(&in), &out), HPX_OK);
	assert_status(hpx_buffer_text(&in, "a"), HPX_OK);
	assert_status(hpx_form_canonical(hpx_buffer_span(&in), &out), HPX_TOO_LARGE);
	hpx_buffer_done(&in);
	hpx_buffer_done(&out);
}

static void every_prefix_is_survived(void **state)
{
	static const char sample[] = "a=%41&b=+%2f&c&=&a=%";
	struct hpx_buffer out;
	(void)state;
	hpx_buffer_init(&out, 1000);
	for (size_t n = 0; n < sizeof(sample); n++) {
		char *prefix = malloc(n + 1);
		memcpy(prefix, sample, n);
		hpx_form_canonical(hpx_span(prefix, n), &out);
		free(prefix);
	}
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_its_form),
		cmocka_unit_test(bytes_of_any_value_pass),
		cmocka_unit_test(bounds_leave_the_buffer_as_it_was),
		cmocka_unit_test(every_prefix_is_survived),
	};
	return cmocka_run_group_tests_name("form", tests, NULL, NULL);
}
