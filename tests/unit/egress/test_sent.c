/* Shows that "not sent" is said exactly where no byte of the request left, and
 * that a request without `reuse` is never sent a second time. */
#include "call.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static void refused_is_not_sent(void **state)
{
	unsigned port;
	char url[64];
	struct call call;

	(void)state;
	int holder = server_listen(-1, &port);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	call_init(&call, url, "/?secret=1");
	call_once(&call);
	assert_end(&call, HPX_EGRESS_NOT_SENT);
	assert_null(strstr(call.request.problem, "secret"));
	call_done(&call);
	close(holder);
}

static void a_name_without_address_is_not_sent(void **state)
{
	struct call call;

	(void)state;
	call_init(&call, "http://nowhere.invalid", "/");
	call_once(&call);
	assert_end(&call, HPX_EGRESS_NOT_SENT);
	call_done(&call);
}

/* Connects to the port until the queue of the one who never accepts is full:
 * from then on the kernel lets attempts hang. */
static size_t fill_queue(unsigned port, int fds[8])
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	size_t count = 0;

	while (count < 8) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		/* The kernel tries again for this long before it gives up. */
		struct timeval patience = { .tv_usec = 300000 };
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		fds[count++] = fd;
		if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
			return count;
	}
	fail_msg("the queue never was full");
	return count;
}

static void a_black_hole_is_not_sent(void **state)
{
	unsigned port;
	char url[64];
	int fds[8];
	struct call call;

	(void)state;
	int listening = server_listen(0, &port);
	size_t count = fill_queue(port, fds);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	/* Either of the two timeouts may be the one that ends it. */
	for (int whole = 0; whole < 2; whole++) {
		call_init(&call, url, "/");
		if (whole)
			call.request.timeout_ms = 200;
		else
			call.request.connect_timeout_ms = 200;
		call_once(&call);
		assert_end(&call, HPX_EGRESS_NOT_SENT);
		call_done(&call);
	}
	while (count > 0)
		close(fds[--count]);
	close(listening);
}

#define KEEP_ALIVE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void lost_after_sending_is_no_answer_and_sent_once(void **state)
{
	static const struct {
		const char *what;
		struct server_act acts[6];
	} rows[] = {
		{ "reset before reading",
		  { { .kind = SERVER_ACCEPT }, { .kind = SERVER_AWAIT }, { .kind = SERVER_RESET }, { .kind = SERVER_WAIT }, { .kind = SERVER_NOBODY } } },
		{ "reset after reading",
		  { { .kind = SERVER_ACCEPT }, { .kind = SERVER_READ }, { .kind = SERVER_RESET }, { .kind = SERVER_WAIT }, { .kind = SERVER_NOBODY } } },
		{ "closed before reading",
		  { { .kind = SERVER_ACCEPT }, { .kind = SERVER_AWAIT }, { .kind = SERVER_CLOSE }, { .kind = SERVER_WAIT }, { .kind = SERVER_NOBODY } } },
		{ "closed after reading",
		  { { .kind = SERVER_ACCEPT }, { .kind = SERVER_READ }, { .kind = SERVER_CLOSE }, { .kind = SERVER_WAIT }, { .kind = SERVER_NOBODY } } },
	};
	struct server server;
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		server_start(&server, rows[i].acts, NULL);
		call_init(&call, server.url, "/");
		call_once(&call);
		server_go(&server);
		print_message("%s: %s\n", rows[i].what, call.request.problem);
		assert_end(&call, HPX_EGRESS_NO_ANSWER);
		server_stop(&server);
		assert_int_equal(server.connections, 1);
		call_done(&call);
	}
}

static void a_slow_answer_is_no_answer(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct server server;
	struct call call;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	call.request.timeout_ms = 3000;
	call_once(&call);
	assert_end(&call, HPX_EGRESS_NO_ANSWER);
	server_go(&server);
	server_stop(&server);
	assert_int_equal(server.requests, 1);
	call_done(&call);
}

static void too_late_is_not_sent(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_SEND, .text = KEEP_ALIVE },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(1);
	struct server server;
	struct call late, timely;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&late, server.url, "/");
	late.request.send_until_ms = hpx_clock_boot_ms() - 1;
	call_run(&late, egress);
	assert_end(&late, HPX_EGRESS_NOT_SENT);
	call_done(&late);
	call_init(&timely, server.url, "/");
	timely.request.send_until_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;
	call_run(&timely, egress);
	assert_end(&timely, HPX_EGRESS_ANSWERED);
	call_done(&timely);
	server_stop(&server);
	assert_int_equal(server.requests, 1);
	call_engine_stop(egress);
}

#define BIG_BYTES ((size_t)16 << 20)

static void the_last_byte_is_what_counts_as_sent(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_AWAIT },
		{ .kind = SERVER_TELL },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_CLOSE },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(1);
	char *body = calloc(1, BIG_BYTES);
	struct server server;
	struct call call;

	(void)state;
	assert_non_null(body);
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	call.request.body = hpx_span(body, BIG_BYTES);
	call_submit(&call, egress);
	/* More than the sockets hold: most of it leaves after this. */
	server_wait(&server);
	/* On to another reading of the clock than that of the first byte. */
	int64_t go_ms = hpx_clock_boot_ms() + 2;
	while (hpx_clock_boot_ms() < go_ms)
		sched_yield();
	server_go(&server);
	call_wait(&call);
	assert_end(&call, HPX_EGRESS_NO_ANSWER);
	assert_in_range(call.request.sent_ms, go_ms, hpx_clock_boot_ms());
	server_stop(&server);
	assert_int_equal(server.body_bytes, BIG_BYTES);
	call_engine_stop(egress);
	call_done(&call);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_is_not_sent),
		cmocka_unit_test(a_name_without_address_is_not_sent),
		cmocka_unit_test(a_black_hole_is_not_sent),
		cmocka_unit_test(lost_after_sending_is_no_answer_and_sent_once),
		cmocka_unit_test(a_slow_answer_is_no_answer),
		cmocka_unit_test(too_late_is_not_sent),
		cmocka_unit_test(the_last_byte_is_what_counts_as_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
