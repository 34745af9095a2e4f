/* Shows what a request gets in every state, with every relation of its token,
 * fingerprint and recipe to the record's, fresh, expired and with the lease
 * lost: against a model written as a table, row by row. */
#include "../test.h"

#include "core/decision.h"

#define NOW 1000000
#define LEASE_NOW 500

static const struct hpx_token first = { { 1 } };
static const struct hpx_token asking = { { 9 } };
static const struct hpx_token nobody;
static const struct hpx_mark mark = { { 3 } };

enum relation { SAME,
		OTHER };

struct situation {
	enum hpx_state state;
	bool expired;
	bool lease_lost;
	bool own_token;
	enum relation recipe;
	enum relation fingerprint;
	bool hold_expiry;
	enum hpx_when_lost when_lost;
	enum hpx_deliver deliver;
};

static struct hpx_record make_record(const struct situation *s)
{
	struct hpx_record r = { .state = s->state,
				.mark = mark,
				.token = s->own_token ? asking : first,
				.attempt = 3,
				.retention_ms = 100,
				.created_ms = NOW - 1000,
				.recipe = { { s->recipe == SAME ? 5 : 6 } },
				.fingerprint = { s->fingerprint == SAME ? 7 : 8 },
				.lease_until_ms = s->lease_lost ? LEASE_NOW : LEASE_NOW + 1,
				.when_lost = s->when_lost };

	if (s->state == HPX_STATE_COMPLETED || s->state == HPX_STATE_FAILED_RETRYABLE ||
	    s->state == HPX_STATE_PENDING)
		r.expires_ms = s->expired ? NOW : NOW + 1;
	if (s->state == HPX_STATE_COMPLETED)
		r.status = 200;
	if (s->state == HPX_STATE_FAILED_RETRYABLE)
		r.token = nobody;
	return r;
}

/* The table, read top to bottom. */
static enum hpx_decision_kind expected(const struct situation *s)
{
	bool expires = s->state == HPX_STATE_COMPLETED || s->state == HPX_STATE_FAILED_RETRYABLE;

	if (s->state == HPX_STATE_NONE || (expires && s->expired && !s->hold_expiry))
		return HPX_DECISION_EXECUTE;
	if ((s->state == HPX_STATE_IN_PROGRESS || s->state == HPX_STATE_PENDING) && s->own_token)
		return HPX_DECISION_EXECUTE_AGAIN; /* attempt 3: its own reservation */
	if (s->recipe == OTHER)
		return HPX_DECISION_REFINGERPRINT;
	if (s->fingerprint == OTHER)
		return HPX_DECISION_MISMATCH;
	switch (s->state) {
	case HPX_STATE_IN_PROGRESS:
		if (!s->lease_lost)
			return HPX_DECISION_IN_PROGRESS;
		return s->when_lost == HPX_WHEN_LOST_UNKNOWN ? HPX_DECISION_UNKNOWN :
							       HPX_DECISION_EXECUTE_AGAIN;
	case HPX_STATE_FAILED_RETRYABLE:
		return HPX_DECISION_EXECUTE_AGAIN;
	case HPX_STATE_COMPLETED:
		return HPX_DECISION_REPLAY;
	case HPX_STATE_PENDING:
		return HPX_DECISION_PENDING; /* overdue or not: the reaper ends it */
	default:
		return HPX_DECISION_UNKNOWN;
	}
}

static const struct hpx_policy policy = { .retention_ms = 100, .lease_ms = 30 };

static struct hpx_decision decide(const struct situation *s)
{
	struct hpx_record r = make_record(s);
	struct hpx_ask ask = { .token = asking, .recipe = { { 5 } }, .fingerprint = { 7 }, .owner = 4 };
	struct hpx_moment now = { .wall_ms = NOW, .lease_ms = LEASE_NOW, .hold_expiry = s->hold_expiry };
	struct hpx_policy p = policy;
	struct hpx_decision d;

