/* Shows that a store on the caller's own PostgreSQL connection writes in the
 * caller's transaction, with its rows or not at all; says what is wrong where
 * it cannot; and leaves the connection as it was. */
#include "application.h"

#include <pthread.h>

#include "base/clock.h"

struct app {
	PGconn *conn;
	struct fixture f; /* only its store: the borrowed one */
	char problem[HPX_STORE_PROBLEM_SIZE];
};

static const struct hpx_job job = {
	.name = HPX_SPAN("receipt"),
	.target = HPX_SPAN("mailer"),
	.method = HPX_SPAN("POST"),
	.path = HPX_SPAN("/send"),
	.body = HPX_SPAN("{}"),
};

static void borrow(struct app *app)
{
	*app = (struct app){ .conn = cluster_connect() };
	assert_status(hpx_store_borrow(HPX_LENT_PGCONN, app->conn, &app->f.store, app->problem), HPX_OK);
}

static void give_back(struct app *app)
{
	hpx_store_close(app->f.store);
	PQfinish(app->conn);
}

static void sql(struct app *app, const char *text)
{
	PQclear(cluster_ask(app->conn, text));
}

static struct hpx_store_op begin_op(struct app *app, unsigned key, unsigned token,
				    struct hpx_ask *ask_room, struct hpx_description *d, char *name)
{
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	snprintf(name, 16, "key-%u", key);
	*d = (struct hpx_description){ .tenant = HPX_SPAN("tenant"),
				       .scope = HPX_SPAN("scope"),
				       .key = hpx_span_of(name) };
	*ask_room = ask_of(app->f.store, key, BODY, token);
	ask_room->recipe = (struct hpx_recipe_id){ { 0 } };
	op.reserve.ask = ask_room;
	op.reserve.description = d;
	return op;
}

/* The verdict, or the status; `ret_op` may be NULL. */
static const char *begin(struct app *app, unsigned key, unsigned token,
			 struct hpx_store_op *ret_op)
{
	struct hpx_description d;
	struct hpx_ask room;
	char name[16];
	struct hpx_store_op op = begin_op(app, key, token, &room, &d, name), *ops[] = { &op };
	enum hpx_status status = hpx_store_run(app->f.store, ops, 1, app->problem);

	if (status == HPX_OK)
		status = op.status;
	op.reserve.ask = NULL;
	op.reserve.description = NULL;
	if (ret_op != NULL)
		*ret_op = op;
	else
		hpx_answer_free(op.reserve.replay);
	return status == HPX_OK ? hpx_decision_name(op.decision.kind) : hpx_status_name(status);
}

static enum hpx_status run_verb(struct app *app, struct hpx_store_op *op)
{
	enum hpx_status status = hpx_store_run(app->f.store, &op, 1, app->problem);

	return status == HPX_OK ? op->status : status;
}

static enum hpx_status reach(struct app *app, unsigned token, const char *point, struct hpx_span data)
{
	struct hpx_store_op op = op_of(HPX_VERB_ADVANCE, 1, token);

	op.advance.point = hpx_span_of(point);
	op.advance.data = data;
	return run_verb(app, &op);
}

static enum hpx_status enqueue(struct app *app, unsigned token, const struct hpx_job *what)
{
	struct hpx_store_op op = op_of(HPX_VERB_ENQUEUE, 1, token);

	op.enqueue.job = what;
	return run_verb(app, &op);
}

static enum hpx_status finish(struct app *app, unsigned token, unsigned status, const char *headers)
{
	struct hpx_answer answer = { .status = status, .kept = true, .body = HPX_SPAN("paid"), .headers = hpx_span_of(headers) };
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, 1, token);

	op.complete.answer = &answer;
	return run_verb(app, &op);
}

/* ---- the caller's transaction ---- */

static void a_rollback_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct app app;

	borrow(&app);
	sql(&app, "BEGIN");
	assert_string_equal(begin(&app, 1, A, NULL), "created");
	assert_status(reach(&app, A, "charged", HPX_SPAN("id=1")), HPX_OK);
	assert_status(enqueue(&app, A, &job), HPX_OK);
	assert_status(finish(&app, A, 201, ""), HPX_OK);
	assert_string_equal(state_of(f, 1), "none"); /* to others */
	sql(&app, "ROLLBACK");
	assert_string_equal(ask(app.conn, "SELECT (SELECT count(*) FROM hapax.operation) + "
					  "(SELECT count(*) FROM hapax.flight) + "
					  "(SELECT count(*) FROM hapax.due) + "
					  "(SELECT count(*) FROM hapax.job) + "
					  "(SELECT count(*) FROM hapax.event)"),
			    "0");
	give_back(&app);
}

