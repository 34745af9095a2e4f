/* The client's side of one request: how a request takes its body and gives its
 * answer. A request knows nothing else of its client: neither the connection nor
 * its protocol, nor whether other requests share it. client_connection.c is the
 * one implementation: HTTP/1, one request at a time.
 *
 * An answer is either whole (hpx_downstream_answer), or it flows: begin, body …,
 * finish or abort. After answer, finish, abort and close, the downstream is not
 * the request's any more: request->downstream is NULL when these return. */
#ifndef HPX_GATEWAY_DOWNSTREAM_H
#define HPX_GATEWAY_DOWNSTREAM_H

#include "base/buffer.h"
#include "http/message.h"

/* Embedded in the protocol's own state. */
struct hpx_downstream {
	struct hpx_request *request; /* NULL between two */
};

/* What becomes of the bytes that the client sends behind the request's head. */
enum hpx_downstream_reading {
	HPX_DOWNSTREAM_HOLD,   /* they wait, within a bound */
	HPX_DOWNSTREAM_BODY,   /* hpx_request_take_body */
	HPX_DOWNSTREAM_TUNNEL, /* hpx_request_take_tunnel: no HTTP any more */
};

/* What is offered first is offered once the caller has returned. */
void hpx_downstream_read(struct hpx_downstream *downstream, enum hpx_downstream_reading reading);
/* The body is wanted: a client that waits for 100 Continue gets it. */
void hpx_downstream_continue(struct hpx_downstream *downstream);

/* The head of an answer: a status line and lines of fields, without those about
 * framing and connection. What the protocol needs is written behind them. */
struct hpx_downstream_head {
	struct hpx_buffer *lines;
	unsigned status;
	enum hpx_http_framing framing; /* as it comes from the upstream */
	bool has_length;
	uint64_t length;
};

/* A 1xx; nothing where the client's protocol has none. Ends with its head. */
void hpx_downstream_informational(struct hpx_downstream *downstream, struct hpx_buffer *lines);
/* A whole answer; its length is that of `body`. */
void hpx_downstream_answer(struct hpx_downstream *downstream, struct hpx_buffer *lines,
			   unsigned status, struct hpx_span body);
/* The head of an answer that flows. It leaves with the first bytes of the body, or
 * at the end of this turn of the loop: its lines stay until then. */
void hpx_downstream_begin(struct hpx_downstream *downstream,
			  const struct hpx_downstream_head *head);
void hpx_downstream_body(struct hpx_downstream *downstream, struct hpx_span bytes);
void hpx_downstream_finish(struct hpx_downstream *downstream);
/* Ends an answer in the middle: the client must see that it is not whole. */
void hpx_downstream_abort(struct hpx_downstream *downstream);
/* Ends the request without an answer. */
void hpx_downstream_close(struct hpx_downstream *downstream);

/* The client may send nothing more behind this request: nothing that follows could
 * be trusted, or there is no HTTP any more. */
void hpx_downstream_make_last(struct hpx_downstream *downstream);
/* So much is on its way to the client that no more is to come, until
 * hpx_request_client_drained. */
bool hpx_downstream_is_full(const struct hpx_downstream *downstream);
/* Counts the connection at the tenant that its first request names (share.h). False: the
 * tenant has its share of the connections. */
bool hpx_downstream_take_share(struct hpx_downstream *downstream, uint64_t tenant);
/* The client has sent everything that it will send. */
bool hpx_downstream_is_ended(const struct hpx_downstream *downstream);

#endif
