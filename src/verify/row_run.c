/* A run of all rows, in their order: which are judged, what each leaves to the
 * next, and the conclusion. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "verify/judge.h"

static bool names(const struct hpx_span *list, size_t count, const struct hpx_row *row)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_eq(list[i], hpx_span_of(row->name)))
			return true;
	return false;
}

bool hpx_row_is_left_out(const struct hpx_row *row, const struct hpx_verify_spec *spec)
{
	return names(spec->skip, spec->skip_count, row) ||
	       (spec->only_count > 0 && !names(spec->only, spec->only_count, row));
}

/* Why no row can be judged any more; NULL: it can. */
static const char *obstacle(struct hpx_judge *judge)
{
	const char *over = hpx_verify_over(judge->run);

	return over != NULL ? over : judge->notes->stop[0] != '\0' ? judge->notes->stop :
								     NULL;
}

static void run_row(struct hpx_judge *judge, const struct hpx_row *row)
{
	struct hpx_row_finding *finding = judge->finding;
	int64_t began_ms = hpx_clock_boot_ms();
	const char *why = obstacle(judge);

	if (why != NULL) {
		hpx_judge_undecided(judge, "not tried: %s", why);
		return;
	}
	finding->verdict = HPX_ROW_UNDECIDED;
	finding->tried = true;
	hpx_verify_row_begin(judge->run, row->name);
	row->judge(judge);
	hpx_verify_row_end(judge->run);
	finding->took_ms = hpx_clock_boot_ms() - began_ms;
}

enum hpx_status hpx_verify_run(struct hpx_verify *run,
			       void (*told)(void *user, const struct hpx_row *row,
					    const struct hpx_row_finding *finding),
			       void *user, struct hpx_verify_result *ret_result)
{
	struct hpx_verify_result result = {
		.findings = calloc(hpx_row_count, sizeof(struct hpx_row_finding))
	};
	struct hpx_verify_notes notes = { .crashed = false };

	if (result.findings == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < hpx_row_count; i++) {
		struct hpx_judge judge = { .run = run, .finding = &result.findings[i], .notes = &notes };

		result.findings[i].verdict = HPX_ROW_SKIPPED;
		if (hpx_row_is_left_out(&hpx_rows[i], hpx_verify_spec_of(run)))
			continue;
		if (told != NULL)
			told(user, &hpx_rows[i], NULL);
		run_row(&judge, &hpx_rows[i]);
		if (told != NULL)
			told(user, &hpx_rows[i], &result.findings[i]);
	}
	hpx_verify_conclude(&result, hpx_verify_dialect(run));
	*ret_result = result;
	return HPX_OK;
}

void hpx_verify_result_done(struct hpx_verify_result *result)
{
	free(result->findings);
	result->findings = NULL;
}
