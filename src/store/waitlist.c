/* Who waits for which operation: a hash table of linked waiters under one
 * mutex, with a count beside it, so that a completion for which nobody waits
 * (nearly all of them) costs one atomic read.
 *
 * Why no wake-up is missed: a waiter is counted before it looks at the store,
 * and the waker looks at the count after its write is durable. Both accesses
 * are sequentially consistent, so at least one of the two sees the other. */
#include "store/waitlist.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "store/store.h"

#define BUCKETS 1024
/* A waiter sees another process's answer this much later at most, half of it
 * on average; and one primary-key look-up per waiting operation each time. */
#define WATCH_INTERVAL_MS 50
/* Operations in one query; where more are waited for, they take turns. */
#define WATCH_IDS_MAX 512

struct hpx_waitlist {
	pthread_mutex_t mutex;
	_Atomic unsigned total;
	unsigned per_operation_max;
	unsigned total_max;
	struct hpx_waiter *bucket[BUCKETS];
};

struct hpx_waitlist *hpx_waitlist_new(unsigned per_operation_max, unsigned total_max)
{
	struct hpx_waitlist *list = calloc(1, sizeof(*list));

	if (list == NULL)
		return NULL;
	if (pthread_mutex_init(&list->mutex, NULL) != 0) {
		free(list);
		return NULL;
	}
	list->per_operation_max = per_operation_max;
	list->total_max = total_max;
	return list;
}

void hpx_waitlist_free(struct hpx_waitlist *list)
{
	if (list == NULL)
		return;
	HPX_ASSERT(atomic_load(&list->total) == 0);
	pthread_mutex_destroy(&list->mutex);
	free(list);
}

/* The id is a hash already: any two of its bytes spread well. */
static struct hpx_waiter **bucket_of(struct hpx_waitlist *list, const struct hpx_operation_id *id)
{
	return &list->bucket[(id->bytes[0] | (unsigned)id->bytes[1] << 8) % BUCKETS];
}

static unsigned count_of(struct hpx_waiter *waiter, const struct hpx_operation_id *id)
{
	unsigned count = 0;

	for (; waiter != NULL; waiter = waiter->next)
		count += hpx_operation_id_eq(&waiter->id, id);
	return count;
}

enum hpx_status hpx_waitlist_add(struct hpx_waitlist *list, struct hpx_waiter *waiter)
{
	struct hpx_waiter **bucket = bucket_of(list, &waiter->id);
	enum hpx_status status = HPX_FULL;

	pthread_mutex_lock(&list->mutex);
	HPX_ASSERT(!waiter->listed);
	if (atomic_load(&list->total) < list->total_max &&
	    count_of(*bucket, &waiter->id) < list->per_operation_max) {
		waiter->next = *bucket;
		waiter->listed = true;
		*bucket = waiter;
		atomic_fetch_add(&list->total, 1);
		status = HPX_OK;
	}
	pthread_mutex_unlock(&list->mutex);
	return status;
}

static void unlink_at(struct hpx_waitlist *list, struct hpx_waiter **at)
{
	struct hpx_waiter *waiter = *at;

	HPX_ASSERT(waiter->listed && atomic_load(&list->total) > 0);
	*at = waiter->next;
	waiter->next = NULL;
	waiter->listed = false;
	atomic_fetch_sub(&list->total, 1);
}

bool hpx_waitlist_remove(struct hpx_waitlist *list, struct hpx_waiter *waiter)
{
	bool found;

	pthread_mutex_lock(&list->mutex);
	struct hpx_waiter **at = bucket_of(list, &waiter->id);
	while (*at != NULL && *at != waiter)
		at = &(*at)->next;
	found = *at != NULL;
	if (found)
		unlink_at(list, at);
	pthread_mutex_unlock(&list->mutex);
	return found;
}

static struct hpx_waiter *take_all(struct hpx_waitlist *list, const struct hpx_operation_id *id)
{
	struct hpx_waiter *taken = NULL;

	pthread_mutex_lock(&list->mutex);
	struct hpx_waiter **at = bucket_of(list, id);
	while (*at != NULL) {
		struct hpx_waiter *waiter = *at;
		if (!hpx_operation_id_eq(&waiter->id, id)) {
			at = &waiter->next;
			continue;
		}
		unlink_at(list, at);
		waiter->next = taken;
		taken = waiter;
	}
	pthread_mutex_unlock(&list->mutex);
	return taken;
}

void hpx_waitlist_wake(struct hpx_waitlist *list, const struct hpx_operation_id *id)
{
	/* A read-modify-write, so that it cannot move before the write that
	 * this wake-up is about. */
	if (atomic_fetch_add(&list->total, 0) == 0)
		return;
	struct hpx_waiter *waiter = take_all(list, id);
	while (waiter != NULL) {
		/* Once woken, it may be gone. */
		struct hpx_waiter *next = waiter->next;
		waiter->wake(waiter);
		waiter = next;
	}
}

/* Whether the last of them is this one. */
static bool is_last(const struct hpx_operation_id *ids, size_t count,
		    const struct hpx_operation_id *id)
{
	return count > 0 && hpx_operation_id_eq(&ids[count - 1], id);
}

size_t hpx_waitlist_ids(struct hpx_waitlist *list, unsigned *cursor,
			struct hpx_operation_id *ret_ids, size_t max)
{
	size_t count = 0;
	unsigned looked = 0;

	HPX_ASSERT(*cursor < BUCKETS && max > 0);
	pthread_mutex_lock(&list->mutex);
	for (; looked < BUCKETS && count < max; looked++) {
		const struct hpx_waiter *waiter = list->bucket[(*cursor + looked) % BUCKETS];
		for (; waiter != NULL && count < max; waiter = waiter->next)
			if (!is_last(ret_ids, count, &waiter->id))
				ret_ids[count++] = waiter->id;
	}
	/* A bucket that was cut short comes first the next time. */
	*cursor = (*cursor + looked - (count == max && looked > 1)) % BUCKETS;
	pthread_mutex_unlock(&list->mutex);
	return count;
}

unsigned hpx_waitlist_count(const struct hpx_waitlist *list)
{
	return atomic_load(&((struct hpx_waitlist *)list)->total);
}

/* ---- attempts that other processes end ---- */

/* A query that fails wakes nobody: the waiters' own deadline ends their wait,
 * and the committer reports the trouble. */
struct hpx_watcher {
	struct hpx_waitlist *waitlist;
	struct hpx_store_reader *reader;
	struct hpx_thread thread;
	/* The thread's own. */
	unsigned cursor;
	struct hpx_operation_id ids[WATCH_IDS_MAX];
	bool ended[WATCH_IDS_MAX];
};

static void look(struct hpx_watcher *w)
{
	size_t count;

	if (hpx_waitlist_count(w->waitlist) == 0)
		return;
	count = hpx_waitlist_ids(w->waitlist, &w->cursor, w->ids, WATCH_IDS_MAX);
	if (count == 0 || hpx_store_watch(w->reader, w->ids, count, w->ended) != HPX_OK)
		return;
	for (size_t i = 0; i < count; i++)
		if (w->ended[i])
			hpx_waitlist_wake(w->waitlist, &w->ids[i]);
}

static int64_t step(void *user)
{
	look(user);
	return hpx_clock_boot_ms() + WATCH_INTERVAL_MS;
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
