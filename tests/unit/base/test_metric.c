/* Shows that histogram buckets hold what is at most their bound, added up. */
#include "../test.h"

#include "base/metric.h"

static void values_fall_into_their_bucket(void **state)
{
	static struct hpx_histogram one, sum;
	struct hpx_buffer out;
	(void)state;
	hpx_histogram_add(&one, 0);
	hpx_histogram_add(&one, 1);
	hpx_histogram_add(&one, 2);
	hpx_histogram_add(&one, 3);
	hpx_histogram_add(&one, 4);
	hpx_histogram_add(&one, UINT32_MAX);
	hpx_histogram_merge(&sum, &one);
	hpx_buffer_init(&out, 10000);
	assert_status(hpx_histogram_print(&sum, "h", "help", 1, &out), HPX_OK);
	assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
	assert_non_null(strstr(out.ptr, "# TYPE h histogram\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"1\"} 2\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"2\"} 3\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"4\"} 5\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"8388608\"} 5\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"+Inf\"} 6\n"));
	assert_non_null(strstr(out.ptr, "h_count 6\n"));
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_fall_into_their_bucket),
	};
	return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
