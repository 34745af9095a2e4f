/* Rates: what one tenant, one key and one address may ask for in a time. And shares: how
 * much of the memory for bodies, the waiters and the tunnels they may hold at once (of
 * connections: client_connection.c).
 *
 *   limit                 │ judged                                │ a refusal says
 *   ──────────────────────┼───────────────────────────────────────┼──────────────────────
 *   key.requests          │ behind the head, before the body      │ executed: unknown
 *   tenant.status_reads   │ before the store is asked             │ executed: no
 *   tenant.new_keys,      │ nothing is known of the key, before a │ executed: no
 *   tenant.active_keys,   │ slot is taken and anything reserved   │
 *   tenant.stored,        │                                       │
 *   peer.new_keys         │                                       │
 *   tenant.replays        │ the key is known                      │ by its state
 *
 * Whether a key is new is known only when it was looked up: a tenant that has used up
 * its new keys still gets the answers of known ones. Where the store cannot be asked on
 * this loop (PostgreSQL), the budget for new keys is taken first and given back when the
 * key turns out to be known. */
#include "gateway/steps.h"

#include "base/status.h"
#include "http/field.h"

static const char *const rate_names[HPX_RATE_COUNT] = {
#define X(name, text) [HPX_RATE_##name] = #text,
	HPX_RATE_LIST(X)
#undef X
};

/* The rates are the first limits that are counted. */
_Static_assert((int)HPX_LIMITED_new_keys == (int)HPX_RATE_NEW_KEYS &&
		       (int)HPX_LIMITED_stored == (int)HPX_RATE_STORED,
	       "HPX_LIMITED_LIST begins with HPX_RATE_LIST");

#define KIB 1024

/* What a tenant may have kept is a rate too: so much in the time that it is kept for. */
static struct hpx_rate rate_of(const struct hpx_request *request, enum hpx_rate_kind kind)
{
	const struct hpx_settings *settings = request->settings;
	uint32_t count;

	if (kind != HPX_RATE_ACTIVE_KEYS && kind != HPX_RATE_STORED)
		return settings->rates[kind];
	count = kind == HPX_RATE_ACTIVE_KEYS ? settings->active_keys_max :
					       (uint32_t)(settings->stored_bytes_max / KIB);
	return (struct hpx_rate){ .count = count,
				  .burst = count,
				  .period_ms = request->head.route->policy.retention_ms };
}

static bool is_limited(const struct hpx_request *request, enum hpx_rate_kind kind)
{
	return rate_of(request, kind).count > 0;
}

static bool take(struct hpx_request *request, enum hpx_rate_kind kind, uint64_t caller,
		 struct hpx_limit_met *ret_met)
{
	struct hpx_limit_met met = { .limit = (enum hpx_limited)kind };
	const struct hpx_rate rate = rate_of(request, kind);

	if (hpx_rate_table_take(request->shard->gateway->rates[kind], caller, &rate,
				hpx_loop_boot_us(&request->shard->loop), &met.wait_us))
		return true;
	*ret_met = met;
	return false;
}

static void give_back(struct hpx_request *request, enum hpx_rate_kind kind, uint64_t caller)
{
	const struct hpx_rate rate = rate_of(request, kind);

	hpx_rate_table_give_back(request->shard->gateway->rates[kind], caller, &rate);
}

static uint64_t tenant_of(struct hpx_request *request)
{
	struct hpx_request_identity *identity = &request->identity;

	if (identity->tenant_hash == 0)
		identity->tenant_hash =
			hpx_caller_hash(&request->shard->gateway->caller_seed, identity->tenant);
	return identity->tenant_hash;
}

/* The address that the request came from; 0: it has none that a limit is for. */
static uint64_t find_peer(struct hpx_request *request)
{
	struct hpx_span address =
		hpx_peer_of(request->settings, &request->head.http, request->head.peer);
	uint8_t network[16];

	if (!hpx_peer_network(address, network))
		return 0;
	return hpx_caller_hash(&request->shard->gateway->caller_seed,
			       hpx_span((const char *)network, sizeof(network)));
}

uint64_t hpx_limit_peer(struct hpx_request *request)
{
	if (!request->head.peer_known)
		request->head.peer_hash = find_peer(request);
	request->head.peer_known = true;
	return request->head.peer_hash;
}

/* The budgets that a request which begins something takes one of, in this order. */
static const enum hpx_rate_kind for_new[] = { HPX_RATE_NEW_KEYS, HPX_RATE_ACTIVE_KEYS,
					      HPX_RATE_STORED, HPX_RATE_PEER_NEW_KEYS };
#define FOR_NEW_COUNT (sizeof(for_new) / sizeof(for_new[0]))

