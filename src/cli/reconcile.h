/* Shared by the files of `hapax reconcile`. "Theirs" is a row of the provider's ledger,
 * "ours" an operation or a job of this store. The ledger is read once, row by row, and
 * each row is matched with one of ours (reconcile_match.c). Then ours are read, page by
 * page, for those that the ledger lacks (both in reconcile_compare.c). What it says is
 * written only with --apply or --restore (reconcile_settle.c). Differences are kept and
 * printed at the end (reconcile_command.c). Memory is bounded: a row, a page, the set of
 * names in the ledger, and a thousand differences of each group. */
#ifndef HPX_CLI_RECONCILE_H
#define HPX_CLI_RECONCILE_H

#include "cli/digest_set.h"
#include "cli/operator_command.h"
#include "core/ledger.h"
#include "core/reconcile.h"
#include "core/reconstruct.h"

/* X(name, member of the JSON, heading) */
#define HPX_GROUP_LIST(X) \
	X(THEY_ONLY, "they_only", "They have it, and we do not") \
	X(WE_ONLY, "we_only", "We say it happened, and they do not know it") \
	X(TWICE, "twice", "They have it more than once") \
	X(AMOUNT, "amounts", "Amounts differ") \
	X(UNKNOWN, "unknown", "Unknown here") \
	X(UNCLEAR, "unclear", "Not clear")

enum hpx_group {
#define X(name, member, heading) HPX_GROUP_##name,
	HPX_GROUP_LIST(X)
#undef X
		HPX_GROUP_COUNT
};

/* Differences of each group that are listed; all are counted. */
#define HPX_GROUP_LISTED_MAX 1000

/* A difference, and the place in the ledger that it is about. */
struct hpx_difference {
	struct hpx_difference *next;
	uint64_t line;        /* of the ledger; 0: the ledger lacks it */
	struct hpx_span name; /* in the ledger; ptr NULL: the ledger lacks it */
	bool has_reference;
	char reference[HPX_REFERENCE_SIZE];
	int64_t job;          /* 0: the operation itself */
	struct hpx_span text; /* for people */
	bool settled;
};

struct hpx_group_list {
	struct hpx_difference *first, **end;
	uint64_t count;
	uint64_t open; /* not settled */
};

/* X(member, flag, value, sentence) */
#define HPX_RECONCILE_FLAG_LIST(X) \
	X(ledger, "ledger", "FILE", "The provider's export; - for standard input.") \
	X(format, "format", "FORMAT", "csv or jsonl; default by the file's name, else csv.") \
	X(separator, "separator", "CHAR", "What separates CSV columns: , or ; or tab; default ,") \
	X(operation, "operation", "COLUMN", "The column with the operation's reference (Hapax-Operation).") \
	X(provider_id, "provider-id", "COLUMN", "The column with the provider's own id, which the option provider_id of a target found in the answer.") \
	X(key, "key", "COLUMN", "The column with the key that the provider got: the client's, or with --target the job's.") \
	X(target, "target", "NAME", "The ledger is this target's: its jobs are compared.") \
	X(route, "route", "PATTERN", "The ledger is of this route only; the pattern as in the configuration.") \
	X(amount, "amount", "COLUMN", "The column with the amount.") \
	X(amount_pointer, "amount-pointer", "POINTER", "Where our amount is, in the job's body or else in the stored answer's: /amount.") \
	X(status, "status", "COLUMN", "The column that says what happened; without it, every row means applied.") \
	X(applied, "applied", "VALUES", "Values of --status that mean that it happened, with commas between.") \
	X(declined, "declined", "VALUES", "Values that mean that it was refused.") \
	X(not_applied, "not-applied", "VALUES", "Values that mean that it never happened.") \
	X(from, "from", "TIME", "Compares only ours that began at this time or later: 2026-11-15 or 2026-11-15T08:00:00Z.") \
	X(to, "to", "TIME", "Compares only ours that began before this time.") \
	X(since, "since", "DURATION", "Instead of --from: this long ago, for example 24h or 7d.") \
	X(complete, "complete", NULL, "The export has everything up to --to: what it lacks never happened.") \
	X(settle_after, "settle-after", "DURATION", "The longest time that a request may run; needed for \"not applied\" where no --config says it.") \
	X(answer_status, "answer-status", "STATUS", "With --apply and JSON lines: if an operation was applied and its answer was lost, a retry gets this status (2xx), with the row as its body.") \
	X(answer_body, "answer-body", "POINTER", "Only this part of the row is the body: /data.") \
	X(answer_header, "answer-header", "LINE", "A header of that answer: \"Location: /payments/{/id}\"; {/pointer} is a value of the row.") \
	X(apply, "apply", NULL, "Settles unknown outcomes by what the ledger says; needs --reason.") \
	X(restore, "restore", NULL, "After a backup was restored: makes known what the ledger has and the store lacks, so that no retry executes it again; needs --operation and --reason.") \
	X(retention, "retention", "DURATION", "With --restore: how long such a key is known; default the longest retention, or retention_max, of --config.")

