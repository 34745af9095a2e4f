/* Shows that an answer which comes before the request's body was wholly sent
 * counts, whatever becomes of the rest. */
#include "call.h"

/* More than the sockets of both sides hold. */
#define BIG_BYTES ((size_t)64 << 20)

struct row {
	const char *answer;
	unsigned status;
	/* The server neither reads on nor hangs up: only the timeout ends it. */
	int64_t timeout_ms;
};

static const struct row rows[] = {
	{ "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", 413, TEST_PATIENCE_MS },
	{ "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", 413,
	  TEST_PATIENCE_MS },
	{ "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", 403,
	  TEST_PATIENCE_MS },
	{ "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "2\r\nno\r\n0\r\n\r\n",
	  200, TEST_PATIENCE_MS },
	{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 200, 3000 },
};

static void an_early_answer_counts(void **state)
{
	char *body = calloc(1, BIG_BYTES);
	struct server server;
	struct call call;

	(void)state;
	assert_non_null(body);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct server_act acts[] = {
			{ .kind = SERVER_ACCEPT },
			{ .kind = SERVER_READ_HEAD },
			{ .kind = SERVER_SEND, .text = rows[i].answer },
			{ .kind = SERVER_WAIT },
			{ .kind = SERVER_NOBODY },
			{ .kind = SERVER_END },
		};
		server_start(&server, acts, NULL);
		call_init(&call, server.url, "/");
		call.request.body = hpx_span(body, BIG_BYTES);
		call.request.timeout_ms = rows[i].timeout_ms;
		call_once(&call);
		server_go(&server);
		server_stop(&server);
		assert_end(&call, HPX_EGRESS_ANSWERED);
		assert_int_equal(call.request.status, rows[i].status);
		assert_span(hpx_buffer_span(&call.request.body_in), "no");
		assert_int_equal(server.requests, 1);
		call_done(&call);
	}
	free(body);
}

static void half_an_early_answer_does_not(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ_HEAD },
		{ .kind = SERVER_SEND, .text = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno" },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	char *body = calloc(1, BIG_BYTES);
	struct server server;
	struct call call;

	(void)state;
	assert_non_null(body);
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	call.request.body = hpx_span(body, BIG_BYTES);
	call_once(&call);
	server_go(&server);
	server_stop(&server);
	assert_end(&call, HPX_EGRESS_NO_ANSWER);
	call_done(&call);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_early_answer_counts),
		cmocka_unit_test(half_an_early_answer_does_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
