/* One exchange as JSON, for the log and for the report. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "verify/report_part.h"

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

json_t *hpx_report_text(struct hpx_span text)
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
		return failed | json_object_set_new(to, "body", hpx_report_text(body));
	return failed | json_object_set_new(to, "body_base64", base64(body));
}

static json_t *request_of(const struct hpx_verify_exchange *exchange)
{
	json_t *request = json_object();
	int failed = json_object_set_new(request, "head", hpx_report_text(exchange->request_head));

	failed |= json_object_set_new(request, "key", hpx_report_text(hpx_span_of(exchange->key)));
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

	return json_pack("[o, o]", hpx_report_text(field->name),
			 hpx_report_text(secret ? HPX_SPAN("(left out)") : field->value));
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

json_t *hpx_report_exchange(const struct hpx_verify_exchange *exchange)
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
					      hpx_report_text(hpx_span_of(exchange->problem)));
	failed |= json_object_set_new(json, "request", request_of(exchange));
	if (exchange->end == HPX_EXCHANGE_ANSWERED)
		failed |= json_object_set_new(json, "answer", answer_of(exchange));
	if (failed == 0)
		return json;
	json_decref(json);
	return NULL;
}
