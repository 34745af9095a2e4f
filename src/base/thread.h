/* Threads and waiting, the way every thread here wants them: signals stay with
 * the main thread, and times to wait for are on the boot clock. */
#ifndef HPX_BASE_THREAD_H
#define HPX_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* HPX_NOMEM where the system has no thread left. */
enum hpx_status hpx_thread_start(pthread_t *ret_thread, void *(*run)(void *user), void *user);

/* A condition that hpx_cond_wait_until can wait for. */
enum hpx_status hpx_cond_init(pthread_cond_t *cond);
/* Waits for a signal, at most until that time (INT64_MAX: for ever); may wake
 * early, as conditions do. With the mutex held. */
void hpx_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t boot_ms);

/* A thread that works until its owner stops it, with the lock and the condition
 * that the two share:
 *
 *   hpx_thread_init ─▶ hpx_thread_run or hpx_thread_repeat ─▶ hpx_thread_stop ─▶
 *   hpx_thread_done
 *
 * The owner may use lock and condition for what it shares with other threads
 * too, from init to done. */
struct hpx_thread {
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running;  /* the owner's: to be joined */
	bool stopping; /* under the lock */
	/* Of hpx_thread_repeat. */
	int64_t (*step)(void *user);
	void *user;
	bool hurried; /* under the lock: the next step is wanted at once */
};

/* On failure there is nothing to undo. */
enum hpx_status hpx_thread_init(struct hpx_thread *thread);
/* Runs `run`, which returns soon after `stopping` is set. */
enum hpx_status hpx_thread_run(struct hpx_thread *thread, void *(*run)(void *user), void *user);
/* Runs `step` again and again, without the lock. A step returns the time of the
 * next one on the boot clock; hpx_thread_hurry brings that forward. */
enum hpx_status hpx_thread_repeat(struct hpx_thread *thread, int64_t (*step)(void *user),
				  void *user);
/* Without the lock: a step that begins after this call is run, at once or right after the
 * one that runs now. */
void hpx_thread_hurry(struct hpx_thread *thread);
/* Sets `stopping` and wakes the thread, without waiting for it. */
void hpx_thread_tell_stop(struct hpx_thread *thread);
/* The same, and joins it; nothing where none runs. */
void hpx_thread_stop(struct hpx_thread *thread);
void hpx_thread_done(struct hpx_thread *thread);

void hpx_thread_lock(struct hpx_thread *thread);
void hpx_thread_unlock(struct hpx_thread *thread);
/* Wakes all that wait in hpx_thread_wait. With the lock held, or after it was let
 * go: then the threads that wake find it free. */
void hpx_thread_wake(struct hpx_thread *thread);
/* With the lock held, which is let go meanwhile; see hpx_cond_wait_until. */
void hpx_thread_wait(struct hpx_thread *thread, int64_t boot_ms);
/* Without the lock. */
bool hpx_thread_is_stopping(struct hpx_thread *thread);

#endif
