/* Shows that a team's own pipeline settles under the rules of a probe: by RULE with the
 * store's own rule, on every store that keeps an outbox; that hapax.settle in SQL does
 * exactly what the C rules do, whatever the rows are; that of several who settle at once
 * one wins and nothing overrides what is completed; and who may call it. */
#include "application.h"
#include "delivery.h"

#include <sqlite3.h>

static const struct hpx_answer given_answer = { .status = 201, .kept = true, .headers = HPX_SPAN_INIT("A: b\r\nIdempotent-Reconstructed: true\r\n"), .body = HPX_SPAN_INIT("made") };

/* The fixture's operations have this route, in the scope of this upstream. */
static void make_known(struct fixture *f, const char *upstream, const char *name, int64_t settle_ms)
{
	struct hpx_lane_settings lane = { .upstream = hpx_span_of(upstream), .name = hpx_span_of(name), .settle_after_ms = settle_ms, .confirm_after_ms = settle_ms };
	struct hpx_store_op op = { .verb = HPX_VERB_LANE, .lane.settings = &lane };

	assert_status(run_op(f, &op), HPX_OK);
}

static const struct hpx_description described = {
	.tenant = HPX_SPAN_INIT("t"),
	.scope = HPX_SPAN_INIT("up POST /pay"),
	.key = HPX_SPAN_INIT("k"),
	.method = HPX_SPAN_INIT("POST"),
	.path = HPX_SPAN_INIT("/pay"),
	.route = HPX_SPAN_INIT("POST /pay"),
};

static void reserve_described(struct fixture *f, unsigned key, unsigned token)
{
	struct hpx_ask request = ask_of(f->store, key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	op.reserve.ask = &request;
	op.reserve.policy = policy();
	op.reserve.description = &described;
	assert_status(run_op(f, &op), HPX_OK);
}

static void lose(struct fixture *f, unsigned key)
{
	reserve_described(f, key, A);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, key, A), HPX_OK);
}

/* The settlement's name, or the status'. */
static const char *settle_with(struct fixture *f, unsigned key, enum hpx_ruling ruling,
			       const struct hpx_answer *answer)
{
	struct hpx_ruling_update update = { .received = { .ruling = ruling }, .stored_rule = true, .answer = answer };
	struct hpx_store_op op = op_of(HPX_VERB_RULE, key, A);

	op.rule.update = &update;
	op.actor = HPX_SPAN("settler");
	op.reason = HPX_SPAN("the nightly run");
	return run_op(f, &op) == HPX_OK ? hpx_settlement_name(update.settlement) :
					  hpx_status_name(op.status);
}

static const char *settle(struct fixture *f, unsigned key, enum hpx_ruling ruling)
{
	return settle_with(f, key, ruling, NULL);
}

/* How many questions there are. On PostgreSQL a gateway looks at its own upstream's. */
static long questions(struct fixture *f)
{
	if (!fixture_is_postgres(f))
		return (long)count_unsettled(f);
	PGconn *conn = cluster_connect();
	long count = strtol(ask(conn, "SELECT count(*) FROM hapax.reconcile WHERE ask_at > 0"), NULL, 10);
	PQfinish(conn);
	return count;
}

/* ---- the rules ---- */

static void applied_and_declined_settle_at_once(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 4; i++)
		lose(f, i);
	assert_string_equal(settle(f, 0, HPX_RULING_APPLIED), "settled");
	assert_string_equal(state_of(f, 0), "completed");
	assert_int_equal(record_of(f, 0).status, 0);
	assert_string_equal(settle_with(f, 1, HPX_RULING_APPLIED, &given_answer), "settled");
	assert_string_equal(body_of(f, 1), "made");
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	assert_string_equal(settle(f, 2, HPX_RULING_DECLINED), "settled");
	assert_int_equal(record_of(f, 2).status, 402);
	assert_non_null(strstr(body_of(f, 2), "declined"));
	assert_string_equal(events_of(f, 2), "outcome_lost ruled_declined");
	/* Nothing overrides that, and nobody is asked any more. */
	for (unsigned i = 0; i < 3; i++)
		for (int ruling = 0; ruling <= HPX_RULING_NOT_APPLIED; ruling++)
			assert_string_equal(settle(f, i, (enum hpx_ruling)ruling), "ignored");
	assert_string_equal(body_of(f, 1), "made");
	assert_int_equal(questions(f), 1);
	assert_string_equal(settle(f, 99, HPX_RULING_APPLIED), hpx_status_name(HPX_NOT_FOUND));
}

