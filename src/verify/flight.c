/* The steps of a flight. Each gives true where the next one may be tried at
 * once.
 *
 *   CONNECTING ─▶ SENDING ─▶ READING ─▶ DONE
 *                  │   ▲        (an answer that comes early is taken, and a
 *                  ▼   │ release        connection that breaks is read to its end)
 *                  HELD
 *   with a cut:   SENDING ─▶ FLUSHING ─▶ DONE, or ─▶ AWAITING ─▶ DONE */
#include "verify/flight.h"

#include <poll.h>
#include <stdio.h>

#include "base/clock.h"

#define PIECE 16384
/* Then the others have their turn, and the deadline and Ctrl-C are looked at: a
 * server that sends faster than we read would go on for ever. */
#define STEPS_A_TURN 64

static void end(struct hpx_flight *flight, enum hpx_exchange_end how, const char *problem)
{
	struct hpx_exchange *exchange = flight->exchange;

	flight->state = HPX_FLIGHT_DONE;
	exchange->end = how;
	exchange->took_ms = hpx_clock_boot_ms() - flight->began_ms;
	snprintf(exchange->problem, sizeof(exchange->problem), "%s", problem);
	if (how == HPX_EXCHANGE_CUT)
		hpx_wire_reset(&flight->wire);
	else
		hpx_wire_close(&flight->wire);
}

static size_t stop_of(const struct hpx_wire_request *request, enum hpx_cut cut)
{
	if (cut == HPX_CUT_HEAD)
		return request->head_bytes;
	if (cut == HPX_CUT_HALF_BODY)
		return request->head_bytes + (request->bytes.len - request->head_bytes) / 2;
	return request->bytes.len;
}

void hpx_flight_start(struct hpx_flight *flight, const struct hpx_wire_host *host)
{
	char problem[HPX_WIRE_PROBLEM_SIZE];

	flight->state = HPX_FLIGHT_CONNECTING;
	flight->began_ms = hpx_clock_boot_ms();
	flight->deadline_ms = flight->began_ms + flight->timeout_ms;
	flight->stop = stop_of(&flight->request, flight->exchange->cut);
	flight->sent = 0;
	flight->flushed_ms = 0;
	if (hpx_wire_open(&flight->wire, host, problem) != HPX_OK)
		end(flight, HPX_EXCHANGE_REFUSED, problem);
}

static bool step_connecting(struct hpx_flight *flight)
{
	char problem[HPX_WIRE_PROBLEM_SIZE];
	enum hpx_status status = hpx_wire_connect(&flight->wire, problem);

	if (status == HPX_OK)
		flight->state = HPX_FLIGHT_SENDING;
	else if (status != HPX_BUSY)
		end(flight, HPX_EXCHANGE_REFUSED, problem);
	return status == HPX_OK;
}

static void take_answer(struct hpx_flight *flight, enum hpx_http_progress progress)
{
	if (progress == HPX_HTTP_BAD) {
		end(flight, HPX_EXCHANGE_LOST, flight->answer.problem);
		return;
	}
	if (progress == HPX_HTTP_MORE)
		return;
	if (hpx_reply_give(&flight->answer, flight->arena, flight->exchange) == HPX_OK)
		end(flight, HPX_EXCHANGE_ANSWERED, "");
	else
		end(flight, HPX_EXCHANGE_LOST, "no memory for the answer");
}

/* One piece; HPX_OK: there may be more. */
static enum hpx_status read_piece(struct hpx_flight *flight)
{
	char bytes[PIECE];
	size_t len = 0;
	enum hpx_status status = hpx_wire_receive(&flight->wire, bytes, sizeof(bytes), &len);

	if (status == HPX_OK)
		take_answer(flight, hpx_reply_feed(&flight->answer, hpx_span(bytes, len)));
	else if (status == HPX_CLOSED)
		take_answer(flight, hpx_reply_end(&flight->answer));
	else if (status != HPX_BUSY)
		end(flight, HPX_EXCHANGE_LOST, "the connection was reset");
	return status;
}

static bool step_reading(struct hpx_flight *flight)
{
	return read_piece(flight) == HPX_OK && flight->state == HPX_FLIGHT_READING;
}

/* Behind the last byte that is to go out. */
static bool sent_all(struct hpx_flight *flight)
{
	if (flight->hold) {
		flight->state = HPX_FLIGHT_HELD;
		return false;
	}
	flight->state = flight->exchange->cut == HPX_CUT_NONE ? HPX_FLIGHT_READING : HPX_FLIGHT_FLUSHING;
	return true;
}

