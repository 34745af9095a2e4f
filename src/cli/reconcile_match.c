/* Matching: from the name in a row of the ledger to one operation or job of ours, and
 * back to its name. */
#include "base/status.h"
#include "cli/operations.h"
#include "cli/reconcile.h"
#include "core/json.h"

#define AMOUNT_MAX 256
#define PAGE 1000

void hpx_ledger_match_done(struct hpx_ledger_match *match)
{
	hpx_job_entry_free(match->job);
	match->job = NULL;
}

/* A job has its operation's reference also where that operation is gone. */
const struct hpx_operation_id *hpx_ledger_match_id(const struct hpx_ledger_match *match)
{
	HPX_ASSERT(match->job != NULL || match->has_entry);
	return match->job != NULL ? &match->job->delivery.operation : &match->entry.record.id;
}

const struct hpx_mark *hpx_ledger_match_mark(const struct hpx_ledger_match *match)
{
	HPX_ASSERT(match->job != NULL || match->has_entry);
	return match->job != NULL ? &match->job->delivery.mark : &match->entry.record.mark;
}

static enum hpx_standing stands_operation(const struct hpx_entry *entry)
{
	if (!entry->readable)
		return HPX_STANDS_UNKNOWN;
	switch (entry->record.state) {
	case HPX_STATE_COMPLETED:
		return entry->record.status == 0 || entry->record.status / 100 == 2 ? HPX_STANDS_HAPPENED :
										      HPX_STANDS_NOT;
	case HPX_STATE_UNKNOWN:
		return HPX_STANDS_UNKNOWN;
	case HPX_STATE_PENDING:
	case HPX_STATE_IN_PROGRESS:
		return HPX_STANDS_UNDER_WAY;
	default:
		return HPX_STANDS_NOT;
	}
}

/* A job that is done has happened, unless its answer, which is its operation's, says
 * otherwise. */
static enum hpx_standing stands_job(const struct hpx_ledger_match *match)
{
	switch (hpx_jobs_state(match->job)) {
	case HPX_JOB_DONE:
		return match->job->delivery.answers && match->has_entry ?
			       stands_operation(&match->entry) :
			       HPX_STANDS_HAPPENED;
	case HPX_JOB_UNKNOWN:
		return HPX_STANDS_UNKNOWN;
	case HPX_JOB_QUEUED:
	case HPX_JOB_SENDING:
		return HPX_STANDS_UNDER_WAY;
	default:
		return HPX_STANDS_NOT;
	}
}

void hpx_ledger_match_operation(const struct hpx_entry *entry, struct hpx_ledger_match *ret_match)
{
	*ret_match = (struct hpx_ledger_match){ .entry = *entry,
						.has_entry = true,
						.standing = stands_operation(entry),
						.state = hpx_keys_state(entry) };
}

enum hpx_status hpx_ledger_match_job(struct hpx_reconciliation *run, struct hpx_job_entry *job,
				     struct hpx_ledger_match *ret_match)
{
	struct hpx_ledger_match match = { .job = job,
					  .state = hpx_job_state_name(hpx_jobs_state(job)) };
	enum hpx_status status = hpx_store_find(run->command.reader, &job->delivery.operation,
						&run->scratch, &match.entry, NULL);

	if (status != HPX_OK && status != HPX_NOT_FOUND)
		return status;
	match.has_entry = status == HPX_OK && hpx_mark_eq(&match.entry.record.mark,
							  &job->delivery.mark);
	match.standing = stands_job(&match);
	*ret_match = match;
	return HPX_OK;
}

/* The match with the only job of the list. Takes the list over. */
static enum hpx_status only_job(struct hpx_reconciliation *run, struct hpx_job_entry *jobs,
				struct hpx_ledger_match *ret_match)
{
	enum hpx_status status = jobs == NULL       ? HPX_NOT_FOUND :
				 jobs->next != NULL ? HPX_CONFLICT :
						      hpx_ledger_match_job(run, jobs, ret_match);

	if (status != HPX_OK)
		hpx_job_entry_free(jobs);
	return status;
}

static enum hpx_status find_jobs(struct hpx_reconciliation *run, struct hpx_job_query *query,
				 struct hpx_ledger_match *ret_match)
{
	struct hpx_job_entry *jobs = NULL;

