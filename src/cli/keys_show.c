/* `hapax keys show`: the record, its jobs, its history and the stored answer. The first
 * reservation and its direct completion leave no event, because the record has them: the
 * history is put together from the record and the events. */
#include "base/clock.h"
#include "base/status.h"
#include "cli/operations.h"
#include "store/outbox_change.h"

/* ---- the next probe of an unknown outcome ----
 * The store knows when it is; a configuration knows who is asked. */

static const struct hpx_reconcile_settings *reconcile_settings_of(const struct hpx_settings *settings,
								  struct hpx_span route,
								  struct hpx_span target)
{
	if (target.ptr != NULL) {
		const struct hpx_job_target *found = hpx_settings_find_target(settings, target);
		return found != NULL ? &found->reconcile : NULL;
	}
	const struct hpx_route *found = hpx_settings_find_route(settings, route);
	return found != NULL ? &found->reconcile : &settings->fallback.reconcile;
}

/* The words for who is asked: the probe of a route or a target. */
static const char *asked_by(struct hpx_operator_command *command, struct hpx_span route,
			    struct hpx_span target)
{
	const struct hpx_reconcile_settings *found;

	if (command->settings == NULL)
		return "";
	found = reconcile_settings_of(command->settings, route, target);
	if (found == NULL || !found->given)
		return "nobody: a webhook, a ledger or a person must settle it";
	if (!found->probe.given)
		return "no probe: a webhook, a ledger or a person must settle it";
	struct hpx_span text = hpx_arena_printf(&command->arena, "the probe GET %.*s",
						HPX_SPAN_ARG(found->probe.get));
	return text.ptr != NULL ? text.ptr : "the probe";
}

enum hpx_status hpx_keys_probe_read(struct hpx_operator_command *command,
				    const struct hpx_operation_id *id, struct hpx_span route,
				    struct hpx_span target, struct hpx_keys_probe *ret_probe)
{
	enum hpx_status status = hpx_store_question(command->reader, id, &ret_probe->next);

	ret_probe->by = asked_by(command, route, target);
	ret_probe->known = status == HPX_OK;
	return status == HPX_NOT_FOUND || status == HPX_UNSUPPORTED ? HPX_OK : status;
}

void hpx_keys_probe_print(const struct hpx_operator_command *command,
			  const struct hpx_keys_probe *probe)
{
	char age[HPX_OPERATOR_AGE_SIZE];

	/* Filled in by hpx_keys_probe_read. */
	HPX_ASSERT(probe->by != NULL);
	printf("%-10s ", "asked");
	if (probe->known && probe->next.person) {
		fputs("no more: a person has to settle it", stdout);
	} else if (!probe->known || probe->next.at_ms == 0) {
		fputs("not scheduled yet (a serving hapax does it within a second)", stdout);
	} else if (probe->next.at_ms <= command->now_ms) {
		fputs("now", stdout);
	} else {
		hpx_operator_age(probe->next.at_ms - command->now_ms, age);
		printf("next in %s", age);
	}
	if (probe->by[0] != '\0' && !probe->next.person) {
		fputs(", by ", stdout);
		hpx_operator_print_text(hpx_span_of(probe->by), 0);
	}
	putchar('\n');
}

void hpx_keys_probe_json(struct hpx_json_writer *json, const struct hpx_keys_probe *probe)
{
	hpx_json_begin_object(json, "asked");
	hpx_json_put_time(json, "next", probe->known ? probe->next.at_ms : 0);
	hpx_json_put_bool(json, "person", probe->known && probe->next.person);
	if (probe->by[0] != '\0')
		hpx_json_put_text(json, "by", probe->by);
	hpx_json_end_object(json);
}

/* ---- one operation ---- */

struct shown_operation {
	struct hpx_entry entry;
	struct hpx_answer *answer; /* NULL: none is stored, or it cannot be read */
	struct hpx_event *history;
	size_t count;
	struct hpx_job_entry *jobs;
	struct hpx_keys_probe probe; /* of an unknown outcome only */
};

static bool is_unknown(const struct shown_operation *shown)
{
	return !shown->entry.readable || shown->entry.record.state == HPX_STATE_UNKNOWN;
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

/* The history into `out`, which has room for two more events; returns how many there
 * are. Events before the record was created are of an earlier use of the key and come
 * first. Where the present use began with an event (an expired key that was used again),
 * none is added. What was restored begins and ends with one event. A key may be misused, and
 * its time extended, after the completion. */
static size_t merge(const struct shown_operation *shown, const struct hpx_event *events, size_t count,
		    struct hpx_event *out)
{
	const struct hpx_record *record = &shown->entry.record;
	bool restored = hpx_recipe_is_unknown(&record->recipe);
	enum hpx_move beginning = restored                        ? HPX_MOVE_RESTORE :
				  hpx_jobs_answering(shown->jobs) ? HPX_MOVE_ACCEPT :
								    HPX_MOVE_RESERVE;
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
	bool has_beginning = at < count && events[at].attempt == 1 &&
			     is_called(&events[at], hpx_move_name(beginning));
	if (!has_beginning)
		out[n++] = begun;
	bool ends = record->state == HPX_STATE_COMPLETED && !restored && !has_end(events, at, count);
	for (; at < count && (!ends || events[at].at_ms <= record->changed_ms); at++)
		out[n++] = events[at];
	if (ends)
		out[n++] = completed;
	while (at < count)
		out[n++] = events[at++];
	HPX_ASSERT(n >= count && n <= count + 2);
	return n;
}

static enum hpx_status read_history(struct hpx_operator_command *command,
				    struct shown_operation *shown)
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
	if (record->last_error != HPX_LAST_ERROR_NONE)
		printf("%-10s %s\n", "last error", hpx_last_error_name(record->last_error));
	hpx_operator_print_time("created", record->created_ms);
	if (record->expires_ms == 0)
		printf("%-10s never, as long as it is %s\n", "expires", hpx_keys_state(entry));
	else if (record->state == HPX_STATE_PENDING)
		hpx_operator_print_time("given up", record->expires_ms);
	else
		hpx_operator_print_time(record->expires_ms > command->now_ms ? "expires" : "expired",
					record->expires_ms);
}

