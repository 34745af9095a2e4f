/* The comparison, both ways: each row of the ledger against ours, then ours, page by
 * page, against the names that the ledger has. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/operations.h"
#include "cli/reconcile.h"
#include "core/number.h"

#define READ_BYTES 65536
/* The longest name in a ledger. Ours are shorter. */
#define NAME_MAX_BYTES 1024
#define PROGRESS_ROWS 100000
/* Operations or jobs that are read at once. */
#define PAGE 1000
/* The longest name of ours. A key is far shorter. */
#define OUR_NAME_MAX_BYTES 4096

/* ---- the rows of the ledger ---- */

static bool is_among(struct hpx_span value, const char *list)
{
	struct hpx_span rest = hpx_span_of(list), item;

	while (list != NULL && hpx_span_split(&rest, ',', &item))
		if (hpx_span_eq(value, hpx_span_trim(item)))
			return true;
	return false;
}

/* A value in two lists is unclear: a guess could repeat a payment. */
static enum hpx_ruling ruling_of(const struct hpx_reconciliation *run,
				 const struct hpx_ledger_record *record)
{
	if (run->status_column < 0)
		return HPX_RULING_APPLIED;
	struct hpx_span value = record->values[run->status_column];
	if (value.ptr == NULL)
		return HPX_RULING_UNCLEAR;
	bool applied = is_among(value, run->applied);
	bool declined = is_among(value, run->declined);
	bool not_applied = is_among(value, run->not_applied);
	if (applied + declined + not_applied != 1)
		return HPX_RULING_UNCLEAR;
	return applied ? HPX_RULING_APPLIED : declined ? HPX_RULING_DECLINED :
							 HPX_RULING_NOT_APPLIED;
}

/* A row of the ledger. */
struct ledger_row {
	const struct hpx_ledger_record *record;
	struct hpx_difference place;
	enum hpx_ruling ruling;
};

/* Notes amounts that differ. `*ret_differ` is true also where one is missing, which is
 * noted as unclear. */
static int compare_amounts(struct hpx_reconciliation *run, const struct ledger_row *row,
			   const struct hpx_ledger_match *match, bool *ret_differ)
{
	struct hpx_span ours = { NULL, 0 };
	struct hpx_span theirs = row->record->values[run->amount_column];
	enum hpx_status status = hpx_ledger_match_amount(run, match, &ours);

	*ret_differ = false;
	if (status != HPX_OK && status != HPX_NOT_FOUND)
		return hpx_operator_complain_read(&run->command, status);
	if (status == HPX_OK && theirs.ptr != NULL && hpx_amount_eq(ours, theirs))
		return HPX_EXIT_OK;
	*ret_differ = true;
	if (status == HPX_NOT_FOUND)
		return hpx_reconciliation_note(run, HPX_GROUP_UNCLEAR, &row->place, match,
					       "no amount of ours at %s", run->amount_pointer);
	if (theirs.ptr == NULL)
		return hpx_reconciliation_note(run, HPX_GROUP_UNCLEAR, &row->place, match,
					       "no amount of theirs");
	return hpx_reconciliation_note(run, HPX_GROUP_AMOUNT, &row->place, match,
				       "theirs %.*s, ours %.*s", HPX_SPAN_ARG(theirs),
				       HPX_SPAN_ARG(ours));
}

static bool is_dead_job(const struct hpx_ledger_match *match)
{
	return match->job != NULL && match->job->readable &&
	       match->job->delivery.state == HPX_JOB_DEAD;
}

/* Completed, with an answer that is no success. */
static bool is_refused(const struct hpx_ledger_match *match)
{
	return match->has_entry && match->entry.readable &&
	       match->entry.record.state == HPX_STATE_COMPLETED;
}

/* Of a copy, "under way" is what was under way when the copy was made. A job that was
 * delivered since is still queued in it, and would be sent again. */
static int note_under_way(struct hpx_reconciliation *run, const struct ledger_row *row,
			  const struct hpx_ledger_match *match)
{
	const struct hpx_record *record = &match->entry.record;
	char reference[HPX_REFERENCE_SIZE];

	if (match->has_entry && record->state == HPX_STATE_PENDING) {
		hpx_reference_print(&record->id, &record->mark, reference);
		return hpx_reconciliation_note(run, HPX_GROUP_THEY_ONLY, &row->place, match,
					       "its job is queued here, and would be sent again: `hapax jobs discard` it; "
					       "`hapax jobs ls --operation %s%s` has its number",
					       reference, hpx_operator_where(&run->command));
	}
	bool resumes = match->has_entry && record->when_lost != HPX_WHEN_LOST_UNKNOWN;
	return hpx_reconciliation_note(run, HPX_GROUP_THEY_ONLY, &row->place, match, "in progress in the backup: %s",
				       resumes ? "a retry goes on with it once hapax has started" :
						 "it becomes unknown when hapax starts; --apply settles it then");
}

