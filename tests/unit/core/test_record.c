/* Shows that a record moves as the diagram in record.h says and in no other way:
 * every state × move × token × lease, against a table written down here
 * independently of the code. */
#include "../test.h"

#include "core/record.h"

#define NOW 1000000
#define RETENTION 5000
#define LEASE 30

static const struct hpx_token mine = { { 1 } };
static const struct hpx_token other = { { 2 } };
static const struct hpx_token nobody;
static const struct hpx_mark mark = { { 3 } };

static struct hpx_record record_in(enum hpx_state state, uint32_t attempt)
{
	struct hpx_record r = { .state = state,
				.mark = mark,
				.token = mine,
				.attempt = attempt,
				.retention_ms = RETENTION,
				.created_ms = NOW - 10,
				.lease_until_ms = 500 };

	switch (state) {
	case HPX_STATE_NONE:
		return (struct hpx_record){ .state = HPX_STATE_NONE };
	case HPX_STATE_FAILED_RETRYABLE:
		r.token = nobody;
		r.expires_ms = NOW + 1;
		break;
	case HPX_STATE_COMPLETED:
		r.status = 201;
		r.kept = true;
		r.expires_ms = NOW + 1;
		break;
	case HPX_STATE_PENDING:
		r.expires_ms = NOW; /* overdue */
		break;
	default:
		break;
	}
	return r;
}

/* What each move of the lease's own token leads to; "." is no move at all,
 * "=" the same move again. N none, I in_progress, F failed, C completed,
 * U unknown, P pending. Columns: the moves in the order of HPX_MOVE_LIST. */
#define UNKNOWN HPX_WHEN_LOST_UNKNOWN
#define RESUME HPX_WHEN_LOST_RESUME
#define VOID HPX_WHEN_LOST_VOID

static const struct {
	enum hpx_state from;
	uint32_t attempt;
	enum hpx_when_lost when_lost;
	bool advanced;
	const char *to;
} diagram[] = {
	/* reserve, complete, fail, release, lose, renew, advance, conclude, sweep,
	 * apply, unapply, forget, accept, requeue, abandon, extend,
	 * restore */
	{ HPX_STATE_NONE, 0, UNKNOWN, false, "I...........P...C" },
	{ HPX_STATE_IN_PROGRESS, 1, UNKNOWN, false, ".CFNU==FU........" },
	{ HPX_STATE_IN_PROGRESS, 2, UNKNOWN, false, ".CFFU==FU........" },
	{ HPX_STATE_IN_PROGRESS, 1, UNKNOWN, true, ".CUUU==FU........" },
	{ HPX_STATE_IN_PROGRESS, 2, UNKNOWN, true, ".CUUU==FU........" },
	{ HPX_STATE_IN_PROGRESS, 1, RESUME, false, ".CFNF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 2, RESUME, false, ".CFFF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 1, RESUME, true, ".CFFF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 2, RESUME, true, ".CFFF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 1, VOID, false, ".CFNF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 2, VOID, false, ".CFFF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 1, VOID, true, ".CFFF==FF........" },
	{ HPX_STATE_IN_PROGRESS, 2, VOID, true, ".CFFF==FF........" },
	{ HPX_STATE_FAILED_RETRYABLE, 1, UNKNOWN, false, "I..........NP..=." },
	{ HPX_STATE_FAILED_RETRYABLE, 1, RESUME, true, "I..........NP..=." },
	{ HPX_STATE_COMPLETED, 1, UNKNOWN, false, ".=.....=...N...=." },
	{ HPX_STATE_COMPLETED, 1, VOID, true, ".=.....=...N...=." },
	{ HPX_STATE_UNKNOWN, 1, UNKNOWN, false, ".CFN=.=F.CF..P..." },
	{ HPX_STATE_UNKNOWN, 2, UNKNOWN, false, ".CFF=.=F.CF..P..." },
	{ HPX_STATE_UNKNOWN, 1, UNKNOWN, true, ".C===.=F.CF..P..." },
	{ HPX_STATE_UNKNOWN, 2, UNKNOWN, true, ".C===.=F.CF..P..." },
	{ HPX_STATE_UNKNOWN, 1, RESUME, true, ".CFF=.=F.CF..P..." },
	{ HPX_STATE_PENDING, 1, UNKNOWN, false, ".C..U........=C.." },
	{ HPX_STATE_PENDING, 2, UNKNOWN, false, ".C..U........=C.." },
	{ HPX_STATE_PENDING, 1, RESUME, false, ".C..U........=C.." },
	{ HPX_STATE_PENDING, 1, VOID, false, ".C..U........=C.." },
};

