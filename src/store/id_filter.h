/* A Bloom filter of operation ids: a set in little memory. An id that was added is
 * always found; an id that was not is sometimes found too. Ids are SHA-256, so they
 * are their own hash; the first half of an id is all that counts. A client that makes
 * up keys until one block is full only makes that block answer "maybe". Any thread may
 * add and ask. Its bytes can be stored and taken up again. */
#ifndef HPX_STORE_ID_FILTER_H
#define HPX_STORE_ID_FILTER_H

#include "base/span.h"
#include "core/operation.h"

struct hpx_id_filter;

/* For so many ids: two and a half bytes each, of which one stranger in 3,000
 * passes. NULL when out of memory. */
struct hpx_id_filter *hpx_id_filter_new(uint64_t ids);
/* Of stored bytes. NULL where they are none of a filter, or out of memory. */
struct hpx_id_filter *hpx_id_filter_of(struct hpx_span bytes);
void hpx_id_filter_free(struct hpx_id_filter *filter);
/* To be stored; borrowed. Not while somebody adds. */
struct hpx_span hpx_id_filter_bytes(const struct hpx_id_filter *filter);

/* The first HPX_ID_FILTER_BYTES of an id. */
#define HPX_ID_FILTER_BYTES 16
void hpx_id_filter_add(struct hpx_id_filter *filter, const uint8_t *id);
/* False: it was never added. */
bool hpx_id_filter_may_have(const struct hpx_id_filter *filter, const uint8_t *id);

#endif
