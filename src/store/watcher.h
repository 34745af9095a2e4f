/* The watcher: where several processes work on one store, an attempt that
 * somebody waits for here may be ended elsewhere. While there are waiters, it
 * asks the store a few times a second, with one question for all of them and
 * one connection of its own, and wakes those whose operation has ended. */
#ifndef HPX_STORE_WATCHER_H
#define HPX_STORE_WATCHER_H

#include "store/store.h"
#include "store/waitlist.h"

struct hpx_watcher;

enum hpx_status hpx_watcher_start(struct hpx_store *store, struct hpx_waitlist *waitlist,
				  struct hpx_watcher **ret_watcher);
/* NULL: there is none. */
void hpx_watcher_stop(struct hpx_watcher *watcher);

#endif
