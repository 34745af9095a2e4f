/* Shows that on PostgreSQL no batch waits for a row that an application holds,
 * and that no application is ever the victim of a deadlock with a gateway. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "cluster.h"
#include "store/committer.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

/* An application's open transaction that holds the row of this key. */
static void hold(PGconn *app, unsigned key)
{
	struct hpx_operation_id id = id_of(key);
	char hex[2 * HPX_OPERATION_ID_SIZE + 1], sql[256];

	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	snprintf(sql, sizeof(sql),
		 "SELECT 1 FROM hapax.operation WHERE id = '%.32s' FOR UPDATE", hex);
	PQclear(cluster_ask(app, sql));
}

static void end(PGconn *app)
{
	PQclear(cluster_ask(app, "COMMIT"));
	PQfinish(app);
}

static PGconn *begin(void)
{
	PGconn *app = cluster_connect();

	PQclear(cluster_ask(app, "BEGIN"));
	return app;
}

/* Bring a key into a state and hold it; what a reservation then gets. */
static void a_held_row_counts_as_alive(void **state)
{
	static const struct {
		enum hpx_verb verb; /* ends the first attempt; RESERVE: none does */
		const char *decision;
	} rows[] = {
		{ HPX_VERB_RESERVE, "in_progress" },
		{ HPX_VERB_COMPLETE, "replay" },
		{ HPX_VERB_MARK_UNKNOWN, "unknown" },
		{ HPX_VERB_FAIL, "in_progress" },
	};
	struct fixture *f = *state;

	for (unsigned key = 0; key < sizeof(rows) / sizeof(rows[0]); key++) {
		PGconn *app = begin();
		assert_string_equal(reserve(f, key, BODY, A), "created");
		if (rows[key].verb == HPX_VERB_COMPLETE)
			complete(f, key, A, "x");
		else if (rows[key].verb != HPX_VERB_RESERVE)
			act(f, rows[key].verb, key, A);
		hold(app, key);
		assert_string_equal(reserve(f, key, BODY, B), rows[key].decision);
		end(app);
	}
	assert_string_equal(reserve(f, 3, BODY, B), "retried");
}

/* A lost lease and an expired record are not touched either while held, and looked at
 * again a second later. */
static void a_held_row_is_neither_swept_nor_reaped(void **state)
{
	struct fixture *f = *state;
	PGconn *app = begin();

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	complete(f, 2, A, "x");
	hold(app, 1);
	hold(app, 2);
	advance(f, RETENTION_MS + 1);
	assert_int_equal(sweep(f), 0);
	assert_int_equal(reap(f), 0);
	assert_string_equal(reserve(f, 1, BODY, B), "in_progress");
	assert_string_equal(reserve(f, 2, BODY, B), "in_progress");
	end(app);
	advance(f, 1000);
	assert_int_equal(sweep(f), 1);
	assert_int_equal(reap(f), 1);
}

static void other_keys_are_not_slowed(void **state)
{
	struct fixture *f = *state;
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("y") };
	struct hpx_ask asks[2] = { ask_of(f->store, 1, BODY, B), ask_of(f->store, 3, BODY, B) };
	struct hpx_store_op ops[5] = { op_of(HPX_VERB_COMPLETE, 1, A), op_of(HPX_VERB_RENEW, 1, A),
				       op_of(HPX_VERB_RESERVE, 1, B), op_of(HPX_VERB_RESERVE, 3, B),
				       op_of(HPX_VERB_COMPLETE, 2, A) };
	struct hpx_store_op *batch[5] = { &ops[0], &ops[1], &ops[2], &ops[3], &ops[4] };
	PGconn *app = begin();

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	hold(app, 1);
	ops[0].complete.answer = ops[4].complete.answer = &answer;
	ops[2].reserve.ask = &asks[0];
	ops[3].reserve.ask = &asks[1];
	assert_status(hpx_store_run(f->store, batch, 5, NULL), HPX_OK);
	assert_status(ops[0].status, HPX_BUSY);
	assert_status(ops[1].status, HPX_OK);
	assert_string_equal(hpx_decision_name(ops[2].decision.kind), "in_progress");
	assert_string_equal(hpx_decision_name(ops[3].decision.kind), "created");
	assert_status(ops[4].status, HPX_OK);
	end(app);
	assert_string_equal(state_of(f, 1), "in_progress");
	assert_string_equal(state_of(f, 2), "completed");
}

/* What an application does through this process waits for nobody either: the
 * held one is put off, at once, and strangers go on. */
