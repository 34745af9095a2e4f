/* The keys of verified callers, the thread that reads them, and the tokens that were
 * verified. One lock covers the set in force, the cache, and the state of the reading; a
 * signature is verified without it.
 *
 *   no key yet                      503, fail closed: nobody is refused for good
 *   kid unknown, keys being read    503, the next try knows more
 *   kid unknown, last reading bad   503, the token may be good
 *   kid unknown otherwise           401, and the keys are read again, at most once a minute */
#include "gateway/verified_caller.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "gateway/steps.h"
#include "gateway/subrequest.h"
#include "http/field.h"

/* Between two readings because of an unknown kid: anybody can invent one. */
#define ASK_EVERY_MS 60000
#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 60000
/* What a client that met a missing key should wait. */
#define RETRY_AFTER_S 1

struct hpx_verified_callers {
	struct hpx_settings *settings;
	struct hpx_egress *egress;
	struct hpx_thread thread;

	/* Under the thread's lock. */
	struct hpx_jwk_set *keys;        /* NULL: none yet */
	uint8_t digest[HPX_SHA256_SIZE]; /* of the text of the keys */
	struct hpx_identities *verified; /* by the hashes of keys and token; times on the wall clock */
	bool wanted;                     /* the keys are to be read now */
	bool reading;                    /* they are being read */
	bool tried;                      /* they were, once at least */
	bool failed;                     /* the last reading did */
	unsigned failures;               /* in a row */
	bool answered;                   /* of the request under way */
	int64_t asked_ms;                /* the last reading that an unknown kid caused, boot clock; 0: none */
	int64_t read_ms;                 /* the last good reading, boot clock */

	struct hpx_counter refreshed;
	struct hpx_counter refresh_failed;
	struct hpx_counter results[HPX_JWT_COUNT];
	struct hpx_counter cached;
	struct hpx_counter missing;
	struct hpx_counter unavailable;
};

static const struct hpx_jwt_settings *jwt_of(const struct hpx_verified_callers *callers)
{
	return &callers->settings->tenant.jwt;
}

/* ---- reading the keys ---- */

/* On the engine's thread. */
static void on_answered(struct hpx_egress_request *request)
{
	struct hpx_verified_callers *callers = request->user;

	hpx_thread_lock(&callers->thread);
	callers->answered = true;
	hpx_thread_wake(&callers->thread);
	hpx_thread_unlock(&callers->thread);
}

static void await_answer(struct hpx_verified_callers *callers)
{
	/* The engine ends every request, at the latest when it stops. */
	hpx_thread_lock(&callers->thread);
	while (!callers->answered)
		hpx_thread_wait(&callers->thread, INT64_MAX);
	hpx_thread_unlock(&callers->thread);
}

/* `problem` has HPX_EGRESS_PROBLEM_SIZE bytes, as in all of these. */
static enum hpx_status take_answer(const struct hpx_egress_request *request, struct hpx_buffer *text,
				   char *problem)
{
	if (request->end != HPX_EGRESS_ANSWERED)
		snprintf(problem, HPX_EGRESS_PROBLEM_SIZE, "%s", request->problem);
	else if (request->status != 200)
		snprintf(problem, HPX_EGRESS_PROBLEM_SIZE, "its status is %u", request->status);
	else if (request->body_dropped)
		snprintf(problem, HPX_EGRESS_PROBLEM_SIZE, "it is larger than 256 KiB");
	else
		return hpx_buffer_append(text, hpx_buffer_span(&request->body_in));
	return HPX_INVALID;
}

static enum hpx_status read_url(struct hpx_verified_callers *callers, struct hpx_buffer *text,
				char *problem)
{
	const struct hpx_caller *caller = &callers->settings->tenant.subrequest.caller;
	struct hpx_egress_request request = { .url = jwt_of(callers)->keys,
					      .method = "GET",
					      .headers = HPX_SPAN("Accept: application/json\r\n"),
					      .reuse = true, /* a GET: twice is as good as once */
					      .connect_timeout_ms = caller->connect_timeout_ms,
					      .timeout_ms = caller->timeout_ms,
					      .answer_bytes_max = HPX_JWK_SET_BYTES_MAX,
					      .ca_file = caller->ca_file,
					      .done = on_answered,
					      .user = callers };
	enum hpx_status status = HPX_UNAVAILABLE;

	callers->answered = false;
	if (callers->egress != NULL)
		status = hpx_egress_submit(callers->egress, &request);
	if (status == HPX_OK) {
		await_answer(callers);
		status = take_answer(&request, text, problem);
	} else {
		snprintf(problem, HPX_EGRESS_PROBLEM_SIZE, "%s", hpx_status_text(status));
	}
	hpx_egress_request_done(&request);
	return status;
}

