/* The key itself: missing, empty, too long, repeated, malformed, new. */
#include <stdio.h>

#include "verify/rows.h"

/* Longer than any API's bound that we know of; 255 is the common one. */
#define LONG_KEY_BYTES 300

static bool is_ietf(struct hpx_judge *judge)
{
	return hpx_verify_dialect(judge->run) == HPX_DIALECT_IETF;
}

static bool is_stripe(struct hpx_judge *judge)
{
	return hpx_verify_dialect(judge->run) == HPX_DIALECT_STRIPE;
}

/* A new intent sent with these key lines. NULL: the verdict is given. */
static const struct hpx_exchange *send_with(struct hpx_judge *judge, const struct hpx_span *values,
					    size_t count, struct hpx_intent **ret_intent)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);

	*ret_intent = intent;
	if (intent == NULL)
		return NULL;
	return hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .key_values = values, .key_count = count });
}

void hpx_row_key_missing(struct hpx_judge *judge)
{
	struct hpx_intent *intent;

	/* Where the dialect was not named, the draft's "required" is the
	 * server's choice, and both are consistent. */
	enum hpx_dialect asked = hpx_verify_spec_of(judge->run)->dialect;
	hpx_judge_expects(judge, "%s",
			  asked == HPX_DIALECT_IETF   ? "400, and no effect" :
			  asked == HPX_DIALECT_STRIPE ? "it is executed" :
							"400 and no effect, or it is executed");
	const struct hpx_exchange *answer =
		send_with(judge, HPX_RAW_KEY(HPX_SPAN("")), 0, &intent);
	if (answer == NULL)
		return;
	bool done = hpx_exchange_is_done(answer);
	bool right = (done && asked != HPX_DIALECT_IETF) ||
		     (answer->status == 400 && asked != HPX_DIALECT_STRIPE);
	if (!right)
		hpx_judge_broken(judge, "without a key (#%u): %s; %s", answer->number,
				 hpx_judge_words(judge, answer),
				 hpx_judge_effect_words(judge, intent));
	else if (hpx_judge_effects(judge, intent, done ? 1 : 0))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, answer),
				hpx_judge_effect_words(judge, intent));
}

/* Whether keys are whatever stands there, quotes included. Stripe's are, the
 * draft's are Strings; where the dialect was not named, an API that takes `k` and
 * `"k"` for one key reads Strings. False on trouble: its verdict is given. */
static bool tell_opaque(struct hpx_judge *judge, bool *ret_opaque)
{
	enum hpx_dialect asked = hpx_verify_spec_of(judge->run)->dialect;
	char quoted[HPX_INTENT_KEY_SIZE + 2];

	*ret_opaque = is_stripe(judge);
	if (asked != HPX_DIALECT_AUTO || *ret_opaque)
		return true;
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	const struct hpx_exchange *bare = intent != NULL ? hpx_judge_do(judge, intent) : NULL;
	if (bare == NULL)
		return false;
	snprintf(quoted, sizeof(quoted), "\"%s\"", intent->key);
	struct hpx_span value = hpx_span_of(quoted);
	const struct hpx_exchange *other = hpx_judge_send(
		judge, &(struct hpx_sending){ .intent = intent, .key_values = &value, .key_count = 1 });
	if (other == NULL)
		return false;
	*ret_opaque = !hpx_exchange_same(bare, other);
	return true;
}

void hpx_row_key_empty(struct hpx_judge *judge)
{
	static const struct hpx_span values[] = { HPX_SPAN_INIT(""), HPX_SPAN_INIT("\"\"") };
	static const char *const names[] = { "an empty key", "the empty key \"\"" };
	struct hpx_intent *intent;
	bool opaque;

	if (!tell_opaque(judge, &opaque))
		return;
	/* Then two quotes are a key of two bytes. */
	size_t count = opaque ? 1 : 2;
	hpx_judge_expects(judge, "4xx, and no effect, for an empty key%s",
			  count == 2 ? " and for \"\"" : "");
	for (size_t i = 0; i < count; i++) {
		const struct hpx_exchange *answer = send_with(judge, &values[i], 1, &intent);
		if (answer == NULL || !hpx_judge_refused(judge, intent, answer, names[i], 0))
			return;
	}
	hpx_judge_holds(judge, "refused, without effect");
}

