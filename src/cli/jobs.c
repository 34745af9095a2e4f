/* `hapax jobs`: shows the deliveries that are owed to external services, retries and
 * discards them. It works beside a running `hapax serve` and never creates a store. Here
 * are finding jobs, ls, retry, discard, and the table of verbs. */
#include "base/status.h"
#include "cli/operations.h"

/* Of one operation. `hapax jobs ls --operation` lists more. */
#define JOBS_SHOWN_MAX 1000
/* Read at once while jobs are looked through. */
#define PERSON_PAGE 500
#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TARGET_WIDTH_MAX 16

/* ---- finding ---- */

int hpx_jobs_find(struct hpx_operator_command *command, struct hpx_job_entry **ret_job)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .limit = 1 };
	uint64_t number;

	if (command->operand == NULL ||
	    !hpx_span_u64(hpx_span_of(command->operand), INT64_MAX, &number) || number == 0)
		return hpx_operator_complain(
			command, HPX_EXIT_USAGE,
			"name one job by its NUMBER, as `hapax jobs ls%s` shows it",
			hpx_operator_where(command));
	query.number = (int64_t)number;
	*ret_job = NULL;
	enum hpx_status status = hpx_store_jobs(command->reader, &query, ret_job);
	if (status != HPX_OK)
		return hpx_operator_complain_read(command, status);
	HPX_ASSERT(*ret_job == NULL || (*ret_job)->next == NULL);
	if (*ret_job == NULL)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "there is no job %s (finished jobs are deleted after a "
					     "while); `hapax jobs ls%s` lists those that are there",
					     command->operand, hpx_operator_where(command));
	return HPX_EXIT_OK;
}

struct hpx_job_entry *hpx_jobs_keep_marked(struct hpx_job_entry *jobs,
					   const struct hpx_mark *mark)
{
	struct hpx_job_entry *marked = NULL, *others = NULL;

	while (jobs != NULL) {
		struct hpx_job_entry *job = jobs;
		struct hpx_job_entry **list =
			hpx_mark_eq(&job->delivery.mark, mark) ? &marked : &others;

		jobs = job->next;
		job->next = *list;
		*list = job;
	}
	hpx_job_entry_free(others);
	return marked;
}

enum hpx_status hpx_jobs_of(struct hpx_operator_command *command, const struct hpx_record *record,
			    struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT,
				       .operation = &record->id,
				       .limit = JOBS_SHOWN_MAX };
	struct hpx_job_entry *found = NULL;
	enum hpx_status status = hpx_store_jobs(command->reader, &query, &found);

	*ret_jobs = NULL;
	if (status != HPX_OK)
		return status == HPX_UNSUPPORTED ? HPX_OK : status;
	/* The store gives the newest first. */
	*ret_jobs = hpx_jobs_keep_marked(found, &record->mark);
	return HPX_OK;
}

const struct hpx_job_entry *hpx_jobs_answering(const struct hpx_job_entry *jobs)
{
	while (jobs != NULL && !jobs->delivery.answers)
		jobs = jobs->next;
	return jobs;
}

enum hpx_job_state hpx_jobs_state(const struct hpx_job_entry *job)
{
	return job->readable ? job->delivery.state : HPX_JOB_UNKNOWN;
}

/* ---- ls, and the table in which jobs are shown ---- */

struct job_widths {
	size_t number;
	size_t state;
	size_t target;
	size_t request;
	size_t reference;
};

