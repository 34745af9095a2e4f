/* A webhook's message, from its body to its answer: its signature, the operation or
 * job that it names, its ruling, and what the store makes of that. */
#include "gateway/webhook.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "core/json.h"
#include "core/number.h"
#include "core/pacing.h"
#include "gateway/steps.h"
#include "http/field.h"

/* An operation that is delivered later has one job; others may have several. */
#define JOBS_MAX 16

struct webhook_state {
	pthread_mutex_t lock;
	struct hpx_bucket bucket;
	struct hpx_counter results[HPX_WEBHOOK_COUNT];
};

struct hpx_webhook_states {
	size_t count;
	struct webhook_state of[];
};

const char *hpx_webhook_result_name(enum hpx_webhook_result result)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_WEBHOOK_LIST(X)
#undef X
	};
	return names[result];
}

struct hpx_webhook_states *hpx_webhook_states_new(size_t count)
{
	struct hpx_webhook_states *states = calloc(1, sizeof(*states) + count * sizeof(states->of[0]));

	if (states == NULL)
		return NULL;
	for (; states->count < count; states->count++) {
		if (pthread_mutex_init(&states->of[states->count].lock, NULL) != 0) {
			hpx_webhook_states_free(states);
			return NULL;
		}
	}
	return states;
}

void hpx_webhook_states_free(struct hpx_webhook_states *states)
{
	for (size_t i = 0; states != NULL && i < states->count; i++)
		pthread_mutex_destroy(&states->of[i].lock);
	free(states);
}

uint64_t hpx_webhook_states_count(const struct hpx_webhook_states *states, size_t place,
				  enum hpx_webhook_result result)
{
	return place < states->count ? hpx_counter_read(&states->of[place].results[result]) : 0;
}

/* A reload does not change webhooks, so an index stays valid. */
static struct webhook_state *state_of(struct hpx_request *request)
{
	size_t place = (size_t)(request->head.webhook - request->settings->webhooks);

	HPX_ASSERT(place < request->shard->gateway->webhooks->count);
	return &request->shard->gateway->webhooks->of[place];
}

void hpx_webhook_count(struct hpx_request *request, enum hpx_webhook_result result)
{
	hpx_counter_add(&state_of(request)->results[result], 1);
}

bool hpx_webhook_find(struct hpx_request *request, struct hpx_span name)
{
	const struct hpx_settings *settings = request->settings;
	size_t known = request->shard->gateway->webhooks->count;

	for (size_t i = 0; i < settings->webhook_count && i < known; i++) {
		if (!hpx_span_eq(settings->webhooks[i].name, name))
			continue;
		request->head.webhook = &settings->webhooks[i];
		request->head.purpose = HPX_PURPOSE_WEBHOOK;
		request->body.bytes.max = request->head.webhook->body_bytes_max;
		return true;
	}
	return false;
}

/* ---- answers ---- */

static enum hpx_next answer(struct hpx_request *request, enum hpx_webhook_result result)
{
	struct hpx_span body = hpx_arena_printf(&request->arena, "{\"result\":\"%s\"}\n",
						hpx_webhook_result_name(result));

	hpx_webhook_count(request, result);
	return hpx_respond_direct(request, 200, HPX_SPAN("application/json"), (struct hpx_span){ "", 0 },
				  body.ptr != NULL ? body : HPX_SPAN("{}\n"));
}

/* The sender tries again later. */
enum hpx_next hpx_step_webhook_late(struct hpx_request *request)
{
	struct hpx_refusal refusal = { .retry_after_s = 5 };

	hpx_webhook_count(request, HPX_WEBHOOK_unavailable);
	return hpx_respond_refuse(request, HPX_PROBLEM_idempotency_store_unavailable, &refusal,
				  HPX_RESPOND_KEEP);
}

/* ---- who sent it ---- */

static struct hpx_span header(void *user, struct hpx_span name)
{
	struct hpx_request *request = user;
	return hpx_field_combined(&request->head.http, name, &request->arena);
}

static struct hpx_signature_message message_of(struct hpx_request *request)
{
	return (struct hpx_signature_message){ .body = hpx_buffer_span(&request->body.bytes),
					       .header = header,
					       .user = request };
}

