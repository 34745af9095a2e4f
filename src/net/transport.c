/* The common part of every transport: the phase is checked here, so that a
 * driver never sees a call out of order. */
#include "net/transport_driver.h"

#include <signal.h>

void hpx_net_ignore_sigpipe(void)
{
	signal(SIGPIPE, SIG_IGN);
}

void hpx_transport_attach(struct hpx_transport *transport,
			  const struct hpx_transport_events *events, void *user)
{
	transport->events = events;
	transport->user = user;
}

void hpx_transport_read_start(struct hpx_transport *transport)
{
	if (transport->reading || (transport->phase != HPX_TRANSPORT_OPEN &&
				   transport->phase != HPX_TRANSPORT_BREAKING))
		return;
	transport->reading = true;
	transport->driver->read_start(transport);
}

void hpx_transport_read_stop(struct hpx_transport *transport)
{
	if (!transport->reading)
		return;
	transport->reading = false;
	transport->driver->read_stop(transport);
}

enum hpx_status hpx_transport_send(struct hpx_transport *transport,
				   const struct hpx_span *pieces, size_t count,
				   size_t *ret_taken)
{
	uint64_t before = hpx_transport_taken(transport);
	enum hpx_status status = HPX_IO;

	if (hpx_transport_is_sendable(transport))
		status = transport->driver->send(transport, pieces, count);
	if (ret_taken != NULL)
		*ret_taken = (size_t)(hpx_transport_taken(transport) - before);
	return status;
}

bool hpx_transport_is_sendable(const struct hpx_transport *transport)
{
	return transport->phase < HPX_TRANSPORT_BREAKING;
}

size_t hpx_transport_pending(const struct hpx_transport *transport)
{
	return transport->driver->pending(transport);
}

uint64_t hpx_transport_taken(const struct hpx_transport *transport)
{
	return transport->accepted - hpx_transport_pending(transport);
}

void hpx_transport_shutdown(struct hpx_transport *transport)
{
	if (hpx_transport_is_sendable(transport))
		transport->driver->shutdown(transport);
}

void hpx_transport_close(struct hpx_transport *transport)
{
	if (transport->phase == HPX_TRANSPORT_CLOSED)
		return;
	transport->phase = HPX_TRANSPORT_CLOSED;
	transport->reading = false;
	transport->driver->close(transport);
}

void hpx_transport_abort(struct hpx_transport *transport)
{
	if (transport->phase == HPX_TRANSPORT_CLOSED)
		return;
	transport->phase = HPX_TRANSPORT_CLOSED;
	transport->reading = false;
	transport->driver->abort(transport);
}

bool hpx_transport_is_stale(struct hpx_transport *transport)
{
	return transport->phase != HPX_TRANSPORT_OPEN ||
	       transport->driver->is_stale(transport);
}

bool hpx_transport_has_bytes(struct hpx_transport *transport)
{
	return transport->phase == HPX_TRANSPORT_OPEN &&
	       transport->driver->has_bytes(transport);
}

const char *hpx_transport_peer(const struct hpx_transport *transport)
{
	return transport->peer;
}

void hpx_transport_tell_data(struct hpx_transport *transport, struct hpx_span bytes)
{
	if (transport->reading && transport->events != NULL)
		transport->events->on_data(transport->user, bytes);
}

void hpx_transport_tell_end(struct hpx_transport *transport, enum hpx_status status)
{
	if (transport->phase >= HPX_TRANSPORT_BROKEN)
		return;
	transport->phase =
		status == HPX_CLOSED ? HPX_TRANSPORT_ENDED : HPX_TRANSPORT_BROKEN;
	hpx_transport_read_stop(transport);
	if (transport->events != NULL)
		transport->events->on_end(transport->user, status);
}

void hpx_transport_tell_drain(struct hpx_transport *transport)
{
	if (transport->phase >= HPX_TRANSPORT_BREAKING || transport->events == NULL ||
	    transport->events->on_drain == NULL)
		return;
	transport->events->on_drain(transport->user);
}