static struct job_widths measure(const struct hpx_operator_command *command,
				 const struct hpx_job_entry *jobs)
{
	struct job_widths widths = { 3, 5, 6, 7, command->full ? HPX_REFERENCE_LEN : SHORT_ID };

	for (const struct hpx_job_entry *job = jobs; job != NULL; job = job->next) {
		int digits = snprintf(NULL, 0, "%lld", (long long)job->delivery.number);

		widths.number =
			hpx_operator_clamp((size_t)(digits > 0 ? digits : 0), widths.number, 20);
		widths.state = hpx_operator_clamp(strlen(hpx_job_state_name(hpx_jobs_state(job))),
						  widths.state, 16);
		widths.target = hpx_operator_clamp(job->job.target.len, widths.target,
						   TARGET_WIDTH_MAX);
		widths.request = hpx_operator_clamp(job->job.method.len + 1 + job->job.path.len,
						    widths.request, REQUEST_WIDTH_MAX);
	}
	return widths;
}

/* "in 3m", "now", and "-" for a job that does not wait. */
static void print_due(const struct hpx_operator_command *command, const struct hpx_delivery *delivery)
{
	char age[HPX_OPERATOR_AGE_SIZE];

	if (delivery->state != HPX_JOB_QUEUED) {
		fputs("-", stdout);
	} else if (delivery->due_ms <= command->now_ms) {
		fputs("now", stdout);
	} else {
		hpx_operator_age(delivery->due_ms - command->now_ms, age);
		printf("in %s", age);
	}
}

static void print_row(const struct hpx_operator_command *command, const struct hpx_job_entry *job,
		      const struct job_widths *widths)
{
	const struct hpx_delivery *delivery = &job->delivery;
	char reference[HPX_REFERENCE_SIZE], age[HPX_OPERATOR_AGE_SIZE];

	hpx_reference_print(&delivery->operation, &delivery->mark, reference);
	hpx_operator_age(command->now_ms - delivery->created_ms, age);
	printf("%*lld  %-*s  %3u  ", (int)widths->number, (long long)delivery->number,
	       (int)widths->state, hpx_job_state_name(hpx_jobs_state(job)), delivery->attempt);
	hpx_operator_print_text(job->job.target, widths->target);
	fputs("  ", stdout);
	hpx_operator_print_request(job->job.method, job->job.path, widths->request);
	if (delivery->status != 0)
		printf("  %4u", delivery->status);
	else
		fputs("     -", stdout);
	printf("  %4s  %.*s  ", age, (int)widths->reference, reference);
	print_due(command, delivery);
	fputs(job->readable ? "\n" : " (the row cannot be read)\n", stdout);
}

void hpx_jobs_table(const struct hpx_operator_command *command, const struct hpx_job_entry *jobs)
{
	struct job_widths widths = measure(command, jobs);

	printf("%*s  %-*s  TRY  %-*s  %-*s  HTTP   AGE  %-*s  DUE\n", (int)widths.number, "JOB",
	       (int)widths.state, "STATE", (int)widths.target, "TARGET", (int)widths.request,
	       "REQUEST", (int)widths.reference, "OPERATION");
	for (; jobs != NULL; jobs = jobs->next)
		print_row(command, jobs, &widths);
}

static void json_delivery(struct hpx_json_writer *json, const struct hpx_delivery *delivery)
{
	hpx_json_put_number(json, "attempt", delivery->attempt);
	hpx_json_put_number(json, "status", delivery->status);
	hpx_json_put_bool(json, "answers", delivery->answers);
	hpx_json_put_bool(json, "may_have_happened", delivery->unsure);
	hpx_json_put_text(json, "provider_id", delivery->provider_id);
	hpx_json_put_time(json, "created", delivery->created_ms);
	hpx_json_put_time(json, "changed", delivery->changed_ms);
	hpx_json_put_time(json, "due", delivery->state == HPX_JOB_QUEUED ? delivery->due_ms : 0);
	hpx_json_put_time(json, "first_sent", delivery->first_sent_ms);
	hpx_json_put_time(json, "resend_until", delivery->resend_until_ms);
}

