/* Shows the reports of given results: the table to the letter, JSON that parses and
 * says the same, XML that is well formed whatever an API answers, and no cookie in any
 * of them. */
#include "../test.h"

#include <jansson.h>

#include "fake_run.h"
#include "verify/verify_report.h"

static struct hpx_verify run;
static struct hpx_verify_result result;

static size_t place(const char *name)
{
	const struct hpx_row *row = hpx_row_by_name(hpx_span_of(name));

	assert_non_null(row);
	return (size_t)(row - hpx_rows);
}

static struct hpx_row_result *find(const char *name, enum hpx_row_verdict verdict,
				   const char *expected, const char *came)
{
	struct hpx_row_result *row_result = &result.rows[place(name)];

	row_result->verdict = verdict;
	row_result->tried = true;
	snprintf(row_result->expected, sizeof(row_result->expected), "%s", expected);
	snprintf(row_result->came, sizeof(row_result->came), "%s", came);
	return row_result;
}

static void make_exchanges(void)
{
	static const struct hpx_field fields[] = {
		{ HPX_SPAN_INIT("Content-Type"), HPX_SPAN_INIT("application/json") },
		{ HPX_SPAN_INIT("Set-Cookie"), HPX_SPAN_INIT("session=sesame") },
	};

	for (unsigned i = 0; i < FAKE_RUN_EXCHANGES; i++)
		run.exchanges[i] = (struct hpx_verify_exchange){
			.number = i + 1, .row = "retry", .end = HPX_EXCHANGE_ANSWERED, .began_ms = i, .took_ms = 5, .key = "k-1", .status = 201, .request_head = HPX_SPAN("POST /payments HTTP/1.1\r\n\r\n"), .request_body = HPX_SPAN("{\"amount\":5}"), .request_body_bytes = 12, .fields = fields, .field_count = 2, .body = HPX_SPAN("{\"id\":\"pay_1\"}"), .body_bytes = 14
		};
	run.exchanges[1].body = HPX_SPAN("\x89PNG\xff\x00\x01");
	run.exchanges[1].body_bytes = 7;
	run.exchanges[2] = (struct hpx_verify_exchange){ .number = 3, .row = "cut_head", .end = HPX_EXCHANGE_CUT, .cut = HPX_CUT_HEAD };
}

static int make_up(void **state)
{
	(void)state;
	run = (struct hpx_verify){ .dialect = HPX_DIALECT_IETF };
	run.spec.host = HPX_SPAN("api.example");
	run.spec.port = 8080;
	run.spec.seed = 7;
	run.spec.dialect = HPX_DIALECT_IETF;
	run.spec.effects_path = HPX_SPAN("/count");
	run.spec.requests[HPX_REQUEST_main].method = HPX_SPAN("POST");
	run.spec.requests[HPX_REQUEST_main].path = HPX_SPAN("/payments");
	make_exchanges();
	result.rows = calloc(hpx_row_count, sizeof(*result.rows));
	for (size_t i = 0; i < hpx_row_count; i++)
		result.rows[i].verdict = HPX_ROW_SKIPPED;
	find("first", HPX_ROW_HOLDS, "2xx, and one effect", "201 {\"id\":\"pay_1\"}; 1 effect");
	struct hpx_row_result *broken = find("retry", HPX_ROW_BROKEN, "the first answer",
					     "the retry (#2) was answered 200 <b>\"no\"</b> & \x01\xff\x1b[31m caf\xc3\xa9; the answer (#1) was 201");
	broken->exchanges[0] = 1;
	broken->exchanges[1] = 2;
	broken->exchange_count = 2;
	broken->took_ms = 1250;
	find("retry_cookie", HPX_ROW_NOT_APPLICABLE, "", "the answer sets no cookie");
	find("retry_marker", HPX_ROW_BROKEN, "Idempotent-Replayed: true", "it does not say so");
	find("cut_head", HPX_ROW_UNDECIDED, "2xx", "the run's 20 requests are used up");
	hpx_verify_conclude(&result, run.dialect);
	return 0;
}

static int forget(void **state)
{
	(void)state;
	hpx_verify_result_done(&result);
	return 0;
}

/* ---- the guarantees ---- */

