/* Shows that every removal by a person is reported once, by the first query after
 * its commit, however late that comes, and that a cache hears of it. */
#include "delivery.h"

#include "base/clock.h"
#include "cluster.h"
#include "store/cache.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

static struct hpx_removals heard;

static size_t ask(struct fixture *f)
{
	assert_status(hpx_store_removals(f->reader, &heard), HPX_OK);
	return heard.all ? SIZE_MAX : heard.count;
}

static void make(struct fixture *f, unsigned key)
{
	reserve(f, key, BODY, A);
	assert_status(complete(f, key, A, "x"), HPX_OK);
}

static void forget(struct fixture *f, unsigned key)
{
	make(f, key);
	assert_status(act(f, HPX_VERB_FORGET, key, A), HPX_OK);
}

static void expect_heard(struct fixture *f, unsigned key)
{
	struct hpx_operation_id id = id_of(key);

	assert_int_equal(ask(f), 1);
	assert_memory_equal(heard.ids[0].bytes, id.bytes, sizeof(id.bytes));
}

static void each_is_told_once(void **state)
{
	struct fixture *f = *state;

	forget(f, 1);
	assert_true(ask(f) == SIZE_MAX); /* the first time */
	assert_int_equal(ask(f), 0);
	make(f, 2);
	assert_int_equal(ask(f), 0);
	assert_status(act(f, HPX_VERB_FORGET, 2, A), HPX_OK);
	expect_heard(f, 2);
	assert_int_equal(ask(f), 0);
	forget(f, 2); /* the same key again */
	expect_heard(f, 2);
	reserve(f, 3, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 3, A);
	assert_int_equal(ask(f), 0);
	assert_status(resolve(f, 3, A, true), HPX_OK);
	expect_heard(f, 3);
	forget(f, 4);
	forget(f, 5);
	assert_int_equal(ask(f), 2);
}

/* What a job's answer completed is removed like every other; what ends a pending
 * or an unknown one takes nothing from anybody. */
static void what_jobs_and_rulings_end(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	assert_true(ask(f) == SIZE_MAX);
	assert_string_equal(accept_later(f, 1, A), "created");
	d = claim_one(f, 0);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_DELIVER), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	assert_int_equal(ask(f), 0);
	assert_status(act(f, HPX_VERB_FORGET, 1, A), HPX_OK);
	expect_heard(f, 1);
	assert_string_equal(accept_later(f, 2, A), "created");
	d = claim_one(f, 0);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_POSTPONE), HPX_OK);
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_DISCARD, false), HPX_OK);
	assert_string_equal(state_of(f, 2), "completed");
	reserve(f, 3, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 3, A);
	assert_string_equal(rule(f, 3, A, 0, HPX_RULING_DECLINED, true), "settle_declined");
	assert_non_null(strstr(events_of(f, 3), "ruled_declined"));
	assert_int_equal(ask(f), 0);
}

/* A completed record stays as it is: a cache need not hear of what is said later. */
static void nothing_said_later_changes_an_answer(void **state)
{
	static const enum hpx_ruling rulings[] = { HPX_RULING_APPLIED, HPX_RULING_DECLINED,
						   HPX_RULING_NOT_APPLIED };
	struct fixture *f = *state;
	struct hpx_delivery d;
	struct hpx_record before;

	assert_string_equal(accept_later(f, 1, A), "created");
	d = claim_one(f, 0);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_LOSE), HPX_OK);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_DECLINED, true), "settle_declined");
	before = record_of(f, 1);
	assert_string_equal(hpx_state_name(before.state), "completed");
	/* The job is a dead letter, which may turn out to have arrived. */
	for (size_t i = 0; i < sizeof(rulings) / sizeof(rulings[0]); i++) {
		rule(f, 1, A, 0, rulings[i], true);
		rule(f, 1, A, d.number, rulings[i], true);
	}
	person_moves(f, d.number, HPX_JOB_MOVE_RETRY, true);
	struct hpx_record after = record_of(f, 1);
	assert_int_equal(after.status, before.status);
	assert_int_equal(after.changed_ms, before.changed_ms);
	assert_int_equal(after.expires_ms, before.expires_ms);
	assert_int_equal(after.state, before.state);
}

static void too_many_are_all(void **state)
{
	struct fixture *f = *state;

	assert_true(ask(f) == SIZE_MAX);
	for (unsigned key = 0; key <= HPX_REMOVALS_MAX; key++)
		forget(f, key);
	assert_true(ask(f) == SIZE_MAX);
}

/* When the whole history is cleared, its numbers begin anew. */
static void a_history_that_was_cut_is_all(void **state)
{
	struct fixture *f = *state;

	assert_true(ask(f) == SIZE_MAX);
	forget(f, 1);
	expect_heard(f, 1);
	advance(f, 8 * (int64_t)RETENTION_MS);
	act(f, HPX_VERB_ACCEPT_CLOCK, 0, 0);
	reap(f);
	assert_string_equal(events_of(f, 1), "");
	forget(f, 2);
	assert_true(ask(f) == SIZE_MAX);
	assert_int_equal(ask(f), 0);
	forget(f, 3);
	expect_heard(f, 3);
}

#define LATE \
	"INSERT INTO hapax.event (id, rest, at, attempt, what, actor, reason, status) " \
	"VALUES (gen_random_uuid(), gen_random_uuid(), (extract(epoch FROM clock_timestamp()) * 1000)::bigint " \
	"- %s, 1, 'forgotten', 'a', '', 0)"

