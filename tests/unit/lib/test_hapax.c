/* Shows that the public API gives the core's answers and checks its callers:
 * only the installed header is included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hapax/hapax.h"

static void keys_are_read(void **state)
{
	char key[HAPAX_KEY_MAX + 1];
	size_t len = 0;
	const char *reason = NULL;
	(void)state;
	assert_int_equal(hapax_key_parse("\"a b\"", 5, key, &len, &reason), HAPAX_OK);
	assert_string_equal(key, "a b");
	assert_int_equal(len, 3);
	assert_int_equal(hapax_key_parse("bare", 4, key, &len, NULL), HAPAX_OK);
	assert_string_equal(key, "bare");
	assert_int_equal(hapax_key_parse("\"\"", 2, key, &len, &reason), HAPAX_INVALID);
	assert_non_null(reason);
	assert_string_equal(key, "bare");
	assert_int_equal(hapax_key_parse(NULL, 1, key, &len, NULL), HAPAX_MISUSE);
	assert_int_equal(hapax_key_parse("k", 1, NULL, &len, NULL), HAPAX_MISUSE);
}

static void fingerprint(const char *query, const char *body, unsigned char out[32])
{
	struct hapax_request request = {
		.size = sizeof(request),
		.method = "POST",
		.path = "/payments",
		.query = query,
		.content_type = "application/json; charset=utf-8",
		.body = body,
		.body_len = strlen(body),
	};
	assert_int_equal(hapax_fingerprint(&request, out), HAPAX_OK);
}

static void fingerprints_follow_the_meaning(void **state)
{
	unsigned char one[32], other[32];
	(void)state;
	fingerprint("a=1&b=2", "{\"amount\":499,\"to\":\"x\"}", one);
	fingerprint("b=2&a=1", "{ \"to\": \"x\", \"amount\": 499.0 }", other);
	assert_memory_equal(one, other, 32);
	fingerprint("a=1&b=2", "{\"amount\":500,\"to\":\"x\"}", other);
	assert_memory_not_equal(one, other, 32);
	fingerprint(NULL, "{\"amount\":499,\"to\":\"x\"}", other);
	assert_memory_not_equal(one, other, 32);
}

static void misuse_is_told(void **state)
{
	struct hapax_request request = { .size = sizeof(request), .method = "POST", .body_len = 1 };
	unsigned char out[32];
	(void)state;
	assert_int_equal(hapax_fingerprint(NULL, out), HAPAX_MISUSE);
	assert_int_equal(hapax_fingerprint(&request, out), HAPAX_MISUSE);
	request.path = "/";
	assert_int_equal(hapax_fingerprint(&request, out), HAPAX_MISUSE);
	assert_non_null(hapax_version());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read),
		cmocka_unit_test(fingerprints_follow_the_meaning),
		cmocka_unit_test(misuse_is_told),
	};
	return cmocka_run_group_tests_name("hapax", tests, NULL, NULL);
}
