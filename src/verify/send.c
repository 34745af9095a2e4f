/* Sending: alone, begun and finished, or all at the same moment. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "verify/state.h"

/* ---- making a flight ---- */

static bool is_ended(void *user)
{
	const struct hpx_flight *flight = user;

	return flight->state == HPX_FLIGHT_DONE;
}

static bool is_sent(void *user)
{
	const struct hpx_flight *flight = user;

	return flight->state > HPX_FLIGHT_HELD;
}

static void record(struct hpx_flight *flight, const struct hpx_sending *sending)
{
	struct hpx_exchange *exchange = flight->exchange;
	const struct hpx_wire_request *request = &flight->request;

	exchange->cut = sending->cut;
	exchange->request_head = request->shown_head;
	exchange->request_body = hpx_span_first(request->body, HPX_EXCHANGE_KEPT);
	exchange->request_body_bytes = request->body.len;
	memcpy(exchange->key, request->key, sizeof(exchange->key));
}

static void join(struct hpx_verify *run, struct hpx_flight *flight)
{
	flight->next = run->live;
	run->live = flight;
	run->live_count++;
}

static void leave(struct hpx_verify *run, struct hpx_flight *flight)
{
	struct hpx_flight **at = &run->live;

	while (*at != NULL && *at != flight)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	*at = flight->next;
	run->live_count--;
}

/* Why it is not to be sent; NULL: it may be. */
static const char *refusal(struct hpx_verify *run)
{
	const char *why = hpx_verify_over(run);

	if (why == NULL && run->live_count >= run->spec->concurrency_max)
		why = "as many as --concurrency allows are under way";
	return why;
}

/* NULL, and why, where nothing can be sent. */
static struct hpx_flight *prepare(struct hpx_verify *run, const struct hpx_sending *sending,
				  const char **ret_why)
{
	struct hpx_flight *flight = calloc(1, sizeof(*flight));

	*ret_why = "no memory for the request";
	if (flight == NULL)
		return NULL;
	flight->run = run;
	flight->wire.fd = -1;
	flight->arena = &run->row_arena;
	flight->timeout_ms = (int64_t)run->spec->answer_timeout_ms;
	flight->linger_ms = sending->linger_ms;
	flight->began_ms = hpx_clock_boot_ms();
	enum hpx_status status = hpx_wire_request_build(run->spec, sending, &run->row_arena,
							&flight->request);
	if (status == HPX_INVALID)
		*ret_why = "the request cannot be written: a byte in it would be another line";
	if (status == HPX_OK)
		flight->exchange = hpx_log_add(run);
	if (flight->exchange == NULL) {
		free(flight);
		return NULL;
	}
	hpx_reply_init(&flight->answer, flight->request.method, &run->share);
	record(flight, sending);
	return flight;
}

static void start(struct hpx_flight *flight)
{
	struct hpx_verify *run = flight->run;
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	join(run, flight);
	if (hpx_verify_open(run, problem) == HPX_OK) {
		hpx_flight_start(flight, &run->host);
		return;
	}
	flight->state = HPX_FLIGHT_DONE;
	flight->exchange->end = HPX_EXCHANGE_REFUSED;
	snprintf(flight->exchange->problem, sizeof(flight->exchange->problem), "%.150s", problem);
}

static const struct hpx_exchange *land(struct hpx_flight *flight)
{
	const struct hpx_exchange *exchange = flight->exchange;

	if (flight == &flight->run->grounded)
		return exchange;
	leave(flight->run, flight);
	hpx_flight_done(flight);
	free(flight);
	return exchange;
}

/* ---- one ---- */

const struct hpx_exchange *hpx_verify_send(struct hpx_verify *run,
					   const struct hpx_sending *sending)
{
	const char *why = refusal(run);
	struct hpx_flight *flight = why == NULL ? prepare(run, sending, &why) : NULL;

	if (flight == NULL)
		return hpx_log_unsent(run, why);
	start(flight);
	hpx_drive(run, is_ended, flight, -1);
	return land(flight);
}

struct hpx_flight *hpx_verify_begin(struct hpx_verify *run, const struct hpx_sending *sending)
{
	const char *why = refusal(run);
	struct hpx_flight *flight = why == NULL ? prepare(run, sending, &why) : NULL;

	if (flight == NULL) {
		hpx_log_unsent(run, why);
		return &run->grounded;
	}
	start(flight);
	hpx_drive(run, is_sent, flight, -1);
	return flight;
}

static bool is_true(void *user)
{
	return user != NULL;
}

bool hpx_verify_is_waiting(struct hpx_flight *flight)
{
	hpx_drive(flight->run, is_true, flight, 0);
	return flight->state != HPX_FLIGHT_DONE && flight->answer.head_bytes.len == 0;
}

const struct hpx_exchange *hpx_verify_finish(struct hpx_flight *flight)
{
	hpx_drive(flight->run, is_ended, flight, -1);
	return land(flight);
}

const struct hpx_exchange *hpx_verify_abandon(struct hpx_flight *flight)
{
	hpx_flight_cut(flight);
	return land(flight);
}

/* ---- many ---- */

/* All of a crowd, in an array. */
struct crowd {
	struct hpx_flight **flights;
	size_t count;
};

static bool are_poised(void *user)
{
	const struct crowd *crowd = user;

	for (size_t i = 0; i < crowd->count; i++)
		if (crowd->flights[i]->state != HPX_FLIGHT_HELD &&
		    crowd->flights[i]->state != HPX_FLIGHT_DONE)
			return false;
	return true;
}

static bool are_ended(void *user)
{
	const struct crowd *crowd = user;

	for (size_t i = 0; i < crowd->count; i++)
		if (crowd->flights[i]->state != HPX_FLIGHT_DONE)
			return false;
	return true;
}

static void gather(struct hpx_verify *run, const struct hpx_sending *sendings, size_t count,
		   struct crowd *crowd, const char **ret_why)
{
	for (; crowd->count < count; crowd->count++) {
		*ret_why = refusal(run);
		if (*ret_why != NULL)
			return;
		struct hpx_flight *flight = prepare(run, &sendings[crowd->count], ret_why);
		if (flight == NULL)
			return;
		flight->hold = true;
		start(flight);
		crowd->flights[crowd->count] = flight;
	}
}

/* The last bytes, one write behind the other. */
static void let_go(struct crowd *crowd)
{
	for (size_t i = 0; i < crowd->count; i++)
		hpx_flight_release(crowd->flights[i]);
	for (size_t i = 0; i < crowd->count; i++)
		hpx_flight_step(crowd->flights[i]);
}

void hpx_verify_send_together(struct hpx_verify *run, const struct hpx_sending *sendings,
			      size_t count, const struct hpx_exchange **exchanges,
			      size_t *ret_sent)
{
	struct crowd crowd = { calloc(count > 0 ? count : 1, sizeof(struct hpx_flight *)), 0 };
	const char *why = "no memory for the requests";

	if (crowd.flights != NULL)
		gather(run, sendings, count, &crowd, &why);
	hpx_drive(run, are_poised, &crowd, -1);
	let_go(&crowd);
	hpx_drive(run, are_ended, &crowd, -1);
	for (size_t i = 0; i < crowd.count; i++)
		exchanges[i] = land(crowd.flights[i]);
	for (size_t i = crowd.count; i < count; i++)
		exchanges[i] = hpx_log_unsent(run, why);
	free(crowd.flights);
	*ret_sent = crowd.count;
}
