/* Shows that a transport carries bytes both ways, keeps its rules about
 * callbacks whoever closes when, counts what the socket took, and delivers
 * its last bytes on a gentle close. */
#include "helper.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIG_BYTES ((size_t)32 * 1024 * 1024)

struct fixture {
	struct hpx_loop loop;
	struct test_side side;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	hpx_net_ignore_sigpipe();
	assert_status(hpx_loop_init(&fixture->loop), HPX_OK);
	test_side_open(&fixture->side, &fixture->loop, false);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	test_side_close(&fixture->side);
	hpx_loop_run(&fixture->loop);
	hpx_loop_done(&fixture->loop);
	free(fixture);
	return 0;
}

static enum hpx_status send_text(struct test_side *side, const char *text, size_t *ret_taken)
{
	struct hpx_span piece = hpx_span_of(text);

	side->in_call = true;
	enum hpx_status status = hpx_transport_send(side->transport, &piece, 1, ret_taken);
	side->in_call = false;
	return status;
}

static void carry(struct test_side *side, const char *peer)
{
	char answer[16] = "";
	size_t taken;

	assert_string_equal(hpx_transport_peer(side->transport), peer);
	hpx_transport_read_start(side->transport);
	test_write(side->client, "question");
	run_until(side->loop, &side->got_data);
	assert_span(hpx_span(side->data, side->data_len), "question");
	assert_status(send_text(side, "answer", &taken), HPX_OK);
	assert_int_equal(taken, 6);
	assert_int_equal(hpx_transport_taken(side->transport), 6);
	assert_int_equal(hpx_transport_pending(side->transport), 0);
	assert_int_equal(recv(side->client, answer, sizeof(answer), 0), 6);
	assert_string_equal(answer, "answer");
}

static void bytes_go_both_ways(void **state)
{
	struct fixture *fixture = *state;

	carry(&fixture->side, "127.0.0.1");
}

static void bytes_go_both_ways_on_a_unix_socket(void **state)
{
	struct fixture *fixture = *state;
	struct test_side side;

	test_side_open(&side, &fixture->loop, true);
	carry(&side, "unix");
	test_side_close(&side);
}

static void pieces_arrive_in_order_and_empty_ones_do_no_harm(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	struct hpx_span pieces[40];
	char want[80] = "", got[80] = "";

	for (size_t i = 0; i < 40; i++) {
		static const char digits[] = "0123456789";
		pieces[i] = i % 3 == 0 ? hpx_span(NULL, 0) : hpx_span(digits + i % 10, 1);
		if (pieces[i].len > 0)
			want[strlen(want)] = *pieces[i].ptr;
	}
	assert_status(hpx_transport_send(side->transport, pieces, 40, NULL), HPX_OK);
	assert_int_equal(recv(side->client, got, strlen(want), MSG_WAITALL), strlen(want));
	assert_string_equal(got, want);
}

static void half_a_close_leaves_the_other_half(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	char answer[8] = "";

	hpx_transport_read_start(side->transport);
	shutdown(side->client, SHUT_WR);
	run_until(side->loop, &side->ended);
	assert_status(side->end_status, HPX_CLOSED);
	assert_true(hpx_transport_is_stale(side->transport));
	assert_status(send_text(side, "still", NULL), HPX_OK);
	assert_int_equal(recv(side->client, answer, sizeof(answer), 0), 5);
	hpx_transport_shutdown(side->transport);
	hpx_transport_shutdown(side->transport);
	bool closed = false;
	while (!closed) {
		uv_run(&side->loop->uv, UV_RUN_NOWAIT);
		closed = recv(side->client, answer, 1, MSG_DONTWAIT) == 0;
	}
	assert_int_equal(side->ends, 1);
}

static void closing_inside_on_data_ends_all_callbacks(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	size_t len;

	side->close_in = 'd';
	test_write(side->client, "first");
	hpx_transport_read_start(side->transport);
	run_until(side->loop, &side->got_data);
	assert_null(side->transport);
	hpx_listener_stop(side->listener);
	hpx_loop_run(side->loop);
	free(test_read_all(side->client, &len));
	assert_int_equal(side->ends, 0);
	/* For the tear-down. */
	close(side->client);
	test_side_open(side, side->loop, false);
}

