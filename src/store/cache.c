/* The cache: a hash table of entries in the order of their use, in a few parts
 * with a lock each, picked by the operation's id. A lock is held for a few
 * pointers only: entries are counted references, so that answers are copied,
 * and the rules asked, outside.
 *
 * Why nothing that was removed can be put in (C4). A removal is committed, then
 * found by the next check: then the epoch grows, and
 * only then are the ids taken out, part by part, under the part's lock. Whoever
 * puts something in took the epoch before it asked the store, and compares it
 * under the part's lock. Say that it read the record before the removal:
 *  - it puts it in before the ids are taken out of that part: it goes with them;
 *  - it comes after that: the epoch has grown since its mark, unless the mark
 *    was taken after the removal was applied; but then the store was asked
 *    later still, and would have shown the record as gone.
 * One epoch for all ids refuses a few answers that nothing is wrong with; the
 * next replay puts them in. */
#include "store/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "store/change.h"

#define STRIPES 8
/* Between two queries for removals. */
#define INTERVAL_MS 250
/* Longer than this nobody needs a copy, and sums of times stay small. */
#define LIFE_MAX_MS ((int64_t)24 * 60 * 60 * 1000)

struct cache_entry {
	struct cache_entry *next;          /* in its bucket */
	struct cache_entry *newer, *older; /* by use */
	atomic_uint references;
	struct hpx_record record;
	struct hpx_answer *answer;
	struct hpx_cache_mark mark;
	int64_t until_boot_ms;
	size_t bytes;
};

struct cache_stripe {
	pthread_mutex_t mutex;
	struct cache_entry **bucket;
	struct cache_entry *newest, *oldest;
	size_t count;
	size_t bytes;
};

struct hpx_cache {
	struct hpx_store *store;
	size_t bytes_max; /* of one part */
	size_t entries_max;
	size_t bucket_count;
	_Atomic uint64_t epoch;
	_Atomic int64_t checked_boot_ms; /* when the last answered query began; 0: never */
	_Atomic uint64_t last_removal;   /* the store's count at that time */
	atomic_size_t bytes;             /* of all parts, for metrics */
	atomic_size_t count;
	struct cache_stripe stripe[STRIPES];
};

/* ---- entries ---- */

static void entry_unref(struct cache_entry *entry)
{
	if (atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) > 1)
		return;
	hpx_answer_free(entry->answer);
	free(entry);
}

static struct cache_entry *entry_new(const struct hpx_cache_mark *mark, const struct hpx_record *record,
				     const struct hpx_answer *answer)
{
	struct cache_entry *entry = calloc(1, sizeof(*entry));
	int64_t left_ms = record->expires_ms - mark->wall_ms;

	HPX_ASSERT(left_ms > 0 && record->state == HPX_STATE_COMPLETED); /* C1, C2 */
	if (entry == NULL)
		return NULL;
	entry->answer = hpx_answer_new(record->status, true, answer->headers, answer->body);
	if (entry->answer == NULL) {
		free(entry);
		return NULL;
	}
	atomic_init(&entry->references, 1);
	entry->record = *record;
	entry->mark = *mark;
	entry->until_boot_ms = mark->boot_ms + (left_ms < LIFE_MAX_MS ? left_ms : LIFE_MAX_MS);
	return entry;
}

static size_t bytes_of(const struct hpx_answer *answer)
{
	return sizeof(struct cache_entry) + sizeof(*answer) + answer->headers.len + answer->body.len;
}

/* ---- parts ---- */

/* The id is a hash already: any of its bytes spread well. */
static struct cache_stripe *stripe_of(struct hpx_cache *cache, const struct hpx_operation_id *id)
{
	return &cache->stripe[id->bytes[0] % STRIPES];
}

static struct cache_entry **position_of(const struct hpx_cache *cache, struct cache_stripe *stripe,
					const struct hpx_operation_id *id)
{
	size_t hash = id->bytes[1] | (size_t)id->bytes[2] << 8 | (size_t)id->bytes[3] << 16;
	struct cache_entry **at = &stripe->bucket[hash % cache->bucket_count];

	while (*at != NULL && !hpx_operation_id_eq(&(*at)->record.id, id))
		at = &(*at)->next;
	return at;
}