static void print_answer(const struct shown_operation *shown)
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
	printf("  (%zu bytes of body; --body prints them)\n", shown->answer->body.len);
}

/* The commands by which a person can settle an unknown outcome. */
static void print_advice(const struct hpx_operator_command *command, const struct shown_operation *shown)
{
	const char *where = hpx_operator_where(command);
	const struct hpx_record *record = &shown->entry.record;
	bool async = hpx_jobs_answering(shown->jobs) != NULL;
	char reference[HPX_REFERENCE_SIZE];

	HPX_ASSERT(is_unknown(shown));
	hpx_reference_print(&record->id, &record->mark, reference);
	printf("\nNobody knows whether it happened; retries get 409 until it is settled. Ask "
	       "the\n"
	       "%s (it was given the reference as Hapax-Operation), then:\n"
	       "  hapax keys resolve %.12s --applied --response FILE --reason TEXT%s\n"
	       "    (--status N instead of --response, where only that is known)\n"
	       "  hapax keys resolve %.12s --not-applied --reason TEXT%s\n",
	       async ? "target of its job" : "service behind hapax", reference, where, reference, where);
}

static int print_text(const struct hpx_operator_command *command, const struct shown_operation *shown)
{
	print_record(command, &shown->entry);
	if (is_unknown(shown))
		hpx_keys_probe_print(command, &shown->probe);
	if (shown->jobs != NULL) {
		puts("\njobs");
		hpx_jobs_table(command, shown->jobs);
	}
	puts("\nhistory");
	for (size_t i = 0; i < shown->count; i++)
		hpx_operator_print_event(&shown->history[i]);
	print_answer(shown);
	if (is_unknown(shown))
		print_advice(command, shown);
	return HPX_EXIT_OK;
}

static void json_jobs(struct hpx_json_writer *json, const struct hpx_job_entry *jobs)
{
	hpx_json_begin_array(json, "jobs");
	for (; jobs != NULL; jobs = jobs->next) {
		hpx_json_begin_object(json, NULL);
		hpx_jobs_json(json, jobs);
		hpx_json_end_object(json);
	}
	hpx_json_end_array(json);
}

static void json_answer(struct hpx_json_writer *json, const struct hpx_answer *answer, bool body)
{
	hpx_json_begin_object(json, "answer");
	hpx_json_put_number(json, "status", answer->status);
	hpx_json_put_bytes(json, "headers", answer->headers);
	hpx_json_put_number(json, "body_bytes", answer->body.len);
	if (body)
		hpx_json_put_bytes(json, "body", answer->body);
	hpx_json_end_object(json);
}

static int print_json(const struct hpx_operator_command *command, const struct shown_operation *shown)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_keys_json(&json, &shown->entry, command->now_ms);
	if (is_unknown(shown))
		hpx_keys_probe_json(&json, &shown->probe);
	json_jobs(&json, shown->jobs);
	hpx_operator_json_history(&json, shown->history, shown->count);
	if (shown->answer != NULL)
		json_answer(&json, shown->answer, command->body != NULL);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, command->verb, "it cannot be shown");
}

/* Reads the operation again with its answer, and what is known besides its record. */
static enum hpx_status read_rest(struct hpx_operator_command *command, struct shown_operation *shown)
{
	struct hpx_operation_id id = shown->entry.record.id;
	enum hpx_status status =
		hpx_store_find(command->reader, &id, &command->arena, &shown->entry, &shown->answer);

	if (status == HPX_OK)
		status = hpx_jobs_of(command, &shown->entry.record, &shown->jobs);
	if (status == HPX_OK)
		status = read_history(command, shown);
	if (status == HPX_OK && is_unknown(shown)) {
		const struct hpx_job_entry *job = hpx_jobs_answering(shown->jobs);
		struct hpx_span none = { NULL, 0 };

		status = hpx_keys_probe_read(command, &id, shown->entry.description.route,
					     job != NULL ? job->job.target : none,
					     &shown->probe);
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
	struct shown_operation shown = { .answer = NULL };
	int code = hpx_keys_find(command, &shown.entry);

	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status = read_rest(command, &shown);
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
