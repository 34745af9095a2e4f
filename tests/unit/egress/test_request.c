/* Shows what is sent for a request, to the byte, and which requests are
 * refused before anything happens. */
#include "call.h"

static void never(struct hpx_egress_request *request)
{
	fail_msg("done was called for %s", request->url);
}

static void what_cannot_be_sent_is_refused(void **state)
{
	static const struct {
		const char *url;
		const char *method;
		const char *headers;
		const char *problem;
	} rows[] = {
		{ "ftp://h/", "GET", "", "the URL is neither http:// nor https://" },
		{ "file:///etc/passwd", "GET", "", "the URL is neither http:// nor https://" },
		{ "h/path", "GET", "", "the URL is neither http:// nor https://" },
		{ "", "GET", "", "the URL is neither http:// nor https://" },
		{ "http://", "GET", "", "the URL names no host" },
		{ "http:///x", "GET", "", "the URL names no host" },
		{ "http://?x", "GET", "", "the URL names no host" },
		{ "http://u:p@h/", "GET", "", "the URL holds a user name; credentials go into a header field" },
		{ "https://u@h", "GET", "", "the URL holds a user name; credentials go into a header field" },
		{ "http://h/a b", "GET", "",
		  "the URL has a byte that must be escaped, or a fragment" },
		{ "http://h/\r\nX: y", "GET", "",
		  "the URL has a byte that must be escaped, or a fragment" },
		{ "http://h/#f", "GET", "",
		  "the URL has a byte that must be escaped, or a fragment" },
		{ "http://h/", "", "", "the method is not one that can be sent" },
		{ "http://h/", "GET /x HTTP/1.1\r\nX:", "",
		  "the method is not one that can be sent" },
		{ "http://h/", "CONNECT", "", "the method is not one that can be sent" },
		{ "http://h/", "GET", "X: y", "a header field is malformed" },
		{ "http://h/", "GET", "X: y\n", "a header field is malformed" },
		{ "http://h/", "GET", "X: y\r", "a header field is malformed" },
		{ "http://h/", "GET", "X: y\r\n\r\n", "a header field is malformed" },
		{ "http://h/", "GET", "X: y\nZ: w\r\n", "a header field is malformed" },
		{ "http://h/", "GET", "X: y\rZ: w\r\n", "a header field is malformed" },
		{ "http://h/", "GET", "X: y\r\n folded\r\n", "a header field is malformed" },
		{ "http://h/", "GET", "X : y\r\n", "a header field is malformed" },
		{ "http://h/", "GET", ": y\r\n", "a header field is malformed" },
		{ "http://h/", "GET", "X\r\n", "a header field is malformed" },
		{ "http://h/", "GET", "A: b\r\nContent-Length: 3\r\n",
		  "the header field Content-Length cannot be given" },
		{ "http://h/", "GET", "transfer-encoding: chunked\r\n",
		  "the header field transfer-encoding cannot be given" },
		{ "http://h/", "GET", "Connection: keep-alive\r\n",
		  "the header field Connection cannot be given" },
		{ "http://h/", "GET", "Expect: 100-continue\r\n",
		  "the header field Expect cannot be given" },
		{ "http://h/", "GET", "Upgrade: h2c\r\n",
		  "the header field Upgrade cannot be given" },
	};
	struct hpx_egress *egress = call_engine(1);
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		call_init(&call, rows[i].url, "");
		call.request.method = rows[i].method;
		call.request.headers = hpx_span_of(rows[i].headers);
		call.request.done = never;
		assert_status(hpx_egress_submit(egress, &call.request), HPX_INVALID);
		assert_string_equal(call.request.problem, rows[i].problem);
		assert_int_equal(call.request.end, HPX_EGRESS_NOT_SENT);
	}
	call_engine_stop(egress);
}

static void refuse(struct hpx_egress *egress, struct call *call, enum hpx_status want)
{
	call->request.done = never;
	assert_status(hpx_egress_submit(egress, &call->request), want);
	assert_true(call->request.problem[0] != '\0');
}

