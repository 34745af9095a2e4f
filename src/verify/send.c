/* Sending: alone, begun and finished, or all at the same moment. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "verify/state.h"

/* ---- making a flight ---- */

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

static void record(struct hpx_inflight *inflight, const struct hpx_request_variant *variant)
{
	struct hpx_verify_exchange *exchange = inflight->exchange;
	const struct hpx_request_bytes *request = &inflight->request;

	exchange->cut = variant->cut;
	exchange->request_head = request->shown_head;
	exchange->request_body = hpx_span_first(request->body, HPX_EXCHANGE_KEPT);
	exchange->request_body_bytes = request->body.len;
	memcpy(exchange->key, request->key, sizeof(exchange->key));
}

static void join(struct hpx_verify *run, struct hpx_inflight *inflight)
{
	inflight->next = run->live;
	run->live = inflight;
	run->live_count++;
}

static void leave(struct hpx_verify *run, struct hpx_inflight *inflight)
{
	struct hpx_inflight **at = &run->live;

	while (*at != NULL && *at != inflight)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	*at = inflight->next;
	run->live_count--;
}

/* Why it is not to be sent; NULL: it may be. */
static const char *refusal(struct hpx_verify *run)
{
	const char *why = hpx_verify_stop_reason(run);

	if (why == NULL && run->live_count >= run->spec->concurrency_max)
		why = "as many as --concurrency allows are under way";
	return why;
}

/* NULL, and why, where nothing can be sent. */
static struct hpx_inflight *prepare(struct hpx_verify *run, const struct hpx_request_variant *variant,
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
	enum hpx_status status = hpx_request_bytes_build(run->spec, variant, &run->row_arena,
							 &inflight->request);
	if (status == HPX_INVALID)
		*ret_why = "the request cannot be written: a byte in it would be another line";
	if (status == HPX_OK)
		inflight->exchange = hpx_verify_log_add(run);
	if (inflight->exchange == NULL) {
		free(inflight);
		return NULL;
	}
	hpx_response_init(&inflight->answer, inflight->request.method, &run->share);
	record(inflight, variant);
	return inflight;
}

static void start(struct hpx_inflight *inflight)
{
	struct hpx_verify *run = inflight->run;
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	join(run, inflight);
	if (hpx_verify_open(run, problem) == HPX_OK) {
		hpx_inflight_start(inflight, &run->host);
		return;
	}
	inflight->state = HPX_INFLIGHT_DONE;
	inflight->exchange->end = HPX_EXCHANGE_REFUSED;
	snprintf(inflight->exchange->problem, sizeof(inflight->exchange->problem), "%.150s", problem);
}

static const struct hpx_verify_exchange *land(struct hpx_inflight *inflight)
{
	const struct hpx_verify_exchange *exchange = inflight->exchange;

	if (inflight == &inflight->run->not_started)
		return exchange;
	leave(inflight->run, inflight);
	hpx_inflight_done(inflight);
	free(inflight);
	return exchange;
}

/* ---- one ---- */

const struct hpx_verify_exchange *hpx_verify_send(struct hpx_verify *run,
						  const struct hpx_request_variant *variant)
{
	const char *why = refusal(run);
	struct hpx_inflight *inflight = why == NULL ? prepare(run, variant, &why) : NULL;

	if (inflight == NULL)
		return hpx_verify_log_unsent(run, why);
	start(inflight);
	hpx_verify_poll(run, is_ended, inflight, -1);
	return land(inflight);
}

struct hpx_inflight *hpx_verify_begin(struct hpx_verify *run, const struct hpx_request_variant *variant)
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
	return inflight->state != HPX_INFLIGHT_DONE && inflight->answer.head_bytes.len == 0;
}

const struct hpx_verify_exchange *hpx_verify_finish(struct hpx_inflight *inflight)
{
	hpx_verify_poll(inflight->run, is_ended, inflight, -1);
	return land(inflight);
}

const struct hpx_verify_exchange *hpx_verify_abandon(struct hpx_inflight *inflight)
{
	hpx_inflight_cut(inflight);
	return land(inflight);
}

/* ---- many ---- */

/* All of a batch, in an array. */
struct inflight_batch {
	struct hpx_inflight **inflights;
	size_t count;
};

static bool are_poised(void *user)
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

static void gather(struct hpx_verify *run, const struct hpx_request_variant *variants, size_t count,
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

/* The last bytes, one write behind the other. */
static void let_go(struct inflight_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		hpx_inflight_release(batch->inflights[i]);
	for (size_t i = 0; i < batch->count; i++)
		hpx_inflight_step(batch->inflights[i]);
}

void hpx_verify_send_concurrently(struct hpx_verify *run, const struct hpx_request_variant *variants,
				  size_t count, const struct hpx_verify_exchange **exchanges,
				  size_t *ret_sent)
{
	struct inflight_batch batch = { calloc(count > 0 ? count : 1, sizeof(struct hpx_inflight *)), 0 };
	const char *why = "no memory for the requests";

	if (batch.inflights != NULL)
		gather(run, variants, count, &batch, &why);
	hpx_verify_poll(run, are_poised, &batch, -1);
	let_go(&batch);
	hpx_verify_poll(run, are_ended, &batch, -1);
	for (size_t i = 0; i < batch.count; i++)
		exchanges[i] = land(batch.inflights[i]);
	for (size_t i = batch.count; i < count; i++)
		exchanges[i] = hpx_verify_log_unsent(run, why);
	free(batch.inflights);
	*ret_sent = batch.count;
}
