/* A shard's life. Deadlines of connections and requests are looked at by one
 * tick per loop instead of a timer each: a tenth of a second is fine enough
 * for them, and arming timers is not on a request's way. */
#include "gateway/shard.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/container.h"
#include "base/log.h"
#include "base/thread.h"
#include "gateway/client_connection.h"
#include "gateway/queue.h"
#include "gateway/request.h"

#define TICK_MS 100
/* After the drain time: for what is left to be written as unknown. */
#define LAST_WRITES_MS 3000

struct reload {
	struct hpx_message message;
	struct hpx_shard *shard;
	struct hpx_settings *settings;
};

static void on_accept(void *user, struct hpx_transport *transport)
{
	hpx_connection_accept(user, transport);
}

/* A share of the connections, and one at least. */
static unsigned share_of(unsigned max, unsigned percent)
{
	unsigned share = (unsigned)((uint64_t)max * percent / 100);

	return share > 0 ? share : 1;
}

/* Guarded requests may have every slot, and always find those beyond the share of
 * pass-through. Where everything is observed, nothing is guarded. */
static struct hpx_slot_limits slot_limits(const struct hpx_settings *s)
{
	unsigned max = s->upstream_connections_max;
	unsigned pass = s->observe ? max : share_of(max, s->pass_share);
	unsigned tunnels = s->tunnel_share > 0 ? share_of(max, s->tunnel_share) : 0;

	return (struct hpx_slot_limits){ .max = max,
					 .pass_max = pass,
					 .tunnel_max = tunnels < pass ? tunnels : pass,
					 .queue_max = s->upstream_queue_max };
}

static struct hpx_upstream_options upstream_options(struct hpx_shard *shard)
{
	const struct hpx_settings *s = shard->settings;

	return (struct hpx_upstream_options){
		.address = s->upstream,
		.connect_timeout_ms = (uint64_t)s->connect_timeout_ms,
		.send_timeout_ms = (uint64_t)s->send_timeout_ms,
		.first_byte_timeout_ms = (uint64_t)s->first_byte_timeout_ms,
		.idle_timeout_ms = (uint64_t)s->idle_timeout_ms,
		.whole_timeout_ms = (uint64_t)s->whole_timeout_ms,
		.reuse_idle_ms = (uint64_t)s->reuse_idle_ms,
		.reuse_quarantine_ms = (uint64_t)s->reuse_quarantine_ms,
		.state = &shard->gateway->upstream_state,
		.pool_idle_ms = 30000,
		.pool_max = s->upstream_connections_max,
		.slots = slot_limits(s),
		.resolve_ttl_ms = 10000,
		.limits = { .head_bytes_max = s->head_bytes_max, .fields_max = s->fields_max },
	};
}

/* Nothing is left to do: without its handles the loop ends by itself, once
 * the last answers have reached their clients, or when the time is over. */
static void let_end(struct hpx_shard *shard)
{
	hpx_upstream_free(shard->upstream);
	shard->upstream = NULL;
	uv_unref((uv_handle_t *)&shard->tick);
}

/* Ends the loop once nobody is left, or when the time is over twice. */
static void drain_tick(struct hpx_shard *shard, uint64_t now_ms)
{
	if (shard->upstream != NULL && shard->connections == NULL && shard->requests == NULL)
		let_end(shard);
	if (now_ms < shard->drain_deadline_ms)
		return;
	if (shard->upstream != NULL && !shard->abandoned) {
		shard->abandoned = true;
		shard->drain_deadline_ms = now_ms + LAST_WRITES_MS;
		for (struct hpx_request *r = shard->requests, *next; r != NULL; r = next) {
			next = r->next;
			hpx_request_abandon(r);
		}
		return;
	}
	hpx_loop_stop(&shard->loop);
}

static void on_tick(uv_timer_t *timer)
{
	struct hpx_shard *shard = timer->data;
	uint64_t now_ms = hpx_loop_now_ms(&shard->loop);

	/* Ticking one request may end it, but no other. */
	for (struct hpx_request *r = shard->requests, *next; r != NULL; r = next) {
		next = r->next;
		hpx_request_tick(r, now_ms);
	}
	for (struct hpx_connection *c = shard->connections, *next; c != NULL; c = next) {
		next = c->next;
		hpx_connection_tick(c, now_ms);
	}
	hpx_queue_measure(shard);
	if (shard->upstream != NULL)
		hpx_upstream_tick(shard->upstream);
	if (shard->draining)
		drain_tick(shard, now_ms);
}

