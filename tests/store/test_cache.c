/* Shows that the cache says what the store would say, keeps only completed
 * answers within its bounds and before their expiry, falls silent when it hears
 * nothing, and never takes in what was removed. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "store/cache.h"

enum { BODY = 1,
       A = 11,
       B = 12 };
#define ROOM ((size_t)1 << 20)
#define SECOND_MS 1000

static struct hpx_cache *cache_of(struct fixture *f, size_t bytes_max, size_t entries_max)
{
	struct hpx_cache *cache = hpx_cache_new(f->store, bytes_max, entries_max);

	assert_non_null(cache);
	hpx_cache_checked(cache, hpx_clock_boot_ms(), 0);
	return cache;
}

static const struct hpx_answer answer = {
	.status = 201,
	.kept = true,
	.headers = HPX_SPAN_INIT("Content-Type: text/plain\r\n"),
	.body = HPX_SPAN_INIT("a\0b"),
};

/* An operation that is stored, and put in as a gateway does it. */
static struct hpx_record stored(struct fixture *f, struct hpx_cache *cache, unsigned key)
{
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, key, A);
	struct hpx_cache_mark mark = hpx_cache_mark(cache);

	reserve(f, key, BODY, A);
	op.complete.answer = &answer;
	assert_status(run_op(f, &op), HPX_OK);
	mark.wall_ms = op.judged_ms;
	hpx_cache_put(cache, &mark, &op.decision.record, &answer);
	return op.decision.record;
}

static const char *peek_by(struct hpx_cache *cache, const struct hpx_ask *ask)
{
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;
	enum hpx_status status = hpx_cache_peek(cache, ask, policy(), &decision, &replay);

	hpx_answer_free(replay);
	return status == HPX_OK ? hpx_decision_name(decision.kind) : hpx_status_name(status);
}

static const char *peek(struct fixture *f, struct hpx_cache *cache, unsigned key)
{
	struct hpx_ask ask = ask_of(f->store, key, BODY, B);
	return peek_by(cache, &ask);
}

static void it_says_what_the_store_says(void **state)
{
	static const struct {
		unsigned key;
		unsigned body;
		char recipe;
		const char *says;
	} rows[] = {
		{ 1, BODY, 'r', "replay" },
		{ 1, 2, 'r', "mismatch" },
		{ 1, BODY, 'q', "refingerprint" },
		{ 1, 2, 'q', "refingerprint" },
		{ 2, BODY, 'r', "NOT_FOUND" },
	};
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 100);

	stored(f, cache, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_ask ask = ask_of(f->store, rows[i].key, rows[i].body, B);
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, rows[i].key, B);
		memset(ask.recipe.bytes, rows[i].recipe, sizeof(ask.recipe.bytes));
		assert_string_equal(peek_by(cache, &ask), rows[i].says);
		op.reserve.ask = &ask;
		op.reserve.look = true;
		assert_status(run_op(f, &op), rows[i].key == 1 ? HPX_OK : HPX_NOT_FOUND);
		if (op.status == HPX_OK)
			assert_string_equal(hpx_decision_name(op.decision.kind), rows[i].says);
		hpx_answer_free(op.reserve.replay);
	}
	hpx_cache_free(cache);
}

static void the_answer_and_the_record_are_the_stores(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 100);
	struct hpx_ask ask = ask_of(f->store, 1, BODY, B);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, B);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;

	stored(f, cache, 1);
	op.reserve.ask = &ask;
	assert_status(run_op(f, &op), HPX_OK);
	assert_status(hpx_cache_peek(cache, &ask, policy(), &decision, &replay), HPX_OK);
	assert_non_null(op.reserve.replay);
	assert_int_equal(replay->status, op.reserve.replay->status);
	assert_true(hpx_span_eq(replay->headers, op.reserve.replay->headers));
	assert_true(hpx_span_eq(replay->body, op.reserve.replay->body));
	assert_true(decision.record.expires_ms == op.decision.record.expires_ms);
	assert_true(hpx_mark_eq(&decision.record.mark, &op.decision.record.mark));
	assert_int_equal(decision.record.attempt, op.decision.record.attempt);
	hpx_answer_free(replay);
	hpx_answer_free(op.reserve.replay);
	hpx_cache_free(cache);
}

