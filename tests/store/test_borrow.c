/* Shows that a store on the caller's own SQLite connection writes in the
 * caller's transaction: with its rows or not at all; that another process'
 * leases of an earlier boot are lost; and that the connection stays usable. */
#include "fixture.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

enum { OWN = 7,
       NEXT = 9,
       BODY = 1 };

struct app {
	char folder[64];
	char path[96];
	sqlite3 *db;
	struct fixture f; /* only its store: the borrowed one */
	char problem[HPX_STORE_PROBLEM_SIZE];
};

static void sql(sqlite3 *db, const char *text)
{
	char *error = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &error) != SQLITE_OK) {
		print_error("%s: %s\n", text, error);
		fail();
	}
}

static int count(sqlite3 *db, const char *table)
{
	char text[128];
	sqlite3_stmt *stmt = NULL;

	snprintf(text, sizeof(text), "SELECT count(*) FROM %s", table);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	int n = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

static int setup(void **state)
{
	struct app *app = calloc(1, sizeof(*app));

	assert_non_null(app);
	fixture_folder(app->folder, sizeof(app->folder));
	snprintf(app->path, sizeof(app->path), "%s/app.db", app->folder);
	assert_int_equal(sqlite3_open(app->path, &app->db), SQLITE_OK);
	sql(app->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
		     "CREATE TABLE payment (operation TEXT UNIQUE, amount INTEGER)");
	assert_status(hpx_store_install(HPX_LENT_SQLITE3, app->db, app->problem), HPX_OK);
	assert_status(hpx_store_borrow(HPX_LENT_SQLITE3, app->db, &app->f.store, app->problem), HPX_OK);
	*state = app;
	return 0;
}

static int teardown(void **state)
{
	struct app *app = *state;

	hpx_store_close(app->f.store);
	assert_int_equal(sqlite3_close(app->db), SQLITE_OK);
	fixture_folder_remove(app->folder);
	free(app);
	return 0;
}

static const char *begin(struct app *app, unsigned token)
{
	struct hpx_ask ask = ask_of(app->f.store, 1, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, token);

	ask.owner = 0;
	op.reserve.ask = &ask;
	if (run_op(&app->f, &op) != HPX_OK)
		return hpx_status_name(op.status);
	hpx_answer_free(op.reserve.replay);
	return hpx_decision_name(op.decision.kind);
}

static void commits_with_the_callers_rows_or_not_at_all(void **state)
{
	struct app *app = *state;

	assert_string_equal(begin(app, OWN), "created");
	sql(app->db, "BEGIN IMMEDIATE; INSERT INTO payment VALUES ('r', 499)");
	assert_status(complete(&app->f, 1, OWN, "paid"), HPX_OK);
	sql(app->db, "ROLLBACK");
	assert_int_equal(count(app->db, "payment"), 0);
	assert_int_equal(count(app->db, "hapax_aside WHERE state = 3"), 0);
	assert_string_equal(begin(app, NEXT), "in_progress");
	sql(app->db, "BEGIN IMMEDIATE; INSERT INTO payment VALUES ('r', 499)");
	assert_status(complete(&app->f, 1, OWN, "paid"), HPX_OK);
	sql(app->db, "COMMIT");
	assert_int_equal(count(app->db, "payment"), 1);
	assert_string_equal(begin(app, NEXT), "replay");
}

static void a_refusal_leaves_the_transaction_usable(void **state)
{
	struct app *app = *state;

	assert_string_equal(begin(app, OWN), "created");
	sql(app->db, "BEGIN IMMEDIATE; INSERT INTO payment VALUES ('r', 499)");
	assert_status(complete(&app->f, 1, NEXT, "stale"), HPX_STALE);
	assert_status(complete(&app->f, 1, OWN, "paid"), HPX_OK);
	sql(app->db, "COMMIT");
	assert_int_equal(count(app->db, "payment"), 1);
	assert_int_equal(count(app->db, "hapax_aside WHERE state = 3"), 1);
}

/* A payment that must not be lost at a power failure is not committed lightly. */
static void the_connection_is_made_durable(void **state)
{
	struct app *app = *state;

	assert_int_equal(count(app->db, "pragma_synchronous WHERE synchronous >= 2"), 1);
}

static void taken_inside_a_transaction_it_is_misuse(void **state)
{
	struct app *app = *state;
	struct hpx_store *store = NULL;

	sql(app->db, "BEGIN");
	assert_status(hpx_store_borrow(HPX_LENT_SQLITE3, app->db, &store, app->problem), HPX_MISUSE);
	assert_non_null(strstr(app->problem, "BEGIN"));
	assert_status(hpx_store_install(HPX_LENT_SQLITE3, app->db, app->problem), HPX_MISUSE);
	sql(app->db, "COMMIT");
}

static void without_tables_it_says_what_to_do(void **state)
{
	struct app *app = *state;
	struct hpx_store *store = NULL;
	sqlite3 *bare = NULL;

	assert_int_equal(sqlite3_open(":memory:", &bare), SQLITE_OK);
	sql(bare, "CREATE TABLE payment (id)");
	assert_status(hpx_store_borrow(HPX_LENT_SQLITE3, bare, &store, app->problem), HPX_INVALID);
	assert_non_null(strstr(app->problem, "not a hapax store"));
	assert_status(hpx_store_install(HPX_LENT_SQLITE3, bare, app->problem), HPX_OK);
	assert_status(hpx_store_borrow(HPX_LENT_SQLITE3, bare, &store, app->problem), HPX_OK);
	hpx_store_close(store);
	sqlite3_close(bare);
}

static void a_file_that_is_held_is_busy_and_nothing_is_written(void **state)
{
	struct app *app = *state;
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, OWN), *ops[] = { &op };
	struct hpx_ask ask = ask_of(app->f.store, 1, BODY, OWN);
	sqlite3 *other = NULL;

	ask.owner = 0;
	op.reserve.ask = &ask;
	assert_int_equal(sqlite3_open(app->path, &other), SQLITE_OK);
	sql(other, "BEGIN IMMEDIATE");
	assert_status(hpx_store_run(app->f.store, ops, 1, app->problem), HPX_BUSY);
	assert_true(sqlite3_get_autocommit(app->db));
	sql(other, "ROLLBACK");
	sqlite3_close(other);
	assert_string_equal(begin(app, OWN), "created");
}