static enum hpx_status open_parts(struct hpx_shard *shard, int listen_fd)
{
	struct hpx_upstream_options options = upstream_options(shard);
	struct hpx_store *store = shard->service->store;
	enum hpx_status status =
		hpx_listener_start(&shard->loop, listen_fd, on_accept, shard, &shard->listener);

	if (status == HPX_OK)
		status = hpx_upstream_new(&shard->loop, &options, &shard->upstream);
	if (status == HPX_OK && store != NULL)
		status = hpx_store_reader_open(store, &shard->reader);
	return status;
}

enum hpx_status hpx_shard_init(struct hpx_shard *shard, struct hpx_gateway *gateway, int listen_fd)
{
	shard->gateway = gateway;
	shard->service = gateway->service;
	shard->settings = hpx_settings_ref(gateway->service->settings);
	enum hpx_status status = hpx_loop_init(&shard->loop);
	if (status != HPX_OK)
		return status;
	HPX_ASSERT(uv_timer_init(&shard->loop.uv, &shard->tick) == 0);
	shard->tick.data = shard;
	HPX_ASSERT(uv_timer_start(&shard->tick, on_tick, TICK_MS, TICK_MS) == 0);
	shard->made = true;
	return open_parts(shard, listen_fd);
}

static void *run(void *user)
{
	struct hpx_shard *shard = user;

	hpx_loop_run(&shard->loop);
	return NULL;
}

enum hpx_status hpx_shard_start(struct hpx_shard *shard)
{
	enum hpx_status status = hpx_thread_start(&shard->thread, run, shard);

	shard->started = status == HPX_OK;
	return status;
}

static void count_reloaded(struct hpx_shard *shard)
{
	struct hpx_gateway_reload *reload = &shard->gateway->reload;

	if (atomic_fetch_sub(&reload->shards_left, 1) == 1)
		hpx_loop_post(&shard->service->loop, reload->taken);
}

static void take_settings(struct hpx_message *message)
{
	struct reload *reload = (struct reload *)message;
	struct hpx_shard *shard = reload->shard;

	hpx_settings_unref(shard->settings);
	shard->settings = reload->settings;
	struct hpx_upstream_options options = upstream_options(shard);
	if (shard->upstream != NULL) /* gone when the drain is nearly over */
		hpx_upstream_configure(shard->upstream, &options);
	/* Counted by a route's number, and the numbers have a new meaning. */
	for (size_t i = 0; i < HPX_METER_ROUTES; i++)
		atomic_store_explicit(&shard->meter.unkeyed[i].value, 0, memory_order_relaxed);
	free(reload);
	count_reloaded(shard);
}

void hpx_shard_reload(struct hpx_shard *shard, struct hpx_settings *settings)
{
	struct reload *reload = malloc(sizeof(*reload));

	if (reload == NULL) {
		hpx_log(HPX_LOG_ERROR, "reload_failed", "problem=NOMEM");
		count_reloaded(shard);
		return;
	}
	*reload = (struct reload){ .message = { .handle = take_settings },
				   .shard = shard,
				   .settings = hpx_settings_ref(settings) };
	hpx_loop_post(&shard->loop, &reload->message);
}

static void begin_drain(struct hpx_message *message)
{
	struct hpx_shard *shard =
		HPX_CONTAINER(message, struct hpx_shard, drain_message);

	shard->draining = true;
	shard->drain_deadline_ms =
		hpx_loop_now_ms(&shard->loop) + (uint64_t)shard->settings->drain_ms;
	hpx_listener_stop(shard->listener);
	shard->listener = NULL;
}

void hpx_shard_drain(struct hpx_shard *shard)
{
	shard->drain_message.handle = begin_drain;
	hpx_loop_post(&shard->loop, &shard->drain_message);
}

void hpx_shard_join(struct hpx_shard *shard)
{
	if (shard->started)
		pthread_join(shard->thread, NULL);
	shard->started = false;
}

void hpx_shard_done(struct hpx_shard *shard)
{
	if (shard->made) {
		while (shard->connections != NULL)
			hpx_connection_close(shard->connections);
		if (shard->listener != NULL)
			hpx_listener_stop(shard->listener);
		if (shard->upstream != NULL)
			hpx_upstream_free(shard->upstream);
		uv_close((uv_handle_t *)&shard->tick, NULL);
		hpx_loop_done(&shard->loop);
	}
	if (shard->reader != NULL)
		hpx_store_reader_close(shard->reader);
	hpx_settings_unref(shard->settings);
}
