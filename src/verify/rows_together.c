/* At the same moment: two, ten, a hundred; and while the first one runs. */
#include "verify/rows.h"

#define STORM 100
#define STRANGERS 10
/* Of a crowd, in the finding; room is left for what stands out. */
#define CITED 4

/* What a crowd's answers amount to. */
struct tally {
	const struct hpx_exchange *done; /* the first 2xx that is an answer */
	size_t answers;
	size_t in_progress;
	size_t put_off; /* 429, 503, refused connections */
	size_t lost;
	bool differs; /* another 2xx than that one is among them */
};

/* Two that were accepted, and are not the same thing. */
static bool names_another(struct hpx_judge *judge, const struct hpx_exchange *done,
			  const struct hpx_exchange *exchange)
{
	if (done == NULL || done->status != 202 || exchange->status != 202 ||
	    judge->notes->resources_alike)
		return false;
	struct hpx_span one = hpx_verify_resource(judge->run, done);
	struct hpx_span other = hpx_verify_resource(judge->run, exchange);
	return one.len > 0 && other.len > 0 && !hpx_span_eq(one, other);
}

/* False: an answer that is not the one answer, nor a sign of waiting. */
static bool count_answer(struct hpx_judge *judge, const struct hpx_exchange *exchange,
			 struct tally *tally)
{
	if (exchange->end == HPX_EXCHANGE_REFUSED || exchange->status == 429 ||
	    exchange->status == 503) {
		tally->put_off++;
	} else if (exchange->end != HPX_EXCHANGE_ANSWERED) {
		tally->lost++;
	} else if (hpx_exchange_is_done(exchange) &&
		   (tally->done == NULL || hpx_exchange_same(tally->done, exchange))) {
		tally->done = tally->done != NULL ? tally->done : exchange;
		tally->answers++;
	} else if (hpx_judge_is_in_progress(judge, exchange) &&
		   !names_another(judge, tally->done, exchange)) {
		tally->in_progress++;
	} else {
		hpx_judge_cite(judge, exchange);
		tally->differs = hpx_exchange_is_done(exchange);
		if (tally->done != NULL)
			return hpx_judge_same(judge, tally->done, exchange, "one of the crowd");
		return hpx_judge_broken(judge, "one of the crowd (#%u) was answered %s",
					exchange->number, hpx_judge_words(judge, exchange));
	}
	return true;
}

/* Real answers first, so that a 202 "in progress" is never taken for one. */
static bool count_answers(struct hpx_judge *judge, const struct hpx_exchange *const *exchanges,
			  size_t count, struct tally *tally)
{
	for (size_t i = 0; i < count && tally->done == NULL; i++)
		if (hpx_exchange_is_done(exchanges[i]) && exchanges[i]->status != 202)
			tally->done = exchanges[i];
	for (size_t i = 0; i < count; i++)
		if (!count_answer(judge, exchanges[i], tally))
			return false;
	return true;
}

/* The effects of all, each once. */
static bool once_each(struct hpx_judge *judge, struct hpx_intent *const *intents, size_t count)
{
	if (!hpx_judge_counts_apart(judge))
		return hpx_judge_effects(judge, intents[0], count);
	for (size_t i = 0; i < count; i++)
		if (!hpx_judge_effects(judge, intents[i], 1))
			return false;
	return true;
}

/* A retry of each gets the answer of its crowd. */
static bool settle_all(struct hpx_judge *judge, struct hpx_intent *const *intents, size_t count,
		       const struct tally *tally)
{
	for (size_t i = 0; i < count; i++) {
		const struct hpx_exchange *settled = hpx_judge_settle(
			judge, &(struct hpx_sending){ .intent = intents[i] });

		if (settled == NULL)
			return false;
		if (i == 0 && tally->done != NULL &&
		    !hpx_judge_same(judge, tally->done, settled, "the retry behind the crowd"))
			return false;
	}
	return true;
}

/* One intent of the crowd, the first, and those of strangers. */
struct crowd {
	struct hpx_intent *intents[STRANGERS + 1];
	size_t strangers;
	const struct hpx_exchange *exchanges[STORM]; /* of the crowd, without strangers */
	size_t count;
};

