/* Two small tables. The one for tenants is lock-free, because every first
 * execution passes it: one slot is one 64-bit word, half of it what was seen,
 * half of it the tenant. The one for observing has a lock: it stands on no
 * guarded request's way. */
#include "gateway/sighting.h"

#include <stdlib.h>

#include "gateway/tenant.h"

#define SLOTS 65536

struct hpx_sighting {
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

struct hpx_sightings {
	pthread_mutex_t lock;
	struct observed observed[SLOTS];
	_Atomic uint64_t tenants[SLOTS];
};

struct hpx_sightings *hpx_sightings_new(void)
{
	struct hpx_sightings *sightings = calloc(1, sizeof(*sightings));

	if (sightings != NULL)
		pthread_mutex_init(&sightings->lock, NULL);
	return sightings;
}

void hpx_sightings_free(struct hpx_sightings *sightings)
{
	if (sightings == NULL)
		return;
	pthread_mutex_destroy(&sightings->lock);
	free(sightings);
}

static uint32_t first_word(const uint8_t *bytes)
{
	uint32_t word;
	memcpy(&word, bytes, sizeof(word));
	return word;
}

static struct observed *slot_of(struct hpx_sightings *all, const struct hpx_operation_id *id)
{
	return &all->observed[first_word(id->bytes) % SLOTS];
}

static bool name_sighting(struct hpx_request *request, struct hpx_sighting *sighting)
{
	struct hpx_span scope;

	return hpx_scope_of(request->settings, request->head.route, request->head.http.method,
			    request->head.target.path, &request->arena, &scope) == HPX_OK &&
	       hpx_operation_id(request->identity.tenant, scope,
				hpx_span(request->identity.key.bytes, request->identity.key.len),
				&sighting->id) == HPX_OK;
}

void hpx_sighting_begin(struct hpx_request *request)
{
	struct hpx_sightings *all = request->shard->gateway->sightings;
	struct hpx_sighting *sighting =
		hpx_arena_zalloc(&request->arena, 1, sizeof(*request->pass.sighting));
	int64_t now_ms = hpx_clock_boot_ms();

	if (sighting == NULL || !name_sighting(request, sighting))
		return;
	pthread_mutex_lock(&all->lock);
	struct observed *slot = slot_of(all, &sighting->id);
	bool known = slot->until_ms > now_ms && hpx_operation_id_eq(&slot->id, &sighting->id);
	bool under_way = known && !slot->over;
	if (!known)
		*slot = (struct observed){ .id = sighting->id,
					   .until_ms = now_ms + request->head.route->policy.retention_ms };
	pthread_mutex_unlock(&all->lock);
	if (under_way) {
		hpx_counter_add(&request->shard->meter.observed[HPX_OBSERVED_in_progress], 1);
		return;
	}
	sighting->first = !known;
	hpx_sha256_init(&sighting->hash);
	hpx_sha256_part(&sighting->hash, request->head.target.query);
	request->pass.sighting = sighting;
}

void hpx_sighting_body(struct hpx_request *request, struct hpx_span bytes)
{
	if (request->pass.sighting != NULL)
		hpx_sha256_add(&request->pass.sighting->hash, bytes);
}

/* What a guarded gateway would have said, going by what is remembered. */
static enum hpx_observed judge(struct observed *slot, const struct hpx_sighting *sighting,
			       const uint8_t body[HPX_SHA256_SIZE])
{
	bool same = hpx_operation_id_eq(&slot->id, &sighting->id);

	if (sighting->first && same) {
		memcpy(slot->body, body, HPX_SHA256_SIZE);
		slot->over = true;
	}
	if (sighting->first || !same)
		return HPX_OBSERVED_created;
	return memcmp(slot->body, body, HPX_SHA256_SIZE) == 0 ? HPX_OBSERVED_replay :
								HPX_OBSERVED_mismatch;
}

void hpx_sighting_over(struct hpx_request *request)
{
	struct hpx_sighting *sighting = request->pass.sighting;
	struct hpx_sightings *all = request->shard->gateway->sightings;
	uint8_t body[HPX_SHA256_SIZE];

	request->pass.sighting = NULL;
	if (sighting == NULL || hpx_sha256_done(&sighting->hash, body) != HPX_OK)
		return;
	pthread_mutex_lock(&all->lock);
	enum hpx_observed observed = judge(slot_of(all, &sighting->id), sighting, body);
	pthread_mutex_unlock(&all->lock);
	hpx_counter_add(&request->shard->meter.observed[observed], 1);
}

void hpx_sighting_tenant(struct hpx_request *request)
{
	struct hpx_sightings *all = request->shard->gateway->sightings;
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
