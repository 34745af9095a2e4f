/* Shows that what is written is what the reader reads, and that nothing that
 * could break out of its place is ever written. */
#include "../test.h"
#include "feed.h"
#include "http/write.h"

static void a_request_is_read_back(void **state)
{
	struct feed_setup setup = { .limits = { 1024, 8 } };
	struct hpx_buffer out;
	struct feed_result got;

	(void)state;
	hpx_buffer_init(&out, 1024);
	assert_status(hpx_write_request_line(&out, HPX_SPAN("POST"), HPX_SPAN("/a%20b"),
					     HPX_SPAN("c=d?e")),
		      HPX_OK);
	assert_status(hpx_write_field(&out, HPX_SPAN("Host"), HPX_SPAN("a:80")), HPX_OK);
	assert_status(hpx_write_field_text(&out, "Transfer-Encoding", "chunked"), HPX_OK);
	assert_status(hpx_write_field_u64(&out, "X-Number", UINT64_MAX), HPX_OK);
	assert_status(hpx_write_head_end(&out), HPX_OK);
	assert_status(hpx_buffer_text(&out, "1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"), HPX_OK);

	feed_run(&setup, hpx_buffer_span(&out), NULL, 0, &got);
	assert_int_equal(got.progress, HPX_HTTP_DONE);
	assert_int_equal(got.used, out.len);
	assert_span(hpx_buffer_span(&got.head_text),
		    "POST|/a%20b?c=d?e||Host=a:80|Transfer-Encoding=chunked|"
		    "X-Number=18446744073709551615");
	assert_span(hpx_buffer_span(&got.body), "abcdefghijklmnopqrstuvwxyz");
	feed_done(&got);
	hpx_buffer_done(&out);
}

static void request_lines(void **state)
{
	static const struct {
		struct hpx_span method, path, query;
		const char *line; /* NULL: refused */
	} rows[] = {
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("/"), { NULL, 0 }, "GET / HTTP/1.1\r\n" },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("/"), HPX_SPAN_INIT(""), "GET /? HTTP/1.1\r\n" },
		{ HPX_SPAN_INIT("OPTIONS"), HPX_SPAN_INIT("*"), { NULL, 0 }, "OPTIONS * HTTP/1.1\r\n" },
		{ HPX_SPAN_INIT(""), HPX_SPAN_INIT("/"), { NULL, 0 }, NULL },
		{ HPX_SPAN_INIT("G T"), HPX_SPAN_INIT("/"), { NULL, 0 }, NULL },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT(""), { NULL, 0 }, NULL },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("a"), { NULL, 0 }, NULL },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("/?a"), { NULL, 0 }, NULL },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("/ HTTP/1.1\r\nX: y"), { NULL, 0 }, NULL },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("/"), HPX_SPAN_INIT("a b"), NULL },
		{ HPX_SPAN_INIT("GET"), HPX_SPAN_INIT("/"), HPX_SPAN_INIT("a\r\n"), NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 256);
		assert_status(hpx_write_request_line(&out, rows[i].method, rows[i].path,
						     rows[i].query),
			      rows[i].line != NULL ? HPX_OK : HPX_INVALID);
		assert_span(hpx_buffer_span(&out), rows[i].line);
		hpx_buffer_done(&out);
	}
}

static void status_lines(void **state)
{
	static const struct {
		unsigned status;
		struct hpx_span reason;
		const char *line;
	} rows[] = {
		{ 200, HPX_SPAN_INIT("OK"), "HTTP/1.1 200 OK\r\n" },
		{ 599, HPX_SPAN_INIT(""), "HTTP/1.1 599 \r\n" },
		{ 99, HPX_SPAN_INIT("X"), NULL },
		{ 1000, HPX_SPAN_INIT("X"), NULL },
		{ 200, HPX_SPAN_INIT("O\r\nK"), NULL },
		{ 200, HPX_SPAN_INIT("O\0K"), NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 256);
		assert_status(hpx_write_status_line(&out, rows[i].status, rows[i].reason),
			      rows[i].line != NULL ? HPX_OK : HPX_INVALID);
		assert_span(hpx_buffer_span(&out), rows[i].line);
		hpx_buffer_done(&out);
	}
}

