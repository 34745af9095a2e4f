/* Good manners: a replay that says so, a time to come back, an
 * expiry. */
#include "base/clock.h"
#include "http/retry_after.h"
#include "verify/rows.h"

void hpx_row_retry_marker(struct hpx_check *check)
{
	const struct hpx_verify_exchange *first;
	const struct hpx_verify_exchange *again;

	hpx_check_expect(check, "Idempotent-Replayed: true on the retry, and not on the first answer");
	if (!hpx_check_execute_and_retry(check, HPX_REQUEST_main, &first, &again))
		return;
	if (hpx_check_is_replay(first))
		hpx_check_broken(check, "the first answer (#%u) says that it is a replay",
				 first->number);
	else if (!hpx_check_is_replay(again))
		hpx_check_broken(check, "the retry (#%u) does not say that it is a replay",
				 again->number);
	else
		hpx_check_holds(check, "the retry is marked, the first answer is not");
}

/* Elsewhere a 409 may be the application's own. */
static bool may_meet_itself(const struct hpx_verify_exchange *exchange)
{
	const struct hpx_row *row = hpx_row_by_name(hpx_span_of(exchange->row));

	return row != NULL && (row->group == HPX_ROW_GROUP_CONCURRENT ||
			       row->group == HPX_ROW_GROUP_CUT);
}

void hpx_row_retry_after(struct hpx_check *check)
{
	unsigned seen = 0;
	uint32_t seconds;

	hpx_check_expect(check, "every 409 for a key in progress has Retry-After");
	for (size_t i = 0; i < hpx_verify_exchange_count(check->run); i++) {
		const struct hpx_verify_exchange *exchange = hpx_verify_exchange_at(check->run, i);

		if (exchange->status != 409 || !may_meet_itself(exchange) ||
		    !hpx_check_is_in_progress(check, exchange))
			continue;
		seen++;
		struct hpx_span value = hpx_verify_exchange_field(exchange, HPX_SPAN("Retry-After"));
		if (value.ptr != NULL && hpx_retry_after_parse(value, hpx_clock_wall_ms(),
							       &seconds) == HPX_OK)
			continue;
		hpx_check_cite(check, exchange);
		hpx_check_broken(check, "#%u of the row %s was answered 409 with Retry-After %.*s",
				 exchange->number, exchange->row,
				 HPX_SPAN_ARG(value.ptr == NULL ? HPX_SPAN("absent") :
								  hpx_span_first(value, 60)));
		return;
	}
	if (seen == 0)
		hpx_check_not_applicable(check, "no 409 was seen");
	else
		hpx_check_holds(check, "all %u have it", seen);
}

/* "2026-11-15T21:06:55.123Z" or with an offset: its shape, which is enough to
 * compare the first nineteen bytes with now's where the offset is Z. */
static bool is_rfc3339(struct hpx_span text)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd";

	if (text.len < sizeof(shape))
		return false;
	for (size_t i = 0; i + 1 < sizeof(shape); i++) {
		bool digit = text.ptr[i] >= '0' && text.ptr[i] <= '9';

		if (shape[i] == 'd' ? !digit : text.ptr[i] != shape[i])
			return false;
	}
	char last = text.ptr[text.len - 1];
	return last == 'Z' || (last >= '0' && last <= '9' && text.len >= sizeof(shape) + 5);
}

/* A day of grace where the offset is not UTC: this is no calendar. */
static bool is_future(struct hpx_span text)
{
	char now[HPX_RFC3339_SIZE];
	bool utc = text.ptr[text.len - 1] == 'Z';

	hpx_clock_rfc3339(hpx_clock_wall_ms() - (utc ? 0 : 86400000), now);
	return hpx_span_cmp(hpx_span_first(text, 19), hpx_span(now, 19)) > 0;
}

void hpx_row_expiry(struct hpx_check *check)
{
	const struct hpx_verify_exchange *first;
	const struct hpx_verify_exchange *again;

	hpx_check_expect(check, "Idempotency-Expires: a time in the future (RFC 3339), the same on the retry");
	if (!hpx_check_execute_and_retry(check, HPX_REQUEST_main, &first, &again))
		return;
	struct hpx_span one = hpx_verify_exchange_field(first, HPX_SPAN("Idempotency-Expires"));
	struct hpx_span other = hpx_verify_exchange_field(again, HPX_SPAN("Idempotency-Expires"));
	if (other.ptr == NULL)
		hpx_check_broken(check, "the retry (#%u) has no Idempotency-Expires", again->number);
	else if (!is_rfc3339(other) || !is_future(other))
		hpx_check_broken(check, "the retry (#%u) says %.*s, which is no time in the future",
				 again->number, HPX_SPAN_ARG(hpx_span_first(other, 60)));
	else if (one.ptr != NULL && !hpx_span_eq(one, other))
		hpx_check_broken(check, "the answer (#%u) says %.*s, the retry (#%u) %.*s",
				 first->number, HPX_SPAN_ARG(hpx_span_first(one, 60)), again->number,
				 HPX_SPAN_ARG(hpx_span_first(other, 60)));
	else
		hpx_check_holds(check, "%.*s", HPX_SPAN_ARG(hpx_span_first(other, 60)));
}