static enum hpx_next unverified(struct hpx_request *request, enum hpx_signature signature)
{
	static const enum hpx_webhook_result results[] = {
		[HPX_SIGNATURE_MISSING] = HPX_WEBHOOK_missing,
		[HPX_SIGNATURE_MALFORMED] = HPX_WEBHOOK_malformed,
		[HPX_SIGNATURE_TOO_OLD] = HPX_WEBHOOK_too_old,
		[HPX_SIGNATURE_WRONG] = HPX_WEBHOOK_wrong,
	};

	if (signature == HPX_SIGNATURE_UNCHECKED)
		return HPX_NEXT_WEBHOOK_LATE;
	hpx_webhook_count(request, results[signature]);
	return hpx_respond_refuse(request, HPX_PROBLEM_webhook_unverified, NULL, HPX_RESPOND_KEEP);
}

/* Only signed messages count: a stranger cannot use up a sender's rate. */
static bool is_within_rate(struct hpx_request *request, int64_t *ret_wait_ms)
{
	struct webhook_state *state = state_of(request);
	bool within;

	pthread_mutex_lock(&state->lock);
	within = hpx_bucket_take(&state->bucket, request->head.webhook->per_second, hpx_clock_boot_ms(),
				 ret_wait_ms);
	pthread_mutex_unlock(&state->lock);
	return within;
}

static enum hpx_next too_many(struct hpx_request *request, int64_t wait_ms)
{
	struct hpx_refusal refusal = { .retry_after_s = (unsigned)((wait_ms + 999) / 1000) };

	hpx_webhook_count(request, HPX_WEBHOOK_rate_limited);
	return hpx_respond_refuse(request, HPX_PROBLEM_rate_limited, &refusal, HPX_RESPOND_KEEP);
}

/* ---- what the store makes of it ---- */

enum hpx_webhook_result hpx_webhook_result_of(enum hpx_reconcile_move move, enum hpx_ruling ruling,
					      bool unknown, bool under_way)
{
	bool settles = ruling == HPX_RULING_APPLIED || ruling == HPX_RULING_DECLINED;

	switch (move) {
	case HPX_RECONCILE_SETTLE_APPLIED:
	case HPX_RECONCILE_SETTLE_DECLINED:
	case HPX_RECONCILE_SETTLE_NOT_APPLIED:
		return HPX_WEBHOOK_settled;
	default:
		return unknown || (under_way && settles) ? HPX_WEBHOOK_kept : HPX_WEBHOOK_ignored;
	}
}

/* From the operation as it is after the ruling; where nothing settled it, that is how
 * it was before. For a job that does not answer for its operation, only the state
 * that the query before has found is known. */
static enum hpx_webhook_result result_of(const struct hpx_request *request)
{
	const struct hpx_ruling_update *ruling = &request->webhook.ruling;
	enum hpx_state state = request->reservation.op.decision.record.state;
	bool unknown = state == HPX_STATE_UNKNOWN;
	bool under_way = state == HPX_STATE_PENDING || state == HPX_STATE_IN_PROGRESS;

	if (ruling->number != 0) {
		unknown = request->webhook.job_state == HPX_JOB_UNKNOWN;
		under_way = request->webhook.job_state == HPX_JOB_QUEUED ||
			    request->webhook.job_state == HPX_JOB_SENDING;
	}
	return hpx_webhook_result_of(ruling->move, ruling->received.ruling, unknown, under_way);
}

static void log_result(const struct hpx_request *request, enum hpx_webhook_result result)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&request->reservation.op.id, &request->reservation.op.mark, reference);
	hpx_log(HPX_LOG_INFO, "webhook", "webhook=%.*s operation=%s job=%lld says=%s result=%s",
		HPX_SPAN_ARG(request->head.webhook->name), reference,
		(long long)request->webhook.ruling.number,
		hpx_ruling_name(request->webhook.ruling.received.ruling), hpx_webhook_result_name(result));
}

