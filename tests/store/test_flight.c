/* Shows that on PostgreSQL nothing is ever lost from the two queues that the sweeper and
 * the reaper work by: every attempt in progress stands in `flight`, every time to expire
 * in `due`, and whatever is neither under way nor completed in `aside`; whichever verb,
 * SQL function or hand wrote the row, and whoever dies in between. And that the plain way
 * of an operation costs one index entry and a HOT update. */
#include "application.h"

#include <pthread.h>

#include "base/clock.h"
#include "store/postgres/statement.h"

/* ---- what must always hold ---- */

/* At the latest when the lease, renewed or not, or the retention ends; a row that somebody
 * held is looked at again within a second. */
#define NOT_IN_FLIGHT \
	"SELECT count(*) FROM hapax.operation o LEFT JOIN hapax.lease l " \
	"ON l.id = o.id AND l.token = o.token WHERE o.state = 1 AND NOT EXISTS " \
	"(SELECT 1 FROM hapax.flight f WHERE o.id = ANY(f.ids) AND f.at <= " \
	"greatest(o.lease_until, l.until, hapax.clock_ms() + %lld + 1000))"
#define NOT_IN_DUE \
	"SELECT count(*) FROM hapax.operation o WHERE o.expires > 0 AND NOT EXISTS " \
	"(SELECT 1 FROM hapax.due d WHERE o.id = ANY(d.ids) AND d.at <= " \
	"greatest(o.expires, hapax.clock_ms() + %lld + 1000))"
#define NOT_ASIDE \
	"SELECT count(*) FROM (SELECT id, state FROM hapax.operation WHERE state NOT IN (1, 3)) o " \
	"FULL JOIN hapax.aside a ON a.id = o.id WHERE a.state IS DISTINCT FROM o.state"

static void assert_none(struct fixture *f, PGconn *conn, const char *what, const char *sql)
{
	long long shift_ms = atomic_load(&f->store->wall_shift_ms);
	char text[1024];

	snprintf(text, sizeof(text), sql, shift_ms);
	const char *count = ask(conn, "%s", text);
	if (strcmp(count, "0") != 0)
		fail_msg("%s rows that are %s", count, what);
}

static void assert_written_down(struct fixture *f)
{
	PGconn *conn = cluster_connect();

	assert_none(f, conn, "not in flight", NOT_IN_FLIGHT);
	assert_none(f, conn, "not due", NOT_IN_DUE);
	assert_none(f, conn, "wrongly aside, or not", NOT_ASIDE);
	PQfinish(conn);
}

static long count_of(const char *sql)
{
	PGconn *conn = cluster_connect();
	long count = atol(ask(conn, "%s", sql));

	PQfinish(conn);
	return count;
}

/* ---- every change ---- */

static void forget(struct fixture *f, unsigned key)
{
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, key, A);

	op.forget.force = true;
	assert_status(run_op(f, &op), HPX_OK);
}

static void by_verbs(struct fixture *f)
{
	for (unsigned state = HPX_STATE_IN_PROGRESS; state <= HPX_STATE_UNKNOWN; state++) {
		bring_to(f, state, (enum hpx_state)state, A);
		assert_written_down(f);
	}
	assert_string_equal(reserve(f, HPX_STATE_FAILED_RETRYABLE, BODY, B), "retried");
	assert_written_down(f);
	assert_status(resolve(f, HPX_STATE_UNKNOWN, A, true), HPX_OK);
	assert_written_down(f);
	bring_to(f, 6, HPX_STATE_UNKNOWN, A);
	assert_status(resolve(f, 6, A, false), HPX_OK);
	assert_written_down(f);
	forget(f, 6);
	assert_written_down(f);
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep(f), 2);
	assert_written_down(f);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve(f, HPX_STATE_COMPLETED, BODY, B), "created");
	assert_written_down(f);
	reap(f);
	assert_written_down(f);
}

