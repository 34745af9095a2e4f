/* Inside the deliverer: what the next CLAIM asks for. */
#ifndef HPX_WORKER_CLAIM_H
#define HPX_WORKER_CLAIM_H

#include "worker/outgoing.h"

/* The store gets this long for a claim. What comes back later is given back:
 * too much of its lease is over. */
#define HPX_CLAIM_STORE_MS 10000

int64_t hpx_lane_lease_ms(const struct hpx_lane *lane);
/* Fills deliverer->claims; how many. With the lock held. */
size_t hpx_claim_plan(struct hpx_deliverer *deliverer);

#endif
