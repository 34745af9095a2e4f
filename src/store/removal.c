/* The thread that hears. A question that fails takes nothing out: the cache
 * falls silent by itself when none was answered for a while. After such a gap
 * it begins empty: a history that was cut meanwhile could not tell, and a
 * database that was replaced by its standby may know less than we do. */
#include "store/removal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

#define INTERVAL_MS 250

struct hpx_removal {
	struct hpx_store *store;
	struct hpx_cache *cache;
	struct hpx_store_reader *reader;
	struct hpx_thread thread;
	/* The thread's own. */
	int64_t heard_boot_ms; /* when the last answered question was asked */
	struct hpx_removals heard;
};

static void ask(struct hpx_removal *r)
{
	int64_t asked_ms = hpx_clock_boot_ms();
	uint64_t count = hpx_store_removal_count(r->store);

	if (hpx_store_removals(r->reader, &r->heard) != HPX_OK)
		return;
	if (r->heard.all || asked_ms - r->heard_boot_ms >= HPX_CACHE_DEAF_MS)
		hpx_cache_clear(r->cache);
	else
		hpx_cache_remove(r->cache, r->heard.ids, r->heard.count);
	r->heard_boot_ms = asked_ms;
	hpx_cache_hear(r->cache, asked_ms, count);
}

static int64_t step(void *user)
{
	int64_t next_ms = hpx_clock_boot_ms() + INTERVAL_MS;

	ask(user);
	return next_ms;
}

enum hpx_status hpx_removal_start(struct hpx_store *store, struct hpx_cache *cache,
				  struct hpx_removal **ret_removal)
{
	struct hpx_removal *r = calloc(1, sizeof(*r));
	enum hpx_status status;

	if (r == NULL)
		return HPX_NOMEM;
	r->store = store;
	r->cache = cache;
	status = hpx_thread_init(&r->thread);
	if (status != HPX_OK) {
		free(r);
		return status;
	}
	status = hpx_store_reader_open(store, &r->reader);
	if (status == HPX_OK)
		status = hpx_thread_repeat(&r->thread, step, r);
	if (status != HPX_OK) {
		hpx_removal_stop(r);
		return status;
	}
	*ret_removal = r;
	return HPX_OK;
}

void hpx_removal_stop(struct hpx_removal *removal)
{
	if (removal == NULL)
		return;
	hpx_thread_stop(&removal->thread);
	hpx_store_reader_close(removal->reader);
	hpx_thread_done(&removal->thread);
	free(removal);
}
