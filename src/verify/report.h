/* What a run found, for people, for programs and for CI. */
#ifndef HPX_VERIFY_REPORT_H
#define HPX_VERIFY_REPORT_H

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

#endif