static void phases_and_jobs_of_other_keys_are_not_slowed(void **state)
{
	static const struct hpx_job job = { .name = HPX_SPAN("receipt"),
					    .target = HPX_SPAN("mailer"),
					    .method = HPX_SPAN("POST"),
					    .path = HPX_SPAN("/send") };
	struct fixture *f = *state;
	struct hpx_store_op ops[5] = { op_of(HPX_VERB_ADVANCE, 1, A), op_of(HPX_VERB_ENQUEUE, 1, A),
				       op_of(HPX_VERB_READ_POINT, 1, A), op_of(HPX_VERB_ADVANCE, 2, A),
				       op_of(HPX_VERB_ENQUEUE, 2, A) };
	struct hpx_store_op *batch[5] = { &ops[0], &ops[1], &ops[2], &ops[3], &ops[4] };
	PGconn *app = begin();

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	hold(app, 1);
	ops[0].advance.point = ops[3].advance.point = HPX_SPAN("charged");
	ops[1].enqueue.job = ops[4].enqueue.job = &job;
	int64_t begun_ms = hpx_clock_boot_ms();
	assert_status(hpx_store_run(f->store, batch, 5, NULL), HPX_OK);
	print_message("beside a held row: %lld ms\n", (long long)(hpx_clock_boot_ms() - begun_ms));
	assert_status(ops[0].status, HPX_BUSY);
	assert_status(ops[1].status, HPX_BUSY);
	assert_status(ops[2].status, HPX_OK); /* it only looks */
	assert_status(ops[3].status, HPX_OK);
	assert_status(ops[4].status, HPX_OK);
	end(app);
	assert_status(hpx_store_run(f->store, batch, 2, NULL), HPX_OK);
	assert_status(ops[0].status, HPX_OK);
	assert_status(ops[1].status, HPX_OK);
	assert_string_equal(record_of(f, 1).point, "charged");
	hpx_buffer_done(&ops[2].read_point.data);
}

static void an_answer_waits_for_the_application_and_is_stored(void **state)
{
	struct fixture *f = *state;
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("late") };
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct hpx_committer *committer;
	struct hpx_store_op held = op_of(HPX_VERB_COMPLETE, 1, A);
	struct hpx_store_op other = op_of(HPX_VERB_COMPLETE, 2, A);
	PGconn *app = begin();

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	hold(app, 1);
	assert_status(hpx_committer_start(&options, &committer), HPX_OK);
	held.complete.answer = other.complete.answer = &answer;
	hpx_committer_submit(committer, &held);
	hpx_committer_submit_wait(committer, &other);
	assert_status(other.status, HPX_OK);
	assert_string_equal(state_of(f, 1), "in_progress");
	end(app);
	hpx_committer_stop(committer, 10000);
	hpx_committer_free(committer);
	assert_status(held.status, HPX_OK);
	assert_string_equal(body_of(f, 1), "late");
}

/* An application (or a gateway that was stopped) has inserted the operation
 * and does not commit: only that key is refused, and soon. */
static void an_insert_under_way_holds_up_its_own_key_only(void **state)
{
	struct fixture *f = *state;
	struct hpx_operation_id id = id_of(1);
	char sql[512], hex[2 * HPX_OPERATION_ID_SIZE + 1];
	PGconn *app = begin();

	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	snprintf(sql, sizeof(sql),
		 "INSERT INTO hapax.operation (id, rest, token, mark, recipe, created, owner, "
		 "retention, fingerprint, tenant_hash, tenant, scope, key, method, path, route, "
		 "lease_until, changed, attempt, state) SELECT '%.32s', '%s', one, one, one, 1, 1, 1, "
		 "sha256(''), sha256(''), '', '', '', '', '', '', 1, 1, 1, 1 "
		 "FROM (SELECT repeat('01', 16)::uuid AS one) made",
		 hex, hex + 32);
	PQclear(cluster_ask(app, sql));
	assert_string_equal(reserve(f, 1, BODY, B), "BUSY");
	assert_string_equal(reserve(f, 2, BODY, B), "created");
	end(app);
	assert_string_equal(reserve(f, 1, BODY, B), "refingerprint");
}

/* ---- a ring of waits ---- */

#define RING_KEYS 4

struct ring {
	_Atomic bool over;
	_Atomic unsigned transactions;
	char trouble[256];
};

/* Takes two rows, in the order that applications agreed on. */
static void *application_main(void *user)
{
	struct ring *ring = user;
	PGconn *app = cluster_connect();

	for (unsigned i = 0; !atomic_load(&ring->over); i++) {
		PGresult *result = PQexec(app, "BEGIN; SELECT 1 FROM hapax.operation WHERE id = "
					       "(SELECT id FROM hapax.operation ORDER BY id LIMIT 1) "
					       "FOR UPDATE; "
					       "SELECT 1 FROM hapax.operation WHERE id = "
					       "(SELECT id FROM hapax.operation ORDER BY id DESC LIMIT 1) "
					       "FOR UPDATE; "
					       "UPDATE hapax.operation SET route = route || 'x' "
					       "WHERE length(route) < 20; COMMIT");
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			snprintf(ring->trouble, sizeof(ring->trouble), "%s", PQerrorMessage(app));
		PQclear(result);
		atomic_fetch_add(&ring->transactions, 1);
		if (ring->trouble[0] != '\0')
			break;
	}
	PQfinish(app);
	return NULL;
}

