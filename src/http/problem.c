/* Problem documents: printed from the one table, as RFC 9457 has them or in
 * Stripe's shape, and the page about a code, for people: one file, nothing loaded from
 * elsewhere. */
#include "http/problem.h"

#include <stdio.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "http/write.h"

static const struct hpx_problem_kind kinds[HPX_PROBLEM_COUNT] = {
#define X(code, status, executed, retry, title, page, advice, example) \
	[HPX_PROBLEM_##code] = { #code, status, executed, retry, title, page, advice, example },
	HPX_PROBLEM_LIST(X)
#undef X
};

const struct hpx_problem_kind *hpx_problem_kind(enum hpx_problem_code code)
{
	HPX_ASSERT(code < HPX_PROBLEM_COUNT);
	return &kinds[code];
}

const struct hpx_problem_kind *hpx_problem_by_name(struct hpx_span code)
{
	for (size_t i = 0; i < HPX_PROBLEM_COUNT; i++)
		if (hpx_span_eq(code, hpx_span_of(kinds[i].code)))
			return &kinds[i];
	return NULL;
}

/* "/.hapax/problems/<code>" */
static void put_link(struct hpx_json_writer *json, const char *name,
		     const struct hpx_problem_kind *kind)
{
	char link[128];
	int len = snprintf(link, sizeof(link), "/.hapax/problems/%s", kind->code);

	HPX_ASSERT(len > 0 && (size_t)len < sizeof(link));
	hpx_json_put_text(json, name, link);
}

static void put_if_known(struct hpx_json_writer *json, const char *name, struct hpx_span value)
{
	if (value.len > 0)
		hpx_json_put_string(json, name, value);
}

/* What a client needs to know before it tries again, in either shape. */
static void put_advice(struct hpx_json_writer *json, const struct hpx_problem *problem,
		       const struct hpx_problem_kind *kind)
{
	hpx_json_put_text(json, "code", kind->code);
	hpx_json_put_text(json, "executed", problem->executed ? problem->executed : kind->executed);
	hpx_json_put_text(json, "retry", kind->retry);
	put_if_known(json, "operation", problem->operation);
	if (problem->original_status != 0)
		hpx_json_put_number(json, "original_status", problem->original_status);
	put_if_known(json, "location", problem->location);
}

static const char *detail_of(const struct hpx_problem *problem,
			     const struct hpx_problem_kind *kind)
{
	return problem->detail != NULL ? problem->detail : kind->page;
}

enum hpx_status hpx_problem_print(const struct hpx_problem *problem, struct hpx_buffer *out)
{
	const struct hpx_problem_kind *kind = hpx_problem_kind(problem->code);
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	put_link(&json, "type", kind);
	hpx_json_put_text(&json, "title", kind->title);
	hpx_json_put_number(&json, "status", problem->status != 0 ? problem->status : kind->status);
	hpx_json_put_text(&json, "detail", detail_of(problem, kind));
	put_advice(&json, problem, kind);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

static const char *stripe_type(enum hpx_problem_code code)
{
	switch (code) {
	case HPX_PROBLEM_idempotency_key_missing:
	case HPX_PROBLEM_idempotency_key_invalid:
	case HPX_PROBLEM_bad_request:
	case HPX_PROBLEM_request_too_old:
	case HPX_PROBLEM_request_too_large:
	case HPX_PROBLEM_headers_too_large:
		return "invalid_request_error";
	case HPX_PROBLEM_unauthenticated:
	case HPX_PROBLEM_forbidden:
	case HPX_PROBLEM_webhook_unverified:
		return "authentication_error";
	case HPX_PROBLEM_idempotency_key_reused:
	case HPX_PROBLEM_idempotency_key_expired:
	case HPX_PROBLEM_idempotency_key_in_progress:
	case HPX_PROBLEM_idempotency_outcome_unknown:
	case HPX_PROBLEM_idempotency_store_unavailable:
		return "idempotency_error";
	default:
		return "api_error";
	}
}

enum hpx_status hpx_problem_print_stripe(const struct hpx_problem *problem,
					 struct hpx_buffer *out)
{
	const struct hpx_problem_kind *kind = hpx_problem_kind(problem->code);
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_begin_object(&json, "error");
	hpx_json_put_text(&json, "type", stripe_type(problem->code));
	hpx_json_put_text(&json, "message", detail_of(problem, kind));
	put_advice(&json, problem, kind);
	put_link(&json, "doc_url", kind);
	hpx_json_end_object(&json);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

/* ---- PayPal's shape, and Square's ---- */

static unsigned status_of(const struct hpx_problem *problem)
{
	return problem->status != 0 ? problem->status : hpx_problem_kind(problem->code)->status;
}

/* What the two call a problem that they know too; NULL: they have no word for it. */
static const struct {
	const char *paypal_issue;
	const char *square_code;
} provider_words[HPX_PROBLEM_COUNT] = {
	[HPX_PROBLEM_idempotency_key_missing] = { "MISSING_REQUIRED_PARAMETER",
						  "MISSING_REQUIRED_PARAMETER" },
	[HPX_PROBLEM_idempotency_key_invalid] = { "INVALID_PARAMETER_SYNTAX", "INVALID_VALUE" },
	[HPX_PROBLEM_idempotency_key_reused] = { "DUPLICATE_REQUEST_ID", "IDEMPOTENCY_KEY_REUSED" },
	[HPX_PROBLEM_idempotency_key_expired] = { "DUPLICATE_REQUEST_ID", "IDEMPOTENCY_KEY_REUSED" },
	[HPX_PROBLEM_idempotency_key_in_progress] = { "PREVIOUS_REQUEST_IN_PROGRESS", "CONFLICT" },
	[HPX_PROBLEM_idempotency_outcome_unknown] = { "PREVIOUS_REQUEST_IN_PROGRESS", "CONFLICT" },
	[HPX_PROBLEM_unauthenticated] = { "INVALID_TOKEN", "UNAUTHORIZED" },
	[HPX_PROBLEM_forbidden] = { "PERMISSION_DENIED", "FORBIDDEN" },
	[HPX_PROBLEM_request_too_large] = { NULL, "REQUEST_ENTITY_TOO_LARGE" },
};

/* PayPal names an error by its status. */
static const char *paypal_name(unsigned status)
{
	switch (status) {
	case 401:
		return "AUTHENTICATION_FAILURE";
	case 403:
		return "NOT_AUTHORIZED";
	case 409:
		return "RESOURCE_CONFLICT";
	case 422:
		return "UNPROCESSABLE_ENTITY";
	case 429:
		return "RATE_LIMIT_REACHED";
	case 503:
		return "SERVICE_UNAVAILABLE";
	default:
		return status >= 500 ? "INTERNAL_SERVER_ERROR" : "INVALID_REQUEST";
	}
}

enum hpx_status hpx_problem_print_paypal(const struct hpx_problem *problem, struct hpx_buffer *out)
{
	const struct hpx_problem_kind *kind = hpx_problem_kind(problem->code);
	const char *issue = provider_words[problem->code].paypal_issue;
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "name", paypal_name(status_of(problem)));
	hpx_json_put_text(&json, "message", detail_of(problem, kind));
	put_if_known(&json, "debug_id", problem->operation);
	hpx_json_begin_array(&json, "details");
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "issue", issue != NULL ? issue : kind->code);
	hpx_json_put_text(&json, "description", kind->title);
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	hpx_json_begin_array(&json, "links");
	hpx_json_begin_object(&json, NULL);
	put_link(&json, "href", kind);
	hpx_json_put_text(&json, "rel", "information_link");
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	put_advice(&json, problem, kind);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

static const char *square_category(unsigned status)
{
	switch (status) {
	case 401:
	case 403:
		return "AUTHENTICATION_ERROR";
	case 429:
		return "RATE_LIMIT_ERROR";
	default:
		return status >= 500 ? "API_ERROR" : "INVALID_REQUEST_ERROR";
	}
}

static const char *square_code(const struct hpx_problem *problem)
{
	const char *code = provider_words[problem->code].square_code;
	unsigned status = status_of(problem);

	if (code != NULL)
		return code;
	if (status == 429)
		return "RATE_LIMITED";
	if (status < 500)
		return "BAD_REQUEST";
	return status == 503 ? "SERVICE_UNAVAILABLE" : status == 504 ? "GATEWAY_TIMEOUT" :
								       "INTERNAL_SERVER_ERROR";
}

enum hpx_status hpx_problem_print_square(const struct hpx_problem *problem, struct hpx_buffer *out)
{
	const struct hpx_problem_kind *kind = hpx_problem_kind(problem->code);
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_begin_array(&json, "errors");
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "category", square_category(status_of(problem)));
	hpx_json_put_text(&json, "code", square_code(problem));
	hpx_json_put_text(&json, "detail", detail_of(problem, kind));
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	put_advice(&json, problem, kind);
	put_link(&json, "doc_url", kind);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

enum hpx_status hpx_problem_print_as(enum hpx_problem_shape shape, const struct hpx_problem *problem,
				     struct hpx_buffer *out, struct hpx_span *ret_type)
{
	static enum hpx_status (*const print[])(const struct hpx_problem *, struct hpx_buffer *) = {
		[HPX_SHAPE_PROBLEM] = hpx_problem_print,
		[HPX_SHAPE_STRIPE] = hpx_problem_print_stripe,
		[HPX_SHAPE_PAYPAL] = hpx_problem_print_paypal,
		[HPX_SHAPE_SQUARE] = hpx_problem_print_square,
	};

	HPX_ASSERT(shape < sizeof(print) / sizeof(print[0]));
	*ret_type = shape == HPX_SHAPE_PROBLEM ? HPX_SPAN("application/problem+json") :
						 HPX_SPAN("application/json");
	return print[shape](problem, out);
}

/* ---- the page ---- */

/* What `executed` and `retry` mean, as sentences. */
struct problem_word {
	const char *word;
	const char *sentence;
};

static const struct problem_word executed_words[] = {
	{ "yes", "The operation was executed." },
	{ "no", "Nothing was executed by this request." },
	{ "unknown", "The operation may have been executed, or may still be." },
};

static const struct problem_word retry_words[] = {
	{ "same_key", "Send the same request again, with the same key." },
	{ "after_fix", "Correct the request first, then send it again." },
	{ "never", "Do not send it again with this key." },
};

static const char *sentence_of(const struct problem_word *words, size_t count,
			       const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i].word, word) == 0)
			return words[i].sentence;
	return "";
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static enum hpx_status escape(struct hpx_buffer *out, const char *text)
{
	enum hpx_status status = HPX_OK;

	for (; *text != '\0' && status == HPX_OK; text++) {
		const char *name = entity(*text);
		status = name != NULL ? hpx_buffer_text(out, name) : hpx_buffer_byte(out, *text);
	}
	return status;
}

