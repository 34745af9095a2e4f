/* The rows: each is one thing that an API which claims idempotency must do, how it is
 * checked, and why it matters. One table (row_list.h); --list, --dry-run, the reports
 * and the reference page come from it. */
#ifndef HPX_VERIFY_ROW_H
#define HPX_VERIFY_ROW_H

#include "verify/row_list.h"
#include "verify/run.h"

enum hpx_row_weight {
	HPX_ROW_REQUIRED,
	HPX_ROW_ADVISED, /* good manners; never fails the run */
};

#define HPX_ROW_VERDICT_LIST(X) \
	X(HOLDS, "holds") \
	X(BROKEN, "broken") \
	X(UNDECIDED, "undecided")           /* checked without a result: fails a required row */ \
	X(NOT_APPLICABLE, "not applicable") /* the description, or the dialect, has nothing for it */ \
	X(SKIPPED, "skipped")               /* by --skip or --only */

enum hpx_row_verdict {
#define X(name, text) HPX_ROW_##name,
	HPX_ROW_VERDICT_LIST(X)
#undef X
};
const char *hpx_row_verdict_text(enum hpx_row_verdict verdict);

enum hpx_row_group {
#define X(name, text) HPX_ROW_GROUP_##name,
	HPX_ROW_GROUP_LIST(X)
#undef X
};
const char *hpx_row_group_text(enum hpx_row_group group);

#define HPX_ROW_EXCHANGES_MAX 12

struct hpx_row_result {
	enum hpx_row_verdict verdict;
	bool tried; /* its function ran; false: `came` says why not */
	char expected[256];
	char came[512]; /* what came, or why the row was not tried */
	/* Set where the row's own words would claim more than was seen; NULL, 0: the
	 * row's. */
	const char *why;
	unsigned blamed;                           /* of a broken row: the guarantees that it breaks, one bit each; the row's others hold */
	unsigned exchanges[HPX_ROW_EXCHANGES_MAX]; /* the numbers of the exchanges that show it */
	size_t exchange_count;
	int64_t took_ms;
};

struct hpx_check;

struct hpx_row {
	const char *name;
	enum hpx_row_weight weight;
	unsigned guarantee;
	unsigned also; /* a second guarantee that the row checks; 0: none */
	enum hpx_row_group group;
	const char *needs; /* an option of the description, by name; "": none */
	const char *title; /* what holds, one line */
	const char *why;   /* what happens to people where it does not hold */
	const char *sends; /* for --dry-run */
	void (*check)(struct hpx_check *check);
};

extern const struct hpx_row hpx_rows[];
extern const size_t hpx_row_count;

/* What happens to people: as the result has it, or else the row. */
const char *hpx_row_why(const struct hpx_row *row, const struct hpx_row_result *row_result);
const struct hpx_row *hpx_row_by_name(struct hpx_span name);
/* Whether `skip` or `only` leaves the row out. */
bool hpx_row_is_left_out(const struct hpx_row *row, const struct hpx_verify_spec *spec);
/* By the dialect: one can make an advised row a required one. */
enum hpx_row_weight hpx_row_weight(const struct hpx_row *row, enum hpx_dialect dialect);

/* ---- the guarantees ---- */

/* The guarantees have hapax's own numbers; 0 is the HTTP contract. */
#define HPX_GUARANTEE_MAX 8
/* The guarantees that a row blames by name. */
enum {
	HPX_GUARANTEE_CONTRACT = 0,
	HPX_GUARANTEE_ONCE = 2,
	HPX_GUARANTEE_KEPT = 3,
	HPX_GUARANTEE_REPLAY = 4,
	HPX_GUARANTEE_FOREIGN = 5,
	HPX_GUARANTEE_STUCK = 8,
};

struct hpx_guarantee {
	const char *text; /* in words that fit any API */
	bool observable;  /* whether it can be observed from outside */
};

extern const struct hpx_guarantee hpx_guarantees[HPX_GUARANTEE_MAX + 1];

/* ---- a run of all rows ---- */

struct hpx_verify_result {
	struct hpx_row_result *rows; /* one for each row */
	/* For each guarantee: BROKEN where one of its required rows is, UNDECIDED,
	 * HOLDS, or NOT_APPLICABLE where none of its rows was tried. */
	enum hpx_row_verdict guarantees[HPX_GUARANTEE_MAX + 1];
	bool holds; /* every required row that was tried holds, and one was tried */
};

/* Tries every row. `progress` (may be NULL) is called before (`row_result` NULL) and
 * after each one. */
enum hpx_status hpx_verify_run(struct hpx_verify *run,
			       void (*progress)(void *user, const struct hpx_row *row,
						const struct hpx_row_result *row_result),
			       void *user, struct hpx_verify_result *ret_result);
/* From the results of the rows: the verdicts of the guarantees, and whether all holds. */
void hpx_verify_conclude(struct hpx_verify_result *result, enum hpx_dialect dialect);
void hpx_verify_result_done(struct hpx_verify_result *result);

#endif