/* Its lease counted on a clock that began anew. */
static void after_a_reboot_what_was_in_progress_is_lost(void **state)
{
	struct app *app = *state;

	assert_string_equal(begin(app, OWN), "created");
	sql(app->db, "UPDATE hapax_clock SET boot = 'the boot before'");
	assert_string_equal(begin(app, NEXT), "unknown");
	assert_status(complete(&app->f, 1, OWN, "late"), HPX_OK);
}

/* The gateway that serves the file starts anew: it knows nothing of the
 * application's processes, which may well live. */
static void a_restart_of_the_server_leaves_live_leases_alone(void **state)
{
	struct app *app = *state;
	struct hpx_store *server = NULL;
	char url[128];

	assert_string_equal(begin(app, OWN), "created");
	snprintf(url, sizeof(url), "sqlite:%s", app->path);
	struct hpx_store_options options = { .url = hpx_span_of(url), .serve = true };
	assert_status(hpx_store_open(&options, &server, app->problem), HPX_OK);
	hpx_store_close(server);
	assert_string_equal(begin(app, NEXT), "in_progress");
	sql(app->db, "UPDATE hapax_clock SET boot = 'the boot before'");
	assert_status(hpx_store_open(&options, &server, app->problem), HPX_OK);
	hpx_store_close(server);
	assert_string_equal(begin(app, NEXT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(commits_with_the_callers_rows_or_not_at_all, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusal_leaves_the_transaction_usable, setup, teardown),
		cmocka_unit_test_setup_teardown(the_connection_is_made_durable, setup, teardown),
		cmocka_unit_test_setup_teardown(taken_inside_a_transaction_it_is_misuse, setup, teardown),
		cmocka_unit_test_setup_teardown(without_tables_it_says_what_to_do, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_held_is_busy_and_nothing_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(after_a_reboot_what_was_in_progress_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(a_restart_of_the_server_leaves_live_leases_alone, setup, teardown),
	};
	return cmocka_run_group_tests_name("borrow", tests, NULL, NULL);
}
