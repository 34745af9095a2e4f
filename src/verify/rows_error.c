/* Errors that the API can be made to give: refusals, failures behind an
 * effect, and outages that end. */
#include "base/clock.h"
#include "verify/rows.h"

/* Between retries through an outage: the first one soon, later ones further apart. */
#define OUTAGE_PAUSE_MIN_MS 25
#define OUTAGE_PAUSE_MAX_MS 200

/* The request's first answer, which is of that class. NULL: the verdict is
 * given. */
static const struct hpx_exchange *send_first(struct hpx_judge *judge,
					     enum hpx_verify_request_name name, unsigned class,
					     struct hpx_intent **ret_intent)
{
	if (!hpx_judge_has(judge, name))
		return NULL;
	*ret_intent = hpx_judge_intend(judge, name);
	if (*ret_intent == NULL)
		return NULL;
	const struct hpx_exchange *first =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = *ret_intent });
	if (first == NULL || first->status / 100 == class)
		return first;
	hpx_judge_undecided(judge, "it should be answered by a %uxx, and was by %s", class,
			    hpx_judge_words(judge, first));
	return NULL;
}

void hpx_row_client_error(struct hpx_judge *judge)
{
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "the retry gets the status and the body of the refusal; no effect");
	const struct hpx_exchange *first =
		send_first(judge, HPX_REQUEST_client_error, 4, &intent);
	if (first == NULL)
		return;
	const struct hpx_exchange *again =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	if (again != NULL && hpx_judge_same(judge, first, again, "the retry") &&
	    hpx_judge_effects(judge, intent, 0))
		hpx_judge_holds(judge, "%s both times; %s", hpx_judge_words(judge, first),
				hpx_judge_effect_words(judge, intent));
}

void hpx_row_server_error(struct hpx_judge *judge)
{
	bool stripe = hpx_verify_dialect(judge->run) == HPX_DIALECT_STRIPE;
	struct hpx_intent *intent;
	const struct hpx_exchange *again = NULL;

	hpx_judge_expects(judge, "%sone effect after three retries",
			  stripe ? "the same server error again, and " : "");
	if (!hpx_verify_counts(judge->run)) {
		hpx_judge_not_applicable(judge, "without counting effects nothing can be seen");
		return;
	}
	const struct hpx_exchange *first =
		send_first(judge, HPX_REQUEST_server_error, 5, &intent);
	if (first == NULL)
		return;
	for (int i = 0; i < 3; i++) {
		again = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
		if (again == NULL)
			return;
		if (!stripe || first->status != 500 || hpx_judge_same(judge, first, again, "the retry"))
			continue;
		if (!hpx_judge_counted_more(judge, intent, 1))
			hpx_judge_blames(judge, HPX_GUARANTEE_REPLAY,
					 "It happened once, and the retry is told something else than the first.");
		return;
	}
	if (hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s, then %s; %s", hpx_judge_words(judge, first),
				hpx_judge_words(judge, again), hpx_judge_effect_words(judge, intent));
}

/* Retries through the outage. NULL: it did not end, or the verdict is given. */
static const struct hpx_exchange *outlast(struct hpx_judge *judge, struct hpx_intent *intent)
{
	int64_t deadline_ms =
		hpx_clock_boot_ms() + (int64_t)hpx_verify_spec_of(judge->run)->settle_ms;
	uint64_t pause_ms = OUTAGE_PAUSE_MIN_MS;
	const struct hpx_exchange *again;

	do {
		hpx_verify_pause(judge->run, pause_ms);
		pause_ms = pause_ms < OUTAGE_PAUSE_MAX_MS ? pause_ms * 2 : pause_ms;
		again = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	} while (again != NULL && !hpx_exchange_is_done(again) &&
		 (again->status >= 500 || hpx_judge_is_in_progress(judge, again)) &&
		 hpx_clock_boot_ms() < deadline_ms);
	if (again == NULL || hpx_exchange_is_done(again))
		return again;
	hpx_judge_broken(judge, "the retry (#%u) is still answered %s", again->number,
			 hpx_judge_words(judge, again));
	return NULL;
}

void hpx_row_outage(struct hpx_judge *judge)
{
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "behind the outage a retry is executed: 2xx, one effect");
	if (hpx_verify_dialect(judge->run) == HPX_DIALECT_STRIPE) {
		hpx_judge_not_applicable(judge, "this dialect stores server errors");
		return;
	}
	const struct hpx_exchange *first = send_first(judge, HPX_REQUEST_outage, 5, &intent);
	if (first == NULL)
		return;
	const struct hpx_exchange *done = outlast(judge, intent);
	const struct hpx_exchange *again = NULL;
	if (done != NULL)
		again = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	if (again != NULL && hpx_judge_same(judge, done, again, "the next retry") &&
	    hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s, then %s; %s", hpx_judge_words(judge, first),
				hpx_judge_words(judge, done), hpx_judge_effect_words(judge, intent));
}