	p.deliver = s->deliver;
	hpx_decide(s->state == HPX_STATE_NONE ? NULL : &r, &ask, &p, &now, &d);
	return d;
}

static void check(const struct situation *s)
{
	struct hpx_decision d = decide(s);

	if (d.kind != expected(s))
		fail_msg("%s expired=%d lost=%d own=%d recipe=%d fingerprint=%d hold=%d "
			 "when_lost=%u deliver=%u: got %s, want %s",
			 hpx_state_name(s->state), s->expired, s->lease_lost, s->own_token,
			 s->recipe, s->fingerprint, s->hold_expiry, s->when_lost,
			 s->deliver,
			 hpx_decision_name(d.kind), hpx_decision_name(expected(s)));
	/* Whatever is written is whole; whoever executes holds the lease. */
	if (d.write)
		assert_true(hpx_record_valid(&d.record));
	if (d.kind == HPX_DECISION_EXECUTE || d.kind == HPX_DECISION_EXECUTE_AGAIN) {
		enum hpx_state begun = s->deliver == HPX_DELIVER_ASYNC ? HPX_STATE_PENDING :
									 HPX_STATE_IN_PROGRESS;
		assert_int_equal(d.record.state, d.write ? begun : s->state);
		assert_true(hpx_token_eq(&d.record.token, &asking));
	}
}

static void every_situation_gets_what_the_table_says(void **state)
{
	unsigned count = 0;
	(void)state;
	for (unsigned bits = 0; bits < 128 * HPX_WHEN_LOST_COUNT; bits++) {
		for (int s = 0; s < HPX_STATE_COUNT; s++) {
			struct situation situation = {
				.state = (enum hpx_state)s,
				.expired = bits & 1,
				.lease_lost = bits & 2,
				.own_token = bits & 4,
				.recipe = bits & 8 ? OTHER : SAME,
				.fingerprint = bits & 16 ? OTHER : SAME,
				.hold_expiry = bits & 32,
				.deliver = bits & 64 ? HPX_DELIVER_ASYNC : HPX_DELIVER_NOW,
				.when_lost = (enum hpx_when_lost)(bits / 128),
			};
			check(&situation);
			count++;
		}
	}
	assert_int_equal(count, 128 * HPX_WHEN_LOST_COUNT * HPX_STATE_COUNT);
}

