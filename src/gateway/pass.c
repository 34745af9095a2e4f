/* Pass-through in bounded memory: while one side cannot take more, the other side is
 * not read. Nothing is stored, nothing is sent twice. In observe mode guarded
 * requests come this way too, unaltered.
 *
 * Observed keys, tenants and misused keys are in three small tables. The tables of
 * tenants and of misused keys are lock-free, because guarded requests update them: a
 * slot is one 64-bit word, one half for the request, one half for the tenant; or the
 * beginnings of an operation's id and mark. The table of observed keys has a lock: no
 * guarded request uses it. */
#include "gateway/steps.h"

#include <stdlib.h>

#include "base/status.h"
#include "http/write.h"

/* ---- observed keys and tenants ---- */

#define SLOTS 65536
#define MISUSED_SLOTS 4096
/* Misuses that are being noted in the store; while the store is down, none of them ends. */
#define NOTES_MAX 1024

/* The key of one request that is observed; from the request's arena. */
struct hpx_observed_key {
	struct hpx_operation_id id;
	struct hpx_sha256 hash; /* of query and body */
	bool first;             /* no request with this id was remembered */
};

/* What is remembered of a key. */
struct observed_slot {
	struct hpx_operation_id id;
	uint8_t body[HPX_SHA256_SIZE];
	int64_t until_ms; /* boot clock; in the past: the slot is free */
	bool over;        /* the first request has ended; until then `body` is not known */
};

struct hpx_observed_keys {
	pthread_mutex_t lock;
	struct observed_slot observed[SLOTS];
	_Atomic uint64_t tenants[SLOTS];
	_Atomic uint64_t misused[MISUSED_SLOTS];
	_Atomic unsigned notes;
};

/* The op that notes one misuse. It outlives the request, which does not wait for it. */
struct misuse_note {
	struct hpx_store_op op;
	struct hpx_observed_keys *all;
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

static struct observed_slot *slot_of(struct hpx_observed_keys *all, const struct hpx_operation_id *id)
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

/* By route, and where the key was known, by tenant. */
static void count_observed(struct hpx_request *request, enum hpx_observed observed)
{
	struct hpx_meter *meter = &request->shard->meter;

	hpx_meter_observe(meter, request->head.route, observed);
	if (observed != HPX_OBSERVED_created)
		hpx_meter_duplicate(meter, request->identity.tenant, observed == HPX_OBSERVED_mismatch);
}

/* What the route demands of a new key is not met: it would leave no record, and its retry
 * would be refused like it. */
static void count_refused(struct hpx_request *request)
{
	bool old = request->identity.new_refused.code == HPX_PROBLEM_request_too_old;

	hpx_meter_observe(&request->shard->meter, request->head.route,
			  old ? HPX_OBSERVED_too_old : HPX_OBSERVED_key_invalid);
}

void hpx_observe_begin(struct hpx_request *request)
{
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	struct hpx_observed_key *key =
		hpx_arena_zalloc(&request->arena, 1, sizeof(*request->pass.observed));
	bool refused = request->identity.new_refused.detail != NULL;
	int64_t now_ms = hpx_clock_boot_ms();

	if (key == NULL || !name_key(request, key))
		return;
	pthread_mutex_lock(&all->lock);
	struct observed_slot *slot = slot_of(all, &key->id);
	bool known = slot->until_ms > now_ms && hpx_operation_id_eq(&slot->id, &key->id);
	bool under_way = known && !slot->over;
	if (!known && !refused)
		*slot = (struct observed_slot){ .id = key->id,
						.until_ms = now_ms + request->head.route->policy.retention_ms };
	pthread_mutex_unlock(&all->lock);
	if (!known && refused) {
		count_refused(request);
		return;
	}
	if (under_way) {
		count_observed(request, HPX_OBSERVED_in_progress);
		return;
	}
	key->first = !known;
	hpx_sha256_init(&key->hash);
	hpx_sha256_part(&key->hash, request->head.target.query);
	request->pass.observed = key;
}

static void observe_body(struct hpx_request *request, struct hpx_span bytes)
{
	if (request->pass.observed != NULL)
		hpx_sha256_add(&request->pass.observed->hash, bytes);
}

/* What a gateway that guards would have answered, as far as the key is remembered. */
static enum hpx_observed judge(struct observed_slot *slot, const struct hpx_observed_key *key,
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
	count_observed(request, observed);
}

/* FNV-1a, 64 bits, with the length behind the bytes. */
static uint64_t mix(uint64_t hash, struct hpx_span bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		hash = (hash ^ (unsigned char)bytes.ptr[i]) * 1099511628211u;
	return (hash ^ bytes.len) * 1099511628211u;
}

/* A request by what it means, whoever sends it: the fingerprint, which is a hash
 * already, with scope and key. Two requests that share a number cost a false count of
 * a metric, so nothing stronger is needed. */
static uint64_t number_of(const struct hpx_request *request)
{
	const struct hpx_description *d = &request->identity.description;
	uint64_t hash;

	memcpy(&hash, request->identity.ask.fingerprint, sizeof(hash));
	return mix(mix(hash, d->scope), d->key);
}

void hpx_observe_tenant_change(struct hpx_request *request)
{
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	uint64_t number = number_of(request);
	uint64_t seen = number >> 32 << 32 | first_word(request->identity.ask.tenant);
	uint64_t before = atomic_exchange_explicit(&all->tenants[number % SLOTS], seen,
						   memory_order_relaxed);
	if (before != 0 && before >> 32 == seen >> 32 && before != seen)
		hpx_counter_add(&request->shard->meter.tenant_changed, 1);
}

static void tell_not_noted(const struct hpx_record *record, enum hpx_status status)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_log(HPX_LOG_WARN, "misuse_not_noted", "operation=%s problem=%s", reference,
		hpx_status_name(status));
}

