/* Requests that wait for another's answer: woken by the completion, not by
 * polling; bounded per operation and in total. Thread-safe. A waiter that is
 * registered first and looks second cannot miss its wake-up. */
#ifndef HPX_STORE_WAITLIST_H
#define HPX_STORE_WAITLIST_H

#include "core/operation.h"

struct hpx_store;
struct hpx_waitlist;
struct hpx_watcher;

/* Embedded in the waiting request; the list only links it. */
struct hpx_waiter {
	struct hpx_operation_id id;
	/* Called with the waiter already off the list, on the waking thread;
	 * must only hand a message to the waiter's own loop. */
	void (*wake)(struct hpx_waiter *waiter);
	void *user;
	struct hpx_waiter *next;
	bool listed;
};

struct hpx_waitlist *hpx_waitlist_new(unsigned per_operation_max, unsigned total_max);
void hpx_waitlist_free(struct hpx_waitlist *list);
/* HPX_FULL when a bound is reached. */
enum hpx_status hpx_waitlist_add(struct hpx_waitlist *list, struct hpx_waiter *waiter);
/* False when it was already woken (its wake call has been or is being made). */
bool hpx_waitlist_remove(struct hpx_waitlist *list, struct hpx_waiter *waiter);
/* Wakes all who wait for this operation; cheap when nobody waits at all. */
void hpx_waitlist_wake(struct hpx_waitlist *list, const struct hpx_operation_id *id);
unsigned hpx_waitlist_count(const struct hpx_waitlist *list);
/* Up to `max` operations that somebody waits for, each once as far as they lie
 * side by side; how many. `*cursor` (0 at first) is where the next call goes
 * on, so that all have their turn. */
size_t hpx_waitlist_ids(struct hpx_waitlist *list, unsigned *cursor,
			struct hpx_operation_id *ret_ids, size_t max);

/* Where several processes work on one store (HPX_STORE_SHARED), an attempt that a
 * request waits for here may be ended elsewhere. While there are waiters, the
 * watcher asks the store a few times a second, with one query for all of them
 * and one connection of its own, and wakes those whose operation has ended. */
enum hpx_status hpx_watcher_start(struct hpx_store *store, struct hpx_waitlist *waitlist,
				  struct hpx_watcher **ret_watcher);
/* NULL: there is none. */
void hpx_watcher_stop(struct hpx_watcher *watcher);

#endif
