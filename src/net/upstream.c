/* One upstream on one loop: what its exchanges share. */
#include <stdlib.h>

#include "base/container.h"
#include "net/upstream_exchange.h"

void hpx_upstream_configure(struct hpx_upstream *upstream,
			    const struct hpx_upstream_options *options)
{
	struct hpx_address address = upstream->options.address;

	upstream->options = *options;
	upstream->options.address = address;
	upstream->target.timeout_ms = options->connect_timeout_ms;
	upstream->pool.idle_max_ms = options->pool_idle_ms;
	upstream->pool.idle_max = options->pool_max;
	upstream->pool.quarantine_ms = options->reuse_quarantine_ms;
	upstream->pool.open_max = options->slots.max;
	hpx_slots_configure(&upstream->slots, &options->slots);
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
	if (!options->address.is_unix) {
		upstream->resolver =
			hpx_resolver_new(loop, &options->address, options->resolve_ttl_ms);
		if (upstream->resolver == NULL) {
			free(upstream);
			return HPX_NOMEM;
		}
	}
	upstream->target = (struct hpx_dial_target){
		.loop = loop,
		.address = &upstream->options.address,
		.resolver = upstream->resolver,
	};
	hpx_slots_init(&upstream->slots, loop);
	hpx_upstream_configure(upstream, options);
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
	upstream->closing = true;
	while (upstream->exchanges != NULL)
		hpx_exchange_fail(upstream->exchanges, HPX_CLOSED,
				  "the gateway is stopping");
	if (upstream->resolver != NULL)
		hpx_resolver_free(upstream->resolver);
	hpx_pool_done(&upstream->pool, free_upstream);
}

struct hpx_slots *hpx_upstream_slots(struct hpx_upstream *upstream)
{
	return &upstream->slots;
}

void hpx_upstream_tick(struct hpx_upstream *upstream)
{
	hpx_pool_look(&upstream->pool);
	if (upstream->options.state != NULL)
		hpx_upstream_look(upstream->options.state);
}
