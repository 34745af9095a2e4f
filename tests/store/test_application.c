/* Shows that the SQL functions do to a record exactly what the record's own
 * mover does, in every state; that they commit with the application's rows or
 * not at all; and that a role which may call them can do nothing else. */
#include "application.h"

/* ---- the functions against the mover ---- */

static const struct {
	const char *call; /* with the lease in it */
	enum hpx_move move;
	const char *point;
	unsigned status;
} functions[] = {
	{ "hapax.complete('%s', 201, 'Content-Type: text/plain', 'body')", HPX_MOVE_COMPLETE, "",
	  201 },
	{ "hapax.advance('%s', 'charged', 'data')", HPX_MOVE_ADVANCE, "charged", 0 },
	{ "hapax.not_executed('%s')", HPX_MOVE_FAIL, "", 0 },
	{ "hapax.enqueue('%s', 'mail', 'mailer', 'POST', '/send', '', 'hello')", HPX_MOVE_ADVANCE,
	  "", 0 },
	{ "hapax.provider_id('%s', 'ch_1')", HPX_MOVE_ADVANCE, "", 0 },
	{ "hapax.mark_unknown('%s')", HPX_MOVE_LOSE, "", 0 },
	/* No longer than the lease has anyway. */
	{ "hapax.renew('%s', 1)", HPX_MOVE_RENEW, "", 0 },
};

static const char *sqlstate_of(enum hpx_status status)
{
	switch (status) {
	case HPX_OK:
		return "00000";
	case HPX_STALE:
		return "HX001";
	default:
		return "HX002";
	}
}

static void check_move(struct fixture *f, PGconn *app, unsigned key, size_t function,
		       const struct situation *s)
{
	char call[256], got[640], want[640], sqlstate[6];
	struct hpx_token token = s->token != 0 ? token_of(s->token) : (struct hpx_token){ { 0 } };

	put(f, key, s);
	struct hpx_record model = record_or_none(f, key);
	snprintf(call, sizeof(call), functions[function].call, lease_of(key, token));
	snprintf(sqlstate, sizeof(sqlstate), "%s", state_after(app, "SELECT %s", call));
	struct hpx_record after = record_or_none(f, key);
	/* The one thing only the database knows: when it was. */
	struct hpx_move_args args = { .now = { .wall_ms = after.changed_ms },
				      .token = token,
				      .status = functions[function].status,
				      .kept = functions[function].move == HPX_MOVE_COMPLETE,
				      .point = hpx_span_of(functions[function].point) };
	enum hpx_status status = hpx_record_move(&model, functions[function].move, &args);
	print_record(&model, want, sizeof(want));
	print_record(&after, got, sizeof(got));
	if (strcmp(sqlstate, sqlstate_of(status)) != 0 || strcmp(got, want) != 0)
		fail_msg("%s on %s by token %u:\n got %s %s\nwant %s %s",
			 functions[function].call, hpx_state_name(s->state), s->token, sqlstate,
			 got, sqlstate_of(status), want);
}

static void every_function_moves_as_the_record_does(void **state)
{
	static const unsigned tokens[] = { A, B, 0 };
	struct fixture *f = *state;
	PGconn *app = cluster_connect();
	unsigned key = 0;

	for (int s = 0; s < HPX_STATE_COUNT; s++)
		for (unsigned bits = 0; bits < 4 * HPX_WHEN_LOST_COUNT; bits++)
			for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
				for (size_t t = 0; t < 3; t++) {
					struct situation situation = {
						.state = (enum hpx_state)s,
						.when_lost = (enum hpx_when_lost)(bits / 4),
						.advanced = bits & 1,
						.attempt = bits & 2 ? 2 : 1,
						.token = tokens[t],
					};
					check_move(f, app, key++, i, &situation);
				}
	PQfinish(app);
}

