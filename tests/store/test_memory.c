/* Shows that the n-th allocation of the store may fail, SQLite's or our own, once or
 * several times in a row, and still every operation is executed once and its answer is
 * stored, in this process and for the next. So is what a reaped operation leaves behind,
 * its tombstone and its entry in the history, and what is restored after a backup. */
#include "client.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* The store runs on the committer's thread; only its allocations fail, not the test's,
 * except where the test itself runs the store. */
static pthread_t test_thread;
static bool on_test_thread;
static atomic_long allocations_left = -1; /* -1: none fails */
static atomic_uint failures_left;

static bool fails(void)
{
	long left = atomic_load(&allocations_left);

	if (left < 0 || (!on_test_thread && pthread_equal(pthread_self(), test_thread)))
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

/* ---- reaping, with tombstones and a history ---- */

enum { BODY = 1,
       HOLDER = 11,
       RETRY = 12,
       PLAIN = 3,  /* leave an entry of the history */
       BURIED = 6, /* and up to here a tombstone; the last one is aside */
       KEYS = BURIED + 1 };
#define DAY_MS INT64_C(86400000)
/* Each run fills a store anew, which takes longer than a client's requests do: every
 * eleventh allocation, so that statements and rows of all kinds are among them. */
#define REAP_STEP (11 * STEP)

static const char *reserve_with(struct fixture *f, const struct hpx_policy *by, unsigned key, unsigned token)
{
	struct hpx_ask asked = ask_of(f->store, key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	op.reserve.ask = &asked;
	op.reserve.policy = by;
	assert_status(run_op(f, &op), HPX_OK);
	hpx_answer_free(op.reserve.replay);
	return hpx_decision_name(op.decision.kind);
}

static struct hpx_policy policy_of(unsigned key)
{
	struct hpx_policy p = *policy();

	p.tombstone_ms = key > PLAIN ? 30 * DAY_MS : 0;
	p.expired = HPX_EXPIRED_REFUSE;
	return p;
}

static void reopen_with_history(struct fixture *f, int64_t shift_ms)
{
	struct hpx_store_options options = fixture_options(f);

	fixture_close(f);
	options.history_retention_ms = 400 * DAY_MS;
	assert_status(hpx_store_open(&options, &f->store, NULL), HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
	advance(f, shift_ms);
}

static void fill_with_expired(struct fixture *f)
{
	for (unsigned key = 1; key <= KEYS; key++) {
		struct hpx_policy by = policy_of(key);
		assert_string_equal(reserve_with(f, &by, key, HOLDER), "created");
		if (key == KEYS) {
			assert_status(act(f, HPX_VERB_FAIL, key, HOLDER), HPX_OK);
			assert_string_equal(reserve_with(f, &by, key, HOLDER + 1), "retried");
		}
		assert_status(complete(f, key, key == KEYS ? HOLDER + 1 : HOLDER, "done"), HPX_OK);
	}
	advance(f, RETENTION_MS + 1);
}

/* Each finished operation is told once, and each tombstone refuses its key. */
static void check_left(struct fixture *f, long nth)
{
	struct hpx_history_query query = { .until_ms = INT64_MAX / 4, .limit = 100, .look_max = 10000 };
	struct hpx_history found;

	assert_status(hpx_store_history(f->reader, &query, &f->arena, &found), HPX_OK);
	if (found.count != KEYS)
		fail_msg("allocation %ld: %zu operations are told, not %d", nth, found.count, KEYS);
	for (unsigned key = PLAIN + 1; key <= KEYS; key++) {
		struct hpx_policy by = policy_of(key);
		const char *decision = reserve_with(f, &by, key, RETRY);
		if (strcmp(decision, "expired") != 0)
			fail_msg("allocation %ld: key %u is %s, not expired", nth, key, decision);
	}
}

/* Until nothing is left to reap; the n-th allocation of it fails. False: there were fewer. */
static bool reap_failing(struct fixture *f, long nth)
{
	bool more = true, fired;

	on_test_thread = true;
	atomic_store(&failures_left, 1);
	atomic_store(&allocations_left, nth);
	for (unsigned i = 0; i < 200 && more; i++) {
		struct hpx_store_op op = op_of(HPX_VERB_REAP, 0, 0), *ops = &op;
		op.reap.limit = 3;
		more = hpx_store_run(f->store, &ops, 1, NULL) != HPX_OK || op.status != HPX_OK ||
		       op.reap.more || op.reap.count > 0;
	}
	fired = atomic_load(&failures_left) == 0;
	atomic_store(&allocations_left, -1);
	on_test_thread = false;
	assert_false(more);
	return fired;
}

static void the_nth_allocation_fails_while_reaping(void **state)
{
	struct fixture *f = *state;
	long nth = 0;

	for (bool fired = true; fired; nth += REAP_STEP) {
		int64_t shift_ms;

		fixture_afresh(f);
		reopen_with_history(f, 0);
		fill_with_expired(f);
		fired = reap_failing(f, nth);
		check_left(f, nth);
		/* And so finds it the next process. */
		shift_ms = atomic_load(&f->store->wall_shift_ms);
		reopen_with_history(f, shift_ms);
		check_left(f, nth);
	}
	print_message("%ld allocations of a reaper\n", nth - REAP_STEP);
	assert_true(nth > REAP_STEP);
}

/* ---- what a backup lacks is made known ---- */

enum { LACKED = 1, /* the copy does not have it */
       EXPIRED };  /* the copy has it, and its answer has expired since */

static void fill_like_a_backup(struct fixture *f)
{
	bring_to(f, EXPIRED, HPX_STATE_COMPLETED, HOLDER);
	advance(f, RETENTION_MS + 1);
}

/* Each until it is done; the n-th allocation of it fails. False: there were fewer. */
static bool restore_failing(struct fixture *f, long nth)
{
	bool fired;

	on_test_thread = true;
	atomic_store(&failures_left, 1);
	atomic_store(&allocations_left, nth);
	for (unsigned key = LACKED; key <= EXPIRED; key++) {
		bool done = false;
		for (unsigned i = 0; i < 10 && !done; i++) {
			struct hpx_store_op op = op_of(HPX_VERB_RESTORE, key, RETRY), *ops = &op;
			op.restore.retention_ms = RETENTION_MS;
			if (hpx_store_run(f->store, &ops, 1, NULL) == HPX_OK)
				done = op.status == HPX_OK;
			else
				assert_status(hpx_store_recover(f->store, NULL), HPX_OK);
		}
		assert_true(done);
	}
	fired = atomic_load(&failures_left) == 0;
	atomic_store(&allocations_left, -1);
	on_test_thread = false;
	return fired;
}

/* Each is known, and was restored once; no request executes it. */
static void check_restored(struct fixture *f, long nth)
{
	for (unsigned key = LACKED; key <= EXPIRED; key++) {
		const char *events = events_of(f, key), *first = strstr(events, "restored");
		if (first == NULL || strstr(first + 1, "restored") != NULL)
			fail_msg("allocation %ld: key %u has the events %s", nth, key, events);
		assert_string_equal(state_of(f, key), "completed");
		assert_string_equal(reserve(f, key, BODY, RETRY + 1), "replay");
	}
}

static void the_nth_allocation_fails_while_restoring(void **state)
{
	struct fixture *f = *state;
	long nth = 0;

	for (bool fired = true; fired; nth += STEP) {
		fixture_afresh(f);
		fill_like_a_backup(f);
		fired = restore_failing(f, nth);
		check_restored(f, nth);
		/* And so finds it the next process. */
		int64_t shift_ms = atomic_load(&f->store->wall_shift_ms);
		fixture_reopen(f);
		advance(f, shift_ms);
		check_restored(f, nth);
	}
	print_message("%ld allocations of restoring\n", nth - STEP);
	assert_true(nth > STEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(the_nth_allocation_fails),
		ON_SQLITE(the_nth_allocation_fails_while_reaping),
		ON_SQLITE(the_nth_allocation_fails_while_restoring),
	};

	test_thread = pthread_self();
	stand_before_sqlite();
	return run_on_drivers("memory", tests);
}
