/* The report for programs: one document with the rows, the guarantees and the
 * exchanges that the rows cite. And the log: every exchange, a line each. */
#include "verify/verify_report.h"

#include "base/json_writer.h"
#include "base/span.h"
#include "base/status.h"
#include "verify/verify_request.h"

/* More than the log can hold, also with every byte escaped. */
#define DOCUMENT_BYTES_MAX ((size_t)1 << 30)

/* ---- one exchange ---- */

static const char *end_name(enum hpx_verify_exchange_end end)
{
	static const char *const names[] = {
		[HPX_EXCHANGE_ANSWERED] = "answered",
		[HPX_EXCHANGE_CUT] = "cut",
		[HPX_EXCHANGE_REFUSED] = "refused",
		[HPX_EXCHANGE_LOST] = "lost",
		[HPX_EXCHANGE_TIMEOUT] = "timeout",
		[HPX_EXCHANGE_UNSENT] = "unsent",
	};
	return names[end];
}

static const char *cut_name(enum hpx_verify_cut cut)
{
	static const char *const names[] = {
		[HPX_CUT_NONE] = "",
		[HPX_CUT_HEAD] = "head",
		[HPX_CUT_HALF_BODY] = "half_body",
		[HPX_CUT_WHOLE_BODY] = "whole_body",
		[HPX_CUT_BEFORE_ANSWER] = "before_answer",
	};
	return names[cut];
}

/* A body whose last sequence was cut by the bound counts as text. */
static bool is_text(struct hpx_span body, size_t whole_bytes)
{
	for (size_t cut = 0; cut < 4 && cut <= body.len; cut++) {
		if (hpx_utf8_valid(hpx_span_first(body, body.len - cut)))
			return true;
		if (body.len == whole_bytes)
			return false;
	}
	return false;
}

/* "body" where the body is text, otherwise "body_base64"; and how long it was. */
static void put_body(struct hpx_json_writer *json, struct hpx_span body, size_t whole_bytes)
{
	HPX_ASSERT(body.len <= whole_bytes);
	hpx_json_put_number(json, "body_bytes", whole_bytes);
	if (is_text(body, whole_bytes))
		hpx_json_put_string(json, "body", body);
	else
		hpx_json_put_bytes(json, "body", body);
}

static void put_request(struct hpx_json_writer *json, const struct hpx_verify_exchange *exchange)
{
	hpx_json_begin_object(json, "request");
	hpx_json_put_string(json, "head", exchange->request_head);
	hpx_json_put_text(json, "key", exchange->key);
	put_body(json, exchange->request_body, exchange->request_body_bytes);
	hpx_json_end_object(json);
}

/* The values of cookies are credentials. */
static void put_field(struct hpx_json_writer *json, const struct hpx_field *field)
{
	bool secret = hpx_span_ieq(field->name, HPX_SPAN("Set-Cookie"));

	hpx_json_begin_array(json, NULL);
	hpx_json_put_string(json, NULL, field->name);
	hpx_json_put_string(json, NULL, secret ? HPX_SPAN(HPX_REDACTED) : field->value);
	hpx_json_end_array(json);
}

static void put_answer(struct hpx_json_writer *json, const struct hpx_verify_exchange *exchange)
{
	char hash[2 * HPX_SHA256_SIZE + 1];

	hpx_json_begin_object(json, "answer");
	hpx_json_put_number(json, "status", exchange->status);
	hpx_json_begin_array(json, "headers");
	for (size_t i = 0; i < exchange->field_count; i++)
		put_field(json, &exchange->fields[i]);
	hpx_json_end_array(json);
	put_body(json, exchange->body, exchange->body_bytes);
	hpx_hex_encode(exchange->body_hash, HPX_SHA256_SIZE, hash);
	hpx_json_put_text(json, "body_sha256", hash);
	hpx_json_end_object(json);
}

static void put_exchange(struct hpx_json_writer *json, const struct hpx_verify_exchange *exchange)
{
	HPX_ASSERT(exchange->began_ms >= 0 && exchange->took_ms >= 0);
	hpx_json_begin_object(json, NULL);
	hpx_json_put_number(json, "number", exchange->number);
	hpx_json_put_text(json, "row", exchange->row != NULL ? exchange->row : "");
	hpx_json_put_text(json, "end", end_name(exchange->end));
	if (exchange->cut != HPX_CUT_NONE)
		hpx_json_put_text(json, "cut", cut_name(exchange->cut));
	hpx_json_put_number(json, "began_ms", (uint64_t)exchange->began_ms);
	hpx_json_put_number(json, "took_ms", (uint64_t)exchange->took_ms);
	if (exchange->problem[0] != '\0')
		hpx_json_put_text(json, "problem", exchange->problem);
	put_request(json, exchange);
	if (exchange->end == HPX_EXCHANGE_ANSWERED)
		put_answer(json, exchange);
	hpx_json_end_object(json);
}

/* ---- the document ---- */

