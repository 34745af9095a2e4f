/* The table of rows, made from their list; a run of all rows in their order; and
 * the guarantees, each as good as the worst of its required rows. What cannot be
 * seen from outside is not claimed. */
#include "verify/row.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "verify/row_check.h"

const struct hpx_row hpx_rows[] = {
#define X(name, weight, guarantee, also, group, needs, title, why, sends) \
	{ #name, HPX_ROW_##weight, guarantee, also, HPX_ROW_GROUP_##group, needs, title, why, \
	  sends, hpx_row_##name },
	HPX_ROW_LIST(X)
#undef X
};

const size_t hpx_row_count = sizeof(hpx_rows) / sizeof(hpx_rows[0]);

const char *hpx_row_why(const struct hpx_row *row, const struct hpx_row_result *row_result)
{
	return row_result->why != NULL ? row_result->why : row->why;
}

const struct hpx_row *hpx_row_by_name(struct hpx_span name)
{
	for (size_t i = 0; i < hpx_row_count; i++)
		if (hpx_span_eq(name, hpx_span_of(hpx_rows[i].name)))
			return &hpx_rows[i];
	return NULL;
}

enum hpx_row_weight hpx_row_weight(const struct hpx_row *row, enum hpx_dialect dialect)
{
	/* Stripe promises its marker; the draft knows none. */
	if (hpx_dialects[dialect].marks_replays && row->check == hpx_row_retry_marker)
		return HPX_ROW_REQUIRED;
	return row->weight;
}

const char *hpx_row_verdict_text(enum hpx_row_verdict verdict)
{
	static const char *const texts[] = {
#define X(name, text) text,
		HPX_ROW_VERDICT_LIST(X)
#undef X
	};
	return texts[verdict];
}

const char *hpx_row_group_text(enum hpx_row_group group)
{
	static const char *const texts[] = {
#define X(name, text) text,
		HPX_ROW_GROUP_LIST(X)
#undef X
	};
	return texts[group];
}

/* ---- guarantees ---- */

const struct hpx_guarantee hpx_guarantees[HPX_GUARANTEE_MAX + 1] = {
	[0] = { "the contract: keys are checked, new requests work", true },
	[1] = { "nothing is done before its key is reserved durably", true },
	[2] = { "nothing happens twice", true },
	[3] = { "an answer that was seen is kept", true },
	[4] = { "a replay is the answer itself", true },
	[5] = { "nobody gets the answer to another request", true },
	[6] = { "a stale attempt can write nothing", false },
	[7] = { "without its store nothing is done", false },
	[8] = { "nothing is stuck, nothing is dropped", true },
};

/* The worse of two verdicts: broken, undecided, holds. A row that was not tried says
 * nothing. */
static enum hpx_row_verdict worse(enum hpx_row_verdict a, enum hpx_row_verdict b)
{
	static const int badness[] = {
		[HPX_ROW_SKIPPED] = 0,
		[HPX_ROW_NOT_APPLICABLE] = 0,
		[HPX_ROW_HOLDS] = 1,
		[HPX_ROW_UNDECIDED] = 2,
		[HPX_ROW_BROKEN] = 3,
	};
	HPX_ASSERT(a <= HPX_ROW_SKIPPED && b <= HPX_ROW_SKIPPED);
	return badness[b] > badness[a] ? b : a;
}

static void add_verdict(struct hpx_verify_result *result, unsigned guarantee, enum hpx_row_verdict verdict)
{
	HPX_ASSERT(guarantee <= HPX_GUARANTEE_MAX);
	result->guarantees[guarantee] = worse(result->guarantees[guarantee], verdict);
}

/* A row can be broken in another way than the one that it is there for: ninety answers
 * of which one is a server error are no second effect. Where a row has two guarantees
 * and does not blame one of them, the second is undecided. */
static void count_row(struct hpx_verify_result *result, const struct hpx_row *row,
		      const struct hpx_row_result *row_result)
{
	bool broken = row_result->verdict == HPX_ROW_BROKEN;
	enum hpx_row_verdict own = broken && row_result->blamed != 0 ? HPX_ROW_HOLDS : row_result->verdict;

	add_verdict(result, row->guarantee, own);
	if (row->also != 0)
		add_verdict(result, row->also, own == HPX_ROW_BROKEN ? HPX_ROW_UNDECIDED : own);
	for (unsigned g = 0; broken && g <= HPX_GUARANTEE_MAX; g++)
		if (row_result->blamed & (1u << g))
			add_verdict(result, g, HPX_ROW_BROKEN);
}

void hpx_verify_conclude(struct hpx_verify_result *result, enum hpx_dialect dialect)
{
	enum hpx_row_verdict all = HPX_ROW_NOT_APPLICABLE;
	enum hpx_row_verdict any = HPX_ROW_NOT_APPLICABLE;

	HPX_ASSERT(result->rows != NULL);
	for (size_t g = 0; g <= HPX_GUARANTEE_MAX; g++)
		result->guarantees[g] = HPX_ROW_NOT_APPLICABLE;
	for (size_t i = 0; i < hpx_row_count; i++) {
		const struct hpx_row *row = &hpx_rows[i];
		enum hpx_row_verdict verdict = result->rows[i].verdict;

		any = worse(any, verdict);
		if (hpx_row_weight(row, dialect) != HPX_ROW_REQUIRED)
			continue;
		all = worse(all, verdict);
		count_row(result, row, &result->rows[i]);
	}
	/* A run that tried nothing does not hold. */
	result->holds = all != HPX_ROW_BROKEN && all != HPX_ROW_UNDECIDED &&
			any != HPX_ROW_NOT_APPLICABLE;
}

/* ---- a run of all rows ---- */

static bool is_listed(const struct hpx_span *list, size_t count_row, const struct hpx_row *row)
{
	for (size_t i = 0; i < count_row; i++)
		if (hpx_span_eq(list[i], hpx_span_of(row->name)))
			return true;
	return false;
}

bool hpx_row_is_left_out(const struct hpx_row *row, const struct hpx_verify_spec *spec)
{
	return is_listed(spec->skip, spec->skip_count, row) ||
	       (spec->only_count > 0 && !is_listed(spec->only, spec->only_count, row));
}

/* Why no further row can be tried; NULL: it can. */
static const char *stop_reason(struct hpx_check *check)
{
	const char *over = hpx_verify_stop_reason(check->run);

	return over != NULL ? over : check->notes->stop[0] != '\0' ? check->notes->stop :
								     NULL;
}

static void run_row(struct hpx_check *check, const struct hpx_row *row)
{
	struct hpx_row_result *row_result = check->result;
	int64_t began_ms = hpx_clock_boot_ms();
	const char *why = stop_reason(check);

	HPX_ASSERT(!row_result->tried);
	if (why != NULL) {
		hpx_check_undecided(check, "not tried: %s", why);
		return;
	}
	row_result->verdict = HPX_ROW_UNDECIDED;
	row_result->tried = true;
	hpx_verify_row_begin(check->run, row->name);
	row->check(check);
	hpx_verify_row_end(check->run);
	row_result->took_ms = hpx_clock_boot_ms() - began_ms;
}

enum hpx_status hpx_verify_run(struct hpx_verify *run,
			       void (*progress)(void *user, const struct hpx_row *row,
						const struct hpx_row_result *row_result),
			       void *user, struct hpx_verify_result *ret_result)
{
	struct hpx_verify_result result = {
		.rows = calloc(hpx_row_count, sizeof(struct hpx_row_result))
	};
	struct hpx_check_notes notes = { .crashed = false };

	if (result.rows == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < hpx_row_count; i++) {
		struct hpx_check check = { .run = run, .result = &result.rows[i], .notes = &notes };

		result.rows[i].verdict = HPX_ROW_SKIPPED;
		if (hpx_row_is_left_out(&hpx_rows[i], hpx_verify_spec_of(run)))
			continue;
		if (progress != NULL)
			progress(user, &hpx_rows[i], NULL);
		run_row(&check, &hpx_rows[i]);
		if (progress != NULL)
			progress(user, &hpx_rows[i], &result.rows[i]);
	}
	hpx_verify_conclude(&result, hpx_verify_dialect(run));
	*ret_result = result;
	return HPX_OK;
}

void hpx_verify_result_done(struct hpx_verify_result *result)
{
	free(result->rows);
	result->rows = NULL;
}