/* A begin, and its end in the same batch. */
static void within_one_batch(struct fixture *f)
{
	struct hpx_answer answer = { .status = 200, .kept = true, .headers = HPX_SPAN(""), .body = HPX_SPAN("") };
	struct hpx_ask asks[3];
	struct hpx_store_op begins[3], ends[3];
	static const enum hpx_verb verbs[] = { HPX_VERB_COMPLETE, HPX_VERB_FAIL, HPX_VERB_RENEW };
	struct hpx_store_op *ops[6];

	for (unsigned i = 0; i < 3; i++) {
		asks[i] = ask_of(f->store, 20 + i, BODY, A);
		begins[i] = op_of(HPX_VERB_RESERVE, 20 + i, A);
		begins[i].reserve.ask = &asks[i];
		ends[i] = op_of(verbs[i], 20 + i, A);
		op_answers(&ends[i], &answer);
		if (verbs[i] == HPX_VERB_RENEW)
			ends[i].renew.lease_ms = 2 * LEASE_MS;
		ops[2 * i] = &begins[i];
		ops[2 * i + 1] = &ends[i];
	}
	assert_status(hpx_store_run(f->store, ops, 6, NULL), HPX_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_status(ends[i].status, HPX_OK);
	assert_written_down(f);
}

#define BEGIN "SELECT lease FROM hapax.begin('t', 's', '%s', sha256(''), %d, 60000, '%s')"

static void by_an_application(struct fixture *f)
{
	PGconn *app = cluster_connect();
	char lease[HPX_LEASE_SIZE];

	snprintf(lease, sizeof(lease), "%s", ask(app, BEGIN, "one", 60000, "repeat"));
	assert_written_down(f);
	assert_string_equal(state_after(app, "SELECT hapax.advance('%s', 'half', '')", lease), "00000");
	assert_written_down(f);
	assert_string_equal(state_after(app, "SELECT hapax.not_executed('%s')", lease), "00000");
	assert_written_down(f);
	snprintf(lease, sizeof(lease), "%s", ask(app, BEGIN, "one", 60000, "repeat"));
	assert_written_down(f);
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', '')", lease), "00000");
	assert_written_down(f);
	ask(app, BEGIN, "two", 1, "repeat");
	cluster_sql("UPDATE hapax.operation SET lease_until = 1 WHERE key = 'two'");
	ask(app, BEGIN, "two", 60000, "unknown");
	assert_written_down(f);
	cluster_sql("UPDATE hapax.operation SET lease_until = 1, when_lost = 0 WHERE key = 'two'");
	ask(app, BEGIN, "two", 60000, "unknown"); /* finds it lost */
	assert_written_down(f);
	cluster_sql("UPDATE hapax.operation SET state = 3, expires = 99999, status = 200, "
		    "kept = false WHERE key = 'two'");
	assert_written_down(f);
	cluster_sql("DELETE FROM hapax.operation WHERE key = 'one'");
	assert_written_down(f);
	PQfinish(app);
}

/* Accepted, abandoned, and executed again. */
static void for_later(struct fixture *f)
{
	static const struct hpx_job job = { .name = HPX_SPAN("j"), .target = HPX_SPAN("t"), .method = HPX_SPAN("POST"), .path = HPX_SPAN("/"), .headers = HPX_SPAN(""), .body = HPX_SPAN("") };
	struct hpx_policy later = *policy();
	struct hpx_ask request = ask_of(f->store, 30, BODY, A);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 30, A);

	later.deliver = HPX_DELIVER_ASYNC;
	op.reserve.ask = &request;
	op.reserve.policy = &later;
	op.reserve.job = &job;
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(state_of(f, 30), "pending");
	assert_written_down(f);
	advance(f, RETENTION_MS + 1);
	reap(f);
	assert_string_equal(state_of(f, 30), "completed");
	assert_written_down(f);
}

static void every_change_is_written_down(void **state)
{
	by_verbs(*state);
	within_one_batch(*state);
	by_an_application(*state);
	for_later(*state);
}

/* ---- the sweeper's and the reaper's rules ---- */

