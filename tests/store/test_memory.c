/* Shows that the n-th allocation of the store may fail, SQLite's or our own, once or
 * several times in a row, and still every operation is executed once and its answer is
 * stored, in this process and for the next. */
#include "client.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* The store runs on the committer's thread; only its allocations fail, not the test's. */
static pthread_t test_thread;
static atomic_long allocations_left = -1; /* -1: none fails */
static atomic_uint failures_left;

static bool fails(void)
{
	long left = atomic_load(&allocations_left);

	if (left < 0 || pthread_equal(pthread_self(), test_thread))
		return false;
	if (left > 0) {
		atomic_store(&allocations_left, left - 1);
		return false;
	}
	if (atomic_load(&failures_left) == 0)
		return false;
	atomic_fetch_sub(&failures_left, 1);
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_reallocarray(void *ptr, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_reallocarray(void *ptr, size_t count, size_t size);

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

void *__wrap_reallocarray(void *ptr, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(ptr, count, size);
}

/* ---- SQLite's own, in front of which the linker cannot stand ---- */

static sqlite3_mem_methods methods;

static void *sqlite_malloc(int size)
{
	return fails() ? NULL : methods.xMalloc(size);
}

static void *sqlite_realloc(void *ptr, int size)
{
	return fails() ? NULL : methods.xRealloc(ptr, size);
}

static void stand_before_sqlite(void)
{
	sqlite3_mem_methods failing;

	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &methods), SQLITE_OK);
	failing = methods;
	failing.xMalloc = sqlite_malloc;
	failing.xRealloc = sqlite_realloc;
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), SQLITE_OK);
}

/* ---- the loop ---- */

/* With a sanitizer each run takes several times as long: every ninth. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEP 9
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STEP 9
#endif
#endif
#ifndef STEP
#define STEP 1
#endif

/* False: there were fewer allocations than that. */
static bool run_with(struct fixture *f, long nth, unsigned times)
{
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct client client = { .f = f };

	assert_status(hpx_committer_start(&options, &client.committer), HPX_OK);
	atomic_store(&failures_left, times);
	atomic_store(&allocations_left, nth);
	client_run(&client);
	bool fired = atomic_load(&failures_left) < times;
	atomic_store(&allocations_left, -1);
	hpx_committer_stop(client.committer, 1000);
	hpx_committer_free(client.committer);
	client_check(&client, "allocation", (unsigned)nth);
	/* And so finds it the next process. */
	fixture_reopen(f);
	client_check(&client, "allocation", (unsigned)nth);
	return fired;
}

static void the_nth_allocation_fails(void **state)
{
	static const unsigned times[] = { 1, 5 };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		bool fired = true;
		long nth = 0;

		for (; fired; nth += STEP) {
			fixture_afresh(*state);
			fired = run_with(*state, nth, times[i]);
		}
		print_message("%u in a row: %ld allocations\n", times[i], nth - STEP);
		assert_true(nth > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { ON_SQLITE(the_nth_allocation_fails) };

	test_thread = pthread_self();
	stand_before_sqlite();
	return run_on_drivers("memory", tests);
}
