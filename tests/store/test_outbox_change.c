/* Shows what follows for a job, its operation and the question about both, from
 * the rows alone, without a store: turns, lost claims, claims that come too
 * late, rulings in every state, and operations whose time is over. */
#include "../unit/test.h"

#include "store/outbox_change.h"

#define NOW 1000000
#define SETTLE 1000

static const struct hpx_mark mark = { { 1 } };
static const struct hpx_token holder = { { 2 } };
static const struct hpx_token claimer = { { 3 } };
static const struct hpx_moment now = { .wall_ms = NOW, .lease_ms = 500 };

/* A job of an operation, and the row of questions about it where `asked`. */
static struct hpx_outbox_found found_in(enum hpx_job_state job, enum hpx_state operation)
{
	struct hpx_outbox_found f = {
		.operation = { .exists = operation != HPX_STATE_NONE, .readable = true, .record = { .id = { { 7 } }, .state = operation, .mark = mark, .token = holder, .attempt = 1, .retention_ms = 100, .changed_ms = NOW - 5 * SETTLE } },
		.job_exists = true,
		.job_readable = true,
		.delivery = { .number = 17, .operation = { { 7 } }, .mark = mark, .state = job, .answers = true, .attempt = 1, .token = claimer, .due_ms = NOW, .lease_until_ms = 500, .first_sent_ms = NOW - 5 * SETTLE, .changed_ms = NOW - 5 * SETTLE },
		.evidence = HPX_RULING_UNCLEAR,
	};

	if (job == HPX_JOB_QUEUED || job == HPX_JOB_DISCARDED)
		f.delivery.token = (struct hpx_token){ { 0 } };
	f.delivery.unsure = job == HPX_JOB_UNKNOWN;
	if (operation == HPX_STATE_COMPLETED)
		f.operation.record.status = 201;
	if (operation == HPX_STATE_FAILED_RETRYABLE)
		f.operation.record.token = (struct hpx_token){ { 0 } };
	if (operation == HPX_STATE_PENDING || operation == HPX_STATE_COMPLETED ||
	    operation == HPX_STATE_FAILED_RETRYABLE)
		f.operation.record.expires_ms = NOW;
	return f;
}

static const char *job_after(const struct hpx_outbox_change *change)
{
	return change->write_job ? hpx_job_state_name(change->delivery.state) : "-";
}

static const char *operation_after(const struct hpx_outbox_change *change)
{
	return change->write_operation ? hpx_state_name(change->operation.record.state) : "-";
}

static void check(const char *what, const struct hpx_outbox_change *change, const char *job,
		  const char *operation)
{
	if (strcmp(job_after(change), job) != 0 || strcmp(operation_after(change), operation) != 0)
		fail_msg("%s: got job %s, operation %s; want %s, %s", what, job_after(change),
			 operation_after(change), job, operation);
	if (change->write_operation)
		assert_true(hpx_record_valid(&change->operation.record));
	if (change->write_job)
		assert_true(hpx_job_valid(&change->delivery));
}

/* ---- turns ---- */

static const struct hpx_answer said = { .status = 201, .kept = true, .headers = HPX_SPAN_INIT("A: b\r\n"), .body = HPX_SPAN_INIT("sent") };

