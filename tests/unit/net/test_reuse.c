/* Shows when a kept-alive connection is used again and when it is not; and
 * that a request is never sent twice, whatever the connection turns out to be. */
#include "call.h"
#include "script.h"

#include <poll.h>

#include "net/upstream_exchange.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define TURN \
	{ .kind = SCRIPT_READ }, \
	{ \
		.kind = SCRIPT_SEND, .text = ANSWER \
	}

struct fixture {
	struct hpx_loop loop;
	struct hpx_upstream_state state;
	unsigned events[3];
	struct hpx_upstream *upstream;
	struct script script;
	struct hpx_upstream_options options;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_status(hpx_loop_init(&fixture->loop), HPX_OK);
	*state = fixture;
	return 0;
}

static void play(struct fixture *fixture, const struct script_act *acts)
{
	script_start(&fixture->script, acts);
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

	hpx_upstream_free(fixture->upstream);
	hpx_loop_run(&fixture->loop);
	hpx_loop_done(&fixture->loop);
	free(fixture);
	return 0;
}

/* Lets go of the upstream, so that the script comes to its end. */
static void finish(struct fixture *fixture, unsigned connections, unsigned requests)
{
	hpx_upstream_free(fixture->upstream);
	hpx_loop_run(&fixture->loop);
	script_stop(&fixture->script);
	assert_int_equal(fixture->script.connections, connections);
	assert_int_equal(fixture->script.requests, requests);
	/* For the tear-down. */
	make_upstream(fixture);
}

static void call_well(struct fixture *fixture, bool guarded)
{
	struct call call = call_post(&fixture->loop);

	call.request.guarded = guarded;
	call_run(&call, fixture->upstream);
	assert_ended(&call, 200, "ok");
}

static const struct script_act one_connection[] = {
	{ .kind = SCRIPT_ACCEPT },
	TURN,
	TURN,
	TURN,
	{ .kind = SCRIPT_READ_END },
	{ .kind = SCRIPT_END },
};

static void a_fresh_connection_is_used_again(void **state)
{
	struct fixture *fixture = *state;

	play(fixture, one_connection);
	make_upstream(fixture);
	call_well(fixture, true);
	call_well(fixture, true);
	call_well(fixture, false);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	finish(fixture, 1, 3);
}

static void a_guarded_request_uses_no_connection_that_was_idle_too_long(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		TURN,
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	/* Any time at all is too long. */
	fixture->options.reuse_idle_ms = 0;
	make_upstream(fixture);
	call_well(fixture, true);
	call_well(fixture, false);
	call_well(fixture, true);
	finish(fixture, 2, 3);
}

static void a_connection_that_the_upstream_closed_is_dropped(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_CLOSE },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	call_well(fixture, true);
	/* Noticed without any request. */
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	call_well(fixture, true);
	finish(fixture, 2, 2);
}

/* Runs after polling, right before the exchange that was started behind it. */
struct closing {
	struct hpx_later later;
	struct fixture *fixture;
};

static void let_it_be_closed(struct hpx_later *later)
{
	struct fixture *fixture = ((struct closing *)later)->fixture;

	script_go(&fixture->script);
	test_await(fixture->upstream->pool.newest->transport, POLLIN);
}

static void an_end_that_the_loop_has_not_seen_is_found_before_use(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_CLOSE },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;
	struct closing closing = { { .run = let_it_be_closed }, fixture };

	play(fixture, acts);
	make_upstream(fixture);
	call_well(fixture, true);
	hpx_loop_later(&fixture->loop, &closing.later);
	call_well(fixture, true);
	finish(fixture, 2, 2);
}

/* Between the last look at the connection and the first byte. */
static void let_it_be_reset(struct call *call, char event)
{
	if (event != 'r')
		return;
	script_go(call->user);
	script_wait(call->user);
}

static void a_connection_that_dies_at_the_last_moment_takes_no_byte(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_RESET },
		{ .kind = SCRIPT_TELL },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	call_well(fixture, true);
	struct call call = call_post(&fixture->loop);
	call.extra = let_it_be_reset;
	call.user = &fixture->script;
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_UNAVAILABLE, false);
	finish(fixture, 1, 1);
}

static void a_reused_connection_that_dies_later_is_not_tried_again(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_RESET },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	for (int i = 0; i < 2; i++) {
		struct call call = call_post(&fixture->loop);
		call.request.guarded = i == 0;
		call_run(&call, fixture->upstream);
		if (i == 0)
			assert_ended(&call, 200, "ok");
		else
			assert_failed(&call, HPX_IO, true);
	}
	finish(fixture, 1, 2);
}

