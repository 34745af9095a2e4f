/* An exchange's life: its start, its deadlines, its turns, its end. */
#include "net/upstream_exchange.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/container.h"

/* Bytes written to a streamed request before there is a connection. The user
 * is told to wait from the first one; this bounds one who does not. */
#define EARLY_BYTES_MAX (1024 * 1024)

static struct hpx_exchange *exchange_of(struct hpx_later *turn)
{
	return HPX_CONTAINER(turn, struct hpx_exchange, turn);
}

bool hpx_exchange_any_byte_left(const struct hpx_exchange *exchange)
{
	if (exchange->conn == NULL || exchange->request_state < HPX_REQUEST_SENDING)
		return exchange->any_byte_left;
	return hpx_transport_taken(exchange->conn->transport) > exchange->taken_before;
}

static void free_exchange(uv_handle_t *timer)
{
	struct hpx_exchange *exchange = timer->data;

	hpx_answer_done(exchange);
	hpx_buffer_done(&exchange->early);
	free(exchange);
}

static void unlink_exchange(struct hpx_exchange *exchange)
{
	if (exchange->prev != NULL)
		exchange->prev->next = exchange->next;
	else
		exchange->upstream->exchanges = exchange->next;
	if (exchange->next != NULL)
		exchange->next->prev = exchange->prev;
}

void hpx_exchange_end(struct hpx_exchange *exchange)
{
	HPX_ASSERT(!hpx_exchange_is_gone(exchange));
	exchange->any_byte_left = hpx_exchange_any_byte_left(exchange);
	exchange->answer_state = HPX_ANSWER_GONE;
	unlink_exchange(exchange);
	hpx_later_cancel(&exchange->turn);
	if (exchange->dial != NULL) {
		hpx_dial_cancel(exchange->dial);
		hpx_pool_leave(&exchange->upstream->pool);
	}
	exchange->dial = NULL;
	if (exchange->conn != NULL)
		hpx_conn_close(exchange->conn);
	exchange->conn = NULL;
	hpx_slot_release(&exchange->slot);
	uv_close((uv_handle_t *)&exchange->timer, free_exchange);
}

void hpx_exchange_fail(struct hpx_exchange *exchange, enum hpx_status status,
		       const char *reason)
{
	struct hpx_exchange_failure failure = {
		.head_seen = exchange->head_seen,
		.timed_out = status == HPX_TIMEOUT,
		.status = status,
		.reason = reason,
	};

	hpx_exchange_end(exchange);
	failure.any_byte_left = exchange->any_byte_left;
	exchange->events->on_failed(exchange->user, &failure);
}

void hpx_exchange_fail_later(struct hpx_exchange *exchange, enum hpx_status status)
{
	exchange->doom = status;
	hpx_loop_later(exchange->upstream->loop, &exchange->turn);
}

void hpx_exchange_cancel(struct hpx_exchange *exchange)
{
	if (!hpx_exchange_is_gone(exchange))
		hpx_exchange_end(exchange);
}

static void take_turn(struct hpx_later *turn)
{
	struct hpx_exchange *exchange = exchange_of(turn);

	if (exchange->doom != HPX_OK) {
		hpx_exchange_fail(exchange, exchange->doom,
				  "no memory is left for what must be kept");
		return;
	}
	if (exchange->request_state == HPX_REQUEST_WAITING)
		hpx_request_begin(exchange);
	else if (exchange->request_state == HPX_REQUEST_SENDING)
		hpx_request_continue(exchange);
	if (!hpx_exchange_is_gone(exchange) && exchange->conn != NULL && !exchange->paused)
		hpx_answer_continue(exchange);
}

/* The nearer of the two deadlines, 0 for none. */
static uint64_t nearest(const struct hpx_exchange *exchange)
{
	uint64_t wait = exchange->wait_until_ms, whole = exchange->whole_until_ms;

	if (wait == 0 || (whole != 0 && whole < wait))
		return whole;
	return wait;
}

static void on_time(uv_timer_t *timer);

/* A later deadline leaves the timer alone: it is looked at when it fires, so
 * that a body of many pieces does not move the timer with each. */
static void arm(struct hpx_exchange *exchange)
{
	uint64_t now = hpx_loop_now_ms(exchange->upstream->loop);
	uint64_t due = nearest(exchange);

	if (due == 0 || (exchange->armed_ms != 0 && exchange->armed_ms <= due))
		return;
	exchange->armed_ms = due;
	uv_timer_start(&exchange->timer, on_time, due > now ? due - now : 0, 0);
}

static enum hpx_exchange_wait wait_of(const struct hpx_exchange *exchange)
{
	enum hpx_request_state request = exchange->request_state;

