/* Shows what becomes of a finished operation after its expiry, on every driver: tombstones,
 * the history, and expiries that were put off. */
#include "delivery.h"

#include "base/clock.h"

enum { BODY = 1,
       OTHER = 2,
       A = 11,
       B = 12,
       C = 13 };

#define DAY_MS INT64_C(86400000)
#define TOMBSTONE_MS (30 * DAY_MS)

static struct hpx_policy with(int64_t tombstone_ms, enum hpx_expired expired)
{
	struct hpx_policy p = *policy();

	p.tombstone_ms = tombstone_ms;
	p.expired = expired;
	return p;
}

/* The decision's name; with a '+' where it was executed after its expiry. */
static const char *ask(struct fixture *f, const struct hpx_policy *by, unsigned key, unsigned body,
		       unsigned token)
{
	static char name[32];
	struct hpx_ask asked = ask_of(f->store, key, body, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	op.reserve.ask = &asked;
	op.reserve.policy = by;
	assert_status(run_op(f, &op), HPX_OK);
	snprintf(name, sizeof(name), "%s%s", hpx_decision_name(op.decision.kind),
		 op.decision.after_expiry ? "+" : "");
	hpx_answer_free(op.reserve.replay);
	return name;
}

static void complete_all(struct fixture *f, const struct hpx_policy *by, unsigned count)
{
	for (unsigned key = 1; key <= count; key++) {
		assert_string_equal(ask(f, by, key, BODY, A), "created");
		assert_status(complete(f, key, A, "done"), HPX_OK);
	}
}

static struct hpx_history history(struct fixture *f)
{
	struct hpx_history found;
	struct hpx_history_query query = { .until_ms = INT64_MAX / 4, .limit = 1000, .look_max = 100000 };

	assert_status(hpx_store_history(f->reader, &query, &f->arena, &found), HPX_OK);
	assert_false(found.more || found.cut || found.cut_reaped);
	return found;
}

/* Reopened with the history on. */
static void keep_history(struct fixture *f, int64_t retention_ms)
{
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];

	fixture_close(f);
	options.history_retention_ms = retention_ms;
	assert_status(hpx_store_open(&options, &f->store, problem), HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
}

/* ---- expired: execute and refuse ---- */

static void an_expired_key_is_executed_or_refused(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy execute = with(0, HPX_EXPIRED_EXECUTE);
	struct hpx_policy refuse = with(0, HPX_EXPIRED_REFUSE);

	complete_all(f, &refuse, 2);
	assert_string_equal(ask(f, &refuse, 1, BODY, B), "replay");
	assert_string_equal(ask(f, &refuse, 1, OTHER, B), "mismatch");
	advance(f, RETENTION_MS + 1);
	/* Expiry is judged before the fingerprint. */
	assert_string_equal(ask(f, &refuse, 1, BODY, B), "expired");
	assert_string_equal(ask(f, &refuse, 1, OTHER, B), "expired");
	assert_string_equal(ask(f, &execute, 2, BODY, B), "created+");
	assert_string_equal(events_of(f, 2), "reserved");
}

static void what_failed_did_not_happen_and_is_executed(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy refuse = with(TOMBSTONE_MS, HPX_EXPIRED_REFUSE);

	assert_string_equal(ask(f, &refuse, 1, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(ask(f, &refuse, 1, BODY, B), "created");
	assert_status(act(f, HPX_VERB_FAIL, 1, B), HPX_OK);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "none");
}

/* ---- tombstones ---- */

/* All but the answer is as it was. */
static void assert_buried(struct fixture *f, unsigned key, const struct hpx_record *before)
{
	struct hpx_record record = record_of(f, key);

	assert_null(body_of(f, key));
	assert_false(record.kept);
	assert_int_equal(record.status, 201);
	assert_memory_equal(record.id.bytes, before->id.bytes, sizeof(record.id.bytes));
	assert_memory_equal(record.fingerprint, before->fingerprint, sizeof(record.fingerprint));
	assert_memory_equal(record.tenant, before->tenant, sizeof(record.tenant));
	assert_true(hpx_mark_eq(&record.mark, &before->mark));
	assert_int_equal(record.created_ms, before->created_ms);
	assert_int_equal(record.changed_ms, before->changed_ms);
	assert_int_equal(record.expires_ms, before->expires_ms);
}

static void a_tombstone_outlives_the_answer(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy refuse = with(TOMBSTONE_MS, HPX_EXPIRED_REFUSE);
	struct hpx_record before[21];

	complete_all(f, &refuse, 20);
	for (unsigned key = 1; key <= 20; key++)
		before[key] = record_of(f, key);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	for (unsigned key = 1; key <= 20; key++) {
		assert_string_equal(ask(f, &refuse, key, BODY, B), "expired");
		assert_string_equal(state_of(f, key), "completed");
		assert_buried(f, key, &before[key]);
	}
	advance(f, TOMBSTONE_MS - RETENTION_MS);
	reap_all(f);
	assert_string_equal(ask(f, &refuse, 3, OTHER, B), "expired");
	advance(f, 2 * RETENTION_MS);
	reap_all(f);
	for (unsigned key = 1; key <= 20; key++)
		assert_string_equal(state_of(f, key), "none");
	assert_string_equal(ask(f, &refuse, 1, BODY, B), "created");
}

static void a_tombstone_tells_that_a_key_is_executed_again(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy execute = with(TOMBSTONE_MS, HPX_EXPIRED_EXECUTE);

	complete_all(f, &execute, 3);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_string_equal(ask(f, &execute, 1, BODY, B), "created+");
	assert_status(complete(f, 1, B, "anew"), HPX_OK);
	assert_string_equal(ask(f, &execute, 1, BODY, C), "replay");
	assert_string_equal(body_of(f, 1), "anew");
	/* And that one leaves a tombstone too. */
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_null(body_of(f, 1));
	assert_string_equal(ask(f, &execute, 1, BODY, C), "created+");
}

/* One that went another way than reserved and answered: a later attempt's. */
static void an_operation_with_a_past_leaves_a_tombstone(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy refuse = with(TOMBSTONE_MS, HPX_EXPIRED_REFUSE);

	assert_string_equal(ask(f, &refuse, 1, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_string_equal(ask(f, &refuse, 1, BODY, B), "retried");
	assert_status(complete(f, 1, B, "done"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_null(body_of(f, 1));
	assert_int_equal(record_of(f, 1).attempt, 2);
	assert_string_equal(ask(f, &refuse, 1, BODY, C), "expired");
	reap_all(f);
	advance(f, TOMBSTONE_MS);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "none");
}

/* What a backup lacked is like what was answered here: known until its expiry, then by its
 * tombstone, and then gone; also where the key had expired, or was a tombstone. */
static void what_is_restored_expires(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy buried = with(TOMBSTONE_MS, HPX_EXPIRED_REFUSE);

	complete_all(f, &buried, 2);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_string_equal(ask(f, &buried, 3, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, 3, A), HPX_OK);
	assert_string_equal(ask(f, &buried, 4, BODY, A), "created");
	assert_status(complete(f, 4, A, "done"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	for (unsigned key = 2; key <= 5; key++) {
		struct hpx_store_op op = op_of(HPX_VERB_RESTORE, key, B);

		op.restore.retention_ms = RETENTION_MS;
		op.restore.tombstone_ms = TOMBSTONE_MS;
		assert_status(run_op(f, &op), HPX_OK);
	}
	reap_all(f);
	for (unsigned key = 2; key <= 5; key++) {
		assert_string_equal(ask(f, &buried, key, OTHER, C), "replay");
		assert_null(body_of(f, key));
	}
	advance(f, RETENTION_MS + 1);
	for (int reaped = 0; reaped < 2; reaped++) {
		for (unsigned key = 1; key <= 5; key++)
			assert_string_equal(ask(f, &buried, key, OTHER, C), "expired");
		reap_all(f);
	}
	advance(f, TOMBSTONE_MS + RETENTION_MS);
	reap_all(f);
	for (unsigned key = 1; key <= 5; key++)
		assert_string_equal(state_of(f, key), "none");
}

/* While nobody can say what time it is, it happened and its answer is not kept. */
static void nothing_of_it_is_executed_while_the_clock_is_held(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy execute = with(TOMBSTONE_MS, HPX_EXPIRED_EXECUTE);

	complete_all(f, &execute, 2);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	atomic_store(&f->store->expiry_held, true);
	assert_string_equal(ask(f, &execute, 1, BODY, B), "replay");
	advance(f, 2 * TOMBSTONE_MS);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "completed");
	assert_string_equal(state_of(f, 2), "completed");
}

static void a_person_forgets_a_tombstone(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy refuse = with(TOMBSTONE_MS, HPX_EXPIRED_REFUSE);
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, 1, 0);

	complete_all(f, &refuse, 2);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	op.mark = mark_of(A);
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(ask(f, &refuse, 1, BODY, B), "created");
	assert_string_equal(ask(f, &refuse, 2, BODY, B), "expired");
}

/* ---- the history ---- */

static void every_finished_operation_is_told_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);
	struct hpx_policy buried = with(TOMBSTONE_MS, HPX_EXPIRED_EXECUTE);
	struct hpx_history found;

	keep_history(f, 400 * DAY_MS);
	complete_all(f, &plain, 10);
	for (unsigned key = 11; key <= 20; key++) {
		assert_string_equal(ask(f, &buried, key, BODY, A), "created");
		assert_status(complete(f, key, A, "done"), HPX_OK);
	}
	assert_string_equal(ask(f, &plain, 21, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, 21, A), HPX_OK);
	/* In progress is not finished. */
	assert_string_equal(ask(f, &plain, 22, BODY, A), "created");
	found = history(f);
	assert_int_equal(found.count, 21);
	assert_int_equal(found.retention_ms, 400 * DAY_MS);
	advance(f, RETENTION_MS + 1);
	sweep(f);
	reap_all(f);
	assert_int_equal(history(f).count, 21);
	/* A key that is used again is two operations. */
	assert_string_equal(ask(f, &plain, 11, BODY, B), "created+");
	assert_status(complete(f, 11, B, "anew"), HPX_OK);
	assert_int_equal(history(f).count, 22);
	advance(f, TOMBSTONE_MS);
	reap_all(f);
	found = history(f);
	assert_int_equal(found.count, 22);
	for (size_t i = 0; i < found.count; i++) {
		assert_int_equal(found.entries[i].expires_ms, 0);
		assert_true(found.entries[i].status == 201 ||
			    found.entries[i].state == HPX_STATE_FAILED_RETRYABLE);
		assert_true(i == 0 || found.entries[i].created_ms <= found.entries[i - 1].created_ms);
	}
	advance(f, 400 * DAY_MS);
	reap_all(f);
	assert_int_equal(history(f).count, 0);
}

static void a_used_again_key_leaves_an_entry_before_it_is_reaped(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);

	keep_history(f, 400 * DAY_MS);
	complete_all(f, &plain, 1);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(ask(f, &plain, 1, BODY, B), "created+");
	assert_int_equal(history(f).count, 1);
	assert_status(complete(f, 1, B, "anew"), HPX_OK);
	assert_int_equal(history(f).count, 2);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(ask(f, &plain, 1, BODY, C), "created+");
	assert_int_equal(history(f).count, 2);
}

/* A plain one, one with a past, a tombstone, and one that a job answered: what a person
 * forgets had happened. */
static void a_forgotten_operation_leaves_an_entry(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);
	struct hpx_policy buried = with(TOMBSTONE_MS, HPX_EXPIRED_EXECUTE);

	keep_history(f, 400 * DAY_MS);
	complete_all(f, &buried, 1);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_string_equal(ask(f, &plain, 2, BODY, A), "created");
	assert_status(complete(f, 2, A, "done"), HPX_OK);
	assert_string_equal(ask(f, &plain, 3, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, 3, A), HPX_OK);
	assert_string_equal(ask(f, &plain, 3, BODY, B), "retried");
	assert_status(complete(f, 3, B, "done"), HPX_OK);
	/* Released, and of unknown outcome: neither is finished. */
	assert_string_equal(ask(f, &plain, 4, BODY, A), "created");
	assert_status(act(f, HPX_VERB_RELEASE, 4, A), HPX_OK);
	bring_to(f, 5, HPX_STATE_UNKNOWN, A);
	assert_string_equal(accept_later(f, 6, A), "created");
	struct hpx_delivery job = claim_one(f, 0);
	assert_status(end_job(f, &job, HPX_JOB_MOVE_DELIVER), HPX_OK);
	for (unsigned key = 1; key <= 6; key++) {
		struct hpx_store_op op = op_of(HPX_VERB_FORGET, key, 0);

		op.mark = mark_of(A);
		op_forces(&op, true);
		assert_status(run_op(f, &op), key == 4 ? HPX_NOT_FOUND : HPX_OK);
		assert_string_equal(state_of(f, key), "none");
		assert_int_equal(history(f).count, 4);
	}
	assert_string_equal(ask(f, &plain, 2, BODY, B), "created");
	assert_status(complete(f, 2, B, "anew"), HPX_OK);
	assert_int_equal(history(f).count, 5);
}

static void without_a_history_nothing_is_left(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);

	complete_all(f, &plain, 3);
	assert_int_equal(history(f).count, 3);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_int_equal(history(f).count, 0);
}

