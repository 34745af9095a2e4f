/* The report for people: a table of 80 columns, rows by group, and below a broken
 * row what was expected, what came, and why it matters. The report for CI: JUnit's
 * XML, a test case for each row; an advised row that is broken is output there, not
 * a failure. */
#include "verify/verify_report.h"

#include <stdio.h>

#include "base/span.h"
#include "base/status.h"

void hpx_report_url(const struct hpx_verify_spec *spec, char out[HPX_REPORT_URL_SIZE])
{
	char authority[HPX_VERIFY_AUTHORITY_SIZE];

	hpx_verify_authority(spec, authority);
	snprintf(out, HPX_REPORT_URL_SIZE, "%s://%s%.*s", spec->tls ? "https" : "http", authority,
		 HPX_SPAN_ARG(spec->requests[HPX_REQUEST_main].path));
}

const char *hpx_report_dialect(enum hpx_dialect dialect)
{
	HPX_ASSERT(dialect < HPX_DIALECT_COUNT);
	return hpx_dialects[dialect].name;
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
	HPX_ASSERT(count.failed + count.advice == count.verdicts[HPX_ROW_BROKEN] + count.verdicts[HPX_ROW_UNDECIDED]);
	return count;
}

/* ---- the table ---- */

#define COLUMNS 80
#define NAME_WIDTH 19
#define TEXT_AT 32
#define EXPLAIN_AT 16

enum table_paint { PLAIN,
		   BOLD,
		   DIM,
		   RED,
		   GREEN,
		   YELLOW };

struct table {
	const struct hpx_verify *run;
	const struct hpx_verify_result *result;
	enum hpx_dialect dialect;
	bool colour;
	bool all;
	FILE *out;
};

static const char *paint(const struct table *table, enum table_paint which)
{
	static const char *const codes[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m",
					     "\033[32m", "\033[33m" };
	return table->colour ? codes[which] : "";
}

/* ---- text in columns ---- */

/* How many columns a word takes, and how many bytes its first `max` columns are. */
static size_t width_of(struct hpx_span word, size_t max, size_t *ret_bytes)
{
	size_t width = 0;

	*ret_bytes = 0;
	while (*ret_bytes < word.len && width < max) {
		size_t n = hpx_utf8_sequence(hpx_span_skip(word, *ret_bytes));

		*ret_bytes += n > 0 ? n : 1;
		width++;
	}
	return width;
}

/* The next word, or as much of it as a line holds. */
static bool take_word(struct hpx_span *rest, size_t max, struct hpx_span *ret_word,
		      size_t *ret_width)
{
	size_t bytes;

	if (rest->len == 0)
		return false;
	*ret_word = hpx_span_first(*rest, hpx_span_index(*rest, ' '));
	*ret_width = width_of(*ret_word, max, &bytes);
	bool whole = bytes == ret_word->len;
	*ret_word = hpx_span_first(*ret_word, bytes);
	*rest = hpx_span_skip(*rest, whole && bytes < rest->len ? bytes + 1 : bytes);
	return true;
}

/* Prints words up to the last column, and further ones on new lines from column `at`.
 * The line is open at column `column`, and stays open. */
static void wrap(const struct table *table, const char *text, size_t at, size_t column)
{
	struct hpx_span rest = hpx_span_of(text);
	struct hpx_span word;
	size_t width;
	bool first = true;

	HPX_ASSERT(at < COLUMNS && column < COLUMNS);
	while (take_word(&rest, COLUMNS - at, &word, &width)) {
		if (!first && column + 1 + width > COLUMNS) {
			fprintf(table->out, "\n%*s", (int)at, "");
			column = at;
		} else if (!first) {
			fputc(' ', table->out);
			column++;
		}
		fprintf(table->out, "%.*s", HPX_SPAN_ARG(word));
		column += width;
		first = false;
	}
}

static void explain(const struct table *table, const char *label, const char *text)
{
	if (text[0] == '\0')
		return;
	fprintf(table->out, "      %s%-10s%s", paint(table, DIM), label, paint(table, PLAIN));
	wrap(table, text, EXPLAIN_AT, EXPLAIN_AT);
	fputc('\n', table->out);
}

/* ---- rows ---- */

static enum table_paint colour_of(enum hpx_row_verdict verdict, bool fails)
{
	switch (verdict) {
	case HPX_ROW_HOLDS:
		return GREEN;
	case HPX_ROW_BROKEN:
	case HPX_ROW_UNDECIDED:
		return fails ? RED : YELLOW;
	default:
		return DIM;
	}
}