	if (exchange->conn == NULL)
		return HPX_WAIT_NOTHING;
	if (request != HPX_REQUEST_STOPPED &&
	    hpx_transport_pending(exchange->conn->transport) > 0)
		return HPX_WAIT_SEND;
	if (exchange->paused)
		return HPX_WAIT_NOTHING;
	if (exchange->answer_state == HPX_ANSWER_BODY)
		return HPX_WAIT_IDLE;
	if (exchange->answer_state != HPX_ANSWER_HEAD || request != HPX_REQUEST_SENT)
		return HPX_WAIT_NOTHING;
	/* Inside a head too, where an idle time is not set. */
	return exchange->head_bytes.len > 0 &&
			       exchange->upstream->options.idle_timeout_ms > 0 ?
		       HPX_WAIT_IDLE :
		       HPX_WAIT_FIRST_BYTE;
}

void hpx_exchange_touch(struct hpx_exchange *exchange)
{
	const struct hpx_upstream_options *options = &exchange->upstream->options;
	const uint64_t timeout_ms[] = {
		[HPX_WAIT_NOTHING] = 0,
		[HPX_WAIT_SEND] = options->send_timeout_ms,
		[HPX_WAIT_FIRST_BYTE] = options->first_byte_timeout_ms,
		[HPX_WAIT_IDLE] = options->idle_timeout_ms,
	};

	exchange->wait = wait_of(exchange);
	uint64_t timeout = timeout_ms[exchange->wait];
	exchange->wait_until_ms =
		timeout > 0 ? hpx_loop_now_ms(exchange->upstream->loop) + timeout : 0;
	if (exchange->wait == HPX_WAIT_SEND)
		exchange->taken_seen = hpx_transport_taken(exchange->conn->transport);
	arm(exchange);
}

static const char *timeout_reason(const struct hpx_exchange *exchange, uint64_t now)
{
	if (exchange->whole_until_ms != 0 && now >= exchange->whole_until_ms)
		return "the whole exchange took too long";
	switch (exchange->wait) {
	case HPX_WAIT_SEND:
		return "the upstream stopped reading the request";
	case HPX_WAIT_IDLE:
		return "the upstream stopped in the middle of its answer";
	default:
		return "the upstream did not answer in time";
	}
}

static void on_time(uv_timer_t *timer)
{
	struct hpx_exchange *exchange = timer->data;
	uint64_t now = hpx_loop_now_ms(exchange->upstream->loop);
	uint64_t due = nearest(exchange);

	exchange->armed_ms = 0;
	if (due == 0)
		return;
	/* Draining is told at its end only; what went out meanwhile counts. */
	if (now >= due && due == exchange->wait_until_ms &&
	    exchange->wait == HPX_WAIT_SEND &&
	    hpx_transport_taken(exchange->conn->transport) > exchange->taken_seen)
		hpx_exchange_touch(exchange);
	else if (now < due)
		arm(exchange);
	else
		hpx_exchange_fail(exchange, HPX_TIMEOUT, timeout_reason(exchange, now));
}

void hpx_exchange_pause(struct hpx_exchange *exchange)
{
	if (exchange->paused || hpx_exchange_is_gone(exchange))
		return;
	exchange->paused = true;
	if (exchange->conn != NULL)
		hpx_transport_read_stop(exchange->conn->transport);
	hpx_exchange_touch(exchange);
}

void hpx_exchange_resume(struct hpx_exchange *exchange)
{
	if (!exchange->paused || hpx_exchange_is_gone(exchange))
		return;
	exchange->paused = false;
	hpx_loop_later(exchange->upstream->loop, &exchange->turn);
}

static void link_exchange(struct hpx_upstream *upstream, struct hpx_exchange *exchange)
{
	exchange->upstream = upstream;
	exchange->next = upstream->exchanges;
	if (exchange->next != NULL)
		exchange->next->prev = exchange;
	upstream->exchanges = exchange;
}

enum hpx_status hpx_exchange_start(struct hpx_upstream *upstream,
				   const struct hpx_exchange_request *request,
				   const struct hpx_exchange_events *events, void *user,
				   struct hpx_exchange **ret_exchange)
{
	if (upstream->closing)
		return HPX_CLOSED;
	struct hpx_exchange *exchange = calloc(1, sizeof(*exchange));
	if (exchange == NULL)
		return HPX_NOMEM;
	link_exchange(upstream, exchange);
	exchange->events = events;
	exchange->user = user;
	exchange->request = *request;
	exchange->request.slot = NULL;
	hpx_slot_move(request->slot, &exchange->slot);
	exchange->body_left = request->body.len > 0 ? request->body : HPX_SPAN("");
	exchange->turn.run = take_turn;
	hpx_buffer_init(&exchange->early, EARLY_BYTES_MAX);
	hpx_answer_init(exchange, request->method);
	uv_timer_init(&upstream->loop->uv, &exchange->timer);
	exchange->timer.data = exchange;
	if (request->guarded && upstream->options.whole_timeout_ms > 0)
		exchange->whole_until_ms = hpx_loop_now_ms(upstream->loop) +
					   upstream->options.whole_timeout_ms;
	arm(exchange);
	hpx_loop_later(upstream->loop, &exchange->turn);
	*ret_exchange = exchange;
	return HPX_OK;
}
