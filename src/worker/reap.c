/* The reaper: what has expired is deleted in small batches, each one op among
 * others in the committer's queue, so that no request waits for a long delete. */
#include "worker/duty.h"

bool hpx_reap(const struct hpx_worker_options *options)
{
	struct hpx_store_op op = { .verb = HPX_VERB_REAP,
				   .limit = options->reap_batch,
				   .actor = HPX_SPAN("reaper") };

	hpx_committer_submit_wait(options->committer, &op);
	if (op.status != HPX_OK)
		return false;
	hpx_counter_add(options->reaped, op.count);
	return op.count >= options->reap_batch;
}
