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

static void end(struct hpx_inflight *inflight, enum hpx_verify_exchange_end how, const char *problem)
{
	struct hpx_verify_exchange *exchange = inflight->exchange;

	inflight->state = HPX_INFLIGHT_DONE;
	exchange->end = how;
	exchange->took_ms = hpx_clock_boot_ms() - inflight->began_ms;
	snprintf(exchange->problem, sizeof(exchange->problem), "%s", problem);
	if (how == HPX_EXCHANGE_CUT)
		hpx_verify_conn_reset(&inflight->conn);
	else
		hpx_verify_conn_close(&inflight->conn);
}

static size_t stop_of(const struct hpx_request_bytes *request, enum hpx_verify_cut cut)
{
	if (cut == HPX_CUT_HEAD)
		return request->head_bytes;
	if (cut == HPX_CUT_HALF_BODY)
		return request->head_bytes + (request->bytes.len - request->head_bytes) / 2;
	return request->bytes.len;
}

void hpx_inflight_start(struct hpx_inflight *inflight, const struct hpx_verify_host *host)
{
	char problem[HPX_CONN_PROBLEM_SIZE];

	inflight->state = HPX_INFLIGHT_CONNECTING;
	inflight->began_ms = hpx_clock_boot_ms();
	inflight->deadline_ms = inflight->began_ms + inflight->timeout_ms;
	inflight->stop = stop_of(&inflight->request, inflight->exchange->cut);
	inflight->sent = 0;
	inflight->flushed_ms = 0;
	if (hpx_verify_conn_open(&inflight->conn, host, problem) != HPX_OK)
		end(inflight, HPX_EXCHANGE_REFUSED, problem);
}

static bool step_connecting(struct hpx_inflight *inflight)
{
	char problem[HPX_CONN_PROBLEM_SIZE];
	enum hpx_status status = hpx_verify_conn_connect(&inflight->conn, problem);

	if (status == HPX_OK)
		inflight->state = HPX_INFLIGHT_SENDING;
	else if (status != HPX_BUSY)
		end(inflight, HPX_EXCHANGE_REFUSED, problem);
	return status == HPX_OK;
}

static void take_answer(struct hpx_inflight *inflight, enum hpx_http_progress progress)
{
	if (progress == HPX_HTTP_BAD) {
		end(inflight, HPX_EXCHANGE_LOST, inflight->answer.problem);
		return;
	}
	if (progress == HPX_HTTP_MORE)
		return;
	if (hpx_response_move(&inflight->answer, inflight->arena, inflight->exchange) == HPX_OK)
		end(inflight, HPX_EXCHANGE_ANSWERED, "");
	else
		end(inflight, HPX_EXCHANGE_LOST, "no memory for the answer");
}

/* One piece; HPX_OK: there may be more. */
static enum hpx_status read_piece(struct hpx_inflight *inflight)
{
	char bytes[PIECE];
	size_t len = 0;
	enum hpx_status status = hpx_verify_conn_receive(&inflight->conn, bytes, sizeof(bytes), &len);

	if (status == HPX_OK)
		take_answer(inflight, hpx_response_feed(&inflight->answer, hpx_span(bytes, len)));
	else if (status == HPX_CLOSED)
		take_answer(inflight, hpx_response_end(&inflight->answer));
	else if (status != HPX_BUSY)
		end(inflight, HPX_EXCHANGE_LOST, "the connection was reset");
	return status;
}

static bool step_reading(struct hpx_inflight *inflight)
{
	return read_piece(inflight) == HPX_OK && inflight->state == HPX_INFLIGHT_READING;
}

/* Behind the last byte that is to go out. */
static bool sent_all(struct hpx_inflight *inflight)
{
	if (inflight->hold) {
		inflight->state = HPX_INFLIGHT_HELD;
		return false;
	}
	inflight->state = inflight->exchange->cut == HPX_CUT_NONE ? HPX_INFLIGHT_READING : HPX_INFLIGHT_FLUSHING;
	return true;
}

static bool step_sending(struct hpx_inflight *inflight)
{
	size_t limit = inflight->hold ? inflight->stop - 1 : inflight->stop;

	while (inflight->sent < limit) {
		size_t n = 0;
		struct hpx_span left = hpx_span(inflight->request.bytes.ptr + inflight->sent,
						limit - inflight->sent);
		enum hpx_status status = hpx_verify_conn_send(&inflight->conn, left, &n);

		inflight->sent += n;
		if (status == HPX_BUSY) {
			short wants = inflight->conn.wants;
			bool cut = inflight->exchange->cut != HPX_CUT_NONE;
			/* Some answer before they have read all. */
			if (!cut && read_piece(inflight) == HPX_BUSY)
				inflight->conn.wants = wants;
			return false;
		}
		if (status != HPX_OK) {
			inflight->state = HPX_INFLIGHT_READING;
			return true;
		}
	}
	return sent_all(inflight);
}