static void a_renewed_attempt_goes_into_another_row(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_RENEW, 1, A);

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	complete(f, 2, A, "x");
	op.renew.lease_ms = 3 * LEASE_MS;
	assert_status(run_op(f, &op), HPX_OK);
	for (unsigned i = 0; i < 2; i++) {
		advance(f, LEASE_MS + 1);
		assert_int_equal(sweep(f), 0);
		assert_string_equal(state_of(f, 1), "in_progress");
		/* The one that was completed is dropped. */
		assert_int_equal(count_of("SELECT sum(cardinality(ids)) FROM hapax.flight"), 1);
		assert_written_down(f);
	}
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep(f), 1);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.flight"), 0);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.lease"), 0);
}

static void what_is_kept_for_longer_goes_into_another_row(void **state)
{
	struct fixture *f = *state;

	for (unsigned key = 1; key <= 3; key++) {
		reserve(f, key, BODY, A);
		complete(f, key, A, "x");
	}
	cluster_sql("UPDATE hapax.operation SET expires = expires + 86400000 WHERE key = 'key-1'");
	forget(f, 2);
	advance(f, RETENTION_MS + 1);
	assert_int_equal(reap(f), 1);
	assert_string_equal(state_of(f, 1), "completed");
	assert_string_equal(state_of(f, 3), "none");
	assert_written_down(f);
	advance(f, 86400000);
	assert_int_equal(reap(f), 1);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.due"), 0);
}

/* Many rows of a queue at a time, and more than the op may take. */
static void many_are_taken_in_parts(void **state)
{
	struct fixture *f = *state;
	unsigned swept = 0, reaped = 0;

	for (unsigned key = 0; key < 150; key++) {
		reserve(f, key, BODY, A);
		if (key % 2 == 0)
			complete(f, key, A, "x");
	}
	advance(f, LEASE_MS + 1);
	for (unsigned i = 0; i < 6; i++, assert_written_down(f))
		swept += sweep(f);
	assert_int_equal(swept, 75);
	advance(f, RETENTION_MS);
	for (unsigned i = 0; i < 6; i++, assert_written_down(f))
		reaped += reap(f);
	assert_int_equal(reaped, 75);
}

/* ---- rounds that are bounded by ids ---- */

#define LARGE_ROW 2500
#define LARGE_ROWS 3

/* Rows as large as a tool that writes thousands at a time leaves them: all due, and of
 * operations that are gone. */
static void add_large_rows(const char *queue)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "INSERT INTO hapax.%s (at, ids) SELECT n, array_agg(gen_random_uuid()) "
				   "FROM generate_series(1, %d) n, generate_series(1, %d) GROUP BY n",
		 queue, LARGE_ROWS, LARGE_ROW);
	cluster_sql(sql);
}

static long ids_in(const char *queue)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT coalesce(sum(cardinality(ids)), 0) FROM hapax.%s", queue);
	return count_of(sql);
}

/* One round after the other until none says that there is more; each takes no more ids than
 * it may, and makes no row that is larger than those it found. How many of the operations
 * that are there were swept or reaped. */
static unsigned run_rounds(struct fixture *f, const char *queue, enum hpx_verb verb, long ids_max)
{
	bool more = true;
	unsigned count = 0;
	long before = ids_in(queue);

	for (unsigned round = 0; more; round++) {
		struct hpx_store_op op = op_of(verb, 0, 0);
		char largest[128];

		op.sweep.limit = 3;
		if (verb == HPX_VERB_REAP)
			op.reap.limit = 100;
		assert_status(run_op(f, &op), HPX_OK);
		more = verb == HPX_VERB_REAP ? op.reap.more : op.sweep.more;
		count += verb == HPX_VERB_REAP ? op.reap.count : op.sweep.count;
		long left = ids_in(queue);
		assert_in_range(before - left, 1, ids_max);
		before = left;
		snprintf(largest, sizeof(largest), "SELECT coalesce(max(cardinality(ids)), 0) FROM hapax.%s", queue);
		assert_in_range(count_of(largest), 0, LARGE_ROW);
		assert_written_down(f);
		assert_true(round < 200);
	}
	assert_int_equal(before, 0);
	return count;
}

/* However many ids the rows of a queue hold, one round looks up a bounded number of them;
 * a larger row is split, and nothing in it is lost. */
