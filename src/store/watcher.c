/* The watcher's thread. A question that fails wakes nobody: the waiters' own
 * deadline ends their wait, and the committer reports the trouble. */
#include "store/watcher.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

/* A waiter sees another process's answer this much later at most, half of it
 * on average; and one primary-key look-up per waiting operation each time. */
#define INTERVAL_MS 50
/* Operations in one question; where more are waited for, they take turns. */
#define IDS_MAX 512

struct hpx_watcher {
	struct hpx_waitlist *waitlist;
	struct hpx_store_reader *reader;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool stopping; /* under the mutex */
	/* The thread's own. */
	unsigned cursor;
	struct hpx_operation_id ids[IDS_MAX];
	bool ended[IDS_MAX];
};

static void look(struct hpx_watcher *w)
{
	size_t count;

	if (hpx_waitlist_count(w->waitlist) == 0)
		return;
	count = hpx_waitlist_ids(w->waitlist, &w->cursor, w->ids, IDS_MAX);
	if (count == 0 || hpx_store_watch(w->reader, w->ids, count, w->ended) != HPX_OK)
		return;
	for (size_t i = 0; i < count; i++)
		if (w->ended[i])
			hpx_waitlist_wake(w->waitlist, &w->ids[i]);
}

static void *watcher_main(void *user)
{
	struct hpx_watcher *w = user;

	pthread_mutex_lock(&w->mutex);
	while (!w->stopping) {
		int64_t until_ms = hpx_clock_boot_ms() + INTERVAL_MS;
		hpx_cond_wait_until(&w->cond, &w->mutex, until_ms);
		if (w->stopping)
			break;
		pthread_mutex_unlock(&w->mutex);
		look(w);
		pthread_mutex_lock(&w->mutex);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static enum hpx_status init_sync(struct hpx_watcher *w)
{
	if (pthread_mutex_init(&w->mutex, NULL) != 0)
		return HPX_NOMEM;
	if (hpx_cond_init(&w->cond) == HPX_OK)
		return HPX_OK;
	pthread_mutex_destroy(&w->mutex);
	return HPX_NOMEM;
}

static void done_sync(struct hpx_watcher *w)
{
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->mutex);
}

enum hpx_status hpx_watcher_start(struct hpx_store *store, struct hpx_waitlist *waitlist,
				  struct hpx_watcher **ret_watcher)
{
	struct hpx_watcher *w = calloc(1, sizeof(*w));
	enum hpx_status status;

	if (w == NULL)
		return HPX_NOMEM;
	w->waitlist = waitlist;
	status = init_sync(w);
	if (status != HPX_OK) {
		free(w);
		return status;
	}
	status = hpx_store_reader_open(store, &w->reader);
	if (status == HPX_OK)
		status = hpx_thread_start(&w->thread, watcher_main, w);
	if (status != HPX_OK) {
		hpx_store_reader_close(w->reader);
		done_sync(w);
		free(w);
		return status;
	}
	*ret_watcher = w;
	return HPX_OK;
}

void hpx_watcher_stop(struct hpx_watcher *watcher)
{
	if (watcher == NULL)
		return;
	pthread_mutex_lock(&watcher->mutex);
	watcher->stopping = true;
	pthread_cond_signal(&watcher->cond);
	pthread_mutex_unlock(&watcher->mutex);
	pthread_join(watcher->thread, NULL);
	hpx_store_reader_close(watcher->reader);
	done_sync(watcher);
	free(watcher);
}
