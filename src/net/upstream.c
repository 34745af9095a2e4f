/* One upstream: first the state that all loops share, then the upstream as one loop
 * has it, with what its exchanges share. Every member of the shared state is a
 * single atomic word: a loop that reads one a moment late does what it would have
 * done a moment earlier. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "net/upstream_exchange.h"

/* Without a failure for this long, an upstream that answers is up again. */
#define STEADY_MS 1000

static void emit(struct hpx_upstream_state *state, enum hpx_upstream_event event,
		 const char *detail, int64_t ms)
{
	if (state->on_event != NULL)
		state->on_event(state->user, event, detail, ms);
}

bool hpx_upstream_in_quarantine(struct hpx_upstream_state *state)
{
	int64_t until_ms = atomic_load(&state->quarantine_until_ms);

	return until_ms > 0 && hpx_clock_boot_ms() < until_ms;
}

void hpx_upstream_note_stray(struct hpx_upstream_state *state, uint64_t quarantine_ms)
{
	bool known = hpx_upstream_in_quarantine(state);
	int64_t until_ms = hpx_clock_boot_ms() + (int64_t)quarantine_ms;

	/* The quarantine first: a loop that sees the new count finds it in force. */
	atomic_store(&state->quarantine_until_ms, until_ms);
	atomic_store(&state->watched, 0);
	atomic_fetch_add(&state->strays, 1);
	if (!known)
		emit(state, HPX_UPSTREAM_STRAY, "", (int64_t)quarantine_ms);
}

void hpx_upstream_note_silent(struct hpx_upstream_state *state)
{
	if (!hpx_upstream_is_watched(state))
		atomic_fetch_add(&state->watched, 1);
}

bool hpx_upstream_is_watched(struct hpx_upstream_state *state)
{
	return atomic_load_explicit(&state->watched, memory_order_relaxed) >=
	       HPX_UPSTREAM_WATCHED_MIN;
}

void hpx_upstream_note_unreachable(struct hpx_upstream_state *state, const char *reason)
{
	int64_t now_ms = hpx_clock_boot_ms();

	atomic_store(&state->failed_ms, now_ms);
	if (atomic_exchange(&state->down, true))
		return;
	atomic_store(&state->down_since_ms, now_ms);
	emit(state, HPX_UPSTREAM_DOWN, reason, 0);
}

void hpx_upstream_note_reached(struct hpx_upstream_state *state)
{
	/* Called for every request: one relaxed load while the upstream is up. */
	if (atomic_load_explicit(&state->down, memory_order_relaxed))
		atomic_store(&state->reached_ms, hpx_clock_boot_ms());
}

void hpx_upstream_check_up(struct hpx_upstream_state *state)
{
	int64_t now_ms = hpx_clock_boot_ms();
	int64_t failed_ms = atomic_load(&state->failed_ms);

	if (!atomic_load(&state->down) || atomic_load(&state->reached_ms) < failed_ms ||
	    now_ms - failed_ms < STEADY_MS)
		return;
	if (atomic_exchange(&state->down, false))
		emit(state, HPX_UPSTREAM_UP, "", now_ms - atomic_load(&state->down_since_ms));
}

/* ---- the endpoint ---- */

static struct hpx_upstream_endpoint *make_endpoint(struct hpx_loop *loop,
						   const struct hpx_upstream_options *options,
						   uint64_t number)
{
	struct hpx_upstream_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	if (endpoint == NULL)
		return NULL;
	endpoint->holds = 1;
	endpoint->number = number;
	endpoint->address = options->address;
	if (!options->address.is_unix) {
		endpoint->resolver = hpx_resolver_new(loop, &options->address, options->resolve_ttl_ms);
		if (endpoint->resolver == NULL) {
			free(endpoint);
			return NULL;
		}
	}
	snprintf(endpoint->tls_name, sizeof(endpoint->tls_name), "%s",
		 options->tls_name != NULL ? options->tls_name : options->address.host);
	endpoint->target = (struct hpx_dial_target){
		.loop = loop,
		.address = &endpoint->address,
		.resolver = endpoint->resolver,
		.timeout_ms = options->connect_timeout_ms,
		.tls = options->tls,
		.tls_name = endpoint->tls_name,
	};
	return endpoint;
}

