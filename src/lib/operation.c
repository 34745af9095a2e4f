/* hapax_begin: the reservation, and what became of it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/sized.h"
#include "base/utf8.h"
#include "core/key.h"
#include "lib/call.h"
#include "lib/result.h"

#define LEASE_DEFAULT_MS 30000
#define RETENTION_DEFAULT_MS 86400000
/* As the gateway's options have it. */
#define LEASE_MAX_MS 3600000
#define RETENTION_MAX_MS (3650 * (int64_t)86400000)
#define TEXT_MAX 8192
/* A record that changes hands between two asks changes its recipe at most once
 * each time; more than this is somebody who uses the key up as fast as we ask. */
#define ASKS_MAX 4

_Static_assert(HAPAX_LEASE_SIZE == HPX_REFERENCE_SIZE && HAPAX_LEASE_SIZE == HPX_LEASE_SIZE,
	       "a reference and a lease have room");
_Static_assert(HAPAX_POINT_SIZE == HPX_POINT_SIZE, "a recovery point has room");
_Static_assert(HAPAX_KEY_MAX == HPX_KEY_MAX, "a key has room");
_Static_assert(HAPAX_FINGERPRINT_SIZE == HPX_SHA256_SIZE, "a fingerprint has room");

/* A caller must have room for what it cannot do without. */
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
		return hpx_result_bad_struct("hapax_begin", problem);
	if (operation != NULL && (!hpx_sized_valid(operation, sizeof(*operation)) ||
				  operation->size < OPERATION_SIZE_MIN))
		return hpx_result_bad_struct("hapax_operation", problem);
	return HAPAX_OK;
}

