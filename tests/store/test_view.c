/* Shows that people who look with SQL find the columns of the usual table of keys: every
 * state, times as timestamps, bodies as they were, on both stores; also of rows that
 * nobody wrote as they are, and of more generations than SQLite joins in one view. And
 * that lists look at the newest operations, at a bounded number, and say how far. */
#include "delivery.h"

#include <sqlite3.h>

#include "cluster.h"
#include "store/sqlite/driver.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

/* Which of the times there are: their names, or "-". */
#define IS(column) "CASE WHEN " column " IS NULL THEN '-' ELSE '" column "' END"
#define SET_COLUMNS \
	IS("locked_until") \
	" || ' ' || " IS("reconcile_after") " || ' ' || " IS("completed_at") " || ' ' || " IS("expires_at")

static void copy_row(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text != NULL ? text : "-");
}

static const char *ask_sqlite(struct fixture *f, const char *columns, const char *where)
{
	static char out[512];
	char sql[1024], problem[HPX_STORE_PROBLEM_SIZE] = "";
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;

	/* The keeper makes the view anew. */
	assert_status(hpx_store_maintain(f->store, problem), HPX_OK);
	snprintf(sql, sizeof(sql), "SELECT %s FROM hapax_idempotency_keys WHERE %s", columns, where);
	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	copy_row(out, sizeof(out), (const char *)sqlite3_column_text(stmt, 0));
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return out;
}

static const char *ask_postgres(const char *columns, const char *where)
{
	static char out[512];
	PGconn *conn = cluster_connect();
	char sql[1024];
	PGresult *result;

	snprintf(sql, sizeof(sql), "SELECT %s FROM hapax.idempotency_keys WHERE %s", columns, where);
	result = cluster_ask(conn, sql);
	assert_int_equal(PQntuples(result), 1);
	copy_row(out, sizeof(out), PQgetisnull(result, 0, 0) ? NULL : PQgetvalue(result, 0, 0));
	PQclear(result);
	PQfinish(conn);
	return out;
}

static const char *ask(struct fixture *f, const char *columns, unsigned key)
{
	char where[96], id[2 * HPX_OPERATION_ID_SIZE + 1];

	hpx_hex_encode(id_of(key).bytes, HPX_OPERATION_ID_SIZE, id);
	snprintf(where, sizeof(where), "id = '%s'", id);
	return fixture_is_sqlite(f) ? ask_sqlite(f, columns, where) : ask_postgres(columns, where);
}

static long long ms_of(struct fixture *f, const char *column, unsigned key)
{
	char text[160];

	snprintf(text, sizeof(text),
		 fixture_is_sqlite(f) ?
			 "CAST(round((julianday(%s) - 2440587.5) * 86400000) AS INTEGER)" :
			 "round(extract(epoch FROM %s) * 1000)::bigint",
		 column);
	return strtoll(ask(f, text, key), NULL, 10);
}

static void every_state_has_its_row(void **state)
{
	static const struct {
		enum hpx_state state;
		const char *row; /* status, response_code, and which times there are */
	} rows[] = {
		{ HPX_STATE_IN_PROGRESS, "in_progress 0" },
		{ HPX_STATE_FAILED_RETRYABLE, "failed_retryable 0 - - - expires_at" },
		{ HPX_STATE_COMPLETED, "completed 201 - - completed_at expires_at" },
		{ HPX_STATE_UNKNOWN, "unknown 0 - reconcile_after - -" },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		bring_to(f, i, rows[i].state, A);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *row = ask(f, "status || ' ' || coalesce(response_code, 0) || ' ' || " SET_COLUMNS, i);
		if (strncmp(row, rows[i].row, strlen(rows[i].row)) != 0)
			fail_msg("key-%u: got \"%s\", want \"%s\"", i, row, rows[i].row);
	}
	/* The server's own lease is in its memory, or in the row that all gateways share. */
	assert_string_equal(ask(f, SET_COLUMNS, 0), fixture_is_sqlite(f) ? "- - - -" : "locked_until - - -");
}

