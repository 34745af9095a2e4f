/* Shows that whichever allocation fails, a call says so, loses nothing, and the
 * operation can be gone on with: no answer is ever half stored. */
#include "../test.h"

#include <stdatomic.h>

#include "hapax/hapax.h"

/* The linker sends every allocation of the code under test through these
 * (--wrap), on whichever thread; the n-th one fails. */
static _Atomic long allocations_left = -1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static bool fails(void)
{
	return atomic_load(&allocations_left) >= 0 && atomic_fetch_sub(&allocations_left, 1) == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
	return fails() ? NULL : __real_realloc(ptr, size);
}

static const unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE] = { 1 };
static const struct hapax_begin begin = {
	.size = sizeof(begin),
	.tenant = "tenant",
	.scope = "scope",
	.key = "key",
	.fingerprint = fingerprint,
	.on_lost = HAPAX_LOST_RESUME,
};

/* One story of an operation; the first result that is not HAPAX_OK. */
static enum hapax_result story(struct hapax *hapax)
{
	struct hapax_answer answer = {
		.size = sizeof(answer),
		.status = 200,
		.headers = "A: b",
		.body = "x",
		.body_len = 1,
	};
	struct hapax_job job = {
		.size = sizeof(job),
		.name = "mail",
		.target = "mailer",
		.method = "POST",
		.path = "/",
	};
	struct hapax_operation operation = { .size = sizeof(operation) };
	enum hapax_result result = hapax_begin(hapax, &begin, &operation, NULL);

	if (result != HAPAX_OK)
		return result;
	if (operation.verdict == HAPAX_EXECUTE) {
		result = hapax_advance(hapax, operation.lease, "point", "data", 4, NULL);
		if (result == HAPAX_OK)
			result = hapax_enqueue(hapax, operation.lease, &job, NULL);
		if (result == HAPAX_OK && operation.attempt > 1)
			result = hapax_complete(hapax, operation.lease, &answer, NULL);
		else if (result == HAPAX_OK)
			result = hapax_fail(hapax, operation.lease, NULL);
	}
	hapax_operation_clear(&operation);
	return result;
}

/* Each round has a store of its own. After the failure there is memory again, and
 * the handle still works. */
static bool survives(long nth)
{
	struct hapax_options options = { .size = sizeof(options), .timeout_ms = 5000 };
	struct hapax *hapax = NULL;
	enum hapax_result result;

	atomic_store(&allocations_left, nth);
	result = hapax_open("memory:", &options, &hapax, NULL);
	for (int i = 0; i < 3 && result == HAPAX_OK; i++)
		result = story(hapax);
	bool done = atomic_load(&allocations_left) >= 0;
	atomic_store(&allocations_left, -1);
	if (hapax != NULL && result != HAPAX_OK) {
		enum hapax_result later = story(hapax);
		if (later != HAPAX_OK)
			fail_msg("allocation %ld: %s, then %s", nth, hapax_result_name(result),
				 hapax_result_name(later));
	}
	hapax_close(hapax);
	if (done)
		assert_int_equal(result, HAPAX_OK);
	else if (result != HAPAX_OK && result != HAPAX_NOMEM && result != HAPAX_UNAVAILABLE)
		fail_msg("allocation %ld: got %s", nth, hapax_result_name(result));
	return done;
}

static void the_nth_allocation_fails(void **state)
{
	long nth = 0;

	(void)state;
	while (!survives(nth))
		nth++;
	assert_true(nth > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nth_allocation_fails),
	};
	return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}
