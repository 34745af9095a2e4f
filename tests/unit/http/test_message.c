/* Shows that the reader takes what RFC 9112 allows and refuses what is open
 * to two readings, with the same verdict however the bytes are portioned. */
#include "../test.h"
#include "feed.h"
#include "vectors.h"

/* Longer than any row; the tables stay readable, cutting stays quick. */
#define INPUT_MAX 512

static const struct hpx_http_limits limits = { .head_bytes_max = 400, .fields_max = 16 };

static const struct vector_list *const lists[] = {
	&request_vectors,
	&field_vectors,
	&response_vectors,
	&chunk_vectors,
};

static const char *const progress_names[] = { "MORE", "DONE", "BAD" };

static struct feed_setup setup_of(const struct vector *row)
{
	return (struct feed_setup){
		.response = row->method != NULL,
		.method = hpx_span_of(row->method),
		.limits = limits,
		.ends = row->error == HPX_HTTP_ERROR_INCOMPLETE || (row->flags & END) != 0,
	};
}

static unsigned flags_of(const struct hpx_http_head *head)
{
	return (head->keep_alive ? KEEP : 0) | (head->expect_continue ? EXPECT : 0) |
	       (head->upgrade ? UPGRADE : 0);
}

static void check_good(const struct vector *row, const struct feed_result *got)
{
	if (got->progress != HPX_HTTP_DONE)
		fail_msg("%s: got %s %s, want DONE", row->rule,
			 progress_names[got->progress], feed_error_name(got->error));
	if (got->head.framing != row->framing)
		fail_msg("%s: got framing %d, want %d", row->rule, (int)got->head.framing,
			 (int)row->framing);
	if (flags_of(&got->head) != (row->flags & ~(unsigned)END))
		fail_msg("%s: got flags %u, want %u", row->rule, flags_of(&got->head),
			 row->flags);
	struct hpx_span body = hpx_buffer_span(&got->body);
	if (!hpx_span_eq(body, hpx_span_of(row->body)))
		fail_msg("%s: got body \"%.*s\", want \"%s\"", row->rule,
			 HPX_SPAN_ARG(body), row->body);
	/* A body that ends with the connection has no next message behind it. */
	bool counts =
		row->framing != HPX_FRAMING_CLOSE && row->framing != HPX_FRAMING_TUNNEL;
	if (counts && row->input.len - got->used != row->rest)
		fail_msg("%s: got %zu bytes left, want %zu", row->rule,
			 row->input.len - got->used, row->rest);
}

static void check_row(const struct vector *row, const struct feed_result *got)
{
	if (row->error == HPX_HTTP_ERROR_NONE) {
		check_good(row, got);
		return;
	}
	if (got->progress != HPX_HTTP_BAD || got->error != row->error)
		fail_msg("%s: got %s %s, want BAD %s", row->rule,
			 progress_names[got->progress], feed_error_name(got->error),
			 feed_error_name(row->error));
}

static void each_row(void (*check)(const struct vector *row))
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (size_t j = 0; j < lists[i]->count; j++)
			check(&lists[i]->rows[j]);
}

static void check_whole(const struct vector *row)
{
	struct feed_setup setup = setup_of(row);
	struct feed_result got;

	assert_in_range(row->input.len, 1, INPUT_MAX);
	feed_run(&setup, row->input, NULL, 0, &got);
	check_row(row, &got);
	feed_done(&got);
}

static void rows_fed_whole(void **state)
{
	(void)state;
	each_row(check_whole);
}

static void check_cut(const struct vector *row, const size_t *cuts, size_t count,
		      const struct feed_result *whole)
{
	struct feed_setup setup = setup_of(row);
	struct feed_result got;

	feed_run(&setup, row->input, cuts, count, &got);
	if (!feed_same(&got, whole))
		fail_msg("%s, %zu cuts, the first at %zu: got %s %s, whole it was %s %s",
			 row->rule, count, cuts[0], progress_names[got.progress],
			 feed_error_name(got.error), progress_names[whole->progress],
			 feed_error_name(whole->error));
	feed_done(&got);
}

static void check_every_cut(const struct vector *row)
{
	struct feed_setup setup = setup_of(row);
	size_t cuts[INPUT_MAX];
	struct feed_result whole;

	feed_run(&setup, row->input, NULL, 0, &whole);
	for (size_t i = 0; i < row->input.len; i++) {
		cuts[i] = i;
		check_cut(row, &cuts[i], 1, &whole);
	}
	check_cut(row, cuts, row->input.len, &whole);
	feed_done(&whole);
}

static void rows_cut_at_every_byte_and_byte_by_byte(void **state)
{
	(void)state;
	each_row(check_every_cut);
}

