/* `hapax reconcile`: compares a provider's export with the store, both ways,
 * and with --apply settles what is unknown by it. Made to run from cron: exit
 * code 1 says that something is open. */
#include "cli/reconcile.h"

#include "base/clock.h"
#include "cli/when.h"
#include "config/unit.h"

#define RECORD_BYTES_MAX ((size_t)1 << 20)
#define SCRATCH_MAX ((size_t)512 * 1024 * 1024)

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
	if ((run->from != NULL && !hpx_when_parse(hpx_span_of(run->from), &run->from_ms)) ||
	    (run->to != NULL && !hpx_when_parse(hpx_span_of(run->to), &run->to_ms)))
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

static int read_all(struct hpx_reconciliation *run)
{
	const char *reason = run->command.reason;
	int code = HPX_EXIT_OK;

	if (run->ledger == NULL)
		return complain(run, "say which export: --ledger FILE");
	if (run->apply != NULL && (reason == NULL || *reason == '\0'))
		return complain(run, "say why: --reason TEXT (it is kept in the history)");
	if (code == HPX_EXIT_OK)
		code = read_format(run);
	if (code == HPX_EXIT_OK)
		code = read_columns(run);
	return code == HPX_EXIT_OK ? read_times(run) : code;
}

static int reconcile(struct hpx_reconciliation *run)
{
	int code = HPX_EXIT_OK;

	if (run->key != NULL && run->is_jobs) {
		enum hpx_status status = hpx_subject_index_keys(run);
		if (status == HPX_TOO_LARGE)
			return hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
						     "the target has more than %zu jobs; compare by "
						     "--operation or --provider-id",
						     HPX_SEEN_MAX);
		if (status != HPX_OK)
			return hpx_operator_complain_read(&run->command, status);
	}
	code = hpx_reconcile_rows(run);
	if (code == HPX_EXIT_OK)
		code = hpx_reconcile_ours(run);
	return code == HPX_EXIT_OK ? hpx_reconcile_report(run) : code;
}

/* The flags of every command that this one has, too, and its own. */
static size_t list_flags(struct hpx_reconciliation *run, struct hpx_cli_flag *flags)
{
	const struct hpx_cli_flag own[] = {
#define X(member, flag, value, text) { flag, value, text, &run->member },
		HPX_RECONCILE_FLAG_LIST(X)
#undef X
			{ "reason", "TEXT", "Why; it is kept in the history, with your name.",
			  &run->command.reason },
		{ "json", NULL, "JSON instead of text.", &run->command.json },
		{ "store", "URL", "The store; default sqlite:hapax.db.", &run->command.store_url },
		{ "config", "FILE",
		  "The store that this configuration names, and its settle_after.",
		  &run->command.config_path },
	};

	memcpy(flags, own, sizeof(own));
	return sizeof(own) / sizeof(own[0]);
}

/* Misspelled, it would find nothing of ours; but jobs and operations may be
 * older than the configuration, so it is no mistake. */
static void warn_of_names(const struct hpx_reconciliation *run)
{
	const struct hpx_settings *settings = run->command.settings;
	bool target = run->target == NULL, route = run->route == NULL;

	if (settings == NULL)
		return;
	for (size_t i = 0; !target && i < settings->target_count; i++)
		target = hpx_span_eq(settings->targets[i].name, hpx_span_of(run->target));
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
			"Compares a provider's export with the store, both ways: what they have and we\n"
			"do not, what we say happened and they do not know, what they have twice, amounts\n"
			"that differ, and what is unknown here. Operations are found by --operation,\n"
			"--provider-id or --key. Changes nothing without --apply. Exit code 1 if\n"
			"anything is open.",
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
	code = hpx_operator_open(&run.command);
	if (code == HPX_EXIT_OK) {
		warn_of_names(&run);
		code = reconcile(&run);
	}
	hpx_seen_done(&run.seen);
	hpx_seen_done(&run.keys);
	hpx_arena_done(&run.scratch);
	return hpx_operator_close(&run.command, code);
}
