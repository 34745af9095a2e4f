/* Shows that bodies flow both ways in bounded memory: a pause holds, a slow
 * upstream is waited for, and a tunnel carries bytes until one side ends. */
#include "call.h"
#include "script.h"

#include <poll.h>
#include <sys/resource.h>

#include "net/upstream_exchange.h"

#define BIG_BYTES ((size_t)64 << 20)
#define PIECE_BYTES 32768
/* Far below a body, far above what sockets and buffers hold. */
#define MEMORY_KIB_MAX (32 * 1024)

struct fixture {
	struct hpx_loop loop;
	struct hpx_upstream *upstream;
	struct script script;
};

static void open_fixture(struct fixture *fixture, const struct script_act *acts)
{
	assert_status(hpx_loop_init(&fixture->loop), HPX_OK);
	script_start(&fixture->script, acts);
	struct hpx_upstream_options options = call_options(&fixture->script.address);
	assert_status(hpx_upstream_new(&fixture->loop, &options, &fixture->upstream), HPX_OK);
}

static void close_fixture(struct fixture *fixture)
{
	hpx_upstream_free(fixture->upstream);
	hpx_loop_run(&fixture->loop);
	hpx_loop_done(&fixture->loop);
	script_stop(&fixture->script);
}

static long memory_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Pauses after every piece; goes on a few turns of the loop later. */
struct stutter {
	uv_timer_t timer;
	struct call *call;
	bool paused;
	unsigned pauses;
};

static void go_on(uv_timer_t *timer)
{
	struct stutter *stutter = timer->data;

	stutter->paused = false;
	stutter->call->in_call = true;
	hpx_exchange_resume(stutter->call->exchange);
	stutter->call->in_call = false;
}

static void pause_often(struct call *call, char event)
{
	struct stutter *stutter = call->user;

	assert_false(stutter->paused);
	if (event != 'd' && event != 'h')
		return;
	stutter->paused = true;
	stutter->pauses++;
	hpx_exchange_pause(call->exchange);
	/* Now and then for so long that the upstream has to wait. */
	uv_timer_start(&stutter->timer, go_on, stutter->pauses % 64 == 0 ? 5 : 0, 0);
}

static void read_with_pauses(const struct script_act *acts, size_t body_bytes)
{
	struct fixture fixture;
	struct stutter stutter = { 0 };

	open_fixture(&fixture, acts);
	uv_timer_init(&fixture.loop.uv, &stutter.timer);
	stutter.timer.data = &stutter;
	struct call call = call_post(&fixture.loop);
	stutter.call = &call;
	call.extra = pause_often;
	call.user = &stutter;
	long before = memory_kib();
	call_run(&call, fixture.upstream);
	assert_true(call.ended);
	assert_int_equal(call.body_len, body_bytes);
	assert_true(stutter.pauses > 1);
	assert_in_range(memory_kib() - before, 0, MEMORY_KIB_MAX);
	if (body_bytes > 1000)
		assert_true(call.in_pattern);
	uv_close((uv_handle_t *)&stutter.timer, NULL);
	close_fixture(&fixture);
}

static void a_large_answer_passes_with_pauses(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n" },
		{ .kind = SCRIPT_SEND_BODY, .size = BIG_BYTES },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};

	(void)state;
	read_with_pauses(acts, BIG_BYTES);
}

static void a_pause_holds_what_was_already_read(void **state)
{
	/* One read brings the head, every chunk and the end: each is held
	 * until it is wanted, the end too. */
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
					       "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n1\r\nd\r\n0\r\n\r\n" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	static const struct script_act until_close[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\n\r\nabcd" },
		{ .kind = SCRIPT_CLOSE },
		{ .kind = SCRIPT_END },
	};

	(void)state;
	read_with_pauses(acts, 4);
	read_with_pauses(until_close, 4);
}

static void a_pause_before_the_answer_holds_too(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		{ .kind = SCRIPT_TELL },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture fixture;

	(void)state;
	open_fixture(&fixture, acts);
	struct call call = call_post(&fixture.loop);
	call_start(&call, fixture.upstream);
	hpx_exchange_pause(call.exchange);
	run_until(&fixture.loop, &call.sent);
	script_wait(&fixture.script);
	for (int i = 0; i < 10; i++)
		uv_run(&fixture.loop.uv, UV_RUN_NOWAIT);
	assert_false(call.has_head);
	hpx_exchange_resume(call.exchange);
	hpx_exchange_pause(call.exchange);
	hpx_exchange_resume(call.exchange);
	run_until(&fixture.loop, &call.done);
	assert_ended(&call, 200, "ok");
	close_fixture(&fixture);
}

