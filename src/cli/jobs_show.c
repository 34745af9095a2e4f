/* `hapax jobs show`: one job, the key it is sent with, and the history of the
 * operation that owes it. */
#include "base/status.h"
#include "cli/operations.h"

struct shown_job {
	struct hpx_job_entry *job;
	struct hpx_entry operation;
	bool has_operation; /* a job may outlive its operation */
	struct hpx_event *history;
	size_t count;
	struct hpx_keys_probe probe;
	char reference[HPX_REFERENCE_SIZE];
	char key[HPX_JOB_KEY_SIZE]; /* that it is sent with */
};

static bool is_unknown(const struct shown_job *shown)
{
	return hpx_jobs_state(shown->job) == HPX_JOB_UNKNOWN;
}

/* Reads what is known besides the job itself. */
static enum hpx_status read_rest(struct hpx_operator_command *command, struct shown_job *shown)
{
	const struct hpx_delivery *delivery = &shown->job->delivery;
	enum hpx_status status = hpx_store_find(command->reader, &delivery->operation,
						&command->arena, &shown->operation, NULL);

	shown->has_operation = status == HPX_OK &&
			       hpx_mark_eq(&shown->operation.record.mark, &delivery->mark);
	if (status == HPX_OK || status == HPX_NOT_FOUND)
		status = hpx_store_events(command->reader, &delivery->operation, &command->arena,
					  &shown->history, &shown->count);
	if (status == HPX_OK)
		status = hpx_job_key(&delivery->operation, &delivery->mark, shown->job->job.name,
				     shown->key);
	if (status == HPX_OK && is_unknown(shown))
		status = hpx_keys_probe_read(command, &delivery->operation,
					     shown->has_operation ?
						     shown->operation.description.route :
						     (struct hpx_span){ NULL, 0 },
					     shown->job->job.target, &shown->probe);
	hpx_reference_print(&delivery->operation, &delivery->mark, shown->reference);
	return status;
}

static void print_headers(struct hpx_span headers)
{
	struct hpx_span line;

	while (hpx_span_line(&headers, &line))
		if (line.len > 0)
			hpx_operator_print_member("header", line);
}

static void print_job(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	const struct hpx_delivery *delivery = &shown->job->delivery;
	const struct hpx_job *job = &shown->job->job;
	char age[HPX_OPERATOR_AGE_SIZE];

	hpx_operator_age(command->now_ms - delivery->changed_ms, age);
	printf("%-10s %lld\n", "job", (long long)delivery->number);
	printf("%-10s %s, for %s%s\n", "state", hpx_job_state_name(hpx_jobs_state(shown->job)), age,
	       shown->job->readable ? "" : " (its row cannot be read)");
	hpx_operator_print_member("name", job->name);
	hpx_operator_print_member("target", job->target);
	fputs("request    ", stdout);
	hpx_operator_print_text(job->method, 0);
	putchar(' ');
	hpx_operator_print_text(job->path, 0);
	putchar('\n');
	print_headers(job->headers);
	printf("%-10s %zu bytes (--body prints them)\n", "body", job->body.len);
	printf("%-10s %s\n", "key", shown->key);
	printf("%-10s %s (%s)\n", "operation", shown->reference,
	       shown->has_operation ? hpx_keys_state(&shown->operation) : "no longer there");
	printf("%-10s %s\n", "answers",
	       delivery->answers ? "yes: its answer is the operation's" : "no");
}

static void print_delivery(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	const struct hpx_delivery *delivery = &shown->job->delivery;

	printf("%-10s %u", "attempt", delivery->attempt);
	if (delivery->budget > 0)
		printf(" (%u of them before it was last retried)", delivery->budget);
	putchar('\n');
	if (delivery->status != 0)
		printf("%-10s %u\n", "last http", delivery->status);
	if (delivery->provider_id[0] != '\0')
		hpx_operator_print_member("their id", hpx_span_of(delivery->provider_id));
	hpx_operator_print_time("created", delivery->created_ms);
	if (delivery->first_sent_ms != 0)
		hpx_operator_print_time("sent", delivery->first_sent_ms);
	if (delivery->resend_until_ms != 0 && delivery->unsure)
		hpx_operator_print_time("resend", delivery->resend_until_ms);
	if (delivery->state == HPX_JOB_QUEUED)
		hpx_operator_print_time("due", delivery->due_ms);
	if (is_unknown(shown))
		hpx_keys_probe_print(command, &shown->probe);
}