void hpx_jobs_json(struct hpx_json_writer *json, const struct hpx_job_entry *job)
{
	char reference[HPX_REFERENCE_SIZE];
	char key[HPX_JOB_KEY_SIZE];

	hpx_reference_print(&job->delivery.operation, &job->delivery.mark, reference);
	hpx_json_put_number(json, "number", (uint64_t)job->delivery.number);
	hpx_json_put_text(json, "state", hpx_job_state_name(hpx_jobs_state(job)));
	hpx_json_put_bool(json, "readable", job->readable);
	hpx_json_put_text(json, "operation", reference);
	hpx_json_put_string(json, "name", job->job.name);
	hpx_json_put_string(json, "target", job->job.target);
	hpx_json_put_string(json, "method", job->job.method);
	hpx_json_put_string(json, "path", job->job.path);
	if (json->status == HPX_OK)
		json->status = hpx_job_key(&job->delivery.operation, &job->delivery.mark,
					   job->job.name, key);
	if (json->status == HPX_OK)
		hpx_json_put_text(json, "key", key);
	json_delivery(json, &job->delivery);
}

/* An object; a job a line. */
static int print_list_json(const struct hpx_operator_command *command,
			   const struct hpx_job_entry *jobs, size_t count, bool all)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_begin_array(&json, "jobs");
	for (; jobs != NULL; jobs = jobs->next) {
		hpx_json_break_line(&json);
		hpx_json_begin_object(&json, NULL);
		hpx_jobs_json(&json, jobs);
		hpx_json_end_object(&json);
	}
	hpx_json_break_line(&json);
	hpx_json_end_array(&json);
	hpx_json_begin_object(&json, "looked");
	hpx_json_put_number(&json, "jobs", count);
	hpx_json_put_bool(&json, "all", all);
	hpx_json_end_object(&json);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, command->verb,
				  "the list cannot be printed; use a smaller --limit");
}

/* `*id` is where the query's operation is kept. */
static int read_query(struct hpx_operator_command *command, struct hpx_job_query *query,
		      struct hpx_operation_id *id)
{
	struct hpx_mark mark;
	struct hpx_entry entry;

	*query = (struct hpx_job_query){ .state = HPX_JOB_STATE_COUNT,
					 .target = hpx_span_of(command->target) };
	int code = hpx_operator_limit(command, &query->limit);
	if (code == HPX_EXIT_OK && command->state != NULL && command->needs_person != NULL)
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "--needs-person has its own states; leave --state out");
	if (code == HPX_EXIT_OK && command->state != NULL) {
		query->state = hpx_job_state_by_name(hpx_span_of(command->state));
		if (query->state == HPX_JOB_STATE_COUNT)
			return hpx_operator_complain(
				command, HPX_EXIT_USAGE,
				"there is no state \"%s\"; the states are queued, "
				"sending, done, unknown, dead and discarded",
				command->state);
	}
	if (code != HPX_EXIT_OK || command->operation == NULL)
		return code;
	query->operation = id;
	/* A job may outlive its operation, which then cannot be looked for. */
	if (hpx_reference_parse(hpx_span_of(command->operation), id, &mark))
		return HPX_EXIT_OK;
	code = hpx_keys_find_reference(command, command->operation, &entry);
	if (code == HPX_EXIT_OK)
		*id = entry.record.id;
	return code;
}

/* Whether only a person settles the job: it is dead, its row cannot be read, or nobody is
 * asked about it any more. */
static enum hpx_status needs_person(struct hpx_operator_command *command,
				    const struct hpx_job_entry *job, bool *ret_needs)
{
	struct hpx_next_question next = { .at_ms = 0 };
	enum hpx_status status = HPX_OK;

	*ret_needs = !job->readable || job->delivery.state == HPX_JOB_DEAD;
	if (*ret_needs)
		return HPX_OK;
	status = hpx_store_question(command->reader, &job->delivery.operation, &next);
	*ret_needs = status == HPX_OK && next.person;
	return status == HPX_NOT_FOUND ? HPX_OK : status;
}

/* Puts the jobs of one state that need a person behind `tail`, the newest first, at most
 * query->limit. All of that state are read, page by page. */
