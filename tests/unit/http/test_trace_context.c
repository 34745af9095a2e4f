/* Shows that a traceparent is read by the rules of W3C Trace Context and by no others, and
 * that the context of a stored answer's first execution is found again. */
#include "../test.h"
#include "http/trace_context.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" SPAN "-01"

static void values(void **state)
{
	static const struct {
		const char *text;
		int flags; /* -1: a new trace is begun */
	} rows[] = {
		{ GOOD, 1 },
		{ "00-" TRACE "-" SPAN "-00", 0 },
		/* §3.2.2.5: other flags are ignored; of level 2 there is that of random ids. */
		{ "00-" TRACE "-" SPAN "-03", 3 },
		{ "00-" TRACE "-" SPAN "-ff", 3 },
		{ "00-" TRACE "-" SPAN "-fc", 0 },
		/* A version to come: what is known of it is read. */
		{ "01-" TRACE "-" SPAN "-01", 1 },
		{ "cc-" TRACE "-" SPAN "-01", 1 },
		{ "cc-" TRACE "-" SPAN "-01-what-the-future-will-be", 1 },
		{ "01-" TRACE "-" SPAN "-01-", 1 },
		{ "01-" TRACE "-" SPAN "-01.", -1 },
		{ "01-" TRACE "-" SPAN "-010", -1 },
		{ "ff-" TRACE "-" SPAN "-01", -1 },
		/* Version 00 has nothing behind its flags. */
		{ GOOD "-", -1 },
		{ GOOD "-00", -1 },
		{ GOOD ".", -1 },
		/* Lengths. */
		{ "", -1 },
		{ "00", -1 },
		{ "00-" TRACE "-" SPAN "-0", -1 },
		{ "00-" TRACE "-" SPAN "-1", -1 },
		{ "00-" TRACE "-" SPAN, -1 },
		{ "0-" TRACE "-" SPAN "-01", -1 },
		{ "000-" TRACE "-" SPAN "-01", -1 },
		{ "00-" TRACE "0-" SPAN "-01", -1 },
		{ "00-" TRACE "-" SPAN "0-01", -1 },
		/* All zeros. */
		{ "00-00000000000000000000000000000000-" SPAN "-01", -1 },
		{ "00-" TRACE "-0000000000000000-01", -1 },
		/* Digits: hexadecimal, and small. */
		{ "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", -1 },
		{ "00-" TRACE "-00F067AA0BA902B7-01", -1 },
		{ "0A-" TRACE "-" SPAN "-01", -1 },
		{ "00-" TRACE "-" SPAN "-0A", -1 },
		{ "00-4bf92f3577b34da6a3ce929d0e0e473g-" SPAN "-01", -1 },
		{ "00-" TRACE "-00f067aa0ba902b.-01", -1 },
		{ ".0-" TRACE "-" SPAN "-01", -1 },
		{ "00-" TRACE "-" SPAN "-.0", -1 },
		/* What stands between the parts. */
		{ "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01", -1 },
		{ "00_" TRACE "-" SPAN "-01", -1 },
		{ "00-" TRACE "_" SPAN "-01", -1 },
		{ "00-" TRACE "-" SPAN "_01", -1 },
		{ "00- " TRACE "-" SPAN "-01", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_trace_context context;
		bool read = hpx_traceparent_read(hpx_span_of(rows[i].text), &context);
		int flags = read ? context.flags : -1;
		if (flags != rows[i].flags)
			fail_msg("\"%s\": got %d, want %d", rows[i].text, flags, rows[i].flags);
	}
}

static void what_is_written_is_read(void **state)
{
	struct hpx_trace_context context;
	char text[HPX_TRACEPARENT_SIZE];

	(void)state;
	assert_true(hpx_traceparent_read(HPX_SPAN("cc-" TRACE "-" SPAN "-ff-more"), &context));
	assert_true(hpx_trace_is_given(&context) && hpx_trace_is_sampled(&context));
	hpx_traceparent_print(&context, text);
	assert_string_equal(text, "00-" TRACE "-" SPAN "-03");
	context = (struct hpx_trace_context){ .flags = 0 };
	assert_false(hpx_trace_is_given(&context) || hpx_trace_is_sampled(&context));
}

static void among_lines(void **state)
{
	static const struct {
		const char *lines;
		bool found;
	} rows[] = {
		{ "Accept: */*\r\ntraceparent: " GOOD "\r\ntracestate: a=b\r\n", true },
		{ "TraceParent:" GOOD "\r\n", true },
		{ "traceparent: " GOOD "\r\nTraceparent: " GOOD "\r\n", false },
		{ "tracestate: a=b\r\n", false },
		{ "traceparent: " GOOD "-x\r\n", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_trace_context context;
		bool found = hpx_trace_context_in_lines(hpx_span_of(rows[i].lines), &context);
		if (found != rows[i].found)
			fail_msg("\"%s\": got %d", rows[i].lines, found);
	}
}

/* The line of a stored answer, and texts that are none. */
static void the_line_of_an_answer(void **state)
{
	static const char *const none[] = {
		"",
		"Content-Type: text/plain\r\n",
		"X-Hapax-Trace: " GOOD "\r\n",
		"Hapax-Trace: 00-" TRACE "-0000000000000000-01\r\n",
		"Hapax-Trace: " GOOD "\r\nContent-Type: text/plain\r\n",
	};
	struct hpx_trace_context written, read;
	struct hpx_buffer lines;

	(void)state;
	assert_true(hpx_traceparent_read(HPX_SPAN(GOOD), &written));
	for (int before = 0; before < 2; before++) {
		hpx_buffer_init(&lines, 1024);
		if (before)
			assert_int_equal(hpx_buffer_text(&lines, "Content-Type: text/plain\r\n"), HPX_OK);
		size_t len = lines.len;
		assert_int_equal(hpx_trace_line_write(&lines, &written), HPX_OK);
		struct hpx_span rest = hpx_buffer_span(&lines);
		assert_true(hpx_trace_line_take(&rest, &read));
		assert_int_equal(rest.len, len);
		assert_memory_equal(&read, &written, sizeof(read));
		hpx_buffer_done(&lines);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct hpx_span rest = hpx_span_of(none[i]);
		if (hpx_trace_line_take(&rest, &read) || rest.len != strlen(none[i]))
			fail_msg("\"%s\" was taken for a trace's line", none[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(among_lines),
		cmocka_unit_test(the_line_of_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
