/* The sweeper: an attempt whose lease is lost (its process paused or gone, its
 * renewals not stored) does not stay in progress for ever. */
#include "base/log.h"
#include "worker/duty.h"

#define BATCH 64

static void log_lost(const struct hpx_operation_id *id)
{
	char text[2 * HPX_OPERATION_ID_SIZE + 1];

	hpx_hex_encode(id->bytes, sizeof(id->bytes), text);
	hpx_log(HPX_LOG_WARN, "lease_lost", "id=%s state=unknown", text);
}

void hpx_sweep(const struct hpx_worker_options *options)
{
	struct hpx_operation_id touched[BATCH];
	struct hpx_store_op op;

	do {
		op = (struct hpx_store_op){ .verb = HPX_VERB_SWEEP,
					    .limit = BATCH,
					    .touched = touched,
					    .actor = HPX_SPAN("sweeper"),
					    .reason = HPX_SPAN("the lease was lost") };
		hpx_committer_submit_wait(options->committer, &op);
		if (op.status != HPX_OK)
			return;
		for (unsigned i = 0; i < op.count; i++)
			log_lost(&touched[i]);
		hpx_counter_add(options->leases_lost, op.count);
	} while (op.count == BATCH);
}
