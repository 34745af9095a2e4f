/* `hapax jobs ls`, and the table in which jobs are shown. */
#include "cli/jobs.h"

#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TARGET_WIDTH_MAX 16
#define JSON_MAX ((size_t)64 * 1024 * 1024)

struct widths {
	size_t number;
	size_t state;
	size_t target;
	size_t request;
	size_t reference;
};

static struct widths measure(const struct hpx_operator_command *command,
			     const struct hpx_job_entry *jobs)
{
	struct widths widths = { 3, 5, 6, 7, command->full ? HPX_REFERENCE_LEN : SHORT_ID };

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

/* "in 3m", "now", and "-" for what is not waiting. */
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
		      const struct widths *widths)
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
	struct widths widths = measure(command, jobs);

	printf("%*s  %-*s  TRY  %-*s  %-*s  HTTP   AGE  %-*s  DUE\n", (int)widths.number, "JOB",
	       (int)widths.state, "STATE", (int)widths.target, "TARGET", (int)widths.request,
	       "REQUEST", (int)widths.reference, "OPERATION");
	for (; jobs != NULL; jobs = jobs->next)
		print_row(command, jobs, &widths);
}

static void json_delivery(struct hpx_operator_json *json, const struct hpx_delivery *delivery)
{
	hpx_operator_json_number(json, "attempt", delivery->attempt);
	hpx_operator_json_number(json, "status", delivery->status);
	hpx_operator_json_bool(json, "answers", delivery->answers);
	hpx_operator_json_bool(json, "may_have_happened", delivery->unsure);
	hpx_operator_json_text(json, "provider_id", hpx_span_of(delivery->provider_id));
	hpx_operator_json_time(json, "created", delivery->created_ms);
	hpx_operator_json_time(json, "changed", delivery->changed_ms);
	hpx_operator_json_time(json, "due", delivery->state == HPX_JOB_QUEUED ? delivery->due_ms : 0);
	hpx_operator_json_time(json, "first_sent", delivery->first_sent_ms);
	hpx_operator_json_time(json, "resend_until", delivery->resend_until_ms);
}

void hpx_jobs_json(struct hpx_operator_json *json, const struct hpx_job_entry *job)
{
	char reference[HPX_REFERENCE_SIZE];
	char key[HPX_JOB_KEY_SIZE];

	hpx_reference_print(&job->delivery.operation, &job->delivery.mark, reference);
	hpx_operator_json_number(json, "number", (uint64_t)job->delivery.number);
	hpx_operator_json_text(json, "state", hpx_span_of(hpx_job_state_name(hpx_jobs_state(job))));
	hpx_operator_json_bool(json, "readable", job->readable);
	hpx_operator_json_text(json, "operation", hpx_span_of(reference));
	hpx_operator_json_text(json, "name", job->job.name);
	hpx_operator_json_text(json, "target", job->job.target);
	hpx_operator_json_text(json, "method", job->job.method);
	hpx_operator_json_text(json, "path", job->job.path);
	if (json->status == HPX_OK)
		json->status = hpx_job_key(&job->delivery.operation, &job->delivery.mark,
					   job->job.name, key);
	if (json->status == HPX_OK)
		hpx_operator_json_text(json, "key", hpx_span_of(key));
	json_delivery(json, &job->delivery);
}

static int print_json(const struct hpx_operator_command *command, const struct hpx_job_entry *jobs)
{
	struct hpx_buffer out;
	struct hpx_operator_json json = { .out = &out, .first = true };

	hpx_buffer_init(&out, JSON_MAX);
	hpx_operator_json_open(&json, "[");
	for (; jobs != NULL; jobs = jobs->next) {
		hpx_operator_json_name(&json, NULL);
		hpx_operator_json_open(&json, "\n{");
		hpx_jobs_json(&json, jobs);
		hpx_operator_json_close(&json, "}");
	}
	hpx_operator_json_close(&json, "\n]\n");
	int code = json.status == HPX_OK ?
			   hpx_cli_write(hpx_buffer_span(&out), stdout) :
			   hpx_operator_complain(command, HPX_EXIT_FAILED,
						 "the list is too large; use a smaller --limit");
	hpx_buffer_done(&out);
	return code;
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

int hpx_jobs_ls(struct hpx_operator_command *command)
{
	struct hpx_job_entry *jobs = NULL;
	struct hpx_operation_id id;
	struct hpx_job_query query;
	size_t count = 0;
	int code = read_query(command, &query, &id);

	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status = hpx_store_jobs(command->reader, &query, &jobs);
	if (status != HPX_OK)
		return hpx_operator_complain_read(command, status);
	for (const struct hpx_job_entry *job = jobs; job != NULL; job = job->next)
		count++;
	if (command->json != NULL)
		code = print_json(command, jobs);
	else if (count == 0)
		puts("no jobs");
	else
		hpx_jobs_table(command, jobs);
	if (command->json == NULL && count == query.limit)
		fprintf(stderr, "The %zu newest are shown; --limit N shows more.\n", count);
	hpx_job_entry_free(jobs);
	return code;
}
