/* An exchange: one request to the upstream and its answer. This is the inside, shared
 * by upstream_exchange.c (start, deadlines, sending, end) and upstream_answer.c
 * (reading). Users of the upstream client include upstream.h only.
 *
 * The request and the answer have a state each, because an answer may begin before
 * its request has been sent:
 *
 *   request   WAITING ──▶ DIALLING ──▶ SENDING ◀─▶ OPEN ──▶ SENT
 *                 └── pooled ──────────▶ │           │
 *                                        └─▶ STOPPED ◀┘
 *   answer    HEAD ──▶ BODY ──▶ WHOLE ──▶ GONE
 *                └───▶ TUNNEL ────────────▶
 *
 *   → DIALLING  begin, where the pool has no connection
 *   → SENDING   use_connection; hpx_exchange_finish, from OPEN
 *   → OPEN      hpx_upstream_request_continue; take_tunnel, from SENT
 *   → SENT      on_sent
 *   → STOPPED   take_final: a refusal came before the whole request was out
 *   → BODY, TUNNEL, WHOLE      take_final, take_tunnel, read_body
 *   → GONE      hpx_exchange_end, from every state
 *
 * 1. Nothing is sent twice: the request's bytes go to one connection, once.
 * 2. A callback may end the exchange. After each callback, hpx_exchange_is_gone is
 *    asked before anything else is touched. So the memory stays as it is until the
 *    turn of the loop is over: it is used again in a later turn, or freed when libuv
 *    has closed the timer's handle.
 * 3. `conn` is set from SENDING on until the exchange is gone; `dial` in DIALLING.
 * 4. A connection goes back to the pool only after a WHOLE answer that allows it, to
 *    a SENT request, with no byte left over; that of a guarded request not while
 *    the upstream is in quarantine (upstream.h). */
#ifndef HPX_NET_UPSTREAM_EXCHANGE_H
#define HPX_NET_UPSTREAM_EXCHANGE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "net/dial.h"
#include "net/pool.h"
#include "net/upstream.h"

enum hpx_upstream_request_state {
	HPX_UPSTREAM_REQUEST_WAITING, /* for the deferred call that begins it */
	HPX_UPSTREAM_REQUEST_DIALLING,
	HPX_UPSTREAM_REQUEST_SENDING, /* bytes are on their way out */
	HPX_UPSTREAM_REQUEST_OPEN,    /* streamed: all so far was sent, more may come */
	HPX_UPSTREAM_REQUEST_SENT,
	HPX_UPSTREAM_REQUEST_STOPPED, /* the upstream wants no more of it; nothing is sent any more */
};

enum hpx_upstream_answer_state {
	HPX_UPSTREAM_ANSWER_HEAD,
	HPX_UPSTREAM_ANSWER_BODY,
	HPX_UPSTREAM_ANSWER_TUNNEL,
	HPX_UPSTREAM_ANSWER_WHOLE, /* its end was read, on_end is to come */
	HPX_UPSTREAM_ANSWER_GONE,
};

/* The event that the timer limits. */
enum hpx_exchange_wait {
	HPX_WAIT_NOTHING,
	HPX_WAIT_SEND,
	HPX_WAIT_FIRST_BYTE,
	HPX_WAIT_IDLE,
};

/* Where connections are made to. Another address is another endpoint; the upstream holds the
 * newest, and an exchange the one that it is dialling. */
struct hpx_upstream_endpoint {
	unsigned holds;
	uint64_t number;
	struct hpx_address address;
	struct hpx_resolver *resolver; /* NULL for unix */
	struct hpx_dial_target target;
	char tls_name[256];
};

struct hpx_upstream {
	struct hpx_loop *loop;
	struct hpx_upstream_options options;
	struct hpx_upstream_endpoint *endpoint;
	struct hpx_slots slots;
	struct hpx_pool pool;
	struct hpx_exchange *exchanges;
	/* Exchanges that are gone, for the next ones: by `next`, the oldest first. */
	struct hpx_exchange *spares;
	struct hpx_exchange *last_spare;
	unsigned spare_count;
	bool closing;
};

struct hpx_exchange {
	uv_timer_t timer; /* of the deadlines; stays where the memory is used again */
	struct hpx_upstream *upstream;
	struct hpx_exchange *next;
	struct hpx_exchange *prev;
	const struct hpx_exchange_events *events;
	void *user;
	struct hpx_later deferred;       /* the work that must not happen inside a user's call */
	enum hpx_status pending_failure; /* HPX_OK, or the deferred call fails by this */

	/* Deadlines, on the loop's clock; 0: none. */
	uint64_t armed_ms;
	uint64_t wait_until_ms;
	uint64_t whole_until_ms;
	enum hpx_exchange_wait wait;

	/* The request. `streamed` is cleared when no more follows. */
	enum hpx_upstream_request_state request_state;
	struct hpx_exchange_request request;
	struct hpx_slot slot; /* held until the exchange is gone */
	struct hpx_dial *dial;
	struct hpx_upstream_endpoint *endpoint; /* while it dials */
	struct hpx_conn *conn;
	bool any_byte_left;    /* valid once `conn` is no longer set */
	int64_t used_us;       /* when the exchange got the connection */
	uint64_t taken_before; /* hpx_transport_taken before our first byte */
	uint64_t taken_seen;   /* hpx_transport_taken when the deadline was last reset */
	struct hpx_span body_left;
	struct hpx_buffer early; /* bytes that the user wrote before they could be sent */
	bool wants_room;         /* on_writable is due */

	/* The answer. */
	enum hpx_upstream_answer_state answer_state;
	bool paused;
	bool head_seen;
	unsigned informational;
	struct hpx_http_reader reader;
	struct hpx_http_reader fresh; /* the reader before its first byte: for the head after a 1xx */
	struct hpx_buffer head_bytes;
	struct hpx_arena arena;
	struct hpx_http_head head;
	struct hpx_buffer held; /* bytes that were read while the user had paused */

	uint64_t retired_turn; /* of the loop, when the exchange was gone */
};

static inline bool hpx_exchange_is_gone(const struct hpx_exchange *exchange)
{
	return exchange->answer_state == HPX_UPSTREAM_ANSWER_GONE;
}

/* upstream.c */
void hpx_upstream_endpoint_drop(struct hpx_upstream_endpoint *endpoint);

/* upstream_exchange.c */
/* Decides which event is awaited now, and starts its timeout from now on. */
void hpx_exchange_reset_deadline(struct hpx_exchange *exchange);
/* Gives back everything but the exchange's memory. The caller's next and last step is
 * the user's callback. */
void hpx_exchange_end(struct hpx_exchange *exchange);
void hpx_exchange_fail(struct hpx_exchange *exchange, enum hpx_status status,
		       const char *reason);
/* When the upstream is freed. */
void hpx_exchange_close_spares(struct hpx_upstream *upstream);
/* Goes on sending once the socket has taken what it was given. */
void hpx_upstream_request_continue(struct hpx_exchange *exchange);
/* The transport's on_drain. */
void hpx_upstream_request_drained(struct hpx_exchange *exchange);

/* upstream_answer.c */

extern const struct hpx_transport_events hpx_upstream_answer_events;
void hpx_upstream_answer_init(struct hpx_exchange *exchange, struct hpx_span method);
void hpx_upstream_answer_done(struct hpx_exchange *exchange);
/* Delivers the bytes that are held, and reads on. */
void hpx_upstream_answer_continue(struct hpx_exchange *exchange);

#endif
