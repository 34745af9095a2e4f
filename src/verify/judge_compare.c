/* Comparisons that end in a sentence: is it the same answer, whose is it, how
 * many effects are there. */
#include <inttypes.h>

#include "base/assert.h"
#include "verify/judge.h"
#include "verify/rewrite.h"

static bool of_one_kind(const struct hpx_verify_exchange *a, const struct hpx_verify_exchange *b)
{
	return a->status == b->status || (hpx_check_is_2xx(a) && hpx_check_is_2xx(b));
}

bool hpx_check_same_answer(const struct hpx_verify_exchange *a, const struct hpx_verify_exchange *b)
{
	return a->end == HPX_EXCHANGE_ANSWERED && b->end == HPX_EXCHANGE_ANSWERED &&
	       of_one_kind(a, b) && a->body_bytes == b->body_bytes &&
	       memcmp(a->body_hash, b->body_hash, sizeof(a->body_hash)) == 0;
}

bool hpx_check_is_in_progress(struct hpx_check *check, const struct hpx_verify_exchange *exchange)
{
	if (exchange->end != HPX_EXCHANGE_ANSWERED)
		return false;
	if (exchange->status == 202)
		return hpx_verify_exchange_field(exchange, HPX_SPAN("Location")).ptr != NULL;
	if (exchange->status == 425)
		return true;
	if (exchange->status != 409)
		return false;
	struct hpx_span code = hpx_check_problem_code(check, exchange);
	return !hpx_span_eq(code, HPX_SPAN("response_not_kept")) &&
	       !hpx_span_eq(code, HPX_SPAN("idempotency_outcome_unknown"));
}

/* An answer that every request gets, which is not marked as a replay. */
static bool tells_nothing(const struct hpx_check *check, const struct hpx_verify_exchange *answer)
{
	return check->notes->answers_alike && !hpx_verify_counts_effects(check->run) &&
	       !hpx_check_is_replay(answer);
}

bool hpx_check_same(struct hpx_check *check, const struct hpx_verify_exchange *first,
		    const struct hpx_verify_exchange *second, const char *what)
{
	if (hpx_check_same_answer(first, second) && tells_nothing(check, second))
		return hpx_check_undecided(check, "%s (#%u) was answered like the first (#%u), but so is every other request: whether it was executed again cannot be seen (give `effects`)",
					   what, second->number, first->number);
	if (hpx_check_same_answer(first, second))
		return true;
	const char *was = hpx_check_describe(check, first);
	const char *is = hpx_check_describe(check, second);
	const char *effects = check->op != NULL ?
				      hpx_check_describe_effects(check, check->op) :
				      "effects not counted";
	if (strcmp(was, is) == 0)
		return hpx_check_broken(check, "%s (#%u) has other bytes further on than the answer (#%u), %s; %s",
					what, second->number, first->number, was, effects);
	return hpx_check_broken(check, "%s (#%u) was answered %s; the answer (#%u) was %s; %s", what,
				second->number, is, first->number, was, effects);
}

bool hpx_check_counts_by(const struct hpx_check *check, struct hpx_span variable)
{
	struct hpx_span path = hpx_verify_spec_of(check->run)->effects_path;

	for (; path.len >= variable.len; path = hpx_span_skip(path, 1))
		if (hpx_span_starts(path, variable))
			return true;
	return false;
}

bool hpx_check_counts_per_op(const struct hpx_check *check)
{
	return hpx_check_counts_by(check, HPX_SPAN("{{key}}")) ||
	       hpx_check_counts_by(check, HPX_SPAN("{{uuid}}")) ||
	       hpx_check_counts_by(check, HPX_SPAN("{{n}}"));
}

bool hpx_check_count_effects(struct hpx_check *check, const struct hpx_verify_op *op,
			     uint64_t *ret_effects)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	*ret_effects = 0;
	if (!hpx_verify_counts_effects(check->run) ||
	    hpx_verify_effects(check->run, op, ret_effects, problem) == HPX_OK)
		return true;
	const char *over = hpx_verify_stop_reason(check->run);
	return hpx_check_undecided(check, "the effects cannot be counted: %s",
				   over != NULL ? over : problem);
}

/* A list may be a moment behind its API: fewer than there should be are looked
 * at again. More never become fewer. */
