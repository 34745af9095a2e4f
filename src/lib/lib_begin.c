/* What a request means (its key and its fingerprint), and hapax_begin: the
 * reservation, and what became of it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/sized.h"
#include "base/span.h"
#include "base/status.h"
#include "core/fingerprint.h"
#include "core/operation.h"
#include "http/trace_context.h"
#include "lib/lib.h"

#define LEASE_DEFAULT_MS 30000
#define RETENTION_DEFAULT_MS 86400000
#define TEXT_MAX 8192
/* The record's recipe can change between two tries, each time the key is used anew. A
 * caller that meets more changes than this gets HAPAX_BUSY. */
#define ASKS_MAX 4

_Static_assert(HAPAX_LEASE_SIZE == HPX_REFERENCE_SIZE && HAPAX_LEASE_SIZE == HPX_LEASE_SIZE,
	       "a reference and a lease have room");
_Static_assert(HAPAX_POINT_SIZE == HPX_POINT_SIZE, "a recovery point has room");
_Static_assert(HAPAX_KEY_MAX == HPX_KEY_MAX, "a key has room");
_Static_assert(HAPAX_FINGERPRINT_SIZE == HPX_SHA256_SIZE, "a fingerprint has room");

/* ---- what a request means ---- */

enum hapax_result hapax_key_parse(const char *value, size_t value_len,
				  char ret_key[HAPAX_KEY_MAX + 1], size_t *ret_len,
				  const char **ret_reason)
{
	struct hpx_key key;
	const char *reason = NULL;

	if ((value == NULL && value_len > 0) || ret_key == NULL || ret_len == NULL)
		return HAPAX_MISUSE;
	enum hpx_status status = hpx_key_parse(hpx_span(value, value_len), false, &key, &reason);
	if (status == HPX_OK) {
		memcpy(ret_key, key.bytes, key.len);
		ret_key[key.len] = '\0';
		*ret_len = key.len;
	} else if (ret_reason != NULL) {
		*ret_reason = reason;
	}
	return hpx_result_of(status);
}

/* The default recipe names no headers, so nothing is ever asked for. */
static struct hpx_span no_header(void *user, struct hpx_span name)
{
	(void)user;
	(void)name;
	return (struct hpx_span){ NULL, 0 };
}

enum hapax_result hapax_fingerprint(const struct hapax_request *given,
				    unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE])
{
	static const struct hpx_recipe plain = { .version = HPX_RECIPE_VERSION };
	struct hapax_request request;

	if (!hpx_sized_read(given, &request, sizeof(request)) || request.method == NULL ||
	    request.path == NULL || (request.body == NULL && request.body_len > 0) ||
	    ret_fingerprint == NULL)
		return HAPAX_MISUSE;
	struct hpx_meaning meaning = {
		.method = hpx_span_of(request.method),
		.path = hpx_span_of(request.path),
		.query = hpx_span_of(request.query),
		.content_type = hpx_span_of(request.content_type),
		.body = hpx_span(request.body, request.body_len),
		.header = no_header,
	};
	/* A canonical form is at most a few times the size of its input. */
	size_t work_bytes_max = request.body_len < SIZE_MAX / 16 ?
					request.body_len * 8 + 65536 :
					SIZE_MAX;
	return hpx_result_of(hpx_fingerprint(&plain, &meaning, work_bytes_max, ret_fingerprint));
}

/* The caller's struct must have at least the members before `point`. */
#define OPERATION_SIZE_MIN offsetof(struct hapax_operation, point)

/* ---- what is asked ---- */

static bool is_text(const char *text, size_t max)
{
	struct hpx_span s = hpx_span_of(text);

	return s.len <= max && hpx_utf8_valid(s);
}

