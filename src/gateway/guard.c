/* The guarded path up to the reservation: the whole body, its fingerprint, a lookup
 * of the operation, and the durable reservation. No byte has left for the upstream
 * when the last step here ends (guarantee 1). */
#include "gateway/steps.h"

#include "base/log.h"
#include "base/status.h"
#include "core/json.h"
#include "core/number.h"
#include "gateway/webhook.h"
#include "http/field.h"
#include "http/retry_after.h"

/* Retry-After of an unknown outcome when the time of its next probe is not known. */
#define UNKNOWN_RETRY_AFTER_S 60

static enum hpx_next take_decision(struct hpx_request *request, const struct hpx_decision *decision);
static enum hpx_next tell_unknown(struct hpx_request *request);

/* ---- the answers in memory ---- */

void hpx_cached_mark(struct hpx_request *request)
{
	struct hpx_cache *cache = request->shard->service->cache;

	if (cache != NULL)
		request->reservation.cache_mark = hpx_cache_mark(cache);
}

void hpx_cached_keep(struct hpx_request *request, int64_t judged_ms,
		     const struct hpx_record *record, const struct hpx_answer *answer)
{
	struct hpx_cache *cache = request->shard->service->cache;
	struct hpx_cache_mark mark = request->reservation.cache_mark;

	if (cache == NULL)
		return;
	if (judged_ms != 0)
		mark.wall_ms = judged_ms;
	hpx_cache_put(cache, &mark, record, answer);
}

/* The decision, and the answer of a replay in request->reservation.stored. False: the
 * store must be asked, and the request is marked for its result. */
static bool find_cached(struct hpx_request *request, struct hpx_decision *ret_decision)
{
	struct hpx_cache *cache = request->shard->service->cache;
	struct hpx_meter *meter = &request->shard->meter;

	if (cache == NULL)
		return false;
	if (hpx_cache_peek(cache, &request->identity.ask, &request->head.route->policy, ret_decision,
			   &request->reservation.stored) == HPX_OK) {
		hpx_counter_add(&meter->cache_hits, 1);
		return true;
	}
	hpx_counter_add(&meter->cache_misses, 1);
	hpx_cached_mark(request);
	return false;
}

/* ---- the body ---- */

enum hpx_next hpx_step_body_too_large(struct hpx_request *request)
{
	if (request->head.webhook != NULL)
		hpx_webhook_count(request, HPX_WEBHOOK_too_large);
	return hpx_respond_refuse(request, HPX_PROBLEM_request_too_large, NULL, HPX_RESPOND_CLOSE);
}

enum hpx_next hpx_step_overloaded(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1 };

	return hpx_respond_refuse(request, HPX_PROBLEM_overloaded, &refusal, HPX_RESPOND_CLOSE);
}

static enum hpx_next after_body(const struct hpx_request *request)
{
	if (request->head.purpose == HPX_PURPOSE_WEBHOOK)
		return HPX_NEXT_WEBHOOK;
	/* The tenant comes behind the key: without one, the key was not looked for yet. */
	return request->body.before_key && request->identity.tenant.ptr == NULL ? HPX_NEXT_KEY_IN_BODY :
										  HPX_NEXT_FINGERPRINT;
}

enum hpx_next hpx_step_body(struct hpx_request *request)
{
	const struct hpx_http_head *head = &request->head.http;

	if (request->body.whole)
		return after_body(request);
	if (head->framing == HPX_FRAMING_LENGTH && head->content_length > request->body.bytes.max)
		return HPX_NEXT_BODY_TOO_LARGE;
	hpx_downstream_continue(request->downstream);
	hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_BODY);
	return hpx_request_await(request, HPX_WAIT_BODY, NULL, HPX_WAIT_NO_DEADLINE,
				 after_body(request), HPX_NEXT_READ_LATE);
}

/* A quarter of the memory for bodies is kept for answers: clients that send much must
 * not make answers get lost. There is always room for one request body. */
static size_t request_share(const struct hpx_settings *settings)
{
	size_t most = settings->bodies_bytes_max / 4 * 3;

	return most > settings->request_body_bytes_max ? most : settings->request_body_bytes_max;
}

