/* Hears of what people remove from the store, in whichever process, and takes
 * it out of this one's cache: a thread with a reader of its own that asks four
 * times a second. */
#ifndef HPX_STORE_REMOVAL_H
#define HPX_STORE_REMOVAL_H

#include "store/cache.h"

struct hpx_removal;

/* The store's driver must be able to tell (hpx_store_removals). */
enum hpx_status hpx_removal_start(struct hpx_store *store, struct hpx_cache *cache,
				  struct hpx_removal **ret_removal);
/* NULL: there is none. Afterwards the cache falls silent. */
void hpx_removal_stop(struct hpx_removal *removal);

#endif
