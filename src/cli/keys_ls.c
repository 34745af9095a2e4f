/* `hapax keys ls`: operations, those that changed last first, once or again and again
 * (--watch), and the table in which operations are shown. A list looks at the newest
 * operations only and says how far. */
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/operations.h"

/* The first digits of a reference in a table; as many as `resolve` prints. */
#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TENANT_WIDTH_MAX 16
/* Between two lists of --watch. */
#define WATCH_MS 2000

/* ---- the table, and the members of an operation ---- */

const char *hpx_keys_state(const struct hpx_entry *entry)
{
	return hpx_state_name(entry->readable ? entry->record.state : HPX_STATE_UNKNOWN);
}

/* "in 23h", "expired", "never" for an unknown outcome, "-" while it is in progress. A
 * pending operation is given up at that time. */
static void print_expiry(const struct hpx_operator_command *command, const struct hpx_record *record)
{
	char age[HPX_OPERATOR_AGE_SIZE];

	if (record->expires_ms == 0) {
		printf("%-7s", record->state == HPX_STATE_IN_PROGRESS ? "-" : "never");
	} else if (record->expires_ms <= command->now_ms) {
		fputs("expired", stdout);
	} else {
		hpx_operator_age(record->expires_ms - command->now_ms, age);
		printf("in %-4s", age);
	}
}

struct key_widths {
	size_t reference;
	size_t state;
	size_t request;
	size_t tenant;
};

static size_t request_len(const struct hpx_entry *entry)
{
	return entry->description.method.len + 1 + entry->description.path.len;
}

static struct key_widths measure(const struct hpx_operator_command *command,
				 const struct hpx_entry *entries, size_t count)
{
	struct key_widths widths = { command->full ? HPX_REFERENCE_LEN : SHORT_ID, 5, 7, 6 };

	for (size_t i = 0; i < count; i++) {
		widths.state =
			hpx_operator_clamp(strlen(hpx_keys_state(&entries[i])), widths.state, 16);
		widths.request = hpx_operator_clamp(request_len(&entries[i]), widths.request,
						    REQUEST_WIDTH_MAX);
		widths.tenant = hpx_operator_clamp(entries[i].description.tenant.len, widths.tenant,
						   command->full != NULL ? SIZE_MAX : TENANT_WIDTH_MAX);
	}
	return widths;
}

/* One column more than a terminal has room for. */
static bool shows_error(const struct hpx_operator_command *command)
{
	return command->full != NULL || command->error != NULL;
}

