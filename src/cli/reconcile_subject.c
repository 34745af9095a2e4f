/* From a row of the ledger to one of ours, and back. */
#include "cli/jobs.h"
#include "cli/reconcile.h"
#include "core/json_lookup.h"

#define AMOUNT_MAX 256
#define PAGE 1000

void hpx_subject_done(struct hpx_subject *subject)
{
	hpx_job_entry_free(subject->job);
	subject->job = NULL;
}

static enum hpx_standing stands_operation(const struct hpx_entry *entry)
{
	if (!entry->readable)
		return HPX_STANDS_UNKNOWN;
	switch (entry->record.state) {
	case HPX_STATE_COMPLETED:
		return entry->record.status / 100 == 2 ? HPX_STANDS_HAPPENED : HPX_STANDS_NOT;
	case HPX_STATE_UNKNOWN:
		return HPX_STANDS_UNKNOWN;
	case HPX_STATE_PENDING:
	case HPX_STATE_IN_PROGRESS:
		return HPX_STANDS_UNDER_WAY;
	default:
		return HPX_STANDS_NOT;
	}
}

/* A job that is done was taken, unless its answer, which is its operation's,
 * says otherwise. */
static enum hpx_standing stands_job(const struct hpx_subject *subject)
{
	switch (hpx_jobs_state(subject->job)) {
	case HPX_JOB_DONE:
		return subject->job->delivery.answers && subject->has_entry ?
			       stands_operation(&subject->entry) :
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

void hpx_subject_operation(const struct hpx_entry *entry, struct hpx_subject *ret_subject)
{
	*ret_subject = (struct hpx_subject){ .entry = *entry,
					     .has_entry = true,
					     .standing = stands_operation(entry),
					     .state = hpx_keys_state(entry) };
}

enum hpx_status hpx_subject_job(struct hpx_reconciliation *run, struct hpx_job_entry *job,
				struct hpx_subject *ret_subject)
{
	struct hpx_subject subject = { .job = job,
				       .state = hpx_job_state_name(hpx_jobs_state(job)) };
	enum hpx_status status = hpx_store_find(run->command.reader, &job->delivery.operation,
						&run->scratch, &subject.entry, NULL);

	if (status != HPX_OK && status != HPX_NOT_FOUND)
		return status;
	subject.has_entry = status == HPX_OK && hpx_mark_eq(&subject.entry.record.mark,
							    &job->delivery.mark);
	subject.standing = stands_job(&subject);
	*ret_subject = subject;
	return HPX_OK;
}

/* The only one of the list; the list is the callee's from now on. */
static enum hpx_status only_job(struct hpx_reconciliation *run, struct hpx_job_entry *jobs,
				struct hpx_subject *ret_subject)
{
	enum hpx_status status = jobs == NULL       ? HPX_NOT_FOUND :
				 jobs->next != NULL ? HPX_CONFLICT :
						      hpx_subject_job(run, jobs, ret_subject);

	if (status != HPX_OK)
		hpx_job_entry_free(jobs);
	return status;
}

static enum hpx_status find_jobs(struct hpx_reconciliation *run, struct hpx_job_query *query,
				 struct hpx_subject *ret_subject)
{
	struct hpx_job_entry *jobs = NULL;

	query->state = HPX_JOB_STATE_COUNT;
	query->target = hpx_span_of(run->target);
	query->limit = 2;
	enum hpx_status status = hpx_store_jobs(run->command.reader, query, &jobs);
	return status == HPX_OK ? only_job(run, jobs, ret_subject) : status;
}

/* An operation's jobs for the target; those of an earlier use of the key are
 * others. */
static enum hpx_status find_job_of(struct hpx_reconciliation *run,
				   const struct hpx_operation_id *id,
				   const struct hpx_mark *mark, struct hpx_subject *ret_subject)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT,
				       .operation = id,
				       .target = hpx_span_of(run->target),
				       .limit = PAGE };
	struct hpx_job_entry *jobs = NULL, *mine = NULL, *others = NULL;
	enum hpx_status status = hpx_store_jobs(run->command.reader, &query, &jobs);

	if (status != HPX_OK)
		return status;
	while (jobs != NULL) {
		struct hpx_job_entry *job = jobs;
		struct hpx_job_entry **list =
			hpx_mark_eq(&job->delivery.mark, mark) ? &mine : &others;

		jobs = job->next;
		job->next = *list;
		*list = job;
	}
	hpx_job_entry_free(others);
	return only_job(run, mine, ret_subject);
}

static enum hpx_status find_reference(struct hpx_reconciliation *run, struct hpx_span name,
				      struct hpx_subject *ret_subject)
{
	struct hpx_operation_id id;
	struct hpx_mark mark;
	struct hpx_entry entry;

	if (!hpx_reference_parse(name, &id, &mark))
		return HPX_INVALID;
	if (run->is_jobs)
		return find_job_of(run, &id, &mark, ret_subject);
	enum hpx_status status =
		hpx_store_find(run->command.reader, &id, &run->scratch, &entry, NULL);
	if (status != HPX_OK)
		return status;
	if (entry.readable && !hpx_mark_eq(&mark, &entry.record.mark))
		return HPX_NOT_FOUND;
	hpx_subject_operation(&entry, ret_subject);
	return HPX_OK;
}

