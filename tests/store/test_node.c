/* Shows that several processes on one PostgreSQL act as one: what one does, the
 * others see; who waits is woken by whoever ends the attempt; a connection that
 * is lost, or a commit that is not known to be safe, loses and repeats nothing. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cluster.h"
#include "store/committer.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

/* Another process on the same database. */
static void other_open(struct fixture *other, const struct fixture *f)
{
	*other = (struct fixture){ .store = NULL };
	memcpy(other->url, f->url, sizeof(f->url));
	hpx_arena_init(&other->arena, 16 << 20);
	fixture_open(other);
}

static void other_close(struct fixture *other)
{
	fixture_close(other);
	hpx_arena_done(&other->arena);
}

static void one_executes_and_the_others_replay(void **state)
{
	struct fixture *f = *state, other;

	other_open(&other, f);
	assert_string_equal(reserve(f, 1, BODY, A), "created");
	assert_string_equal(reserve(&other, 1, BODY, B), "in_progress");
	assert_string_equal(reserve(&other, 1, 2, B), "mismatch");
	assert_status(complete(&other, 1, B, "not mine"), HPX_STALE);
	assert_status(complete(f, 1, A, "mine"), HPX_OK);
	assert_string_equal(reserve(&other, 1, BODY, B), "replay");
	assert_string_equal(body_of(&other, 1), "mine");
	other_close(&other);
}

static void a_start_takes_nobodys_lease(void **state)
{
	struct fixture *f = *state, other;

	reserve(f, 1, BODY, A);
	other_open(&other, f);
	assert_int_equal(hpx_counter_read(&other.store->lost_at_open), 0);
	assert_int_equal(sweep(&other), 0);
	assert_string_equal(state_of(f, 1), "in_progress");
	advance(&other, LEASE_MS + 1);
	assert_int_equal(sweep(&other), 1);
	assert_string_equal(state_of(f, 1), "unknown");
	other_close(&other);
}

/* Both decide on an absent row; the later insert finds out, and decides anew. */
struct racer {
	struct fixture f;
	pthread_t thread;
	pthread_barrier_t *barrier;
	unsigned created;
	unsigned other_decisions;
};

#define RACE_KEYS 200

static void *racer_main(void *user)
{
	struct racer *racer = user;

	for (unsigned key = 0; key < RACE_KEYS; key++) {
		struct hpx_ask ask = ask_of(racer->f.store, key, BODY,
					    (unsigned)racer->f.store->owner | 1);
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, 0);
		struct hpx_store_op *batch = &op;
		op.reserve.ask = &ask;
		pthread_barrier_wait(racer->barrier);
		if (hpx_store_run(racer->f.store, &batch, 1, NULL) != HPX_OK ||
		    op.status != HPX_OK)
			racer->other_decisions++;
		else if (op.decision.kind == HPX_DECISION_EXECUTE)
			racer->created++;
		else if (op.decision.kind != HPX_DECISION_IN_PROGRESS)
			racer->other_decisions++;
	}
	return NULL;
}