/* On the committer's thread. An operation that is gone since has no history to write to. */
static void misuse_noted(struct hpx_store_op *op)
{
	struct misuse_note *note = HPX_CONTAINER(op, struct misuse_note, op);
	struct hpx_record record = { .id = op->id, .mark = op->mark };

	if (op->status != HPX_OK && op->status != HPX_NOT_FOUND && op->status != HPX_STALE)
		tell_not_noted(&record, op->status);
	atomic_fetch_sub(&note->all->notes, 1);
	free(note);
}

/* The event in the operation's history. The committer ends before the table is freed, and
 * ends every op. */
static void note_misuse(struct hpx_request *request, const struct hpx_record *record)
{
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	bool room = atomic_fetch_add(&all->notes, 1) < NOTES_MAX;
	struct misuse_note *note = room ? calloc(1, sizeof(*note)) : NULL;

	if (note == NULL) {
		atomic_fetch_sub(&all->notes, 1);
		tell_not_noted(record, room ? HPX_NOMEM : HPX_FULL);
		return;
	}
	*note = (struct misuse_note){
		.op = { .verb = HPX_VERB_NOTE_MISUSE, .id = record->id, .mark = record->mark, .actor = HPX_SPAN("gateway"), .done = misuse_noted },
		.all = all,
	};
	hpx_shard_submit(request->shard, &note->op);
}

void hpx_observe_misuse(struct hpx_request *request)
{
	struct hpx_observed_keys *all = request->shard->gateway->observed_keys;
	const struct hpx_record *record = &request->reservation.record;
	char reference[HPX_REFERENCE_SIZE];
	uint64_t seen = (uint64_t)first_word(record->id.bytes) << 32 | first_word(record->mark.bytes);
	uint64_t before = atomic_exchange_explicit(&all->misused[(seen >> 32) % MISUSED_SLOTS], seen,
						   memory_order_relaxed);

	if (before == seen)
		return;
	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_log(HPX_LOG_WARN, "key_misused", "operation=%s route=\"%.*s\"", reference,
		HPX_SPAN_ARG(request->identity.description.route));
	note_misuse(request, record);
}