static void stray_bytes_close_an_idle_connection(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_SEND, .text = ANSWER },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	script_go(&fixture->script);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	finish(fixture, 1, 1);
}

static void count_event(void *user, enum hpx_upstream_event event, const char *detail, int64_t ms)
{
	struct fixture *fixture = user;

	assert_non_null(detail);
	assert_true(ms >= 0);
	fixture->events[event]++;
}

/* Watched by a state of its own, and trusted from the start where `watched`. */
static void watch(struct fixture *fixture, bool watched)
{
	fixture->state.on_event = count_event;
	fixture->state.user = fixture;
	atomic_store(&fixture->state.watched, watched ? HPX_UPSTREAM_WATCHED_MIN : 0);
	fixture->options.state = &fixture->state;
	fixture->options.reuse_quarantine_ms = 60000;
	make_upstream(fixture);
}

/* Stray bytes as they come: behind the answer, or later. */
static void a_stray_byte_keeps_guarded_requests_off_kept_connections(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_SEND, .text = ANSWER },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END }, /* guarded: not kept */
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		TURN, /* passed: kept */
		{ .kind = SCRIPT_ACCEPT },
		{ .kind = SCRIPT_READ },
		{ .kind = SCRIPT_SEND, .text = ANSWER ANSWER },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	watch(fixture, true);
	call_well(fixture, true);
	assert_false(hpx_upstream_in_quarantine(&fixture->state));
	script_go(&fixture->script);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	assert_int_equal(atomic_load(&fixture->state.strays), 1);
	assert_true(hpx_upstream_in_quarantine(&fixture->state));
	assert_false(hpx_upstream_is_watched(&fixture->state));
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	atomic_store(&fixture->state.watched, HPX_UPSTREAM_WATCHED_MIN);
	call_well(fixture, false);
	call_well(fixture, false);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	call_well(fixture, true);
	assert_int_equal(atomic_load(&fixture->state.strays), 2);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	assert_int_equal(fixture->events[HPX_UPSTREAM_STRAY], 1);
	finish(fixture, 4, 5);
}

/* A 408 on an idle connection; the strays that were counted. */
static uint64_t strays_of_408(struct fixture *fixture, int64_t idle_us)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_SEND, .text = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n" },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};

	play(fixture, acts);
	watch(fixture, true);
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	fixture->upstream->pool.newest->idle_since_us -= idle_us;
	script_go(&fixture->script);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	finish(fixture, 1, 1);
	return atomic_load(&fixture->state.strays);
}

static void a_408_closes_a_connection_that_was_idle_for_long(void **state)
{
	assert_int_equal(strays_of_408(*state, 1000 * 1000), 0);
}

static void a_408_right_behind_an_answer_is_a_stray_one(void **state)
{
	assert_int_equal(strays_of_408(*state, 0), 1);
}

static void bytes_that_the_loop_has_not_seen_are_found_before_use(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_SEND, .text = ANSWER },
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;
	struct closing closing = { { .run = let_it_be_closed }, fixture };

	play(fixture, acts);
	watch(fixture, true);
	call_well(fixture, true);
	fixture->upstream->pool.newest->slowest_us = 0;
	hpx_loop_later(&fixture->loop, &closing.later);
	call_well(fixture, true);
	assert_int_equal(atomic_load(&fixture->state.strays), 1);
	finish(fixture, 2, 2);
}

static void another_loops_stray_byte_closes_the_kept_ones(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	watch(fixture, true);
	call_well(fixture, false);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	hpx_upstream_note_stray(&fixture->state, 1000);
	hpx_upstream_tick(fixture->upstream);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	finish(fixture, 1, 1);
}

static void an_upstream_is_watched_before_it_is_trusted(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	/* One of the two makes room for the other. */
	fixture->options.pool_max = 1;
	watch(fixture, false);
	call_well(fixture, true);
	call_well(fixture, true);
	/* Silent for long: it counts, and it is used. */
	fixture->upstream->pool.newest->idle_since_us -= 2 * HPX_UPSTREAM_SILENCE_MS * 1000;
	call_well(fixture, true);
	assert_int_equal(atomic_load(&fixture->state.watched), 1);
	finish(fixture, 2, 3);
}

/* With its connection chosen. */
static void let_it_be_accepted(struct call *call, char event)
{
	if (event == 'r')
		script_go(call->user);
}

