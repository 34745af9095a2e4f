/* `hapax history`: finished operations, the newest first, for whoever asks later what
 * became of a request. An operation that is there and what the reaper left of one that is
 * gone read alike. Changes nothing, and never creates a store. */
#include "base/clock.h"
#include "base/status.h"
#include "base/unit.h"
#include "cli/operations.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 100000
/* Operations that are there and entries of the history, each, that one run looks at. */
#define LOOK_MAX 200000
/* Columns of the table. */
#define SHORT_ID 12
#define REQUEST_WIDTH_MAX 32
#define TENANT_WIDTH_MAX 16
#define KEY_WIDTH_MAX 36
#define STATE_WIDTH 16

struct history_run {
	struct hpx_operator_command command;
	const char *csv;
	struct hpx_history_query query;
	char key_hashed[HPX_KEY_HASH_SIZE];
	struct hpx_history found;
};

/* ---- the question ---- */

static int complain_state(const struct history_run *run)
{
	return hpx_operator_complain(&run->command, HPX_EXIT_USAGE,
				     "a finished operation is completed or failed_retryable, "
				     "not \"%s\"; "
				     "`hapax keys ls --state %s%s` lists the others",
				     run->command.state, run->command.state,
				     hpx_operator_where(&run->command));
}

static int read_state(struct history_run *run)
{
	if (run->command.state == NULL)
		return HPX_EXIT_OK;
	run->query.state = hpx_state_by_name(hpx_span_of(run->command.state));
	return run->query.state == HPX_STATE_COMPLETED || run->query.state == HPX_STATE_FAILED_RETRYABLE ?
		       HPX_EXIT_OK :
		       complain_state(run);
}

/* "402", or "4xx" for all that begin so. */
static int read_status(struct history_run *run)
{
	struct hpx_span text = hpx_span_of(run->command.status);
	bool class = text.len == 3 && text.ptr[1] == 'x' && text.ptr[2] == 'x';
	uint64_t number = 0;

	if (run->command.status == NULL)
		return HPX_EXIT_OK;
	if (class)
		text = hpx_span_first(text, 1);
	if (!hpx_span_u64(text, 599, &number) || number < (class ? 1 : 100) || (class && number > 5))
		return hpx_operator_complain(&run->command, HPX_EXIT_USAGE,
					     "--status is an HTTP status (402), or its first digit "
					     "with xx (4xx)");
	run->query.status_min = (uint32_t)(class ? 100 * number : number);
	run->query.status_max = run->query.status_min + (class ? 99 : 0);
	return HPX_EXIT_OK;
}

static int read_limit(struct history_run *run)
{
	uint64_t limit = LIMIT_DEFAULT;

	if (run->command.limit != NULL &&
	    (!hpx_span_u64(hpx_span_of(run->command.limit), LIMIT_MAX, &limit) || limit == 0))
		return hpx_operator_complain(&run->command, HPX_EXIT_USAGE,
					     "--limit is a number from 1 to %d", LIMIT_MAX);
	run->query.limit = (size_t)limit;
	return HPX_EXIT_OK;
}

/* The client's key, and the hash that stands for it (key_storage: hash). */
static int read_key(struct history_run *run)
{
	if (run->command.key == NULL)
		return HPX_EXIT_OK;
	run->query.key = hpx_span_of(run->command.key);
	enum hpx_status status = hpx_key_hash_print(run->query.key, run->key_hashed);
	if (status != HPX_OK)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(status));
	run->query.key_hashed = hpx_span_of(run->key_hashed);
	return HPX_EXIT_OK;
}

static int read_question(struct history_run *run)
{
	const struct hpx_operator_command *command = &run->command;
	int code = HPX_EXIT_OK;

	run->query = (struct hpx_history_query){ .until_ms = HPX_EXPIRES_MAX_MS,
						 .tenant = hpx_span_of(command->tenant),
						 .look_max = LOOK_MAX };
	if (command->json != NULL && run->csv != NULL)
		code = hpx_operator_complain(command, HPX_EXIT_USAGE, "give --json or --csv, not both");
	if (code == HPX_EXIT_OK)
		code = hpx_operator_time(command, "since", command->since, false, &run->query.since_ms);
	if (code == HPX_EXIT_OK)
		code = hpx_operator_time(command, "until", command->until, false, &run->query.until_ms);
	if (code == HPX_EXIT_OK && run->query.since_ms >= run->query.until_ms)
		code = hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "--since must be earlier than --until; what began at --until "
					     "itself is not listed");
	if (code == HPX_EXIT_OK)
		code = read_state(run);
	if (code == HPX_EXIT_OK)
		code = read_status(run);
	if (code == HPX_EXIT_OK)
		code = read_limit(run);
	return code == HPX_EXIT_OK ? read_key(run) : code;
}

/* ---- a table ---- */

