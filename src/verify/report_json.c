/* The report for programs: one document with the rows, the guarantees and the
 * exchanges that the rows cite. And the log: every exchange, a line each. */
#include "verify/verify_report.h"

#include <stdlib.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/buffer.h"
#include "base/utf8.h"

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

static json_t *text_json(struct hpx_span text)
{
	if (text.len == 0)
		return json_string("");
	if (hpx_utf8_valid(text))
		return json_stringn(text.ptr, text.len);
	/* One byte becomes three at most. */
	char *mended = malloc(text.len * 3);
	size_t at = 0;
	if (mended == NULL)
		return NULL;
	while (text.len > 0) {
		size_t n = hpx_utf8_sequence(text);

		memcpy(mended + at, n > 0 ? text.ptr : "\xef\xbf\xbd", n > 0 ? n : 3);
		at += n > 0 ? n : 3;
		text = hpx_span_skip(text, n > 0 ? n : 1);
	}
	json_t *json = json_stringn(mended, at);
	free(mended);
	return json;
}

static json_t *base64(struct hpx_span bytes)
{
	char *text = malloc((bytes.len + 2) / 3 * 4 + 1);

	if (text == NULL)
		return NULL;
	EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes.ptr, (int)bytes.len);
	json_t *json = json_string(text);
	free(text);
	return json;
}

/* Text up to a sequence that the bound has cut counts as text. */
static bool is_text(struct hpx_span body, size_t whole)
{
	for (size_t cut = 0; cut < 4 && cut <= body.len; cut++) {
		if (hpx_utf8_valid(hpx_span_first(body, body.len - cut)))
			return true;
		if (body.len == whole)
			return false;
	}
	return false;
}

/* "body" where it is text, otherwise "body_base64"; and how long it was. */
static int add_body(json_t *to, struct hpx_span body, size_t whole)
{
	bool text = is_text(body, whole);
	int failed = json_object_set_new(to, "body_bytes", json_integer((json_int_t)whole));

	if (text)
		return failed | json_object_set_new(to, "body", text_json(body));
	return failed | json_object_set_new(to, "body_base64", base64(body));
}

static json_t *request_of(const struct hpx_verify_exchange *exchange)
{
	json_t *request = json_object();
	int failed = json_object_set_new(request, "head", text_json(exchange->request_head));

	failed |= json_object_set_new(request, "key", text_json(hpx_span_of(exchange->key)));
	failed |= add_body(request, exchange->request_body, exchange->request_body_bytes);
	if (failed == 0)
		return request;
	json_decref(request);
	return NULL;
}

/* The values of cookies are credentials. */
static json_t *field_of(const struct hpx_field *field)
{
	bool secret = hpx_span_ieq(field->name, HPX_SPAN("Set-Cookie"));

	return json_pack("[o, o]", text_json(field->name),
			 text_json(secret ? HPX_SPAN("(left out)") : field->value));
}

static json_t *answer_of(const struct hpx_verify_exchange *exchange)
{
	char hash[2 * HPX_SHA256_SIZE + 1];
	json_t *answer = json_object();
	json_t *headers = json_array();
	int failed = json_object_set_new(answer, "status", json_integer(exchange->status));

	for (size_t i = 0; i < exchange->field_count; i++)
		failed |= json_array_append_new(headers, field_of(&exchange->fields[i]));
	failed |= json_object_set_new(answer, "headers", headers);
	failed |= add_body(answer, exchange->body, exchange->body_bytes);
	hpx_hex_encode(exchange->body_hash, HPX_SHA256_SIZE, hash);
	failed |= json_object_set_new(answer, "body_sha256", json_string(hash));
	if (failed == 0)
		return answer;
	json_decref(answer);
	return NULL;
}

static json_t *exchange_json(const struct hpx_verify_exchange *exchange)
{
	json_t *json = json_object();
	int failed = json_object_set_new(json, "number", json_integer(exchange->number));

	failed |= json_object_set_new(json, "row", json_string(exchange->row ? exchange->row : ""));
	failed |= json_object_set_new(json, "end", json_string(end_name(exchange->end)));
	if (exchange->cut != HPX_CUT_NONE)
		failed |= json_object_set_new(json, "cut", json_string(cut_name(exchange->cut)));
	failed |= json_object_set_new(json, "began_ms", json_integer(exchange->began_ms));
	failed |= json_object_set_new(json, "took_ms", json_integer(exchange->took_ms));
	if (exchange->problem[0] != '\0')
		failed |= json_object_set_new(json, "problem",
					      text_json(hpx_span_of(exchange->problem)));
	failed |= json_object_set_new(json, "request", request_of(exchange));
	if (exchange->end == HPX_EXCHANGE_ANSWERED)
		failed |= json_object_set_new(json, "answer", answer_of(exchange));
	if (failed == 0)
		return json;
	json_decref(json);
	return NULL;
}

/* ---- the document ---- */

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
			 "expected", text_json(hpx_span_of(row_result->expected)),
			 "came", text_json(hpx_span_of(row_result->came)),
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
			failed |= json_array_append_new(exchanges, exchange_json(exchange));
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
				    "method", text_json(spec->requests[HPX_REQUEST_main].method),
				    "url", text_json(hpx_span_of(url)),
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
		status = write_json(exchange_json(hpx_verify_exchange_at(run, i)), JSON_COMPACT, out);
	return status;
}