static int judge_applied(struct hpx_reconciliation *run, const struct ledger_row *row,
			 const struct hpx_ledger_match *match)
{
	bool differ = false;
	int code = HPX_EXIT_OK;

	if (hpx_reconciliation_can_complete(run, match))
		return hpx_reconciliation_complete(run, match, row->place, row->ruling);
	if (match->standing == HPX_STANDS_NOT && !is_dead_job(match))
		return hpx_reconciliation_note(run, HPX_GROUP_THEY_ONLY, &row->place, match,
					       "here it did not happen: %s%s", match->state,
					       is_refused(match) ? " without success" : "");
	if (match->standing == HPX_STANDS_UNDER_WAY)
		return run->restore != NULL ? note_under_way(run, row, match) : HPX_EXIT_OK;
	if (run->amount_column >= 0)
		code = compare_amounts(run, row, match, &differ);
	if (code != HPX_EXIT_OK || differ || match->standing == HPX_STANDS_HAPPENED)
		return code;
	return hpx_reconciliation_settle(run, match, HPX_RULING_APPLIED, row->place.line,
					 row->place.name);
}

static int judge_unclear(struct hpx_reconciliation *run, const struct ledger_row *row,
			 const struct hpx_ledger_match *match)
{
	struct hpx_span value = row->record->values[run->status_column];
	bool unknown = match != NULL && match->standing == HPX_STANDS_UNKNOWN;

	return hpx_reconciliation_note(
		run, unknown ? HPX_GROUP_UNKNOWN : HPX_GROUP_UNCLEAR, &row->place, match,
		value.ptr != NULL ? "their status \"%.*s\" is in none of the lists, or in two" :
				    "they give no status%.*s",
		HPX_SPAN_ARG(hpx_span_first(value, 64)));
}

static int judge(struct hpx_reconciliation *run, const struct ledger_row *row,
		 const struct hpx_ledger_match *match)
{
	switch (row->ruling) {
	case HPX_RULING_APPLIED:
		return judge_applied(run, row, match);
	case HPX_RULING_DECLINED:
	case HPX_RULING_NOT_APPLIED:
		if (match->standing == HPX_STANDS_HAPPENED)
			return hpx_reconciliation_note(run, HPX_GROUP_WE_ONLY, &row->place, match,
						       "they say %s", hpx_ruling_name(row->ruling));
		if (match->standing == HPX_STANDS_UNKNOWN)
			return hpx_reconciliation_settle(run, match, row->ruling, row->place.line,
							 row->place.name);
		if (row->ruling == HPX_RULING_DECLINED && hpx_reconciliation_can_complete(run, match))
			return hpx_reconciliation_complete(run, match, row->place, row->ruling);
		return HPX_EXIT_OK;
	default:
		return judge_unclear(run, row, match);
	}
}

/* A row that names none of ours, or several. */
static int judge_unmatched(struct hpx_reconciliation *run, const struct ledger_row *row,
			   enum hpx_status status)
{
	if (status == HPX_CONFLICT)
		return hpx_reconciliation_note(run, HPX_GROUP_UNCLEAR, &row->place, NULL,
					       "several operations or jobs here have this name");
	if (status != HPX_NOT_FOUND && status != HPX_INVALID)
		return hpx_operator_complain_read(&run->command, status);
	if (row->ruling == HPX_RULING_UNCLEAR)
		return judge_unclear(run, row, NULL);
	if (row->ruling == HPX_RULING_NOT_APPLIED)
		return HPX_EXIT_OK;
	if (run->restore != NULL && status == HPX_NOT_FOUND)
		return hpx_reconciliation_restore(run, row->place, row->ruling);
	if (row->ruling == HPX_RULING_DECLINED)
		return HPX_EXIT_OK;
	return hpx_reconciliation_note(run, HPX_GROUP_THEY_ONLY, &row->place, NULL,
				       status == HPX_INVALID ? "it is not an operation's "
							       "reference" :
							       "the store has no such "
							       "operation or job");
}

/* Adds the row's name to the set, and notes an applied one that was there before. */
static int add_name(struct hpx_reconciliation *run, const struct ledger_row *row)
{
	bool before = false;
	bool applied = row->ruling == HPX_RULING_APPLIED;
	enum hpx_status status = hpx_digest_set_add(&run->names, row->place.name, applied, &before);

	/* Ours may have the key as its hash. */
	if (status == HPX_OK && run->key != NULL && !run->is_jobs) {
		char hash[HPX_KEY_HASH_SIZE];
		bool ignored;

		status = hpx_key_hash_print(row->place.name, hash);
		if (status == HPX_OK)
			status = hpx_digest_set_add(&run->names, hpx_span_of(hash), applied, &ignored);
	}
	if (status == HPX_TOO_LARGE)
		return hpx_operator_complain(
			&run->command, HPX_EXIT_FAILED,
			"the ledger has more than %zu names, which is more than fits; "
			"compare it in shorter periods",
			HPX_DIGEST_SET_MAX);
	if (status != HPX_OK)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(status));
	if (before && applied)
		return hpx_reconciliation_note(run, HPX_GROUP_TWICE, &row->place, NULL,
					       "an earlier line has it too");
	return HPX_EXIT_OK;
}

