/* Shows that a caller who breaks the header's contract is told so, by the result
 * and in words, and that nothing happens. Only the installed header is included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hapax/hapax.h"

static const unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE] = { 1 };
static char problem[HAPAX_PROBLEM_SIZE];

#define assert_told(call, want) \
	do { \
		memset(problem, 0, sizeof(problem)); \
		enum hapax_result got_ = (call); \
		if (got_ != (want) || problem[0] == '\0') \
			fail_msg("%s: got %s (\"%s\"), want %s", #call, \
				 hapax_result_name(got_), problem, \
				 hapax_result_name(want)); \
	} while (0)

static struct hapax *open_memory(void)
{
	struct hapax *hapax = NULL;

	assert_int_equal(hapax_open("memory:", NULL, &hapax, problem), HAPAX_OK);
	assert_string_equal(problem, "");
	return hapax;
}

static const struct hapax_begin good = {
	.size = sizeof(good),
	.tenant = "tenant",
	.scope = "POST /payments",
	.key = "key",
	.fingerprint = fingerprint,
};

static void opening(void **state)
{
	struct hapax_options options = { .size = sizeof(options), .timeout_ms = -1 };
	struct hapax *hapax = NULL;

	(void)state;
	assert_told(hapax_open(NULL, NULL, &hapax, problem), HAPAX_MISUSE);
	assert_told(hapax_open("memory:", NULL, NULL, problem), HAPAX_MISUSE);
	assert_told(hapax_open("memory:", &options, &hapax, problem), HAPAX_MISUSE);
	options.timeout_ms = INT64_MAX;
	assert_told(hapax_open("memory:", &options, &hapax, problem), HAPAX_MISUSE);
	assert_told(hapax_open("mysql://x", NULL, &hapax, problem), HAPAX_INVALID);
	assert_told(hapax_on_sqlite(NULL, &hapax, problem), HAPAX_MISUSE);
	assert_told(hapax_on_postgres(NULL, &hapax, problem), HAPAX_MISUSE);
	assert_told(hapax_install_sqlite(NULL, problem), HAPAX_MISUSE);
	assert_told(hapax_install_postgres(NULL, problem), HAPAX_MISUSE);
	assert_null(hapax);
	hapax_close(NULL);
	hapax_operation_clear(NULL);
}

static void beginning(void **state)
{
	struct hapax *hapax = open_memory();
	struct hapax_operation operation = { .size = sizeof(operation), .attempt = 77 };
	struct hapax_begin begin = good;

	(void)state;
	assert_told(hapax_begin(NULL, &begin, &operation, problem), HAPAX_MISUSE);
	assert_told(hapax_begin(hapax, NULL, &operation, problem), HAPAX_MISUSE);
	assert_told(hapax_begin(hapax, &begin, NULL, problem), HAPAX_MISUSE);
	begin.tenant = NULL;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin = good;
	begin.scope = NULL;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin = good;
	begin.key = NULL;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin.key = "";
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_INVALID);
	begin = good;
	begin.fingerprint = NULL;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin = good;
	begin.lease_ms = -1;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin.lease_ms = INT64_MAX;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin = good;
	begin.retention_ms = INT64_MAX;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	begin = good;
	begin.on_lost = (enum hapax_on_lost)9;
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	assert_int_equal(operation.attempt, 77);
	/* No problem is wanted: that is fine. */
	assert_int_equal(hapax_begin(hapax, NULL, &operation, NULL), HAPAX_MISUSE);
	assert_int_equal(hapax_begin(hapax, &good, &operation, NULL), HAPAX_OK);
	assert_int_equal(operation.attempt, 1);
	hapax_operation_clear(&operation);
	hapax_close(hapax);
}

static void writing(void **state)
{
	struct hapax *hapax = open_memory();
	struct hapax_operation operation = { .size = sizeof(operation) };
	struct hapax_answer answer = { .size = sizeof(answer), .status = 200 };
	struct hapax_job job = {
		.size = sizeof(job),
		.name = "mail",
		.target = "mailer",
		.method = "POST",
		.path = "/",
	};
	char point[HAPAX_POINT_SIZE] = "untouched";
	void *data = point;
	size_t len = 7;

	(void)state;
	assert_int_equal(hapax_begin(hapax, &good, &operation, problem), HAPAX_OK);
	assert_told(hapax_complete(NULL, operation.lease, &answer, problem), HAPAX_MISUSE);
	assert_told(hapax_complete(hapax, NULL, &answer, problem), HAPAX_MISUSE);
	assert_told(hapax_complete(hapax, operation.lease, NULL, problem), HAPAX_MISUSE);
	answer.body_len = 1;
	assert_told(hapax_complete(hapax, operation.lease, &answer, problem), HAPAX_MISUSE);
	answer.body_len = 0;
	assert_told(hapax_complete(hapax, "", &answer, problem), HAPAX_INVALID);
	assert_told(hapax_fail(hapax, NULL, problem), HAPAX_MISUSE);
	assert_told(hapax_advance(hapax, operation.lease, NULL, NULL, 0, problem), HAPAX_MISUSE);
	assert_told(hapax_advance(hapax, operation.lease, "p", NULL, 1, problem), HAPAX_MISUSE);
	assert_told(hapax_advance(hapax, operation.lease, "", NULL, 0, problem), HAPAX_INVALID);
	assert_told(hapax_recovery(hapax, operation.lease, NULL, &data, &len, problem), HAPAX_MISUSE);
	assert_told(hapax_recovery(hapax, operation.lease, point, NULL, &len, problem), HAPAX_MISUSE);
	assert_told(hapax_recovery(hapax, "x", point, &data, &len, problem), HAPAX_INVALID);
	assert_string_equal(point, "untouched");
	assert_int_equal(len, 7);
	assert_told(hapax_enqueue(hapax, operation.lease, NULL, problem), HAPAX_MISUSE);
	job.target = NULL;
	assert_told(hapax_enqueue(hapax, operation.lease, &job, problem), HAPAX_MISUSE);
	job.target = "mailer";
	job.path = "send";
	assert_told(hapax_enqueue(hapax, operation.lease, &job, problem), HAPAX_INVALID);
	assert_told(hapax_renew(hapax, operation.lease, 0, problem), HAPAX_MISUSE);
	assert_told(hapax_renew(hapax, operation.lease, INT64_MAX, problem), HAPAX_MISUSE);
	assert_told(hapax_lose(hapax, NULL, problem), HAPAX_MISUSE);
	assert_told(hapax_tidy(NULL, problem), HAPAX_MISUSE);
	hapax_close(hapax);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(hapax_result_name(HAPAX_OK), "ok");
	assert_string_equal(hapax_result_name(HAPAX_UNCERTAIN), "uncertain");
	assert_string_equal(hapax_result_name((enum hapax_result)99), "?");
	assert_string_equal(hapax_result_name((enum hapax_result) - 1), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),
		cmocka_unit_test(beginning),
		cmocka_unit_test(writing),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
