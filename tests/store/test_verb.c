/* Shows what every verb does to a record in every state, by its own token and
 * by an old one, on every driver. */
#include "fixture.h"

/* The attempt under test holds OWN; OLD is an attempt of the past. */
enum { OWN = 7,
       OLD = 8,
       BODY = 1 };

struct row {
	enum hpx_state before;
	enum hpx_verb verb;
	bool applied; /* RESOLVE */
	bool force;   /* FORGET */
	enum hpx_status status;
	const char *after;
};

#define S(name) HPX_STATE_##name
#define V(name) HPX_VERB_##name

/* In completed and unknown the lease's token is still the attempt's; in
 * failed_retryable it is void, so nothing of the attempt may write. */
static const struct row rows[] = {
	{ S(NONE), V(COMPLETE), 0, 0, HPX_STALE, "none" },
	{ S(NONE), V(FAIL), 0, 0, HPX_STALE, "none" },
	{ S(NONE), V(RELEASE), 0, 0, HPX_STALE, "none" },
	{ S(NONE), V(MARK_UNKNOWN), 0, 0, HPX_STALE, "none" },
	{ S(NONE), V(RENEW), 0, 0, HPX_STALE, "none" },
	{ S(NONE), V(CONCLUDE), 0, 0, HPX_STALE, "none" },
	{ S(NONE), V(RESOLVE), 1, 0, HPX_NOT_FOUND, "none" },
	{ S(NONE), V(FORGET), 0, 1, HPX_NOT_FOUND, "none" },

	{ S(IN_PROGRESS), V(COMPLETE), 0, 0, HPX_OK, "completed" },
	{ S(IN_PROGRESS), V(FAIL), 0, 0, HPX_OK, "failed_retryable" },
	{ S(IN_PROGRESS), V(RELEASE), 0, 0, HPX_OK, "none" },
	{ S(IN_PROGRESS), V(MARK_UNKNOWN), 0, 0, HPX_OK, "unknown" },
	{ S(IN_PROGRESS), V(RENEW), 0, 0, HPX_OK, "in_progress" },
	{ S(IN_PROGRESS), V(CONCLUDE), 0, 0, HPX_OK, "failed_retryable" },
	{ S(IN_PROGRESS), V(RESOLVE), 1, 0, HPX_REFUSED, "in_progress" },
	{ S(IN_PROGRESS), V(RESOLVE), 0, 0, HPX_REFUSED, "in_progress" },
	{ S(IN_PROGRESS), V(FORGET), 0, 0, HPX_REFUSED, "in_progress" },
	{ S(IN_PROGRESS), V(FORGET), 0, 1, HPX_OK, "none" },

	{ S(FAILED_RETRYABLE), V(COMPLETE), 0, 0, HPX_STALE, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(FAIL), 0, 0, HPX_STALE, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(RELEASE), 0, 0, HPX_STALE, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(MARK_UNKNOWN), 0, 0, HPX_STALE, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(RENEW), 0, 0, HPX_STALE, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(CONCLUDE), 0, 0, HPX_STALE, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(RESOLVE), 1, 0, HPX_REFUSED, "failed_retryable" },
	{ S(FAILED_RETRYABLE), V(FORGET), 0, 0, HPX_OK, "none" },

	{ S(COMPLETED), V(COMPLETE), 0, 0, HPX_OK, "completed" },
	{ S(COMPLETED), V(FAIL), 0, 0, HPX_REFUSED, "completed" },
	{ S(COMPLETED), V(RELEASE), 0, 0, HPX_REFUSED, "completed" },
	{ S(COMPLETED), V(MARK_UNKNOWN), 0, 0, HPX_REFUSED, "completed" },
	{ S(COMPLETED), V(RENEW), 0, 0, HPX_REFUSED, "completed" },
	{ S(COMPLETED), V(CONCLUDE), 0, 0, HPX_OK, "completed" },
	{ S(COMPLETED), V(RESOLVE), 1, 0, HPX_REFUSED, "completed" },
	{ S(COMPLETED), V(RESOLVE), 0, 0, HPX_REFUSED, "completed" },
	{ S(COMPLETED), V(FORGET), 0, 0, HPX_OK, "none" },

	{ S(UNKNOWN), V(COMPLETE), 0, 0, HPX_OK, "completed" },
	{ S(UNKNOWN), V(FAIL), 0, 0, HPX_OK, "failed_retryable" },
	{ S(UNKNOWN), V(MARK_UNKNOWN), 0, 0, HPX_OK, "unknown" },
	{ S(UNKNOWN), V(RENEW), 0, 0, HPX_REFUSED, "unknown" },
	{ S(UNKNOWN), V(CONCLUDE), 0, 0, HPX_OK, "failed_retryable" },
	{ S(UNKNOWN), V(RESOLVE), 1, 0, HPX_OK, "completed" },
	{ S(UNKNOWN), V(RESOLVE), 0, 0, HPX_OK, "failed_retryable" },
	{ S(UNKNOWN), V(FORGET), 0, 0, HPX_REFUSED, "unknown" },
	{ S(UNKNOWN), V(FORGET), 0, 1, HPX_OK, "none" },
};

