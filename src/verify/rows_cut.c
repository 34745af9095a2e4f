/* Cut off by the client after each part of the request, then retried: done,
 * once, and never stuck. */
#include "verify/rows.h"

/* A reset that comes at once may overtake the request in the server, one that
 * comes late finds it at work: each shows other mistakes. */
static const int64_t lingers_ms[] = { 0, 50, 250 };

/* True: so far it holds. */
static bool judge_one(struct hpx_judge *judge, struct hpx_intent *intent, enum hpx_cut cut,
		      int64_t linger_ms)
{
	struct hpx_sending whole = { .intent = intent };
	struct hpx_sending part = { .intent = intent, .cut = cut, .linger_ms = linger_ms };
	const struct hpx_exchange *gone = hpx_verify_send(judge->run, &part);

	hpx_judge_cite(judge, gone);
	if (gone->end == HPX_EXCHANGE_REFUSED || gone->end == HPX_EXCHANGE_UNSENT)
		return hpx_judge_undecided(judge, "it could not be sent: %s", gone->problem);
	const struct hpx_exchange *settled = hpx_judge_settle(judge, &whole);
	if (settled == NULL)
		return false;
	const struct hpx_exchange *again = hpx_judge_send(judge, &whole);
	return again != NULL && hpx_judge_same(judge, settled, again, "the next retry") &&
	       hpx_judge_effects(judge, intent, 1);
}

static void judge_cut(struct hpx_judge *judge, enum hpx_cut cut)
{
	size_t count = cut == HPX_CUT_BEFORE_ANSWER ? 1 : sizeof(lingers_ms) / sizeof(lingers_ms[0]);
	struct hpx_intent *intent = NULL;

	hpx_judge_expects(judge, "within the settle time a retry is answered by a 2xx; one effect");
	for (size_t i = 0; i < count; i++) {
		intent = hpx_judge_intend(judge, HPX_REQUEST_main);
		if (intent == NULL)
			return;
		if (cut == HPX_CUT_HALF_BODY && intent->body.len < 2) {
			hpx_judge_not_applicable(judge, "the request has no body to cut");
			return;
		}
		if (judge_one(judge, intent, cut, lingers_ms[i]))
			continue;
		if (judge->finding->verdict == HPX_ROW_BROKEN &&
		    hpx_judge_counted_more(judge, intent, 1))
			hpx_judge_blames(judge, HPX_GUARANTEE_ONCE,
					 "The phone in the tunnel: the payment is made twice.");
		return;
	}
	hpx_judge_holds(judge, "%zu cut off and done; %s", count,
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
