/* Two small tables. The one for tenants is lock-free, because every first
 * execution passes it: one slot is one 64-bit word, half of it what was seen,
 * half of it the tenant. The one for observing has a lock: it stands on no
 * guarded request's way. */
#include "gateway/observe.h"

#include <stdlib.h>

#include "gateway/tenant.h"

#define SLOTS 65536

struct hpx_observed_key {
	struct hpx_operation_id id;
	struct hpx_sha256 hash;
	bool first; /* nobody was remembered under this id */
};

struct observed {
	struct hpx_operation_id id;
	uint8_t body[HPX_SHA256_SIZE];
	int64_t until_ms; /* boot clock; in the past: the slot is free */
	bool over;        /* answered; until then the body is not known */
};

struct hpx_observed_keys {
	pthread_mutex_t lock;
	struct observed observed[SLOTS];
	_Atomic uint64_t tenants[SLOTS];
};

struct hpx_observed_keys *hpx_observed_keys_new(void)
{
	struct hpx_observed_keys *keys = calloc(1, sizeof(*keys));

	if (keys != NULL)
		pthread_mutex_init(&keys->lock, NULL);
	return keys;
}

void hpx_observed_keys_free(struct hpx_observed_keys *keys)
{
	if (keys == NULL)
		return;
	pthread_mutex_destroy(&keys->lock);
	free(keys);
}

static uint32_t first_word(const uint8_t *bytes)
{
	uint32_t word;
	memcpy(&word, bytes, sizeof(word));
	return word;
}

static struct observed *slot_of(struct hpx_observed_keys *all, const struct hpx_operation_id *id)
{
	return &all->observed[first_word(id->bytes) % SLOTS];
}

static bool name_key(struct hpx_request *request, struct hpx_observed_key *key)
{
	struct hpx_span scope;

	return hpx_scope_of(request->settings, request->head.route, request->head.http.method,
			    request->head.target.path, &request->arena, &scope) == HPX_OK &&
	       hpx_operation_id(request->identity.tenant, scope,
				hpx_span(request->identity.key.bytes, request->identity.key.len),
				&key->id) == HPX_OK;
}

void hpx_observe_begin(struct hpx_request *request)
{
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	struct hpx_observed_key *key =
		hpx_arena_zalloc(&request->arena, 1, sizeof(*request->pass.observed));
	int64_t now_ms = hpx_clock_boot_ms();

	if (key == NULL || !name_key(request, key))
		return;
	pthread_mutex_lock(&all->lock);
	struct observed *slot = slot_of(all, &key->id);
	bool known = slot->until_ms > now_ms && hpx_operation_id_eq(&slot->id, &key->id);
	bool under_way = known && !slot->over;
	if (!known)
		*slot = (struct observed){ .id = key->id,
					   .until_ms = now_ms + request->head.route->policy.retention_ms };
	pthread_mutex_unlock(&all->lock);
	if (under_way) {
		hpx_counter_add(&request->shard->meter.observed[HPX_OBSERVED_in_progress], 1);
		return;
	}
	key->first = !known;
	hpx_sha256_init(&key->hash);
	hpx_sha256_part(&key->hash, request->head.target.query);
	request->pass.observed = key;
}

void hpx_observe_body(struct hpx_request *request, struct hpx_span bytes)
{
	if (request->pass.observed != NULL)
		hpx_sha256_add(&request->pass.observed->hash, bytes);
}

/* What a guarded gateway would have said, going by what is remembered. */
static enum hpx_observed judge(struct observed *slot, const struct hpx_observed_key *key,
			       const uint8_t body[HPX_SHA256_SIZE])
{
	bool same = hpx_operation_id_eq(&slot->id, &key->id);

	if (key->first && same) {
		memcpy(slot->body, body, HPX_SHA256_SIZE);
		slot->over = true;
	}
	if (key->first || !same)
		return HPX_OBSERVED_created;
	return memcmp(slot->body, body, HPX_SHA256_SIZE) == 0 ? HPX_OBSERVED_replay :
								HPX_OBSERVED_mismatch;
}

void hpx_observe_end(struct hpx_request *request)
{
	struct hpx_observed_key *key = request->pass.observed;
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	uint8_t body[HPX_SHA256_SIZE];

	request->pass.observed = NULL;
	if (key == NULL || hpx_sha256_done(&key->hash, body) != HPX_OK)
		return;
	pthread_mutex_lock(&all->lock);
	enum hpx_observed observed = judge(slot_of(all, &key->id), key, body);
	pthread_mutex_unlock(&all->lock);
	hpx_counter_add(&request->shard->meter.observed[observed], 1);
}

void hpx_observe_tenant_change(struct hpx_request *request)
{
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	struct hpx_operation_id what;
	const struct hpx_description *d = &request->identity.description;

	/* The same hash as an operation's id, with the fingerprint in the
	 * place of the tenant. */
	if (hpx_operation_id(hpx_span(request->identity.ask.fingerprint, HPX_SHA256_SIZE), d->scope, d->key,
			     &what) != HPX_OK)
		return;
	uint64_t seen = (uint64_t)first_word(what.bytes + 4) << 32 | first_word(request->identity.ask.tenant);
	uint64_t before = atomic_exchange_explicit(
		&all->tenants[first_word(what.bytes) % SLOTS], seen, memory_order_relaxed);
	if (before != 0 && before >> 32 == seen >> 32 && before != seen)
		hpx_counter_add(&request->shard->meter.tenant_changed, 1);
}