static enum hpx_status try_row(struct fixture *f, const struct row *row, unsigned key,
			       unsigned token)
{
	struct hpx_store_op op = op_of(row->verb, key, token);
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("second") };

	if (row->verb == HPX_VERB_RESOLVE)
		op.resolve.applied = row->applied;
	op_forces(&op, row->force);
	if (row->verb == HPX_VERB_COMPLETE || row->applied)
		op_answers(&op, &answer);
	return run_op(f, &op);
}

static void check(struct fixture *f, const struct row *row, unsigned key, enum hpx_status got,
		  enum hpx_status want, const char *after)
{
	if (got == want && strcmp(state_of(f, key), after) == 0)
		return;
	print_error("%s in %s: got %s and %s, want %s and %s\n", hpx_verb_name(row->verb),
		    hpx_state_name(row->before), hpx_status_name(got), state_of(f, key),
		    hpx_status_name(want), after);
	fail();
}

static void every_verb_in_every_state(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bring_to(f, i, rows[i].before, OWN);
		check(f, &rows[i], i, try_row(f, &rows[i], i, OWN), rows[i].status, rows[i].after);
	}
}

static void an_old_token_changes_nothing(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].before == HPX_STATE_NONE)
			continue;
		bring_to(f, i, rows[i].before, OWN);
		check(f, &rows[i], i, try_row(f, &rows[i], i, OLD), HPX_STALE,
		      hpx_state_name(rows[i].before));
	}
}

/* The reference is what every client is told. Taken for a lease, it is a stale
 * one; and a lease is no reference. */
static void a_reference_is_no_lease(void **state)
{
	struct hpx_mark mark = mark_of(OWN);
	struct hpx_token token = token_of(OWN);
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("forged") };
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_store_op op = op_of(rows[i].verb, i, OWN);

		if (rows[i].before == HPX_STATE_NONE)
			continue;
		bring_to(f, i, rows[i].before, OWN);
		struct hpx_record record = record_of(f, i);
		assert_true(hpx_mark_eq(&mark, &record.mark));
		memcpy(op.token.bytes, mark.bytes, sizeof(op.token.bytes));
		memcpy(op.mark.bytes, token.bytes, sizeof(op.mark.bytes));
		op_answers(&op, &answer);
		if (op.verb == HPX_VERB_RESOLVE)
			op.resolve.applied = rows[i].applied;
		op_forces(&op, rows[i].force);
		check(f, &rows[i], i, run_op(f, &op), HPX_STALE, hpx_state_name(rows[i].before));
	}
}

/* Only who ended the attempt before knows what to do with "already". */
static void what_was_completed_before_is_told(void **state)
{
	static const struct {
		enum hpx_state before;
		enum hpx_verb verb;
		bool already;
	} told[] = {
		{ S(IN_PROGRESS), V(COMPLETE), false },
		{ S(COMPLETED), V(COMPLETE), true },
		{ S(IN_PROGRESS), V(CONCLUDE), false },
		{ S(COMPLETED), V(CONCLUDE), true },
		{ S(UNKNOWN), V(MARK_UNKNOWN), false },
	};
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("second") };
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct hpx_store_op op = op_of(told[i].verb, i, OWN);
		bring_to(f, i, told[i].before, OWN);
		op_answers(&op, &answer);
		assert_status(run_op(f, &op), HPX_OK);
		bool already = (op.verb == HPX_VERB_COMPLETE && op.complete.already) ||
			       (op.verb == HPX_VERB_CONCLUDE && op.conclude.already);
		if (already != told[i].already)
			fail_msg("%s in %s: already is %d", hpx_verb_name(told[i].verb),
				 hpx_state_name(told[i].before), already);
	}
}

