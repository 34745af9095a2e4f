/* The connections to one upstream, on one loop: how many there are, and which
 * of them are idle and may be used again. Who may have one at all is connection_slot.h's.
 * The newest idle one is used first,
 * so that the others can age and go. An idle connection is read from all the
 * time: its end is noticed when it comes, and a byte that nobody asked for
 * closes it and all the others (upstream.h), unless it is the 408 of a
 * server that closes what has been idle for long. */
#ifndef HPX_NET_POOL_H
#define HPX_NET_POOL_H

#include "net/upstream.h"

struct hpx_pool;

struct hpx_conn {
	struct hpx_pool *pool;
	struct hpx_transport *transport;
	struct hpx_conn *newer; /* while idle */
	struct hpx_conn *older;
	int64_t idle_since_us; /* boot clock, so that a paused process sees it */
	uint64_t slowest_us;   /* the longest of its last exchanges, within what is ever waited */
	uint64_t usable_ms;    /* how long it may be idle, by the upstream's own word */
};

struct hpx_pool {
	struct hpx_loop *loop;
	struct hpx_upstream_state *state; /* shared by all loops; NULL: nobody watches */
	uint64_t strays_seen;             /* of the state, when this pool last looked */
	bool watching;                    /* the same: the upstream was not watched enough */
	uint64_t quarantine_ms;
	uint64_t idle_max_ms; /* an idle one older than this is closed */
	unsigned idle_max;
	unsigned open_max;
	unsigned open; /* dialled, in use and idle */
	unsigned idle;
	struct hpx_conn *newest;
	struct hpx_conn *oldest;
	uv_timer_t sweep;
};

/* The limits are set by the caller beforehand. */
void hpx_pool_init(struct hpx_pool *pool, struct hpx_loop *loop);
/* Closes the idle ones; `on_done` comes when the memory may go. */
void hpx_pool_done(struct hpx_pool *pool, uv_close_cb on_done);

/* The newest connection that was idle for less than `idle_max_ms`, was silent
 * long enough behind its last answer, and shows no end; where two are open
 * already, the one that comes nearest to it; NULL where there is none. It is the
 * caller's now. */
struct hpx_conn *hpx_pool_take(struct hpx_pool *pool, uint64_t idle_max_ms, bool guarded);
/* Bytes came that nobody asked for: every idle connection is closed. */
void hpx_pool_stray(struct hpx_pool *pool);
/* Does the same where another loop saw them. */
void hpx_pool_look(struct hpx_pool *pool);
/* One more connection, by the right of a slot (connection_slot.h): an idle one is closed for
 * it where there are `open_max`. */
void hpx_pool_enter(struct hpx_pool *pool);
/* The connection that was counted did not come about. */
void hpx_pool_leave(struct hpx_pool *pool);
/* It did. NULL when out of memory: the transport is closed, the count put right. */
struct hpx_conn *hpx_pool_adopt(struct hpx_pool *pool, struct hpx_transport *transport);
/* An exchange took that long on it. */
void hpx_conn_took(struct hpx_conn *conn, uint64_t took_us);
/* Keeps a connection for later use (or closes it, where that is no use). */
void hpx_pool_keep(struct hpx_conn *conn);
void hpx_conn_close(struct hpx_conn *conn);

#endif