static void leave_order(struct cache_stripe *stripe, struct cache_entry *entry)
{
	*(entry->newer != NULL ? &entry->newer->older : &stripe->newest) = entry->older;
	*(entry->older != NULL ? &entry->older->newer : &stripe->oldest) = entry->newer;
}

static void make_newest(struct cache_stripe *stripe, struct cache_entry *entry)
{
	entry->newer = NULL;
	entry->older = stripe->newest;
	*(stripe->newest != NULL ? &stripe->newest->newer : &stripe->oldest) = entry;
	stripe->newest = entry;
}

static void take_out(struct hpx_cache *cache, struct cache_stripe *stripe, struct cache_entry **at)
{
	struct cache_entry *entry = *at;

	HPX_ASSERT(stripe->count > 0 && stripe->bytes >= entry->bytes);
	*at = entry->next;
	leave_order(stripe, entry);
	stripe->count--;
	stripe->bytes -= entry->bytes;
	atomic_fetch_sub(&cache->bytes, entry->bytes);
	atomic_fetch_sub(&cache->count, 1);
	entry_unref(entry);
}

static void put_in(struct hpx_cache *cache, struct cache_stripe *stripe, struct cache_entry *entry)
{
	struct cache_entry **at = position_of(cache, stripe, &entry->record.id);

	HPX_ASSERT(entry->bytes > 0 && entry->bytes <= cache->bytes_max);
	if (*at != NULL)
		take_out(cache, stripe, at);
	while (stripe->oldest != NULL && (stripe->count >= cache->entries_max ||
					  stripe->bytes > cache->bytes_max - entry->bytes))
		take_out(cache, stripe, position_of(cache, stripe, &stripe->oldest->record.id));
	HPX_ASSERT(stripe->count < cache->entries_max);
	at = position_of(cache, stripe, &entry->record.id);
	entry->next = *at;
	*at = entry;
	make_newest(stripe, entry);
	stripe->count++;
	stripe->bytes += entry->bytes;
	atomic_fetch_add(&cache->bytes, entry->bytes);
	atomic_fetch_add(&cache->count, 1);
}

/* ---- the cache ---- */

static bool make_stripes(struct hpx_cache *cache)
{
	for (size_t i = 0; i < STRIPES; i++) {
		struct cache_stripe *stripe = &cache->stripe[i];
		stripe->bucket = calloc(cache->bucket_count, sizeof(*stripe->bucket));
		if (stripe->bucket == NULL)
			return false;
		if (pthread_mutex_init(&stripe->mutex, NULL) != 0) {
			free(stripe->bucket);
			stripe->bucket = NULL;
			return false;
		}
	}
	return true;
}

struct hpx_cache *hpx_cache_new(struct hpx_store *store, size_t bytes_max, size_t entries_max)
{
	struct hpx_cache *cache = calloc(1, sizeof(*cache));

	if (cache == NULL)
		return NULL;
	cache->store = store;
	cache->bytes_max = bytes_max / STRIPES;
	cache->entries_max = entries_max / STRIPES > 0 ? entries_max / STRIPES : 1;
	cache->bucket_count = cache->entries_max;
	if (make_stripes(cache))
		return cache;
	hpx_cache_free(cache);
	return NULL;
}

static void empty(struct hpx_cache *cache, struct cache_stripe *stripe)
{
	while (stripe->oldest != NULL)
		take_out(cache, stripe, position_of(cache, stripe, &stripe->oldest->record.id));
}

void hpx_cache_free(struct hpx_cache *cache)
{
	if (cache == NULL)
		return;
	for (size_t i = 0; i < STRIPES && cache->stripe[i].bucket != NULL; i++) {
		empty(cache, &cache->stripe[i]);
		free(cache->stripe[i].bucket);
		pthread_mutex_destroy(&cache->stripe[i].mutex);
	}
	free(cache);
}

struct hpx_cache_mark hpx_cache_mark(struct hpx_cache *cache)
{
	struct hpx_cache_mark mark = { .epoch = atomic_load(&cache->epoch),
				       .boot_ms = hpx_clock_boot_ms() };

