/* Comparisons that end in a sentence: is it the same answer, whose is it, how
 * many effects are there. */
#include <inttypes.h>

#include "base/assert.h"
#include "verify/judge.h"
#include "verify/rewrite.h"

static bool of_one_kind(const struct hpx_exchange *a, const struct hpx_exchange *b)
{
	return a->status == b->status || (hpx_exchange_is_done(a) && hpx_exchange_is_done(b));
}

bool hpx_exchange_same(const struct hpx_exchange *a, const struct hpx_exchange *b)
{
	return a->end == HPX_EXCHANGE_ANSWERED && b->end == HPX_EXCHANGE_ANSWERED &&
	       of_one_kind(a, b) && a->body_bytes == b->body_bytes &&
	       memcmp(a->body_hash, b->body_hash, sizeof(a->body_hash)) == 0;
}

bool hpx_judge_is_in_progress(struct hpx_judge *judge, const struct hpx_exchange *exchange)
{
	if (exchange->end != HPX_EXCHANGE_ANSWERED)
		return false;
	if (exchange->status == 202)
		return hpx_exchange_field(exchange, HPX_SPAN("Location")).ptr != NULL;
	if (exchange->status == 425)
		return true;
	if (exchange->status != 409)
		return false;
	struct hpx_span code = hpx_judge_code(judge, exchange);
	return !hpx_span_eq(code, HPX_SPAN("response_not_kept")) &&
	       !hpx_span_eq(code, HPX_SPAN("idempotency_outcome_unknown"));
}

/* An answer that every request gets, which is not marked as a replay. */
static bool tells_nothing(const struct hpx_judge *judge, const struct hpx_exchange *answer)
{
	return judge->notes->answers_alike && !hpx_verify_counts(judge->run) &&
	       !hpx_judge_is_marked(answer);
}

bool hpx_judge_same(struct hpx_judge *judge, const struct hpx_exchange *first,
		    const struct hpx_exchange *second, const char *what)
{
	if (hpx_exchange_same(first, second) && tells_nothing(judge, second))
		return hpx_judge_undecided(judge, "%s (#%u) was answered like the first (#%u), but so is every other request: whether it was executed again cannot be seen (give `effects`)",
					   what, second->number, first->number);
	if (hpx_exchange_same(first, second))
		return true;
	const char *was = hpx_judge_words(judge, first);
	const char *is = hpx_judge_words(judge, second);
	const char *effects = judge->intent != NULL ?
				      hpx_judge_effect_words(judge, judge->intent) :
				      "effects not counted";
	if (strcmp(was, is) == 0)
		return hpx_judge_broken(judge, "%s (#%u) has other bytes further on than the answer (#%u), %s; %s",
					what, second->number, first->number, was, effects);
	return hpx_judge_broken(judge, "%s (#%u) was answered %s; the answer (#%u) was %s; %s", what,
				second->number, is, first->number, was, effects);
}

bool hpx_judge_counts_by(const struct hpx_judge *judge, struct hpx_span variable)
{
	struct hpx_span path = hpx_verify_spec_of(judge->run)->effects_path;

	for (; path.len >= variable.len; path = hpx_span_skip(path, 1))
		if (hpx_span_starts(path, variable))
			return true;
	return false;
}

bool hpx_judge_counts_apart(const struct hpx_judge *judge)
{
	return hpx_judge_counts_by(judge, HPX_SPAN("{{key}}")) ||
	       hpx_judge_counts_by(judge, HPX_SPAN("{{uuid}}")) ||
	       hpx_judge_counts_by(judge, HPX_SPAN("{{n}}"));
}

bool hpx_judge_count(struct hpx_judge *judge, const struct hpx_intent *intent,
		     uint64_t *ret_effects)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	*ret_effects = 0;
	if (!hpx_verify_counts(judge->run) ||
	    hpx_verify_effects(judge->run, intent, ret_effects, problem) == HPX_OK)
		return true;
	const char *over = hpx_verify_over(judge->run);
	return hpx_judge_undecided(judge, "the effects cannot be counted: %s",
				   over != NULL ? over : problem);
}

/* A list may be a moment behind its API: fewer than there should be are looked
 * at again. More never become fewer. */
bool hpx_judge_effects(struct hpx_judge *judge, const struct hpx_intent *intent, uint64_t want)
{
	uint64_t effects;

	if (!hpx_verify_counts(judge->run))
		return true;
	for (unsigned look = 0;; look++) {
		if (!hpx_judge_count(judge, intent, &effects))
			return false;
		if (effects == want)
			return true;
		if (effects > want || look == HPX_JUDGE_LOOKS_MAX)
			break;
		hpx_verify_pause(judge->run, HPX_JUDGE_LOOK_AGAIN_MS);
	}
	return hpx_judge_broken(judge,
				"%" PRIu64 " effect%s, where there should be %" PRIu64 " (key %.64s)",
				effects, effects == 1 ? "" : "s", want, intent->key);
}

