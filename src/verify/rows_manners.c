/* Manners: requests that keys do not concern (GET, DELETE); a replay that says that
 * it is one, a time to come back, an expiry. */
#include "base/clock.h"
#include "http/retry_after.h"
#include "verify/row_check.h"

/* ---- GET and DELETE ---- */

/* The GET to send: `get`, else the GET of the effects, else the Location of a first
 * answer. */
static bool choose_get(struct hpx_check *check, struct hpx_verify_variant *ret_variant)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);
	bool given = spec->requests[HPX_REQUEST_get].given;
	struct hpx_verify_op *op =
		hpx_check_op_new(check, given ? HPX_REQUEST_get : HPX_REQUEST_main);
	const struct hpx_verify_exchange *first = NULL;

	*ret_variant = (struct hpx_verify_variant){ .op = op };
	if (op == NULL || given)
		return op != NULL;
	ret_variant->method = HPX_SPAN("GET");
	ret_variant->body = HPX_SPAN("");
	if (spec->effects_path.len > 0) {
		ret_variant->path = hpx_verify_op_fill(check->run, op, spec->effects_path);
		return true;
	}
	first = hpx_check_execute(check, op);
	if (first == NULL)
		return false;
	struct hpx_span location = hpx_verify_exchange_field(first, HPX_SPAN("Location"));
	ret_variant->path = location;
	/* Any other form of a Location may lead to another host. */
	if (location.len > 1 && location.ptr[0] == '/' && location.ptr[1] != '/')
		return true;
	return hpx_check_not_applicable(check, "the description has no request `get`, and the answer no Location that is a path");
}

static bool not_marked(struct hpx_check *check, const struct hpx_verify_exchange *exchange)
{
	if (!hpx_check_is_replay(exchange))
		return true;
	return hpx_check_broken(check, "#%u is marked as a replay: %s", exchange->number,
				hpx_check_describe(check, exchange));
}

/* The answers to a GET of the effects, before and after an effect. */
struct get_answers {
	const struct hpx_verify_exchange *before; /* with the key */
	const struct hpx_verify_exchange *bare;   /* after the effect, without a key */
	const struct hpx_verify_exchange *after;  /* with the key again */
};

static bool is_stale(struct hpx_check *check, const struct hpx_verify_variant *keyed,
		     const struct hpx_verify_variant *bare, struct get_answers *got)
{
	for (unsigned i = 0; i <= HPX_CHECK_RECOUNTS_MAX; i++) {
		if (i > 0)
			hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
		got->bare = hpx_check_send(check, bare);
		got->after = got->bare != NULL ? hpx_check_send(check, keyed) : NULL;
		if (got->after == NULL || !hpx_check_same_answer(got->before, got->after) ||
		    hpx_check_same_answer(got->before, got->bare))
			return false;
	}
	return true;
}

/* A GET with a key must see the effects that happened since it was first sent with that
 * key. False: the verdict is given. */
static bool sees_new_effects(struct hpx_check *check)
{
	struct hpx_verify_op *other = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_verify_op *op = other != NULL ? hpx_check_op_new(check, HPX_REQUEST_main) : NULL;
	struct get_answers got = { NULL, NULL, NULL };

	if (op == NULL)
		return false;
	struct hpx_verify_variant keyed = {
		.op = other,
		.method = HPX_SPAN("GET"),
		.path = hpx_verify_op_fill(check->run, op,
					   hpx_verify_spec_of(check->run)->effects_path),
		.body = HPX_SPAN(""),
	};
	struct hpx_verify_variant bare = keyed;
	bare.key_values = HPX_RAW_KEY(HPX_SPAN(""));
	got.before = hpx_check_send(check, &keyed);
	if (got.before == NULL || hpx_check_execute(check, op) == NULL ||
	    !hpx_check_effects(check, op, 1))
		return false;
	bool stale = is_stale(check, &keyed, &bare, &got);
	if (!stale)
		return got.after != NULL;
	return hpx_check_broken(check, "after an effect the GET with its key (#%u) is still answered %s, without one (#%u) %s",
				got.after->number, hpx_check_describe(check, got.after),
				got.bare->number, hpx_check_describe(check, got.bare));
}

void hpx_row_get_alone(struct hpx_check *check)
{
	struct hpx_verify_variant keyed;

	hpx_check_expect(check, "a GET without a key and with one are answered alike, and neither is a replay");
	if (!choose_get(check, &keyed))
		return;
	struct hpx_verify_variant bare = keyed;
	bare.key_values = HPX_RAW_KEY(HPX_SPAN(""));
	bare.key_count = 0;
	const struct hpx_verify_exchange *without = hpx_check_send(check, &bare);
	if (without == NULL)
		return;
	if (without->status == 400 || without->status == 428) {
		hpx_check_broken(check, "without a key the GET (#%u) was answered %s",
				 without->number, hpx_check_describe(check, without));
		return;
	}
	for (int i = 0; i < 2; i++) {
		const struct hpx_verify_exchange *with = hpx_check_send(check, &keyed);

		if (with == NULL || !not_marked(check, with))
			return;
		if (with->status != without->status) {
			hpx_check_broken(check, "with a key the GET (#%u) was answered %s, without one (#%u) %s",
					 with->number, hpx_check_describe(check, with),
					 without->number, hpx_check_describe(check, without));
			return;
		}
	}
	if (!hpx_verify_counts_effects(check->run) || sees_new_effects(check))
		hpx_check_holds(check, "%u each time, and no replay", without->status);
}

void hpx_row_delete_alone(struct hpx_check *check)
{
	const struct hpx_verify_exchange *answers[3];

	hpx_check_expect(check, "a DELETE without a key is not refused for that; with one it is not replayed");
	if (!hpx_check_has_request(check, HPX_REQUEST_delete))
		return;
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_delete);
	if (op == NULL)
		return;
	struct hpx_verify_variant keyed = { .op = op };
	struct hpx_verify_variant bare = { .op = op, .key_values = HPX_RAW_KEY(HPX_SPAN("")) };
	for (int i = 0; i < 3; i++) {
		answers[i] = hpx_check_send(check, i < 2 ? &keyed : &bare);
		if (answers[i] == NULL || !not_marked(check, answers[i]))
			return;
	}
	if (answers[2]->status == 400 || answers[2]->status == 422 || answers[2]->status == 428)
		hpx_check_broken(check, "without a key the DELETE (#%u) was answered %s",
				 answers[2]->number, hpx_check_describe(check, answers[2]));
	/* The second and the third both repeat the first: a server that executes them
	 * answers them alike. */
	else if (answers[1]->status != answers[2]->status)
		hpx_check_broken(check, "with its key the second DELETE (#%u) was answered %s, like the first; without a key (#%u) %s",
				 answers[1]->number, hpx_check_describe(check, answers[1]),
				 answers[2]->number, hpx_check_describe(check, answers[2]));
	else
		hpx_check_holds(check, "%u, %u and without a key %u", answers[0]->status,
				answers[1]->status, answers[2]->status);
}

/* ---- headers of answers ---- */

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

/* In other rows a 409 may be the application's own. */
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

/* "2026-11-15T21:06:55.123Z", or with an offset. Only the shape is checked; with Z, the
 * first nineteen bytes can be compared with those of now. */
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

/* Times with another offset than Z are given a day of grace: this is no calendar. */
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
