/* Shares of what is scarce: how much of it each caller holds at this moment, and whether
 * it may hold more. As long as less than three quarters of the whole are in use, anybody
 * may. From then on nobody may hold more than the whole divided by the callers that hold
 * some and one more, so that there is always room for a newcomer; a caller that is alone
 * gets three quarters. Tenants can be invented, addresses cannot: where tenants are more
 * than addresses, a tenant's part is what an address gets.
 *
 * What a caller holds is counted in two cells, each chosen by another part of its hash,
 * and the smaller count is taken: exact unless it shares both with others, and never too
 * small. Fixed memory, no lock; from any thread. */
#ifndef HPX_GATEWAY_SHARE_H
#define HPX_GATEWAY_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPX_SHARE_CELLS 8192

/* All zeros: nobody holds anything. */
struct hpx_share {
	atomic_size_t holders; /* cells of the first row that are not 0 */
	atomic_size_t rows[2][HPX_SHARE_CELLS];
};

/* Who holds how much of one thing: by address, and by tenant where that is known. */
struct hpx_shares {
	struct hpx_share peers;
	struct hpx_share tenants;
};

/* How much of a scarce thing there is, and the part of it that everybody may hold. */
struct hpx_scarce {
	size_t in_use;
	size_t whole;
	size_t least;
};

/* Whether this address or tenant (hpx_caller_hash; 0: exempt) may hold `more`. */
bool hpx_share_allows_peer(const struct hpx_shares *shares, uint64_t peer, size_t more,
			   const struct hpx_scarce *scarce);
bool hpx_share_allows_tenant(const struct hpx_shares *shares, uint64_t tenant, size_t more,
			     const struct hpx_scarce *scarce);
/* Nothing happens for 0. */
void hpx_share_add(struct hpx_share *share, uint64_t caller, size_t more);
void hpx_share_remove(struct hpx_share *share, uint64_t caller, size_t less);

#endif
