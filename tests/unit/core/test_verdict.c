/* Shows what a probe's answer and a webhook's body say under a mapping: every
 * kind of sign for every ruling, what is looked at first, and that whatever is
 * not listed, or listed twice, is unclear. */
#include "../test.h"

#include "core/amount.h"
#include "core/json_lookup.h"
#include "core/verdict.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define APPLIED HPX_RULING_APPLIED
#define DECLINED HPX_RULING_DECLINED
#define NOT_APPLIED HPX_RULING_NOT_APPLIED
#define NOT_YET HPX_RULING_NOT_YET
#define UNCLEAR HPX_RULING_UNCLEAR

static const unsigned applied_statuses[] = { 201, 299, 410 };
static const unsigned declined_statuses[] = { 402, 422 };
static const unsigned not_applied_statuses[] = { 404, 410 };
static const unsigned not_yet_statuses[] = { 202, 503 };
static const struct hpx_span applied_values[] = { HPX_SPAN_INIT("succeeded"), HPX_SPAN_INIT("1"),
						  HPX_SPAN_INIT("true"), HPX_SPAN_INIT("both") };
static const struct hpx_span declined_values[] = { HPX_SPAN_INIT("failed"), HPX_SPAN_INIT("-2.50"),
						   HPX_SPAN_INIT("false"), HPX_SPAN_INIT("both"), HPX_SPAN_INIT("zur\xc3\xbc"
														"ck") };
static const struct hpx_span not_applied_values[] = { HPX_SPAN_INIT("not_found"), HPX_SPAN_INIT("0"),
						      HPX_SPAN_INIT("null"), HPX_SPAN_INIT("both"), HPX_SPAN_INIT("") };
static const struct hpx_span not_yet_values[] = { HPX_SPAN_INIT("pending"), HPX_SPAN_INIT("1e3") };

#define SIGNS(name) \
	{ \
		name##_statuses, COUNT(name##_statuses), name##_values, COUNT(name##_values) \
	}
static const struct hpx_ruling_mapping with_pointer = { HPX_SPAN_INIT("/data/status"),
							{ SIGNS(applied), SIGNS(declined), SIGNS(not_applied), SIGNS(not_yet) } };
static const struct hpx_ruling_mapping statuses_only = { { NULL, 0 },
							 { SIGNS(applied), SIGNS(declined), SIGNS(not_applied), SIGNS(not_yet) } };
static const struct hpx_ruling_mapping nothing = { HPX_SPAN_INIT("/data/status"), { { 0 } } };

static void expect(enum hpx_ruling got, enum hpx_ruling want, unsigned status, const char *body)
{
	if (got != want)
		fail_msg("%u %s: got %s, want %s", status, body, hpx_ruling_name(got),
			 hpx_ruling_name(want));
}

#define AT(value) "{\"data\":{\"status\":" value "}}"

