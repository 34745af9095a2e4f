/* The request and its retries: is it executed, once, and is a retry's answer the
 * answer. Then errors that the API can be made to give: refusals, failures behind
 * an effect, and outages that end. */
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "http/field.h"
#include "verify/row_check.h"

/* A pointer that finds nothing would make all answers look alike in every row. */
static bool names_resource(struct hpx_check *check, const struct hpx_verify_exchange *answer)
{
	struct hpx_span pointer = hpx_verify_spec_of(check->run)->resource;

	return pointer.len == 0 || answer->body.len < answer->body_bytes ||
	       hpx_verify_resource(check->run, answer).len > 0 ||
	       hpx_check_undecided(check, "`resource` is %.*s, and the answer has nothing there: %s",
				   HPX_SPAN_ARG(hpx_span_first(pointer, 64)),
				   hpx_check_describe(check, answer));
}

void hpx_row_first(struct hpx_check *check)
{
	hpx_check_expect(check, "2xx, and one effect");
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	const struct hpx_verify_exchange *answer = NULL;

	if (op != NULL)
		answer = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
	if (answer != NULL && !hpx_check_is_2xx(answer))
		hpx_check_broken(check, "the description's request does not succeed: %s",
				 hpx_check_describe(check, answer));
	else if (answer != NULL && names_resource(check, answer) &&
		 hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, answer),
				hpx_check_describe_effects(check, op));
	if (answer != NULL && hpx_check_is_2xx(answer))
		hpx_check_remember(check, op, answer);
	/* All other rows would only say the same again. */
	if (check->result->verdict != HPX_ROW_HOLDS)
		snprintf(check->notes->stop, sizeof(check->notes->stop), "%s",
			 check->result->came);
}

static bool same_status(struct hpx_check *check, const struct hpx_verify_exchange *first,
			const struct hpx_verify_exchange *again)
{
	if (first->status == again->status)
		return true;
	return hpx_check_broken(check, "the retry (#%u) was answered %s; the answer (#%u) was %s",
				again->number, hpx_check_describe(check, again), first->number,
				hpx_check_describe(check, first));
}

void hpx_row_retry(struct hpx_check *check)
{
	hpx_check_expect(check, "three retries get the status and the body of the first answer; one effect");
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	if (op == NULL)
		return;
	const struct hpx_verify_exchange *first = hpx_check_execute(check, op);
	if (first == NULL)
		return;
	/* All retries are sent before any is compared: the effects count. */
	const struct hpx_verify_exchange *again[3];
	for (int i = 0; i < 3; i++) {
		again[i] = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
		if (again[i] == NULL)
			return;
	}
	for (int i = 0; i < 3; i++) {
		if (hpx_check_same(check, first, again[i], "the retry") &&
		    same_status(check, first, again[i]))
			continue;
		if (check->result->verdict == HPX_ROW_BROKEN &&
		    hpx_check_effects_exceed(check, op, 1)) {
			hpx_check_blame(check, HPX_GUARANTEE_ONCE, NULL);
			hpx_check_blame(check, HPX_GUARANTEE_REPLAY, NULL);
		}
		return;
	}
	if (!hpx_check_effects(check, op, 1)) {
		if (check->result->verdict == HPX_ROW_BROKEN)
			hpx_check_blame(check, HPX_GUARANTEE_ONCE, NULL);
	} else {
		hpx_check_holds(check, "four times %s; %s", hpx_check_describe(check, first),
				hpx_check_describe_effects(check, op));
	}
}

/* Whether a header belongs to one delivery of an answer: besides those that the gateway
 * does not keep (hpx_field_name_is_kept), ids of the request, names of the machine that
 * answered, caches, and limits. */