/* The page as pieces: markup as it is, texts escaped between them. */
static enum hpx_status print_pieces(const char *const *pieces, size_t count,
				    struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(count % 2 == 1); /* markup at both ends */
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = i % 2 == 0 ? hpx_buffer_text(out, pieces[i]) : escape(out, pieces[i]);
	return status;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum hpx_status hpx_problem_page(const struct hpx_problem_kind *kind,
				 struct hpx_buffer *out)
{
	char status_text[16];
	size_t begin = out->len;

	snprintf(status_text, sizeof(status_text), "%u", kind->status);
	const char *const pieces[] = {
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
		kind->title,
		"</title>\n<style>body{font:1rem/1.5 sans-serif;max-width:40em;margin:2em "
		"auto;"
		"padding:0 1em}dt{font-weight:bold}dd{margin:0 0 .8em}pre{white-space:pre-wrap;"
		"overflow-wrap:anywhere;border:1px solid;padding:.6em}html{color-scheme:light dark}</style>\n</head>\n"
		"<body>\n<h1>",
		kind->title,
		"</h1>\n<p>",
		kind->page,
		"</p>\n<h2>What to do</h2>\n<p>",
		kind->advice,
		"</p>\n<pre>",
		kind->example,
		"</pre>\n<dl>\n<dt>code</dt>\n<dd><code>",
		kind->code,
		"</code></dd>\n<dt>status</dt>\n<dd>",
		status_text,
		" ",
		hpx_reason_phrase(kind->status),
		"</dd>\n<dt>executed: ",
		kind->executed,
		"</dt>\n<dd>",
		sentence_of(executed_words, COUNT(executed_words), kind->executed),
		"</dd>\n<dt>retry: ",
		kind->retry,
		"</dt>\n<dd>",
		sentence_of(retry_words, COUNT(retry_words), kind->retry),
		"</dd>\n</dl>\n</body>\n</html>\n",
	};
	enum hpx_status status = print_pieces(pieces, COUNT(pieces), out);
	if (status != HPX_OK)
		out->len = begin;
	return status;
}

/* ---- the reference ---- */

static enum hpx_status print_kind(const struct hpx_problem_kind *kind, struct hpx_buffer *out)
{
	return hpx_buffer_printf(out,
				 "\n## %s\n\n**%u %s: %s.** %s\n\n%s\n\n```\n%s\n```\n\n"
				 "`executed: %s`: %s `retry: %s`: %s\n",
				 kind->code, kind->status, hpx_reason_phrase(kind->status), kind->title,
				 kind->page, kind->advice, kind->example, kind->executed,
				 sentence_of(executed_words, COUNT(executed_words), kind->executed),
				 kind->retry, sentence_of(retry_words, COUNT(retry_words), kind->retry));
}

enum hpx_status hpx_problem_print_reference(struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(
		out, "# Problems, for those who write clients\n\n"
		     "What each of hapax's own answers means, and what a client should do. A gateway serves the\n"
		     "same pages at `/.hapax/problems/CODE`, and each such answer has a `Link` to its page.\n"
		     "`hapax check --print-problems` prints this page; a test compares the two. [HTTP](http.md#problems)\n"
		     "says how these answers look and when each is sent;\n"
		     "[troubleshooting](../guide/troubleshooting.md) says what the operator does.\n");

	for (size_t i = 0; i < HPX_PROBLEM_COUNT && status == HPX_OK; i++)
		status = print_kind(&kinds[i], out);
	return status;
}
