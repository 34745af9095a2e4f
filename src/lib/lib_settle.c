/* hapax_settle: what somebody found out about an outcome that nobody knew. The store has
 * the rule to judge it by; this file checks and copies what was given, and says what
 * came of it. */
#include "base/sized.h"
#include "base/status.h"
#include "core/reconstruct.h"
#include "lib/lib.h"

/* What an answer to this ruling may have for a status; 0 to 0: there is none. */
static const struct {
	enum hpx_ruling ruling;
	unsigned status_min, status_max;
	const char *wrong;
} rulings[] = {
	[HAPAX_APPLIED] = { HPX_RULING_APPLIED, 200, 399,
			    "the status of an answer to what was applied is 200 to 399" },
	[HAPAX_DECLINED] = { HPX_RULING_DECLINED, 400, 599,
			     "the status of an answer to what was declined is 400 to 599" },
	[HAPAX_NOT_APPLIED] = { HPX_RULING_NOT_APPLIED, 0, 0,
				"what was not applied has no answer" },
};

static const enum hapax_settled settled_as[] = {
	[HPX_SETTLEMENT_IGNORED] = HAPAX_IGNORED,
	[HPX_SETTLEMENT_SETTLED] = HAPAX_SETTLED,
	[HPX_SETTLEMENT_KEPT] = HAPAX_KEPT,
	[HPX_SETTLEMENT_TOO_EARLY] = HAPAX_TOO_EARLY,
};

/* The answer says that it is not the original. */
static enum hapax_result mark_reconstructed(struct hpx_pending *pending, char *problem)
{
	struct hpx_span *headers = &pending->answer.headers;

	*headers = hpx_arena_printf(&pending->memory, "%.*s" HPX_RECONSTRUCTED ": true\r\n",
				    HPX_SPAN_ARG(*headers));
	return headers->ptr != NULL ? HAPAX_OK : hpx_lib_result(HPX_NOMEM, NULL, problem);
}

static enum hapax_result take_answer(struct hpx_pending *pending,
				     const struct hapax_settlement *settlement, char *problem)
{
	struct hapax_answer answer = { .status = 0 };
	unsigned ruling = (unsigned)settlement->ruling;
	enum hapax_result result;

	if (settlement->answer == NULL)
		return HAPAX_OK;
	if (!hpx_sized_read(settlement->answer, &answer, sizeof(answer)))
		return hpx_lib_bad_struct("hapax_answer", problem);
	if (answer.status < rulings[ruling].status_min || answer.status > rulings[ruling].status_max)
		return hpx_lib_error(HAPAX_INVALID, problem, "%s", rulings[ruling].wrong);
	result = hpx_lib_take_answer(pending, &answer, problem);
	pending->ruling.answer = &pending->answer;
	return result == HAPAX_OK ? mark_reconstructed(pending, problem) : result;
}

static enum hapax_result prepare(struct hpx_pending *pending,
				 const struct hapax_settlement *settlement, char *problem)
{
	if (!hpx_reference_parse(hpx_span_of(settlement->reference), &pending->op.id,
				 &pending->op.mark))
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "this is not a reference: pass the one of hapax_begin, or the "
				     "value of the Hapax-Operation header, as it came");
	pending->ruling = (struct hpx_ruling_update){ .stored_rule = true };
	pending->ruling.received.ruling = rulings[settlement->ruling].ruling;
	pending->op.rule.update = &pending->ruling;
	pending->op.actor = HPX_SPAN("settler");
	if (settlement->reason != NULL &&
	    !hpx_pending_copy(pending, hpx_span_of(settlement->reason), &pending->op.reason))
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	return take_answer(pending, settlement, problem);
}

static enum hapax_result explain(enum hpx_status status, const struct hapax *hapax,
				 const char *detail, char *problem)
{
	switch (status) {
	case HPX_NOT_FOUND:
	case HPX_STALE:
		return hpx_lib_error(HAPAX_STALE, problem,
				     "there is no operation of this reference (any more): it has "
				     "expired, was forgotten, or its key is used for another one");
	case HPX_UNSUPPORTED:
		if (hapax->committer != NULL && !hpx_store_can(hapax->store, HPX_STORE_OUTBOX))
			return hpx_lib_error(HAPAX_INVALID, problem,
					     "this store keeps nothing about unknown outcomes");
		return hpx_lib_error(HAPAX_REFUSED, problem,
				     "not applied cannot be judged: settle_after of the operation's "
				     "route is not known here; write reconcile.settle_after in the "
				     "gateway's configuration and start or reload it, or let a person "
				     "settle it with hapax keys resolve");
	case HPX_CORRUPT:
		return hpx_lib_error(HAPAX_REFUSED, problem,
				     "the operation's row cannot be read: a person has to settle it");
	default:
		return hpx_lib_result(status, detail, problem);
	}
}

enum hapax_result hapax_settle(struct hapax *hapax, const struct hapax_settlement *given,
			       enum hapax_settled *ret_settled, char *problem)
{
	struct hapax_settlement settlement = { .reference = NULL };
	char detail[HPX_STORE_PROBLEM_SIZE];

	if (given != NULL && !hpx_sized_read(given, &settlement, sizeof(settlement)))
		return hpx_lib_bad_struct("hapax_settlement", problem);
	if (hapax == NULL || settlement.reference == NULL || ret_settled == NULL ||
	    (unsigned)settlement.ruling >= sizeof(rulings) / sizeof(rulings[0]))
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_settle needs a handle, a reference, a ruling and a place "
				     "for what came of it");
	struct hpx_pending *pending = hpx_pending_new(hapax, HPX_VERB_RULE);
	if (pending == NULL)
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	enum hapax_result result = prepare(pending, &settlement, problem);
	if (result == HAPAX_OK) {
		enum hpx_status status = hpx_pending_run(&pending, hpx_pending_deadline(hapax), detail);
		result = status == HPX_TIMEOUT ?
				 hpx_lib_error(HAPAX_UNCERTAIN, problem,
					       "it is not known to be durable yet; the handle goes on "
					       "trying, and the same call again tells") :
				 explain(status, hapax, detail, problem);
	}
	if (result == HAPAX_OK)
		*ret_settled = settled_as[pending->ruling.settlement];
	hpx_pending_free(pending);
	return result;
}
