/* What the files of `hapax jobs` share, and what `hapax keys show` takes from
 * them. */
#ifndef HPX_CLI_JOBS_H
#define HPX_CLI_JOBS_H

#include "cli/operator_command.h"
#include "cli/operator_json.h"

/* The verbs; each returns the exit code. */
int hpx_jobs_ls(struct hpx_operator_command *command);
int hpx_jobs_show(struct hpx_operator_command *command);
int hpx_jobs_retry(struct hpx_operator_command *command);
int hpx_jobs_discard(struct hpx_operator_command *command);

/* The job whose number is the operand; hpx_job_entry_free. HPX_EXIT_OK, or what
 * to exit with when everything was said. */
int hpx_jobs_find(struct hpx_operator_command *command, struct hpx_job_entry **ret_job);

/* The jobs of one operation reference, in the order they were written; NULL
 * where there are none, or the store keeps no jobs. */
enum hpx_status hpx_jobs_of(struct hpx_operator_command *command, const struct hpx_record *record,
			    struct hpx_job_entry **ret_jobs);

/* A row that cannot be read is unknown. */
enum hpx_job_state hpx_jobs_state(const struct hpx_job_entry *job);
/* "POST /charges to bank" and where it stands, as a table, or as one line each. */
void hpx_jobs_table(const struct hpx_operator_command *command, const struct hpx_job_entry *jobs);
/* The members of a job, without the brackets. */
void hpx_jobs_json(struct hpx_operator_json *json, const struct hpx_job_entry *job);

/* ---- who is asked about an unknown, and when (keys_jobs.c) ---- */

struct hpx_keys_question {
	struct hpx_next_question next;
	bool known;     /* the store could tell */
	const char *by; /* for people: "the probe of target bank"; "" where no --config says */
};

/* `route`: of the operation; `target`: of an unknown job, ptr NULL if none. */
enum hpx_status hpx_keys_question(struct hpx_operator_command *command,
				  const struct hpx_operation_id *id, struct hpx_span route,
				  struct hpx_span target, struct hpx_keys_question *ret_question);
void hpx_keys_print_question(const struct hpx_operator_command *command,
			     const struct hpx_keys_question *question);
void hpx_keys_json_question(struct hpx_operator_json *json, const struct hpx_keys_question *question);

/* ---- what `hapax jobs show` and `hapax keys show` have in common ---- */

/* Of an operation: the moves as they were made, an array. */
void hpx_operator_json_event(struct hpx_operator_json *json, const struct hpx_event *event);

#endif