/* Whose budget of that kind it is; 0: there is no such limit. */
static uint64_t caller_of(struct hpx_request *request, enum hpx_rate_kind kind)
{
	if (!is_limited(request, kind))
		return 0;
	return kind == HPX_RATE_PEER_NEW_KEYS ? hpx_limit_peer(request) : tenant_of(request);
}

static void give_new_back(struct hpx_request *request, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t caller = caller_of(request, for_new[i]);
		if (caller != 0)
			give_back(request, for_new[i], caller);
	}
}

static bool take_new(struct hpx_request *request, struct hpx_limit_met *ret_met)
{
	for (size_t i = 0; i < FOR_NEW_COUNT; i++) {
		uint64_t caller = caller_of(request, for_new[i]);
		if (caller == 0 || take(request, for_new[i], caller, ret_met))
			continue;
		give_new_back(request, i);
		return false;
	}
	return true;
}

static bool is_new_limited(const struct hpx_request *request)
{
	for (size_t i = 0; i < FOR_NEW_COUNT; i++)
		if (is_limited(request, for_new[i]))
			return true;
	return false;
}

static enum hpx_problem_code code_of(enum hpx_limited limit)
{
	return limit == HPX_LIMITED_active_keys || limit == HPX_LIMITED_stored ?
		       HPX_PROBLEM_too_many_keys :
		       HPX_PROBLEM_rate_limited;
}

bool hpx_limit_new_keys(struct hpx_request *request)
{
	struct hpx_new_refused *refused = &request->identity.new_refused;
	struct hpx_limit_met met;

	if (request->identity.new_counted || refused->detail != NULL || !is_new_limited(request))
		return true;
	request->identity.new_counted = take_new(request, &met);
	if (!request->identity.new_counted)
		*refused = (struct hpx_new_refused){ .code = code_of(met.limit), .detail = "", .limit = met };
	return request->identity.new_counted;
}

void hpx_limit_stored(struct hpx_request *request, size_t bytes)
{
	const struct hpx_rate rate = rate_of(request, HPX_RATE_STORED);

	if (rate.count > 0 && request->identity.new_counted)
		hpx_rate_table_charge(request->shard->gateway->rates[HPX_RATE_STORED], tenant_of(request),
				      &rate, hpx_loop_boot_us(&request->shard->loop), bytes / KIB);
}

bool hpx_limit_replays(struct hpx_request *request, struct hpx_limit_met *ret_met)
{
	if (request->identity.new_counted)
		give_new_back(request, FOR_NEW_COUNT);
	request->identity.new_counted = false;
	return !is_limited(request, HPX_RATE_REPLAYS) ||
	       take(request, HPX_RATE_REPLAYS, tenant_of(request), ret_met);
}

bool hpx_limit_status_reads(struct hpx_request *request, struct hpx_limit_met *ret_met)
{
	return !is_limited(request, HPX_RATE_STATUS_READS) ||
	       take(request, HPX_RATE_STATUS_READS, tenant_of(request), ret_met);
}

bool hpx_limit_key(struct hpx_request *request, struct hpx_limit_met *ret_met)
{
	uint64_t caller;

	if (!is_limited(request, HPX_RATE_KEY_REQUESTS))
		return true;
	/* Out of memory: the step FINGERPRINT says so. */
	if (hpx_guard_name(request) != HPX_OK)
		return true;
	caller = hpx_caller_hash(&request->shard->gateway->caller_seed,
				 hpx_span((const char *)request->identity.ask.id.bytes,
					  sizeof(request->identity.ask.id.bytes)));
	return take(request, HPX_RATE_KEY_REQUESTS, caller, ret_met);
}

/* ---- shares ---- */

static bool take_share(struct hpx_request *request, struct hpx_shares *shares, struct hpx_held *held,
		       size_t more, const struct hpx_scarce *scarce, enum hpx_limited limit)
{
	uint64_t peer = hpx_limit_peer(request);
	uint64_t tenant = request->identity.tenant.ptr != NULL ? tenant_of(request) : 0;

	if (!hpx_share_allows_peer(shares, peer, more, scarce) ||
	    !hpx_share_allows_tenant(shares, peer != 0 ? tenant : 0, more, scarce)) {
		hpx_meter_limited(&request->shard->meter, request->identity.tenant, limit);
		return false;
	}
	hpx_share_add(&shares->peers, peer, more);
	hpx_share_add(&shares->tenants, tenant, more);
	held->shares = shares;
	held->by_peer += peer != 0 ? more : 0;
	held->by_tenant += tenant != 0 ? more : 0;
	return true;
}