static void the_columns_are_what_was_stored(void **state)
{
	struct fixture *f = *state;
	char id[2 * HPX_OPERATION_ID_SIZE + 16], fingerprint[2 * 32 + 1];
	struct hpx_record record;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "the body");
	record = record_of(f, 1);
	hpx_hex_encode(record.id.bytes, sizeof(record.id.bytes), id);
	hpx_hex_encode(record.fingerprint, sizeof(record.fingerprint), fingerprint);
	assert_string_equal(ask(f, "tenant || ' ' || method || ' ' || path", 1), "tenant POST /payments");
	assert_string_equal(ask(f, "id || ' ' || key", 1), strcat(id, " key-1"));
	assert_string_equal(ask(f, "fingerprint", 1), fingerprint);
	assert_string_equal(ask(f, fixture_is_sqlite(f) ? "CAST(response_body AS TEXT)" : "convert_from(response_body, 'UTF8')", 1),
			    "the body");
	assert_true(ms_of(f, "created_at", 1) == record.created_ms);
	assert_true(ms_of(f, "completed_at", 1) == record.changed_ms);
	assert_true(ms_of(f, "expires_at", 1) == record.expires_ms);
}

/* What waits for its job is given up at the end of its retention. */
static void a_pending_one_has_no_answer_and_no_lease(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(accept_later(f, 1, A), "created");
	assert_string_equal(ask(f, "status || ' ' || coalesce(response_code, 0) || ' ' || " SET_COLUMNS, 1),
			    "pending 0 - - - expires_at");
}

/* Which moves the end, and nothing else. */
static void an_extended_one_was_completed_when_it_was(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_EXTEND, 1, 0);

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "the body");
	long long completed = ms_of(f, "completed_at", 1), expires = ms_of(f, "expires_at", 1);
	advance(f, 5000);
	op.mark = mark_of(A);
	op.extend.until_ms = expires + 3600000;
	assert_status(run_op(f, &op), HPX_OK);
	assert_true(ms_of(f, "completed_at", 1) == completed);
	assert_true(ms_of(f, "expires_at", 1) == expires + 3600000);
}

static void a_tombstone_has_its_code_and_no_body(void **state)
{
	struct fixture *f = *state;
	struct hpx_policy buried = *policy();
	struct hpx_ask request = ask_of(f->store, 1, BODY, A);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, A);

	buried.tombstone_ms = 30 * (int64_t)RETENTION_MS;
	op.reserve.ask = &request;
	op.reserve.policy = &buried;
	assert_status(run_op(f, &op), HPX_OK);
	assert_status(complete(f, 1, A, "the body"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	for (int i = 0; i < 50 && body_of(f, 1) != NULL; i++)
		reap(f);
	assert_string_equal(ask(f, "status || ' ' || response_code || ' ' || " SET_COLUMNS, 1),
			    "completed 201 - - completed_at expires_at");
	assert_string_equal(ask(f, "response_body", 1), "-");
}

static void a_body_that_is_not_kept_is_null(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, NULL);
	assert_string_equal(ask(f, "response_code", 1), "201");
	assert_string_equal(ask(f, "response_body", 1), "-");
}

/* The failed attempt before it has left its row and its error, and a phase of it. */
static void a_later_attempt_has_its_recovery_point(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op;

	reserve(f, 1, BODY, A);
	act(f, HPX_VERB_FAIL, 1, A);
	assert_string_equal(ask(f, "last_error", 1), "not_executed");
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
	op = op_of(HPX_VERB_ADVANCE, 1, B);
	op.advance.point = HPX_SPAN("charged");
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(ask(f, "status || ' ' || recovery_point", 1), "in_progress charged");
	complete(f, 1, B, "second");
	assert_string_equal(ask(f, "status || ' ' || response_code || ' ' || last_error", 1), "completed 201 not_executed");
	bring_to(f, 2, HPX_STATE_COMPLETED, A);
	assert_string_equal(ask(f, "last_error", 2), "-");
}

static void only_a_person_can_tell(void **state)
{
	struct fixture *f = *state;

	bring_to(f, 1, HPX_STATE_UNKNOWN, A);
	assert_true(ms_of(f, "reconcile_after", 1) <= record_of(f, 1).changed_ms + 1000);
	assert_int_equal(unask(f, 1, 0), 1);
	assert_string_equal(ask(f, "reconcile_after", 1), "-");
}

/* ---- SQLite ---- */

/* Of the boot clock in the file, of the wall clock in the view. */
static void a_lease_in_the_file_is_shown(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	raw_sql(f->path, "INSERT INTO hapax_lease (token, id, generation, until) "
			 "SELECT token, CAST(id || rest AS BLOB), 1, 60000 FROM hapax_operation_1");
	raw_sql(f->path, "UPDATE hapax_clock SET ahead = 1700000000000");
	assert_string_equal(ask(f, "locked_until", 1), "2023-11-14T22:14:20.000Z");
}

