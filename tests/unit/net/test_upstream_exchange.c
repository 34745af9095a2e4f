/* Shows what an exchange that comes to nothing reports, above all whether a
 * byte left; that its deadlines hold; that it can be cancelled, and its upstream
 * freed, at any moment; and when its memory is used again. */
#include "call.h"
#include "script.h"

#include <poll.h>
#include <unistd.h>

#include "base/recycle.h"
#include "net/upstream_exchange.h"

#define ANSWER "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\nok"
/* Short enough to wait for, and only ever waited for. */
#define SHORT_MS 30

struct fixture {
	struct hpx_loop loop;
	struct hpx_upstream *upstream;
	struct script script;
	struct hpx_upstream_options options;
	bool scripted;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_status(hpx_loop_init(&fixture->loop), HPX_OK);
	*state = fixture;
	return 0;
}

/* Starts the script and takes its address; options may be changed before
 * make_upstream. */
static void play(struct fixture *fixture, const struct script_act *acts)
{
	script_start(&fixture->script, acts);
	fixture->scripted = true;
	fixture->options = call_options(&fixture->script.address);
}

static void make_upstream(struct fixture *fixture)
{
	assert_status(hpx_upstream_new(&fixture->loop, &fixture->options, &fixture->upstream),
		      HPX_OK);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->upstream != NULL)
		hpx_upstream_free(fixture->upstream);
	hpx_loop_run(&fixture->loop);
	hpx_loop_done(&fixture->loop);
	if (fixture->scripted)
		script_stop(&fixture->script);
	free(fixture);
	return 0;
}

static void refused_means_nothing_left(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_address address;

	close(test_listen(&address, 1));
	fixture->options = call_options(&address);
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_UNAVAILABLE, false);
	assert_int_equal(call.ready, 0);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
}

static void a_missing_unix_socket_means_nothing_left(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_address address = test_address(true);

	fixture->options = call_options(&address);
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_UNAVAILABLE, false);
}

static const struct script_act one_answer[] = {
	{ .kind = SCRIPT_ACCEPT },
	{ .kind = SCRIPT_READ },
	{ .kind = SCRIPT_SEND, .text = ANSWER },
	{ .kind = SCRIPT_READ_END },
	{ .kind = SCRIPT_END },
};

static const struct script_act only_end[] = {
	{ .kind = SCRIPT_ACCEPT },
	{ .kind = SCRIPT_READ_END },
	{ .kind = SCRIPT_END },
};

static bool granted;

static void on_granted(struct hpx_slot *slot)
{
	assert_int_equal(slot->state, HPX_SLOT_HELD);
	granted = true;
}

/* The only slot is another's: an exchange gives it back when its answer has
 * ended, and the next in the queue gets it, with the connection. */
static void an_exchange_gives_its_slot_to_the_queue(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_slot next = { .state = HPX_SLOT_NONE };

	play(fixture, one_answer);
	fixture->options.slots.max = 1;
	make_upstream(fixture);
	struct hpx_slots *slots = hpx_upstream_slots(fixture->upstream);
	struct call first = call_post(&fixture->loop);
	granted = false;
	call_start(&first, fixture->upstream);
	assert_int_equal(first.slot.state, HPX_SLOT_NONE);
	assert_false(hpx_slot_take(slots, &next, HPX_SLOT_GUARDED));
	assert_true(hpx_slot_queue(slots, &next, HPX_SLOT_GUARDED, on_granted));
	run_until(&fixture->loop, &first.done);
	assert_ended(&first, 200, "ok");
	assert_string_equal(first.field_x, "y");
	run_until(&fixture->loop, &granted);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	hpx_slot_release(&next);
}

/* The same where there is no answer: given up by its user, or without a byte. */
static void an_exchange_that_fails_gives_its_slot_back(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, only_end);
	fixture->options.slots.max = 1;
	make_upstream(fixture);
	struct hpx_slots *slots = hpx_upstream_slots(fixture->upstream);
	struct call cancelled = call_post(&fixture->loop);
	call_start(&cancelled, fixture->upstream);
	assert_int_equal(slots->held[HPX_SLOT_GUARDED], 1);
	hpx_exchange_cancel(cancelled.exchange);
	assert_int_equal(slots->held[HPX_SLOT_GUARDED], 0);
	struct call refused = call_post(&fixture->loop);
	refused.refuse_ready = true;
	call_run(&refused, fixture->upstream);
	assert_failed(&refused, HPX_CLOSED, false);
	assert_int_equal(slots->held[HPX_SLOT_GUARDED], 0);
}

static void giving_up_when_ready_sends_nothing(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, only_end);
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	call.refuse_ready = true;
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_CLOSED, false);
	assert_int_equal(call.ready, 1);
	assert_false(call.sent);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
}

static void a_reset_before_the_request_is_read_leaves_it_unknown(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ_SOME },
		{ .kind = SCRIPT_RESET },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_IO, true);
}

struct timeout_row {
	const char *name;
	const struct script_act acts[5];
	size_t option;     /* the timeout that is short */
	size_t body_bytes; /* of the request */
	bool head_seen;
};

