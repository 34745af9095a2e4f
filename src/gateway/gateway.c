/* The gateway as a whole, and its shards, one event loop each.
 *
 * Deadlines of connections and requests are looked at by one tick per loop instead
 * of a timer each: a tenth of a second is fine enough for them, and arming timers is
 * not on a request's way. */
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_writer.h"
#include "base/status.h"
#include "base/thread.h"
#include "gateway/client_connection.h"
#include "gateway/steps.h"
#include "gateway/store_query.h"
#include "gateway/verified_caller.h"
#include "gateway/webhook.h"

/* ---- a shard ---- */

#define TICK_MS 100
/* Lines of the access log that one turn may keep: they are handed over far earlier. */
#define ACCESS_BYTES_MAX ((size_t)64 << 10)
/* After the drain time: how long the last outcomes may take to be written. */
#define LAST_WRITES_MS 3000

struct shard_reload {
	struct hpx_message message;
	struct hpx_shard *shard;
	struct hpx_settings *settings;
};

static void on_accept(void *user, struct hpx_transport *transport)
{
	const struct hpx_shard_listener *listener = user;

	hpx_connection_accept(listener->shard, listener->number, transport);
}

/* At most one line in this time for each loop. */
#define EXHAUSTED_LOG_MS 10000
/* Descriptors that client connections leave free: for the connections to the upstream,
 * for the files of the store, and for the admin listener. */
#define DESCRIPTORS_KEPT_FREE 64

static void on_exhausted(void *user)
{
	struct hpx_shard *shard = ((const struct hpx_shard_listener *)user)->shard;
	uint64_t now_ms = hpx_loop_now_ms(&shard->loop);

	hpx_counter_add(&shard->meter.descriptors_exhausted, 1);
	if (now_ms < shard->exhausted_log_ms)
		return;
	shard->exhausted_log_ms = now_ms + EXHAUSTED_LOG_MS;
	hpx_log(HPX_LOG_ERROR, "descriptors_exhausted",
		"connections=%u reason=\"a client's connection was closed: the process has no more file "
		"descriptors for clients\" remedy=\"raise LimitNOFILE (ulimit -n), or lower "
		"limits.connections\"",
		atomic_load(&shard->gateway->connections));
}

/* A share of the connections, at least one. */
static unsigned share_of(unsigned max, unsigned percent)
{
	unsigned share = (unsigned)((uint64_t)max * percent / 100);

	return share > 0 ? share : 1;
}

/* Guarded requests may use every slot, and those beyond the share of pass-through are
 * for them alone. Where everything is observed, nothing is guarded. */
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
		.tls = shard->service->tls.upstream,
		.tls_name = s->upstream_tls.name,
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

/* Nothing is left to do. Without its handles the loop ends by itself, after the last
 * answers have reached their clients, or when the time is over. */
static void let_end(struct hpx_shard *shard)
{
	hpx_upstream_free(shard->upstream);
	shard->upstream = NULL;
	uv_unref((uv_handle_t *)&shard->tick);
}

/* Ends the loop when no connection and no request is left, or when the drain time and
 * the time for the last writes are over. */
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

/* ---- the way to the committer and back ---- */

/* Ops that are handed over before the turn ends: a turn of very many events must not
 * keep the committer waiting. */
#define SUBMITTED_MAX 64

static void hand_over(struct hpx_shard *shard)
{
	if (shard->submitted.count == 0)
		return;
	hpx_committer_submit_all(shard->service->committer, &shard->submitted);
	hpx_loop_wake_owed(&shard->loop); /* where the committer has ended */
}

static void on_turn_end(struct hpx_loop *loop)
{
	struct hpx_shard *shard = HPX_CONTAINER(loop, struct hpx_shard, loop);

	hand_over(shard);
	hpx_access_hand_over(shard);
}

/* One hand-over for a turn instead of one for each op: a committer that is woken by
 * the first op makes a transaction of that op alone. */
void hpx_shard_submit(struct hpx_shard *shard, struct hpx_store_op *op)
{
	hpx_op_list_add(&shard->submitted, op);
	if (shard->submitted.count >= SUBMITTED_MAX)
		hand_over(shard);
}

