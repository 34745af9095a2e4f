/* The table of rows, made from their list, and the words about it. */
#include "verify/row.h"

#include "verify/rows.h"

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
	if (dialect == HPX_DIALECT_STRIPE && row->check == hpx_row_retry_marker)
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
