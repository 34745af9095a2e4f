/* Shows what a handle with connections of its own does beyond a transaction:
 * what becomes of calls whose time is up, of many threads at once, of leases
 * and expired records, and of records that a gateway made. */
#include "library_fixture.h"

#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cluster.h"

#define THREADS 16
#define SHORT_MS 50
#define PATIENCE_MS 60000

static char problem[HAPAX_PROBLEM_SIZE];

/* ---- a store that does not answer in time ---- */

/* The application holds what the handle has to write. */
static void hold(struct library_fixture *p)
{
	if (p->postgres)
		library_sql(p, "BEGIN; SELECT 1 FROM hapax.operation FOR UPDATE");
	else
		library_sql(p, "BEGIN IMMEDIATE");
}

static void late_writes_are_written_all_the_same(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };
	char point[HAPAX_POINT_SIZE];
	void *data = NULL;
	size_t len = 0;

	assert_string_equal(begin_key(p->hapax, "k", &operation), "execute");
	library_reopen(p, SHORT_MS);
	hold(p);
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_UNCERTAIN,
		      problem);
	/* The same again is as uncertain, and does no harm. */
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_UNCERTAIN,
		      problem);
	/* A question is not; PostgreSQL answers it past the lock. */
	if (!p->postgres)
		assert_result(hapax_recovery(p->hapax, operation.lease, point, &data, &len, problem),
			      HAPAX_UNAVAILABLE, problem);
	library_sql(p, "ROLLBACK");
	library_reopen(p, 0); /* closing waits for what is owed */
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "replay");
}

static void a_late_reservation_is_given_back(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };

	library_reopen(p, SHORT_MS);
	begin.lease_ms = 3600000;
	library_sql(p, "BEGIN IMMEDIATE");
	assert_result(hapax_begin(p->hapax, &begin, &operation, problem), HAPAX_UNAVAILABLE, problem);
	library_sql(p, "ROLLBACK");
	library_reopen(p, 0);
	begin_until_execute(p->hapax, &begin);
}

/* Half of it went by before it was known: what is left may be too short. */
static void a_reservation_that_took_half_its_lease_is_given_back(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin.lease_ms = 1;
	assert_result(hapax_begin(p->hapax, &begin, &operation, problem), HAPAX_UNAVAILABLE, problem);
	begin.lease_ms = 0;
	begin_until_execute(p->hapax, &begin);
}

static void closing_waits_no_longer_than_the_timeout(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin_key(p->hapax, "k", &operation);
	library_reopen(p, SHORT_MS);
	hold(p);
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_UNCERTAIN,
		      problem);
	int64_t begun_ms = hpx_clock_boot_ms();
	hapax_close(p->own);
	p->own = p->hapax = NULL;
	assert_true(hpx_clock_boot_ms() - begun_ms < PATIENCE_MS);
	library_sql(p, "ROLLBACK");
	library_reopen(p, 0);
	p->hapax = p->own;
	assert_string_equal(begin_key(p->hapax, "k", NULL), "in_progress");
}

/* While a store is down, not any number of answers wait for it in memory. */
static void not_everything_waits(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };
	size_t len = (size_t)16 << 20;
	void *body = calloc(1, len);
	struct hapax_answer answer = {
		.size = sizeof(answer),
		.status = 200,
		.body = body,
		.body_len = len,
	};
	enum hapax_result result = HAPAX_UNCERTAIN;
	unsigned waiting = 0;

	begin_key(p->hapax, "k", &operation);
	library_reopen(p, 1);
	hold(p);
	for (; result == HAPAX_UNCERTAIN && waiting < 100; waiting++)
		result = hapax_complete(p->hapax, operation.lease, &answer, problem);
	assert_result(result, HAPAX_UNAVAILABLE, problem);
	assert_in_range(waiting, 10, 20);
	library_sql(p, "ROLLBACK");
	library_reopen(p, 0);
	free(body);
}

