/* Bodies: the same JSON written differently is the same request, different numbers
 * are different requests, however alike a double makes them; bodies that are not
 * text, and large ones. */
#include "verify/rewrite.h"
#include "verify/row_check.h"

/* ---- JSON ---- */

/* Sends `body` under the key of the first request: the stored answer must come, and no
 * second effect. */
static bool check_rewritten(struct hpx_check *check, struct hpx_verify_op *op,
			    const struct hpx_verify_exchange *first, struct hpx_span body,
			    const char *what)
{
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = body });

	return again != NULL && hpx_check_same(check, first, again, what) &&
	       hpx_check_effects(check, op, 1);
}

static void check_spelling(struct hpx_check *check,
			   enum hpx_status (*rewrite)(struct hpx_span, struct hpx_arena *,
						      struct hpx_span *),
			   const char *lacks, const char *what)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span body;

	if (op == NULL)
		return;
	if (rewrite(op->body, hpx_verify_arena(check->run), &body) != HPX_OK) {
		hpx_check_not_applicable(check, "%s", lacks);
		return;
	}
	const struct hpx_verify_exchange *first = hpx_check_execute(check, op);
	if (first != NULL && check_rewritten(check, op, first, body, what))
		hpx_check_holds(check, "%s both times; %s", hpx_check_describe(check, first),
				hpx_check_describe_effects(check, op));
}

void hpx_row_member_order(struct hpx_check *check)
{
	hpx_check_expect(check, "the same members in another order get the first answer; one effect");
	check_spelling(check, hpx_rewrite_order,
		       "the body is no JSON object with two members or more",
		       "the same members in another order");
}

void hpx_row_white_space(struct hpx_check *check)
{
	hpx_check_expect(check, "the same JSON with other white space gets the first answer; one effect");
	check_spelling(check, hpx_rewrite_space, "the body is no JSON object",
		       "the same JSON with other white space");
}

/* Finds the number to vary. False: not applicable. */
static bool find_number(struct hpx_check *check, const struct hpx_verify_op *op,
			struct hpx_span *ret_number)
{
	if (hpx_rewrite_find(op->body, hpx_verify_spec_of(check->run)->number, ret_number) ==
	    HPX_OK)
		return true;
	return hpx_check_not_applicable(check, "the body has no JSON number to vary");
}

static bool put_number(struct hpx_check *check, const struct hpx_verify_op *op,
		       struct hpx_span number, struct hpx_span text, struct hpx_span *ret_body)
{
	if (hpx_rewrite_replace(op->body, number, text, hpx_verify_arena(check->run),
				ret_body) == HPX_OK)
		return true;
	return hpx_check_undecided(check, "out of memory");
}

static bool put_form(struct hpx_check *check, const struct hpx_verify_op *op, const char *form,
		     struct hpx_span *ret_text, struct hpx_span *ret_body)
{
	struct hpx_span number;

	if (!find_number(check, op, &number))
		return false;
	*ret_text = hpx_arena_printf(hpx_verify_arena(check->run), "%.*s%s", HPX_SPAN_ARG(number),
				     form);
	return put_number(check, op, number, *ret_text, ret_body);
}

/* Sends the form under a key of its own: an API that wants whole numbers may refuse
 * "5.0", and that says nothing about its keys. */
static bool is_taken(struct hpx_check *check, const char *form)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span text;
	struct hpx_span body;

	if (op == NULL || !put_form(check, op, form, &text, &body))
		return false;
	const struct hpx_verify_exchange *answer =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = body });
	if (answer == NULL || hpx_check_is_2xx(answer))
		return answer != NULL;
	return hpx_check_not_applicable(check, "the API does not take %s at all: %s", text.ptr,
					hpx_check_describe(check, answer));
}

/* Sends the number in another form, under the key of the first. */
static bool check_form(struct hpx_check *check, struct hpx_verify_op *op,
		       const struct hpx_verify_exchange *first, const char *form)
{
	struct hpx_span text;
	struct hpx_span body;

	if (!put_form(check, op, form, &text, &body))
		return false;
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = body });
	if (again == NULL || (hpx_check_is_4xx(again) && !is_taken(check, form)))
		return false;
	return hpx_check_same(check, first, again, text.ptr) && hpx_check_effects(check, op, 1);
}