/* Strangers stand among the others. */
static void send_crowd(struct hpx_judge *judge, struct crowd *crowd, size_t count)
{
	struct hpx_sending sendings[STORM];
	const struct hpx_exchange *exchanges[STORM];
	size_t stranger = 1;
	size_t sent = 0;

	for (size_t i = 0; i < count; i++) {
		bool strange = i % 5 == 4 && stranger <= crowd->strangers;

		sendings[i] = (struct hpx_sending){ .intent = crowd->intents[strange ? stranger++ : 0] };
	}
	hpx_verify_send_together(judge->run, sendings, count, exchanges, &sent);
	for (size_t i = 0; i < sent; i++)
		if (sendings[i].intent == crowd->intents[0])
			crowd->exchanges[crowd->count++] = exchanges[i];
	for (size_t i = 0; i < crowd->count && i < CITED; i++)
		hpx_judge_cite(judge, crowd->exchanges[i]);
}

static bool is_done_twice(struct hpx_judge *judge, const struct crowd *crowd)
{
	if (!hpx_judge_counts_apart(judge))
		return hpx_judge_counted_more(judge, crowd->intents[0], crowd->strangers + 1);
	for (size_t i = 0; i <= crowd->strangers; i++)
		if (hpx_judge_counted_more(judge, crowd->intents[i], 1))
			return true;
	return false;
}

/* Broken: what it means depends on what was seen. */
static void explain_crowd(struct hpx_judge *judge, const struct crowd *crowd,
			  const struct tally *tally, const char *twice)
{
	if (is_done_twice(judge, crowd))
		judge->finding->why = twice;
	else if (tally->differs && !hpx_verify_counts(judge->run))
		judge->finding->why = "One request got two different answers of success, as if it was executed twice; effects were not counted.";
	else if (tally->differs)
		hpx_judge_blames(judge, HPX_GUARANTEE_REPLAY,
				 "Two callers are told of two different things, and only one was made.");
	else
		hpx_judge_blames(judge, HPX_GUARANTEE_STUCK,
				 "It is made once, but one of those who asked for it is told something else, and does not know what became of it.");
}

static void judge_crowd(struct hpx_judge *judge, size_t count, size_t strangers, const char *twice)
{
	struct crowd crowd = { .strangers = strangers };
	struct tally tally = { 0 };

	for (size_t i = strangers + 1; i-- > 0;) {
		crowd.intents[i] = hpx_judge_intend(judge, HPX_REQUEST_main);
		if (crowd.intents[i] == NULL)
			return;
	}
	send_crowd(judge, &crowd, count);
	if (crowd.count < 2) {
		const char *over = hpx_verify_over(judge->run);
		hpx_judge_undecided(judge, "%s", over != NULL ? over : "the bound on concurrency is below two");
		return;
	}
	if (count_answers(judge, crowd.exchanges, crowd.count, &tally) &&
	    settle_all(judge, crowd.intents, strangers + 1, &tally) &&
	    once_each(judge, crowd.intents, strangers + 1))
		hpx_judge_holds(judge, "of %zu at once %zu got the answer, %zu \"in progress\", %zu were put off, %zu got no answer; %s",
				crowd.count, tally.answers, tally.in_progress, tally.put_off,
				tally.lost, hpx_judge_effect_words(judge, crowd.intents[0]));
	else if (judge->finding->verdict == HPX_ROW_BROKEN)
		explain_crowd(judge, &crowd, &tally, twice);
}

void hpx_row_at_once_2(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "one effect; both get its answer, or one is told that it is in progress");
	judge_crowd(judge, 2, 0, "A double click pays twice.");
}

void hpx_row_at_once_10(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "one effect; all get its answer, or are told that it is in progress");
	judge_crowd(judge, 10, 0, "An impatient client, or two, pays more than once.");
}

void hpx_row_at_once_100(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "one effect for each key; all get its answer, or are told that it is in progress");
	judge_crowd(judge, STORM, STRANGERS,
		    "A retry storm after an outage pays as often as it was retried.");
}
