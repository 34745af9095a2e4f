/* Shows that variables are filled in as each place needs it, and that mistaken ones are
 * found before anything is sent. */
#include "../test.h"
#include "verify/spec.h"

static const struct hpx_template_values values = { .uuid = HPX_SPAN_INIT("u-1"),
						   .n = HPX_SPAN_INIT("42"),
						   .key = HPX_SPAN_INIT("k/ü") };

static const struct {
	const char *text;
	enum hpx_template_place place;
	const char *want;
} good[] = {
	{ "", HPX_TEMPLATE_BODY, "" },
	{ "plain", HPX_TEMPLATE_BODY, "plain" },
	{ "{\"a\":{\"b\":1}}", HPX_TEMPLATE_BODY, "{\"a\":{\"b\":1}}" },
	{ "{\"n\":{{n}},\"u\":\"{{uuid}}\"}", HPX_TEMPLATE_BODY, "{\"n\":42,\"u\":\"u-1\"}" },
	{ "{{ n }}{{n}}", HPX_TEMPLATE_BODY, "4242" },
	{ "{{key}}", HPX_TEMPLATE_BODY, "k/ü" },
	{ "/p/{{key}}?u={{uuid}}", HPX_TEMPLATE_PATH, "/p/k%2F%C3%BC?u=u-1" },
	{ "X: {{env:HPX_TEST_SET}} {{n}}", HPX_TEMPLATE_HEADER, "X: sekret 42" },
	{ "one } two }} three {", HPX_TEMPLATE_BODY, "one } two }} three {" },
};

static const struct {
	const char *text;
	enum hpx_template_place place;
	const char *problem;
} bad[] = {
	{ "{{uid}}", HPX_TEMPLATE_BODY, "did you mean {{uuid}}?" },
	{ "{{whatever}}", HPX_TEMPLATE_BODY, "there are {{uuid}}, {{n}}, {{key}}" },
	{ "a {{n", HPX_TEMPLATE_BODY, "\"}}\" is missing" },
	{ "{{env:HPX_TEST_SET}}", HPX_TEMPLATE_BODY, "in headers only" },
	{ "/{{env:HPX_TEST_SET}}", HPX_TEMPLATE_PATH, "in headers only" },
	{ "X: {{env:HPX_TEST_UNSET}}", HPX_TEMPLATE_HEADER, "HPX_TEST_UNSET is not set" },
	{ "X: {{env:HPX_TEST_LINES}}", HPX_TEMPLATE_HEADER, "cannot stand in a header" },
	{ "X: {{env:}}", HPX_TEMPLATE_HEADER, "is not set" },
};

static void test_fill(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct hpx_span text = hpx_span_of(good[i].text);
		char problem[HPX_TEMPLATE_PROBLEM_SIZE] = "";
		struct hpx_buffer out;

		hpx_buffer_init(&out, 1000);
		assert_status(hpx_template_check(text, good[i].place, problem), HPX_OK);
		assert_status(hpx_template_fill(text, good[i].place, &values, &out), HPX_OK);
		assert_span(hpx_buffer_span(&out), good[i].want);
		hpx_buffer_done(&out);
	}
}

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char problem[HPX_TEMPLATE_PROBLEM_SIZE] = "";

		assert_status(hpx_template_check(hpx_span_of(bad[i].text), bad[i].place, problem),
			      HPX_INVALID);
		if (strstr(problem, bad[i].problem) == NULL)
			fail_msg("%s: got \"%s\", want \"%s\"", bad[i].text, problem,
				 bad[i].problem);
		assert_null(strstr(problem, "sekret"));
	}
}

static void test_bound(void **state)
{
	struct hpx_buffer out;

	(void)state;
	hpx_buffer_init(&out, 5);
	assert_status(hpx_template_fill(HPX_SPAN("{{n}}{{n}}{{n}}"), HPX_TEMPLATE_BODY, &values,
					&out),
		      HPX_TOO_LARGE);
	hpx_buffer_done(&out);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_true(hpx_template_names_env(HPX_SPAN("A: b {{env:X}}")));
	assert_false(hpx_template_names_env(HPX_SPAN("A: {{n}}")));
	assert_true(hpx_template_varies(HPX_SPAN("/x/{{n}}")));
	assert_false(hpx_template_varies(HPX_SPAN("/x")));
	assert_false(hpx_template_varies(HPX_SPAN("{{env:X}}")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_kinds),
	};

	setenv("HPX_TEST_SET", "sekret", 1);
	setenv("HPX_TEST_LINES", "a\r\nB: c", 1);
	unsetenv("HPX_TEST_UNSET");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
