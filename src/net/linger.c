/* Closing gently: everything pending goes out, then an end of stream; what
 * the other side still sends is read and dropped until it ends too. Closing
 * at once instead would make the kernel answer those bytes with a reset, and
 * a reset destroys the last answer in the other side's hands. */
#include "net/transport_driver.h"

#include <stdlib.h>

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