static void a_round_is_bounded_by_ids(void **state)
{
	struct fixture *f = *state;

	for (unsigned key = 0; key < 20; key++) {
		reserve(f, key, BODY, A);
		if (key % 2 == 0)
			complete(f, key, A, "x");
	}
	advance(f, RETENTION_MS + LEASE_MS + 1);
	add_large_rows("flight");
	assert_int_equal(run_rounds(f, "flight", HPX_VERB_SWEEP, 1000), 10);
	add_large_rows("due");
	assert_int_equal(run_rounds(f, "due", HPX_VERB_REAP, 100), 10);
}

/* More attempts go on than a round may sweep, in one row: those that were looked at are put
 * off, and the round says that there is more, until all were looked at once. */
static void what_goes_on_is_looked_at_once(void **state)
{
	struct fixture *f = *state;
	unsigned rounds = 0;

	for (unsigned key = 0; key < 10; key++) {
		struct hpx_store_op op = op_of(HPX_VERB_RENEW, key, A);

		reserve(f, key, BODY, A);
		op.renew.lease_ms = 3 * LEASE_MS;
		assert_status(run_op(f, &op), HPX_OK);
	}
	cluster_sql("WITH d AS (DELETE FROM hapax.flight RETURNING ids), "
		    "i AS (SELECT unnest(ids) AS id FROM d) "
		    "INSERT INTO hapax.flight (at, ids) SELECT 1, array_agg(id) FROM i");
	advance(f, LEASE_MS + 1);
	for (bool more = true; more; rounds++) {
		struct hpx_store_op op = op_of(HPX_VERB_SWEEP, 0, 0);

		op.sweep.limit = 3;
		assert_status(run_op(f, &op), HPX_OK);
		assert_int_equal(op.sweep.count, 0);
		more = op.sweep.more;
		assert_written_down(f);
	}
	assert_int_equal(rounds, 4);
	advance(f, 2 * LEASE_MS);
	assert_int_equal(sweep(f), 10);
}

/* ---- who dies in between ---- */

/* The commit fails at its very end, as if the server had been killed. */
static void let_commits_fail(const char *table)
{
	char sql[512];

	snprintf(sql, sizeof(sql), "CREATE FUNCTION hapax.die() RETURNS trigger LANGUAGE plpgsql AS "
				   "$$ BEGIN RAISE EXCEPTION 'no'; END $$; "
				   "CREATE CONSTRAINT TRIGGER die AFTER DELETE ON hapax.%s "
				   "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hapax.die()",
		 table);
	cluster_sql(sql);
}

static void a_crash_leaves_the_row_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op swept = op_of(HPX_VERB_SWEEP, 0, 0), reaped = op_of(HPX_VERB_REAP, 0, 0);
	struct hpx_store_op *ops[] = { &swept, &reaped };

	swept.sweep.limit = reaped.reap.limit = 100;
	for (unsigned key = 0; key < 6; key++) {
		reserve(f, key, BODY, A);
		if (key >= 3)
			complete(f, key, A, "x");
	}
	advance(f, RETENTION_MS + 1);
	for (unsigned i = 0; i < 2; i++) {
		let_commits_fail(i == 0 ? "flight" : "due");
		assert_status(hpx_store_run(f->store, &ops[i], 1, NULL), HPX_IO);
		cluster_sql("DROP FUNCTION hapax.die() CASCADE");
		assert_status(hpx_store_recover(f->store, NULL), HPX_OK);
		assert_written_down(f);
	}
	assert_int_equal(sweep(f), 3);
	assert_int_equal(reap(f), 3);
	assert_written_down(f);
}

/* A sweeper that was stopped in the middle of its transaction: the rows it took are left
 * to it, and come back with its end. */
static void what_another_sweeper_takes_is_left_to_it(void **state)
{
	struct fixture *f = *state;
	PGconn *other = cluster_connect();

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	complete(f, 2, A, "x");
	PQclear(cluster_ask(other, "BEGIN; DELETE FROM hapax.flight; DELETE FROM hapax.due"));
	advance(f, RETENTION_MS + 1);
	assert_int_equal(sweep(f), 0);
	assert_int_equal(reap(f), 0);
	PQfinish(other);
	/* Its backend may take a moment to notice. */
	for (unsigned i = 0; i < 1000 && count_of("SELECT count(*) FROM pg_locks WHERE relation = "
						  "'hapax.flight'::regclass AND mode = 'RowExclusiveLock'") > 0;
	     i++)
		;
	assert_int_equal(sweep(f), 1);
	assert_int_equal(reap(f), 1);
}

