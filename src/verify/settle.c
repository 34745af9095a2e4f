/* Sending again until there is a definite answer, as a good client would; or
 * until whoever limits the rate of requests lets one through. */
#include "base/clock.h"
#include "core/backoff.h"
#include "core/json_lookup.h"
#include "http/retry_after.h"
#include "verify/state.h"

#define CODE_MAX 128

static const struct hpx_backoff backoff = { .base_ms = 50, .cap_ms = 1000 };

/* Whoever meets a key in progress is told 409, in whatever words. What says that
 * it happened and is not kept will not change. */
static bool is_not_kept(struct hpx_verify *run, const struct hpx_verify_exchange *exchange)
{
	struct hpx_json_scalar scalar;

	return hpx_json_lookup(exchange->body, HPX_SPAN("/code"), CODE_MAX, &run->row_arena,
			       &scalar) == HPX_OK &&
	       hpx_span_eq(scalar.text, HPX_SPAN("response_not_kept"));
}

static bool is_definite(struct hpx_verify *run, const struct hpx_verify_exchange *exchange)
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
		return is_not_kept(run, exchange);
	default:
		return true;
	}
}

static int64_t delay_of(struct hpx_verify *run, const struct hpx_verify_exchange *exchange,
			unsigned attempt)
{
	struct hpx_span asked = hpx_verify_exchange_field(exchange, HPX_SPAN("Retry-After"));
	int64_t delay_ms = hpx_backoff_delay(&backoff, attempt, hpx_verify_random(run));
	uint32_t seconds;

	if (asked.ptr == NULL ||
	    hpx_retry_after_parse(asked, hpx_clock_wall_ms(), &seconds) != HPX_OK)
		return delay_ms;
	return hpx_backoff_heed(delay_ms, (int64_t)seconds * 1000, INT64_MAX);
}

const struct hpx_verify_exchange *hpx_verify_settle(struct hpx_verify *run,
						    const struct hpx_request_variant *variant,
						    unsigned *ret_sent)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	struct hpx_request_variant whole = *variant;
	const struct hpx_verify_exchange *last = NULL;
	unsigned sent = 0;

	whole.cut = HPX_CUT_NONE;
	for (;;) {
		const struct hpx_verify_exchange *exchange = hpx_verify_send(run, &whole);
		/* Where a bound ends it, what came before says more. */
		if (exchange->end != HPX_EXCHANGE_UNSENT || last == NULL)
			last = exchange;
		sent += exchange->end != HPX_EXCHANGE_UNSENT;
		if (is_definite(run, exchange))
			break;
		int64_t delay_ms = delay_of(run, exchange, sent);
		if (delay_ms >= deadline_ms - hpx_clock_boot_ms())
			break;
		hpx_verify_poll_for(run, delay_ms);
	}
	if (ret_sent != NULL)
		*ret_sent = sent;
	return last;
}

/* ---- many, behind a start ---- */

/* A server that has just come up may fail in ways that pass: no 5xx is its last
 * word before the settle time is over. */
static bool is_final(struct hpx_verify *run, const struct hpx_verify_exchange *exchange)
{
	bool failed = exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status / 100 == 5;

	return !failed && is_definite(run, exchange);
}

/* Sent again if it is time for that. When the next one is due; INT64_MAX: there is
 * nothing more to send. */
static int64_t take_turn(struct hpx_verify *run, struct hpx_verify_settling *one)
{
	if (one->last != NULL && is_final(run, one->last))
		return INT64_MAX;
	if (one->due_ms > hpx_clock_boot_ms())
		return one->due_ms;
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, &one->variant);
	bool unsent = exchange->end == HPX_EXCHANGE_UNSENT;
	/* Where a bound ends it, what came before says more. */
	if (one->last == NULL || !unsent)
		one->last = exchange;
	one->sent += unsent ? 0 : 1;
	if (unsent || is_final(run, exchange))
		return INT64_MAX;
	one->due_ms = hpx_clock_boot_ms() + delay_of(run, exchange, one->sent);
	return one->due_ms;
}

void hpx_verify_settle_all(struct hpx_verify *run, struct hpx_verify_settling *all, size_t count)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	int64_t next_ms = 0;

	while (next_ms < deadline_ms) {
		next_ms = INT64_MAX;
		for (size_t i = 0; i < count; i++) {
			int64_t due_ms = take_turn(run, &all[i]);

			next_ms = due_ms < next_ms ? due_ms : next_ms;
		}
		int64_t wait_ms = next_ms - hpx_clock_boot_ms();
		if (next_ms < deadline_ms && wait_ms > 0)
			hpx_verify_poll_for(run, wait_ms);
	}
}

/* ---- limits of the rate ---- */

static bool is_put_off(const struct hpx_verify_exchange *exchange)
{
	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status == 429;
}

const struct hpx_verify_exchange *hpx_verify_send_retry_429(struct hpx_verify *run,
							    const struct hpx_request_variant *variant)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, variant);

	for (unsigned sent = 1; is_put_off(exchange); sent++) {
		int64_t delay_ms = delay_of(run, exchange, sent);

		if (delay_ms >= deadline_ms - hpx_clock_boot_ms())
			break;
		hpx_verify_poll_for(run, delay_ms);
		exchange = hpx_verify_send(run, variant);
	}
	return exchange;
}
