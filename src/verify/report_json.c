/* The report for programs: one document with the rows, the guarantees and the
 * exchanges that the rows cite. And the log: every exchange, a line each. */
#include "verify/report_part.h"

static json_t *numbers_of(const struct hpx_row_result *row_result)
{
	json_t *numbers = json_array();
	int failed = numbers == NULL;

	for (size_t i = 0; i < row_result->exchange_count; i++)
		failed |= json_array_append_new(numbers, json_integer(row_result->exchanges[i]));
	if (failed == 0)
		return numbers;
	json_decref(numbers);
	return NULL;
}

static json_t *row_of(const struct hpx_row *row, const struct hpx_row_result *row_result,
		      enum hpx_dialect dialect)
{
	bool required = hpx_row_weight(row, dialect) == HPX_ROW_REQUIRED;
	json_t *guarantees = row->also != 0 ?
				     json_pack("[i, i]", (int)row->guarantee, (int)row->also) :
				     json_pack("[i]", (int)row->guarantee);

	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:I}",
			 "name", row->name, "group", hpx_row_group_text(row->group),
			 "weight", required ? "required" : "advised", "guarantees", guarantees,
			 "verdict", hpx_report_verdict(row_result->verdict), "title", row->title,
			 "why", hpx_row_why(row, row_result),
			 "expected", hpx_report_text(hpx_span_of(row_result->expected)),
			 "came", hpx_report_text(hpx_span_of(row_result->came)),
			 "exchanges", numbers_of(row_result), "took_ms", (json_int_t)row_result->took_ms);
}

static json_t *rows_of(const struct hpx_verify_result *result, enum hpx_dialect dialect)
{
	json_t *rows = json_array();
	int failed = rows == NULL;

	for (size_t i = 0; i < hpx_row_count; i++)
		failed |= json_array_append_new(
			rows, row_of(&hpx_rows[i], &result->rows[i], dialect));
	if (failed == 0)
		return rows;
	json_decref(rows);
	return NULL;
}

static json_t *guarantees_of(const struct hpx_verify_result *result)
{
	json_t *guarantees = json_array();
	int failed = guarantees == NULL;

	for (size_t i = 0; i <= HPX_GUARANTEE_MAX; i++)
		failed |= json_array_append_new(
			guarantees,
			json_pack("{s:i, s:s, s:s}", "number", (int)i, "text",
				  hpx_guarantees[i].text, "verdict",
				  hpx_guarantees[i].observable ?
					  hpx_report_verdict(result->guarantees[i]) :
					  "not_observable"));
	if (failed == 0)
		return guarantees;
	json_decref(guarantees);
	return NULL;
}

static bool is_cited(const struct hpx_verify_result *result, unsigned number)
{
	for (size_t i = 0; i < hpx_row_count; i++)
		for (size_t k = 0; k < result->rows[i].exchange_count; k++)
			if (result->rows[i].exchanges[k] == number)
				return true;
	return false;
}

static json_t *exchanges_of(const struct hpx_verify *run, const struct hpx_verify_result *result)
{
	json_t *exchanges = json_array();
	int failed = exchanges == NULL;

	for (size_t i = 0; i < hpx_verify_exchange_count(run); i++) {
		const struct hpx_verify_exchange *exchange = hpx_verify_exchange_at(run, i);

		if (is_cited(result, exchange->number))
			failed |= json_array_append_new(exchanges, hpx_report_exchange(exchange));
	}
	if (failed == 0)
		return exchanges;
	json_decref(exchanges);
	return NULL;
}

static enum hpx_status write_json(json_t *json, size_t flags, FILE *out)
{
	if (json == NULL)
		return HPX_NOMEM;
	int failed = json_dumpf(json, out, flags | JSON_ENSURE_ASCII);
	json_decref(json);
	return failed == 0 && fputc('\n', out) != EOF && fflush(out) == 0 ? HPX_OK : HPX_IO;
}

enum hpx_status hpx_report_json(const struct hpx_verify *run,
				const struct hpx_verify_result *result, FILE *out)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(run);
	enum hpx_dialect dialect = hpx_verify_dialect(run);
	char url[HPX_REPORT_URL_SIZE];

	hpx_report_url(spec, url);
	return write_json(json_pack("{s:s, s:o, s:o, s:s, s:b, s:b, s:I, s:I, s:o, s:o, s:o}",
				    "hapax", HPX_VERSION,
				    "method", hpx_report_text(spec->requests[HPX_REQUEST_main].method),
				    "url", hpx_report_text(hpx_span_of(url)),
				    "dialect", hpx_report_dialect(dialect), "holds", (int)result->holds,
				    "effects_counted", (int)hpx_verify_counts_effects(run),
				    "requests", (json_int_t)hpx_verify_exchange_count(run),
				    "seed", (json_int_t)spec->seed, "rows", rows_of(result, dialect),
				    "guarantees", guarantees_of(result),
				    "exchanges", exchanges_of(run, result)),
			  JSON_INDENT(2), out);
}

enum hpx_status hpx_report_log(const struct hpx_verify *run, FILE *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_verify_exchange_count(run) && status == HPX_OK; i++)
		status = write_json(hpx_report_exchange(hpx_verify_exchange_at(run, i)), JSON_COMPACT, out);
	return status;
}