static void a_lease_that_is_none_is_told_apart(void **state)
{
	static const char *const leases[] = {
		"NULL",
		"''",
		"'x'",
		"repeat('0', 97)",
		"repeat('a', 64) || '.' || repeat('A', 32)",
		"repeat('a', 64) || '.' || repeat('a', 33)",
		"repeat('a', 64) || '.' || repeat('a', 32) || E'\\n'",
	};
	static const char *const calls[] = {
		"hapax.complete(%s, 200, '', '')",
		"hapax.advance(%s, 'p', NULL)",
		"hapax.recovery(%s)",
		"hapax.not_executed(%s)",
		"hapax.enqueue(%s, 'n', 't', 'POST', '/', '', '')",
		"hapax.mark_unknown(%s)",
		"hapax.provider_id(%s, 'ch_1')",
		"hapax.renew(%s, 1000)",
	};
	PGconn *app = cluster_connect();
	char call[256];

	(void)state;
	for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
		for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
			snprintf(call, sizeof(call), calls[c], leases[i]);
			assert_string_equal(state_after(app, "SELECT %s", call), "HX004");
		}
		snprintf(call, sizeof(call), calls[c],
			 "repeat('a', 64) || '.' || repeat('a', 32)");
		assert_string_equal(state_after(app, "SELECT %s", call), "HX001");
	}
	PQfinish(app);
}

/* A client that was told the reference calls the functions with it: while the
 * first attempt is under way, after it failed, and while the second one is. */
static void a_reference_is_no_lease(void **state)
{
	static const char *const calls[] = {
		"hapax.complete('%s', 200, '', 'forged')",
		"hapax.advance('%s', 'p', NULL)",
		"hapax.not_executed('%s')",
		"hapax.recovery('%s')",
		"hapax.enqueue('%s', 'n', 't', 'POST', '/', '', '')",
		"hapax.mark_unknown('%s')",
		"hapax.provider_id('%s', 'ch_1')",
		"hapax.renew('%s', 1000)",
	};
	static const char *const states[] = { "in_progress", "failed_retryable", "in_progress" };
	struct fixture *f = *state;
	PGconn *app = cluster_connect();
	char reference[HPX_REFERENCE_SIZE], call[256];

	assert_string_equal(ask(app, "SELECT split_part(operation, '.', 2) = "
				     "hapax.hex(hapax.mark('%032d')) FROM hapax.begin('t', 's', "
				     "'k', sha256(''), 1000, 1000, 'repeat', '\\x%032d')",
				7, 7),
			    "t");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (i == 1)
			assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
		else
			reserve(f, 1, BODY, i == 0 ? A : B);
		struct hpx_record record = record_of(f, 1);
		hpx_reference_print(&record.id, &record.mark, reference);
		for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
			snprintf(call, sizeof(call), calls[c], reference);
			assert_string_equal(state_after(app, "SELECT %s", call), "HX001");
			assert_string_equal(state_of(f, 1), states[i]);
		}
	}
	assert_string_equal(ask(app, "SELECT count(*) FROM hapax.job"), "0");
	PQfinish(app);
}

/* ---- what is committed ---- */

static void an_answer_commits_with_the_applications_rows(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	reserve(f, 1, BODY, A);
	PQclear(cluster_ask(app, "DROP TABLE IF EXISTS payment"));
	PQclear(cluster_ask(app, "CREATE TABLE payment (amount integer)"));
	for (int round = 0; round < 2; round++) {
		PQclear(cluster_ask(app, "BEGIN"));
		PQclear(cluster_ask(app, "INSERT INTO payment VALUES (10)"));
		assert_string_equal(
			state_after(app,
				    "SELECT hapax.complete('%s', 201, E'Content-Type: text/plain\\n"
				    "Location: /p/1\\r\\nSet-Cookie: s=1\\nConnection: close\\n"
				    "content-length: 7\\nHapax-Lease: x\\n', 'paid')",
				    lease_of(1, token_of(A))),
			"00000");
		assert_string_equal(state_of(f, 1), "in_progress"); /* not committed yet */
		PQclear(cluster_ask(app, round == 0 ? "ROLLBACK" : "COMMIT"));
		assert_string_equal(state_of(f, 1), round == 0 ? "in_progress" : "completed");
	}
	assert_string_equal(ask(app, "SELECT count(*) FROM payment"), "1");
	assert_string_equal(ask(app, "SELECT convert_from((hapax.unpack_answer(o)).headers, 'UTF8') "
				     "FROM hapax.operation o"),
			    "Content-Type: text/plain\r\nLocation: /p/1\r\n");
	/* The driver finds the digest right, and replays it. */
	assert_string_equal(body_of(f, 1), "paid");
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	/* An answer can be kept longer than the others, and never shorter. */
	reserve(f, 2, BODY, A);
	reserve(f, 3, BODY, A);
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 201, '', 'long', 864000000000)",
					lease_of(2, token_of(A))),
			    "00000");
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 201, '', 'short', retention_ms => 1)",
					lease_of(3, token_of(A))),
			    "00000");
	assert_int_equal(record_of(f, 2).expires_ms - record_of(f, 2).changed_ms, 864000000000);
	assert_int_equal(record_of(f, 3).expires_ms, record_of(f, 3).changed_ms + record_of(f, 3).retention_ms);
	/* What HTTP says later changes nothing. */
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_REFUSED);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, A), HPX_REFUSED);
	assert_status(complete(f, 1, A, "by HTTP"), HPX_OK);
	assert_string_equal(body_of(f, 1), "paid");
	PQclear(cluster_ask(app, "DROP TABLE payment"));
	PQfinish(app);
}