enum hpx_next hpx_step_webhook_ruled(struct hpx_request *request)
{
	HPX_ASSERT(request->reservation.op.verb == HPX_VERB_RULE);
	switch (request->reservation.op.status) {
	case HPX_OK:
		break;
	case HPX_NOT_FOUND:
	case HPX_STALE:
	case HPX_REFUSED:
	case HPX_CORRUPT: /* a person looks at it anyway */
		return answer(request, HPX_WEBHOOK_ignored);
	default:
		return HPX_NEXT_WEBHOOK_LATE;
	}
	enum hpx_webhook_result result = result_of(request);
	log_result(request, result);
	/* A job that did not happen is sent again. */
	if (request->webhook.ruling.move == HPX_RECONCILE_SETTLE_NOT_APPLIED)
		hpx_async_wake(request->shard->gateway);
	return answer(request, result);
}

/* What retries get of a request that was applied; NULL where the message gives none. */
static const struct hpx_answer *reconstruct(struct hpx_request *request)
{
	const struct hpx_answer_rule *rule = &request->head.webhook->answer;
	struct hpx_provider_object object = {
		.text = hpx_buffer_span(&request->body.bytes),
		.content_type = hpx_field_value(&request->head.http, HPX_SPAN("Content-Type")),
	};
	struct hpx_request_answer *made = &request->answer;

	if (rule->status == 0 || request->webhook.ruling.received.ruling != HPX_RULING_APPLIED)
		return NULL;
	enum hpx_status status = hpx_reconstruct(rule, &object, &made->kept_head, &made->body);
	if (status != HPX_OK) {
		hpx_log(HPX_LOG_WARN, "answer_not_reconstructed", "webhook=%.*s problem=%s",
			HPX_SPAN_ARG(request->head.webhook->name), hpx_status_name(status));
		return NULL;
	}
	made->to_store = (struct hpx_answer){ .status = rule->status,
					      .kept = true,
					      .headers = hpx_buffer_span(&made->kept_head),
					      .body = hpx_buffer_span(&made->body) };
	return &made->to_store;
}

/* Two messages that say "not applied" must be as far apart as the slowest original
 * request may take. A sender that signs anew when it sends again then counts as one
 * that still says so, after everything that could have changed it. */
static enum hpx_next submit(struct hpx_request *request, const struct hpx_operation_id *id,
			    const struct hpx_mark *mark)
{
	const struct hpx_webhook *webhook = request->head.webhook;

	request->webhook.ruling.rule = (struct hpx_reconcile_rule){
		.settle_after_ms = webhook->settle_after_ms,
		.confirm_after_ms = webhook->settle_after_ms,
	};
	request->webhook.ruling.answer = reconstruct(request);
	request->reservation.op = (struct hpx_store_op){
		.verb = HPX_VERB_RULE,
		.id = *id,
		.mark = *mark,
		.rule.update = &request->webhook.ruling,
		.actor = HPX_SPAN("webhook"),
		.reason = hpx_arena_printf(&request->arena, "webhook %.*s: %s",
					   HPX_SPAN_ARG(webhook->name),
					   hpx_ruling_name(request->webhook.ruling.received.ruling)),
	};
	return hpx_request_submit(request, HPX_WAIT_QUERY, HPX_NEXT_WEBHOOK_RULED, HPX_NEXT_WEBHOOK_LATE);
}

/* ---- whom it is about ---- */

/* An operation that is delivered later is settled through its job, whose state it
 * follows; every other operation directly. */
static enum hpx_next rule_operation(struct hpx_request *request)
{
	for (const struct hpx_job_entry *e = request->wait.query.jobs; e != NULL; e = e->next) {
		if (!e->delivery.answers ||
		    !hpx_mark_eq(&e->delivery.mark, &request->identity.sought))
			continue;
		request->webhook.ruling.number = e->delivery.number;
		request->webhook.job_state = e->delivery.state;
	}
	return submit(request, &request->identity.ask.id, &request->identity.sought);
}

/* The job that is meant, of a target's jobs. A provider's id, or a reference, that
 * two jobs share names neither. */