static void closing_inside_on_end_is_safe(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;

	side->close_in = 'e';
	hpx_transport_read_start(side->transport);
	shutdown(side->client, SHUT_WR);
	run_until(side->loop, &side->ended);
	assert_null(side->transport);
}

/* Takes everything that comes, and counts. */
struct reader {
	int fd;
	size_t len;
	bool in_order;
};

static void *read_pattern(void *arg)
{
	struct reader *reader = arg;
	static const size_t size = 1 << 16;
	unsigned char *bytes = malloc(size);
	ssize_t n;

	reader->in_order = bytes != NULL;
	while (bytes != NULL && (n = recv(reader->fd, bytes, size, 0)) > 0) {
		for (ssize_t i = 0; i < n; i++, reader->len++)
			reader->in_order = reader->in_order &&
					   bytes[i] == (unsigned char)(reader->len % 251);
	}
	free(bytes);
	return NULL;
}

static char *make_pattern(size_t len)
{
	char *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i % 251);
	return bytes;
}

/* Sends more than a socket holds, as several pieces; the other side begins to
 * read only afterwards. */
static void send_big(struct test_side *side, struct reader *reader, pthread_t *thread)
{
	char *bytes = make_pattern(BIG_BYTES);
	size_t third = BIG_BYTES / 3, taken;
	struct hpx_span pieces[] = { hpx_span(bytes, third), hpx_span(bytes + third, third),
				     hpx_span(bytes + 2 * third, BIG_BYTES - 2 * third) };

	assert_status(hpx_transport_send(side->transport, pieces, 2, &taken), HPX_OK);
	assert_true(taken > 0 && taken < 2 * third);
	assert_int_equal(hpx_transport_pending(side->transport), 2 * third - taken);
	/* Behind pending bytes nothing is taken at once. */
	assert_status(hpx_transport_send(side->transport, pieces + 2, 1, &taken), HPX_OK);
	assert_int_equal(taken, 0);
	free(bytes);
	*reader = (struct reader){ .fd = side->client };
	assert_int_equal(pthread_create(thread, NULL, read_pattern, reader), 0);
}

static void a_slow_reader_gets_everything_in_order(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	struct reader reader;
	pthread_t thread;

	send_big(side, &reader, &thread);
	run_until(side->loop, &side->drained);
	assert_int_equal(hpx_transport_pending(side->transport), 0);
	assert_int_equal(hpx_transport_taken(side->transport), BIG_BYTES);
	hpx_transport_shutdown(side->transport);
	uv_run(&side->loop->uv, UV_RUN_NOWAIT);
	pthread_join(thread, NULL);
	assert_int_equal(reader.len, BIG_BYTES);
	assert_true(reader.in_order);
}

static void closing_inside_on_drain_is_safe(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	struct reader reader;
	pthread_t thread;

	side->close_in = 'r';
	send_big(side, &reader, &thread);
	run_until(side->loop, &side->drained);
	assert_null(side->transport);
	pthread_join(thread, NULL);
	assert_int_equal(reader.len, BIG_BYTES);
}

/* Sends without ever looking, then reads what it was told. */
static void *talk_first(void *arg)
{
	struct reader *reader = arg;
	static const size_t size = 1 << 16;
	char *bytes = calloc(1, size);

	for (size_t sent = 0; bytes != NULL && sent < BIG_BYTES / 4; sent += size) {
		if (send(reader->fd, bytes, size, MSG_NOSIGNAL) < 0)
			break;
	}
	free(bytes);
	shutdown(reader->fd, SHUT_WR);
	return read_pattern(reader);
}

