/* One connected byte stream, as the layers above see it. Plain TCP and unix
 * sockets are one driver, TLS is another (tls.h).
 *
 * Callbacks come on the loop's thread, never from inside a call into the
 * transport. The user may close the transport within any callback. After a close
 * no callback comes, and the user must not touch the transport any more: its
 * memory is freed when the loop has closed the handle. */
#ifndef HPX_NET_TRANSPORT_H
#define HPX_NET_TRANSPORT_H

#include "base/span.h"
#include "base/status.h"
#include "net/loop.h"

struct hpx_transport;

struct hpx_transport_events {
	/* Bytes came; the span is valid during the call only. */
	void (*on_data)(void *user, struct hpx_span bytes);
	/* The peer closed its sending half (HPX_CLOSED) or the connection broke
	 * (HPX_IO). No on_data follows. After HPX_CLOSED sending goes on, and
	 * HPX_IO may still come once, when a later send fails. */
	void (*on_end)(void *user, enum hpx_status status);
	/* Everything sent so far has been handed to the kernel. Comes only after
	 * a send that left bytes pending. May be NULL. */
	void (*on_drain)(void *user);
};

/* Sets the receiver of the callbacks. A connection that changes hands gets another. */
void hpx_transport_attach(struct hpx_transport *transport,
			  const struct hpx_transport_events *events, void *user);

void hpx_transport_read_start(struct hpx_transport *transport);
void hpx_transport_read_stop(struct hpx_transport *transport);

/* Sends the pieces in order. The bytes that the socket takes at once are written at
 * once; the rest is copied and follows. `*ret_taken` (may be NULL) is the number of
 * bytes that the socket took during this call: zero with an error means that no
 * byte of these pieces left. HPX_IO, HPX_NOMEM: the connection is broken; on_end
 * follows, while reading is on behind the bytes that the peer had sent before. */
enum hpx_status hpx_transport_send(struct hpx_transport *transport, const struct hpx_span *pieces,
				   size_t count, size_t *ret_taken);
/* Whether a send could succeed: not broken, not closed. */
bool hpx_transport_is_sendable(const struct hpx_transport *transport);
/* Bytes copied and not yet taken by the socket: for backpressure. */
size_t hpx_transport_pending(const struct hpx_transport *transport);
/* Bytes that the socket has taken since the connection was made; under TLS, the bytes
 * whose record it has begun to take. When bytes that
 * were already queued fail to go out, all of them count as taken: how many left is
 * not known then, and "did a byte leave" must err towards yes. None where a peer has
 * refused the TLS handshake that the bytes were sent behind: it has read none of them. */
uint64_t hpx_transport_taken(const struct hpx_transport *transport);

/* Sends an end of stream once everything pending is out. */
void hpx_transport_shutdown(struct hpx_transport *transport);
/* The lingering close: sends an end of stream once everything pending is out, drops
 * the bytes that still come, and closes when the peer ends too or two seconds
 * later. Closing at once would make the kernel reset the connection, and a reset
 * destroys the last answer in the peer's hands. Gives up when no pending byte has
 * gone out for `stall_ms`. No callbacks any more. */
void hpx_transport_close_gently(struct hpx_transport *transport, uint64_t stall_ms);
/* Closes at once with a reset, so that the peer sees a broken connection and no end
 * of stream: for half of an answer whose end is the connection's end. */
void hpx_transport_abort(struct hpx_transport *transport);
/* Closes at once; no callbacks any more. */
void hpx_transport_close(struct hpx_transport *transport);

/* Whether an end of stream or stray bytes are waiting (a non-blocking peek):
 * the check before a kept-alive connection is used again. */
bool hpx_transport_is_stale(struct hpx_transport *transport);
/* Whether no end has been reported, and nothing has failed: what is_stale says without
 * looking at the socket. */
bool hpx_transport_is_open(const struct hpx_transport *transport);
/* Whether bytes are waiting, rather than an end. */
bool hpx_transport_has_bytes(struct hpx_transport *transport);

/* "127.0.0.1", "::1", or "unix" (IPv4 within IPv6 is shown as IPv4); behind a proxy that
 * names its client in a PROXY header, that client's. */
const char *hpx_transport_peer(const struct hpx_transport *transport);
void hpx_transport_set_peer(struct hpx_transport *transport, const char *peer);

/* Whether the bytes are encrypted on the wire. */
bool hpx_transport_is_secure(const struct hpx_transport *transport);

/* What names the owner of a certificate. */
enum hpx_certificate_name { HPX_CERTIFICATE_SUBJECT, /* the whole of it, as RFC 2253 writes it */
			    HPX_CERTIFICATE_COMMON_NAME,
			    HPX_CERTIFICATE_DNS, /* the first alternative name of the kind */
			    HPX_CERTIFICATE_URI,
			    HPX_CERTIFICATE_EMAIL };

struct hpx_certificate {
	struct hpx_span name;
	struct hpx_span authority; /* the subject of the trusted certificate that vouches for it */
};

/* The certificate that the peer has proved to own, and that was verified. False: there is
 * none, or it has no such name. The spans live as long as the transport. */
bool hpx_transport_certificate(struct hpx_transport *transport, enum hpx_certificate_name kind,
			       struct hpx_certificate *ret_certificate);

/* Connects to one socket address, or to a unix path where that is not NULL.
 * on_connected is called once, never from inside this call, with the status
 * (UNAVAILABLE, TIMEOUT, FULL: no descriptor left); with HPX_OK the receiver owns
 * the transport. NULL when out of memory. */
struct hpx_connect;
struct hpx_connect *hpx_transport_connect(struct hpx_loop *loop, const struct sockaddr *address,
					  const char *unix_path,
					  void (*on_connected)(void *user, enum hpx_status status,
							       struct hpx_transport *transport),
					  void *user);
/* Gives up; on_connected is not called any more. */
void hpx_connect_cancel(struct hpx_connect *connect);

/* A write to a connection that the peer has closed raises SIGPIPE, which ends the
 * process: every program that uses transports calls this first. */
void hpx_net_ignore_sigpipe(void);

#endif
