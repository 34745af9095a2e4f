/* Shows that the header, the library and the build say the same version, and that
 * programs which were built with an older or a newer header work with this library:
 * their structs are shorter or longer than its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka needs the above. */
#include <cmocka.h>

#include "hapax/hapax.h"

static char problem[HAPAX_PROBLEM_SIZE];
static const unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE] = "f";

#define assert_told(call, want) \
	do { \
		enum hapax_result got_ = (call); \
		if (got_ != (want)) \
			fail_msg("%s: got %s (\"%s\"), want %s", #call, hapax_result_name(got_), \
				 problem, hapax_result_name(want)); \
	} while (0)

static void the_version_is_one(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d.%d.%d", HAPAX_VERSION_MAJOR, HAPAX_VERSION_MINOR,
		 HAPAX_VERSION_PATCH);
	assert_string_equal(hapax_version(), text);
	assert_string_equal(HPX_VERSION, text); /* meson's */
	assert_true(HAPAX_VERSION_AT_LEAST(0, 0, 999));
	assert_true(HAPAX_VERSION_AT_LEAST(HAPAX_VERSION_MAJOR, HAPAX_VERSION_MINOR,
					   HAPAX_VERSION_PATCH));
	assert_false(HAPAX_VERSION_AT_LEAST(HAPAX_VERSION_MAJOR, HAPAX_VERSION_MINOR,
					    HAPAX_VERSION_PATCH + 1));
	assert_false(HAPAX_VERSION_AT_LEAST(HAPAX_VERSION_MAJOR + 1, 0, 0));
	assert_true(HAPAX_VERSION_CODE(1, 0, 0) > HAPAX_VERSION_CODE(0, 999, 999));
}

/* The structs as a shorter header might have had them. */
struct older_options {
	size_t size;
	int install;
};
struct older_begin {
	size_t size;
	const char *tenant;
	const char *scope;
	const char *key;
	const unsigned char *fingerprint;
};
struct older_operation {
	size_t size;
	void *memory;
	enum hapax_verdict verdict;
	unsigned attempt;
	char reference[HAPAX_LEASE_SIZE];
	char lease[HAPAX_LEASE_SIZE];
};
struct older_answer {
	size_t size;
	unsigned status;
};
struct older_request {
	size_t size;
	const char *method;
	const char *path;
};

/* Behind each struct stand bytes that are none of the library's business. */
#define GUARD "untouched"
struct guarded_operation {
	struct older_operation older;
	char guard[sizeof(GUARD)];
};

static void an_older_caller_gets_what_it_knows(void **state)
{
	struct older_options options = { .size = sizeof(options), .install = 1 };
	struct older_begin begin = { sizeof(begin), "tenant", "scope", "key", fingerprint };
	struct guarded_operation operation = { { .size = sizeof(operation.older) }, GUARD };
	struct older_answer answer = { .size = sizeof(answer), .status = 204 };
	struct older_request request = { sizeof(request), "POST", "/" };
	unsigned char print[HAPAX_FINGERPRINT_SIZE];
	struct hapax *hapax = NULL;

	(void)state;
	assert_told(hapax_fingerprint((const void *)&request, print), HAPAX_OK);
	assert_told(hapax_open("memory:", (const void *)&options, &hapax, problem), HAPAX_OK);
	assert_told(hapax_begin(hapax, (const void *)&begin, (void *)&operation, problem), HAPAX_OK);
	assert_int_equal(operation.older.verdict, HAPAX_EXECUTE);
	assert_string_equal(operation.guard, GUARD);
	assert_told(hapax_complete(hapax, operation.older.lease, (const void *)&answer, problem),
		    HAPAX_OK);
	hapax_operation_clear((void *)&operation);
	assert_int_equal(operation.older.size, sizeof(operation.older));
	assert_told(hapax_begin(hapax, (const void *)&begin, (void *)&operation, problem), HAPAX_OK);
	assert_int_equal(operation.older.verdict, HAPAX_REPLAY);
	hapax_operation_clear((void *)&operation);
	assert_string_equal(operation.guard, GUARD);
	hapax_close(hapax);
}

/* The structs as a later header might have them. */
struct newer_options {
	struct hapax_options known;
	int64_t later;
};
struct newer_begin {
	struct hapax_begin known;
	const char *later;
};
struct newer_operation {
	struct hapax_operation known;
	int64_t later;
};
struct newer_answer {
	struct hapax_answer known;
	const char *later;
};
struct newer_job {
	struct hapax_job known;
	int64_t later;
};

