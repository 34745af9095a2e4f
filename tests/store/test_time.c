/* Shows that leases, expiry, sweeping and reaping go by the right clock, and
 * that a wall clock which was set holds expiry until a person accepts it. */
#include "fixture.h"

#include "base/clock.h"

enum { BODY = 1,
       A = 11,
       B = 12,
       C = 13 };

static void a_lost_lease_becomes_unknown_by_the_sweeper(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	advance(f, LEASE_MS - 1000);
	assert_int_equal(sweep(f), 0);
	assert_string_equal(state_of(f, 1), "in_progress");
	advance(f, 1001);
	assert_int_equal(sweep(f), 1);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_string_equal(events_of(f, 1), "lease_lost");
	assert_int_equal(sweep(f), 0);
}

static void a_lost_lease_becomes_unknown_by_a_retry(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	advance(f, LEASE_MS + 1);
	assert_string_equal(reserve(f, 1, BODY, B), "unknown");
	assert_string_equal(state_of(f, 1), "unknown");
	assert_string_equal(events_of(f, 1), "lease_lost");
}

static void the_sweeper_names_what_it_touched_within_its_limit(void **state)
{
	struct fixture *f = *state;
	struct hpx_touched touched[2];
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP, 0, 0);

	for (unsigned key = 1; key <= 3; key++)
		reserve(f, key, BODY, A);
	advance(f, LEASE_MS + 1);
	op.sweep.limit = 2;
	op.sweep.touched = touched;
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(op.sweep.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		bool known = false;
		for (unsigned key = 1; key <= 3; key++) {
			struct hpx_operation_id id = id_of(key);
			known |= hpx_operation_id_eq(&id, &touched[i].id) &&
				 strcmp(state_of(f, key), "unknown") == 0;
		}
		assert_true(known);
	}
	assert_int_equal(sweep(f), 1);
}

/* The log tells it: a lost attempt is not always unknown. */
static void the_sweeper_tells_what_became_of_each(void **state)
{
	struct fixture *f = *state;
	struct hpx_touched touched[2];
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP, 0, 0), resumed = op_of(HPX_VERB_RESERVE, 2, B);
	struct hpx_ask ask = ask_of(f->store, 2, BODY, B);
	struct hpx_policy may_resume = *policy();

	may_resume.on_lost = HPX_ON_LOST_RESUME;
	resumed.reserve.ask = &ask;
	resumed.reserve.policy = &may_resume;
	reserve(f, 1, BODY, A);
	assert_status(run_op(f, &resumed), HPX_OK);
	advance(f, LEASE_MS + 1);
	op.sweep.limit = 2;
	op.sweep.touched = touched;
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(op.sweep.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct hpx_operation_id first = id_of(1);
		bool is_first = hpx_operation_id_eq(&first, &touched[i].id);

		assert_string_equal(hpx_state_name(touched[i].state),
				    is_first ? "unknown" : "failed_retryable");
		assert_string_equal(state_of(f, is_first ? 1 : 2), hpx_state_name(touched[i].state));
	}
}

static void a_renewed_lease_holds_and_an_old_one_cannot_be_renewed(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	advance(f, LEASE_MS - 1000);
	assert_status(act(f, HPX_VERB_RENEW, 1, A), HPX_OK);
	advance(f, LEASE_MS - 1000);
	assert_int_equal(sweep(f), 0);
	assert_string_equal(reserve(f, 1, BODY, B), "in_progress");
	advance(f, 2000);
	assert_int_equal(sweep(f), 1);
	assert_status(act(f, HPX_VERB_RENEW, 1, A), HPX_REFUSED);
}

/* Mistake 2 of the field: a stale owner's heartbeat extends the new lease. */
static void a_renewal_dies_with_its_attempt(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op renew = op_of(HPX_VERB_RENEW, 1, A);

	reserve(f, 1, BODY, A);
	renew.renew.lease_ms = 100 * LEASE_MS;
	assert_status(run_op(f, &renew), HPX_OK);
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
	assert_status(run_op(f, &renew), HPX_STALE);
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep(f), 1);
	assert_string_equal(state_of(f, 1), "unknown");
}