static void test_conclusion(void **state)
{
	(void)state;
	assert_false(result.holds);
	assert_int_equal(result.guarantees[0], HPX_ROW_HOLDS);
	assert_int_equal(result.guarantees[2], HPX_ROW_NOT_APPLICABLE);
	assert_int_equal(result.guarantees[4], HPX_ROW_BROKEN);
	assert_int_equal(result.guarantees[5], HPX_ROW_NOT_APPLICABLE);
	assert_int_equal(result.guarantees[8], HPX_ROW_UNDECIDED);
}

/* An advised row fails nothing, unless the dialect promises it. */
static void test_advice(void **state)
{
	(void)state;
	find("retry", HPX_ROW_HOLDS, "", "");
	find("cut_head", HPX_ROW_HOLDS, "", "");
	hpx_verify_conclude(&result, HPX_DIALECT_IETF);
	assert_true(result.holds);
	assert_int_equal(result.guarantees[0], HPX_ROW_HOLDS);
	hpx_verify_conclude(&result, HPX_DIALECT_STRIPE);
	assert_false(result.holds);
	assert_int_equal(result.guarantees[0], HPX_ROW_BROKEN);
}

/* A crash that doubles an effect breaks the reservation too. */
/* A batch that was executed once, and of which one got a server error. */
static void test_other_guarantee(void **state)
{
	struct hpx_row_result *row_result = find("at_once_2", HPX_ROW_BROKEN, "", "");

	(void)state;
	row_result->blamed = 1u << HPX_GUARANTEE_STUCK;
	row_result->why = "one is told something else";
	hpx_verify_conclude(&result, HPX_DIALECT_IETF);
	assert_int_equal(result.guarantees[2], HPX_ROW_HOLDS);
	assert_int_equal(result.guarantees[HPX_GUARANTEE_STUCK], HPX_ROW_BROKEN);
	assert_false(result.holds);
	assert_string_equal(hpx_row_why(&hpx_rows[place("at_once_2")], row_result),
			    "one is told something else");
	assert_string_equal(hpx_row_why(&hpx_rows[place("at_once_2")], &result.rows[0]),
			    hpx_rows[place("at_once_2")].why);
}

/* Two effects do not tell whether the key was reserved. */
static void test_second_guarantee(void **state)
{
	struct hpx_row_result *row_result = find("crash_once", HPX_ROW_BROKEN, "", "");

	(void)state;
	hpx_verify_conclude(&result, HPX_DIALECT_IETF);
	assert_int_equal(result.guarantees[1], HPX_ROW_UNDECIDED);
	assert_int_equal(result.guarantees[2], HPX_ROW_BROKEN);
	row_result->verdict = HPX_ROW_HOLDS;
	hpx_verify_conclude(&result, HPX_DIALECT_IETF);
	assert_int_equal(result.guarantees[1], HPX_ROW_HOLDS);
}

/* ---- the table ---- */

static const char table_wanted[] =
	"POST http://api.example:8080/payments\n"
	"dialect: ietf; effects are counted; 3 requests; seed 7\n"
	"\n"
	"the request and its retries\n"
	"  first              holds      a first request is executed\n"
	"  retry              broken     a retry gets the first answer, and nothing\n"
	"                                happens again\n"
	"      expected  the first answer\n"
	"      came      the retry was answered 200; the answer was 201, and whoever\n"
	"                reads this finds the line ended in time\n"
	"      why       The customer who presses the button again pays again, or is\n"
	"                shown another answer than the one that counts.\n"
	"      see       #1 #2\n"
	"\n"
	"cut off by the client\n"
	"  cut_head           undecided  cut off after the head, a retry is done, once\n"
	"      expected  2xx\n"
	"      came      the run's 20 requests are used up\n"
	"      why       A lost connection leaves the key locked, and the payment cannot\n"
	"                be made at all.\n"
	"\n"
	"manners\n"
	"  retry_marker       broken     a replay says that it is one\n"
	"                                (Idempotent-Replayed: true)\n"
	"      expected  Idempotent-Replayed: true\n"
	"      came      it does not say so\n"
	"      why       Nobody can tell from a log whether a payment was made or only\n"
	"                told again.\n"
	"      advice    good manners; this row does not fail the run\n"
	"\n"
	"guarantees\n"
	"  0. the contract: keys are checked, new requests work   holds\n"
	"  1. nothing is done before its key is reserved durably  not judged\n"
	"  2. nothing happens twice                               not judged\n"
	"  3. an answer that was seen is kept                     not judged\n"
	"  4. a replay is the answer itself                       broken\n"
	"  5. nobody gets the answer to another request           not judged\n"
	"  6. a stale attempt can write nothing                   not observable\n"
	"  7. without its store nothing is done                   not observable\n"
	"  8. nothing is stuck, nothing is dropped                undecided\n"
	"Guarantees 6 and 7 cannot be observed from outside.\n"
	"\n";

