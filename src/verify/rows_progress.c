/* While the first one runs: retries, and retries that go away. */
#include "verify/rows.h"

/* So long after the first was sent until it counts as under way, and between
 * retries: longer than a claim that was meant in seconds and made in
 * milliseconds. */
#define PAUSE_MS 150
#define RETRIES_MAX 24

struct slow {
	struct hpx_verify_op *op;
	struct hpx_inflight *inflight;
	unsigned retries;
	unsigned conflicts;
};

static bool begin_slow(struct hpx_check *check, struct slow *slow)
{
	if (!hpx_check_has_request(check, HPX_REQUEST_slow))
		return false;
	slow->op = hpx_check_op_new(check, HPX_REQUEST_slow);
	if (slow->op == NULL)
		return false;
	slow->inflight = hpx_verify_begin(check->run, &(struct hpx_request_variant){ .op = slow->op });
	if (slow->inflight == NULL)
		return hpx_check_undecided(check, "%s",
					   hpx_verify_stop_reason(check->run) != NULL ?
						   hpx_verify_stop_reason(check->run) :
						   "the request cannot be sent");
	hpx_verify_pause(check->run, PAUSE_MS);
	return true;
}

/* Retries for as long as the first waits. A retry that is answered by a 2xx
 * was held until the first was done, or executed: the effects and the answers
 * tell which. */
static bool retry_while_waiting(struct hpx_check *check, struct slow *slow)
{
	while (hpx_verify_is_waiting(slow->inflight) && slow->retries < RETRIES_MAX) {
		const struct hpx_verify_exchange *retry =
			hpx_check_send(check, &(struct hpx_request_variant){ .op = slow->op });

		if (retry == NULL)
			return false;
		slow->retries++;
		if (hpx_check_is_in_progress(check, retry))
			slow->conflicts++;
		else if (!hpx_check_is_2xx(retry))
			return hpx_check_broken(check, "while the first runs, the retry (#%u) was answered %s",
						retry->number, hpx_check_describe(check, retry));
		/* Later ones are further apart: some claims are short. */
		hpx_verify_pause(check->run, PAUSE_MS + 50 * slow->retries);
	}
	return true;
}

/* The first one's answer, and the same for a retry afterwards; one effect. */
static bool end_slow(struct hpx_check *check, struct slow *slow)
{
	const struct hpx_verify_exchange *first = hpx_verify_finish(slow->inflight);

	slow->inflight = NULL;
	hpx_check_cite(check, first);
	if (!hpx_check_is_2xx(first) && !hpx_check_is_in_progress(check, first))
		return hpx_check_undecided(check, "`slow` (#%u) does not succeed: %s", first->number,
					   hpx_check_describe(check, first));
	const struct hpx_verify_exchange *settled =
		hpx_check_settle(check, &(struct hpx_request_variant){ .op = slow->op });
	if (settled == NULL || !hpx_check_effects(check, slow->op, 1))
		return false;
	/* The retry may have overtaken it on the way: then it is the one that waits. */
	if (!hpx_check_is_in_progress(check, first))
		return hpx_check_same(check, first, settled, "the retry behind it");
	return true;
}

/* Each retry that got an answer while the first ran got its answer. */
static bool answers_agree(struct hpx_check *check, const struct slow *slow)
{
	const struct hpx_verify_exchange *done = NULL;

	for (size_t i = 0; i < hpx_verify_exchange_count(check->run); i++) {
		const struct hpx_verify_exchange *exchange = hpx_verify_exchange_at(check->run, i);
		bool ours = exchange->row != NULL && strstr(exchange->key, slow->op->key) != NULL;

		if (!ours || !hpx_check_is_2xx(exchange) ||
		    hpx_check_is_in_progress(check, exchange))
			continue;
		if (done != NULL && !hpx_check_same(check, done, exchange, "a retry"))
			return false;
		done = exchange;
	}
	return true;
}

/* The flight is ended whatever the verdict was. */
static bool check_slow(struct hpx_check *check, struct slow *slow)
{
	if (!retry_while_waiting(check, slow)) {
		hpx_verify_finish(slow->inflight);
		return false;
	}
	if (slow->retries == 0) {
		hpx_check_cite(check, hpx_verify_finish(slow->inflight));
		return hpx_check_undecided(check, "`slow` was answered before a retry could be sent");
	}
	return end_slow(check, slow) && answers_agree(check, slow);
}

/* Broken without a second effect that was counted. */
static void explain_slow(struct hpx_check *check, const struct slow *slow)
{
	if (check->result->verdict == HPX_ROW_BROKEN && hpx_verify_counts_effects(check->run) &&
	    !hpx_check_effects_exceed(check, slow->op, 1))
		hpx_check_blame(check, HPX_GUARANTEE_STUCK,
				"It is made once, but whoever asks again while it runs is told something else, and does not know what became of it.");
}

void hpx_row_in_progress(struct hpx_check *check)
{
	struct slow slow = { 0 };

	hpx_check_expect(check, "while the first runs, a retry gets 409 or waits; afterwards the answer; one effect");
	if (!begin_slow(check, &slow))
		return;
	if (check_slow(check, &slow))
		hpx_check_holds(check, "%u retries while it ran, %u of them \"in progress\"; %s",
				slow.retries, slow.conflicts,
				hpx_check_describe_effects(check, slow.op));
	explain_slow(check, &slow);
}

void hpx_row_waiter_gone(struct hpx_check *check)
{
	struct slow slow = { 0 };

	hpx_check_expect(check, "a retry that goes away changes nothing: the next ones get 409 or wait; one effect");
	if (!begin_slow(check, &slow))
		return;
	struct hpx_inflight *waiter =
		hpx_verify_begin(check->run, &(struct hpx_request_variant){ .op = slow.op });
	hpx_verify_pause(check->run, PAUSE_MS);
	if (waiter != NULL)
		hpx_check_cite(check, hpx_verify_abandon(waiter));
	hpx_verify_pause(check->run, PAUSE_MS);
	if (check_slow(check, &slow))
		hpx_check_holds(check, "%u retries behind it, %u of them \"in progress\"; %s",
				slow.retries, slow.conflicts,
				hpx_check_describe_effects(check, slow.op));
	explain_slow(check, &slow);
}
