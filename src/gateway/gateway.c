/* The gateway as a whole: its shards, and what they share. */
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "gateway/observe.h"
#include "gateway/shard.h"
#include "gateway/store_query.h"
#include "gateway/subrequest.h"
#include "gateway/webhook.h"

bool hpx_gateway_charge(struct hpx_gateway *gateway, size_t bytes, size_t bytes_max)
{
	size_t before = atomic_fetch_add(&gateway->bodies_bytes, bytes);

	if (bytes <= bytes_max && before <= bytes_max - bytes)
		return true;
	atomic_fetch_sub(&gateway->bodies_bytes, bytes);
	return false;
}

void hpx_gateway_uncharge(struct hpx_gateway *gateway, size_t bytes)
{
	atomic_fetch_sub(&gateway->bodies_bytes, bytes);
}

/* What changed about the upstream, once for all loops. */
static void log_upstream_event(void *user, enum hpx_upstream_event event, const char *detail, int64_t ms)
{
	const struct hpx_gateway *gateway = user;
	const char *label = gateway->upstream_label;

	switch (event) {
	case HPX_UPSTREAM_STRAY:
		hpx_log(HPX_LOG_ERROR, "upstream_stray_bytes",
			"%s quarantine_ms=%lld reason=\"it sent bytes behind an answer that "
			"nobody asked for: a second answer could reach another caller; kept "
			"connections are closed, guarded requests use new ones\"",
			label, (long long)ms);
		break;
	case HPX_UPSTREAM_DOWN:
		hpx_log(HPX_LOG_WARN, "upstream_down", "%s reason=\"%s\"", label, detail);
		break;
	case HPX_UPSTREAM_UP:
		hpx_log(HPX_LOG_INFO, "upstream_up", "%s down_ms=%lld", label, (long long)ms);
		break;
	}
}

/* One listening socket per shard, the first of which finds out the port. */
static enum hpx_status open_sockets(struct hpx_gateway *gateway, int *fds, char *problem)
{
	const struct hpx_address *address = &gateway->service->settings->listen;
	enum hpx_status status = hpx_listener_probe(address, problem);

	if (status == HPX_OK)
		status = hpx_listener_open(address, &fds[0], problem);
	for (unsigned i = 1; i < gateway->shard_count && status == HPX_OK; i++) {
		status = hpx_listener_open_beside(fds[0], &fds[i]);
		if (status != HPX_OK)
			snprintf(problem, HPX_PROBLEM_SIZE, "cannot listen on %s a second time: %s",
				 address->text, hpx_status_text(status));
	}
	if (status == HPX_OK)
		gateway->port = hpx_listener_port(fds[0]);
	return status;
}

static enum hpx_status make_shards(struct hpx_gateway *gateway, char *problem)
{
	int *fds = malloc(gateway->shard_count * sizeof(*fds));
	enum hpx_status status = HPX_NOMEM;

	if (fds == NULL)
		return status;
	for (unsigned i = 0; i < gateway->shard_count; i++)
		fds[i] = -1;
	status = open_sockets(gateway, fds, problem);
	for (unsigned i = 0; i < gateway->shard_count && status == HPX_OK; i++) {
		status = hpx_shard_init(&gateway->shards[i], gateway, fds[i]);
		fds[i] = -1; /* the shard's now */
		if (status != HPX_OK)
			snprintf(problem, HPX_PROBLEM_SIZE, "cannot set up event loop %u: %s", i,
				 hpx_status_text(status));
	}
	for (unsigned i = 0; i < gateway->shard_count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
	return status;
}

static unsigned count_shards(const struct hpx_settings *settings)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (settings->loops > 0)
		return settings->loops;
	return cores > 0 ? (unsigned)cores : 1;
}

/* What all shards share and the gateway itself makes. */
static enum hpx_status make_shared(struct hpx_gateway *gateway, struct hpx_egress *egress)
{
	const struct hpx_settings *settings = gateway->service->settings;