/* What a report writes, as text; the caller's. */
static char *written(void (*write)(FILE *out), size_t *ret_len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	assert_non_null(out);
	write(out);
	fclose(out);
	return text;
}

static void write_table(FILE *out)
{
	hpx_report_table(&run, &result, false, false, out);
}

static void write_table_of_all(FILE *out)
{
	hpx_report_table(&run, &result, true, true, out);
}

static void test_table(void **state)
{
	size_t len;
	char summary[256];

	(void)state;
	find("retry", HPX_ROW_BROKEN, "the first answer",
	     "the retry was answered 200; the answer was 201, and whoever reads this finds the line ended in time");
	char *text = written(write_table, &len);
	snprintf(summary, sizeof(summary),
		 "not good: 1 holds, 2 broken, 1 undecided, 1 not applicable, %zu skipped (1 only advice)\n"
		 "--all says what the rows that are not applicable lack\n",
		 hpx_row_count - 5);
	assert_true(len > sizeof(table_wanted));
	assert_span(hpx_span(text, sizeof(table_wanted) - 1), table_wanted);
	assert_span(hpx_span(text + sizeof(table_wanted) - 1, len - sizeof(table_wanted) + 1), summary);
	free(text);
}

/* What was not tried is told of once; with all, a line each. */
static void test_table_untried(void **state)
{
	static const char why[] = "not tried: the run's 20 requests are used up";
	size_t len;

	(void)state;
	find("cut_head", HPX_ROW_UNDECIDED, "", why)->tried = false;
	char *text = written(write_table, &len);
	assert_null(strstr(text, "cut_head"));
	assert_non_null(strstr(text, "(1 only advice)\nnot tried: the run's 20 requests are used up\n"));
	free(text);
	text = written(write_table_of_all, &len);
	assert_non_null(strstr(text, "undecided  \033[0mnot tried\n"));
	free(text);
}

/* With all: the rows that were not judged, with their reasons, and colour. */
static void test_table_of_all(void **state)
{
	size_t len;

	(void)state;
	char *text = written(write_table_of_all, &len);
	assert_non_null(strstr(text, "retry_cookie       not applicable: the answer sets no cookie"));
	assert_non_null(strstr(text, "tenants            skipped"));
	assert_non_null(strstr(text, "      \033[2mcame      \033[0m201 {\"id\":\"pay_1\"}; 1 effect"));
	assert_non_null(strstr(text, "\033[32mholds"));
	free(text);
}

/* ---- JSON ---- */

static void write_json(FILE *out)
{
	assert_status(hpx_report_json(&run, &result, out), HPX_OK);
}

