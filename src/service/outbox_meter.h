/* What is counted of jobs and of unknown outcomes, for /metrics. Owned by
 * whoever starts the workers; written by them, read without a lock. */
#ifndef HPX_SERVICE_OUTBOX_METER_H
#define HPX_SERVICE_OUTBOX_METER_H

#include "base/metric.h"
#include "core/job.h"

/* What one sending of a job came to: hapax_jobs_total{target,result}. */
#define HPX_JOB_RESULT_LIST(X) \
	X(delivered) \
	X(postponed) /* nothing happened; it is sent again */ \
	X(lost)      /* nobody knows; sent again where its target honours keys */ \
	X(rejected)  /* refused for good: a dead letter */ \
	X(dead)      /* its attempts are used up: a dead letter */

enum hpx_job_result {
#define X(name) HPX_JOB_RESULT_##name,
	HPX_JOB_RESULT_LIST(X)
#undef X
		HPX_JOB_RESULT_COUNT
};

/* hapax_reconcile_total{result} */
#define HPX_RECONCILED_LIST(X) \
	X(scheduled) /* it is asked again later */ \
	X(resolved) \
	X(failed) /* left to a person */

enum hpx_reconciled {
#define X(name) HPX_RECONCILED_##name,
	HPX_RECONCILED_LIST(X)
#undef X
		HPX_RECONCILED_COUNT
};

struct hpx_target_meter {
	struct hpx_counter results[HPX_JOB_RESULT_COUNT];
};

struct hpx_outbox_meter {
	struct hpx_target_meter *targets; /* as many as the settings have, in their order */
	struct hpx_counter reconciled[HPX_RECONCILED_COUNT];
	struct hpx_counter probes_under_way; /* questions asked and not answered yet */
	/* As the last survey saw them. */
	struct hpx_counter jobs[HPX_JOB_STATE_COUNT];
	struct hpx_counter dead_operations; /* hapax_dead{kind="operation"} */
	struct hpx_counter dead_jobs;       /* hapax_dead{kind="job"} */
	struct hpx_counter oldest_queued_s; /* how long the job that waits longest is due */
};

#endif