/* Most requests are smaller. */
#define SMALL_BODY_BYTES ((size_t)16 * 1024)

static bool is_small(const struct hpx_request *request, size_t more)
{
	const struct hpx_http_head *head = &request->head.http;

	if (head->framing == HPX_FRAMING_LENGTH)
		return head->content_length <= SMALL_BODY_BYTES;
	return request->body.bytes.len + more <= SMALL_BODY_BYTES;
}

/* The last quarter of that is for small bodies: large ones of many addresses, none of
 * which has more than its share, must not keep everybody's payments out. */
static size_t share_of_size(const struct hpx_request *request, size_t more)
{
	size_t whole = request_share(request->settings);
	size_t large = whole - whole / 4;

	if (is_small(request, more))
		return whole;
	return large > request->settings->request_body_bytes_max ? large :
								   request->settings->request_body_bytes_max;
}

/* A piece of the body is charged when it comes, not when it is announced. */
static enum hpx_next take_body(struct hpx_request *request, struct hpx_span data)
{
	size_t whole = share_of_size(request, data.len);

	if (!hpx_share_take_body(request, data.len, whole) ||
	    !hpx_request_charge(request, data.len, whole))
		return HPX_NEXT_OVERLOADED;
	switch (hpx_buffer_append(&request->body.bytes, data)) {
	case HPX_OK:
		return HPX_NEXT_WAIT;
	case HPX_TOO_LARGE:
		return HPX_NEXT_BODY_TOO_LARGE;
	default:
		return HPX_NEXT_OVERLOADED;
	}
}

enum hpx_next hpx_step_body_malformed(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .detail = hpx_http_error_text(request->head.error) };

	return hpx_respond_refuse(request, HPX_PROBLEM_bad_request, &refusal, HPX_RESPOND_CLOSE);
}

void hpx_guard_take_body(struct hpx_request *request, struct hpx_span data)
{
	HPX_ASSERT(request->wait.kind == HPX_WAIT_BODY);
	enum hpx_next next = take_body(request, data);
	if (next == HPX_NEXT_WAIT && request->body.whole) {
		hpx_downstream_read(request->downstream, HPX_DOWNSTREAM_HOLD);
		next = request->wait.result;
	}
	if (next != HPX_NEXT_WAIT)
		hpx_request_go(request, next);
}

/* ---- the fingerprint and the lookup ---- */

/* From here on nothing but the forwarded request has the key itself. */
static enum hpx_status hash_key(struct hpx_request *request, struct hpx_span *key)
{
	char *text = hpx_arena_alloc(&request->arena, HPX_KEY_HASH_SIZE);
	enum hpx_status status = text != NULL ? hpx_key_hash_print(*key, text) : HPX_NOMEM;

	if (status == HPX_OK)
		*key = hpx_span_of(text);
	return status;
}

enum hpx_status hpx_guard_name(struct hpx_request *request)
{
	struct hpx_description *d = &request->identity.description;
	struct hpx_sha256 hash;

	if (d->key.ptr != NULL)
		return HPX_OK;
	d->tenant = request->identity.tenant;
	d->key = hpx_span(request->identity.key.bytes, request->identity.key.len);
	d->method = request->head.http.method;
	d->path = request->head.target.path;
	d->route = request->head.route->pattern;
	enum hpx_status status = hpx_scope_of(request->settings, request->head.route, d->method, d->path,
					      &request->arena, &d->scope);
	if (status == HPX_OK)
		status = hpx_operation_id(d->tenant, d->scope, d->key, &request->identity.ask.id);
	if (status == HPX_OK && request->head.route->key_storage == HPX_KEY_STORAGE_HASH)
		status = hash_key(request, &d->key);
	if (status == HPX_OK) {
		hpx_sha256_init(&hash);
		hpx_sha256_add(&hash, d->tenant);
		status = hpx_sha256_done(&hash, request->identity.ask.tenant);
	}
	if (status != HPX_OK)
		d->key = hpx_span(NULL, 0); /* it has no name yet */
	return status;
}