static void only_completed_answers_are_kept(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 100);
	struct hpx_record good = stored(f, cache, 1), bad = good;
	struct hpx_answer not_kept = answer;
	struct hpx_cache_mark mark;

	hpx_cache_clear(cache);
	mark = hpx_cache_mark(cache);
	for (int s = HPX_STATE_NONE; s < HPX_STATE_COUNT; s++) {
		bad.state = (enum hpx_state)s;
		if (s != HPX_STATE_COMPLETED)
			hpx_cache_put(cache, &mark, &bad, &answer);
	}
	bad = good;
	bad.attempt = 0; /* no record is like that */
	hpx_cache_put(cache, &mark, &bad, &answer);
	bad = good;
	bad.expires_ms = mark.wall_ms;
	hpx_cache_put(cache, &mark, &bad, &answer);
	bad = good;
	bad.kept = false;
	hpx_cache_put(cache, &mark, &bad, &answer);
	not_kept.kept = false;
	hpx_cache_put(cache, &mark, &good, &not_kept);
	hpx_cache_put(cache, &mark, &good, NULL);
	assert_int_equal(hpx_cache_count(cache), 0);
	hpx_cache_put(cache, &mark, &good, &answer);
	assert_int_equal(hpx_cache_count(cache), 1);
	hpx_cache_free(cache);
}

/* Another operation's record, in the same part of the cache. */
static struct hpx_record numbered(struct hpx_record record, unsigned number)
{
	memset(record.id.bytes, 0, sizeof(record.id.bytes));
	memcpy(record.id.bytes + 1, &number, sizeof(number));
	return record;
}

static const char *peek_number(struct fixture *f, struct hpx_cache *cache,
			       const struct hpx_record *record, unsigned number)
{
	struct hpx_ask ask = ask_of(f->store, 1, BODY, B);

	ask.id = numbered(*record, number).id;
	return peek_by(cache, &ask);
}

static void what_was_not_used_for_longest_goes_first(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 8 * 3);
	struct hpx_record record = stored(f, cache, 1), one;
	struct hpx_cache_mark mark;

	hpx_cache_clear(cache);
	mark = hpx_cache_mark(cache);
	for (unsigned number = 1; number <= 3; number++) {
		one = numbered(record, number);
		hpx_cache_put(cache, &mark, &one, &answer);
	}
	assert_string_equal(peek_number(f, cache, &record, 1), "replay");
	one = numbered(record, 4);
	hpx_cache_put(cache, &mark, &one, &answer);
	hpx_cache_put(cache, &mark, &one, &answer);
	assert_int_equal(hpx_cache_count(cache), 3);
	assert_string_equal(peek_number(f, cache, &record, 1), "replay");
	assert_string_equal(peek_number(f, cache, &record, 2), "NOT_FOUND");
	assert_string_equal(peek_number(f, cache, &record, 3), "replay");
	assert_string_equal(peek_number(f, cache, &record, 4), "replay");
	hpx_cache_free(cache);
}

static void bounds_are_kept(void **state)
{
	static const struct {
		size_t bytes_max;
		size_t entries_max;
	} rows[] = { { 64 * 1024, 1000000 }, { ROOM, 80 }, { 0, 80 }, { ROOM, 1 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_cache *cache = cache_of(f, rows[i].bytes_max, rows[i].entries_max);
		struct hpx_record record = stored(f, cache, 100 + (unsigned)i), one;
		struct hpx_cache_mark mark = hpx_cache_mark(cache);
		for (unsigned number = 0; number < 1000; number++) {
			one = numbered(record, number);
			one.id.bytes[0] = (uint8_t)number;
			hpx_cache_put(cache, &mark, &one, &answer);
			assert_in_range(hpx_cache_bytes(cache), 0, rows[i].bytes_max);
			/* One in each of the eight parts at least. */
			assert_in_range(hpx_cache_count(cache), 0,
					rows[i].entries_max < 8 ? 8 : rows[i].entries_max);
		}
		assert_true((hpx_cache_count(cache) > 0) == (rows[i].bytes_max > 0));
		hpx_cache_clear(cache);
		assert_int_equal(hpx_cache_bytes(cache), 0);
		hpx_cache_free(cache);
	}
}

static void an_answer_that_is_too_large_drives_nothing_out(void **state)
{
	static char large[16 * 1024];
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, 8 * sizeof(large), 100);
	struct hpx_record record = stored(f, cache, 1), one = numbered(record, 1);
	struct hpx_answer whole = { .status = 200, .kept = true, .body = { large, sizeof(large) } };
	struct hpx_cache_mark mark = hpx_cache_mark(cache);

	hpx_cache_put(cache, &mark, &one, &whole);
	assert_int_equal(hpx_cache_count(cache), 1);
	assert_string_equal(peek(f, cache, 1), "replay");
	hpx_cache_free(cache);
}

