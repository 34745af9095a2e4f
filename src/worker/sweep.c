/* The sweeper: an attempt whose lease is lost (its process paused or gone, its
 * renewals not stored) does not stay in progress for ever; nor does a job whose
 * claim is lost stay on its way. */
#include "service/service.h"
#include "worker/duty.h"

#define BATCH 64

void hpx_sweep(const struct hpx_worker_options *options)
{
	struct hpx_touched touched[BATCH];
	struct hpx_store_op op;

	do {
		op = (struct hpx_store_op){ .verb = HPX_VERB_SWEEP,
					    .sweep.limit = BATCH,
					    .sweep.touched = touched,
					    .actor = HPX_SPAN("sweeper"),
					    .reason = HPX_SPAN("the lease was lost") };
		hpx_committer_submit_wait(options->committer, &op);
		if (op.status != HPX_OK)
			return;
		for (unsigned i = 0; i < op.sweep.count; i++)
			hpx_service_log_lost(op.verb, &touched[i]);
		hpx_counter_add(&options->counters->leases_lost, op.sweep.count);
	} while (op.sweep.count == BATCH);
}

/* What its target remembers is sent again; the rest is unknown. */
void hpx_sweep_jobs(const struct hpx_worker_options *options)
{
	struct hpx_touched touched[BATCH];
	struct hpx_store_op op;

	if (!hpx_store_can(options->store, HPX_STORE_OUTBOX))
		return; /* it keeps no outbox */
	do {
		op = (struct hpx_store_op){ .verb = HPX_VERB_SWEEP_JOBS,
					    .sweep_jobs.limit = BATCH,
					    .sweep_jobs.touched = touched,
					    .actor = HPX_SPAN("sweeper"),
					    .reason = HPX_SPAN("the claim's lease was lost") };
		hpx_committer_submit_wait(options->committer, &op);
		if (op.status != HPX_OK)
			return;
		for (unsigned i = 0; i < op.sweep_jobs.count; i++)
			hpx_service_log_lost(op.verb, &touched[i]);
	} while (op.sweep_jobs.count == BATCH);
}