static void fields(void **state)
{
	static const struct {
		struct hpx_span name, value;
		const char *line;
	} rows[] = {
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT("b \t\344"), "A: b \t\344\r\n" },
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT(""), "A: \r\n" },
		{ HPX_SPAN_INIT(""), HPX_SPAN_INIT("b"), NULL },
		{ HPX_SPAN_INIT("A:"), HPX_SPAN_INIT("b"), NULL },
		{ HPX_SPAN_INIT("A "), HPX_SPAN_INIT("b"), NULL },
		{ HPX_SPAN_INIT("A\r\nB"), HPX_SPAN_INIT("b"), NULL },
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT("b\r\nC: d"), NULL },
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT("b\n"), NULL },
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT("b\r"), NULL },
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT("b\0"), NULL },
		{ HPX_SPAN_INIT("A"), HPX_SPAN_INIT("\177"), NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 256);
		assert_status(hpx_write_field(&out, rows[i].name, rows[i].value),
			      rows[i].line != NULL ? HPX_OK : HPX_INVALID);
		assert_span(hpx_buffer_span(&out), rows[i].line);
		hpx_buffer_done(&out);
	}
}

static void the_bound_leaves_no_half_line(void **state)
{
	struct hpx_buffer out;

	(void)state;
	for (size_t max = 0; max < 6; max++) {
		hpx_buffer_init(&out, max);
		assert_status(hpx_write_field_text(&out, "A", "b"), HPX_TOO_LARGE);
		assert_int_equal(out.len, 0);
		hpx_buffer_done(&out);
	}
	hpx_buffer_init(&out, 6);
	assert_status(hpx_write_field_text(&out, "A", "b"), HPX_OK);
	assert_status(hpx_write_head_end(&out), HPX_TOO_LARGE);
	assert_span(hpx_buffer_span(&out), "A: b\r\n");
	hpx_buffer_done(&out);
}

/* Writes each field of the head that was read from `text`. */
static void write_again(const char *text, struct hpx_buffer *out)
{
	struct hpx_http_limits limits = { .head_bytes_max = 1024, .fields_max = 8 };
	struct hpx_http_reader reader;
	struct hpx_http_head got;
	struct hpx_arena arena;
	size_t used;

	hpx_arena_init(&arena, 4096);
	hpx_http_reader_request(&reader, &limits);
	assert_int_equal(hpx_http_read_head(&reader, hpx_span_of(text), &arena, &got, &used),
			 HPX_HTTP_DONE);
	for (size_t i = 0; i < got.field_count; i++)
		assert_status(hpx_write_read_field(out, &got, i), HPX_OK);
	hpx_arena_done(&arena);
}

static void fields_that_were_read_are_written_as_they_came(void **state)
{
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 1024);
	write_again("GET / HTTP/1.1\r\nHost:a\r\nX-A: b \r\nX-C:\td\r\nX-E:  f\r\nX-G:\r\n"
		    "X-H: \r\nX-I: j k\r\n\r\n",
		    &out);
	assert_span(hpx_buffer_span(&out), "Host: a\r\nX-A: b\r\nX-C: d\r\nX-E: f\r\nX-G: \r\n"
					   "X-H: \r\nX-I: j k\r\n");
	hpx_buffer_done(&out);
}

/* What no reader has proved is checked. */
static void fields_of_a_head_that_nobody_read_are_checked(void **state)
{
	static const struct hpx_field fields[] = {
		{ HPX_SPAN_INIT("X-Good"), HPX_SPAN_INIT("a") },
		{ HPX_SPAN_INIT("X-Bad"), HPX_SPAN_INIT("a\r\nb: c") },
		{ HPX_SPAN_INIT("X Bad"), HPX_SPAN_INIT("a") },
	};
	struct hpx_http_head made = { .fields = fields, .field_count = 3 };
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 64);
	assert_status(hpx_write_read_field(&out, &made, 0), HPX_OK);
	assert_status(hpx_write_read_field(&out, &made, 1), HPX_INVALID);
	assert_status(hpx_write_read_field(&out, &made, 2), HPX_INVALID);
	assert_status(HPX_WRITE_FIELD(&out, "X-Literal", HPX_SPAN("a\r\nb: c")), HPX_INVALID);
	assert_status(HPX_WRITE_FIELD(&out, "X-Literal", HPX_SPAN("")), HPX_OK);
	assert_status(HPX_WRITE_FIELD_U64(&out, "X-Number", 12), HPX_OK);
	assert_span(hpx_buffer_span(&out), "X-Good: a\r\nX-Literal: \r\nX-Number: 12\r\n");
	assert_status(HPX_WRITE_FIELD(&out, "X-Literal", HPX_SPAN("01234567890123")), HPX_TOO_LARGE);
	assert_int_equal(out.len, 38);
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_that_were_read_are_written_as_they_came),
		cmocka_unit_test(fields_of_a_head_that_nobody_read_are_checked),
		cmocka_unit_test(a_request_is_read_back),
		cmocka_unit_test(request_lines),
		cmocka_unit_test(status_lines),
		cmocka_unit_test(fields),
		cmocka_unit_test(the_bound_leaves_no_half_line),
	};
	return cmocka_run_group_tests_name("write", tests, NULL, NULL);
}