/* Writes chunks as long as there is room. */
struct upload {
	size_t left;
	bool may_write;
	unsigned waits;
	bool waits_for_socket; /* not only for the connection */
};

static void write_chunks(struct call *call)
{
	static const char piece[PIECE_BYTES];
	struct upload *upload = call->user;
	struct hpx_span chunk[] = { HPX_SPAN("8000\r\n"), hpx_span(piece, sizeof(piece)),
				    HPX_SPAN("\r\n") };
	struct hpx_span last = HPX_SPAN("0\r\n\r\n");

	call->in_call = true;
	while (upload->may_write && upload->left > 0) {
		upload->left -= PIECE_BYTES;
		upload->may_write = hpx_exchange_write(call->exchange, chunk, 3);
		upload->waits += !upload->may_write;
		upload->waits_for_socket = upload->waits > 1;
		if (upload->left > 0)
			continue;
		hpx_exchange_write(call->exchange, &last, 1);
		hpx_exchange_finish(call->exchange);
	}
	call->in_call = false;
}

static void upload_on(struct call *call, char event)
{
	struct upload *upload = call->user;

	if (event != 'w')
		return;
	assert_false(upload->may_write);
	upload->may_write = true;
	write_chunks(call);
}

#define CHUNKED_HEAD "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

static void a_large_request_is_streamed(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_READ_CHUNKS },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture fixture;
	struct upload upload = { .left = BIG_BYTES, .may_write = true };

	(void)state;
	open_fixture(&fixture, acts);
	struct call call = call_post(&fixture.loop);
	call_set(&call, "POST", CHUNKED_HEAD, false);
	call.request.streamed = true;
	call.extra = upload_on;
	call.user = &upload;
	long before = memory_kib();
	call_start(&call, fixture.upstream);
	/* Before there is a connection: taken, and told to wait. */
	write_chunks(&call);
	assert_false(upload.may_write);
	run_until(&fixture.loop, &upload.waits_for_socket);
	assert_true(upload.left > 0);
	script_go(&fixture.script);
	run_until(&fixture.loop, &call.done);
	assert_ended(&call, 200, "ok");
	assert_true(call.sent);
	assert_in_range(memory_kib() - before, 0, MEMORY_KIB_MAX);
	call_settle(&fixture.loop, fixture.upstream, 1, 1);
	close_fixture(&fixture);
	assert_int_equal(fixture.script.body_bytes, BIG_BYTES);
}

static void a_streamed_request_is_whole_when_it_is_finished(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ_CHUNKS },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct hpx_span last = HPX_SPAN("0\r\n\r\n");

	(void)state;
	/* Finished before the connection, and after it. */
	for (int early = 0; early < 2; early++) {
		struct fixture fixture;
		open_fixture(&fixture, acts);
		struct call call = call_post(&fixture.loop);
		call_set(&call, "POST", CHUNKED_HEAD, false);
		call.request.streamed = true;
		call_start(&call, fixture.upstream);
		while (!early && !hpx_exchange_any_byte_left(call.exchange))
			uv_run(&fixture.loop.uv, UV_RUN_ONCE);
		assert_false(call.sent);
		call.in_call = true;
		hpx_exchange_write(call.exchange, &last, 1);
		hpx_exchange_finish(call.exchange);
		call.in_call = false;
		run_until(&fixture.loop, &call.done);
		assert_true(call.sent);
		assert_ended(&call, 200, "ok");
		close_fixture(&fixture);
	}
}

static void an_answer_right_behind_the_finish_is_not_early(void **state)
{
	/* The upstream knows the length and answers before we say "finished". */
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture fixture;
	struct hpx_span body = HPX_SPAN("{}");

	(void)state;
	open_fixture(&fixture, acts);
	struct call call = call_post(&fixture.loop);
	call.request.body = HPX_SPAN("");
	call.request.streamed = true;
	call_start(&call, fixture.upstream);
	while (!hpx_exchange_any_byte_left(call.exchange))
		uv_run(&fixture.loop.uv, UV_RUN_ONCE);
	call.in_call = true;
	assert_true(hpx_exchange_write(call.exchange, &body, 1));
	test_await(call.exchange->conn->transport, POLLIN);
	hpx_exchange_finish(call.exchange);
	call.in_call = false;
	run_until(&fixture.loop, &call.done);
	assert_true(call.sent);
	assert_ended(&call, 200, "ok");
	call_settle(&fixture.loop, fixture.upstream, 1, 1);
	close_fixture(&fixture);
}