static bool is_of_delivery(struct hpx_span name)
{
	static const struct hpx_span names[] = {
		HPX_SPAN_INIT("X-Request-Id"),
		HPX_SPAN_INIT("Request-Id"),
		HPX_SPAN_INIT("X-Correlation-Id"),
		HPX_SPAN_INIT("X-Trace-Id"),
		HPX_SPAN_INIT("X-Amzn-Trace-Id"),
		HPX_SPAN_INIT("X-Amzn-RequestId"),
		HPX_SPAN_INIT("Traceparent"),
		HPX_SPAN_INIT("Tracestate"),
		HPX_SPAN_INIT("CF-Ray"),
		HPX_SPAN_INIT("X-Served-By"),
		HPX_SPAN_INIT("X-Timer"),
		HPX_SPAN_INIT("X-Cache"),
		HPX_SPAN_INIT("X-Cache-Hits"),
		HPX_SPAN_INIT("X-Runtime"),
		HPX_SPAN_INIT("X-Response-Time"),
		HPX_SPAN_INIT("Server"),
		HPX_SPAN_INIT("X-Powered-By"),
		HPX_SPAN_INIT("Retry-After"),
		HPX_SPAN_INIT("Report-To"),
		HPX_SPAN_INIT("NEL"),
		HPX_SPAN_INIT("Idempotency-Key"),
		HPX_SPAN_INIT("Accept-Ranges"),
		HPX_SPAN_INIT("Original-Request"),
		HPX_SPAN_INIT("Stripe-Should-Retry"),
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (hpx_span_ieq(name, names[i]))
			return true;
	return !hpx_field_name_is_kept(name) ||
	       hpx_span_istarts(name, HPX_SPAN("X-RateLimit-")) ||
	       hpx_span_istarts(name, HPX_SPAN("Access-Control-"));
}

/* A field of `from` that must be in `in` and is missing or different there; NULL: none. */
static const struct hpx_field *missing_field(const struct hpx_verify_exchange *from,
					     const struct hpx_verify_exchange *in)
{
	for (size_t i = 0; i < from->field_count; i++) {
		const struct hpx_field *field = &from->fields[i];
		bool found = is_of_delivery(field->name);

		for (size_t k = 0; k < in->field_count && !found; k++)
			found = hpx_span_ieq(field->name, in->fields[k].name) &&
				hpx_span_eq(field->value, in->fields[k].value);
		if (!found)
			return field;
	}
	return NULL;
}

/* A retry may have more headers: a marker, by whatever name. */
static bool same_headers(struct hpx_check *check, const struct hpx_verify_exchange *first,
			 const struct hpx_verify_exchange *again)
{
	const struct hpx_field *field = missing_field(first, again);

	if (field == NULL)
		return true;
	struct hpx_span other = hpx_verify_exchange_field(again, field->name);
	return hpx_check_broken(check, "the answer (#%u) had %.*s: %.*s; the retry (#%u) has %.*s",
				first->number, HPX_SPAN_ARG(hpx_span_first(field->name, 60)),
				HPX_SPAN_ARG(hpx_span_first(field->value, 100)), again->number,
				HPX_SPAN_ARG(other.ptr != NULL ? hpx_span_first(other, 100) :
								 HPX_SPAN("none")));
}

void hpx_row_retry_headers(struct hpx_check *check)
{
	const struct hpx_verify_exchange *first;
	const struct hpx_verify_exchange *again;

	hpx_check_expect(check, "a retry has Content-Type, Location and the other headers of the answer, but for those of one delivery");
	if (hpx_check_execute_and_retry(check, HPX_REQUEST_main, &first, &again) && same_headers(check, first, again))
		hpx_check_holds(check, "the same headers, but for those of one delivery");
}

void hpx_row_retry_cookie(struct hpx_check *check)
{
	const struct hpx_verify_exchange *first;
	const struct hpx_verify_exchange *again;

	hpx_check_expect(check, "a retry has no Set-Cookie, or one of its own");
	if (!hpx_check_execute_and_retry(check, HPX_REQUEST_main, &first, &again))
		return;
	struct hpx_span cookie = hpx_verify_exchange_field(first, HPX_SPAN("Set-Cookie"));
	struct hpx_span replayed = hpx_verify_exchange_field(again, HPX_SPAN("Set-Cookie"));
	if (cookie.ptr == NULL)
		hpx_check_not_applicable(check, "the answer sets no cookie");
	else if (replayed.ptr != NULL && hpx_span_eq(cookie, replayed))
		/* Only the cookie's name is told: its value is a secret. */
		hpx_check_broken(check, "the retry (#%u) has the same Set-Cookie (%.*s=...) as the answer (#%u)",
				 again->number,
				 HPX_SPAN_ARG(hpx_span_first(cookie, hpx_span_index(cookie, '='))),
				 first->number);
	else
		hpx_check_holds(check, "the answer sets a cookie, the retry does not set it");
}

/* ---- errors ---- */

/* Pauses between retries during an outage: short at first, then longer. */
#define OUTAGE_PAUSE_MIN_MS 25
#define OUTAGE_PAUSE_MAX_MS 200

/* The first answer to a named request, which must be of that status class. NULL: the
 * verdict is given. */
static const struct hpx_verify_exchange *send_first(struct hpx_check *check,
						    enum hpx_verify_request_name name, unsigned class,
						    struct hpx_verify_op **ret_intent)
{
	HPX_ASSERT(class == 4 || class == 5);
	if (!hpx_check_has_request(check, name))
		return NULL;
	*ret_intent = hpx_check_op_new(check, name);
	if (*ret_intent == NULL)
		return NULL;
	const struct hpx_verify_exchange *first =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = *ret_intent });
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
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
	if (again != NULL && hpx_check_same(check, first, again, "the retry") &&
	    hpx_check_effects(check, op, 0))
		hpx_check_holds(check, "%s both times; %s", hpx_check_describe(check, first),
				hpx_check_describe_effects(check, op));
}

