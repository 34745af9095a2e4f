/* Names, counts and the URL, as all reports give them. */
#include "verify/report_part.h"

#include <stdio.h>

void hpx_report_url(const struct hpx_verify_spec *spec, char out[HPX_REPORT_URL_SIZE])
{
	bool v6 = hpx_span_index(spec->host, ':') < spec->host.len;
	char port[8] = "";

	if (spec->port != (spec->tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%u", spec->port);
	snprintf(out, HPX_REPORT_URL_SIZE, "%s://%s%.*s%s%s%.*s", spec->tls ? "https" : "http",
		 v6 ? "[" : "", HPX_SPAN_ARG(spec->host), v6 ? "]" : "", port,
		 HPX_SPAN_ARG(spec->requests[HPX_REQUEST_main].path));
}

const char *hpx_report_dialect(enum hpx_dialect dialect)
{
	static const char *const names[] = { [HPX_DIALECT_AUTO] = "auto",
					     [HPX_DIALECT_IETF] = "ietf",
					     [HPX_DIALECT_STRIPE] = "stripe" };
	return names[dialect];
}

const char *hpx_report_verdict(enum hpx_row_verdict verdict)
{
	return verdict == HPX_ROW_NOT_APPLICABLE ? "not_applicable" : hpx_row_verdict_text(verdict);
}

static bool is_bad(enum hpx_row_verdict verdict)
{
	return verdict == HPX_ROW_BROKEN || verdict == HPX_ROW_UNDECIDED;
}

bool hpx_report_fails(const struct hpx_row *row, const struct hpx_row_result *row_result,
		      enum hpx_dialect dialect)
{
	return is_bad(row_result->verdict) && hpx_row_weight(row, dialect) == HPX_ROW_REQUIRED;
}

struct hpx_report_count hpx_report_count(const struct hpx_verify_result *result,
					 enum hpx_dialect dialect)
{
	struct hpx_report_count count = { .failed = 0 };

	for (size_t i = 0; i < hpx_row_count; i++) {
		const struct hpx_row_result *row_result = &result->rows[i];

		count.verdicts[row_result->verdict]++;
		if (hpx_report_fails(&hpx_rows[i], row_result, dialect))
			count.failed++;
		else if (is_bad(row_result->verdict))
			count.advice++;
	}
	return count;
}
