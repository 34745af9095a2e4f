/* `hapax reconcile`: compares a provider's export with the store, both ways, and with
 * --apply settles unknown outcomes by it. It is made to run from cron: exit code 1 means
 * that a difference is open. Here are the arguments and the report. */
#include <limits.h>
#include <stdarg.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/unit.h"
#include "cli/reconcile.h"
#include "http/field.h"

/* Of a row of the ledger. */
#define RECORD_BYTES_MAX ((size_t)1 << 20)
/* Of a page of ours, whose bound is a million operations. */
#define SCRATCH_MAX ((size_t)512 * 1024 * 1024)
/* Of the text of a difference. */
#define TEXT_MAX 512

/* ---- differences, kept in groups and printed at the end ---- */

static const struct {
	const char *member;
	const char *heading;
} groups[] = {
#define X(name, member, heading) { member, heading },
	HPX_GROUP_LIST(X)
#undef X
};

static struct hpx_difference *keep(struct hpx_reconciliation *run,
				   const struct hpx_difference *difference,
				   const struct hpx_ledger_match *match, struct hpx_span text)
{
	struct hpx_difference *kept = hpx_arena_alloc(&run->command.arena, sizeof(*kept));

	if (kept == NULL)
		return NULL;
	*kept = *difference;
	kept->next = NULL;
	kept->text = hpx_arena_dup(&run->command.arena, text);
	kept->name = difference->name.ptr != NULL ?
			     hpx_arena_dup(&run->command.arena, difference->name) :
			     difference->name;
	if (kept->text.ptr == NULL || (difference->name.ptr != NULL && kept->name.ptr == NULL))
		return NULL;
	kept->has_reference = match != NULL;
	if (match != NULL)
		hpx_reference_print(hpx_ledger_match_id(match), hpx_ledger_match_mark(match),
				    kept->reference);
	if (match != NULL && match->job != NULL)
		kept->job = match->job->delivery.number;
	return kept;
}

int hpx_reconciliation_note(struct hpx_reconciliation *run, enum hpx_group group,
			    const struct hpx_difference *difference,
			    const struct hpx_ledger_match *match, const char *format, ...)
{
	struct hpx_group_list *list = &run->groups[group];
	char text[TEXT_MAX];
	va_list args;

	HPX_ASSERT(group < HPX_GROUP_COUNT);
	list->count++;
	list->open += difference->settled ? 0 : 1;
	if (list->count > HPX_GROUP_LISTED_MAX)
		return HPX_EXIT_OK;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	struct hpx_difference *kept = keep(run, difference, match, hpx_span_of(text));
	if (kept == NULL)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(HPX_NOMEM));
	if (list->first == NULL)
		list->end = &list->first;
	*list->end = kept;
	list->end = &kept->next;
	return HPX_EXIT_OK;
}

static void print_difference(const struct hpx_difference *difference)
{
	fputs("  ", stdout);
	if (difference->line > 0)
		printf("line %llu  ", (unsigned long long)difference->line);
	if (difference->name.len > 0 &&
	    !(difference->has_reference &&
	      hpx_span_eq(difference->name, hpx_span_of(difference->reference)))) {
		hpx_operator_print_text(hpx_span_first(difference->name, 64), 0);
		fputs("  ", stdout);
	}
	if (difference->has_reference)
		printf("%.12s  ", difference->reference);
	if (difference->job > 0)
		printf("job %lld  ", (long long)difference->job);
	hpx_operator_print_text(difference->text, 0);
	putchar('\n');
}

static uint64_t count_open(const struct hpx_reconciliation *run)
{
	uint64_t open = 0;

	for (size_t i = 0; i < HPX_GROUP_COUNT; i++)
		open += run->groups[i].open;
	return open;
}

static unsigned long long count_settled(const struct hpx_reconciliation *run, enum hpx_group group)
{
	return run->groups[group].count - run->groups[group].open;
}

