/* Shows that the client says the version of its header and of the build, and that
 * programs which were built with an older or a newer header work with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka needs the above. */
#include <cmocka.h>

#include "hapax/client.h"

static char problem[HAPAX_PROBLEM_SIZE];

static void the_version_is_one(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d.%d.%d", HAPAX_VERSION_MAJOR, HAPAX_VERSION_MINOR,
		 HAPAX_VERSION_PATCH);
	assert_string_equal(hapax_client_version(), text);
	assert_string_equal(HPX_VERSION, text); /* meson's */
}

/* As a shorter header might have had it, and as a later one might. */
struct older_options {
	size_t size;
	const char *journal;
	int64_t budget_ms;
	unsigned attempts_max;
};
struct newer_options {
	struct hapax_client_options known;
	int64_t later;
};

static enum hapax_result try_open(const void *options)
{
	struct hapax_client *client = NULL;
	enum hapax_result result = hapax_client_open(options, &client, problem);

	hapax_client_close(client);
	return result;
}

static void callers_of_other_versions(void **state)
{
	struct older_options older = { .size = sizeof(older), .attempts_max = 1 };
	struct newer_options newer = { .known = { .size = sizeof(newer), .attempts_max = 1 } };

	(void)state;
	assert_int_equal(try_open(NULL), HAPAX_OK);
	assert_int_equal(try_open(&older), HAPAX_OK);
	assert_int_equal(try_open(&newer), HAPAX_OK);
	newer.later = 1;
	assert_int_equal(try_open(&newer), HAPAX_MISUSE);
	older.size = 0;
	assert_int_equal(try_open(&older), HAPAX_MISUSE);
	assert_non_null(strstr(problem, "sizeof(struct hapax_client_options)"));
}

/* A struct that the library hands out says how much of it there is. */
static void what_is_handed_out_has_a_size(void **state)
{
	struct hapax_client_options options;
	struct hapax_client *client = NULL;
	struct hapax_call *call = NULL;

	(void)state;
	HAPAX_INIT(&options);
	assert_int_equal(hapax_client_open(&options, &client, problem), HAPAX_OK);
	assert_int_equal(hapax_call_new(client, "POST", "http://127.0.0.1:9/", &call, problem),
			 HAPAX_OK);
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	assert_int_equal(outcome->size, sizeof(*outcome));
	assert_true(HAPAX_HAS(outcome, reason));
	hapax_call_free(call);
	hapax_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_version_is_one),
		cmocka_unit_test(callers_of_other_versions),
		cmocka_unit_test(what_is_handed_out_has_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