/* FIELD 4, 9: a mismatch leaves the record as it was. */
static void only_reservations_and_lost_leases_write(void **state)
{
	static const struct {
		struct situation s;
		bool write;
	} rows[] = {
		{ { .state = HPX_STATE_COMPLETED, .fingerprint = OTHER }, false },
		{ { .state = HPX_STATE_IN_PROGRESS, .fingerprint = OTHER, .lease_lost = true }, false },
		{ { .state = HPX_STATE_COMPLETED }, false },
		{ { .state = HPX_STATE_UNKNOWN }, false },
		{ { .state = HPX_STATE_IN_PROGRESS }, false },
		{ { .state = HPX_STATE_IN_PROGRESS, .own_token = true }, false },
		{ { .state = HPX_STATE_IN_PROGRESS, .lease_lost = true }, true },
		{ { .state = HPX_STATE_FAILED_RETRYABLE }, true },
		{ { .state = HPX_STATE_NONE }, true },
		{ { .state = HPX_STATE_NONE, .deliver = HPX_DELIVER_ASYNC }, true },
		{ { .state = HPX_STATE_PENDING, .deliver = HPX_DELIVER_ASYNC }, false },
		{ { .state = HPX_STATE_PENDING, .expired = true }, false },
		{ { .state = HPX_STATE_PENDING, .own_token = true }, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (decide(&rows[i].s).write != rows[i].write)
			fail_msg("row %zu: write is %d", i, !rows[i].write);
}

static void only_a_lease_that_was_found_lost_is_told_as_one(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < HPX_WHEN_LOST_COUNT; lost++) {
		struct situation s = { .state = HPX_STATE_IN_PROGRESS,
				       .lease_lost = true,
				       .when_lost = (enum hpx_when_lost)lost };

		assert_true(decide(&s).lost);
		s.lease_lost = false;
		assert_false(decide(&s).lost);
		s = (struct situation){ .state = HPX_STATE_IN_PROGRESS, .lease_lost = true, .own_token = true };
		assert_false(decide(&s).lost);
		s = (struct situation){ .state = HPX_STATE_FAILED_RETRYABLE, .when_lost = (enum hpx_when_lost)lost };
		assert_false(decide(&s).lost);
	}
}

static void a_new_use_of_an_expired_key_has_another_reference(void **state)
{
	struct situation s = { .state = HPX_STATE_COMPLETED, .expired = true, .fingerprint = OTHER };
	struct hpx_decision d = decide(&s);
	(void)state;
	assert_int_equal(d.kind, HPX_DECISION_EXECUTE);
	assert_int_equal(d.record.attempt, 1);
	struct hpx_mark made;
	assert_status(hpx_mark_make(&asking, &made), HPX_OK);
	assert_true(hpx_mark_eq(&d.record.mark, &made));
	assert_int_equal(d.record.created_ms, NOW);
}

static void a_retry_keeps_the_reference_and_counts_on(void **state)
{
	struct situation s = { .state = HPX_STATE_FAILED_RETRYABLE };
	struct hpx_decision d = decide(&s);
	(void)state;
	assert_int_equal(d.record.attempt, 4);
	assert_true(hpx_mark_eq(&d.record.mark, &mark));
	assert_int_equal(d.record.lease_until_ms, LEASE_NOW + 30);
}

static void the_route_says_what_becomes_of_a_lost_attempt(void **state)
{
	static const struct {
		enum hpx_on_lost on_lost;
		enum hpx_completes completes;
		enum hpx_when_lost want;
		enum hpx_deliver deliver;
	} rows[] = {
		{ HPX_ON_LOST_UNKNOWN, HPX_COMPLETES_UPSTREAM, HPX_WHEN_LOST_UNKNOWN, HPX_DELIVER_NOW },
		{ HPX_ON_LOST_RESUME, HPX_COMPLETES_UPSTREAM, HPX_WHEN_LOST_RESUME, HPX_DELIVER_NOW },
		{ HPX_ON_LOST_UNKNOWN, HPX_COMPLETES_APPLICATION, HPX_WHEN_LOST_VOID, HPX_DELIVER_NOW },
		{ HPX_ON_LOST_RESUME, HPX_COMPLETES_APPLICATION, HPX_WHEN_LOST_VOID, HPX_DELIVER_NOW },
		{ HPX_ON_LOST_RESUME, HPX_COMPLETES_UPSTREAM, HPX_WHEN_LOST_UNKNOWN, HPX_DELIVER_ASYNC },
		{ HPX_ON_LOST_RESUME, HPX_COMPLETES_APPLICATION, HPX_WHEN_LOST_UNKNOWN, HPX_DELIVER_ASYNC },
	};
	struct hpx_ask ask = { .token = asking };
	struct hpx_moment now = { .wall_ms = NOW, .lease_ms = LEASE_NOW };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_policy p = policy;
		struct hpx_decision d;
		p.on_lost = rows[i].on_lost;
		p.completes = rows[i].completes;
		p.deliver = rows[i].deliver;
		hpx_decide(NULL, &ask, &p, &now, &d);
		assert_int_equal(d.record.when_lost, rows[i].want);
	}
}

