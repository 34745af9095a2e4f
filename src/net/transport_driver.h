/* What a transport is made of, for those who implement one: plain sockets
 * (stream.c) now, TLS as one more table of functions. Users of transports
 * include transport.h only. */
#ifndef HPX_NET_TRANSPORT_DRIVER_H
#define HPX_NET_TRANSPORT_DRIVER_H

#include "net/transport.h"

/* Each only ever goes down this list. */
enum hpx_transport_phase {
	HPX_TRANSPORT_OPEN,
	HPX_TRANSPORT_ENDED,    /* the other side sends no more; sending goes on */
	HPX_TRANSPORT_BREAKING, /* nothing can be sent; on_end is still to come */
	HPX_TRANSPORT_BROKEN,   /* and the user knows */
	HPX_TRANSPORT_CLOSED,   /* the user let go; memory goes with the handle */
};

/* The wrappers in transport.c have checked the phase: read_start comes when
 * OPEN or BREAKING and not reading, send and shutdown when OPEN or ENDED. */
struct hpx_transport_driver {
	void (*read_start)(struct hpx_transport *transport);
	void (*read_stop)(struct hpx_transport *transport);
	/* Takes what the socket takes now, copies the rest. On failure the
	 * driver has set BREAKING and sees to it that on_end comes, later. */
	enum hpx_status (*send)(struct hpx_transport *transport, const struct hpx_span *pieces,
				size_t count);
	size_t (*pending)(const struct hpx_transport *transport);
	void (*shutdown)(struct hpx_transport *transport);
	/* Frees the transport, once the event loop has let go of it. */
	void (*close)(struct hpx_transport *transport);
	/* The same, and the other side sees that it was cut off. */
	void (*abort)(struct hpx_transport *transport);
	bool (*is_stale)(struct hpx_transport *transport);
	bool (*has_bytes)(struct hpx_transport *transport);
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
	char peer[HPX_PEER_SIZE];
};

/* Drivers tell the user by these; each checks what must be checked. */
void hpx_transport_tell_data(struct hpx_transport *transport, struct hpx_span bytes);
void hpx_transport_tell_end(struct hpx_transport *transport, enum hpx_status status);
void hpx_transport_tell_drain(struct hpx_transport *transport);

/* stream.c: plain TCP and unix sockets. */

/* A handle without a connection; NULL when out of memory. */
struct hpx_transport *hpx_stream_new(struct hpx_loop *loop, bool is_unix);
uv_stream_t *hpx_stream_uv(struct hpx_transport *transport);
/* The handle is connected now: sets its options and learns its peer. HPX_IO
 * where the other side is this very socket: connecting to a free port of
 * this machine can meet itself, and nobody listens there. */
enum hpx_status hpx_stream_connected(struct hpx_transport *transport);

#endif
