/* The rules in their order, and the reader of the words that they rest on. */
#include "core/retry.h"

#include "base/status.h"
#include "core/json_tree.h"

/* These concern the caller, not the request: they say nothing of what an
 * earlier attempt did whose answer was lost. */
static bool is_about_the_caller(unsigned status)
{
	return status == 401 || status == 403 || status == 407 || status == 421;
}

/* The server says of this attempt that it did nothing. */
static bool is_turned_away(const struct hpx_retry_facts *facts)
{
	return facts->status == 408 || facts->status == 425 || facts->status == 429 ||
	       (facts->status == 503 && facts->retry_after_s >= 0);
}

/* In doubt, a 409 that says no more may be about the attempt that was lost: the
 * draft standard asks neither for a time to come back nor for a word. */
static bool is_in_progress(const struct hpx_retry_facts *facts, bool doubt)
{
	return facts->status == 409 &&
	       (doubt || facts->retry_after_s >= 0 || facts->idempotency_error);
}

/* A request that must be mended was not executed, unless the answer says so or is a
 * failure. */
static bool is_refused(const struct hpx_retry_facts *facts)
{
	if (facts->executed != HPX_EXECUTED_NONE)
		return facts->executed == HPX_EXECUTED_NO;
	return facts->status < 500;
}

static bool is_worth_another(const struct hpx_retry_facts *facts, bool doubt)
{
	return is_turned_away(facts) || is_in_progress(facts, doubt) || facts->status == 502 ||
	       facts->status == 503 || facts->status == 504;
}

static enum hpx_retry_action by_status(const struct hpx_retry_facts *facts, bool doubt)
{
	if (is_worth_another(facts, doubt))
		return HPX_RETRY_ACTION_again;
	if (is_about_the_caller(facts->status))
		return doubt ? HPX_RETRY_ACTION_stop : HPX_RETRY_ACTION_done;
	return facts->status < 500 ? HPX_RETRY_ACTION_done : HPX_RETRY_ACTION_stop;
}

/* The first attempt still runs, and its end is not known yet (`concurrent: accepted`).
 * A request that is delivered later is pending instead, and will be tried. */
static bool is_under_way(const struct hpx_retry_facts *facts)
{
	return facts->status == 202 && facts->operation && facts->in_progress;
}

static enum hpx_retry_action by_answer(const struct hpx_retry_facts *facts, bool doubt)
{
	if (is_under_way(facts))
		return HPX_RETRY_ACTION_again;
	if (facts->status < 400 || facts->replayed)
		return HPX_RETRY_ACTION_done;
	switch (facts->retry) {
	case HPX_RETRY_SAME_KEY:
		return HPX_RETRY_ACTION_again;
	case HPX_RETRY_NEVER:
		return HPX_RETRY_ACTION_done;
	case HPX_RETRY_AFTER_FIX:
		return doubt || !is_refused(facts) ? HPX_RETRY_ACTION_stop : HPX_RETRY_ACTION_done;
	case HPX_RETRY_NONE:
		break;
	}
	return by_status(facts, doubt);
}

/* Whether this attempt may have happened, where its answer is not definite. */
static bool is_doubtful(const struct hpx_retry_facts *facts)
{
	if (facts->reached != HPX_REACHED_ANSWER)
		return facts->reached == HPX_REACHED_SILENCE;
	if (facts->executed != HPX_EXECUTED_NONE)
		return facts->executed != HPX_EXECUTED_NO;
	return !is_turned_away(facts) && !is_about_the_caller(facts->status);
}

struct hpx_retry_decision hpx_retry_decide(const struct hpx_retry_facts *facts, bool doubt)
{
	struct hpx_retry_decision decision = { .action = HPX_RETRY_ACTION_again };

