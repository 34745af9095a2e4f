/* Shows which answers of a collector count, and that a full batch of the largest spans fits
 * into one request. Whether the document is OTLP, the published decoder says
 * (tests/e2e/test_traces.py). */
#include "../test.h"

#include <stdlib.h>

#include "service/tracer.h"
#include "worker/trace_exporter.h"

static void answers(void **state)
{
	static const struct {
		const char *body;
		int64_t rejected; /* -1: nobody knows */
	} rows[] = {
		{ "", 0 },
		{ " \t", 0 },
		{ "{}", 0 },
		{ "{\"partialSuccess\":{}}", 0 },
		{ "{\"partialSuccess\":null}", 0 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"no\"}}", 3 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":3}}", 3 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":\"-1\"}}", -1 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":1.5}}", -1 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999999999999999999\"}}", -1 },
		{ "{", -1 },
		{ "<html></html>", -1 },
		{ "\n\x07\x08\x03", -1 }, /* protobuf */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t rejected = 0;
		bool read = hpx_otlp_read_answer(hpx_span_of(rows[i].body), &rejected);
		int64_t got = read ? (int64_t)rejected : -1;
		if (got != rows[i].rejected)
			fail_msg("%s: got %lld, want %lld", rows[i].body, (long long)got,
				 (long long)rows[i].rejected);
	}
}

/* Every text as long as it can be, of characters that JSON escapes. */
static void the_largest_batch(void **state)
{
	struct hpx_trace_span *spans = calloc(HPX_TRACE_BATCH, sizeof(*spans));
	struct hpx_buffer out;

	(void)state;
	assert_non_null(spans);
	for (size_t i = 0; i < HPX_TRACE_BATCH; i++) {
		memset(&spans[i], 0xff, offsetof(struct hpx_trace_span, link));
		spans[i].kind = HPX_TRACE_REQUEST;
		memset(&spans[i].link, 0xff, sizeof(spans[i].link));
		spans[i].began_us = spans[i].ended_us = INT64_MAX / 1000;
		spans[i].failed = true;
		spans[i].status = 599;
		spans[i].attempt = UINT32_MAX;
		spans[i].job = INT64_MAX;
		spans[i].decision = spans[i].error = "idempotency_store_unavailable";
		memset(spans[i].method, '\x01', sizeof(spans[i].method) - 1);
		memset(spans[i].route, '\x01', sizeof(spans[i].route) - 1);
		memset(spans[i].target, '\x01', sizeof(spans[i].target) - 1);
		memset(spans[i].operation, 'f', sizeof(spans[i].operation) - 1);
		memset(spans[i].tenant, 'f', sizeof(spans[i].tenant) - 1);
	}
	hpx_buffer_init(&out, HPX_OTLP_BYTES_MAX);
	assert_int_equal(hpx_otlp_print(spans, HPX_TRACE_BATCH, HPX_SPAN("hapax"), &out), HPX_OK);
	hpx_buffer_done(&out);
	free(spans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(the_largest_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