static char letter_of(enum hpx_state state)
{
	return "NIFCUP"[state];
}

/* Sweep with the lease lost; forget without force. */
static struct hpx_move_args args_for(enum hpx_move move, struct hpx_token token)
{
	return (struct hpx_move_args){
		.now = { .wall_ms = NOW, .lease_ms = 500 },
		.token = token,
		.mark = mark,
		.status = move == HPX_MOVE_COMPLETE || move == HPX_MOVE_APPLY ||
					  move == HPX_MOVE_ABANDON ?
				  200 :
				  0,
		.owner = 7,
		.lease_ms = LEASE,
		.retention_ms = RETENTION,
	};
}

static void the_diagram_holds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(diagram) / sizeof(diagram[0]); i++) {
		for (int m = 0; m < HPX_MOVE_COUNT; m++) {
			enum hpx_move move = (enum hpx_move)m;
			struct hpx_record r = record_in(diagram[i].from, diagram[i].attempt);
			r.when_lost = diagram[i].when_lost;
			r.advanced = diagram[i].advanced;
			struct hpx_record before = r;
			struct hpx_move_args args = args_for(move, mine);
			enum hpx_status status = hpx_record_move(&r, move, &args);
			char want = diagram[i].to[m];
			char got = status == HPX_OK ? letter_of(r.state) : '.';
			if (want == '=')
				want = letter_of(diagram[i].from);
			if (got != want)
				fail_msg("%s (attempt %u, when_lost %u, advanced %d) by %s: "
					 "got %c, want %c",
					 hpx_state_name(before.state), before.attempt,
					 before.when_lost, before.advanced,
					 hpx_move_name(move), got, want);
			if (status != HPX_OK)
				assert_memory_equal(&r, &before, sizeof(r));
			else if (r.state != HPX_STATE_NONE)
				assert_true(hpx_record_valid(&r));
		}
	}
}

/* FIELD 1, 2, 6: a stale holder writes nothing, renews nothing. */
static void another_token_changes_nothing(void **state)
{
	static const enum hpx_move guarded[] = { HPX_MOVE_COMPLETE, HPX_MOVE_FAIL, HPX_MOVE_RELEASE,
						 HPX_MOVE_LOSE, HPX_MOVE_RENEW,
						 HPX_MOVE_ADVANCE, HPX_MOVE_CONCLUDE };
	const struct hpx_token tokens[] = { other, nobody };
	(void)state;
	for (int s = 0; s < HPX_STATE_COUNT; s++) {
		for (size_t m = 0; m < sizeof(guarded) / sizeof(guarded[0]); m++) {
			for (size_t t = 0; t < 2; t++) {
				struct hpx_record r = record_in((enum hpx_state)s, 1);
				struct hpx_record before = r;
				struct hpx_move_args args = args_for(guarded[m], tokens[t]);
				assert_status(hpx_record_move(&r, guarded[m], &args), HPX_STALE);
				assert_memory_equal(&r, &before, sizeof(r));
			}
		}
	}
}

/* What was thought not to have happened, and did: only where others can know of
 * the whole of it, and by who says so. */
