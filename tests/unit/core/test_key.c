/* Shows which field values are keys, that both spellings of a key are one, and
 * that a refusal says what to mend. */
#include "../test.h"

#include <jansson.h>

#include "core/operation.h"

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X250 X50 X50 X50 X50 X50

struct row {
	struct hpx_span value;
	const char *key;    /* NULL: refused */
	const char *strict; /* the same in strict mode */
};

#define ROW(value, key, strict) \
	{ \
		HPX_SPAN_INIT(value), key, strict \
	}
static const struct row rows[] = {
	/* Both spellings of one key; strict turns the bare form off. */
	ROW("k", "k", NULL),
	ROW("\"k\"", "k", "k"),
	ROW("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324", NULL),
	ROW("\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "8e03978e-40d5-43dd-bc93-6894a57f9324",
	    "8e03978e-40d5-43dd-bc93-6894a57f9324"),
	ROW("a;b=c", "a;b=c", NULL),
	ROW("a\\b", "a\\b", NULL),
	ROW("'k'", "'k'", NULL),
	ROW("  k ", "k", NULL),
	ROW(" \"k\"  ", "k", "k"),
	/* Inside quotes: space and comma are the key's own, two escapes. */
	ROW("\"a b, c\"", "a b, c", "a b, c"),
	ROW("\" \"", " ", " "),
	ROW("\"\\\"\\\\\"", "\"\\", "\"\\"),
	ROW("\"a\\n\"", NULL, NULL),
	ROW("\"\\u0041\"", NULL, NULL),
	ROW("\"a", NULL, NULL),
	ROW("\"", NULL, NULL),
	ROW("\"a\\", NULL, NULL),
	ROW("\"a\\\"", NULL, NULL),
	/* No parameters, no second Item. */
	ROW("\"k\";a=1", NULL, NULL),
	ROW("\"k\";", NULL, NULL),
	ROW("\"k\" ;a", NULL, NULL),
	ROW("\"a\", \"b\"", NULL, NULL),
	ROW("\"a\"b", NULL, NULL),
	ROW("a, b", NULL, NULL),
	ROW("a,b", NULL, NULL),
	ROW("a b", NULL, NULL),
	ROW("a\"b", NULL, NULL),
	ROW("k\"", NULL, NULL),
	/* Empty, in every spelling (what others get wrong, 17). */
	ROW("", NULL, NULL),
	ROW("   ", NULL, NULL),
	ROW("\"\"", NULL, NULL),
	/* Printable ASCII only. */
	ROW("k\t", NULL, NULL),
	ROW("\tk", NULL, NULL),
	ROW("k\0k", NULL, NULL),
	ROW("\"k\0\"", NULL, NULL),
	ROW("\"k\x7f\"", NULL, NULL),
	ROW("k\xc3\xa9", NULL, NULL),
	ROW("\"k\xc3\xa9\"", NULL, NULL),
	ROW("\"a\tb\"", NULL, NULL),
	ROW("~!@#$%^&*()_+", "~!@#$%^&*()_+", NULL),
	/* 255 bytes after decoding, not one more. */
	ROW(X250 "12345", X250 "12345", NULL),
	ROW(X250 "123456", NULL, NULL),
	ROW("\"" X250 "12345\"", X250 "12345", X250 "12345"),
	ROW("\"" X250 "1234\\\"\"", X250 "1234\"", X250 "1234\""),
	ROW("\"" X250 "123456\"", NULL, NULL),
};

static void check(struct hpx_span value, bool strict, const char *want)
{
	struct hpx_key key = { .len = 999 };
	const char *reason = NULL;
	enum hpx_status status = hpx_key_parse(value, strict, &key, &reason);

	if (status != (want ? HPX_OK : HPX_INVALID))
		fail_msg("<%.*s> strict %d: got %s, want %s", HPX_SPAN_ARG(value), strict,
			 hpx_status_name(status), want ? "OK" : "INVALID");
	if (want != NULL) {
		assert_span(hpx_span(key.bytes, key.len), want);
		assert_null(reason);
	} else {
		assert_int_equal(key.len, 999);
		assert_non_null(reason);
		assert_true(strlen(reason) > 20);
	}
}

static void every_row_is_judged(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check(rows[i].value, false, rows[i].key);
		check(rows[i].value, true, rows[i].strict);
	}
}

struct demand_row {
	const char *key;
	enum hpx_key_fault fault; /* where all is demanded */
};