static enum hpx_status read_file(struct hpx_verified_callers *callers, struct hpx_buffer *text,
				 char *problem)
{
	unsigned mode;
	enum hpx_status status = hpx_buffer_read_file(text, jwt_of(callers)->keys, &mode);

	if (status != HPX_OK)
		snprintf(problem, HPX_EGRESS_PROBLEM_SIZE, "%s",
			 status == HPX_IO ? strerror(errno) : hpx_status_text(status));
	return status;
}

static enum hpx_status digest_of(struct hpx_span text, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, text);
	return hpx_sha256_done(&hash, ret_digest);
}

static enum hpx_status read_keys(struct hpx_verified_callers *callers, struct hpx_jwk_set **ret_keys,
				 uint8_t ret_digest[HPX_SHA256_SIZE], char *problem)
{
	struct hpx_buffer text;
	const char *reason;

	hpx_buffer_init(&text, HPX_JWK_SET_BYTES_MAX);
	enum hpx_status status = jwt_of(callers)->keys_by_url ? read_url(callers, &text, problem) :
								read_file(callers, &text, problem);
	if (status == HPX_OK)
		status = digest_of(hpx_buffer_span(&text), ret_digest);
	if (status == HPX_OK) {
		status = hpx_jwk_set_read(hpx_buffer_span(&text), ret_keys, &reason);
		snprintf(problem, HPX_EGRESS_PROBLEM_SIZE, "%s",
			 status == HPX_INVALID ? reason : hpx_status_text(status));
	}
	hpx_buffer_done(&text);
	return status;
}

/* With the lock. What was verified with the keys before is found no more: their digest is
 * part of its hash. Returns the keys that are in force no more. */
static struct hpx_jwk_set *take_keys(struct hpx_verified_callers *callers, struct hpx_jwk_set *keys,
				     const uint8_t digest[HPX_SHA256_SIZE])
{
	struct hpx_jwk_set *old = callers->keys;

	callers->keys = keys;
	memcpy(callers->digest, digest, HPX_SHA256_SIZE);
	callers->read_ms = hpx_clock_boot_ms();
	return old;
}

/* With the lock. */
static int64_t next_reading_ms(const struct hpx_verified_callers *callers)
{
	int64_t refresh_ms = jwt_of(callers)->refresh_ms;
	int64_t wait_ms = refresh_ms;

	if (callers->failed) {
		unsigned doublings = callers->failures < 7 ? callers->failures - 1 : 6;
		wait_ms = (int64_t)RETRY_FIRST_MS << doublings;
		if (wait_ms > RETRY_MAX_MS)
			wait_ms = RETRY_MAX_MS;
	}
	return hpx_clock_boot_ms() + (wait_ms < refresh_ms ? wait_ms : refresh_ms);
}

static void tell(const struct hpx_verified_callers *callers, bool good, bool changed, bool was_failed,
		 const struct hpx_jwk_set *keys, const char *problem)
{
	if (!good && !was_failed)
		hpx_log(HPX_LOG_ERROR, "jwt_keys_failed", "from=%s reason=\"%s\" effect=\"%s\"",
			jwt_of(callers)->keys, problem,
			keys != NULL ? "the old keys stay in force" :
				       "requests that need a tenant are refused");
	else if (good && (changed || was_failed))
		hpx_log(HPX_LOG_INFO, "jwt_keys", "from=%s keys=%zu skipped=%zu", jwt_of(callers)->keys,
			keys->count, keys->skipped);
}