enum hpx_next hpx_step_fingerprint(struct hpx_request *request)
{
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(request->body.whole);
	if (request->identity.recipe_source != HPX_RECIPE_RECORD) {
		request->identity.recipe_source = HPX_RECIPE_ROUTE;
		request->identity.recipe = request->head.route->recipe;
		request->identity.ask.recipe = request->head.route->recipe_id;
		status = hpx_guard_name(request);
	}
	return status == HPX_OK ? hpx_fingerprint_make(request) : HPX_NEXT_OVERLOADED;
}

enum hpx_next hpx_step_store_unavailable(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1 };

	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_store_unavailable, &refusal,
				  HPX_RESPOND_KEEP);
}

enum hpx_next hpx_step_lookup(struct hpx_request *request)
{
	struct hpx_decision decision;

	if (request->shard->reader == NULL)
		return HPX_NEXT_STORE_UNAVAILABLE;
	/* The token is made before the store is asked anything. */
	if (hpx_token_is_void(&request->identity.ask.token))
		hpx_random_pool_take(&request->shard->random, request->identity.ask.token.bytes,
				     sizeof(request->identity.ask.token.bytes));
	request->identity.ask.owner = request->shard->service->store->owner;
	if (find_cached(request, &decision))
		return take_decision(request, &decision);
	switch (hpx_store_peek(request->shard->reader, &request->identity.ask, &request->head.route->policy,
			       &decision, &request->reservation.stored)) {
	case HPX_OK:
		hpx_cached_keep(request, 0, &decision.record, request->reservation.stored);
		return take_decision(request, &decision);
	case HPX_NOT_FOUND:
		return HPX_NEXT_SLOT;
	default:
		return HPX_NEXT_STORE_UNAVAILABLE;
	}
}

/* ---- the connection slot ---- */

/* 503: no connection slot. Nothing was reserved, so the same key may come again. */
static enum hpx_next refuse_overloaded(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1,
				       .detail = "All connections to the service are in use, and too "
						 "many requests wait for one. Nothing was sent." };

	return hpx_respond_refuse(request, HPX_PROBLEM_overloaded, &refusal, HPX_RESPOND_KEEP);
}

/* No slot came in time: the store is only asked what it knows. A replay is still
 * given; a request that would begin an attempt is refused. */
enum hpx_next hpx_step_no_slot(struct hpx_request *request)
{
	request->reservation.mode = HPX_RESERVE_ASK_WITHOUT_SLOT;
	return HPX_NEXT_RESERVE;
}

/* A connection slot, or a place in the queue for one, before anything is reserved. A
 * request that begins no exchange needs none: a waiter, and a request that is
 * delivered later. Where LOOKUP cannot ask the store (hpx_store_driver.peek is NULL),
 * a RESERVE with a slot tells everything; without a free slot the store is only asked
 * first, so that a replay never waits for a connection. */
enum hpx_next hpx_step_slot(struct hpx_request *request)
{
	enum hpx_reserve_mode *mode = &request->reservation.mode;

	if (!request->wait.waited && !hpx_limit_new_keys(request) &&
	    hpx_store_can(request->shard->service->store, HPX_STORE_LOCAL))
		return hpx_limit_refuse(request, &request->identity.new_refused.limit, "no");
	if (request->identity.new_refused.detail != NULL)
		*mode = HPX_RESERVE_ASK_REFUSED;
	if (request->wait.waited || hpx_async_is(request) || *mode == HPX_RESERVE_ASK_REFUSED)
		return HPX_NEXT_RESERVE;
	HPX_ASSERT(*mode == HPX_RESERVE_BEGIN || *mode == HPX_RESERVE_BEGIN_ASKED);
	if (hpx_queue_take(request, HPX_SLOT_GUARDED))
		return HPX_NEXT_RESERVE;
	if (*mode == HPX_RESERVE_BEGIN && !hpx_store_can(request->shard->service->store, HPX_STORE_LOCAL)) {
		*mode = HPX_RESERVE_ASK_BEFORE_QUEUE;
		return HPX_NEXT_RESERVE;
	}
	if (hpx_queue_enter(request, HPX_SLOT_GUARDED, HPX_NEXT_RESERVE, HPX_NEXT_NO_SLOT))
		return HPX_NEXT_WAIT;
	return *mode == HPX_RESERVE_BEGIN_ASKED ? refuse_overloaded(request) : HPX_NEXT_NO_SLOT;
}

