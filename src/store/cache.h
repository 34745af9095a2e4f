/* The cache: completed answers in memory. It is bounded, and a copy of what the store
 * holds. It decides nothing itself: the rules decide on the record that was read. It
 * gives no answer where that answer could be wrong:
 *
 *  C1  The cache holds only completed records that could be read, each with its
 *      whole answer.
 *  C2  An entry is not used past its expiry. The time that was left when the store
 *      judged the record counts down on the boot clock, which nobody sets. Where the
 *      store goes by this machine's clocks, those must agree too.
 *  C3  The cache answers only while removals are checked: the last check that the
 *      store answered began less than HPX_CACHE_TRUST_MS ago. So a removed answer is
 *      served nowhere that much later; and where the store counts removals, not at
 *      all after the person who removed it was told.
 *  C4  An answer that was read before a removal was applied here cannot be put in
 *      after it.
 *
 * Thread-safe; all event loops use the same cache. */
#ifndef HPX_STORE_CACHE_H
#define HPX_STORE_CACHE_H

#include "store/store.h"

/* A check begins every quarter of a second: two may fail or come late, and what was
 * removed is gone everywhere within a second. */
#define HPX_CACHE_TRUST_MS 750

struct hpx_cache;

/* Taken before the store is asked; what the answer needs to be put in. */
struct hpx_cache_mark {
	uint64_t epoch; /* how often removals had been applied */
	int64_t boot_ms;
	int64_t wall_ms; /* when the store judged the record, by its own clock: at
				    * first this machine's, an op's judged_ms where there is one */
};

/* NULL when out of memory. The store is only asked for the time. */
struct hpx_cache *hpx_cache_new(struct hpx_store *store, size_t bytes_max, size_t entries_max);
void hpx_cache_free(struct hpx_cache *cache);

struct hpx_cache_mark hpx_cache_mark(struct hpx_cache *cache);
/* Keeps a copy, where the record, the answer (or NULL) and the mark allow it. */
void hpx_cache_put(struct hpx_cache *cache, const struct hpx_cache_mark *mark,
		   const struct hpx_record *record, const struct hpx_answer *answer);
/* As hpx_store_peek: HPX_OK and the decision, with a copy of the answer of a
 * REPLAY; HPX_NOT_FOUND: the store must be asked. */
enum hpx_status hpx_cache_peek(struct hpx_cache *cache, const struct hpx_ask *ask,
			       const struct hpx_policy *policy, struct hpx_decision *ret_decision,
			       struct hpx_answer **ret_replay);

/* For the invalidator: first what was removed, then that the check is complete, with
 * the time, and the store's removal counter, when the check began. */
void hpx_cache_invalidate(struct hpx_cache *cache, const struct hpx_operation_id *ids, size_t count);
void hpx_cache_clear(struct hpx_cache *cache);
void hpx_cache_checked(struct hpx_cache *cache, int64_t asked_boot_ms, uint64_t removals);

size_t hpx_cache_bytes(const struct hpx_cache *cache);
size_t hpx_cache_count(const struct hpx_cache *cache);

/* Hears what people remove from the store, in whichever process, and takes it out
 * of this process's cache: a thread with a reader of its own that asks four times a
 * second. Needs HPX_STORE_TELLS_REMOVALS. */
struct hpx_cache_invalidator;
enum hpx_status hpx_cache_invalidator_start(struct hpx_store *store, struct hpx_cache *cache,
					    struct hpx_cache_invalidator **ret_invalidator);
/* NULL: there is none. Afterwards the cache stops answering. */
void hpx_cache_invalidator_stop(struct hpx_cache_invalidator *invalidator);

#endif
