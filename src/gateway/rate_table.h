/* How much of its budget each caller has used: a table of fixed size, one row of cells
 * for callers with the same hash, one bucket in a cell. Two things keep a greedy caller
 * from getting its budget back by filling the table with others:
 *
 * 1. A bucket that is full again is the same as none, so its cell is free. Callers
 *    within their rate occupy a cell for the time that one request takes to come back.
 * 2. Where no cell of a row is free, the newcomer takes the one that would be full
 *    first, and goes on with its bucket: nobody begins with more than the caller that
 *    made room had left.
 *
 * The hash has a seed that is random for each process (hpx_caller_seed_init), so that
 * nobody can choose callers that share a row with somebody else. */
#ifndef HPX_GATEWAY_RATE_TABLE_H
#define HPX_GATEWAY_RATE_TABLE_H

#include "base/span.h"
#include "core/pacing.h"

struct hpx_caller_seed {
	uint64_t words[2];
};

void hpx_caller_seed_init(struct hpx_caller_seed *seed);
/* A caller (a tenant, a key, an address) as a number that is not 0. */
uint64_t hpx_caller_hash(const struct hpx_caller_seed *seed, struct hpx_span name);

struct hpx_rate_table;

/* NULL: out of memory. */
struct hpx_rate_table *hpx_rate_table_new(void);
void hpx_rate_table_free(struct hpx_rate_table *table);

/* From any thread. Takes one of the caller's budget, or says after how many
 * microseconds there will be one. */
bool hpx_rate_table_take(struct hpx_rate_table *table, uint64_t caller, const struct hpx_rate *rate,
			 int64_t now_us, int64_t *ret_wait_us);
/* Takes `count` more, whether they are there or not: the next ones wait for them. */
void hpx_rate_table_charge(struct hpx_rate_table *table, uint64_t caller, const struct hpx_rate *rate,
			   int64_t now_us, size_t count);
/* Gives one back that was taken and not used. */
void hpx_rate_table_give_back(struct hpx_rate_table *table, uint64_t caller,
			      const struct hpx_rate *rate);

#endif
