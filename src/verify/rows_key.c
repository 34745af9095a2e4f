/* The key itself: missing, empty, too long, repeated, malformed, new. */
#include <stdio.h>

#include "base/status.h"
#include "verify/row_check.h"

/* Longer than any API's bound that we know of; 255 is the common one. */
#define LONG_KEY_BYTES 300

static bool is_ietf(struct hpx_check *check)
{
	return hpx_verify_dialect(check->run) == HPX_DIALECT_IETF;
}

static bool is_bare(struct hpx_check *check)
{
	enum hpx_dialect dialect = hpx_verify_dialect(check->run);

	/* Bare bytes, as Stripe has them. */
	return dialect != HPX_DIALECT_AUTO && !hpx_dialects[dialect].strings;
}

/* A new operation. NULL, and the verdict is given, where the key is no header: its lines
 * cannot be changed. */
static struct hpx_verify_op *new_operation(struct hpx_check *check)
{
	if (hpx_dialects[hpx_verify_spec_of(check->run)->dialect].key_header != NULL)
		return hpx_check_op_new(check, HPX_REQUEST_main);
	hpx_check_not_applicable(check, "this dialect has the key in the body");
	return NULL;
}

/* A new operation, sent with these key lines. NULL: the verdict is given. */
static const struct hpx_verify_exchange *send_with(struct hpx_check *check, const struct hpx_span *values,
						   size_t count, struct hpx_verify_op **ret_intent)
{
	struct hpx_verify_op *op = new_operation(check);

	*ret_intent = op;
	if (op == NULL)
		return NULL;
	return hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .key_values = values, .key_count = count });
}

void hpx_row_key_missing(struct hpx_check *check)
{
	struct hpx_verify_op *op;

	/* Where the description names no dialect, the draft's "required" is the
	 * server's choice, and both are right. */
	enum hpx_dialect asked = hpx_verify_spec_of(check->run)->dialect;
	hpx_check_expect(check, "%s",
			 !hpx_dialects[asked].executes_missing ? "400, and no effect" :
			 !hpx_dialects[asked].refuses_missing  ? "it is executed" :
								 "400 and no effect, or it is executed");
	const struct hpx_verify_exchange *answer =
		send_with(check, HPX_RAW_KEY(HPX_SPAN("")), 0, &op);
	if (answer == NULL)
		return;
	bool done = hpx_check_is_2xx(answer);
	bool right = (done && hpx_dialects[asked].executes_missing) ||
		     (answer->status == 400 && hpx_dialects[asked].refuses_missing);
	if (!right)
		hpx_check_broken(check, "without a key (#%u): %s; %s", answer->number,
				 hpx_check_describe(check, answer),
				 hpx_check_describe_effects(check, op));
	else if (hpx_check_effects(check, op, done ? 1 : 0))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, answer),
				hpx_check_describe_effects(check, op));
}

/* Whether keys are opaque bytes, quotes included. Stripe's are; the draft's are
 * Strings. Where the description names no dialect, an API that takes `k` and `"k"` for
 * one key reads Strings. False: the verdict is given. */
static bool tell_opaque(struct hpx_check *check, bool *ret_opaque)
{
	enum hpx_dialect asked = hpx_verify_spec_of(check->run)->dialect;
	char quoted[HPX_VERIFY_KEY_SIZE + 2];

	*ret_opaque = is_bare(check);
	if (asked != HPX_DIALECT_AUTO || *ret_opaque)
		return true;
	struct hpx_verify_op *op = new_operation(check);
	const struct hpx_verify_exchange *bare = op != NULL ? hpx_check_execute(check, op) : NULL;
	if (bare == NULL)
		return false;
	snprintf(quoted, sizeof(quoted), "\"%s\"", op->key);
	struct hpx_span value = hpx_span_of(quoted);
	const struct hpx_verify_exchange *other = hpx_check_send(
		check, &(struct hpx_verify_variant){ .op = op, .key_values = &value, .key_count = 1 });
	if (other == NULL)
		return false;
	*ret_opaque = !hpx_check_same_answer(bare, other);
	return true;
}