static void what_failed_and_happened_is_completed(void **state)
{
	static const struct {
		enum hpx_when_lost when_lost;
		bool force;
		enum hpx_status want;
	} rows[] = { { UNKNOWN, true, HPX_OK }, { UNKNOWN, false, HPX_REFUSED }, { RESUME, true, HPX_REFUSED }, { VOID, true, HPX_REFUSED } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_record r = record_in(HPX_STATE_FAILED_RETRYABLE, 1);
		struct hpx_move_args args = args_for(HPX_MOVE_APPLY, nobody);
		r.when_lost = rows[i].when_lost;
		args.force = rows[i].force;
		assert_status(hpx_record_move(&r, HPX_MOVE_APPLY, &args), rows[i].want);
		assert_string_equal(hpx_state_name(r.state),
				    rows[i].want == HPX_OK ? "completed" : "failed_retryable");
	}
}

/* A restored record has nothing but its reference, and that it happened: nobody's token
 * writes to it, and no answer is ever stored with it. */
static void what_is_restored_has_no_request_and_no_answer(void **state)
{
	struct hpx_record r = { .state = HPX_STATE_NONE };
	struct hpx_move_args args = args_for(HPX_MOVE_RESTORE, mine);
	struct hpx_move_args complete = args_for(HPX_MOVE_COMPLETE, mine);

	(void)state;
	args.mark = (struct hpx_mark){ { 0 } };
	assert_status(hpx_record_move(&r, HPX_MOVE_RESTORE, &args), HPX_REFUSED);
	args.mark = mark;
	args.tombstone_ms = 9;
	assert_status(hpx_record_move(&r, HPX_MOVE_RESTORE, &args), HPX_OK);
	assert_string_equal(hpx_state_name(r.state), "completed");
	assert_true(hpx_mark_eq(&r.mark, &mark) && hpx_token_is_void(&r.token));
	assert_true(hpx_recipe_is_unknown(&r.recipe) && !r.kept);
	assert_int_equal(r.expires_ms, NOW + RETENTION);
	assert_int_equal(r.tombstone_ms, 9);
	assert_int_equal(r.status, 0);
	assert_status(hpx_record_move(&r, HPX_MOVE_COMPLETE, &complete), HPX_STALE);
}

/* Settled without an answer, an operation has the status that was seen, unless that was a
 * failure: it happened. */
static void no_status_is_invented(void **state)
{
	static const struct {
		uint32_t seen, want;
	} rows[] = { { 0, 0 }, { 201, 201 }, { 303, 303 }, { 404, 0 }, { 500, 0 }, { 504, 0 } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_record r = record_in(HPX_STATE_UNKNOWN, 1);
		struct hpx_move_args args = args_for(HPX_MOVE_APPLY, nobody);
		r.status = rows[i].seen;
		args.status = 0;
		args.kept = false;
		assert_status(hpx_record_move(&r, HPX_MOVE_APPLY, &args), HPX_OK);
		assert_true(hpx_record_valid(&r));
		assert_int_equal(r.status, rows[i].want);
	}
}

/* R6: what ends an attempt other than well is named, by who ended it, by the status, or
 * by the move; what comes afterwards leaves the name. */
