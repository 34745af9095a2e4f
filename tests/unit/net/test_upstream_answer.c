/* Shows how every kind of answer is reported: what ends well and what is
 * nonsense, whether it comes at once or byte by byte, and which connections
 * are used again. */
#include "call.h"
#include "net/upstream_exchange.h"
#include "script.h"

/* What the upstream does behind its answer. A reset may overtake the last
 * bytes; RESETS_LATER waits until they were read. */
enum after { STAYS,
	     CLOSES,
	     RESETS,
	     RESETS_LATER };

struct row {
	const char *name;
	const char *method;
	const char *answer;
	enum after after;
	/* What is reported: an answer (status not 0) or a failure. */
	unsigned status;
	const char *body;
	bool pooled;
	enum hpx_status failure;
};

#define OK_HEAD "HTTP/1.1 200 OK\r\n"
#define HINTS "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
#define HINTS4 HINTS HINTS HINTS HINTS

static const struct row rows[] = {
	{ "length", "POST", OK_HEAD "Content-Length: 5\r\n\r\nhello", STAYS, 200, "hello", true, HPX_OK },
	{ "no body at all", "POST", OK_HEAD "Content-Length: 0\r\n\r\n", STAYS, 200, "", true, HPX_OK },
	{ "chunked", "POST", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: t\r\n\r\n", STAYS, 200, "hello", true, HPX_OK },
	{ "until the end", "POST", OK_HEAD "\r\nhello", CLOSES, 200, "hello", false, HPX_OK },
	{ "until the end, empty", "POST", OK_HEAD "\r\n", CLOSES, 200, "", false, HPX_OK },
	{ "HEAD", "HEAD", OK_HEAD "Content-Length: 5\r\n\r\n", STAYS, 200, "", true, HPX_OK },
	{ "204", "POST", "HTTP/1.1 204 No Content\r\n\r\n", STAYS, 204, "", true, HPX_OK },
	{ "304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", STAYS, 304, "", true, HPX_OK },
	{ "Connection: close", "POST", OK_HEAD "Connection: close\r\nContent-Length: 5\r\n\r\nhello", STAYS, 200, "hello", false, HPX_OK },
	{ "HTTP/1.0", "POST", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", STAYS, 200, "hello", false, HPX_OK },
	{ "one 1xx", "POST", "HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "Content-Length: 2\r\n\r\nok", STAYS, 200, "ok", true, HPX_OK },
	{ "sixteen 1xx", "POST", HINTS4 HINTS4 HINTS4 HINTS4 OK_HEAD "Content-Length: 2\r\n\r\nok", STAYS, 200, "ok", true, HPX_OK },
	{ "an error", "POST", "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", STAYS, 500, "no", true, HPX_OK },
	{ "Keep-Alive: timeout=5", "POST", OK_HEAD "Keep-Alive: max=9, timeout=5\r\nContent-Length: 2\r\n\r\nok", STAYS, 200, "ok", true, HPX_OK },
	{ "Keep-Alive: timeout=1", "POST", OK_HEAD "Keep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok", STAYS, 200, "ok", false, HPX_OK },
	{ "Keep-Alive: timeout=0", "POST", OK_HEAD "Keep-Alive: timeout=0\r\nContent-Length: 2\r\n\r\nok", STAYS, 200, "ok", false, HPX_OK },
	{ "reset behind a whole answer", "POST", OK_HEAD "Content-Length: 2\r\n\r\nok", RESETS_LATER, 200, "ok", false, HPX_OK },
	{ "stray bytes", "POST", OK_HEAD "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", STAYS, 200, "ok", false, HPX_OK },
	{ "body on 204", "POST", "HTTP/1.1 204 No Content\r\n\r\nstray", STAYS, 204, "", false, HPX_OK },

	{ "nothing", "POST", "", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "nothing, reset", "POST", "", RESETS, 0, NULL, false, HPX_IO },
	{ "half a status line", "POST", "HTTP/1.1 2", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "half a head", "POST", OK_HEAD "Content-Le", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "half a head, reset", "POST", OK_HEAD "Content-Le", RESETS, 0, NULL, false, HPX_IO },
	{ "only a 1xx", "POST", "HTTP/1.1 100 Continue\r\n\r\n", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "seventeen 1xx", "POST", HINTS4 HINTS4 HINTS4 HINTS4 HINTS OK_HEAD "\r\n", CLOSES, 0, NULL, false, HPX_INVALID },
	{ "half a body", "POST", OK_HEAD "Content-Length: 5\r\n\r\nhe", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "half a body, reset", "POST", OK_HEAD "Content-Length: 5\r\n\r\nhe", RESETS, 0, NULL, false, HPX_IO },
	{ "half a chunk", "POST", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhe", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "no last chunk", "POST", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", CLOSES, 0, NULL, false, HPX_CLOSED },
	{ "until the end, but reset", "POST", OK_HEAD "\r\nhe", RESETS, 0, NULL, false, HPX_IO },
	{ "a bad chunk", "POST", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n-2\r\nhe\r\n", STAYS, 0, NULL, false, HPX_INVALID },
	{ "a bad chunk's end", "POST", OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\nheXX", STAYS, 0, NULL, false, HPX_INVALID },
	{ "no HTTP", "POST", "220 mail.example ESMTP\r\n", STAYS, 0, NULL, false, HPX_INVALID },
	{ "HTTP/2", "POST", "HTTP/2.0 200 OK\r\n\r\n", STAYS, 0, NULL, false, HPX_INVALID },
	{ "a status of two digits", "POST", "HTTP/1.1 20 OK\r\n\r\n", STAYS, 0, NULL, false, HPX_INVALID },
	{ "two lengths", "POST", OK_HEAD "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", STAYS, 0, NULL, false, HPX_INVALID },
	{ "length and encoding", "POST", OK_HEAD "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", STAYS, 0, NULL, false, HPX_INVALID },
	{ "a bare LF", "POST", "HTTP/1.1 200 OK\n\n", STAYS, 0, NULL, false, HPX_INVALID },
	{ "101 on a guarded request", "POST", "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", STAYS, 0, NULL, false, HPX_INVALID },
};

static const enum script_act_kind after_acts[][2] = {
	[STAYS] = { SCRIPT_READ_END, SCRIPT_END },
	[CLOSES] = { SCRIPT_CLOSE, SCRIPT_END },
	[RESETS] = { SCRIPT_RESET, SCRIPT_END },
	[RESETS_LATER] = { SCRIPT_WAIT, SCRIPT_RESET },
};

static void check_row(const struct row *row, bool drip)
{
	struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = drip ? SCRIPT_DRIP : SCRIPT_SEND, .text = row->answer },
		{ .kind = after_acts[row->after][0] },
		{ .kind = after_acts[row->after][1] },
		{ .kind = SCRIPT_END },
	};
	struct hpx_loop loop;
	struct hpx_upstream *upstream;
	struct script script;

	print_message("%s%s\n", row->name, drip ? ", byte by byte" : "");
	assert_status(hpx_loop_init(&loop), HPX_OK);
	script_start(&script, acts);
	struct hpx_upstream_options options = call_options(&script.address);
	assert_status(hpx_upstream_new(&loop, &options, &upstream), HPX_OK);
	struct call call = call_post(&loop);
	call.request.method = hpx_span_of(row->method);
	call_run(&call, upstream);
	assert_true(call.sent);
	if (row->status != 0)
		assert_ended(&call, row->status, row->body);
	else
		assert_failed(&call, row->failure, true);
	/* At once, unless the reason for closing is still to come. */
	if (!row->pooled && row->after != RESETS_LATER && !drip)
		assert_int_equal(upstream->pool.idle, 0);
	script_go(&script);
	call_settle(&loop, upstream, row->pooled, row->pooled);
	hpx_upstream_free(upstream);
	hpx_loop_run(&loop);
	hpx_loop_done(&loop);
	script_stop(&script);
	assert_int_equal(script.requests, 1);
}

static void answers_are_reported_as_they_are(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_row(&rows[i], false);
}

static void answers_that_come_byte_by_byte_are_reported_alike(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_row(&rows[i], true);
}

/* A head as long as may be, and one byte longer. */
static void check_head_size(size_t size, bool fits)
{
	char *answer = malloc(size + 1);
	static const char begin[] = OK_HEAD "Content-Length: 0\r\nX: ";
	struct row row = { "", "POST", answer, STAYS, fits ? 200 : 0, "", fits, HPX_INVALID };

	assert_non_null(answer);
	memset(answer, 'x', size);
	memcpy(answer, begin, sizeof(begin) - 1);
	memcpy(answer + size - 4, "\r\n\r\n", 5);
	check_row(&row, false);
	free(answer);
}

static void a_head_has_its_bound(void **state)
{
	(void)state;
	check_head_size(16384, true);
	check_head_size(16385, false);
	check_head_size(60000, false);
}

int main(void)
{
	hpx_net_ignore_sigpipe();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_reported_as_they_are),
		cmocka_unit_test(answers_that_come_byte_by_byte_are_reported_alike),
		cmocka_unit_test(a_head_has_its_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