/* Whether a RESERVE may begin no attempt. */
static bool only_asks(const struct hpx_request *request)
{
	enum hpx_reserve_mode mode = request->reservation.mode;

	/* A waiter never becomes the executor. */
	return request->wait.waited || mode == HPX_RESERVE_ASK_BEFORE_QUEUE ||
	       mode == HPX_RESERVE_ASK_WITHOUT_SLOT || mode == HPX_RESERVE_ASK_REFUSED;
}

/* ---- the reservation ---- */

/* The reservation is, or may be, in the store, and its request was refused:
 * it is failed as not executed, in the background. */
static void undo(struct hpx_request *request)
{
	request->attempt.outcome = HPX_OUTCOME_NOT_EXECUTED;
	hpx_settle_undo(request);
}

/* The operation and its job may be durable, and then they are delivered. That cannot
 * be undone, because the job may be under way already. A retry with the same key
 * finds out. */
static enum hpx_next accepted_in_doubt(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 1,
				       .executed = "unknown",
				       .detail = "Whether this request was accepted is not known: "
						 "the key store did not say so in time. Send it "
						 "again with the same key: it is delivered once." };

	hpx_counter_add(&request->shard->meter.async[HPX_ASYNC_in_doubt], 1);
	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_store_unavailable, &refusal,
				  HPX_RESPOND_KEEP);
}

/* Whether the store may hold a reservation although it did not say so
 * (committer.h lists what it says when nothing was written). */
static bool may_be_durable(enum hpx_status status)
{
	return status != HPX_UNAVAILABLE && status != HPX_CLOSED && status != HPX_MISUSE &&
	       status != HPX_FULL && status != HPX_NOT_FOUND;
}

/* The request waited for the end of another one, and that is gone: there is nothing
 * left to wait for. */
static enum hpx_next wait_vanished(struct hpx_request *request)
{
	if (request->reservation.record.state == HPX_STATE_PENDING)
		request->reservation.record.state = HPX_STATE_NONE;
	return HPX_NEXT_WAIT_OVER;
}

/* The store was only asked, and the request would begin an attempt. */
static enum hpx_next would_begin(struct hpx_request *request)
{
	if (request->wait.waited)
		return wait_vanished(request);
	if (request->reservation.mode == HPX_RESERVE_ASK_WITHOUT_SLOT)
		return refuse_overloaded(request);
	if (request->reservation.mode == HPX_RESERVE_ASK_REFUSED &&
	    request->identity.new_refused.limit.wait_us > 0)
		return hpx_limit_refuse(request, &request->identity.new_refused.limit, "no");
	if (request->reservation.mode == HPX_RESERVE_ASK_REFUSED)
		return hpx_respond_problem(request, request->identity.new_refused.code,
					   request->identity.new_refused.detail);
	request->reservation.mode = HPX_RESERVE_BEGIN_ASKED;
	return HPX_NEXT_SLOT;
}

/* The RESERVE began an attempt: it is durable. */
static bool has_begun(const struct hpx_store_op *op)
{
	return op->status == HPX_OK && (op->decision.kind == HPX_DECISION_EXECUTE ||
					op->decision.kind == HPX_DECISION_EXECUTE_AGAIN);
}

/* The RESERVE began an attempt, or may have, and nobody said so. */
static bool may_have_begun(const struct hpx_store_op *op)
{
	return has_begun(op) || (op->status != HPX_OK && !op->reserve.look && may_be_durable(op->status));
}

/* The store did not decide: nothing is executed now. */
static enum hpx_next not_reserved(struct hpx_request *request, bool durable)
{
	if (durable && hpx_async_is(request)) {
		hpx_async_wake(request->shard->gateway);
		return accepted_in_doubt(request);
	}
	if (durable)
		undo(request);
	return HPX_NEXT_STORE_UNAVAILABLE;
}

