/* What the holder of a lease may write, or ask; and hapax_tidy, which finds the
 * leases that were lost. */
#include <stdlib.h>

#include "base/sized.h"
#include "base/span.h"
#include "base/status.h"
#include "http/field.h"
#include "lib/lib.h"

#define BODY_BYTES_MAX ((size_t)16 << 20)

/* ---- what all calls with a lease share ---- */

/* A pending op by this lease, or what is wrong with the lease. */
static enum hapax_result prepare(struct hapax *hapax, const char *lease, enum hpx_verb verb,
				 struct hpx_pending **ret_pending, char *problem)
{
	if (hapax == NULL || lease == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem, "this needs a handle and a lease");
	struct hpx_pending *pending = hpx_pending_new(hapax, verb);
	if (pending == NULL)
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	if (!hpx_lease_parse(hpx_span_of(lease), &pending->op.id, &pending->op.token)) {
		hpx_pending_free(pending);
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "this is not a lease: pass the one of hapax_begin, or the value "
				     "of the Hapax-Lease header, as it came");
	}
	*ret_pending = pending;
	return HAPAX_OK;
}

/* Runs the op. `*pending` is NULL afterwards where the time was up. */
static enum hapax_result run_pending(struct hpx_pending **pending, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE];
	int64_t deadline_ms = hpx_pending_deadline((*pending)->hapax);
	enum hpx_status status = hpx_pending_run(pending, deadline_ms, detail);

	if (status != HPX_TIMEOUT)
		return hpx_lib_result(status, detail, problem);
	return hpx_lib_error(HAPAX_UNCERTAIN, problem,
			     "it is not known to be durable yet; the handle goes on trying, and the "
			     "same call again tells%s%.300s",
			     detail[0] != '\0' ? ": " : "", detail);
}

static enum hapax_result run_and_free(struct hpx_pending *pending, char *problem)
{
	enum hapax_result result = run_pending(&pending, problem);

	hpx_pending_free(pending);
	return result;
}

static enum hapax_result drop(struct hpx_pending *pending, enum hapax_result result)
{
	hpx_pending_free(pending);
	return result;
}

static enum hapax_result no_memory(struct hpx_pending *pending, char *problem)
{
	return drop(pending, hpx_lib_result(HPX_NOMEM, NULL, problem));
}

static bool is_missing(const void *bytes, size_t len)
{
	return bytes == NULL && len > 0;
}

/* The lines as they are stored, in the op's own memory. */
static enum hapax_result take_headers(struct hpx_pending *pending, const char *lines,
				      struct hpx_span *ret_headers, char *problem)
{
	struct hpx_buffer kept;
	bool copied = false;

	hpx_buffer_init(&kept, HPX_KEPT_BYTES_MAX);
	enum hpx_status status = hpx_field_lines_keep(hpx_span_of(lines), &kept);
	if (status == HPX_OK)
		copied = hpx_pending_copy(pending, hpx_buffer_span(&kept), ret_headers);
	hpx_buffer_done(&kept);
	if (copied)
		return HAPAX_OK;
	if (status == HPX_INVALID)
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "headers must be lines of the form \"Name: value\", in UTF-8");
	if (status == HPX_TOO_LARGE)
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "the headers are too large: at most 64 KiB are kept");
	return hpx_lib_result(HPX_NOMEM, NULL, problem);
}

static enum hapax_result take_body(struct hpx_pending *pending, const void *body, size_t len,
				   struct hpx_span *ret_body, char *problem)
{
	if (len > BODY_BYTES_MAX)
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "the body is too large: at most 16 MiB are kept");
	if (!hpx_pending_copy(pending, hpx_span(body, len), ret_body))
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	return HAPAX_OK;
}

/* ---- the answer ---- */

enum hapax_result hpx_lib_take_answer(struct hpx_pending *pending, const struct hapax_answer *answer,
				      char *problem)
{
	enum hapax_result result;

	if (is_missing(answer->body, answer->body_len))
		return hpx_lib_error(HAPAX_MISUSE, problem, "an answer needs its body");
	if (answer->status < 200 || answer->status > 599)
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "the status of an answer is 200 to 599");
	pending->answer.status = answer->status;
	pending->answer.kept = true;
	result = take_headers(pending, answer->headers, &pending->answer.headers, problem);
	return result == HAPAX_OK ? take_body(pending, answer->body, answer->body_len,
					      &pending->answer.body, problem) :
				    result;
}

enum hapax_result hapax_complete(struct hapax *hapax, const char *lease,
				 const struct hapax_answer *given, char *problem)
{
	struct hpx_pending *pending = NULL;
	struct hapax_answer answer = { .status = 0 };

	if (given == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem, "hapax_complete needs an answer");
	if (!hpx_sized_read(given, &answer, sizeof(answer)))
		return hpx_lib_bad_struct("hapax_answer", problem);
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_COMPLETE, &pending, problem);
	if (result != HAPAX_OK)
		return result;
	if (answer.retention_ms < 0 || answer.retention_ms > HPX_LIB_RETENTION_MAX_MS)
		return drop(pending, hpx_lib_error(HAPAX_INVALID, problem,
						   "an answer is kept for at most ten years"));
	pending->op.complete.answer = &pending->answer;
	pending->op.complete.retention_ms = answer.retention_ms;
	result = hpx_lib_take_answer(pending, &answer, problem);
	return result == HAPAX_OK ? run_and_free(pending, problem) : drop(pending, result);
}