static void run_mixed_batch(struct fixture *f, unsigned round)
{
	struct hpx_ask asks[RING_KEYS];
	struct hpx_store_op ops[2 * RING_KEYS], *batch[2 * RING_KEYS];

	for (unsigned i = 0; i < RING_KEYS; i++) {
		unsigned key = round % 2 ? i : RING_KEYS - 1 - i;
		asks[i] = ask_of(f->store, key, BODY, 1000 + round * RING_KEYS + i);
		ops[2 * i] = op_of(HPX_VERB_RESERVE, key, 1000 + round * RING_KEYS + i);
		ops[2 * i].reserve.ask = &asks[i];
		ops[2 * i + 1] = op_of(HPX_VERB_FAIL, key, 1000 + round * RING_KEYS + i);
	}
	for (unsigned i = 0; i < 2 * RING_KEYS; i++)
		batch[i] = &ops[i];
	assert_status(hpx_store_run(f->store, batch, 2 * RING_KEYS, NULL), HPX_OK);
}

static void no_application_is_a_deadlocks_victim(void **state)
{
	struct fixture *f = *state;
	struct ring ring = { .over = false };
	pthread_t threads[2];
	int64_t slowest_ms = 0;

	cluster_sql("ALTER DATABASE postgres SET deadlock_timeout = '20ms'");
	fixture_reopen(f);
	run_mixed_batch(f, 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, application_main, &ring), 0);
	for (unsigned round = 1; round < 400; round++) {
		int64_t begun_ms = hpx_clock_boot_ms();
		run_mixed_batch(f, round);
		if (hpx_clock_boot_ms() - begun_ms > slowest_ms)
			slowest_ms = hpx_clock_boot_ms() - begun_ms;
	}
	atomic_store(&ring.over, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	cluster_sql("ALTER DATABASE postgres RESET deadlock_timeout");
	print_message("%u application transactions, slowest batch %lld ms\n",
		      atomic_load(&ring.transactions), (long long)slowest_ms);
	assert_string_equal(ring.trouble, "");
	assert_true(atomic_load(&ring.transactions) > 0);
}

/* A misuse is noted whoever holds the row, and holds nobody up; while another gateway
 * notes the same one, it is put off. */
static void a_misuse_waits_only_for_its_own_kind(void **state)
{
	struct fixture *f = *state;
	struct hpx_operation_id id = id_of(1);
	char hex[2 * HPX_OPERATION_ID_SIZE + 1], sql[256];
	PGconn *app = begin(), *gateway = begin();

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	hold(app, 1);
	hold(app, 2);
	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	snprintf(sql, sizeof(sql),
		 "SELECT pg_advisory_xact_lock(hashtextextended('%.32s'::uuid::text, 0))", hex);
	PQclear(cluster_ask(gateway, sql));
	assert_status(act(f, HPX_VERB_NOTE_MISUSE, 1, A), HPX_BUSY);
	assert_status(act(f, HPX_VERB_NOTE_MISUSE, 2, A), HPX_OK);
	end(gateway);
	assert_status(act(f, HPX_VERB_NOTE_MISUSE, 1, A), HPX_OK);
	end(app);
	assert_string_equal(events_of(f, 1), "misused");
	assert_string_equal(events_of(f, 2), "misused");
}

#define MISUSED_KEYS 50

static void *note_all(void *user)
{
	struct hpx_store *store = user;

	for (unsigned key = 0; key < MISUSED_KEYS; key++) {
		struct hpx_store_op op = op_of(HPX_VERB_NOTE_MISUSE, key, A);
		struct hpx_store_op *ops[] = { &op };
		do {
			if (hpx_store_run(store, ops, 1, NULL) != HPX_OK)
				return user;
		} while (op.status == HPX_BUSY);
		if (op.status != HPX_OK)
			return user;
	}
	return NULL;
}

/* Two gateways see the same misuses at the same time: each is in the history once. */
static void two_gateways_note_one_misuse(void **state)
{
	struct fixture *f = *state;
	char url[PATH_MAX];
	struct hpx_store_options options = { .serve = true };
	struct hpx_store *other = NULL;
	void *trouble = NULL;
	pthread_t thread;

	cluster_url(url, sizeof(url));
	options.url = hpx_span_of(url);
	assert_status(hpx_store_open(&options, &other, NULL), HPX_OK);
	for (unsigned key = 0; key < MISUSED_KEYS; key++)
		reserve(f, key, BODY, A);
	assert_int_equal(pthread_create(&thread, NULL, note_all, other), 0);
	assert_null(note_all(f->store));
	pthread_join(thread, &trouble);
	assert_null(trouble);
	hpx_store_close(other);
	for (unsigned key = 0; key < MISUSED_KEYS; key++)
		assert_string_equal(events_of(f, key), "misused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(a_held_row_counts_as_alive),
		ON_POSTGRES(a_held_row_is_neither_swept_nor_reaped),
		ON_POSTGRES(other_keys_are_not_slowed),
		ON_POSTGRES(phases_and_jobs_of_other_keys_are_not_slowed),
		ON_POSTGRES(an_answer_waits_for_the_application_and_is_stored),
		ON_POSTGRES(an_insert_under_way_holds_up_its_own_key_only),
		ON_POSTGRES(a_misuse_waits_only_for_its_own_kind),
		ON_POSTGRES(two_gateways_note_one_misuse),
		ON_POSTGRES(no_application_is_a_deadlocks_victim),
	};
	return run_on_drivers("lock", tests);
}
