/* The part that every transport has in common. Each wrapper checks the phase, so
 * that a driver never sees a call out of order. At the end of the file: the gentle
 * close, which is the same for every driver. */
#include "net/transport_driver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

void hpx_net_ignore_sigpipe(void)
{
	signal(SIGPIPE, SIG_IGN);
}

void hpx_transport_attach(struct hpx_transport *transport,
			  const struct hpx_transport_events *events, void *user)
{
	HPX_ASSERT(transport->phase != HPX_TRANSPORT_CLOSED);
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
	size_t pending = hpx_transport_pending(transport);

	HPX_ASSERT(pending <= transport->accepted);
	return transport->accepted - pending;
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

bool hpx_transport_is_open(const struct hpx_transport *transport)
{
	return transport->phase == HPX_TRANSPORT_OPEN;
}

bool hpx_transport_is_stale(struct hpx_transport *transport)
{
	return !hpx_transport_is_open(transport) || transport->driver->is_stale(transport);
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

void hpx_transport_set_peer(struct hpx_transport *transport, const char *peer)
{
	snprintf(transport->peer, sizeof(transport->peer), "%s", peer);
}

bool hpx_transport_is_secure(const struct hpx_transport *transport)
{
	return transport->secure;
}

bool hpx_transport_certificate(struct hpx_transport *transport, enum hpx_certificate_name kind,
			       struct hpx_certificate *ret_certificate)
{
	return transport->driver->certificate != NULL &&
	       transport->driver->certificate(transport, kind, ret_certificate);
}

void hpx_transport_emit_data(struct hpx_transport *transport, struct hpx_span bytes)
{
	if (!transport->reading || transport->events == NULL)
		return;
	HPX_ASSERT(transport->phase == HPX_TRANSPORT_OPEN ||
		   transport->phase == HPX_TRANSPORT_BREAKING);
	transport->events->on_data(transport->user, bytes);
}

void hpx_transport_emit_end(struct hpx_transport *transport, enum hpx_status status)
{
	HPX_ASSERT(status == HPX_IO ||
		   (status == HPX_CLOSED && transport->phase == HPX_TRANSPORT_OPEN));
	if (transport->phase >= HPX_TRANSPORT_BROKEN)
		return;
	transport->phase =
		status == HPX_CLOSED ? HPX_TRANSPORT_ENDED : HPX_TRANSPORT_BROKEN;
	hpx_transport_read_stop(transport);
	if (transport->events != NULL)
		transport->events->on_end(transport->user, status);
}

void hpx_transport_emit_drain(struct hpx_transport *transport)
{
	if (transport->phase >= HPX_TRANSPORT_BREAKING || transport->events == NULL ||
	    transport->events->on_drain == NULL)
		return;
	transport->events->on_drain(transport->user);
}

/* How long the peer may take to end too, once everything is out. */
#define PEER_END_MS 2000

struct lingering_close {
	struct hpx_transport *transport;
	uv_timer_t timer;
	size_t pending; /* when the timer was last started */
	uint64_t stall_ms;
};

static void free_closing(uv_handle_t *handle)
{
	free(handle->data);
}

static void finish_closing(struct lingering_close *closing)
{
	hpx_transport_close(closing->transport);
	uv_close((uv_handle_t *)&closing->timer, free_closing);
}

static void drop_data(void *user, struct hpx_span bytes)
{
	(void)user;
	(void)bytes;
}

static void on_peer_end(void *user, enum hpx_status status)
{
	struct lingering_close *closing = user;

	if (status != HPX_CLOSED || hpx_transport_pending(closing->transport) == 0)
		finish_closing(closing);
}

/* A peer that still takes bytes, however slowly, gets all of them. */
static void on_time(uv_timer_t *timer)
{
	struct lingering_close *closing = timer->data;
	size_t pending = hpx_transport_pending(closing->transport);

	if (pending == 0 || pending >= closing->pending) {
		finish_closing(closing);
		return;
	}
	closing->pending = pending;
	uv_timer_start(timer, on_time, closing->stall_ms, 0);
}

static void on_all_sent(void *user)
{
	struct lingering_close *closing = user;

	if (closing->transport->phase != HPX_TRANSPORT_OPEN)
		finish_closing(closing);
	else
		uv_timer_start(&closing->timer, on_time, PEER_END_MS, 0);
}

static const struct hpx_transport_events lingering_events = { drop_data, on_peer_end, on_all_sent };

void hpx_transport_close_gently(struct hpx_transport *transport, uint64_t stall_ms)
{
	struct lingering_close *closing = NULL;

	/* Where nothing is pending and the peer has ended, a plain close makes no
	 * reset. */
	bool wait = transport->phase == HPX_TRANSPORT_OPEN ||
		    (transport->phase == HPX_TRANSPORT_ENDED &&
		     hpx_transport_pending(transport) > 0);
	if (wait)
		closing = malloc(sizeof(*closing));
	if (closing == NULL) {
		hpx_transport_close(transport);
		return;
	}
	closing->transport = transport;
	closing->pending = hpx_transport_pending(transport);
	closing->stall_ms = stall_ms;
	uv_timer_init(&transport->loop->uv, &closing->timer);
	closing->timer.data = closing;
	uv_timer_start(&closing->timer, on_time, closing->pending > 0 ? stall_ms : PEER_END_MS, 0);
	hpx_transport_attach(transport, &lingering_events, closing);
	hpx_transport_shutdown(transport);
	hpx_transport_read_start(transport);
}