bool hpx_judge_counted_more(struct hpx_judge *judge, const struct hpx_intent *intent, uint64_t max)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects = 0;

	return hpx_verify_counts(judge->run) &&
	       hpx_verify_effects(judge->run, intent, &effects, problem) == HPX_OK && effects > max;
}

void hpx_judge_blames(struct hpx_judge *judge, unsigned guarantee, const char *why)
{
	HPX_ASSERT(guarantee <= HPX_GUARANTEE_MAX);
	judge->finding->blamed |= 1u << guarantee;
	if (why != NULL)
		judge->finding->why = why;
}

bool hpx_judge_refused(struct hpx_judge *judge, struct hpx_intent *intent,
		       const struct hpx_exchange *exchange, const char *what, uint64_t effects)
{
	if (hpx_exchange_is_refused(exchange))
		return hpx_judge_effects(judge, intent, effects);
	return hpx_judge_broken(judge, "%s (#%u) was answered %s; %s", what, exchange->number,
				hpx_judge_words(judge, exchange),
				hpx_judge_effect_words(judge, intent));
}

enum hpx_whose hpx_judge_whose(struct hpx_judge *judge, const struct hpx_exchange *first,
			       const struct hpx_exchange *second)
{
	if (!of_one_kind(first, second))
		return HPX_WHOSE_OWN;
	struct hpx_span one = hpx_verify_resource(judge->run, first);
	struct hpx_span other = hpx_verify_resource(judge->run, second);
	if (one.len > 0 && other.len > 0 && !judge->notes->resources_alike)
		return hpx_span_eq(one, other) ? HPX_WHOSE_FIRST : HPX_WHOSE_OWN;
	if (!hpx_exchange_same(first, second))
		return HPX_WHOSE_OWN;
	return hpx_judge_is_marked(second) ? HPX_WHOSE_FIRST : HPX_WHOSE_OPEN;
}

void hpx_judge_blames_mismatch(struct hpx_judge *judge, const struct hpx_intent *intent,
			       const struct hpx_exchange *first,
			       const struct hpx_exchange *second)
{
	if (judge->finding->verdict != HPX_ROW_BROKEN ||
	    hpx_judge_whose(judge, first, second) != HPX_WHOSE_OWN)
		return;
	if (hpx_judge_counted_more(judge, intent, 1))
		hpx_judge_blames(judge, HPX_GUARANTEE_ONCE,
				 "A program that mixes up its keys has both executed under one key: who retries with something changed pays again.");
	else
		hpx_judge_blames(judge, HPX_GUARANTEE_CONTRACT,
				 "A program that mixes up its keys is not told so.");
}

bool hpx_judge_own(struct hpx_judge *judge, const struct hpx_intent *intent,
		   const struct hpx_exchange *first, const struct hpx_exchange *second,
		   const char *what)
{
	enum hpx_whose whose = hpx_judge_whose(judge, first, second);
	uint64_t effects;

	if (whose == HPX_WHOSE_OWN)
		return true;
	if (whose == HPX_WHOSE_FIRST)
		return hpx_judge_broken(judge, "%s (#%u) got the answer of the first (#%u): %s",
					what, second->number, first->number,
					hpx_judge_words(judge, second));
	if (!hpx_judge_count(judge, intent, &effects))
		return false;
	if (effects > 1)
		return true;
	return hpx_judge_undecided(judge,
				   "%s (#%u) was answered like the first (#%u), and nothing tells whose answer it is (%s): %s",
				   what, second->number, first->number,
				   judge->notes->resources_alike ?
					   "`resource` names the same for different requests; give `effects`" :
					   "give `resource`",
				   hpx_judge_words(judge, second));
}

bool hpx_judge_other_body(struct hpx_judge *judge, const struct hpx_intent *intent,
			  struct hpx_span *ret_body)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(judge->run);
	struct hpx_span body = { NULL, 0 };

	if (spec->other_body.len > 0)
		body = hpx_verify_fill(judge->run, intent, spec->other_body);
	else if (hpx_rewrite_other(intent->body, spec->number, hpx_verify_arena(judge->run),
				   &body) != HPX_OK)
		body.ptr = NULL;
	if (body.ptr == NULL || hpx_span_eq(body, intent->body))
		return hpx_judge_not_applicable(judge,
						"no second body can be made of this one (give `other_body`)");
	*ret_body = body;
	return true;
}