	mark.wall_ms = hpx_store_moment(cache->store).wall_ms;
	return mark;
}

/* C1, and whether it would expire at once. */
static bool may_be_kept(const struct hpx_cache_mark *mark, const struct hpx_record *record,
			const struct hpx_answer *answer)
{
	return record->state == HPX_STATE_COMPLETED && record->kept &&
	       hpx_record_valid(record) && answer != NULL && answer->kept &&
	       mark->wall_ms > 0 && record->expires_ms > mark->wall_ms;
}

void hpx_cache_put(struct hpx_cache *cache, const struct hpx_cache_mark *mark,
		   const struct hpx_record *record, const struct hpx_answer *answer)
{
	struct cache_stripe *stripe = stripe_of(cache, &record->id);
	struct cache_entry *entry;

	if (!may_be_kept(mark, record, answer) || bytes_of(answer) > cache->bytes_max)
		return;
	entry = entry_new(mark, record, answer);
	if (entry == NULL)
		return; /* a copy more or less */
	entry->bytes = bytes_of(answer);
	pthread_mutex_lock(&stripe->mutex);
	bool current = atomic_load(&cache->epoch) == mark->epoch;
	if (current)
		put_in(cache, stripe, entry);
	pthread_mutex_unlock(&stripe->mutex);
	if (!current)
		entry_unref(entry);
}

/* ---- looking ---- */

static struct cache_entry *find(struct hpx_cache *cache, const struct hpx_operation_id *id,
				int64_t now_boot_ms)
{
	struct cache_stripe *stripe = stripe_of(cache, id);
	struct cache_entry *entry = NULL;

	pthread_mutex_lock(&stripe->mutex);
	struct cache_entry **at = position_of(cache, stripe, id);
	if (*at != NULL && (*at)->until_boot_ms <= now_boot_ms)
		take_out(cache, stripe, at);
	else
		entry = *at;
	if (entry != NULL) {
		leave_order(stripe, entry);
		make_newest(stripe, entry);
		atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&stripe->mutex);
	return entry;
}

/* The moment at which the store would judge the record now. A local store goes
 * by this machine's clocks; any other by its own, which has gone
 * on as the boot clock has. */
static struct hpx_moment moment_of(const struct hpx_cache *cache, const struct cache_entry *entry,
				   int64_t now_boot_ms)
{
	int64_t wall_ms = entry->mark.wall_ms + now_boot_ms - entry->mark.boot_ms;

	if (hpx_store_can(cache->store, HPX_STORE_LOCAL))
		return hpx_store_moment(cache->store);
	return (struct hpx_moment){ .wall_ms = wall_ms, .lease_ms = wall_ms };
}

static enum hpx_status decide(const struct hpx_cache *cache, const struct cache_entry *entry,
			      int64_t now_boot_ms, const struct hpx_ask *ask,
			      const struct hpx_policy *policy, struct hpx_decision *ret_decision,
			      struct hpx_answer **ret_replay)
{
	struct hpx_found found = { .exists = true, .readable = true, .record = entry->record };
	struct hpx_moment now = moment_of(cache, entry, now_boot_ms);
	const struct hpx_answer *kept = entry->answer;
	struct hpx_answer *replay = NULL;
	struct hpx_decision decision;

	/* A person may have put the expiry off: only the store tells. */
	if (!hpx_change_peek(&found, ask, policy, &now, &decision) ||
	    decision.kind == HPX_DECISION_EXPIRED)
		return HPX_NOT_FOUND;
	if (decision.kind == HPX_DECISION_REPLAY) {
		replay = hpx_answer_new(kept->status, kept->kept, kept->headers, kept->body);
		if (replay == NULL)
			return HPX_NOT_FOUND;
	}
	*ret_decision = decision;
	*ret_replay = replay;
	return HPX_OK;
}

enum hpx_status hpx_cache_peek(struct hpx_cache *cache, const struct hpx_ask *ask,
			       const struct hpx_policy *policy, struct hpx_decision *ret_decision,
			       struct hpx_answer **ret_replay)
{
	int64_t checked_ms = atomic_load(&cache->checked_boot_ms);
	int64_t now_ms = hpx_clock_boot_ms();
	enum hpx_status status;
	struct cache_entry *entry;

