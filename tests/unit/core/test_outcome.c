/* Shows what every status, said word and policy means for an attempt: the
 * table of outcomes (docs/reference/http.md), whole. */
#include "../test.h"

#include "base/bytes.h"
#include "core/operation.h"
#include "core/outcome.h"

#define A HPX_OUTCOME_ANSWERED
#define N HPX_OUTCOME_NOT_EXECUTED
#define R HPX_OUTCOME_RELEASED
#define U HPX_OUTCOME_UNKNOWN

static const char *name_of(enum hpx_outcome outcome)
{
	static const char *const names[] = { "answered", "not_executed", "released", "unknown" };
	return names[outcome];
}

/* Statuses whose outcome no policy changes. */
static void fixed_statuses(void **state)
{
	static const struct {
		unsigned status;
		bool retry_after;
		enum hpx_outcome outcome;
	} rows[] = {
		{ 200, false, A },
		{ 201, false, A },
		{ 204, false, A },
		{ 302, false, A },
		{ 304, false, A },
		{ 400, false, A },
		{ 402, false, A },
		{ 404, false, A },
		{ 409, false, A },
		{ 422, false, A },
		{ 499, false, A },
		{ 408, false, N },
		{ 425, false, N },
		{ 429, false, N },
		{ 429, true, N },
		{ 503, true, N },
		{ 401, false, R },
		{ 403, false, R },
		{ 407, false, R },
		{ 421, false, R },
		{ 502, false, U },
		{ 504, false, U },
		{ 502, true, U },
		{ 199, false, U },
		{ 600, false, U },
		{ 999, false, U },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int p = 0; p <= HPX_SERVER_ERROR_UNKNOWN; p++) {
			struct hpx_policy policy = { .server_error = (enum hpx_server_error)p };
			enum hpx_outcome got = hpx_outcome_of_answer(
				rows[i].status, rows[i].retry_after, HPX_DECLARED_NOTHING, &policy);
			if (got != rows[i].outcome)
				fail_msg("%u: got %s, want %s", rows[i].status, name_of(got),
					 name_of(rows[i].outcome));
		}
	}
}

/* FIELD 13, 14: the route says what a 5xx means. */
static void other_server_errors_follow_the_route(void **state)
{
	static const unsigned statuses[] = { 500, 501, 503, 505, 507, 599 };
	static const enum hpx_outcome by_policy[] = { N, A, U };
	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		for (int p = 0; p <= HPX_SERVER_ERROR_UNKNOWN; p++) {
			struct hpx_policy policy = { .server_error = (enum hpx_server_error)p };
			assert_int_equal(hpx_outcome_of_answer(statuses[i], false,
							       HPX_DECLARED_NOTHING, &policy),
					 by_policy[p]);
		}
}

static void what_the_upstream_says_overrides(void **state)
{
	static const unsigned statuses[] = { 200, 401, 404, 429, 500, 502, 503, 504 };
	static const struct {
		const char *word;
		enum hpx_outcome outcome;
	} rows[] = {
		{ "applied", A },
		{ "Applied", A },
		{ "not-applied", N },
		{ "unknown", U },
		{ "", U },
		{ "no idea", U },
	};
	struct hpx_policy policy = { .server_error = HPX_SERVER_ERROR_RETRY };
	(void)state;
	for (size_t s = 0; s < sizeof(statuses) / sizeof(statuses[0]); s++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			assert_int_equal(hpx_outcome_of_answer(statuses[s], true,
							       hpx_declared_parse(hpx_span_of(rows[i].word)),
							       &policy),
					 rows[i].outcome);
	assert_int_equal(hpx_declared_parse((struct hpx_span){ NULL, 0 }), HPX_DECLARED_NOTHING);
}

static void silence_depends_on_whether_a_byte_left(void **state)
{
	(void)state;
	assert_int_equal(hpx_outcome_of_silence(false), N);
	assert_int_equal(hpx_outcome_of_silence(true), U);
}

/* FIELD 8: parts of an id never run into each other. */
static void operation_ids_tell_every_part_apart(void **state)
{
	static const char *const rows[][3] = {
		{ "t", "s", "k" },
		{ "ts", "", "k" },
		{ "", "ts", "k" },
		{ "t", "sk", "" },
		{ "t2", "s", "k" },
		{ "t", "s2", "k" },
		{ "t", "s", "k2" },
	};
	struct hpx_operation_id ids[7];
	(void)state;
	for (size_t i = 0; i < 7; i++)
		assert_status(hpx_operation_id(hpx_span_of(rows[i][0]), hpx_span_of(rows[i][1]),
					       hpx_span_of(rows[i][2]), &ids[i]),
			      HPX_OK);
	for (size_t i = 0; i < 7; i++)
		for (size_t j = 0; j < 7; j++)
			assert_int_equal(hpx_operation_id_eq(&ids[i], &ids[j]), i == j);
}

static void references_and_leases_go_both_ways(void **state)
{
	struct hpx_operation_id id, back_id;
	struct hpx_token token, back_token;
	struct hpx_mark mark, back_mark;
	char text[HPX_REFERENCE_SIZE], lease[HPX_LEASE_SIZE];
	(void)state;
	assert_status(hpx_operation_id(HPX_SPAN("t"), HPX_SPAN("s"), HPX_SPAN("k"), &id), HPX_OK);
	hpx_token_make(&token);
	assert_false(hpx_token_is_void(&token));
	assert_status(hpx_mark_make(&token, &mark), HPX_OK);
	hpx_lease_print(&id, &token, lease);
	assert_true(hpx_lease_parse(hpx_span_of(lease), &back_id, &back_token));
	assert_true(hpx_token_eq(&token, &back_token));
	hpx_reference_print(&id, &mark, text);
	assert_int_equal(strlen(text), HPX_REFERENCE_LEN);
	assert_true(hpx_reference_parse(hpx_span_of(text), &back_id, &back_mark));
	assert_true(hpx_operation_id_eq(&id, &back_id));
	assert_true(hpx_mark_eq(&mark, &back_mark));
	assert_false(hpx_reference_parse(hpx_span(text, HPX_REFERENCE_LEN - 1), &back_id, &back_mark));
	text[64] = '-';
	assert_false(hpx_reference_parse(hpx_span_of(text), &back_id, &back_mark));
	text[64] = '.';
	text[3] = 'g';
	assert_false(hpx_reference_parse(hpx_span_of(text), &back_id, &back_mark));
}

/* The vector was made with sha256sum, so that SQL, C and a reader agree. */
static void a_mark_is_a_hash_of_the_first_token(void **state)
{
	struct hpx_token token = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
	struct hpx_mark mark;
	char hex[2 * HPX_MARK_SIZE + 1];
	(void)state;
	assert_status(hpx_mark_make(&token, &mark), HPX_OK);
	hpx_hex_encode(mark.bytes, sizeof(mark.bytes), hex);
	assert_string_equal(hex, "766e89244804bbec8b44ca13e3a4678a");
	assert_false(hpx_mark_is_void(&mark));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_statuses),
		cmocka_unit_test(other_server_errors_follow_the_route),
		cmocka_unit_test(what_the_upstream_says_overrides),
		cmocka_unit_test(silence_depends_on_whether_a_byte_left),
		cmocka_unit_test(operation_ids_tell_every_part_apart),
		cmocka_unit_test(references_and_leases_go_both_ways),
		cmocka_unit_test(a_mark_is_a_hash_of_the_first_token),
	};
	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
