/* One connected byte stream, as the layers above see it. Plain TCP and unix
 * sockets are the first transport; TLS would be one more driver table
 * (transport_driver.h).
 *
 * Rules: callbacks come on the loop's thread, never from inside a call into
 * the transport; the user may close it within any of them. After close no
 * callback comes; the transport is not to be touched any more, its memory
 * goes when the loop has let go of it. */
#ifndef HPX_NET_TRANSPORT_H
#define HPX_NET_TRANSPORT_H

#include "base/span.h"
#include "base/status.h"
#include "net/loop.h"

struct hpx_transport;

struct hpx_transport_events {
	/* Bytes came; the span is valid during the call only. */
	void (*on_data)(void *user, struct hpx_span bytes);
	/* The other side closed its sending half (HPX_CLOSED) or the
	 * connection broke (HPX_IO). No more on_data follows. After
	 * HPX_CLOSED sending goes on, and HPX_IO may still come once, when a
	 * later send breaks. */
	void (*on_end)(void *user, enum hpx_status status);
	/* All that was sent has been handed to the kernel (only after a send
	 * left something pending). May be NULL. */
	void (*on_drain)(void *user);
};

/* `events` may be changed between callbacks (a connection that changes hands). */
void hpx_transport_attach(struct hpx_transport *transport,
			  const struct hpx_transport_events *events, void *user);

void hpx_transport_read_start(struct hpx_transport *transport);
void hpx_transport_read_stop(struct hpx_transport *transport);

/* Sends the pieces in order: what the socket takes at once is written at
 * once, the rest is copied and follows. `*ret_taken` (may be NULL) tells how
 * many bytes the socket took during this call: zero with an error means that
 * no byte of it left. HPX_IO, HPX_NOMEM: broken; on_end follows, after what the
 * other side had said before (while reading is on). */
enum hpx_status hpx_transport_send(struct hpx_transport *transport, const struct hpx_span *pieces,
				   size_t count, size_t *ret_taken);
/* Whether a send could succeed: not broken, not closed. */
bool hpx_transport_is_sendable(const struct hpx_transport *transport);
/* Bytes copied and not yet taken by the socket: what a streamer watches. */
size_t hpx_transport_pending(const struct hpx_transport *transport);
/* Bytes that the socket has taken since the connection was made. Once a send
 * has broken that was already queued, all of it counts as taken: how much
 * left is not known then, and "did a byte leave" must err towards yes. */
uint64_t hpx_transport_taken(const struct hpx_transport *transport);

/* Sends an end of stream once everything pending is out. */
void hpx_transport_shutdown(struct hpx_transport *transport);
/* Sends an end of stream once everything pending is out, and closes when the
 * other side ends too or a moment later, having read and dropped what still
 * comes (so that the last answer is not destroyed by a reset); gives up when
 * nothing of what is pending has gone out for `stall_ms`. No callbacks any more. */
void hpx_transport_close_gently(struct hpx_transport *transport, uint64_t stall_ms);
/* Closes at once so that the other side sees a broken connection (a reset),
 * not an end: for half an answer that only the end would have made whole. */
void hpx_transport_abort(struct hpx_transport *transport);
/* Closes at once; no callbacks any more. */
void hpx_transport_close(struct hpx_transport *transport);

/* Whether an end of stream or stray bytes are waiting (a non-blocking peek):
 * the check before a kept-alive connection is used again. */
bool hpx_transport_is_stale(struct hpx_transport *transport);
/* Whether bytes are waiting, rather than an end. */
bool hpx_transport_has_bytes(struct hpx_transport *transport);

/* "127.0.0.1", "::1", or "unix" (IPv4 within IPv6 is shown as IPv4). */
const char *hpx_transport_peer(const struct hpx_transport *transport);

/* Connects to one socket address, or a unix path where that is not NULL.
 * on_connected is called once, later, with the status (UNAVAILABLE, TIMEOUT,
 * FULL: no descriptor left); with HPX_OK the transport is the receiver's.
 * NULL when out of memory. */
struct hpx_connect;
struct hpx_connect *hpx_transport_connect(struct hpx_loop *loop, const struct sockaddr *address,
					  const char *unix_path,
					  void (*on_connected)(void *user, enum hpx_status status,
							       struct hpx_transport *transport),
					  void *user);
/* Gives up; on_connected is not called any more. */
void hpx_connect_cancel(struct hpx_connect *connect);

/* A write to a connection that the other side has left raises SIGPIPE, which
 * ends the process: every program that uses transports calls this first. */
void hpx_net_ignore_sigpipe(void);

#endif