	query->state = HPX_JOB_STATE_COUNT;
	query->target = hpx_span_of(run->target);
	query->limit = 2;
	enum hpx_status status = hpx_store_jobs(run->command.reader, query, &jobs);
	return status == HPX_OK ? only_job(run, jobs, ret_match) : status;
}

/* The operation's one job for the target. Jobs of an earlier use of the key do not
 * count. */
static enum hpx_status find_job_of(struct hpx_reconciliation *run,
				   const struct hpx_operation_id *id,
				   const struct hpx_mark *mark, struct hpx_ledger_match *ret_match)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT,
				       .operation = id,
				       .target = hpx_span_of(run->target),
				       .limit = PAGE };
	struct hpx_job_entry *jobs = NULL;
	enum hpx_status status = hpx_store_jobs(run->command.reader, &query, &jobs);

	if (status != HPX_OK)
		return status;
	return only_job(run, hpx_jobs_keep_marked(jobs, mark), ret_match);
}

static enum hpx_status find_reference(struct hpx_reconciliation *run, struct hpx_span name,
				      struct hpx_ledger_match *ret_match)
{
	struct hpx_operation_id id;
	struct hpx_mark mark;
	struct hpx_entry entry;

	if (!hpx_reference_parse(name, &id, &mark))
		return HPX_INVALID;
	if (run->is_jobs)
		return find_job_of(run, &id, &mark, ret_match);
	enum hpx_status status =
		hpx_store_find(run->command.reader, &id, &run->scratch, &entry, NULL);
	if (status != HPX_OK)
		return status;
	if (entry.readable && !hpx_mark_eq(&mark, &entry.record.mark))
		return HPX_NOT_FOUND;
	hpx_ledger_match_operation(&entry, ret_match);
	return HPX_OK;
}

/* A client's key counts only where exactly one operation has it, stored as it is or as its
 * hash. */
static enum hpx_status find_key(struct hpx_reconciliation *run, struct hpx_span name,
				struct hpx_ledger_match *ret_match)
{
	struct hpx_walk walk = { .ended = false };
	struct hpx_query query = { .state = HPX_STATE_COUNT,
				   .key = name,
				   .route = run->route != NULL ? hpx_span_of(run->route) :
								 (struct hpx_span){ NULL, 0 },
				   .limit = 2,
				   .walk = &walk };
	struct hpx_entry *found = NULL;
	struct hpx_looked looked;
	size_t count = 0;
	enum hpx_status status = hpx_store_list(run->command.reader, &query, &run->scratch, &found,
						&count, &looked);

	if (status != HPX_OK)
		return status;
	if (count == 0)
		return HPX_NOT_FOUND;
	if (count > 1 || !looked.all)
		return HPX_CONFLICT;
	hpx_ledger_match_operation(found, ret_match);
	return HPX_OK;
}

enum hpx_status hpx_ledger_match_find(struct hpx_reconciliation *run, struct hpx_span name,
				      struct hpx_ledger_match *ret_match)
{
	struct hpx_job_query query = { .provider_id = name };

	if (run->operation != NULL)
		return find_reference(run, name, ret_match);
	if (run->provider_id != NULL)
		return find_jobs(run, &query, ret_match);
	if (!run->is_jobs)
		return find_key(run, name, ret_match);
	query.provider_id = (struct hpx_span){ NULL, 0 };
	enum hpx_status status = hpx_digest_set_number(&run->keys, name, &query.number);
	return status == HPX_OK ? find_jobs(run, &query, ret_match) : status;
}

enum hpx_status hpx_ledger_match_name(struct hpx_reconciliation *run,
				      const struct hpx_ledger_match *match, struct hpx_buffer *out)
{
	const struct hpx_job_entry *job = match->job;
	char reference[HPX_REFERENCE_SIZE], key[HPX_JOB_KEY_SIZE];

	HPX_ASSERT((job != NULL) == run->is_jobs);
	if (run->provider_id != NULL)
		return hpx_buffer_text(out, job->delivery.provider_id);
	if (run->operation != NULL) {
		hpx_reference_print(hpx_ledger_match_id(match), hpx_ledger_match_mark(match),
				    reference);
		return hpx_buffer_text(out, reference);
	}
	if (job == NULL)
		return hpx_buffer_append(out, match->entry.description.key);
	enum hpx_status status = hpx_job_key(&job->delivery.operation, &job->delivery.mark,
					     job->job.name, key);
	return status == HPX_OK ? hpx_buffer_text(out, key) : status;
}

