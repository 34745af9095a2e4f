/* Shows that a client makes of every answer what tests/client/answers.json
 * says, and that a hostile body says nothing. */
#include "../test.h"

#include <jansson.h>

#include "core/retry.h"
#include "http/retry_after.h"

static const char *text_of(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name));
}

/* A row's body is a text, or an object that is sent as JSON. */
static void read_body(const json_t *row, struct hpx_retry_facts *facts)
{
	const json_t *body = json_object_get(row, "body");
	const char *type = text_of(row, "type");
	char *made = NULL;

	if (body == NULL)
		return;
	if (json_is_object(body))
		made = json_dumps(body, 0);
	const char *text = made != NULL ? made : json_string_value(body);
	assert_non_null(text);
	if (type == NULL)
		type = made != NULL ? "application/json; charset=utf-8" : "text/plain";
	hpx_retry_read_body(hpx_span_of(type), hpx_span_of(text), facts);
	free(made);
}

static struct hpx_retry_facts facts_of(const json_t *row)
{
	struct hpx_retry_facts facts = { .reached = HPX_REACHED_ANSWER, .retry_after_s = -1 };
	const json_t *headers = json_object_get(row, "headers");
	const char *lost = text_of(row, "lost");
	const char *after = text_of(headers, "Retry-After");
	const char *replayed = text_of(headers, "Idempotent-Replayed");
	uint32_t seconds;

	if (lost != NULL)
		facts.reached = strcmp(lost, "sent") == 0 ? HPX_REACHED_SILENCE : HPX_REACHED_NOBODY;
	facts.status = (unsigned)json_integer_value(json_object_get(row, "status"));
	facts.replayed = replayed != NULL && strcmp(replayed, "true") == 0;
	facts.operation = text_of(headers, "Hapax-Operation") != NULL;
	if (after != NULL && hpx_retry_after_parse(hpx_span_of(after), 0, &seconds) == HPX_OK)
		facts.retry_after_s = seconds;
	read_body(row, &facts);
	return facts;
}

static const char *const action_names[] = {
#define X(name) #name,
	HPX_RETRY_ACTION_LIST(X)
#undef X
};

/* Whether it comes out as the row says; prints both where it does not. */
static bool holds(const json_t *row)
{
	struct hpx_retry_facts facts = facts_of(row);
	struct hpx_retry_decision got = hpx_retry_decide(&facts, json_is_true(json_object_get(row, "doubt")));
	bool doubt = json_is_true(json_object_get(row, "doubt_after"));
	int64_t wait_s = json_integer_value(json_object_get(row, "wait_s"));

	if (strcmp(action_names[got.action], text_of(row, "then")) == 0 && got.doubt == doubt &&
	    got.wait_s == wait_s)
		return true;
	print_error("%s: got %s, doubt %d, %lld s; want %s, doubt %d, %lld s\n",
		    text_of(row, "says"), action_names[got.action], got.doubt,
		    (long long)got.wait_s, text_of(row, "then"), doubt, (long long)wait_s);
	return false;
}

static void test_every_case(void **state)
{
	json_error_t error;
	json_t *file = json_load_file("tests/client/answers.json", 0, &error);
	json_t *row;
	size_t i, wrong = 0;

	(void)state;
	if (file == NULL)
		fail_msg("tests/client/answers.json: %s (line %d)", error.text, error.line);
	assert_true(json_array_size(json_object_get(file, "cases")) >= 49);
	json_array_foreach(json_object_get(file, "cases"), i, row)
		wrong += !holds(row);
	json_decref(file);
	assert_int_equal(wrong, 0);
}

static const struct {
	const char *type;
	const char *body;
} hostile[] = {
	{ "application/problem+json", "" },
	{ "application/problem+json", "[\"retry\"]" },
	{ "application/problem+json", "\"retry\"" },
	{ "application/problem+json", "{\"retry\":[\"same_key\"]}" },
	{ "application/problem+json", "{\"retry\":\"same_key\",\"retry\":\"never\"}" },
	{ "application/problem+json", "{\"retry\":\"same_key\"" },
	{ "application/problem+json", "{\"error\":{\"retry\":\"same_key\"}}" },
	{ "application/json", "{\"retry\":\"same_key\"}" },
	{ "application/json", "{\"error\":[{\"retry\":\"same_key\"}]}" },
	{ "application/json", "{\"error\":\"same_key\"}" },
	{ "", "{\"retry\":\"same_key\"}" },
	{ "application/problem+jsonx", "{\"retry\":\"same_key\"}" },
};

static void test_hostile_bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		struct hpx_retry_facts facts = { .reached = HPX_REACHED_ANSWER };

		hpx_retry_read_body(hpx_span_of(hostile[i].type), hpx_span_of(hostile[i].body), &facts);
		if (facts.retry == HPX_RETRY_NONE && !facts.idempotency_error)
			continue;
		fail_msg("%s %s: got the word %d, want none", hostile[i].type, hostile[i].body,
			 facts.retry);
	}
}

static void test_deep_and_large_bodies(void **state)
{
	size_t len = HPX_RETRY_DOCUMENT_MAX + 1;
	char *body = malloc(len);
	struct hpx_retry_facts facts = { .reached = HPX_REACHED_ANSWER };
	struct hpx_span type = HPX_SPAN("application/problem+json");

	(void)state;
	assert_non_null(body);
	memset(body, '[', len);
	hpx_retry_read_body(type, hpx_span(body, len - 1), &facts);
	memset(body, ' ', len);
	memcpy(body, "{\"retry\":\"never\"}", 17);
	hpx_retry_read_body(type, hpx_span(body, len), &facts);
	assert_int_equal(facts.retry, HPX_RETRY_NONE);
	hpx_retry_read_body(type, hpx_span(body, len - 1), &facts);
	assert_int_equal(facts.retry, HPX_RETRY_NEVER);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_case),
		cmocka_unit_test(test_hostile_bodies),
		cmocka_unit_test(test_deep_and_large_bodies),
	};

	return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