static void the_last_error_is_named_and_stays(void **state)
{
#define E(name) HPX_LAST_ERROR_##name
	static const struct {
		enum hpx_state from;
		enum hpx_move move;
		uint32_t status;
		enum hpx_last_error given, want;
	} rows[] = {
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_FAIL, 0, E(NONE), E(NOT_EXECUTED) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_FAIL, 429, E(NONE), E(STATUS_429) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_FAIL, 0, E(NOT_SENT), E(NOT_SENT) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_LOSE, 0, E(NONE), E(OUTCOME_UNKNOWN) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_LOSE, 504, E(NONE), E(STATUS_504) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_LOSE, 0, E(UPSTREAM_RESET), E(UPSTREAM_RESET) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_LOSE, 200, E(NONE), E(STATUS_OTHER) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_CONCLUDE, 200, E(NONE), E(NOT_COMMITTED) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_SWEEP, 0, E(NONE), E(LEASE_LOST) },
		{ HPX_STATE_IN_PROGRESS, HPX_MOVE_COMPLETE, 500, E(NONE), E(OTHER) },
		{ HPX_STATE_PENDING, HPX_MOVE_LOSE, 0, E(DELIVERY_LOST), E(DELIVERY_LOST) },
		{ HPX_STATE_PENDING, HPX_MOVE_COMPLETE, 201, E(NONE), E(OTHER) },
		{ HPX_STATE_UNKNOWN, HPX_MOVE_LOSE, 503, E(NONE), E(OTHER) },
		{ HPX_STATE_UNKNOWN, HPX_MOVE_FAIL, 503, E(NONE), E(STATUS_503) },
		{ HPX_STATE_UNKNOWN, HPX_MOVE_UNAPPLY, 0, E(NONE), E(OTHER) },
		{ HPX_STATE_UNKNOWN, HPX_MOVE_APPLY, 201, E(NONE), E(OTHER) },
		{ HPX_STATE_UNKNOWN, HPX_MOVE_COMPLETE, 201, E(NONE), E(OTHER) },
		{ HPX_STATE_FAILED_RETRYABLE, HPX_MOVE_RESERVE, 0, E(NONE), E(OTHER) },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_record r = record_in(rows[i].from, 2);
		struct hpx_move_args args = args_for(rows[i].move, mine);
		r.last_error = E(OTHER);
		args.status = rows[i].status;
		args.error = rows[i].given;
		assert_status(hpx_record_move(&r, rows[i].move, &args), HPX_OK);
		if (r.last_error != rows[i].want)
			fail_msg("%s by %s with status %u: got %s, want %s",
				 hpx_state_name(rows[i].from), hpx_move_name(rows[i].move), rows[i].status,
				 hpx_last_error_name(r.last_error), hpx_last_error_name(rows[i].want));
	}
#undef E
}

/* The names are a closed list: what is not on it is `other`, and each status that can end
 * an attempt other than well has one. */
static void the_errors_are_a_closed_list(void **state)
{
	(void)state;
	for (int i = 0; i < HPX_LAST_ERROR_COUNT; i++)
		assert_int_equal(hpx_last_error_by_name(hpx_span_of(
					 hpx_last_error_name((enum hpx_last_error)i))),
				 i);
	assert_int_equal(hpx_last_error_by_name(HPX_SPAN("status_5000")), HPX_LAST_ERROR_OTHER);
	for (uint32_t status = 1; status < 1000; status++) {
		char name[16];
		enum hpx_last_error error = hpx_last_error_of_status(status);
		snprintf(name, sizeof(name), "status_%u", status);
		enum hpx_last_error named = hpx_last_error_by_name(hpx_span_of(name));
		if (named != HPX_LAST_ERROR_OTHER)
			assert_int_equal(error, named);
		else
			assert_int_equal(error, status >= 500 && status < 600 ? HPX_LAST_ERROR_STATUS_5XX :
										HPX_LAST_ERROR_STATUS_OTHER);
	}
}

static void a_live_lease_is_not_swept(void **state)
{
	struct hpx_record r = record_in(HPX_STATE_IN_PROGRESS, 1);
	struct hpx_move_args args = args_for(HPX_MOVE_SWEEP, nobody);
	(void)state;
	args.now.lease_ms = 499;
	assert_status(hpx_record_move(&r, HPX_MOVE_SWEEP, &args), HPX_REFUSED);
	args.owner_dead = true;
	assert_status(hpx_record_move(&r, HPX_MOVE_SWEEP, &args), HPX_OK);
	assert_int_equal(r.state, HPX_STATE_UNKNOWN);
	assert_int_equal(r.expires_ms, 0);
}

/* An attempt may go on where the last one got to: its point outlives it, and
 * what it committed counts for it alone. */
