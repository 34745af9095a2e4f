/* Keeping writes cheap: checkpoints, beside the committer and never in its way. */
#include "base/log.h"
#include "worker/duty.h"

void hpx_maintain(const struct hpx_worker_options *options, struct hpx_survey *seen)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = hpx_store_maintain(options->store, problem);

	bool failed = status != HPX_OK && status != HPX_BUSY;

	if (failed && !seen->checkpoint_failed)
		hpx_log(HPX_LOG_WARN, "checkpoint_failed", "problem=%s reason=\"%s\"",
			hpx_status_name(status), problem);
	seen->checkpoint_failed = failed;
}
