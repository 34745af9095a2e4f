/* Plain TCP and unix sockets as transports: how connect.c and listener.c
 * bring one to life. */
#ifndef HPX_NET_STREAM_H
#define HPX_NET_STREAM_H

#include "net/transport_driver.h"

/* A handle without a connection; NULL when out of memory. */
struct hpx_transport *hpx_stream_new(struct hpx_loop *loop, bool is_unix);
uv_stream_t *hpx_stream_uv(struct hpx_transport *transport);
/* The handle is connected now: sets its options and learns its peer. HPX_IO
 * where the other side is this very socket: connecting to a free port of
 * this machine can meet itself, and nobody listens there. */
enum hpx_status hpx_stream_connected(struct hpx_transport *transport);

#endif