static void turned_off_the_history_stays(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);

	keep_history(f, 400 * DAY_MS);
	complete_all(f, &plain, 3);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	int64_t shift_ms = atomic_load(&f->store->wall_shift_ms);
	keep_history(f, 0);
	advance(f, shift_ms + 500 * DAY_MS);
	reap_all(f);
	assert_int_equal(history(f).count, 3);
	assert_int_equal(history(f).retention_ms, 0);
}

static void the_history_is_searched(void **state)
{
	static const struct {
		struct hpx_history_query query;
		size_t count;
	} rows[] = {
		{ { .limit = 100, .look_max = 1000 }, 6 },
		{ { .limit = 4, .look_max = 1000 }, 4 },
		{ { .limit = 100, .look_max = 1000, .status_min = 201, .status_max = 201 }, 6 },
		{ { .limit = 100, .look_max = 1000, .status_min = 400, .status_max = 499 }, 0 },
		{ { .limit = 100, .look_max = 1000, .key = HPX_SPAN_INIT("no such") }, 0 },
		{ { .limit = 100, .look_max = 1000, .tenant = HPX_SPAN_INIT("nobody") }, 0 },
		{ { .limit = 100, .look_max = 3 }, 3 },
	};
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);

	keep_history(f, 400 * DAY_MS);
	complete_all(f, &plain, 6);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_history_query query = rows[i].query;
		struct hpx_history found;

		query.until_ms = INT64_MAX / 4;
		assert_status(hpx_store_history(f->reader, &query, &f->arena, &found), HPX_OK);
		assert_int_equal(found.count, rows[i].count);
		assert_int_equal(found.more, query.limit == 4);
		assert_int_equal(found.cut_reaped, query.look_max == 3);
		assert_int_equal(found.reached_ms > 0, true);
		query.until_ms = 1;
		assert_status(hpx_store_history(f->reader, &query, &f->arena, &found), HPX_OK);
		assert_int_equal(found.count, 0);
	}
}