static void put_row(struct hpx_json_writer *json, const struct hpx_row *row,
		    const struct hpx_row_result *row_result, enum hpx_dialect dialect)
{
	bool required = hpx_row_weight(row, dialect) == HPX_ROW_REQUIRED;

	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "name", row->name);
	hpx_json_put_text(json, "group", hpx_row_group_text(row->group));
	hpx_json_put_text(json, "weight", required ? "required" : "advised");
	hpx_json_begin_array(json, "guarantees");
	hpx_json_put_number(json, NULL, row->guarantee);
	if (row->also != 0)
		hpx_json_put_number(json, NULL, row->also);
	hpx_json_end_array(json);
	hpx_json_put_text(json, "verdict", hpx_report_verdict(row_result->verdict));
	hpx_json_put_text(json, "title", row->title);
	hpx_json_put_text(json, "why", hpx_row_why(row, row_result));
	hpx_json_put_text(json, "expected", row_result->expected);
	hpx_json_put_text(json, "came", row_result->came);
	hpx_json_begin_array(json, "exchanges");
	for (size_t i = 0; i < row_result->exchange_count; i++)
		hpx_json_put_number(json, NULL, row_result->exchanges[i]);
	hpx_json_end_array(json);
	hpx_json_put_number(json, "took_ms", (uint64_t)row_result->took_ms);
	hpx_json_end_object(json);
}

static void put_rows(struct hpx_json_writer *json, const struct hpx_verify_result *result,
		     enum hpx_dialect dialect)
{
	hpx_json_begin_array(json, "rows");
	for (size_t i = 0; i < hpx_row_count; i++)
		put_row(json, &hpx_rows[i], &result->rows[i], dialect);
	hpx_json_end_array(json);
}

static void put_guarantees(struct hpx_json_writer *json, const struct hpx_verify_result *result)
{
	hpx_json_begin_array(json, "guarantees");
	for (size_t i = 0; i <= HPX_GUARANTEE_MAX; i++) {
		bool observable = hpx_guarantees[i].observable;

		hpx_json_begin_object(json, NULL);
		hpx_json_put_number(json, "number", i);
		hpx_json_put_text(json, "text", hpx_guarantees[i].text);
		hpx_json_put_text(json, "verdict",
				  observable ? hpx_report_verdict(result->guarantees[i]) :
					       "not_observable");
		hpx_json_end_object(json);
	}
	hpx_json_end_array(json);
}

static bool is_cited(const struct hpx_verify_result *result, unsigned number)
{
	for (size_t i = 0; i < hpx_row_count; i++)
		for (size_t k = 0; k < result->rows[i].exchange_count; k++)
			if (result->rows[i].exchanges[k] == number)
				return true;
	return false;
}

static void put_exchanges(struct hpx_json_writer *json, const struct hpx_verify *run,
			  const struct hpx_verify_result *result)
{
	hpx_json_begin_array(json, "exchanges");
	for (size_t i = 0; i < hpx_verify_exchange_count(run); i++) {
		const struct hpx_verify_exchange *exchange = hpx_verify_exchange_at(run, i);

		if (is_cited(result, exchange->number))
			put_exchange(json, exchange);
	}
	hpx_json_end_array(json);
}

static void put_document(struct hpx_json_writer *json, const struct hpx_verify *run,
			 const struct hpx_verify_result *result)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(run);
	enum hpx_dialect dialect = hpx_verify_dialect(run);
	char url[HPX_REPORT_URL_SIZE];

	hpx_report_url(spec, url);
	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "hapax", HPX_VERSION);
	hpx_json_put_string(json, "method", spec->requests[HPX_REQUEST_main].method);
	hpx_json_put_text(json, "url", url);
	hpx_json_put_text(json, "dialect", hpx_report_dialect(dialect));
	hpx_json_put_bool(json, "holds", result->holds);
	hpx_json_put_bool(json, "effects_counted", hpx_verify_counts_effects(run));
	hpx_json_put_number(json, "requests", hpx_verify_exchange_count(run));
	hpx_json_put_number(json, "seed", spec->seed);
	put_rows(json, result, dialect);
	put_guarantees(json, result);
	put_exchanges(json, run, result);
	hpx_json_end_object(json);
}

static enum hpx_status write_out(struct hpx_json_writer *json, FILE *out)
{
	enum hpx_status status = hpx_json_writer_finish(json);
	struct hpx_span text = hpx_buffer_span(json->out);

	if (status == HPX_OK && fwrite(text.ptr, 1, text.len, out) != text.len)
		status = HPX_IO;
	return status;
}

enum hpx_status hpx_report_json(const struct hpx_verify *run,
				const struct hpx_verify_result *result, FILE *out)
{
	struct hpx_json_writer json;
	struct hpx_buffer text;

	hpx_buffer_init(&text, DOCUMENT_BYTES_MAX);
	hpx_json_writer_init(&json, &text);
	json.indent = 2;
	json.ascii = true;
	put_document(&json, run, result);
	enum hpx_status status = write_out(&json, out);
	hpx_buffer_done(&text);
	return status == HPX_OK && fflush(out) != 0 ? HPX_IO : status;
}

enum hpx_status hpx_report_log(const struct hpx_verify *run, FILE *out)
{
	enum hpx_status status = HPX_OK;
	struct hpx_json_writer json;
	struct hpx_buffer text;

	hpx_buffer_init(&text, DOCUMENT_BYTES_MAX);
	for (size_t i = 0; i < hpx_verify_exchange_count(run) && status == HPX_OK; i++) {
		text.len = 0;
		hpx_json_writer_init(&json, &text);
		json.ascii = true;
		put_exchange(&json, hpx_verify_exchange_at(run, i));
		status = write_out(&json, out);
	}
	hpx_buffer_done(&text);
	return status == HPX_OK && fflush(out) != 0 ? HPX_IO : status;
}
