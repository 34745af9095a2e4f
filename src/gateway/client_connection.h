/* A client's HTTP/1 connection: bytes in, requests out, one at a time, answers in
 * order. It knows HTTP's connection rules (framing, keep-alive, pipelining, what to
 * do with a body that nobody wants) and nothing of idempotency. For its current
 * request it is the downstream (downstream.h). */
#ifndef HPX_GATEWAY_CLIENT_CONNECTION_H
#define HPX_GATEWAY_CLIENT_CONNECTION_H

#include "gateway/downstream.h"
#include "gateway/gateway.h"

/* Who gets the bytes that arrive.
 *
 *   HEAD ─▶ HELD ◀─▶ BODY ─▶ (answered) ─▶ HEAD
 *    ▲       ▲                    │
 *    │       └──▶ TUNNEL          └─▶ DISCARD ─┐
 *    └─────────────────────────────────────────┘
 *
 * There is a current request in HELD, BODY and TUNNEL, and in HEAD from the first byte
 * of a head on. */
enum hpx_connection_mode {
	HPX_CONNECTION_HEAD,    /* the next request's head */
	HPX_CONNECTION_HELD,    /* nobody now: they wait */
	HPX_CONNECTION_BODY,    /* the current request's body */
	HPX_CONNECTION_TUNNEL,  /* the upstream, raw */
	HPX_CONNECTION_DISCARD, /* nobody: the rest of an answered request's body */
};

/* Made by hpx_connection_accept, freed when the socket is closed; its loop's thread
 * only. */
struct hpx_connection {
	struct hpx_downstream downstream; /* of the current request */
	struct hpx_shard *shard;
	struct hpx_transport *transport;
	unsigned listener;                  /* of settings->listeners */
	struct hpx_connection *prev, *next; /* in shard->connections */
	/* Reading. */
	struct hpx_buffer in; /* bytes nobody has taken yet */
	enum hpx_connection_mode mode;
	struct hpx_http_reader reader; /* of the current message */
	struct hpx_later later;        /* offers what waits in `in` */
	bool body_read;                /* the current message has no more body */
	bool processing;               /* inside the reading loop */
	bool reading;
	bool ended; /* the client sends no more */
	uint64_t discarded_bytes;
	/* Writing. */
	bool keep;            /* the connection goes on behind the current answer */
	bool chunked;         /* the flowing answer */
	struct hpx_span head; /* of the flowing answer, while it waits for its first bytes */
	struct hpx_later head_later;
	/* Limits. */
	uint64_t peer_hash;   /* of its address; 0: a unix socket or a trusted peer */
	uint64_t tenant_hash; /* of the tenant that its first request named; 0: none so far */
	/* Time. */
	uint64_t body_began_ms;     /* since when the body is read … */
	uint64_t body_window_ms;    /* … and since when its rate is judged */
	uint64_t body_window_bytes; /* what has come since then */
	uint64_t deadline_ms;       /* loop time; 0: none */
	uint64_t taken_seen;        /* bytes the socket had taken … */
	uint64_t stall_ms;          /* … when that last changed */
	uint64_t moved_bytes;       /* the same for clients that send no more */
	uint64_t moved_ms;
	bool closing;
};

/* ---- client_accept.c ---- */

/* A connection to the n-th listener. Where that has a PROXY header or TLS, those come
 * first, within timeouts.head. */
void hpx_connection_accept(struct hpx_shard *shard, unsigned listener,
			   struct hpx_transport *transport);

/* ---- client_connection.c ---- */

/* Ends the connection at once. */
void hpx_connection_close(struct hpx_connection *connection);
/* Timeouts, and idle connections while draining. */
void hpx_connection_tick(struct hpx_connection *connection, uint64_t now_ms);

/* ---- for client_accept.c and client_answer.c ---- */

extern const struct hpx_transport_events hpx_connection_events;
/* The transport is gone already. */
void hpx_connection_forget(struct hpx_connection *connection);
void hpx_connection_set_deadline(struct hpx_connection *connection, int64_t after_ms);
void hpx_connection_read_more(struct hpx_connection *connection, bool wanted);

struct hpx_connection *hpx_connection_of(const struct hpx_downstream *downstream);
void hpx_connection_set_mode(struct hpx_connection *connection, enum hpx_connection_mode mode);
/* Ends the connection when everything that is on its way to the client is out. */
void hpx_connection_close_gently(struct hpx_connection *connection);

#endif