static enum hpx_status collect(struct hpx_operator_command *command, struct hpx_job_query query,
			       struct hpx_job_entry **tail)
{
	unsigned left = query.limit;
	enum hpx_status status = HPX_OK;
	bool more = true;

	HPX_ASSERT(left > 0 && *tail == NULL);
	query.limit = PERSON_PAGE;
	while (status == HPX_OK && more && left > 0) {
		struct hpx_job_entry *page = NULL;

		status = hpx_store_jobs(command->reader, &query, &page);
		more = page != NULL;
		for (struct hpx_job_entry *job = page, *next; job != NULL; job = next) {
			bool needs = false;

			next = job->next;
			job->next = NULL;
			query.before = job->delivery.number;
			if (status == HPX_OK && left > 0)
				status = needs_person(command, job, &needs);
			if (!needs) {
				hpx_job_entry_free(job);
				continue;
			}
			*tail = job;
			tail = &job->next;
			left--;
		}
	}
	return status;
}

/* Two lists as one, the newest first; frees what is beyond `limit`. */
static struct hpx_job_entry *merge(struct hpx_job_entry *one, struct hpx_job_entry *other,
				   unsigned limit)
{
	struct hpx_job_entry *merged = NULL, **tail = &merged;

	for (; limit > 0 && (one != NULL || other != NULL); limit--) {
		bool first = other == NULL ||
			     (one != NULL && one->delivery.number > other->delivery.number);
		struct hpx_job_entry **from = first ? &one : &other;

		*tail = *from;
		*from = (*from)->next;
		tail = &(*tail)->next;
	}
	*tail = NULL;
	hpx_job_entry_free(one);
	hpx_job_entry_free(other);
	return merged;
}

/* One list for who is on call: dead jobs, and unknown ones that nobody is asked about. */
static enum hpx_status read_needing_person(struct hpx_operator_command *command,
					   const struct hpx_job_query *query,
					   struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_query dead = *query, unknown = *query;
	struct hpx_job_entry *gone = NULL, *lost = NULL;

	dead.state = HPX_JOB_DEAD;
	unknown.state = HPX_JOB_UNKNOWN;
	enum hpx_status status = collect(command, dead, &gone);
	if (status == HPX_OK)
		status = collect(command, unknown, &lost);
	if (status == HPX_OK) {
		*ret_jobs = merge(gone, lost, query->limit);
		return HPX_OK;
	}
	hpx_job_entry_free(gone);
	hpx_job_entry_free(lost);
	return status;
}

/* Cuts the list to the limit; how many are left. `*ret_all`: none was cut. */
static size_t cut(struct hpx_job_entry *jobs, unsigned limit, bool *ret_all)
{
	size_t count = 0;

	*ret_all = true;
	for (struct hpx_job_entry *job = jobs; job != NULL; job = job->next)
		if (++count == limit && job->next != NULL) {
			hpx_job_entry_free(job->next);
			job->next = NULL;
			*ret_all = false;
		}
	return count;
}

/* One more than is shown is asked for: it tells whether there are more. */
static int list_jobs(struct hpx_operator_command *command)
{
	struct hpx_job_entry *jobs = NULL;
	struct hpx_operation_id id;
	struct hpx_job_query query;
	int code = read_query(command, &query, &id);
	unsigned limit = query.limit;
	bool all;

	if (code != HPX_EXIT_OK)
		return code;
	query.limit++;
	enum hpx_status status = command->needs_person != NULL ?
					 read_needing_person(command, &query, &jobs) :
					 hpx_store_jobs(command->reader, &query, &jobs);
	if (status != HPX_OK)
		return hpx_operator_complain_read(command, status);
	size_t count = cut(jobs, limit, &all);
	if (command->json != NULL)
		code = print_list_json(command, jobs, count, all);
	else if (count == 0)
		puts("no jobs");
	else
		hpx_jobs_table(command, jobs);
	if (command->json == NULL && !all)
		fprintf(stderr, "The %zu newest are shown; older ones were not looked at: --limit N "
				"shows more.\n",
			count);
	hpx_job_entry_free(jobs);
	return code;
}