static void what_commits_is_there_for_the_gateway_too(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op;
	struct app app;

	borrow(&app);
	sql(&app, "BEGIN");
	assert_string_equal(begin(&app, 1, A, &op), "created");
	struct hpx_mark mark = mark_of(A);
	assert_true(hpx_mark_eq(&mark, &op.decision.record.mark));
	assert_int_equal(op.decision.record.attempt, 1);
	assert_status(finish(&app, A, 201, "Content-Type: text/plain\r\n"), HPX_OK);
	sql(&app, "COMMIT");
	assert_string_equal(body_of(f, 1), "paid");
	assert_string_equal(begin(&app, 1, B, &op), "replay");
	assert_non_null(op.reserve.replay);
	assert_int_equal(op.reserve.replay->status, 201);
	assert_true(op.reserve.replay->kept);
	assert_span(op.reserve.replay->headers, "Content-Type: text/plain\r\n");
	assert_span(op.reserve.replay->body, "paid");
	hpx_answer_free(op.reserve.replay);
	/* Again by the same lease, and what comes too late. */
	assert_status(finish(&app, A, 201, ""), HPX_OK);
	assert_status(reach(&app, A, "late", HPX_SPAN("")), HPX_REFUSED);
	give_back(&app);
}

/* A commit that nobody heard of: asked again with the same token, it is this
 * very reservation. */
static void a_reservation_is_recognised_by_its_token(void **state)
{
	struct hpx_store_op op;
	struct app app;

	(void)state;
	borrow(&app);
	assert_string_equal(begin(&app, 1, A, NULL), "created");
	assert_string_equal(begin(&app, 1, A, NULL), "created");
	assert_string_equal(begin(&app, 1, B, NULL), "in_progress");
	op = op_of(HPX_VERB_FAIL, 1, A);
	assert_status(run_verb(&app, &op), HPX_OK);
	assert_string_equal(begin(&app, 1, B, NULL), "retried");
	assert_string_equal(begin(&app, 1, B, &op), "retried");
	assert_int_equal(op.decision.record.attempt, 2);
	give_back(&app);
}

static void the_next_attempt_learns_of_the_last(void **state)
{
	struct hpx_store_op op;
	struct app app;

	(void)state;
	borrow(&app);
	begin(&app, 1, A, NULL);
	op = op_of(HPX_VERB_READ_POINT, 1, A);
	assert_status(run_verb(&app, &op), HPX_OK);
	assert_string_equal(op.decision.record.point, "");
	assert_status(reach(&app, A, "charged", HPX_SPAN("id\0=1")), HPX_OK);
	cluster_sql("UPDATE hapax.operation SET lease_until = 0, when_lost = 1");
	assert_string_equal(begin(&app, 1, B, &op), "retried");
	assert_string_equal(op.decision.record.point, "charged");
	op = op_of(HPX_VERB_READ_POINT, 1, B);
	assert_status(run_verb(&app, &op), HPX_OK);
	assert_string_equal(op.decision.record.point, "charged");
	assert_true(hpx_span_eq(hpx_buffer_span(&op.read_point.data), HPX_SPAN("id\0=1")));
	hpx_buffer_done(&op.read_point.data);
	op = op_of(HPX_VERB_READ_POINT, 1, A);
	assert_status(run_verb(&app, &op), HPX_STALE);
	give_back(&app);
}

/* ---- what is refused ---- */