static void a_recovery_point_outlives_its_attempt(void **state)
{
	struct hpx_record r = record_in(HPX_STATE_NONE, 0);
	struct hpx_move_args args = args_for(HPX_MOVE_RESERVE, mine);
	(void)state;
	args.when_lost = RESUME;
	assert_status(hpx_record_move(&r, HPX_MOVE_RESERVE, &args), HPX_OK);
	args.point = HPX_SPAN("charged");
	assert_status(hpx_record_move(&r, HPX_MOVE_ADVANCE, &args), HPX_OK);
	args.point = HPX_SPAN("");
	assert_status(hpx_record_move(&r, HPX_MOVE_ADVANCE, &args), HPX_OK);
	assert_string_equal(r.point, "charged");
	assert_true(r.advanced);
	assert_status(hpx_record_move(&r, HPX_MOVE_LOSE, &args), HPX_OK);
	assert_true(hpx_token_is_void(&r.token));
	args.token = other;
	args.when_lost = UNKNOWN;
	assert_status(hpx_record_move(&r, HPX_MOVE_RESERVE, &args), HPX_OK);
	assert_string_equal(r.point, "charged");
	assert_false(r.advanced);
	assert_int_equal(r.when_lost, UNKNOWN);
}

static void only_what_fits_a_header_names_a_point(void **state)
{
	static const char *const bad[] = {
		"two words",
		"line\nend",
		"\x7f",
		"\xc3\xa9",
		"0123456789012345678901234567890123456789012345678901234567890123",
	};
	struct hpx_record r = record_in(HPX_STATE_IN_PROGRESS, 1);
	struct hpx_move_args args = args_for(HPX_MOVE_ADVANCE, mine);
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		args.point = hpx_span_of(bad[i]);
		assert_status(hpx_record_move(&r, HPX_MOVE_ADVANCE, &args), HPX_REFUSED);
		assert_false(r.advanced);
	}
	args.point = hpx_span_of(bad[4] + 1);
	assert_status(hpx_record_move(&r, HPX_MOVE_ADVANCE, &args), HPX_OK);
	assert_string_equal(r.point, bad[4] + 1);
}

static void renewing_never_shortens_a_lease(void **state)
{
	struct hpx_record r = record_in(HPX_STATE_IN_PROGRESS, 1);
	struct hpx_move_args args = args_for(HPX_MOVE_RENEW, mine);
	(void)state;
	args.now.lease_ms = 490;
	assert_status(hpx_record_move(&r, HPX_MOVE_RENEW, &args), HPX_OK);
	assert_int_equal(r.lease_until_ms, 520);
	args.now.lease_ms = 100;
	assert_status(hpx_record_move(&r, HPX_MOVE_RENEW, &args), HPX_OK);
	assert_int_equal(r.lease_until_ms, 520);
}

/* FIELD 20, guarantee 8: only completed and failed_retryable expire. */
static void expiry_is_set_on_entering(void **state)
{
	struct hpx_record r = record_in(HPX_STATE_IN_PROGRESS, 1);
	struct hpx_move_args args = args_for(HPX_MOVE_COMPLETE, mine);
	struct hpx_moment later = { .wall_ms = NOW + RETENTION };
	struct hpx_moment held = { .wall_ms = NOW + RETENTION, .hold_expiry = true };
	(void)state;
	assert_int_equal(r.expires_ms, 0);
	assert_status(hpx_record_move(&r, HPX_MOVE_COMPLETE, &args), HPX_OK);
	assert_int_equal(r.expires_ms, NOW + RETENTION);
	assert_true(hpx_record_expired(&r, &later));
	assert_false(hpx_record_expired(&r, &held));
	later.wall_ms--;
	assert_false(hpx_record_expired(&r, &later));
	r = record_in(HPX_STATE_FAILED_RETRYABLE, 1);
	args = args_for(HPX_MOVE_RESERVE, other);
	assert_status(hpx_record_move(&r, HPX_MOVE_RESERVE, &args), HPX_OK);
	assert_int_equal(r.expires_ms, 0);
	assert_int_equal(r.attempt, 2);
	assert_true(hpx_mark_eq(&r.mark, &mark));
	assert_true(hpx_token_eq(&r.token, &other));
}