/* ---- retry and discard ---- */

static const char *why_unreadable(struct hpx_operator_command *command, const struct hpx_job_entry *job)
{
	struct hpx_span text = hpx_arena_printf(
		&command->arena, "its row cannot be read. If the target has been asked, `hapax jobs discard %lld "
				 "--force --reason TEXT%s` removes the row",
		(long long)job->delivery.number, hpx_operator_where(command));
	return text.ptr != NULL ? text.ptr : "its row cannot be read";
}

/* Why the store refused the op. */
static const char *why_not(struct hpx_operator_command *command, const struct hpx_job_entry *job)
{
	if (!job->readable)
		return why_unreadable(command, job);
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

static int explain(struct hpx_operator_command *command, const struct hpx_job_entry *job,
		   enum hpx_status status)
{
	if (status == HPX_REFUSED || status == HPX_CORRUPT)
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s", why_not(command, job));
	if (status == HPX_INVALID)
		return hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"not done: its row has not even the columns of a job: a damaged page may lead to rows "
			"of another table. It stays; `hapax repair` says what of the file is damaged");
	if (status == HPX_STALE || status == HPX_NOT_FOUND)
		return hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"not done: the job has changed meanwhile; look again with "
			"`hapax jobs show %lld%s`",
			(long long)job->delivery.number, hpx_operator_where(command));
	return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s",
				     hpx_status_text(status));
}

/* The state of the operation whose answer the job brings, after the change; empty where
 * the job brings none, or the operation is gone. */
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

static int print_settled_json(const struct hpx_operator_command *command,
			      const struct hpx_job_entry *job, const struct hpx_store_op *op,
			      const char *state, const char *operation)
{
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_reference_print(&job->delivery.operation, &job->delivery.mark, reference);
	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_number(&json, "number", (uint64_t)job->delivery.number);
	hpx_json_put_text(&json, "state", state);
	hpx_json_put_text(&json, "operation", reference);
	if (operation[0] != '\0')
		hpx_json_put_text(&json, "operation_state", operation);
	return hpx_operator_json_sign(command, &json, op);
}

/* The consequence of the change for clients that wait for the operation's answer. */
static const char *consequence(enum hpx_job_move move, const char *operation,
			       const struct hpx_entry *entry)
{
	HPX_ASSERT(move == HPX_JOB_MOVE_RETRY || move == HPX_JOB_MOVE_DISCARD);
	if (operation[0] == '\0')
		return move == HPX_JOB_MOVE_RETRY ? "it is sent again when its turn comes" :
						    "it is never sent again";
	if (move == HPX_JOB_MOVE_RETRY)
		return "it is sent again; its operation is pending until it is answered";
	if (entry->record.state == HPX_STATE_COMPLETED)
		return "it is never sent; its operation is completed with 408: it did not happen";
	return "it is never sent again; its operation is unknown, because it may have happened";
}

/* The row did not say for certain whose job it was, so there is no history to write to. */
static int print_removed(const struct hpx_operator_command *command,
			 const struct hpx_job_entry *job, const struct hpx_store_op *op)
{
	if (command->json != NULL) {
		struct hpx_buffer out;
		struct hpx_json_writer json;

		hpx_cli_json_init(&json, &out);
		hpx_json_begin_object(&json, NULL);
		hpx_json_put_number(&json, "number", (uint64_t)job->delivery.number);
		hpx_json_put_text(&json, "state", "removed");
		return hpx_operator_json_sign(command, &json, op);
	}
	printf("job %lld: removed; its row could not be read, so no operation was changed and no\n"
	       "history written. An operation that still waits for its answer is unknown when its\n"
	       "retention ends; to settle it before, find it with\n"
	       "  hapax keys ls --state pending%s\n",
	       (long long)job->delivery.number, hpx_operator_where(command));
	return HPX_EXIT_OK;
}