/* The retry found a lost lease before the sweeper did. */
static void note_lost(struct hpx_request *request, const struct hpx_record *record)
{
	struct hpx_touched touched = { .id = record->id, .state = record->state };

	hpx_counter_add(&request->shard->service->counters.leases_lost, 1);
	hpx_service_log_lost(HPX_VERB_SWEEP, &touched);
}

enum hpx_next hpx_step_reserved(struct hpx_request *request)
{
	const struct hpx_store_op *op = &request->reservation.op;

	HPX_ASSERT(op->verb == HPX_VERB_RESERVE && request->reservation.stored == NULL);
	hpx_request_end(request, &request->times.reserve);
	if (!has_begun(op))
		hpx_queue_leave(request);
	if (op->status == HPX_NOT_FOUND && op->reserve.look)
		return would_begin(request);
	if (op->status == HPX_OK) {
		request->reservation.stored = op->reserve.replay;
		request->reservation.row = op->reserve.row;
		hpx_cached_keep(request, op->judged_ms, &op->decision.record, op->reserve.replay);
		HPX_CRASH_POINT(reserve_done);
		if (op->decision.lost)
			note_lost(request, &op->decision.record);
		return take_decision(request, &op->decision);
	}
	hpx_answer_free(op->reserve.replay);
	return not_reserved(request, may_have_begun(op));
}

void hpx_guard_late(struct hpx_request *request)
{
	const struct hpx_store_op *op = &request->reservation.op;

	hpx_answer_free(op->reserve.replay);
	if (!may_have_begun(op))
		return;
	if (hpx_async_is(request))
		hpx_async_wake(request->shard->gateway);
	else
		undo(request);
}

/* A request that can never be a job is refused before anything is reserved. */
static enum hpx_next refuse_job(struct hpx_request *request, const char *reason)
{
	struct hpx_refusal refusal = { .detail = reason };

	if (reason == NULL)
		return HPX_NEXT_OVERLOADED;
	return hpx_respond_refuse(request, HPX_PROBLEM_bad_request, &refusal, HPX_RESPOND_KEEP);
}

/* The amount of the request, for whoever finds it by its key; empty where there is none. */
static struct hpx_span amount_of(struct hpx_request *request)
{
	struct hpx_span pointer = request->head.route->amount_request;
	struct hpx_json_scalar scalar;

	if (pointer.ptr == NULL ||
	    hpx_json_lookup(hpx_buffer_span(&request->body.bytes), pointer, HPX_ROUTE_KEY_AMOUNT_MAX,
			    &request->arena, &scalar) != HPX_OK ||
	    (scalar.kind != HPX_JSON_STRING && scalar.kind != HPX_JSON_NUMBER) ||
	    !hpx_amount_eq(scalar.text, scalar.text))
		return HPX_SPAN("");
	return scalar.text;
}

static enum hpx_status make_route_key(struct hpx_request *request)
{
	struct hpx_route_key *key = &request->reservation.route_key;

	key->amount = amount_of(request);
	return hpx_route_key_hash(request->settings->upstream_name, request->head.route->pattern,
				  hpx_span(request->identity.key.bytes, request->identity.key.len), key->hash);
}

enum hpx_next hpx_step_reserve(struct hpx_request *request)
{
	bool keyed = request->head.route->matched_by_key && !only_asks(request);
	struct hpx_store_op *op = &request->reservation.op;
	const char *reason = NULL;

	HPX_ASSERT(!hpx_token_is_void(&request->identity.ask.token));
	if (hpx_async_is(request) && hpx_async_make_job(request, &reason) != HPX_OK)
		return refuse_job(request, reason);
	if (keyed && make_route_key(request) != HPX_OK)
		return HPX_NEXT_OVERLOADED;
	/* Not ahead of the clock: too early errs towards not sending. */
	hpx_request_begin(request, &request->times.reserve);
	request->reservation.asked_boot_ms = request->times.reserve.from_us / 1000;
	*op = (struct hpx_store_op){
		.verb = HPX_VERB_RESERVE,
		.id = request->identity.ask.id,
		.token = request->identity.ask.token,
		.reserve.ask = &request->identity.ask,
		.reserve.policy = &request->head.route->policy,
		.reserve.description = &request->identity.description,
		.reserve.job = hpx_async_is(request) ? &request->reservation.job : NULL,
		.reserve.route_key = keyed ? &request->reservation.route_key : NULL,
		.reserve.look = only_asks(request),
		.actor = HPX_SPAN("gateway"),
	};
	HPX_CRASH_POINT(reserve_submitted);
	return hpx_request_submit(request, HPX_WAIT_RESERVE, HPX_NEXT_RESERVED, HPX_NEXT_RESERVE_LATE);
}