void hpx_share_give_back(struct hpx_request *request, struct hpx_held *held)
{
	if (held->shares == NULL)
		return;
	hpx_share_remove(&held->shares->peers, request->head.peer_hash, held->by_peer);
	hpx_share_remove(&held->shares->tenants, request->identity.tenant_hash, held->by_tenant);
	held->shares = NULL;
}

bool hpx_share_take_connection(struct hpx_request *request)
{
	if (request->downstream == NULL || request->head.observed ||
	    hpx_downstream_take_share(request->downstream, tenant_of(request)))
		return true;
	hpx_meter_limited(&request->shard->meter, request->identity.tenant, HPX_LIMITED_share_connections);
	return false;
}

bool hpx_share_take_body(struct hpx_request *request, size_t bytes, size_t whole)
{
	struct hpx_gateway *gateway = request->shard->gateway;
	struct hpx_scarce scarce = { .in_use = atomic_load(&gateway->bodies_bytes),
				     .whole = whole,
				     .least = request->settings->request_body_bytes_max };

	return take_share(request, &gateway->body_shares, &request->body.held, bytes, &scarce,
			  HPX_LIMITED_share_bodies);
}

bool hpx_share_take_waiter(struct hpx_request *request)
{
	struct hpx_scarce scarce = { .in_use = hpx_waitlist_count(request->shard->service->waitlist),
				     .whole = request->settings->waiters_max,
				     .least = 1 };

	if (request->wait.held.shares != NULL)
		return true;
	return take_share(request, &request->shard->gateway->waiter_shares, &request->wait.held, 1,
			  &scarce, HPX_LIMITED_share_waiters);
}

bool hpx_share_take_tunnel(struct hpx_request *request)
{
	const struct hpx_slots *slots = hpx_upstream_slots(request->shard->upstream);
	struct hpx_scarce scarce = { .in_use = slots->held[HPX_SLOT_TUNNEL],
				     .whole = slots->limits.tunnel_max,
				     .least = 1 };

	return take_share(request, &request->shard->tunnels, &request->pass.held, 1, &scarce,
			  HPX_LIMITED_share_tunnels);
}

/* ---- the refusal ---- */

static const char *const details[HPX_RATE_COUNT] = {
	[HPX_RATE_NEW_KEYS] = "This caller begins more than it may in such a time. Known keys are "
			      "answered as before.",
	[HPX_RATE_REPLAYS] = "This caller asks for known keys more often than it may.",
	[HPX_RATE_STATUS_READS] = "This caller asks for the state of operations more often than it may.",
	[HPX_RATE_KEY_REQUESTS] = "More requests came with this key than one key may have in such a "
				  "time. Its first request may be under way or done.",
	[HPX_RATE_PEER_NEW_KEYS] = "From this address more is begun than may be in such a time. Known "
				   "keys are answered as before.",
	[HPX_RATE_ACTIVE_KEYS] = "This caller has as many keys as are kept for it. Known keys are "
				 "answered as before.",
	[HPX_RATE_STORED] = "As much is stored for this caller as may be. Known keys are answered as "
			    "before.",
};

#define FIELDS_BYTES_MAX 256
#define SECOND_US 1000000

/* draft-ietf-httpapi-ratelimit-headers-10: lists of strings with parameters. */
static enum hpx_status write_fields(const struct hpx_rate *rate, const char *name, unsigned seconds,
				    struct hpx_buffer *out)
{
	return hpx_buffer_printf(out,
				 "RateLimit-Policy: \"%s\";q=%u;w=%lld\r\nRateLimit: \"%s\";r=0;t=%u\r\n",
				 name, rate->count, (long long)(rate->period_ms / 1000), name, seconds);
}

enum hpx_next hpx_limit_refuse(struct hpx_request *request, const struct hpx_limit_met *met,
			       const char *executed)
{
	enum hpx_rate_kind kind = (enum hpx_rate_kind)met->limit;
	unsigned seconds = (unsigned)((met->wait_us + SECOND_US - 1) / SECOND_US);
	struct hpx_refusal refusal = { .executed = executed,
				       .retry_after_s = seconds,
				       .is_limit = true };
	struct hpx_buffer fields;

	HPX_ASSERT(kind < HPX_RATE_COUNT);
	refusal.detail = details[kind];
	hpx_meter_limited(&request->shard->meter, request->identity.tenant, met->limit);
	hpx_buffer_init(&fields, FIELDS_BYTES_MAX);
	const struct hpx_rate rate = rate_of(request, kind);
	if (write_fields(&rate, rate_names[kind], seconds, &fields) == HPX_OK)
		refusal.fields = hpx_buffer_span(&fields);
	(void)hpx_respond_refuse(request, code_of(met->limit), &refusal, HPX_RESPOND_KEEP);
	hpx_buffer_done(&fields);
	return HPX_NEXT_DONE;
}