/* SQLite joins at most 500. */
static void the_newest_of_many_generations_are_shown(void **state)
{
	struct fixture *f = *state;

	hpx_sqlite_of(f->store)->generation_operations = 1;
	for (unsigned key = 0; key < 410; key++)
		bring_to(f, key, HPX_STATE_COMPLETED, A);
	bring_to(f, 1000, HPX_STATE_UNKNOWN, A);
	assert_string_equal(ask_sqlite(f, "count(*)", "status = 'completed'"), "399");
	assert_string_equal(ask_sqlite(f, "count(*)", "key = 'key-409'"), "1");
	assert_string_equal(ask_sqlite(f, "count(*)", "key = 'key-1000'"), "1");
	assert_string_equal(ask_sqlite(f, "count(*)", "key = 'key-0'"), "0");
}

/* ---- PostgreSQL ---- */

/* Renewals are in a table of their own. */
static void a_renewed_lease_is_shown(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	long long before = ms_of(f, "locked_until", 1);
	advance(f, 5000);
	assert_status(act(f, HPX_VERB_RENEW, 1, A), HPX_OK);
	assert_true(ms_of(f, "locked_until", 1) >= before + 5000);
}

/* Each row is shown, whatever it has. */
static void a_row_that_cannot_be_read_is_unknown(void **state)
{
	static const char *const damages[] = {
		"fingerprint = ''",
		"state = 77",
		"attempt = 0",
		"point = E'\\n'",
		"expires = -1",
	};
	static const char *const answers[] = { "''", "'\\x00'", "decode(repeat('ff', 36), 'hex')",
					       "decode(repeat('7f', 40), 'hex')" };
	struct fixture *f = *state;
	char sql[256];

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		bring_to(f, 1, HPX_STATE_COMPLETED, A);
		snprintf(sql, sizeof(sql), "UPDATE hapax.operation SET %s", damages[i]);
		cluster_sql(sql);
		assert_string_equal(ask(f, "status", 1), "unknown");
		assert_string_equal(ask(f, "response_body", 1), "-");
		fixture_afresh(f);
	}
	bring_to(f, 1, HPX_STATE_COMPLETED, A);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE hapax.operation SET answer = %s", answers[i]);
		cluster_sql(sql);
		assert_string_equal(ask(f, "status || coalesce(octet_length(response_body), 0)", 1), "completed0");
	}
}

/* The right to read the view is enough. */
static void the_right_on_the_view_is_enough(void **state)
{
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();
	PGresult *result;

	bring_to(f, 1, HPX_STATE_UNKNOWN, A);
	cluster_sql("CREATE ROLE analyst");
	cluster_sql("GRANT USAGE ON SCHEMA hapax TO analyst; "
		    "GRANT SELECT ON hapax.idempotency_keys TO analyst");
	PQclear(cluster_ask(conn, "SET ROLE analyst"));
	result = cluster_ask(conn, "SELECT key, status, response_body, locked_until, reconcile_after "
				   "FROM hapax.idempotency_keys");
	assert_int_equal(PQntuples(result), 1);
	assert_string_equal(PQgetvalue(result, 0, 1), "unknown");
	PQclear(result);
	PQfinish(conn);
	cluster_sql("DROP OWNED BY analyst; DROP ROLE analyst");
}

/* ---- how far a list looks ---- */

static struct hpx_looked look_for(struct fixture *f, const char *tenant, const char *key, size_t want)
{
	struct hpx_query query = { .state = HPX_STATE_COUNT,
				   .key = hpx_span_of(key),
				   .tenant = hpx_span_of(tenant),
				   .limit = 9 };
	struct hpx_looked looked = { .all = false };
	struct hpx_entry *entries = NULL;
	size_t count = 0;

	assert_status(hpx_store_list(f->reader, &query, &f->arena, &entries, &count, &looked), HPX_OK);
	assert_int_equal(count, want);
	return looked;
}

/* Many rows of another tenant over one that was there before. */
static void fill_file(struct fixture *f)
{
	raw_sql(f->path, "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 250000) "
			 "INSERT INTO hapax_operation_1 (seq, id, rest, token, fingerprint, recipe, tenant_hash, "
			 "owner, created, retention, tombstone, when_lost, tenant, scope, key, method, path, route, crc) "
			 "SELECT i, randomblob(16), rest, token, fingerprint, recipe, tenant_hash, owner, created "
			 "+ i, retention, tombstone, when_lost, 'many', scope, 'k' || i, method, path, route, crc "
			 "FROM hapax_operation_1, n WHERE seq = 1");
}