static bool step_sending(struct hpx_flight *flight)
{
	size_t limit = flight->hold ? flight->stop - 1 : flight->stop;

	while (flight->sent < limit) {
		size_t n = 0;
		struct hpx_span left = hpx_span(flight->request.bytes.ptr + flight->sent,
						limit - flight->sent);
		enum hpx_status status = hpx_wire_send(&flight->wire, left, &n);

		flight->sent += n;
		if (status == HPX_BUSY) {
			short wants = flight->wire.wants;
			bool cut = flight->exchange->cut != HPX_CUT_NONE;
			/* Some answer before they have read all. */
			if (!cut && read_piece(flight) == HPX_BUSY)
				flight->wire.wants = wants;
			return false;
		}
		if (status != HPX_OK) {
			flight->state = HPX_FLIGHT_READING;
			return true;
		}
	}
	return sent_all(flight);
}

static bool step_flushing(struct hpx_flight *flight)
{
	if (flight->exchange->cut == HPX_CUT_BEFORE_ANSWER) {
		flight->state = HPX_FLIGHT_AWAITING;
		return true;
	}
	/* What a reset finds in our own queue would be dropped. */
	if (flight->flushed_ms == 0 && hpx_wire_is_flushed(&flight->wire))
		flight->flushed_ms = hpx_clock_boot_ms();
	if (flight->flushed_ms != 0 &&
	    hpx_clock_boot_ms() - flight->flushed_ms >= flight->linger_ms)
		end(flight, HPX_EXCHANGE_CUT, "");
	return false;
}

static bool step_awaiting(struct hpx_flight *flight)
{
	enum hpx_status status = hpx_wire_peek(&flight->wire);

	if (status == HPX_OK)
		end(flight, HPX_EXCHANGE_CUT, "");
	else if (status != HPX_BUSY)
		end(flight, HPX_EXCHANGE_LOST, "the connection was closed before an answer came");
	return false;
}

static bool step(struct hpx_flight *flight)
{
	switch (flight->state) {
	case HPX_FLIGHT_CONNECTING:
		return step_connecting(flight);
	case HPX_FLIGHT_SENDING:
		return step_sending(flight);
	case HPX_FLIGHT_FLUSHING:
		return step_flushing(flight);
	case HPX_FLIGHT_AWAITING:
		return step_awaiting(flight);
	case HPX_FLIGHT_READING:
		return step_reading(flight);
	case HPX_FLIGHT_HELD:
	case HPX_FLIGHT_DONE:
		break;
	}
	return false;
}

static void end_late(struct hpx_flight *flight)
{
	char problem[HPX_WIRE_PROBLEM_SIZE];
	bool connecting = flight->state == HPX_FLIGHT_CONNECTING;

	snprintf(problem, sizeof(problem), "no %s within %lld ms",
		 connecting ? "connection" : "whole answer", (long long)flight->timeout_ms);
	end(flight, connecting ? HPX_EXCHANGE_REFUSED : HPX_EXCHANGE_TIMEOUT, problem);
}

void hpx_flight_step(struct hpx_flight *flight)
{
	for (int i = 0; i < STEPS_A_TURN && step(flight); i++)
		;
	/* Who is held waits for the others, each of which has its deadline. */
	if (flight->state != HPX_FLIGHT_DONE && flight->state != HPX_FLIGHT_HELD &&
	    hpx_clock_boot_ms() >= flight->deadline_ms)
		end_late(flight);
}

short hpx_flight_wants(const struct hpx_flight *flight)
{
	switch (flight->state) {
	case HPX_FLIGHT_CONNECTING:
		return flight->wire.wants;
	case HPX_FLIGHT_SENDING:
		/* Who will cut reads nothing, and would be woken by it for ever. */
		if (flight->exchange->cut != HPX_CUT_NONE)
			return flight->wire.wants;
		return flight->wire.wants | POLLIN;
	case HPX_FLIGHT_AWAITING:
	case HPX_FLIGHT_READING:
		return flight->wire.wants == POLLOUT && flight->wire.ssl != NULL ? POLLOUT | POLLIN : POLLIN;
	case HPX_FLIGHT_FLUSHING:
	case HPX_FLIGHT_HELD:
	case HPX_FLIGHT_DONE:
		break;
	}
	return 0;
}

void hpx_flight_release(struct hpx_flight *flight)
{
	flight->hold = false;
	if (flight->state != HPX_FLIGHT_HELD)
		return;
	flight->state = HPX_FLIGHT_SENDING;
	flight->began_ms = hpx_clock_boot_ms();
	flight->deadline_ms = flight->began_ms + flight->timeout_ms;
}

void hpx_flight_cut(struct hpx_flight *flight)
{
	if (flight->state != HPX_FLIGHT_DONE)
		end(flight, HPX_EXCHANGE_CUT, "");
}

void hpx_flight_stop(struct hpx_flight *flight)
{
	if (flight->state != HPX_FLIGHT_DONE)
		end(flight, HPX_EXCHANGE_UNSENT, "the run was stopped");
}

void hpx_flight_done(struct hpx_flight *flight)
{
	hpx_wire_close(&flight->wire);
	hpx_reply_done(&flight->answer);
}
