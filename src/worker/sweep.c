/* The sweeper: an attempt whose lease is lost (its process paused or gone, its
 * renewals not stored) does not stay in progress for ever; nor does a job whose
 * claim is lost stay on its way. */
#include "base/log.h"
#include "worker/duty.h"

#define BATCH 64

static void log_lost(const char *event, const struct hpx_operation_id *id, const char *rest)
{
	char text[2 * HPX_OPERATION_ID_SIZE + 1];

	hpx_hex_encode(id->bytes, sizeof(id->bytes), text);
	hpx_log(HPX_LOG_WARN, event, "id=%s%s", text, rest);
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
			log_lost("lease_lost", &touched[i], " state=unknown");
		hpx_counter_add(options->leases_lost, op.count);
	} while (op.count == BATCH);
}

/* What its target remembers is sent again; the rest is unknown. */
void hpx_sweep_jobs(const struct hpx_worker_options *options)
{
	struct hpx_operation_id touched[BATCH];
	struct hpx_store_op op;

	if (options->store->driver->jobs == NULL)
		return; /* it keeps no outbox */
	do {
		op = (struct hpx_store_op){ .verb = HPX_VERB_SWEEP_JOBS,
					    .limit = BATCH,
					    .touched = touched,
					    .actor = HPX_SPAN("sweeper"),
					    .reason = HPX_SPAN("the claim's lease was lost") };
		hpx_committer_submit_wait(options->committer, &op);
		if (op.status != HPX_OK)
			return;
		for (unsigned i = 0; i < op.count; i++)
			log_lost("job_claim_lost", &touched[i], " see=\"hapax jobs ls\"");
	} while (op.count == BATCH);
}
