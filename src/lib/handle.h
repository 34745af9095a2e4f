/* What a handle is made of: a store, and for connections of its own the
 * committer in front of it. */
#ifndef HPX_LIB_HANDLE_H
#define HPX_LIB_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "hapax/hapax.h"
#include "store/committer.h"

struct hapax {
	struct hpx_store *store;
	struct hpx_committer *committer; /* NULL: the connection is the caller's */
	int64_t timeout_ms;
	_Atomic size_t held_bytes; /* of calls under way, awaited or not */
	pthread_mutex_t mutex;
	/* Under the mutex: what the store said of itself when it went down. */
	char trouble[HPX_STORE_PROBLEM_SIZE];
};

/* What is known of the store's trouble, "" while it is well. */
void hpx_handle_trouble(struct hapax *hapax, char ret_trouble[HPX_STORE_PROBLEM_SIZE]);

#endif
