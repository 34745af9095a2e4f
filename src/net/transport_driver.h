/* The inside of a transport, for its drivers: plain sockets (stream.c), and TLS
 * above those (tls_transport.c). Users of transports include transport.h only.
 *
 *   OPEN ──▶ ENDED ──▶ BREAKING ──▶ BROKEN ──▶ CLOSED
 *
 *   → ENDED     hpx_transport_emit_end(HPX_CLOSED)
 *   → BREAKING  a failed send
 *   → BROKEN    hpx_transport_emit_end(HPX_IO)
 *   → CLOSED    hpx_transport_close, hpx_transport_abort
 *
 * 1. The phase only moves forward; any phase may be skipped.
 * 2. `reading` is set only in OPEN and BREAKING.
 * 3. Pending bytes are a part of the accepted ones. */
#ifndef HPX_NET_TRANSPORT_DRIVER_H
#define HPX_NET_TRANSPORT_DRIVER_H

#include "net/transport.h"

enum hpx_transport_phase {
	HPX_TRANSPORT_OPEN,
	HPX_TRANSPORT_ENDED,    /* the peer sends no more; sending goes on */
	HPX_TRANSPORT_BREAKING, /* nothing can be sent; on_end is still to come */
	HPX_TRANSPORT_BROKEN,   /* on_end was called with HPX_IO */
	HPX_TRANSPORT_CLOSED,   /* by the user; the memory is freed with the handle */
};

/* The wrappers in transport.c have checked the phase: read_start comes when
 * OPEN or BREAKING and not reading, send and shutdown when OPEN or ENDED. */
struct hpx_transport_driver {
	void (*read_start)(struct hpx_transport *transport);
	void (*read_stop)(struct hpx_transport *transport);
	/* Writes the bytes that the socket takes now, copies the rest. On failure
	 * the driver has set BREAKING and makes sure that on_end comes, deferred. */
	enum hpx_status (*send)(struct hpx_transport *transport, const struct hpx_span *pieces,
				size_t count);
	size_t (*pending)(const struct hpx_transport *transport);
	void (*shutdown)(struct hpx_transport *transport);
	/* Frees the transport, once the event loop has closed its handle. */
	void (*close)(struct hpx_transport *transport);
	/* The same with a reset. */
	void (*abort)(struct hpx_transport *transport);
	bool (*is_stale)(struct hpx_transport *transport);
	bool (*has_bytes)(struct hpx_transport *transport);
	/* NULL where no peer has a certificate: see hpx_transport_certificate. */
	bool (*certificate)(struct hpx_transport *transport, enum hpx_certificate_name kind,
			    struct hpx_certificate *ret_certificate);
};

#define HPX_PEER_SIZE 48

struct hpx_transport {
	const struct hpx_transport_driver *driver;
	struct hpx_loop *loop;
	const struct hpx_transport_events *events;
	void *user;
	uint64_t accepted; /* bytes given to send(), pending ones included */
	enum hpx_transport_phase phase;
	bool reading;
	bool secure; /* TLS */
	char peer[HPX_PEER_SIZE];
};

/* How a driver calls the user back. A call that is not due any more (the user has
 * stopped reading, or has closed) is dropped here, not in the driver. */
void hpx_transport_emit_data(struct hpx_transport *transport, struct hpx_span bytes);
void hpx_transport_emit_end(struct hpx_transport *transport, enum hpx_status status);
void hpx_transport_emit_drain(struct hpx_transport *transport);

/* stream.c: plain TCP and unix sockets. */

/* A handle without a connection; NULL when out of memory. */
struct hpx_transport *hpx_stream_new(struct hpx_loop *loop, bool is_unix);
uv_stream_t *hpx_stream_uv(struct hpx_transport *transport);
/* To be called once the handle is connected: sets its options and learns its peer.
 * HPX_IO where the peer is this very socket: a connection to a free port of this
 * machine can connect to itself, and nobody listens there. */
enum hpx_status hpx_stream_connected(struct hpx_transport *transport);
/* Reads what the socket has now, past the loop. Zero: nothing, an end, or an error. */
size_t hpx_stream_read_now(struct hpx_transport *transport, char *out, size_t size);

#endif
