/* One background duty each; called by the worker's thread. */
#ifndef HPX_WORKER_DUTY_H
#define HPX_WORKER_DUTY_H

#include "base/clock.h"
#include "worker/maintenance.h"

/* Lost leases become what the route says (sweep.c). */
void hpx_sweep(const struct hpx_worker_options *options);
/* Lost claims of jobs; nothing where the store keeps no outbox (sweep.c). */
void hpx_sweep_jobs(const struct hpx_worker_options *options);
/* Deletes one small batch of what has expired (reap.c). True: there is more. */
bool hpx_reap(const struct hpx_worker_options *options);
/* What was seen last, so that only changes are told. */
struct hpx_survey {
	bool checkpoint_failed;
	int space; /* enum hpx_space */
	bool expiry_held;
	bool jobs_wait;
};
/* Checkpoints (maintain.c). */
void hpx_maintain(const struct hpx_worker_options *options, struct hpx_survey *seen);
/* Counts for the metrics, and tells what has changed (survey.c). */
void hpx_survey(const struct hpx_worker_options *options, struct hpx_store_reader *reader,
		struct hpx_survey *seen);

#endif