void hpx_row_number_same(struct hpx_check *check)
{
	struct hpx_span number;

	hpx_check_expect(check, "one number as n, n.0 and ne0 gets one answer; one effect");
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	if (op == NULL || !find_number(check, op, &number))
		return;
	if (hpx_span_index(number, 'e') < number.len || hpx_span_index(number, 'E') < number.len) {
		hpx_check_not_applicable(check, "the number has an exponent already");
		return;
	}
	bool whole = hpx_span_index(number, '.') == number.len;
	const char *forms[] = { whole ? ".0" : "0", "e0" };
	const struct hpx_verify_exchange *first = hpx_check_execute(check, op);
	if (first == NULL)
		return;
	for (size_t i = 0; i < 2; i++)
		if (!check_form(check, op, first, forms[i]))
			return;
	hpx_check_holds(check, "%s each time; %s", hpx_check_describe(check, first),
			hpx_check_describe_effects(check, op));
}

struct trap {
	struct hpx_span one;
	struct hpx_span other;
};

static const struct trap traps[] = {
	{ HPX_SPAN_INIT("9007199254740993"), HPX_SPAN_INIT("9007199254740992") },
	{ HPX_SPAN_INIT("1.000000000000000001"), HPX_SPAN_INIT("1.000000000000000002") },
};

/* Whether the API takes such a number at all (`*ret_taken`), and then does not take the
 * other one for it. */
static bool check_trap(struct hpx_check *check, const struct trap *trap, bool *ret_taken)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span number;
	struct hpx_span one;
	struct hpx_span other;

	*ret_taken = false;
	if (op == NULL || !find_number(check, op, &number) ||
	    !put_number(check, op, number, trap->one, &one) ||
	    !put_number(check, op, number, trap->other, &other))
		return false;
	const struct hpx_verify_exchange *first =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = one });
	if (first == NULL)
		return false;
	if (!hpx_check_is_2xx(first))
		return true;
	*ret_taken = true;
	const struct hpx_verify_exchange *second =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = other });
	if (second == NULL)
		return false;
	if (hpx_check_is_4xx(second))
		return hpx_check_effects(check, op, 1);
	hpx_check_broken(check, "%s under the key of %s (#%u) was answered %s; the first (#%u) was %s",
			 trap->other.ptr, trap->one.ptr, second->number,
			 hpx_check_describe(check, second), first->number,
			 hpx_check_describe(check, first));
	hpx_check_blame_mismatch(check, op, first, second);
	return false;
}

void hpx_row_number_traps(struct hpx_check *check)
{
	unsigned taken = 0;

	hpx_check_expect(check, "4xx for ...992 under the key of 9007199254740993, and for 1.0...02 under that of 1.0...01");
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
		bool is_taken;

		if (!check_trap(check, &traps[i], &is_taken))
			return;
		taken += is_taken ? 1 : 0;
	}
	if (taken == 0)
		hpx_check_not_applicable(check, "the API does not take such numbers");
	else
		hpx_check_holds(check, "refused%s", taken == 1 ? "; the API takes only one kind of such numbers" : ", both");
}

/* ---- bytes ---- */

#define OCTETS 256
/* The changed byte: beyond ASCII, and no UTF-8 begins with it. */
#define CHANGED_AT 0xfe
#define LARGE_BYTES ((size_t)300 * 1024)

/* Two bodies: the request's own, so that effects which are found by something in it are
 * found, followed by every byte; the second has one byte changed. */
static bool make_octets(struct hpx_check *check, const struct hpx_verify_op *op,
			struct hpx_span ret_bodies[2])
{
	size_t len = op->body.len + OCTETS;
	char *bytes = hpx_arena_alloc(hpx_verify_arena(check->run), 2 * len);

	if (bytes == NULL)
		return hpx_check_undecided(check, "out of memory");
	for (size_t k = 0; k < 2; k++) {
		char *octets = bytes + k * len + op->body.len;

		if (op->body.len > 0)
			memcpy(bytes + k * len, op->body.ptr, op->body.len);
		for (int i = 0; i < OCTETS; i++)
			octets[i] = (char)i;
		ret_bodies[k] = hpx_span(bytes + k * len, len);
	}
	bytes[2 * len - OCTETS + CHANGED_AT] = (char)0xff;
	return true;
}

/* How many effects of such a body the description's GET counts: one, or none where it
 * lists other things. */
static bool count_octets(struct hpx_check *check, const struct hpx_verify_op *op,
			 uint64_t *ret_effects)
{
	for (unsigned look = 0;; look++) {
		if (!hpx_check_count_effects(check, op, ret_effects))
			return false;
		if (!hpx_verify_counts_effects(check->run) || *ret_effects > 0 || look == HPX_CHECK_RECOUNTS_MAX)
			break;
		hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
	}
	return *ret_effects <= 1 || hpx_check_effects(check, op, 1);
}