/* A bare key counts only where it selects exactly one operation. */
static enum hpx_status find_key(struct hpx_reconciliation *run, struct hpx_span name,
				struct hpx_subject *ret_subject)
{
	struct hpx_query query = { .state = HPX_STATE_COUNT, .key = name, .limit = PAGE };
	struct hpx_entry *entries = NULL, *found = NULL;
	size_t count = 0;
	enum hpx_status status =
		hpx_store_list(run->command.reader, &query, &run->scratch, &entries, &count);

	for (size_t i = 0; status == HPX_OK && i < count; i++) {
		if (run->route != NULL && !hpx_span_eq(entries[i].description.route,
						       hpx_span_of(run->route)))
			continue;
		if (found != NULL)
			return HPX_CONFLICT;
		found = &entries[i];
	}
	if (status != HPX_OK)
		return status;
	if (found == NULL)
		return HPX_NOT_FOUND;
	hpx_subject_operation(found, ret_subject);
	return HPX_OK;
}

enum hpx_status hpx_subject_find(struct hpx_reconciliation *run, struct hpx_span name,
				 struct hpx_subject *ret_subject)
{
	struct hpx_job_query query = { .provider_id = name };

	if (run->operation != NULL)
		return find_reference(run, name, ret_subject);
	if (run->provider_id != NULL)
		return find_jobs(run, &query, ret_subject);
	if (!run->is_jobs)
		return find_key(run, name, ret_subject);
	query.provider_id = (struct hpx_span){ NULL, 0 };
	enum hpx_status status = hpx_seen_number(&run->keys, name, &query.number);
	return status == HPX_OK ? find_jobs(run, &query, ret_subject) : status;
}

enum hpx_status hpx_subject_name(struct hpx_reconciliation *run, const struct hpx_subject *subject,
				 struct hpx_buffer *out)
{
	const struct hpx_job_entry *job = subject->job;
	char reference[HPX_REFERENCE_SIZE], key[HPX_JOB_KEY_SIZE];

	if (run->provider_id != NULL)
		return hpx_buffer_text(out, job->delivery.provider_id);
	if (run->operation != NULL) {
		if (job != NULL)
			hpx_reference_print(&job->delivery.operation, &job->delivery.mark,
					    reference);
		else
			hpx_reference_print(&subject->entry.record.id,
					    &subject->entry.record.mark, reference);
		return hpx_buffer_text(out, reference);
	}
	if (job == NULL)
		return hpx_buffer_append(out, subject->entry.description.key);
	enum hpx_status status = hpx_job_key(&job->delivery.operation, &job->delivery.mark,
					     job->job.name, key);
	return status == HPX_OK ? hpx_buffer_text(out, key) : status;
}

enum hpx_status hpx_subject_index_keys(struct hpx_reconciliation *run)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT,
				       .target = hpx_span_of(run->target),
				       .limit = PAGE };
	char key[HPX_JOB_KEY_SIZE];

	for (;;) {
		struct hpx_job_entry *jobs = NULL;
		enum hpx_status status = hpx_store_jobs(run->command.reader, &query, &jobs);

		for (struct hpx_job_entry *job = jobs; status == HPX_OK && job; job = job->next) {
			query.before = job->delivery.number;
			status = hpx_job_key(&job->delivery.operation, &job->delivery.mark,
					     job->job.name, key);
			if (status == HPX_OK)
				status = hpx_seen_put(&run->keys, hpx_span_of(key),
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
				      const struct hpx_subject *subject, struct hpx_span *ret_text)
{
	struct hpx_job_entry *jobs = NULL;
	enum hpx_status status = hpx_jobs_of(&run->command, &subject->entry.record, &jobs);
	const struct hpx_job_entry *job = jobs;

	while (job != NULL && !job->delivery.answers)
		job = job->next;
	if (status == HPX_OK)
		status = job != NULL ? amount_in(run, job->job.body, ret_text) : HPX_NOT_FOUND;
	hpx_job_entry_free(jobs);
	return status;
}

static enum hpx_status amount_in_answer(struct hpx_reconciliation *run,
					const struct hpx_subject *subject,
					struct hpx_span *ret_text)
{
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	enum hpx_status status = hpx_store_find(run->command.reader, &subject->entry.record.id,
						&run->scratch, &entry, &answer);

	if (status != HPX_OK || answer == NULL)
		return status == HPX_OK ? HPX_NOT_FOUND : status;
	status = amount_in(run, answer->body, ret_text);
	hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_subject_amount(struct hpx_reconciliation *run,
				   const struct hpx_subject *subject, struct hpx_span *ret_text)
{
	enum hpx_status status = subject->job != NULL ?
					 amount_in(run, subject->job->job.body, ret_text) :
					 amount_in_jobs(run, subject, ret_text);

	if (status != HPX_NOT_FOUND || !subject->has_entry)
		return status;
	return amount_in_answer(run, subject, ret_text);
}