/* People read in the record what the upstream answered, whichever verb ended the
 * attempt. */
static void the_status_seen_is_kept(void **state)
{
	struct hpx_store_op ops[] = {
		{ .verb = V(FAIL), .fail.status_seen = 503 },
		{ .verb = V(MARK_UNKNOWN), .mark_unknown.status_seen = 503 },
		{ .verb = V(CONCLUDE), .conclude.end.status_seen = 503 },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct hpx_store_op about = op_of(ops[i].verb, i, OWN);
		ops[i].id = about.id;
		ops[i].token = about.token;
		ops[i].actor = about.actor;
		bring_to(f, i, S(IN_PROGRESS), OWN);
		assert_status(run_op(f, &ops[i]), HPX_OK);
		assert_int_equal(ops[i].decision.record.status, 503);
	}
}

/* What went wrong last stands in the record, through the next attempt and its success. */
static void the_last_error_is_kept(void **state)
{
	static const struct {
		struct hpx_store_op op;
		const char *error;
	} ends[] = {
		{ { .verb = V(FAIL), .fail.status_seen = 503 }, "status_503" },
		{ { .verb = V(FAIL), .fail.error = HPX_LAST_ERROR_UPSTREAM_UNREACHABLE }, "upstream_unreachable" },
		{ { .verb = V(FAIL) }, "not_executed" },
		{ { .verb = V(CONCLUDE), .conclude.end.status_seen = 200 }, "not_committed" },
		{ { .verb = V(MARK_UNKNOWN), .mark_unknown.error = HPX_LAST_ERROR_UPSTREAM_RESET }, "upstream_reset" },
		{ { .verb = V(MARK_UNKNOWN), .mark_unknown.status_seen = 507 }, "status_5xx" },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct hpx_store_op op = ends[i].op, about = op_of(op.verb, i, OWN);
		op.id = about.id;
		op.token = about.token;
		op.actor = about.actor;
		bring_to(f, i, S(IN_PROGRESS), OWN);
		assert_string_equal(hpx_last_error_name(record_of(f, i).last_error), "");
		assert_status(run_op(f, &op), HPX_OK);
		assert_string_equal(hpx_last_error_name(record_of(f, i).last_error), ends[i].error);
		if (op.verb == HPX_VERB_MARK_UNKNOWN) {
			struct hpx_store_op resolve = op_of(HPX_VERB_RESOLVE, i, OWN);
			assert_status(run_op(f, &resolve), HPX_OK);
		}
		assert_string_equal(reserve(f, i, BODY, OLD), "retried");
		assert_string_equal(hpx_last_error_name(record_of(f, i).last_error), ends[i].error);
		complete(f, i, OLD, "paid");
		assert_string_equal(hpx_last_error_name(record_of(f, i).last_error), ends[i].error);
		advance(f, RETENTION_MS + 1);
		assert_string_equal(reserve(f, i, BODY, OWN), "created");
		assert_string_equal(hpx_last_error_name(record_of(f, i).last_error), "");
	}
	advance(f, LEASE_MS + 1);
	sweep(f);
	assert_string_equal(hpx_last_error_name(record_of(f, 0).last_error), "lease_lost");
}