/* The time left when it was read, and how long ago that was. */
static void an_entry_ends_with_its_record_by_the_boot_clock(void **state)
{
	static const struct {
		int64_t left_ms;
		int64_t ago_ms;
		const char *says;
	} rows[] = {
		{ 60 * SECOND_MS, 0, "replay" },
		{ 60 * SECOND_MS, 30 * SECOND_MS, "replay" },
		{ 60 * SECOND_MS, 60 * SECOND_MS, "NOT_FOUND" },
		{ 60 * SECOND_MS, 61 * SECOND_MS, "NOT_FOUND" },
		{ 10 * (int64_t)RETENTION_MS, 30 * SECOND_MS, "replay" },
	};
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 100);
	struct hpx_record record = stored(f, cache, 1);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_cache_mark mark = hpx_cache_mark(cache);
		/* Whatever the wall clock says meanwhile. */
		atomic_store(&f->store->wall_shift_ms, -3600 * SECOND_MS);
		record.expires_ms = mark.wall_ms + rows[i].left_ms;
		mark.boot_ms -= rows[i].ago_ms;
		hpx_cache_clear(cache);
		mark.epoch = hpx_cache_mark(cache).epoch;
		hpx_cache_put(cache, &mark, &record, &answer);
		hpx_cache_checked(cache, hpx_clock_boot_ms(), 0);
		assert_string_equal(peek(f, cache, 1), rows[i].says);
		atomic_store(&f->store->wall_shift_ms, 0);
	}
	hpx_cache_free(cache);
}

static void where_the_store_says_expired_so_does_it(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 100);
	struct hpx_record record = stored(f, cache, 1);
	struct hpx_cache_mark mark = hpx_cache_mark(cache);

	record.expires_ms = mark.wall_ms + 20 * SECOND_MS;
	hpx_cache_put(cache, &mark, &record, &answer);
	assert_string_equal(peek(f, cache, 1), "replay");
	atomic_store(&f->store->wall_shift_ms, 30 * SECOND_MS);
	hpx_cache_checked(cache, hpx_clock_boot_ms(), 0);
	assert_string_equal(peek(f, cache, 1), "NOT_FOUND");
	hpx_cache_free(cache);
}

static void it_is_silent_while_it_hears_nothing(void **state)
{
	static const struct {
		int64_t ago_ms;
		const char *says;
	} rows[] = { { HPX_CACHE_TRUST_MS, "NOT_FOUND" }, { 0, "replay" }, { HPX_CACHE_TRUST_MS + 1, "NOT_FOUND" }, { 0, "replay" } };
	struct fixture *f = *state;
	struct hpx_cache *cache = hpx_cache_new(f->store, ROOM, 100);

	assert_non_null(cache);
	stored(f, cache, 1);
	assert_string_equal(peek(f, cache, 1), "NOT_FOUND");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hpx_cache_checked(cache, hpx_clock_boot_ms() - rows[i].ago_ms, 0);
		assert_string_equal(peek(f, cache, 1), rows[i].says);
	}
	hpx_cache_free(cache);
}