static void memory_keeps_no_history(void **state)
{
	struct fixture *f = *state;
	struct hpx_history_query query = { .until_ms = 1, .limit = 1, .look_max = 1 };
	struct hpx_history found;

	assert_status(hpx_store_history(f->reader, &query, &f->arena, &found), HPX_UNSUPPORTED);
}

/* ---- expiries that are put off ---- */

static enum hpx_status extend(struct fixture *f, unsigned key, unsigned first, int64_t until_ms)
{
	struct hpx_store_op op = op_of(HPX_VERB_EXTEND, key, 0);

	op.mark = mark_of(first);
	op.extend.until_ms = until_ms;
	return run_op(f, &op);
}

static void a_person_puts_an_expiry_off(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);

	complete_all(f, &plain, 2);
	int64_t expires_ms = record_of(f, 1).expires_ms;
	assert_status(extend(f, 1, B, expires_ms + 10 * DAY_MS), HPX_STALE);
	assert_status(extend(f, 9, A, expires_ms + 10 * DAY_MS), HPX_NOT_FOUND);
	assert_status(extend(f, 1, A, 0), HPX_MISUSE);
	assert_status(extend(f, 1, A, HPX_EXPIRES_MAX_MS + 1), HPX_MISUSE);
	assert_status(extend(f, 1, A, expires_ms + 10 * DAY_MS), HPX_OK);
	assert_int_equal(record_of(f, 1).expires_ms, expires_ms + 10 * DAY_MS);
	assert_string_equal(events_of(f, 1), "extended");
	/* Never to an earlier time. */
	assert_status(extend(f, 1, A, expires_ms), HPX_OK);
	assert_int_equal(record_of(f, 1).expires_ms, expires_ms + 10 * DAY_MS);
	assert_string_equal(events_of(f, 1), "extended");
	assert_string_equal(body_of(f, 1), "done");
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_string_equal(ask(f, &plain, 1, BODY, B), "replay");
	assert_string_equal(body_of(f, 1), "done");
	assert_string_equal(state_of(f, 2), "none");
	advance(f, 10 * DAY_MS);
	assert_status(extend(f, 1, A, expires_ms + 90 * DAY_MS), HPX_REFUSED);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "none");
}