static void an_operation_follows_its_job(void **state)
{
	static const struct {
		enum hpx_job_state job;
		enum hpx_state operation;
		enum hpx_job_move move;
		bool unsure;
		const char *job_after, *operation_after;
		unsigned status;
		const char *event;
	} rows[] = {
#define JOB(x) HPX_JOB_##x
#define OP(x) HPX_STATE_##x
#define BY(x) HPX_JOB_MOVE_##x
		{ JOB(SENDING), OP(PENDING), BY(DELIVER), false, "done", "completed", 201,
		  "job_delivered" },
		{ JOB(SENDING), OP(UNKNOWN), BY(DELIVER), false, "done", "completed", 201,
		  "job_delivered" },
		{ JOB(SENDING), OP(COMPLETED), BY(DELIVER), false, "done", "-", 0, "job_delivered" },
		{ JOB(SENDING), OP(NONE), BY(DELIVER), false, "done", "-", 0, "job_delivered" },
		{ JOB(SENDING), OP(PENDING), BY(POSTPONE), false, "queued", "-", 0, "job_postponed" },
		{ JOB(SENDING), OP(PENDING), BY(LOSE), false, "unknown", "unknown", 0,
		  "job_outcome_lost" },
		{ JOB(SENDING), OP(UNKNOWN), BY(LOSE), false, "unknown", "-", 0,
		  "job_outcome_lost" },
		{ JOB(SENDING), OP(PENDING), BY(REJECT), false, "dead", "-", 0, "job_rejected" },
		{ JOB(UNKNOWN), OP(UNKNOWN), BY(APPLY), true, "done", "completed", 0,
		  "job_resolved_applied" },
		{ JOB(UNKNOWN), OP(UNKNOWN), BY(DECLINE), true, "dead", "completed", 402,
		  "job_resolved_declined" },
		{ JOB(UNKNOWN), OP(UNKNOWN), BY(UNAPPLY), true, "queued", "pending", 0,
		  "job_resolved_not_applied" },
		{ JOB(UNKNOWN), OP(UNKNOWN), BY(RETRY), true, "queued", "pending", 0, "job_retried" },
		{ JOB(UNKNOWN), OP(UNKNOWN), BY(DISCARD), true, "discarded", "-", 0,
		  "job_discarded" },
		{ JOB(DEAD), OP(PENDING), BY(RETRY), false, "queued", "-", 0, "job_retried" },
		{ JOB(DEAD), OP(PENDING), BY(APPLY), false, "done", "completed", 0,
		  "job_resolved_applied" },
		{ JOB(DEAD), OP(PENDING), BY(DISCARD), false, "discarded", "completed", 408,
		  "job_discarded" },
		{ JOB(QUEUED), OP(PENDING), BY(DISCARD), false, "discarded", "completed", 408,
		  "job_discarded" },
		{ JOB(QUEUED), OP(PENDING), BY(DISCARD), true, "discarded", "unknown", 0,
		  "job_discarded" },
		{ JOB(DONE), OP(COMPLETED), BY(DELIVER), false, "-", "-", 0, NULL },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_outbox_found f = found_in(rows[i].job, rows[i].operation);
		struct hpx_job_update turn = { .number = 17, .move = rows[i].move, .force = true, .attempts_max = 3 };
		struct hpx_store_op op = { .verb = HPX_VERB_JOB, .job.update = &turn, .token = claimer };
		struct hpx_outbox_change change;
		char what[64];

		f.delivery.unsure = rows[i].unsure;
		if (rows[i].move == HPX_JOB_MOVE_DELIVER)
			turn.answer = &said;
		hpx_outbox_update(&f, &op, &now, &change);
		snprintf(what, sizeof(what), "row %zu", i);
		assert_status(op.status, HPX_OK);
		check(what, &change, rows[i].job_after, rows[i].operation_after);
		if (change.write_operation)
			assert_int_equal(change.operation.record.status, rows[i].status);
		if (rows[i].event == NULL)
			assert_null(change.event);
		else
			assert_string_equal(change.event, rows[i].event);
		/* Another's answer belongs to nobody here. */
		f.delivery.answers = false;
		hpx_outbox_update(&f, &op, &now, &change);
		check(what, &change, rows[i].job_after, "-");
		f.delivery.answers = true;
		f.delivery.mark.bytes[5] = 1;
		hpx_outbox_update(&f, &op, &now, &change);
		check(what, &change, rows[i].job_after, "-");
	}
}