/* The client is told 503. If the reservation turns out to be durable, hpx_guard_late
 * undoes it. */
enum hpx_next hpx_step_reserve_late(struct hpx_request *request)
{
	hpx_request_end(request, &request->times.reserve);
	hpx_queue_leave(request);
	if (hpx_async_is(request) && !request->reservation.op.reserve.look)
		return accepted_in_doubt(request);
	return HPX_NEXT_STORE_UNAVAILABLE;
}

/* ---- the decision ---- */

/* The record was made by another recipe than the route has now: the retry is
 * fingerprinted by the record's recipe. */
static enum hpx_next by_records_recipe(struct hpx_request *request,
				       const struct hpx_decision *decision)
{
	struct hpx_span text;
	struct hpx_recipe_id wanted = decision->record.recipe;
	bool again = request->identity.recipe_source == HPX_RECIPE_RECORD;
	enum hpx_status status = again ? HPX_CORRUPT : HPX_OK;

	if (status == HPX_OK)
		status = hpx_store_recipe(request->shard->reader, &wanted, &request->arena, &text);
	if (status == HPX_OK)
		status = hpx_recipe_parse(text, &request->arena, &request->identity.recipe);
	if (status == HPX_OK) {
		request->identity.ask.recipe = wanted;
		request->identity.recipe.id = &request->identity.ask.recipe;
		request->identity.recipe_source = HPX_RECIPE_RECORD;
		request->reservation.mode = HPX_RESERVE_BEGIN;
		return HPX_NEXT_FINGERPRINT;
	}
	if (status == HPX_IO || status == HPX_UNAVAILABLE)
		return HPX_NEXT_STORE_UNAVAILABLE;
	/* A recipe that cannot be read: the record cannot be compared, so
	 * nobody knows whether this is the same request. */
	hpx_log(HPX_LOG_ERROR, "recipe_unreadable", "problem=%s", hpx_status_name(status));
	return tell_unknown(request);
}

static enum hpx_next refuse_unknown(struct hpx_request *request, unsigned retry_after_s)
{
	struct hpx_refusal refusal = { .retry_after_s = retry_after_s };

	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_outcome_unknown, &refusal,
				  HPX_RESPOND_KEEP);
}

enum hpx_next hpx_step_unknown_late(struct hpx_request *request)
{
	return refuse_unknown(request, UNKNOWN_RETRY_AFTER_S);
}

unsigned hpx_guard_until_s(int64_t at_ms, int64_t now_ms)
{
	if (at_ms == 0)
		return UNKNOWN_RETRY_AFTER_S;
	int64_t seconds = at_ms > now_ms ? (at_ms - now_ms + 999) / 1000 : 1;
	return seconds < HPX_RETRY_AFTER_MAX_S ? (unsigned)seconds : HPX_RETRY_AFTER_MAX_S;
}

enum hpx_next hpx_step_unknown_told(struct hpx_request *request)
{
	const struct hpx_store_query *query = &request->wait.query;
	bool known = query->status == HPX_OK && !query->question.person;

	return refuse_unknown(request, hpx_guard_until_s(known ? query->question.at_ms : 0,
							 hpx_clock_wall_ms()));
}

/* 409 idempotency_outcome_unknown, with the time of the next probe. */
static enum hpx_next tell_unknown(struct hpx_request *request)
{
	request->wait.query = (struct hpx_store_query){ .wants_question = true, .id = request->identity.ask.id };
	return hpx_request_query(request, HPX_NEXT_UNKNOWN_TOLD, HPX_NEXT_UNKNOWN_LATE);
}

