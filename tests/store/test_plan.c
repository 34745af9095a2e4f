/* Shows that no statement gets slower as the tables grow: with a million
 * operations, every statement of the drivers and every statement inside the SQL
 * functions reaches its rows by a condition on an index. What need not is listed
 * here with the reason, and a statement that nobody listed is looked at. */
#include "fixture.h"

#include "cluster.h"
#include "store/postgres/statement.h"
#include "store/sqlite/statement.h"

#define PLAN_SIZE 16384

/* ---- reading a plan ---- */

/* Copies the next line; the rest, or NULL behind the last. */
static const char *next_line(const char *text, char *line, size_t size)
{
	size_t len = strcspn(text, "\n");

	snprintf(line, size, "%.*s", (int)len, text);
	return text[len] == '\n' ? text + len + 1 : NULL;
}

static bool is_index_scan(const char *line)
{
	return strstr(line, "Index Scan") != NULL || strstr(line, "Index Only Scan") != NULL;
}

/* The line of PostgreSQL's plan that reads a whole table or a whole index, ""
 * where there is none. A node's condition follows before the next node. */
static const char *whole_scan(const char *plan)
{
	static char found[512];
	char line[512];

	found[0] = '\0';
	for (const char *rest = plan; rest != NULL;) {
		rest = next_line(rest, line, sizeof(line));
		if (found[0] != '\0' && strstr(line, "->") != NULL)
			return found;
		if (strstr(line, "Index Cond:") != NULL)
			found[0] = '\0';
		if (is_index_scan(line) || strstr(line, "Seq Scan") != NULL)
			memcpy(found, line, sizeof(line));
		if (strstr(line, "Seq Scan") != NULL)
			return found;
	}
	return found;
}