static const struct hpx_job_entry *find_only(const struct hpx_request *request)
{
	bool by_reference = request->wait.query.query.operation != NULL;
	const struct hpx_job_entry *only = NULL;

	for (const struct hpx_job_entry *e = request->wait.query.jobs; e != NULL; e = e->next) {
		if (by_reference && !hpx_mark_eq(&e->delivery.mark, &request->identity.sought))
			continue;
		if (only != NULL)
			return NULL;
		only = e;
	}
	return only;
}

static enum hpx_next rule_job(struct hpx_request *request)
{
	const struct hpx_job_entry *only = find_only(request);
	const struct hpx_store_query *query = &request->wait.query;

	/* An application's operation, which no job has: rule_operation's kind. An id that
	 * names several names none. */
	if (query->jobs == NULL && query->provided_count == 1)
		return submit(request, &query->provided[0].id, &query->provided[0].mark);
	if (only == NULL || query->provided_count > 0)
		return answer(request, HPX_WEBHOOK_ignored);
	request->webhook.ruling.number = only->delivery.number;
	request->webhook.job_state = only->delivery.state;
	struct hpx_operation_id id = only->delivery.operation;
	struct hpx_mark mark = only->delivery.mark;
	return submit(request, &id, &mark);
}

enum hpx_next hpx_step_webhook_jobs(struct hpx_request *request)
{
	const struct hpx_store_query *query = &request->wait.query;

	if (query->status != HPX_OK)
		return HPX_NEXT_WEBHOOK_LATE;
	if (query->query.operation != NULL && request->head.webhook->target.ptr == NULL)
		return rule_operation(request);
	return rule_job(request);
}

/* The text or number at one of the webhook's pointers; ptr is NULL where there is
 * none. null counts as absent. */
static struct hpx_span text_at(struct hpx_request *request, struct hpx_span pointer,
			       size_t text_max)
{
	struct hpx_json_scalar scalar;

	if (pointer.ptr == NULL ||
	    hpx_json_lookup(hpx_buffer_span(&request->body.bytes), pointer, text_max, &request->arena,
			    &scalar) != HPX_OK)
		return (struct hpx_span){ NULL, 0 };
	bool names = scalar.kind == HPX_JSON_STRING || scalar.kind == HPX_JSON_NUMBER;
	return names && scalar.text.len > 0 ? scalar.text : (struct hpx_span){ NULL, 0 };
}

/* ---- by the client's key ---- */

static enum hpx_next leave(struct hpx_request *request, enum hpx_webhook_result result,
			   const char *reason)
{
	hpx_log(HPX_LOG_WARN, "webhook_not_matched", "webhook=%.*s route=\"%.*s\" result=%s reason=\"%s\"",
		HPX_SPAN_ARG(request->head.webhook->name), HPX_SPAN_ARG(request->head.webhook->route),
		hpx_webhook_result_name(result), reason);
	return answer(request, result);
}

static bool amount_agrees(struct hpx_request *request, const struct hpx_key_match *match)
{
	struct hpx_span pointer = request->head.webhook->amount;
	struct hpx_span amount = text_at(request, pointer, HPX_ROUTE_KEY_AMOUNT_MAX);

	return pointer.ptr == NULL ||
	       (amount.ptr != NULL && hpx_amount_eq(amount, hpx_span_of(match->amount)));
}

static enum hpx_next find_jobs_of(struct hpx_request *request, const struct hpx_job_query *query,
				  bool wants_provided)
{
	request->wait.query = (struct hpx_store_query){
		.wants_jobs = true,
		.wants_provided = wants_provided,
		.query = *query,
	};
	return hpx_request_query(request, HPX_NEXT_WEBHOOK_JOBS, HPX_NEXT_WEBHOOK_LATE);
}