/* A replay that was read before the removal and comes after it was heard. */
static void what_was_read_before_a_removal_is_not_put_in_after_it(void **state)
{
	struct fixture *f = *state;
	struct hpx_cache *cache = cache_of(f, ROOM, 100);
	struct hpx_record record = stored(f, cache, 1);
	struct hpx_cache_mark before = hpx_cache_mark(cache), after;

	hpx_cache_invalidate(cache, &record.id, 0); /* nothing was removed */
	hpx_cache_put(cache, &before, &record, &answer);
	assert_string_equal(peek(f, cache, 1), "replay");
	hpx_cache_invalidate(cache, &record.id, 1);
	assert_string_equal(peek(f, cache, 1), "NOT_FOUND");
	hpx_cache_put(cache, &before, &record, &answer);
	assert_string_equal(peek(f, cache, 1), "NOT_FOUND");
	after = hpx_cache_mark(cache);
	hpx_cache_put(cache, &after, &record, &answer);
	assert_string_equal(peek(f, cache, 1), "replay");
	hpx_cache_clear(cache);
	hpx_cache_put(cache, &after, &record, &answer);
	assert_string_equal(peek(f, cache, 1), "NOT_FOUND");
	hpx_cache_free(cache);
}

/* ---- many at once ---- */

#define IDS 64
#define LOOPS 3

struct crowd {
	struct fixture *f;
	struct hpx_cache *cache;
	struct hpx_record record;
	_Atomic bool gone[IDS]; /* the store's truth */
	_Atomic bool over;
};

static void *fill_and_look(void *user)
{
	struct crowd *crowd = user;

	for (unsigned n = 0; !atomic_load(&crowd->over); n++) {
		struct hpx_cache_mark mark = hpx_cache_mark(crowd->cache);
		struct hpx_record one = numbered(crowd->record, n % IDS);
		one.id.bytes[0] = (uint8_t)(n % IDS);
		if (!atomic_load(&crowd->gone[n % IDS]))
			hpx_cache_put(crowd->cache, &mark, &one, &answer);
		struct hpx_ask ask = ask_of(crowd->f->store, 1, BODY, B);
		ask.id = one.id;
		peek_by(crowd->cache, &ask);
	}
	return NULL;
}

static void no_thread_puts_in_what_another_removed(void **state)
{
	struct fixture *f = *state;
	struct crowd crowd = { .f = f, .cache = cache_of(f, ROOM, 1000) };
	pthread_t threads[LOOPS];

	crowd.record = stored(f, crowd.cache, 1);
	for (size_t i = 0; i < LOOPS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fill_and_look, &crowd), 0);
	for (unsigned n = 0; n < 20 * IDS; n++) {
		struct hpx_record one = numbered(crowd.record, n % IDS);
		one.id.bytes[0] = (uint8_t)(n % IDS);
		atomic_store(&crowd.gone[n % IDS], true);
		hpx_cache_invalidate(crowd.cache, &one.id, 1);
		hpx_cache_checked(crowd.cache, hpx_clock_boot_ms(), 0);
		struct hpx_ask ask = ask_of(f->store, 1, BODY, B);
		ask.id = one.id;
		assert_string_equal(peek_by(crowd.cache, &ask), "NOT_FOUND");
		/* Executed anew; the last time round it stays gone. */
		atomic_store(&crowd.gone[n % IDS], n >= 19 * IDS);
	}
	atomic_store(&crowd.over, true);
	for (size_t i = 0; i < LOOPS; i++)
		pthread_join(threads[i], NULL);
	hpx_cache_checked(crowd.cache, hpx_clock_boot_ms(), 0);
	for (unsigned n = 0; n < IDS; n++) {
		struct hpx_ask ask = ask_of(f->store, 1, BODY, B);
		ask.id = numbered(crowd.record, n).id;
		ask.id.bytes[0] = (uint8_t)n;
		assert_string_equal(peek_by(crowd.cache, &ask), "NOT_FOUND");
	}
	hpx_cache_free(crowd.cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(it_says_what_the_store_says),
		ON_EVERY_DRIVER(the_answer_and_the_record_are_the_stores),
		ON_SQLITE(only_completed_answers_are_kept),
		ON_SQLITE(what_was_not_used_for_longest_goes_first),
		ON_SQLITE(bounds_are_kept),
		ON_SQLITE(an_answer_that_is_too_large_drives_nothing_out),
		ON_EVERY_DRIVER(an_entry_ends_with_its_record_by_the_boot_clock),
		ON_LOCAL_DRIVERS(where_the_store_says_expired_so_does_it),
		ON_SQLITE(it_is_silent_while_it_hears_nothing),
		ON_SQLITE(what_was_read_before_a_removal_is_not_put_in_after_it),
		ON_MEMORY(no_thread_puts_in_what_another_removed),
	};
	return run_on_drivers("cache", tests);
}
