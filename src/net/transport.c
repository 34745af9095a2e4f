/* The part that every transport has in common. Each wrapper checks the phase, so
 * that a driver never sees a call out of order. At the end of the file: the gentle
 * close, which is the same for every driver. */
#include "net/transport_driver.h"

#include <signal.h>
#include <stdlib.h>

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

/* Once everything is out: for the other side to end too. */
#define LAST_MS 2000

struct farewell {
	struct hpx_transport *transport;
	uv_timer_t timer;
	size_t pending; /* when the timer was last started */
	uint64_t stall_ms;
};

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void finish(struct farewell *farewell)
{
	hpx_transport_close(farewell->transport);
	uv_close((uv_handle_t *)&farewell->timer, on_timer_closed);
}

static void on_data(void *user, struct hpx_span bytes)
{
	(void)user;
	(void)bytes;
}

static void on_end(void *user, enum hpx_status status)
{
	struct farewell *farewell = user;

	if (status != HPX_CLOSED || hpx_transport_pending(farewell->transport) == 0)
		finish(farewell);
}

/* Whoever still takes bytes, however slowly, gets all of them. */
static void on_time(uv_timer_t *timer)
{
	struct farewell *farewell = timer->data;
	size_t pending = hpx_transport_pending(farewell->transport);

	if (pending == 0 || pending >= farewell->pending) {
		finish(farewell);
		return;
	}
	farewell->pending = pending;
	uv_timer_start(timer, on_time, farewell->stall_ms, 0);
}

static void on_drain(void *user)
{
	struct farewell *farewell = user;

	if (farewell->transport->phase != HPX_TRANSPORT_OPEN)
		finish(farewell);
	else
		uv_timer_start(&farewell->timer, on_time, LAST_MS, 0);
}

static const struct hpx_transport_events farewell_events = { on_data, on_end, on_drain };

void hpx_transport_close_gently(struct hpx_transport *transport, uint64_t stall_ms)
{
	struct farewell *farewell = NULL;

	/* Where nothing is pending and the other side has ended, closing is
	 * gentle in itself. */
	bool wait = transport->phase == HPX_TRANSPORT_OPEN ||
		    (transport->phase == HPX_TRANSPORT_ENDED &&
		     hpx_transport_pending(transport) > 0);
	if (wait)
		farewell = malloc(sizeof(*farewell));
	if (farewell == NULL) {
		hpx_transport_close(transport);
		return;
	}
	farewell->transport = transport;
	farewell->pending = hpx_transport_pending(transport);
	farewell->stall_ms = stall_ms;
	uv_timer_init(&transport->loop->uv, &farewell->timer);
	farewell->timer.data = farewell;
	uv_timer_start(&farewell->timer, on_time, farewell->pending > 0 ? stall_ms : LAST_MS, 0);
	hpx_transport_attach(transport, &farewell_events, farewell);
	hpx_transport_shutdown(transport);
	hpx_transport_read_start(transport);
}
