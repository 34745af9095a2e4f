/* Rulings: each is asked whether the status or value is among its signs; exactly one must
 * say so. Then the rules of reconcile.h, one function each. */
#include "core/reconcile.h"

#include "base/status.h"
#include "core/json.h"
#include "core/number.h"

/* No word for a state is longer; a longer value cannot be meant. */
#define VALUE_MAX 4096

/* ---- rulings ---- */

const char *hpx_ruling_name(enum hpx_ruling ruling)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_RULING_LIST(X)
#undef X
	};
	return (unsigned)ruling < HPX_RULING_COUNT ? names[ruling] : "?";
}

static bool has_status(const struct hpx_ruling_signs *signs, unsigned status)
{
	for (size_t i = 0; i < signs->status_count; i++)
		if (signs->statuses[i] == status)
			return true;
	return false;
}

static bool value_is(const struct hpx_json_scalar *value, struct hpx_span sign)
{
	if (value->kind == HPX_JSON_NUMBER)
		return hpx_amount_eq(value->text, sign);
	return hpx_span_eq(value->text, sign);
}

static bool has_value(const struct hpx_ruling_signs *signs, const struct hpx_json_scalar *value)
{
	for (size_t i = 0; i < signs->value_count; i++)
		if (value_is(value, signs->values[i]))
			return true;
	return false;
}

/* By the value, or by the status where there is none. False: in no list. */
static bool find(const struct hpx_ruling_mapping *mapping, unsigned status,
		 const struct hpx_json_scalar *value, enum hpx_ruling *ret_ruling)
{
	size_t found = 0;

	for (unsigned i = 0; i < HPX_RULING_UNCLEAR; i++) {
		const struct hpx_ruling_signs *signs = &mapping->signs[i];
		if (value != NULL ? !has_value(signs, value) : !has_status(signs, status))
			continue;
		*ret_ruling = found++ == 0 ? (enum hpx_ruling)i : HPX_RULING_UNCLEAR;
	}
	return found > 0;
}

enum hpx_status hpx_ruling_of_answer(const struct hpx_ruling_mapping *mapping, unsigned status,
				     struct hpx_span body, enum hpx_ruling *ret_ruling)
{
	enum hpx_ruling ruling = HPX_RULING_UNCLEAR;

	if (!find(mapping, status, NULL, &ruling) && status >= 200 && status < 300)
		return hpx_ruling_of_body(mapping, body, ret_ruling);
	*ret_ruling = ruling;
	return HPX_OK;
}

enum hpx_status hpx_ruling_of_body(const struct hpx_ruling_mapping *mapping,
				   struct hpx_span body, enum hpx_ruling *ret_ruling)
{
	enum hpx_ruling ruling = HPX_RULING_UNCLEAR;
	struct hpx_json_scalar value;
	struct hpx_arena arena;

	if (mapping->pointer.ptr == NULL) {
		*ret_ruling = ruling;
		return HPX_OK;
	}
	hpx_arena_init(&arena, 2 * VALUE_MAX);
	enum hpx_status status = hpx_json_lookup(body, mapping->pointer, VALUE_MAX, &arena, &value);
	if (status == HPX_OK)
		find(mapping, 0, &value, &ruling);
	hpx_arena_done(&arena);
	if (status == HPX_NOMEM)
		return status;
	*ret_ruling = ruling;
	return HPX_OK;
}

/* ---- what follows from a ruling ---- */

const char *hpx_reconcile_name(enum hpx_reconcile_move move)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_RECONCILE_LIST(X)
#undef X
	};
	return (unsigned)move < HPX_RECONCILE_COUNT ? names[move] : "?";
}

static int64_t settled_from_ms(const struct hpx_reconcile *reconcile,
			       const struct hpx_reconcile_rule *rule)
{
	return hpx_backoff_add(reconcile->sent_ms, rule->settle_after_ms);
}

static void end_row(struct hpx_reconcile *reconcile)
{
	reconcile->not_applied_in_a_row = 0;
	reconcile->first_not_applied_ms = 0;
}

/* Whether this NOT_APPLIED counts as one more in a row. It must be about a later
 * moment than the first, even where no distance is asked for: the same evidence twice
 * is no second answer. */