void hpx_row_key_empty(struct hpx_check *check)
{
	static const struct hpx_span values[] = { HPX_SPAN_INIT(""), HPX_SPAN_INIT("\"\"") };
	static const char *const names[] = { "an empty key", "the empty key \"\"" };
	struct hpx_verify_op *op;
	bool opaque;

	if (!tell_opaque(check, &opaque))
		return;
	/* For opaque keys, two quotes are a key of two bytes. */
	size_t count = opaque ? 1 : 2;
	hpx_check_expect(check, "4xx, and no effect, for an empty key%s",
			 count == 2 ? " and for \"\"" : "");
	for (size_t i = 0; i < count; i++) {
		const struct hpx_verify_exchange *answer = send_with(check, &values[i], 1, &op);
		if (answer == NULL || !hpx_check_refused(check, op, answer, names[i], 0))
			return;
	}
	hpx_check_holds(check, "refused, without effect");
}

/* A random key, because the API may remember that of the last run; in quotes where keys
 * are sent so. Returns the index of the byte that differs. */
static size_t make_long_key(struct hpx_check *check, char key[LONG_KEY_BYTES])
{
	bool quoted = hpx_verify_spec_of(check->run)->dialect == HPX_DIALECT_IETF;
	char begin[40];
	int n = snprintf(begin, sizeof(begin), "%shapax-verify-%016llx", quoted ? "\"" : "",
			 (unsigned long long)hpx_verify_random(check->run));

	HPX_ASSERT(n > 0 && (size_t)n < sizeof(begin));
	memset(key, 'k', LONG_KEY_BYTES);
	memcpy(key, begin, (size_t)n);
	if (quoted)
		key[LONG_KEY_BYTES - 1] = '"';
	return LONG_KEY_BYTES - (quoted ? 2 : 1);
}

void hpx_row_key_too_long(struct hpx_check *check)
{
	char key[LONG_KEY_BYTES];
	struct hpx_span value = hpx_span(key, sizeof(key));

	hpx_check_expect(check, "keys of 300 bytes that differ in the last one are refused (4xx, no effect) or told apart");
	struct hpx_verify_op *op = new_operation(check);
	if (op == NULL)
		return;
	/* One body for both: only the key tells them apart. */
	struct hpx_verify_variant variant = { .op = op, .key_values = &value, .key_count = 1 };
	size_t last = make_long_key(check, key);
	key[last] = '1';
	const struct hpx_verify_exchange *one = hpx_check_send(check, &variant);
	if (one == NULL)
		return;
	key[last] = '2';
	const struct hpx_verify_exchange *other = hpx_check_send(check, &variant);
	if (other == NULL)
		return;
	bool done = hpx_check_is_2xx(one);
	if (!done || !hpx_check_is_2xx(other)) {
		/* Where the first is executed and the second is not, the body may be
		 * one that may not come twice. */
		if ((done || hpx_check_refused(check, op, one, "a long key", 0)) &&
		    hpx_check_refused(check, op, other, "a long key", done ? 1 : 0))
			hpx_check_holds(check, "%s", hpx_check_describe(check, other));
	} else if (hpx_check_own_answer(check, op, one, other, "the second long key")) {
		hpx_check_holds(check, "both are executed");
	}
}

void hpx_row_key_repeated(struct hpx_check *check)
{
	struct hpx_verify_op *op = new_operation(check);
	const char *quote =
		hpx_verify_spec_of(check->run)->dialect == HPX_DIALECT_IETF ? "\"" : "";
	char keys[2][HPX_VERIFY_KEY_SIZE + 2];

	hpx_check_expect(check, "4xx, and no effect, for two key lines with different values");
	if (op == NULL)
		return;
	snprintf(keys[0], sizeof(keys[0]), "%s%s%s", quote, op->key, quote);
	snprintf(keys[1], sizeof(keys[1]), "%shapax-verify-%016llx%s", quote,
		 (unsigned long long)hpx_verify_random(check->run), quote);
	struct hpx_span values[] = { hpx_span_of(keys[0]), hpx_span_of(keys[1]) };
	const struct hpx_verify_exchange *answer = hpx_check_send(
		check, &(struct hpx_verify_variant){ .op = op, .key_values = values, .key_count = 2 });
	if (answer != NULL && hpx_check_refused(check, op, answer, "the request with two keys", 0))
		hpx_check_holds(check, "%s", hpx_check_describe(check, answer));
}

struct malformed {
	const char *name;
	struct hpx_span value;
	bool both; /* malformed where keys are opaque as well */
};

/* For opaque keys, only bytes that no header should have are malformed. */
static const struct malformed malformed_keys[] = {
	{ "a quoted key without its end", HPX_SPAN_INIT("\"hapax-verify"), false },
	{ "two quoted keys in one line", HPX_SPAN_INIT("\"hapax\", \"verify\""), false },
	{ "a key of bytes beyond ASCII", HPX_SPAN_INIT("hapax-\xc3\xa4\xff-verify"), true },
};

