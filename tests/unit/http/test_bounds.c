/* Shows that every part of a message has its bound, that the bound itself is
 * still taken, and that pipelined messages are read one after the other. */
#include "../test.h"
#include "feed.h"

#define HEAD_MAX 600

static const struct feed_setup setup = {
	.limits = { .head_bytes_max = HEAD_MAX, .fields_max = 4 },
};

/* The text, then `count` times `c`, then the rest of the text. */
static void build(struct hpx_buffer *out, const char *before, char c, size_t count,
		  const char *after)
{
	hpx_buffer_init(out, 1 << 20);
	assert_status(hpx_buffer_text(out, before), HPX_OK);
	for (size_t i = 0; i < count; i++)
		assert_status(hpx_buffer_byte(out, c), HPX_OK);
	assert_status(hpx_buffer_text(out, after), HPX_OK);
}

/* Whole and in portions of 97 bytes. */
static void expect(const struct hpx_buffer *input, enum hpx_http_progress progress,
		   enum hpx_http_error error)
{
	static size_t cuts[512];
	struct feed_result whole;
	struct feed_result portioned;
	size_t count = 0;

	for (size_t at = 97; at < input->len && count < 512; at += 97)
		cuts[count++] = at;
	feed_run(&setup, hpx_buffer_span(input), NULL, 0, &whole);
	feed_run(&setup, hpx_buffer_span(input), cuts, count, &portioned);
	if (whole.progress != progress || whole.error != error)
		fail_msg("%zu bytes: got %d %s, want %d %s", input->len,
			 (int)whole.progress, feed_error_name(whole.error),
			 (int)progress, feed_error_name(error));
	assert_true(feed_same(&whole, &portioned));
	feed_done(&whole);
	feed_done(&portioned);
}

static const char line[] = "GET / HTTP/1.1\r\nHost: a\r\nX: ";

static void a_head_has_a_bound(void **state)
{
	size_t fits = HEAD_MAX - strlen(line) - 4;
	struct hpx_buffer input;

	(void)state;
	build(&input, line, 'x', fits, "\r\n\r\n");
	assert_int_equal(input.len, HEAD_MAX);
	expect(&input, HPX_HTTP_DONE, HPX_HTTP_ERROR_NONE);
	hpx_buffer_done(&input);

	build(&input, line, 'x', fits + 1, "\r\n\r\n");
	expect(&input, HPX_HTTP_BAD, HPX_HTTP_ERROR_HEAD_TOO_LARGE);
	hpx_buffer_done(&input);

	/* Said as soon as the bound is reached, and before what lies beyond. */
	build(&input, "GET /", 'x', HEAD_MAX - 5, "");
	expect(&input, HPX_HTTP_BAD, HPX_HTTP_ERROR_HEAD_TOO_LARGE);
	hpx_buffer_done(&input);
	build(&input, "GET /", 'x', HEAD_MAX, "\n\n\n");
	expect(&input, HPX_HTTP_BAD, HPX_HTTP_ERROR_HEAD_TOO_LARGE);
	hpx_buffer_done(&input);
	assert_int_equal(hpx_http_error_status(HPX_HTTP_ERROR_HEAD_TOO_LARGE), 431);
}

static void fields_have_a_bound(void **state)
{
	struct hpx_buffer input;

	(void)state;
	build(&input, line, 'x', 1, "\r\nY: 3\r\nZ: 4\r\n\r\n");
	expect(&input, HPX_HTTP_DONE, HPX_HTTP_ERROR_NONE);
	hpx_buffer_done(&input);
	build(&input, line, 'x', 1, "\r\nY: 3\r\nZ: 4\r\nA");
	expect(&input, HPX_HTTP_BAD, HPX_HTTP_ERROR_TOO_MANY_FIELDS);
	hpx_buffer_done(&input);
	assert_int_equal(hpx_http_error_status(HPX_HTTP_ERROR_TOO_MANY_FIELDS), 431);
}

static const char chunked[] =
	"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/* 4096 bytes a line, its CR LF included; each line anew. */