/* ---- two nodes, and applications ---- */

#define ROUNDS 40
#define KEYS_PER_ROUND 8

struct node {
	struct fixture f;
	unsigned first_key;
	_Atomic bool *over;
	unsigned swept;
};

/* Reserves with short leases, completes every other one, renews some. */
static void *worker_main(void *user)
{
	struct node *node = user;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < KEYS_PER_ROUND; i++) {
			unsigned key = node->first_key + round * KEYS_PER_ROUND + i;
			reserve(&node->f, key, BODY, A);
			if (i % 2 == 0)
				complete(&node->f, key, A, "x");
			else if (i % 4 == 1)
				act(&node->f, HPX_VERB_FAIL, key, A);
			if (i == KEYS_PER_ROUND - 1) {
				node->swept += sweep(&node->f);
				reap(&node->f);
			}
		}
	return NULL;
}

static void *begin_main(void *user)
{
	_Atomic bool *over = user;
	PGconn *app = cluster_connect();
	char lease[HPX_LEASE_SIZE];

	for (unsigned i = 0; !atomic_load(over); i++) {
		char key[16];
		snprintf(key, sizeof(key), "app-%u", i % 50);
		/* A lease of a millisecond: it is lost at once, and begun anew. */
		snprintf(lease, sizeof(lease), "%s",
			 ask(app, "SELECT coalesce(lease, '') FROM hapax.begin('t', 's', '%s', sha256(''), "
				  "1, 60000, 'repeat')",
			     key));
		if (lease[0] != '\0' && i % 2 == 0)
			state_after(app, "SELECT hapax.complete('%s', 200, '', '')", lease);
	}
	PQfinish(app);
	return NULL;
}

static void node_open(struct node *node, const struct fixture *f, unsigned first_key)
{
	*node = (struct node){ .first_key = first_key };
	memcpy(node->f.url, f->url, sizeof(f->url));
	hpx_arena_init(&node->f.arena, 16 << 20);
	fixture_open(&node->f);
	/* Its clock is ahead by a lease: the other one's attempts look lost to it. */
	advance(&node->f, LEASE_MS);
}

static void node_close(struct node *node)
{
	fixture_close(&node->f);
	hpx_arena_done(&node->f.arena);
}

static void nothing_is_lost_between_two_nodes_and_an_application(void **state)
{
	struct fixture *f = *state;
	_Atomic bool over = false;
	struct node nodes[2];
	pthread_t threads[3];

	for (unsigned i = 0; i < 2; i++)
		node_open(&nodes[i], f, 1000 * (i + 1));
	assert_int_equal(pthread_create(&threads[2], NULL, begin_main, &over), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &nodes[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&over, true);
	pthread_join(threads[2], NULL);
	assert_written_down(f);
	/* Whatever is left in progress ends, and whatever ended is reaped. */
	advance(f, 3 * LEASE_MS);
	while (sweep(f) > 0)
		;
	assert_int_equal(count_of("SELECT count(*) FROM hapax.operation WHERE state = 1"), 0);
	advance(f, RETENTION_MS + 1);
	for (unsigned i = 0; i < 40; i++)
		reap(f);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.operation WHERE state IN (2, 3)"), 0);
	assert_written_down(f);
	for (unsigned i = 0; i < 2; i++)
		node_close(&nodes[i]);
}

/* ---- the slow round ---- */

#define DAY_MS 86400000

/* Whatever somebody deletes by hand from the queues is found again within a day. */
static void the_slow_round_finds_what_nobody_wrote_down(void **state)
{
	struct fixture *f = *state;

	reap(f); /* the first round is over */
	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	complete(f, 2, A, "x");
	bring_to(f, 3, HPX_STATE_UNKNOWN, A);
	cluster_sql("DELETE FROM hapax.flight; DELETE FROM hapax.due; DELETE FROM hapax.aside");
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep(f), 0);
	advance(f, RETENTION_MS + DAY_MS);
	assert_int_equal(reap(f), 0);
	assert_int_equal(sweep(f), 1);
	assert_int_equal(reap(f), 1);
	assert_written_down(f);
	/* Once a day is enough. */
	long began = count_of("SELECT began FROM hapax.slow_round");
	reap(f);
	assert_int_equal(count_of("SELECT began FROM hapax.slow_round"), began);
	assert_int_equal(count_of("SELECT count(reached) FROM hapax.slow_round"), 0);
}