static void print_exchanges(const struct table *table, const struct hpx_row_result *row_result)
{
	if (row_result->exchange_count == 0)
		return;
	fprintf(table->out, "      %s%-10s%s", paint(table, DIM), "see", paint(table, PLAIN));
	for (size_t i = 0; i < row_result->exchange_count; i++)
		fprintf(table->out, "%s#%u", i > 0 ? " " : "", row_result->exchanges[i]);
	fprintf(table->out, "%s\n", row_result->exchange_count == HPX_ROW_EXCHANGES_MAX ? " ..." : "");
}

/* The reason is printed once, below the table. */
static void print_untried(const struct table *table, const struct hpx_row *row,
			  const struct hpx_row_result *row_result)
{
	bool fails = hpx_report_fails(row, row_result, table->dialect);

	fprintf(table->out, "  %-*s%s%-11s%snot tried\n", NAME_WIDTH, row->name,
		paint(table, colour_of(row_result->verdict, fails)),
		hpx_row_verdict_text(row_result->verdict), paint(table, PLAIN));
}

static void print_judged(const struct table *table, const struct hpx_row *row,
			 const struct hpx_row_result *row_result)
{
	bool holds = row_result->verdict == HPX_ROW_HOLDS;
	bool fails = hpx_report_fails(row, row_result, table->dialect);

	fprintf(table->out, "  %-*s%s%-11s%s", NAME_WIDTH, row->name,
		paint(table, colour_of(row_result->verdict, fails)),
		hpx_row_verdict_text(row_result->verdict), paint(table, PLAIN));
	wrap(table, row->title, TEXT_AT, TEXT_AT);
	fputc('\n', table->out);
	if (!holds)
		explain(table, "expected", row_result->expected);
	if (!holds || table->all)
		explain(table, "came", row_result->came);
	if (holds)
		return;
	explain(table, "why", hpx_row_why(row, row_result));
	print_exchanges(table, row_result);
	if (!fails)
		explain(table, "advice", "good manners; this row does not fail the run");
}

static void print_unjudged(const struct table *table, const struct hpx_row *row,
			   const struct hpx_row_result *row_result)
{
	char text[sizeof(row_result->came) + 32];

	snprintf(text, sizeof(text), "%s%s%s", hpx_row_verdict_text(row_result->verdict),
		 row_result->came[0] != '\0' ? ": " : "", row_result->came);
	fprintf(table->out, "  %s%-*s", paint(table, DIM), NAME_WIDTH, row->name);
	wrap(table, text, NAME_WIDTH + 4, NAME_WIDTH + 2);
	fprintf(table->out, "%s\n", paint(table, PLAIN));
}

static bool is_judged(const struct hpx_row_result *row_result)
{
	return row_result->verdict != HPX_ROW_NOT_APPLICABLE && row_result->verdict != HPX_ROW_SKIPPED;
}

/* Whether the row is printed: rows that were not tried are only counted. */
static bool is_shown(const struct table *table, const struct hpx_row_result *row_result)
{
	return table->all || (is_judged(row_result) && row_result->tried);
}

static void print_rows(const struct table *table)
{
	int group = -1;

	for (size_t i = 0; i < hpx_row_count; i++) {
		const struct hpx_row_result *row_result = &table->result->rows[i];

		if (!is_shown(table, row_result))
			continue;
		if (group != (int)hpx_rows[i].group)
			fprintf(table->out, "\n%s%s%s\n", paint(table, BOLD),
				hpx_row_group_text(hpx_rows[i].group), paint(table, PLAIN));
		group = (int)hpx_rows[i].group;
		if (is_judged(row_result) && !row_result->tried)
			print_untried(table, &hpx_rows[i], row_result);
		else if (is_judged(row_result))
			print_judged(table, &hpx_rows[i], row_result);
		else
			print_unjudged(table, &hpx_rows[i], row_result);
	}
}

/* ---- the conclusion ---- */

static void print_guarantees(const struct table *table)
{
	fprintf(table->out, "\n%sguarantees%s\n", paint(table, BOLD), paint(table, PLAIN));
	for (size_t i = 0; i <= HPX_GUARANTEE_MAX; i++) {
		enum hpx_row_verdict verdict = table->result->guarantees[i];
		const char *text = !hpx_guarantees[i].observable     ? "not observable" :
				   verdict == HPX_ROW_NOT_APPLICABLE ? "not judged" :
								       hpx_row_verdict_text(verdict);

		fprintf(table->out, "  %zu. %-51s %s%s%s\n", i, hpx_guarantees[i].text,
			paint(table, colour_of(verdict, true)), text, paint(table, PLAIN));
	}
	fputs("Guarantees 6 and 7 cannot be observed from outside.\n", table->out);
}