/* Mistake 1: a stale lease holder overwrites the newer result. */
static void a_stale_attempt_cannot_overwrite(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	advance(f, LEASE_MS + 1);
	sweep(f);
	assert_status(resolve(f, 1, A, false), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
	assert_status(complete(f, 1, A, "stale"), HPX_STALE);
	assert_status(complete(f, 1, B, "right"), HPX_OK);
	assert_status(complete(f, 1, A, "stale"), HPX_STALE);
	assert_string_equal(body_of(f, 1), "right");
}

static void the_late_answer_of_the_same_lease_completes_an_unknown(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	advance(f, LEASE_MS + 1);
	sweep(f);
	assert_status(complete(f, 1, A, "late"), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	assert_string_equal(events_of(f, 1), "lease_lost completed");
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
}

/* Mistake 16: seconds compared with milliseconds. */
static void times_are_what_the_policy_says(void **state)
{
	struct fixture *f = *state;
	int64_t before_ms = hpx_clock_wall_ms();
	int64_t lease_ms = fixture_lease_ms(f);
	struct hpx_record record;

	reserve(f, 1, BODY, A);
	record = record_of(f, 1);
	assert_in_range(record.created_ms - before_ms, 0, 5000);
	assert_in_range(record.lease_until_ms - lease_ms, LEASE_MS, LEASE_MS + 5000);
	assert_int_equal(record.expires_ms, 0);
	complete(f, 1, A, "x");
	record = record_of(f, 1);
	assert_in_range(record.expires_ms - before_ms, RETENTION_MS, RETENTION_MS + 5000);
}

static void an_expired_key_is_a_new_operation(void **state)
{
	struct fixture *f = *state;
	struct hpx_mark mark = mark_of(B);
	struct hpx_record record;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "old answer");
	advance(f, RETENTION_MS + 1);
	/* Expiry is judged before the fingerprint: another body is no mismatch. */
	assert_string_equal(reserve(f, 1, BODY + 1, B), "created");
	record = record_of(f, 1);
	assert_true(hpx_mark_eq(&record.mark, &mark));
	assert_int_equal(record.attempt, 1);
	assert_null(body_of(f, 1));
	assert_status(complete(f, 1, A, "stale"), HPX_STALE);
	assert_status(resolve(f, 1, A, true), HPX_STALE);
	assert_string_equal(events_of(f, 1), "reserved");
	assert_status(complete(f, 1, B, "new answer"), HPX_OK);
	assert_string_equal(body_of(f, 1), "new answer");
}

/* Mistake 20: the reaper deletes rows that are still running. */
static void the_reaper_takes_what_has_expired_and_nothing_else(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 2, A);
	reserve(f, 3, BODY, A);
	complete(f, 3, A, "x");
	reserve(f, 4, BODY, A);
	act(f, HPX_VERB_FAIL, 4, A);
	assert_int_equal(reap(f), 0);
	advance(f, RETENTION_MS + 1);
	assert_int_equal(reap(f), fixture_is_sqlite(f) ? 1 : 2);
	assert_string_equal(state_of(f, 1), "in_progress");
	assert_string_equal(state_of(f, 2), "unknown");
	assert_string_equal(state_of(f, 4), "none");
	/* On SQLite plain rows go with their generation, once all in it have expired. */
	if (fixture_is_sqlite(f)) {
		assert_string_equal(state_of(f, 3), "completed");
		assert_status(complete(f, 1, A, "late"), HPX_OK);
		assert_int_equal(reap(f), 0);
		advance(f, RETENTION_MS + 1);
		reap(f);
		assert_string_equal(state_of(f, 1), "none");
		assert_string_equal(state_of(f, 2), "unknown");
	}
	assert_string_equal(state_of(f, 3), "none");
	/* Events outlive the record, for their own retention. */
	assert_string_equal(events_of(f, 4), "not_executed");
	advance(f, 7 * (int64_t)RETENTION_MS);
	reap(f);
	assert_string_equal(events_of(f, 4), "");
}