/* Returns the time of the next reading, on the boot clock. */
static int64_t refresh(struct hpx_verified_callers *callers)
{
	char problem[HPX_EGRESS_PROBLEM_SIZE] = "";
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_jwk_set *keys = NULL, *old = NULL;

	hpx_thread_lock(&callers->thread);
	callers->wanted = false;
	callers->reading = true;
	hpx_thread_unlock(&callers->thread);
	bool good = read_keys(callers, &keys, digest, problem) == HPX_OK;
	hpx_counter_add(good ? &callers->refreshed : &callers->refresh_failed, 1);
	hpx_thread_lock(&callers->thread);
	bool was_failed = callers->failed;
	bool changed = callers->keys == NULL || memcmp(digest, callers->digest, sizeof(digest)) != 0;
	if (good)
		old = take_keys(callers, keys, digest);
	callers->reading = false;
	callers->failed = !good;
	callers->failures = good ? 0 : callers->failures + 1;
	callers->tried = true;
	/* Only this thread exchanges them. */
	const struct hpx_jwk_set *in_force = callers->keys;
	int64_t next_ms = next_reading_ms(callers);
	hpx_thread_wake(&callers->thread);
	hpx_thread_unlock(&callers->thread);
	hpx_jwk_set_unref(old);
	tell(callers, good, changed, was_failed, in_force, problem);
	return next_ms;
}

static void *run(void *user)
{
	struct hpx_verified_callers *callers = user;

	hpx_thread_lock(&callers->thread);
	while (!callers->thread.stopping) {
		hpx_thread_unlock(&callers->thread);
		int64_t next_ms = refresh(callers);
		hpx_thread_lock(&callers->thread);
		while (!callers->thread.stopping && !callers->wanted && hpx_clock_boot_ms() < next_ms)
			hpx_thread_wait(&callers->thread, next_ms);
	}
	hpx_thread_unlock(&callers->thread);
	return NULL;
}

/* ---- the life of it ---- */

enum hpx_status hpx_verified_callers_new(struct hpx_settings *settings, struct hpx_egress *egress,
					 struct hpx_verified_callers **ret_callers)
{
	struct hpx_verified_callers *callers = calloc(1, sizeof(*callers));
	int64_t until_ms = hpx_clock_boot_ms() + settings->tenant.subrequest.caller.timeout_ms;

	if (callers == NULL)
		return HPX_NOMEM;
	enum hpx_status status = hpx_thread_init(&callers->thread);
	if (status != HPX_OK) {
		free(callers);
		return status;
	}
	callers->settings = hpx_settings_ref(settings);
	callers->egress = egress;
	callers->verified = hpx_identities_new(settings->tenant.jwt.cache_entries_max);
	status = callers->verified != NULL ? hpx_thread_run(&callers->thread, run, callers) :
					     HPX_NOMEM;
	if (status != HPX_OK) {
		hpx_verified_callers_free(callers);
		return status;
	}
	hpx_thread_lock(&callers->thread);
	while (!callers->tried && hpx_clock_boot_ms() < until_ms)
		hpx_thread_wait(&callers->thread, until_ms);
	hpx_thread_unlock(&callers->thread);
	*ret_callers = callers;
	return HPX_OK;
}

void hpx_verified_callers_free(struct hpx_verified_callers *callers)
{
	if (callers == NULL)
		return;
	hpx_thread_stop(&callers->thread);
	hpx_thread_done(&callers->thread);
	hpx_jwk_set_unref(callers->keys);
	hpx_identities_free(callers->verified);
	hpx_settings_unref(callers->settings);
	free(callers);
}

/* With the lock. */
static void ask(struct hpx_verified_callers *callers)
{
	callers->wanted = true;
	hpx_thread_wake(&callers->thread);
}

void hpx_verified_callers_refresh(struct hpx_verified_callers *callers)
{
	if (callers == NULL)
		return;
	hpx_thread_lock(&callers->thread);
	ask(callers);
	hpx_thread_unlock(&callers->thread);
}