/* What the route says of a lost attempt is kept with it, by every driver. */
static void a_lost_attempt_becomes_what_its_route_says(void **state)
{
	static const struct {
		enum hpx_on_lost on_lost;
		enum hpx_completes completes;
		const char *after;
		const char *decision;
	} lost[] = {
		{ HPX_ON_LOST_UNKNOWN, HPX_COMPLETES_UPSTREAM, "unknown", "unknown" },
		{ HPX_ON_LOST_RESUME, HPX_COMPLETES_UPSTREAM, "failed_retryable", "retried" },
		{ HPX_ON_LOST_UNKNOWN, HPX_COMPLETES_APPLICATION, "failed_retryable", "retried" },
	};
	struct fixture *f = *state;

	/* By the answer's loss, by the sweeper, and by a retry that finds it. */
	for (unsigned way = 0; way < 3; way++) {
		for (unsigned i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
			unsigned key = 10 * way + i;
			struct hpx_ask ask = ask_of(f->store, key, BODY, OWN);
			struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, OWN);
			struct hpx_policy p = *policy();
			p.on_lost = lost[i].on_lost;
			p.completes = lost[i].completes;
			p.fenced = true;
			op.reserve.ask = &ask;
			op.reserve.policy = &p;
			assert_status(run_op(f, &op), HPX_OK);
			if (way == 0)
				assert_status(act(f, HPX_VERB_MARK_UNKNOWN, key, OWN), HPX_OK);
			else
				advance(f, LEASE_MS + 1);
			if (way == 1)
				assert_int_equal(sweep(f), 1);
			if (way < 2)
				assert_string_equal(state_of(f, key), lost[i].after);
			assert_string_equal(reserve(f, key, BODY, OLD), lost[i].decision);
			act(f, HPX_VERB_FAIL, key, OLD);
		}
	}
}

static void reserve_decides_by_state(void **state)
{
	static const struct {
		enum hpx_state before;
		unsigned body;
		const char *decision;
		const char *after;
	} asks[] = {
		{ S(NONE), BODY, "created", "in_progress" },
		{ S(IN_PROGRESS), BODY, "in_progress", "in_progress" },
		{ S(FAILED_RETRYABLE), BODY, "retried", "in_progress" },
		{ S(COMPLETED), BODY, "replay", "completed" },
		{ S(UNKNOWN), BODY, "unknown", "unknown" },
		{ S(IN_PROGRESS), 2, "mismatch", "in_progress" },
		{ S(FAILED_RETRYABLE), 2, "mismatch", "failed_retryable" },
		{ S(COMPLETED), 2, "mismatch", "completed" },
		{ S(UNKNOWN), 2, "mismatch", "unknown" },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		bring_to(f, i, asks[i].before, OWN);
		assert_string_equal(reserve(f, i, asks[i].body, OLD), asks[i].decision);
		assert_string_equal(state_of(f, i), asks[i].after);
	}
}

static void ops_of_one_batch_see_each_other(void **state)
{
	struct fixture *f = *state;
	struct hpx_ask ask = ask_of(f->store, 1, BODY, OWN);
	struct hpx_ask again = ask_of(f->store, 1, BODY, OLD);
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("yes") };
	struct hpx_store_op ops[4] = {
		op_of(HPX_VERB_RESERVE, 1, OWN), op_of(HPX_VERB_RESERVE, 1, OLD),
		op_of(HPX_VERB_COMPLETE, 1, OWN), op_of(HPX_VERB_RESERVE, 1, OLD)
	};
	struct hpx_store_op *batch[4] = { &ops[0], &ops[1], &ops[2], &ops[3] };

	ops[0].reserve.ask = &ask;
	ops[1].reserve.ask = ops[3].reserve.ask = &again;
	ops[2].complete.answer = &answer;
	assert_status(hpx_store_run(f->store, batch, 4, NULL), HPX_OK);
	assert_string_equal(hpx_decision_name(ops[0].decision.kind), "created");
	assert_string_equal(hpx_decision_name(ops[1].decision.kind), "in_progress");
	assert_status(ops[2].status, HPX_OK);
	assert_string_equal(hpx_decision_name(ops[3].decision.kind), "replay");
	assert_non_null(ops[3].reserve.replay);
	assert_span(ops[3].reserve.replay->body, "yes");
	hpx_answer_free(ops[3].reserve.replay);
}

static void a_reservation_run_twice_is_one(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(reserve(f, 1, BODY, OWN), "created");
	assert_string_equal(reserve(f, 1, BODY, OWN), "created");
	assert_int_equal(record_of(f, 1).attempt, 1);
	assert_status(act(f, HPX_VERB_FAIL, 1, OWN), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, OLD), "retried");
	assert_string_equal(reserve(f, 1, BODY, OLD), "retried");
	assert_int_equal(record_of(f, 1).attempt, 2);
}