/* On the caller's own connection nothing waits behind the caller's back. */
static void a_held_file_is_busy(void **state)
{
	struct library_fixture *p = *state;
	sqlite3 *other = NULL;

	assert_int_equal(sqlite3_open(p->url + strlen("sqlite:"), &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_string_equal(begin_key(p->hapax, "k", NULL), "busy");
	sqlite3_close(other);
	assert_string_equal(begin_key(p->hapax, "k", NULL), "execute");
}

/* ---- threads ---- */

struct racer {
	pthread_t thread;
	struct hapax *hapax;
	pthread_barrier_t *start;
	const char *verdict;
	char lease[HAPAX_LEASE_SIZE];
};

static void *race(void *user)
{
	struct racer *racer = user;
	struct hapax_operation operation = { .size = sizeof(operation) };

	pthread_barrier_wait(racer->start);
	racer->verdict = begin_key(racer->hapax, "k", &operation);
	if (strcmp(racer->verdict, "execute") == 0)
		snprintf(racer->lease, sizeof(racer->lease), "%s", operation.lease);
	return NULL;
}

static void one_of_many_executes(void **state)
{
	struct library_fixture *p = *state;
	struct racer racers[THREADS] = { 0 };
	pthread_barrier_t start;
	const char *lease = NULL;
	unsigned executes = 0;

	pthread_barrier_init(&start, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++) {
		racers[i].hapax = p->hapax;
		racers[i].start = &start;
		assert_status(hpx_thread_start(&racers[i].thread, race, &racers[i]), HPX_OK);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		if (racers[i].lease[0] != '\0') {
			executes++;
			lease = racers[i].lease;
		} else if (strcmp(racers[i].verdict, "in_progress") != 0) {
			fail_msg("got %s, want in_progress", racers[i].verdict);
		}
	}
	pthread_barrier_destroy(&start);
	assert_int_equal(executes, 1);
	assert_result(complete_with(p->hapax, lease, "done", problem), HAPAX_OK, problem);
	assert_string_equal(begin_key(p->hapax, "k", NULL), "replay");
}

/* ---- leases and expiry ---- */

static void a_lease_goes_on(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin_with(p->hapax, &begin, &operation);
	library_expire_leases(p);
	assert_result(hapax_renew(p->hapax, operation.lease, 3600000, problem), HAPAX_OK, problem);
	assert_result(hapax_tidy(p->hapax, problem), HAPAX_OK, problem);
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "in_progress");
	assert_result(hapax_lose(p->hapax, operation.lease, problem), HAPAX_OK, problem);
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "unknown");
}

/* Tidies until no such row is there. */
static void tidy_until_none(struct library_fixture *p, const char *where)
{
	int64_t until_ms = hpx_clock_boot_ms() + PATIENCE_MS;

	do {
		assert_result(hapax_tidy(p->hapax, problem), HAPAX_OK, problem);
		poll(NULL, 0, 2);
	} while (library_rows(p, "operation", where) != 0 && hpx_clock_boot_ms() < until_ms);
	assert_int_equal(library_rows(p, "operation", where), 0);
}

static void tidying_finds_what_is_lost_and_what_expired(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin lost = begin_of("lost", 1), old = begin_of("old", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };

	old.retention_ms = 1;
	begin_with(p->hapax, &lost, NULL);
	begin_with(p->hapax, &old, &operation);
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_OK, problem);
	/* On SQLite a plain row goes with its generation, which is open for ten minutes at
	 * least; one that was used again goes by itself. */
	while (!p->postgres && strcmp(begin_with(p->hapax, &old, &operation), "execute") != 0)
		poll(NULL, 0, 2);
	if (!p->postgres)
		assert_result(complete_with(p->hapax, operation.lease, "again", problem), HAPAX_OK, problem);
	tidy_until_none(p, "key = 'old'");
	library_expire_leases(p);
	tidy_until_none(p, "state = 1");
	assert_int_equal(library_rows(p, "operation", "key = 'lost' AND state = 4"), 1);
}

/* ---- a record that a gateway made ---- */

/* As a gateway reserves it, by a recipe of its own; the lease is the one it passes on. */
static void begin_by_recipe(struct library_fixture *p, const struct hapax_begin *begin,
			    struct hapax_operation *operation)
{
	struct hpx_store_options options = { .url = hpx_span_of(p->url) };
	struct hpx_policy policy = { .lease_ms = 60000, .retention_ms = 86400000 };
	struct hpx_ask ask = { .owner = 0 };
	struct hpx_store_op op = { .verb = HPX_VERB_RESERVE, .reserve = { .ask = &ask, .policy = &policy } };
	struct hpx_store_op *ops = &op;
	struct hpx_store *store = NULL;

