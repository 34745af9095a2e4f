/* Shows that a buffer never grows past its maximum and stays as it was then. */
#include "../test.h"

#include "base/buffer.h"

static void the_maximum_holds(void **state)
{
	struct hpx_buffer b;
	(void)state;
	hpx_buffer_init(&b, 10);
	assert_status(hpx_buffer_text(&b, "12345678"), HPX_OK);
	assert_status(hpx_buffer_text(&b, "abc"), HPX_TOO_LARGE);
	assert_span(hpx_buffer_span(&b), "12345678");
	assert_status(hpx_buffer_text(&b, "ab"), HPX_OK);
	assert_status(hpx_buffer_byte(&b, 'x'), HPX_TOO_LARGE);
	assert_span(hpx_buffer_span(&b), "12345678ab");
	hpx_buffer_consume(&b, 8);
	assert_span(hpx_buffer_span(&b), "ab");
	hpx_buffer_done(&b);
	assert_int_equal(b.len, 0);
}

static void printf_appends(void **state)
{
	struct hpx_buffer b;
	(void)state;
	hpx_buffer_init(&b, 100);
	assert_status(hpx_buffer_printf(&b, "%s=%d;", "a", 1), HPX_OK);
	assert_status(hpx_buffer_printf(&b, "%s=%d;", "b", 22), HPX_OK);
	assert_span(hpx_buffer_span(&b), "a=1;b=22;");
	assert_status(hpx_buffer_printf(&b, "%0200d", 1), HPX_TOO_LARGE);
	assert_span(hpx_buffer_span(&b), "a=1;b=22;");
	hpx_buffer_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_maximum_holds),
		cmocka_unit_test(printf_appends),
	};
	return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