static void a_gentle_close_delivers_the_last_answer(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	struct reader reader = { .fd = side->client };
	size_t len = 300000;
	char *bytes = make_pattern(len);
	struct hpx_span piece = hpx_span(bytes, len);
	pthread_t thread;

	hpx_transport_read_start(side->transport);
	assert_int_equal(pthread_create(&thread, NULL, talk_first, &reader), 0);
	run_until(side->loop, &side->got_data);
	/* Whether or not it was reading, it reads now. */
	hpx_transport_read_stop(side->transport);
	assert_status(hpx_transport_send(side->transport, &piece, 1, NULL), HPX_OK);
	hpx_transport_close_gently(side->transport, TEST_PATIENCE_MS);
	side->transport = NULL;
	hpx_listener_stop(side->listener);
	hpx_loop_run(side->loop);
	pthread_join(thread, NULL);
	assert_true(reader.in_order);
	assert_int_equal(reader.len, len);
	free(bytes);
	close(side->client);
	test_side_open(side, side->loop, false);
}

static void a_gentle_close_says_so_first(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	struct timeval patience = { .tv_sec = TEST_PATIENCE_MS / 1000 };
	char answer[8];

	assert_status(send_text(side, "bye", NULL), HPX_OK);
	hpx_transport_close_gently(side->transport, 10 * TEST_PATIENCE_MS);
	side->transport = NULL;
	hpx_listener_stop(side->listener);
	uv_run(&side->loop->uv, UV_RUN_NOWAIT);
	uv_run(&side->loop->uv, UV_RUN_NOWAIT);
	setsockopt(side->client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(recv(side->client, answer, sizeof(answer), 0), 3);
	assert_int_equal(recv(side->client, answer, sizeof(answer), 0), 0);
	/* The other side has seen it, and ends too. */
	close(side->client);
	hpx_loop_run(side->loop);
	test_side_open(side, side->loop, false);
}

static void a_gentle_close_does_not_wait_for_ever(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;

	assert_status(send_text(side, "bye", NULL), HPX_OK);
	hpx_transport_close_gently(side->transport, 1);
	side->transport = NULL;
	hpx_listener_stop(side->listener);
	/* Returns once the timer has closed the connection. */
	hpx_loop_run(side->loop);
	assert_int_equal(side->ends, 0);
	close(side->client);
	test_side_open(side, side->loop, false);
}

/* A reset that the socket knows of, with nobody reading. */
static void reset_unnoticed(struct test_side *side)
{
	test_reset(side->client);
	side->client = -1;
	test_await(side->transport, POLLHUP);
	assert_true(hpx_transport_is_stale(side->transport));
}

static void a_failed_send_takes_nothing_and_is_told_once(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	size_t taken = 1;

	reset_unnoticed(side);
	assert_status(send_text(side, "lost", &taken), HPX_IO);
	assert_int_equal(taken, 0);
	assert_int_equal(hpx_transport_taken(side->transport), 0);
	assert_false(hpx_transport_is_sendable(side->transport));
	assert_false(side->ended);
	assert_status(send_text(side, "again", &taken), HPX_IO);
	run_until(side->loop, &side->ended);
	assert_status(side->end_status, HPX_IO);
	hpx_transport_read_start(side->transport);
	uv_run(&side->loop->uv, UV_RUN_NOWAIT);
	assert_int_equal(side->ends, 1);
}

static void a_broken_send_leaves_what_was_said_before(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;
	size_t taken = 1;

	test_write(side->client, "early");
	test_await(side->transport, POLLIN);
	reset_unnoticed(side);
	hpx_transport_read_start(side->transport);
	assert_status(send_text(side, "lost", &taken), HPX_IO);
	run_until(side->loop, &side->ended);
	assert_span(hpx_span(side->data, side->data_len), "early");
	assert_status(side->end_status, HPX_IO);
	assert_int_equal(side->ends, 1);
}

static void a_reset_behind_the_last_bytes_is_no_end(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;

	test_write(side->client, "half");
	test_await(side->transport, POLLIN);
	reset_unnoticed(side);
	hpx_transport_read_start(side->transport);
	run_until(side->loop, &side->ended);
	assert_span(hpx_span(side->data, side->data_len), "half");
	assert_status(side->end_status, HPX_IO);
}

static void stale_is_what_was_closed_or_has_something_to_read(void **state)
{
	struct test_side *side = &((struct fixture *)*state)->side;

	assert_false(hpx_transport_is_stale(side->transport));
	test_write(side->client, "x");
	test_await(side->transport, POLLIN);
	assert_true(hpx_transport_is_stale(side->transport));
	hpx_transport_read_start(side->transport);
	run_until(side->loop, &side->got_data);
	hpx_transport_read_stop(side->transport);
	assert_false(hpx_transport_is_stale(side->transport));
	shutdown(side->client, SHUT_WR);
	test_await(side->transport, POLLIN);
	assert_true(hpx_transport_is_stale(side->transport));
	assert_false(side->ended);
}

struct outcome {
	bool done;
	enum hpx_status status;
	struct hpx_transport *transport;
};

static void on_connected(void *user, enum hpx_status status, struct hpx_transport *transport)
{
	struct outcome *outcome = user;

	outcome->done = true;
	outcome->status = status;
	outcome->transport = transport;
}

/* An address on which nobody listens: it was bound a moment ago. */
static struct sockaddr_in free_address(void)
{
	struct hpx_address address;
	struct sockaddr_in name;

	close(test_listen(&address, 1));
	assert_int_equal(uv_ip4_addr("127.0.0.1", address.port, &name), 0);
	return name;
}

static void connecting_tells_how_it_went(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_loop *loop = &fixture->loop;
	struct outcome refused = { 0 }, missing = { 0 }, cancelled = { 0 }, well = { 0 };
	struct sockaddr_in nobody = free_address(), unreachable = { 0 };
	struct hpx_address address;
	struct sockaddr_in somebody;
	int fd = test_listen(&address, 1);

	uv_ip4_addr("127.0.0.1", address.port, &somebody);
	assert_non_null(hpx_transport_connect(loop, (struct sockaddr *)&nobody, NULL,
					      on_connected, &refused));
	assert_non_null(hpx_transport_connect(loop, NULL, "/nonexistent/socket", on_connected,
					      &missing));
	assert_non_null(hpx_transport_connect(loop, (struct sockaddr *)&somebody, NULL,
					      on_connected, &well));
	hpx_connect_cancel(hpx_transport_connect(loop, (struct sockaddr *)&somebody, NULL,
						 on_connected, &cancelled));
	/* Fails at once, inside: told later, or not at all once cancelled. */
	hpx_connect_cancel(hpx_transport_connect(loop, (struct sockaddr *)&unreachable, NULL,
						 on_connected, &cancelled));
	assert_false(refused.done || missing.done || well.done);
	run_until(loop, &refused.done);
	run_until(loop, &missing.done);
	run_until(loop, &well.done);
	assert_status(refused.status, HPX_UNAVAILABLE);
	assert_status(missing.status, HPX_UNAVAILABLE);
	assert_status(well.status, HPX_OK);
	assert_string_equal(hpx_transport_peer(well.transport), "127.0.0.1");
	assert_false(cancelled.done);
	hpx_transport_close(well.transport);
	close(fd);
}

#define TRANSPORT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRANSPORT_TEST(bytes_go_both_ways),
		TRANSPORT_TEST(bytes_go_both_ways_on_a_unix_socket),
		TRANSPORT_TEST(pieces_arrive_in_order_and_empty_ones_do_no_harm),
		TRANSPORT_TEST(half_a_close_leaves_the_other_half),
		TRANSPORT_TEST(closing_inside_on_data_ends_all_callbacks),
		TRANSPORT_TEST(closing_inside_on_end_is_safe),
		TRANSPORT_TEST(a_slow_reader_gets_everything_in_order),
		TRANSPORT_TEST(closing_inside_on_drain_is_safe),
		TRANSPORT_TEST(a_gentle_close_delivers_the_last_answer),
		TRANSPORT_TEST(a_gentle_close_says_so_first),
		TRANSPORT_TEST(a_gentle_close_does_not_wait_for_ever),
		TRANSPORT_TEST(a_failed_send_takes_nothing_and_is_told_once),
		TRANSPORT_TEST(a_broken_send_leaves_what_was_said_before),
		TRANSPORT_TEST(a_reset_behind_the_last_bytes_is_no_end),
		TRANSPORT_TEST(stale_is_what_was_closed_or_has_something_to_read),
		TRANSPORT_TEST(connecting_tells_how_it_went),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