void hpx_row_server_error(struct hpx_check *check)
{
	bool stores = hpx_dialects[hpx_verify_dialect(check->run)].stores_errors;
	struct hpx_verify_op *op;
	const struct hpx_verify_exchange *again = NULL;

	hpx_check_expect(check, "%sone effect after three retries",
			 stores ? "the same server error again, and " : "");
	if (!hpx_verify_counts_effects(check->run)) {
		hpx_check_not_applicable(check, "without counting effects nothing can be seen");
		return;
	}
	const struct hpx_verify_exchange *first =
		send_first(check, HPX_REQUEST_server_error, 5, &op);
	if (first == NULL)
		return;
	for (int i = 0; i < 3; i++) {
		again = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
		if (again == NULL)
			return;
		if (!stores || first->status != 500 || hpx_check_same(check, first, again, "the retry"))
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

/* Retries until the outage is over. NULL: it did not end, or the verdict is given. */
static const struct hpx_verify_exchange *retry_until_over(struct hpx_check *check, struct hpx_verify_op *op)
{
	int64_t deadline_ms =
		hpx_clock_boot_ms() + (int64_t)hpx_verify_spec_of(check->run)->settle_ms;
	int64_t pause_ms = OUTAGE_PAUSE_MIN_MS;
	const struct hpx_verify_exchange *again;

	do {
		hpx_verify_pause(check->run, pause_ms);
		pause_ms = pause_ms < OUTAGE_PAUSE_MAX_MS ? pause_ms * 2 : pause_ms;
		again = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
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

	hpx_check_expect(check, "after the outage a retry is executed: 2xx, one effect");
	if (hpx_dialects[hpx_verify_dialect(check->run)].stores_errors) {
		hpx_check_not_applicable(check, "this dialect stores server errors");
		return;
	}
	const struct hpx_verify_exchange *first = send_first(check, HPX_REQUEST_outage, 5, &op);
	if (first == NULL)
		return;
	const struct hpx_verify_exchange *done = retry_until_over(check, op);
	const struct hpx_verify_exchange *again = NULL;
	if (done != NULL)
		again = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
	if (again != NULL && hpx_check_same(check, done, again, "the next retry") &&
	    hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s, then %s; %s", hpx_check_describe(check, first),
				hpx_check_describe(check, done), hpx_check_describe_effects(check, op));
}
