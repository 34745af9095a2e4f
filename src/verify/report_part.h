/* What several reports have in common. */
#ifndef HPX_VERIFY_REPORT_PART_H
#define HPX_VERIFY_REPORT_PART_H

#include <jansson.h>

#include "verify/report.h"

#define HPX_REPORT_URL_SIZE 512

/* The URL that is verified, with its templates as written. */
void hpx_report_url(const struct hpx_verify_spec *spec, char out[HPX_REPORT_URL_SIZE]);
const char *hpx_report_dialect(enum hpx_dialect dialect);
/* "not_applicable": the verdict for programs. */
const char *hpx_report_verdict(enum hpx_row_verdict verdict);

/* Whether this finding fails the run. */
bool hpx_report_fails(const struct hpx_row *row, const struct hpx_row_result *row_result,
		      enum hpx_dialect dialect);

/* How many rows have each verdict; advised ones that are not kept apart. */
struct hpx_report_count {
	size_t verdicts[HPX_ROW_SKIPPED + 1];
	size_t advice; /* advised rows that are broken or undecided */
	size_t failed;
};
struct hpx_report_count hpx_report_count(const struct hpx_verify_result *result,
					 enum hpx_dialect dialect);

/* One exchange; NULL: no memory. The caller's. */
json_t *hpx_report_exchange(const struct hpx_verify_exchange *exchange);
/* Text that may hold anything: what is not UTF-8 becomes U+FFFD. */
json_t *hpx_report_text(struct hpx_span text);

#endif