static void of_two_that_insert_at_once_one_executes(void **state)
{
	struct fixture *f = *state;
	pthread_barrier_t barrier;
	struct racer racers[2];

	pthread_barrier_init(&barrier, NULL, 2);
	for (unsigned i = 0; i < 2; i++) {
		racers[i] = (struct racer){ .barrier = &barrier };
		other_open(&racers[i].f, f);
		assert_int_equal(pthread_create(&racers[i].thread, NULL, racer_main, &racers[i]),
				 0);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(racers[i].thread, NULL);
	print_message("%u and %u of %u\n", racers[0].created, racers[1].created, RACE_KEYS);
	assert_int_equal(racers[0].created + racers[1].created, RACE_KEYS);
	assert_int_equal(racers[0].other_decisions + racers[1].other_decisions, 0);
	for (unsigned i = 0; i < 2; i++)
		other_close(&racers[i].f);
	pthread_barrier_destroy(&barrier);
}

static void *open_main(void *user)
{
	fixture_open(user);
	return NULL;
}

static void gateways_that_start_together_migrate_once(void **state)
{
	struct fixture *f = *state, others[4];
	pthread_t threads[4];

	cluster_sql("DROP SCHEMA hapax CASCADE");
	for (unsigned i = 0; i < 4; i++) {
		others[i] = (struct fixture){ .store = NULL };
		memcpy(others[i].url, f->url, sizeof(f->url));
		hpx_arena_init(&others[i].arena, 1 << 20);
		assert_int_equal(pthread_create(&threads[i], NULL, open_main, &others[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_string_equal(reserve(&others[i], i, BODY, A), "created");
		other_close(&others[i]);
	}
}

/* ---- waiting ---- */

struct wakeup {
	struct hpx_waiter waiter;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool woken;
};

static void wake(struct hpx_waiter *waiter)
{
	struct wakeup *wakeup = waiter->user;

	pthread_mutex_lock(&wakeup->mutex);
	wakeup->woken = true;
	pthread_cond_signal(&wakeup->cond);
	pthread_mutex_unlock(&wakeup->mutex);
}

static void await(struct wakeup *wakeup)
{
	pthread_mutex_lock(&wakeup->mutex);
	while (!wakeup->woken)
		pthread_cond_wait(&wakeup->cond, &wakeup->mutex);
	pthread_mutex_unlock(&wakeup->mutex);
}

static void a_waiter_is_woken_by_another_process(void **state)
{
	static const enum hpx_verb verbs[] = { HPX_VERB_COMPLETE, HPX_VERB_FAIL, HPX_VERB_RELEASE,
					       HPX_VERB_MARK_UNKNOWN };
	struct fixture *f = *state, other;
	struct hpx_waitlist *waitlist = hpx_waitlist_new(10, 100);
	struct hpx_committer_options options = { .waitlist = waitlist };
	struct hpx_committer *committer;

	other_open(&other, f);
	options.store = other.store;
	assert_status(hpx_committer_start(&options, &committer), HPX_OK);
	for (unsigned key = 0; key < sizeof(verbs) / sizeof(verbs[0]); key++) {
		struct wakeup wakeup = { .mutex = PTHREAD_MUTEX_INITIALIZER,
					 .cond = PTHREAD_COND_INITIALIZER };
		wakeup.waiter = (struct hpx_waiter){ .id = id_of(key), .wake = wake, .user = &wakeup };
		reserve(f, key, BODY, A);
		assert_status(hpx_waitlist_add(waitlist, &wakeup.waiter), HPX_OK);
		assert_status(verbs[key] == HPX_VERB_COMPLETE ? complete(f, key, A, "x") :
								act(f, verbs[key], key, A),
			      HPX_OK);
		await(&wakeup);
	}
	hpx_committer_stop(committer, 1000);
	hpx_committer_free(committer);
	other_close(&other);
	hpx_waitlist_free(waitlist);
}

/* ---- lost connections and commits nobody can be sure of ---- */

#define ALL_BACKENDS "FROM pg_stat_activity WHERE application_name = 'hapax'"

static void a_lost_connection_is_opened_anew(void **state)
{
	struct fixture *f = *state;
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct hpx_committer *committer;

	assert_status(hpx_committer_start(&options, &committer), HPX_OK);
	for (unsigned key = 0; key < 20; key++) {
		struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("x") };
		struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, key, A);
		reserve(f, key, BODY, A);
		op.complete.answer = &answer;
		cluster_sql("SELECT pg_terminate_backend(pid) " ALL_BACKENDS);
		hpx_committer_submit_wait(committer, &op);
		assert_status(op.status, HPX_OK);
		assert_string_equal(state_of(f, key), "completed");
	}
	hpx_committer_stop(committer, 1000);
	hpx_committer_free(committer);
}

struct standby {
	struct fixture *f;
	unsigned token;
	enum hpx_status status;
	const char *decision;
};

static void *reserve_main(void *user)
{
	struct standby *s = user;
	struct hpx_ask ask = ask_of(s->f->store, 1, BODY, s->token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, s->token);
	struct hpx_store_op *batch = &op;

	op.reserve.ask = &ask;
	s->status = hpx_store_run(s->f->store, &batch, 1, NULL);
	s->decision = s->status == HPX_OK ? hpx_decision_name(op.decision.kind) : "";
	return NULL;
}

/* The reservation's commit waits for a standby that is not there; the wait is
 * cancelled, as an operator or a timeout would. */
static void cancel_the_wait(struct standby *s)
{
	pthread_t thread;
	PGconn *conn = cluster_connect();
	bool cancelled = false;

	assert_int_equal(pthread_create(&thread, NULL, reserve_main, s), 0);
	while (!cancelled) {
		PGresult *result = cluster_ask(conn, "SELECT pg_cancel_backend(pid) " ALL_BACKENDS
						     " AND wait_event = 'SyncRep'");
		cancelled = PQntuples(result) > 0;
		PQclear(result);
	}
	pthread_join(thread, NULL);
	PQfinish(conn);
}

static void await_setting(const char *value)
{
	PGconn *conn = cluster_connect();
	bool there = false;

	while (!there) {
		PGresult *result = cluster_ask(conn, "SHOW synchronous_standby_names");
		there = strcmp(PQgetvalue(result, 0, 0), value) == 0;
		PQclear(result);
	}
	PQfinish(conn);
}

static void a_cancelled_wait_for_the_standby_is_not_durable(void **state)
{
	struct fixture *f = *state;
	struct standby s = { .f = f, .token = A };

	reserve(f, 9, BODY, A); /* sure of what is there */
	cluster_sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	cluster_sql("SELECT pg_reload_conf()");
	await_setting("nobody");
	cancel_the_wait(&s);
	assert_status(s.status, HPX_IO);
	/* It is readable, and its own; still nothing may be told of it. */
	assert_string_equal(state_of(f, 1), "in_progress");
	cancel_the_wait(&s);
	assert_status(s.status, HPX_IO);
	cluster_sql("ALTER SYSTEM RESET synchronous_standby_names");
	cluster_sql("SELECT pg_reload_conf()");
	await_setting("");
	reserve_main(&s);
	assert_status(s.status, HPX_OK);
	assert_string_equal(s.decision, "created");
	assert_int_equal(record_of(f, 1).attempt, 1);
}

/* ---- damage ---- */

/* A word of a later version, or of a person's hand, decides nothing and harms nothing. */
static void an_error_that_is_not_known_is_another_one(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "paid");
	cluster_sql("UPDATE hapax.operation SET last_error = 'the moon'");
	assert_string_equal(hpx_last_error_name(record_of(f, 1).last_error), "other");
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
}

/* Mistake 19: a corrupt record is deleted and the payment runs again. */
static void what_cannot_be_read_is_unknown_and_stays(void **state)
{
#define UNCHECKED(column, value) "UPDATE hapax.operation SET " column " = " value
	static const char *const damages[] = {
		UNCHECKED("answer", "NULL"),
		UNCHECKED("answer", "''"),
		UNCHECKED("answer", "answer || 'x'"),
		UNCHECKED("answer", "hapax.pack_answer(id, id, '', 'another''s')"),
		UNCHECKED("state", "99"),
		UNCHECKED("fingerprint", "'x'"),
		UNCHECKED("tenant_hash", "''"),
		UNCHECKED("expires", "-1"),
		UNCHECKED("attempt", "0"),
		UNCHECKED("retention", "-1"),
		UNCHECKED("status", "1000"),
		UNCHECKED("when_lost", "3"),
		UNCHECKED("point", "'two words'"),
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct hpx_looked looked;
		struct hpx_query unknowns = { .state = HPX_STATE_UNKNOWN, .limit = 9 };
		struct hpx_store_op op = op_of(HPX_VERB_RESOLVE, 1, A);
		struct hpx_entry *entries = NULL;
		size_t count = 0;

		fixture_afresh(f);
		reserve(f, 1, BODY, A);
		complete(f, 1, A, "paid");
		cluster_sql(damages[i]);
		assert_string_equal(reserve(f, 1, BODY, B), "unknown");
		assert_string_equal(state_of(f, 1), "unreadable");
		assert_status(run_op(f, &op), HPX_CORRUPT);
		if (i < 4)
			continue; /* the record itself is whole, and expires */
		assert_status(hpx_store_list(f->reader, &unknowns, &f->arena, &entries, &count, &looked),
			      HPX_OK);
		assert_int_equal(count, 1);
		advance(f, RETENTION_MS + 1);
		assert_int_equal(reap(f), 0);
		op.resolve.force = op.resolve.applied = true;
		assert_status(run_op(f, &op), HPX_OK);
	}
}

/* ---- addresses ---- */

static void a_password_is_never_shown(void **state)
{
	static const char *const urls[] = {
		"postgres://hapax:s3cr3t@127.0.0.1:1/x",
		"postgres://hapax:s3cr3t@[::1/x",
		"postgresql://hapax:s3cr3t@127.0.0.1:1/x?sslmode=s3cr3t",
		"postgres://127.0.0.1:1/x?password=s3cr3t&nonsense=1",
	};
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct hpx_store *store = NULL;
		char problem[HPX_STORE_PROBLEM_SIZE];
		options.url = hpx_span_of(urls[i]);
		assert_true(hpx_store_open(&options, &store, problem) != HPX_OK);
		assert_string_not_equal(problem, "");
		if (strstr(problem, ":s3cr3t") != NULL || strstr(problem, "=s3cr3t") != NULL)
			fail_msg("%s is shown: %s", urls[i], problem);
	}
}