/* Refused where keys are Strings; elsewhere any answer but a server error. */
static bool check_malformed(struct hpx_check *check, const struct malformed *malformed, bool refused)
{
	struct hpx_verify_op *op;
	const struct hpx_verify_exchange *answer = send_with(check, &malformed->value, 1, &op);

	if (answer == NULL)
		return false;
	if (refused)
		return hpx_check_refused(check, op, answer, malformed->name, 0);
	if (answer->status < 500)
		return hpx_check_is_2xx(answer) || hpx_check_effects(check, op, 0);
	return hpx_check_broken(check, "%s (#%u) was answered %s", malformed->name, answer->number,
				hpx_check_describe(check, answer));
}

void hpx_row_key_malformed(struct hpx_check *check)
{
	bool opaque;

	if (!tell_opaque(check, &opaque))
		return;
	bool refused = is_ietf(check) && !opaque;
	hpx_check_expect(check, "%s",
			 refused ? "4xx, and no effect, for each malformed key" :
				   "no server error for a malformed key");
	for (size_t i = 0; i < sizeof(malformed_keys) / sizeof(malformed_keys[0]); i++)
		if ((malformed_keys[i].both || !opaque) &&
		    !check_malformed(check, &malformed_keys[i], refused))
			return;
	hpx_check_holds(check, "%s", refused ? "each is refused, without effect" : "no server error");
}

/* The same request under a new key. Its effects are counted apart where they are
 * counted by the key. */
static struct hpx_verify_op *under_new_key(struct hpx_check *check, const struct hpx_verify_op *op)
{
	const struct hpx_verify_op *keyed = new_operation(check);
	struct hpx_verify_op *copy = hpx_arena_alloc(hpx_verify_arena(check->run), sizeof(*copy));

	if (keyed == NULL)
		return NULL;
	if (copy == NULL) {
		hpx_check_undecided(check, "out of memory");
		return NULL;
	}
	*copy = *op;
	memcpy(copy->key, keyed->key, sizeof(copy->key));
	copy->effects_before = keyed->effects_before;
	return copy;
}

/* Whether another body with the same variables, under one more key, is refused alike:
 * then a number in the body may be used once, and the body is not remembered. */
static bool is_refused_for_itself(struct hpx_check *check, const struct hpx_verify_op *op,
				  const struct hpx_verify_exchange *refused)
{
	struct hpx_span body;

	if (!hpx_check_is_4xx(refused) || !hpx_check_other_body(check, op, &body))
		return false;
	struct hpx_verify_op *anew = under_new_key(check, op);
	const struct hpx_verify_exchange *answer = anew == NULL ? NULL :
								  hpx_check_send(check, &(struct hpx_verify_variant){ .op = anew, .body = body });
	return answer != NULL && answer->status == refused->status;
}

/* The same body was not executed under its new key. */
static void check_refused_anew(struct hpx_check *check, const struct hpx_verify_op *op,
			       const struct hpx_verify_exchange *refused)
{
	const char *words = hpx_check_describe(check, refused);

	if (is_refused_for_itself(check, op, refused))
		hpx_check_not_applicable(check, "a number in the body may be used once, under any key (give a `body` without one): %s",
					 words);
	else
		hpx_check_broken(check, "the same body under a new key (#%u) was answered %s",
				 refused->number, words);
}

void hpx_row_new_key(struct hpx_check *check)
{
	hpx_check_expect(check, "the same body under another key is executed: 2xx, and a second effect");
	struct hpx_verify_op *op = new_operation(check);
	struct hpx_verify_op *anew = op != NULL ? under_new_key(check, op) : NULL;
	const struct hpx_verify_exchange *first = anew != NULL ? hpx_check_execute(check, op) : NULL;
	if (first == NULL)
		return;
	const struct hpx_verify_exchange *second =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = anew });
	if (second == NULL)
		return;
	if (!hpx_check_is_2xx(second)) {
		check_refused_anew(check, op, second);
		return;
	}
	bool by_key = hpx_check_counts_by(check, HPX_SPAN("{{key}}"));
	if (hpx_check_own_answer(check, op, first, second, "the new key") &&
	    hpx_check_effects(check, op, by_key ? 1 : 2) &&
	    hpx_check_effects(check, anew, by_key ? 1 : 2))
		hpx_check_holds(check, "%s, then %s", hpx_check_describe(check, first),
				hpx_check_describe(check, second));
}