static void each_refusal_has_its_status(void **state)
{
	struct hpx_job other = job, wrong = job;
	struct hpx_store_op op;
	struct app app;
	char *large = calloc(1, HPX_POINT_DATA_MAX + 1);

	(void)state;
	assert_non_null(large);
	borrow(&app);
	begin(&app, 1, A, NULL);
	assert_status(enqueue(&app, A, &job), HPX_OK);
	assert_status(enqueue(&app, A, &job), HPX_OK);
	other.body = HPX_SPAN("other");
	assert_status(enqueue(&app, A, &other), HPX_CONFLICT);
	wrong.path = HPX_SPAN("no path");
	assert_status(enqueue(&app, A, &wrong), HPX_INVALID);
	assert_status(enqueue(&app, B, &job), HPX_STALE);
	assert_non_null(strstr(app.problem, "the lease is lost"));
	assert_status(reach(&app, A, "two words", HPX_SPAN("")), HPX_INVALID);
	assert_status(reach(&app, A, "big", hpx_span(large, HPX_POINT_DATA_MAX + 1)), HPX_TOO_LARGE);
	assert_status(finish(&app, A, 100, ""), HPX_INVALID);
	assert_status(finish(&app, A, 200, "no colon"), HPX_INVALID);
	assert_status(finish(&app, A, 200, "X: \xe9"), HPX_INVALID);
	assert_status(finish(&app, B, 200, ""), HPX_STALE);
	assert_status(finish(&app, A, 200, ""), HPX_OK);
	op = op_of(HPX_VERB_FAIL, 1, A);
	assert_status(run_verb(&app, &op), HPX_REFUSED);
	op = op_of(HPX_VERB_SWEEP, 1, A);
	assert_status(run_verb(&app, &op), HPX_UNSUPPORTED);
	/* None of these is the store's failure. */
	assert_int_equal(hpx_counter_read(&app.f.store->errors), 0);
	give_back(&app);
	free(large);
}

static void a_row_that_is_held_is_busy_by_the_callers_own_timeout(void **state)
{
	struct app app, other;

	(void)state;
	borrow(&app);
	borrow(&other);
	begin(&app, 1, A, NULL);
	sql(&other, "BEGIN");
	assert_status(reach(&other, A, "charged", HPX_SPAN("")), HPX_OK);
	sql(&app, "SET lock_timeout = '10ms'");
	assert_status(reach(&app, A, "charged", HPX_SPAN("")), HPX_BUSY);
	sql(&other, "COMMIT");
	assert_status(reach(&app, A, "charged", HPX_SPAN("")), HPX_OK);
	give_back(&other);
	give_back(&app);
}

static void a_connection_that_cannot_be_used_now_says_so(void **state)
{
	struct app app;

	(void)state;
	borrow(&app);
	assert_int_equal(PQenterPipelineMode(app.conn), 1);
	assert_string_equal(begin(&app, 1, A, NULL), "MISUSE");
	assert_non_null(strstr(app.problem, "pipeline"));
	assert_int_equal(PQexitPipelineMode(app.conn), 1);
	assert_int_equal(PQsendQuery(app.conn, "SELECT 1"), 1);
	assert_string_equal(begin(&app, 1, A, NULL), "MISUSE");
	for (PGresult *result; (result = PQgetResult(app.conn)) != NULL;)
		PQclear(result);
	sql(&app, "BEGIN");
	assert_string_equal(state_after(app.conn, "SELECT 1 / 0"), "22012");
	assert_string_equal(begin(&app, 1, A, NULL), "INVALID");
	assert_non_null(strstr(app.problem, "roll it back"));
	sql(&app, "ROLLBACK");
	assert_string_equal(begin(&app, 1, A, NULL), "created");
	give_back(&app);
}

static void a_lost_connection_is_unavailable(void **state)
{
	struct app app;
	char text[96];

	(void)state;
	borrow(&app);
	snprintf(text, sizeof(text), "SELECT pg_terminate_backend(%d)", PQbackendPID(app.conn));
	cluster_sql(text);
	assert_string_equal(begin(&app, 1, A, NULL), "UNAVAILABLE");
	assert_string_equal(begin(&app, 1, A, NULL), "UNAVAILABLE");
	assert_non_null(strstr(app.problem, "lost"));
	give_back(&app);
}

static void what_is_not_the_operations_description_is_misuse(void **state)
{
	struct hpx_description d;
	struct hpx_ask room;
	struct hpx_store_op op;
	struct app app;
	char name[16];

	(void)state;
	borrow(&app);
	sql(&app, "BEGIN");
	op = begin_op(&app, 1, A, &room, &d, name);
	d.key = HPX_SPAN("another");
	assert_status(run_verb(&app, &op), HPX_MISUSE);
	sql(&app, "ROLLBACK");
	op = begin_op(&app, 1, A, &room, &d, name);
	room.recipe.bytes[0] = 1;
	assert_status(run_verb(&app, &op), HPX_MISUSE);
	op = begin_op(&app, 1, A, &room, &d, name);
	d.tenant = HPX_SPAN("\xff");
	assert_status(run_verb(&app, &op), HPX_INVALID);
	give_back(&app);
}

