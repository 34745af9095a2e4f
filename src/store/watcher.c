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
	struct hpx_thread thread;
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

static int64_t step(void *user)
{
	look(user);
	return hpx_clock_boot_ms() + INTERVAL_MS;
}

enum hpx_status hpx_watcher_start(struct hpx_store *store, struct hpx_waitlist *waitlist,
				  struct hpx_watcher **ret_watcher)
{
	struct hpx_watcher *w = calloc(1, sizeof(*w));
	enum hpx_status status;

	if (w == NULL)
		return HPX_NOMEM;
	w->waitlist = waitlist;
	status = hpx_thread_init(&w->thread);
	if (status != HPX_OK) {
		free(w);
		return status;
	}
	status = hpx_store_reader_open(store, &w->reader);
	if (status == HPX_OK)
		status = hpx_thread_repeat(&w->thread, step, w);
	if (status != HPX_OK) {
		hpx_watcher_stop(w);
		return status;
	}
	*ret_watcher = w;
	return HPX_OK;
}

void hpx_watcher_stop(struct hpx_watcher *watcher)
{
	if (watcher == NULL)
		return;
	hpx_thread_stop(&watcher->thread);
	hpx_store_reader_close(watcher->reader);
	hpx_thread_done(&watcher->thread);
	free(watcher);
}