/* Whoever was there before: its own answer may still be to come. */
static void a_guarded_request_waits_for_silence_behind_a_passed_one(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_WAIT },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	watch(fixture, true);
	call_well(fixture, false);
	/* As if it had been slow. */
	fixture->upstream->pool.newest->slowest_us *= 1000 * 1000;
	struct call call = call_post(&fixture->loop);
	call.request.guarded = true;
	call.extra = let_it_be_accepted;
	call.user = &fixture->script;
	call_run(&call, fixture->upstream);
	assert_ended(&call, 200, "ok");
	finish(fixture, 2, 2);
}

static void a_fresh_request_neither_uses_nor_leaves_a_connection(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	make_upstream(fixture);
	for (int i = 0; i < 2; i++) {
		struct call call = call_post(&fixture->loop);
		call.request.fresh = true;
		call_run(&call, fixture->upstream);
		assert_ended(&call, 200, "ok");
		call_settle(&fixture->loop, fixture->upstream, 0, 0);
	}
	finish(fixture, 2, 2);
}

static void an_upstream_is_down_and_up_once(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_upstream_state *upstream = &fixture->state;
	static const struct script_act acts[] = { { .kind = SCRIPT_END } };

	play(fixture, acts);
	watch(fixture, true);
	for (int i = 0; i < 3; i++)
		hpx_upstream_note_unreachable(upstream, "refused");
	assert_int_equal(fixture->events[HPX_UPSTREAM_DOWN], 1);
	/* Too soon behind a failure, and none behind the last: still down. */
	hpx_upstream_note_reached(upstream);
	hpx_upstream_check_up(upstream);
	assert_true(atomic_load(&upstream->down));
	atomic_fetch_sub(&upstream->failed_ms, 2000);
	hpx_upstream_check_up(upstream);
	hpx_upstream_check_up(upstream);
	assert_false(atomic_load(&upstream->down));
	assert_int_equal(fixture->events[HPX_UPSTREAM_UP], 1);
	finish(fixture, 0, 0);
}

static void an_idle_connection_is_closed_in_time(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	fixture->options.pool_idle_ms = 20;
	make_upstream(fixture);
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	finish(fixture, 1, 1);
}

static void the_oldest_idle_connection_makes_room(void **state)
{
	/* The first connection is closed, idle, when the second is wanted by a
	 * request that may not use it. */
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	fixture->options.reuse_idle_ms = 0;
	fixture->options.slots.max = 1;
	make_upstream(fixture);
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 1, 1);
	finish(fixture, 2, 2);
}

static void no_more_are_kept_than_allowed(void **state)
{
	static const struct script_act acts[] = {
		{ .kind = SCRIPT_ACCEPT },
		TURN,
		{ .kind = SCRIPT_READ_END },
		{ .kind = SCRIPT_END },
	};
	struct fixture *fixture = *state;

	play(fixture, acts);
	fixture->options.pool_max = 0;
	make_upstream(fixture);
	call_well(fixture, true);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	finish(fixture, 1, 1);
}

#define REUSE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	hpx_net_ignore_sigpipe();
	const struct CMUnitTest tests[] = {
		REUSE_TEST(a_fresh_connection_is_used_again),
		REUSE_TEST(a_guarded_request_uses_no_connection_that_was_idle_too_long),
		REUSE_TEST(a_connection_that_the_upstream_closed_is_dropped),
		REUSE_TEST(an_end_that_the_loop_has_not_seen_is_found_before_use),
		REUSE_TEST(a_connection_that_dies_at_the_last_moment_takes_no_byte),
		REUSE_TEST(a_reused_connection_that_dies_later_is_not_tried_again),
		REUSE_TEST(stray_bytes_close_an_idle_connection),
		REUSE_TEST(a_stray_byte_keeps_guarded_requests_off_kept_connections),
		REUSE_TEST(a_408_closes_a_connection_that_was_idle_for_long),
		REUSE_TEST(a_408_right_behind_an_answer_is_a_stray_one),
		REUSE_TEST(bytes_that_the_loop_has_not_seen_are_found_before_use),
		REUSE_TEST(another_loops_stray_byte_closes_the_kept_ones),
		REUSE_TEST(an_upstream_is_watched_before_it_is_trusted),
		REUSE_TEST(a_guarded_request_waits_for_silence_behind_a_passed_one),
		REUSE_TEST(a_fresh_request_neither_uses_nor_leaves_a_connection),
		REUSE_TEST(an_upstream_is_down_and_up_once),
		REUSE_TEST(an_idle_connection_is_closed_in_time),
		REUSE_TEST(the_oldest_idle_connection_makes_room),
		REUSE_TEST(no_more_are_kept_than_allowed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