/* ---- the session ---- */

/* However the session is set, an operation has one id, and text its bytes. */
static void the_session_is_neither_obeyed_nor_changed(void **state)
{
	static const char settings[] =
		"SELECT md5(string_agg(name || setting, ',' ORDER BY name)) FROM pg_settings "
		/* These come with the first function in that language. */
		"WHERE name NOT LIKE 'plpgsql.%'";
	struct hpx_description d;
	struct hpx_ask room;
	struct hpx_store_op op;
	struct app app;
	char name[16], before[64];
	static const char *const encodings[] = { "LATIN1", "UTF8", "SQL_ASCII" };

	(void)state;
	borrow(&app);
	sql(&app, "SET search_path = nowhere; SET standard_conforming_strings = off; "
		  "SET bytea_output = escape; SET synchronous_commit = off; "
		  "SET default_transaction_isolation = serializable");
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(PQsetClientEncoding(app.conn, encodings[i]), 0);
		snprintf(before, sizeof(before), "%s", ask(app.conn, "%s", settings));
		op = begin_op(&app, 1, A + i, &room, &d, name);
		d.tenant = HPX_SPAN("M\xc3\xbcller");
		assert_status(hpx_operation_id(d.tenant, d.scope, d.key, &room.id), HPX_OK);
		op.id = room.id;
		assert_status(run_verb(&app, &op), HPX_OK);
		assert_string_equal(hpx_decision_name(op.decision.kind),
				    i == 0 ? "created" : "replay");
		if (i > 0)
			assert_span(op.reserve.replay->headers, "X: \xc3\xa9\r\n");
		hpx_answer_free(op.reserve.replay);
		if (i == 0) {
			struct hpx_answer answer = { .status = 200, .kept = true, .headers = HPX_SPAN("X: \xc3\xa9") };
			op = op_of(HPX_VERB_COMPLETE, 1, A);
			op.id = room.id;
			op.complete.answer = &answer;
			assert_status(run_verb(&app, &op), HPX_OK);
		}
		assert_string_equal(ask(app.conn, "%s", settings), before);
	}
	give_back(&app);
}

/* ---- two at once ---- */

struct racer {
	struct app app;
	char verdict[32];
};

static void *race_main(void *user)
{
	struct racer *racer = user;

	snprintf(racer->verdict, sizeof(racer->verdict), "%s", begin(&racer->app, 1, B, NULL));
	return NULL;
}

/* Until the other one waits for a lock. */
static void await_waiting(PGconn *watcher, PGconn *conn)
{
	int64_t until_ms = hpx_clock_boot_ms() + 10000;

	while (strcmp(ask(watcher, "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %d",
			  PQbackendPID(conn)),
		      "1") != 0)
		assert_true(hpx_clock_boot_ms() < until_ms);
}

static void of_two_that_begin_at_once_one_executes(void **state)
{
	static const struct {
		const char *end;
		const char *verdict;
	} rows[] = { { "COMMIT", "in_progress" }, { "ROLLBACK", "created" } };
	PGconn *watcher = cluster_connect();

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct racer racer;
		struct app app;
		pthread_t thread;
		cluster_sql("TRUNCATE hapax.operation");
		borrow(&app);
		borrow(&racer.app);
		sql(&app, "BEGIN");
		assert_string_equal(begin(&app, 1, A, NULL), "created");
		assert_int_equal(pthread_create(&thread, NULL, race_main, &racer), 0);
		await_waiting(watcher, racer.app.conn);
		sql(&app, rows[i].end);
		pthread_join(thread, NULL);
		assert_string_equal(racer.verdict, rows[i].verdict);
		give_back(&racer.app);
		give_back(&app);
	}
	PQfinish(watcher);
}

/* ---- the schema ---- */

static enum hpx_status try_borrow(PGconn *conn, char *problem)
{
	struct hpx_store *store = NULL;
	enum hpx_status status = hpx_store_borrow(HPX_LENT_PGCONN, conn, &store, problem);

	hpx_store_close(store);
	return status;
}

