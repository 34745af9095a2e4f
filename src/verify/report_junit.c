/* JUnit's XML, as CI servers read it: a test case for each row. What an advised
 * row says is output, not a failure. */
#include <stdio.h>

#include "base/utf8.h"
#include "verify/report_part.h"

/* XML 1.0 has no way to write most control characters: they become '?'. */
static void put_sequence(struct hpx_span sequence, FILE *out)
{
	uint32_t code = hpx_utf8_decode(sequence);

	switch (code) {
	case '&':
		fputs("&amp;", out);
		return;
	case '<':
		fputs("&lt;", out);
		return;
	case '>':
		fputs("&gt;", out);
		return;
	case '"':
		fputs("&quot;", out);
		return;
	case '\n':
		fputs("&#10;", out);
		return;
	default:
		break;
	}
	if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffe || code == 0xffff)
		fputc('?', out);
	else
		fwrite(sequence.ptr, 1, sequence.len, out);
}

static void put(const char *text, FILE *out)
{
	struct hpx_span rest = hpx_span_of(text);

	while (rest.len > 0) {
		size_t n = hpx_utf8_sequence(rest);

		if (n > 0)
			put_sequence(hpx_span_first(rest, n), out);
		else
			fputc('?', out);
		rest = hpx_span_skip(rest, n > 0 ? n : 1);
	}
}

static void put_attribute(const char *name, const char *value, FILE *out)
{
	fprintf(out, " %s=\"", name);
	put(value, out);
	fputc('"', out);
}

static void put_explained(const struct hpx_row *row, const struct hpx_row_result *row_result, FILE *out)
{
	fputs("expected: ", out);
	put(row_result->expected, out);
	fputs("\ncame: ", out);
	put(row_result->came, out);
	fputs("\nwhy: ", out);
	put(hpx_row_why(row, row_result), out);
	fputs("\nexchanges:", out);
	for (size_t i = 0; i < row_result->exchange_count; i++)
		fprintf(out, " #%u", row_result->exchanges[i]);
	fputc('\n', out);
}

static void put_case_inside(const struct hpx_row *row, const struct hpx_row_result *row_result,
			    enum hpx_dialect dialect, FILE *out)
{
	if (row_result->verdict == HPX_ROW_SKIPPED || row_result->verdict == HPX_ROW_NOT_APPLICABLE) {
		fputs("      <skipped", out);
		put_attribute("message", row_result->came[0] != '\0' ? row_result->came : "skipped", out);
		fputs("/>\n", out);
	} else if (hpx_report_fails(row, row_result, dialect)) {
		fputs("      <failure", out);
		put_attribute("type", hpx_report_verdict(row_result->verdict), out);
		put_attribute("message", row_result->came, out);
		fputc('>', out);
		put_explained(row, row_result, out);
		fputs("</failure>\n", out);
	} else if (row_result->verdict != HPX_ROW_HOLDS) {
		fprintf(out, "      <system-out>advice (%s)\n", hpx_report_verdict(row_result->verdict));
		put_explained(row, row_result, out);
		fputs("</system-out>\n", out);
	}
}

static void put_case(const struct hpx_row *row, const struct hpx_row_result *row_result,
		     enum hpx_dialect dialect, FILE *out)
{
	fputs("    <testcase", out);
	put_attribute("classname", "hapax.verify", out);
	put_attribute("name", row->name, out);
	fprintf(out, " time=\"%.3f\">\n", (double)row_result->took_ms / 1000);
	put_case_inside(row, row_result, dialect, out);
	fputs("    </testcase>\n", out);
}

enum hpx_status hpx_report_junit(const struct hpx_verify *run,
				 const struct hpx_verify_result *result, FILE *out)
{
	enum hpx_dialect dialect = hpx_verify_dialect(run);
	struct hpx_report_count count = hpx_report_count(result, dialect);
	char name[HPX_REPORT_URL_SIZE + 16] = "hapax verify ";
	int64_t took_ms = 0;

	hpx_report_url(hpx_verify_spec_of(run), name + strlen(name));
	for (size_t i = 0; i < hpx_row_count; i++)
		took_ms += result->rows[i].took_ms;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite", out);
	put_attribute("name", name, out);
	fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n",
		hpx_row_count, count.failed,
		count.verdicts[HPX_ROW_SKIPPED] + count.verdicts[HPX_ROW_NOT_APPLICABLE],
		(double)took_ms / 1000);
	for (size_t i = 0; i < hpx_row_count; i++)
		put_case(&hpx_rows[i], &result->rows[i], dialect, out);
	fputs("  </testsuite>\n</testsuites>\n", out);
	return fflush(out) == 0 && ferror(out) == 0 ? HPX_OK : HPX_IO;
}