static void a_whole_scan_is_seen(void **state)
{
	static const struct {
		const char *plan;
		bool whole;
	} rows[] = {
		{ "Result", false },
		{ "Seq Scan on operation\n  Filter: (key = $1)", true },
		{ "Limit\n  ->  Seq Scan on lease", true },
		{ "Index Scan using operation_pkey on operation\n  Index Cond: (id = $1)", false },
		{ "Index Scan using operation_pkey on operation\n  Filter: (key = $1)", true },
		{ "Aggregate\n  ->  Index Only Scan using a on b", true },
		{ "Bitmap Heap Scan on a\n  Recheck Cond: (id = $1)\n"
		  "  ->  Bitmap Index Scan on b\n        Index Cond: (id = $1)",
		  false },
		{ "Join\n  ->  Index Scan using a on b\n  ->  Index Scan using c on d\n"
		  "        Index Cond: (id = $1)",
		  true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((whole_scan(rows[i].plan)[0] != '\0') != rows[i].whole)
			fail_msg("%s: \"%s\"", rows[i].plan, whole_scan(rows[i].plan));
}

/* ---- a million operations ---- */

#define FILL_OPERATIONS \
	"INSERT INTO hapax.operation (id, rest, token, mark, recipe, created, owner, retention, " \
	"fingerprint, tenant_hash, tenant, scope, key, method, path, route, lease_until, expires, " \
	"changed, attempt, state, kept, answer) SELECT u, u, u, u, u, n, n, 1, h, h, 't', 's', " \
	"n::text, 'POST', '/p', 'r', n, " \
	"CASE WHEN n % 100 BETWEEN 10 AND 14 OR n % 100 >= 20 THEN n + 1 ELSE 0 END, n, 1, " \
	"CASE WHEN n % 100 < 10 THEN 1 WHEN n % 100 < 15 THEN 2 WHEN n % 100 < 20 THEN 4 " \
	"WHEN n % 100 < 25 THEN 5 ELSE 3 END, n % 100 >= 25, " \
	"CASE WHEN n % 100 >= 25 THEN hapax.pack_answer(u, u, '', '') END " \
	"FROM (SELECT n, h, encode(substr(h, 1, 16), 'hex')::uuid AS u " \
	"FROM (SELECT n, sha256(int8send(n)) AS h FROM generate_series(1, 1000000) n) made " \
	"ORDER BY h) sorted"

/* In the order of their ids, which is twice as fast. Most are completed. */
static void fill_tables(void)
{
	cluster_sql("SET synchronous_commit = off");
	cluster_sql(FILL_OPERATIONS);
	cluster_sql("INSERT INTO hapax.aside SELECT id, state, changed FROM hapax.operation "
		    "WHERE state NOT IN (1, 3)");
	cluster_sql("INSERT INTO hapax.flight SELECT min(lease_until), array_agg(id) "
		    "FROM hapax.operation WHERE created % 100 < 40 GROUP BY created / 100");
	cluster_sql("INSERT INTO hapax.due SELECT min(expires), array_agg(id) "
		    "FROM hapax.operation WHERE expires > 0 GROUP BY created / 100");
	cluster_sql("INSERT INTO hapax.lease SELECT id, token, 1 FROM hapax.operation "
		    "WHERE state = 1");
	cluster_sql("INSERT INTO hapax.provider SELECT id, mark, created::text FROM hapax.operation "
		    "WHERE state = 4");
	cluster_sql("INSERT INTO hapax.route_key SELECT id, mark, rest, '' FROM hapax.operation "
		    "WHERE state <> 3");
	cluster_sql("INSERT INTO hapax.lane SELECT 's', 'r' || created, 1, 1 FROM hapax.operation "
		    "WHERE state = 4");
	cluster_sql("INSERT INTO hapax.recipe SELECT recipe, '' FROM hapax.operation "
		    "WHERE state = 2");
	cluster_sql("INSERT INTO hapax.event (id, rest, at, attempt, what, actor, reason, status) "
		    "SELECT id, rest, created, 1, 'w', 'a', 'r', 0 FROM hapax.operation "
		    "WHERE state <> 3");
	cluster_sql("INSERT INTO hapax.job (operation, rest, mark, name, target, method, path, "
		    "headers, body, created, state, answers, attempt, changed, due, lease_until, "
		    "provider_id) SELECT id, rest, mark, 'mail', 't' || created % 7, 'POST', '/', '', "
		    "'', 1, 1 + created % 6, state = 5, 1, created, created, created, "
		    "created::text FROM hapax.operation WHERE state <> 3");
	cluster_sql("INSERT INTO hapax.reconcile SELECT operation, rest, mark, id, "
		    "'', 'target:' || target, 0, 0, 0, 0, id, 0, "
		    "id % 2 = 0 FROM hapax.job WHERE state = 4");
	cluster_sql("INSERT INTO hapax.reconcile SELECT id, rest, mark, 0, 's', 'r', 0, 0, 0, 0, "
		    "created, 0, created % 2 = 0 FROM hapax.operation WHERE state = 4");
	cluster_sql("INSERT INTO hapax.history (id, rest, mark, created, changed, attempt, status, "
		    "state, tenant, key, method, path, route) SELECT id, rest, mark, created, changed, "
		    "1, 201, 3, 't', 'k', 'POST', '/', 'r' FROM hapax.operation WHERE state = 3");
	cluster_sql("ANALYZE hapax.history, hapax.operation, hapax.flight, hapax.due, hapax.aside, hapax.lease, "
		    "hapax.recipe, hapax.event, hapax.job, hapax.reconcile, hapax.provider, "
		    "hapax.route_key, hapax.lane");
	cluster_sql("RESET synchronous_commit");
}

/* As a session of the driver's, but for the help that a writer has: with
 * sequential scans turned off, a plan could hide that it wants one. */
static PGconn *connect_as_driver(void)
{
	PGconn *conn = cluster_connect();

	PQclear(cluster_ask(conn, "SET search_path = pg_catalog; SET jit = off; "
				  "SET plan_cache_mode = force_generic_plan"));
	return conn;
}

/* ---- the driver's statements ---- */

#define X(name, role, sql) #name,
static const char *const names[] = { HPX_PG_LIST(X) };
#undef X

/* X(statement, why it may read a whole table) */
#define EXCUSED_LIST(X) \
	X(COUNTS, "the metrics' survey, now and then, on a reader's connection") \
	X(LIST_JOBS, "for a person who looks for something, with a limit") \
	X(UNKEYED, "once for each route that is matched by key, and not before its retention is over") \
	X(COUNT_JOBS, "the metrics' survey, now and then, on a reader's connection")

static const char *excuse_of(enum hpx_pg_statement statement)
{
	switch (statement) {
#define X(name, why) \
	case HPX_PG_##name: \
		return why;
		EXCUSED_LIST(X)
#undef X
	default:
		return NULL;
	}
}

/* Of these there is no plan. */
static bool is_transaction(enum hpx_pg_statement statement)
{
	return statement == HPX_PG_BEGIN || statement == HPX_PG_COMMIT ||
	       statement == HPX_PG_ROLLBACK;
}

/* The generic plan, as it is made for parameters that nobody knows. */
static void explain(PGconn *conn, enum hpx_pg_statement statement, char plan[PLAN_SIZE])
{
	char sql[8192], arguments[160] = "";
	PGresult *result;
	size_t len = 0;

	snprintf(sql, sizeof(sql), "DEALLOCATE ALL; PREPARE p AS %s", hpx_pg_sql(statement));
	PQclear(cluster_ask(conn, sql));
	result = cluster_ask(conn, "SELECT '(' || rtrim(repeat('NULL,', "
				   "cardinality(parameter_types)), ',') || ')' FROM "
				   "pg_prepared_statements WHERE name = 'p' AND "
				   "cardinality(parameter_types) > 0");
	if (PQntuples(result) == 1)
		snprintf(arguments, sizeof(arguments), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	snprintf(sql, sizeof(sql), "EXPLAIN EXECUTE p%s", arguments);
	result = cluster_ask(conn, sql);
	plan[0] = '\0';
	for (int row = 0; row < PQntuples(result) && len < PLAN_SIZE; row++)
		len += (size_t)snprintf(plan + len, PLAN_SIZE - len, "%s\n",
					PQgetvalue(result, row, 0));
	PQclear(result);
	assert_in_range(len, 1, PLAN_SIZE - 1);
}

static void check_statements(void)
{
	PGconn *conn = connect_as_driver();
	char plan[PLAN_SIZE];

	for (int i = 0; i < HPX_PG_STATEMENT_COUNT; i++) {
		enum hpx_pg_statement statement = (enum hpx_pg_statement)i;
		const char *excuse = excuse_of(statement), *whole;
		if (is_transaction(statement))
			continue;
		explain(conn, statement, plan);
		whole = whole_scan(plan);
		if (*whole != '\0' && excuse == NULL)
			fail_msg("%s reads a whole table:%s\n%s", names[i], whole, plan);
		if (*whole == '\0' && excuse != NULL)
			fail_msg("%s needs no excuse (%s):\n%s", names[i], excuse, plan);
	}
	PQfinish(conn);
}

#define X(name, role, sql) HPX_PG_##role,
static const enum hpx_pg_role roles[] = { HPX_PG_LIST(X) };
#undef X

/* A writer plans once, perhaps when nothing is there yet, and keeps the plan:
 * with the help that it has, it must be right then, too. */
static void check_empty(void)
{
	PGconn *conn = connect_as_driver();
	char plan[PLAN_SIZE];

	PQclear(cluster_ask(conn, "SET enable_seqscan = off; SET enable_hashjoin = off; "
				  "SET enable_mergejoin = off"));
	for (int i = 0; i < HPX_PG_STATEMENT_COUNT; i++) {
		enum hpx_pg_statement statement = (enum hpx_pg_statement)i;
		if (is_transaction(statement) || roles[i] != HPX_PG_WRITER)
			continue;
		explain(conn, statement, plan);
		if (*whole_scan(plan) != '\0')
			fail_msg("%s reads a whole index:%s\n%s", names[i], whole_scan(plan), plan);
	}
	PQfinish(conn);
}

/* ---- questions ---- */

/* The pages that a statement reads, as EXPLAIN counts them. */
static long pages_of(PGconn *conn, enum hpx_pg_statement statement, const char *arguments)
{
	char sql[8192];
	PGresult *result;
	long pages = 0;

	snprintf(sql, sizeof(sql), "DEALLOCATE ALL; PREPARE p AS %s", hpx_pg_sql(statement));
	PQclear(cluster_ask(conn, sql));
	snprintf(sql, sizeof(sql), "EXPLAIN (ANALYZE, BUFFERS, FORMAT YAML) EXECUTE p%s", arguments);
	result = cluster_ask(conn, sql);
	/* The first count is the whole statement's. */
	const char *hit = strstr(PQgetvalue(result, 0, 0), "Shared Hit Blocks: ");
	const char *read = strstr(PQgetvalue(result, 0, 0), "Shared Read Blocks: ");
	assert_non_null(hit);
	assert_non_null(read);
	pages = atol(hit + strlen("Shared Hit Blocks: ")) +
		atol(read + strlen("Shared Read Blocks: "));
	PQclear(result);
	return pages;
}

#define LOOK_LANES "('s')"
#define LOOK_LANE "('r', 0, 0, 16, 's')"

/* How many the statement that was prepared last gives. */
static int rows_of(PGconn *conn, const char *arguments)
{
	char sql[256];
	PGresult *result;
	int rows;

	snprintf(sql, sizeof(sql), "EXECUTE p%s", arguments);
	result = cluster_ask(conn, sql);
	rows = PQntuples(result);
	PQclear(result);
	return rows;
}

/* Half of the 75,000 questions are due, in eight lanes: what is found does not
 * depend on how many there are. */
static void check_questions(void)
{
	PGconn *conn = connect_as_driver();

	assert_in_range(pages_of(conn, HPX_PG_LANES, LOOK_LANES), 8, 8 * 8);
	assert_int_equal(rows_of(conn, LOOK_LANES), 8);
	assert_in_range(pages_of(conn, HPX_PG_QUESTIONS_DUE, LOOK_LANE), 1, 32);
	assert_int_equal(rows_of(conn, LOOK_LANE), 16);
	PQfinish(conn);
}

/* 100,000 of another service on the very same route, all older and due, and a
 * hundred lanes of its own: nobody steps over them. A level more of the
 * index is a page more for each descent. The other's own look finds its own. */
static void check_others_questions(void)
{
	PGconn *conn = connect_as_driver();
	long lanes = pages_of(conn, HPX_PG_LANES, LOOK_LANES);
	long due = pages_of(conn, HPX_PG_QUESTIONS_DUE, LOOK_LANE);

	cluster_sql("INSERT INTO hapax.reconcile SELECT gen_random_uuid(), "
		    "gen_random_uuid(), gen_random_uuid(), 0, 'other', CASE WHEN n % 10 = 0 "
		    "THEN 'POST /' || n % 1000 ELSE 'r' END, 0, 0, 0, 0, 1 + n % 100, 0, false "
		    "FROM generate_series(1, 100000) n");
	assert_in_range(pages_of(conn, HPX_PG_LANES, LOOK_LANES), 8, (unsigned long)lanes + 9);
	assert_int_equal(rows_of(conn, LOOK_LANES), 8);
	assert_in_range(pages_of(conn, HPX_PG_QUESTIONS_DUE, LOOK_LANE), 1,
			(unsigned long)due + 2);
	assert_int_equal(rows_of(conn, LOOK_LANE), 16);
	assert_in_range(pages_of(conn, HPX_PG_LANES, "('other')"), 100, 108 * 8);
	assert_int_equal(rows_of(conn, "('other')"), 108);
	PQfinish(conn);
}

/* ---- lists ---- */

/* What people see first, and what they look for in vain: neither depends on how many
 * operations there are (the table has some hundred thousand pages). */
static void check_lists(void)
{
	static const struct {
		enum hpx_pg_statement statement;
		const char *arguments;
		int rows;
	} lists[] = {
		{ HPX_PG_LIST_COMPLETED, "(3, NULL, NULL, NULL, 0, 50, 250, 0, NULL)", 50 },
		{ HPX_PG_LIST_IN_PROGRESS, "(1, NULL, NULL, NULL, 0, 50, 250, 0, NULL)", 50 },
		{ HPX_PG_LIST_ASIDE, "(4, NULL, NULL, NULL, 0, 50, 250, 0, NULL)", 50 },
		/* One row, without an operation, says how far it looked. */
		{ HPX_PG_LIST_COMPLETED, "(3, NULL, 'nobody', NULL, 0, 50, 10000, 0, NULL)", 1 },
		{ HPX_PG_LIST_ASIDE, "(4, NULL, NULL, 'nowhere', 0, 50, 10000, 0, NULL)", 1 },
		{ HPX_PG_LIST_ASIDE, "(4, NULL, NULL, NULL, 0, 50, 10000, 0, 'status_500')", 1 },
		{ HPX_PG_WALK, "(-1, NULL, NULL, NULL, 0, '80000000-0000-0000-0000-000000000000', 100, NULL)", 100 },
	};
	PGconn *conn = connect_as_driver();

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		/* Four pages of the index and of the row for each that is looked at. */
		assert_in_range(pages_of(conn, lists[i].statement, lists[i].arguments), 1, 60000);
		assert_int_equal(rows_of(conn, lists[i].arguments), lists[i].rows);
	}
	for (size_t i = 0; i < 3; i++)
		assert_in_range(pages_of(conn, lists[i].statement, lists[i].arguments), 1, 4000);
	PQfinish(conn);
}

/* ---- the statements inside the SQL functions ---- */

#define THE_ID \
	"encode(substr(sha256(int8send(1) || 't'::bytea || int8send(1) || " \
	"'s'::bytea || int8send(4) || 'plan'::bytea), 1, 16), 'hex')::uuid"
#define THE_ROW " WHERE id = " THE_ID
#define SET_ROW(what) "UPDATE hapax.operation SET " what THE_ROW
#define TAKE_LEASE \
	"SELECT set_config('plan.lease', hapax.hex(id) || hapax.hex(rest) || '.' || " \
	"hapax.hex(token), true) FROM hapax.operation" THE_ROW
#define LEASE "current_setting('plan.lease')"
#define TAKE_REFERENCE \
	"SELECT set_config('plan.reference', hapax.hex(id) || hapax.hex(rest) || '.' || " \
	"hapax.hex(mark), true) FROM hapax.operation" THE_ROW
#define SETTLE(ruling) "SELECT hapax.settle(current_setting('plan.reference'), '" ruling "')"
#define BEGIN "SELECT verdict FROM hapax.begin('t', 's', 'plan', sha256(''), 60000, 60000)"
#define ENQUEUE "SELECT hapax.enqueue(" LEASE ", 'mail', 't', 'POST', '/', '', '')"

/* Every way through the functions that reaches a table. */
static const struct {
	const char *before; /* makes the situation */
	const char *call;
	const char *result;
} calls[] = {
	{ "", BEGIN, "created" },
	{ "", BEGIN, "in_progress" },
	{ SET_ROW("lease_until = 1, when_lost = 0"), BEGIN, "unknown" },
	{ SET_ROW("state = 3, status = 200"), BEGIN, "replay" },
	{ SET_ROW("expires = 1"), BEGIN, "created" },
	{ SET_ROW("lease_until = 1"), BEGIN, "retried" },
	{ TAKE_LEASE, "SELECT hapax.advance(" LEASE ", 'point', '')", "" },
	{ "", "SELECT point FROM hapax.recovery(" LEASE ")", "point" },
	{ "", ENQUEUE, "" },
	{ "", ENQUEUE, "" }, /* there already */
	{ "", "SELECT hapax.renew(" LEASE ", 1000)", "" },
	{ "", "SELECT hapax.provider_id(" LEASE ", 'x')", "" },
	{ TAKE_REFERENCE, SETTLE("applied"), "kept" },
	{ "", "SELECT hapax.not_executed(" LEASE ")", "" },
	{ "", BEGIN, "retried" },
	{ SET_ROW("advanced = true, when_lost = 0") "; " TAKE_LEASE,
	  "SELECT hapax.not_executed(" LEASE ")", "" },
	{ "INSERT INTO hapax.lane VALUES ('', 'application', 1000000, 1000)", SETTLE("not_applied"),
	  "too_early" },
	{ "", "SELECT hapax.complete(" LEASE ", 200, '', '')", "" },
	{ "", SETTLE("declined"), "ignored" },
	{ SET_ROW("state = 1, expires = 0, kept = false"), "SELECT hapax.mark_unknown(" LEASE ")", "" },
	{ "", SETTLE("applied"), "settled" },
	{ SET_ROW("state = 4, expires = 0, kept = false") "; INSERT INTO hapax.job (operation, rest, "
							  "mark, name, target, method, path, headers, body, created, state, answers, attempt) SELECT id, "
							  "rest, mark, 'answer', 't', 'POST', '/', '', '', 1, 4, true, 1 FROM hapax.operation" THE_ROW,
	  SETTLE("applied"), "settled" },
	/* The triggers' ways: something unknown is settled. */
	{ "INSERT INTO hapax.job (operation, rest, mark, name, target, method, path, headers, body, "
	  "created, state) SELECT id, rest, mark, 'plan', 't', 'POST', '/', '', '', 1, 4 "
	  "FROM hapax.operation" THE_ROW,
	  "UPDATE hapax.job SET state = 3 WHERE operation = " THE_ID " AND name = 'plan' "
	  "RETURNING state",
	  "3" },
	{ SET_ROW("state = 2"), "DELETE FROM hapax.operation" THE_ROW " RETURNING state", "2" },
};

/* What auto_explain tells while a call runs. */
struct plans {
	unsigned count;
	char whole[PLAN_SIZE]; /* the first that reads a whole table */
};

static void note_plan(void *user, const char *message)
{
	struct plans *plans = user;

	plans->count++;
	if (plans->whole[0] == '\0' && whole_scan(message)[0] != '\0')
		snprintf(plans->whole, sizeof(plans->whole), "%s", message);
}

static void check_call(PGconn *conn, struct plans *plans, size_t i)
{
	PGresult *result;

	PQclear(cluster_ask(conn, "SET LOCAL client_min_messages = error"));
	if (calls[i].before[0] != '\0')
		PQclear(cluster_ask(conn, calls[i].before));
	PQclear(cluster_ask(conn, "SET LOCAL client_min_messages = notice"));
	*plans = (struct plans){ .count = 0 };
	result = cluster_ask(conn, calls[i].call);
	if (plans->whole[0] != '\0')
		fail_msg("%s reads a whole table:\n%s", calls[i].call, plans->whole);
	if (strcmp(PQgetvalue(result, 0, 0), calls[i].result) != 0)
		fail_msg("%s: got \"%s\", want \"%s\"", calls[i].call, PQgetvalue(result, 0, 0),
			 calls[i].result);
	PQclear(result);
	/* The call itself, and what it runs inside. */
	assert_true(plans->count > 1);
}

/* Those that touch a table and were not called above. */
#define FORGOTTEN \
	"SELECT string_agg(p.proname, ' ') FROM pg_proc p " \
	"WHERE p.pronamespace = 'hapax'::regnamespace AND " \
	"p.prosrc ~ 'hapax[.](operation|flight|due|aside|lease|lane|provider|job|recipe|event|reconcile)' AND " \
	"NOT EXISTS (SELECT 1 FROM pg_stat_xact_user_functions f " \
	"WHERE f.funcid = p.oid)"

/* In one transaction, whose calls PostgreSQL counts. */
static void check_functions(void)
{
	struct plans plans = { .count = 0 };
	PGconn *conn = connect_as_driver();
	PGresult *result;

	PQclear(cluster_ask(conn, "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; "
				  "SET auto_explain.log_nested_statements = on; "
				  "SET auto_explain.log_level = notice; "
				  "SET track_functions = 'all'; BEGIN"));
	PQsetNoticeProcessor(conn, note_plan, &plans);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		check_call(conn, &plans, i);
	PQclear(cluster_ask(conn, "SET LOCAL client_min_messages = error"));
	result = cluster_ask(conn, FORGOTTEN);
	assert_string_equal(PQgetvalue(result, 0, 0), "");
	PQclear(result);
	PQfinish(conn);
}

static void a_million_operations_are_reached_by_an_index(void **state)
{
	(void)state;
	check_empty();
	fill_tables();
	check_statements();
	check_questions();
	check_others_questions();
	check_lists();
	check_functions();
}

/* ---- SQLite ---- */

#define X(name, sql) { #name, sql },
static const struct {
	const char *name;
	const char *sql;
} sqlite_list[] = { HPX_SQL_LIST(X) };
#undef X

/* X(statement, why it may) */
#define SQLITE_EXCUSED_LIST(X) \
	X(LIST_UNKNOWN, "the newest, by the index of their state, with a limit") \
	X(LIST_FAILED, "the newest, by the index of their state, with a limit") \
	X(COUNTS, "the metrics' survey, on a reader's connection") \
	X(FINISHED_ASIDE, "for a person who looks for something, of what is aside") \
	X(ORPHANED, "once, at start, over the index of what is in progress") \
	X(JOBS_ORPHANED, "once, at start, over the index of what is being sent") \
	X(JOBS, "for a person who looks for something, with a limit") \
	X(JOB_COUNTS, "the metrics' survey, on a reader's connection") \
	X(REAP_EVENTS, "the oldest few, by their row numbers") \
	X(UNKEYED_ASIDE, "until it finds none, of a route that is matched by key") \
	X(CLOCK, "there is one row") \
	X(LIST_VERSION, "there is one row") \
	X(DAMAGED, "there is a row for each table that is damaged") \
	X(ACCEPT_DAMAGE, "there is a row for each table that is damaged") \
	X(VIEW, "the schema, when generations have come or gone") \
	X(GENERATION_TABLES, "the schema, once, at start") \
	X(BUMP_LIST, "there is one row") \
	X(GENERATIONS, "there are a few hundred rows at most, and the list is read when it has changed") \
	X(UPSTREAM, "there is a row for each name that was ever served")

static const char *sqlite_excuse_of(enum hpx_sql sql)
{
	switch (sql) {
#define X(name, why) \
	case HPX_SQL_##name: \
		return why;
		SQLITE_EXCUSED_LIST(X)
#undef X
	default:
		return NULL;
	}
}

/* Whether a row of the plan is "SCAN table"; it is copied. */
static bool scans(sqlite3 *db, const char *sql, char *line, size_t size)
{
	sqlite3_stmt *stmt = NULL;
	char text[4096];
	bool found = false;

	snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sql);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
	while (!found && sqlite3_step(stmt) == SQLITE_ROW) {
		snprintf(line, size, "%s", (const char *)sqlite3_column_text(stmt, 3));
		found = strncmp(line, "SCAN ", 5) == 0 && strcmp(line, "SCAN CONSTANT ROW") != 0;
	}
	sqlite3_finalize(stmt);
	return found;
}

#define X(name, sql) { #name, sql },
static const struct {
	const char *name;
	const char *sql;
} generation_list[] = { HPX_GENERATION_SQL_LIST(X) };
#undef X

/* X(statement, why it may) */
#define GENERATION_EXCUSED_LIST(X) \
	X(ROWS, "the metrics' survey, on a reader's connection, of the open generations") \
	X(UNKEYED, "of generations that are older than the route's index by key") \
	X(REAP, "the oldest few, by their row numbers") \
	X(REAP_ANSWERS, "the oldest few, by their row numbers")

static const char *generation_excuse_of(enum hpx_generation_sql sql)
{
	switch (sql) {
#define X(name, why) \
	case HPX_GENERATION_SQL_##name: \
		return why;
		GENERATION_EXCUSED_LIST(X)
#undef X
	default:
		return NULL;
	}
}

/* Also those that are made for each generation. */
static void every_statement_of_a_generation_searches_an_index(void **state)
{
	struct fixture *f = *state;
	char line[256] = "", text[4096];
	sqlite3 *db = NULL;

	assert_string_equal(reserve(f, 1, 1, 11), "created");
	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	for (int i = 0; i < HPX_GENERATION_SQL_COUNT; i++) {
		const char *excuse = generation_excuse_of((enum hpx_generation_sql)i);
		assert_true(hpx_sqlite_number_sql(generation_list[i].sql, 1, text, sizeof(text)));
		bool found = scans(db, text, line, sizeof(line));
		if (found && excuse == NULL)
			fail_msg("%s: %s", generation_list[i].name, line);
		if (!found && excuse != NULL)
			fail_msg("%s needs no excuse (%s)", generation_list[i].name, excuse);
	}
	sqlite3_close(db);
}

/* SQLite plans by the schema alone, since nothing here runs ANALYZE: the plans
 * of an empty file are those of a large one. */
static void every_statement_of_sqlite_searches_an_index(void **state)
{
	struct fixture *f = *state;
	char line[256] = "";
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_false(scans(db, "SELECT 1 FROM hapax_aside WHERE id = ?", line, sizeof(line)));
	assert_true(scans(db, "SELECT 1 FROM hapax_aside WHERE path = ?", line, sizeof(line)));
	for (int i = 0; i < HPX_SQL_COUNT; i++) {
		const char *excuse = sqlite_excuse_of((enum hpx_sql)i);
		bool found = scans(db, sqlite_list[i].sql, line, sizeof(line));
		if (found && excuse == NULL)
			fail_msg("%s: %s", sqlite_list[i].name, line);
		if (!found && excuse != NULL)
			fail_msg("%s needs no excuse (%s)", sqlite_list[i].name, excuse);
	}
	sqlite3_close(db);
}

/* Steps of SQLite's machine for one run of the statement. */
static int steps_of(sqlite3 *db, enum hpx_sql sql, unsigned want_rows)
{
	sqlite3_stmt *stmt = NULL;
	unsigned rows = 0;

	assert_int_equal(sqlite3_prepare_v2(db, sqlite_list[sql].sql, -1, &stmt, NULL), SQLITE_OK);
	sqlite3_bind_text(stmt, 1, sql == HPX_SQL_NEXT_LANE ? "" : "r", -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, INT64_MAX / 2);
	sqlite3_bind_int64(stmt, 3, 0);
	sqlite3_bind_int64(stmt, 4, 16);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		rows++;
	int steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
	assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
	assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, 0), 0);
	assert_int_equal(rows, want_rows);
	sqlite3_finalize(stmt);
	return steps;
}