static void what_cannot_be_an_answer_is_refused(void **state)
{
	static const struct {
		const char *arguments;
		const char *sqlstate;
	} rows[] = {
		{ "200, '', ''", "00000" },
		{ "NULL, '', ''", "22023" },
		{ "100, '', ''", "22023" },
		{ "600, '', ''", "22023" },
		{ "200, 'no colon', ''", "22023" },
		{ "200, 'Two Words: x', ''", "22023" },
		{ "200, E'A: b\\rSet-Cookie: x', ''", "22023" },
		{ "200, E'A: b\\x01', ''", "22023" },
		{ "200, repeat('A: b' || E'\\n', 20000), ''", "54000" },
		{ "200, '', convert_to(repeat('x', 16777217), 'UTF8')", "54000" },
	};
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		reserve(f, i, BODY, A);
		const char *got = state_after(app, "SELECT hapax.complete('%s', %s)",
					      lease_of(i, token_of(A)), rows[i].arguments);
		if (strcmp(got, rows[i].sqlstate) != 0)
			fail_msg("%s: got %s, want %s", rows[i].arguments, got, rows[i].sqlstate);
	}
	PQfinish(app);
}

static void a_session_that_is_not_durable_becomes_so(void **state)
{
	static const char *const rows[][2] = {
		{ "off", "on" },
		{ "local", "on" },
		{ "on", "on" },
		{ "remote_apply", "remote_apply" },
	};
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		reserve(f, i, BODY, A);
		assert_string_equal(state_after(app, "SET synchronous_commit = %s; BEGIN", rows[i][0]),
				    "00000");
		assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', '')",
						lease_of(i, token_of(A))),
				    "00000");
		assert_string_equal(ask(app, "SHOW synchronous_commit"), rows[i][1]);
		PQclear(cluster_ask(app, "COMMIT"));
		assert_string_equal(ask(app, "SHOW synchronous_commit"), rows[i][0]);
	}
	PQfinish(app);
}

static void a_job_has_its_name_once(void **state)
{
	static const struct {
		const char *arguments;
		const char *sqlstate;
	} rows[] = {
		{ "'mail', 'mailer', 'POST', '/send', 'A: b', 'hello'", "00000" },
		{ "'mail', 'mailer', 'POST', '/send', 'A: b', 'hello'", "00000" },
		{ "'mail', 'mailer', 'POST', '/send', 'A: b', 'other'", "HX003" },
		{ "'mail', 'mailer', 'POST', '/other', 'A: b', 'hello'", "HX003" },
		{ "'text', 'mailer', 'POST', '/send', 'A: b', 'hello'", "00000" },
		{ "'bad', 'mailer', 'POST', 'send', '', ''", "23514" },
		{ "'bad', 'mailer', 'PO ST', '/', '', ''", "23514" },
		{ "NULL, 'mailer', 'POST', '/', '', ''", "23502" },
	};
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	reserve(f, 1, BODY, A);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = state_after(app, "SELECT hapax.enqueue('%s', %s)",
					      lease_of(1, token_of(A)), rows[i].arguments);
		if (strcmp(got, rows[i].sqlstate) != 0)
			fail_msg("%s: got %s, want %s", rows[i].arguments, got, rows[i].sqlstate);
	}
	assert_string_equal(ask(app, "SELECT string_agg(name || state, ' ' ORDER BY name) "
				     "FROM hapax.job"),
			    "mail1 text1");
	assert_true(record_of(f, 1).advanced);
	PQfinish(app);
}

/* ---- lost attempts ---- */

static const char *reserve_as(struct fixture *f, unsigned key, unsigned token,
			      enum hpx_on_lost on_lost, enum hpx_completes completes)
{
	struct hpx_ask request = ask_of(f->store, key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);
	struct hpx_policy p = *policy();

	p.on_lost = on_lost;
	p.completes = completes;
	p.fenced = true;
	op.reserve.ask = &request;
	op.reserve.policy = &p;
	assert_status(run_op(f, &op), HPX_OK);
	return hpx_decision_name(op.decision.kind);
}