static void what_is_not_finished_has_no_expiry_to_put_off(void **state)
{
	struct fixture *f = *state;

	bring_to(f, 1, HPX_STATE_IN_PROGRESS, A);
	bring_to(f, 2, HPX_STATE_UNKNOWN, A);
	assert_status(extend(f, 1, A, HPX_EXPIRES_MAX_MS), HPX_REFUSED);
	assert_status(extend(f, 2, A, HPX_EXPIRES_MAX_MS), HPX_REFUSED);
	bring_to(f, 3, HPX_STATE_FAILED_RETRYABLE, A);
	assert_status(extend(f, 3, A, HPX_EXPIRES_MAX_MS), HPX_OK);
	assert_int_equal(record_of(f, 3).expires_ms, HPX_EXPIRES_MAX_MS);
}

static void an_answer_may_be_kept_longer_than_the_others(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy plain = with(0, HPX_EXPIRED_EXECUTE);
	struct hpx_answer *answer = hpx_answer_new(201, true, HPX_SPAN("A: b\r\n"), HPX_SPAN("long"));
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, 1, A);

	assert_string_equal(ask(f, &plain, 1, BODY, A), "created");
	op_answers(&op, answer);
	op.complete.retention_ms = -1;
	assert_status(run_op(f, &op), HPX_MISUSE);
	op.complete.retention_ms = 70 * DAY_MS;
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(record_of(f, 1).expires_ms - record_of(f, 1).changed_ms, 70 * DAY_MS);
	/* Never shorter. */
	assert_string_equal(ask(f, &plain, 2, BODY, A), "created");
	op = op_of(HPX_VERB_COMPLETE, 2, A);
	op_answers(&op, answer);
	op.complete.retention_ms = 1;
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(record_of(f, 2).expires_ms - record_of(f, 2).changed_ms, RETENTION_MS);
	advance(f, 69 * DAY_MS);
	reap_all(f);
	assert_string_equal(ask(f, &plain, 1, BODY, B), "replay");
	assert_string_equal(body_of(f, 1), "long");
	assert_string_equal(state_of(f, 2), "none");
	advance(f, 2 * DAY_MS);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "none");
	hpx_answer_free(answer);
}

