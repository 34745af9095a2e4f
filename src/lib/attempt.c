/* What the holder of a lease may write, or ask. */
#include <stdlib.h>

#include "base/sized.h"
#include "base/utf8.h"
#include "http/field.h"
#include "lib/call.h"
#include "lib/result.h"

#define BODY_BYTES_MAX ((size_t)16 << 20)
#define LEASE_MAX_MS 3600000

/* ---- the way of every one of them ---- */

/* A call by this lease, or what is wrong with the lease. */
static enum hapax_result prepare(struct hapax *hapax, const char *lease, enum hpx_verb verb,
				 struct hpx_call **ret_call, char *problem)
{
	if (hapax == NULL || lease == NULL)
		return hpx_result_say(HAPAX_MISUSE, problem, "this needs a handle and a lease");
	struct hpx_call *call = hpx_call_new(hapax, verb);
	if (call == NULL)
		return hpx_result_tell(HPX_NOMEM, NULL, problem);
	if (!hpx_lease_parse(hpx_span_of(lease), &call->op.id, &call->op.token)) {
		hpx_call_free(call);
		return hpx_result_say(HAPAX_INVALID, problem,
				      "this is not a lease: pass the one of hapax_begin, or the value "
				      "of the Hapax-Lease header, as it came");
	}
	*ret_call = call;
	return HAPAX_OK;
}

/* Runs it; where its time was up, `*call` is NULL. */
static enum hapax_result run(struct hpx_call **call, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = hpx_call_run(call, hpx_call_deadline((*call)->hapax), detail);

	if (status != HPX_TIMEOUT)
		return hpx_result_tell(status, detail, problem);
	return hpx_result_say(HAPAX_UNCERTAIN, problem,
			      "it is not known to be durable yet; the handle goes on trying, and the "
			      "same call again tells%s%.300s",
			      detail[0] != '\0' ? ": " : "", detail);
}

static enum hapax_result run_and_free(struct hpx_call *call, char *problem)
{
	enum hapax_result result = run(&call, problem);

	hpx_call_free(call);
	return result;
}

static enum hapax_result drop(struct hpx_call *call, enum hapax_result result)
{
	hpx_call_free(call);
	return result;
}

static enum hapax_result no_memory(struct hpx_call *call, char *problem)
{
	return drop(call, hpx_result_tell(HPX_NOMEM, NULL, problem));
}

static bool is_missing(const void *bytes, size_t len)
{
	return bytes == NULL && len > 0;
}

/* The lines as they are stored, in the call's own memory. */
static enum hapax_result take_headers(struct hpx_call *call, const char *lines,
				      struct hpx_span *ret_headers, char *problem)
{
	struct hpx_buffer kept;
	bool copied = false;

	hpx_buffer_init(&kept, HPX_KEPT_BYTES_MAX);
	enum hpx_status status = hpx_field_lines_keep(hpx_span_of(lines), &kept);
	if (status == HPX_OK)
		copied = hpx_call_copy(call, hpx_buffer_span(&kept), ret_headers);
	hpx_buffer_done(&kept);
	if (copied)
		return HAPAX_OK;
	if (status == HPX_INVALID)
		return hpx_result_say(HAPAX_INVALID, problem,
				      "headers must be lines of the form \"Name: value\", in UTF-8");
	if (status == HPX_TOO_LARGE)
		return hpx_result_say(HAPAX_INVALID, problem,
				      "the headers are too large: at most 64 KiB are kept");
	return hpx_result_tell(HPX_NOMEM, NULL, problem);
}

static enum hapax_result take_body(struct hpx_call *call, const void *body, size_t len,
				   struct hpx_span *ret_body, char *problem)
{
	if (len > BODY_BYTES_MAX)
		return hpx_result_say(HAPAX_INVALID, problem,
				      "the body is too large: at most 16 MiB are kept");
	if (!hpx_call_copy(call, hpx_span(body, len), ret_body))
		return hpx_result_tell(HPX_NOMEM, NULL, problem);
	return HAPAX_OK;
}

