/* One request and its answer, from the inside: what upstream_exchange.c (start,
 * deadlines, sending, end) and upstream_answer.c (reading) share. Users of the
 * upstream client include upstream.h only.
 *
 * The two sides move apart from each other, each only down its list:
 *
 *   request   WAITING ──▶ DIALLING ──▶ SENDING ◀─▶ OPEN ──▶ SENT
 *                 └── pooled ──────────▶ │           │
 *                                        └─▶ STOPPED ◀┘  (an early refusal)
 *   answer    HEAD ──▶ BODY ──▶ WHOLE ──▶ GONE
 *                └───▶ TUNNEL ────────────▶      (the request is OPEN again)
 *
 * 1. Nothing is sent twice: the request's bytes go to one connection, once.
 * 2. A callback may end the exchange; after each, answer == GONE is looked at
 *    before anything else is touched. The memory goes with the timer's handle.
 * 3. A connection goes back to the pool only from a WHOLE answer that allows
 *    it, behind a SENT request, with no byte left over; a guarded one's not
 *    while the upstream is in quarantine (upstream.h). */
#ifndef HPX_NET_UPSTREAM_EXCHANGE_H
#define HPX_NET_UPSTREAM_EXCHANGE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "net/dial.h"
#include "net/pool.h"
#include "net/upstream.h"

enum hpx_upstream_request_state {
	HPX_UPSTREAM_REQUEST_WAITING, /* for its turn: start() calls nobody back */
	HPX_UPSTREAM_REQUEST_DIALLING,
	HPX_UPSTREAM_REQUEST_SENDING, /* bytes are on their way out */
	HPX_UPSTREAM_REQUEST_OPEN,    /* streamed: all so far was sent, more may come */
	HPX_UPSTREAM_REQUEST_SENT,
	HPX_UPSTREAM_REQUEST_STOPPED, /* the upstream wants no more of it */
};

enum hpx_upstream_answer_state {
	HPX_UPSTREAM_ANSWER_HEAD,
	HPX_UPSTREAM_ANSWER_BODY,
	HPX_UPSTREAM_ANSWER_TUNNEL,
	HPX_UPSTREAM_ANSWER_WHOLE, /* its end was read, on_end is to come */
	HPX_UPSTREAM_ANSWER_GONE,
};

/* What the timer is waiting for. */
enum hpx_exchange_wait {
	HPX_WAIT_NOTHING,
	HPX_WAIT_SEND,
	HPX_WAIT_FIRST_BYTE,
	HPX_WAIT_IDLE,
};

struct hpx_upstream {
	struct hpx_loop *loop;
	struct hpx_upstream_options options;
	struct hpx_resolver *resolver; /* NULL for unix */
	struct hpx_dial_target target;
	struct hpx_slots slots;
	struct hpx_pool pool;
	struct hpx_exchange *exchanges;
	bool closing;
};

struct hpx_exchange {
	struct hpx_upstream *upstream;
	struct hpx_exchange *next;
	struct hpx_exchange *prev;
	const struct hpx_exchange_events *events;
	void *user;
	struct hpx_later turn; /* what must not happen inside a user's call */
	enum hpx_status doom;  /* it fails at its next turn, by this */

	/* Deadlines, on the loop's clock; 0: none. */
	uv_timer_t timer;
	uint64_t armed_ms;
	uint64_t wait_until_ms;
	uint64_t whole_until_ms;
	enum hpx_exchange_wait wait;

	/* The request. `streamed` is cleared when no more follows. */
	enum hpx_upstream_request_state request_state;
	struct hpx_exchange_request request;
	struct hpx_slot slot; /* held until the connection is closed or idle */
	struct hpx_dial *dial;
	struct hpx_conn *conn;
	bool any_byte_left;    /* as of when the connection was let go */
	int64_t used_us;       /* when the connection became ours */
	uint64_t taken_before; /* the connection's count at our first byte */
	uint64_t taken_seen;   /* its count when progress was last looked at */
	struct hpx_span body_left;
	struct hpx_buffer early; /* written before it could be sent */
	bool wants_room;         /* on_writable is owed */

	/* The answer. */
	enum hpx_upstream_answer_state answer_state;
	bool paused;
	bool head_seen;
	unsigned informational;
	struct hpx_http_reader reader;
	struct hpx_http_reader fresh; /* as it was before the first byte, for the next head */
	struct hpx_buffer head_bytes;
	struct hpx_arena arena;
	struct hpx_http_head head;
	struct hpx_buffer held; /* read, but not yet wanted */
};

static inline bool hpx_exchange_is_gone(const struct hpx_exchange *exchange)
{
	return exchange->answer_state == HPX_UPSTREAM_ANSWER_GONE;
}

/* upstream_exchange.c */

/* Looks at what is being waited for now, and from now on. */
void hpx_exchange_touch(struct hpx_exchange *exchange);
/* Lets everything go but the callbacks' memory; the caller calls back last. */
void hpx_exchange_end(struct hpx_exchange *exchange);
void hpx_exchange_fail(struct hpx_exchange *exchange, enum hpx_status status,
		       const char *reason);
/* Goes on sending once the socket has taken what it was given. */
void hpx_upstream_request_continue(struct hpx_exchange *exchange);
/* The transport's on_drain. */
void hpx_upstream_request_drained(struct hpx_exchange *exchange);

/* upstream_answer.c */

extern const struct hpx_transport_events hpx_upstream_answer_events;
void hpx_upstream_answer_init(struct hpx_exchange *exchange, struct hpx_span method);
void hpx_upstream_answer_done(struct hpx_exchange *exchange);
/* Delivers what is held, and reads on. */
void hpx_upstream_answer_continue(struct hpx_exchange *exchange);

#endif