static void fill_server(void)
{
	cluster_sql("INSERT INTO hapax.operation SELECT (a.o).* FROM (SELECT jsonb_populate_record("
		    "NULL::hapax.operation, to_jsonb(o) || jsonb_build_object('id', "
		    "gen_random_uuid(), 'tenant', 'many', 'key', 'k' || i)) AS o "
		    "FROM hapax.operation o, generate_series(1, 12000) i) a");
	cluster_sql("INSERT INTO hapax.due (at, ids) SELECT expires, ARRAY[id] FROM hapax.operation "
		    "WHERE tenant = 'many'");
}

/* It looks at the newest only, and says so; for a key it looks further. */
static void a_list_looks_at_a_bounded_number_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct hpx_looked looked;

	bring_to(f, 1, HPX_STATE_COMPLETED, A);
	looked = look_for(f, "nobody", NULL, 0);
	assert_true(looked.all);
	if (fixture_is_sqlite(f))
		fill_file(f);
	else
		fill_server();
	looked = look_for(f, "nobody", NULL, 0);
	assert_false(looked.all);
	assert_true(looked.back_to_ms > 0);
	assert_in_range(looked.operations, fixture_is_sqlite(f) ? 200000 : 10000,
			fixture_is_sqlite(f) ? 201000 : 10100);
	/* Every one of the newest matches. */
	looked = look_for(f, fixture_is_sqlite(f) ? NULL : "many", NULL, 9);
	assert_false(looked.all);
	assert_in_range(looked.operations, 9, 1100);
	looked = look_for(f, NULL, "key-1", 1);
	assert_true(looked.all);
	assert_in_range(looked.operations, fixture_is_sqlite(f) ? 250000 : 12000,
			fixture_is_sqlite(f) ? 250010 : 12100);
}

/* A class of its own has a generation of its own, open since before: what was begun last
 * is shown first, wherever it is. */
static void the_newest_of_several_classes_come_first(void **state)
{
	static const int64_t retentions_ms[] = { 86400000, 1000000, 86400000, 1000000, 86400000 };
	struct fixture *f = *state;
	struct hpx_query query = { .state = HPX_STATE_COUNT, .limit = 2 };
	struct hpx_looked looked;
	struct hpx_entry *entries = NULL;
	size_t count = 0;

	for (unsigned key = 0; key < 5; key++) {
		struct hpx_ask ask_of_key = ask_of(f->store, key, BODY, A);
		struct hpx_policy policy_of_key = *policy();
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, A);
		policy_of_key.retention_ms = retentions_ms[key];
		op.reserve.ask = &ask_of_key;
		op.reserve.policy = &policy_of_key;
		assert_status(run_op(f, &op), HPX_OK);
		assert_status(complete(f, key, A, "first"), HPX_OK);
		advance(f, 1000);
	}
	assert_status(hpx_store_list(f->reader, &query, &f->arena, &entries, &count, &looked), HPX_OK);
	assert_int_equal(count, 2);
	assert_memory_equal(entries[0].record.id.bytes, id_of(4).bytes, HPX_OPERATION_ID_SIZE);
	assert_memory_equal(entries[1].record.id.bytes, id_of(3).bytes, HPX_OPERATION_ID_SIZE);
}

#define ON_FILE_AND_SERVER(test) ON_SQLITE(test), ON_POSTGRES(test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FILE_AND_SERVER(every_state_has_its_row),
		ON_FILE_AND_SERVER(the_columns_are_what_was_stored),
		ON_FILE_AND_SERVER(a_pending_one_has_no_answer_and_no_lease),
		ON_FILE_AND_SERVER(an_extended_one_was_completed_when_it_was),
		ON_FILE_AND_SERVER(a_tombstone_has_its_code_and_no_body),
		ON_FILE_AND_SERVER(a_body_that_is_not_kept_is_null),
		ON_FILE_AND_SERVER(a_later_attempt_has_its_recovery_point),
		ON_FILE_AND_SERVER(only_a_person_can_tell),
		ON_FILE_AND_SERVER(a_list_looks_at_a_bounded_number_and_says_so),
		ON_FILE_AND_SERVER(the_newest_of_several_classes_come_first),
		ON_SQLITE(a_lease_in_the_file_is_shown),
		ON_SQLITE(the_newest_of_many_generations_are_shown),
		ON_POSTGRES(a_renewed_lease_is_shown),
		ON_POSTGRES(a_row_that_cannot_be_read_is_unknown),
		ON_POSTGRES(the_right_on_the_view_is_enough),
	};
	return run_on_drivers("view", tests);
}