void hpx_row_binary_body(struct hpx_check *check)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span bodies[2];
	uint64_t effects;

	hpx_check_expect(check, "4xx, and no second effect, for a body with one byte changed under its key");
	if (op != NULL && hpx_dialects[hpx_verify_spec_of(check->run)->dialect].key_header == NULL) {
		hpx_check_not_applicable(check, "this dialect has the key in the body");
		return;
	}
	if (op == NULL || !make_octets(check, op, bodies))
		return;
	struct hpx_verify_variant variant = { .op = op,
					      .body = bodies[0],
					      .content_type = HPX_SPAN("application/octet-stream") };
	const struct hpx_verify_exchange *first = hpx_check_send(check, &variant);
	if (first == NULL)
		return;
	if (!hpx_check_is_2xx(first)) {
		hpx_check_not_applicable(check, "the API takes no such body: %s",
					 hpx_check_describe(check, first));
		return;
	}
	const struct hpx_verify_exchange *again = hpx_check_send(check, &variant);
	if (again == NULL || !hpx_check_same(check, first, again, "the same bytes again") ||
	    !count_octets(check, op, &effects))
		return;
	variant.body = bodies[1];
	const struct hpx_verify_exchange *other = hpx_check_send(check, &variant);
	if (other == NULL)
		return;
	if (hpx_check_refused(check, op, other, "one byte changed", effects))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, other),
				hpx_check_describe_effects(check, op));
	hpx_check_blame_mismatch(check, op, first, other);
}

void hpx_row_binary_answer(struct hpx_check *check)
{
	const struct hpx_verify_exchange *first;
	const struct hpx_verify_exchange *again;

	hpx_check_expect(check, "the retry of `binary` gets the bytes of the first answer");
	if (!hpx_check_has_request(check, HPX_REQUEST_binary) ||
	    !hpx_check_execute_and_retry(check, HPX_REQUEST_binary, &first, &again))
		return;
	if (hpx_check_same(check, first, again, "the retry"))
		hpx_check_holds(check, "%u, the same %zu bytes", again->status, again->body_bytes);
}

void hpx_row_large_body(struct hpx_check *check)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span body;

	hpx_check_expect(check, "300 KiB: done once and replayed, or refused with a 4xx and no effect");
	if (op == NULL)
		return;
	if (hpx_rewrite_pad(op->body, LARGE_BYTES, hpx_verify_arena(check->run), &body) != HPX_OK) {
		hpx_check_not_applicable(check, "the body is no JSON that could be padded");
		return;
	}
	struct hpx_verify_variant variant = { .op = op, .body = body };
	const struct hpx_verify_exchange *first = hpx_check_send(check, &variant);
	if (first == NULL)
		return;
	bool done = hpx_check_is_2xx(first);
	if (!done && !hpx_check_refused(check, op, first, "the large body", 0))
		return;
	const struct hpx_verify_exchange *again = done ? hpx_check_send(check, &variant) : first;
	if (again != NULL && hpx_check_same(check, first, again, "the retry") &&
	    hpx_check_effects(check, op, done ? 1 : 0))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, again),
				hpx_check_describe_effects(check, op));
}

/* Whether an answer says that the first one's was not kept: neither a mismatch, nor a
 * key in progress. */
static bool is_not_kept(const struct hpx_verify_exchange *exchange)
{
	return exchange->status == 410 ||
	       (exchange->status == 409 &&
		hpx_verify_exchange_field(exchange, HPX_SPAN("Retry-After")).ptr == NULL);
}

void hpx_row_large_answer(struct hpx_check *check)
{
	hpx_check_expect(check, "the retry gets the same answer, or is told that it was not kept (409, 410); one effect");
	if (!hpx_check_has_request(check, HPX_REQUEST_large_answer))
		return;
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_large_answer);
	const struct hpx_verify_exchange *first = op != NULL ? hpx_check_execute(check, op) : NULL;
	const struct hpx_verify_exchange *again = first;

	for (int i = 0; i < 2 && again != NULL; i++) {
		again = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
		if (again == NULL || is_not_kept(again) ||
		    hpx_check_same(check, first, again, "the retry"))
			continue;
		if (hpx_verify_counts_effects(check->run) && !hpx_check_effects_exceed(check, op, 1))
			hpx_check_blame(check, HPX_GUARANTEE_REPLAY,
					"It happened once, and a client that asks again is not told so.");
		return;
	}
	if (again != NULL && hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%u with %zu bytes, then %u with %zu; %s", first->status,
				first->body_bytes, again->status, again->body_bytes,
				hpx_check_describe_effects(check, op));
}