/* Events that are older than what was told, and committed later. */
static void a_late_commit_is_heard(void **state)
{
	static const char *const ages_ms[] = { "0", "2000", "90000" };
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();

	assert_true(ask(f) == SIZE_MAX);
	for (size_t i = 0; i < sizeof(ages_ms) / sizeof(ages_ms[0]); i++) {
		char sql[512];
		snprintf(sql, sizeof(sql), LATE, ages_ms[i]);
		PQclear(cluster_ask(conn, "BEGIN"));
		PQclear(cluster_ask(conn, sql));
		forget(f, (unsigned)i);
		expect_heard(f, (unsigned)i);
		assert_int_equal(ask(f), 0);
		PQclear(cluster_ask(conn, "COMMIT"));
		assert_int_equal(ask(f), 1);
		assert_int_equal(ask(f), 0);
	}
	PQfinish(conn);
}

static void a_new_connection_begins_anew(void **state)
{
	struct fixture *f = *state;

	assert_true(ask(f) == SIZE_MAX);
	assert_int_equal(ask(f), 0);
	cluster_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
		    "WHERE application_name = 'hapax' AND query LIKE '%resolved_not_applied%' "
		    "AND pid <> pg_backend_pid()");
	assert_true(ask(f) == SIZE_MAX);
	assert_int_equal(ask(f), 0);
}

/* ---- the thread ---- */

static bool is_cached(struct fixture *f, struct hpx_cache *cache, unsigned key)
{
	struct hpx_ask one = ask_of(f->store, key, BODY, B);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;
	enum hpx_status status = hpx_cache_peek(cache, &one, policy(), &decision, &replay);

	hpx_answer_free(replay);
	return status == HPX_OK;
}

static void keep(struct fixture *f, struct hpx_cache *cache, unsigned key)
{
	struct hpx_cache_mark mark = hpx_cache_mark(cache);
	struct hpx_record record = record_of(f, key);
	struct hpx_answer answer = { .status = 201, .kept = true, .body = HPX_SPAN("x") };

	mark.wall_ms = record.changed_ms;
	hpx_cache_put(cache, &mark, &record, &answer);
}

/* Waits by looking, for as long as the promise is and some more for a slow
 * machine. */
static void until(struct fixture *f, struct hpx_cache *cache, unsigned key, bool cached)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + 10000;

	while (is_cached(f, cache, key) != cached) {
		/* What was read before it heard for the first time is not taken. */
		if (cached)
			keep(f, cache, key);
		assert_true(hpx_clock_boot_ms() < deadline_ms);
	}
}

static void a_cache_hears_and_falls_silent(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = hpx_cache_new(f->store, 1 << 20, 100);
	struct hpx_cache_invalidator *removal = NULL;

	assert_non_null(cache);
	make(f, 1);
	make(f, 2);
	assert_status(hpx_cache_invalidator_start(f->store, cache, &removal), HPX_OK);
	until(f, cache, 1, true);
	until(f, cache, 2, true);
	assert_status(act(f, HPX_VERB_FORGET, 1, A), HPX_OK);
	until(f, cache, 1, false);
	until(f, cache, 2, true);
	hpx_cache_invalidator_stop(removal);
	until(f, cache, 2, false);
	hpx_cache_free(cache);
}

/* As a person's command opens it while it is served. */
static struct hpx_store *open_beside(const struct fixture *f)
{
	struct hpx_store_options options = fixture_options(f);
	struct hpx_store *store = NULL;

	options.serve = false;
	options.create = false;
	assert_status(hpx_store_open(&options, &store, NULL), HPX_OK);
	return store;
}

/* The file's other processes count in its lock file: nothing is answered from
 * memory between a removal's commit, by whichever of them, and the next news. */
static void what_another_process_removes_is_gone_at_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = hpx_cache_new(f->store, 1 << 20, 100);
	struct hpx_store *own = f->store;

	assert_non_null(cache);
	make(f, 1);
	make(f, 2);
	hpx_cache_checked(cache, hpx_clock_boot_ms(), hpx_store_removal_count(own));
	keep(f, cache, 2);
	assert_true(is_cached(f, cache, 2));
	f->store = open_beside(f);
	assert_status(act(f, HPX_VERB_FORGET, 1, A), HPX_OK);
	hpx_store_close(f->store);
	f->store = own;
	assert_false(is_cached(f, cache, 2));
	hpx_cache_checked(cache, hpx_clock_boot_ms(), hpx_store_removal_count(own));
	assert_true(is_cached(f, cache, 2));
	hpx_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(each_is_told_once),
		ON_POSTGRES(each_is_told_once),
		ON_SQLITE(what_jobs_and_rulings_end),
		ON_POSTGRES(what_jobs_and_rulings_end),
		ON_SQLITE(nothing_said_later_changes_an_answer),
		ON_POSTGRES(nothing_said_later_changes_an_answer),
		ON_SQLITE(too_many_are_all),
		ON_POSTGRES(too_many_are_all),
		ON_SQLITE(a_history_that_was_cut_is_all),
		ON_POSTGRES(a_late_commit_is_heard),
		ON_POSTGRES(a_new_connection_begins_anew),
		ON_SQLITE(a_cache_hears_and_falls_silent),
		ON_SQLITE(what_another_process_removes_is_gone_at_once),
		ON_POSTGRES(a_cache_hears_and_falls_silent),
	};
	return run_on_drivers("invalidation", tests);
}
