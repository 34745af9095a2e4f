/* Sending requests: one, begun and finished, or many at the same moment; and
 * sending again, as a good client would, until there is a definite answer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/json.h"
#include "core/pacing.h"
#include "http/retry_after.h"
#include "verify/run_state.h"

/* ---- one request in flight ---- */

static bool is_ended(void *user)
{
	const struct hpx_inflight *inflight = user;

	return inflight->state == HPX_INFLIGHT_DONE;
}

static bool is_sent(void *user)
{
	const struct hpx_inflight *inflight = user;

	return inflight->state > HPX_INFLIGHT_HELD;
}

static void record(struct hpx_inflight *inflight, const struct hpx_verify_variant *variant)
{
	struct hpx_verify_exchange *exchange = inflight->exchange;
	const struct hpx_verify_request_bytes *request = &inflight->request;

	exchange->cut = variant->cut;
	exchange->request_head = request->shown_head;
	exchange->request_body = hpx_span_first(request->body, HPX_EXCHANGE_KEPT);
	exchange->request_body_bytes = request->body.len;
	memcpy(exchange->key, request->key, sizeof(exchange->key));
}

static void live_add(struct hpx_verify *run, struct hpx_inflight *inflight)
{
	HPX_ASSERT(run->live_count < run->spec->concurrency_max);
	inflight->next = run->live;
	run->live = inflight;
	run->live_count++;
}

static void live_remove(struct hpx_verify *run, struct hpx_inflight *inflight)
{
	struct hpx_inflight **at = &run->live;

	while (*at != NULL && *at != inflight)
		at = &(*at)->next;
	HPX_ASSERT(*at == inflight && run->live_count > 0);
	*at = inflight->next;
	run->live_count--;
}

/* Why nothing may be sent; NULL: it may. */
static const char *refusal(struct hpx_verify *run)
{
	const char *why = hpx_verify_stop_reason(run);

	if (why == NULL && run->live_count >= run->spec->concurrency_max)
		why = "as many as --concurrency allows are under way";
	return why;
}

/* NULL and the reason where the request cannot be sent. */
static struct hpx_inflight *prepare(struct hpx_verify *run, const struct hpx_verify_variant *variant,
				    const char **ret_why)
{
	struct hpx_inflight *inflight = calloc(1, sizeof(*inflight));

	*ret_why = "no memory for the request";
	if (inflight == NULL)
		return NULL;
	inflight->run = run;
	inflight->conn.fd = -1;
	inflight->arena = &run->row_arena;
	inflight->timeout_ms = (int64_t)run->spec->answer_timeout_ms;
	inflight->linger_ms = variant->linger_ms;
	inflight->began_ms = hpx_clock_boot_ms();
	enum hpx_status status = hpx_verify_request_build(run->spec, variant, &run->row_arena,
							  &inflight->request);
	if (status == HPX_INVALID)
		*ret_why = "the request cannot be written: a byte in it would be another line";
	if (status == HPX_OK)
		inflight->exchange = hpx_verify_log_add(run);
	if (inflight->exchange == NULL) {
		free(inflight);
		return NULL;
	}
	HPX_ASSERT(run->kept < run->exchange_count);
	hpx_response_init(&inflight->response, inflight->request.method, &run->shared);
	record(inflight, variant);
	return inflight;
}

static void start(struct hpx_inflight *inflight)
{
	struct hpx_verify *run = inflight->run;
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	live_add(run, inflight);
	if (hpx_verify_open(run, problem) == HPX_OK) {
		hpx_inflight_start(inflight, &run->host);
		return;
	}
	inflight->state = HPX_INFLIGHT_DONE;
	inflight->exchange->end = HPX_EXCHANGE_REFUSED;
	snprintf(inflight->exchange->problem, sizeof(inflight->exchange->problem), "%.150s", problem);
}

static const struct hpx_verify_exchange *end_inflight(struct hpx_inflight *inflight)
{
	const struct hpx_verify_exchange *exchange = inflight->exchange;

	if (inflight == &inflight->run->not_started)
		return exchange;
	HPX_ASSERT(inflight->state == HPX_INFLIGHT_DONE);
	live_remove(inflight->run, inflight);
	hpx_inflight_done(inflight);
	free(inflight);
	return exchange;
}

/* ---- one request ---- */

