/* Shows that over TLS nothing leaves before the server has proved who it is,
 * and that an answer cut off below TLS is none. */
#include "call.h"

#include <unistd.h>

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

struct fixture {
	char path[64];
	SSL_CTX *tls;
	struct server server;
	struct call call;
};

static void open_fixture(struct fixture *fixture, const char *subject)
{
	strcpy(fixture->path, "/tmp/hapax-egress-XXXXXX");
	int fd = mkstemp(fixture->path);
	assert_true(fd >= 0);
	close(fd);
	fixture->tls = server_certificate(subject, fixture->path);
}

static void run_fixture(struct fixture *fixture, const struct server_act *acts, bool trusted)
{
	server_start(&fixture->server, acts, fixture->tls);
	call_init(&fixture->call, fixture->server.url, "/");
	fixture->call.request.ca_file = trusted ? fixture->path : NULL;
	call_once(&fixture->call);
	server_stop(&fixture->server);
}

static void close_fixture(struct fixture *fixture)
{
	call_done(&fixture->call);
	SSL_CTX_free(fixture->tls);
	unlink(fixture->path);
}

static void a_trusted_server_answers(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 1, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct fixture fixture;

	(void)state;
	open_fixture(&fixture, "IP:127.0.0.1");
	run_fixture(&fixture, acts, true);
	assert_end(&fixture.call, HPX_EGRESS_ANSWERED);
	assert_span(hpx_buffer_span(&fixture.call.request.body_in), "ok");
	close_fixture(&fixture);
}

static void a_server_that_is_not_trusted_sees_nothing(void **state)
{
	static const struct {
		const char *subject;
		bool trusted;
		int version_max;
	} rows[] = {
		{ "IP:127.0.0.1", false, TLS1_3_VERSION },
		{ "IP:127.0.0.1", false, TLS1_2_VERSION },
		{ "IP:127.0.0.2", true, TLS1_3_VERSION },
		{ "DNS:localhost", true, TLS1_3_VERSION },
		{ "IP:127.0.0.1", true, TLS1_1_VERSION },
	};
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT_BAD },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_fixture(&fixture, rows[i].subject);
		/* TLS 1.1 is there only at the lowest level of security. */
		SSL_CTX_set_security_level(fixture.tls, 0);
		SSL_CTX_set_max_proto_version(fixture.tls, rows[i].version_max);
		run_fixture(&fixture, acts, rows[i].trusted);
		print_message("%s: %s\n", rows[i].subject, fixture.call.request.problem);
		assert_end(&fixture.call, HPX_EGRESS_NOT_SENT);
		assert_int_equal(fixture.server.requests, 0);
		close_fixture(&fixture);
	}
}

static void a_server_that_hangs_up_while_shaking_hands_sees_nothing(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_AWAIT },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_END },
	};
	static const struct server_act silent[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_END },
	};
	static const struct server_act *const rows[] = { acts, silent };
	struct server server;
	struct call call;
	char url[64];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		server_start(&server, rows[i], NULL);
		snprintf(url, sizeof(url), "https://127.0.0.1:%u", server.port);
		call_init(&call, url, "/");
		if (rows[i] == silent)
			call.request.connect_timeout_ms = 200;
		call_once(&call);
		assert_end(&call, HPX_EGRESS_NOT_SENT);
		server_go(&server);
		server_stop(&server);
		call_done(&call);
	}
}

static void a_body_that_ends_below_tls_is_half_an_answer(void **state)
{
	/* No length: without the closing alert it may have been cut off. */
	static const struct {
		const char *answer;
		bool farewell;
		enum hpx_egress_end end;
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\n\r\nok", true, HPX_EGRESS_ANSWERED },
		{ "HTTP/1.1 200 OK\r\n\r\nok", false, HPX_EGRESS_NO_ANSWER },
		{ "HTTP/1.1 200 OK\r\n\r\n", false, HPX_EGRESS_NO_ANSWER },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, HPX_EGRESS_ANSWERED },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", true, HPX_EGRESS_NO_ANSWER },
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct server_act acts[] = {
			{ .kind = SERVER_ACCEPT },
			{ .kind = SERVER_READ },
			{ .kind = SERVER_SEND, .text = rows[i].answer },
			{ .kind = rows[i].farewell ? SERVER_FAREWELL : SERVER_CLOSE },
			{ .kind = SERVER_CLOSE },
			{ .kind = SERVER_END },
		};
		open_fixture(&fixture, "IP:127.0.0.1");
		run_fixture(&fixture, acts, true);
		print_message("%zu: %s\n", i, fixture.call.request.problem);
		assert_end(&fixture.call, rows[i].end);
		close_fixture(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trusted_server_answers),
		cmocka_unit_test(a_server_that_is_not_trusted_sees_nothing),
		cmocka_unit_test(a_server_that_hangs_up_while_shaking_hands_sees_nothing),
		cmocka_unit_test(a_body_that_ends_below_tls_is_half_an_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
