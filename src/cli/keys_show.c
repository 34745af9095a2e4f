/* `hapax keys show`: the record, its history and the stored answer. The first
 * reservation and its direct completion leave no event (the row tells them),
 * so the history is put together from both. */
#include "cli/jobs.h"
#include "store/outbox.h"

#define JSON_MAX ((size_t)64 * 1024 * 1024)

struct shown {
	struct hpx_entry entry;
	struct hpx_answer *answer; /* NULL: none is stored, or it cannot be read */
	struct hpx_event *history;
	size_t count;
	struct hpx_job_entry *jobs;
	struct hpx_keys_question question; /* of an unknown */
};

static bool is_unknown(const struct shown *shown)
{
	return !shown->entry.readable || shown->entry.record.state == HPX_STATE_UNKNOWN;
}

/* The job whose answer is the operation's; NULL: it was sent on at once. */
static const struct hpx_job_entry *answering(const struct hpx_job_entry *job)
{
	while (job != NULL && !job->delivery.answers)
		job = job->next;
	return job;
}

static bool is_called(const struct hpx_event *event, const char *name)
{
	return hpx_span_eq(event->what, hpx_span_of(name));
}

/* Whether an event tells how the operation was completed. */
static bool has_end(const struct hpx_event *events, size_t from, size_t to)
{
	const char *const ends[] = {
		hpx_move_name(HPX_MOVE_COMPLETE),
		hpx_move_name(HPX_MOVE_APPLY),
		hpx_move_name(HPX_MOVE_ABANDON),
		hpx_outbox_ruled_event(HPX_RECONCILE_SETTLE_APPLIED),
		hpx_outbox_ruled_event(HPX_RECONCILE_SETTLE_DECLINED),
	};

	for (size_t i = from; i < to; i++)
		for (size_t n = 0; n < sizeof(ends) / sizeof(ends[0]); n++)
			if (is_called(&events[i], ends[n]))
				return true;
	return false;
}

/* Events before `created` are of an earlier use of the key; they come first.
 * Where the present use began with an event of its own (an expired key used
 * again), nothing is made up. */
static size_t merge(const struct shown *shown, const struct hpx_event *events, size_t count,
		    struct hpx_event *out)
{
	const struct hpx_record *record = &shown->entry.record;
	enum hpx_move beginning = answering(shown->jobs) ? HPX_MOVE_ACCEPT : HPX_MOVE_RESERVE;
	struct hpx_event begun = { .at_ms = record->created_ms,
				   .attempt = 1,
				   .what = hpx_span_of(hpx_move_name(beginning)) };
	struct hpx_event completed = { .at_ms = record->changed_ms,
				       .attempt = record->attempt,
				       .what = hpx_span_of(hpx_move_name(HPX_MOVE_COMPLETE)),
				       .status = record->status };
	size_t n = 0, at = 0;

	while (at < count && events[at].at_ms < record->created_ms)
		out[n++] = events[at++];
	bool told = at < count && events[at].attempt == 1 &&
		    is_called(&events[at], hpx_move_name(beginning));
	if (!told)
		out[n++] = begun;
	for (size_t i = at; i < count; i++)
		out[n++] = events[i];
	if (record->state == HPX_STATE_COMPLETED && !has_end(events, at, count))
		out[n++] = completed;
	return n;
}

static enum hpx_status read_history(struct hpx_operator_command *command, struct shown *shown)
{
	struct hpx_event *events = NULL;
	size_t count = 0;
	enum hpx_status status = hpx_store_events(command->reader, &shown->entry.record.id,
						  &command->arena, &events, &count);

	if (status != HPX_OK)
		return status;
	shown->history = hpx_arena_zalloc(&command->arena, count + 2, sizeof(*events));
	if (shown->history == NULL)
		return HPX_NOMEM;
	shown->count = merge(shown, events, count, shown->history);
	return HPX_OK;
}