/* A waiter never becomes the executor. */
static void a_look_begins_no_attempt(void **state)
{
	static const struct {
		enum hpx_state before;
		const char *decision;
	} looks[] = {
		{ S(NONE), "NOT_FOUND" },
		{ S(IN_PROGRESS), "in_progress" },
		{ S(FAILED_RETRYABLE), "NOT_FOUND" },
		{ S(COMPLETED), "replay" },
		{ S(UNKNOWN), "unknown" },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		struct hpx_ask ask = ask_of(f->store, i, BODY, OLD);
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, i, OLD);
		bring_to(f, i, looks[i].before, OWN);
		op.reserve.ask = &ask;
		op.reserve.look = true;
		if (run_op(f, &op) == HPX_OK)
			assert_string_equal(hpx_decision_name(op.decision.kind),
					    looks[i].decision);
		else
			assert_string_equal(hpx_status_name(op.status), looks[i].decision);
		assert_string_equal(state_of(f, i), hpx_state_name(looks[i].before));
		hpx_answer_free(op.reserve.replay);
	}
}

static void misuse_is_told_and_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct hpx_answer nothing = { .status = 0 };
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, 1, OWN);

	bring_to(f, 1, HPX_STATE_IN_PROGRESS, OWN);
	assert_status(run_op(f, &op), HPX_MISUSE);
	op.complete.answer = &nothing;
	assert_status(run_op(f, &op), HPX_MISUSE);
	op = op_of(HPX_VERB_RENEW, 1, OWN);
	op.renew.lease_ms = 0;
	assert_status(run_op(f, &op), HPX_MISUSE);
	assert_string_equal(reserve(f, 2, BODY, 0), "MISUSE");
	assert_string_equal(state_of(f, 1), "in_progress");
	assert_string_equal(state_of(f, 2), "none");
}

/* However often it is noted, by whichever gateway, it is one event of this reference;
 * the record and its answer are what they were. */
static void a_misuse_is_one_event_and_changes_nothing(void **state)
{
	static const struct {
		enum hpx_state before;
		const char *events;
		const char *decision; /* of a retry, and where the key is free again: none */
	} misused[] = {
		{ S(IN_PROGRESS), "misused", "in_progress" },
		{ S(COMPLETED), "misused", "replay" },
		{ S(UNKNOWN), "outcome_lost misused", "unknown" },
		{ S(FAILED_RETRYABLE), "not_executed misused", "retried" },
	};
	struct fixture *f = *state;

	assert_status(act(f, V(NOTE_MISUSE), 9, OWN), HPX_NOT_FOUND);
	for (unsigned i = 0; i < sizeof(misused) / sizeof(misused[0]); i++) {
		bring_to(f, i, misused[i].before, OWN);
		struct hpx_record before = record_of(f, i);
		assert_status(act(f, V(NOTE_MISUSE), i, OLD), HPX_STALE);
		for (unsigned times = 0; times < 3; times++)
			assert_status(act(f, V(NOTE_MISUSE), i, OWN), HPX_OK);
		struct hpx_record after = record_of(f, i);
		assert_string_equal(events_of(f, i), misused[i].events);
		assert_string_equal(hpx_state_name(after.state), hpx_state_name(before.state));
		assert_int_equal(after.changed_ms, before.changed_ms);
		assert_int_equal(after.expires_ms, before.expires_ms);
		assert_int_equal(after.attempt, before.attempt);
		assert_true(hpx_token_eq(&after.token, &before.token));
		assert_memory_equal(after.fingerprint, before.fingerprint, sizeof(before.fingerprint));
		assert_string_equal(reserve(f, i, BODY, OLD), misused[i].decision);
	}
	assert_status(complete(f, 0, OWN, "late"), HPX_OK);
	assert_string_equal(body_of(f, 0), "late");
	assert_string_equal(events_of(f, 9), "");
}

