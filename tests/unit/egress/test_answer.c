/* Shows which bytes count as a complete answer, and what is made of them. */
#include "call.h"

#include "base/clock.h"

#define LENGTH_2 "Content-Length: 2\r\n\r\n"

struct row {
	const char *bytes;
	enum hpx_egress_end end;
	unsigned status;
	const char *headers;
	const char *body;
	const char *method; /* NULL: POST */
};

static const struct row rows[] = {
	{ "HTTP/1.1 200 OK\r\n" LENGTH_2 "ok", HPX_EGRESS_ANSWERED, 200,
	  "Content-Length: 2\r\n", "ok", NULL },
	{ "HTTP/1.0 200 OK\r\nA:  b \r\nC:\r\n\r\nuntil the end", HPX_EGRESS_ANSWERED, 200,
	  "A: b\r\nC: \r\n", "until the end", NULL },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n1\r\n!\r\n0\r\n"
	  "Trailer: dropped\r\n\r\n",
	  HPX_EGRESS_ANSWERED, 200, "Transfer-Encoding: chunked\r\n", "ok!", NULL },
	{ "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", HPX_EGRESS_ANSWERED, 204, "X: y\r\n", "",
	  NULL },
	{ "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", HPX_EGRESS_ANSWERED, 304,
	  "Content-Length: 9\r\n", "", "GET" },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", HPX_EGRESS_ANSWERED, 200,
	  "Content-Length: 100\r\n", "", "HEAD" },
	{ "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
	  "HTTP/1.1 201 Created\r\nC: d\r\n" LENGTH_2 "ok",
	  HPX_EGRESS_ANSWERED, 201, "C: d\r\nContent-Length: 2\r\n", "ok", NULL },
	/* Nothing is followed, nothing asked again. */
	{ "HTTP/1.1 307 Elsewhere\r\nLocation: /again\r\n" LENGTH_2 "ok", HPX_EGRESS_ANSWERED, 307,
	  "Location: /again\r\nContent-Length: 2\r\n", "ok", NULL },
	{ "HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=\"x\"\r\n" LENGTH_2 "no",
	  HPX_EGRESS_ANSWERED, 401,
	  "WWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 2\r\n", "no", NULL },
	{ "HTTP/1.1 417 Expectation Failed\r\n" LENGTH_2 "no", HPX_EGRESS_ANSWERED, 417,
	  "Content-Length: 2\r\n", "no", NULL },
	/* Content stays as it came. */
	{ "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" LENGTH_2 "zz", HPX_EGRESS_ANSWERED, 200,
	  "Content-Encoding: gzip\r\nContent-Length: 2\r\n", "zz", NULL },
	/* Half an answer. */
	{ "", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 2", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\n", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\n" LENGTH_2, HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\n" LENGTH_2 "o", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HPX_EGRESS_NO_ANSWER, 0, "", "",
	  NULL },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", HPX_EGRESS_NO_ANSWER,
	  0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
	  HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 100 Continue\r\n\r\n", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	/* Nonsense. */
	{ "ok", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/0.9 200 OK\r\n" LENGTH_2 "ok", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 99 Low\r\n" LENGTH_2 "ok", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 2000 High\r\n" LENGTH_2 "ok", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	  HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n" LENGTH_2 "ok", HPX_EGRESS_NO_ANSWER, 0, "", "",
	  NULL },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" LENGTH_2 "ok", HPX_EGRESS_NO_ANSWER, 0, "", "",
	  NULL },
	{ "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" LENGTH_2 "2\r\nok\r\n0\r\n\r\n",
	  HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
	{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
	  HPX_EGRESS_NO_ANSWER, 0, "", "", NULL },
};

static void run_row(const struct row *row, struct call *call, struct hpx_egress *egress)
{
	const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = row->bytes },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct server server;

	server_start(&server, acts, NULL);
	call_init(call, server.url, "/?secret=1");
	if (row->method != NULL) {
		call->request.method = row->method;
		call->request.body = HPX_SPAN("");
	}
	call_run(call, egress);
	server_go(&server);
	server_stop(&server);
	assert_int_equal(server.requests, 1);
}

static void each_answer_is_judged(void **state)
{
	struct hpx_egress *egress = call_engine(1);
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run_row(&rows[i], &call, egress);
		print_message("%zu: %s %s\n", i, hpx_egress_end_text(call.request.end),
			      call.request.problem);
		assert_end(&call, rows[i].end);
		assert_int_equal(call.request.status, rows[i].status);
		assert_span(hpx_buffer_span(&call.request.headers_in), rows[i].headers);
		assert_span(hpx_buffer_span(&call.request.body_in), rows[i].body);
		assert_false(call.request.body_dropped);
		assert_int_equal(call.request.retry_after_ms, -1);
		assert_null(strstr(call.request.problem, "secret"));
		call_done(&call);
	}
	call_engine_stop(egress);
}