static void print_text(const struct hpx_reconciliation *run)
{
	for (size_t i = 0; i < HPX_GROUP_COUNT; i++) {
		const struct hpx_group_list *list = &run->groups[i];

		if (list->count == 0)
			continue;
		printf("%s: %llu\n", groups[i].heading, (unsigned long long)list->count);
		for (const struct hpx_difference *d = list->first; d != NULL; d = d->next)
			print_difference(d);
		if (list->count > HPX_GROUP_LISTED_MAX)
			printf("  and %llu more\n",
			       (unsigned long long)(list->count - HPX_GROUP_LISTED_MAX));
		putchar('\n');
	}
	printf("%llu rows, %llu of them known here; %llu of ours happened in that time; %llu settled, ",
	       (unsigned long long)run->rows, (unsigned long long)run->matched,
	       (unsigned long long)run->ours, count_settled(run, HPX_GROUP_UNKNOWN));
	if (run->restore != NULL)
		printf("%llu restored, ", count_settled(run, HPX_GROUP_THEY_ONLY));
	printf("%llu open\n", (unsigned long long)count_open(run));
}

static void json_difference(struct hpx_json_writer *json, const struct hpx_difference *difference)
{
	hpx_json_break_line(json);
	hpx_json_begin_object(json, NULL);
	if (difference->line > 0)
		hpx_json_put_number(json, "line", difference->line);
	if (difference->name.ptr != NULL)
		hpx_json_put_string(json, "name", difference->name);
	if (difference->has_reference)
		hpx_json_put_text(json, "operation", difference->reference);
	if (difference->job > 0)
		hpx_json_put_number(json, "job", (uint64_t)difference->job);
	hpx_json_put_string(json, "text", difference->text);
	hpx_json_put_bool(json, "settled", difference->settled);
	hpx_json_end_object(json);
}

static void json_group(struct hpx_json_writer *json, const char *member,
		       const struct hpx_group_list *list)
{
	hpx_json_begin_object(json, member);
	hpx_json_put_number(json, "count", list->count);
	hpx_json_put_number(json, "open", list->open);
	hpx_json_begin_array(json, "listed");
	for (const struct hpx_difference *d = list->first; d != NULL; d = d->next)
		json_difference(json, d);
	hpx_json_end_array(json);
	hpx_json_end_object(json);
}

static int print_json(const struct hpx_reconciliation *run)
{
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_number(&json, "rows", run->rows);
	hpx_json_put_number(&json, "matched", run->matched);
	hpx_json_put_number(&json, "ours", run->ours);
	hpx_json_put_number(&json, "open", count_open(run));
	for (size_t i = 0; i < HPX_GROUP_COUNT; i++)
		json_group(&json, groups[i].member, &run->groups[i]);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, run->command.verb, "it cannot be shown");
}

static int report(struct hpx_reconciliation *run)
{
	int code = HPX_EXIT_OK;

	if (run->command.json != NULL)
		code = print_json(run);
	else
		print_text(run);
	return code == HPX_EXIT_OK && count_open(run) > 0 ? HPX_EXIT_FAILED : code;
}

/* ---- arguments ---- */

static int complain(const struct hpx_reconciliation *run, const char *problem)
{
	return hpx_operator_complain(&run->command, HPX_EXIT_USAGE, "%s", problem);
}

static int read_format(struct hpx_reconciliation *run)
{
	const char *format = run->format;
	const char *separator = run->separator ? run->separator : ",";

	if (format == NULL)
		format = hpx_cli_ends_with(run->ledger, ".jsonl") ||
					 hpx_cli_ends_with(run->ledger, ".ndjson") ?
				 "jsonl" :
				 "csv";
	if (strcmp(format, "csv") != 0 && strcmp(format, "jsonl") != 0)
		return complain(run, "--format is csv or jsonl");
	if (strcmp(separator, "tab") == 0)
		separator = "\t";
	if (strcmp(separator, ",") != 0 && strcmp(separator, ";") != 0 &&
	    strcmp(separator, "\t") != 0)
		return complain(run, "--separator is , or ; or tab");
	run->ledger_settings.format =
		strcmp(format, "csv") == 0 ? HPX_LEDGER_CSV : HPX_LEDGER_JSON_LINES;
	if (run->separator != NULL && run->ledger_settings.format == HPX_LEDGER_JSON_LINES)
		return complain(run, "JSON lines have no --separator");
	run->ledger_settings.separator = separator[0];
	return HPX_EXIT_OK;
}