void hpx_verified_callers_metrics(struct hpx_verified_callers *callers,
				  struct hpx_metric_page *page)
{
	if (callers == NULL)
		return;
	hpx_thread_lock(&callers->thread);
	size_t count = callers->keys != NULL ? callers->keys->count : 0;
	int64_t age_ms = callers->keys != NULL ? hpx_clock_boot_ms() - callers->read_ms : 0;
	hpx_thread_unlock(&callers->thread);
	hpx_metric_head(page, "hapax_jwt_total", "counter", "Tokens, by what they came to.");
	for (unsigned i = 0; i < HPX_JWT_COUNT; i++)
		hpx_metric_sample(page, "hapax_jwt_total", "result",
				  hpx_span_of(hpx_jwt_result_name((enum hpx_jwt_result)i)),
				  hpx_counter_read(&callers->results[i]));
	hpx_metric_sample(page, "hapax_jwt_total", "result", HPX_SPAN("cached"),
			  hpx_counter_read(&callers->cached));
	hpx_metric_sample(page, "hapax_jwt_total", "result", HPX_SPAN("missing"),
			  hpx_counter_read(&callers->missing));
	hpx_metric_sample(page, "hapax_jwt_total", "result", HPX_SPAN("unavailable"),
			  hpx_counter_read(&callers->unavailable));
	hpx_metric_head(page, "hapax_jwt_refreshes_total", "counter", "Readings of the keys of tokens.");
	hpx_metric_sample(page, "hapax_jwt_refreshes_total", "result", HPX_SPAN("read"),
			  hpx_counter_read(&callers->refreshed));
	hpx_metric_sample(page, "hapax_jwt_refreshes_total", "result", HPX_SPAN("failed"),
			  hpx_counter_read(&callers->refresh_failed));
	hpx_metric_gauge(page, "hapax_jwt_keys", "Keys that tokens are verified with.", count);
	hpx_metric_gauge(page, "hapax_jwt_keys_age_seconds",
			 "How long ago the keys in force were read; 0 while there are none.",
			 (uint64_t)age_ms / 1000);
}

/* ---- one request ---- */

/* The token of the one Authorization field; HPX_NOT_FOUND: there is none. HPX_INVALID: two
 * fields, another scheme, or nothing behind it. */
static enum hpx_status find_token(const struct hpx_http_head *head, struct hpx_span *ret_token)
{
	static const struct hpx_span name = HPX_SPAN_INIT("Authorization");
	struct hpx_span value = hpx_field_value(head, name);
	size_t blank = hpx_span_index(value, ' ');

	if (hpx_field_count(head, name) == 0)
		return HPX_NOT_FOUND;
	if (hpx_field_count(head, name) > 1 ||
	    !hpx_span_ieq(hpx_span_first(value, blank), HPX_SPAN("Bearer")))
		return HPX_INVALID;
	*ret_token = hpx_span_trim(hpx_span_skip(value, blank));
	return ret_token->len > 0 ? HPX_OK : HPX_INVALID;
}

/* With the lock: ties the digest of a token to the keys in force. Both are hashes, so that
 * finding a second pair is as hard as finding a token for a given hash. */
static void add_keys(const struct hpx_verified_callers *callers, uint8_t digest[HPX_SHA256_SIZE])
{
	for (size_t i = 0; i < HPX_SHA256_SIZE; i++)
		digest[i] ^= callers->digest[i];
}

static void remember(struct hpx_verified_callers *callers, const uint8_t digest[HPX_SHA256_SIZE],
		     const struct hpx_jwt_caller *caller, struct hpx_identity *identity)
{
	identity->kind = HPX_IDENTITY_NAMED;
	identity->name_len = caller->name_len;
	memcpy(identity->name, caller->name, caller->name_len);
	hpx_thread_lock(&callers->thread);
	hpx_identities_put(callers->verified, digest, identity, caller->until_ms);
	hpx_thread_unlock(&callers->thread);
}

/* Whether a token whose key is not known may yet turn out to be good. */
static bool may_be_known_soon(struct hpx_verified_callers *callers)
{
	int64_t now_ms = hpx_clock_boot_ms();

	hpx_thread_lock(&callers->thread);
	bool due = callers->asked_ms == 0 || now_ms - callers->asked_ms >= ASK_EVERY_MS;
	if (due && !callers->reading && !callers->wanted) {
		callers->asked_ms = now_ms;
		ask(callers);
	}
	bool soon = callers->wanted || callers->reading || callers->failed;
	hpx_thread_unlock(&callers->thread);
	return soon;
}

static enum hpx_next unavailable(struct hpx_request *request, const char *detail)
{
	struct hpx_refusal refusal = { .detail = detail, .retry_after_s = RETRY_AFTER_S };

	hpx_counter_add(&request->shard->gateway->verified_callers->unavailable, 1);
	return hpx_tenant_missing(request, HPX_PROBLEM_tenant_unavailable, &refusal);
}