static int take_row(struct hpx_reconciliation *run, const struct hpx_ledger_record *record)
{
	struct ledger_row row = { .record = record, .ruling = ruling_of(run, record) };
	struct hpx_ledger_match match = { .job = NULL };

	row.place.line = record->line;
	row.place.name = hpx_span_trim(record->values[0]);
	if (row.place.name.len == 0 || row.place.name.len > NAME_MAX_BYTES)
		return hpx_reconciliation_note(run, HPX_GROUP_UNCLEAR, &row.place, NULL,
					       row.place.name.len == 0 ? "the row names no "
									 "operation or job" :
									 "its name is too long");
	int code = add_name(run, &row);
	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status = hpx_ledger_match_find(run, row.place.name, &match);
	if (status != HPX_OK)
		return judge_unmatched(run, &row, status);
	run->matched++;
	code = judge(run, &row, &match);
	hpx_ledger_match_done(&match);
	return code;
}

static void show_progress(const struct hpx_reconciliation *run, bool last)
{
	if (!isatty(STDERR_FILENO) || run->rows < PROGRESS_ROWS)
		return;
	if (last)
		fprintf(stderr, "\r%40s\r", "");
	else if (run->rows % PROGRESS_ROWS == 0)
		fprintf(stderr, "\r%llu rows of the ledger", (unsigned long long)run->rows);
}

/* Takes all whole records of the bytes. True: more bytes are needed. */
static bool take_bytes(struct hpx_reconciliation *run, struct hpx_ledger *ledger,
		       struct hpx_span bytes, bool last, int *ret_code)
{
	struct hpx_ledger_record record;

	for (;;) {
		switch (hpx_ledger_next(ledger, &bytes, last, &record)) {
		case HPX_LEDGER_RECORD:
			run->rows++;
			run->row_text = record.text;
			show_progress(run, false);
			*ret_code = take_row(run, &record);
			hpx_arena_done(&run->scratch);
			if (*ret_code != HPX_EXIT_OK)
				return false;
			continue;
		case HPX_LEDGER_MORE:
			return true;
		case HPX_LEDGER_END:
			*ret_code = HPX_EXIT_OK;
			return false;
		case HPX_LEDGER_FAILED:
			*ret_code = hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s, %s",
							  run->ledger, hpx_ledger_error(ledger));
			return false;
		}
	}
}

static int take_file(struct hpx_reconciliation *run, struct hpx_ledger *ledger, int fd)
{
	char bytes[READ_BYTES];
	int code = HPX_EXIT_OK;

	for (;;) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
						     "%s cannot be read: %s", run->ledger,
						     strerror(errno));
		if (!take_bytes(run, ledger, hpx_span(bytes, (size_t)n), n == 0, &code))
			return code;
	}
}

int hpx_reconciliation_rows(struct hpx_reconciliation *run)
{
	bool standard = strcmp(run->ledger, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(run->ledger, O_RDONLY | O_CLOEXEC);
	struct hpx_ledger ledger;

	if (fd < 0)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED,
					     "%s cannot be opened: %s", run->ledger,
					     strerror(errno));
	enum hpx_status status = hpx_ledger_init(&ledger, &run->ledger_settings);
	int code = status == HPX_OK ?
			   take_file(run, &ledger, fd) :
			   hpx_operator_complain(
				   &run->command, HPX_EXIT_USAGE,
				   "a column that begins with / must be a JSON pointer, and "
				   "one of these is not");
	if (status == HPX_OK)
		hpx_ledger_done(&ledger);
	show_progress(run, true);
	if (!standard)
		close(fd);
	return code;
}

/* ---- ours that the ledger lacks ---- */

static bool is_in_time(const struct hpx_reconciliation *run, int64_t created_ms)
{
	return created_ms >= run->from_ms && created_ms < run->to_ms;
}

