/* Between a request and the cache. The rules are the cache's; here is only when
 * it is asked and told. */
#include "gateway/cached.h"

bool hpx_cached_find(struct hpx_request *request, struct hpx_decision *ret_decision)
{
	struct hpx_cache *cache = request->shard->service->cache;
	struct hpx_meter *meter = &request->shard->meter;

	if (cache == NULL)
		return false;
	if (hpx_cache_peek(cache, &request->identity.ask, &request->head.route->policy, ret_decision,
			   &request->reservation.stored) == HPX_OK) {
		hpx_counter_add(&meter->cache_hits, 1);
		return true;
	}
	hpx_counter_add(&meter->cache_misses, 1);
	hpx_cached_mark(request);
	return false;
}

void hpx_cached_mark(struct hpx_request *request)
{
	struct hpx_cache *cache = request->shard->service->cache;

	if (cache != NULL)
		request->reservation.cache_mark = hpx_cache_mark(cache);
}

void hpx_cached_keep(struct hpx_request *request, int64_t judged_ms,
		     const struct hpx_record *record, const struct hpx_answer *answer)
{
	struct hpx_cache *cache = request->shard->service->cache;
	struct hpx_cache_mark mark = request->reservation.cache_mark;

	if (cache == NULL)
		return;
	if (judged_ms != 0)
		mark.wall_ms = judged_ms;
	hpx_cache_put(cache, &mark, record, answer);
}