	if (checked_ms == 0 || now_ms - checked_ms >= HPX_CACHE_TRUST_MS ||
	    hpx_store_removal_count(cache->store) != atomic_load(&cache->last_removal))
		return HPX_NOT_FOUND;
	entry = find(cache, &ask->id, now_ms);
	if (entry == NULL)
		return HPX_NOT_FOUND;
	status = decide(cache, entry, now_ms, ask, policy, ret_decision, ret_replay);
	entry_unref(entry);
	return status;
}

/* ---- removals ---- */

void hpx_cache_invalidate(struct hpx_cache *cache, const struct hpx_operation_id *ids, size_t count)
{
	if (count == 0)
		return;
	atomic_fetch_add(&cache->epoch, 1);
	for (size_t i = 0; i < count; i++) {
		struct cache_stripe *stripe = stripe_of(cache, &ids[i]);
		pthread_mutex_lock(&stripe->mutex);
		struct cache_entry **at = position_of(cache, stripe, &ids[i]);
		if (*at != NULL)
			take_out(cache, stripe, at);
		pthread_mutex_unlock(&stripe->mutex);
	}
}

void hpx_cache_clear(struct hpx_cache *cache)
{
	atomic_fetch_add(&cache->epoch, 1);
	for (size_t i = 0; i < STRIPES; i++) {
		pthread_mutex_lock(&cache->stripe[i].mutex);
		empty(cache, &cache->stripe[i]);
		pthread_mutex_unlock(&cache->stripe[i].mutex);
	}
}

void hpx_cache_checked(struct hpx_cache *cache, int64_t asked_boot_ms, uint64_t removals)
{
	atomic_store(&cache->last_removal, removals);
	atomic_store(&cache->checked_boot_ms, asked_boot_ms);
}

size_t hpx_cache_bytes(const struct hpx_cache *cache)
{
	return atomic_load(&((struct hpx_cache *)cache)->bytes);
}

size_t hpx_cache_count(const struct hpx_cache *cache)
{
	return atomic_load(&((struct hpx_cache *)cache)->count);
}

/* ---- the invalidator ---- */

/* A query that fails takes nothing out: the cache stops answering by itself when
 * none was answered for a while. After such a gap it begins empty: a history that
 * was cut meanwhile could not tell, and a database that was replaced by its standby
 * may know less than we do. */
struct hpx_cache_invalidator {
	struct hpx_store *store;
	struct hpx_cache *cache;
	struct hpx_store_reader *reader;
	struct hpx_thread thread;
	/* The thread's own. */
	int64_t checked_boot_ms; /* when the last answered query began */
	struct hpx_removals removals;
};

static void ask(struct hpx_cache_invalidator *r)
{
	int64_t asked_ms = hpx_clock_boot_ms();
	uint64_t count = hpx_store_removal_count(r->store);

	if (hpx_store_removals(r->reader, &r->removals) != HPX_OK)
		return;
	if (r->removals.all || asked_ms - r->checked_boot_ms >= HPX_CACHE_TRUST_MS)
		hpx_cache_clear(r->cache);
	else
		hpx_cache_invalidate(r->cache, r->removals.ids, r->removals.count);
	r->checked_boot_ms = asked_ms;
	hpx_cache_checked(r->cache, asked_ms, count);
}

static int64_t step(void *user)
{
	int64_t next_ms = hpx_clock_boot_ms() + INTERVAL_MS;

	ask(user);
	return next_ms;
}

enum hpx_status hpx_cache_invalidator_start(struct hpx_store *store, struct hpx_cache *cache,
					    struct hpx_cache_invalidator **ret_invalidator)
{
	struct hpx_cache_invalidator *r = calloc(1, sizeof(*r));
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
		hpx_cache_invalidator_stop(r);
		return status;
	}
	*ret_invalidator = r;
	return HPX_OK;
}

void hpx_cache_invalidator_stop(struct hpx_cache_invalidator *invalidator)
{
	if (invalidator == NULL)
		return;
	hpx_thread_stop(&invalidator->thread);
	hpx_store_reader_close(invalidator->reader);
	hpx_thread_done(&invalidator->thread);
	free(invalidator);
}
