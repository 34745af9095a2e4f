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

static size_t holders_of(const struct hpx_share *share)
{
	return atomic_load_explicit(&share->holders, memory_order_relaxed);
}

static bool allows(const struct hpx_share *share, size_t holders, uint64_t caller, size_t more,
		   const struct hpx_scarce *scarce)
{
	if (caller == 0 || scarce->in_use < scarce->whole - scarce->whole / 4)
		return true;
	size_t part = scarce->whole / (holders + 1);
	return held_by(share, caller) + more <= (part > scarce->least ? part : scarce->least);
}

bool hpx_share_allows_peer(const struct hpx_shares *shares, uint64_t peer, size_t more,
			   const struct hpx_scarce *scarce)
{
	return allows(&shares->peers, holders_of(&shares->peers), peer, more, scarce);
}

bool hpx_share_allows_tenant(const struct hpx_shares *shares, uint64_t tenant, size_t more,
			     const struct hpx_scarce *scarce)
{
	size_t peers = holders_of(&shares->peers);
	size_t tenants = holders_of(&shares->tenants);

	return allows(&shares->tenants, tenants < peers ? tenants : peers, tenant, more, scarce);
}

/* The cell is acquired and released, so that whoever finds it empty and takes a holder away
 * comes behind the one that found it empty and added that holder: `holders` is never below
 * zero, which would be a very large number. */
void hpx_share_add(struct hpx_share *share, uint64_t caller, size_t more)
{
	if (caller == 0 || more == 0)
		return;
	if (atomic_fetch_add_explicit(cell_of(share, 0, caller), more, memory_order_acq_rel) == 0)
		atomic_fetch_add_explicit(&share->holders, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(cell_of(share, 1, caller), more, memory_order_relaxed);
}

void hpx_share_remove(struct hpx_share *share, uint64_t caller, size_t less)
{
	if (caller == 0 || less == 0)
		return;
	size_t before = atomic_fetch_sub_explicit(cell_of(share, 0, caller), less, memory_order_acq_rel);
	HPX_ASSERT(before >= less);
	if (before == less)
		atomic_fetch_sub_explicit(&share->holders, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(cell_of(share, 1, caller), less, memory_order_relaxed);
}