/* ---- the answer ---- */

enum hapax_result hapax_complete(struct hapax *hapax, const char *lease,
				 const struct hapax_answer *given, char *problem)
{
	struct hpx_call *call = NULL;
	struct hapax_answer answer = { .status = 0 };

	if (given != NULL && !hpx_sized_read(given, &answer, sizeof(answer)))
		return hpx_result_bad_struct("hapax_answer", problem);
	if (given == NULL || is_missing(answer.body, answer.body_len))
		return hpx_result_say(HAPAX_MISUSE, problem, "hapax_complete needs an answer");
	if (answer.status < 200 || answer.status > 599)
		return hpx_result_say(HAPAX_INVALID, problem,
				      "the status of an answer is 200 to 599");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_COMPLETE, &call, problem);
	if (result != HAPAX_OK)
		return result;
	call->answer.status = answer.status;
	call->answer.kept = true;
	call->op.complete.answer = &call->answer;
	result = take_headers(call, answer.headers, &call->answer.headers, problem);
	if (result == HAPAX_OK)
		result = take_body(call, answer.body, answer.body_len, &call->answer.body,
				   problem);
	return result == HAPAX_OK ? run_and_free(call, problem) : drop(call, result);
}

enum hapax_result hapax_fail(struct hapax *hapax, const char *lease, char *problem)
{
	struct hpx_call *call = NULL;
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_FAIL, &call, problem);

	return result == HAPAX_OK ? run_and_free(call, problem) : result;
}

/* ---- phases ---- */

enum hapax_result hapax_advance(struct hapax *hapax, const char *lease, const char *point,
				const void *data, size_t data_len, char *problem)
{
	struct hpx_call *call = NULL;

	if (point == NULL || is_missing(data, data_len))
		return hpx_result_say(HAPAX_MISUSE, problem,
				      "hapax_advance needs the name of the phase that is done");
	if (!hpx_point_valid(hpx_span_of(point)))
		return hpx_result_say(HAPAX_INVALID, problem,
				      "the name of a recovery point is 1 to %d visible ASCII characters",
				      HPX_POINT_SIZE - 1);
	if (data_len > HPX_POINT_DATA_MAX)
		return hpx_result_say(HAPAX_INVALID, problem,
				      "the data of a recovery point is too large: at most 1 MiB");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_ADVANCE, &call, problem);
	if (result != HAPAX_OK)
		return result;
	if (!hpx_call_copy(call, hpx_span_of(point), &call->op.advance.point) ||
	    !hpx_call_copy(call, hpx_span(data, data_len), &call->op.advance.data))
		return no_memory(call, problem);
	return run_and_free(call, problem);
}

/* A question carries nothing that could be uncertain. */
static enum hapax_result not_told(enum hapax_result result, char *problem)
{
	if (result != HAPAX_UNCERTAIN)
		return result;
	return hpx_result_say(HAPAX_UNAVAILABLE, problem, "the store did not answer in time");
}

enum hapax_result hapax_recovery(struct hapax *hapax, const char *lease,
				 char ret_point[HAPAX_POINT_SIZE], void **ret_data,
				 size_t *ret_data_len, char *problem)
{
	struct hpx_call *call = NULL;

	if (ret_point == NULL || ret_data == NULL || ret_data_len == NULL)
		return hpx_result_say(HAPAX_MISUSE, problem,
				      "hapax_recovery needs places for the point and its data");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_READ_POINT, &call, problem);
	if (result != HAPAX_OK)
		return result;
	result = not_told(run(&call, problem), problem);
	if (result == HAPAX_OK) {
		struct hpx_buffer *saved = &call->op.read_point.data;
		memcpy(ret_point, call->op.decision.record.point, HAPAX_POINT_SIZE);
		*ret_data = NULL;
		*ret_data_len = saved->len;
		if (saved->len > 0) {
			*ret_data = saved->ptr;
			hpx_buffer_init(saved, 0);
		}
	}
	hpx_call_free(call);
	return result;
}