/* What could still become a good message is never refused. */
static void check_beginnings(const struct vector *row)
{
	struct feed_setup setup = setup_of(row);
	struct feed_result got;

	if (row->error != HPX_HTTP_ERROR_NONE && row->error != HPX_HTTP_ERROR_INCOMPLETE)
		return;
	setup.ends = false;
	for (size_t i = 0; i < row->input.len; i++) {
		feed_run(&setup, hpx_span_first(row->input, i), NULL, 0, &got);
		if (got.progress == HPX_HTTP_BAD)
			fail_msg("%s: its first %zu bytes got BAD %s", row->rule, i,
				 feed_error_name(got.error));
		feed_done(&got);
	}
}

static void beginnings_of_good_messages_are_never_bad(void **state)
{
	(void)state;
	each_row(check_beginnings);
}

/* The last byte of each is the first wrong one; nothing follows it. */
static void what_is_wrong_is_said_at_once(void **state)
{
	static const struct {
		struct hpx_span input;
		enum hpx_http_error error;
	} rows[] = {
		{ HPX_SPAN_INIT("\n"), HPX_HTTP_ERROR_LINE_END },
		{ HPX_SPAN_INIT("G\0"), HPX_HTTP_ERROR_METHOD },
		{ HPX_SPAN_INIT("GET /\177"), HPX_HTTP_ERROR_TARGET },
		{ HPX_SPAN_INIT("GET / X"), HPX_HTTP_ERROR_REQUEST_LINE },
		{ HPX_SPAN_INIT("GET / HTTP/3.0\r"), HPX_HTTP_ERROR_VERSION },
		{ HPX_SPAN_INIT("GET / HTTP/1.1\n"), HPX_HTTP_ERROR_LINE_END },
		{ HPX_SPAN_INIT("GET / HTTP/1.1\r\n "), HPX_HTTP_ERROR_FIELD_FOLDED },
		{ HPX_SPAN_INIT("GET / HTTP/1.1\r\n:"), HPX_HTTP_ERROR_FIELD_NAME },
		{ HPX_SPAN_INIT("GET / HTTP/1.1\r\nX "), HPX_HTTP_ERROR_FIELD_SPACE },
		{ HPX_SPAN_INIT("GET / HTTP/1.1\r\nX: \b"), HPX_HTTP_ERROR_FIELD_VALUE },
	};
	struct feed_setup setup = { .limits = limits };
	struct feed_result got;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		feed_run(&setup, rows[i].input, NULL, 0, &got);
		if (got.error != rows[i].error)
			fail_msg("row %zu: got %s, want %s", i,
				 feed_error_name(got.error),
				 feed_error_name(rows[i].error));
		feed_done(&got);
		feed_run(&setup, hpx_span_first(rows[i].input, rows[i].input.len - 1), NULL,
			 0, &got);
		assert_int_equal(got.progress, HPX_HTTP_MORE);
		feed_done(&got);
	}
}

static void spans_are_cut_where_they_belong(void **state)
{
	static const char request[] =
		"\r\nPOST /a?b HTTP/1.1\r\nHost:a\r\nX-One: \t1 2\t \r\n"
		"x:\r\n\r\n";
	static const char response[] = "HTTP/1.0 404 Not  here\r\nA:b:c\r\n\r\n";
	struct feed_setup setup = { .limits = limits };
	struct feed_result got;

	(void)state;
	feed_run(&setup, hpx_span_of(request), NULL, 0, &got);
	assert_span(hpx_buffer_span(&got.head_text), "POST|/a?b||Host=a|X-One=1 2|x=");
	assert_int_equal(got.head.minor, 1);
	feed_done(&got);
	setup.response = true;
	feed_run(&setup, hpx_span_of(response), NULL, 0, &got);
	assert_span(hpx_buffer_span(&got.head_text), "||Not  here|A=b:c");
	assert_int_equal(got.head.status, 404);
	assert_int_equal(got.head.minor, 0);
	feed_done(&got);
}

static void lengths_are_known_without_a_body(void **state)
{
	struct feed_setup setup = { .response = true,
				    .method = HPX_SPAN_INIT("HEAD"),
				    .limits = limits };
	struct feed_result got;

	(void)state;
	feed_run(&setup,
		 HPX_SPAN("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n"),
		 NULL, 0, &got);
	assert_int_equal(got.progress, HPX_HTTP_DONE);
	assert_true(got.head.has_content_length);
	assert_true(got.head.content_length == INT64_MAX);
	feed_done(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_fed_whole),
		cmocka_unit_test(rows_cut_at_every_byte_and_byte_by_byte),
		cmocka_unit_test(beginnings_of_good_messages_are_never_bad),
		cmocka_unit_test(what_is_wrong_is_said_at_once),
		cmocka_unit_test(spans_are_cut_where_they_belong),
		cmocka_unit_test(lengths_are_known_without_a_body),
	};
	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
