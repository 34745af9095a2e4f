/* Shows that a buffer never grows past its maximum and stays as it was then, and that
 * one which is used again begins empty, with no large allocation. */
#include "../test.h"

#include "base/buffer.h"
#include "base/recycle.h"

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

static void a_buffer_that_is_used_again_begins_empty(void **state)
{
	struct hpx_buffer b;

	(void)state;
	hpx_buffer_init(&b, 100000);
	assert_status(hpx_buffer_text(&b, "secret"), HPX_OK);
	hpx_buffer_recycle(&b, 5000);
	assert_int_equal(b.len, 0);
	assert_int_equal(b.max, 5000);
	assert_int_equal(b.cap > 0, HPX_RECYCLES);
	assert_status(hpx_buffer_text(&b, "a"), HPX_OK);
	assert_span(hpx_buffer_span(&b), "a");
	hpx_buffer_recycle(&b, 10); /* less than it has */
	assert_int_equal(b.cap, 0);
	assert_status(hpx_buffer_text(&b, "12345678901"), HPX_TOO_LARGE);
	hpx_buffer_recycle(&b, 100000);
	assert_status(hpx_buffer_reserve(&b, HPX_RECYCLED_BYTES_MAX + 1), HPX_OK);
	hpx_buffer_recycle(&b, 100000);
	assert_int_equal(b.cap, 0);
	hpx_buffer_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_maximum_holds),
		cmocka_unit_test(printf_appends),
		cmocka_unit_test(a_buffer_that_is_used_again_begins_empty),
	};
	return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
