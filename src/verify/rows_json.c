/* The same JSON written differently is the same request; different numbers are
 * different requests, however alike a double makes them. */
#include "verify/rewrite.h"
#include "verify/rows.h"

/* The first as it is, then `body` under its key: the stored answer, and no
 * second effect. */
static bool check_rewritten(struct hpx_check *check, struct hpx_verify_op *op,
			    const struct hpx_verify_exchange *first, struct hpx_span body,
			    const char *what)
{
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_request_variant){ .op = op, .body = body });

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

/* The number to vary. False: not applicable. */
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

/* Under a key of its own: an API that wants whole numbers may refuse "5.0",
 * and says nothing about its keys by that. */
static bool is_taken(struct hpx_check *check, const char *form)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span text;
	struct hpx_span body;

	if (op == NULL || !put_form(check, op, form, &text, &body))
		return false;
	const struct hpx_verify_exchange *answer =
		hpx_check_send(check, &(struct hpx_request_variant){ .op = op, .body = body });
	if (answer == NULL || hpx_check_is_2xx(answer))
		return answer != NULL;
	return hpx_check_not_applicable(check, "the API does not take %s at all: %s", text.ptr,
					hpx_check_describe(check, answer));
}

/* The number in another form, under the key of the first. */
static bool check_form(struct hpx_check *check, struct hpx_verify_op *op,
		       const struct hpx_verify_exchange *first, const char *form)
{
	struct hpx_span text;
	struct hpx_span body;

	if (!put_form(check, op, form, &text, &body))
		return false;
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_request_variant){ .op = op, .body = body });
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

/* Whether the API takes such a number at all (`*ret_taken`), and then does not
 * take the other for it. */
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
		hpx_check_send(check, &(struct hpx_request_variant){ .op = op, .body = one });
	if (first == NULL)
		return false;
	if (!hpx_check_is_2xx(first))
		return true;
	*ret_taken = true;
	const struct hpx_verify_exchange *second =
		hpx_check_send(check, &(struct hpx_request_variant){ .op = op, .body = other });
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