static void bounds_are_kept(void **state)
{
	struct hpx_egress *egress = call_engine(1);
	static char fields[HPX_EGRESS_HEAD_BYTES_MAX + 8] = "X: ";
	static char url[10000] = "http://h/";
	struct call call;

	(void)state;
	memset(fields + 3, 'a', sizeof(fields) - 5);
	memcpy(fields + sizeof(fields) - 2, "\r\n", 2);
	memset(url + 9, 'a', sizeof(url) - 10);
	call_init(&call, "http://h", "/");
	call.request.headers = hpx_span(fields, sizeof(fields));
	refuse(egress, &call, HPX_TOO_LARGE);
	call_init(&call, "http://h", "/");
	call.request.url = url;
	refuse(egress, &call, HPX_INVALID);
	call_init(&call, "http://h", "/");
	call.request.headers = hpx_span("X: a\0b\r\n", 8);
	refuse(egress, &call, HPX_INVALID);
	call_init(&call, "http://h", "/");
	call.request.method = "HEAD";
	refuse(egress, &call, HPX_INVALID);
	call_init(&call, "http://h", "/");
	call.request.timeout_ms = 0;
	refuse(egress, &call, HPX_INVALID);
	call_init(&call, "http://h", "/");
	call.request.connect_timeout_ms = INT64_MAX;
	refuse(egress, &call, HPX_INVALID);
	call_engine_stop(egress);
}

/* The request as the server saw it, without its Host field. */
static void assert_head(const struct server *server, const char *want)
{
	char got[sizeof(server->head)];
	const char *host = strstr(server->head, "Host: 127.0.0.1:");

	assert_non_null(host);
	const char *behind = strstr(host, "\r\n") + 2;
	snprintf(got, sizeof(got), "%.*s%s", (int)(host - server->head), server->head, behind);
	assert_string_equal(got, want);
}

#define AGENT "User-Agent: hapax/" HPX_VERSION "\r\nAccept: */*\r\n"

static void what_is_sent_is_what_was_asked_for(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 1, .text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
		{ .kind = SERVER_END },
	};
	static const struct {
		const char *method;
		const char *path;
		const char *headers;
		const char *body;
		bool reuse;
		const char *head;
	} rows[] = {
		{ "POST", "/a?b=c", "X: y\r\nContent-Type: text/plain\r\n", "body", false,
		  "POST /a?b=c HTTP/1.1\r\n" AGENT "X: y\r\nContent-Type: text/plain\r\n"
		  "Connection: close\r\nAccept-Encoding: identity\r\nContent-Length: 4\r\n\r\n" },
		{ "POST", "/./a/../b", "", "", false,
		  "POST /./a/../b HTTP/1.1\r\n" AGENT
		  "Connection: close\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n\r\n" },
		{ "PATCH", "/", "Authorization: Bearer t\r\n", "x", true,
		  "PATCH / HTTP/1.1\r\n" AGENT "Authorization: Bearer t\r\n"
		  "Accept-Encoding: identity\r\nContent-Length: 1\r\n\r\n" },
		{ "GET", "", "", "", true,
		  "GET / HTTP/1.1\r\n" AGENT "Accept-Encoding: identity\r\n\r\n" },
		{ "DELETE", "/x", "", "", true,
		  "DELETE /x HTTP/1.1\r\n" AGENT "Accept-Encoding: identity\r\n\r\n" },
		{ "HEAD", "/x", "", "", true,
		  "HEAD /x HTTP/1.1\r\n" AGENT "Accept-Encoding: identity\r\n\r\n" },
		/* An empty field is sent as one; ours are given way to. */
		{ "GET", "/", "Empty:\r\nUser-Agent: me\r\nAccept: a/b\r\nAccept-Encoding: br\r\n",
		  "", true,
		  "GET / HTTP/1.1\r\nEmpty:\r\nUser-Agent: me\r\nAccept: a/b\r\n"
		  "Accept-Encoding: br\r\n\r\n" },
	};
	struct server server;
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		server_start(&server, acts, NULL);
		call_init(&call, server.url, rows[i].path);
		call.request.method = rows[i].method;
		call.request.headers = hpx_span_of(rows[i].headers);
		call.request.body = hpx_span_of(rows[i].body);
		call.request.reuse = rows[i].reuse;
		call_once(&call);
		assert_end(&call, HPX_EGRESS_ANSWERED);
		server_stop(&server);
		assert_head(&server, rows[i].head);
		assert_int_equal(server.body_bytes, strlen(rows[i].body));
		call_done(&call);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_sent_is_refused),
		cmocka_unit_test(bounds_are_kept),
		cmocka_unit_test(what_is_sent_is_what_was_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