static void not_applied_counts_late_and_twice(void **state)
{
	struct fixture *f = *state;

	make_known(f, "up", "POST /pay", SETTLE_MS);
	lose(f, 1);
	assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED), "too_early");
	/* The database's clock cannot be moved: the row is. */
	if (fixture_is_postgres(f))
		cluster_sql("UPDATE hapax.reconcile SET sent = sent - 2000");
	else
		advance(f, 2 * SETTLE_MS);
	assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED), "kept");
	assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED), "too_early");
	assert_string_equal(state_of(f, 1), "unknown");
	if (fixture_is_postgres(f))
		cluster_sql("UPDATE hapax.reconcile SET first_said = first_said - 2000");
	else
		advance(f, 2 * SETTLE_MS);
	assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED), "settled");
	assert_string_equal(state_of(f, 1), "failed_retryable");
	/* The token is void: the late answer of the same lease changes nothing. */
	assert_status(complete(f, 1, A, "late"), HPX_STALE);
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
}

static void without_settle_after_not_applied_is_refused(void **state)
{
	struct fixture *f = *state;

	make_known(f, "up", "POST /other", SETTLE_MS);
	make_known(f, "up", "POST /pay", 0);
	lose(f, 1);
	for (int again = 0; again < 2; again++) {
		assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED),
				    hpx_status_name(HPX_UNSUPPORTED));
		assert_string_equal(state_of(f, 1), "unknown");
	}
	/* The store goes on, and the last word of a configuration counts. */
	make_known(f, "up", "POST /pay", SETTLE_MS);
	assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED), "too_early");
	assert_string_equal(settle(f, 1, HPX_RULING_APPLIED), "settled");
}

static void what_comes_too_soon_is_evidence(void **state)
{
	struct fixture *f = *state;

	reserve_described(f, 1, A);
	assert_string_equal(settle(f, 1, HPX_RULING_NOT_APPLIED), "ignored");
	assert_string_equal(settle(f, 1, HPX_RULING_APPLIED), "kept");
	assert_string_equal(settle(f, 1, HPX_RULING_APPLIED), "kept");
	assert_string_equal(events_of(f, 1), "evidence");
	assert_string_equal(state_of(f, 1), "in_progress");
	/* Whoever looks at the question finds it, and settles by it. */
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, A), HPX_OK);
	struct hpx_due due = { .id = id_of(1), .mark = mark_of(A), .lease_ms = LEASE_MS };
	struct hpx_unsettled *found = take_due(f, &due, 1);
	assert_non_null(found);
	assert_int_equal(found->evidence, HPX_RULING_APPLIED);
	hpx_unsettled_free(found);
}

static void an_operation_is_settled_through_its_job(void **state)
{
	struct fixture *f = *state;

	make_known(f, "", "target:mailer", SETTLE_MS);
	for (unsigned i = 0; i < 3; i++) {
		assert_string_equal(accept_later(f, i, A), "created");
		struct hpx_delivery claimed = claim_one(f, 0);
		assert_status(end_job(f, &claimed, HPX_JOB_MOVE_LOSE), HPX_OK);
		assert_string_equal(state_of(f, i), "unknown");
	}
	assert_string_equal(settle_with(f, 0, HPX_RULING_APPLIED, &given_answer), "settled");
	assert_string_equal(jobs_of(f, 0), "answer=done");
	assert_string_equal(body_of(f, 0), "made");
	assert_string_equal(settle(f, 1, HPX_RULING_DECLINED), "settled");
	assert_string_equal(jobs_of(f, 1), "answer=dead");
	assert_int_equal(record_of(f, 1).status, 402);
	assert_string_equal(settle(f, 2, HPX_RULING_NOT_APPLIED), "too_early");
	for (int said = 0; said < 2; said++) {
		if (fixture_is_postgres(f))
			cluster_sql("UPDATE hapax.reconcile SET sent = sent - 2000, first_said = "
				    "first_said - 2000");
		else
			advance(f, 2 * SETTLE_MS);
		assert_string_equal(settle(f, 2, HPX_RULING_NOT_APPLIED), said == 0 ? "kept" : "settled");
	}
	assert_string_equal(jobs_of(f, 2), "answer=queued");
	assert_string_equal(state_of(f, 2), "pending");
}