/* Another key in each run, for the last one may be remembered; in quotes where
 * keys are sent so. Gives the place of the byte that differs. */
static size_t make_long_key(struct hpx_judge *judge, char key[LONG_KEY_BYTES])
{
	bool quoted = hpx_verify_spec_of(judge->run)->dialect == HPX_DIALECT_IETF;
	char begin[40];
	int n = snprintf(begin, sizeof(begin), "%shapax-verify-%016llx", quoted ? "\"" : "",
			 (unsigned long long)hpx_verify_random(judge->run));

	memset(key, 'k', LONG_KEY_BYTES);
	memcpy(key, begin, (size_t)n);
	if (quoted)
		key[LONG_KEY_BYTES - 1] = '"';
	return LONG_KEY_BYTES - (quoted ? 2 : 1);
}

void hpx_row_key_too_long(struct hpx_judge *judge)
{
	char key[LONG_KEY_BYTES];
	struct hpx_span value = hpx_span(key, sizeof(key));

	hpx_judge_expects(judge, "keys of 300 bytes that differ in the last one are refused (4xx, no effect) or told apart");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	if (intent == NULL)
		return;
	/* One body for both: nothing but the key tells them apart. */
	struct hpx_sending sending = { .intent = intent, .key_values = &value, .key_count = 1 };
	size_t last = make_long_key(judge, key);
	key[last] = '1';
	const struct hpx_exchange *one = hpx_judge_send(judge, &sending);
	if (one == NULL)
		return;
	key[last] = '2';
	const struct hpx_exchange *other = hpx_judge_send(judge, &sending);
	if (other == NULL)
		return;
	bool done = hpx_exchange_is_done(one);
	if (!done || !hpx_exchange_is_done(other)) {
		/* Where the first is executed and the second is not, its body may be
		 * one that must not come twice. */
		if ((done || hpx_judge_refused(judge, intent, one, "a long key", 0)) &&
		    hpx_judge_refused(judge, intent, other, "a long key", done ? 1 : 0))
			hpx_judge_holds(judge, "%s", hpx_judge_words(judge, other));
	} else if (hpx_judge_own(judge, intent, one, other, "the second long key")) {
		hpx_judge_holds(judge, "both are executed");
	}
}

void hpx_row_key_repeated(struct hpx_judge *judge)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	const char *quote =
		hpx_verify_spec_of(judge->run)->dialect == HPX_DIALECT_IETF ? "\"" : "";
	char keys[2][HPX_INTENT_KEY_SIZE + 2];

	hpx_judge_expects(judge, "4xx, and no effect, for two key lines with different values");
	if (intent == NULL)
		return;
	snprintf(keys[0], sizeof(keys[0]), "%s%s%s", quote, intent->key, quote);
	snprintf(keys[1], sizeof(keys[1]), "%shapax-verify-%016llx%s", quote,
		 (unsigned long long)hpx_verify_random(judge->run), quote);
	struct hpx_span values[] = { hpx_span_of(keys[0]), hpx_span_of(keys[1]) };
	const struct hpx_exchange *answer = hpx_judge_send(
		judge, &(struct hpx_sending){ .intent = intent, .key_values = values, .key_count = 2 });
	if (answer != NULL && hpx_judge_refused(judge, intent, answer, "the request with two keys", 0))
		hpx_judge_holds(judge, "%s", hpx_judge_words(judge, answer));
}

struct malformed {
	const char *name;
	struct hpx_span value;
	bool both; /* malformed where keys are opaque as well */
};

/* Where keys are opaque, only bytes that no header should have count. */
static const struct malformed malformed_keys[] = {
	{ "a quoted key without its end", HPX_SPAN_INIT("\"hapax-verify"), false },
	{ "two quoted keys in one line", HPX_SPAN_INIT("\"hapax\", \"verify\""), false },
	{ "a key of bytes beyond ASCII", HPX_SPAN_INIT("hapax-\xc3\xa4\xff-verify"), true },
};