static void retry_after_is_read(void **state)
{
	static const struct {
		const char *value;
		int64_t ms_min;
		int64_t ms_max;
	} cases[] = {
		{ "0", 0, 0 },
		{ "120", 120000, 120000 },
		{ "99999999999999999999", 31536000000, 31536000000 },
		{ "soon", -1, -1 },
		{ "-1", -1, -1 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0, 0 },
	};
	struct hpx_egress *egress = call_engine(1);
	char bytes[256], date[HPX_HTTP_DATE_SIZE];
	struct row row = { .bytes = bytes };
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(bytes, sizeof(bytes), "HTTP/1.1 503 Later\r\nRetry-After: %s\r\n" LENGTH_2 "no", cases[i].value);
		run_row(&row, &call, egress);
		assert_end(&call, HPX_EGRESS_ANSWERED);
		assert_in_range(call.request.retry_after_ms + 1, cases[i].ms_min + 1,
				cases[i].ms_max + 1);
		call_done(&call);
	}
	hpx_clock_http_date(hpx_clock_wall_ms() + 3600000, date);
	snprintf(bytes, sizeof(bytes), "HTTP/1.1 503 Later\r\nRetry-After: %s\r\n" LENGTH_2 "no",
		 date);
	run_row(&row, &call, egress);
	assert_in_range(call.request.retry_after_ms, 3600000 - 2 * TEST_PATIENCE_MS, 3600000);
	call_done(&call);
	call_engine_stop(egress);
}

static void a_head_beyond_its_bound_is_no_answer(void **state)
{
	static char bytes[HPX_EGRESS_HEAD_BYTES_MAX + 64] = "HTTP/1.1 200 OK\r\nX: ";
	const struct row row = { .bytes = bytes };
	struct hpx_egress *egress = call_engine(1);
	struct call call;
	size_t len = strlen(bytes);

	(void)state;
	memset(bytes + len, 'a', sizeof(bytes) - len - 5);
	memcpy(bytes + sizeof(bytes) - 5, "\r\n\r\n", 4);
	run_row(&row, &call, egress);
	assert_end(&call, HPX_EGRESS_NO_ANSWER);
	call_done(&call);
	call_engine_stop(egress);
}

#define BIG_BYTES ((size_t)8 << 20)

static void fill_pattern(char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i % 251);
}

static void large_bodies_pass_both_ways(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n" },
		{ .kind = SERVER_SEND_BODY, .size = BIG_BYTES },
		{ .kind = SERVER_END },
	};
	/* To the byte, one byte too small, and none at all. */
	static const size_t maxima[] = { BIG_BYTES, BIG_BYTES - 1, 0 };
	char *bytes = malloc(BIG_BYTES);
	struct server server;
	struct call call;

	(void)state;
	assert_non_null(bytes);
	fill_pattern(bytes, BIG_BYTES);
	for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++) {
		server_start(&server, acts, NULL);
		call_init(&call, server.url, "/");
		call.request.body = hpx_span(bytes, BIG_BYTES);
		call.request.answer_bytes_max = maxima[i];
		call_once(&call);
		server_stop(&server);
		assert_int_equal(server.body_bytes, BIG_BYTES);
		assert_true(server.in_pattern);
		assert_null(strcasestr(server.head, "Expect"));
		assert_end(&call, HPX_EGRESS_ANSWERED);
		assert_int_equal(call.request.body_dropped, maxima[i] < BIG_BYTES);
		assert_int_equal(call.request.body_in.len, maxima[i] < BIG_BYTES ? 0 : BIG_BYTES);
		if (maxima[i] == BIG_BYTES)
			assert_memory_equal(call.request.body_in.ptr, bytes, BIG_BYTES);
		call_done(&call);
	}
	free(bytes);
}

static void a_large_body_that_is_cut_off_is_half_an_answer(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n" },
		{ .kind = SERVER_SEND_BODY, .size = BIG_BYTES - 1 },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call call;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	call_once(&call);
	server_stop(&server);
	assert_end(&call, HPX_EGRESS_NO_ANSWER);
	assert_false(call.request.body_dropped);
	assert_non_null(strstr(call.request.problem, "incomplete answer (200)"));
	call_done(&call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_is_judged),
		cmocka_unit_test(retry_after_is_read),
		cmocka_unit_test(a_head_beyond_its_bound_is_no_answer),
		cmocka_unit_test(large_bodies_pass_both_ways),
		cmocka_unit_test(a_large_body_that_is_cut_off_is_half_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
