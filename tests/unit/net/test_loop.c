/* Shows that messages of several threads are all handled, on the loop's
 * thread and in each sender's order, that a sender may wake the loop once for many,
 * that a turn has an end before the loop waits, and that a deferred call runs after
 * the current callback, or not at all once it is cancelled. */
#include "../test.h"

#include <pthread.h>
#include <unistd.h>

#include "net/loop.h"

#define SENDERS 4
#define EACH 20000

struct numbered {
	struct hpx_message message;
	struct run *run;
	int sender;
	int number;
};

struct run {
	struct hpx_loop loop;
	uv_timer_t alive;
	int next[SENDERS];
	int handled;
	pthread_t loop_thread;
};

struct sender {
	struct run *run;
	struct numbered *messages;
	int sender;
	bool unwoken;
};

static void handle_numbered(struct hpx_message *message)
{
	struct numbered *numbered = (struct numbered *)message;
	struct run *run = numbered->run;

	assert_true(pthread_equal(pthread_self(), run->loop_thread));
	assert_int_equal(numbered->number, run->next[numbered->sender]);
	run->next[numbered->sender]++;
	if (++run->handled == SENDERS * EACH)
		uv_close((uv_handle_t *)&run->alive, NULL);
}

static void *send_all(void *arg)
{
	struct sender *sender = arg;

	for (int i = 0; i < EACH; i++) {
		struct numbered *numbered = &sender->messages[i];
		*numbered = (struct numbered){ .message.handle = handle_numbered,
					       .run = sender->run,
					       .sender = sender->sender,
					       .number = i };
		if (!sender->unwoken)
			hpx_loop_post(&sender->run->loop, &numbered->message);
		else
			hpx_loop_post_unwoken(&sender->run->loop, &numbered->message);
		if (sender->unwoken && (i % 7 == 6 || i == EACH - 1))
			hpx_loop_wake_owed(&sender->run->loop);
	}
	return NULL;
}

static void never(uv_timer_t *timer)
{
	(void)timer;
	fail_msg("the messages did not arrive");
}

static void send_from_all(bool unwoken)
{
	struct run run = { .loop_thread = pthread_self() };
	struct sender senders[SENDERS];
	pthread_t threads[SENDERS];
	struct numbered *messages = calloc(SENDERS * EACH, sizeof(*messages));

	assert_non_null(messages);
	assert_status(hpx_loop_init(&run.loop), HPX_OK);
	uv_timer_init(&run.loop.uv, &run.alive);
	uv_timer_start(&run.alive, never, 60000, 0);
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){ &run, messages + i * EACH, i, unwoken && i % 2 == 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
	}
	hpx_loop_run(&run.loop);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(run.handled, SENDERS * EACH);
	hpx_loop_done(&run.loop);
	free(messages);
}

static void messages_arrive_in_order(void **state)
{
	(void)state;
	send_from_all(false);
}

static void messages_of_senders_that_wake_once_for_many_arrive(void **state)
{
	(void)state;
	send_from_all(true);
}

static void mark_handled(struct hpx_message *message)
{
	message->handle = NULL;
}