static void a_turn_that_cannot_be_says_why(void **state)
{
	static const struct hpx_answer none = { .status = 0 };
	struct hpx_outbox_found f = found_in(HPX_JOB_SENDING, HPX_STATE_PENDING);
	struct hpx_job_update turn = { .number = 17, .move = HPX_JOB_MOVE_DELIVER, .answer = &none };
	struct hpx_store_op op = { .verb = HPX_VERB_JOB, .job.update = &turn, .token = holder };
	struct hpx_outbox_change change;
	static const enum hpx_job_move drivers_own[] = { HPX_JOB_MOVE_CLAIM, HPX_JOB_MOVE_SWEEP,
							 HPX_JOB_MOVE_REQUEUE };
	(void)state;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_MISUSE);
	turn.answer = &said;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_STALE);
	for (size_t i = 0; i < 3; i++) {
		turn.move = drivers_own[i];
		hpx_outbox_update(&f, &op, &now, &change);
		assert_status(op.status, HPX_MISUSE);
		check("misuse", &change, "-", "-");
	}
	turn.move = HPX_JOB_MOVE_DELIVER;
	f.job_readable = false;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_CORRUPT);
	turn.move = HPX_JOB_MOVE_RETRY;
	turn.force = true;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_CORRUPT);
	turn.force = false;
	turn.move = HPX_JOB_MOVE_DISCARD;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_CORRUPT);
	assert_false(change.remove_job);
	/* By force, its row goes, and nothing is said of the operation that it names. */
	turn.force = true;
	op.status = HPX_OK;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_OK);
	assert_true(change.remove_job);
	check("removed", &change, "-", "-");
	assert_null(change.event);
	assert_false(change.write_reconcile || change.remove_reconcile);
	f.job_exists = false;
	hpx_outbox_update(&f, &op, &now, &change);
	assert_status(op.status, HPX_NOT_FOUND);
}

/* Questions end with the not knowing; evidence with the job. */
static void questions_end_when_they_are_answered(void **state)
{
	static const struct {
		enum hpx_job_state job;
		enum hpx_job_move move;
		bool removed;
	} rows[] = {
		{ HPX_JOB_SENDING, HPX_JOB_MOVE_DELIVER, true },
		{ HPX_JOB_SENDING, HPX_JOB_MOVE_POSTPONE, false },
		{ HPX_JOB_SENDING, HPX_JOB_MOVE_LOSE, false },
		{ HPX_JOB_SENDING, HPX_JOB_MOVE_REJECT, false },
		{ HPX_JOB_UNKNOWN, HPX_JOB_MOVE_DELIVER, true },
		{ HPX_JOB_UNKNOWN, HPX_JOB_MOVE_UNAPPLY, true },
		{ HPX_JOB_UNKNOWN, HPX_JOB_MOVE_DECLINE, true },
		{ HPX_JOB_UNKNOWN, HPX_JOB_MOVE_LOSE, false },
		{ HPX_JOB_QUEUED, HPX_JOB_MOVE_DISCARD, true },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_outbox_found f = found_in(rows[i].job, HPX_STATE_PENDING);
		struct hpx_job_update turn = { .number = 17, .move = rows[i].move };
		struct hpx_store_op op = { .verb = HPX_VERB_JOB, .job.update = &turn, .token = claimer };
		struct hpx_outbox_change change;

		f.scheduled = true;
		hpx_outbox_update(&f, &op, &now, &change);
		assert_status(op.status, HPX_OK);
		if (change.remove_reconcile != rows[i].removed)
			fail_msg("row %zu: removed is %d", i, change.remove_reconcile);
	}
}

/* ---- claims and lost claims ---- */

static void a_claim_tells_what_it_did(void **state)
{
	static const struct {
		bool unsure;
		uint32_t attempt;
		int64_t honours_ms, resend_until_ms;
		const char *job, *operation, *event;
	} rows[] = {
		{ false, 1, 0, 0, "sending", "-", NULL },
		{ true, 1, 10 * SETTLE, NOW + 1, "sending", "-", NULL },
		{ true, 1, 10 * SETTLE, NOW, "unknown", "unknown", "job_outcome_lost" },
		{ true, 1, 0, NOW + 1, "unknown", "unknown", "job_outcome_lost" },
		{ false, 3, 0, 0, "dead", "-", "job_budget_spent" },
		{ true, 3, 10 * SETTLE, NOW + 1, "unknown", "unknown", "job_outcome_lost" },
	};
	struct hpx_outbox_change change;
	struct hpx_outbox_found f;
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_claim claim = { .lease_ms = 30, .attempts_max = 3, .honours_keys_ms = rows[i].honours_ms };
		f = found_in(HPX_JOB_QUEUED, HPX_STATE_PENDING);
		f.delivery.unsure = rows[i].unsure;
		f.delivery.attempt = rows[i].attempt;
		f.delivery.resend_until_ms = rows[i].resend_until_ms;
		assert_true(hpx_outbox_claim(&f, &claim, &claimer, 4, &now, &change));
		check("claim", &change, rows[i].job, rows[i].operation);
		if (rows[i].event == NULL)
			assert_null(change.event);
		else
			assert_string_equal(change.event, rows[i].event);
	}
	f.job_readable = false;
	assert_false(hpx_outbox_claim(&f, &(struct hpx_claim){ .lease_ms = 30 }, &claimer, 4, &now,
				      &change));
}

