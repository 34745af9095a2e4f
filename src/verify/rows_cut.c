/* Cut off by the client after each part of the request, then retried: done,
 * once, and never stuck. */
#include "verify/rows.h"

/* A reset that comes at once may overtake the request in the server, one that
 * comes late finds it at work: each shows other mistakes. */
static const int64_t lingers_ms[] = { 0, 50, 250 };

/* True: so far it holds. */
static bool check_one(struct hpx_check *check, struct hpx_verify_op *op, enum hpx_verify_cut cut,
		      int64_t linger_ms)
{
	struct hpx_request_variant whole = { .op = op };
	struct hpx_request_variant part = { .op = op, .cut = cut, .linger_ms = linger_ms };
	const struct hpx_verify_exchange *gone = hpx_verify_send(check->run, &part);

	hpx_check_cite(check, gone);
	if (gone->end == HPX_EXCHANGE_REFUSED || gone->end == HPX_EXCHANGE_UNSENT)
		return hpx_check_undecided(check, "it could not be sent: %s", gone->problem);
	const struct hpx_verify_exchange *settled = hpx_check_settle(check, &whole);
	if (settled == NULL)
		return false;
	const struct hpx_verify_exchange *again = hpx_check_send(check, &whole);
	return again != NULL && hpx_check_same(check, settled, again, "the next retry") &&
	       hpx_check_effects(check, op, 1);
}

static void check_cut(struct hpx_check *check, enum hpx_verify_cut cut)
{
	size_t count = cut == HPX_CUT_BEFORE_ANSWER ? 1 : sizeof(lingers_ms) / sizeof(lingers_ms[0]);
	struct hpx_verify_op *op = NULL;

	hpx_check_expect(check, "within the settle time a retry is answered by a 2xx; one effect");
	for (size_t i = 0; i < count; i++) {
		op = hpx_check_op_new(check, HPX_REQUEST_main);
		if (op == NULL)
			return;
		if (cut == HPX_CUT_HALF_BODY && op->body.len < 2) {
			hpx_check_not_applicable(check, "the request has no body to cut");
			return;
		}
		if (check_one(check, op, cut, lingers_ms[i]))
			continue;
		if (check->result->verdict == HPX_ROW_BROKEN &&
		    hpx_check_effects_exceed(check, op, 1))
			hpx_check_blame(check, HPX_GUARANTEE_ONCE,
					"The phone in the tunnel: the payment is made twice.");
		return;
	}
	hpx_check_holds(check, "%zu cut off and done; %s", count,
			hpx_check_describe_effects(check, op));
}

void hpx_row_cut_head(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_HEAD);
}

void hpx_row_cut_half_body(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_HALF_BODY);
}

void hpx_row_cut_whole_body(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_WHOLE_BODY);
}

void hpx_row_cut_before_answer(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_BEFORE_ANSWER);
}
