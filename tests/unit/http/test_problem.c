/* Shows that every problem document is valid JSON that says what the table
 * says, and that its page is whole and escaped. */
#include "../test.h"

#include <jansson.h>

#include "http/problem.h"
#include "http/write.h"

static json_t *parse(const struct hpx_buffer *out)
{
	json_error_t error;
	json_t *json = json_loadb(out->ptr, out->len, JSON_REJECT_DUPLICATES, &error);

	if (json == NULL)
		fail_msg("%s in %.*s", error.text, (int)out->len, out->ptr);
	return json;
}

static void assert_member(const json_t *json, const char *name, const char *want)
{
	const char *got = json_string_value(json_object_get(json, name));

	if (got == NULL || strcmp(got, want) != 0)
		fail_msg("%s: got \"%s\", want \"%s\"", name, got != NULL ? got : "(none)",
			 want);
}

static void every_code_is_printed_as_its_row_says(void **state)
{
	char type[128];

	(void)state;
	for (int code = 0; code < HPX_PROBLEM_COUNT; code++) {
		const struct hpx_problem_kind *kind =
			hpx_problem_kind((enum hpx_problem_code)code);
		struct hpx_problem problem = { .code = (enum hpx_problem_code)code };
		struct hpx_buffer out;
		hpx_buffer_init(&out, 4096);
		assert_status(hpx_problem_print(&problem, &out), HPX_OK);
		json_t *json = parse(&out);
		snprintf(type, sizeof(type), "/.hapax/problems/%s", kind->code);
		assert_member(json, "type", type);
		assert_member(json, "title", kind->title);
		assert_member(json, "detail", kind->page);
		assert_member(json, "code", kind->code);
		assert_member(json, "executed", kind->executed);
		assert_member(json, "retry", kind->retry);
		assert_int_equal(json_integer_value(json_object_get(json, "status")),
				 kind->status);
		assert_int_equal(json_object_size(json), 7);
		assert_ptr_equal(hpx_problem_by_name(hpx_span_of(kind->code)), kind);
		json_decref(json);
		hpx_buffer_done(&out);
	}
	assert_null(hpx_problem_by_name(HPX_SPAN("no_such_code")));
	assert_null(hpx_problem_by_name(HPX_SPAN("")));
}

static const struct hpx_problem full = {
	.code = HPX_PROBLEM_response_not_kept,
	.status = 418,
	.detail = "a \"quoted\" \\ line\nwith \001 and \377",
	.operation = HPX_SPAN_INIT("ab12.cd34"),
	.original_status = 201,
	.location = HPX_SPAN_INIT("/x?\"<\303\244"),
};

static void members_of_one_answer_are_escaped(void **state)
{
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 4096);
	assert_status(hpx_problem_print(&full, &out), HPX_OK);
	json_t *json = parse(&out);
	assert_int_equal(json_integer_value(json_object_get(json, "status")), 418);
	assert_int_equal(json_integer_value(json_object_get(json, "original_status")), 201);
	assert_member(json, "detail", "a \"quoted\" \\ line\nwith \001 and \357\277\275");
	assert_member(json, "operation", "ab12.cd34");
	assert_member(json, "location", "/x?\"<\303\244");
	json_decref(json);
	hpx_buffer_done(&out);
}