/* On the committer's thread: wakes the loops whose ops were settled, each once. */
static void on_settled(struct hpx_committer_listener *listener)
{
	struct hpx_gateway *gateway = HPX_CONTAINER(listener, struct hpx_gateway, listener);

	for (unsigned i = 0; i < gateway->shard_count; i++)
		hpx_loop_wake_owed(&gateway->shards[i].loop);
}

/* ---- the life of a shard ---- */

/* Takes the descriptors over, one for each listener, on failure too. */
static enum hpx_status start_listeners(struct hpx_shard *shard, int *fds)
{
	size_t count = shard->gateway->listener_count;
	enum hpx_status status = HPX_OK;

	shard->listeners = calloc(count, sizeof(*shard->listeners));
	if (shard->listeners == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		struct hpx_shard_listener *one = &shard->listeners[i];
		*one = (struct hpx_shard_listener){ .shard = shard, .number = (unsigned)i };
		status = hpx_listener_start(&shard->loop, fds[i], on_accept, one, &one->listener);
		fds[i] = -1;
		if (status != HPX_OK)
			break;
		hpx_listener_keep_free(one->listener, DESCRIPTORS_KEPT_FREE, on_exhausted);
		shard->listener_count++;
	}
	return status;
}

static void stop_listeners(struct hpx_shard *shard)
{
	for (size_t i = 0; i < shard->listener_count; i++)
		hpx_listener_stop(shard->listeners[i].listener);
	shard->listener_count = 0;
}

static enum hpx_status open_parts(struct hpx_shard *shard, int *listen_fds)
{
	struct hpx_upstream_options options = upstream_options(shard);
	struct hpx_store *store = shard->service->store;
	enum hpx_status status = start_listeners(shard, listen_fds);

	if (status == HPX_OK)
		status = hpx_upstream_new(&shard->loop, &options, &shard->upstream);
	if (status == HPX_OK && store != NULL)
		status = hpx_store_reader_open(store, &shard->reader);
	return status;
}

static enum hpx_status shard_init(struct hpx_shard *shard, struct hpx_gateway *gateway, int *listen_fds)
{
	shard->gateway = gateway;
	shard->service = gateway->service;
	shard->settings = hpx_settings_ref(gateway->service->settings);
	shard->access.format = hpx_access_format_of(shard->settings);
	hpx_buffer_init(&shard->access.lines, ACCESS_BYTES_MAX);
	enum hpx_status status = hpx_loop_init(&shard->loop);
	if (status != HPX_OK)
		return status;
	/* Neither can fail (libuv's documentation): the timer has a callback. */
	(void)uv_timer_init(&shard->loop.uv, &shard->tick);
	shard->tick.data = shard;
	(void)uv_timer_start(&shard->tick, on_tick, TICK_MS, TICK_MS);
	hpx_loop_set_turn_end(&shard->loop, on_turn_end);
	shard->made = true;
	return open_parts(shard, listen_fds);
}

static void *run(void *user)
{
	struct hpx_shard *shard = user;

	hpx_loop_run(&shard->loop);
	return NULL;
}

static enum hpx_status shard_start(struct hpx_shard *shard)
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
	struct shard_reload *reload = (struct shard_reload *)message;
	struct hpx_shard *shard = reload->shard;

	hpx_settings_unref(shard->settings);
	shard->settings = reload->settings;
	shard->access.format = hpx_access_format_of(shard->settings);
	struct hpx_upstream_options options = upstream_options(shard);
	if (shard->upstream != NULL && /* gone when the drain is nearly over */
	    hpx_upstream_configure(shard->upstream, &options) != HPX_OK)
		hpx_log(HPX_LOG_ERROR, "reload_failed", "problem=NOMEM reason=\"requests go on to the old upstream\"");
	hpx_meter_forget_routes(&shard->meter);
	free(reload);
	count_reloaded(shard);
}

