/* A person's word about a job: retry, discard. */
#include "cli/jobs.h"

static const char *why_not(const struct hpx_job_entry *job)
{
	if (!job->readable)
		return "its row cannot be read";
	switch (job->delivery.state) {
	case HPX_JOB_QUEUED:
		return "it is queued already and will be sent when it is due";
	case HPX_JOB_SENDING:
		return "it is being sent; wait until that has ended";
	case HPX_JOB_DONE:
		return "it is done, and nothing overrides that";
	case HPX_JOB_UNKNOWN:
		return "it may have happened; ask the target first, and if it may happen again, say "
		       "--force";
	case HPX_JOB_DISCARDED:
		return "it was discarded, and that is final";
	default:
		return "its state does not allow it";
	}
}

static int explain(const struct hpx_operator_command *command, const struct hpx_job_entry *job,
		   enum hpx_status status)
{
	if (status == HPX_REFUSED || status == HPX_CORRUPT)
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s", why_not(job));
	if (status == HPX_STALE || status == HPX_NOT_FOUND)
		return hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"not done: the job has changed meanwhile; look again with "
			"`hapax jobs show`");
	return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s",
				     hpx_status_text(status));
}

/* What became of the operation whose answer the job would have been; empty
 * where it has nothing to do with it. */
static const char *operation_after(struct hpx_operator_command *command,
				   const struct hpx_job_entry *job, struct hpx_entry *entry)
{
	enum hpx_status status =
		job->delivery.answers ? hpx_store_find(command->reader, &job->delivery.operation,
						       &command->arena, entry, NULL) :
					HPX_NOT_FOUND;

	if (status != HPX_OK ||
	    !hpx_mark_eq(&entry->record.mark, &job->delivery.mark))
		return "";
	return hpx_keys_state(entry);
}

static int print_json(const struct hpx_operator_command *command, const struct hpx_job_entry *job,
		      const struct hpx_store_op *op, const char *state, const char *operation)
{
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_buffer out;
	struct hpx_operator_json json = { .out = &out };

	hpx_reference_print(&job->delivery.operation, &job->delivery.mark, reference);
	hpx_buffer_init(&out, 65536);
	hpx_operator_json_open(&json, "{");
	hpx_operator_json_number(&json, "number", (uint64_t)job->delivery.number);
	hpx_operator_json_text(&json, "state", hpx_span_of(state));
	hpx_operator_json_text(&json, "operation", hpx_span_of(reference));
	if (operation[0] != '\0')
		hpx_operator_json_text(&json, "operation_state", hpx_span_of(operation));
	int code = hpx_operator_json_sign(command, &json, op);
	hpx_buffer_done(&out);
	return code;
}

/* What becomes of those who wait for the operation's answer. */
static const char *consequence(enum hpx_job_move move, const char *operation,
			       const struct hpx_entry *entry)
{
	if (operation[0] == '\0')
		return move == HPX_JOB_MOVE_RETRY ? "it is sent again when its turn comes" :
						    "it is never sent again";
	if (move == HPX_JOB_MOVE_RETRY)
		return "it is sent again; its operation is pending until it is answered";
	if (entry->record.state == HPX_STATE_COMPLETED)
		return "it is never sent; its operation is completed with 408: it did not happen";
	return "it is never sent again; its operation is unknown, because it may have happened: "
	       "settle it with `hapax keys resolve`";
}

static int settle(struct hpx_operator_command *command, struct hpx_job_entry *job,
		  enum hpx_job_move move, enum hpx_job_state state)
{
	struct hpx_job_turn turn = { .number = job->delivery.number,
				     .move = move,
				     .force = command->force != NULL };
	struct hpx_store_op op = { .verb = HPX_VERB_JOB,
				   .id = job->delivery.operation,
				   .turn = &turn };
	struct hpx_entry entry;
	int code = hpx_operator_write(command, &op);

	if (code != HPX_EXIT_OK)
		return code;
	hpx_job_entry_free(op.jobs);
	if (op.status != HPX_OK)
		return explain(command, job, op.status);
	const char *operation = operation_after(command, job, &entry);
	if (command->json != NULL)
		return print_json(command, job, &op, hpx_job_state_name(state), operation);
	printf("job %lld: %s; %s\n", (long long)job->delivery.number, hpx_job_state_name(state),
	       consequence(move, operation, &entry));
	return HPX_EXIT_OK;
}

int hpx_jobs_retry(struct hpx_operator_command *command)
{
	struct hpx_job_entry *job = NULL;
	int code = hpx_jobs_find(command, &job);

	if (code != HPX_EXIT_OK)
		return code;
	bool unknown = hpx_jobs_state(job) == HPX_JOB_UNKNOWN;
	code = settle(command, job, HPX_JOB_MOVE_RETRY, HPX_JOB_QUEUED);
	if (code == HPX_EXIT_OK && unknown)
		fputs("Warning: nobody knows whether it happened. If it did, and the target does not know\n"
		      "the job's key any more, it happens twice now.\n",
		      stderr);
	hpx_job_entry_free(job);
	return code;
}

int hpx_jobs_discard(struct hpx_operator_command *command)
{
	struct hpx_job_entry *job = NULL;
	int code = hpx_jobs_find(command, &job);

	if (code != HPX_EXIT_OK)
		return code;
	code = settle(command, job, HPX_JOB_MOVE_DISCARD, HPX_JOB_DISCARDED);
	hpx_job_entry_free(job);
	return code;
}
