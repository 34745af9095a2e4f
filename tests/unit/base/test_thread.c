/* Shows that a thread repeats its step until it is stopped, that hurrying brings the
 * next step forward at whatever moment it comes, and that stopping needs no thread. */
#include "../test.h"

#include "base/clock.h"
#include "base/thread.h"

struct counted {
	struct hpx_thread thread;
	unsigned steps; /* under the thread's lock */
	int64_t pause_ms;
};

static int64_t count_step(void *user)
{
	struct counted *counted = user;

	hpx_thread_lock(&counted->thread);
	counted->steps++;
	hpx_thread_wake(&counted->thread);
	hpx_thread_unlock(&counted->thread);
	return hpx_clock_boot_ms() + counted->pause_ms;
}

/* Waits for that many steps; false after a long time. */
static bool await_steps(struct counted *counted, unsigned steps)
{
	int64_t until_ms = hpx_clock_boot_ms() + 30000;

	hpx_thread_lock(&counted->thread);
	while (counted->steps < steps && hpx_clock_boot_ms() < until_ms)
		hpx_thread_wait(&counted->thread, until_ms);
	bool reached = counted->steps >= steps;
	hpx_thread_unlock(&counted->thread);
	return reached;
}

static void steps_repeat_until_the_stop(void **state)
{
	struct counted counted = { .pause_ms = 1 };
	(void)state;
	assert_status(hpx_thread_init(&counted.thread), HPX_OK);
	assert_status(hpx_thread_repeat(&counted.thread, count_step, &counted), HPX_OK);
	assert_true(await_steps(&counted, 3));
	assert_false(hpx_thread_is_stopping(&counted.thread));
	hpx_thread_stop(&counted.thread);
	assert_true(hpx_thread_is_stopping(&counted.thread));
	hpx_thread_done(&counted.thread);
}

static void hurrying_brings_a_step_forward(void **state)
{
	struct counted counted = { .pause_ms = 3600000 };
	(void)state;
	assert_status(hpx_thread_init(&counted.thread), HPX_OK);
	assert_status(hpx_thread_repeat(&counted.thread, count_step, &counted), HPX_OK);
	/* Each comes as soon as the step before it is counted: whether the thread waits by
	 * then or not, none is lost. */
	for (unsigned steps = 1; steps < 2000; steps++) {
		assert_true(await_steps(&counted, steps));
		hpx_thread_hurry(&counted.thread);
	}
	assert_true(await_steps(&counted, 2000));
	hpx_thread_stop(&counted.thread);
	hpx_thread_done(&counted.thread);
}

/* A step in which somebody asks for another one. */
static int64_t hurry_step(void *user)
{
	struct counted *counted = user;

	if (counted->steps == 0)
		hpx_thread_hurry(&counted->thread);
	return count_step(user);
}

static void a_hurry_during_a_step_is_kept(void **state)
{
	struct counted counted = { .pause_ms = 3600000 };
	(void)state;
	assert_status(hpx_thread_init(&counted.thread), HPX_OK);
	assert_status(hpx_thread_repeat(&counted.thread, hurry_step, &counted), HPX_OK);
	assert_true(await_steps(&counted, 2));
	hpx_thread_stop(&counted.thread);
	hpx_thread_done(&counted.thread);
}

static void stopping_needs_no_thread(void **state)
{
	struct hpx_thread thread;
	(void)state;
	assert_status(hpx_thread_init(&thread), HPX_OK);
	hpx_thread_stop(&thread);
	hpx_thread_stop(&thread);
	hpx_thread_done(&thread);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_repeat_until_the_stop),
		cmocka_unit_test(hurrying_brings_a_step_forward),
		cmocka_unit_test(a_hurry_during_a_step_is_kept),
		cmocka_unit_test(stopping_needs_no_thread),
	};
	return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
