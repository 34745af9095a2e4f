/* A Bloom filter of operation ids: a set in little memory. An id that was added is
 * always found; an id that was not is sometimes found too. Ids are SHA-256, so they
 * are their own hash. A client that makes up keys until one block is full only makes
 * that block answer "maybe". Any thread may add and ask. */
#ifndef HPX_STORE_ID_FILTER_H
#define HPX_STORE_ID_FILTER_H

#include "core/operation.h"

struct hpx_id_filter;

/* Of so many bytes, a power of two from 4096 on; only those that are written to
 * take memory. With two bytes for each id one stranger in 800 passes, one in 50
 * with one byte, one in 13 with two thirds of one. NULL when out of memory. */
struct hpx_id_filter *hpx_id_filter_new(size_t bytes, uint64_t expected);
void hpx_id_filter_free(struct hpx_id_filter *filter);

void hpx_id_filter_add(struct hpx_id_filter *filter, const struct hpx_operation_id *id);
/* False: it was never added. */
bool hpx_id_filter_may_have(const struct hpx_id_filter *filter, const struct hpx_operation_id *id);

/* How many were added, and whether a new one would be better: more than it is good
 * for, and half as many again as were expected. */
uint64_t hpx_id_filter_count(const struct hpx_id_filter *filter);
bool hpx_id_filter_is_full(const struct hpx_id_filter *filter);

#endif
