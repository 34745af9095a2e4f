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
static const char *obstacle(struct hpx_check *check)
{
	const char *over = hpx_verify_stop_reason(check->run);

	return over != NULL ? over : check->notes->stop[0] != '\0' ? check->notes->stop :
								     NULL;
}

static void run_row(struct hpx_check *check, const struct hpx_row *row)
{
	struct hpx_row_result *row_result = check->result;
	int64_t began_ms = hpx_clock_boot_ms();
	const char *why = obstacle(check);

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
			       void (*told)(void *user, const struct hpx_row *row,
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
		if (told != NULL)
			told(user, &hpx_rows[i], NULL);
		run_row(&check, &hpx_rows[i]);
		if (told != NULL)
			told(user, &hpx_rows[i], &result.rows[i]);
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
