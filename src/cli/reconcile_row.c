/* The ledger, row by row: each says something of one of ours. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/reconcile.h"
#include "core/amount.h"

#define READ_BYTES 65536
/* A name as a provider has it; longer ones are none of ours. */
#define NAME_MAX_BYTES 1024
#define PROGRESS_ROWS 100000

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

struct row {
	const struct hpx_ledger_record *record;
	struct hpx_difference place;
	enum hpx_ruling ruling;
};

/* Two amounts that both can be read, and differ. `*ret_differ` is true also
 * where one is missing: then it was noted as unclear. */
static int compare_amounts(struct hpx_reconciliation *run, const struct row *row,
			   const struct hpx_subject *subject, bool *ret_differ)
{
	struct hpx_span ours = { NULL, 0 };
	struct hpx_span theirs = row->record->values[run->amount_column];
	enum hpx_status status = hpx_subject_amount(run, subject, &ours);

	*ret_differ = false;
	if (status != HPX_OK && status != HPX_NOT_FOUND)
		return hpx_operator_complain_read(&run->command, status);
	if (status == HPX_OK && theirs.ptr != NULL && hpx_amount_eq(ours, theirs))
		return HPX_EXIT_OK;
	*ret_differ = true;
	if (status == HPX_NOT_FOUND)
		return hpx_reconcile_note(run, HPX_GROUP_UNCLEAR, &row->place, subject,
					  "no amount of ours at %s", run->amount_pointer);
	if (theirs.ptr == NULL)
		return hpx_reconcile_note(run, HPX_GROUP_UNCLEAR, &row->place, subject,
					  "no amount of theirs");
	return hpx_reconcile_note(run, HPX_GROUP_AMOUNT, &row->place, subject,
				  "theirs %.*s, ours %.*s", HPX_SPAN_ARG(theirs),
				  HPX_SPAN_ARG(ours));
}

static bool is_dead_job(const struct hpx_subject *subject)
{
	return subject->job != NULL && subject->job->readable &&
	       subject->job->delivery.state == HPX_JOB_DEAD;
}

/* Completed, or done, with an answer that says no. */
static bool is_refused(const struct hpx_subject *subject)
{
	return subject->has_entry && subject->entry.readable &&
	       subject->entry.record.state == HPX_STATE_COMPLETED;
}

static int judge_applied(struct hpx_reconciliation *run, const struct row *row,
			 const struct hpx_subject *subject)
{
	bool differ = false;
	int code = HPX_EXIT_OK;

	if (subject->standing == HPX_STANDS_NOT && !is_dead_job(subject))
		return hpx_reconcile_note(run, HPX_GROUP_THEY_ONLY, &row->place, subject,
					  "here it did not happen: %s%s", subject->state,
					  is_refused(subject) ? " without success" : "");
	if (subject->standing == HPX_STANDS_UNDER_WAY)
		return HPX_EXIT_OK;
	if (run->amount_column >= 0)
		code = compare_amounts(run, row, subject, &differ);
	if (code != HPX_EXIT_OK || differ || subject->standing == HPX_STANDS_HAPPENED)
		return code;
	return hpx_reconcile_settle(run, subject, HPX_RULING_APPLIED, row->place.line,
				    row->place.name);
}

static int judge_unclear(struct hpx_reconciliation *run, const struct row *row,
			 const struct hpx_subject *subject)
{
	struct hpx_span value = row->record->values[run->status_column];
	bool unknown = subject != NULL && subject->standing == HPX_STANDS_UNKNOWN;

	return hpx_reconcile_note(
		run, unknown ? HPX_GROUP_UNKNOWN : HPX_GROUP_UNCLEAR, &row->place, subject,
		value.ptr != NULL ? "their status \"%.*s\" is in none of the lists, or in two" :
				    "they give no status%.*s",
		HPX_SPAN_ARG(hpx_span_first(value, 64)));
}