/* What retries get of what was applied. */
static int read_answer(struct hpx_reconciliation *run)
{
	struct hpx_answer_rule *rule = &run->answer_rule;
	uint64_t status = 0;

	if (run->answer_status == NULL) {
		if (run->answer_body != NULL || run->answer_header != NULL)
			return complain(run, "--answer-body and --answer-header need --answer-status");
		return HPX_EXIT_OK;
	}
	if (!hpx_span_u64(hpx_span_of(run->answer_status), 299, &status) || status < 200)
		return complain(run, "--answer-status is the status of a success, as 200 or 201");
	if (run->ledger_settings.format != HPX_LEDGER_JSON_LINES || run->apply == NULL)
		return complain(run, "--answer-status needs --apply, and a ledger of JSON lines: a row "
				     "of CSV is no body of an answer");
	if (run->answer_body != NULL &&
	    (run->answer_body[0] != '/' || !hpx_json_pointer_valid(hpx_span_of(run->answer_body))))
		return complain(run, "--answer-body is a JSON pointer, as /data or /object/payment");
	rule->status = (unsigned)status;
	rule->body = hpx_span_of(run->answer_body != NULL ? run->answer_body : HPX_ANSWER_WHOLE);
	if (run->answer_header == NULL)
		return HPX_EXIT_OK;
	struct hpx_span line = hpx_span_of(run->answer_header);
	size_t colon = hpx_span_index(line, ':');
	if (!hpx_answer_header_valid(line) || colon == line.len ||
	    !hpx_field_name_is_kept(hpx_span_first(line, colon)))
		return complain(run, "--answer-header is \"Name: value\", with a header that a stored answer "
				     "may have");
	run->answer_lines[0] = line;
	rule->headers = run->answer_lines;
	rule->header_count = 1;
	return HPX_EXIT_OK;
}

static int read_columns(struct hpx_reconciliation *run)
{
	const char *name = run->operation   ? run->operation :
			   run->provider_id ? run->provider_id :
					      run->key;
	size_t count = 1;

	if ((run->operation != NULL) + (run->provider_id != NULL) + (run->key != NULL) != 1)
		return complain(run, "say which column names an operation or job: one of "
				     "--operation, --provider-id and --key");
	if ((run->amount != NULL) != (run->amount_pointer != NULL))
		return complain(run, "--amount and --amount-pointer go together: theirs and ours");
	if (run->amount_pointer != NULL && run->amount_pointer[0] != '/')
		return complain(run, "--amount-pointer is a JSON pointer, as /amount or /data/total");
	if ((run->status != NULL) !=
	    (run->applied != NULL || run->declined != NULL || run->not_applied != NULL))
		return complain(run, "--status needs to know what its values mean (--applied, "
				     "--declined, --not-applied), and these need --status");
	run->columns[0] = hpx_span_of(name);
	run->amount_column = run->status_column = -1;
	if (run->amount != NULL) {
		run->amount_column = (int)count;
		run->columns[count++] = hpx_span_of(run->amount);
	}
	if (run->status != NULL) {
		run->status_column = (int)count;
		run->columns[count++] = hpx_span_of(run->status);
	}
	run->ledger_settings.columns = run->columns;
	run->ledger_settings.column_count = count;
	run->ledger_settings.record_bytes_max = RECORD_BYTES_MAX;
	run->is_jobs = run->target != NULL || run->provider_id != NULL;
	if (run->is_jobs && run->route != NULL)
		return complain(run, "--route is about operations; jobs have a --target");
	return HPX_EXIT_OK;
}