/* An upstream that honours keys for a time is not trusted beyond it. */
static void nothing_resumes_once_the_upstream_has_forgotten(void **state)
{
	static const struct {
		int64_t honours_keys_ms;
		bool fenced;
		enum hpx_when_lost when_lost;
		enum hpx_decision_kind want;
	} rows[] = {
		/* the record is 1000 ms old */
		{ 1001, false, HPX_WHEN_LOST_RESUME, HPX_DECISION_EXECUTE_AGAIN },
		{ 1000, false, HPX_WHEN_LOST_RESUME, HPX_DECISION_UNKNOWN },
		{ 1000, true, HPX_WHEN_LOST_RESUME, HPX_DECISION_EXECUTE_AGAIN },
		{ 1000, false, HPX_WHEN_LOST_VOID, HPX_DECISION_EXECUTE_AGAIN },
		{ 0, false, HPX_WHEN_LOST_UNKNOWN, HPX_DECISION_EXECUTE_AGAIN },
	};
	struct hpx_ask ask = { .token = asking, .recipe = { { 5 } }, .fingerprint = { 7 } };
	struct hpx_moment now = { .wall_ms = NOW, .lease_ms = LEASE_NOW };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct situation s = { .state = HPX_STATE_FAILED_RETRYABLE,
				       .when_lost = rows[i].when_lost };
		struct hpx_record r = make_record(&s);
		struct hpx_policy p = policy;
		struct hpx_decision d;
		p.honours_keys_ms = rows[i].honours_keys_ms;
		p.fenced = rows[i].fenced;
		hpx_decide(&r, &ask, &p, &now, &d);
		if (d.kind != rows[i].want)
			fail_msg("row %zu: got %s, want %s", i, hpx_decision_name(d.kind),
				 hpx_decision_name(rows[i].want));
	}
}

/* Of a restored record nobody knows the request: any request learns that it happened. */
static void a_record_without_a_request_is_compared_with_none(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 4; bits++) {
		struct situation s = { .state = HPX_STATE_COMPLETED, .fingerprint = bits & 1 ? OTHER : SAME };
		struct hpx_record r = make_record(&s);
		struct hpx_ask ask = { .token = asking, .recipe = { { 5 } }, .fingerprint = { 7 } };
		struct hpx_moment now = { .wall_ms = NOW, .lease_ms = LEASE_NOW };
		struct hpx_decision d;

		r.recipe = hpx_recipe_unknown();
		if (bits & 2)
			ask.recipe = r.recipe;
		hpx_decide(&r, &ask, &policy, &now, &d);
		assert_string_equal(hpx_decision_name(d.kind), "replay");
		assert_false(d.write);
		/* No answer is given to a request that was not compared. */
		r.kept = true;
		hpx_decide(&r, &ask, &policy, &now, &d);
		assert_string_equal(hpx_decision_name(d.kind), "unknown");
	}
}

/* FIELD 19: unreadable is unknown, never absent. */
static void a_broken_record_counts_as_unknown(void **state)
{
	struct situation s = { .state = HPX_STATE_COMPLETED };
	struct hpx_record r = make_record(&s);
	struct hpx_ask ask = { .token = asking, .recipe = { { 5 } }, .fingerprint = { 7 } };
	struct hpx_moment now = { .wall_ms = NOW, .lease_ms = LEASE_NOW };
	struct hpx_decision d;
	(void)state;
	r.attempt = 0;
	hpx_decide(&r, &ask, &policy, &now, &d);
	assert_int_equal(d.kind, HPX_DECISION_UNKNOWN);
	assert_false(d.write);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_situation_gets_what_the_table_says),
		cmocka_unit_test(only_reservations_and_lost_leases_write),
		cmocka_unit_test(only_a_lease_that_was_found_lost_is_told_as_one),
		cmocka_unit_test(a_new_use_of_an_expired_key_has_another_reference),
		cmocka_unit_test(a_retry_keeps_the_reference_and_counts_on),
		cmocka_unit_test(the_route_says_what_becomes_of_a_lost_attempt),
		cmocka_unit_test(a_record_without_a_request_is_compared_with_none),
		cmocka_unit_test(nothing_resumes_once_the_upstream_has_forgotten),
		cmocka_unit_test(a_broken_record_counts_as_unknown),
	};
	return cmocka_run_group_tests_name("decision", tests, NULL, NULL);
}