static enum hpx_next mismatch(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .status = request->settings->mismatch_status };

	hpx_observe_misuse(request);
	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_key_reused, &refusal, HPX_RESPOND_KEEP);
}

/* It happened, and is not executed again. */
static enum hpx_next refuse_expired(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .original_status = request->reservation.record.status };

	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_key_expired, &refusal,
				  HPX_RESPOND_KEEP);
}

/* The key's operation happened before, and nobody can tell whether this is a late retry. */
static void note_after_expiry(struct hpx_request *request)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&request->identity.ask.id, &request->reservation.record.mark, reference);
	hpx_log(HPX_LOG_WARN, "executed_after_expiry",
		"operation=%s route=\"%.*s\" reason=\"the key had been executed and has expired; "
		"expired: refuse would answer 410\"",
		reference, HPX_SPAN_ARG(request->identity.description.route));
}

static struct hpx_span stored_location(const struct hpx_answer *stored)
{
	struct hpx_field_line line;

	return stored != NULL && hpx_field_line_find(stored->headers, HPX_SPAN("Location"), &line) ?
		       line.value :
		       (struct hpx_span){ NULL, 0 };
}

enum hpx_next hpx_guard_replay(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .original_status = request->reservation.record.status,
				       .location = stored_location(request->reservation.stored) };

	HPX_ASSERT(request->reservation.record.state == HPX_STATE_COMPLETED);
	if (request->reservation.record.kept && request->reservation.stored != NULL)
		return hpx_respond_replay(request);
	return hpx_respond_refuse(request, HPX_PROBLEM_response_not_kept, &refusal, HPX_RESPOND_KEEP);
}

/* What a retry that is refused without its answer may know: `unknown` while the first
 * request is under way or nobody knows. */
static const char *executed_of(enum hpx_decision_kind kind)
{
	if (kind == HPX_DECISION_REPLAY || kind == HPX_DECISION_EXPIRED)
		return "yes";
	return kind == HPX_DECISION_MISMATCH ? "no" : "unknown";
}

/* What the decision means for this request. */
static enum hpx_next take_decision(struct hpx_request *request, const struct hpx_decision *decision)
{
	struct hpx_limit_met met;
	struct hpx_meter *meter = &request->shard->meter;
	bool executes = decision->kind == HPX_DECISION_EXECUTE ||
			decision->kind == HPX_DECISION_EXECUTE_AGAIN;

	if (decision->kind == HPX_DECISION_REFINGERPRINT)
		return by_records_recipe(request, decision);
	request->reservation.record = decision->record;
	request->trace.decision = hpx_decision_name(decision->kind);
	if (!request->wait.waited) {
		hpx_counter_add(decision->after_expiry ? &meter->after_expiry :
							 &meter->reserved[decision->kind],
				1);
		if (!executes)
			hpx_meter_duplicate(meter, request->identity.tenant,
					    decision->kind == HPX_DECISION_MISMATCH);
	}
	if (decision->kind == HPX_DECISION_EXECUTE)
		hpx_observe_tenant_change(request);
	if (decision->after_expiry)
		note_after_expiry(request);
	if (!executes && !request->wait.waited && !hpx_limit_replays(request, &met))
		return hpx_limit_refuse(request, &met, executed_of(decision->kind));
	switch (decision->kind) {
	case HPX_DECISION_EXECUTE:
	case HPX_DECISION_EXECUTE_AGAIN:
		return hpx_async_is(request) ? hpx_async_accepted(request) : HPX_NEXT_FORWARD;
	case HPX_DECISION_PENDING:
		return hpx_async_pending(request);
	case HPX_DECISION_REPLAY:
		return hpx_guard_replay(request);
	case HPX_DECISION_IN_PROGRESS:
		return hpx_wait_or_refuse(request);
	case HPX_DECISION_MISMATCH:
		return mismatch(request);
	case HPX_DECISION_EXPIRED:
		return refuse_expired(request);
	default:
		return tell_unknown(request);
	}
}