/* More rows than a part of it holds. */
static void the_slow_round_goes_on_where_it_was(void **state)
{
	struct fixture *f = *state;

	cluster_sql("INSERT INTO hapax.operation (id, rest, token, mark, recipe, created, owner, "
		    "retention, fingerprint, tenant_hash, tenant, scope, key, method, path, route, "
		    "lease_until, changed, attempt, state) SELECT u, u, u, u, u, 1, 1, 1, sha256(''), "
		    "sha256(''), '', '', n::text, '', '', '', 1, 1, 1, 1 "
		    "FROM (SELECT n, gen_random_uuid() AS u FROM generate_series(1, 4500) n) made");
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(count_of("SELECT coalesce(sum(cardinality(ids)), 0) FROM hapax.flight"),
				 2000 * i);
		reap(f);
	}
	assert_int_equal(count_of("SELECT sum(cardinality(ids)) FROM hapax.flight"), 4500);
	reap(f);
	assert_int_equal(count_of("SELECT sum(cardinality(ids)) FROM hapax.flight"), 4500);
}

/* An application settles an unknown operation, and does not commit: neither the slow round
 * nor the reaper waits for it. */
static void an_open_transaction_stalls_no_round(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	bring_to(f, 1, HPX_STATE_UNKNOWN, A);
	reserve(f, 2, BODY, A);
	complete(f, 2, A, "x");
	PQclear(cluster_ask(app, "BEGIN"));
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', '')",
					lease_of(1, token_of(A))),
			    "00000");
	advance(f, RETENTION_MS + DAY_MS);
	assert_int_equal(reap(f), 1);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.slow_round WHERE began > 0 AND reached IS NULL"), 1);
	PQclear(cluster_ask(app, "COMMIT"));
	PQfinish(app);
	assert_string_equal(state_of(f, 1), "completed");
	assert_written_down(f);
}

/* ---- ids of which only the first half agrees ---- */

static void another_rest_is_another_operation(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, 1, A);

	for (unsigned i = 0; i < 2; i++) {
		assert_string_equal(reserve(f, 1, BODY, A), i == 0 ? "created" : "mismatch");
		if (i == 0)
			complete(f, 1, A, "theirs");
		cluster_sql("UPDATE hapax.operation SET rest = '00000000-0000-0000-0000-000000000001'");
	}
	/* By the fast path and by the slow one. */
	fixture_reopen(f);
	for (unsigned i = 0; i < 2; i++)
		assert_string_equal(reserve(f, 1, BODY, B), "mismatch");
	assert_status(complete(f, 1, A, "mine"), HPX_STALE);
	assert_status(run_op(f, &op), HPX_NOT_FOUND);
	assert_string_equal(state_of(f, 1), "none");
	assert_int_equal(count_of("SELECT count((hapax.unpack_answer(o)).body) FROM hapax.operation o"), 0);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.operation WHERE state = 3 AND revision = 2"), 1);
}

/* ---- what the plain way costs ---- */

#define BATCHES 60
#define PER_BATCH 32

struct plain_attempt {
	struct hpx_ask ask;
	struct hpx_description description;
	struct hpx_record record;
	struct hpx_store_op op;
};

