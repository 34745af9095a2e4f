/* `hapax keys show`: the record, its history and the stored answer. The first
 * reservation and its direct completion leave no event (the row tells them),
 * so the history is put together from both. */
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/keys.h"
#include "cli/keys_json.h"

#define JSON_MAX ((size_t)64 * 1024 * 1024)

struct shown {
	struct hpx_entry entry;
	struct hpx_answer *answer;   /* NULL: none is stored, or it cannot be read */
	struct hpx_event *history;
	size_t count;
};

static bool has_event(const struct hpx_event *events, size_t from, size_t to,
		      enum hpx_move move)
{
	for (size_t i = from; i < to; i++)
		if (hpx_span_eq(events[i].what, hpx_span_of(hpx_move_name(move))))
			return true;
	return false;
}

/* Events before `created` are of an earlier use of the key; they come first.
 * Where the present use began with an event of its own (an expired key used
 * again), nothing is made up. */
static size_t merge(const struct hpx_record *record, const struct hpx_event *events,
		    size_t count, struct hpx_event *out)
{
	struct hpx_event reserved = { .at_ms = record->created_ms, .attempt = 1,
				      .what = hpx_span_of(hpx_move_name(HPX_MOVE_RESERVE)) };
	struct hpx_event completed = { .at_ms = record->changed_ms, .attempt = record->attempt,
				       .what = hpx_span_of(hpx_move_name(HPX_MOVE_COMPLETE)),
				       .status = record->status };
	size_t n = 0, at = 0;

	while (at < count && events[at].at_ms < record->created_ms)
		out[n++] = events[at++];
	bool told = at < count && events[at].attempt == 1 &&
		    has_event(events, at, at + 1, HPX_MOVE_RESERVE);
	if (!told)
		out[n++] = reserved;
	for (size_t i = at; i < count; i++)
		out[n++] = events[i];
	if (record->state == HPX_STATE_COMPLETED &&
	    !has_event(events, at, count, HPX_MOVE_COMPLETE) &&
	    !has_event(events, at, count, HPX_MOVE_APPLY))
		out[n++] = completed;
	return n;
}

static enum hpx_status read_history(struct hpx_keys *keys, struct shown *shown)
{
	struct hpx_event *events = NULL;
	size_t count = 0;
	enum hpx_status status = hpx_store_events(keys->reader, &shown->entry.record.id,
						  &keys->arena, &events, &count);

	if (status != HPX_OK)
		return status;
	shown->history = hpx_arena_zalloc(&keys->arena, count + 2, sizeof(*events));
	if (shown->history == NULL)
		return HPX_NOMEM;
	shown->count = merge(&shown->entry.record, events, count, shown->history);
	return HPX_OK;
}

static void print_time(const char *label, int64_t wall_ms)
{
	char when[HPX_RFC3339_SIZE];

	hpx_clock_rfc3339(wall_ms, when);
	printf("%-10s %s\n", label, when);
}

static void print_member(const char *label, struct hpx_span text)
{
	printf("%-10s ", label);
	hpx_keys_print_text(text, 0);
	putchar('\n');
}

static void print_record(const struct hpx_keys *keys, const struct hpx_entry *entry)
{
	const struct hpx_record *record = &entry->record;
	const struct hpx_description *d = &entry->description;
	char reference[HPX_REFERENCE_SIZE], age[HPX_KEYS_AGE_SIZE];

	hpx_reference_print(&record->id, &record->first, reference);
	hpx_keys_age(keys->now_ms - record->changed_ms, age);
	printf("%-10s %s\n", "operation", reference);
	printf("%-10s %s, for %s%s\n", "state", hpx_keys_state(entry), age,
	       entry->readable ? "" : " (its record cannot be read)");
	fputs("request    ", stdout);
	hpx_keys_print_text(d->method, 0);
	putchar(' ');
	hpx_keys_print_text(d->path, 0);
	putchar('\n');
	print_member("route", d->route);
	print_member("key", d->key);
	print_member("tenant", d->tenant);
	print_member("scope", d->scope);
	printf("%-10s %u\n", "attempt", record->attempt);
	print_time("created", record->created_ms);
	if (record->expires_ms == 0)
		printf("%-10s never, as long as it is %s\n", "expires", hpx_keys_state(entry));
	else
		print_time(record->expires_ms > keys->now_ms ? "expires" : "expired",
			   record->expires_ms);
}

void hpx_keys_print_event(const struct hpx_event *event)
{
	char when[HPX_RFC3339_SIZE];

	hpx_clock_rfc3339(event->at_ms, when);
	printf("  %-24s  attempt %u  ", when, event->attempt);
	hpx_keys_print_text(event->what, 0);
	if (event->status != 0)
		printf(" %u", event->status);
	if (event->actor.len > 0) {
		fputs(", by ", stdout);
		hpx_keys_print_text(event->actor, 0);
	}
	if (event->reason.len > 0) {
		fputs(": ", stdout);
		hpx_keys_print_text(event->reason, 0);
	}
	putchar('\n');
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
	while (hpx_span_split(&rest, '\n', &line)) {
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (line.len == 0)
			continue;
		fputs("  ", stdout);
		hpx_keys_print_text(line, 0);
		putchar('\n');
	}
	printf("  (%zu bytes of body; --body writes them)\n", shown->answer->body.len);
}

