/* Shows which answer is made of a provider's object, and that nothing of the object can
 * break a header line. */
#include "../test.h"

#include "core/reconstruct.h"

#define OBJECT "{\"id\":\"pay_1\",\"data\":{\"amount\":9007199254740993,\"b\":1,\"a\":null}," \
	       "\"bad\":\"a\\r\\nX: 1\",\"list\":[1,2]}"
#define MARK "Idempotent-Reconstructed: true\r\n"

static struct hpx_span header_of(void *user, struct hpx_span name)
{
	(void)user;
	if (hpx_span_ieq(name, HPX_SPAN("etag")))
		return HPX_SPAN("\"7\"");
	if (hpx_span_ieq(name, HPX_SPAN("x-bad")))
		return HPX_SPAN("a\nb");
	return (struct hpx_span){ NULL, 0 };
}

static const struct {
	const char *body;
	const char *header; /* NULL: none */
	const char *type;   /* of the object; NULL: not known */
	const char *object;
	enum hpx_status status;
	const char *want_headers, *want_body;
} rows[] = {
	{ "answer", NULL, "application/vnd.bank+json", OBJECT, HPX_OK,
	  "Content-Type: application/vnd.bank+json\r\n" MARK, OBJECT },
	{ "answer", NULL, NULL, "no JSON at all", HPX_OK, "Content-Type: application/json\r\n" MARK,
	  "no JSON at all" },
	{ "answer", "Content-Type: text/plain", "text/html", "x", HPX_OK,
	  "Content-Type: text/plain\r\n" MARK, "x" },
	/* A part: canonical, its numbers exact. */
	{ "/data", NULL, "text/html", OBJECT, HPX_OK, "Content-Type: application/json\r\n" MARK,
	  "{\"a\":null,\"amount\":9007199254740993,\"b\":1}" },
	{ "/list/1", NULL, NULL, OBJECT, HPX_OK, "Content-Type: application/json\r\n" MARK, "2" },
	{ "/absent", NULL, NULL, OBJECT, HPX_NOT_FOUND, NULL, NULL },
	{ "/data", NULL, NULL, "{", HPX_INVALID, NULL, NULL },
	/* Headers: constant, with values of the object, copied. */
	{ "/data/b", "Location: /payments/{/id}?b={/data/b}", NULL, OBJECT, HPX_OK,
	  "Content-Type: application/json\r\nLocation: /payments/pay_1?b=1\r\n" MARK, "1" },
	{ "/data/b", "X: }{/id}{/", NULL, OBJECT, HPX_OK,
	  "Content-Type: application/json\r\nX: }pay_1{/\r\n" MARK, "1" },
	{ "/data/b", "ETag", NULL, OBJECT, HPX_OK,
	  "Content-Type: application/json\r\nETag: \"7\"\r\n" MARK, "1" },
	{ "/data/b", "X-Absent", NULL, OBJECT, HPX_OK, "Content-Type: application/json\r\n" MARK, "1" },
	{ "/data/b", "X: {/absent}", NULL, OBJECT, HPX_NOT_FOUND, NULL, NULL },
	{ "/data/b", "X: {/data}", NULL, OBJECT, HPX_NOT_FOUND, NULL, NULL },
	/* Nothing breaks the line. */
	{ "/data/b", "X: {/bad}", NULL, OBJECT, HPX_INVALID, NULL, NULL },
	{ "/data/b", "X-Bad", NULL, OBJECT, HPX_INVALID, NULL, NULL },
	{ "answer", NULL, "text/html\r\nX: 1", "x", HPX_OK, "Content-Type: application/json\r\n" MARK, "x" },
};

static void every_object_gives_its_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_span line = hpx_span_of(rows[i].header);
		struct hpx_answer_rule rule = { .status = 201, .body = hpx_span_of(rows[i].body), .headers = &line, .header_count = rows[i].header != NULL };
		struct hpx_provider_object object = { .text = hpx_span_of(rows[i].object), .header = header_of };
		struct hpx_buffer headers, body;

		if (rows[i].type != NULL)
			object.content_type = hpx_span_of(rows[i].type);
		hpx_buffer_init(&headers, HPX_RECONSTRUCT_HEADERS_MAX);
		hpx_buffer_init(&body, 1000);
		enum hpx_status status = hpx_reconstruct(&rule, &object, &headers, &body);
		if (status != rows[i].status)
			fail_msg("row %zu: got %s, want %s", i, hpx_status_name(status),
				 hpx_status_name(rows[i].status));
		if (status == HPX_OK) {
			assert_span(hpx_buffer_span(&headers), rows[i].want_headers);
			assert_span(hpx_buffer_span(&body), rows[i].want_body);
		}
		hpx_buffer_done(&headers);
		hpx_buffer_done(&body);
	}
}

static void a_body_beyond_its_bound_is_a_status(void **state)
{
	struct hpx_answer_rule rule = { .status = 200, .body = HPX_SPAN(HPX_ANSWER_WHOLE) };
	struct hpx_provider_object object = { .text = HPX_SPAN(OBJECT) };
	struct hpx_buffer headers, body;
	(void)state;

	hpx_buffer_init(&headers, HPX_RECONSTRUCT_HEADERS_MAX);
	hpx_buffer_init(&body, 10);
	assert_status(hpx_reconstruct(&rule, &object, &headers, &body), HPX_TOO_LARGE);
	hpx_buffer_done(&headers);
	hpx_buffer_done(&body);
}

static void header_lines_are_judged(void **state)
{
	static const struct {
		const char *line;
		bool valid;
	} lines[] = {
		{ "Location: /a/{/id}", true },
		{ "ETag", true },
		{ "X:", true },
		{ "X: {/a~1b}", true },
		{ "X: {/a", true },
		{ "", false },
		{ ": x", false },
		{ "A B: x", false },
		{ "X: a\nb", false },
		{ "X: {id}", false },
		{ "X: {}", false },
		{ "X: {/a~2}", false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (hpx_answer_header_valid(hpx_span_of(lines[i].line)) != lines[i].valid)
			fail_msg("<%s>: want %d", lines[i].line, lines[i].valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_object_gives_its_answer),
		cmocka_unit_test(a_body_beyond_its_bound_is_a_status),
		cmocka_unit_test(header_lines_are_judged),
	};
	return cmocka_run_group_tests_name("reconstruct", tests, NULL, NULL);
}