/* The key is used again, for another operation: its misuse is another one. */
static void a_misuse_is_noted_once_for_each_reference(void **state)
{
	struct fixture *f = *state;

	bring_to(f, 1, S(COMPLETED), OWN);
	assert_status(act(f, V(NOTE_MISUSE), 1, OWN), HPX_OK);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve(f, 1, BODY, OLD), "created");
	assert_status(act(f, V(NOTE_MISUSE), 1, OWN), HPX_STALE);
	assert_status(act(f, V(NOTE_MISUSE), 1, OLD), HPX_OK);
	assert_status(act(f, V(NOTE_MISUSE), 1, OLD), HPX_OK);
	assert_string_equal(events_of(f, 1), "misused reserved misused");
}

static enum hpx_status restore(struct fixture *f, unsigned key, unsigned first, uint32_t status)
{
	struct hpx_store_op op = op_of(V(RESTORE), key, first);

	op.restore.status_seen = status;
	op.restore.retention_ms = RETENTION_MS;
	return run_op(f, &op);
}

/* What the store does not know becomes completed, by the reference it had; whatever the
 * request is that comes, it is not executed, and gets no answer. */
static void what_is_restored_is_not_executed(void **state)
{
	struct fixture *f = *state;

	assert_status(restore(f, 1, OWN, 0), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	struct hpx_mark mark = mark_of(OWN);
	struct hpx_record record = record_of(f, 1);
	assert_true(hpx_mark_eq(&record.mark, &mark));
	assert_string_equal(events_of(f, 1), "restored");
	for (unsigned body = BODY; body < BODY + 2; body++)
		assert_string_equal(reserve(f, 1, body, OLD), "replay");
	assert_status(complete(f, 1, OWN, "late"), HPX_STALE);
	assert_true(!record_of(f, 1).kept);
	/* The same again changes nothing; another reference of the key is refused. */
	assert_status(restore(f, 1, OWN, 0), HPX_OK);
	assert_status(restore(f, 1, OLD, 0), HPX_REFUSED);
	assert_string_equal(events_of(f, 1), "restored");
	assert_status(restore(f, 2, OWN, 402), HPX_OK);
	assert_int_equal(record_of(f, 2).status, 402);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve(f, 1, BODY, OLD), "created");
}

/* A live record of the key stays as it is; an expired one makes room. */
static void a_live_record_is_not_restored_over(void **state)
{
	static const enum hpx_state live[] = { S(IN_PROGRESS), S(COMPLETED), S(UNKNOWN), S(FAILED_RETRYABLE) };
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		bring_to(f, i, live[i], OWN);
		struct hpx_record before = record_of(f, i);
		assert_status(restore(f, i, OLD, 0), HPX_REFUSED);
		assert_status(restore(f, i, OWN, 0), live[i] == S(COMPLETED) ? HPX_OK : HPX_REFUSED);
		struct hpx_record after = record_of(f, i);
		assert_string_equal(hpx_state_name(after.state), hpx_state_name(before.state));
		assert_int_equal(after.changed_ms, before.changed_ms);
		assert_true(hpx_mark_eq(&after.mark, &before.mark));
	}
	advance(f, RETENTION_MS + 1);
	for (unsigned i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		bool expired = live[i] == S(COMPLETED) || live[i] == S(FAILED_RETRYABLE);
		assert_status(restore(f, i, OLD, 0), expired ? HPX_OK : HPX_REFUSED);
		if (expired)
			assert_string_equal(reserve(f, i, BODY + 1, 9), "replay");
		assert_true(!expired || !record_of(f, i).kept);
	}
	struct hpx_store_op op = op_of(V(RESTORE), 9, OWN);
	assert_status(run_op(f, &op), HPX_MISUSE);
	assert_string_equal(state_of(f, 9), "none");
}

/* What happened to a reservation before its own completion comes, which says
 * where its row was and how it looked then. */
enum between { NOTHING,
	       RENEWED,
	       LOST,
	       FAILED,
	       COMPLETED,
	       RELEASED,
	       ROW_TAKEN,
	       USED_AGAIN };

