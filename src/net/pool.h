/* The connections to one upstream, on one loop: how many are open, and which of them
 * are idle and may be used again. Whether a request may have a connection at all is
 * decided by connection_slot.h. Only the loop's thread calls.
 *
 *   (dialling) ──▶ in use ──▶ idle ──▶ in use ──▶ closed
 *
 *   → dialling   hpx_pool_enter; hpx_pool_leave takes it back
 *   → in use     hpx_pool_adopt from dialling, hpx_pool_take from idle
 *   → idle       hpx_pool_keep
 *   → closed     hpx_conn_close from in use; from idle: too old, ended, a stray byte
 *                on any loop, or no room for a newer one
 *
 * 1. `open` counts the connections that are dialled, in use or idle; `idle` those in
 *    the list. idle <= open, and the list is empty exactly when idle == 0.
 * 2. The list is in the order of idle_since_us. The newest one is used first, so
 *    that the others can age and be closed.
 * 3. An idle connection is always being read from: its end is noticed when it comes,
 *    and a stray byte closes it and all the others (upstream.h), unless the byte
 *    begins the 408 of a server that closes a connection which was idle for long. */
#ifndef HPX_NET_POOL_H
#define HPX_NET_POOL_H

#include "net/upstream.h"

struct hpx_pool;

struct hpx_conn {
	struct hpx_pool *pool;
	struct hpx_transport *transport;
	struct hpx_conn *newer; /* while idle */
	struct hpx_conn *older;
	int64_t idle_since_us; /* boot clock, which goes on while the process is stopped */
	uint64_t kept_turn;    /* of the loop, when it became idle */
	uint64_t slowest_us;   /* the longest of its last exchanges, at most HPX_UPSTREAM_SILENCE_MS */
	uint64_t usable_ms;    /* how long it may be idle, as the upstream's Keep-Alive says */
	uint64_t endpoint;     /* the number of the endpoint that it leads to */
};

struct hpx_pool {
	struct hpx_loop *loop;
	struct hpx_upstream_state *state; /* shared by all loops; NULL: nobody watches */
	uint64_t strays_seen;             /* of the state, at the last hpx_pool_refresh */
	bool watching;                    /* the upstream was not yet watched enough then */
	uint64_t quarantine_ms;
	uint64_t idle_max_ms; /* a connection that is idle for longer is closed */
	unsigned idle_max;
	unsigned open_max;
	uint64_t endpoint; /* connections to others are not kept */
	unsigned open;
	unsigned idle;
	struct hpx_conn *newest;
	struct hpx_conn *oldest;
	uv_timer_t sweep;
};

/* The limits are set by the caller beforehand. */
void hpx_pool_init(struct hpx_pool *pool, struct hpx_loop *loop);
/* Closes the idle connections; none may be dialling or in use. `on_done` comes when
 * the pool's memory may be freed. */
void hpx_pool_done(struct hpx_pool *pool, uv_close_cb on_done);

/* Takes the newest connection that was idle for less than `idle_max_ms`, was silent
 * long enough after its last answer, and shows no end. Where two are open already,
 * the one that was silent for the longest will do. NULL where there is none. */
struct hpx_conn *hpx_pool_take(struct hpx_pool *pool, uint64_t idle_max_ms, bool guarded);
/* A stray byte came: closes every idle connection, here and on the other loops. */
void hpx_pool_stray(struct hpx_pool *pool);
/* From now on connections lead to this endpoint: closes the idle ones. */
void hpx_pool_move(struct hpx_pool *pool, uint64_t endpoint);
/* Closes every idle connection where another loop saw a stray byte. */
void hpx_pool_refresh(struct hpx_pool *pool);
/* Counts a connection that is about to be dialled, for the holder of a slot. Closes
 * an idle one for it where `open_max` are open. */
void hpx_pool_enter(struct hpx_pool *pool);
/* The connection that was counted could not be made, or is closed. */
void hpx_pool_leave(struct hpx_pool *pool);
/* The connection that was counted is made. NULL when out of memory: the transport is
 * closed, and the connection is not counted any more. */
struct hpx_conn *hpx_pool_adopt(struct hpx_pool *pool, struct hpx_transport *transport,
				uint64_t endpoint);
/* Notes how long an exchange took on the connection. */
void hpx_conn_note_duration(struct hpx_conn *conn, uint64_t took_us);
/* Puts a connection that is in use among the idle ones, or closes it where the pool
 * wants no more. */
void hpx_pool_keep(struct hpx_conn *conn);
void hpx_conn_close(struct hpx_conn *conn);

#endif
