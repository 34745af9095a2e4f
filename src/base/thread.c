/* Starting threads, and waiting with a deadline. */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/clock.h"

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
