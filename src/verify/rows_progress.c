/* While the first one runs: retries, and retries that go away. */
#include "verify/rows.h"

/* So long after the first was sent until it counts as under way, and between
 * retries: longer than a claim that was meant in seconds and made in
 * milliseconds. */
#define PAUSE_MS 150
#define RETRIES_MAX 24

struct slow {
	struct hpx_intent *intent;
	struct hpx_flight *flight;
	unsigned retries;
	unsigned conflicts;
};

static bool begin_slow(struct hpx_judge *judge, struct slow *slow)
{
	if (!hpx_judge_has(judge, HPX_REQUEST_slow))
		return false;
	slow->intent = hpx_judge_intend(judge, HPX_REQUEST_slow);
	if (slow->intent == NULL)
		return false;
	slow->flight = hpx_verify_begin(judge->run, &(struct hpx_sending){ .intent = slow->intent });
	if (slow->flight == NULL)
		return hpx_judge_undecided(judge, "%s",
					   hpx_verify_over(judge->run) != NULL ?
						   hpx_verify_over(judge->run) :
						   "the request cannot be sent");
	hpx_verify_pause(judge->run, PAUSE_MS);
	return true;
}

/* Retries for as long as the first waits. A retry that is answered by a 2xx
 * was held until the first was done, or executed: the effects and the answers
 * tell which. */
static bool retry_while_waiting(struct hpx_judge *judge, struct slow *slow)
{
	while (hpx_verify_is_waiting(slow->flight) && slow->retries < RETRIES_MAX) {
		const struct hpx_exchange *retry =
			hpx_judge_send(judge, &(struct hpx_sending){ .intent = slow->intent });

		if (retry == NULL)
			return false;
		slow->retries++;
		if (hpx_judge_is_in_progress(judge, retry))
			slow->conflicts++;
		else if (!hpx_exchange_is_done(retry))
			return hpx_judge_broken(judge, "while the first runs, the retry (#%u) was answered %s",
						retry->number, hpx_judge_words(judge, retry));
		/* Later ones are further apart: some claims are short. */
		hpx_verify_pause(judge->run, PAUSE_MS + 50 * slow->retries);
	}
	return true;
}

/* The first one's answer, and the same for a retry afterwards; one effect. */
static bool end_slow(struct hpx_judge *judge, struct slow *slow)
{
	const struct hpx_exchange *first = hpx_verify_finish(slow->flight);

	slow->flight = NULL;
	hpx_judge_cite(judge, first);
	if (!hpx_exchange_is_done(first) && !hpx_judge_is_in_progress(judge, first))
		return hpx_judge_undecided(judge, "`slow` (#%u) does not succeed: %s", first->number,
					   hpx_judge_words(judge, first));
	const struct hpx_exchange *settled =
		hpx_judge_settle(judge, &(struct hpx_sending){ .intent = slow->intent });
	if (settled == NULL || !hpx_judge_effects(judge, slow->intent, 1))
		return false;
	/* The retry may have overtaken it on the way: then it is the one that waits. */
	if (!hpx_judge_is_in_progress(judge, first))
		return hpx_judge_same(judge, first, settled, "the retry behind it");
	return true;
}

/* Each retry that got an answer while the first ran got its answer. */
static bool answers_agree(struct hpx_judge *judge, const struct slow *slow)
{
	const struct hpx_exchange *done = NULL;

	for (size_t i = 0; i < hpx_verify_exchange_count(judge->run); i++) {
		const struct hpx_exchange *exchange = hpx_verify_exchange(judge->run, i);
		bool ours = exchange->row != NULL && strstr(exchange->key, slow->intent->key) != NULL;

		if (!ours || !hpx_exchange_is_done(exchange) ||
		    hpx_judge_is_in_progress(judge, exchange))
			continue;
		if (done != NULL && !hpx_judge_same(judge, done, exchange, "a retry"))
			return false;
		done = exchange;
	}
	return true;
}

/* The flight is ended whatever the verdict was. */
static bool judge_slow(struct hpx_judge *judge, struct slow *slow)
{
	if (!retry_while_waiting(judge, slow)) {
		hpx_verify_finish(slow->flight);
		return false;
	}
	if (slow->retries == 0) {
		hpx_judge_cite(judge, hpx_verify_finish(slow->flight));
		return hpx_judge_undecided(judge, "`slow` was answered before a retry could be sent");
	}
	return end_slow(judge, slow) && answers_agree(judge, slow);
}

/* Broken without a second effect that was counted. */
static void explain_slow(struct hpx_judge *judge, const struct slow *slow)
{
	if (judge->finding->verdict == HPX_ROW_BROKEN && hpx_verify_counts(judge->run) &&
	    !hpx_judge_counted_more(judge, slow->intent, 1))
		hpx_judge_blames(judge, HPX_GUARANTEE_STUCK,
				 "It is made once, but whoever asks again while it runs is told something else, and does not know what became of it.");
}

void hpx_row_in_progress(struct hpx_judge *judge)
{
	struct slow slow = { 0 };

	hpx_judge_expects(judge, "while the first runs, a retry gets 409 or waits; afterwards the answer; one effect");
	if (!begin_slow(judge, &slow))
		return;
	if (judge_slow(judge, &slow))
		hpx_judge_holds(judge, "%u retries while it ran, %u of them \"in progress\"; %s",
				slow.retries, slow.conflicts,
				hpx_judge_effect_words(judge, slow.intent));
	explain_slow(judge, &slow);
}

void hpx_row_waiter_gone(struct hpx_judge *judge)
{
	struct slow slow = { 0 };

	hpx_judge_expects(judge, "a retry that goes away changes nothing: the next ones get 409 or wait; one effect");
	if (!begin_slow(judge, &slow))
		return;
	struct hpx_flight *waiter =
		hpx_verify_begin(judge->run, &(struct hpx_sending){ .intent = slow.intent });
	hpx_verify_pause(judge->run, PAUSE_MS);
	if (waiter != NULL)
		hpx_judge_cite(judge, hpx_verify_abandon(waiter));
	hpx_verify_pause(judge->run, PAUSE_MS);
	if (judge_slow(judge, &slow))
		hpx_judge_holds(judge, "%u retries behind it, %u of them \"in progress\"; %s",
				slow.retries, slow.conflicts,
				hpx_judge_effect_words(judge, slow.intent));
	explain_slow(judge, &slow);
}
