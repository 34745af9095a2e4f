/* Shows that histogram buckets hold what is at most their bound, added up, that a
 * label of any bytes leaves the page readable, and that a failure stays. */
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
	struct hpx_metric_page page = { .out = &out };
	hpx_metric_histogram(&page, "h", "help", &sum, 1);
	assert_status(page.status, HPX_OK);
	assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
	assert_non_null(strstr(out.ptr, "# TYPE h histogram\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"1.0\"} 2\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"2.0\"} 3\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"4.0\"} 5\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"134217728.0\"} 5\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{le=\"+Inf\"} 6\n"));
	assert_non_null(strstr(out.ptr, "h_count 6\n"));
	hpx_buffer_done(&out);
	hpx_buffer_init(&out, 10000);
	hpx_metric_histogram_of(&page, "h", "route", HPX_SPAN("POST /a\"b"), &one, 1e6);
	assert_status(page.status, HPX_OK);
	assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
	assert_non_null(strstr(out.ptr, "h_bucket{route=\"POST /a\\\"b\",le=\"134.217728\"} 5\n"));
	assert_non_null(strstr(out.ptr, "h_bucket{route=\"POST /a\\\"b\",le=\"+Inf\"} 6\n"));
	assert_non_null(strstr(out.ptr, "h_count{route=\"POST /a\\\"b\"} 6\n"));
	hpx_buffer_done(&out);
	hpx_histogram_clear(&one);
	assert_int_equal(hpx_counter_read(&one.bucket[HPX_HISTOGRAM_BUCKETS - 1]), 0);
}

static void labels_are_escaped(void **state)
{
	static const struct {
		struct hpx_span text;
		const char *line;
	} rows[] = {
		{ HPX_SPAN_INIT("plain"), "m{l=\"plain\"} 7\n" },
		{ HPX_SPAN_INIT("a\"b\\c"), "m{l=\"a\\\"b\\\\c\"} 7\n" },
		{ HPX_SPAN_INIT("\xc3\xa4\xff\n"), "m{l=\"\xc3\xa4\\\\xff\\\\x0a\"} 7\n" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 1000);
		struct hpx_metric_page page = { .out = &out };
		hpx_metric_sample(&page, "m", "l", rows[i].text, 7);
		assert_status(page.status, HPX_OK);
		assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
		assert_string_equal(out.ptr, rows[i].line);
		hpx_buffer_done(&out);
	}
}

static void a_failure_stays(void **state)
{
	struct hpx_buffer out;
	(void)state;
	hpx_buffer_init(&out, 4);
	struct hpx_metric_page page = { .out = &out };
	hpx_metric_gauge(&page, "a_long_name", "help", 1);
	assert_status(page.status, HPX_TOO_LARGE);
	HPX_METRIC_PRINT(&page, "b");
	assert_int_equal(out.len, 0);
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_fall_into_their_bucket),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(a_failure_stays),
	};
	return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
