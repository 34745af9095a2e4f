/* `hapax jobs`: the deliveries that are owed to outside services, for people.
 * It works beside a running `hapax serve` and never creates a store. */
#include "cli/jobs.h"

/* Of one operation; an application that owes more names them by a list. */
#define JOBS_SHOWN_MAX 1000

static const struct hpx_operator_verb verbs[] = {
	{ .name = "ls",
	  .synopsis = "hapax jobs ls [--state STATE] [--target NAME] [FLAGS]",
	  .about = "Lists jobs, the newest first. The states are queued, sending, done, unknown,\n"
		   "dead and discarded; the dead letters are `hapax jobs ls --state dead`.",
	  .flags = { "state", "target", "operation", "limit", "full", "json" },
	  .run = hpx_jobs_ls },
	{ .name = "show",
	  .synopsis = "hapax jobs show NUMBER",
	  .about = "Shows all that is known of one job: what is sent, with which key, where it\n"
		   "stands, and the history of its operation. The credentials of a target are not\n"
		   "stored, so they cannot be shown.",
	  .flags = { "body", "json" },
	  .operands_max = 1,
	  .run = hpx_jobs_show },
	{ .name = "retry",
	  .synopsis = "hapax jobs retry NUMBER --reason TEXT",
	  .about =
		  "Queues a dead job again, with a new budget of attempts. One whose outcome is\n"
		  "unknown needs --force, because it may have happened: unless the target knows the\n"
		  "job's key again, it would then happen twice.",
	  .flags = { "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_jobs_retry },
	{ .name = "discard",
	  .synopsis = "hapax jobs discard NUMBER --reason TEXT",
	  .about =
		  "Gives a job up: it is never sent (again), and the next job of its operation may\n"
		  "go. A pending operation that waited for its answer is completed with 408, unless\n"
		  "it may have happened; one that is unknown stays so.",
	  .flags = { "reason", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_jobs_discard },
};

int hpx_jobs_find(struct hpx_operator_command *command, struct hpx_job_entry **ret_job)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .limit = 1 };
	uint64_t number;

	if (command->operand == NULL ||
	    !hpx_span_u64(hpx_span_of(command->operand), INT64_MAX, &number) || number == 0)
		return hpx_operator_complain(
			command, HPX_EXIT_USAGE,
			"name one job by its NUMBER, as `hapax jobs ls` shows it");
	query.number = (int64_t)number;
	*ret_job = NULL;
	enum hpx_status status = hpx_store_jobs(command->reader, &query, ret_job);
	if (status != HPX_OK)
		return hpx_operator_complain_read(command, status);
	if (*ret_job == NULL)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "there is no job %s (finished jobs are deleted after a "
					     "while); `hapax jobs ls` lists those that are there",
					     command->operand);
	return HPX_EXIT_OK;
}

enum hpx_status hpx_jobs_of(struct hpx_operator_command *command, const struct hpx_record *record,
			    struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT,
				       .operation = &record->id,
				       .limit = JOBS_SHOWN_MAX };
	struct hpx_job_entry *found = NULL, *turned = NULL, *others = NULL;
	enum hpx_status status = hpx_store_jobs(command->reader, &query, &found);

	*ret_jobs = NULL;
	if (status != HPX_OK)
		return status == HPX_UNSUPPORTED ? HPX_OK : status;
	/* Jobs outlive their operation: those of an earlier use of the key go. */
	while (found != NULL) {
		struct hpx_job_entry *job = found;
		bool mine = hpx_mark_eq(&job->delivery.mark, &record->mark);
		struct hpx_job_entry **list = mine ? &turned : &others;

		found = job->next;
		job->next = *list;
		*list = job;
	}
	hpx_job_entry_free(others);
	*ret_jobs = turned;
	return HPX_OK;
}

enum hpx_job_state hpx_jobs_state(const struct hpx_job_entry *job)
{
	return job->readable ? job->delivery.state : HPX_JOB_UNKNOWN;
}

int hpx_cli_jobs(int argc, char **argv)
{
	static const struct hpx_operator_verbs command = {
		.name = "jobs",
		.about =
			"Looks at the deliveries that are owed to outside services, and says what is to\n"
			"become of those that came to nothing. Works beside a running hapax serve.",
		.verb_names = "ls, show, retry and discard",
		.verbs = verbs,
		.verb_count = sizeof(verbs) / sizeof(verbs[0]),
	};

	return hpx_operator_run(&command, argc, argv);
}