/* Reads the caller's structs, each of whatever version. */
static enum hapax_result check_structs(const struct hapax_begin *given, struct hapax_begin *begin,
				       const struct hapax_operation *operation, char *problem)
{
	if (given != NULL && !hpx_sized_read(given, begin, sizeof(*begin)))
		return hpx_lib_bad_struct("hapax_begin", problem);
	if (operation != NULL && (!hpx_sized_valid(operation, sizeof(*operation)) ||
				  operation->size < OPERATION_SIZE_MIN))
		return hpx_lib_bad_struct("hapax_operation", problem);
	return HAPAX_OK;
}

static enum hapax_result check(const struct hapax *hapax, const struct hapax_begin *begin,
			       const struct hapax_operation *ret_operation, char *problem)
{
	if (hapax == NULL || ret_operation == NULL || begin->tenant == NULL ||
	    begin->scope == NULL || begin->key == NULL || begin->fingerprint == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_begin needs a handle, a tenant, a scope, a key, a "
				     "fingerprint, and a place for the operation");
	if (begin->lease_ms < 0 || begin->lease_ms > HPX_LEASE_MAX_MS || begin->retention_ms < 0 ||
	    begin->retention_ms > HPX_LIB_RETENTION_MAX_MS ||
	    (unsigned)begin->on_lost > HAPAX_LOST_REPEAT)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "a lease is at most an hour (and can be renewed), a retention at "
				     "most ten years, and on_lost one of its three values");
	if (begin->key[0] == '\0' || !is_text(begin->key, HAPAX_KEY_MAX) ||
	    !is_text(begin->tenant, TEXT_MAX) || !is_text(begin->scope, TEXT_MAX))
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "a key is 1 to %d bytes, a tenant and a scope at most %d, all of "
				     "them UTF-8",
				     HAPAX_KEY_MAX, TEXT_MAX);
	return HAPAX_OK;
}

static void fill_policy(struct hpx_policy *policy, const struct hapax_begin *begin)
{
	policy->lease_ms = begin->lease_ms > 0 ? begin->lease_ms : LEASE_DEFAULT_MS;
	policy->retention_ms = begin->retention_ms > 0 ? begin->retention_ms : RETENTION_DEFAULT_MS;
	if (begin->on_lost == HAPAX_LOST_RESUME) {
		policy->on_lost = HPX_ON_LOST_RESUME;
		policy->fenced = true;
	}
	if (begin->on_lost == HAPAX_LOST_REPEAT)
		policy->completes = HPX_COMPLETES_APPLICATION;
}

/* The recipe is void, as hapax.begin in SQL has it: how the fingerprint was
 * made is the caller's own affair. */
static enum hpx_status fill(struct hpx_pending *pending, const struct hapax_begin *begin)
{
	struct hpx_description *d = &pending->description;
	struct hpx_sha256 hash;

	if (!hpx_pending_copy(pending, hpx_span_of(begin->tenant), &d->tenant) ||
	    !hpx_pending_copy(pending, hpx_span_of(begin->scope), &d->scope) ||
	    !hpx_pending_copy(pending, hpx_span_of(begin->key), &d->key))
		return HPX_NOMEM;
	d->method = HPX_SPAN("");
	d->path = HPX_SPAN("");
	d->route = HPX_SPAN("application");
	fill_policy(&pending->policy, begin);
	memcpy(pending->ask.fingerprint, begin->fingerprint, sizeof(pending->ask.fingerprint));
	hpx_token_make(&pending->ask.token);
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, d->tenant);
	enum hpx_status status = hpx_sha256_done(&hash, pending->ask.tenant);
	if (status == HPX_OK)
		status = hpx_operation_id(d->tenant, d->scope, d->key, &pending->ask.id);
	pending->op.id = pending->ask.id;
	pending->op.token = pending->ask.token;
	pending->op.reserve.ask = &pending->ask;
	pending->op.reserve.policy = &pending->policy;
	pending->op.reserve.description = d;
	return status;
}

/* ---- what is found ---- */

