/* The reaper: what has expired is deleted in small batches, each one op among
 * others in the committer's queue, so that no request waits for a long delete.
 * While space is low there are no new keys to wait, and the batches are larger. */
#include "worker/duty.h"

#define HURRIED_BATCH 1000

bool hpx_reap(const struct hpx_worker_options *options)
{
	struct hpx_store_op op = { .verb = HPX_VERB_REAP,
				   .reap.limit = options->reap_batch,
				   .actor = HPX_SPAN("reaper") };

	if (atomic_load(&options->store->space_low) && op.reap.limit < HURRIED_BATCH)
		op.reap.limit = HURRIED_BATCH;
	hpx_committer_submit_wait(options->committer, &op);
	if (op.status != HPX_OK)
		return false;
	hpx_counter_add(&options->counters->reaped, op.reap.count);
	return op.reap.more || op.reap.count >= op.reap.limit;
}