static void a_lost_claim_is_swept(void **state)
{
	struct hpx_outbox_found f = found_in(HPX_JOB_SENDING, HPX_STATE_PENDING);
	struct hpx_outbox_change change;
	(void)state;
	assert_true(hpx_outbox_sweep(&f, false, &now, &change));
	check("lost", &change, "unknown", "unknown");
	f.delivery.resend_until_ms = NOW + 1;
	assert_true(hpx_outbox_sweep(&f, false, &now, &change));
	check("lost, resendable", &change, "queued", "-");
	f.delivery.lease_until_ms++;
	assert_false(hpx_outbox_sweep(&f, false, &now, &change));
	assert_true(hpx_outbox_sweep(&f, true, &now, &change));
	f.job_readable = false;
	assert_false(hpx_outbox_sweep(&f, true, &now, &change));
	f = found_in(HPX_JOB_QUEUED, HPX_STATE_PENDING);
	assert_false(hpx_outbox_sweep(&f, true, &now, &change));
}

/* ---- rulings ---- */

static struct hpx_ruling_update ruling_of(int64_t number, enum hpx_ruling ruling, bool asked)
{
	return (struct hpx_ruling_update){
		.number = number,
		.received = { .ruling = ruling, .about_ms = NOW, .asked = asked },
		.rule = { .settle_after_ms = SETTLE, .confirm_after_ms = SETTLE, .tries_max = 3 },
	};
}

/* What each ruling does in each state; evidence is kept (E), nothing happens
 * (.), it is settled (A applied, D declined), or asked again (?). Columns:
 * applied, declined, not applied, not yet, unclear. */
static char ruled(const struct hpx_outbox_found *f, int64_t number, enum hpx_ruling ruling)
{
	struct hpx_ruling_update turn = ruling_of(number, ruling, true);
	struct hpx_store_op op = { .verb = HPX_VERB_RULE, .rule.update = &turn, .mark = mark };
	struct hpx_outbox_change change;

	hpx_outbox_rule(f, &op, &now, &change);
	assert_status(op.status, HPX_OK);
	assert_false(change.write_reconcile && change.remove_reconcile);
	if (turn.move == HPX_RECONCILE_ASK_AGAIN)
		return change.write_reconcile && !change.write_job ? '?' : '!';
	if (turn.move == HPX_RECONCILE_STAY && change.write_reconcile)
		return change.evidence == ruling ? 'E' : '!';
	if (turn.move == HPX_RECONCILE_STAY)
		return change.event == NULL && !change.write_job && !change.write_operation ? '.' :
											      '!';
	return turn.move == HPX_RECONCILE_SETTLE_APPLIED ? 'A' : 'D';
}

static void check_rulings(const char *what, const struct hpx_outbox_found *f, int64_t number,
			  const char *want)
{
	for (int r = 0; r < HPX_RULING_COUNT; r++) {
		char got = ruled(f, number, (enum hpx_ruling)r);
		if (got != want[r])
			fail_msg("%s, %s: got %c, want %c", what,
				 hpx_ruling_name((enum hpx_ruling)r), got, want[r]);
	}
}

static void each_ruling_in_each_state_of_a_job(void **state)
{
	static const struct {
		enum hpx_job_state job;
		const char *want;
	} rows[] = {
		{ HPX_JOB_QUEUED, "AE..." },
		{ HPX_JOB_SENDING, "EE..." },
		{ HPX_JOB_DONE, "....." },
		{ HPX_JOB_UNKNOWN, "AD???" },
		{ HPX_JOB_DEAD, "A...." },
		{ HPX_JOB_DISCARDED, "....." },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_outbox_found f = found_in(rows[i].job, HPX_STATE_PENDING);
		check_rulings(hpx_job_state_name(rows[i].job), &f, 17, rows[i].want);
	}
}