static const char *text_at(json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static void test_json(void **state)
{
	size_t len;

	(void)state;
	char *text = written(write_json, &len);
	json_t *json = json_loadb(text, len, 0, NULL);
	assert_non_null(json);
	assert_string_equal(text_at(json, "url"), "http://api.example:8080/payments");
	assert_string_equal(text_at(json, "dialect"), "ietf");
	assert_true(json_is_false(json_object_get(json, "holds")));
	json_t *rows = json_object_get(json, "rows");
	assert_int_equal(json_array_size(rows), hpx_row_count);
	json_t *retry = json_array_get(rows, place("retry"));
	assert_string_equal(text_at(retry, "verdict"), "broken");
	assert_string_equal(text_at(retry, "weight"), "required");
	assert_int_equal(json_integer_value(json_array_get(json_object_get(retry, "exchanges"), 1)), 2);
	assert_non_null(strstr(text_at(retry, "came"), "\xef\xbf\xbd"));
	json_t *marker = json_array_get(rows, place("retry_marker"));
	assert_string_equal(text_at(marker, "weight"), "advised");
	assert_string_equal(text_at(json_array_get(rows, place("retry_cookie")), "verdict"),
			    "not_applicable");
	json_t *guarantees = json_object_get(json, "guarantees");
	assert_int_equal(json_array_size(guarantees), HPX_GUARANTEE_MAX + 1);
	assert_string_equal(text_at(json_array_get(guarantees, 6), "verdict"), "not_observable");
	/* Those that a row cites, and no other. */
	assert_int_equal(json_array_size(json_object_get(json, "exchanges")), 2);
	assert_null(strstr(text, "sesame"));
	json_decref(json);
	free(text);
}

static void write_log(FILE *out)
{
	assert_status(hpx_report_log(&run, out), HPX_OK);
}

static void test_log(void **state)
{
	static const char *const ends[] = { "answered", "answered", "cut" };
	struct hpx_span line;
	size_t len;
	size_t count = 0;

	(void)state;
	char *text = written(write_log, &len);
	struct hpx_span rest = hpx_span(text, len);
	while (hpx_span_split(&rest, '\n', &line) && line.len > 0) {
		json_t *json = json_loadb(line.ptr, line.len, 0, NULL);

		assert_non_null(json);
		assert_true(count < FAKE_RUN_EXCHANGES);
		assert_int_equal(json_integer_value(json_object_get(json, "number")), count + 1);
		assert_string_equal(text_at(json, "end"), ends[count]);
		json_t *answer = json_object_get(json, "answer");
		if (count == 0)
			assert_string_equal(text_at(answer, "body"), "{\"id\":\"pay_1\"}");
		if (count == 1)
			assert_string_equal(text_at(answer, "body_base64"), "iVBOR/8AAQ==");
		if (count == 2)
			assert_string_equal(text_at(json, "cut"), "head");
		json_decref(json);
		count++;
	}
	assert_int_equal(count, FAKE_RUN_EXCHANGES);
	assert_null(strstr(text, "sesame"));
	free(text);
}

/* ---- JUnit ---- */

static void write_junit(FILE *out)
{
	assert_status(hpx_report_junit(&run, &result, out), HPX_OK);
}

/* The name of a tag that opens or closes. */
static struct hpx_span tag_name(struct hpx_span tag)
{
	return hpx_span_first(tag, hpx_span_index(tag, ' '));
}

/* Well formed, as far as our own elements go: each that is opened is closed in
 * order, and no byte stands in it that XML does not have. */
static void assert_well_formed(struct hpx_span text)
{
	struct hpx_span open[8];
	size_t depth = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		assert_true(c >= 0x20 || c == '\n');
	}
	for (size_t at = hpx_span_index(text, '<'); at < text.len; at = hpx_span_index(text, '<')) {
		text = hpx_span_skip(text, at + 1);
		struct hpx_span tag = hpx_span_first(text, hpx_span_index(text, '>'));

		assert_int_equal(hpx_span_index(tag, '<'), tag.len);
		if (tag.ptr[0] == '?' || tag.ptr[tag.len - 1] == '/')
			continue;
		if (tag.ptr[0] != '/') {
			assert_true(depth < 8);
			open[depth++] = tag_name(tag);
			continue;
		}
		assert_true(depth > 0);
		assert_true(hpx_span_eq(open[--depth], hpx_span_skip(tag, 1)));
	}
	assert_int_equal(depth, 0);
}

static void test_junit(void **state)
{
	char counts[128];
	size_t len;

	(void)state;
	char *text = written(write_junit, &len);
	assert_well_formed(hpx_span(text, len));
	snprintf(counts, sizeof(counts), "tests=\"%zu\" failures=\"2\" errors=\"0\" skipped=\"%zu\"",
		 hpx_row_count, hpx_row_count - 4);
	assert_non_null(strstr(text, counts));
	assert_non_null(strstr(text, "name=\"retry\" time=\"1.250\">\n      <failure type=\"broken\""));
	assert_non_null(strstr(text, "200 &lt;b&gt;&quot;no&quot;&lt;/b&gt; &amp; ???[31m caf\xc3\xa9;"));
	assert_non_null(strstr(text, "<skipped message=\"the answer sets no cookie\"/>"));
	assert_non_null(strstr(text, "<system-out>advice (broken)"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_conclusion, make_up, forget),
		cmocka_unit_test_setup_teardown(test_advice, make_up, forget),
		cmocka_unit_test_setup_teardown(test_other_guarantee, make_up, forget),
		cmocka_unit_test_setup_teardown(test_second_guarantee, make_up, forget),
		cmocka_unit_test_setup_teardown(test_table, make_up, forget),
		cmocka_unit_test_setup_teardown(test_table_untried, make_up, forget),
		cmocka_unit_test_setup_teardown(test_table_of_all, make_up, forget),
		cmocka_unit_test_setup_teardown(test_json, make_up, forget),
		cmocka_unit_test_setup_teardown(test_log, make_up, forget),
		cmocka_unit_test_setup_teardown(test_junit, make_up, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