static int judge(struct hpx_reconciliation *run, const struct row *row,
		 const struct hpx_subject *subject)
{
	switch (row->ruling) {
	case HPX_RULING_APPLIED:
		return judge_applied(run, row, subject);
	case HPX_RULING_DECLINED:
	case HPX_RULING_NOT_APPLIED:
		if (subject->standing == HPX_STANDS_HAPPENED)
			return hpx_reconcile_note(run, HPX_GROUP_WE_ONLY, &row->place, subject,
						  "they say %s", hpx_ruling_name(row->ruling));
		if (subject->standing == HPX_STANDS_UNKNOWN)
			return hpx_reconcile_settle(run, subject, row->ruling, row->place.line,
						    row->place.name);
		return HPX_EXIT_OK;
	default:
		return judge_unclear(run, row, subject);
	}
}

/* None of ours, or not just one. */
static int judge_stranger(struct hpx_reconciliation *run, const struct row *row,
			  enum hpx_status status)
{
	if (status == HPX_CONFLICT)
		return hpx_reconcile_note(run, HPX_GROUP_UNCLEAR, &row->place, NULL,
					  "it is the name of several here");
	if (status != HPX_NOT_FOUND && status != HPX_INVALID)
		return hpx_operator_complain_read(&run->command, status);
	if (row->ruling == HPX_RULING_UNCLEAR)
		return judge_unclear(run, row, NULL);
	if (row->ruling != HPX_RULING_APPLIED)
		return HPX_EXIT_OK;
	return hpx_reconcile_note(run, HPX_GROUP_THEY_ONLY, &row->place, NULL,
				  status == HPX_INVALID ? "it is no operation's reference" :
							  "there is none here");
}

static int add_name(struct hpx_reconciliation *run, const struct row *row)
{
	bool before = false;
	bool applied = row->ruling == HPX_RULING_APPLIED;
	enum hpx_status status = hpx_seen_add(&run->seen, row->place.name, applied, &before);

	if (status == HPX_TOO_LARGE)
		return hpx_operator_complain(
			&run->command, HPX_EXIT_FAILED,
			"the ledger has more than %zu names, which is more than fits; "
			"compare it in shorter periods",
			HPX_SEEN_MAX);
	if (status != HPX_OK)
		return hpx_operator_complain(&run->command, HPX_EXIT_FAILED, "%s",
					     hpx_status_text(status));
	if (before && applied)
		return hpx_reconcile_note(run, HPX_GROUP_TWICE, &row->place, NULL,
					  "it stands in an earlier line, too");
	return HPX_EXIT_OK;
}

static int take_row(struct hpx_reconciliation *run, const struct hpx_ledger_record *record)
{
	struct row row = { .record = record, .ruling = ruling_of(run, record) };
	struct hpx_subject subject = { .job = NULL };

	row.place.line = record->line;
	row.place.name = hpx_span_trim(record->values[0]);
	if (row.place.name.len == 0 || row.place.name.len > NAME_MAX_BYTES)
		return hpx_reconcile_note(run, HPX_GROUP_UNCLEAR, &row.place, NULL,
					  row.place.name.len == 0 ? "the row names nothing" :
								    "its name is too long");
	int code = add_name(run, &row);
	if (code != HPX_EXIT_OK)
		return code;
	enum hpx_status status = hpx_subject_find(run, row.place.name, &subject);
	if (status != HPX_OK)
		return judge_stranger(run, &row, status);
	run->matched++;
	code = judge(run, &row, &subject);
	hpx_subject_done(&subject);
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

/* All records that the bytes hold. True: go on with more bytes. */
static bool take_bytes(struct hpx_reconciliation *run, struct hpx_ledger *ledger,
		       struct hpx_span bytes, bool last, int *ret_code)
{
	struct hpx_ledger_record record;

	for (;;) {
		switch (hpx_ledger_next(ledger, &bytes, last, &record)) {
		case HPX_LEDGER_RECORD:
			run->rows++;
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

int hpx_reconcile_rows(struct hpx_reconciliation *run)
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
				   "a column that begins with / is a JSON pointer, and one "
				   "of these is none");
	if (status == HPX_OK)
		hpx_ledger_done(&ledger);
	show_progress(run, true);
	if (!standard)
		close(fd);
	return code;
}
