/* What was found about an unknown outcome: stored, counted, told. */
#include <stdio.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "worker/probe_call.h"

static enum hpx_reconciled result_of(enum hpx_reconcile_move move)
{
	switch (move) {
	case HPX_RECONCILE_SETTLE_APPLIED:
	case HPX_RECONCILE_SETTLE_DECLINED:
	case HPX_RECONCILE_SETTLE_NOT_APPLIED:
		return HPX_RECONCILED_resolved;
	case HPX_RECONCILE_A_PERSON:
		return HPX_RECONCILED_failed;
	default:
		return HPX_RECONCILED_scheduled;
	}
}

static void count(const struct hpx_question *question, enum hpx_reconciled result)
{
	hpx_counter_add(&question->reconciler->options.counters->reconciled[result], 1);
}

static void tell(const struct hpx_question *question, enum hpx_log_level level, const char *event,
		 const char *came_to)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(hpx_question_id(question), hpx_question_mark(question), reference);
	hpx_log(level, event, "operation=%s job=%lld move=%s reason=\"%s\"", reference,
		(long long)question->about->delivery.number, came_to, question->reason);
}

static void ruled(struct hpx_store_op *op)
{
	struct hpx_question *question = HPX_CONTAINER(op, struct hpx_question, op);
	enum hpx_reconcile_move move = question->turn.move;
	enum hpx_reconciled result = result_of(move);

	HPX_CRASH_POINT(reconcile_ruled);
	if (op->status != HPX_OK) {
		/* Gone, settled by somebody else, or the store is. */
		tell(question, HPX_LOG_WARN, "ruling_not_stored", hpx_status_name(op->status));
	} else {
		count(question, result);
		tell(question,
		     result == HPX_RECONCILED_failed   ? HPX_LOG_WARN :
		     result == HPX_RECONCILED_resolved ? HPX_LOG_INFO :
							 HPX_LOG_DEBUG,
		     result == HPX_RECONCILED_failed   ? "left_to_a_person" :
		     result == HPX_RECONCILED_resolved ? "reconciled" :
							 "asked",
		     hpx_reconcile_name(move));
	}
	hpx_question_drop(question);
}

void hpx_question_rule(struct hpx_question *question, const struct hpx_received_ruling *received)
{
	question->turn = (struct hpx_ruling_update){ .number = question->about->delivery.number,
						     .received = *received };
	if (question->how != NULL)
		question->turn.rule = question->how->rule;
	hpx_random(&question->turn.random, sizeof(question->turn.random));
	question->op = (struct hpx_store_op){
		.verb = HPX_VERB_RULE,
		.id = *hpx_question_id(question),
		.mark = *hpx_question_mark(question),
		.rule.update = &question->turn,
		.actor = HPX_SPAN("reconciler"),
		.reason = hpx_span_of(question->reason),
		.done = ruled,
	};
	hpx_committer_submit(question->reconciler->options.committer, &question->op);
}