/* ---- pass-through ---- */

static void finish_upload(struct hpx_request *request)
{
	struct hpx_span last = HPX_SPAN("0\r\n\r\n");

	HPX_ASSERT(request->body.whole);
	if (request->head.http.framing == HPX_FRAMING_CHUNKED)
		(void)hpx_exchange_write(request->attempt.exchange, &last, 1);
	hpx_exchange_finish(request->attempt.exchange);
	hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_HOLD);
}

/* False: the upstream cannot take more now. */
static bool send_up(struct hpx_request *request, struct hpx_span data)
{
	struct hpx_chunk chunk;

	if (data.len == 0)
		return true;
	observe_body(request, data);
	if (request->head.http.framing != HPX_FRAMING_CHUNKED)
		return hpx_exchange_write(request->attempt.exchange, &data, 1);
	hpx_chunk_frame(data, &chunk);
	return hpx_exchange_write(request->attempt.exchange, chunk.pieces, 3);
}

void hpx_pass_take_body(struct hpx_request *request, struct hpx_span data)
{
	if (request->attempt.exchange == NULL)
		return;
	bool room = send_up(request, data);
	if (request->body.whole)
		finish_upload(request);
	else if (!room)
		hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_HOLD);
}

/* The client's end of the tunnel is passed on; the other direction goes on. */
void hpx_request_take_tunnel(struct hpx_request *request, struct hpx_span bytes)
{
	struct hpx_exchange *exchange = request->attempt.exchange;

	if (exchange == NULL)
		return;
	if (bytes.len > 0) {
		if (!hpx_exchange_write(exchange, &bytes, 1))
			hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_HOLD);
	} else if (hpx_downstream_is_ended(request->downstream) &&
		   request->pass.tunnel == HPX_TUNNEL_OPEN) {
		request->pass.tunnel = HPX_TUNNEL_CLIENT_ENDED;
		hpx_exchange_finish(exchange);
	}
}

static void on_writable(void *user)
{
	struct hpx_request *request = user;

	if (request->downstream == NULL)
		return;
	if (request->pass.tunnel >= HPX_TUNNEL_OPEN)
		hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_TUNNEL);
	else if (!request->body.whole)
		hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_BODY);
}

static void begin_answer(struct hpx_request *request, bool tunnel)
{
	hpx_respond_begin(request);
	if (tunnel && request->downstream != NULL) {
		request->pass.tunnel = HPX_TUNNEL_OPEN;
		request->body.whole = true;
		hpx_downstream_make_last(request->downstream);
		hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_TUNNEL);
	}
}

static void on_head(void *user, const struct hpx_http_head *head)
{
	struct hpx_request *request = user;
	bool tunnel = head->framing == HPX_FRAMING_TUNNEL;

	/* A head that cannot be written ends the downstream, and with it the exchange. */
	hpx_request_hold(request);
	if (!hpx_respond_take_head(request, head) || (tunnel && request->pass.tunnel != HPX_TUNNEL_ASKED))
		hpx_downstream_close(request->downstream);
	else
		begin_answer(request, tunnel);
	hpx_request_drop(request);
}

static void on_data(void *user, struct hpx_span bytes)
{
	hpx_respond_piece(user, bytes);
}

static void over(struct hpx_request *request)
{
	HPX_ASSERT(request->wait.kind == HPX_WAIT_PASS);
	request->attempt.exchange = NULL;
	hpx_request_end(request, &request->times.upstream);
	request->wait.kind = HPX_WAIT_OVER;
	hpx_observe_end(request);
}

static void on_end(void *user)
{
	struct hpx_request *request = user;

	over(request);
	hpx_respond_end(request);
	hpx_request_drop(request);
}