static void happen(struct fixture *f, enum between between)
{
	static const enum hpx_verb verbs[] = {
		[RENEWED] = V(RENEW),
		[LOST] = V(MARK_UNKNOWN),
		[FAILED] = V(FAIL),
		[RELEASED] = V(RELEASE),
		[ROW_TAKEN] = V(RELEASE),
		[USED_AGAIN] = V(RELEASE),
	};

	if (between == COMPLETED)
		assert_status(complete(f, 1, OWN, "first"), HPX_OK);
	else if (between != NOTHING)
		assert_status(act(f, verbs[between], 1, OWN), HPX_OK);
	/* The newest row's number is given again. */
	if (between == ROW_TAKEN || between == USED_AGAIN)
		assert_string_equal(reserve(f, between == ROW_TAKEN ? 2 : 1, BODY, OLD), "created");
}

static enum hpx_status complete_believed(struct fixture *f, enum between between)
{
	struct hpx_ask ask = ask_of(f->store, 1, BODY, OWN);
	struct hpx_store_op begin = op_of(V(RESERVE), 1, OWN);
	struct hpx_store_op end = op_of(V(COMPLETE), 1, OWN);
	struct hpx_description description = { .tenant = HPX_SPAN("tenant"), .key = HPX_SPAN("k") };
	struct hpx_answer answer = { .status = 201, .kept = true, .body = HPX_SPAN("late") };

	begin.reserve.ask = &ask;
	begin.reserve.policy = policy();
	begin.reserve.description = &description;
	assert_status(run_op(f, &begin), HPX_OK);
	happen(f, between);
	end.complete.answer = &answer;
	end.complete.believed = &begin.decision.record;
	end.complete.row = begin.reserve.row;
	return run_op(f, &end);
}

static void a_completion_goes_by_the_row_not_by_what_was_believed(void **state)
{
	static const struct {
		enum between between;
		enum hpx_status status;
		const char *after; /* of key 1, and its answer */
		const char *body;
	} cases[] = {
		{ NOTHING, HPX_OK, "completed", "late" },
		{ RENEWED, HPX_OK, "completed", "late" },
		{ LOST, HPX_OK, "completed", "late" },
		{ FAILED, HPX_STALE, "failed_retryable", NULL },
		{ COMPLETED, HPX_OK, "completed", "first" },
		{ RELEASED, HPX_STALE, "none", NULL },
		{ ROW_TAKEN, HPX_STALE, "none", NULL },
		{ USED_AGAIN, HPX_STALE, "in_progress", NULL },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fixture_afresh(f);
		print_message("case %zu\n", i);
		assert_status(complete_believed(f, cases[i].between), cases[i].status);
		assert_string_equal(state_of(f, 1), cases[i].after);
		if (cases[i].body != NULL)
			assert_string_equal(body_of(f, 1), cases[i].body);
		if (cases[i].between == ROW_TAKEN)
			assert_string_equal(state_of(f, 2), "in_progress");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(a_completion_goes_by_the_row_not_by_what_was_believed),
		ON_EVERY_DRIVER(every_verb_in_every_state),
		ON_EVERY_DRIVER(an_old_token_changes_nothing),
		ON_EVERY_DRIVER(a_reference_is_no_lease),
		ON_EVERY_DRIVER(what_was_completed_before_is_told),
		ON_EVERY_DRIVER(the_status_seen_is_kept),
		ON_EVERY_DRIVER(the_last_error_is_kept),
		ON_EVERY_DRIVER(a_lost_attempt_becomes_what_its_route_says),
		ON_EVERY_DRIVER(reserve_decides_by_state),
		ON_EVERY_DRIVER(ops_of_one_batch_see_each_other),
		ON_EVERY_DRIVER(a_reservation_run_twice_is_one),
		ON_EVERY_DRIVER(a_look_begins_no_attempt),
		ON_EVERY_DRIVER(misuse_is_told_and_changes_nothing),
		ON_EVERY_DRIVER(a_misuse_is_one_event_and_changes_nothing),
		ON_EVERY_DRIVER(a_misuse_is_noted_once_for_each_reference),
		ON_EVERY_DRIVER(what_is_restored_is_not_executed),
		ON_EVERY_DRIVER(a_live_record_is_not_restored_over),
	};
	return run_on_drivers("verb", tests);
}