/* ---- jobs ---- */

static bool copy_job(struct hpx_call *call, const struct hapax_job *job)
{
	return hpx_call_copy(call, hpx_span_of(job->name), &call->job.name) &&
	       hpx_call_copy(call, hpx_span_of(job->target), &call->job.target) &&
	       hpx_call_copy(call, hpx_span_of(job->method), &call->job.method) &&
	       hpx_call_copy(call, hpx_span_of(job->path), &call->job.path);
}

static enum hapax_result take_job(struct hpx_call *call, const struct hapax_job *job, char *problem)
{
	enum hapax_result result;

	if (!copy_job(call, job))
		return hpx_result_tell(HPX_NOMEM, NULL, problem);
	result = take_headers(call, job->headers, &call->job.headers, problem);
	if (result == HAPAX_OK)
		result = take_body(call, job->body, job->body_len, &call->job.body, problem);
	if (result != HAPAX_OK)
		return result;
	const char *fault = hpx_job_fault(&call->job);
	if (fault == NULL && (!hpx_utf8_valid(call->job.name) || !hpx_utf8_valid(call->job.target)))
		fault = "a job's name and target are UTF-8";
	call->op.enqueue.job = &call->job;
	return fault == NULL ? HAPAX_OK : hpx_result_say(HAPAX_INVALID, problem, "%s", fault);
}

enum hapax_result hapax_enqueue(struct hapax *hapax, const char *lease,
				const struct hapax_job *given, char *problem)
{
	struct hpx_call *call = NULL;
	struct hapax_job job = { .name = NULL };

	if (given != NULL && !hpx_sized_read(given, &job, sizeof(job)))
		return hpx_result_bad_struct("hapax_job", problem);
	if (job.name == NULL || job.target == NULL || job.method == NULL || job.path == NULL ||
	    is_missing(job.body, job.body_len))
		return hpx_result_say(HAPAX_MISUSE, problem,
				      "a job needs a name, a target, a method and a path");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_ENQUEUE, &call, problem);
	if (result != HAPAX_OK)
		return result;
	result = take_job(call, &job, problem);
	return result == HAPAX_OK ? run_and_free(call, problem) : drop(call, result);
}

/* ---- with connections of its own ---- */

static enum hapax_result own_alone(const struct hapax *hapax, char *problem)
{
	if (hapax == NULL || hapax->committer != NULL)
		return HAPAX_OK; /* what is NULL is told with the rest */
	return hpx_result_say(HAPAX_MISUSE, problem,
			      "this needs a handle of hapax_open: it is durable at once, whatever "
			      "becomes of the caller's transaction");
}

enum hapax_result hapax_renew(struct hapax *hapax, const char *lease, int64_t lease_ms,
			      char *problem)
{
	struct hpx_call *call = NULL;
	enum hapax_result result = own_alone(hapax, problem);

	if (result == HAPAX_OK && (lease_ms <= 0 || lease_ms > LEASE_MAX_MS))
		result = hpx_result_say(HAPAX_MISUSE, problem,
					"a lease is renewed for 1 ms to an hour");
	if (result == HAPAX_OK)
		result = prepare(hapax, lease, HPX_VERB_RENEW, &call, problem);
	if (result != HAPAX_OK)
		return result;
	call->op.renew.lease_ms = lease_ms;
	return run_and_free(call, problem);
}

enum hapax_result hapax_lose(struct hapax *hapax, const char *lease, char *problem)
{
	struct hpx_call *call = NULL;
	enum hapax_result result = own_alone(hapax, problem);

	if (result == HAPAX_OK)
		result = prepare(hapax, lease, HPX_VERB_MARK_UNKNOWN, &call, problem);
	return result == HAPAX_OK ? run_and_free(call, problem) : result;
}
