/* Sending again until there is a definite answer, as a good client would. */
#include "base/clock.h"
#include "core/backoff.h"
#include "core/json_lookup.h"
#include "http/retry_after.h"
#include "verify/state.h"

#define CODE_MAX 128
/* Where words are looked for. */
#define WORDS_BYTES_MAX 2048

static const struct hpx_backoff backoff = { .base_ms = 50, .cap_ms = 1000 };

static bool text_is(struct hpx_verify *run, const struct hpx_exchange *exchange,
		    struct hpx_span pointer, struct hpx_span want)
{
	struct hpx_json_scalar scalar;

	return hpx_json_lookup(exchange->body, pointer, CODE_MAX, &run->row_arena, &scalar) ==
		       HPX_OK &&
	       hpx_span_eq(scalar.text, want);
}

static bool has_words(struct hpx_span body, struct hpx_span words)
{
	for (size_t i = 0; i + words.len <= body.len && i < WORDS_BYTES_MAX; i++)
		if (hpx_span_istarts(hpx_span_skip(body, i), words))
			return true;
	return false;
}

/* A 409 may be the application's own refusal. It is one of a key in use where
 * it names a time to come back, says so by its code, or in words. */
static bool is_in_progress(struct hpx_verify *run, const struct hpx_exchange *exchange)
{
	static const struct hpx_span words[] = {
		HPX_SPAN_INIT("in progress"), HPX_SPAN_INIT("in_progress"),
		HPX_SPAN_INIT("outstanding"), HPX_SPAN_INIT("being processed"),
		HPX_SPAN_INIT("outcome_unknown"), HPX_SPAN_INIT("key_in_use"),
	};

	if (text_is(run, exchange, HPX_SPAN("/code"), HPX_SPAN("response_not_kept")))
		return false;
	if (hpx_exchange_field(exchange, HPX_SPAN("Retry-After")).ptr != NULL ||
	    text_is(run, exchange, HPX_SPAN("/error/type"), HPX_SPAN("idempotency_error")))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (has_words(exchange->body, words[i]))
			return true;
	return false;
}

static bool is_definite(struct hpx_verify *run, const struct hpx_exchange *exchange)
{
	switch (exchange->end) {
	case HPX_EXCHANGE_UNSENT:
		return true;
	case HPX_EXCHANGE_ANSWERED:
		break;
	default:
		return false;
	}
	switch (exchange->status) {
	case 425:
	case 429:
	case 502:
	case 503:
	case 504:
		return false;
	case 409:
		return !is_in_progress(run, exchange);
	default:
		return true;
	}
}

static int64_t delay_of(struct hpx_verify *run, const struct hpx_exchange *exchange,
			unsigned attempt)
{
	struct hpx_span asked = hpx_exchange_field(exchange, HPX_SPAN("Retry-After"));
	int64_t delay_ms = hpx_backoff_delay(&backoff, attempt, hpx_verify_random(run));
	uint32_t seconds;

	if (asked.ptr == NULL ||
	    hpx_retry_after_parse(asked, hpx_clock_wall_ms(), &seconds) != HPX_OK)
		return delay_ms;
	return hpx_backoff_heed(delay_ms, (int64_t)seconds * 1000, INT64_MAX);
}

const struct hpx_exchange *hpx_verify_settle(struct hpx_verify *run,
					     const struct hpx_sending *sending,
					     unsigned *ret_sent)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	struct hpx_sending whole = *sending;
	const struct hpx_exchange *last = NULL;
	unsigned sent = 0;

	whole.cut = HPX_CUT_NONE;
	for (;;) {
		const struct hpx_exchange *exchange = hpx_verify_send(run, &whole);
		/* Where a bound ends it, what came before says more. */
		if (exchange->end != HPX_EXCHANGE_UNSENT || last == NULL)
			last = exchange;
		sent += exchange->end != HPX_EXCHANGE_UNSENT;
		if (is_definite(run, exchange))
			break;
		int64_t delay_ms = delay_of(run, exchange, sent);
		if (delay_ms >= deadline_ms - hpx_clock_boot_ms())
			break;
		hpx_drive_wait(run, delay_ms);
	}
	if (ret_sent != NULL)
		*ret_sent = sent;
	return last;
}