enum hapax_result hapax_fail(struct hapax *hapax, const char *lease, char *problem)
{
	struct hpx_pending *pending = NULL;
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_FAIL, &pending, problem);

	return result == HAPAX_OK ? run_and_free(pending, problem) : result;
}

/* ---- phases ---- */

enum hapax_result hapax_advance(struct hapax *hapax, const char *lease, const char *point,
				const void *data, size_t data_len, char *problem)
{
	struct hpx_pending *pending = NULL;

	if (point == NULL || is_missing(data, data_len))
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_advance needs the name of the phase that is done");
	if (!hpx_point_valid(hpx_span_of(point)))
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "the name of a recovery point is 1 to %d visible ASCII characters",
				     HPX_POINT_SIZE - 1);
	if (data_len > HPX_POINT_DATA_MAX)
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "the data of a recovery point is too large: at most 1 MiB");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_ADVANCE, &pending, problem);
	if (result != HAPAX_OK)
		return result;
	if (!hpx_pending_copy(pending, hpx_span_of(point), &pending->op.advance.point) ||
	    !hpx_pending_copy(pending, hpx_span(data, data_len), &pending->op.advance.data))
		return no_memory(pending, problem);
	return run_and_free(pending, problem);
}

/* A query writes nothing: without an answer, the store is unavailable, not uncertain. */
static enum hapax_result not_told(enum hapax_result result, char *problem)
{
	if (result != HAPAX_UNCERTAIN)
		return result;
	return hpx_lib_error(HAPAX_UNAVAILABLE, problem, "the store did not answer in time");
}

enum hapax_result hapax_recovery(struct hapax *hapax, const char *lease,
				 char ret_point[HAPAX_POINT_SIZE], void **ret_data,
				 size_t *ret_data_len, char *problem)
{
	struct hpx_pending *pending = NULL;

	if (ret_point == NULL || ret_data == NULL || ret_data_len == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_recovery needs places for the point and its data");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_READ_POINT, &pending, problem);
	if (result != HAPAX_OK)
		return result;
	result = not_told(run_pending(&pending, problem), problem);
	if (result == HAPAX_OK) {
		struct hpx_buffer *saved = &pending->op.read_point.data;
		memcpy(ret_point, pending->op.decision.record.point, HAPAX_POINT_SIZE);
		*ret_data = NULL;
		*ret_data_len = saved->len;
		if (saved->len > 0) {
			*ret_data = saved->ptr;
			hpx_buffer_init(saved, 0);
		}
	}
	hpx_pending_free(pending);
	return result;
}

/* ---- jobs ---- */

static bool copy_job(struct hpx_pending *pending, const struct hapax_job *job)
{
	return hpx_pending_copy(pending, hpx_span_of(job->name), &pending->job.name) &&
	       hpx_pending_copy(pending, hpx_span_of(job->target), &pending->job.target) &&
	       hpx_pending_copy(pending, hpx_span_of(job->method), &pending->job.method) &&
	       hpx_pending_copy(pending, hpx_span_of(job->path), &pending->job.path);
}

static enum hapax_result take_job(struct hpx_pending *pending, const struct hapax_job *job,
				  char *problem)
{
	enum hapax_result result;

	if (!copy_job(pending, job))
		return hpx_lib_result(HPX_NOMEM, NULL, problem);
	result = take_headers(pending, job->headers, &pending->job.headers, problem);
	if (result == HAPAX_OK)
		result = take_body(pending, job->body, job->body_len, &pending->job.body, problem);
	if (result != HAPAX_OK)
		return result;
	const char *fault = hpx_job_fault(&pending->job);
	if (fault == NULL &&
	    (!hpx_utf8_valid(pending->job.name) || !hpx_utf8_valid(pending->job.target)))
		fault = "a job's name and target are UTF-8";
	pending->op.enqueue.job = &pending->job;
	return fault == NULL ? HAPAX_OK : hpx_lib_error(HAPAX_INVALID, problem, "%s", fault);
}

enum hapax_result hapax_enqueue(struct hapax *hapax, const char *lease,
				const struct hapax_job *given, char *problem)
{
	struct hpx_pending *pending = NULL;
	struct hapax_job job = { .name = NULL };

	if (given != NULL && !hpx_sized_read(given, &job, sizeof(job)))
		return hpx_lib_bad_struct("hapax_job", problem);
	if (job.name == NULL || job.target == NULL || job.method == NULL || job.path == NULL ||
	    is_missing(job.body, job.body_len))
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "a job needs a name, a target, a method and a path");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_ENQUEUE, &pending, problem);
	if (result != HAPAX_OK)
		return result;
	result = take_job(pending, &job, problem);
	return result == HAPAX_OK ? run_and_free(pending, problem) : drop(pending, result);
}

