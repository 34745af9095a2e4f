/* The rows: each one thing that an API which claims idempotency must do, how
 * it is found out, and why it matters. One table; --help, --dry-run, the
 * reports and the reference page come from it. */
#ifndef HPX_VERIFY_ROW_H
#define HPX_VERIFY_ROW_H

#include "verify/run.h"

enum hpx_row_weight {
	HPX_ROW_REQUIRED,
	HPX_ROW_ADVISED,   /* good manners; never fails the run */
};

enum hpx_row_verdict {
	HPX_ROW_HOLDS,
	HPX_ROW_BROKEN,
	HPX_ROW_UNDECIDED,      /* tried, and could not be told: fails a required row */
	HPX_ROW_NOT_APPLICABLE, /* the description, or the dialect, has nothing for it */
	HPX_ROW_SKIPPED,        /* by --skip or --only */
};

/* The guarantees that a verdict is given for: hapax's own numbers, and 0 for
 * the manners of the HTTP contract. */
#define HPX_GUARANTEE_MAX 8

#define HPX_FINDING_EXCHANGES_MAX 12

struct hpx_finding {
	enum hpx_row_verdict verdict;
	char expected[256];
	char came[512];          /* what came, or why it was not judged */
	unsigned exchanges[HPX_FINDING_EXCHANGES_MAX]; /* the numbers that show it */
	size_t exchange_count;
	int64_t took_ms;
};

struct hpx_row {
	const char *name;
	enum hpx_row_weight weight;
	unsigned guarantee;
	const char *title;       /* what holds, one line */
	const char *why;         /* what happens to people where it does not */
	const char *sends;       /* for --dry-run */
	void (*judge)(struct hpx_verify *run, struct hpx_finding *finding);
};

extern const struct hpx_row hpx_rows[];
extern const size_t hpx_row_count;

const struct hpx_row *hpx_row_by_name(struct hpx_span name);

/* ---- a run of all rows ---- */

struct hpx_verify_result {
	struct hpx_finding *findings;   /* one for each row */
	/* For each guarantee: BROKEN where one of its required rows is, UNDECIDED,
	 * HOLDS, or NOT_APPLICABLE where none of its rows was judged. */
	enum hpx_row_verdict guarantees[HPX_GUARANTEE_MAX + 1];
	bool holds;                     /* every required row that was judged */
};

/* `told` (may be NULL) is called before and after each row: progress. */
enum hpx_status hpx_verify_run(struct hpx_verify *run,
			       void (*told)(void *user, const struct hpx_row *row,
					    const struct hpx_finding *finding),
			       void *user, struct hpx_verify_result *ret_result);
void hpx_verify_result_done(struct hpx_verify_result *result);

#endif