/* Why the remaining rows were not tried, once. */
static void print_obstacle(const struct table *table)
{
	for (size_t i = 0; i < hpx_row_count; i++) {
		const struct hpx_row_result *row_result = &table->result->rows[i];

		if (row_result->verdict != HPX_ROW_UNDECIDED || row_result->tried)
			continue;
		wrap(table, row_result->came, 2, 0);
		fputc('\n', table->out);
		return;
	}
}

static void print_summary(const struct table *table)
{
	struct hpx_report_count count = hpx_report_count(table->result, table->dialect);

	fprintf(table->out, "\n%s%s%s: %zu hold%s, %zu broken",
		paint(table, table->result->holds ? GREEN : RED),
		table->result->holds ? "good" : "not good", paint(table, PLAIN),
		count.verdicts[HPX_ROW_HOLDS], count.verdicts[HPX_ROW_HOLDS] == 1 ? "s" : "",
		count.verdicts[HPX_ROW_BROKEN]);
	fprintf(table->out, ", %zu undecided, %zu not applicable, %zu skipped",
		count.verdicts[HPX_ROW_UNDECIDED], count.verdicts[HPX_ROW_NOT_APPLICABLE],
		count.verdicts[HPX_ROW_SKIPPED]);
	if (count.advice > 0)
		fprintf(table->out, " (%zu only advice)", count.advice);
	fputc('\n', table->out);
	if (hpx_row_count == count.verdicts[HPX_ROW_SKIPPED] + count.verdicts[HPX_ROW_NOT_APPLICABLE])
		fputs("No row was judged.\n", table->out);
	print_obstacle(table);
}

/* A reader of "good" should learn that some rows were not tried. */
static void print_hint(const struct table *table)
{
	struct hpx_report_count count = hpx_report_count(table->result, table->dialect);

	if (count.verdicts[HPX_ROW_NOT_APPLICABLE] > 0 && !table->all)
		fputs("--all says what the rows that are not applicable lack\n", table->out);
}

void hpx_report_table(const struct hpx_verify *run, const struct hpx_verify_result *result,
		      bool colour, bool all, FILE *out)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(run);
	const struct table table = { run, result, hpx_verify_dialect(run), colour, all, out };
	char url[HPX_REPORT_URL_SIZE];

	hpx_report_url(spec, url);
	fprintf(out, "%s%.*s %s%s\n", paint(&table, BOLD),
		HPX_SPAN_ARG(spec->requests[HPX_REQUEST_main].method), url, paint(&table, PLAIN));
	fprintf(out, "dialect: %s%s; effects are %s; %zu request%s; seed %llu\n",
		hpx_report_dialect(table.dialect),
		spec->dialect == HPX_DIALECT_AUTO && table.dialect != HPX_DIALECT_AUTO ?
			" (found out)" :
			"",
		hpx_verify_counts_effects(run) ? "counted" : "not counted",
		hpx_verify_exchange_count(run), hpx_verify_exchange_count(run) == 1 ? "" : "s",
		(unsigned long long)spec->seed);
	print_rows(&table);
	print_guarantees(&table);
	print_summary(&table);
	print_hint(&table);
}

/* ---- JUnit ---- */

static const char *xml_escape(uint32_t code)
{
	switch (code) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\n':
		return "&#10;";
	case 0xfffe:
	case 0xffff:
		return "?";
	default:
		return NULL;
	}
}

/* XML 1.0 has no way to write most control characters: they become '?'. */
static void put_xml(const char *text, FILE *out)
{
	struct hpx_span rest = hpx_span_of(text);
	struct hpx_span character;
	bool printable;

	while (hpx_utf8_next(&rest, &character, &printable)) {
		const char *escape = xml_escape(hpx_utf8_decode(character));

		if (escape != NULL || !printable)
			fputs(escape != NULL ? escape : "?", out);
		else
			fwrite(character.ptr, 1, character.len, out);
	}
}

static void put_attribute(const char *name, const char *value, FILE *out)
{
	fprintf(out, " %s=\"", name);
	put_xml(value, out);
	fputc('"', out);
}

static void put_explained(const struct hpx_row *row, const struct hpx_row_result *row_result, FILE *out)
{
	fputs("expected: ", out);
	put_xml(row_result->expected, out);
	fputs("\ncame: ", out);
	put_xml(row_result->came, out);
	fputs("\nwhy: ", out);
	put_xml(hpx_row_why(row, row_result), out);
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