static enum hapax_verdict verdict_of(enum hpx_decision_kind kind)
{
	switch (kind) {
	case HPX_DECISION_EXECUTE:
	case HPX_DECISION_EXECUTE_AGAIN:
		return HAPAX_EXECUTE;
	case HPX_DECISION_REPLAY:
		return HAPAX_REPLAY;
	case HPX_DECISION_IN_PROGRESS:
		return HAPAX_IN_PROGRESS;
	case HPX_DECISION_MISMATCH:
		return HAPAX_MISMATCH;
	default:
		return HAPAX_UNKNOWN;
	}
}

/* The answer, its headers, a NUL for those who read them as text, and the body, in
 * one block. */
static bool take_answer(const struct hpx_record *record, const struct hpx_answer *stored,
			struct hapax_operation *operation)
{
	HPX_ASSERT(operation->memory == NULL);
	struct hpx_span headers = stored != NULL ? stored->headers : HPX_SPAN("");
	struct hpx_span body = stored != NULL ? stored->body : HPX_SPAN("");
	struct hpx_trace_context trace;

	/* A gateway's own line is not part of the answer. */
	(void)hpx_trace_line_take(&headers, &trace);
	struct hapax_answer *answer = malloc(sizeof(*answer) + headers.len + 1 + body.len);

	if (answer == NULL)
		return false;
	char *text = (char *)(answer + 1);
	if (headers.len > 0)
		memcpy(text, headers.ptr, headers.len);
	text[headers.len] = '\0';
	if (body.len > 0)
		memcpy(text + headers.len + 1, body.ptr, body.len);
	*answer = (struct hapax_answer){ .size = sizeof(*answer),
					 .status = stored != NULL ? stored->status : record->status,
					 .headers = text,
					 .body = text + headers.len + 1,
					 .body_len = body.len };
	operation->memory = answer;
	operation->kept = stored != NULL && stored->kept;
	operation->answer = answer;
	return true;
}

static void take_record(const struct hpx_pending *pending, struct hapax_operation *operation)
{
	const struct hpx_record *record = &pending->op.decision.record;

	operation->verdict = verdict_of(pending->op.decision.kind);
	HPX_ASSERT(pending->op.verb == HPX_VERB_RESERVE && pending->op.status == HPX_OK);
	operation->attempt = record->attempt;
	hpx_reference_print(&record->id, &record->mark, operation->reference);
	if (operation->verdict == HAPAX_EXECUTE)
		hpx_lease_print(&record->id, &record->token, operation->lease);
}

/* A later attempt continues behind the last recovery point. */
static enum hpx_status read_recovery_point(struct hpx_pending *pending, int64_t deadline_ms,
					   struct hapax_operation *operation, char *detail)
{
	struct hpx_pending *query;

	if (operation->verdict != HAPAX_EXECUTE || pending->op.decision.record.point[0] == '\0')
		return HPX_OK;
	query = hpx_pending_new(pending->hapax, HPX_VERB_READ_POINT);
	if (query == NULL)
		return HPX_NOMEM;
	query->op.id = pending->op.id;
	query->op.token = pending->op.decision.record.token;
	enum hpx_status status = hpx_pending_run(&query, deadline_ms, detail);
	if (status == HPX_OK) {
		HPX_ASSERT(operation->memory == NULL);
		memcpy(operation->point, query->op.decision.record.point,
		       sizeof(operation->point));
		operation->memory = query->op.read_point.data.ptr;
		operation->data = query->op.read_point.data.len > 0 ?
					  query->op.read_point.data.ptr :
					  NULL;
		operation->data_len = query->op.read_point.data.len;
		hpx_buffer_init(&query->op.read_point.data, 0);
	}
	hpx_pending_free(query);
	return status;
}

/* A record of another recipe (the gateway's) can be compared only by its fingerprint's
 * bytes. Equal bytes come from one recipe and one meaning; other bytes count as
 * another request. */
static enum hpx_status reserve(struct hpx_pending **pending, int64_t deadline_ms, char *detail)
{
	enum hpx_status status = HPX_BUSY;