static void the_reaper_keeps_its_limit(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_REAP, 0, 0);

	for (unsigned key = 0; key < 5; key++) {
		reserve(f, key, BODY, A);
		complete(f, key, A, "x");
	}
	advance(f, RETENTION_MS + 1);
	op.reap.limit = 3;
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(op.reap.count, 3);
	assert_int_equal(reap(f), 2);
}

static void a_wall_clock_that_was_set_holds_expiry(void **state)
{
	static const int64_t steps_ms[] = { 2 * (int64_t)RETENTION_MS, -2 * (int64_t)RETENTION_MS };
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2; i++) {
		reserve(f, i, BODY, A);
		complete(f, i, A, "kept");
		atomic_fetch_add(&f->store->wall_shift_ms, steps_ms[i]);
		assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
		assert_true(atomic_load(&f->store->expiry_held));
		assert_string_equal(reserve(f, i, BODY, B), "replay");
		assert_int_equal(reap(f), 0);
		assert_status(act(f, HPX_VERB_ACCEPT_CLOCK, 0, 0), HPX_OK);
		assert_false(atomic_load(&f->store->expiry_held));
	}
}

/* Not even before anybody had the time to look at the clocks thoroughly. */
static void a_clock_that_was_just_set_expires_nothing(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "kept");
	atomic_fetch_add(&f->store->wall_shift_ms, 2 * (int64_t)RETENTION_MS);
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	assert_int_equal(reap(f), 0);
	assert_string_equal(state_of(f, 1), "completed");
}

static void a_held_clock_stays_held_although_it_returns(void **state)
{
	struct fixture *f = *state;

	atomic_fetch_add(&f->store->wall_shift_ms, 100000);
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	atomic_fetch_sub(&f->store->wall_shift_ms, 100000);
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_true(atomic_load(&f->store->expiry_held));
	if (fixture_is_sqlite(f))
		fixture_reopen(f);
	assert_true(atomic_load(&f->store->expiry_held));
}

static void a_small_correction_is_no_step(void **state)
{
	struct fixture *f = *state;

	atomic_fetch_add(&f->store->wall_shift_ms, 59000);
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_false(atomic_load(&f->store->expiry_held));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(a_lost_lease_becomes_unknown_by_the_sweeper),
		ON_EVERY_DRIVER(a_lost_lease_becomes_unknown_by_a_retry),
		ON_EVERY_DRIVER(the_sweeper_names_what_it_touched_within_its_limit),
		ON_EVERY_DRIVER(the_sweeper_tells_what_became_of_each),
		ON_EVERY_DRIVER(a_renewed_lease_holds_and_an_old_one_cannot_be_renewed),
		ON_EVERY_DRIVER(a_renewal_dies_with_its_attempt),
		ON_EVERY_DRIVER(a_stale_attempt_cannot_overwrite),
		ON_EVERY_DRIVER(the_late_answer_of_the_same_lease_completes_an_unknown),
		ON_EVERY_DRIVER(times_are_what_the_policy_says),
		ON_EVERY_DRIVER(an_expired_key_is_a_new_operation),
		ON_EVERY_DRIVER(the_reaper_takes_what_has_expired_and_nothing_else),
		ON_EVERY_DRIVER(the_reaper_keeps_its_limit),
		ON_LOCAL_DRIVERS(a_wall_clock_that_was_set_holds_expiry),
		ON_SQLITE(a_clock_that_was_just_set_expires_nothing),
		ON_LOCAL_DRIVERS(a_held_clock_stays_held_although_it_returns),
		ON_LOCAL_DRIVERS(a_small_correction_is_no_step),
	};
	return run_on_drivers("time", tests);
}
