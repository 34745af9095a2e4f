/* Shows which requests share a connection, and what becomes of one that goes
 * out on a connection that has died. */
#include "call.h"

#define KEEP_ALIVE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* Runs two requests one after the other against the script. */
static void run_two(struct server *server, const struct server_act *acts, bool first_reuses,
		    bool second_reuses, struct call calls[2])
{
	struct hpx_egress *egress = call_engine(4);

	server_start(server, acts, NULL);
	for (size_t i = 0; i < 2; i++) {
		call_init(&calls[i], server->url, "/");
		calls[i].request.reuse = i == 0 ? first_reuses : second_reuses;
		call_run(&calls[i], egress);
	}
	server_go(server);
	call_engine_stop(egress);
	server_stop(server);
	call_done(&calls[0]);
	assert_int_equal(calls[1].dones, 1);
}

static void requests_that_may_share_a_connection_do(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call calls[2];

	(void)state;
	run_two(&server, acts, true, true, calls);
	assert_end(&calls[1], HPX_EGRESS_ANSWERED);
	assert_int_equal(server.connections, 1);
	assert_false(calls[1].request.resent);
	call_done(&calls[1]);
}

static void others_have_their_own(void **state)
{
	/* Each ends its connection, though the server would keep it. */
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_READ_END },
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_READ_END },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call calls[2];

	(void)state;
	run_two(&server, acts, false, false, calls);
	assert_end(&calls[1], HPX_EGRESS_ANSWERED);
	assert_int_equal(server.connections, 2);
	call_done(&calls[1]);
}

static void on_a_dead_connection_libcurl_sends_again_where_it_may(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call calls[2];

	(void)state;
	run_two(&server, acts, true, true, calls);
	assert_end(&calls[1], HPX_EGRESS_ANSWERED);
	assert_int_equal(server.connections, 2);
	assert_int_equal(server.requests, 3);
	assert_true(calls[1].request.resent);
	call_done(&calls[1]);
}

static void what_was_sent_stays_sent_when_sending_again_fails(void **state)
{
	/* The second sending is lost as well, on a connection of its own. */
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call calls[2];

	(void)state;
	run_two(&server, acts, true, true, calls);
	assert_end(&calls[1], HPX_EGRESS_NO_ANSWER);
	assert_int_equal(server.requests, 3);
	call_done(&calls[1]);
}

static void beside_a_kept_connection_one_that_may_not_is_sent_once(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_KEEP },
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call calls[2];

	(void)state;
	run_two(&server, acts, true, false, calls);
	assert_end(&calls[1], HPX_EGRESS_NO_ANSWER);
	assert_int_equal(server.connections, 2);
	assert_int_equal(server.requests, 2);
	call_done(&calls[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_may_share_a_connection_do),
		cmocka_unit_test(others_have_their_own),
		cmocka_unit_test(on_a_dead_connection_libcurl_sends_again_where_it_may),
		cmocka_unit_test(what_was_sent_stays_sent_when_sending_again_fails),
		cmocka_unit_test(beside_a_kept_connection_one_that_may_not_is_sent_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