enum hpx_status hpx_ledger_match_index_keys(struct hpx_reconciliation *run)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT,
				       .target = hpx_span_of(run->target),
				       .limit = PAGE };
	char key[HPX_JOB_KEY_SIZE];

	HPX_ASSERT(run->is_jobs && run->key != NULL && run->keys.count == 0);
	for (;;) {
		struct hpx_job_entry *jobs = NULL;
		enum hpx_status status = hpx_store_jobs(run->command.reader, &query, &jobs);

		for (struct hpx_job_entry *job = jobs; status == HPX_OK && job; job = job->next) {
			query.before = job->delivery.number;
			status = hpx_job_key(&job->delivery.operation, &job->delivery.mark,
					     job->job.name, key);
			if (status == HPX_OK)
				status = hpx_digest_set_put(&run->keys, hpx_span_of(key),
							    job->delivery.number);
		}
		bool more = jobs != NULL;
		hpx_job_entry_free(jobs);
		if (status != HPX_OK || !more)
			return status;
	}
}

static enum hpx_status amount_in(struct hpx_reconciliation *run, struct hpx_span body,
				 struct hpx_span *ret_text)
{
	struct hpx_json_scalar scalar;
	enum hpx_status status = hpx_json_lookup(body, hpx_span_of(run->amount_pointer),
						 AMOUNT_MAX, &run->scratch, &scalar);

	if (status == HPX_OK)
		*ret_text = scalar.text;
	return status == HPX_NOMEM || status == HPX_OK ? status : HPX_NOT_FOUND;
}

/* In the body of the job that brings the operation's answer. */
static enum hpx_status amount_in_jobs(struct hpx_reconciliation *run,
				      const struct hpx_ledger_match *match, struct hpx_span *ret_text)
{
	struct hpx_job_entry *jobs = NULL;
	enum hpx_status status = hpx_jobs_of(&run->command, &match->entry.record, &jobs);
	const struct hpx_job_entry *job = hpx_jobs_answering(jobs);

	if (status == HPX_OK)
		status = job != NULL ? amount_in(run, job->job.body, ret_text) : HPX_NOT_FOUND;
	hpx_job_entry_free(jobs);
	return status;
}

static enum hpx_status amount_in_answer(struct hpx_reconciliation *run,
					const struct hpx_ledger_match *match,
					struct hpx_span *ret_text)
{
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	enum hpx_status status = hpx_store_find(run->command.reader, &match->entry.record.id,
						&run->scratch, &entry, &answer);

	if (status != HPX_OK || answer == NULL)
		return status == HPX_OK ? HPX_NOT_FOUND : status;
	status = amount_in(run, answer->body, ret_text);
	hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_ledger_match_amount(struct hpx_reconciliation *run,
					const struct hpx_ledger_match *match,
					struct hpx_span *ret_text)
{
	enum hpx_status status = match->job != NULL ?
					 amount_in(run, match->job->job.body, ret_text) :
					 amount_in_jobs(run, match, ret_text);

	if (status != HPX_NOT_FOUND || !match->has_entry)
		return status;
	return amount_in_answer(run, match, ret_text);
}

/* ---- the answer that a row gives ---- */

const struct hpx_answer *hpx_ledger_match_answer(const struct hpx_reconciliation *run,
						 struct hpx_buffer *headers, struct hpx_buffer *body,
						 struct hpx_answer *answer)
{
	const struct hpx_answer_rule *rule = &run->answer_rule;
	struct hpx_provider_object object = { .text = run->row_text };

	if (rule->status == 0 || run->row_text.ptr == NULL)
		return NULL;
	enum hpx_status status = hpx_reconstruct(rule, &object, headers, body);
	if (status != HPX_OK) {
		fprintf(stderr, "hapax: the row gives no answer (%s): settled without one\n",
			hpx_status_text(status));
		return NULL;
	}
	*answer = (struct hpx_answer){ .status = rule->status,
				       .kept = true,
				       .headers = hpx_buffer_span(headers),
				       .body = hpx_buffer_span(body) };
	return answer;
}