static void print_row(const struct hpx_operator_command *command, const struct hpx_entry *entry,
		      const struct key_widths *widths)
{
	const struct hpx_record *record = &entry->record;
	char reference[HPX_REFERENCE_SIZE], age[HPX_OPERATOR_AGE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_operator_age(command->now_ms - record->created_ms, age);
	printf("%.*s  %-*s  %3u  ", (int)widths->reference, reference, (int)widths->state,
	       hpx_keys_state(entry), record->attempt);
	hpx_operator_print_request(entry->description.method, entry->description.path,
				   widths->request);
	if (record->status != 0)
		printf("  %4u  ", record->status);
	else
		fputs("     -  ", stdout);
	hpx_operator_print_text(entry->description.tenant, widths->tenant);
	printf("  %4s  ", age);
	print_expiry(command, record);
	if (shows_error(command))
		printf("  %s", record->last_error != HPX_LAST_ERROR_NONE ? hpx_last_error_name(record->last_error) : "-");
	fputs(entry->readable ? "\n" : " (the record cannot be read)\n", stdout);
}

void hpx_keys_table(const struct hpx_operator_command *command, const struct hpx_entry *entries,
		    size_t count)
{
	struct key_widths widths = measure(command, entries, count);

	printf("%-*s  %-*s  TRY  %-*s  HTTP  %-*s   AGE  EXPIRES%s\n", (int)widths.reference, "REFERENCE",
	       (int)widths.state, "STATE", (int)widths.request, "REQUEST", (int)widths.tenant, "TENANT",
	       shows_error(command) ? "  LAST ERROR" : "");
	for (size_t i = 0; i < count; i++)
		print_row(command, &entries[i], &widths);
}

static void json_description(struct hpx_json_writer *json, const struct hpx_description *d)
{
	hpx_json_put_string(json, "method", d->method);
	hpx_json_put_string(json, "path", d->path);
	hpx_json_put_string(json, "route", d->route);
	hpx_json_put_string(json, "key", d->key);
	hpx_json_put_string(json, "tenant", d->tenant);
	hpx_json_put_string(json, "scope", d->scope);
}

void hpx_keys_json(struct hpx_json_writer *json, const struct hpx_entry *entry,
		   int64_t now_ms)
{
	const struct hpx_record *record = &entry->record;
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_json_put_text(json, "reference", reference);
	hpx_json_put_text(json, "state", hpx_keys_state(entry));
	hpx_json_put_bool(json, "readable", entry->readable);
	hpx_json_put_number(json, "attempt", record->attempt);
	hpx_json_put_number(json, "status", record->status);
	hpx_json_put_bool(json, "kept", record->kept);
	hpx_json_put_text(json, "last_error", hpx_last_error_name(record->last_error));
	json_description(json, &entry->description);
	hpx_json_put_time(json, "created", record->created_ms);
	hpx_json_put_time(json, "changed", record->changed_ms);
	hpx_json_put_time(json, "expires", record->expires_ms);
	hpx_json_put_bool(json, "expired",
			  record->expires_ms != 0 && record->expires_ms <= now_ms);
}

/* ---- how far a list looked ---- */

void hpx_keys_print_looked(const struct hpx_looked *looked, FILE *to)
{
	char when[HPX_RFC3339_SIZE];

	if (looked->all)
		return;
	fprintf(to, "Looked at %llu operations", (unsigned long long)looked->operations);
	if (looked->back_to_ms != 0) {
		hpx_clock_rfc3339(looked->back_to_ms, when);
		fprintf(to, ", back to %s", when);
	}
	fputs("; older ones were not looked at.\n", to);
}

static void json_looked(struct hpx_json_writer *json, const struct hpx_looked *looked)
{
	hpx_json_begin_object(json, "looked");
	hpx_json_put_number(json, "operations", looked->operations);
	hpx_json_put_bool(json, "all", looked->all);
	hpx_json_put_time(json, "back_to", looked->back_to_ms);
	hpx_json_end_object(json);
}

/* ---- one list ---- */

/* What was read at one time; `arena` holds it. */
struct key_list {
	struct hpx_arena arena;
	struct hpx_entry *entries;
	size_t count;
	bool more; /* than --limit */
	struct hpx_looked looked;
};

/* An object; an operation a line. */
static int print_json(struct hpx_operator_command *command, const struct key_list *list)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_begin_array(&json, "operations");
	for (size_t i = 0; i < list->count; i++) {
		hpx_json_break_line(&json);
		hpx_json_begin_object(&json, NULL);
		hpx_keys_json(&json, &list->entries[i], command->now_ms);
		hpx_json_end_object(&json);
	}
	hpx_json_break_line(&json);
	hpx_json_end_array(&json);
	json_looked(&json, &list->looked);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, command->verb,
				  "the list cannot be printed; use a smaller --limit");
}

/* What a row says that this version does not know is "other", and cannot be asked for. */
static int read_error(struct hpx_operator_command *command, enum hpx_last_error *ret_error)
{
	static const char names[] = ""
#define X(name, text) text " "
		HPX_LAST_ERROR_LIST(X)
#undef X
		;

	if (command->error == NULL)
		return HPX_EXIT_OK;
	*ret_error = hpx_last_error_by_name(hpx_span_of(command->error));
	if (*ret_error == HPX_LAST_ERROR_OTHER || *ret_error == HPX_LAST_ERROR_NONE)
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "there is no error \"%s\"; the errors are%.*s",
					     command->error, (int)(sizeof(names) - sizeof(" other ")),
					     names);
	return HPX_EXIT_OK;
}

static int read_query(struct hpx_operator_command *command, struct hpx_query *query)
{
	*query = (struct hpx_query){ .state = HPX_STATE_COUNT,
				     .key = hpx_span_of(command->key),
				     .tenant = hpx_span_of(command->tenant),
				     .route = hpx_span_of(command->route) };
	int code = hpx_operator_limit(command, &query->limit);
	query->limit++; /* one more tells that there are more */
	if (code == HPX_EXIT_OK)
		code = hpx_operator_time(command, "since", command->since, false, &query->since_ms);
	if (code == HPX_EXIT_OK)
		code = read_error(command, &query->error);
	if (code != HPX_EXIT_OK || command->state == NULL)
		return code;
	query->state = hpx_state_by_name(hpx_span_of(command->state));
	if (query->state == HPX_STATE_COUNT || query->state == HPX_STATE_NONE)
		return hpx_operator_complain(
			command, HPX_EXIT_USAGE,
			"there is no state \"%s\"; the states are pending, in_progress, "
			"failed_retryable, completed and unknown",
			command->state);
	return HPX_EXIT_OK;
}

static int print_list(struct hpx_operator_command *command, const struct key_list *list)
{
	if (list->count == 0)
		hpx_keys_suggest_tenant(command);
	if (command->json != NULL)
		return print_json(command, list);
	if (list->count == 0)
		puts("no operations");
	else
		hpx_keys_table(command, list->entries, list->count);
	if (list->more)
		fprintf(stderr, "The %zu newest are shown; --limit N shows more.\n", list->count);
	else
		hpx_keys_print_looked(&list->looked, stderr);
	return HPX_EXIT_OK;
}

