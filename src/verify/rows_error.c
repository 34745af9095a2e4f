/* Errors that the API can be made to give: refusals, failures behind an
 * effect, and outages that end. */
#include "base/clock.h"
#include "verify/rows.h"

/* Between retries through an outage: the first one soon, later ones further apart. */
#define OUTAGE_PAUSE_MIN_MS 25
#define OUTAGE_PAUSE_MAX_MS 200

/* The request's first answer, which is of that class. NULL: the verdict is
 * given. */
static const struct hpx_verify_exchange *send_first(struct hpx_check *check,
						    enum hpx_verify_request_name name, unsigned class,
						    struct hpx_verify_op **ret_intent)
{
	if (!hpx_check_has_request(check, name))
		return NULL;
	*ret_intent = hpx_check_op_new(check, name);
	if (*ret_intent == NULL)
		return NULL;
	const struct hpx_verify_exchange *first =
		hpx_check_send(check, &(struct hpx_request_variant){ .op = *ret_intent });
	if (first == NULL || first->status / 100 == class)
		return first;
	hpx_check_undecided(check, "it should be answered by a %uxx, and was by %s", class,
			    hpx_check_describe(check, first));
	return NULL;
}

void hpx_row_client_error(struct hpx_check *check)
{
	struct hpx_verify_op *op;

	hpx_check_expect(check, "the retry gets the status and the body of the refusal; no effect");
	const struct hpx_verify_exchange *first =
		send_first(check, HPX_REQUEST_client_error, 4, &op);
	if (first == NULL)
		return;
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_request_variant){ .op = op });
	if (again != NULL && hpx_check_same(check, first, again, "the retry") &&
	    hpx_check_effects(check, op, 0))
		hpx_check_holds(check, "%s both times; %s", hpx_check_describe(check, first),
				hpx_check_describe_effects(check, op));
}

void hpx_row_server_error(struct hpx_check *check)
{
	bool stripe = hpx_verify_dialect(check->run) == HPX_DIALECT_STRIPE;
	struct hpx_verify_op *op;
	const struct hpx_verify_exchange *again = NULL;

	hpx_check_expect(check, "%sone effect after three retries",
			 stripe ? "the same server error again, and " : "");
	if (!hpx_verify_counts_effects(check->run)) {
		hpx_check_not_applicable(check, "without counting effects nothing can be seen");
		return;
	}
	const struct hpx_verify_exchange *first =
		send_first(check, HPX_REQUEST_server_error, 5, &op);
	if (first == NULL)
		return;
	for (int i = 0; i < 3; i++) {
		again = hpx_check_send(check, &(struct hpx_request_variant){ .op = op });
		if (again == NULL)
			return;
		if (!stripe || first->status != 500 || hpx_check_same(check, first, again, "the retry"))
			continue;
		if (!hpx_check_effects_exceed(check, op, 1))
			hpx_check_blame(check, HPX_GUARANTEE_REPLAY,
					"It happened once, and the retry is told something else than the first.");
		return;
	}
	if (hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s, then %s; %s", hpx_check_describe(check, first),
				hpx_check_describe(check, again), hpx_check_describe_effects(check, op));
}

/* Retries through the outage. NULL: it did not end, or the verdict is given. */
static const struct hpx_verify_exchange *outlast(struct hpx_check *check, struct hpx_verify_op *op)
{
	int64_t deadline_ms =
		hpx_clock_boot_ms() + (int64_t)hpx_verify_spec_of(check->run)->settle_ms;
	uint64_t pause_ms = OUTAGE_PAUSE_MIN_MS;
	const struct hpx_verify_exchange *again;

	do {
		hpx_verify_pause(check->run, pause_ms);
		pause_ms = pause_ms < OUTAGE_PAUSE_MAX_MS ? pause_ms * 2 : pause_ms;
		again = hpx_check_send(check, &(struct hpx_request_variant){ .op = op });
	} while (again != NULL && !hpx_check_is_2xx(again) &&
		 (again->status >= 500 || hpx_check_is_in_progress(check, again)) &&
		 hpx_clock_boot_ms() < deadline_ms);
	if (again == NULL || hpx_check_is_2xx(again))
		return again;
	hpx_check_broken(check, "the retry (#%u) is still answered %s", again->number,
			 hpx_check_describe(check, again));
	return NULL;
}

void hpx_row_outage(struct hpx_check *check)
{
	struct hpx_verify_op *op;

	hpx_check_expect(check, "behind the outage a retry is executed: 2xx, one effect");
	if (hpx_verify_dialect(check->run) == HPX_DIALECT_STRIPE) {
		hpx_check_not_applicable(check, "this dialect stores server errors");
		return;
	}
	const struct hpx_verify_exchange *first = send_first(check, HPX_REQUEST_outage, 5, &op);
	if (first == NULL)
		return;
	const struct hpx_verify_exchange *done = outlast(check, op);
	const struct hpx_verify_exchange *again = NULL;
	if (done != NULL)
		again = hpx_check_send(check, &(struct hpx_request_variant){ .op = op });
	if (again != NULL && hpx_check_same(check, done, again, "the next retry") &&
	    hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s, then %s; %s", hpx_check_describe(check, first),
				hpx_check_describe(check, done), hpx_check_describe_effects(check, op));
}