static int read_times(struct hpx_reconciliation *run)
{
	uint64_t ms;

	run->from_ms = INT64_MIN;
	run->to_ms = INT64_MAX;
	if (run->from != NULL && run->since != NULL)
		return complain(run, "--since is instead of --from");
	if ((run->from != NULL && !hpx_clock_parse_rfc3339(hpx_span_of(run->from), &run->from_ms)) ||
	    (run->to != NULL && !hpx_clock_parse_rfc3339(hpx_span_of(run->to), &run->to_ms)))
		return complain(run, "--from and --to are times: 2026-11-15, or "
				     "2026-11-15T08:00:00Z, or with an offset");
	if (run->since != NULL) {
		if (!hpx_duration_parse(hpx_span_of(run->since), &ms) || ms > INT64_MAX / 2)
			return complain(run, "--since is a duration: 24h, 7d");
		run->from_ms = run->command.now_ms - (int64_t)ms;
	}
	if (run->settle_after != NULL) {
		if (!hpx_duration_parse(hpx_span_of(run->settle_after), &ms) || ms == 0 ||
		    ms > INT64_MAX / 2)
			return complain(run, "--settle-after is a duration: 2m, 1h");
		run->settle_after_ms = (int64_t)ms;
	}
	if (run->from_ms >= run->to_ms)
		return complain(run, "the time compared is empty: --to comes before --from");
	if (run->complete != NULL && run->to == NULL)
		return complain(run, "--complete needs --to: the time up to which the export has "
				     "everything");
	return HPX_EXIT_OK;
}

static int read_restore(struct hpx_reconciliation *run)
{
	uint64_t ms = 0;

	if (run->restore == NULL)
		return run->retention == NULL ? HPX_EXIT_OK : complain(run, "--retention needs --restore");
	if (run->operation == NULL || run->is_jobs)
		return complain(run, "--restore needs --operation: a key alone does not say whose it is");
	if (run->retention == NULL && run->command.config_path == NULL)
		return complain(run, "say how long a restored key is known: --config FILE, whose longest "
				     "retention counts, or --retention DURATION");
	if (run->retention != NULL &&
	    (!hpx_duration_parse(hpx_span_of(run->retention), &ms) || ms == 0 || ms > HPX_EXPIRES_MAX_MS / 2))
		return complain(run, "--retention is a duration: 24h, 7d");
	run->retention_ms = (int64_t)ms;
	return HPX_EXIT_OK;
}

static int read_all(struct hpx_reconciliation *run)
{
	const char *reason = run->command.reason;
	int code = HPX_EXIT_OK;

	if (run->ledger == NULL)
		return complain(run, "say which export: --ledger FILE");
	if ((run->apply != NULL || run->restore != NULL) && (reason == NULL || *reason == '\0'))
		return complain(run, "say why: --reason TEXT (it is kept in the history)");
	if (code == HPX_EXIT_OK)
		code = read_format(run);
	if (code == HPX_EXIT_OK)
		code = read_columns(run);
	if (code == HPX_EXIT_OK)
		code = read_answer(run);
	if (code == HPX_EXIT_OK)
		code = read_restore(run);
	return code == HPX_EXIT_OK ? read_times(run) : code;
}

/* ---- the command ---- */

static void keep_longer(struct hpx_reconciliation *run, const struct hpx_policy *policy, bool retention)
{
	int64_t longest_ms = policy->retention_max_ms > policy->retention_ms ? policy->retention_max_ms :
									       policy->retention_ms;

	if (retention && longest_ms > run->retention_ms)
		run->retention_ms = longest_ms;
	if (policy->tombstone_ms > run->tombstone_ms)
		run->tombstone_ms = policy->tombstone_ms;
}

/* A row of the ledger says neither of which route its operation was nor for how long its
 * service wanted the answer kept: the longest time of all of them counts. */
static void find_retention(struct hpx_reconciliation *run)
{
	const struct hpx_settings *settings = run->command.settings;
	bool retention = run->retention_ms == 0;

	if (run->restore == NULL || settings == NULL)
		return;
	keep_longer(run, &settings->fallback.policy, retention);
	for (size_t i = 0; i < settings->route_count; i++)
		keep_longer(run, &settings->routes[i].policy, retention);
	HPX_ASSERT(run->retention_ms > 0);
}