#define OPTION(name) offsetof(struct hpx_upstream_options, name)

static const struct timeout_row timeout_rows[] = {
	{ "send", { { .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_WAIT } }, OPTION(send_timeout_ms), 64 << 20, false },
	{ "first byte", { { .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_READ }, { .kind = SCRIPT_READ_END } }, OPTION(first_byte_timeout_ms), 2, false },
	{ "first byte behind a 1xx", { { .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_READ }, { .kind = SCRIPT_SEND, .text = "HTTP/1.1 102 Processing\r\n\r\n" }, { .kind = SCRIPT_READ_END } }, OPTION(first_byte_timeout_ms), 2, false },
	{ "idle in the head", { { .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_READ }, { .kind = SCRIPT_SEND, .text = "HTTP/1.1 2" }, { .kind = SCRIPT_READ_END } }, OPTION(idle_timeout_ms), 2, false },
	{ "idle in the body", { { .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_READ }, { .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no" }, { .kind = SCRIPT_READ_END } }, OPTION(idle_timeout_ms), 2, true },
	{ "whole", { { .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_READ }, { .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\n\r\no" }, { .kind = SCRIPT_READ_END } }, OPTION(whole_timeout_ms), 2, true },
};

static void check_timeout(struct fixture *fixture, const struct timeout_row *row)
{
	char head[80];
	char *body = calloc(1, row->body_bytes);

	print_message("%s\n", row->name);
	assert_non_null(body);
	play(fixture, row->acts);
	*(uint64_t *)((char *)&fixture->options + row->option) = SHORT_MS;
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
		 row->body_bytes);
	call.request.head = hpx_span_of(head);
	call.request.body = hpx_span(body, row->body_bytes);
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_TIMEOUT, true);
	/* The whole time may be over before the answer's first byte is here. */
	if (row->option != OPTION(whole_timeout_ms))
		assert_int_equal(call.failure.head_seen, row->head_seen);
	script_go(&fixture->script);
	hpx_upstream_free(fixture->upstream);
	fixture->upstream = NULL;
	script_stop(&fixture->script);
	fixture->scripted = false;
	free(body);
}

static void deadlines_hold(void **state)
{
	for (size_t i = 0; i < sizeof(timeout_rows) / sizeof(*timeout_rows); i++)
		check_timeout(*state, &timeout_rows[i]);
}

/* An answer before the request is out. */
static void check_early(struct fixture *fixture, const char *answer, unsigned status,
			const char *text)
{
	size_t size = 64 << 20;
	char *body = calloc(1, size);
	struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ_SOME },
		{ .kind = SCRIPT_SEND, .text = answer },
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_END },
	};

	assert_non_null(body);
	play(fixture, acts);
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	call.request.head =
		HPX_SPAN("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
	call.request.body = hpx_span(body, size);
	call_run(&call, fixture->upstream);
	assert_ended(&call, status, text);
	assert_false(call.sent);
	/* What was not sent whole is no connection for anybody else. */
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	script_go(&fixture->script);
	hpx_upstream_free(fixture->upstream);
	fixture->upstream = NULL;
	script_stop(&fixture->script);
	fixture->scripted = false;
	free(body);
}

static void an_early_answer_is_delivered_and_its_connection_closed(void **state)
{
	check_early(*state, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", 413, "no");
	check_early(*state, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok");
}

static void an_early_refusal_survives_the_reset_behind_it(void **state)
{
	/* Closing with the request unread resets the connection. */
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ_SOME },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno" },
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_CLOSE },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;
	size_t size = 64 << 20;
	char *body = calloc(1, size);

	assert_non_null(body);
	play(fixture, acts);
	make_upstream(fixture);
	struct call call = call_post(&fixture->loop);
	call.request.head =
		HPX_SPAN("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
	call.request.body = hpx_span(body, size);
	call_start(&call, fixture->upstream);
	while (!hpx_exchange_any_byte_left(call.exchange))
		uv_run(&fixture->loop.uv, UV_RUN_ONCE);
	/* The loop looks again when both the answer and the reset are here. */
	struct hpx_transport *transport = call.exchange->conn->transport;
	test_await(transport, POLLIN);
	script_go(&fixture->script);
	test_await(transport, POLLHUP);
	run_until(&fixture->loop, &call.done);
	assert_ended(&call, 413, "no");
	assert_false(call.sent);
	free(body);
}

static const struct script_act everything[] = {
	{ .kind = SCRIPT_ACCEPT },
	{ .kind = SCRIPT_READ },
	{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 103 Hints\r\n\r\n" ANSWER },
	{ .kind = SCRIPT_READ_END },
	{ .kind = SCRIPT_END },
};

static void cancelling_is_safe_in_every_callback(void **state)
{
	struct fixture *fixture = *state;

	for (const char *event = "rsihd"; *event != '\0'; event++) {
		print_message("%c\n", *event);
		play(fixture, *event == 'r' ? only_end : everything);
		make_upstream(fixture);
		struct call call = call_post(&fixture->loop);
		call.cancel_in = *event;
		call_run(&call, fixture->upstream);
		assert_false(call.ended || call.failed);
		call_settle(&fixture->loop, fixture->upstream, 0, 0);
		hpx_upstream_free(fixture->upstream);
		fixture->upstream = NULL;
		script_stop(&fixture->script);
		fixture->scripted = false;
	}
}

static void cancelling_is_safe_before_anything_happened(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_address address;
	int fd = test_listen(&address, 16);

	fixture->options = call_options(&address);
	make_upstream(fixture);
	/* At once, and after one, two, … turns of the loop. */
	for (int turns = 0; turns < 4; turns++) {
		struct call call = call_post(&fixture->loop);
		call_start(&call, fixture->upstream);
		for (int i = 0; i < turns; i++)
			uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
		hpx_exchange_cancel(call.exchange);
		call.done = true;
		call_settle(&fixture->loop, fixture->upstream, 0, 0);
	}
	close(fd);
}

static void free_upstream(struct call *call, char event)
{
	struct fixture *fixture = call->user;
	struct hpx_upstream *upstream = fixture->upstream;

	if (event != call->cancel_in || upstream == NULL)
		return;
	fixture->upstream = NULL;
	call->cancel_in = 0;
	hpx_upstream_free(upstream);
}

static void freeing_the_upstream_fails_what_is_under_way(void **state)
{
	struct fixture *fixture = *state;

	for (const char *event = "rsihd"; *event != '\0'; event++) {
		print_message("%c\n", *event);
		play(fixture, *event == 'r' ? only_end : everything);
		make_upstream(fixture);
		struct call call = call_post(&fixture->loop);
		call.extra = free_upstream;
		call.user = fixture;
		call.cancel_in = *event;
		call_run(&call, fixture->upstream);
		assert_failed(&call, HPX_CLOSED, *event != 'r');
		script_stop(&fixture->script);
		fixture->scripted = false;
	}
}

/* A callback of an exchange that is gone may still be under way in the same turn. */
static void memory_is_used_again_only_in_a_later_turn(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_address address;
	int fd = test_listen(&address, 16);

	fixture->options = call_options(&address);
	make_upstream(fixture);
	struct call first = call_post(&fixture->loop);
	call_start(&first, fixture->upstream);
	const struct hpx_exchange *gone = first.exchange;
	hpx_exchange_cancel(first.exchange);
	struct call second = call_post(&fixture->loop);
	call_start(&second, fixture->upstream);
	assert_ptr_not_equal(second.exchange, gone);
	assert_int_equal(fixture->upstream->spare_count, HPX_RECYCLES);
	uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
	struct call third = call_post(&fixture->loop);
	call_start(&third, fixture->upstream);
	if (HPX_RECYCLES)
		assert_ptr_equal(third.exchange, gone);
	assert_false(hpx_exchange_is_gone(third.exchange));
	assert_int_equal(fixture->upstream->spare_count, 0);
	hpx_exchange_cancel(second.exchange);
	hpx_exchange_cancel(third.exchange);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	close(fd);
}

/* What is left of one exchange shows in none that has its memory. */
static void an_exchange_begins_clean(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 103 Hints\r\nX: hint\r\n\r\n"
					       "HTTP/1.1 409 Conflict\r\nX: a longer value\r\n"
					       "Content-Length: 6\r\nConnection: close\r\n\r\nlonger" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	struct call first = call_post(&fixture->loop);
	call_run(&first, fixture->upstream);
	assert_ended(&first, 409, "longer");
	assert_int_equal(first.informational, 1);
	struct call second = call_post(&fixture->loop);
	call_run(&second, fixture->upstream);
	assert_ended(&second, 200, "ok");
	assert_int_equal(second.informational, 0);
	assert_string_equal(second.field_x, "");
}

#define EXCHANGE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	hpx_net_ignore_sigpipe();
	const struct CMUnitTest tests[] = {
		EXCHANGE_TEST(refused_means_nothing_left),
		EXCHANGE_TEST(a_missing_unix_socket_means_nothing_left),
		EXCHANGE_TEST(an_exchange_gives_its_slot_to_the_queue),
		EXCHANGE_TEST(an_exchange_that_fails_gives_its_slot_back),
		EXCHANGE_TEST(giving_up_when_ready_sends_nothing),
		EXCHANGE_TEST(a_reset_before_the_request_is_read_leaves_it_unknown),
		EXCHANGE_TEST(deadlines_hold),
		EXCHANGE_TEST(an_early_answer_is_delivered_and_its_connection_closed),
		EXCHANGE_TEST(an_early_refusal_survives_the_reset_behind_it),
		EXCHANGE_TEST(cancelling_is_safe_in_every_callback),
		EXCHANGE_TEST(cancelling_is_safe_before_anything_happened),
		EXCHANGE_TEST(freeing_the_upstream_fails_what_is_under_way),
		EXCHANGE_TEST(memory_is_used_again_only_in_a_later_turn),
		EXCHANGE_TEST(an_exchange_begins_clean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