bool hpx_check_effects(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t want)
{
	uint64_t effects;

	if (!hpx_verify_counts_effects(check->run))
		return true;
	for (unsigned look = 0;; look++) {
		if (!hpx_check_count_effects(check, op, &effects))
			return false;
		if (effects == want)
			return true;
		if (effects > want || look == HPX_CHECK_RECOUNTS_MAX)
			break;
		hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
	}
	return hpx_check_broken(check,
				"%" PRIu64 " effect%s, where there should be %" PRIu64 " (key %.64s)",
				effects, effects == 1 ? "" : "s", want, op->key);
}

bool hpx_check_effects_exceed(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t max)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects = 0;

	return hpx_verify_counts_effects(check->run) &&
	       hpx_verify_effects(check->run, op, &effects, problem) == HPX_OK && effects > max;
}

void hpx_check_blame(struct hpx_check *check, unsigned guarantee, const char *why)
{
	HPX_ASSERT(guarantee <= HPX_GUARANTEE_MAX);
	check->result->blamed |= 1u << guarantee;
	if (why != NULL)
		check->result->why = why;
}

bool hpx_check_refused(struct hpx_check *check, struct hpx_verify_op *op,
		       const struct hpx_verify_exchange *exchange, const char *what, uint64_t effects)
{
	if (hpx_check_is_4xx(exchange))
		return hpx_check_effects(check, op, effects);
	return hpx_check_broken(check, "%s (#%u) was answered %s; %s", what, exchange->number,
				hpx_check_describe(check, exchange),
				hpx_check_describe_effects(check, op));
}

enum hpx_answer_owner hpx_check_whose_answer(struct hpx_check *check, const struct hpx_verify_exchange *first,
					     const struct hpx_verify_exchange *second)
{
	if (!of_one_kind(first, second))
		return HPX_OWNER_SELF;
	struct hpx_span one = hpx_verify_resource(check->run, first);
	struct hpx_span other = hpx_verify_resource(check->run, second);
	if (one.len > 0 && other.len > 0 && !check->notes->resources_alike)
		return hpx_span_eq(one, other) ? HPX_OWNER_FIRST : HPX_OWNER_SELF;
	if (!hpx_check_same_answer(first, second))
		return HPX_OWNER_SELF;
	return hpx_check_is_replay(second) ? HPX_OWNER_FIRST : HPX_OWNER_UNKNOWN;
}

void hpx_check_blame_mismatch(struct hpx_check *check, const struct hpx_verify_op *op,
			      const struct hpx_verify_exchange *first,
			      const struct hpx_verify_exchange *second)
{
	if (check->result->verdict != HPX_ROW_BROKEN ||
	    hpx_check_whose_answer(check, first, second) != HPX_OWNER_SELF)
		return;
	if (hpx_check_effects_exceed(check, op, 1))
		hpx_check_blame(check, HPX_GUARANTEE_ONCE,
				"A program that mixes up its keys has both executed under one key: who retries with something changed pays again.");
	else
		hpx_check_blame(check, HPX_GUARANTEE_CONTRACT,
				"A program that mixes up its keys is not told so.");
}

bool hpx_check_own_answer(struct hpx_check *check, const struct hpx_verify_op *op,
			  const struct hpx_verify_exchange *first, const struct hpx_verify_exchange *second,
			  const char *what)
{
	enum hpx_answer_owner whose = hpx_check_whose_answer(check, first, second);
	uint64_t effects;

	if (whose == HPX_OWNER_SELF)
		return true;
	if (whose == HPX_OWNER_FIRST)
		return hpx_check_broken(check, "%s (#%u) got the answer of the first (#%u): %s",
					what, second->number, first->number,
					hpx_check_describe(check, second));
	if (!hpx_check_count_effects(check, op, &effects))
		return false;
	if (effects > 1)
		return true;
	return hpx_check_undecided(check,
				   "%s (#%u) was answered like the first (#%u), and nothing tells whose answer it is (%s): %s",
				   what, second->number, first->number,
				   check->notes->resources_alike ?
					   "`resource` names the same for different requests; give `effects`" :
					   "give `resource`",
				   hpx_check_describe(check, second));
}

bool hpx_check_other_body(struct hpx_check *check, const struct hpx_verify_op *op,
			  struct hpx_span *ret_body)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);
	struct hpx_span body = { NULL, 0 };

	if (spec->other_body.len > 0)
		body = hpx_verify_op_fill(check->run, op, spec->other_body);
	else if (hpx_rewrite_other(op->body, spec->number, hpx_verify_arena(check->run),
				   &body) != HPX_OK)
		body.ptr = NULL;
	if (body.ptr == NULL || hpx_span_eq(body, op->body))
		return hpx_check_not_applicable(check,
						"no second body can be made of this one (give `other_body`)");
	*ret_body = body;
	return true;
}
