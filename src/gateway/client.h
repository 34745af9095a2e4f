/* A client's connection: bytes in, requests out, one at a time, answers in
 * order. It knows HTTP's connection rules (keep-alive, pipelining, what to do
 * with a body nobody wants) and nothing of idempotency. */
#ifndef HPX_GATEWAY_CLIENT_H
#define HPX_GATEWAY_CLIENT_H

#include "gateway/gateway.h"

/* Who gets the bytes that arrive. */
enum hpx_client_mode {
	HPX_CLIENT_HEAD,    /* the next request's head */
	HPX_CLIENT_BODY,    /* the current request's body */
	HPX_CLIENT_HELD,    /* nobody now: they wait */
	HPX_CLIENT_DISCARD, /* nobody: the rest of a refused request's body */
	HPX_CLIENT_TUNNEL,  /* the upstream, raw */
};

struct hpx_client {
	struct hpx_shard *shard;
	struct hpx_transport *transport;
	struct hpx_client *prev, *next; /* in shard->clients */
	struct hpx_request *request;    /* the current one, NULL between two */
	struct hpx_buffer in;           /* bytes nobody has taken yet */
	enum hpx_client_mode mode;
	struct hpx_later later; /* offers what waits in `in` */
	uint64_t deadline_ms;   /* loop time; 0: none */
	uint64_t taken_seen;    /* bytes the socket had taken … */
	uint64_t stall_ms;      /* … when that last changed */
	uint64_t moved_bytes;   /* the same for clients that send no more */
	uint64_t moved_ms;
	uint64_t discarded_bytes;
	bool processing; /* inside the reading loop */
	bool reading;
	bool ended; /* the client sends no more */
	bool closing;
};

void hpx_client_accept(struct hpx_shard *shard, struct hpx_transport *transport);
/* Hands bytes of an answer to the socket. */
void hpx_client_send(struct hpx_client *client, const struct hpx_span *pieces, size_t count);
/* The current request wants (or no longer wants) the body's bytes. */
void hpx_client_set_mode(struct hpx_client *client, enum hpx_client_mode mode);
/* The answer is out, whole. The connection goes on with the next request if
 * `keep`, otherwise it ends. */
void hpx_client_answered(struct hpx_client *client, bool keep);
/* Ends the connection at once. */
void hpx_client_close(struct hpx_client *client);
/* The same in the middle of an answer: the client must see that. */
void hpx_client_abort(struct hpx_client *client);
/* Timeouts, and idle connections while draining. */
void hpx_client_tick(struct hpx_client *client, uint64_t now_ms);

#endif