static void forgetting_what_is_not_settled_wants_force(void **state)
{
	static const enum hpx_state unsettled[] = { HPX_STATE_IN_PROGRESS, HPX_STATE_UNKNOWN,
						    HPX_STATE_PENDING };
	(void)state;
	for (size_t i = 0; i < sizeof(unsettled) / sizeof(unsettled[0]); i++) {
		struct hpx_record r = record_in(unsettled[i], 1);
		struct hpx_move_args args = args_for(HPX_MOVE_FORGET, nobody);
		assert_status(hpx_record_move(&r, HPX_MOVE_FORGET, &args), HPX_REFUSED);
		args.force = true;
		assert_status(hpx_record_move(&r, HPX_MOVE_FORGET, &args), HPX_OK);
		assert_int_equal(r.state, HPX_STATE_NONE);
	}
}

/* R4: a pending record does not expire, it is abandoned: at its time, while the
 * clock is trusted, and never as not executed where anything was sent. */
static void a_pending_record_ends_in_time(void **state)
{
	static const struct {
		int64_t wall_ms;
		bool held, sent, force;
		char want;
	} rows[] = {
		{ NOW + RETENTION - 1, false, false, false, '.' },
		{ NOW + RETENTION - 1, false, false, true, 'C' },
		{ NOW + RETENTION, false, false, false, 'C' },
		{ NOW + RETENTION, false, true, false, 'U' },
		{ NOW + RETENTION, true, false, false, '.' },
		{ NOW + RETENTION, true, true, true, 'U' },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_record r = record_in(HPX_STATE_NONE, 0);
		struct hpx_move_args args = args_for(HPX_MOVE_ACCEPT, mine);
		assert_status(hpx_record_move(&r, HPX_MOVE_ACCEPT, &args), HPX_OK);
		assert_int_equal(r.expires_ms, NOW + RETENTION);
		assert_int_equal(r.attempt, 1);
		args = args_for(HPX_MOVE_ABANDON, nobody);
		args.now.wall_ms = rows[i].wall_ms;
		args.now.hold_expiry = rows[i].held;
		args.sent = rows[i].sent;
		args.force = rows[i].force;
		assert_false(hpx_record_expired(&r, &args.now));
		enum hpx_status status = hpx_record_move(&r, HPX_MOVE_ABANDON, &args);
		char got = status == HPX_OK ? letter_of(r.state) : '.';
		if (got != rows[i].want)
			fail_msg("row %zu: got %c, want %c", i, got, rows[i].want);
	}
}

/* Back from unknown, its time counts anew; and it can still be answered. */
static void a_requeued_record_waits_for_its_answer_again(void **state)
{
	struct hpx_record r = record_in(HPX_STATE_PENDING, 1);
	struct hpx_move_args args = args_for(HPX_MOVE_LOSE, mine);
	(void)state;
	assert_status(hpx_record_move(&r, HPX_MOVE_LOSE, &args), HPX_OK);
	assert_int_equal(r.expires_ms, 0);
	args = args_for(HPX_MOVE_REQUEUE, nobody);
	args.now.wall_ms = NOW + 7;
	assert_status(hpx_record_move(&r, HPX_MOVE_REQUEUE, &args), HPX_OK);
	assert_int_equal(r.expires_ms, NOW + 7 + RETENTION);
	args = args_for(HPX_MOVE_COMPLETE, mine);
	assert_status(hpx_record_move(&r, HPX_MOVE_COMPLETE, &args), HPX_OK);
	/* Whose token is void cannot be answered any more. */
	r = record_in(HPX_STATE_UNKNOWN, 1);
	r.token = nobody;
	args = args_for(HPX_MOVE_REQUEUE, nobody);
	assert_status(hpx_record_move(&r, HPX_MOVE_REQUEUE, &args), HPX_REFUSED);
	assert_int_equal(r.state, HPX_STATE_UNKNOWN);
}

