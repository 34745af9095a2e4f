/* The end of a sending: stored, counted, told. */
#include "base/container.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "worker/outgoing.h"

static const char *const result_names[] = {
#define X(name) "job_" #name,
	HPX_JOB_RESULT_LIST(X)
#undef X
};

static enum hpx_job_result result_of_move(enum hpx_job_move move)
{
	switch (move) {
	case HPX_JOB_MOVE_DELIVER:
		return HPX_JOB_RESULT_delivered;
	case HPX_JOB_MOVE_REJECT:
		return HPX_JOB_RESULT_rejected;
	case HPX_JOB_MOVE_POSTPONE:
		return HPX_JOB_RESULT_postponed;
	default:
		return HPX_JOB_RESULT_lost;
	}
}

/* The store has the last word: a budget may be used up, and an answer may be
 * that of a sending before. */
static enum hpx_job_result result_of(const struct hpx_sending *sending)
{
	enum hpx_job_move move = sending->turn.move;

	if (sending->op.job.after == NULL)
		return result_of_move(move);
	switch (sending->op.job.after->delivery.state) {
	case HPX_JOB_DONE:
		return HPX_JOB_RESULT_delivered;
	case HPX_JOB_DEAD:
		return move == HPX_JOB_MOVE_REJECT ? HPX_JOB_RESULT_rejected : HPX_JOB_RESULT_dead;
	case HPX_JOB_QUEUED:
		return move == HPX_JOB_MOVE_POSTPONE ? HPX_JOB_RESULT_postponed :
						       HPX_JOB_RESULT_lost;
	case HPX_JOB_UNKNOWN:
		return HPX_JOB_RESULT_lost;
	default:
		return result_of_move(move);
	}
}

static const char *state_of(const struct hpx_sending *sending)
{
	return sending->op.job.after != NULL ? hpx_job_state_name(sending->op.job.after->delivery.state) : "?";
}

static void tell(const struct hpx_sending *sending)
{
	const struct hpx_delivery *delivery = &sending->entry->delivery;
	enum hpx_job_result result = result_of(sending);
	bool stored = sending->op.status == HPX_OK;
	char reference[HPX_REFERENCE_SIZE];

	if (stored)
		hpx_counter_add(&sending->lane->counters->results[result], 1);
	hpx_reference_print(&delivery->operation, &delivery->mark, reference);
	if (stored)
		hpx_log(result == HPX_JOB_RESULT_delivered ? HPX_LOG_DEBUG : HPX_LOG_WARN,
			result_names[result],
			"job=%lld operation=%s target=%.*s attempt=%u status=%u state=%s reason=\"%s\"",
			(long long)delivery->number, reference,
			HPX_SPAN_ARG(sending->lane->target->name), delivery->attempt,
			sending->turn.status, state_of(sending), sending->reason);
	else /* somebody settled it meanwhile, or the sweeper will */
		hpx_log(HPX_LOG_WARN, "job_not_stored",
			"job=%lld operation=%s target=%.*s attempt=%u move=%s problem=%s reason=\"%s\"",
			(long long)delivery->number, reference,
			HPX_SPAN_ARG(sending->lane->target->name), delivery->attempt,
			hpx_job_move_name(sending->turn.move), hpx_status_name(sending->op.status),
			sending->reason);
}

static void stored(struct hpx_store_op *op)
{
	struct hpx_sending *sending = HPX_CONTAINER(op, struct hpx_sending, op);
	struct hpx_deliverer *deliverer = sending->deliverer;

	HPX_CRASH_POINT(job_stored);
	tell(sending);
	hpx_job_entry_free(op->job.after);
	hpx_sending_free(sending);
	hpx_deliverer_ended(deliverer);
}

void hpx_sending_store(struct hpx_sending *sending)
{
	const struct hpx_delivery *delivery = &sending->entry->delivery;

	sending->turn.number = delivery->number;
	sending->op = (struct hpx_store_op){
		.verb = HPX_VERB_JOB,
		.id = delivery->operation,
		.token = delivery->token,
		.job.update = &sending->turn,
		.actor = HPX_SPAN("deliverer"),
		.reason = hpx_span_of(sending->reason),
		.done = stored,
	};
	hpx_committer_submit(sending->deliverer->options.committer, &sending->op);
}