static void without_the_schema_it_says_what_to_do(void **state)
{
	PGconn *conn = cluster_connect();
	char problem[HPX_STORE_PROBLEM_SIZE];

	(void)state;
	cluster_sql("DROP SCHEMA hapax CASCADE");
	PQclear(cluster_ask(conn, "BEGIN"));
	assert_status(try_borrow(conn, problem), HPX_NOT_FOUND);
	assert_non_null(strstr(problem, "hapax migrate"));
	assert_status(hpx_store_install(HPX_LENT_PGCONN, conn, problem), HPX_MISUSE);
	PQclear(cluster_ask(conn, "COMMIT")); /* the transaction was not harmed */
	PQclear(cluster_ask(conn, "SET search_path = nowhere; SET lock_timeout = '1s'; "
				  "SET default_transaction_read_only = on"));
	assert_status(hpx_store_install(HPX_LENT_PGCONN, conn, problem), HPX_OK);
	assert_status(hpx_store_install(HPX_LENT_PGCONN, conn, problem), HPX_OK);
	assert_string_equal(ask(conn, "SHOW lock_timeout"), "1s");
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	assert_status(try_borrow(conn, problem), HPX_OK);
	/* The functions of before. */
	cluster_sql("ALTER FUNCTION hapax.begin(text, text, text, bytea, bigint, bigint, text, "
		    "bytea) RENAME TO other");
	assert_status(try_borrow(conn, problem), HPX_UNSUPPORTED);
	assert_non_null(strstr(problem, "hapax migrate"));
	cluster_sql("INSERT INTO hapax.schema_version VALUES (1000)");
	assert_status(hpx_store_install(HPX_LENT_PGCONN, conn, problem), HPX_UNSUPPORTED);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	PQfinish(conn);
}

static void a_role_without_the_right_is_told(void **state)
{
	PGconn *conn = cluster_connect();
	char problem[HPX_STORE_PROBLEM_SIZE];

	(void)state;
	cluster_sql("DROP ROLE IF EXISTS stranger");
	cluster_sql("CREATE ROLE stranger");
	PQclear(cluster_ask(conn, "SET ROLE stranger"));
	assert_status(try_borrow(conn, problem), HPX_READ_ONLY);
	assert_non_null(strstr(problem, "hapax_application"));
	assert_status(hpx_store_install(HPX_LENT_PGCONN, conn, problem), HPX_READ_ONLY);
	assert_int_equal(PQtransactionStatus(conn), PQTRANS_IDLE);
	cluster_sql("GRANT hapax_application TO stranger");
	assert_status(try_borrow(conn, problem), HPX_OK);
	PQfinish(conn);
	cluster_sql("DROP ROLE stranger");
}

/* A library's own connections, where no gateway was ever started. */
static void opening_installs_where_it_is_told_to(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = { .url = hpx_span_of(f->url) };
	char problem[HPX_STORE_PROBLEM_SIZE];
	struct hpx_store *store = NULL;

	cluster_sql("DROP SCHEMA hapax CASCADE");
	assert_status(hpx_store_open(&options, &store, problem), HPX_NOT_FOUND);
	options.install = true;
	assert_status(hpx_store_open(&options, &store, problem), HPX_OK);
	hpx_store_close(store);
	options.install = false;
	assert_status(hpx_store_open(&options, &store, problem), HPX_OK);
	hpx_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(a_rollback_leaves_nothing),
		ON_POSTGRES(what_commits_is_there_for_the_gateway_too),
		ON_POSTGRES(a_reservation_is_recognised_by_its_token),
		ON_POSTGRES(the_next_attempt_learns_of_the_last),
		ON_POSTGRES(each_refusal_has_its_status),
		ON_POSTGRES(a_row_that_is_held_is_busy_by_the_callers_own_timeout),
		ON_POSTGRES(a_connection_that_cannot_be_used_now_says_so),
		ON_POSTGRES(a_lost_connection_is_unavailable),
		ON_POSTGRES(what_is_not_the_operations_description_is_misuse),
		ON_POSTGRES(the_session_is_neither_obeyed_nor_changed),
		ON_POSTGRES(of_two_that_begin_at_once_one_executes),
		ON_POSTGRES(without_the_schema_it_says_what_to_do),
		ON_POSTGRES(a_role_without_the_right_is_told),
		ON_POSTGRES(opening_installs_where_it_is_told_to),
	};
	return run_on_drivers("borrow_pg", tests);
}