const struct hpx_verify_exchange *hpx_verify_send(struct hpx_verify *run,
						  const struct hpx_verify_variant *variant)
{
	const char *why = refusal(run);
	struct hpx_inflight *inflight = why == NULL ? prepare(run, variant, &why) : NULL;

	if (inflight == NULL)
		return hpx_verify_log_unsent(run, why);
	start(inflight);
	hpx_verify_poll(run, is_ended, inflight, -1);
	return end_inflight(inflight);
}

struct hpx_inflight *hpx_verify_begin(struct hpx_verify *run, const struct hpx_verify_variant *variant)
{
	const char *why = refusal(run);
	struct hpx_inflight *inflight = why == NULL ? prepare(run, variant, &why) : NULL;

	if (inflight == NULL) {
		hpx_verify_log_unsent(run, why);
		return &run->not_started;
	}
	start(inflight);
	hpx_verify_poll(run, is_sent, inflight, -1);
	return inflight;
}

static bool is_true(void *user)
{
	return user != NULL;
}

bool hpx_verify_is_waiting(struct hpx_inflight *inflight)
{
	hpx_verify_poll(inflight->run, is_true, inflight, 0);
	return inflight->state != HPX_INFLIGHT_DONE && inflight->response.head_bytes.len == 0;
}

const struct hpx_verify_exchange *hpx_verify_finish(struct hpx_inflight *inflight)
{
	hpx_verify_poll(inflight->run, is_ended, inflight, -1);
	return end_inflight(inflight);
}

const struct hpx_verify_exchange *hpx_verify_abandon(struct hpx_inflight *inflight)
{
	hpx_inflight_cut(inflight);
	return end_inflight(inflight);
}

/* ---- many at the same moment ---- */

/* The requests of a batch. */
struct inflight_batch {
	struct hpx_inflight **inflights;
	size_t count;
};

static bool are_held(void *user)
{
	const struct inflight_batch *batch = user;

	for (size_t i = 0; i < batch->count; i++)
		if (batch->inflights[i]->state != HPX_INFLIGHT_HELD &&
		    batch->inflights[i]->state != HPX_INFLIGHT_DONE)
			return false;
	return true;
}

static bool are_ended(void *user)
{
	const struct inflight_batch *batch = user;

	for (size_t i = 0; i < batch->count; i++)
		if (batch->inflights[i]->state != HPX_INFLIGHT_DONE)
			return false;
	return true;
}

static void start_batch(struct hpx_verify *run, const struct hpx_verify_variant *variants, size_t count,
			struct inflight_batch *batch, const char **ret_why)
{
	for (; batch->count < count; batch->count++) {
		*ret_why = refusal(run);
		if (*ret_why != NULL)
			return;
		struct hpx_inflight *inflight = prepare(run, &variants[batch->count], ret_why);
		if (inflight == NULL)
			return;
		inflight->hold = true;
		start(inflight);
		batch->inflights[batch->count] = inflight;
	}
}

/* The last bytes, one write right after the other. */
static void release_batch(struct inflight_batch *batch)
{
	HPX_ASSERT(are_held(batch));
	for (size_t i = 0; i < batch->count; i++)
		hpx_inflight_release(batch->inflights[i]);
	for (size_t i = 0; i < batch->count; i++)
		hpx_inflight_step(batch->inflights[i]);
}

void hpx_verify_send_concurrently(struct hpx_verify *run, const struct hpx_verify_variant *variants,
				  size_t count, const struct hpx_verify_exchange **exchanges,
				  size_t *ret_sent)
{
	struct inflight_batch batch = { calloc(count > 0 ? count : 1, sizeof(struct hpx_inflight *)), 0 };
	const char *why = "no memory for the requests";

	if (batch.inflights != NULL)
		start_batch(run, variants, count, &batch, &why);
	hpx_verify_poll(run, are_held, &batch, -1);
	release_batch(&batch);
	hpx_verify_poll(run, are_ended, &batch, -1);
	HPX_ASSERT(batch.count <= count);
	for (size_t i = 0; i < batch.count; i++)
		exchanges[i] = end_inflight(batch.inflights[i]);
	for (size_t i = batch.count; i < count; i++)
		exchanges[i] = hpx_verify_log_unsent(run, why);
	free(batch.inflights);
	*ret_sent = batch.count;
}

/* ---- until there is a definite answer ---- */

#define CODE_MAX 128

static const struct hpx_backoff backoff = { .base_ms = 50, .cap_ms = 1000 };