static void a_newer_caller_gets_what_the_library_knows(void **state)
{
	struct newer_options options = { .known = { .size = sizeof(options) } };
	struct newer_begin begin = { .known = { .size = sizeof(begin), .tenant = "tenant", .scope = "scope", .key = "key" } };
	struct newer_operation operation = { .known = { .size = sizeof(operation) } };
	struct newer_answer answer = { .known = { .size = sizeof(answer), .status = 201 } };
	struct newer_job job = { .known = { .size = sizeof(job), .name = "mail", .target = "mailer", .method = "POST", .path = "/" } };
	struct hapax *hapax = NULL;

	(void)state;
	begin.known.fingerprint = fingerprint;
	assert_told(hapax_open("memory:", &options.known, &hapax, problem), HAPAX_OK);
	assert_told(hapax_begin(hapax, &begin.known, &operation.known, problem), HAPAX_OK);
	assert_told(hapax_enqueue(hapax, operation.known.lease, &job.known, problem), HAPAX_OK);
	assert_told(hapax_complete(hapax, operation.known.lease, &answer.known, problem), HAPAX_OK);
	hapax_operation_clear(&operation.known);
	assert_told(hapax_begin(hapax, &begin.known, &operation.known, problem), HAPAX_OK);
	assert_int_equal(operation.known.answer->status, 201);
	assert_true(HAPAX_HAS(operation.known.answer, body_len));
	assert_int_equal(operation.known.answer->size, sizeof(struct hapax_answer));
	hapax_operation_clear(&operation.known);
	hapax_close(hapax);
}

/* What the library does not know is never passed over in silence. */
static void what_is_not_known_is_refused(void **state)
{
	struct newer_options options = { { .size = sizeof(options) }, 1 };
	struct newer_begin begin = { { .size = sizeof(begin), .tenant = "t", .scope = "s", .key = "k", .fingerprint = fingerprint }, "later" };
	struct newer_operation operation = { { .size = sizeof(operation) }, 1 };
	struct newer_answer answer = { { .size = sizeof(answer), .status = 201 }, "later" };
	struct newer_job job = { { .size = sizeof(job), .name = "n", .target = "t", .method = "POST", .path = "/" }, 1 };
	struct hapax *hapax = NULL;

	(void)state;
	assert_told(hapax_open("memory:", &options.known, &hapax, problem), HAPAX_MISUSE);
	assert_told(hapax_open("memory:", NULL, &hapax, problem), HAPAX_OK);
	assert_told(hapax_begin(hapax, &begin.known, &operation.known, problem), HAPAX_MISUSE);
	begin.later = NULL;
	assert_told(hapax_begin(hapax, &begin.known, &operation.known, problem), HAPAX_MISUSE);
	operation.later = 0;
	assert_told(hapax_begin(hapax, &begin.known, &operation.known, problem), HAPAX_OK);
	assert_told(hapax_complete(hapax, operation.known.lease, &answer.known, problem), HAPAX_MISUSE);
	assert_told(hapax_enqueue(hapax, operation.known.lease, &job.known, problem), HAPAX_MISUSE);
	hapax_operation_clear(&operation.known);
	hapax_close(hapax);
}

static void a_size_must_be_set(void **state)
{
	static const size_t sizes[] = { 0, 4, sizeof(size_t) - 1, sizeof(struct hapax_options) + 1, (size_t)1 << 20, SIZE_MAX };
	struct hapax_begin begin = { .size = sizeof(begin), .tenant = "t", .scope = "s", .key = "k", .fingerprint = fingerprint };
	struct hapax_operation operation;
	struct hapax *hapax = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct hapax_options options = { .size = sizes[i] };
		struct hapax_request request = { .size = sizes[i], .method = "POST", .path = "/" };
		unsigned char print[HAPAX_FINGERPRINT_SIZE];
		assert_told(hapax_open("memory:", &options, &hapax, problem), HAPAX_MISUSE);
		assert_non_null(strstr(problem, "sizeof(struct hapax_options)"));
		assert_told(hapax_fingerprint(&request, print), HAPAX_MISUSE);
	}
	assert_told(hapax_open("memory:", NULL, &hapax, problem), HAPAX_OK);
	HAPAX_INIT(&operation);
	assert_int_equal(operation.size, sizeof(operation));
	assert_int_equal(operation.attempt, 0);
	/* No room for a lease. */
	operation.size = offsetof(struct hapax_operation, reference);
	assert_told(hapax_begin(hapax, &begin, &operation, problem), HAPAX_MISUSE);
	hapax_close(hapax);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_is_one),
		cmocka_unit_test(an_older_caller_gets_what_it_knows),
		cmocka_unit_test(a_newer_caller_gets_what_the_library_knows),
		cmocka_unit_test(what_is_not_known_is_refused),
		cmocka_unit_test(a_size_must_be_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