static void print_advice(const struct hpx_entry *entry)
{
	char reference[HPX_REFERENCE_SIZE];

	if (entry->readable && entry->record.state != HPX_STATE_UNKNOWN)
		return;
	hpx_reference_print(&entry->record.id, &entry->record.first, reference);
	printf("\nNobody knows whether it happened; retries get 409 until somebody says so. Ask the\n"
	       "service behind hapax (it was given the reference as Hapax-Operation), then:\n"
	       "  hapax keys resolve %.12s --applied --response FILE --reason TEXT\n"
	       "  hapax keys resolve %.12s --not-applied --reason TEXT\n",
	       reference, reference);
}

static int print_text(const struct hpx_keys *keys, const struct shown *shown)
{
	print_record(keys, &shown->entry);
	puts("\nhistory");
	for (size_t i = 0; i < shown->count; i++)
		hpx_keys_print_event(&shown->history[i]);
	print_answer(shown);
	print_advice(&shown->entry);
	return HPX_EXIT_OK;
}

static void json_event(struct hpx_keys_json *json, const struct hpx_event *event)
{
	hpx_keys_json_name(json, NULL);
	hpx_keys_json_open(json, "{");
	hpx_keys_json_time(json, "at", event->at_ms);
	hpx_keys_json_number(json, "attempt", event->attempt);
	hpx_keys_json_text(json, "what", event->what);
	hpx_keys_json_number(json, "status", event->status);
	hpx_keys_json_text(json, "actor", event->actor);
	hpx_keys_json_text(json, "reason", event->reason);
	hpx_keys_json_close(json, "}");
}

static void json_answer(struct hpx_keys_json *json, const struct hpx_answer *answer, bool body)
{
	hpx_keys_json_name(json, "answer");
	hpx_keys_json_open(json, "{");
	hpx_keys_json_number(json, "status", answer->status);
	hpx_keys_json_bytes(json, "headers", answer->headers);
	hpx_keys_json_number(json, "body_bytes", answer->body.len);
	if (body)
		hpx_keys_json_bytes(json, "body", answer->body);
	hpx_keys_json_close(json, "}");
}

static int print_json(const struct hpx_keys *keys, const struct shown *shown)
{
	struct hpx_buffer out;
	struct hpx_keys_json json = { .out = &out };

	hpx_buffer_init(&out, JSON_MAX);
	hpx_keys_json_open(&json, "{");
	hpx_keys_json_entry(&json, &shown->entry, keys->now_ms);
	hpx_keys_json_name(&json, "history");
	hpx_keys_json_open(&json, "[");
	for (size_t i = 0; i < shown->count; i++)
		json_event(&json, &shown->history[i]);
	hpx_keys_json_close(&json, "]");
	if (shown->answer != NULL)
		json_answer(&json, shown->answer, keys->body != NULL);
	hpx_keys_json_close(&json, "}\n");
	int code = json.status == HPX_OK ?
			   hpx_cli_write(hpx_buffer_span(&out), stdout) :
			   hpx_keys_complain(keys, HPX_EXIT_FAILED, "it cannot be shown: %s",
					     hpx_status_text(json.status));
	hpx_buffer_done(&out);
	return code;
}

/* Byte for byte into a pipe or a file; with escapes on a terminal, which a
 * stored answer must not steer. */
static int print_body(const struct hpx_keys *keys, const struct hpx_answer *answer)
{
	if (answer == NULL)
		return hpx_keys_complain(keys, HPX_EXIT_FAILED,
					 "no body is stored for this operation");
	if (!isatty(STDOUT_FILENO))
		return hpx_cli_write(answer->body, stdout);
	for (size_t i = 0; i < answer->body.len; i++) {
		unsigned char c = (unsigned char)answer->body.ptr[i];

		if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f))
			putchar(c);
		else
			printf("\\x%02x", c);
	}
	return HPX_EXIT_OK;
}

int hpx_keys_show(struct hpx_keys *keys)
{
	struct shown shown = { 0 };
	int code = hpx_keys_find(keys, &shown.entry);

	if (code != HPX_EXIT_OK)
		return code;
	struct hpx_operation_id id = shown.entry.record.id;
	enum hpx_status status =
		hpx_store_find(keys->reader, &id, &keys->arena, &shown.entry, &shown.answer);
	if (status == HPX_OK)
		status = read_history(keys, &shown);
	if (status != HPX_OK)
		code = hpx_keys_complain(keys, HPX_EXIT_FAILED, "it cannot be read: %s",
					 hpx_status_text(status));
	else if (keys->json != NULL)
		code = print_json(keys, &shown);
	else if (keys->body != NULL)
		code = print_body(keys, shown.answer);
	else
		code = print_text(keys, &shown);
	if (shown.answer != NULL)
		hpx_answer_free(shown.answer);
	return code;
}