static void run_plain_batch(struct fixture *f, unsigned first_key, const struct hpx_answer *answer)
{
	struct plain_attempt attempts[PER_BATCH];
	struct hpx_store_op *ops[PER_BATCH];

	for (unsigned i = 0; i < PER_BATCH; i++) {
		struct plain_attempt *a = &attempts[i];
		a->ask = ask_of(f->store, first_key + i, BODY, A);
		a->description = (struct hpx_description){ .tenant = HPX_SPAN("a-tenant-of-usual-length"),
							   .scope = HPX_SPAN("default POST /payments"),
							   .key = HPX_SPAN("1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"),
							   .method = HPX_SPAN("POST"),
							   .path = HPX_SPAN("/payments"),
							   .route = HPX_SPAN("POST /payments") };
		a->op = op_of(HPX_VERB_RESERVE, first_key + i, A);
		a->op.reserve.ask = &a->ask;
		a->op.reserve.description = &a->description;
		ops[i] = &a->op;
	}
	assert_status(hpx_store_run(f->store, ops, PER_BATCH, NULL), HPX_OK);
	for (unsigned i = 0; i < PER_BATCH; i++) {
		struct plain_attempt *a = &attempts[i];
		int64_t row = a->op.reserve.row;
		a->record = a->op.decision.record;
		a->op = op_of(HPX_VERB_COMPLETE, first_key + i, A);
		a->op.complete.answer = answer;
		a->op.complete.believed = &a->record;
		a->op.complete.row = row;
	}
	assert_status(hpx_store_run(f->store, ops, PER_BATCH, NULL), HPX_OK);
}

/* Statistics are written when their connection ends. */
static void a_plain_operation_is_one_index_entry_and_a_hot_update(void **state)
{
	static const struct hpx_answer answer = { .status = 201, .kept = true, .headers = HPX_SPAN("Content-Type: application/json\r\n"), .body = HPX_SPAN("{\"id\":\"pay_1234567890\",\"status\":\"succeeded\",\"amount\":1000}") };
	struct fixture *f = *state;
	long count = BATCHES * PER_BATCH, updated, hot;

	cluster_sql("CREATE EXTENSION IF NOT EXISTS pgstattuple");
	reserve(f, 100000, BODY, A); /* sure of what is there */
	for (unsigned i = 0; i < BATCHES; i++)
		run_plain_batch(f, i * PER_BATCH, &answer);
	fixture_reopen(f);
	updated = count_of("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relid = 'hapax.operation'::regclass");
	hot = count_of("SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'hapax.operation'::regclass");
	print_message("%ld updates, %ld of them HOT\n", updated, hot);
	assert_int_equal(updated, count);
	assert_true(hot * 100 >= updated * 95);
	assert_in_range(count_of("SELECT tuple_count + dead_tuple_count FROM pgstattuple('hapax.operation_pkey')"),
			(unsigned long)count + 1, (unsigned long)(count + 1 + updated - hot));
	assert_int_equal(count_of("SELECT count(*) FROM pg_index WHERE indrelid = 'hapax.operation'::regclass"), 1);
	/* A row of flight, and one of due, for each batch. */
	assert_int_equal(count_of("SELECT count(*) FROM hapax.flight"), BATCHES + 1);
	assert_int_equal(count_of("SELECT count(*) FROM hapax.due"), BATCHES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(every_change_is_written_down),
		ON_POSTGRES(a_renewed_attempt_goes_into_another_row),
		ON_POSTGRES(what_is_kept_for_longer_goes_into_another_row),
		ON_POSTGRES(many_are_taken_in_parts),
		ON_POSTGRES(a_round_is_bounded_by_ids),
		ON_POSTGRES(what_goes_on_is_looked_at_once),
		ON_POSTGRES(a_crash_leaves_the_row_as_it_was),
		ON_POSTGRES(what_another_sweeper_takes_is_left_to_it),
		ON_POSTGRES(nothing_is_lost_between_two_nodes_and_an_application),
		ON_POSTGRES(the_slow_round_finds_what_nobody_wrote_down),
		ON_POSTGRES(the_slow_round_goes_on_where_it_was),
		ON_POSTGRES(an_open_transaction_stalls_no_round),
		ON_POSTGRES(another_rest_is_another_operation),
		ON_POSTGRES(a_plain_operation_is_one_index_entry_and_a_hot_update),
	};
	return run_on_drivers("flight", tests);
}