static void chunk_lines_have_a_bound(void **state)
{
	struct hpx_buffer input;
	struct hpx_buffer twice;

	(void)state;
	build(&input, "1;", 'x', 4096 - 4, "\r\nA\r\n");
	build(&twice, chunked, 'x', 0, "");
	assert_status(hpx_buffer_append(&twice, hpx_buffer_span(&input)), HPX_OK);
	assert_status(hpx_buffer_append(&twice, hpx_buffer_span(&input)), HPX_OK);
	assert_status(hpx_buffer_text(&twice, "0\r\n\r\n"), HPX_OK);
	expect(&twice, HPX_HTTP_DONE, HPX_HTTP_ERROR_NONE);
	hpx_buffer_done(&twice);
	hpx_buffer_done(&input);

	build(&input, "1;", 'x', 4096 - 3, "\r\nA\r\n");
	build(&twice, chunked, 'x', 0, "");
	assert_status(hpx_buffer_append(&twice, hpx_buffer_span(&input)), HPX_OK);
	expect(&twice, HPX_HTTP_BAD, HPX_HTTP_ERROR_CHUNK);
	hpx_buffer_done(&twice);
	hpx_buffer_done(&input);
}

static void trailers_have_a_bound(void **state)
{
	static const struct {
		size_t filler;
		enum hpx_http_progress progress;
		enum hpx_http_error error;
	} rows[] = {
		{ 8192 - 6, HPX_HTTP_DONE, HPX_HTTP_ERROR_NONE },
		{ 8192 - 5, HPX_HTTP_BAD, HPX_HTTP_ERROR_TRAILER },
		{ 20000, HPX_HTTP_BAD, HPX_HTTP_ERROR_TRAILER },
	};
	struct hpx_buffer trailer;
	struct hpx_buffer input;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		build(&trailer, "0\r\nX:", 'x', rows[i].filler, "\r\n\r\n");
		build(&input, chunked, 'x', 0, "");
		assert_status(hpx_buffer_append(&input, hpx_buffer_span(&trailer)), HPX_OK);
		expect(&input, rows[i].progress, rows[i].error);
		hpx_buffer_done(&input);
		hpx_buffer_done(&trailer);
	}
	build(&input, chunked, 'x', 0, "0\r\na:\r\nb:\r\nc:\r\nd:\r\ne:\r\n\r\n");
	expect(&input, HPX_HTTP_BAD, HPX_HTTP_ERROR_TRAILER);
	hpx_buffer_done(&input);
}

static void an_arena_without_room_refuses_the_head(void **state)
{
	struct hpx_http_reader reader;
	struct hpx_http_head head;
	struct hpx_arena arena;
	size_t used;

	(void)state;
	hpx_arena_init(&arena, 16);
	hpx_http_reader_request(&reader, &setup.limits);
	assert_int_equal(hpx_http_read_head(&reader,
					    HPX_SPAN("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
					    &arena, &head, &used),
			 HPX_HTTP_BAD);
	assert_int_equal(reader.error, HPX_HTTP_ERROR_HEAD_TOO_LARGE);
	/* It stays refused. */
	assert_int_equal(hpx_http_read_end(&reader), HPX_HTTP_BAD);
	assert_int_equal(reader.error, HPX_HTTP_ERROR_HEAD_TOO_LARGE);
	hpx_arena_done(&arena);
}

static void pipelined_messages_come_one_by_one(void **state)
{
	static const struct {
		const char *head;
		const char *body;
	} rows[] = {
		{ "GET|/1||Host=a", "" },
		{ "POST|/2||Host=a|Content-Length=3", "two" },
		{ "POST|/3||Host=a|Transfer-Encoding=chunked", "three" },
		{ "GET|/4||Host=a", "" },
	};
	struct hpx_span rest =
		HPX_SPAN("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
			 "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\ntwo"
			 "POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
			 "5\r\nthree\r\n0\r\n\r\n"
			 "\r\nGET /4 HTTP/1.1\r\nHost: a\r\n\r\n");
	struct feed_result got;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		feed_run(&setup, rest, NULL, 0, &got);
		assert_int_equal(got.progress, HPX_HTTP_DONE);
		assert_span(hpx_buffer_span(&got.head_text), rows[i].head);
		assert_span(hpx_buffer_span(&got.body), rows[i].body);
		rest = hpx_span_skip(rest, got.used);
		feed_done(&got);
	}
	assert_int_equal(rest.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_has_a_bound),
		cmocka_unit_test(fields_have_a_bound),
		cmocka_unit_test(chunk_lines_have_a_bound),
		cmocka_unit_test(trailers_have_a_bound),
		cmocka_unit_test(an_arena_without_room_refuses_the_head),
		cmocka_unit_test(pipelined_messages_come_one_by_one),
	};
	return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