static bool counts(const struct hpx_reconcile *reconcile, const struct hpx_reconcile_rule *rule,
		   int64_t about_ms)
{
	if (about_ms < settled_from_ms(reconcile, rule))
		return false;
	if (reconcile->not_applied_in_a_row == 0)
		return true;
	int64_t first = reconcile->first_not_applied_ms;
	return about_ms > first &&
	       about_ms >= hpx_backoff_add(first, rule->confirm_after_ms);
}

/* True: NOT_APPLIED was said often enough in a row. */
static bool add_not_applied(struct hpx_reconcile *reconcile, const struct hpx_received_ruling *received,
			    const struct hpx_reconcile_rule *rule, int64_t now_ms)
{
	/* A sender's clock ahead of ours must not shorten the wait. */
	int64_t about_ms = received->about_ms < now_ms ? received->about_ms : now_ms;

	if (!counts(reconcile, rule, about_ms))
		return false;
	if (reconcile->not_applied_in_a_row++ == 0)
		reconcile->first_not_applied_ms = about_ms;
	return reconcile->not_applied_in_a_row >= 2;
}

/* Never before a second answer could count, nor, for the last two tries,
 * before a first could. */
static int64_t next_question_ms(const struct hpx_reconcile *reconcile,
				const struct hpx_reconcile_rule *rule, int64_t retry_after_ms,
				int64_t now_ms, uint64_t random)
{
	int64_t delay = hpx_backoff_delay(&rule->backoff, reconcile->tries, random);
	int64_t heed = retry_after_ms < rule->retry_after_max_ms ? retry_after_ms :
								   rule->retry_after_max_ms;
	int64_t at = hpx_backoff_add(now_ms, delay > heed ? delay : heed);
	uint32_t left = rule->tries_max - reconcile->tries;
	int64_t earliest = INT64_MIN;

	if (reconcile->not_applied_in_a_row > 0)
		earliest = hpx_backoff_add(reconcile->first_not_applied_ms,
					   rule->confirm_after_ms > 0 ? rule->confirm_after_ms : 1);
	else if (left <= 2)
		earliest = settled_from_ms(reconcile, rule);
	return at > earliest ? at : earliest;
}

static enum hpx_reconcile_move ask_again(struct hpx_reconcile *reconcile,
					 const struct hpx_received_ruling *received,
					 const struct hpx_reconcile_rule *rule,
					 int64_t now_ms, uint64_t random)
{
	if (!received->asked)
		return HPX_RECONCILE_STAY;
	if (reconcile->tries >= rule->tries_max)
		return HPX_RECONCILE_A_PERSON;
	reconcile->ask_at_ms = next_question_ms(reconcile, rule, received->retry_after_ms, now_ms,
						random);
	return HPX_RECONCILE_ASK_AGAIN;
}

enum hpx_reconcile_move hpx_reconcile_judge(struct hpx_reconcile *reconcile,
					    const struct hpx_received_ruling *received,
					    const struct hpx_reconcile_rule *rule,
					    int64_t now_ms, uint64_t random)
{
	HPX_ASSERT(received->ruling < HPX_RULING_COUNT);
	if (received->asked && reconcile->tries < UINT32_MAX)
		reconcile->tries++;
	switch (received->ruling) {
	case HPX_RULING_APPLIED:
		return HPX_RECONCILE_SETTLE_APPLIED;
	case HPX_RULING_DECLINED:
		return HPX_RECONCILE_SETTLE_DECLINED;
	case HPX_RULING_NOT_APPLIED:
		if (add_not_applied(reconcile, received, rule, now_ms))
			return HPX_RECONCILE_SETTLE_NOT_APPLIED;
		break;
	case HPX_RULING_NOT_YET:
	case HPX_RULING_UNCLEAR:
	case HPX_RULING_COUNT:
		end_row(reconcile);
		break;
	}
	return ask_again(reconcile, received, rule, now_ms, random);
}

int64_t hpx_reconcile_first_ms(const struct hpx_reconcile *reconcile,
			       const struct hpx_reconcile_rule *rule, int64_t now_ms,
			       uint64_t random)
{
	return next_question_ms(reconcile, rule, 0, now_ms, random);
}