/* Never a server error; where keys are Strings, refused. */
static bool judge_malformed(struct hpx_judge *judge, const struct malformed *malformed, bool refused)
{
	struct hpx_intent *intent;
	const struct hpx_exchange *answer = send_with(judge, &malformed->value, 1, &intent);

	if (answer == NULL)
		return false;
	if (refused)
		return hpx_judge_refused(judge, intent, answer, malformed->name, 0);
	if (answer->status < 500)
		return hpx_exchange_is_done(answer) || hpx_judge_effects(judge, intent, 0);
	return hpx_judge_broken(judge, "%s (#%u) was answered %s", malformed->name, answer->number,
				hpx_judge_words(judge, answer));
}

void hpx_row_key_malformed(struct hpx_judge *judge)
{
	bool opaque;

	if (!tell_opaque(judge, &opaque))
		return;
	bool refused = is_ietf(judge) && !opaque;
	hpx_judge_expects(judge, "%s",
			  refused ? "4xx, and no effect, for each malformed key" :
				    "no server error for a malformed key");
	for (size_t i = 0; i < sizeof(malformed_keys) / sizeof(malformed_keys[0]); i++)
		if ((malformed_keys[i].both || !opaque) &&
		    !judge_malformed(judge, &malformed_keys[i], refused))
			return;
	hpx_judge_holds(judge, "%s", refused ? "each is refused, without effect" : "no server error");
}

/* The same bytes under another key; its effects are its own where they are
 * counted by the key. */
static struct hpx_intent *under_new_key(struct hpx_judge *judge, const struct hpx_intent *intent)
{
	const struct hpx_intent *keyed = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_intent *copy = hpx_arena_alloc(hpx_verify_arena(judge->run), sizeof(*copy));

	if (keyed == NULL)
		return NULL;
	if (copy == NULL) {
		hpx_judge_undecided(judge, "out of memory");
		return NULL;
	}
	*copy = *intent;
	memcpy(copy->key, keyed->key, sizeof(copy->key));
	copy->effects_before = keyed->effects_before;
	return copy;
}

/* Whether another body with the same variables, under one more key, is refused
 * alike: then it is a number in it that may be used once, not the body. */
static bool is_refused_for_itself(struct hpx_judge *judge, const struct hpx_intent *intent,
				  const struct hpx_exchange *refused)
{
	struct hpx_span body;

	if (!hpx_exchange_is_refused(refused) || !hpx_judge_other_body(judge, intent, &body))
		return false;
	struct hpx_intent *anew = under_new_key(judge, intent);
	const struct hpx_exchange *answer = anew == NULL ? NULL :
							   hpx_judge_send(judge, &(struct hpx_sending){ .intent = anew, .body = body });
	return answer != NULL && answer->status == refused->status;
}

/* The same body was not executed under its new key. */
static void judge_refused_anew(struct hpx_judge *judge, const struct hpx_intent *intent,
			       const struct hpx_exchange *refused)
{
	const char *words = hpx_judge_words(judge, refused);

	if (is_refused_for_itself(judge, intent, refused))
		hpx_judge_not_applicable(judge, "a number in the body may be used once, under any key (give a `body` without one): %s",
					 words);
	else
		hpx_judge_broken(judge, "the same body under a new key (#%u) was answered %s",
				 refused->number, words);
}

void hpx_row_new_key(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "the same body under another key is executed: 2xx, and a second effect");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_intent *anew = intent != NULL ? under_new_key(judge, intent) : NULL;
	const struct hpx_exchange *first = anew != NULL ? hpx_judge_do(judge, intent) : NULL;
	if (first == NULL)
		return;
	const struct hpx_exchange *second =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = anew });
	if (second == NULL)
		return;
	if (!hpx_exchange_is_done(second)) {
		judge_refused_anew(judge, intent, second);
		return;
	}
	bool by_key = hpx_judge_counts_by(judge, HPX_SPAN("{{key}}"));
	if (hpx_judge_own(judge, intent, first, second, "the new key") &&
	    hpx_judge_effects(judge, intent, by_key ? 1 : 2) &&
	    hpx_judge_effects(judge, anew, by_key ? 1 : 2))
		hpx_judge_holds(judge, "%s, then %s", hpx_judge_words(judge, first),
				hpx_judge_words(judge, second));
}
