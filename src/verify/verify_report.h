/* The results of a run, for people, for programs and for CI. */
#ifndef HPX_VERIFY_VERIFY_REPORT_H
#define HPX_VERIFY_VERIFY_REPORT_H

#include <stdio.h>

#include "verify/row.h"

/* The table: a line for each row, the broken ones with what was expected, what
 * came, why it matters and the numbers of their exchanges; then the guarantees
 * and a summary. With `all`, what came for the others too, and the rows that
 * were not judged. */
void hpx_report_table(const struct hpx_verify *run, const struct hpx_verify_result *result,
		      bool colour, bool all, FILE *out);
/* One JSON document; JUnit's XML. HPX_IO: it could not be written. */
enum hpx_status hpx_report_json(const struct hpx_verify *run,
				const struct hpx_verify_result *result, FILE *out);
enum hpx_status hpx_report_junit(const struct hpx_verify *run,
				 const struct hpx_verify_result *result, FILE *out);
/* Every exchange, one JSON object a line. */
enum hpx_status hpx_report_log(const struct hpx_verify *run, FILE *out);

/* ---- shared by the reports ---- */

#define HPX_REPORT_URL_SIZE 512

/* The URL that is verified, with its templates as written. */
void hpx_report_url(const struct hpx_verify_spec *spec, char out[HPX_REPORT_URL_SIZE]);
const char *hpx_report_dialect(enum hpx_dialect dialect);
/* "not_applicable": the verdict for programs. */
const char *hpx_report_verdict(enum hpx_row_verdict verdict);

/* Whether this row's result fails the run. */
bool hpx_report_fails(const struct hpx_row *row, const struct hpx_row_result *row_result,
		      enum hpx_dialect dialect);

/* How many rows have each verdict; advised rows that are not kept are counted apart. */
struct hpx_report_count {
	size_t verdicts[HPX_ROW_SKIPPED + 1];
	size_t advice; /* advised rows that are broken or undecided */
	size_t failed;
};
struct hpx_report_count hpx_report_count(const struct hpx_verify_result *result,
					 enum hpx_dialect dialect);

#endif