static const struct demand_row demand_rows[] = {
	{ "8e03978e-40d5-43dd-bc93-6894a57f9324", HPX_KEY_FAULT_NONE },
	{ "01ARZ3NDEKTSV4RRFFQ69G5FAV", HPX_KEY_FAULT_NONE },
	{ "123456789012345", HPX_KEY_FAULT_SHORT },
	{ "123456789012345x", HPX_KEY_FAULT_NONE },
	/* Addresses with a dotted domain, wherever they stand. */
	{ "jane.doe@example.com", HPX_KEY_FAULT_EMAIL },
	{ "order-17-jane+x@mail.example.co.uk-2", HPX_KEY_FAULT_EMAIL },
	{ "a@b.example.....", HPX_KEY_FAULT_EMAIL },
	{ "someone@localhost", HPX_KEY_FAULT_NONE },
	{ "order@17.5-and-so-on", HPX_KEY_FAULT_NONE },
	{ "@example.com-order-1", HPX_KEY_FAULT_NONE },
	{ "order-jane@.example.com", HPX_KEY_FAULT_NONE },
	{ "ends-with-an-at@", HPX_KEY_FAULT_NONE },
	{ "order-no-tld@example.", HPX_KEY_FAULT_NONE },
	/* Card numbers, alone or between other characters. */
	{ "4111111111111111", HPX_KEY_FAULT_CARD },
	{ "order-4111111111111111-1", HPX_KEY_FAULT_CARD },
	{ "pay 378282246310005 again", HPX_KEY_FAULT_CARD },
	{ "order:6304000000000000", HPX_KEY_FAULT_CARD },
	{ "card-4222222222222", HPX_KEY_FAULT_CARD },
	{ "4111111111111112", HPX_KEY_FAULT_NONE },
	{ "order-422222222222", HPX_KEY_FAULT_NONE },
	{ "6304000000000000000", HPX_KEY_FAULT_CARD }, /* 19 digits */
	{ "63040000000000000000", HPX_KEY_FAULT_NONE },
	/* Not within hexadecimal digits, and no times of today. */
	{ "ab4111111111111111cd", HPX_KEY_FAULT_NONE },
	{ "order-1763400000006", HPX_KEY_FAULT_NONE },
	{ "order-0000000000000000", HPX_KEY_FAULT_NONE },
};

static enum hpx_key_fault judge(const char *text, const struct hpx_key_demand *demand)
{
	struct hpx_key key = { .len = strlen(text) };

	memcpy(key.bytes, text, key.len);
	return hpx_key_judge(&key, demand);
}

static void demands_on_new_keys_are_judged(void **state)
{
	static const struct hpx_key_demand all = { 16, 255, HPX_KEY_EMAIL | HPX_KEY_CARD };
	static const struct hpx_key_demand none = { 1, 0, 0 };
	(void)state;

	for (size_t i = 0; i < sizeof(demand_rows) / sizeof(demand_rows[0]); i++) {
		const struct demand_row *row = &demand_rows[i];
		enum hpx_key_fault fault = judge(row->key, &all);
		if (fault != row->fault)
			fail_msg("<%s>: got %d, want %d", row->key, fault, row->fault);
		assert_int_equal(judge(row->key, &none), HPX_KEY_FAULT_NONE);
	}
}

static void every_prefix_and_every_byte_is_survived(void **state)
{
	static const char sample[] = "\"a\\\"b\\\\c d\" ";
	const char *reason;
	struct hpx_key key;
	(void)state;
	for (size_t n = 0; n < sizeof(sample); n++)
		hpx_key_parse(hpx_span(sample, n), n % 2, &key, &reason);
	for (int c = 0; c < 256; c++) {
		char quoted[] = { '"', (char)c, '"' };
		bool good = c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
		enum hpx_status status = hpx_key_parse(hpx_span(quoted, 3), true, &key, &reason);
		if (status != (good ? HPX_OK : HPX_INVALID))
			fail_msg("byte %d: got %s", c, hpx_status_name(status));
	}
}

/* What RFC 9651 says about this case, and our own bounds: 1 to 255 bytes, one
 * field line, a String. */
static void check_case(json_t *test)
{
	json_t *raw = json_object_get(test, "raw");
	json_t *value = json_array_get(json_object_get(test, "expected"), 0);
	json_t *line = json_array_get(raw, 0);
	struct hpx_key key;
	const char *reason;

	if (json_array_size(raw) != 1)
		return;
	bool must_fail = json_is_true(json_object_get(test, "must_fail")) ||
			 !json_is_string(value) || json_string_length(value) == 0 ||
			 json_string_length(value) > HPX_KEY_MAX;
	enum hpx_status status = hpx_key_parse(
		hpx_span(json_string_value(line), json_string_length(line)), true, &key, &reason);
	if (status != (must_fail ? HPX_INVALID : HPX_OK))
		fail_msg("%s: got %s, want %s", json_string_value(json_object_get(test, "name")),
			 hpx_status_name(status), must_fail ? "INVALID" : "OK");
	if (status == HPX_OK)
		assert_span(hpx_span(key.bytes, key.len), json_string_value(value));
}

static void the_published_cases_are_judged_as_they_say(void **state)
{
	static const struct {
		const char *file;
		size_t count;
	} files[] = { { "string.json", 14 }, { "string-generated.json", 256 }, { "item.json", 5 }, { "token.json", 1 } };
	const char *corpora = test_corpora();
	char path[4096];
	json_error_t error;
	(void)state;

	if (corpora == NULL)
		skip();
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		json_t *test;
		size_t at;
		snprintf(path, sizeof(path), "%s/structured-fields/%s", corpora, files[i].file);
		json_t *cases = json_load_file(path, JSON_ALLOW_NUL, &error);
		if (cases == NULL)
			fail_msg("%s: %s", path, error.text);
		if (json_array_size(cases) < files[i].count)
			fail_msg("%s: got %zu cases, want %zu", path, json_array_size(cases),
				 files[i].count);
		json_array_foreach(cases, at, test)
			check_case(test);
		json_decref(cases);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_judged),
		cmocka_unit_test(demands_on_new_keys_are_judged),
		cmocka_unit_test(every_prefix_and_every_byte_is_survived),
		cmocka_unit_test(the_published_cases_are_judged_as_they_say),
	};
	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