enum hpx_next hpx_step_webhook_keyed(struct hpx_request *request)
{
	const struct hpx_key_matches *keyed = &request->wait.query.keyed;
	struct hpx_key_match only = keyed->of[0];
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .limit = JOBS_MAX };

	if (request->wait.query.status != HPX_OK)
		return HPX_NEXT_WEBHOOK_LATE;
	if (keyed->count > 1)
		return leave(request, HPX_WEBHOOK_ambiguous, "several operations of the route have the key");
	if (keyed->hidden)
		return leave(request, HPX_WEBHOOK_ambiguous,
			     "operations may live that began before the route was matched by key");
	if (keyed->count == 0)
		return answer(request, HPX_WEBHOOK_ignored);
	if (!amount_agrees(request, &only))
		return leave(request, HPX_WEBHOOK_amount_differs,
			     "the amount is not that of the request, or one of both has none");
	request->identity.ask.id = only.reference.id;
	request->identity.sought = only.reference.mark;
	query.operation = &request->identity.ask.id;
	return find_jobs_of(request, &query, false);
}

static enum hpx_next find_keyed(struct hpx_request *request, struct hpx_span key)
{
	const struct hpx_settings *settings = request->settings;
	const struct hpx_route *route = hpx_settings_find_route(settings, request->head.webhook->route);
	struct hpx_store_query *query = &request->wait.query;

	/* A reload can take the route away. */
	if (route == NULL || !route->matched_by_key)
		return leave(request, HPX_WEBHOOK_ambiguous, "the route is not configured any more");
	*query = (struct hpx_store_query){
		.wants_keyed = true,
		.key = { .upstream = settings->upstream_name,
			 .route = route->pattern,
			 .retention_ms = route->policy.retention_ms },
	};
	if (hpx_route_key_hash(settings->upstream_name, route->pattern, key, query->key.hash) != HPX_OK)
		return HPX_NEXT_WEBHOOK_LATE;
	return hpx_request_query(request, HPX_NEXT_WEBHOOK_KEYED, HPX_NEXT_WEBHOOK_LATE);
}

static enum hpx_next find_jobs(struct hpx_request *request)
{
	const struct hpx_webhook *webhook = request->head.webhook;
	struct hpx_span reference = text_at(request, webhook->operation, HPX_REFERENCE_LEN);
	struct hpx_span id = text_at(request, webhook->provider_id, HPX_PROVIDER_ID_SIZE - 1);
	struct hpx_span key = text_at(request, webhook->key, HPX_KEY_MAX);
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .target = webhook->target, .limit = JOBS_MAX };

	if (reference.ptr != NULL &&
	    hpx_reference_parse(reference, &request->identity.ask.id, &request->identity.sought))
		query.operation = &request->identity.ask.id;
	else if (reference.ptr == NULL && id.ptr != NULL)
		query.provider_id = id;
	else if (reference.ptr == NULL && key.ptr != NULL)
		return find_keyed(request, key);
	else
		return answer(request, HPX_WEBHOOK_ignored);
	return find_jobs_of(request, &query, query.provider_id.ptr != NULL && webhook->target.ptr == NULL);
}

enum hpx_next hpx_step_webhook(struct hpx_request *request)
{
	const struct hpx_webhook *webhook = request->head.webhook;
	const struct hpx_gateway *gateway = request->shard->gateway;
	struct hpx_signature_message message = message_of(request);
	enum hpx_signature signature =
		hpx_signature_check(&webhook->signature, &message, hpx_clock_wall_ms());
	struct hpx_received_ruling *received = &request->webhook.ruling.received;
	int64_t wait_ms = 0;

	HPX_ASSERT(request->body.whole && request->head.purpose == HPX_PURPOSE_WEBHOOK);
	if (signature != HPX_SIGNATURE_OK)
		return unverified(request, signature);
	if (!is_within_rate(request, &wait_ms))
		return too_many(request, wait_ms);
	/* While the store is down nothing is left lying for it: the sender is
	 * the one who keeps it. */
	if (gateway->service->committer == NULL || !hpx_committer_healthy(gateway->service->committer))
		return HPX_NEXT_WEBHOOK_LATE;
	/* Without a time, 0: a "not applied" then never counts. */
	received->about_ms = hpx_signature_time(&webhook->signature, &message);
	if (hpx_ruling_of_body(&webhook->mapping, message.body, &received->ruling) != HPX_OK)
		return HPX_NEXT_WEBHOOK_LATE;
	if (received->ruling == HPX_RULING_UNCLEAR)
		return answer(request, HPX_WEBHOOK_ignored);
	return find_jobs(request);
}