/* ---- the provider's id ---- */

static enum hpx_status give_id(struct fixture *f, unsigned key, unsigned token, const char *id)
{
	struct hpx_store_op op = op_of(HPX_VERB_PROVIDER_ID, key, token);

	op.actor = HPX_SPAN("application");
	op.provider_id.text = hpx_span_of(id);
	return run_op(f, &op);
}

/* How many operations have the id; the first of them is that of `key`. */
static size_t provided(struct fixture *f, const char *id, unsigned key, unsigned first)
{
	struct hpx_reference found[2];
	struct hpx_operation_id wanted = id_of(key);
	struct hpx_mark mark = mark_of(first);
	size_t count = 0;

	assert_status(hpx_store_provided(f->reader, hpx_span_of(id), found, 2, &count), HPX_OK);
	if (count == 1) {
		assert_true(hpx_operation_id_eq(&found[0].id, &wanted));
		assert_true(hpx_mark_eq(&found[0].mark, &mark));
	}
	return count;
}

/* By the last id that the attempt gave, in every state, until the record is gone; never
 * by a stale attempt's, nor for another use of the same key. */
static void an_operation_is_found_by_the_providers_id(void **state)
{
	struct fixture *f = *state;

	reserve_described(f, 1, A);
	assert_status(give_id(f, 1, A, ""), HPX_INVALID);
	assert_status(give_id(f, 1, A, "two words"), HPX_INVALID);
	assert_status(give_id(f, 1, B, "ch_1"), HPX_STALE);
	assert_int_equal(provided(f, "ch_1", 1, A), 0);
	assert_status(give_id(f, 1, A, "ch_0"), HPX_OK);
	assert_status(give_id(f, 1, A, "ch_1"), HPX_OK);
	assert_status(give_id(f, 1, A, "ch_1"), HPX_OK);
	assert_int_equal(provided(f, "ch_0", 1, A), 0);
	assert_int_equal(provided(f, "ch_1", 1, A), 1);
	assert_true(record_of(f, 1).advanced);
	/* The provider has seen it: nobody can say that nothing happened. */
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_int_equal(provided(f, "ch_1", 1, A), 1);
	reserve_described(f, 2, B);
	assert_status(give_id(f, 2, B, "ch_1"), HPX_OK);
	assert_int_equal(provided(f, "ch_1", 1, A), 2);
	assert_status(complete(f, 2, B, "done"), HPX_OK);
	assert_status(give_id(f, 2, B, "ch_2"), HPX_REFUSED);
	/* Forgotten, expired, and used again. */
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, 2, B);
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(provided(f, "ch_1", 1, A), 1);
	assert_string_equal(settle(f, 1, HPX_RULING_APPLIED), "settled");
	assert_int_equal(provided(f, "ch_1", 1, A), 1);
	advance(f, RETENTION_MS + 1);
	reserve_described(f, 1, B);
	assert_int_equal(provided(f, "ch_1", 1, B), 0);
	assert_status(give_id(f, 1, B, "ch_3"), HPX_OK);
	assert_int_equal(provided(f, "ch_3", 1, B), 1);
	assert_status(complete(f, 1, B, "done"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	for (int i = 0; i < 10 && strcmp(state_of(f, 1), "none") != 0; i++)
		reap(f);
	assert_int_equal(provided(f, "ch_3", 1, B), 0);
	assert_int_equal(fixture_count(f, "provider"), 0);
}

/* ---- several at once ---- */

enum step { PIPELINE,
	    SECOND_PIPELINE,
	    PROBE,
	    LATE_ANSWER,
	    PERSON,
	    STEPS };

static void take(struct fixture *f, unsigned key, enum step step, char winner[16])
{
	static const char *const bodies[] = { "made", "declined", "probe", "late", "person" };
	struct hpx_answer answer = { .status = 200, .kept = true, .headers = HPX_SPAN_INIT(""), .body = HPX_SPAN_INIT("person") };
	struct hpx_answer probed = { .status = 200, .kept = true, .headers = HPX_SPAN_INIT(""), .body = HPX_SPAN_INIT("probe") };
	struct hpx_ruling_update ruling = { .received = { .ruling = HPX_RULING_APPLIED, .asked = true }, .rule = { .tries_max = 2 }, .answer = &probed };
	struct hpx_store_op op = op_of(HPX_VERB_RULE, key, A);
	bool won = false;

	switch (step) {
	case PIPELINE:
		won = strcmp(settle_with(f, key, HPX_RULING_APPLIED, &given_answer), "settled") == 0;
		break;
	case SECOND_PIPELINE:
		won = strcmp(settle(f, key, HPX_RULING_DECLINED), "settled") == 0;
		break;
	case PROBE:
		op.rule.update = &ruling;
		won = run_op(f, &op) == HPX_OK && ruling.move == HPX_RECONCILE_SETTLE_APPLIED;
		break;
	case LATE_ANSWER:
		/* HPX_OK after somebody settled, too: the truth is what is stored. */
		won = strcmp(state_of(f, key), "completed") != 0 &&
		      complete(f, key, A, "late") == HPX_OK;
		break;
	default:
		op = op_of(HPX_VERB_RESOLVE, key, A);
		op.resolve.applied = true;
		op.resolve.answer = &answer;
		won = run_op(f, &op) == HPX_OK;
		break;
	}
	if (!won)
		return;
	assert_string_equal(winner, "");
	snprintf(winner, 16, "%s", bodies[step]);
}

/* Every two of them, in both orders, and then all the others. */
static void one_wins_and_nothing_overrides_it(void **state)
{
	struct fixture *f = *state;
	unsigned key = 0;

	for (int first = 0; first < STEPS; first++) {
		for (int second = 0; second < STEPS; second++, key++) {
			char winner[16] = "";

			lose(f, key);
			take(f, key, (enum step)first, winner);
			if (second != first)
				take(f, key, (enum step)second, winner);
			for (int other = 0; other < STEPS; other++)
				if (other != first && other != second)
					take(f, key, (enum step)other, winner);
			assert_string_equal(state_of(f, key), "completed");
			if (strstr(body_of(f, key), winner) == NULL || winner[0] == '\0')
				fail_msg("%d before %d: stored \"%s\", won \"%s\"", first, second,
					 body_of(f, key), winner);
		}
	}
}

/* Two sessions: the second waits for the first one's row, and finds it settled; one that
 * is rolled back has done nothing. */
static void the_row_is_held_until_the_transaction_ends(void **state)
{
	struct fixture *f = *state;
	PGconn *one = cluster_connect(), *two = cluster_connect();
	struct hpx_operation_id id = id_of(1);
	struct hpx_mark mark = mark_of(A);
	char reference[HPX_REFERENCE_SIZE];

	lose(f, 1);
	hpx_reference_print(&id, &mark, reference);
	for (int round = 0; round < 2; round++) {
		PQclear(cluster_ask(one, "BEGIN"));
		assert_string_equal(ask(one, "SELECT hapax.settle('%s', 'applied')", reference), "settled");
		assert_string_equal(state_of(f, 1), "unknown");
		/* A gateway waits for nobody. */
		assert_string_equal(settle(f, 1, HPX_RULING_DECLINED), hpx_status_name(HPX_BUSY));
		assert_string_equal(rule(f, 1, A, 0, HPX_RULING_DECLINED, true),
				    hpx_status_name(HPX_BUSY));
		PQclear(cluster_ask(two, "SET lock_timeout = '50ms'"));
		assert_string_equal(state_after(two, "SELECT hapax.settle('%s', 'declined')", reference),
				    "55P03");
		PQclear(cluster_ask(one, round == 0 ? "ROLLBACK" : "COMMIT"));
	}
	assert_string_equal(ask(two, "SELECT hapax.settle('%s', 'declined')", reference), "ignored");
	assert_string_equal(state_of(f, 1), "completed");
	PQfinish(one);
	PQfinish(two);
}

/* ---- SQL against C ---- */

struct rows {
	enum hpx_state state;
	int job; /* enum hpx_job_state; 0: none */
	bool unsure;
	unsigned job_attempt;
	enum hpx_when_lost when_lost;
	unsigned status; /* seen before */
	int in_a_row;    /* of the question; -1: too early for the first, too */
	int evidence;
	enum hpx_ruling ruling;
	bool answered;
};

static const char *hex_of(unsigned key)
{
	static char hex[2 * HPX_OPERATION_ID_SIZE + 1];
	struct hpx_operation_id id = id_of(key);

	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	hex[32] = '\0';
	return hex;
}

static void put_rows(struct fixture *f, unsigned key, const struct rows *r)
{
	bool ends = r->state == HPX_STATE_COMPLETED || r->state == HPX_STATE_FAILED_RETRYABLE ||
		    r->state == HPX_STATE_PENDING;
	const char *id = hex_of(key);
	char sql[1024];

	reserve_described(f, key, A);
	snprintf(sql, sizeof(sql),
		 "UPDATE hapax.operation SET state = %d, when_lost = %d, status = %u, last_error = "
		 "'status_503', expires = "
		 "CASE WHEN %s THEN changed + 5 ELSE 0 END, changed = changed - 10000, token = CASE %d "
		 "WHEN 2 THEN '00000000-0000-0000-0000-000000000000' ELSE token END WHERE id = '%s'",
		 (int)r->state, (int)r->when_lost,
		 r->state == HPX_STATE_COMPLETED ? 200 : r->status, ends ? "true" : "false",
		 (int)r->state, id);
	cluster_sql(sql);
	if (r->job != 0) {
		snprintf(sql, sizeof(sql),
			 "INSERT INTO hapax.job (operation, rest, mark, name, target, method, path, "
			 "headers, body, created, state, answers, unsure, attempt, token, changed, due, "
			 "status, first_sent) SELECT id, rest, mark, 'answer', 'mailer', 'POST', '/', '', "
			 "'', created, %d, true, %s, %u, CASE WHEN %d IN (1, 6) THEN "
			 "'00000000-0000-0000-0000-000000000000' ELSE gen_random_uuid() END, "
			 "created - 10000, 7, 503, created FROM hapax.operation WHERE id = '%s'",
			 r->job, r->unsure ? "true" : "false", r->job_attempt, r->job, id);
		cluster_sql(sql);
	}
	if (r->in_a_row == 0 && r->evidence == 0)
		return;
	snprintf(sql, sizeof(sql),
		 "INSERT INTO hapax.reconcile SELECT o.id, o.rest, o.mark, coalesce(j.id, 0), '', '?', "
		 "CASE WHEN %d < 0 THEN o.created + 60000 ELSE 0 END, 1, greatest(%d, 0), "
		 "CASE WHEN %d > 0 THEN o.changed ELSE 0 END, 1, %d, false FROM hapax.operation o "
		 "LEFT JOIN hapax.job j ON j.operation = o.id AND (j.state IN (1, 2, 4) OR "
		 "(j.state = 5 AND o.state = 5)) WHERE o.id = '%s' "
		 "ON CONFLICT (id, job) DO UPDATE SET sent = excluded.sent, tries = 1, "
		 "in_a_row = excluded.in_a_row, first_said = excluded.first_said, "
		 "evidence = excluded.evidence",
		 r->in_a_row, r->in_a_row, r->in_a_row, r->evidence, id);
	cluster_sql(sql);
}

/* Everything but the moment. */
static void print_rows(PGconn *conn, unsigned key, char *out, size_t size)
{
	char sql[2048];

	snprintf(sql, sizeof(sql),
		 "SELECT concat_ws(' | ', (SELECT format('%%s attempt=%%s void=%%s status=%%s kept=%%s "
		 "ends=%%s when=%%s advanced=%%s error=%%s %%s %%s', o.state, attempt, token = "
		 "'00000000-0000-0000-0000-000000000000', status, kept, CASE expires WHEN 0 THEN "
		 "'never' WHEN changed + retention THEN 'anew' ELSE 'as before' END, when_lost, "
		 "advanced, last_error, encode((hapax.unpack_answer(o)).headers, 'escape'), "
		 "encode((hapax.unpack_answer(o)).body, 'escape')) FROM hapax.operation o WHERE id = '%1$s'), "
		 "(SELECT format('job %%s void=%%s unsure=%%s due=%%s attempt=%%s status=%%s', state, token = "
		 "'00000000-0000-0000-0000-000000000000', unsure, due = changed, attempt, status) "
		 "FROM hapax.job WHERE operation = '%1$s'), (SELECT string_agg(format("
		 "'question job=%%s lane=%%s sent=%%s tries=%%s row=%%s first=%%s at=%%s evidence=%%s person=%%s', "
		 "job > 0, lane, sent > 0, tries, in_a_row, first_said > 0, ask_at > 0, evidence, person), "
		 "' ' ORDER BY job) FROM hapax.reconcile WHERE id = '%1$s'), (SELECT string_agg(concat_ws("
		 "':', what, actor, reason, status, attempt), ' ' ORDER BY what) FROM hapax.event "
		 "WHERE id = '%1$s'))",
		 hex_of(key));
	PGresult *result = cluster_ask(conn, sql);
	snprintf(out, size, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
}

/* The settlement by the rules in C, which webhooks and probes use. */
static const char *rule_in_c(struct fixture *f, unsigned key, const struct rows *r)
{
	struct hpx_ruling_update update = {
		.received = { .ruling = r->ruling, .about_ms = INT64_MAX },
		.rule = { .settle_after_ms = SETTLE_MS, .confirm_after_ms = SETTLE_MS },
		.answer = r->answered ? &given_answer : NULL,
	};
	struct hpx_store_op op = op_of(HPX_VERB_RULE, key, A);

	op.rule.update = &update;
	op.actor = HPX_SPAN("settler");
	op.reason = HPX_SPAN("the nightly run");
	return run_op(f, &op) == HPX_OK ? hpx_settlement_name(update.settlement) :
					  hpx_status_name(op.status);
}

static void compare(struct fixture *f, PGconn *conn, unsigned *key, const struct rows *r)
{
	char got[2048], want[2048];
	const char *by_c, *by_sql;

	put_rows(f, *key, r);
	put_rows(f, *key + 1, r);
	by_c = rule_in_c(f, *key, r);
	by_sql = settle_with(f, *key + 1, r->ruling, r->answered ? &given_answer : NULL);
	print_rows(conn, *key, want, sizeof(want));
	print_rows(conn, *key + 1, got, sizeof(got));
	*key += 2;
	if (strcmp(by_c, by_sql) != 0 || strcmp(got, want) != 0)
		fail_msg("%s of %s, job %d (unsure %d, attempt %u), when_lost %d, row %d, evidence %d:\n"
			 "SQL %s %s\n  C %s %s",
			 hpx_ruling_name(r->ruling), hpx_state_name(r->state), r->job, r->unsure,
			 r->job_attempt, (int)r->when_lost, r->in_a_row, r->evidence, by_sql, got, by_c,
			 want);
}

static void sql_does_what_c_does(void **state)
{
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();
	unsigned key = 0;

	make_known(f, "up", "POST /pay", SETTLE_MS);
	make_known(f, "", "target:mailer", SETTLE_MS);
	for (int s = HPX_STATE_IN_PROGRESS; s < HPX_STATE_COUNT; s++)
		for (int job = 0; job < HPX_JOB_STATE_COUNT; job++)
			for (int ruling = 0; ruling <= HPX_RULING_NOT_APPLIED; ruling++)
				for (int more = 0; more < 4; more++) {
					struct rows r = {
						.state = (enum hpx_state)s,
						.job = job,
						.unsure = job == HPX_JOB_UNKNOWN || more == 1,
						.job_attempt = job == HPX_JOB_QUEUED && more == 2 ? 0 : 1,
						.when_lost = more == 3 && job == 0 ? HPX_WHEN_LOST_RESUME : HPX_WHEN_LOST_UNKNOWN,
						.status = more == 1 ? 502 : more == 2 ? 202 :
											0,
						.in_a_row = more == 3 ? -1 : more % 2,
						.evidence = more == 2 ? 2 : more == 1 ? 1 :
											0,
						.ruling = (enum hpx_ruling)ruling,
						.answered = ruling == HPX_RULING_APPLIED && more % 2 == 0,
					};
					compare(f, conn, &key, &r);
				}
	PQfinish(conn);
}

/* ---- arguments and rights ---- */

static void what_cannot_be_a_settlement_is_refused(void **state)
{
	static const struct {
		const char *arguments, *sqlstate;
	} rows[] = {
		{ "NULL, 'applied'", "HX004" },
		{ "'x', 'applied'", "HX004" },
		{ "upper('%s'), 'applied'", "HX004" },
		{ "'%s', NULL", "22023" },
		{ "'%s', 'unclear'", "22023" },
		{ "'%s', 'applied', NULL, 'A: b'", "22023" },
		{ "'%s', 'applied', NULL, '', 'x'", "22023" },
		{ "'%s', 'applied', 402", "22023" },
		{ "'%s', 'applied', 199", "22023" },
		{ "'%s', 'declined', 201", "22023" },
		{ "'%s', 'declined', 600", "22023" },
		{ "'%s', 'not_applied', 200", "22023" },
		{ "'%s', 'applied', 200, 'no colon'", "22023" },
		{ "'%s', 'applied', 200, '', convert_to(repeat('x', 16777217), 'UTF8')", "54000" },
		{ "'%s', 'not_applied'", "HX006" },
		{ "repeat('a', 64) || '.' || repeat('a', 32), 'applied'", "HX005" },
		{ "'%s', 'declined', 422, 'A: b', '{}', 'said so'", "00000" },
		{ "'%s', 'applied'", "00000" },
	};
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();
	struct hpx_operation_id id = id_of(1);
	struct hpx_mark mark = mark_of(A);
	char reference[HPX_REFERENCE_SIZE], arguments[256];

	lose(f, 1);
	hpx_reference_print(&id, &mark, reference);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(arguments, sizeof(arguments), rows[i].arguments, reference);
		const char *got = state_after(conn, "SELECT hapax.settle(%s)", arguments);
		if (strcmp(got, rows[i].sqlstate) != 0)
			fail_msg("%s: got %s, want %s", rows[i].arguments, got, rows[i].sqlstate);
	}
	assert_int_equal(record_of(f, 1).status, 422);
	/* The reference of an operation that is gone, or whose key is used anew. */
	mark = mark_of(B);
	hpx_reference_print(&id, &mark, reference);
	assert_string_equal(state_after(conn, "SELECT hapax.settle('%s', 'applied')", reference), "HX005");
	cluster_sql("UPDATE hapax.operation SET status = 1000");
	mark = mark_of(A);
	hpx_reference_print(&id, &mark, reference);
	assert_string_equal(state_after(conn, "SELECT hapax.settle('%s', 'applied')", reference), "XX001");
	assert_string_equal(settle(f, 1, HPX_RULING_APPLIED), hpx_status_name(HPX_CORRUPT));
	PQfinish(conn);
}

static void the_settler_may_settle_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();
	struct hpx_operation_id id = id_of(1);
	struct hpx_mark mark = mark_of(A);
	char reference[HPX_REFERENCE_SIZE];

	lose(f, 1);
	hpx_reference_print(&id, &mark, reference);
	PQclear(cluster_ask(conn, "SET ROLE hapax_settler"));
	assert_string_equal(state_after(conn, "SELECT * FROM hapax.operation"), "42501");
	assert_string_equal(state_after(conn, "DELETE FROM hapax.lane"), "42501");
	assert_string_equal(state_after(conn, "SELECT hapax.not_executed('x')"), "42501");
	assert_string_equal(
		ask(conn, "SELECT string_agg(p.proname, ' ' ORDER BY p.proname) FROM pg_proc p "
			  "WHERE p.pronamespace = 'hapax'::regnamespace AND "
			  "has_function_privilege(p.oid, 'EXECUTE')"),
		"settle");
	PQclear(cluster_ask(conn, "SET search_path = pg_temp"));
	assert_string_equal(ask(conn, "SELECT hapax.settle('%s', 'applied', 200, '', 'x')", reference),
			    "settled");
	PQclear(cluster_ask(conn, "RESET ROLE"));
	PQclear(cluster_ask(conn, "SET ROLE hapax_application"));
	assert_string_equal(state_after(conn, "SELECT hapax.settle('%s', 'applied')", reference), "42501");
	PQfinish(conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_OUTBOXES(applied_and_declined_settle_at_once),
		ON_OUTBOXES(not_applied_counts_late_and_twice),
		ON_OUTBOXES(without_settle_after_not_applied_is_refused),
		ON_OUTBOXES(what_comes_too_soon_is_evidence),
		ON_OUTBOXES(an_operation_is_settled_through_its_job),
		ON_OUTBOXES(an_operation_is_found_by_the_providers_id),
		ON_OUTBOXES(one_wins_and_nothing_overrides_it),
		ON_POSTGRES(the_row_is_held_until_the_transaction_ends),
		ON_POSTGRES(sql_does_what_c_does),
		ON_POSTGRES(what_cannot_be_a_settlement_is_refused),
		ON_POSTGRES(the_settler_may_settle_and_nothing_else),
	};
	return run_on_drivers("settle", tests);
}
