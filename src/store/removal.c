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
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool stopping; /* under the mutex */
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

static void *removal_main(void *user)
{
	struct hpx_removal *r = user;

	pthread_mutex_lock(&r->mutex);
	while (!r->stopping) {
		int64_t next_ms = hpx_clock_boot_ms() + INTERVAL_MS;
		pthread_mutex_unlock(&r->mutex);
		ask(r);
		pthread_mutex_lock(&r->mutex);
		while (!r->stopping && hpx_clock_boot_ms() < next_ms)
			hpx_cond_wait_until(&r->cond, &r->mutex, next_ms);
	}
	pthread_mutex_unlock(&r->mutex);
	return NULL;
}

static enum hpx_status init_sync(struct hpx_removal *r)
{
	if (pthread_mutex_init(&r->mutex, NULL) != 0)
		return HPX_NOMEM;
	if (hpx_cond_init(&r->cond) == HPX_OK)
		return HPX_OK;
	pthread_mutex_destroy(&r->mutex);
	return HPX_NOMEM;
}

static void done(struct hpx_removal *r)
{
	hpx_store_reader_close(r->reader);
	pthread_cond_destroy(&r->cond);
	pthread_mutex_destroy(&r->mutex);
	free(r);
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
	status = init_sync(r);
	if (status != HPX_OK) {
		free(r);
		return status;
	}
	status = hpx_store_reader_open(store, &r->reader);
	if (status == HPX_OK)
		status = hpx_thread_start(&r->thread, removal_main, r);
	if (status != HPX_OK) {
		done(r);
		return status;
	}
	*ret_removal = r;
	return HPX_OK;
}

void hpx_removal_stop(struct hpx_removal *removal)
{
	if (removal == NULL)
		return;
	pthread_mutex_lock(&removal->mutex);
	removal->stopping = true;
	pthread_cond_signal(&removal->cond);
	pthread_mutex_unlock(&removal->mutex);
	pthread_join(removal->thread, NULL);
	done(removal);
}