static void a_refusal_stops_the_upload(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ_SOME },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nn" },
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_SEND, .text = "o" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture fixture;
	struct hpx_span more = HPX_SPAN("1\r\nx\r\n");

	(void)state;
	open_fixture(&fixture, acts);
	struct call call = call_post(&fixture.loop);
	call_set(&call, "POST", CHUNKED_HEAD, false);
	call.request.streamed = true;
	call_start(&call, fixture.upstream);
	run_until(&fixture.loop, &call.has_head);
	assert_true(hpx_exchange_write(call.exchange, &more, 1));
	hpx_exchange_finish(call.exchange);
	script_go(&fixture.script);
	run_until(&fixture.loop, &call.done);
	assert_ended(&call, 403, "no");
	assert_false(call.sent);
	call_settle(&fixture.loop, fixture.upstream, 0, 0);
	close_fixture(&fixture);
}

static void a_user_that_does_not_wait_is_stopped(void **state)
{
	struct fixture fixture;
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	static const char piece[PIECE_BYTES];
	struct hpx_span more = hpx_span(piece, sizeof(piece));

	(void)state;
	open_fixture(&fixture, acts);
	struct call call = call_post(&fixture.loop);
	call_set(&call, "POST", CHUNKED_HEAD, false);
	call.request.streamed = true;
	call.extra = NULL;
	call_start(&call, fixture.upstream);
	call.in_call = true;
	for (size_t i = 0; i < BIG_BYTES / PIECE_BYTES; i++)
		assert_false(hpx_exchange_write(call.exchange, &more, 1));
	call.in_call = false;
	run_until(&fixture.loop, &call.done);
	assert_failed(&call, HPX_FULL, false);
	/* It never came to connecting; let the script have its connection. */
	struct call other = call_post(&fixture.loop);
	other.cancel_in = 's';
	call_run(&other, fixture.upstream);
	close_fixture(&fixture);
}

static void end_the_tunnel(struct call *call, char event)
{
	struct hpx_span hello = HPX_SPAN("hello tunnel");

	if (event == 'h') {
		assert_int_equal(call->framing, HPX_FRAMING_TUNNEL);
		call->in_call = true;
		assert_true(hpx_exchange_write(call->exchange, &hello, 1));
		call->in_call = false;
	}
	if (event == 'd' && call->body_len == strlen("at once") + hello.len)
		hpx_exchange_finish(call->exchange);
}

static void a_tunnel_carries_bytes_until_an_end(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n"
					       "Upgrade: websocket\r\n\r\nat once" },
		{ .kind = SCRIPT_ECHO },
		{ .kind = SCRIPT_CLOSE },
		{ .kind = SCRIPT_END },
	};
	struct fixture fixture;

	(void)state;
	open_fixture(&fixture, acts);
	struct call call = call_post(&fixture.loop);
	call_set(&call, "GET",
		 "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
		 false);
	call.extra = end_the_tunnel;
	call_run(&call, fixture.upstream);
	assert_ended(&call, 101, "at oncehello tunnel");
	call_settle(&fixture.loop, fixture.upstream, 0, 0);
	close_fixture(&fixture);
}

int main(void)
{
	hpx_net_ignore_sigpipe();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_answer_passes_with_pauses),
		cmocka_unit_test(a_pause_holds_what_was_already_read),
		cmocka_unit_test(a_pause_before_the_answer_holds_too),
		cmocka_unit_test(a_large_request_is_streamed),
		cmocka_unit_test(a_streamed_request_is_whole_when_it_is_finished),
		cmocka_unit_test(an_answer_right_behind_the_finish_is_not_early),
		cmocka_unit_test(a_refusal_stops_the_upload),
		cmocka_unit_test(a_user_that_does_not_wait_is_stopped),
		cmocka_unit_test(a_tunnel_carries_bytes_until_an_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