struct hpx_reconciliation {
	struct hpx_operator_command command;
#define X(member, flag, value, text) const char *member;
	HPX_RECONCILE_FLAG_LIST(X)
#undef X
	/* The arguments, parsed. */
	struct hpx_ledger_settings ledger_settings;
	struct hpx_span columns[3];       /* that are read: the name, the amount, the status */
	int amount_column, status_column; /* -1: none */
	int64_t from_ms, to_ms;           /* INT64_MIN, INT64_MAX: open */
	int64_t settle_after_ms;          /* 0: not given */
	int64_t retention_ms;             /* of what --restore makes known; 0: not given */
	int64_t tombstone_ms;
	struct hpx_answer_rule answer_rule; /* of what was applied */
	struct hpx_span answer_lines[1];    /* its headers */
	/* The run. */
	struct hpx_arena scratch;    /* of one row or one page */
	struct hpx_span row_text;    /* of the row that is compared; ptr NULL: of none, or of CSV */
	struct hpx_digest_set names; /* that the ledger has */
	struct hpx_digest_set keys;  /* --key with --target: job key → number */
	struct hpx_group_list groups[HPX_GROUP_COUNT];
	uint64_t rows;
	uint64_t ours;    /* ours that happened, in the time compared */
	uint64_t matched; /* rows that name one of ours */
	bool is_jobs;     /* jobs are compared, not operations */
};

/* What the store knows of one of ours. */
enum hpx_standing { HPX_STANDS_HAPPENED,
		    HPX_STANDS_UNKNOWN,
		    HPX_STANDS_NOT,
		    HPX_STANDS_UNDER_WAY };

/* One of ours, as a row of the ledger names it. hpx_ledger_match_done frees its job. */
struct hpx_ledger_match {
	struct hpx_entry entry; /* of the operation, where has_entry */
	bool has_entry;
	struct hpx_job_entry *job; /* NULL: the operation itself */
	enum hpx_standing standing;
	const char *state; /* for people */
};
void hpx_ledger_match_done(struct hpx_ledger_match *match);
const struct hpx_operation_id *hpx_ledger_match_id(const struct hpx_ledger_match *match);
const struct hpx_mark *hpx_ledger_match_mark(const struct hpx_ledger_match *match);
/* Made of an operation, or of a job, whose operation is read. On HPX_OK the job is the
 * match's. */
void hpx_ledger_match_operation(const struct hpx_entry *entry, struct hpx_ledger_match *ret_match);
enum hpx_status hpx_ledger_match_job(struct hpx_reconciliation *run, struct hpx_job_entry *job,
				     struct hpx_ledger_match *ret_match);

/* The one of ours that a row names. HPX_NOT_FOUND: none. HPX_CONFLICT: several.
 * HPX_INVALID: ours have no such names. */
enum hpx_status hpx_ledger_match_find(struct hpx_reconciliation *run, struct hpx_span name,
				      struct hpx_ledger_match *ret_match);
/* The name that the ledger would have for it, into `out`; empty where we do not know. */
enum hpx_status hpx_ledger_match_name(struct hpx_reconciliation *run,
				      const struct hpx_ledger_match *match, struct hpx_buffer *out);
/* For --key with --target: fills run->keys with the keys of our jobs. */
enum hpx_status hpx_ledger_match_index_keys(struct hpx_reconciliation *run);
/* Our amount, from run->scratch; HPX_NOT_FOUND where there is none. */
enum hpx_status hpx_ledger_match_amount(struct hpx_reconciliation *run,
					const struct hpx_ledger_match *match,
					struct hpx_span *ret_text);

/* The answer of an operation that was applied, made of the row into the buffers and
 * `*answer`; NULL where none is asked for, or (after a message) the row does not give it. */
const struct hpx_answer *hpx_ledger_match_answer(const struct hpx_reconciliation *run,
						 struct hpx_buffer *headers, struct hpx_buffer *body,
						 struct hpx_answer *answer);

/* Reads the whole ledger and compares its rows with ours. HPX_EXIT_OK, or the exit code
 * after a message. */
int hpx_reconciliation_rows(struct hpx_reconciliation *run);
/* Compares ours with the names that the ledger has; in the same way. */
int hpx_reconciliation_ours(struct hpx_reconciliation *run);

/* Settles an unknown outcome by the ledger, or notes what is missing for that. Like the
 * next: HPX_EXIT_OK, or the exit code after a message. */
int hpx_reconciliation_settle(struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
			      enum hpx_ruling ruling, uint64_t line, struct hpx_span name);
/* With --restore. What the store does not know at all; `place` has its reference. */
int hpx_reconciliation_restore(struct hpx_reconciliation *run, struct hpx_difference place,
			       enum hpx_ruling ruling);
/* What had failed when the backup was made, and was executed since. */
bool hpx_reconciliation_can_complete(const struct hpx_reconciliation *run,
				     const struct hpx_ledger_match *match);
int hpx_reconciliation_complete(struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
				struct hpx_difference place, enum hpx_ruling ruling);

/* Keeps a difference for the report, with a text for people. `match` may be NULL.
 * HPX_EXIT_OK, or HPX_EXIT_FAILED after a message: no memory. */
int hpx_reconciliation_note(struct hpx_reconciliation *run, enum hpx_group group,
			    const struct hpx_difference *difference,
			    const struct hpx_ledger_match *match, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