static bool step_flushing(struct hpx_inflight *inflight)
{
	if (inflight->exchange->cut == HPX_CUT_BEFORE_ANSWER) {
		inflight->state = HPX_INFLIGHT_AWAITING;
		return true;
	}
	/* What a reset finds in our own queue would be dropped. */
	if (inflight->flushed_ms == 0 && hpx_verify_conn_is_flushed(&inflight->conn))
		inflight->flushed_ms = hpx_clock_boot_ms();
	if (inflight->flushed_ms != 0 &&
	    hpx_clock_boot_ms() - inflight->flushed_ms >= inflight->linger_ms)
		end(inflight, HPX_EXCHANGE_CUT, "");
	return false;
}

static bool step_awaiting(struct hpx_inflight *inflight)
{
	enum hpx_status status = hpx_verify_conn_peek(&inflight->conn);

	if (status == HPX_OK)
		end(inflight, HPX_EXCHANGE_CUT, "");
	else if (status != HPX_BUSY)
		end(inflight, HPX_EXCHANGE_LOST, "the connection was closed before an answer came");
	return false;
}

static bool step(struct hpx_inflight *inflight)
{
	switch (inflight->state) {
	case HPX_INFLIGHT_CONNECTING:
		return step_connecting(inflight);
	case HPX_INFLIGHT_SENDING:
		return step_sending(inflight);
	case HPX_INFLIGHT_FLUSHING:
		return step_flushing(inflight);
	case HPX_INFLIGHT_AWAITING:
		return step_awaiting(inflight);
	case HPX_INFLIGHT_READING:
		return step_reading(inflight);
	case HPX_INFLIGHT_HELD:
	case HPX_INFLIGHT_DONE:
		break;
	}
	return false;
}

static void end_late(struct hpx_inflight *inflight)
{
	char problem[HPX_CONN_PROBLEM_SIZE];
	bool connecting = inflight->state == HPX_INFLIGHT_CONNECTING;

	snprintf(problem, sizeof(problem), "no %s within %lld ms",
		 connecting ? "connection" : "whole answer", (long long)inflight->timeout_ms);
	end(inflight, connecting ? HPX_EXCHANGE_REFUSED : HPX_EXCHANGE_TIMEOUT, problem);
}

void hpx_inflight_step(struct hpx_inflight *inflight)
{
	for (int i = 0; i < STEPS_A_TURN && step(inflight); i++)
		;
	/* Who is held waits for the others, each of which has its deadline. */
	if (inflight->state != HPX_INFLIGHT_DONE && inflight->state != HPX_INFLIGHT_HELD &&
	    hpx_clock_boot_ms() >= inflight->deadline_ms)
		end_late(inflight);
}

short hpx_inflight_wants(const struct hpx_inflight *inflight)
{
	switch (inflight->state) {
	case HPX_INFLIGHT_CONNECTING:
		return inflight->conn.wants;
	case HPX_INFLIGHT_SENDING:
		/* Who will cut reads nothing, and would be woken by it for ever. */
		if (inflight->exchange->cut != HPX_CUT_NONE)
			return inflight->conn.wants;
		return inflight->conn.wants | POLLIN;
	case HPX_INFLIGHT_AWAITING:
	case HPX_INFLIGHT_READING:
		return inflight->conn.wants == POLLOUT && inflight->conn.ssl != NULL ? POLLOUT | POLLIN : POLLIN;
	case HPX_INFLIGHT_FLUSHING:
	case HPX_INFLIGHT_HELD:
	case HPX_INFLIGHT_DONE:
		break;
	}
	return 0;
}

void hpx_inflight_release(struct hpx_inflight *inflight)
{
	inflight->hold = false;
	if (inflight->state != HPX_INFLIGHT_HELD)
		return;
	inflight->state = HPX_INFLIGHT_SENDING;
	inflight->began_ms = hpx_clock_boot_ms();
	inflight->deadline_ms = inflight->began_ms + inflight->timeout_ms;
}

void hpx_inflight_cut(struct hpx_inflight *inflight)
{
	if (inflight->state != HPX_INFLIGHT_DONE)
		end(inflight, HPX_EXCHANGE_CUT, "");
}

void hpx_inflight_stop(struct hpx_inflight *inflight)
{
	if (inflight->state != HPX_INFLIGHT_DONE)
		end(inflight, HPX_EXCHANGE_UNSENT, "the run was stopped");
}

void hpx_inflight_done(struct hpx_inflight *inflight)
{
	hpx_verify_conn_close(&inflight->conn);
	hpx_response_done(&inflight->answer);
}