static void print_how_to_settle(const struct hpx_operator_command *command,
				const struct hpx_job_entry *job)
{
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&job->delivery.operation, &job->delivery.mark, reference);
	printf("How to settle it:\n"
	       "  hapax keys show %.12s%s\n",
	       reference, hpx_operator_where(command));
}

static int settle(struct hpx_operator_command *command, struct hpx_job_entry *job,
		  enum hpx_job_move move, enum hpx_job_state state)
{
	struct hpx_job_update update = { .number = job->delivery.number,
					 .move = move,
					 .force = command->force != NULL };
	struct hpx_store_op op = { .verb = HPX_VERB_JOB,
				   .id = job->delivery.operation,
				   .job.update = &update };
	struct hpx_entry entry;
	int code = hpx_operator_write(command, &op);

	if (code != HPX_EXIT_OK)
		return code;
	bool removed = op.job.after == NULL;
	hpx_job_entry_free(op.job.after);
	if (op.status != HPX_OK)
		return explain(command, job, op.status);
	if (removed)
		return print_removed(command, job, &op);
	const char *operation = operation_after(command, job, &entry);
	if (command->json != NULL)
		return print_settled_json(command, job, &op, hpx_job_state_name(state), operation);
	printf("job %lld: %s; %s\n", (long long)job->delivery.number, hpx_job_state_name(state),
	       consequence(move, operation, &entry));
	if (strcmp(operation, hpx_state_name(HPX_STATE_UNKNOWN)) == 0)
		print_how_to_settle(command, job);
	return HPX_EXIT_OK;
}

static int retry(struct hpx_operator_command *command)
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

static int discard(struct hpx_operator_command *command)
{
	struct hpx_job_entry *job = NULL;
	int code = hpx_jobs_find(command, &job);

	if (code != HPX_EXIT_OK)
		return code;
	code = settle(command, job, HPX_JOB_MOVE_DISCARD, HPX_JOB_DISCARDED);
	hpx_job_entry_free(job);
	return code;
}

/* ---- the command ---- */

static const struct hpx_operator_verb verbs[] = {
	{ .name = "ls",
	  .synopsis = "hapax jobs ls [--state STATE] [--target NAME] [FLAGS]",
	  .about = "Lists jobs, the newest first. A job is queued, sending, done, unknown, dead or\n"
		   "discarded. `hapax jobs ls --needs-person` lists what waits for you.",
	  .flags = { "state", "needs-person", "target", "operation", "limit", "full", "json" },
	  .run = list_jobs },
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
		  "Queues a dead job again, with a new budget of attempts. A job whose outcome is\n"
		  "unknown needs --force: it may have happened, and unless the target recognises\n"
		  "the job's key, it would happen twice.",
	  .flags = { "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = retry },
	{ .name = "discard",
	  .synopsis = "hapax jobs discard NUMBER --reason TEXT",
	  .about =
		  "Gives a job up: it is not sent again, and the next job of its operation can be\n"
		  "sent. An operation that waited for the job's answer is completed with 408; if\n"
		  "the job may have happened, the operation is unknown. A job whose row cannot be\n"
		  "read needs --force: the row is removed, and nothing else is changed.",
	  .flags = { "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = discard },
};

int hpx_cli_jobs(int argc, char **argv)
{
	static const struct hpx_operator_verbs command = {
		.name = "jobs",
		.about =
			"Lists and shows jobs: requests that hapax delivers to external services. Retries\n"
			"or discards those that failed. Works beside a running hapax serve.",
		.verb_names = "ls, show, retry and discard",
		.name_one = "name one job by its NUMBER, as the list of jobs shows it",
		.verbs = verbs,
		.verb_count = sizeof(verbs) / sizeof(verbs[0]),
	};

	return hpx_operator_run(&command, argc, argv);
}
