/* Shared by `hapax keys`, `hapax jobs` and `hapax reconcile`: finding operations and their
 * jobs in the store, and showing them. */
#ifndef HPX_CLI_OPERATIONS_H
#define HPX_CLI_OPERATIONS_H

#include "cli/operator_command.h"

/* ---- operations (keys.c, keys_ls.c) ---- */

/* Reads the operations of a query. HPX_EXIT_OK, or the exit code after a message. */
int hpx_keys_read(struct hpx_operator_command *command, const struct hpx_query *query,
		  struct hpx_arena *arena, struct hpx_entry **ret_entries, size_t *ret_count,
		  struct hpx_looked *ret_looked);
void hpx_keys_table(const struct hpx_operator_command *command, const struct hpx_entry *entries,
		    size_t count);
/* A line that says how far a list looked; none where it looked at everything. */
void hpx_keys_print_looked(const struct hpx_looked *looked, FILE *to);

/* After a --tenant by which nothing was found: a line on standard error with the name that
 * was meant, if one of the newest operations has such a name. */
void hpx_keys_suggest_tenant(struct hpx_operator_command *command);

/* The one operation that the operand or --key names. HPX_EXIT_OK, or the exit code
 * after a message. */
int hpx_keys_find(struct hpx_operator_command *command, struct hpx_entry *ret_entry);
/* The one operation that a reference, an id, or the beginning of either names. */
int hpx_keys_find_reference(struct hpx_operator_command *command, const char *reference,
			    struct hpx_entry *ret_entry);
/* The state as people see it: a record that cannot be read is unknown. */
const char *hpx_keys_state(const struct hpx_entry *entry);
/* The members of an operation, without the brackets. */
void hpx_keys_json(struct hpx_json_writer *json, const struct hpx_entry *entry, int64_t now_ms);

/* The verbs of `hapax keys` that have a file of their own; each returns the exit
 * code. */
int hpx_keys_ls(struct hpx_operator_command *command);
int hpx_keys_show(struct hpx_operator_command *command);
int hpx_keys_resolve(struct hpx_operator_command *command);
int hpx_keys_forget(struct hpx_operator_command *command);
int hpx_keys_extend(struct hpx_operator_command *command);
int hpx_keys_accept_clock(struct hpx_operator_command *command);

/* ---- the next probe of an unknown outcome (keys_show.c) ---- */

struct hpx_keys_probe {
	struct hpx_next_question next;
	bool known;     /* the store could tell */
	const char *by; /* for people: "the probe of target bank"; "" where no --config says */
};

/* `route`: of the operation; `target`: of an unknown job, ptr NULL if none. */
enum hpx_status hpx_keys_probe_read(struct hpx_operator_command *command,
				    const struct hpx_operation_id *id, struct hpx_span route,
				    struct hpx_span target, struct hpx_keys_probe *ret_probe);
void hpx_keys_probe_print(const struct hpx_operator_command *command,
			  const struct hpx_keys_probe *probe);
void hpx_keys_probe_json(struct hpx_json_writer *json, const struct hpx_keys_probe *probe);

/* ---- jobs (jobs.c) ---- */

/* The job whose number is the operand; hpx_job_entry_free. HPX_EXIT_OK, or the exit
 * code after a message. */
int hpx_jobs_find(struct hpx_operator_command *command, struct hpx_job_entry **ret_job);
/* The jobs of one operation reference, in the order they were written; NULL
 * where there are none, or the store keeps no jobs. */
enum hpx_status hpx_jobs_of(struct hpx_operator_command *command, const struct hpx_record *record,
			    struct hpx_job_entry **ret_jobs);
/* The job whose answer is the operation's; NULL: the request was forwarded at once. */
const struct hpx_job_entry *hpx_jobs_answering(const struct hpx_job_entry *jobs);
/* Takes the jobs of one reference out of a list, in reverse order; frees the jobs of
 * an earlier use of the key, which jobs outlive. */
struct hpx_job_entry *hpx_jobs_keep_marked(struct hpx_job_entry *jobs,
					   const struct hpx_mark *mark);
/* The state as people see it: a row that cannot be read is unknown. */
enum hpx_job_state hpx_jobs_state(const struct hpx_job_entry *job);
void hpx_jobs_table(const struct hpx_operator_command *command, const struct hpx_job_entry *jobs);
/* The members of a job, without the brackets. */
void hpx_jobs_json(struct hpx_json_writer *json, const struct hpx_job_entry *job);

/* The verb of `hapax jobs` that has a file of its own. */
int hpx_jobs_show(struct hpx_operator_command *command);

#endif
