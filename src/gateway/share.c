/* Counting who holds how much. See share.h. */
#include "gateway/share.h"

#include "base/status.h"

static atomic_size_t *cell_of(struct hpx_share *share, unsigned row, uint64_t caller)
{
	return &share->rows[row][caller >> (32 * row) & (HPX_SHARE_CELLS - 1)];
}

static size_t held_by(const struct hpx_share *share, uint64_t caller)
{
	struct hpx_share *cells = (struct hpx_share *)share; /* only read */
	size_t one = atomic_load_explicit(cell_of(cells, 0, caller), memory_order_relaxed);
	size_t other = atomic_load_explicit(cell_of(cells, 1, caller), memory_order_relaxed);

	return one < other ? one : other;
}

bool hpx_share_allows(const struct hpx_share *share, uint64_t caller, size_t more, size_t in_use,
		      size_t whole, size_t least)
{
	if (caller == 0 || in_use < whole - whole / 4)
		return true;
	size_t part = whole / (atomic_load_explicit(&share->holders, memory_order_relaxed) + 1);
	return held_by(share, caller) + more <= (part > least ? part : least);
}

void hpx_share_add(struct hpx_share *share, uint64_t caller, size_t more)
{
	if (caller == 0 || more == 0)
		return;
	if (atomic_fetch_add_explicit(cell_of(share, 0, caller), more, memory_order_relaxed) == 0)
		atomic_fetch_add_explicit(&share->holders, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(cell_of(share, 1, caller), more, memory_order_relaxed);
}

void hpx_share_remove(struct hpx_share *share, uint64_t caller, size_t less)
{
	if (caller == 0 || less == 0)
		return;
	size_t before = atomic_fetch_sub_explicit(cell_of(share, 0, caller), less, memory_order_relaxed);
	HPX_ASSERT(before >= less);
	if (before == less)
		atomic_fetch_sub_explicit(&share->holders, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(cell_of(share, 1, caller), less, memory_order_relaxed);
}