static void a_loop_is_woken_once_and_only_where_that_is_owed(void **state)
{
	struct hpx_loop loop;
	struct hpx_message first = { .handle = mark_handled };
	struct hpx_message second = { .handle = mark_handled };
	uint64_t count = 0;

	(void)state;
	assert_status(hpx_loop_init(&loop), HPX_OK);
	hpx_loop_wake_owed(&loop);
	assert_int_equal(read(loop.wake_fd, &count, sizeof(count)), -1);
	hpx_loop_post_unwoken(&loop, &first);
	hpx_loop_post_unwoken(&loop, &second);
	assert_int_equal(read(loop.wake_fd, &count, sizeof(count)), -1);
	hpx_loop_wake_owed(&loop);
	hpx_loop_wake_owed(&loop);
	assert_int_equal(read(loop.wake_fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	hpx_loop_done(&loop);
	assert_null(first.handle);
	assert_null(second.handle);
}

static void messages_left_over_are_handled_at_the_end(void **state)
{
	struct hpx_loop loop;
	struct hpx_message first = { .handle = mark_handled };
	struct hpx_message second = { .handle = mark_handled };

	(void)state;
	assert_status(hpx_loop_init(&loop), HPX_OK);
	hpx_loop_post(&loop, &first);
	hpx_loop_post(&loop, &second);
	hpx_loop_done(&loop);
	assert_null(first.handle);
	assert_null(second.handle);
}

struct put_off {
	struct hpx_later later;
	struct hpx_loop *loop;
	struct put_off *cancels;
	char name;
	char *log;
	bool again;
};

static void write_name(struct hpx_later *later)
{
	struct put_off *put_off = (struct put_off *)later;

	put_off->log[strlen(put_off->log)] = put_off->name;
	if (put_off->cancels != NULL)
		hpx_later_cancel(&put_off->cancels->later);
	if (put_off->again) {
		put_off->again = false;
		hpx_loop_later(put_off->loop, later);
		put_off->log[strlen(put_off->log)] = '.';
	}
}

static void deferred_calls_run_later_once_in_order(void **state)
{
	struct hpx_loop loop;
	char log[16] = "";
	struct put_off c = { { .run = write_name }, &loop, NULL, 'c', log, false };
	struct put_off b = { { .run = write_name }, &loop, &c, 'b', log, false };
	struct put_off a = { { .run = write_name }, &loop, NULL, 'a', log, true };

	(void)state;
	assert_status(hpx_loop_init(&loop), HPX_OK);
	hpx_loop_later(&loop, &a.later);
	hpx_loop_later(&loop, &a.later);
	hpx_loop_later(&loop, &b.later);
	hpx_loop_later(&loop, &c.later);
	assert_string_equal(log, "");
	hpx_loop_run(&loop);
	assert_string_equal(log, "a.ba");
	hpx_later_cancel(&c.later);
	hpx_loop_done(&loop);
}

static void stop_now(struct hpx_later *later)
{
	struct put_off *put_off = (struct put_off *)later;

	hpx_loop_stop(put_off->loop);
}

static void a_stopped_loop_runs_again(void **state)
{
	struct hpx_loop loop;
	char log[4] = "";
	struct put_off stop = { { .run = stop_now }, &loop, NULL, 's', log, false };
	struct put_off a = { { .run = write_name }, &loop, NULL, 'a', log, false };
	uv_timer_t alive;

	(void)state;
	assert_status(hpx_loop_init(&loop), HPX_OK);
	uv_timer_init(&loop.uv, &alive);
	uv_timer_start(&alive, never, 60000, 0);
	hpx_loop_later(&loop, &stop.later);
	hpx_loop_run(&loop);
	uv_close((uv_handle_t *)&alive, NULL);
	hpx_loop_later(&loop, &a.later);
	hpx_loop_run(&loop);
	assert_string_equal(log, "a");
	hpx_loop_done(&loop);
}

/* What the loop did, as letters: t for the end of a turn, m for a message. */
struct diary {
	struct hpx_loop loop;
	struct hpx_message at_end; /* posted by the end of the first turn */
	bool posted;
	char log[32];
};

static void write_letter(struct diary *diary, char letter)
{
	size_t len = strlen(diary->log);

	if (len < sizeof(diary->log) - 1 && (len == 0 || diary->log[len - 1] != letter))
		diary->log[len] = letter;
}

static void handle_at_end(struct hpx_message *message)
{
	write_letter(HPX_CONTAINER(message, struct diary, at_end), 'm');
}

static void note_turn(struct hpx_loop *loop)
{
	struct diary *diary = HPX_CONTAINER(loop, struct diary, loop);

	write_letter(diary, 't');
	if (!diary->posted)
		hpx_loop_post(loop, &diary->at_end);
	diary->posted = true;
}

static void a_turn_ends_before_the_loop_waits(void **state)
{
	struct diary diary = { .at_end = { .handle = handle_at_end } };
	uv_timer_t alive;

	(void)state;
	assert_status(hpx_loop_init(&diary.loop), HPX_OK);
	hpx_loop_set_turn_end(&diary.loop, note_turn);
	uv_timer_init(&diary.loop.uv, &alive);
	uv_timer_start(&alive, never, 60000, 0);
	/* Polls once: the message is there already when that begins. */
	assert_true(uv_run(&diary.loop.uv, UV_RUN_ONCE) != 0);
	assert_string_equal(diary.log, "tm");
	uv_close((uv_handle_t *)&alive, NULL);
	hpx_loop_run(&diary.loop);
	assert_string_equal(diary.log, "tmt");
	hpx_loop_done(&diary.loop);
}

static void what_a_turn_leaves_is_done_at_the_end(void **state)
{
	struct diary diary = { .at_end = { .handle = handle_at_end } };

	(void)state;
	assert_status(hpx_loop_init(&diary.loop), HPX_OK);
	hpx_loop_set_turn_end(&diary.loop, note_turn);
	hpx_loop_done(&diary.loop);
	assert_string_equal(diary.log, "tmt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_arrive_in_order),
		cmocka_unit_test(messages_of_senders_that_wake_once_for_many_arrive),
		cmocka_unit_test(a_loop_is_woken_once_and_only_where_that_is_owed),
		cmocka_unit_test(messages_left_over_are_handled_at_the_end),
		cmocka_unit_test(a_turn_ends_before_the_loop_waits),
		cmocka_unit_test(what_a_turn_leaves_is_done_at_the_end),
		cmocka_unit_test(deferred_calls_run_later_once_in_order),
		cmocka_unit_test(a_stopped_loop_runs_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
