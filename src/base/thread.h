/* Threads and waiting, the way every thread here wants them: signals stay with
 * the main thread, and times to wait for are on the boot clock. */
#ifndef HPX_BASE_THREAD_H
#define HPX_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"

/* HPX_NOMEM where no thread can be made. */
enum hpx_status hpx_thread_start(pthread_t *ret_thread, void *(*run)(void *user), void *user);

/* A condition that hpx_cond_wait_until can wait for. */
enum hpx_status hpx_cond_init(pthread_cond_t *cond);
/* Waits for a signal, at most until that time (INT64_MAX: for ever); may wake
 * early, as conditions do. With the mutex held. */
void hpx_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t boot_ms);

#endif
