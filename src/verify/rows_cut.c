/* Cut off by the client after each part of the request, then retried: done,
 * once, and never stuck. */
#include "verify/rows.h"

static void judge_cut(struct hpx_judge *judge, enum hpx_cut cut)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);

	hpx_judge_expects(judge, "within the settle time a retry is answered by a 2xx; one effect");
	if (intent == NULL)
		return;
	if (cut == HPX_CUT_HALF_BODY && intent->body.len < 2) {
		hpx_judge_not_applicable(judge, "the request has no body to cut");
		return;
	}
	const struct hpx_exchange *gone =
		hpx_verify_send(judge->run, &(struct hpx_sending){ .intent = intent, .cut = cut });
	hpx_judge_cite(judge, gone);
	if (gone->end == HPX_EXCHANGE_REFUSED || gone->end == HPX_EXCHANGE_UNSENT) {
		hpx_judge_undecided(judge, "it could not be sent: %s", gone->problem);
		return;
	}
	const struct hpx_exchange *settled =
		hpx_judge_settle(judge, &(struct hpx_sending){ .intent = intent });
	if (settled == NULL)
		return;
	const struct hpx_exchange *again =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	if (again != NULL && hpx_judge_same(judge, settled, again, "the next retry") &&
	    hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, settled),
				hpx_judge_effect_words(judge, intent));
}

void hpx_row_cut_head(struct hpx_judge *judge)
{
	judge_cut(judge, HPX_CUT_HEAD);
}

void hpx_row_cut_half_body(struct hpx_judge *judge)
{
	judge_cut(judge, HPX_CUT_HALF_BODY);
}

void hpx_row_cut_whole_body(struct hpx_judge *judge)
{
	judge_cut(judge, HPX_CUT_WHOLE_BODY);
}

void hpx_row_cut_before_answer(struct hpx_judge *judge)
{
	judge_cut(judge, HPX_CUT_BEFORE_ANSWER);
}