static void a_late_commit_meets_a_void_token(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	reserve_as(f, 1, A, HPX_ON_LOST_UNKNOWN, HPX_COMPLETES_APPLICATION);
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep(f), 1);
	assert_string_equal(state_of(f, 1), "failed_retryable");
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', '')",
					lease_of(1, token_of(A))),
			    "HX001");
	assert_string_equal(reserve_as(f, 1, B, HPX_ON_LOST_UNKNOWN, HPX_COMPLETES_APPLICATION),
			    "retried");
	assert_string_equal(state_after(app, "SELECT hapax.not_executed('%s')",
					lease_of(1, token_of(A))),
			    "HX001");
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', 'second')",
					lease_of(1, token_of(B))),
			    "00000");
	assert_string_equal(body_of(f, 1), "second");
	PQfinish(app);
}

static void the_next_attempt_learns_where_the_last_one_was(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	reserve_as(f, 1, A, HPX_ON_LOST_RESUME, HPX_COMPLETES_UPSTREAM);
	assert_string_equal(ask(app, "SELECT coalesce(point, 'none') FROM hapax.recovery('%s')",
				lease_of(1, token_of(A))),
			    "none");
	assert_string_equal(state_after(app, "SELECT hapax.advance('%s', 'charged', 'ch_1')",
					lease_of(1, token_of(A))),
			    "00000");
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, A), HPX_OK);
	assert_string_equal(reserve_as(f, 1, B, HPX_ON_LOST_RESUME, HPX_COMPLETES_UPSTREAM),
			    "retried");
	assert_string_equal(record_of(f, 1).point, "charged");
	assert_string_equal(ask(app,
				"SELECT point || ' ' || convert_from(data, 'UTF8') FROM "
				"hapax.recovery('%s')",
				lease_of(1, token_of(B))),
			    "charged ch_1");
	/* A key that expired and is used again begins at the beginning. */
	act(f, HPX_VERB_FAIL, 1, B);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve(f, 1, BODY, 13), "created");
	assert_string_equal(ask(app,
				"SELECT coalesce(point, 'none') || (SELECT point_data IS NULL "
				"FROM hapax.operation) FROM hapax.recovery('%s')",
				lease_of(1, token_of(13))),
			    "nonetrue");
	PQfinish(app);
}

/* The gateway's sweeper sees the longer lease, whoever wrote it, and the gateway's own
 * answer still counts. */
static void a_renewed_lease_is_not_lost(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	for (unsigned key = 1; key <= 2; key++)
		reserve(f, key, BODY, A);
	assert_string_equal(state_after(app, "SELECT hapax.renew('%s', %d)",
					lease_of(1, token_of(A)), 4 * LEASE_MS),
			    "00000");
	assert_int_equal(record_of(f, 1).lease_until_ms > record_of(f, 2).lease_until_ms + 2 * LEASE_MS, 1);
	advance(f, 2 * LEASE_MS);
	assert_int_equal(sweep(f), 1);
	assert_string_equal(state_of(f, 1), "in_progress");
	assert_string_equal(state_of(f, 2), "unknown");
	assert_string_equal(ask(app, "SELECT count(*) FROM hapax.lease"), "0");
	assert_status(complete(f, 1, A, "late"), HPX_OK);
	for (size_t i = 0; i < 4; i++) {
		static const char *const wrong[] = { "0", "-1", "3600001", "NULL" };
		reserve(f, 3, BODY, B);
		assert_string_equal(state_after(app, "SELECT hapax.renew('%s', %s)",
						lease_of(3, token_of(B)), wrong[i]),
				    "22023");
	}
	PQfinish(app);
}

/* ---- rows that cannot be read ---- */

