/* An exchange: its start, its deadlines, its end, and the sending of its request.
 * Reading the answer is upstream_answer.c's. */
#include "net/upstream_exchange.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/crash_point.h"
#include "base/recycle.h"
#include "base/status.h"

/* The most bytes that a user may write before there is a connection. The first write
 * already asks the user to wait; this bounds a user that does not. */
#define EARLY_BYTES_MAX (1024 * 1024)

/* A body is handed over in parts of this size, so that little of it is ever
 * copied while the socket is full. */
#define PART_BYTES (256 * 1024)
/* A streamed body waits above this many bytes that the socket has not taken. */
#define HIGH_MARK_BYTES (256 * 1024)

bool hpx_exchange_any_byte_left(const struct hpx_exchange *exchange)
{
	if (exchange->conn == NULL || exchange->request_state < HPX_UPSTREAM_REQUEST_SENDING)
		return exchange->any_byte_left;
	return hpx_transport_taken(exchange->conn->transport) > exchange->taken_before;
}

static void free_exchange(uv_handle_t *timer)
{
	struct hpx_exchange *exchange = timer->data;

	hpx_upstream_answer_done(exchange);
	hpx_buffer_done(&exchange->early);
	free(exchange);
}

/* ---- exchanges that are used again ---- */

/* Each has a timer, a chunk for the fields of a head and the head's bytes: 6 KiB. */
#define SPARES_MAX 64

/* Nobody uses the exchange any more once this turn of the loop is over. */
static void retire(struct hpx_exchange *exchange)
{
	struct hpx_upstream *upstream = exchange->upstream;

	HPX_ASSERT(hpx_exchange_is_gone(exchange));
	if (!HPX_RECYCLES || upstream->closing || upstream->spare_count >= SPARES_MAX) {
		uv_close((uv_handle_t *)&exchange->timer, free_exchange);
		return;
	}
	uv_timer_stop(&exchange->timer);
	exchange->retired_turn = upstream->loop->turn;
	exchange->next = NULL;
	*(upstream->spares != NULL ? &upstream->last_spare->next : &upstream->spares) = exchange;
	upstream->last_spare = exchange;
	upstream->spare_count++;
}

/* All zero again, but for the timer and for memory whose old bytes nobody reads. */
static void clear(struct hpx_exchange *exchange)
{
	const size_t begin = offsetof(struct hpx_exchange, upstream);
	struct hpx_buffer early = exchange->early, head = exchange->head_bytes,
			  held = exchange->held;
	struct hpx_arena arena = exchange->arena;

	memset((char *)exchange + begin, 0, sizeof(*exchange) - begin);
	hpx_arena_recycle(&arena);
	exchange->arena = arena;
	exchange->early = early;
	exchange->head_bytes = head;
	exchange->held = held;
}

static struct hpx_exchange *take_spare(struct hpx_upstream *upstream)
{
	struct hpx_exchange *exchange = upstream->spares;

	HPX_ASSERT((exchange == NULL) == (upstream->spare_count == 0));
	if (exchange != NULL && exchange->retired_turn < upstream->loop->turn) {
		upstream->spares = exchange->next;
		upstream->spare_count--;
		clear(exchange);
		return exchange;
	}
	exchange = calloc(1, sizeof(*exchange));
	if (exchange == NULL)
		return NULL;
	uv_timer_init(&upstream->loop->uv, &exchange->timer);
	exchange->timer.data = exchange;
	return exchange;
}

void hpx_exchange_close_spares(struct hpx_upstream *upstream)
{
	for (struct hpx_exchange *e = upstream->spares, *next; e != NULL; e = next) {
		next = e->next;
		uv_close((uv_handle_t *)&e->timer, free_exchange);
	}
	upstream->spares = NULL;
	upstream->spare_count = 0;
}