static enum hapax_result check(const struct hapax *hapax, const struct hapax_begin *begin,
			       const struct hapax_operation *ret_operation, char *problem)
{
	if (hapax == NULL || ret_operation == NULL || begin->tenant == NULL ||
	    begin->scope == NULL || begin->key == NULL || begin->fingerprint == NULL)
		return hpx_result_say(HAPAX_MISUSE, problem,
				      "hapax_begin needs a handle, a tenant, a scope, a key, a "
				      "fingerprint, and a place for the operation");
	if (begin->lease_ms < 0 || begin->lease_ms > LEASE_MAX_MS || begin->retention_ms < 0 ||
	    begin->retention_ms > RETENTION_MAX_MS ||
	    (unsigned)begin->on_lost > HAPAX_LOST_REPEAT)
		return hpx_result_say(HAPAX_MISUSE, problem,
				      "a lease is at most an hour (and can be renewed), a retention at "
				      "most ten years, and on_lost one of its three values");
	if (begin->key[0] == '\0' || !is_text(begin->key, HAPAX_KEY_MAX) ||
	    !is_text(begin->tenant, TEXT_MAX) || !is_text(begin->scope, TEXT_MAX))
		return hpx_result_say(HAPAX_INVALID, problem,
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
static enum hpx_status fill(struct hpx_call *call, const struct hapax_begin *begin)
{
	struct hpx_description *d = &call->description;
	struct hpx_sha256 hash;

	if (!hpx_call_copy(call, hpx_span_of(begin->tenant), &d->tenant) ||
	    !hpx_call_copy(call, hpx_span_of(begin->scope), &d->scope) ||
	    !hpx_call_copy(call, hpx_span_of(begin->key), &d->key))
		return HPX_NOMEM;
	d->method = HPX_SPAN("");
	d->path = HPX_SPAN("");
	d->route = HPX_SPAN("application");
	fill_policy(&call->policy, begin);
	memcpy(call->ask.fingerprint, begin->fingerprint, sizeof(call->ask.fingerprint));
	hpx_token_make(&call->ask.token);
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, d->tenant);
	enum hpx_status status = hpx_sha256_done(&hash, call->ask.tenant);
	if (status == HPX_OK)
		status = hpx_operation_id(d->tenant, d->scope, d->key, &call->ask.id);
	call->op.id = call->ask.id;
	call->op.token = call->ask.token;
	call->op.reserve.ask = &call->ask;
	call->op.reserve.policy = &call->policy;
	call->op.reserve.description = d;
	return status;
}

/* ---- what is found ---- */

static enum hapax_verdict verdict_of(enum hpx_decision_kind verdict)
{
	switch (verdict) {
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
	struct hpx_span headers = stored != NULL ? stored->headers : HPX_SPAN("");
	struct hpx_span body = stored != NULL ? stored->body : HPX_SPAN("");
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

static void take_record(const struct hpx_call *call, struct hapax_operation *operation)
{
	const struct hpx_record *record = &call->op.decision.record;

	operation->verdict = verdict_of(call->op.decision.kind);
	operation->attempt = record->attempt;
	hpx_reference_print(&record->id, &record->mark, operation->reference);
	if (operation->verdict == HAPAX_EXECUTE)
		hpx_lease_print(&record->id, &record->token, operation->lease);
}

/* A later attempt goes on where an earlier one got to. */
static enum hpx_status recall(struct hpx_call *call, int64_t deadline_ms,
			      struct hapax_operation *operation, char *detail)
{
	struct hpx_call *question;

	if (operation->verdict != HAPAX_EXECUTE || call->op.decision.record.point[0] == '\0')
		return HPX_OK;
	question = hpx_call_new(call->hapax, HPX_VERB_READ_POINT);
	if (question == NULL)
		return HPX_NOMEM;
	question->op.id = call->op.id;
	question->op.token = call->op.decision.record.token;
	enum hpx_status status = hpx_call_run(&question, deadline_ms, detail);
	if (status == HPX_OK) {
		memcpy(operation->point, question->op.decision.record.point,
		       sizeof(operation->point));
		operation->memory = question->op.read_point.data.ptr;
		operation->data = question->op.read_point.data.len > 0 ? question->op.read_point.data.ptr : NULL;
		operation->data_len = question->op.read_point.data.len;
		hpx_buffer_init(&question->op.read_point.data, 0);
	}
	hpx_call_free(question);
	return status;
}

/* A record made by another recipe (the gateway's) can only be compared by the
 * fingerprint as it is: equal bytes were made by one recipe from one meaning,
 * and anything else is another request, as far as anybody can tell. */
static enum hpx_status ask(struct hpx_call **call, int64_t deadline_ms, char *detail)
{
	enum hpx_status status = HPX_BUSY;

	for (unsigned i = 0; i < ASKS_MAX; i++) {
		status = hpx_call_run(call, deadline_ms, detail);
		if (status != HPX_OK ||
		    (*call)->op.decision.kind != HPX_DECISION_REFINGERPRINT)
			return status;
		(*call)->ask.recipe = (*call)->op.decision.record.recipe;
	}
	return HPX_BUSY;
}

/* Nothing happens that was not reserved within half a lease of asking for it
 * (guarantee 1): a process that was paused finds this out here. What is part of
 * the caller's transaction is fenced by its commit. */
static bool took_too_long(const struct hapax *hapax, const struct hapax_operation *operation,
			  int64_t deadline_ms)
{
	return hapax->committer != NULL && operation->verdict == HAPAX_EXECUTE &&
	       hpx_clock_boot_ms() >= deadline_ms;
}

static int64_t deadline_of(const struct hpx_call *call)
{
	int64_t half_ms = hpx_clock_boot_ms() + call->policy.lease_ms / 2;
	int64_t deadline_ms = hpx_call_deadline(call->hapax);

	return half_ms < deadline_ms ? half_ms : deadline_ms;
}

static enum hpx_status take(struct hpx_call *call, int64_t deadline_ms,
			    struct hapax_operation *operation, char *detail)
{
	enum hpx_status status;

	take_record(call, operation);
	if (operation->verdict == HAPAX_REPLAY &&
	    !take_answer(&call->op.decision.record, call->op.reserve.replay, operation))
		return HPX_NOMEM;
	status = recall(call, deadline_ms, operation, detail);
	if (status == HPX_OK && took_too_long(call->hapax, operation, deadline_ms))
		status = HPX_TIMEOUT;
	if (status != HPX_OK)
		hapax_operation_clear(operation);
	return status;
}

/* Not in time: whatever is reserved late is given back, so nothing was begun.
 * Stale: the lease was lost again before its recovery point was read. */
static enum hapax_result tell(enum hpx_status status, const char *detail, char *problem)
{
	if (status == HPX_STALE)
		return hpx_result_tell(HPX_BUSY, NULL, problem);
	if (status == HPX_TIMEOUT && detail[0] == '\0')
		detail = "it did not confirm the reservation in time";
	return hpx_result_tell(status, detail, problem);
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
	struct hpx_call *call = hpx_call_new(hapax, HPX_VERB_RESERVE);
	if (call == NULL)
		return hpx_result_tell(HPX_NOMEM, NULL, problem);
	enum hpx_status status = fill(call, &begin);
	if (status != HPX_OK) {
		hpx_call_free(call);
		return hpx_result_tell(status, NULL, problem);
	}
	int64_t deadline_ms = deadline_of(call);
	status = ask(&call, deadline_ms, detail);
	if (status == HPX_OK)
		status = take(call, deadline_ms, &operation, detail);
	if (status != HPX_OK) {
		if (call != NULL)
			hpx_call_give_back(call);
		return tell(status, detail, problem);
	}
	hpx_sized_write(&operation, sizeof(operation), ret_operation);
	hpx_call_free(call);
	return hpx_result_tell(HPX_OK, NULL, problem);
}

void hapax_operation_clear(struct hapax_operation *operation)
{
	if (operation == NULL)
		return;
	const struct hapax_operation empty = { .size = sizeof(empty) };
	free(operation->memory);
	hpx_sized_write(&empty, sizeof(empty), operation);
}