#define ON_KEEPING_DRIVERS(test) ON_SQLITE(test), ON_POSTGRES(test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(an_expired_key_is_executed_or_refused),
		ON_EVERY_DRIVER(what_failed_did_not_happen_and_is_executed),
		ON_EVERY_DRIVER(a_tombstone_outlives_the_answer),
		ON_EVERY_DRIVER(a_tombstone_tells_that_a_key_is_executed_again),
		ON_EVERY_DRIVER(an_operation_with_a_past_leaves_a_tombstone),
		ON_EVERY_DRIVER(what_is_restored_expires),
		ON_LOCAL_DRIVERS(nothing_of_it_is_executed_while_the_clock_is_held),
		ON_EVERY_DRIVER(a_person_forgets_a_tombstone),
		ON_KEEPING_DRIVERS(every_finished_operation_is_told_once),
		ON_KEEPING_DRIVERS(a_used_again_key_leaves_an_entry_before_it_is_reaped),
		ON_KEEPING_DRIVERS(a_forgotten_operation_leaves_an_entry),
		ON_KEEPING_DRIVERS(without_a_history_nothing_is_left),
		ON_KEEPING_DRIVERS(turned_off_the_history_stays),
		ON_KEEPING_DRIVERS(the_history_is_searched),
		ON_MEMORY(memory_keeps_no_history),
		ON_EVERY_DRIVER(a_person_puts_an_expiry_off),
		ON_EVERY_DRIVER(what_is_not_finished_has_no_expiry_to_put_off),
		ON_EVERY_DRIVER(an_answer_may_be_kept_longer_than_the_others),
	};
	return run_on_drivers("expiry", tests);
}
