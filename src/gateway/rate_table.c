/* The table of budgets: rows of eight cells, and a lock for every few rows. A request
 * that is limited takes one or two of these locks for some ten instructions. */
#include "gateway/rate_table.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/status.h"

#define CELLS 8
#define ROWS 2048
#define LOCKS 64

struct rate_cell {
	uint64_t caller; /* 0: never used */
	struct hpx_bucket bucket;
};

struct hpx_rate_table {
	pthread_mutex_t locks[LOCKS];
	struct rate_cell rows[ROWS][CELLS];
};

void hpx_caller_seed_init(struct hpx_caller_seed *seed)
{
	hpx_random(seed->words, sizeof(seed->words));
}

/* Spreads every bit over the whole word (the end of MurmurHash3). */
static uint64_t spread_bits(uint64_t word)
{
	word = (word ^ word >> 33) * 0xff51afd7ed558ccdu;
	word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53u;
	return word ^ word >> 33;
}

uint64_t hpx_caller_hash(const struct hpx_caller_seed *seed, struct hpx_span name)
{
	uint64_t hash = seed->words[0] ^ name.len;

	while (name.len > 0) {
		uint64_t word = 0;
		size_t len = name.len < sizeof(word) ? name.len : sizeof(word);
		memcpy(&word, name.ptr, len);
		hash = spread_bits(hash ^ word) + seed->words[1];
		name = hpx_span_skip(name, len);
	}
	hash = spread_bits(hash);
	return hash != 0 ? hash : 1;
}

struct hpx_rate_table *hpx_rate_table_new(void)
{
	struct hpx_rate_table *table = calloc(1, sizeof(*table));

	for (size_t i = 0; table != NULL && i < LOCKS; i++)
		pthread_mutex_init(&table->locks[i], NULL);
	return table;
}

void hpx_rate_table_free(struct hpx_rate_table *table)
{
	if (table == NULL)
		return;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&table->locks[i]);
	free(table);
}

static struct rate_cell *find(struct rate_cell *row, uint64_t caller)
{
	for (size_t i = 0; i < CELLS; i++)
		if (row[i].caller == caller)
			return &row[i];
	return NULL;
}

/* The cell whose bucket is, or will be, full first: its bucket goes on as the caller's. */
static struct rate_cell *take_over(struct rate_cell *row, uint64_t caller)
{
	struct rate_cell *first = &row[0];

	for (size_t i = 1; i < CELLS; i++)
		if (row[i].bucket.full_us < first->bucket.full_us)
			first = &row[i];
	first->caller = caller;
	return first;
}

static size_t row_of(uint64_t caller)
{
	return caller % ROWS;
}

static pthread_mutex_t *lock_of(struct hpx_rate_table *table, uint64_t caller)
{
	return &table->locks[row_of(caller) % LOCKS];
}

bool hpx_rate_table_take(struct hpx_rate_table *table, uint64_t caller, const struct hpx_rate *rate,
			 int64_t now_us, int64_t *ret_wait_us)
{
	struct rate_cell *row = table->rows[row_of(caller)];

	HPX_ASSERT(caller != 0 && rate->count > 0);
	pthread_mutex_lock(lock_of(table, caller));
	struct rate_cell *cell = find(row, caller);
	if (cell == NULL)
		cell = take_over(row, caller);
	/* A reload may have made the burst shorter. */
	int64_t last_us = now_us + hpx_rate_share_us(rate) * rate->burst;
	if (cell->bucket.full_us > last_us)
		cell->bucket.full_us = last_us;
	bool taken = hpx_rate_take(&cell->bucket, rate, now_us, ret_wait_us);
	pthread_mutex_unlock(lock_of(table, caller));
	return taken;
}

void hpx_rate_table_charge(struct hpx_rate_table *table, uint64_t caller, const struct hpx_rate *rate,
			   int64_t now_us, size_t count)
{
	struct rate_cell *row = table->rows[row_of(caller)];

	pthread_mutex_lock(lock_of(table, caller));
	struct rate_cell *cell = find(row, caller);
	if (cell == NULL)
		cell = take_over(row, caller);
	if (cell->bucket.full_us < now_us)
		cell->bucket.full_us = now_us;
	cell->bucket.full_us += hpx_rate_share_us(rate) * (int64_t)count;
	pthread_mutex_unlock(lock_of(table, caller));
}

void hpx_rate_table_give_back(struct hpx_rate_table *table, uint64_t caller,
			      const struct hpx_rate *rate)
{
	pthread_mutex_lock(lock_of(table, caller));
	struct rate_cell *cell = find(table->rows[row_of(caller)], caller);
	if (cell != NULL)
		cell->bucket.full_us -= hpx_rate_share_us(rate);
	pthread_mutex_unlock(lock_of(table, caller));
}