static int reconcile(struct hpx_reconciliation *run)
{
	int code = HPX_EXIT_OK;

	HPX_ASSERT(run->from_ms < run->to_ms && run->ledger_settings.column_count > 0);
	if (run->key != NULL && run->is_jobs) {
		enum hpx_status status = hpx_ledger_match_index_keys(run);
		if (status == HPX_TOO_LARGE)
			return hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
						     "the target has more than %zu jobs; compare by "
						     "--operation or --provider-id",
						     HPX_DIGEST_SET_MAX);
		if (status != HPX_OK)
			return hpx_operator_complain_read(&run->command, status);
	}
	code = hpx_reconciliation_rows(run);
	if (code == HPX_EXIT_OK)
		code = hpx_reconciliation_ours(run);
	return code == HPX_EXIT_OK ? report(run) : code;
}

/* Its own flags, and those that it shares with other operator commands. */
static size_t list_flags(struct hpx_reconciliation *run, struct hpx_cli_flag *flags)
{
	const struct hpx_cli_flag own[] = {
#define X(member, flag, value, text) { flag, value, text, &run->member },
		HPX_RECONCILE_FLAG_LIST(X)
#undef X
			{ "reason", "TEXT", "Why you do this. It is kept in the history, with your name.",
			  &run->command.reason },
		{ "json", NULL, "Prints JSON instead of text.", &run->command.json },
		{ "store", "URL", HPX_OPERATOR_STORE_TEXT, &run->command.store_url },
		{ "config", "FILE",
		  "Uses the store and the settle_after of this configuration.",
		  &run->command.config_path },
	};

	HPX_ASSERT(sizeof(own) <= HPX_CLI_FLAGS_MAX * sizeof(*flags));
	memcpy(flags, own, sizeof(own));
	return sizeof(own) / sizeof(own[0]);
}

/* A misspelled name would find nothing of ours. It is only a warning, because jobs and
 * operations may be older than the configuration. */
static void warn_of_names(const struct hpx_reconciliation *run)
{
	const struct hpx_settings *settings = run->command.settings;
	bool target = run->target == NULL, route = run->route == NULL;

	if (settings == NULL)
		return;
	target = target || hpx_settings_find_target(settings, hpx_span_of(run->target)) != NULL;
	for (size_t i = 0; !route && i < settings->route_count; i++)
		route = hpx_span_eq(settings->routes[i].pattern, hpx_span_of(run->route));
	if (!target)
		fprintf(stderr, "Warning: the configuration has no target \"%s\".\n", run->target);
	if (!route)
		fprintf(stderr, "Warning: the configuration has no route \"%s\".\n", run->route);
}

int hpx_cli_reconcile(int argc, char **argv)
{
	struct hpx_reconciliation run = { .command = { .verb = "reconcile",
						       .now_ms = hpx_clock_wall_ms() } };
	struct hpx_cli_flag flags[HPX_CLI_FLAGS_MAX];
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax reconcile --ledger FILE --operation COLUMN [FLAGS]",
		.about =
			"Compares a provider's export (its ledger) with the store. Reports what only the\n"
			"provider has, what only we have, what the provider has twice, amounts that\n"
			"differ, and outcomes that are unknown here. A row names its operation by\n"
			"--operation, --provider-id or --key. Changes nothing without --apply or\n"
			"--restore. The exit code is 1 if anything is open.",
		.flags = flags,
		.flag_count = list_flags(&run, flags),
	};
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	code = read_all(&run);
	if (code != HPX_EXIT_OK)
		return code;
	hpx_arena_init(&run.scratch, SCRATCH_MAX);
	hpx_operator_begin(&run.command);
	code = hpx_operator_open(&run.command);
	if (code == HPX_EXIT_OK) {
		warn_of_names(&run);
		find_retention(&run);
		code = reconcile(&run);
	}
	hpx_digest_set_done(&run.names);
	hpx_digest_set_done(&run.keys);
	hpx_arena_done(&run.scratch);
	return hpx_operator_close(&run.command, code);
}
