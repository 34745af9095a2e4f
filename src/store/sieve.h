/* A set of operation ids in little memory that forgets nothing it was told and
 * sometimes takes a stranger for an acquaintance (a Bloom filter). Ids are
 * SHA-256, so they are their own hash; who makes up keys until one of its blocks
 * is full only makes that block say "maybe". Any thread may add and ask. */
#ifndef HPX_STORE_SIEVE_H
#define HPX_STORE_SIEVE_H

#include "core/operation.h"

struct hpx_sieve;

/* Two bytes for each expected id, between 2 and 16 MiB. One stranger in 800
 * passes, one in 50 once twice as many are in it, one in 13 with three times as
 * many. NULL when out of memory. */
struct hpx_sieve *hpx_sieve_new(uint64_t expected);
void hpx_sieve_free(struct hpx_sieve *sieve);

void hpx_sieve_add(struct hpx_sieve *sieve, const struct hpx_operation_id *id);
/* False: it was never added. */
bool hpx_sieve_may_have(const struct hpx_sieve *sieve, const struct hpx_operation_id *id);

/* How many were added, and whether that is more than it is good for. */
uint64_t hpx_sieve_count(const struct hpx_sieve *sieve);
bool hpx_sieve_is_full(const struct hpx_sieve *sieve);

#endif