static void link_exchange(struct hpx_upstream *upstream, struct hpx_exchange *exchange)
{
	exchange->upstream = upstream;
	exchange->next = upstream->exchanges;
	if (exchange->next != NULL)
		exchange->next->prev = exchange;
	upstream->exchanges = exchange;
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
	exchange->answer_state = HPX_UPSTREAM_ANSWER_GONE;
	unlink_exchange(exchange);
	hpx_later_cancel(&exchange->deferred);
	if (exchange->dial != NULL) {
		hpx_dial_cancel(exchange->dial);
		hpx_upstream_endpoint_drop(exchange->endpoint);
		exchange->endpoint = NULL;
		hpx_pool_leave(&exchange->upstream->pool);
	}
	exchange->dial = NULL;
	if (exchange->conn != NULL)
		hpx_conn_close(exchange->conn);
	exchange->conn = NULL;
	hpx_slot_release(&exchange->slot);
	retire(exchange);
}

void hpx_exchange_fail(struct hpx_exchange *exchange, enum hpx_status status,
		       const char *reason)
{
	HPX_ASSERT(status != HPX_OK);
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

/* The same, deferred: for a failure inside a call of the user. */
static void fail_later(struct hpx_exchange *exchange, enum hpx_status status)
{
	HPX_ASSERT(status != HPX_OK);
	exchange->pending_failure = status;
	hpx_loop_later(exchange->upstream->loop, &exchange->deferred);
}

void hpx_exchange_cancel(struct hpx_exchange *exchange)
{
	if (!hpx_exchange_is_gone(exchange))
		hpx_exchange_end(exchange);
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

/* A later deadline leaves the timer as it is: on_time compares when it fires. So a
 * body of many pieces does not restart the timer with each piece. */
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
	enum hpx_upstream_request_state request = exchange->request_state;

	if (exchange->conn == NULL)
		return HPX_WAIT_NOTHING;
	if (request != HPX_UPSTREAM_REQUEST_STOPPED &&
	    hpx_transport_pending(exchange->conn->transport) > 0)
		return HPX_WAIT_SEND;
	if (exchange->paused)
		return HPX_WAIT_NOTHING;
	if (exchange->answer_state == HPX_UPSTREAM_ANSWER_BODY)
		return HPX_WAIT_IDLE;
	if (exchange->answer_state != HPX_UPSTREAM_ANSWER_HEAD || request != HPX_UPSTREAM_REQUEST_SENT)
		return HPX_WAIT_NOTHING;
	/* FIRST_BYTE limits the rest of a head too where there is no idle timeout. */
	return exchange->head_bytes.len > 0 &&
			       exchange->upstream->options.idle_timeout_ms > 0 ?
		       HPX_WAIT_IDLE :
		       HPX_WAIT_FIRST_BYTE;
}

void hpx_exchange_reset_deadline(struct hpx_exchange *exchange)
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
	/* on_drain comes only at the end of sending: bytes that went out meanwhile
	 * are progress. */
	if (now >= due && due == exchange->wait_until_ms &&
	    exchange->wait == HPX_WAIT_SEND &&
	    hpx_transport_taken(exchange->conn->transport) > exchange->taken_seen)
		hpx_exchange_reset_deadline(exchange);
	else if (now < due)
		arm(exchange);
	else
		hpx_exchange_fail(exchange, HPX_TIMEOUT, timeout_reason(exchange, now));
}

static void on_sent(struct hpx_exchange *exchange)
{
	HPX_ASSERT(exchange->request_state == HPX_UPSTREAM_REQUEST_SENDING);
	HPX_ASSERT(exchange->body_left.len == 0 && exchange->early.len == 0);
	exchange->request_state = HPX_UPSTREAM_REQUEST_SENT;
	if (exchange->request.guarded)
		HPX_CRASH_POINT(send_after);
	hpx_exchange_reset_deadline(exchange);
	if (exchange->events->on_sent != NULL)
		exchange->events->on_sent(exchange->user);
}

