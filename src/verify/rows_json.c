/* The same JSON written differently is the same request; different numbers are
 * different requests, however alike a double makes them. */
#include "verify/rewrite.h"
#include "verify/rows.h"

/* The first as it is, then `body` under its key: the stored answer, and no
 * second effect. */
static bool judge_rewritten(struct hpx_judge *judge, struct hpx_intent *intent,
			    const struct hpx_exchange *first, struct hpx_span body,
			    const char *what)
{
	const struct hpx_exchange *again =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = body });

	return again != NULL && hpx_judge_same(judge, first, again, what) &&
	       hpx_judge_effects(judge, intent, 1);
}

static void judge_spelling(struct hpx_judge *judge,
			   enum hpx_status (*rewrite)(struct hpx_span, struct hpx_arena *,
						      struct hpx_span *),
			   const char *lacks, const char *what)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_span body;

	if (intent == NULL)
		return;
	if (rewrite(intent->body, hpx_verify_arena(judge->run), &body) != HPX_OK) {
		hpx_judge_not_applicable(judge, "%s", lacks);
		return;
	}
	const struct hpx_exchange *first = hpx_judge_do(judge, intent);
	if (first != NULL && judge_rewritten(judge, intent, first, body, what))
		hpx_judge_holds(judge, "%s both times; %s", hpx_judge_words(judge, first),
				hpx_judge_effect_words(judge, intent));
}

void hpx_row_member_order(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "the same members in another order get the first answer; one effect");
	judge_spelling(judge, hpx_rewrite_order,
		       "the body is no JSON object with two members or more",
		       "the same members in another order");
}

void hpx_row_white_space(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "the same JSON with other white space gets the first answer; one effect");
	judge_spelling(judge, hpx_rewrite_space, "the body is no JSON object",
		       "the same JSON with other white space");
}

/* The number to vary. False: not applicable. */
static bool find_number(struct hpx_judge *judge, const struct hpx_intent *intent,
			struct hpx_span *ret_number)
{
	if (hpx_rewrite_find(intent->body, hpx_verify_spec_of(judge->run)->number, ret_number) ==
	    HPX_OK)
		return true;
	return hpx_judge_not_applicable(judge, "the body has no JSON number to vary");
}

static bool put_number(struct hpx_judge *judge, const struct hpx_intent *intent,
		       struct hpx_span number, struct hpx_span text, struct hpx_span *ret_body)
{
	if (hpx_rewrite_replace(intent->body, number, text, hpx_verify_arena(judge->run),
				ret_body) == HPX_OK)
		return true;
	return hpx_judge_undecided(judge, "out of memory");
}

static bool put_form(struct hpx_judge *judge, const struct hpx_intent *intent, const char *form,
		     struct hpx_span *ret_text, struct hpx_span *ret_body)
{
	struct hpx_span number;

	if (!find_number(judge, intent, &number))
		return false;
	*ret_text = hpx_arena_printf(hpx_verify_arena(judge->run), "%.*s%s", HPX_SPAN_ARG(number),
				     form);
	return put_number(judge, intent, number, *ret_text, ret_body);
}

/* Under a key of its own: an API that wants whole numbers may refuse "5.0",
 * and says nothing about its keys by that. */
static bool is_taken(struct hpx_judge *judge, const char *form)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_span text;
	struct hpx_span body;

	if (intent == NULL || !put_form(judge, intent, form, &text, &body))
		return false;
	const struct hpx_exchange *answer =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = body });
	if (answer == NULL || hpx_exchange_is_done(answer))
		return answer != NULL;
	return hpx_judge_not_applicable(judge, "the API does not take %s at all: %s", text.ptr,
					hpx_judge_words(judge, answer));
}

/* The number in another form, under the key of the first. */
static bool judge_form(struct hpx_judge *judge, struct hpx_intent *intent,
		       const struct hpx_exchange *first, const char *form)
{
	struct hpx_span text;
	struct hpx_span body;

	if (!put_form(judge, intent, form, &text, &body))
		return false;
	const struct hpx_exchange *again =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = body });
	if (again == NULL || (hpx_exchange_is_refused(again) && !is_taken(judge, form)))
		return false;
	return hpx_judge_same(judge, first, again, text.ptr) && hpx_judge_effects(judge, intent, 1);
}

void hpx_row_number_same(struct hpx_judge *judge)
{
	struct hpx_span number;

	hpx_judge_expects(judge, "one number as n, n.0 and ne0 gets one answer; one effect");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	if (intent == NULL || !find_number(judge, intent, &number))
		return;
	if (hpx_span_index(number, 'e') < number.len || hpx_span_index(number, 'E') < number.len) {
		hpx_judge_not_applicable(judge, "the number has an exponent already");
		return;
	}
	bool whole = hpx_span_index(number, '.') == number.len;
	const char *forms[] = { whole ? ".0" : "0", "e0" };
	const struct hpx_exchange *first = hpx_judge_do(judge, intent);
	if (first == NULL)
		return;
	for (size_t i = 0; i < 2; i++)
		if (!judge_form(judge, intent, first, forms[i]))
			return;
	hpx_judge_holds(judge, "%s each time; %s", hpx_judge_words(judge, first),
			hpx_judge_effect_words(judge, intent));
}

struct trap {
	struct hpx_span one;
	struct hpx_span other;
};

static const struct trap traps[] = {
	{ HPX_SPAN_INIT("9007199254740993"), HPX_SPAN_INIT("9007199254740992") },
	{ HPX_SPAN_INIT("1.000000000000000001"), HPX_SPAN_INIT("1.000000000000000002") },
};

/* Whether the API takes such a number at all (`*ret_taken`), and then does not
 * take the other for it. */
static bool judge_trap(struct hpx_judge *judge, const struct trap *trap, bool *ret_taken)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_span number;
	struct hpx_span one;
	struct hpx_span other;

	*ret_taken = false;
	if (intent == NULL || !find_number(judge, intent, &number) ||
	    !put_number(judge, intent, number, trap->one, &one) ||
	    !put_number(judge, intent, number, trap->other, &other))
		return false;
	const struct hpx_exchange *first =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = one });
	if (first == NULL)
		return false;
	if (!hpx_exchange_is_done(first))
		return true;
	*ret_taken = true;
	const struct hpx_exchange *second =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = other });
	if (second == NULL)
		return false;
	if (hpx_exchange_is_refused(second))
		return hpx_judge_effects(judge, intent, 1);
	hpx_judge_broken(judge, "%s under the key of %s (#%u) was answered %s; the first (#%u) was %s",
			 trap->other.ptr, trap->one.ptr, second->number,
			 hpx_judge_words(judge, second), first->number,
			 hpx_judge_words(judge, first));
	hpx_judge_blames_mismatch(judge, intent, first, second);
	return false;
}

void hpx_row_number_traps(struct hpx_judge *judge)
{
	unsigned taken = 0;

	hpx_judge_expects(judge, "4xx for ...992 under the key of 9007199254740993, and for 1.0...02 under that of 1.0...01");
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
		bool is_taken;

		if (!judge_trap(judge, &traps[i], &is_taken))
			return;
		taken += is_taken ? 1 : 0;
	}
	if (taken == 0)
		hpx_judge_not_applicable(judge, "the API does not take such numbers");
	else
		hpx_judge_holds(judge, "refused%s", taken == 1 ? "; the API takes only one kind of such numbers" : ", both");
}
