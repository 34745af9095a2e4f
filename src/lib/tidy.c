/* hapax_tidy: what the gateway's workers do, in one bounded round. */
#include "lib/call.h"
#include "lib/result.h"

#define SWEEP_BATCH 64
#define REAP_BATCH 256
/* One round leaves the rest to the next. */
#define BATCHES_MAX 16

/* One batch; `*ret_more`: it was full. Nothing is lost with a batch that was not
 * done in time: the next one finds the same rows. */
static enum hpx_status batch(struct hapax *hapax, enum hpx_verb verb, unsigned limit,
			     int64_t deadline_ms, bool *ret_more, char *detail)
{
	struct hpx_call *call = hpx_call_new(hapax, verb);

	if (call == NULL)
		return HPX_NOMEM;
	if (verb == HPX_VERB_SWEEP)
		call->op.sweep.limit = limit;
	else
		call->op.reap.limit = limit;
	call->op.actor = verb == HPX_VERB_SWEEP ? HPX_SPAN("sweeper") : HPX_SPAN("reaper");
	if (verb == HPX_VERB_SWEEP)
		call->op.reason = HPX_SPAN("the lease was lost");
	enum hpx_status status = hpx_call_run(&call, deadline_ms, detail);
	if (status == HPX_OK)
		*ret_more = (verb == HPX_VERB_SWEEP ? call->op.sweep.count : call->op.reap.count) >= limit;
	hpx_call_free(call);
	return status;
}

static enum hpx_status batches(struct hapax *hapax, enum hpx_verb verb, unsigned limit,
			       int64_t deadline_ms, char *detail)
{
	enum hpx_status status = HPX_OK;
	bool more = true;

	for (unsigned i = 0; i < BATCHES_MAX && more && status == HPX_OK; i++)
		status = batch(hapax, verb, limit, deadline_ms, &more, detail);
	return status;
}

enum hapax_result hapax_tidy(struct hapax *hapax, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE] = "";

	if (hapax == NULL || hapax->committer == NULL)
		return hpx_result_say(HAPAX_MISUSE, problem,
				      "hapax_tidy needs a handle of hapax_open");
	int64_t deadline_ms = hpx_call_deadline(hapax);
	enum hpx_status status = batches(hapax, HPX_VERB_SWEEP, SWEEP_BATCH, deadline_ms, detail);
	if (status == HPX_OK)
		status = batches(hapax, HPX_VERB_REAP, REAP_BATCH, deadline_ms, detail);
	if (status == HPX_OK)
		status = hpx_store_maintain(hapax->store, detail);
	/* Somebody else keeps the file in shape just now. */
	if (status == HPX_BUSY)
		status = HPX_OK;
	return hpx_result_tell(status, detail, problem);
}
