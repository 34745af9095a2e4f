/* The request's side of an exchange: getting a connection, and handing the
 * bytes to it, once. Whether a byte left is the transport's count. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "net/upstream_exchange.h"

/* A body is handed over in parts of this size, so that little of it is ever
 * copied while the socket is full. */
#define PART_BYTES (256 * 1024)
/* A streamed body waits above this many bytes that the socket has not taken. */
#define HIGH_MARK_BYTES (256 * 1024)

static void on_sent(struct hpx_exchange *exchange)
{
	exchange->request_state = HPX_REQUEST_SENT;
	if (exchange->request.guarded)
		HPX_CRASH_POINT(send_after);
	hpx_exchange_touch(exchange);
	if (exchange->events->on_sent != NULL)
		exchange->events->on_sent(exchange->user);
}

static void tell_room(struct hpx_exchange *exchange)
{
	if (!exchange->wants_room)
		return;
	exchange->wants_room = false;
	if (exchange->events->on_writable != NULL)
		exchange->events->on_writable(exchange->user);
}

/* Sends parts of the body until the socket is full, and behind the body what
 * was written early. A failure shows in the transport. */
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

void hpx_request_continue(struct hpx_exchange *exchange)
{
	struct hpx_transport *transport = exchange->conn->transport;

	send_parts(exchange);
	/* Broken: on_end follows, behind whatever the upstream had to say. */
	if (!hpx_transport_is_sendable(transport))
		return;
	if (hpx_transport_pending(transport) > 0) {
		hpx_exchange_touch(exchange);
		return;
	}
	if (exchange->request.streamed) {
		exchange->request_state = HPX_REQUEST_OPEN;
		hpx_exchange_touch(exchange);
		tell_room(exchange);
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
		hpx_request_continue(exchange);
	else if (taken == 0)
		hpx_exchange_fail(exchange, HPX_UNAVAILABLE,
				  "the connection was gone before the first byte");
	/* Otherwise on_end follows, behind whatever the upstream said. */
}

static void use_connection(struct hpx_exchange *exchange)
{
	struct hpx_transport *transport = exchange->conn->transport;

	exchange->used_us = hpx_clock_boot_us();
	exchange->taken_before = hpx_transport_taken(transport);
	hpx_transport_attach(transport, &hpx_answer_events, exchange);
	/* Before the user's last look at the clock: whoever is stopped here
	 * finds out there. */
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
	exchange->request_state = HPX_REQUEST_SENDING;
	send_first(exchange);
}

/* Without a descriptor or memory, nobody knows. */
static void tell_reached(struct hpx_upstream_state *state, enum hpx_status status,
			 const char *reason)
{
	if (state == NULL)
		return;
	if (status == HPX_OK)
		hpx_upstream_reached(state);
	else if (status == HPX_UNAVAILABLE || status == HPX_TIMEOUT)
		hpx_upstream_not_reached(state, reason);
}

static void on_dialed(void *user, enum hpx_status status, const char *reason,
		      struct hpx_transport *transport)
{
	struct hpx_exchange *exchange = user;
	struct hpx_pool *pool = &exchange->upstream->pool;

	exchange->dial = NULL;
	tell_reached(exchange->upstream->options.state, status, reason);
	if (status != HPX_OK) {
		hpx_pool_leave(pool);
		hpx_exchange_fail(exchange, status, reason);
		return;
	}
	exchange->conn = hpx_pool_adopt(pool, transport);
	if (exchange->conn == NULL)
		hpx_exchange_fail(exchange, HPX_NOMEM,
				  "no memory is left for a connection");
	else
		use_connection(exchange);
}

void hpx_request_begin(struct hpx_exchange *exchange)
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
	exchange->request_state = HPX_REQUEST_DIALLING;
	exchange->dial = hpx_dial_start(&upstream->target, on_dialed, exchange);
	if (exchange->dial == NULL) {
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
		hpx_exchange_fail_later(exchange, HPX_FULL);
		break;
	}
	return false;
}

bool hpx_exchange_write(struct hpx_exchange *exchange, const struct hpx_span *pieces,
			size_t count)
{
	if (hpx_exchange_is_gone(exchange) || exchange->request_state >= HPX_REQUEST_SENT)
		return true;
	if (exchange->request_state != HPX_REQUEST_OPEN)
		return keep_early(exchange, pieces, count);
	struct hpx_transport *transport = exchange->conn->transport;
	/* A failure is told by on_end. */
	if (hpx_transport_send(transport, pieces, count, NULL) != HPX_OK)
		return true;
	if (hpx_transport_pending(transport) == 0)
		return true;
	if (exchange->wait != HPX_WAIT_SEND)
		hpx_exchange_touch(exchange);
	exchange->wants_room =
		exchange->wants_room || hpx_transport_pending(transport) > HIGH_MARK_BYTES;
	return !exchange->wants_room;
}

void hpx_exchange_finish(struct hpx_exchange *exchange)
{
	if (hpx_exchange_is_gone(exchange) || !exchange->request.streamed)
		return;
	exchange->request.streamed = false;
	if (exchange->request_state != HPX_REQUEST_OPEN)
		return;
	if (exchange->answer_state == HPX_ANSWER_TUNNEL) {
		hpx_transport_shutdown(exchange->conn->transport);
		return;
	}
	exchange->request_state = HPX_REQUEST_SENDING;
	if (hpx_transport_pending(exchange->conn->transport) == 0)
		hpx_loop_later(exchange->upstream->loop, &exchange->turn);
}

void hpx_request_drained(struct hpx_exchange *exchange)
{
	if (exchange->request_state == HPX_REQUEST_SENDING) {
		hpx_request_continue(exchange);
	} else if (exchange->request_state == HPX_REQUEST_OPEN) {
		hpx_exchange_touch(exchange);
		tell_room(exchange);
	}
}
