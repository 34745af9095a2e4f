/* Starting threads, waiting with a deadline, and a thread with its owner. */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"

enum hpx_status hpx_thread_start(pthread_t *ret_thread, void *(*run)(void *user), void *user)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int failed = pthread_create(ret_thread, NULL, run, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? HPX_NOMEM : HPX_OK;
}

enum hpx_status hpx_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	if (pthread_condattr_init(&monotonic) != 0)
		return HPX_NOMEM;
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	int failed = pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return failed ? HPX_NOMEM : HPX_OK;
}

/* A condition cannot wait on the boot clock, only on the monotonic one, which
 * stands still during suspend: the rest of the time is waited for after it. */
void hpx_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t boot_ms)
{
	struct timespec until;

	if (boot_ms == INT64_MAX) {
		pthread_cond_wait(cond, mutex);
		return;
	}
	int64_t wait_ms = boot_ms - hpx_clock_boot_ms();
	if (wait_ms <= 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_timedwait(cond, mutex, &until);
}

/* ---- a thread with its owner ---- */

enum hpx_status hpx_thread_init(struct hpx_thread *thread)
{
	*thread = (struct hpx_thread){ .running = false };
	if (pthread_mutex_init(&thread->lock, NULL) != 0)
		return HPX_NOMEM;
	if (hpx_cond_init(&thread->changed) == HPX_OK)
		return HPX_OK;
	pthread_mutex_destroy(&thread->lock);
	return HPX_NOMEM;
}

void hpx_thread_done(struct hpx_thread *thread)
{
	HPX_ASSERT(!thread->running);
	pthread_cond_destroy(&thread->changed);
	pthread_mutex_destroy(&thread->lock);
}

enum hpx_status hpx_thread_run(struct hpx_thread *thread, void *(*run)(void *user), void *user)
{
	HPX_ASSERT(!thread->running && !thread->stopping);
	enum hpx_status status = hpx_thread_start(&thread->id, run, user);

	thread->running = status == HPX_OK;
	return status;
}

static void *run_steps(void *user)
{
	struct hpx_thread *thread = user;

	hpx_thread_lock(thread);
	while (!thread->stopping) {
		thread->hurried = false;
		hpx_thread_unlock(thread);
		int64_t next_ms = thread->step(thread->user);
		hpx_thread_lock(thread);
		if (!thread->stopping && !thread->hurried)
			hpx_thread_wait(thread, next_ms);
	}
	hpx_thread_unlock(thread);
	return NULL;
}

enum hpx_status hpx_thread_repeat(struct hpx_thread *thread, int64_t (*step)(void *user),
				  void *user)
{
	thread->step = step;
	thread->user = user;
	return hpx_thread_run(thread, run_steps, thread);
}

/* What is only signalled is lost on a thread that does not wait yet; hence the mark. */
void hpx_thread_hurry(struct hpx_thread *thread)
{
	hpx_thread_lock(thread);
	thread->hurried = true;
	hpx_thread_wake(thread);
	hpx_thread_unlock(thread);
}

void hpx_thread_tell_stop(struct hpx_thread *thread)
{
	hpx_thread_lock(thread);
	thread->stopping = true;
	hpx_thread_wake(thread);
	hpx_thread_unlock(thread);
}

void hpx_thread_stop(struct hpx_thread *thread)
{
	hpx_thread_tell_stop(thread);
	if (thread->running)
		pthread_join(thread->id, NULL);
	thread->running = false;
}

void hpx_thread_lock(struct hpx_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
}

void hpx_thread_unlock(struct hpx_thread *thread)
{
	pthread_mutex_unlock(&thread->lock);
}

void hpx_thread_wake(struct hpx_thread *thread)
{
	pthread_cond_broadcast(&thread->changed);
}

void hpx_thread_wait(struct hpx_thread *thread, int64_t boot_ms)
{
	hpx_cond_wait_until(&thread->changed, &thread->lock, boot_ms);
}

bool hpx_thread_is_stopping(struct hpx_thread *thread)
{
	hpx_thread_lock(thread);
	bool stopping = thread->stopping;
	hpx_thread_unlock(thread);
	return stopping;
}