void hpx_upstream_endpoint_drop(struct hpx_upstream_endpoint *endpoint)
{
	HPX_ASSERT(endpoint->holds > 0);
	if (--endpoint->holds > 0)
		return;
	if (endpoint->resolver != NULL)
		hpx_resolver_free(endpoint->resolver);
	free(endpoint);
}

/* Another address: new connections lead there. What was known of the old one (silent after
 * its answers) says nothing of the new one. */
static enum hpx_status move(struct hpx_upstream *upstream, const struct hpx_upstream_options *options)
{
	struct hpx_upstream_endpoint *next =
		make_endpoint(upstream->loop, options, upstream->endpoint->number + 1);

	if (next == NULL)
		return HPX_NOMEM;
	hpx_upstream_endpoint_drop(upstream->endpoint);
	upstream->endpoint = next;
	hpx_pool_move(&upstream->pool, next->number);
	if (options->state != NULL)
		atomic_store(&options->state->watched, 0);
	return HPX_OK;
}

static void set_limits(struct hpx_upstream *upstream, const struct hpx_upstream_options *options)
{
	struct hpx_tls *tls = upstream->options.tls;
	const char *tls_name = upstream->options.tls_name;

	upstream->options = *options;
	upstream->options.tls = tls;
	upstream->options.tls_name = tls_name;
	upstream->endpoint->target.timeout_ms = options->connect_timeout_ms;
	upstream->pool.idle_max_ms = options->pool_idle_ms;
	upstream->pool.idle_max = options->pool_max;
	upstream->pool.quarantine_ms = options->reuse_quarantine_ms;
	upstream->pool.open_max = options->slots.max;
	hpx_slots_configure(&upstream->slots, &options->slots);
}

enum hpx_status hpx_upstream_configure(struct hpx_upstream *upstream,
				       const struct hpx_upstream_options *options)
{
	enum hpx_status status = HPX_OK;

	if (strcmp(options->address.text, upstream->endpoint->address.text) != 0)
		status = move(upstream, options);
	set_limits(upstream, options);
	return status;
}

enum hpx_status hpx_upstream_new(struct hpx_loop *loop,
				 const struct hpx_upstream_options *options,
				 struct hpx_upstream **ret_upstream)
{
	struct hpx_upstream *upstream = calloc(1, sizeof(*upstream));

	if (upstream == NULL)
		return HPX_NOMEM;
	upstream->loop = loop;
	upstream->options = *options;
	upstream->endpoint = make_endpoint(loop, options, 0);
	if (upstream->endpoint == NULL) {
		free(upstream);
		return HPX_NOMEM;
	}
	hpx_slots_init(&upstream->slots, loop);
	set_limits(upstream, options);
	hpx_pool_init(&upstream->pool, loop);
	upstream->pool.state = options->state;
	*ret_upstream = upstream;
	return HPX_OK;
}

static void free_upstream(uv_handle_t *handle)
{
	struct hpx_pool *pool = handle->data;

	free(HPX_CONTAINER(pool, struct hpx_upstream, pool));
}

void hpx_upstream_free(struct hpx_upstream *upstream)
{
	HPX_ASSERT(!upstream->closing);
	upstream->closing = true;
	while (upstream->exchanges != NULL)
		hpx_exchange_fail(upstream->exchanges, HPX_CLOSED,
				  "the gateway is stopping");
	hpx_exchange_close_spares(upstream);
	hpx_upstream_endpoint_drop(upstream->endpoint);
	hpx_pool_done(&upstream->pool, free_upstream);
}

struct hpx_slots *hpx_upstream_slots(struct hpx_upstream *upstream)
{
	return &upstream->slots;
}

void hpx_upstream_tick(struct hpx_upstream *upstream)
{
	hpx_pool_refresh(&upstream->pool);
	if (upstream->options.state != NULL)
		hpx_upstream_check_up(upstream->options.state);
}
