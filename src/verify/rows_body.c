/* Bodies that are not text, and large ones. */
#include "verify/rewrite.h"
#include "verify/rows.h"

#define OCTETS 256
/* A byte beyond ASCII that no UTF-8 begins with, and its neighbour. */
#define CHANGED_AT 0xfe
#define LARGE_BYTES ((size_t)300 * 1024)

/* The request's own body, so that effects which are found by something in it are
 * found, and behind it every byte; twice, and the second has one byte changed. */
static bool make_octets(struct hpx_judge *judge, const struct hpx_intent *intent,
			struct hpx_span ret_bodies[2])
{
	size_t len = intent->body.len + OCTETS;
	char *bytes = hpx_arena_alloc(hpx_verify_arena(judge->run), 2 * len);

	if (bytes == NULL)
		return hpx_judge_undecided(judge, "out of memory");
	for (size_t k = 0; k < 2; k++) {
		char *octets = bytes + k * len + intent->body.len;

		if (intent->body.len > 0)
			memcpy(bytes + k * len, intent->body.ptr, intent->body.len);
		for (int i = 0; i < OCTETS; i++)
			octets[i] = (char)i;
		ret_bodies[k] = hpx_span(bytes + k * len, len);
	}
	bytes[2 * len - OCTETS + CHANGED_AT] = (char)0xff;
	return true;
}

/* How many effects of such a body the description's GET sees: one, or none where
 * it lists other things. */
static bool count_octets(struct hpx_judge *judge, const struct hpx_intent *intent,
			 uint64_t *ret_effects)
{
	for (unsigned look = 0;; look++) {
		if (!hpx_judge_count(judge, intent, ret_effects))
			return false;
		if (!hpx_verify_counts(judge->run) || *ret_effects > 0 || look == HPX_JUDGE_LOOKS_MAX)
			break;
		hpx_verify_pause(judge->run, HPX_JUDGE_LOOK_AGAIN_MS);
	}
	return *ret_effects <= 1 || hpx_judge_effects(judge, intent, 1);
}

void hpx_row_binary_body(struct hpx_judge *judge)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_span bodies[2];
	uint64_t effects;

	hpx_judge_expects(judge, "4xx, and no second effect, for a body with one byte changed under its key");
	if (intent == NULL || !make_octets(judge, intent, bodies))
		return;
	struct hpx_sending sending = { .intent = intent,
				       .body = bodies[0],
				       .content_type = HPX_SPAN("application/octet-stream") };
	const struct hpx_exchange *first = hpx_judge_send(judge, &sending);
	if (first == NULL)
		return;
	if (!hpx_exchange_is_done(first)) {
		hpx_judge_not_applicable(judge, "the API takes no such body: %s",
					 hpx_judge_words(judge, first));
		return;
	}
	const struct hpx_exchange *again = hpx_judge_send(judge, &sending);
	if (again == NULL || !hpx_judge_same(judge, first, again, "the same bytes again") ||
	    !count_octets(judge, intent, &effects))
		return;
	sending.body = bodies[1];
	const struct hpx_exchange *other = hpx_judge_send(judge, &sending);
	if (other == NULL)
		return;
	if (hpx_judge_refused(judge, intent, other, "one byte changed", effects))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, other),
				hpx_judge_effect_words(judge, intent));
	hpx_judge_blames_mismatch(judge, intent, first, other);
}

void hpx_row_binary_answer(struct hpx_judge *judge)
{
	const struct hpx_exchange *first;
	const struct hpx_exchange *again;

	hpx_judge_expects(judge, "the retry of `binary` gets the bytes of the first answer");
	if (!hpx_judge_has(judge, HPX_REQUEST_binary) ||
	    !hpx_judge_twice(judge, HPX_REQUEST_binary, &first, &again))
		return;
	if (hpx_judge_same(judge, first, again, "the retry"))
		hpx_judge_holds(judge, "%u, the same %zu bytes", again->status, again->body_bytes);
}

void hpx_row_large_body(struct hpx_judge *judge)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_span body;

	hpx_judge_expects(judge, "300 KiB: done once and replayed, or refused with a 4xx and no effect");
	if (intent == NULL)
		return;
	if (hpx_rewrite_pad(intent->body, LARGE_BYTES, hpx_verify_arena(judge->run), &body) != HPX_OK) {
		hpx_judge_not_applicable(judge, "the body is no JSON that could be padded");
		return;
	}
	struct hpx_sending sending = { .intent = intent, .body = body };
	const struct hpx_exchange *first = hpx_judge_send(judge, &sending);
	if (first == NULL)
		return;
	bool done = hpx_exchange_is_done(first);
	if (!done && !hpx_judge_refused(judge, intent, first, "the large body", 0))
		return;
	const struct hpx_exchange *again = done ? hpx_judge_send(judge, &sending) : first;
	if (again != NULL && hpx_judge_same(judge, first, again, "the retry") &&
	    hpx_judge_effects(judge, intent, done ? 1 : 0))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, again),
				hpx_judge_effect_words(judge, intent));
}

/* "It happened, and its answer is gone": neither a mismatch, nor something to come
 * back for. */
static bool is_not_kept(const struct hpx_exchange *exchange)
{
	return exchange->status == 410 ||
	       (exchange->status == 409 &&
		hpx_exchange_field(exchange, HPX_SPAN("Retry-After")).ptr == NULL);
}

void hpx_row_large_answer(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "the retry gets the same answer, or is told that it was not kept (409, 410); one effect");
	if (!hpx_judge_has(judge, HPX_REQUEST_large_answer))
		return;
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_large_answer);
	const struct hpx_exchange *first = intent != NULL ? hpx_judge_do(judge, intent) : NULL;
	const struct hpx_exchange *again = first;

	for (int i = 0; i < 2 && again != NULL; i++) {
		again = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
		if (again == NULL || is_not_kept(again) ||
		    hpx_judge_same(judge, first, again, "the retry"))
			continue;
		if (hpx_verify_counts(judge->run) && !hpx_judge_counted_more(judge, intent, 1))
			hpx_judge_blames(judge, HPX_GUARANTEE_REPLAY,
					 "It happened once, and whoever asks again is not told so.");
		return;
	}
	if (again != NULL && hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%u with %zu bytes, then %u with %zu; %s", first->status,
				first->body_bytes, again->status, again->body_bytes,
				hpx_judge_effect_words(judge, intent));
}