	for (unsigned i = 0; i < ASKS_MAX; i++) {
		status = hpx_pending_run(pending, deadline_ms, detail);
		if (status != HPX_OK ||
		    (*pending)->op.decision.kind != HPX_DECISION_REFINGERPRINT)
			return status;
		(*pending)->ask.recipe = (*pending)->op.decision.record.recipe;
	}
	return HPX_BUSY;
}

/* Nothing is executed that was not reserved within half a lease after asking
 * (guarantee 1). A process that was paused finds this out here. A reservation in the
 * caller's transaction is fenced by its commit. */
static bool took_too_long(const struct hapax *hapax, const struct hapax_operation *operation,
			  int64_t deadline_ms)
{
	return hapax->committer != NULL && operation->verdict == HAPAX_EXECUTE &&
	       hpx_clock_boot_ms() >= deadline_ms;
}

static int64_t deadline_of(const struct hpx_pending *pending)
{
	HPX_ASSERT(pending->policy.lease_ms > 0);
	int64_t half_ms = hpx_clock_boot_ms() + pending->policy.lease_ms / 2;
	int64_t deadline_ms = hpx_pending_deadline(pending->hapax);

	return half_ms < deadline_ms ? half_ms : deadline_ms;
}

static enum hpx_status take_decision(struct hpx_pending *pending, int64_t deadline_ms,
				     struct hapax_operation *operation, char *detail)
{
	enum hpx_status status;

	take_record(pending, operation);
	if (operation->verdict == HAPAX_REPLAY &&
	    !take_answer(&pending->op.decision.record, pending->op.reserve.replay, operation))
		return HPX_NOMEM;
	status = read_recovery_point(pending, deadline_ms, operation, detail);
	if (status == HPX_OK && took_too_long(pending->hapax, operation, deadline_ms))
		status = HPX_TIMEOUT;
	if (status != HPX_OK)
		hapax_operation_clear(operation);
	return status;
}

/* Not in time: whatever is reserved late is given back, so nothing was begun.
 * Stale: the lease was lost again before its recovery point was read. */
static enum hapax_result begin_result(enum hpx_status status, const char *detail, char *problem)
{
	if (status == HPX_STALE)
		return hpx_lib_result(HPX_BUSY, NULL, problem);
	if (status == HPX_TIMEOUT && detail[0] == '\0')
		detail = "it did not confirm the reservation in time";
	return hpx_lib_result(status, detail, problem);
}

enum hapax_result hapax_begin(struct hapax *hapax, const struct hapax_begin *given,
			      struct hapax_operation *ret_operation, char *problem)
{
	struct hapax_operation operation = { .size = sizeof(operation) };
	struct hapax_begin begin = { .tenant = NULL };
	char detail[HPX_STORE_PROBLEM_SIZE] = "";
	enum hapax_result checked = check_structs(given, &begin, ret_operation, problem);

	if (checked == HAPAX_OK)
		checked = check(hapax, &begin, ret_operation, problem);
	if (checked != HAPAX_OK)
		return checked;
	struct hpx_pending *pending = hpx_pending_new(hapax, HPX_VERB_RESERVE);
	if (pending == NULL)
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	enum hpx_status status = fill(pending, &begin);
	if (status != HPX_OK) {
		hpx_pending_free(pending);
		return hpx_lib_result(status, NULL, problem);
	}
	int64_t deadline_ms = deadline_of(pending);
	status = reserve(&pending, deadline_ms, detail);
	if (status == HPX_OK)
		status = take_decision(pending, deadline_ms, &operation, detail);
	if (status != HPX_OK) {
		if (pending != NULL)
			hpx_pending_cancel(pending);
		return begin_result(status, detail, problem);
	}
	hpx_sized_write(&operation, sizeof(operation), ret_operation);
	hpx_pending_free(pending);
	return hpx_lib_result(HPX_OK, NULL, problem);
}

void hapax_operation_clear(struct hapax_operation *operation)
{
	if (operation == NULL)
		return;
	const struct hapax_operation empty = { .size = sizeof(empty) };
	free(operation->memory);
	hpx_sized_write(&empty, sizeof(empty), operation);
}