static void shard_reload(struct hpx_shard *shard, struct hpx_settings *settings)
{
	struct shard_reload *reload = malloc(sizeof(*reload));

	if (reload == NULL) {
		hpx_log(HPX_LOG_ERROR, "reload_failed", "problem=NOMEM");
		count_reloaded(shard);
		return;
	}
	*reload = (struct shard_reload){ .message = { .handle = take_settings },
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
	stop_listeners(shard);
}

static void shard_drain(struct hpx_shard *shard)
{
	shard->drain_message.handle = begin_drain;
	hpx_loop_post(&shard->loop, &shard->drain_message);
}

static void shard_join(struct hpx_shard *shard)
{
	if (shard->started)
		pthread_join(shard->thread, NULL);
	shard->started = false;
}

static void shard_done(struct hpx_shard *shard)
{
	HPX_ASSERT(!shard->started);
	if (shard->made) {
		while (shard->connections != NULL)
			hpx_connection_close(shard->connections);
		stop_listeners(shard);
		if (shard->upstream != NULL)
			hpx_upstream_free(shard->upstream);
		uv_close((uv_handle_t *)&shard->tick, NULL);
		hpx_loop_done(&shard->loop);
		HPX_ASSERT(shard->requests == NULL);
		hpx_request_free_spares(shard);
		hpx_buffer_done(&shard->spare_in);
		hpx_access_hand_over(shard);
		hpx_buffer_done(&shard->access.lines);
	}
	if (shard->reader != NULL)
		hpx_store_reader_close(shard->reader);
	free(shard->listeners);
	hpx_settings_unref(shard->settings);
}

/* ---- the gateway ---- */

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
	size_t before = atomic_fetch_sub(&gateway->bodies_bytes, bytes);

	HPX_ASSERT(before >= bytes);
}

/* The log names the new address from now on; a change is an event. */
static void relabel_upstream(struct hpx_gateway *gateway, const struct hpx_settings *settings)
{
	struct hpx_upstream_label before, now;

	snprintf(now.url, sizeof(now.url), "%s", settings->upstream.text);
	snprintf(now.name, sizeof(now.name), "%.*s", HPX_SPAN_ARG(settings->upstream_name));
	pthread_mutex_lock(&gateway->label_lock);
	before = gateway->upstream_label;
	gateway->upstream_label = now;
	pthread_mutex_unlock(&gateway->label_lock);
	if (before.url[0] != '\0' && strcmp(before.url, now.url) != 0)
		hpx_log(HPX_LOG_INFO, "upstream_changed",
			"name=%s before=%s now=%s reason=\"by a reload; requests under way end "
			"at the old one, keys stay valid\"",
			now.name, before.url, now.url);
}

/* Logs a change of the upstream's state, once for all loops. */
static void log_upstream_event(void *user, enum hpx_upstream_event event, const char *detail, int64_t ms)
{
	struct hpx_gateway *gateway = user;
	struct hpx_upstream_label copy;
	const struct hpx_upstream_label *label = &copy;

	pthread_mutex_lock(&gateway->label_lock);
	copy = gateway->upstream_label;
	pthread_mutex_unlock(&gateway->label_lock);

	switch (event) {
	case HPX_UPSTREAM_STRAY:
		hpx_log(HPX_LOG_ERROR, "upstream_stray_bytes",
			"upstream=%s name=%s quarantine_ms=%lld reason=\"it sent bytes behind an answer that "
			"nobody asked for: a second answer could reach another caller; kept "
			"connections are closed, guarded requests use new ones\"",
			label->url, label->name, (long long)ms);
		break;
	case HPX_UPSTREAM_DOWN:
		hpx_log(HPX_LOG_WARN, "upstream_down", "upstream=%s name=%s reason=\"%s\"", label->url,
			label->name, detail);
		break;
	case HPX_UPSTREAM_UP:
		hpx_log(HPX_LOG_INFO, "upstream_up", "upstream=%s name=%s down_ms=%lld", label->url,
			label->name, (long long)ms);
		break;
	}
}

/* Opens the sockets of one listener, one for each shard, `stride` apart; the first one
 * finds out the port. */
static enum hpx_status open_sockets(struct hpx_gateway *gateway, size_t n, int *fds, char *problem)
{
	const struct hpx_address *address = &gateway->service->settings->listeners[n].address;
	size_t stride = gateway->listener_count;
	enum hpx_status status = hpx_listener_probe(address, problem);

	if (status == HPX_OK)
		status = hpx_listener_open(address, &fds[n], problem);
	for (unsigned i = 1; i < gateway->shard_count && status == HPX_OK; i++) {
		status = hpx_listener_open_beside(fds[n], &fds[i * stride + n]);
		if (status != HPX_OK)
			snprintf(problem, HPX_PROBLEM_SIZE, "cannot listen on %s a second time: %s",
				 address->text, hpx_status_text(status));
	}
	if (status == HPX_OK)
		gateway->ports[n] = hpx_listener_port(fds[n]);
	return status;
}

