/* From findings to guarantees: a guarantee is as good as the worst of its
 * required rows. What cannot be seen from outside is not claimed. */
#include "verify/row.h"

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

/* The worse of two: broken, undecided, holds; what was not judged says nothing. */
static enum hpx_row_verdict worse(enum hpx_row_verdict a, enum hpx_row_verdict b)
{
	static const int badness[] = {
		[HPX_ROW_SKIPPED] = 0,
		[HPX_ROW_NOT_APPLICABLE] = 0,
		[HPX_ROW_HOLDS] = 1,
		[HPX_ROW_UNDECIDED] = 2,
		[HPX_ROW_BROKEN] = 3,
	};
	return badness[b] > badness[a] ? b : a;
}

static void add(struct hpx_verify_result *result, unsigned guarantee, enum hpx_row_verdict verdict)
{
	result->guarantees[guarantee] = worse(result->guarantees[guarantee], verdict);
}

/* A row can be broken in another way than the one that it is there for: ninety
 * answers of which one is a server error are no second effect. Where nothing says
 * which of a row's two guarantees is broken, the second is in doubt. */
static void count(struct hpx_verify_result *result, const struct hpx_row *row,
		  const struct hpx_row_result *row_result)
{
	bool broken = row_result->verdict == HPX_ROW_BROKEN;
	enum hpx_row_verdict own = broken && row_result->blamed != 0 ? HPX_ROW_HOLDS : row_result->verdict;

	add(result, row->guarantee, own);
	if (row->also != 0)
		add(result, row->also, own == HPX_ROW_BROKEN ? HPX_ROW_UNDECIDED : own);
	for (unsigned g = 0; broken && g <= HPX_GUARANTEE_MAX; g++)
		if (row_result->blamed & (1u << g))
			add(result, g, HPX_ROW_BROKEN);
}

void hpx_verify_conclude(struct hpx_verify_result *result, enum hpx_dialect dialect)
{
	enum hpx_row_verdict all = HPX_ROW_NOT_APPLICABLE;
	enum hpx_row_verdict any = HPX_ROW_NOT_APPLICABLE;

	for (size_t g = 0; g <= HPX_GUARANTEE_MAX; g++)
		result->guarantees[g] = HPX_ROW_NOT_APPLICABLE;
	for (size_t i = 0; i < hpx_row_count; i++) {
		const struct hpx_row *row = &hpx_rows[i];
		enum hpx_row_verdict verdict = result->rows[i].verdict;

		any = worse(any, verdict);
		if (hpx_row_weight(row, dialect) != HPX_ROW_REQUIRED)
			continue;
		all = worse(all, verdict);
		count(result, row, &result->rows[i]);
	}
	/* A run that looked at nothing is no good news. */
	result->holds = all != HPX_ROW_BROKEN && all != HPX_ROW_UNDECIDED &&
			any != HPX_ROW_NOT_APPLICABLE;
}