	assert_status(hpx_operation_id(hpx_span_of(begin->tenant), hpx_span_of(begin->scope),
				       hpx_span_of(begin->key), &ask.id),
		      HPX_OK);
	memcpy(ask.fingerprint, begin->fingerprint, sizeof(ask.fingerprint));
	memset(ask.recipe.bytes, 0xab, sizeof(ask.recipe.bytes));
	hpx_token_make(&ask.token);
	assert_status(hpx_store_open(&options, &store, NULL), HPX_OK);
	assert_status(hpx_store_run(store, &ops, 1, NULL), HPX_OK);
	assert_status(op.status, HPX_OK);
	assert_string_equal(hpx_decision_name(op.decision.kind), "created");
	hpx_store_close(store);
	hpx_lease_print(&ask.id, &ask.token, operation->lease);
}

static void other_recipes_are_compared_by_the_fingerprint(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1), other = begin_of("k", 2);
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin_by_recipe(p, &begin, &operation);
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "in_progress");
	assert_string_equal(begin_with(p->hapax, &other, NULL), "mismatch");
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_OK, problem);
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "replay");
	assert_string_equal(begin_with(p->hapax, &other, NULL), "mismatch");
}

/* ---- opening ---- */

static void what_cannot_be_opened_is_told(void **state)
{
	struct library_fixture *p = *state;
	struct hapax *hapax = NULL;
	char url[160];

	snprintf(url, sizeof(url), "sqlite:%s/absent.db", p->folder);
	assert_result(hapax_open(url, NULL, &hapax, problem), HAPAX_UNAVAILABLE, problem);
	snprintf(url, sizeof(url), "sqlite:%s/absent/shop.db", p->folder);
	struct hapax_options options = { .size = sizeof(options), .install = 1 };
	assert_result(hapax_open(url, &options, &hapax, problem),
		      HAPAX_UNAVAILABLE, problem);
	assert_result(hapax_open("postgres://nobody@/none?host=/absent", NULL, &hapax, problem),
		      HAPAX_UNAVAILABLE, problem);
	assert_null(hapax);
	/* A file without hapax's tables, and a transaction under way. */
	sqlite3 *bare = NULL;
	assert_int_equal(sqlite3_open(":memory:", &bare), SQLITE_OK);
	assert_result(hapax_on_sqlite(bare, &hapax, problem), HAPAX_UNAVAILABLE, problem);
	sqlite3_exec(bare, "BEGIN", NULL, NULL, NULL);
	assert_result(hapax_install_sqlite(bare, problem), HAPAX_MISUSE, problem);
	assert_result(hapax_on_sqlite(bare, &hapax, problem), HAPAX_MISUSE, problem);
	sqlite3_close(bare);
}

static void a_database_without_the_schema_is_told(void **state)
{
	struct library_fixture *p = *state;
	struct hapax *hapax = NULL;

	hapax_close(p->own);
	p->own = p->hapax = NULL;
	library_sql(p, "DROP SCHEMA hapax CASCADE");
	assert_result(hapax_open(p->url, NULL, &hapax, problem), HAPAX_UNAVAILABLE, problem);
	assert_result(hapax_on_postgres(p->conn, &hapax, problem), HAPAX_UNAVAILABLE, problem);
	assert_null(hapax);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWN(late_writes_are_written_all_the_same),
		OWN_SQLITE(a_late_reservation_is_given_back),
		OWN(a_reservation_that_took_half_its_lease_is_given_back),
		OWN(closing_waits_no_longer_than_the_timeout),
		OWN_SQLITE(not_everything_waits),
		ON_SQLITE_DB(a_held_file_is_busy),
		OWN(one_of_many_executes),
		OWN(a_lease_goes_on),
		OWN(tidying_finds_what_is_lost_and_what_expired),
		EVERY_WAY(other_recipes_are_compared_by_the_fingerprint),
		OWN_SQLITE(what_cannot_be_opened_is_told),
		OWN_POSTGRES(a_database_without_the_schema_is_told),
	};
	return run_on_drivers("library_own", tests);
}