/* `fds`: for each shard one descriptor per listener. */
static enum hpx_status fill_shards(struct hpx_gateway *gateway, int *fds, char *problem)
{
	enum hpx_status status = HPX_OK;

	for (size_t n = 0; n < gateway->listener_count && status == HPX_OK; n++)
		status = open_sockets(gateway, n, fds, problem);
	for (unsigned i = 0; i < gateway->shard_count && status == HPX_OK; i++) {
		status = shard_init(&gateway->shards[i], gateway, &fds[i * gateway->listener_count]);
		if (status != HPX_OK)
			snprintf(problem, HPX_PROBLEM_SIZE, "cannot set up event loop %u: %s", i,
				 hpx_status_text(status));
	}
	return status;
}

static enum hpx_status make_shards(struct hpx_gateway *gateway, char *problem)
{
	size_t count = gateway->shard_count * gateway->listener_count;
	int *fds = malloc(count * sizeof(*fds));

	if (fds == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	enum hpx_status status = fill_shards(gateway, fds, problem);
	/* Those that no shard has taken over. */
	for (size_t i = 0; i < count; i++)
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

/* ---- the access log ---- */

/* Starts the writer where these settings are the first that need it. */
static enum hpx_status need_access_writer(struct hpx_gateway *gateway,
					  const struct hpx_settings *settings, char *problem)
{
	if (gateway->access_writer != NULL || hpx_access_format_of(settings) == HPX_ACCESS_NONE)
		return HPX_OK;
	struct hpx_log_writer *writer;
	enum hpx_status status =
		hpx_log_writer_start("access_log", settings->access_log_file, &writer, problem);
	if (status == HPX_OK)
		gateway->access_writer = writer;
	return status;
}

void hpx_gateway_reopen_log(struct hpx_gateway *gateway)
{
	if (gateway->access_writer != NULL &&
	    hpx_log_writer_reopen(gateway->access_writer,
				  gateway->service->settings->access_log_file) != HPX_OK)
		hpx_log(HPX_LOG_ERROR, "log_not_opened", "log=access_log problem=NOMEM");
}

/* Before a shard goes by the new settings. Where the new file cannot be opened, the reload
 * goes on without it: the log says so. */
static void reload_access_log(struct hpx_gateway *gateway, const struct hpx_settings *settings)
{
	char problem[HPX_LOG_WRITER_PROBLEM_SIZE];

	if (gateway->access_writer != NULL)
		hpx_gateway_reopen_log(gateway);
	else if (need_access_writer(gateway, settings, problem) != HPX_OK)
		hpx_log(HPX_LOG_ERROR, "log_not_opened", "log=access_log reason=\"%s\"", problem);
}

/* Raises the limit on descriptors to what the limits of the configuration can come to.
 * Where the system refuses, the difference is logged: the configured number of
 * connections cannot be served. */
static void raise_descriptors(const struct hpx_gateway *gateway)
{
	const struct hpx_settings *settings = gateway->service->settings;
	uint64_t wanted = (uint64_t)settings->connections_max +
			  (uint64_t)gateway->shard_count * settings->upstream_connections_max +
			  settings->deliveries_max + 2 * DESCRIPTORS_KEPT_FREE;
	uint64_t limit = hpx_descriptors_raise(wanted);

	if (limit < wanted)
		hpx_log(HPX_LOG_WARN, "descriptors_short",
			"limit=%llu wanted=%llu reason=\"the system lets this process open fewer "
			"descriptors than its limits can need; connections beyond are closed\" "
			"remedy=\"LimitNOFILE=%llu (ulimit -Hn), or lower limits.connections\"",
			(unsigned long long)limit, (unsigned long long)wanted,
			(unsigned long long)wanted);
}

/* The parts that all shards share and the gateway owns. */
static enum hpx_status make_shared(struct hpx_gateway *gateway, struct hpx_egress *egress)
{
	const struct hpx_settings *settings = gateway->service->settings;

	hpx_caller_seed_init(&gateway->caller_seed);
	for (int i = 0; i < HPX_RATE_COUNT; i++)
		if ((gateway->rates[i] = hpx_rate_table_new()) == NULL)
			return HPX_NOMEM;
	gateway->observed_keys = hpx_observed_keys_new();
	gateway->webhooks = hpx_webhook_states_new(settings->webhook_count);
	if (settings->tenant.from == HPX_TENANT_SUBREQUEST)
		gateway->subrequests = hpx_subrequests_new(egress, &settings->tenant.subrequest);
	if (gateway->observed_keys == NULL || gateway->webhooks == NULL ||
	    (settings->tenant.from == HPX_TENANT_SUBREQUEST && gateway->subrequests == NULL))
		return HPX_NOMEM;
	if (settings->tenant.from == HPX_TENANT_JWT &&
	    hpx_verified_callers_new(gateway->service->settings, egress,
				     &gateway->verified_callers) != HPX_OK)
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
	pthread_mutex_init(&gateway->label_lock, NULL);
	relabel_upstream(gateway, settings);
	gateway->upstream_state.on_event = log_upstream_event;
	gateway->upstream_state.user = gateway;
	gateway->listener_count = settings->listener_count;
	gateway->ports = calloc(settings->listener_count, sizeof(*gateway->ports));
	gateway->shards = calloc(count_shards(settings), sizeof(*gateway->shards));
	if (gateway->shards != NULL && gateway->ports != NULL) {
		gateway->shard_count = count_shards(settings);
		raise_descriptors(gateway);
		status = make_shared(gateway, options->egress);
		snprintf(problem, HPX_PROBLEM_SIZE, "%s", hpx_status_text(status));
	}
	if (status == HPX_OK)
		status = need_access_writer(gateway, settings, problem);
	if (status == HPX_OK)
		status = make_shards(gateway, problem);
	gateway->listener.settled = on_settled;
	if (status == HPX_OK && gateway->service->committer != NULL)
		hpx_committer_listen(gateway->service->committer, &gateway->listener);
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
		status = shard_start(&gateway->shards[i]);
	/* The loops that did start may have callers already. */
	if (status != HPX_OK)
		hpx_gateway_drain(gateway);
	return status;
}

uint16_t hpx_gateway_port(const struct hpx_gateway *gateway, size_t n)
{
	HPX_ASSERT(n < gateway->listener_count);
	return gateway->ports[n];
}

void hpx_gateway_reload(struct hpx_gateway *gateway, struct hpx_settings *settings,
			struct hpx_message *taken)
{
	HPX_ASSERT(atomic_load(&gateway->reload.shards_left) == 0);
	gateway->reload.taken = taken;
	hpx_verified_callers_refresh(gateway->verified_callers);
	reload_access_log(gateway, settings);
	relabel_upstream(gateway, settings);
	atomic_store(&gateway->reload.shards_left, gateway->shard_count);
	for (unsigned i = 0; i < gateway->shard_count; i++)
		shard_reload(&gateway->shards[i], settings);
}

void hpx_gateway_drain(struct hpx_gateway *gateway)
{
	for (unsigned i = 0; i < gateway->shard_count; i++)
		if (gateway->shards[i].started)
			shard_drain(&gateway->shards[i]);
	for (unsigned i = 0; i < gateway->shard_count; i++)
		shard_join(&gateway->shards[i]);
	for (size_t n = 0; n < gateway->listener_count; n++)
		hpx_listener_unlink(&gateway->service->settings->listeners[n].address);
}

void hpx_gateway_free(struct hpx_gateway *gateway)
{
	if (gateway == NULL)
		return;
	/* Whoever still waits for it is told, in shard_done at the latest. */
	hpx_query_thread_stop(gateway->query_thread);
	for (unsigned i = 0; i < gateway->shard_count; i++)
		shard_done(&gateway->shards[i]);
	free(gateway->shards);
	free(gateway->ports);
	hpx_log_writer_stop(gateway->access_writer);
	pthread_mutex_destroy(&gateway->label_lock);
	hpx_query_thread_free(gateway->query_thread);
	hpx_subrequests_free(gateway->subrequests);
	hpx_verified_callers_free(gateway->verified_callers);
	hpx_webhook_states_free(gateway->webhooks);
	hpx_observed_keys_free(gateway->observed_keys);
	for (int i = 0; i < HPX_RATE_COUNT; i++)
		hpx_rate_table_free(gateway->rates[i]);
	free(gateway);
}