static void stripe_has_its_own_shape(void **state)
{
	static const struct {
		enum hpx_problem_code code;
		const char *type;
	} rows[] = {
		{ HPX_PROBLEM_idempotency_key_missing, "invalid_request_error" },
		{ HPX_PROBLEM_idempotency_key_invalid, "invalid_request_error" },
		{ HPX_PROBLEM_unauthenticated, "authentication_error" },
		{ HPX_PROBLEM_idempotency_key_reused, "idempotency_error" },
		{ HPX_PROBLEM_idempotency_key_in_progress, "idempotency_error" },
		{ HPX_PROBLEM_idempotency_outcome_unknown, "idempotency_error" },
		{ HPX_PROBLEM_idempotency_store_unavailable, "idempotency_error" },
		{ HPX_PROBLEM_bad_request, "invalid_request_error" },
		{ HPX_PROBLEM_request_too_large, "invalid_request_error" },
		{ HPX_PROBLEM_headers_too_large, "invalid_request_error" },
		{ HPX_PROBLEM_overloaded, "api_error" },
		{ HPX_PROBLEM_upstream_unreachable, "api_error" },
		{ HPX_PROBLEM_upstream_outcome_unknown, "api_error" },
		{ HPX_PROBLEM_response_not_kept, "api_error" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_problem problem = { .code = rows[i].code, .detail = "why" };
		struct hpx_buffer out;
		hpx_buffer_init(&out, 4096);
		problem.operation = HPX_SPAN("op");
		assert_status(hpx_problem_print_stripe(&problem, &out), HPX_OK);
		json_t *json = parse(&out);
		const json_t *error = json_object_get(json, "error");
		const struct hpx_problem_kind *kind = hpx_problem_kind(rows[i].code);
		assert_member(error, "type", rows[i].type);
		assert_member(error, "code", kind->code);
		assert_member(error, "message", "why");
		assert_member(error, "executed", kind->executed);
		assert_member(error, "retry", kind->retry);
		assert_member(error, "operation", "op");
		assert_non_null(json_object_get(error, "doc_url"));
		json_decref(json);
		hpx_buffer_done(&out);
	}
}

/* Every code in the shapes of the two, with the advice of a problem beside it. */
static void paypal_and_square_have_their_words(void **state)
{
	(void)state;
	for (int code = 0; code < HPX_PROBLEM_COUNT; code++) {
		const struct hpx_problem problem = { .code = (enum hpx_problem_code)code };
		const struct hpx_problem_kind *kind = hpx_problem_kind(problem.code);
		bool reused = problem.code == HPX_PROBLEM_idempotency_key_reused;
		struct hpx_buffer out;
		struct hpx_span type;
		hpx_buffer_init(&out, 8192);
		assert_status(hpx_problem_print_as(HPX_SHAPE_PAYPAL, &problem, &out, &type), HPX_OK);
		assert_span(type, "application/json");
		json_t *json = parse(&out);
		assert_non_null(json_object_get(json, "name"));
		assert_member(json, "retry", kind->retry);
		if (reused)
			assert_member(json_array_get(json_object_get(json, "details"), 0), "issue",
				      "DUPLICATE_REQUEST_ID");
		json_decref(json);
		out.len = 0;
		assert_status(hpx_problem_print_as(HPX_SHAPE_SQUARE, &problem, &out, &type), HPX_OK);
		json = parse(&out);
		const json_t *error = json_array_get(json_object_get(json, "errors"), 0);
		assert_non_null(json_object_get(error, "category"));
		assert_member(json, "code", kind->code);
		if (reused)
			assert_member(error, "code", "IDEMPOTENCY_KEY_REUSED");
		json_decref(json);
		hpx_buffer_done(&out);
	}
}

static void a_full_buffer_holds_nothing_of_it(void **state)
{
	enum hpx_status (*const prints[])(const struct hpx_problem *,
					  struct hpx_buffer *) = {
		hpx_problem_print,
		hpx_problem_print_stripe,
		hpx_problem_print_paypal,
		hpx_problem_print_square,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(prints) / sizeof(prints[0]); i++) {
		struct hpx_buffer out;
		hpx_buffer_init(&out, 100);
		assert_status(hpx_buffer_text(&out, "before"), HPX_OK);
		assert_status(prints[i](&full, &out), HPX_TOO_LARGE);
		assert_span(hpx_buffer_span(&out), "before");
		assert_status(hpx_problem_page(hpx_problem_kind(full.code), &out),
			      HPX_TOO_LARGE);
		assert_span(hpx_buffer_span(&out), "before");
		hpx_buffer_done(&out);
	}
}

static void assert_contains(const struct hpx_buffer *out, const char *text)
{
	if (memmem(out->ptr, out->len, text, strlen(text)) == NULL)
		fail_msg("no \"%s\" in %.*s", text, (int)out->len, out->ptr);
}

static void pages_are_whole_and_load_nothing(void **state)
{
	(void)state;
	for (int code = 0; code < HPX_PROBLEM_COUNT; code++) {
		const struct hpx_problem_kind *kind =
			hpx_problem_kind((enum hpx_problem_code)code);
		struct hpx_buffer out;
		hpx_buffer_init(&out, 8192);
		assert_status(hpx_problem_page(kind, &out), HPX_OK);
		assert_contains(&out, "<!DOCTYPE html>");
		assert_contains(&out, "</html>");
		assert_contains(&out, kind->code);
		assert_contains(&out, hpx_reason_phrase(kind->status));
		assert_contains(&out, "<h2>What to do</h2>");
		assert_contains(&out, "<pre>");
		assert_null(memmem(out.ptr, out.len, "<dd></dd>", 9));
		assert_null(memmem(out.ptr, out.len, "src=", 4));
		assert_null(memmem(out.ptr, out.len, "href=", 5));
		assert_null(memmem(out.ptr, out.len, "://", 3));
		hpx_buffer_done(&out);
	}
}

/* A sentence ends with a period before a space or the end. */
static unsigned sentences(const char *text)
{
	unsigned count = 0;

	for (const char *c = text; *c != '\0'; c++)
		count += c[0] == '.' && (c[1] == ' ' || c[1] == '\0');
	return count;
}

/* Only codes that are retried with the same key are answered with Retry-After. */
static bool speaks_of_retry_after(const struct hpx_problem_kind *kind)
{
	return strstr(kind->advice, "Retry-After") != NULL || strstr(kind->example, "Retry-After") != NULL;
}

static void advice_is_three_sentences_and_an_example(void **state)
{
	(void)state;
	for (int code = 0; code < HPX_PROBLEM_COUNT; code++) {
		const struct hpx_problem_kind *kind = hpx_problem_kind((enum hpx_problem_code)code);

		if (sentences(kind->advice) != 3)
			fail_msg("%s: %u sentences: %s", kind->code, sentences(kind->advice), kind->advice);
		if (strstr(kind->example, " HTTP/1.1") == NULL)
			fail_msg("%s: no request in its example: %s", kind->code, kind->example);
		if (speaks_of_retry_after(kind) && strcmp(kind->retry, "same_key") != 0)
			fail_msg("%s: it has no Retry-After, but its page speaks of it", kind->code);
	}
}

static void pages_escape_their_texts(void **state)
{
	static const struct hpx_problem_kind kind = {
		"c<d",
		404,
		"no",
		"never",
		"<script>alert('x')</script>",
		"a & \"b\"",
		"e > f",
		"<g>",
	};
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 8192);
	assert_status(hpx_problem_page(&kind, &out), HPX_OK);
	assert_null(memmem(out.ptr, out.len, "<script", 7));
	assert_contains(&out, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
	assert_contains(&out, "a &amp; &quot;b&quot;");
	assert_contains(&out, "c&lt;d");
	assert_contains(&out, "e &gt; f");
	assert_contains(&out, "&lt;g&gt;");
	assert_contains(&out, "404 Not Found");
	hpx_buffer_done(&out);
}

static void reasons(void **state)
{
	(void)state;
	assert_string_equal(hpx_reason_phrase(200), "OK");
	assert_string_equal(hpx_reason_phrase(422), "Unprocessable Content");
	assert_string_equal(hpx_reason_phrase(431), "Request Header Fields Too Large");
	assert_string_equal(hpx_reason_phrase(299), "");
	assert_string_equal(hpx_reason_phrase(0), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_is_printed_as_its_row_says),
		cmocka_unit_test(members_of_one_answer_are_escaped),
		cmocka_unit_test(stripe_has_its_own_shape),
		cmocka_unit_test(paypal_and_square_have_their_words),
		cmocka_unit_test(a_full_buffer_holds_nothing_of_it),
		cmocka_unit_test(pages_are_whole_and_load_nothing),
		cmocka_unit_test(advice_is_three_sentences_and_an_example),
		cmocka_unit_test(pages_escape_their_texts),
		cmocka_unit_test(reasons),
	};
	return cmocka_run_group_tests_name("problem", tests, NULL, NULL);
}