static void emit_writable(struct hpx_exchange *exchange)
{
	if (!exchange->wants_room)
		return;
	exchange->wants_room = false;
	if (exchange->events->on_writable != NULL)
		exchange->events->on_writable(exchange->user);
}

/* Sends parts of the body until the socket is full, and after the body the bytes that
 * the user wrote early. A failure shows in the transport. */
static void send_parts(struct hpx_exchange *exchange)
{
	struct hpx_transport *transport = exchange->conn->transport;

	while (exchange->body_left.len > 0 && hpx_transport_pending(transport) == 0) {
		struct hpx_span part = hpx_span_first(exchange->body_left, PART_BYTES);
		exchange->body_left = hpx_span_skip(exchange->body_left, part.len);
		if (hpx_transport_send(transport, &part, 1, NULL) != HPX_OK)
			return;
	}
	struct hpx_span early = hpx_buffer_span(&exchange->early);
	if (exchange->body_left.len > 0 || early.len == 0)
		return;
	exchange->early.len = 0;
	(void)hpx_transport_send(transport, &early, 1, NULL);
}

void hpx_upstream_request_continue(struct hpx_exchange *exchange)
{
	struct hpx_transport *transport = exchange->conn->transport;

	send_parts(exchange);
	/* Broken: on_end follows, after the bytes that the upstream has sent. */
	if (!hpx_transport_is_sendable(transport))
		return;
	if (hpx_transport_pending(transport) > 0) {
		hpx_exchange_reset_deadline(exchange);
		return;
	}
	if (exchange->request.streamed) {
		exchange->request_state = HPX_UPSTREAM_REQUEST_OPEN;
		hpx_exchange_reset_deadline(exchange);
		emit_writable(exchange);
		return;
	}
	on_sent(exchange);
}

/* Hands over the head with the first part of the body, in one write. */
static void send_first(struct hpx_exchange *exchange)
{
	struct hpx_span part = hpx_span_first(exchange->body_left, PART_BYTES);
	struct hpx_span pieces[] = { exchange->request.head, part };
	size_t taken;

	exchange->body_left = hpx_span_skip(exchange->body_left, part.len);
	enum hpx_status status =
		hpx_transport_send(exchange->conn->transport, pieces, 2, &taken);
	if (status == HPX_OK)
		hpx_upstream_request_continue(exchange);
	else if (taken == 0)
		hpx_exchange_fail(exchange, HPX_UNAVAILABLE,
				  "the connection was gone before the first byte");
	/* Otherwise on_end follows, after the bytes that the upstream has sent. */
}

static void use_connection(struct hpx_exchange *exchange)
{
	struct hpx_transport *transport = exchange->conn->transport;

	HPX_ASSERT(exchange->request_state < HPX_UPSTREAM_REQUEST_SENDING);
	exchange->used_us = hpx_loop_boot_us(exchange->upstream->loop);
	exchange->taken_before = hpx_transport_taken(transport);
	hpx_transport_attach(transport, &hpx_upstream_answer_events, exchange);
	/* Before on_ready, where the user compares the clock with its lease: a
	 * process that was stopped here notices there. */
	if (exchange->request.guarded)
		HPX_CRASH_POINT(send_before);
	if (exchange->events->on_ready != NULL &&
	    !exchange->events->on_ready(exchange->user)) {
		if (!hpx_exchange_is_gone(exchange))
			hpx_exchange_fail(exchange, HPX_CLOSED,
					  "given up before the first byte");
		return;
	}
	if (hpx_exchange_is_gone(exchange))
		return;
	if (exchange->paused)
		hpx_transport_read_stop(transport);
	else
		hpx_transport_read_start(transport);
	exchange->request_state = HPX_UPSTREAM_REQUEST_SENDING;
	send_first(exchange);
}