/* No CHECK keeps them out of the table. */
static void what_cannot_be_read_is_not_moved(void **state)
{
	static const char *const damages[] = {
		"state = 9",
		"state = 0",
		"attempt = 0",
		"fingerprint = 'x'",
		"tenant_hash = ''",
		"retention = -1",
		"status = 1000",
		"when_lost = 3",
		"point = 'two words'",
		"expires = -1",
	};
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		char sql[256], call[256];
		fixture_afresh(f);
		reserve(f, 1, BODY, A);
		ask(app, "SELECT verdict FROM hapax.begin('t', 's', 'k', sha256(''), 1, 60000)");
		snprintf(sql, sizeof(sql), "UPDATE hapax.operation SET %s", damages[i]);
		cluster_sql(sql);
		for (size_t j = 0; j < sizeof(functions) / sizeof(functions[0]); j++) {
			snprintf(call, sizeof(call), functions[j].call, lease_of(1, token_of(A)));
			assert_string_equal(state_after(app, "SELECT %s", call), "XX001");
		}
		assert_string_equal(ask(app, "SELECT verdict FROM hapax.begin('t', 's', 'k', "
					     "sha256(''), 60000, 60000)"),
				    "unknown");
		snprintf(call, sizeof(call), "SELECT count(*) FROM hapax.operation WHERE %s",
			 damages[i]);
		assert_string_equal(ask(app, "%s", call), "2");
	}
	PQfinish(app);
}

/* ---- from the schema before ---- */

static void an_older_database_is_refused(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	struct hpx_store *store = NULL;
	char problem[HPX_STORE_PROBLEM_SIZE];

	fixture_close(f);
	cluster_sql("UPDATE hapax.schema_version SET version = 7");
	assert_status(hpx_store_open(&options, &store, problem), HPX_UNSUPPORTED);
	assert_null(store);
	assert_non_null(strstr(problem, "schema 7 of before the first release"));
	assert_non_null(strstr(problem, "DROP SCHEMA hapax CASCADE"));
	cluster_sql("DROP SCHEMA hapax CASCADE");
	fixture_open(f);
	assert_string_equal(reserve(f, 1, BODY, A), "created");
}

/* ---- rights ---- */

static void the_role_may_call_and_nothing_else(void **state)
{
	static const char *const refused[] = {
		"SELECT * FROM hapax.operation",
		"SELECT * FROM hapax.flight",
		"DELETE FROM hapax.due",
		"SELECT * FROM hapax.aside",
		"SELECT * FROM hapax.job",
		"SELECT * FROM hapax.reconcile",
		"DELETE FROM hapax.lease",
		"UPDATE hapax.operation SET state = 3",
		"INSERT INTO hapax.recipe VALUES (gen_random_uuid(), '')",
		"CREATE TABLE hapax.x ()",
		"SELECT hapax.hold('')",
		"SELECT hapax.clock_ms()",
		"SELECT hapax.make_durable()",
		"SELECT hapax.kept_headers('')",
	};
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	reserve(f, 1, BODY, A);
	PQclear(cluster_ask(app, "SET ROLE hapax_application"));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (strcmp(state_after(app, "%s", refused[i]), "42501") != 0)
			fail_msg("%s: got %s, want 42501", refused[i],
				 state_after(app, "%s", refused[i]));
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', 'x')",
					lease_of(1, token_of(A))),
			    "00000");
	assert_string_equal(
		ask(app, "SELECT string_agg(p.proname, ' ' ORDER BY p.proname) FROM pg_proc p "
			 "WHERE p.pronamespace = 'hapax'::regnamespace AND "
			 "has_function_privilege(p.oid, 'EXECUTE')"),
		"advance begin complete enqueue mark_unknown not_executed provider_id recovery renew");
	assert_string_equal(
		ask(app, "SELECT count(*) FROM pg_class c WHERE c.relnamespace = "
			 "'hapax'::regnamespace AND c.relkind IN ('r', 'S') AND (CASE c.relkind WHEN "
			 "'S' THEN has_sequence_privilege(c.oid, 'USAGE, SELECT, UPDATE') ELSE "
			 "has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, "
			 "REFERENCES, TRIGGER') END)"),
		"0");
	PQfinish(app);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(every_function_moves_as_the_record_does),
		ON_POSTGRES(a_lease_that_is_none_is_told_apart),
		ON_POSTGRES(a_reference_is_no_lease),
		ON_POSTGRES(an_answer_commits_with_the_applications_rows),
		ON_POSTGRES(what_cannot_be_an_answer_is_refused),
		ON_POSTGRES(a_session_that_is_not_durable_becomes_so),
		ON_POSTGRES(a_job_has_its_name_once),
		ON_POSTGRES(a_late_commit_meets_a_void_token),
		ON_POSTGRES(the_next_attempt_learns_where_the_last_one_was),
		ON_POSTGRES(a_renewed_lease_is_not_lost),
		ON_POSTGRES(what_cannot_be_read_is_not_moved),
		ON_POSTGRES(an_older_database_is_refused),
		ON_POSTGRES(the_role_may_call_and_nothing_else),
	};
	return run_on_drivers("application", tests);
}
