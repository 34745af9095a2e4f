/* The counters of a process apart from its event loops: what the store holds,
 * what the workers did, jobs and unknown outcomes. The service owns them; the
 * workers write them; /metrics reads them without a lock. */
#ifndef HPX_SERVICE_COUNTERS_H
#define HPX_SERVICE_COUNTERS_H

#include "base/metric.h"
#include "core/job.h"
#include "core/record.h"

/* How one delivery of a job ended: hapax_jobs_total{target,result}. */
#define HPX_JOB_RESULT_LIST(X) \
	X(delivered) \
	X(postponed) /* nothing happened; the job is sent again */ \
	X(lost)      /* the outcome is unknown; sent again where the target honours keys */ \
	X(rejected)  /* refused for good: a dead letter */ \
	X(dead)      /* the attempts are used up: a dead letter */

enum hpx_job_result {
#define X(name) HPX_JOB_RESULT_##name,
	HPX_JOB_RESULT_LIST(X)
#undef X
		HPX_JOB_RESULT_COUNT
};

/* hapax_reconcile_total{result} */
#define HPX_RECONCILED_LIST(X) \
	X(scheduled) /* probed again later */ \
	X(resolved) \
	X(failed) /* left to a person */

enum hpx_reconciled {
#define X(name) HPX_RECONCILED_##name,
	HPX_RECONCILED_LIST(X)
#undef X
		HPX_RECONCILED_COUNT
};

struct hpx_target_counters {
	struct hpx_counter results[HPX_JOB_RESULT_COUNT];
};

struct hpx_service_counters {
	struct hpx_target_counters *targets; /* one for each target of the settings, in their order */
	struct hpx_counter reconciled[HPX_RECONCILED_COUNT];
	struct hpx_counter probes_under_way; /* sent, and not answered yet */
	struct hpx_counter leases_lost;
	struct hpx_counter reaped;
	/* What the last survey of the store counted. */
	struct hpx_counter operations[HPX_STATE_COUNT];
	struct hpx_counter oldest_unknown_s;
	struct hpx_counter jobs[HPX_JOB_STATE_COUNT];
	struct hpx_counter dead_operations; /* hapax_dead{kind="operation"} */
	struct hpx_counter dead_jobs;       /* hapax_dead{kind="job"} */
	struct hpx_counter oldest_queued_s; /* how long the oldest queued job has been due */
};

#endif