/* A key in progress is a 409, whatever its body says. A 409 that says that the answer
 * was not kept will stay one. */
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

	HPX_ASSERT(attempt > 0 && exchange->end != HPX_EXCHANGE_UNSENT);
	if (asked.ptr == NULL ||
	    hpx_retry_after_parse(asked, hpx_clock_wall_ms(), &seconds) != HPX_OK)
		return delay_ms;
	return hpx_backoff_heed(delay_ms, (int64_t)seconds * 1000, INT64_MAX);
}

const struct hpx_verify_exchange *hpx_verify_settle(struct hpx_verify *run,
						    const struct hpx_verify_variant *variant,
						    unsigned *ret_sent)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	struct hpx_verify_variant whole = *variant;
	const struct hpx_verify_exchange *last = NULL;
	unsigned sent = 0;

	whole.cut = HPX_CUT_NONE;
	for (;;) {
		const struct hpx_verify_exchange *exchange = hpx_verify_send(run, &whole);
		/* Where a bound of the run ends the retries, the exchange before says
		 * more. */
		if (exchange->end != HPX_EXCHANGE_UNSENT || last == NULL)
			last = exchange;
		sent += exchange->end != HPX_EXCHANGE_UNSENT;
		if (is_definite(run, exchange))
			break;
		int64_t delay_ms = delay_of(run, exchange, sent);
		if (delay_ms >= deadline_ms - hpx_clock_boot_ms())
			break;
		hpx_verify_pause(run, delay_ms);
	}
	HPX_ASSERT(last != NULL);
	if (ret_sent != NULL)
		*ret_sent = sent;
	return last;
}

/* ---- many, after a start of the server ---- */

/* A server that has just started may fail for a while: no 5xx is final before the
 * settle time is over. */
static bool is_final(struct hpx_verify *run, const struct hpx_verify_exchange *exchange)
{
	bool failed = exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status / 100 == 5;

	return !failed && is_definite(run, exchange);
}

/* Sends the request again if it is due. When the next one is due; INT64_MAX: there is
 * nothing more to send. */
static int64_t settle_turn(struct hpx_verify *run, struct hpx_verify_settling *one)
{
	HPX_ASSERT(one->variant.cut == HPX_CUT_NONE);
	if (one->last != NULL && is_final(run, one->last))
		return INT64_MAX;
	if (one->due_ms > hpx_clock_boot_ms())
		return one->due_ms;
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, &one->variant);
	bool unsent = exchange->end == HPX_EXCHANGE_UNSENT;
	/* Where a bound of the run ends the retries, the exchange before says more. */
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
			int64_t due_ms = settle_turn(run, &all[i]);

			next_ms = due_ms < next_ms ? due_ms : next_ms;
		}
		int64_t wait_ms = next_ms - hpx_clock_boot_ms();
		if (next_ms < deadline_ms && wait_ms > 0)
			hpx_verify_pause(run, wait_ms);
	}
}

/* ---- rate limits ---- */

static bool is_rate_limited(const struct hpx_verify_exchange *exchange)
{
	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status == 429;
}

/* Waits as a 429 says; false where the time would be over by then. */
static bool wait_for_limit(struct hpx_verify *run, const struct hpx_verify_exchange *exchange,
			   unsigned sent, int64_t deadline_ms)
{
	int64_t delay_ms = delay_of(run, exchange, sent);

	if (delay_ms >= deadline_ms - hpx_clock_boot_ms())
		return false;
	hpx_verify_pause(run, delay_ms);
	return true;
}

const struct hpx_verify_exchange *hpx_verify_send_retry_429(struct hpx_verify *run,
							    const struct hpx_verify_variant *variant)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, variant);

	for (unsigned sent = 1; is_rate_limited(exchange); sent++) {
		if (!wait_for_limit(run, exchange, sent, deadline_ms))
			break;
		exchange = hpx_verify_send(run, variant);
	}
	return exchange;
}

struct hpx_inflight *hpx_verify_begin_retry_429(struct hpx_verify *run,
						const struct hpx_verify_variant *variant,
						int64_t pause_ms,
						const struct hpx_verify_exchange **ret_answer)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;

	for (unsigned sent = 1;; sent++) {
		struct hpx_inflight *inflight = hpx_verify_begin(run, variant);

		hpx_verify_pause(run, pause_ms);
		if (hpx_verify_is_waiting(inflight))
			return inflight;
		*ret_answer = hpx_verify_finish(inflight);
		if (!is_rate_limited(*ret_answer) ||
		    !wait_for_limit(run, *ret_answer, sent, deadline_ms))
			return NULL;
	}
}