static void print_table(const struct history_run *run)
{
	const struct hpx_history *found = &run->found;
	int reference_width = run->command.full != NULL ? HPX_REFERENCE_LEN : SHORT_ID;
	char reference[HPX_REFERENCE_SIZE], began[HPX_RFC3339_SIZE];
	size_t tenant_width = 6, key_width = 3;
	size_t tenant_max = run->command.full != NULL ? SIZE_MAX : TENANT_WIDTH_MAX;

	for (size_t i = 0; i < found->count; i++) {
		const struct hpx_description *d = &found->entries[i].description;
		tenant_width = hpx_operator_clamp(d->tenant.len, tenant_width, tenant_max);
		key_width = hpx_operator_clamp(d->key.len, key_width, KEY_WIDTH_MAX);
	}
	printf("%-24s  %-*s  TRY  HTTP  %-*s  %-*s  %-*s  %s\n", "BEGAN", STATE_WIDTH, "STATE",
	       REQUEST_WIDTH_MAX, "REQUEST", (int)tenant_width, "TENANT", (int)key_width, "KEY",
	       "REFERENCE");
	for (size_t i = 0; i < found->count; i++) {
		const struct hpx_history_entry *entry = &found->entries[i];
		hpx_clock_rfc3339(entry->created_ms, began);
		hpx_reference_print(&entry->id, &entry->mark, reference);
		printf("%-24s  %-*s  %3u  ", began, STATE_WIDTH, hpx_state_name(entry->state),
		       entry->attempt);
		if (entry->status != 0)
			printf("%4u  ", entry->status);
		else
			fputs("   -  ", stdout);
		hpx_operator_print_request(entry->description.method, entry->description.path,
					   REQUEST_WIDTH_MAX);
		fputs("  ", stdout);
		hpx_operator_print_text(entry->description.tenant, tenant_width);
		fputs("  ", stdout);
		hpx_operator_print_text(entry->description.key, key_width);
		printf("  %.*s\n", reference_width, reference);
	}
}

/* ---- an object a line ---- */

static int print_object(const struct history_run *run, const struct hpx_history_entry *entry)
{
	const struct hpx_description *d = &entry->description;
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_reference_print(&entry->id, &entry->mark, reference);
	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "reference", reference);
	hpx_json_put_text(&json, "state", hpx_state_name(entry->state));
	hpx_json_put_number(&json, "attempt", entry->attempt);
	hpx_json_put_number(&json, "status", entry->status);
	hpx_json_put_string(&json, "method", d->method);
	hpx_json_put_string(&json, "path", d->path);
	hpx_json_put_string(&json, "route", d->route);
	hpx_json_put_string(&json, "key", d->key);
	hpx_json_put_string(&json, "tenant", d->tenant);
	hpx_json_put_time(&json, "created", entry->created_ms);
	hpx_json_put_time(&json, "changed", entry->changed_ms);
	hpx_json_put_time(&json, "expires", entry->expires_ms);
	hpx_json_put_bool(&json, "reaped", entry->expires_ms == 0);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, run->command.verb, "an entry cannot be printed");
}

static int print_objects(const struct history_run *run)
{
	int code = HPX_EXIT_OK;

	for (size_t i = 0; i < run->found.count && code == HPX_EXIT_OK; i++)
		code = print_object(run, &run->found.entries[i]);
	return code;
}

/* ---- CSV, as RFC 4180 has it ---- */

/* A spreadsheet takes a cell that begins so for a formula. */
static bool is_formula(struct hpx_span text)
{
	return text.len > 0 && strchr("=+-@", text.ptr[0]) != NULL;
}

/* In quotes, because keys, paths and tenants come from clients: with each quote twice, with
 * control bytes as '?', and an apostrophe before what would be a formula. */
static void print_cell(struct hpx_span text, const char *end)
{
	struct hpx_span character;
	bool printable;

	fputs(is_formula(text) ? "\"'" : "\"", stdout);
	while (hpx_utf8_next(&text, &character, &printable)) {
		fwrite(printable ? character.ptr : "?", 1, printable ? character.len : 1, stdout);
		if (hpx_span_eq(character, HPX_SPAN("\"")))
			putchar('"');
	}
	printf("\"%s", end);
}

static void print_time_cell(int64_t wall_ms, const char *end)
{
	char when[HPX_RFC3339_SIZE] = "";

	if (wall_ms != 0)
		hpx_clock_rfc3339(wall_ms, when);
	printf("%s%s", when, end);
}

static void print_csv(const struct history_run *run)
{
	char reference[HPX_REFERENCE_SIZE];

	fputs("reference,state,attempt,status,method,path,route,key,tenant,created,changed,expires\r\n",
	      stdout);
	for (size_t i = 0; i < run->found.count; i++) {
		const struct hpx_history_entry *entry = &run->found.entries[i];
		hpx_reference_print(&entry->id, &entry->mark, reference);
		printf("%s,%s,%u,", reference, hpx_state_name(entry->state), entry->attempt);
		if (entry->status != 0)
			printf("%u", entry->status);
		putchar(',');
		print_cell(entry->description.method, ",");
		print_cell(entry->description.path, ",");
		print_cell(entry->description.route, ",");
		print_cell(entry->description.key, ",");
		print_cell(entry->description.tenant, ",");
		print_time_cell(entry->created_ms, ",");
		print_time_cell(entry->changed_ms, ",");
		print_time_cell(entry->expires_ms, "\r\n");
	}
}