/* A lack of descriptors or memory says nothing about the upstream. */
static void note_reachable(struct hpx_upstream_state *state, enum hpx_status status,
			   const char *reason)
{
	if (state == NULL)
		return;
	if (status == HPX_OK)
		hpx_upstream_note_reached(state);
	else if (status == HPX_UNAVAILABLE || status == HPX_TIMEOUT)
		hpx_upstream_note_unreachable(state, reason);
}

static void on_dialed(void *user, enum hpx_status status, const char *reason,
		      struct hpx_transport *transport)
{
	struct hpx_exchange *exchange = user;
	struct hpx_pool *pool = &exchange->upstream->pool;

	HPX_ASSERT(exchange->request_state == HPX_UPSTREAM_REQUEST_DIALLING);
	uint64_t endpoint = exchange->endpoint->number;
	/* An upstream that hapax has turned away from may be down for good. */
	if (exchange->endpoint == exchange->upstream->endpoint)
		note_reachable(exchange->upstream->options.state, status, reason);
	exchange->dial = NULL;
	hpx_upstream_endpoint_drop(exchange->endpoint);
	exchange->endpoint = NULL;
	if (status != HPX_OK) {
		hpx_pool_leave(pool);
		hpx_exchange_fail(exchange, status, reason);
		return;
	}
	exchange->conn = hpx_pool_adopt(pool, transport, endpoint);
	if (exchange->conn == NULL)
		hpx_exchange_fail(exchange, HPX_NOMEM,
				  "no memory is left for a connection");
	else
		use_connection(exchange);
}

/* Gets a connection, from the pool or a new one, and sends. */
static void begin(struct hpx_exchange *exchange)
{
	struct hpx_upstream *upstream = exchange->upstream;
	const struct hpx_upstream_options *options = &upstream->options;

	if (!exchange->request.fresh)
		exchange->conn = hpx_pool_take(&upstream->pool,
					       exchange->request.guarded ? options->reuse_idle_ms : options->pool_idle_ms,
					       exchange->request.guarded);
	if (exchange->conn != NULL) {
		use_connection(exchange);
		return;
	}
	hpx_pool_enter(&upstream->pool);
	exchange->request_state = HPX_UPSTREAM_REQUEST_DIALLING;
	exchange->dial = hpx_dial_start(&upstream->endpoint->target, on_dialed, exchange);
	if (exchange->dial != NULL) {
		exchange->endpoint = upstream->endpoint;
		exchange->endpoint->holds++;
	} else {
		hpx_pool_leave(&upstream->pool);
		hpx_exchange_fail(exchange, HPX_NOMEM,
				  "no memory is left for a connection");
	}
}

static bool keep_early(struct hpx_exchange *exchange, const struct hpx_span *pieces,
		       size_t count)
{
	exchange->wants_room = true;
	for (size_t i = 0; i < count; i++) {
		if (hpx_buffer_append(&exchange->early, pieces[i]) == HPX_OK)
			continue;
		fail_later(exchange, HPX_FULL);
		break;
	}
	return false;
}

bool hpx_exchange_write(struct hpx_exchange *exchange, const struct hpx_span *pieces,
			size_t count)
{
	if (hpx_exchange_is_gone(exchange) || exchange->request_state >= HPX_UPSTREAM_REQUEST_SENT)
		return true;
	if (exchange->request_state != HPX_UPSTREAM_REQUEST_OPEN)
		return keep_early(exchange, pieces, count);
	struct hpx_transport *transport = exchange->conn->transport;
	/* A failure is reported by on_end. */
	if (hpx_transport_send(transport, pieces, count, NULL) != HPX_OK)
		return true;
	if (hpx_transport_pending(transport) == 0)
		return true;
	if (exchange->wait != HPX_WAIT_SEND)
		hpx_exchange_reset_deadline(exchange);
	exchange->wants_room =
		exchange->wants_room || hpx_transport_pending(transport) > HIGH_MARK_BYTES;
	return !exchange->wants_room;
}

