#include "store/id_filter.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"

#define ID_BYTES 2

/* All bits of an id lie in one line of the processor's cache: asking costs one
 * look at memory. */
#define BLOCK_WORDS 8
#define BLOCK_BITS (BLOCK_WORDS * 64)
#define BITS_EACH 5

struct hpx_id_filter {
	_Atomic uint64_t count;
	uint64_t full_at;
	uint64_t block_mask;
	size_t bytes;
	_Atomic uint64_t *words;
};

struct hpx_id_filter *hpx_id_filter_new(size_t bytes, uint64_t expected)
{
	struct hpx_id_filter *filter = calloc(1, sizeof(*filter));
	void *words;

	/* The blocks are found by a mask. */
	HPX_ASSERT(bytes >= BLOCK_BITS / 8 && (bytes & (bytes - 1)) == 0);
	if (filter == NULL)
		return NULL;
	/* Zero, and aligned to its blocks. */
	words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED) {
		free(filter);
		return NULL;
	}
	filter->words = words;
	filter->bytes = bytes;
	filter->block_mask = bytes * 8 / BLOCK_BITS - 1;
	filter->full_at = bytes / ID_BYTES;
	if (filter->full_at < expected + expected / 2)
		filter->full_at = expected + expected / 2;
	return filter;
}

void hpx_id_filter_free(struct hpx_id_filter *filter)
{
	if (filter == NULL)
		return;
	munmap((void *)filter->words, filter->bytes);
	free(filter);
}

static _Atomic uint64_t *block_of(const struct hpx_id_filter *filter, const struct hpx_operation_id *id)
{
	uint64_t hash;

	memcpy(&hash, id->bytes, sizeof(hash));
	return filter->words + (hash & filter->block_mask) * BLOCK_WORDS;
}

/* The i-th bit of an id within its block: two bytes each, behind those that
 * chose the block. */
static unsigned bit_of(const struct hpx_operation_id *id, unsigned i)
{
	const uint8_t *two = id->bytes + sizeof(uint64_t) + 2 * (size_t)i;

	return ((unsigned)two[0] << 8 | two[1]) % BLOCK_BITS;
}

void hpx_id_filter_add(struct hpx_id_filter *filter, const struct hpx_operation_id *id)
{
	_Atomic uint64_t *block = block_of(filter, id);

	for (unsigned i = 0; i < BITS_EACH; i++) {
		unsigned bit = bit_of(id, i);
		atomic_fetch_or_explicit(&block[bit / 64], (uint64_t)1 << bit % 64,
					 memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&filter->count, 1, memory_order_relaxed);
}

bool hpx_id_filter_may_have(const struct hpx_id_filter *filter, const struct hpx_operation_id *id)
{
	_Atomic uint64_t *block = block_of(filter, id);

	for (unsigned i = 0; i < BITS_EACH; i++) {
		unsigned bit = bit_of(id, i);
		uint64_t word = atomic_load_explicit(&block[bit / 64], memory_order_relaxed);
		if ((word >> bit % 64 & 1) == 0)
			return false;
	}
	return true;
}

uint64_t hpx_id_filter_count(const struct hpx_id_filter *filter)
{
	return atomic_load_explicit(&filter->count, memory_order_relaxed);
}

bool hpx_id_filter_is_full(const struct hpx_id_filter *filter)
{
	return hpx_id_filter_count(filter) >= filter->full_at;
}