/* ---- how far it looked ---- */

/* Nobody should take "nothing found" for "it did not happen". */
static void tell_retention(const struct history_run *run)
{
	int64_t retention_ms = run->found.retention_ms;
	int64_t known_ms = run->command.now_ms - retention_ms;
	char kept[HPX_UNIT_SIZE], when[HPX_RFC3339_SIZE];

	if (retention_ms == 0) {
		fputs("This store keeps no history (history.retention): operations that were "
		      "deleted after their expiry are not here.\n",
		      stderr);
		return;
	}
	if (run->query.since_ms >= known_ms)
		return;
	hpx_duration_print((uint64_t)retention_ms, kept);
	hpx_clock_rfc3339(known_ms, when);
	fprintf(stderr,
		"The history is kept for %s: deleted operations that began before %s are not "
		"here.\n",
		kept,
		when);
}

static void tell_looked(const struct history_run *run)
{
	const struct hpx_history *found = &run->found;
	char when[HPX_RFC3339_SIZE];

	if (found->more)
		fprintf(stderr, "The %zu newest are shown; --limit N shows more.\n", found->count);
	if (found->cut)
		fprintf(stderr,
			"Looked at %zu operations, not at all of them: some may be missing. A "
			"shorter time (--since, --until) looks at fewer.\n",
			found->looked);
	if (found->cut_reaped) {
		hpx_clock_rfc3339(found->reached_ms, when);
		fprintf(stderr,
			"Entries of the history that began before %s were not looked at; "
			"--until %s continues there.\n",
			when, when);
	}
	tell_retention(run);
}

/* ---- the command ---- */

static int print_found(struct history_run *run)
{
	int code = HPX_EXIT_OK;

	if (run->command.json != NULL)
		code = print_objects(run);
	else if (run->csv != NULL)
		print_csv(run);
	else if (run->found.count == 0)
		puts("no finished operation");
	else
		print_table(run);
	tell_looked(run);
	if (run->found.count == 0)
		hpx_keys_suggest_tenant(&run->command);
	return code;
}

static int answer(struct history_run *run)
{
	enum hpx_status status = hpx_store_history(run->command.reader, &run->query,
						   &run->command.arena, &run->found);

	if (status == HPX_NOMEM)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
					     "there is not enough memory for so many; use a smaller "
					     "--limit, or a shorter time");
	return status == HPX_OK ? print_found(run) : hpx_operator_complain_read(&run->command, status);
}

int hpx_cli_history(int argc, char **argv)
{
	struct history_run run = { .command = { .verb = "history", .now_ms = hpx_clock_wall_ms() } };
	struct hpx_operator_command *command = &run.command;
	const struct hpx_cli_flag flags[] = {
		{ "since", "TIME", "Only those that began then or later: 2026-03-01, 2026-03-01T08:00:00Z, or this long ago (90d).", &command->since },
		{ "until", "TIME", "Only those that began before: 2026-04-01 for all of March.", &command->until },
		{ "tenant", "NAME", "Only those of this tenant; its whole name, as --full has it: header:acme.", &command->tenant },
		{ "key", "KEY", "Only those with this key.", &command->key },
		{ "status", "N", "Only those with this status of the answer: 402, or 4xx.", &command->status },
		{ "state", "STATE", "Only those that ended in this state: completed or failed_retryable.", &command->state },
		{ "limit", "N", "At most this many; default 50, at most 100000.", &command->limit },
		{ "full", NULL, "Shows references and tenants whole in the table.", &command->full },
		{ "json", NULL, "Prints JSON instead of text, an object a line.", &command->json },
		{ "csv", NULL, "Prints CSV instead of text.", &run.csv },
		{ "store", "URL", HPX_OPERATOR_STORE_TEXT, &command->store_url },
		{ "config", "FILE", "Uses the store that this configuration names.", &command->config_path },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax history [--since TIME] [--until TIME] [--key KEY] [FLAGS]",
		.about = "Lists finished operations, the newest first; after their expiry too, "
			 "if the\n"
			 "store keeps a history (history.retention). If it did not look at all "
			 "of them,\n"
			 "it says on standard error how far it looked.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
	};
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	hpx_operator_begin(command);
	code = read_question(&run);
	if (code == HPX_EXIT_OK)
		code = hpx_operator_open(command);
	if (code == HPX_EXIT_OK)
		code = answer(&run);
	return hpx_operator_close(command, code);
}
