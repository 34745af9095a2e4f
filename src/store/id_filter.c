#include "store/id_filter.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* All bits of an id lie in one line of the processor's cache: asking costs one
 * look at memory. */
#define BLOCK_WORDS 8
#define BLOCK_BYTES ((size_t)BLOCK_WORDS * 8)
#define BLOCK_BITS (BLOCK_WORDS * 64)
#define BITS_EACH 7
/* Bits for each id. */
#define BITS_OF_ID 20

struct hpx_id_filter {
	uint64_t block_count;
	_Atomic uint64_t *words;
};

static struct hpx_id_filter *filter_of_blocks(uint64_t block_count)
{
	struct hpx_id_filter *filter = calloc(1, sizeof(*filter));

	HPX_ASSERT(block_count > 0);
	if (filter == NULL)
		return NULL;
	/* Aligned to its blocks. */
	filter->words = aligned_alloc(BLOCK_BYTES, block_count * BLOCK_BYTES);
	if (filter->words == NULL) {
		free(filter);
		return NULL;
	}
	filter->block_count = block_count;
	memset((void *)filter->words, 0, block_count * BLOCK_BYTES);
	return filter;
}

struct hpx_id_filter *hpx_id_filter_new(uint64_t ids)
{
	return filter_of_blocks(ids * BITS_OF_ID / BLOCK_BITS + 1);
}

struct hpx_id_filter *hpx_id_filter_of(struct hpx_span bytes)
{
	struct hpx_id_filter *filter;

	if (bytes.len == 0 || bytes.len % BLOCK_BYTES != 0)
		return NULL;
	filter = filter_of_blocks(bytes.len / BLOCK_BYTES);
	if (filter != NULL)
		memcpy((void *)filter->words, bytes.ptr, bytes.len);
	return filter;
}

void hpx_id_filter_free(struct hpx_id_filter *filter)
{
	if (filter == NULL)
		return;
	free((void *)filter->words);
	free(filter);
}

struct hpx_span hpx_id_filter_bytes(const struct hpx_id_filter *filter)
{
	return hpx_span((const char *)filter->words, filter->block_count * BLOCK_BYTES);
}

/* By the first eight bytes: the part of them in front, so that any number of blocks
 * is chosen from evenly. */
static _Atomic uint64_t *block_of(const struct hpx_id_filter *filter, const uint8_t *id)
{
	uint64_t hash = 0;

	for (int i = 0; i < 8; i++)
		hash = hash << 8 | id[i];
	return filter->words +
	       (uint64_t)((unsigned __int128)hash * filter->block_count >> 64) * BLOCK_WORDS;
}

/* The places of an id's bits within its block, nine bits each, of the second eight
 * bytes. */
static uint64_t bits_of(const uint8_t *id)
{
	uint64_t bits;

	memcpy(&bits, id + 8, sizeof(bits));
	return bits;
}

void hpx_id_filter_add(struct hpx_id_filter *filter, const uint8_t *id)
{
	_Atomic uint64_t *block = block_of(filter, id);
	uint64_t bits = bits_of(id);

	for (unsigned i = 0; i < BITS_EACH; i++, bits >>= 9)
		atomic_fetch_or_explicit(&block[bits % BLOCK_BITS / 64],
					 (uint64_t)1 << bits % 64, memory_order_relaxed);
}

bool hpx_id_filter_may_have(const struct hpx_id_filter *filter, const uint8_t *id)
{
	_Atomic uint64_t *block = block_of(filter, id);
	uint64_t bits = bits_of(id);

	for (unsigned i = 0; i < BITS_EACH; i++, bits >>= 9) {
		uint64_t word = atomic_load_explicit(&block[bits % BLOCK_BITS / 64],
						     memory_order_relaxed);
		if ((word >> bits % 64 & 1) == 0)
			return false;
	}
	return true;
}