static void print_record(const struct hpx_operator_command *command, const struct hpx_entry *entry)
{
	const struct hpx_record *record = &entry->record;
	const struct hpx_description *d = &entry->description;
	char reference[HPX_REFERENCE_SIZE], age[HPX_OPERATOR_AGE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_operator_age(command->now_ms - record->changed_ms, age);
	printf("%-10s %s\n", "operation", reference);
	printf("%-10s %s, for %s%s\n", "state", hpx_keys_state(entry), age,
	       entry->readable ? "" : " (its record cannot be read)");
	fputs("request    ", stdout);
	hpx_operator_print_text(d->method, 0);
	putchar(' ');
	hpx_operator_print_text(d->path, 0);
	putchar('\n');
	hpx_operator_print_member("route", d->route);
	hpx_operator_print_member("key", d->key);
	hpx_operator_print_member("tenant", d->tenant);
	hpx_operator_print_member("scope", d->scope);
	printf("%-10s %u\n", "attempt", record->attempt);
	hpx_operator_print_time("created", record->created_ms);
	if (record->expires_ms == 0)
		printf("%-10s never, as long as it is %s\n", "expires", hpx_keys_state(entry));
	else if (record->state == HPX_STATE_PENDING)
		hpx_operator_print_time("given up", record->expires_ms);
	else
		hpx_operator_print_time(record->expires_ms > command->now_ms ? "expires" : "expired",
					record->expires_ms);
}

static void print_answer(const struct shown *shown)
{
	const struct hpx_record *record = &shown->entry.record;
	struct hpx_span rest, line;

	if (record->state != HPX_STATE_COMPLETED)
		return;
	printf("\nanswer\n  %u\n", record->status);
	if (!record->kept) {
		puts("  (not kept: retries are told that it happened)");
		return;
	}
	if (shown->answer == NULL) {
		puts("  (stored, but it cannot be read: retries are told that it is unknown)");
		return;
	}
	rest = shown->answer->headers;
	while (hpx_span_line(&rest, &line)) {
		if (line.len == 0)
			continue;
		fputs("  ", stdout);
		hpx_operator_print_text(line, 0);
		putchar('\n');
	}
	printf("  (%zu bytes of body; --body writes them)\n", shown->answer->body.len);
}

static void print_advice(const struct shown *shown)
{
	const struct hpx_record *record = &shown->entry.record;
	bool async = answering(shown->jobs) != NULL;
	char reference[HPX_REFERENCE_SIZE];

	if (!is_unknown(shown))
		return;
	hpx_reference_print(&record->id, &record->mark, reference);
	printf("\nNobody knows whether it happened; retries get 409 until somebody says so. Ask the\n"
	       "%s (it was given the reference as Hapax-Operation), then:\n"
	       "  hapax keys resolve %.12s --applied --response FILE --reason TEXT\n"
	       "    (--status N instead of --response, where only that is known)\n"
	       "  hapax keys resolve %.12s --not-applied --reason TEXT\n",
	       async ? "target of its job" : "service behind hapax", reference, reference);
}

static int print_text(const struct hpx_operator_command *command, const struct shown *shown)
{
	print_record(command, &shown->entry);
	if (is_unknown(shown))
		hpx_keys_print_question(command, &shown->question);
	if (shown->jobs != NULL) {
		puts("\njobs");
		hpx_jobs_table(command, shown->jobs);
	}
	puts("\nhistory");
	for (size_t i = 0; i < shown->count; i++)
		hpx_operator_print_event(&shown->history[i]);
	print_answer(shown);
	print_advice(shown);
	return HPX_EXIT_OK;
}

void hpx_operator_json_event(struct hpx_operator_json *json, const struct hpx_event *event)
{
	hpx_operator_json_name(json, NULL);
	hpx_operator_json_open(json, "{");
	hpx_operator_json_time(json, "at", event->at_ms);
	hpx_operator_json_number(json, "attempt", event->attempt);
	hpx_operator_json_text(json, "what", event->what);
	hpx_operator_json_number(json, "status", event->status);
	hpx_operator_json_text(json, "actor", event->actor);
	hpx_operator_json_text(json, "reason", event->reason);
	hpx_operator_json_close(json, "}");
}

static void json_jobs(struct hpx_operator_json *json, const struct hpx_job_entry *jobs)
{
	hpx_operator_json_name(json, "jobs");
	hpx_operator_json_open(json, "[");
	for (; jobs != NULL; jobs = jobs->next) {
		hpx_operator_json_name(json, NULL);
		hpx_operator_json_open(json, "{");
		hpx_jobs_json(json, jobs);
		hpx_operator_json_close(json, "}");
	}
	hpx_operator_json_close(json, "]");
}

static void json_answer(struct hpx_operator_json *json, const struct hpx_answer *answer, bool body)
{
	hpx_operator_json_name(json, "answer");
	hpx_operator_json_open(json, "{");
	hpx_operator_json_number(json, "status", answer->status);
	hpx_operator_json_bytes(json, "headers", answer->headers);
	hpx_operator_json_number(json, "body_bytes", answer->body.len);
	if (body)
		hpx_operator_json_bytes(json, "body", answer->body);
	hpx_operator_json_close(json, "}");
}

static int print_json(const struct hpx_operator_command *command, const struct shown *shown)
{
	struct hpx_buffer out;
	struct hpx_operator_json json = { .out = &out };

	hpx_buffer_init(&out, JSON_MAX);
	hpx_operator_json_open(&json, "{");
	hpx_operator_json_entry(&json, &shown->entry, command->now_ms);
	if (is_unknown(shown))
		hpx_keys_json_question(&json, &shown->question);
	json_jobs(&json, shown->jobs);
	hpx_operator_json_name(&json, "history");
	hpx_operator_json_open(&json, "[");
	for (size_t i = 0; i < shown->count; i++)
		hpx_operator_json_event(&json, &shown->history[i]);
	hpx_operator_json_close(&json, "]");
	if (shown->answer != NULL)
		json_answer(&json, shown->answer, command->body != NULL);
	hpx_operator_json_close(&json, "}\n");
	int code = json.status == HPX_OK ?
			   hpx_cli_write(hpx_buffer_span(&out), stdout) :
			   hpx_operator_complain(command, HPX_EXIT_FAILED, "it cannot be shown: %s",
						 hpx_status_text(json.status));
	hpx_buffer_done(&out);
	return code;
}

/* What is known of an operation besides its record. */
static enum hpx_status look(struct hpx_operator_command *command, struct shown *shown)
{
	struct hpx_operation_id id = shown->entry.record.id;
	enum hpx_status status =
		hpx_store_find(command->reader, &id, &command->arena, &shown->entry, &shown->answer);

	if (status == HPX_OK)
		status = hpx_jobs_of(command, &shown->entry.record, &shown->jobs);
	if (status == HPX_OK)
		status = read_history(command, shown);
	if (status == HPX_OK && is_unknown(shown)) {
		const struct hpx_job_entry *job = answering(shown->jobs);
		struct hpx_span none = { NULL, 0 };

		status = hpx_keys_question(command, &id, shown->entry.description.route,
					   job != NULL ? job->job.target : none,
					   &shown->question);
	}
	return status;
}

static int print_body(const struct hpx_operator_command *command, const struct hpx_answer *answer)
{
	if (answer == NULL)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "no body is stored for this operation");
	return hpx_operator_print_body(answer->body);
}

int hpx_keys_show(struct hpx_operator_command *command)
{
	struct shown shown = { .answer = NULL };
	int code = hpx_keys_find(command, &shown.entry);

	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status = look(command, &shown);
	if (status != HPX_OK)
		code = hpx_operator_complain(command, HPX_EXIT_FAILED, "it cannot be read: %s",
					     hpx_status_text(status));
	else if (command->json != NULL)
		code = print_json(command, &shown);
	else if (command->body != NULL)
		code = print_body(command, shown.answer);
	else
		code = print_text(command, &shown);
	hpx_job_entry_free(shown.jobs);
	if (shown.answer != NULL)
		hpx_answer_free(shown.answer);
	return code;
}