static void advise_unknown(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	const char *where = hpx_operator_where(command);
	long long number = shown->job->delivery.number;

	HPX_ASSERT(is_unknown(shown));
	printf("\nIt may have happened. Ask the target, by the key above or by the operation.\n"
	       "If it did not happen:\n"
	       "  hapax jobs retry %lld --force --reason TEXT%s\n"
	       "If it did:\n",
	       number, where);
	if (shown->job->delivery.answers)
		printf("  hapax keys resolve %.12s --applied --response FILE --reason TEXT%s\n"
		       "    (--status N instead of --response, where only that is known)\n",
		       shown->reference, where);
	else
		printf("  hapax jobs discard %lld --reason TEXT%s\n", number, where);
}

/* Without a configuration nobody can say that it is not. */
static bool is_target_known(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	const struct hpx_settings *settings = command->settings;

	return settings == NULL ||
	       hpx_settings_find_target(settings, shown->job->job.target) != NULL;
}

static void print_advice(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	long long number = shown->job->delivery.number;
	const char *where = hpx_operator_where(command);

	if (!shown->job->readable)
		printf("\nIts row cannot be read, so it is never sent; what stands above may be wrong. Ask the\n"
		       "target, do by hand what is owed, then remove the row:\n"
		       "  hapax jobs discard %lld --force --reason TEXT%s\n",
		       number, where);
	else if (hpx_jobs_state(shown->job) == HPX_JOB_DEAD)
		printf("\nIt did not happen, or the target refused it. When the cause is fixed:\n"
		       "  hapax jobs retry %lld --reason TEXT%s\n"
		       "or give it up:\n"
		       "  hapax jobs discard %lld --reason TEXT%s\n",
		       number, where, number, where);
	else if (is_unknown(shown))
		advise_unknown(command, shown);
	else if (shown->job->delivery.state == HPX_JOB_QUEUED && !is_target_known(command, shown))
		printf("\nIt is not sent: the configuration has no target of that name. Add "
		       "the target\n"
		       "and restart, or give the job up:\n"
		       "  hapax jobs discard %lld --reason TEXT%s\n",
		       number, where);
}

static void print_text(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	print_job(command, shown);
	print_delivery(command, shown);
	puts("\nhistory of the operation");
	for (size_t i = 0; i < shown->count; i++)
		hpx_operator_print_event(&shown->history[i]);
	if (shown->count == 0)
		puts("  (nothing but what is above)");
	print_advice(command, shown);
}

static int print_json(const struct hpx_operator_command *command, const struct shown_job *shown)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_jobs_json(&json, shown->job);
	hpx_json_put_bytes(&json, "headers", shown->job->job.headers);
	hpx_json_put_number(&json, "body_bytes", shown->job->job.body.len);
	if (command->body != NULL)
		hpx_json_put_bytes(&json, "body", shown->job->job.body);
	if (shown->has_operation)
		hpx_json_put_text(&json, "operation_state", hpx_keys_state(&shown->operation));
	if (is_unknown(shown))
		hpx_keys_probe_json(&json, &shown->probe);
	hpx_operator_json_history(&json, shown->history, shown->count);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, command->verb, "it cannot be shown");
}

int hpx_jobs_show(struct hpx_operator_command *command)
{
	struct shown_job shown = { .has_operation = false };
	int code = hpx_jobs_find(command, &shown.job);

	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status = read_rest(command, &shown);
	if (status != HPX_OK)
		code = hpx_operator_complain_read(command, status);
	else if (command->json != NULL)
		code = print_json(command, &shown);
	else if (command->body != NULL)
		code = hpx_operator_print_body(shown.job->job.body);
	else
		print_text(command, &shown);
	hpx_job_entry_free(shown.job);
	return code;
}