static void each_ruling_in_each_state_of_an_operation(void **state)
{
	static const struct {
		enum hpx_state operation;
		const char *want;
	} rows[] = {
		{ HPX_STATE_IN_PROGRESS, "EE..." },
		{ HPX_STATE_FAILED_RETRYABLE, "A...." },
		{ HPX_STATE_COMPLETED, "....." },
		{ HPX_STATE_UNKNOWN, "AD???" },
		{ HPX_STATE_PENDING, "EE..." },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_outbox_found f = found_in(HPX_JOB_DONE, rows[i].operation);
		f.job_exists = false;
		f.operation.record.expires_ms = rows[i].operation == HPX_STATE_IN_PROGRESS ||
								rows[i].operation == HPX_STATE_UNKNOWN ?
							0 :
							NOW;
		check_rulings(hpx_state_name(rows[i].operation), &f, 0, rows[i].want);
	}
}

/* The same question, settled through the job that answers for the operation. */
static void a_ruling_on_an_operation_is_one_on_its_job(void **state)
{
	static const struct {
		enum hpx_job_state job;
		enum hpx_state operation;
		const char *job_after, *operation_after;
	} rows[] = {
		{ HPX_JOB_UNKNOWN, HPX_STATE_UNKNOWN, "done", "completed" },
		{ HPX_JOB_DEAD, HPX_STATE_PENDING, "done", "completed" },
		{ HPX_JOB_DISCARDED, HPX_STATE_UNKNOWN, "-", "completed" },
		{ HPX_JOB_DONE, HPX_STATE_UNKNOWN, "-", "completed" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_outbox_found f = found_in(rows[i].job, rows[i].operation);
		struct hpx_ruling_update turn = ruling_of(0, HPX_RULING_APPLIED, false);
		struct hpx_store_op op = { .verb = HPX_VERB_RULE, .rule.update = &turn, .mark = mark };
		struct hpx_outbox_change change;

		hpx_outbox_rule(&f, &op, &now, &change);
		assert_status(op.status, HPX_OK);
		check(hpx_job_state_name(rows[i].job), &change, rows[i].job_after,
		      rows[i].operation_after);
		assert_int_equal(change.of_job, rows[i].job_after[0] != '-');
	}
}

static void not_applied_settles_when_said_twice(void **state)
{
	(void)state;
	for (int64_t number = 0; number <= 17; number += 17) {
		struct hpx_outbox_found f = found_in(HPX_JOB_UNKNOWN, HPX_STATE_UNKNOWN);
		struct hpx_ruling_update turn = ruling_of(number, HPX_RULING_NOT_APPLIED, true);
		struct hpx_store_op op = { .verb = HPX_VERB_RULE, .rule.update = &turn, .mark = mark };
		struct hpx_outbox_change change;
		struct hpx_moment later = now;

		f.job_exists = number != 0;
		hpx_outbox_rule(&f, &op, &now, &change);
		assert_int_equal(turn.move, HPX_RECONCILE_ASK_AGAIN);
		assert_int_equal(change.reconcile.not_applied_in_a_row, 1);
		assert_int_equal(change.reconcile.sent_ms, NOW - 5 * SETTLE);
		f.scheduled = true;
		f.reconcile = change.reconcile;
		later.wall_ms += SETTLE;
		turn.received.about_ms = later.wall_ms;
		hpx_outbox_rule(&f, &op, &later, &change);
		assert_int_equal(turn.move, HPX_RECONCILE_SETTLE_NOT_APPLIED);
		assert_true(change.remove_reconcile);
		check("settled", &change, number != 0 ? "queued" : "-",
		      number != 0 ? "pending" : "failed_retryable");
		if (number == 0)
			assert_true(hpx_token_is_void(&change.operation.record.token));
	}
}

static void a_spent_budget_is_a_persons_and_stays_so(void **state)
{
	struct hpx_outbox_found f = found_in(HPX_JOB_UNKNOWN, HPX_STATE_UNKNOWN);
	struct hpx_ruling_update turn = ruling_of(17, HPX_RULING_NOT_YET, true);
	struct hpx_store_op op = { .verb = HPX_VERB_RULE, .rule.update = &turn, .mark = mark };
	struct hpx_outbox_change change;
	(void)state;
	f.scheduled = true;
	f.reconcile.tries = 2;
	hpx_outbox_rule(&f, &op, &now, &change);
	assert_int_equal(turn.move, HPX_RECONCILE_A_PERSON);
	assert_true(change.person);
	assert_string_equal(change.event, "left_to_a_person");
	f.person = true;
	turn.received.asked = false;
	hpx_outbox_rule(&f, &op, &now, &change);
	assert_int_equal(turn.move, HPX_RECONCILE_STAY);
	assert_true(change.person);
	assert_null(change.event);
	assert_false(hpx_outbox_escalate(&f, &change));
	f.person = false;
	/* What counts is since when it is unknown, not when nobody was found. */
	f.reconcile.sent_ms = 0;
	f.delivery.changed_ms = 7;
	assert_true(hpx_outbox_escalate(&f, &change));
	assert_true(change.write_reconcile && change.person && change.of_job);
	assert_int_equal(change.reconcile.sent_ms, 7);
	/* What was said settles it, whoever can be asked. */
	f.evidence = HPX_RULING_DECLINED;
	assert_false(hpx_outbox_escalate(&f, &change));
}

static void evidence_is_told_once(void **state)
{
	struct hpx_outbox_found f = found_in(HPX_JOB_SENDING, HPX_STATE_PENDING);
	struct hpx_ruling_update turn = ruling_of(17, HPX_RULING_APPLIED, false);
	struct hpx_store_op op = { .verb = HPX_VERB_RULE, .rule.update = &turn, .mark = mark };
	struct hpx_outbox_change change;
	(void)state;
	f.scheduled = true;
	f.evidence = HPX_RULING_APPLIED;
	hpx_outbox_rule(&f, &op, &now, &change);
	assert_false(change.write_reconcile);
	turn.received.ruling = HPX_RULING_DECLINED;
	hpx_outbox_rule(&f, &op, &now, &change);
	assert_int_equal(change.evidence, HPX_RULING_DECLINED);
}

/* ---- the job follows its operation ---- */

static void a_job_ends_with_its_operation(void **state)
{
	static const struct {
		enum hpx_job_state job;
		enum hpx_state after;
		enum hpx_status status;
		const char *job_after;
	} rows[] = {
		{ HPX_JOB_QUEUED, HPX_STATE_COMPLETED, HPX_OK, "discarded" },
		{ HPX_JOB_QUEUED, HPX_STATE_FAILED_RETRYABLE, HPX_OK, "discarded" },
		{ HPX_JOB_QUEUED, HPX_STATE_NONE, HPX_OK, "discarded" },
		{ HPX_JOB_SENDING, HPX_STATE_COMPLETED, HPX_OK, "-" },
		{ HPX_JOB_SENDING, HPX_STATE_FAILED_RETRYABLE, HPX_REFUSED, "-" },
		{ HPX_JOB_SENDING, HPX_STATE_NONE, HPX_REFUSED, "-" },
		{ HPX_JOB_DONE, HPX_STATE_COMPLETED, HPX_OK, "-" },
		{ HPX_JOB_DONE, HPX_STATE_FAILED_RETRYABLE, HPX_REFUSED, "-" },
		{ HPX_JOB_UNKNOWN, HPX_STATE_COMPLETED, HPX_OK, "done" },
		{ HPX_JOB_UNKNOWN, HPX_STATE_FAILED_RETRYABLE, HPX_OK, "discarded" },
		{ HPX_JOB_DEAD, HPX_STATE_NONE, HPX_OK, "discarded" },
		{ HPX_JOB_DISCARDED, HPX_STATE_NONE, HPX_OK, "-" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_outbox_found f = found_in(rows[i].job, HPX_STATE_UNKNOWN);
		struct hpx_outbox_change change;
		assert_status(hpx_outbox_conclude(&f, rows[i].after, &now, &change),
			      rows[i].status);
		check(hpx_job_state_name(rows[i].job), &change, rows[i].job_after, "-");
	}
}

static void what_is_executed_again_is_queued_anew(void **state)
{
	static const struct {
		enum hpx_job_state job;
		enum hpx_status status;
		const char *job_after;
	} rows[] = {
		{ HPX_JOB_QUEUED, HPX_OK, "-" },
		{ HPX_JOB_SENDING, HPX_OK, "-" },
		{ HPX_JOB_DONE, HPX_CONFLICT, "-" },
		{ HPX_JOB_UNKNOWN, HPX_OK, "queued" },
		{ HPX_JOB_DEAD, HPX_OK, "queued" },
		{ HPX_JOB_DISCARDED, HPX_OK, "queued" },
	};
	struct hpx_outbox_change change;
	struct hpx_outbox_found f;
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f = found_in(rows[i].job, HPX_STATE_PENDING);
		assert_status(hpx_outbox_requeue(&f, &now, &change), rows[i].status);
		check(hpx_job_state_name(rows[i].job), &change, rows[i].job_after, "-");
		if (change.write_job)
			assert_int_equal(change.delivery.budget, change.delivery.attempt);
	}
	f.job_readable = false;
	assert_status(hpx_outbox_requeue(&f, &now, &change), HPX_CONFLICT);
}

static void what_was_certainly_not_sent_is_abandoned(void **state)
{
	static const struct {
		enum hpx_job_state job;
		bool unsure, exists, readable;
		const char *job_after, *operation_after;
	} rows[] = {
		{ HPX_JOB_QUEUED, false, true, true, "discarded", "completed" },
		{ HPX_JOB_QUEUED, true, true, true, "-", "unknown" },
		{ HPX_JOB_SENDING, false, true, true, "-", "unknown" },
		{ HPX_JOB_DONE, false, true, true, "-", "unknown" },
		{ HPX_JOB_UNKNOWN, true, true, true, "-", "unknown" },
		{ HPX_JOB_DEAD, false, true, true, "discarded", "completed" },
		{ HPX_JOB_DEAD, true, true, true, "-", "unknown" },
		{ HPX_JOB_DISCARDED, false, true, true, "discarded", "completed" },
		{ HPX_JOB_QUEUED, false, true, false, "-", "unknown" },
		{ HPX_JOB_QUEUED, false, false, false, "-", "unknown" },
	};
	struct hpx_outbox_change change;
	struct hpx_outbox_found f;
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f = found_in(rows[i].job, HPX_STATE_PENDING);
		f.delivery.unsure = rows[i].unsure;
		f.job_exists = rows[i].exists;
		f.job_readable = rows[i].readable;
		assert_true(hpx_outbox_abandon(&f, &now, &change));
		check(hpx_job_state_name(rows[i].job), &change, rows[i].job_after,
		      rows[i].operation_after);
		assert_int_equal(change.operation.answer != NULL,
				 rows[i].operation_after[0] == 'c');
		assert_int_equal(change.operation.record.status,
				 rows[i].operation_after[0] == 'c' ? 408 : 0);
	}
	f = found_in(HPX_JOB_QUEUED, HPX_STATE_PENDING);
	f.operation.record.expires_ms = NOW + 1;
	assert_false(hpx_outbox_abandon(&f, &now, &change));
	f.operation.readable = false;
	f.operation.record.expires_ms = NOW;
	assert_false(hpx_outbox_abandon(&f, &now, &change));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operation_follows_its_job),
		cmocka_unit_test(a_turn_that_cannot_be_says_why),
		cmocka_unit_test(questions_end_when_they_are_answered),
		cmocka_unit_test(a_claim_tells_what_it_did),
		cmocka_unit_test(a_lost_claim_is_swept),
		cmocka_unit_test(each_ruling_in_each_state_of_a_job),
		cmocka_unit_test(each_ruling_in_each_state_of_an_operation),
		cmocka_unit_test(a_ruling_on_an_operation_is_one_on_its_job),
		cmocka_unit_test(not_applied_settles_when_said_twice),
		cmocka_unit_test(a_spent_budget_is_a_persons_and_stays_so),
		cmocka_unit_test(evidence_is_told_once),
		cmocka_unit_test(a_job_ends_with_its_operation),
		cmocka_unit_test(what_is_executed_again_is_queued_anew),
		cmocka_unit_test(what_was_certainly_not_sent_is_abandoned),
	};
	return cmocka_run_group_tests_name("outbox_change", tests, NULL, NULL);
}