/* Pages that one run of the statement touches. */
static int pages_touched(sqlite3 *db, enum hpx_sql sql)
{
	static const int kinds[] = { SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS };
	sqlite3_stmt *stmt = NULL;
	int pages = 0;

	assert_int_equal(sqlite3_prepare_v2(db, sqlite_list[sql].sql, -1, &stmt, NULL), SQLITE_OK);
	for (int run = 0; run < 2; run++) {
		pages = 0;
		for (size_t i = 0; i < 2; i++) {
			int now = 0, highest = 0;
			sqlite3_db_status(db, kinds[i], &now, &highest, 1);
			pages += now;
		}
		if (run == 0)
			assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	}
	sqlite3_finalize(stmt);
	return pages;
}

/* A person's, put off, and due: a look sees only what is due. */
static void a_look_costs_the_same_among_many_questions(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
				      "INSERT INTO hapax_reconcile (id, mark, job, lane, sent, tries, in_a_row, "
				      "first_said, ask_at, evidence, person) SELECT randomblob(32), randomblob(16), 0, "
				      "CASE i % 2 WHEN 0 THEN 'r' ELSE 's' END, 0, 0, 0, 0, i, 0, i % 3 = 0 FROM n",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_in_range(steps_of(db, HPX_SQL_NEXT_LANE, 1), 1, 100);
	assert_in_range(steps_of(db, HPX_SQL_QUESTIONS_DUE, 16), 1, 400);
	/* The survey counts 33,333 by their index, and looks at no row. */
	assert_in_range(pages_touched(db, HPX_SQL_JOB_COUNTS), 1, 1000);
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_scan_is_seen),
		ON_SQLITE(every_statement_of_sqlite_searches_an_index),
		ON_SQLITE(every_statement_of_a_generation_searches_an_index),
		ON_SQLITE(a_look_costs_the_same_among_many_questions),
		ON_POSTGRES(a_million_operations_are_reached_by_an_index),
	};
	return run_on_drivers("plan", tests);
}