	gateway->observed_keys = hpx_observed_keys_new();
	gateway->hooks = hpx_hooks_new(settings->webhook_count);
	if (settings->tenant_from == HPX_TENANT_SUBREQUEST)
		gateway->subrequests = hpx_subrequests_new(egress, &settings->subrequest);
	if (gateway->observed_keys == NULL || gateway->hooks == NULL ||
	    (settings->tenant_from == HPX_TENANT_SUBREQUEST && gateway->subrequests == NULL))
		return HPX_NOMEM;
	if (gateway->service->store == NULL)
		return HPX_OK;
	return hpx_query_thread_start(gateway->service->store, &gateway->query_thread);
}

enum hpx_status hpx_gateway_new(const struct hpx_gateway_options *options,
				struct hpx_gateway **ret_gateway, char *problem)
{
	const struct hpx_settings *settings = options->service->settings;
	struct hpx_gateway *gateway = calloc(1, sizeof(*gateway));
	enum hpx_status status = HPX_NOMEM;

	snprintf(problem, HPX_PROBLEM_SIZE, "%s", hpx_status_text(status));
	if (gateway == NULL)
		return status;
	gateway->service = options->service;
	gateway->accepted = options->accepted;
	gateway->accepted_user = options->accepted_user;
	snprintf(gateway->upstream_label, sizeof(gateway->upstream_label), "upstream=%s name=%.*s",
		 settings->upstream.text, HPX_SPAN_ARG(settings->upstream_name));
	gateway->upstream_state.on_event = log_upstream_event;
	gateway->upstream_state.user = gateway;
	gateway->shards = calloc(count_shards(settings), sizeof(*gateway->shards));
	if (gateway->shards != NULL) {
		gateway->shard_count = count_shards(settings);
		status = make_shared(gateway, options->egress);
		snprintf(problem, HPX_PROBLEM_SIZE, "%s", hpx_status_text(status));
	}
	if (status == HPX_OK)
		status = make_shards(gateway, problem);
	if (status != HPX_OK) {
		hpx_gateway_free(gateway);
		return status;
	}
	*ret_gateway = gateway;
	return HPX_OK;
}

enum hpx_status hpx_gateway_start(struct hpx_gateway *gateway)
{
	enum hpx_status status = HPX_OK;

	for (unsigned i = 0; i < gateway->shard_count && status == HPX_OK; i++)
		status = hpx_shard_start(&gateway->shards[i]);
	/* The loops that did start may have callers already. */
	if (status != HPX_OK)
		hpx_gateway_drain(gateway);
	return status;
}

uint16_t hpx_gateway_port(const struct hpx_gateway *gateway)
{
	return gateway->port;
}

void hpx_gateway_reload(struct hpx_gateway *gateway, struct hpx_settings *settings,
			struct hpx_message *taken)
{
	HPX_ASSERT(atomic_load(&gateway->reload.shards_left) == 0);
	gateway->reload.taken = taken;
	atomic_store(&gateway->reload.shards_left, gateway->shard_count);
	for (unsigned i = 0; i < gateway->shard_count; i++)
		hpx_shard_reload(&gateway->shards[i], settings);
}

void hpx_gateway_drain(struct hpx_gateway *gateway)
{
	for (unsigned i = 0; i < gateway->shard_count; i++)
		if (gateway->shards[i].started)
			hpx_shard_drain(&gateway->shards[i]);
	for (unsigned i = 0; i < gateway->shard_count; i++)
		hpx_shard_join(&gateway->shards[i]);
	hpx_listener_unlink(&gateway->service->settings->listen);
}

void hpx_gateway_free(struct hpx_gateway *gateway)
{
	if (gateway == NULL)
		return;
	/* Whoever still waits for it is told, in hpx_shard_done at the latest. */
	hpx_query_thread_stop(gateway->query_thread);
	for (unsigned i = 0; i < gateway->shard_count; i++)
		hpx_shard_done(&gateway->shards[i]);
	free(gateway->shards);
	hpx_query_thread_free(gateway->query_thread);
	hpx_subrequests_free(gateway->subrequests);
	hpx_hooks_free(gateway->hooks);
	hpx_observed_keys_free(gateway->observed_keys);
	free(gateway);
}
