/* The request and its retries: is it done, once, and is a retry's answer the
 * answer. */
#include <stdio.h>

#include "http/field.h"
#include "verify/rows.h"

/* A pointer into nowhere would be compared with itself in every row. */
static bool names_resource(struct hpx_judge *judge, const struct hpx_exchange *answer)
{
	struct hpx_span pointer = hpx_verify_spec_of(judge->run)->resource;

	return pointer.len == 0 || answer->body.len < answer->body_bytes ||
	       hpx_verify_resource(judge->run, answer).len > 0 ||
	       hpx_judge_undecided(judge, "`resource` is %.*s, and the answer has nothing there: %s",
				   HPX_SPAN_ARG(hpx_span_first(pointer, 64)),
				   hpx_judge_words(judge, answer));
}

void hpx_row_first(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "2xx, and one effect");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	const struct hpx_exchange *answer = NULL;

	if (intent != NULL)
		answer = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	if (answer != NULL && !hpx_exchange_is_done(answer))
		hpx_judge_broken(judge, "the description's request does not succeed: %s",
				 hpx_judge_words(judge, answer));
	else if (answer != NULL && names_resource(judge, answer) &&
		 hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, answer),
				hpx_judge_effect_words(judge, intent));
	if (answer != NULL && hpx_exchange_is_done(answer))
		hpx_judge_note(judge, intent, answer);
	/* Whatever depends on it would only say the same again. */
	if (judge->finding->verdict != HPX_ROW_HOLDS)
		snprintf(judge->notes->stop, sizeof(judge->notes->stop), "%s",
			 judge->finding->came);
}

static bool same_status(struct hpx_judge *judge, const struct hpx_exchange *first,
			const struct hpx_exchange *again)
{
	if (first->status == again->status)
		return true;
	return hpx_judge_broken(judge, "the retry (#%u) was answered %s; the answer (#%u) was %s",
				again->number, hpx_judge_words(judge, again), first->number,
				hpx_judge_words(judge, first));
}

void hpx_row_retry(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "three retries get the status and the body of the first answer; one effect");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	if (intent == NULL)
		return;
	const struct hpx_exchange *first = hpx_judge_do(judge, intent);
	if (first == NULL)
		return;
	/* All of them are sent before any is judged: the effects count. */
	const struct hpx_exchange *again[3];
	for (int i = 0; i < 3; i++) {
		again[i] = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
		if (again[i] == NULL)
			return;
	}
	for (int i = 0; i < 3; i++) {
		if (hpx_judge_same(judge, first, again[i], "the retry") &&
		    same_status(judge, first, again[i]))
			continue;
		if (judge->finding->verdict == HPX_ROW_BROKEN &&
		    hpx_judge_counted_more(judge, intent, 1)) {
			hpx_judge_blames(judge, HPX_GUARANTEE_ONCE, NULL);
			hpx_judge_blames(judge, HPX_GUARANTEE_REPLAY, NULL);
		}
		return;
	}
	if (!hpx_judge_effects(judge, intent, 1)) {
		if (judge->finding->verdict == HPX_ROW_BROKEN)
			hpx_judge_blames(judge, HPX_GUARANTEE_ONCE, NULL);
	} else {
		hpx_judge_holds(judge, "four times %s; %s", hpx_judge_words(judge, first),
				hpx_judge_effect_words(judge, intent));
	}
}

/* What belongs to one delivery of an answer, on top of what the gateway's own
 * rule names (hpx_field_name_is_kept): names of the request itself, of the
 * machine that answered, of caches, and of limits. */
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

/* A field that is compared and that the other lacks, or has differently. */
static const struct hpx_field *missing(const struct hpx_exchange *from,
				       const struct hpx_exchange *in)
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

/* What a retry has besides is its own: a marker, by whatever name. */
static bool same_headers(struct hpx_judge *judge, const struct hpx_exchange *first,
			 const struct hpx_exchange *again)
{
	const struct hpx_field *field = missing(first, again);

	if (field == NULL)
		return true;
	struct hpx_span other = hpx_exchange_field(again, field->name);
	return hpx_judge_broken(judge, "the answer (#%u) had %.*s: %.*s; the retry (#%u) has %.*s",
				first->number, HPX_SPAN_ARG(hpx_span_first(field->name, 60)),
				HPX_SPAN_ARG(hpx_span_first(field->value, 100)), again->number,
				HPX_SPAN_ARG(other.ptr != NULL ? hpx_span_first(other, 100) :
								 HPX_SPAN("none")));
}

void hpx_row_retry_headers(struct hpx_judge *judge)
{
	const struct hpx_exchange *first;
	const struct hpx_exchange *again;

	hpx_judge_expects(judge, "a retry has Content-Type, Location and the other headers of the answer, but for those of one delivery");
	if (hpx_judge_twice(judge, HPX_REQUEST_main, &first, &again) && same_headers(judge, first, again))
		hpx_judge_holds(judge, "the same headers, but for those of one delivery");
}

void hpx_row_retry_cookie(struct hpx_judge *judge)
{
	const struct hpx_exchange *first;
	const struct hpx_exchange *again;

	hpx_judge_expects(judge, "a retry has no Set-Cookie, or one of its own");
	if (!hpx_judge_twice(judge, HPX_REQUEST_main, &first, &again))
		return;
	struct hpx_span cookie = hpx_exchange_field(first, HPX_SPAN("Set-Cookie"));
	struct hpx_span replayed = hpx_exchange_field(again, HPX_SPAN("Set-Cookie"));
	if (cookie.ptr == NULL)
		hpx_judge_not_applicable(judge, "the answer sets no cookie");
	else if (replayed.ptr != NULL && hpx_span_eq(cookie, replayed))
		/* Its name is enough: the value is a secret. */
		hpx_judge_broken(judge, "the retry (#%u) has the same Set-Cookie (%.*s=...) as the answer (#%u)",
				 again->number,
				 HPX_SPAN_ARG(hpx_span_first(cookie, hpx_span_index(cookie, '='))),
				 first->number);
	else
		hpx_judge_holds(judge, "the answer sets a cookie, the retry does not set it");
}