static void bytes_that_are_no_text_are_stored_as_question_marks(void **state)
{
	struct fixture *f = *state;
	struct hpx_ask ask = ask_of(f->store, 1, BODY, A);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, A);
	struct hpx_description description = { .tenant = HPX_SPAN("a\xff\0é\xc3"),
					       .key = HPX_SPAN("k") };
	struct hpx_operation_id id = id_of(1);
	struct hpx_entry entry;

	op.reserve.ask = &ask;
	op.reserve.description = &description;
	assert_status(run_op(f, &op), HPX_OK);
	assert_status(hpx_store_find(f->reader, &id, &f->arena, &entry, NULL), HPX_OK);
	assert_span(entry.description.tenant, "a??é?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(one_executes_and_the_others_replay),
		ON_POSTGRES(a_start_takes_nobodys_lease),
		ON_POSTGRES(of_two_that_insert_at_once_one_executes),
		ON_POSTGRES(gateways_that_start_together_migrate_once),
		ON_POSTGRES(a_waiter_is_woken_by_another_process),
		ON_POSTGRES(a_lost_connection_is_opened_anew),
		ON_POSTGRES(a_cancelled_wait_for_the_standby_is_not_durable),
		ON_POSTGRES(an_error_that_is_not_known_is_another_one),
		ON_POSTGRES(what_cannot_be_read_is_unknown_and_stays),
		ON_POSTGRES(a_password_is_never_shown),
		ON_POSTGRES(bytes_that_are_no_text_are_stored_as_question_marks),
	};
	return run_on_drivers("node", tests);
}