static void answers(void **state)
{
	static const struct {
		unsigned status;
		const char *body;
		enum hpx_ruling with_pointer;
		enum hpx_ruling statuses_only;
	} rows[] = {
		/* A status that is listed decides, whatever the body says. */
		{ 201, AT("\"failed\""), APPLIED, APPLIED },
		{ 299, "", APPLIED, APPLIED },
		{ 402, AT("\"succeeded\""), DECLINED, DECLINED },
		{ 422, "", DECLINED, DECLINED },
		{ 404, AT("\"succeeded\""), NOT_APPLIED, NOT_APPLIED },
		{ 202, AT("\"succeeded\""), NOT_YET, NOT_YET },
		{ 503, "", NOT_YET, NOT_YET },
		/* One that is not: the body of a 2xx, where there is a pointer. */
		{ 200, AT("\"succeeded\""), APPLIED, UNCLEAR },
		{ 200, AT("\"failed\""), DECLINED, UNCLEAR },
		{ 200, AT("\"not_found\""), NOT_APPLIED, UNCLEAR },
		{ 200, AT("\"pending\""), NOT_YET, UNCLEAR },
		{ 200, AT("\"other\""), UNCLEAR, UNCLEAR },
		{ 200, "", UNCLEAR, UNCLEAR },
		{ 298, AT("\"succeeded\""), APPLIED, UNCLEAR },
		/* The body of no other: an error page may hold anything. */
		{ 199, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
		{ 300, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
		{ 400, AT("\"not_found\""), UNCLEAR, UNCLEAR },
		{ 500, AT("\"not_found\""), UNCLEAR, UNCLEAR },
		{ 0, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
		/* Listed twice. */
		{ 410, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
	};
	enum hpx_ruling got;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span body = hpx_span_of(rows[i].body);
		assert_status(hpx_ruling_of_answer(&with_pointer, rows[i].status, body, &got), HPX_OK);
		expect(got, rows[i].with_pointer, rows[i].status, rows[i].body);
		assert_status(hpx_ruling_of_answer(&statuses_only, rows[i].status, body, &got), HPX_OK);
		expect(got, rows[i].statuses_only, rows[i].status, rows[i].body);
		assert_status(hpx_ruling_of_answer(&nothing, rows[i].status, body, &got), HPX_OK);
		expect(got, UNCLEAR, rows[i].status, rows[i].body);
	}
}

/* The design's own example: 200 applied, 404 not applied, all else unclear. */
static void every_status(void **state)
{
	static const unsigned ok[] = { 200 }, gone[] = { 404 };
	static const struct hpx_ruling_mapping mapping = { { NULL, 0 },
							   { [APPLIED] = { ok, 1, NULL, 0 }, [NOT_APPLIED] = { gone, 1, NULL, 0 } } };
	enum hpx_ruling got;
	(void)state;
	for (unsigned status = 0; status < 1000; status++) {
		assert_status(hpx_ruling_of_answer(&mapping, status, HPX_SPAN("{}"), &got), HPX_OK);
		expect(got, status == 200 ? APPLIED : status == 404 ? NOT_APPLIED :
								      UNCLEAR,
		       status, "{}");
	}
}

static void bodies(void **state)
{
	static const struct {
		const char *body;
		enum hpx_ruling want;
	} rows[] = {
		/* Strings, byte by byte, however they are written. */
		{ AT("\"succeeded\""), APPLIED },
		{ AT("\"suc\\u0063eeded\""), APPLIED },
		{ AT("\"zur\xc3\xbc"
		     "ck\""),
		  DECLINED },
		{ AT("\"zur\\u00fcck\""), DECLINED },
		{ AT("\"Succeeded\""), UNCLEAR },
		{ AT("\"succeeded \""), UNCLEAR },
		{ AT("\"succeede\""), UNCLEAR },
		{ AT("\"\""), NOT_APPLIED },
		/* Numbers, by their value; as strings, by their bytes. */
		{ AT("1"), APPLIED },
		{ AT("1.0"), APPLIED },
		{ AT("10e-1"), APPLIED },
		{ AT("1.0000000000000000000000001"), UNCLEAR },
		{ AT("-1"), UNCLEAR },
		{ AT("-2.5"), DECLINED },
		{ AT("-25e-1"), DECLINED },
		{ AT("2.5"), UNCLEAR },
		{ AT("0"), NOT_APPLIED },
		{ AT("-0.0"), NOT_APPLIED },
		{ AT("1000"), NOT_YET },
		{ AT("\"1\""), APPLIED },
		{ AT("\"1.0\""), UNCLEAR },
		{ AT("\"-2.5\""), UNCLEAR },
		/* The three names. */
		{ AT("true"), APPLIED },
		{ AT("false"), DECLINED },
		{ AT("null"), NOT_APPLIED },
		/* Listed for two rulings. */
		{ AT("\"both\""), UNCLEAR },
		/* No value, or no JSON. */
		{ AT("[]"), UNCLEAR },
		{ AT("{}"), UNCLEAR },
		{ AT("[\"succeeded\"]"), UNCLEAR },
		{ "{\"data\":{}}", UNCLEAR },
		{ "{\"data\":\"succeeded\"}", UNCLEAR },
		{ "{\"status\":\"succeeded\"}", UNCLEAR },
		{ "{}", UNCLEAR },
		{ "[]", UNCLEAR },
		{ "", UNCLEAR },
		{ "succeeded", UNCLEAR },
		{ "\"succeeded\"", UNCLEAR },
		{ AT("\"succeeded\"") "x", UNCLEAR },
		{ "{\"data\":{\"status\":\"succeeded\",\"status\":\"failed\"}}", UNCLEAR },
		{ "{\"data\":{\"status\":\"succeeded\"}", UNCLEAR },
		{ AT("\"\xff\""), UNCLEAR },
	};
	enum hpx_ruling got;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span body = hpx_span_of(rows[i].body);
		assert_status(hpx_ruling_of_body(&with_pointer, body, &got), HPX_OK);
		expect(got, rows[i].want, 0, rows[i].body);
		assert_status(hpx_ruling_of_body(&statuses_only, body, &got), HPX_OK);
		expect(got, UNCLEAR, 0, rows[i].body);
	}
}

/* A value that is far too long is no memory trouble, only unclear. */
static void long_values(void **state)
{
	enum { LEN = 100000 };
	char *body = malloc(LEN);
	enum hpx_ruling got = APPLIED;
	(void)state;
	assert_non_null(body);
	memset(body, 'a', LEN);
	memcpy(body, "{\"data\":{\"status\":\"", 19);
	memcpy(body + LEN - 3, "\"}}", 3);
	assert_status(hpx_ruling_of_body(&with_pointer, hpx_span(body, LEN), &got), HPX_OK);
	assert_int_equal(got, UNCLEAR);
	free(body);
}

static void lookups(void **state)
{
	static const char doc[] = "{\"id\":\"pay_1\",\"n\":12.50,\"big\":12345678901234567890.10,\"a/b\":{\"~\":true},"
				  "\"list\":[\"zero\",{\"deep\":[[\"x\"]]}],\"esc\":\"\\u00e9\\n\",\"\":\"empty\",\"none\":null,\"long\":\"123456789\"}";
	static const struct {
		const char *doc, *pointer;
		enum hpx_status status;
		enum hpx_json_kind kind;
		const char *text;
	} rows[] = {
		{ doc, "/id", HPX_OK, HPX_JSON_STRING, "pay_1" },
		{ doc, "/n", HPX_OK, HPX_JSON_NUMBER, "12.50" },
		{ doc, "/a~1b/~0", HPX_OK, HPX_JSON_LITERAL, "true" },
		{ doc, "/list/0", HPX_OK, HPX_JSON_STRING, "zero" },
		{ doc, "/list/1/deep/0/0", HPX_OK, HPX_JSON_STRING, "x" },
		{ doc, "/esc", HPX_OK, HPX_JSON_STRING, "\xc3\xa9\n" },
		{ doc, "/", HPX_OK, HPX_JSON_STRING, "empty" },
		{ doc, "/none", HPX_OK, HPX_JSON_LITERAL, "null" },
		{ "\"root\"", "", HPX_OK, HPX_JSON_STRING, "root" },
		{ " 7 ", "", HPX_OK, HPX_JSON_NUMBER, "7" },
		{ "\"\"", "", HPX_OK, HPX_JSON_STRING, "" },
		{ doc, "", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list/2", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list/00", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list/-", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/id/0", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/ID", HPX_NOT_FOUND, 0, NULL },
		{ doc, "id", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/a~1b/~", HPX_NOT_FOUND, 0, NULL },
		{ "1", "/0", HPX_NOT_FOUND, 0, NULL },
		{ "[]", "/0", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/big", HPX_TOO_LARGE, 0, NULL },
		{ doc, "/long", HPX_TOO_LARGE, 0, NULL },
		{ "", "/id", HPX_INVALID, 0, NULL },
		{ "{\"id\":1}}", "/id", HPX_INVALID, 0, NULL },
		{ "{\"id\":1,\"id\":2}", "/id", HPX_INVALID, 0, NULL },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_json_scalar got = { HPX_JSON_OBJECT, HPX_SPAN_INIT("untouched") };
		struct hpx_arena arena;
		hpx_arena_init(&arena, 4096);
		enum hpx_status status = hpx_json_lookup(hpx_span_of(rows[i].doc), hpx_span_of(rows[i].pointer),
							 8, &arena, &got);
		if (status != rows[i].status)
			fail_msg("%s: got %s, want %s", rows[i].pointer, hpx_status_name(status),
				 hpx_status_name(rows[i].status));
		assert_int_equal(got.kind, status == HPX_OK ? rows[i].kind : HPX_JSON_OBJECT);
		assert_span(got.text, status == HPX_OK ? rows[i].text : "untouched");
		hpx_arena_done(&arena);
	}
}

static void deep_and_full(void **state)
{
	static char body[200000];
	struct hpx_json_scalar got;
	struct hpx_arena arena;
	(void)state;
	memset(body, '[', sizeof(body));
	hpx_arena_init(&arena, 0);
	assert_status(hpx_json_lookup(hpx_span(body, sizeof(body)), HPX_SPAN("/0"), 8, &arena, &got), HPX_INVALID);
	assert_status(hpx_json_lookup(HPX_SPAN("[1]"), HPX_SPAN("/0"), 8, &arena, &got), HPX_NOMEM);
	hpx_arena_done(&arena);
}

static void amounts(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} rows[] = {
		{ "10", "10.00", true },
		{ "10", "1e1", true },
		{ "10.50", "10.5", true },
		{ "+10", "10", true },
		{ "010.00", "10", true },
		{ " 10 ", "10\t", true },
		{ "0", "-0.00", true },
		{ "00", "0", true },
		{ "-5", "-5.0", true },
		{ "1000000", "1E6", true },
		{ "0.001", "1e-3", true },
		{ "0.1", "0.10000000000000000000", true },
		{ "-007.5", "-7.50", true },
		{ "00.5", "0.5", true },
		{ "12345678901234567890.01", "1234567890123456789001e-2", true },
		{ "120.5", "1.205e2", true },
		{ "0e99", "0", true },
		{ "10", "10.01", false },
		{ "5", "-5", false },
		{ "10", "100", false },
		{ "1", "0.1", false },
		{ "12345678901234567890.01", "12345678901234567890.02", false },
		{ "9007199254740993", "9007199254740992", false },
		{ "0.1", "0.10000000000000000001", false },
		{ "12", "21", false },
		{ "1.23", "12.3", false },
		/* What is no amount equals nothing, not even itself. */
		{ "", "", false },
		{ "abc", "abc", false },
		{ "1,000", "1,000", false },
		{ "1.", "1.", false },
		{ ".5", ".5", false },
		{ "--1", "--1", false },
		{ "+-1", "+-1", false },
		{ "1 0", "1 0", false },
		{ "EUR 1", "EUR 1", false },
		{ "0x10", "0x10", false },
		{ "1e", "1e", false },
		{ "+", "+", false },
		{ "NaN", "NaN", false },
		{ "-", "-", false },
		{ "1e1000001", "1e1000001", false },
		{ "1e99999999999999999999", "1e99999999999999999998", false },
		{ "1e1000000", "1e1000000", true },
		{ "1e-1000000", "10e-1000001", true },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span a = hpx_span_of(rows[i].a), b = hpx_span_of(rows[i].b);
		if (hpx_amount_eq(a, b) != rows[i].equal || hpx_amount_eq(b, a) != rows[i].equal)
			fail_msg("%s and %s: want %s", rows[i].a, rows[i].b, rows[i].equal ? "equal" : "not equal");
	}
	assert_false(hpx_amount_eq(hpx_span(NULL, 0), hpx_span(NULL, 0)));
}

static void names(void **state)
{
	static const char *const want[] = { "applied", "declined", "not_applied", "not_yet", "unclear", "?" };
	(void)state;
	for (unsigned i = 0; i < COUNT(want); i++)
		assert_string_equal(hpx_ruling_name((enum hpx_ruling)i), want[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(every_status),
		cmocka_unit_test(bodies),
		cmocka_unit_test(long_values),
		cmocka_unit_test(lookups),
		cmocka_unit_test(deep_and_full),
		cmocka_unit_test(amounts),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