void hpx_exchange_finish(struct hpx_exchange *exchange)
{
	if (hpx_exchange_is_gone(exchange) || !exchange->request.streamed)
		return;
	exchange->request.streamed = false;
	if (exchange->request_state != HPX_UPSTREAM_REQUEST_OPEN)
		return;
	if (exchange->answer_state == HPX_UPSTREAM_ANSWER_TUNNEL) {
		hpx_transport_shutdown(exchange->conn->transport);
		return;
	}
	exchange->request_state = HPX_UPSTREAM_REQUEST_SENDING;
	if (hpx_transport_pending(exchange->conn->transport) == 0)
		hpx_loop_later(exchange->upstream->loop, &exchange->deferred);
}

void hpx_upstream_request_drained(struct hpx_exchange *exchange)
{
	if (exchange->request_state == HPX_UPSTREAM_REQUEST_SENDING) {
		hpx_upstream_request_continue(exchange);
	} else if (exchange->request_state == HPX_UPSTREAM_REQUEST_OPEN) {
		hpx_exchange_reset_deadline(exchange);
		emit_writable(exchange);
	}
}

static struct hpx_exchange *exchange_of(struct hpx_later *deferred)
{
	return HPX_CONTAINER(deferred, struct hpx_exchange, deferred);
}

static void run_deferred(struct hpx_later *deferred)
{
	struct hpx_exchange *exchange = exchange_of(deferred);

	if (exchange->pending_failure != HPX_OK) {
		hpx_exchange_fail(exchange, exchange->pending_failure,
				  "no memory is left for what must be kept");
		return;
	}
	if (exchange->request_state == HPX_UPSTREAM_REQUEST_WAITING)
		begin(exchange);
	else if (exchange->request_state == HPX_UPSTREAM_REQUEST_SENDING)
		hpx_upstream_request_continue(exchange);
	if (!hpx_exchange_is_gone(exchange) && exchange->conn != NULL && !exchange->paused)
		hpx_upstream_answer_continue(exchange);
}

void hpx_exchange_pause(struct hpx_exchange *exchange)
{
	if (exchange->paused || hpx_exchange_is_gone(exchange))
		return;
	exchange->paused = true;
	if (exchange->conn != NULL)
		hpx_transport_read_stop(exchange->conn->transport);
	hpx_exchange_reset_deadline(exchange);
}

void hpx_exchange_resume(struct hpx_exchange *exchange)
{
	if (!exchange->paused || hpx_exchange_is_gone(exchange))
		return;
	exchange->paused = false;
	hpx_loop_later(exchange->upstream->loop, &exchange->deferred);
}

enum hpx_status hpx_exchange_start(struct hpx_upstream *upstream,
				   const struct hpx_exchange_request *request,
				   const struct hpx_exchange_events *events, void *user,
				   struct hpx_exchange **ret_exchange)
{
	if (upstream->closing)
		return HPX_CLOSED;
	struct hpx_exchange *exchange = take_spare(upstream);
	if (exchange == NULL)
		return HPX_NOMEM;
	link_exchange(upstream, exchange);
	exchange->events = events;
	exchange->user = user;
	exchange->request = *request;
	exchange->request.slot = NULL;
	hpx_slot_move(request->slot, &exchange->slot);
	exchange->body_left = request->body.len > 0 ? request->body : HPX_SPAN("");
	exchange->deferred.run = run_deferred;
	hpx_buffer_recycle(&exchange->early, EARLY_BYTES_MAX);
	hpx_upstream_answer_init(exchange, request->method);
	if (request->guarded && upstream->options.whole_timeout_ms > 0)
		exchange->whole_until_ms = hpx_loop_now_ms(upstream->loop) +
					   upstream->options.whole_timeout_ms;
	arm(exchange);
	hpx_loop_later(upstream->loop, &exchange->deferred);
	*ret_exchange = exchange;
	return HPX_OK;
}