static int read_key_list(struct hpx_operator_command *command, const struct hpx_query *query,
			 struct key_list *list)
{
	list->count = 0;
	int code = hpx_keys_read(command, query, &list->arena, &list->entries, &list->count, &list->looked);
	list->more = code == HPX_EXIT_OK && list->count == query->limit;
	if (list->more) {
		list->count--;
		list->looked.all = false;
	}
	return code;
}

/* ---- --watch ---- */

static bool is_in(const struct key_list *list, const struct hpx_entry *entry)
{
	for (size_t i = 0; i < list->count; i++)
		if (hpx_operation_id_eq(&list->entries[i].record.id, &entry->record.id) &&
		    list->entries[i].record.changed_ms == entry->record.changed_ms &&
		    list->entries[i].record.state == entry->record.state)
			return true;
	return false;
}

/* Into a pipe or a file goes what is new or has changed since the list before, the oldest
 * first; with --json an object a line. */
static int print_changes(struct hpx_operator_command *command, const struct key_list *before,
			 const struct key_list *list)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;
	int code = HPX_EXIT_OK;

	for (size_t i = list->count; i > 0 && code == HPX_EXIT_OK; i--) {
		struct hpx_entry *entry = &list->entries[i - 1];
		struct key_widths widths = { command->full ? HPX_REFERENCE_LEN : SHORT_ID, 16,
					     REQUEST_WIDTH_MAX, command->full ? 0 : TENANT_WIDTH_MAX };
		if (is_in(before, entry))
			continue;
		if (command->json == NULL) {
			print_row(command, entry, &widths);
			continue;
		}
		hpx_cli_json_init(&json, &out);
		hpx_json_begin_object(&json, NULL);
		hpx_keys_json(&json, entry, command->now_ms);
		hpx_json_end_object(&json);
		code = hpx_cli_json_print(&json, command->verb, "an operation cannot be printed");
	}
	return code;
}

/* True: somebody pressed Ctrl-C, or asked the process to end. */
static bool wait_for_end(const sigset_t *ends)
{
	const struct timespec pause = { WATCH_MS / 1000, (long)(WATCH_MS % 1000) * 1000000 };

	return sigtimedwait(ends, NULL, &pause) > 0;
}

/* On a terminal each list takes the place of the one before. */
static int watch(struct hpx_operator_command *command, struct hpx_query *query)
{
	struct key_list lists[2] = { { .count = 0 }, { .count = 0 } };
	bool screen = isatty(STDOUT_FILENO) && command->json == NULL, ended = false;
	int code = HPX_EXIT_OK;
	sigset_t ends, usual;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, &usual);
	for (unsigned round = 0; !ended && code == HPX_EXIT_OK; round++) {
		struct key_list *list = &lists[round % 2], *before = &lists[(round + 1) % 2];
		hpx_arena_done(&list->arena);
		hpx_arena_init(&list->arena, HPX_OPERATOR_ARENA_MAX);
		command->now_ms = hpx_clock_wall_ms();
		code = hpx_operator_time(command, "since", command->since, false, &query->since_ms);
		if (code == HPX_EXIT_OK)
			code = read_key_list(command, query, list);
		if (code == HPX_EXIT_OK && !screen && round == 0 && list->count == 0)
			hpx_keys_suggest_tenant(command);
		if (code == HPX_EXIT_OK && screen)
			fputs("\033[H\033[2J", stdout);
		if (code == HPX_EXIT_OK)
			code = screen ? print_list(command, list) :
					print_changes(command, before, list);
		/* Whoever reads may have gone: then the end is here, and no complaint. */
		ended = code != HPX_EXIT_OK || fflush(stdout) != 0 || wait_for_end(&ends);
	}
	hpx_arena_done(&lists[0].arena);
	hpx_arena_done(&lists[1].arena);
	sigprocmask(SIG_SETMASK, &usual, NULL);
	return code;
}

int hpx_keys_ls(struct hpx_operator_command *command)
{
	struct key_list list = { .count = 0 };
	struct hpx_query query;
	int code = read_query(command, &query);

	if (code != HPX_EXIT_OK)
		return code;
	if (command->watch != NULL)
		return watch(command, &query);
	hpx_arena_init(&list.arena, HPX_OPERATOR_ARENA_MAX);
	code = read_key_list(command, &query, &list);
	if (code == HPX_EXIT_OK)
		code = print_list(command, &list);
	hpx_arena_done(&list.arena);
	return code;
}
