/* A set of operation ids in little memory that forgets nothing it was told and
 * sometimes takes a stranger for an acquaintance (a Bloom filter). Ids are
 * SHA-256, so they are their own hash; who makes up keys until one of its blocks
 * is full only makes that block say "maybe". Any thread may add and ask. */
#ifndef HPX_STORE_SIEVE_H
#define HPX_STORE_SIEVE_H

#include "core/operation.h"

struct hpx_sieve;

/* Of so many bytes, a power of two from 4096 on; only those that are written to
 * take memory. With two bytes for each id one stranger in 800 passes, one in 50
 * with one byte, one in 13 with two thirds of one. NULL when out of memory. */
struct hpx_sieve *hpx_sieve_new(size_t bytes, uint64_t expected);
void hpx_sieve_free(struct hpx_sieve *sieve);

void hpx_sieve_add(struct hpx_sieve *sieve, const struct hpx_operation_id *id);
/* False: it was never added. */
bool hpx_sieve_may_have(const struct hpx_sieve *sieve, const struct hpx_operation_id *id);

/* How many were added, and whether a new one would be better: more than it is good
 * for, and half as many again as were expected. */
uint64_t hpx_sieve_count(const struct hpx_sieve *sieve);
bool hpx_sieve_is_full(const struct hpx_sieve *sieve);

#endif