static void broken_records_are_found_out(void **state)
{
	struct hpx_record r;
	(void)state;
	for (int s = 1; s < HPX_STATE_COUNT; s++) {
		r = record_in((enum hpx_state)s, 1);
		assert_true(hpx_record_valid(&r));
		r.attempt = 0;
		assert_false(hpx_record_valid(&r));
		r = record_in((enum hpx_state)s, 1);
		r.mark = (struct hpx_mark){ { 0 } };
		assert_false(hpx_record_valid(&r));
	}
	r = record_in(HPX_STATE_IN_PROGRESS, 1);
	r.token = nobody;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_UNKNOWN, 1);
	r.expires_ms = NOW;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_COMPLETED, 1);
	r.status = 0;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_FAILED_RETRYABLE, 1);
	r.token = mine;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_PENDING, 1);
	r.token = nobody;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_PENDING, 1);
	r.expires_ms = 0;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_IN_PROGRESS, 1);
	r.when_lost = HPX_WHEN_LOST_COUNT;
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_IN_PROGRESS, 1);
	r.point[0] = '\n';
	assert_false(hpx_record_valid(&r));
	r = record_in(HPX_STATE_COMPLETED, 1);
	r.state = HPX_STATE_COUNT;
	assert_false(hpx_record_valid(&r));
	/* R7: without a request there is no answer, and nothing to go on with. */
	for (int s = 1; s < HPX_STATE_COUNT; s++)
		for (int kept = 0; kept < 2; kept++) {
			r = record_in((enum hpx_state)s, 1);
			r.recipe = hpx_recipe_unknown();
			r.kept = kept;
			assert_int_equal(hpx_record_valid(&r), s == HPX_STATE_COMPLETED && !kept);
		}
}

/* A row of the store can have any number. */
static void the_last_attempt_has_another_one(void **state)
{
	struct hpx_record r = record_in(HPX_STATE_FAILED_RETRYABLE, UINT32_MAX);
	struct hpx_move_args args = { .now = { .wall_ms = NOW }, .token = other, .lease_ms = LEASE, .retention_ms = RETENTION };
	(void)state;
	assert_status(hpx_record_move(&r, HPX_MOVE_RESERVE, &args), HPX_OK);
	assert_int_equal(r.attempt, UINT32_MAX);
}

static void states_have_names(void **state)
{
	(void)state;
	for (int s = 0; s < HPX_STATE_COUNT; s++)
		assert_int_equal(hpx_state_by_name(hpx_span_of(hpx_state_name((enum hpx_state)s))), s);
	assert_int_equal(hpx_state_by_name(HPX_SPAN("complete")), HPX_STATE_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_diagram_holds),
		cmocka_unit_test(another_token_changes_nothing),
		cmocka_unit_test(what_failed_and_happened_is_completed),
		cmocka_unit_test(no_status_is_invented),
		cmocka_unit_test(what_is_restored_has_no_request_and_no_answer),
		cmocka_unit_test(the_last_error_is_named_and_stays),
		cmocka_unit_test(the_errors_are_a_closed_list),
		cmocka_unit_test(a_live_lease_is_not_swept),
		cmocka_unit_test(a_recovery_point_outlives_its_attempt),
		cmocka_unit_test(only_what_fits_a_header_names_a_point),
		cmocka_unit_test(renewing_never_shortens_a_lease),
		cmocka_unit_test(expiry_is_set_on_entering),
		cmocka_unit_test(forgetting_what_is_not_settled_wants_force),
		cmocka_unit_test(a_pending_record_ends_in_time),
		cmocka_unit_test(a_requeued_record_waits_for_its_answer_again),
		cmocka_unit_test(broken_records_are_found_out),
		cmocka_unit_test(the_last_attempt_has_another_one),
		cmocka_unit_test(states_have_names),
	};
	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