static int compare(struct hpx_reconciliation *run, const struct hpx_ledger_match *match)
{
	struct hpx_difference place = { .line = 0 };
	struct hpx_buffer name;
	bool has = false;

	HPX_ASSERT(match->standing == HPX_STANDS_HAPPENED || match->standing == HPX_STANDS_UNKNOWN);
	hpx_buffer_init(&name, OUR_NAME_MAX_BYTES);
	enum hpx_status status = hpx_ledger_match_name(run, match, &name);
	if (status == HPX_OK && name.len > 0)
		status = hpx_digest_set_has(&run->names, hpx_buffer_span(&name), &has);
	bool nameless = name.len == 0;
	hpx_buffer_done(&name);
	if (status != HPX_OK)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(status));
	if (match->standing == HPX_STANDS_HAPPENED)
		run->ours++;
	if (has)
		return HPX_EXIT_OK;
	if (match->standing == HPX_STANDS_HAPPENED)
		return hpx_reconciliation_note(run, HPX_GROUP_WE_ONLY, &place, match, "%s%s",
					       match->state,
					       nameless ? "; the target gave no id to look for" : "");
	if (run->complete == NULL || nameless)
		return hpx_reconciliation_note(run, HPX_GROUP_UNKNOWN, &place, match,
					       nameless ? "we have no name to look for" :
							  "it is not in the ledger");
	return hpx_reconciliation_settle(run, match, HPX_RULING_NOT_APPLIED, 0, place.name);
}

static int compare_entry(struct hpx_reconciliation *run, const struct hpx_entry *entry)
{
	struct hpx_ledger_match match;

	if (!is_in_time(run, entry->record.created_ms) ||
	    (run->route != NULL &&
	     !hpx_span_eq(entry->description.route, hpx_span_of(run->route))))
		return HPX_EXIT_OK;
	hpx_ledger_match_operation(entry, &match);
	if (match.standing != HPX_STANDS_HAPPENED && match.standing != HPX_STANDS_UNKNOWN)
		return HPX_EXIT_OK;
	return compare(run, &match);
}

/* Compares one page of a walk over all of them. */
static int compare_page(struct hpx_reconciliation *run, const struct hpx_query *query)
{
	struct hpx_entry *entries = NULL;
	struct hpx_looked looked;
	size_t count = 0;
	enum hpx_status status = hpx_store_list(run->command.reader, query, &run->scratch, &entries,
						&count, &looked);
	int code = HPX_EXIT_OK;

	if (status != HPX_OK)
		return hpx_operator_complain_read(&run->command, status);
	for (size_t i = 0; i < count && code == HPX_EXIT_OK; i++)
		code = compare_entry(run, &entries[i]);
	return code;
}

static int compare_operations(struct hpx_reconciliation *run, enum hpx_state state)
{
	struct hpx_walk walk = { .ended = false };
	struct hpx_query query = { .state = state, .limit = PAGE, .walk = &walk };
	int code = HPX_EXIT_OK;

	while (!walk.ended && code == HPX_EXIT_OK) {
		code = compare_page(run, &query);
		hpx_arena_done(&run->scratch);
	}
	return code;
}

/* Takes the job over. */
static int compare_job(struct hpx_reconciliation *run, struct hpx_job_entry *job)
{
	struct hpx_ledger_match match;

	job->next = NULL;
	if (!is_in_time(run, job->delivery.created_ms)) {
		hpx_job_entry_free(job);
		return HPX_EXIT_OK;
	}
	enum hpx_status status = hpx_ledger_match_job(run, job, &match);
	if (status != HPX_OK) {
		hpx_job_entry_free(job);
		return hpx_operator_complain_read(&run->command, status);
	}
	int code = HPX_EXIT_OK;
	if (match.standing == HPX_STANDS_HAPPENED || match.standing == HPX_STANDS_UNKNOWN)
		code = compare(run, &match);
	hpx_ledger_match_done(&match);
	hpx_arena_done(&run->scratch);
	return code;
}

static int compare_jobs(struct hpx_reconciliation *run, enum hpx_job_state state)
{
	struct hpx_job_query query = { .state = state,
				       .target = hpx_span_of(run->target),
				       .limit = PAGE };
	int code = HPX_EXIT_OK;

	for (;;) {
		struct hpx_job_entry *jobs = NULL;
		enum hpx_status status = hpx_store_jobs(run->command.reader, &query, &jobs);

		if (status != HPX_OK)
			return hpx_operator_complain_read(&run->command, status);
		if (jobs == NULL)
			return HPX_EXIT_OK;
		while (jobs != NULL && code == HPX_EXIT_OK) {
			struct hpx_job_entry *job = jobs;

			jobs = job->next;
			query.before = job->delivery.number;
			code = compare_job(run, job);
		}
		hpx_job_entry_free(jobs);
		if (code != HPX_EXIT_OK)
			return code;
	}
}

int hpx_reconciliation_ours(struct hpx_reconciliation *run)
{
	int code = run->is_jobs ? compare_jobs(run, HPX_JOB_DONE) :
				  compare_operations(run, HPX_STATE_COMPLETED);

	if (code != HPX_EXIT_OK)
		return code;
	return run->is_jobs ? compare_jobs(run, HPX_JOB_UNKNOWN) :
			      compare_operations(run, HPX_STATE_UNKNOWN);
}