	if (facts->reached == HPX_REACHED_ANSWER)
		decision.action = by_answer(facts, doubt);
	if (decision.action != HPX_RETRY_ACTION_done)
		decision.doubt = doubt || is_doubtful(facts);
	if (decision.action == HPX_RETRY_ACTION_again && facts->reached == HPX_REACHED_ANSWER &&
	    facts->retry_after_s > 0)
		decision.wait_s = facts->retry_after_s;
	HPX_ASSERT(decision.action != HPX_RETRY_ACTION_done || !decision.doubt);
	return decision;
}

static uint32_t member(const struct hpx_json_tree *tree, uint32_t object, struct hpx_span name)
{
	if (tree->nodes[object].kind != HPX_JSON_OBJECT)
		return HPX_JSON_NONE;
	uint32_t at = tree->nodes[object].first;
	while (at != HPX_JSON_NONE && !hpx_span_eq(tree->nodes[at].name, name))
		at = tree->nodes[at].next;
	return at;
}

/* A member's text; ptr NULL where there is none, or no string. */
static struct hpx_span word(const struct hpx_json_tree *tree, uint32_t object,
			    struct hpx_span name)
{
	uint32_t at = member(tree, object, name);

	if (at == HPX_JSON_NONE || tree->nodes[at].kind != HPX_JSON_STRING)
		return hpx_span(NULL, 0);
	return tree->nodes[at].text;
}

static enum hpx_retry_word retry_word(struct hpx_span text)
{
	if (hpx_span_eq(text, HPX_SPAN("same_key")))
		return HPX_RETRY_SAME_KEY;
	if (hpx_span_eq(text, HPX_SPAN("after_fix")))
		return HPX_RETRY_AFTER_FIX;
	return hpx_span_eq(text, HPX_SPAN("never")) ? HPX_RETRY_NEVER : HPX_RETRY_NONE;
}

static enum hpx_executed_word executed_word(struct hpx_span text)
{
	if (hpx_span_eq(text, HPX_SPAN("no")))
		return HPX_EXECUTED_NO;
	if (hpx_span_eq(text, HPX_SPAN("yes")))
		return HPX_EXECUTED_YES;
	return hpx_span_eq(text, HPX_SPAN("unknown")) ? HPX_EXECUTED_UNKNOWN : HPX_EXECUTED_NONE;
}

static void read_words(const struct hpx_json_tree *tree, uint32_t object,
		       struct hpx_retry_facts *facts)
{
	facts->retry = retry_word(word(tree, object, HPX_SPAN("retry")));
	facts->executed = executed_word(word(tree, object, HPX_SPAN("executed")));
}

static void read_plain(const struct hpx_json_tree *tree, struct hpx_retry_facts *facts)
{
	uint32_t error = member(tree, 0, HPX_SPAN("error"));

	facts->in_progress = hpx_span_eq(word(tree, 0, HPX_SPAN("state")), HPX_SPAN("in_progress"));
	if (error == HPX_JSON_NONE)
		return;
	read_words(tree, error, facts);
	facts->idempotency_error = hpx_span_eq(word(tree, error, HPX_SPAN("type")),
					       HPX_SPAN("idempotency_error"));
}

static bool is_type(struct hpx_span content_type, struct hpx_span wanted)
{
	struct hpx_span type = hpx_span_first(content_type, hpx_span_index(content_type, ';'));

	return hpx_span_ieq(hpx_span_trim(type), wanted);
}

void hpx_retry_read_body(struct hpx_span content_type, struct hpx_span body,
			 struct hpx_retry_facts *facts)
{
	bool problem = is_type(content_type, HPX_SPAN("application/problem+json"));
	struct hpx_json_tree tree;

	if (body.len > HPX_RETRY_DOCUMENT_MAX ||
	    (!problem && !is_type(content_type, HPX_SPAN("application/json"))))
		return;
	/* A body that cannot be read says nothing. */
	if (hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree) != HPX_OK)
		return;
	if (problem)
		read_words(&tree, 0, facts);
	else
		read_plain(&tree, facts);
	hpx_json_tree_done(&tree);
}