/* RFC 6750 §3.1: a request without a token is told no error. */
static enum hpx_next refuse_missing(struct hpx_request *request, enum hpx_status status)
{
	struct hpx_refusal refusal = {
		.detail = "The caller is named by a signed token: send one Authorization header with "
			  "Bearer and the token. Nothing was sent on.",
		.challenge = status == HPX_INVALID ?
				     ", error=\"invalid_request\", error_description=\"one Authorization with "
				     "Bearer is needed\"" :
				     NULL
	};

	hpx_counter_add(&request->shard->gateway->verified_callers->missing, 1);
	return hpx_tenant_missing(request, HPX_PROBLEM_unauthenticated, &refusal);
}

static enum hpx_next refuse_token(struct hpx_request *request, enum hpx_jwt_result result)
{
	const char *text = hpx_jwt_result_text(result);
	struct hpx_span challenge = hpx_arena_printf(
		&request->arena, ", error=\"invalid_token\", error_description=\"%s\"", text);
	struct hpx_refusal refusal = { .detail = text, .challenge = challenge.ptr };

	if (result == HPX_JWT_UNCHECKED || challenge.ptr == NULL)
		return hpx_tenant_missing(request, HPX_PROBLEM_overloaded, NULL);
	if (result == HPX_JWT_KEY_UNKNOWN &&
	    may_be_known_soon(request->shard->gateway->verified_callers))
		return unavailable(request, "The key that signed the token is not known yet: the keys are "
					    "being read again. Nothing was sent on.");
	return hpx_tenant_missing(request, HPX_PROBLEM_unauthenticated, &refusal);
}

static enum hpx_next named(struct hpx_request *request, const struct hpx_identity *identity)
{
	const struct hpx_tenant_source source = hpx_tenant_source_of(request);
	struct hpx_refusal refusal = { .detail = NULL };

	request->identity.tenant =
		hpx_arena_dup(&request->arena, hpx_span(identity->name, identity->name_len));
	enum hpx_status status = request->identity.tenant.ptr != NULL ?
					 hpx_tenant_add_with(&source, &request->identity.tenant, &refusal.detail) :
					 HPX_NOMEM;
	if (status == HPX_OK)
		return hpx_tenant_found(request);
	return hpx_tenant_missing(request,
				  status == HPX_INVALID ? HPX_PROBLEM_unauthenticated : HPX_PROBLEM_overloaded,
				  &refusal);
}

/* The set is the caller's own reference. */
static enum hpx_next verify(struct hpx_request *request, struct hpx_jwk_set *keys,
			    const uint8_t digest[HPX_SHA256_SIZE], struct hpx_span token)
{
	struct hpx_verified_callers *callers = request->shard->gateway->verified_callers;
	struct hpx_identity identity;
	struct hpx_jwt_caller caller;
	enum hpx_jwt_result result = hpx_jwt_check(&jwt_of(callers)->rule, keys, token,
						   hpx_clock_wall_ms(), &request->arena, &caller);

	hpx_jwk_set_unref(keys);
	hpx_counter_add(&callers->results[result], 1);
	if (result != HPX_JWT_VERIFIED)
		return refuse_token(request, result);
	remember(callers, digest, &caller, &identity);
	return named(request, &identity);
}

enum hpx_next hpx_verified_caller_find(struct hpx_request *request)
{
	struct hpx_verified_callers *callers = request->shard->gateway->verified_callers;
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_identity identity;
	struct hpx_jwk_set *keys = NULL;
	struct hpx_span token;
	enum hpx_status status = find_token(&request->head.http, &token);

	if (status != HPX_OK)
		return refuse_missing(request, status);
	if (digest_of(token, digest) != HPX_OK)
		return hpx_tenant_missing(request, HPX_PROBLEM_overloaded, NULL);
	hpx_thread_lock(&callers->thread);
	add_keys(callers, digest);
	bool known = callers->keys != NULL &&
		     hpx_identities_find(callers->verified, digest, hpx_clock_wall_ms(), &identity);
	if (!known && callers->keys != NULL)
		keys = hpx_jwk_set_ref(callers->keys);
	hpx_thread_unlock(&callers->thread);
	if (known) {
		hpx_counter_add(&callers->cached, 1);
		return named(request, &identity);
	}
	if (keys == NULL)
		return unavailable(request, "The keys that tokens are verified with could not be read yet. "
					    "Nothing was sent on.");
	return verify(request, keys, digest, token);
}
