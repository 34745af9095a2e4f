/* Shows that JSON bodies are rewritten without a change of meaning, that the
 * meaning is changed where it is to be, and that anything else is left alone. */
#include "../test.h"

#include "core/json.h"
#include "verify/rewrite.h"

static struct hpx_arena arena;

static int open_arena(void **state)
{
	(void)state;
	hpx_arena_init(&arena, 1 << 20);
	return 0;
}

static int close_arena(void **state)
{
	(void)state;
	hpx_arena_done(&arena);
	return 0;
}

struct example {
	const char *body;
	const char *want; /* NULL: HPX_NOT_FOUND */
};

typedef enum hpx_status rewrite_fn(struct hpx_span, struct hpx_arena *, struct hpx_span *);

static void check(rewrite_fn *rewrite, const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hpx_span got;
		enum hpx_status status = rewrite(hpx_span_of(examples[i].body), &arena, &got);

		print_message("%s\n", examples[i].body);
		assert_status(status, examples[i].want != NULL ? HPX_OK : HPX_NOT_FOUND);
		if (status == HPX_OK)
			assert_span(got, examples[i].want);
	}
}

#define CHECK(rewrite, examples) check(rewrite, examples, sizeof(examples) / sizeof(examples[0]))

static void test_order(void **state)
{
	static const struct example examples[] = {
		{ "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}" },
		{ " { \"a\" : [1,{\"x\":2}] , \"b\":\"},\\\"{,\", \"c\":null } ",
		  "{\"c\":null,\"b\":\"},\\\"{,\",\"a\" : [1,{\"x\":2}]}" },
		{ "{\"a\":\"\\\\\",\"b\":2}", "{\"b\":2,\"a\":\"\\\\\"}" },
		{ "{\"a\":1}", NULL },
		{ "{}", NULL },
		{ "[1,2]", NULL },
		{ "{\"a\":1,\"a\":2}", NULL },
		{ "a=1&b=2", NULL },
		{ "", NULL },
	};

	(void)state;
	CHECK(hpx_rewrite_order, examples);
}

static void test_space(void **state)
{
	static const struct example examples[] = {
		{ "{\"a:\":[1,2],\"b\":{}}", "{\n\t\"a:\" : [\n\t1,\n\t2 ],\n\t\"b\" : {\n\t } }" },
		{ "{}", "{\n\t }" },
		{ "[]", NULL },
		{ "{\"a\":1", NULL },
	};

	(void)state;
	CHECK(hpx_rewrite_space, examples);
}

/* Whatever is rewritten has the canonical form that it had. */
static void test_same_meaning(void **state)
{
	static const char *const bodies[] = {
		"{\"order\": \"8e03\", \"amount\": 10, \"note\": {\"by\": \"caf\xc3\xa9\", \"lines\": [1, 2]}}",
		"{\"a\":\"\\u0041\\\"\\\\\",\"b\":[[],{},[{}]],\"c\":-1.5e3,\"d\":true}",
	};
	static rewrite_fn *const rewrites[] = { hpx_rewrite_order, hpx_rewrite_space };
	struct hpx_buffer before;
	struct hpx_buffer after;
	struct hpx_span got;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct hpx_span body = hpx_span_of(bodies[i / 2]);

		hpx_buffer_init(&before, 4096);
		hpx_buffer_init(&after, 4096);
		assert_status(rewrites[i % 2](body, &arena, &got), HPX_OK);
		assert_false(hpx_span_eq(got, body));
		assert_status(hpx_json_canonical(body, &hpx_json_limits_default, NULL, 0, &before), HPX_OK);
		assert_status(hpx_json_canonical(got, &hpx_json_limits_default, NULL, 0, &after), HPX_OK);
		assert_int_equal(before.len, after.len);
		assert_memory_equal(before.ptr, after.ptr, before.len);
		hpx_buffer_done(&before);
		hpx_buffer_done(&after);
	}
}

static void test_pad(void **state)
{
	struct hpx_span got;

	(void)state;
	assert_status(hpx_rewrite_pad(HPX_SPAN("{\"a\":1}"), 10, &arena, &got), HPX_OK);
	assert_span(got, "{\"a\":1}   ");
	assert_status(hpx_rewrite_pad(HPX_SPAN("{\"a\":1}"), 3, &arena, &got), HPX_OK);
	assert_span(got, "{\"a\":1}");
	assert_status(hpx_rewrite_pad(HPX_SPAN("a=1"), 10, &arena, &got), HPX_NOT_FOUND);
}

struct number {
	const char *body;
	const char *pointer;
	const char *want;
};

/* The first in the text, not in the order of names; strings are no numbers. */
static void test_find(void **state)
{
	static const struct number rows[] = {
		{ "{\"z\":5,\"a\":7}", "", "5" },
		{ "{\"s\":\"12\",\"l\":[{\"x\":-1.50e2}]}", "", "-1.50e2" },
		{ "{\"z\":5,\"a\":{\"b\":7}}", "/a/b", "7" },
		{ "{\"z\":5}", "/a", NULL },
		{ "{\"z\":\"5\"}", "/z", NULL },
		{ "{\"z\":\"5\"}", "", NULL },
		{ "12", "", "12" },
		{ "amount=12", "", NULL },
	};
	struct hpx_span got;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s at \"%s\"\n", rows[i].body, rows[i].pointer);
		enum hpx_status status =
			hpx_rewrite_find(hpx_span_of(rows[i].body), hpx_span_of(rows[i].pointer), &got);
		assert_status(status, rows[i].want != NULL ? HPX_OK : HPX_NOT_FOUND);
		if (status == HPX_OK)
			assert_span(got, rows[i].want);
	}
}

static void test_replace(void **state)
{
	struct hpx_span body = HPX_SPAN("{\"a\":5,\"b\":6}");
	struct hpx_span number;
	struct hpx_span got;

	(void)state;
	assert_status(hpx_rewrite_find(body, HPX_SPAN("/b"), &number), HPX_OK);
	assert_status(hpx_rewrite_replace(body, number, HPX_SPAN("9007199254740993"), &arena, &got),
		      HPX_OK);
	assert_span(got, "{\"a\":5,\"b\":9007199254740993}");
}

static void test_other(void **state)
{
	static const struct number rows[] = {
		{ "{\"a\":5}", "", "{\"a\":6}" },
		{ "{\"a\":19}", "", "{\"a\":18}" },
		{ "{\"a\":-0}", "", "{\"a\":-1}" },
		{ "{\"a\":1.50E3}", "", "{\"a\":1.51E3}" },
		{ "{\"a\":5,\"b\":7}", "/b", "{\"a\":5,\"b\":8}" },
		{ "{\"a\":\"x\"}", "", "{\"hapax_verify\":1,\"a\":\"x\"}" },
		{ " { } ", "", "{\"hapax_verify\":1}" },
		{ "name=x&amount=1000&currency=eur", "", "name=x&amount=1001&currency=eur" },
		{ "name=x", "", NULL },
		{ "a picture", "", NULL },
		{ "", "", NULL },
	};
	struct hpx_span got;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s\n", rows[i].body);
		enum hpx_status status = hpx_rewrite_other(
			hpx_span_of(rows[i].body), hpx_span_of(rows[i].pointer), &arena, &got);
		assert_status(status, rows[i].want != NULL ? HPX_OK : HPX_NOT_FOUND);
		if (status == HPX_OK)
			assert_span(got, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(test_space, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(test_same_meaning, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(test_pad, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(test_find, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(test_replace, open_arena, close_arena),
		cmocka_unit_test_setup_teardown(test_other, open_arena, close_arena),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