enum hapax_result hapax_provider_id(struct hapax *hapax, const char *lease,
				    const char *provider_id, char *problem)
{
	struct hpx_pending *pending = NULL;

	if (provider_id == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem, "hapax_provider_id needs the id");
	if (!hpx_provider_id_valid(hpx_span_of(provider_id)))
		return hpx_lib_error(HAPAX_INVALID, problem,
				     "a provider's id is 1 to 127 visible ASCII characters");
	enum hapax_result result = prepare(hapax, lease, HPX_VERB_PROVIDER_ID, &pending, problem);
	if (result != HAPAX_OK)
		return result;
	if (!hpx_pending_copy(pending, hpx_span_of(provider_id), &pending->op.provider_id.text))
		return no_memory(pending, problem);
	return run_and_free(pending, problem);
}

/* ---- with connections of its own ---- */

static enum hapax_result check_own_connections(const struct hapax *hapax, char *problem)
{
	if (hapax == NULL || hapax->committer != NULL)
		return HAPAX_OK; /* NULL is reported by `prepare` */
	return hpx_lib_error(HAPAX_MISUSE, problem,
			     "this needs a handle of hapax_open: it is durable at once, whatever "
			     "becomes of the caller's transaction");
}

enum hapax_result hapax_renew(struct hapax *hapax, const char *lease, int64_t lease_ms,
			      char *problem)
{
	struct hpx_pending *pending = NULL;
	enum hapax_result result = check_own_connections(hapax, problem);

	if (result == HAPAX_OK && (lease_ms <= 0 || lease_ms > HPX_LEASE_MAX_MS))
		result = hpx_lib_error(HAPAX_MISUSE, problem,
				       "a lease is renewed for 1 ms to an hour");
	if (result == HAPAX_OK)
		result = prepare(hapax, lease, HPX_VERB_RENEW, &pending, problem);
	if (result != HAPAX_OK)
		return result;
	pending->op.renew.lease_ms = lease_ms;
	return run_and_free(pending, problem);
}

enum hapax_result hapax_lose(struct hapax *hapax, const char *lease, char *problem)
{
	struct hpx_pending *pending = NULL;
	enum hapax_result result = check_own_connections(hapax, problem);

	if (result == HAPAX_OK)
		result = prepare(hapax, lease, HPX_VERB_MARK_UNKNOWN, &pending, problem);
	return result == HAPAX_OK ? run_and_free(pending, problem) : result;
}

/* ---- hapax_tidy: what the gateway's workers do, in one bounded round ---- */

#define SWEEP_BATCH 64
#define REAP_BATCH 256
/* One round leaves the rest to the next. */
#define BATCHES_MAX 16

/* One batch; `*ret_more`: it was full. Nothing is lost with a batch that was not
 * done in time: the next one finds the same rows. */
static enum hpx_status run_batch(struct hapax *hapax, enum hpx_verb verb, unsigned limit,
				 int64_t deadline_ms, bool *ret_more, char *detail)
{
	struct hpx_pending *pending = hpx_pending_new(hapax, verb);
	bool sweep = verb == HPX_VERB_SWEEP;

	HPX_ASSERT(sweep || verb == HPX_VERB_REAP);
	if (pending == NULL)
		return HPX_NOMEM;
	if (sweep) {
		pending->op.sweep.limit = limit;
		pending->op.actor = HPX_SPAN("sweeper");
		pending->op.reason = HPX_SPAN("the lease was lost");
	} else {
		pending->op.reap.limit = limit;
		pending->op.actor = HPX_SPAN("reaper");
	}
	enum hpx_status status = hpx_pending_run(&pending, deadline_ms, detail);
	if (status == HPX_OK)
		*ret_more = (sweep ? pending->op.sweep.count : pending->op.reap.count) >= limit;
	hpx_pending_free(pending);
	return status;
}

static enum hpx_status run_batches(struct hapax *hapax, enum hpx_verb verb, unsigned limit,
				   int64_t deadline_ms, char *detail)
{
	enum hpx_status status = HPX_OK;
	bool more = true;

	for (unsigned i = 0; i < BATCHES_MAX && more && status == HPX_OK; i++)
		status = run_batch(hapax, verb, limit, deadline_ms, &more, detail);
	return status;
}

enum hapax_result hapax_tidy(struct hapax *hapax, char *problem)
{
	char detail[HPX_STORE_PROBLEM_SIZE] = "";

	if (hapax == NULL || hapax->committer == NULL)
		return hpx_lib_error(HAPAX_MISUSE, problem,
				     "hapax_tidy needs a handle of hapax_open");
	int64_t deadline_ms = hpx_pending_deadline(hapax);
	enum hpx_status status = run_batches(hapax, HPX_VERB_SWEEP, SWEEP_BATCH, deadline_ms, detail);
	if (status == HPX_OK)
		status = run_batches(hapax, HPX_VERB_REAP, REAP_BATCH, deadline_ms, detail);
	if (status == HPX_OK)
		status = hpx_store_maintain(hapax->store, detail);
	/* Another process maintains the file at this moment. */
	if (status == HPX_BUSY)
		status = HPX_OK;
	return hpx_lib_result(status, detail, problem);
}