static void on_failed(void *user, const struct hpx_exchange_failure *failure)
{
	struct hpx_request *request = user;
	struct hpx_refusal refusal = { .retry_after_s = 1, .detail = failure->reason };

	over(request);
	if (request->answer.state == HPX_ANSWER_FLOWING) {
		hpx_respond_break(request);
	} else if (failure->any_byte_left) {
		refusal.status = failure->timed_out ? 504 : 502;
		hpx_respond_refuse(request, HPX_PROBLEM_upstream_outcome_unknown, &refusal,
				   request->body.whole ? HPX_RESPOND_KEEP : HPX_RESPOND_CLOSE);
	} else {
		request->summary.did = HPX_DID_nothing;
		hpx_respond_refuse(request, HPX_PROBLEM_upstream_unreachable, &refusal,
				   HPX_RESPOND_KEEP);
	}
	hpx_request_drop(request);
}

static const struct hpx_exchange_events events = {
	.on_writable = on_writable,
	.on_informational = hpx_respond_informational,
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_failed = on_failed,
};

static enum hpx_next no_memory(struct hpx_request *request)
{
	request->summary.did = HPX_DID_nothing;
	hpx_request_end(request, &request->times.upstream);
	hpx_observe_end(request);
	return hpx_respond_refuse(request, HPX_PROBLEM_overloaded, NULL, HPX_RESPOND_CLOSE);
}

/* 503: all connections that pass-through may use are in use. */
enum hpx_next hpx_step_pass_refused(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1,
				       .detail = "All connections to the service that such requests "
						 "may use are in use. Nothing was sent." };

	hpx_observe_end(request);
	return hpx_respond_refuse(request, HPX_PROBLEM_overloaded, &refusal,
				  request->body.whole ? HPX_RESPOND_KEEP : HPX_RESPOND_CLOSE);
}

enum hpx_next hpx_step_pass(struct hpx_request *request)
{
	hpx_counter_add(&request->shard->meter.passed, 1);
	request->trace.decision = request->head.observed ? "observed" : "passed";
	if (hpx_forward_write_head(request, false) != HPX_OK)
		return no_memory(request);
	enum hpx_slot_kind kind = request->pass.tunnel == HPX_TUNNEL_ASKED ? HPX_SLOT_TUNNEL : HPX_SLOT_PASS;
	if (kind == HPX_SLOT_TUNNEL && !hpx_share_take_tunnel(request))
		return HPX_NEXT_PASS_REFUSED;
	if (hpx_queue_take(request, kind))
		return HPX_NEXT_PASS_ON;
	if (!hpx_queue_enter(request, kind, HPX_NEXT_PASS_ON, HPX_NEXT_PASS_REFUSED))
		return HPX_NEXT_PASS_REFUSED;
	return HPX_NEXT_WAIT;
}

enum hpx_next hpx_step_pass_on(struct hpx_request *request)
{
	HPX_ASSERT(request->attempt.slot.state == HPX_SLOT_HELD && request->attempt.exchange == NULL);
	struct hpx_exchange_request up = {
		.slot = &request->attempt.slot,
		.method = request->head.http.method,
		.head = hpx_buffer_span(&request->attempt.head),
		.body = hpx_buffer_span(&request->body.bytes),
		.streamed = !request->body.whole,
	};
	hpx_request_begin(request, &request->times.upstream);
	request->summary.did = HPX_DID_passed;
	hpx_request_hold(request);
	if (hpx_exchange_start(request->shard->upstream, &up, &events, request,
			       &request->attempt.exchange) != HPX_OK) {
		hpx_request_drop(request);
		return no_memory(request);
	}
	if (!request->body.whole)
		hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_BODY);
	return hpx_request_await(request, HPX_WAIT_PASS, NULL, HPX_WAIT_NO_DEADLINE, HPX_NEXT_DONE,
				 HPX_NEXT_DONE);
}
