/* Shows that the fast path on PostgreSQL (a reservation, or the answer to a first
 * attempt, without a look) writes and tells what the slow path would: whatever
 * became of the row in between, whoever holds it, whatever else is in the batch,
 * and by the database's clock. */
#include "application.h"

#include "store/postgres/statement.h"

#define MANY 8

/* An attempt with its two ops, as a gateway makes them. */
struct attempt {
	struct hpx_ask ask;
	struct hpx_description description;
	struct hpx_answer answer;
	struct hpx_record record; /* as its reservation gave it */
	struct hpx_store_op begin;
	struct hpx_store_op end;
};

static void attempt_init(struct attempt *a, struct fixture *f, unsigned key, unsigned token,
			 const char *body)
{
	*a = (struct attempt){ .description = { .tenant = HPX_SPAN("tenant"),
						.key = HPX_SPAN("k") },
			       .answer = { .status = 201, .kept = true, .headers = HPX_SPAN("a: b\r\n"), .body = hpx_span_of(body) } };
	a->ask = ask_of(f->store, key, BODY, token);
	a->begin = op_of(HPX_VERB_RESERVE, key, token);
	a->begin.reserve.ask = &a->ask;
	a->begin.reserve.policy = policy();
	a->begin.reserve.description = &a->description;
	a->end = op_of(HPX_VERB_COMPLETE, key, token);
	a->end.complete.answer = &a->answer;
	a->end.complete.believed = &a->record;
}

/* The store is sure of what it reads once it has committed something. */
static void be_sure(struct fixture *f)
{
	assert_string_equal(reserve(f, 999, BODY, A), "created");
}

static void begin(struct fixture *f, struct attempt *a)
{
	assert_status(run_op(f, &a->begin), HPX_OK);
	assert_string_equal(hpx_decision_name(a->begin.decision.kind), "created");
	a->record = a->begin.decision.record;
	a->end.complete.row = a->begin.reserve.row;
}

static void run_batch(struct fixture *f, struct hpx_store_op **ops, size_t count)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = hpx_store_run(f->store, ops, count, problem);

	if (status != HPX_OK)
		fail_msg("%s: %s", hpx_status_name(status), problem);
}

static long count_of(const char *sql)
{
	PGconn *conn = cluster_connect();
	long count = atol(ask(conn, "%s", sql));

	PQfinish(conn);
	return count;
}

/* ---- what is written and told ---- */

static void assert_told(struct fixture *f, unsigned key, const struct hpx_store_op *op)
{
	struct hpx_record stored = record_of(f, key);
	char got[640], want[640];

	print_record(&op->decision.record, got, sizeof(got));
	print_record(&stored, want, sizeof(want));
	assert_string_equal(got, want);
	assert_int_equal(op->decision.record.created_ms, stored.created_ms);
	assert_int_equal(op->decision.record.changed_ms, stored.changed_ms);
	assert_int_equal(op->decision.record.expires_ms, stored.expires_ms);
	assert_int_equal(op->decision.record.lease_until_ms, stored.lease_until_ms);
	if (op->verb != HPX_VERB_COMPLETE || !op->complete.already)
		assert_int_equal(op->judged_ms, stored.changed_ms);
}

static void what_is_told_is_what_is_stored(void **state)
{
	static const int64_t shifts_ms[] = { 0, 5000, -7000, RETENTION_MS };
	struct fixture *f = *state;
	struct attempt a;

	be_sure(f);
	for (unsigned i = 0; i < sizeof(shifts_ms) / sizeof(shifts_ms[0]); i++) {
		advance(f, shifts_ms[i]);
		attempt_init(&a, f, i, A, "paid");
		begin(f, &a);
		assert_told(f, i, &a.begin);
		assert_int_equal(a.record.lease_until_ms - a.record.created_ms, LEASE_MS);
		assert_status(run_op(f, &a.end), HPX_OK);
		assert_told(f, i, &a.end);
		assert_int_equal(a.end.decision.record.expires_ms -
					 a.end.decision.record.changed_ms,
				 RETENTION_MS);
		assert_int_equal(a.end.decision.record.created_ms, a.record.created_ms);
		assert_false(a.end.complete.already);
		assert_string_equal(body_of(f, i), "paid");
		assert_string_equal(events_of(f, i), "");
	}
}

static void the_time_is_the_databases(void **state)
{
	struct fixture *f = *state;
	struct attempt a;

	be_sure(f);
	attempt_init(&a, f, 1, A, "paid");
	long before = count_of("SELECT hapax.clock_ms()");
	begin(f, &a);
	assert_status(run_op(f, &a.end), HPX_OK);
	long after = count_of("SELECT hapax.clock_ms()");
	assert_in_range(a.record.created_ms, before, after);
	assert_in_range(a.end.decision.record.changed_ms, a.record.created_ms, after);
}

/* The slow path would insert it by another statement. */
static void a_new_key_takes_one_statement(void **state)
{
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();
	PGresult *noted;
	struct attempt a;

	be_sure(f);
	attempt_init(&a, f, 1, A, "paid");
	cluster_sql("CREATE TABLE hapax.noted (sql text); CREATE FUNCTION hapax.note() "
		    "RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO hapax.noted "
		    "VALUES (current_query()); RETURN NEW; END $$; CREATE TRIGGER note "
		    "BEFORE INSERT ON hapax.operation FOR EACH ROW EXECUTE FUNCTION hapax.note()");
	begin(f, &a);
	assert_told(f, 1, &a.begin);
	noted = cluster_ask(conn, "SELECT sql FROM hapax.noted");
	assert_int_equal(PQntuples(noted), 1);
	assert_string_equal(PQgetvalue(noted, 0, 0), hpx_pg_sql(HPX_PG_RESERVE));
	PQclear(noted);
	PQfinish(conn);
}

static void a_batch_is_one_transaction(void **state)
{
	struct fixture *f = *state;
	struct attempt old[MANY], new[MANY];
	struct hpx_store_op *ops[2 * MANY];

	be_sure(f);
	for (unsigned i = 0; i < MANY; i++) {
		attempt_init(&old[i], f, i, A, "old");
		begin(f, &old[i]);
		attempt_init(&new[i], f, MANY + i, B, "new");
		ops[2 * i] = &old[i].end;
		ops[2 * i + 1] = &new[i].begin;
	}
	long before = count_of("SELECT pg_snapshot_xmax(pg_current_snapshot())");
	run_batch(f, ops, 2 * MANY);
	assert_int_equal(count_of("SELECT pg_snapshot_xmax(pg_current_snapshot())") - before, 1);
	for (unsigned i = 0; i < MANY; i++) {
		assert_status(old[i].end.status, HPX_OK);
		assert_string_equal(body_of(f, i), "old");
		assert_status(new[i].begin.status, HPX_OK);
		assert_string_equal(state_of(f, MANY + i), "in_progress");
	}
}

static void of_an_answer_is_stored_what_is_kept(void **state)
{
	static const struct {
		bool kept;
		const char *headers, *body;
		int64_t rows;
	} cases[] = {
		{ true, "a: b\r\n", "body", 1 },
		{ true, "", "", 1 },
		{ false, "Location: /x\r\n", "body", 1 },
		{ false, "", "body", 0 },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct attempt a;
		fixture_afresh(f);
		be_sure(f);
		attempt_init(&a, f, 1, A, cases[i].body);
		a.answer.kept = cases[i].kept;
		a.answer.headers = hpx_span_of(cases[i].headers);
		begin(f, &a);
		assert_status(run_op(f, &a.end), HPX_OK);
		assert_int_equal(count_of("SELECT count(answer) FROM hapax.operation"), cases[i].rows);
		assert_string_equal(reserve(f, 1, BODY, B), "replay");
		if (cases[i].kept)
			assert_string_equal(body_of(f, 1), cases[i].body);
	}
}

static void an_answer_that_was_left_over_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct attempt a;

	be_sure(f);
	attempt_init(&a, f, 1, A, "mine");
	begin(f, &a);
	cluster_sql("UPDATE hapax.operation SET answer = hapax.pack_answer(id, rest, '', 'not mine')");
	assert_status(run_op(f, &a.end), HPX_OK);
	assert_string_equal(body_of(f, 1), "mine");
}

/* Large bodies leave in parts; they are still one transaction. */
static void large_answers_are_all_stored(void **state)
{
	struct fixture *f = *state;
	struct attempt a[MANY];
	struct hpx_store_op *ops[MANY];
	size_t size = 1500000;
	char *body = malloc(size + 1);

	assert_non_null(body);
	memset(body, 'x', size);
	body[size] = '\0';
	be_sure(f);
	for (unsigned i = 0; i < MANY; i++) {
		attempt_init(&a[i], f, i, A, body);
		begin(f, &a[i]);
		ops[i] = &a[i].end;
	}
	run_batch(f, ops, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_status(a[i].end.status, HPX_OK);
	assert_int_equal(count_of("SELECT count((hapax.unpack_answer(o)).body) FROM hapax.operation o "
				  "WHERE o.state = 3"),
			 MANY);
	free(body);
}

/* ---- what became of the row in between ---- */

static void renewed(struct fixture *f)
{
	assert_status(act(f, HPX_VERB_RENEW, 1, A), HPX_OK);
}

static void forgotten(struct fixture *f)
{
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, 1, A);

	op.forget.force = true;
	assert_status(run_op(f, &op), HPX_OK);
}

static void forgotten_and_used_again(struct fixture *f)
{
	forgotten(f);
	assert_string_equal(reserve(f, 1, BODY, B), "created");
}

static void lost(struct fixture *f)
{
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, A), HPX_OK);
}

static void resolved_applied(struct fixture *f)
{
	lost(f);
	assert_status(resolve(f, 1, A, true), HPX_OK);
}

static void resolved_not_applied(struct fixture *f)
{
	lost(f);
	assert_status(resolve(f, 1, A, false), HPX_OK);
}

static void tried_again(struct fixture *f)
{
	resolved_not_applied(f);
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
}

static void as_application(const char *call)
{
	PGconn *app = cluster_connect();

	assert_string_equal(state_after(app, call, lease_of(1, token_of(A))), "00000");
	PQfinish(app);
}

static void advanced(struct fixture *f)
{
	(void)f;
	as_application("SELECT hapax.advance('%s', 'charged', 'ch_1')");
}

static void owed_a_job(struct fixture *f)
{
	(void)f;
	as_application("SELECT hapax.enqueue('%s', 'mail', 'mailer', 'POST', '/', '', '')");
}

static void completed_by_the_application(struct fixture *f)
{
	(void)f;
	as_application("SELECT hapax.complete('%s', 200, '', 'the application''s')");
}

static void damaged(struct fixture *f)
{
	(void)f;
	cluster_sql("UPDATE hapax.operation SET fingerprint = 'x', state = 9");
}

static void the_row_counts_and_not_what_was_believed(void **state)
{
	static const struct {
		void (*happens)(struct fixture *f);
		enum hpx_status status;
		const char *after, *body;
		bool already;
	} cases[] = {
		{ renewed, HPX_OK, "completed", "late", false },
		{ forgotten, HPX_STALE, "none", NULL, false },
		{ forgotten_and_used_again, HPX_STALE, "in_progress", NULL, false },
		{ lost, HPX_OK, "completed", "late", false },
		{ resolved_applied, HPX_OK, "completed", NULL, true },
		{ resolved_not_applied, HPX_STALE, "failed_retryable", NULL, false },
		{ tried_again, HPX_STALE, "in_progress", NULL, false },
		{ advanced, HPX_OK, "completed", "late", false },
		{ owed_a_job, HPX_OK, "completed", "late", false },
		{ completed_by_the_application, HPX_OK, "completed", "the application's", true },
		{ damaged, HPX_CORRUPT, "unreadable", NULL, false },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct attempt a, other;
		struct hpx_store_op *ops[] = { &a.end, &other.end };
		print_message("case %zu\n", i);
		fixture_afresh(f);
		be_sure(f);
		attempt_init(&a, f, 1, A, "late");
		begin(f, &a);
		attempt_init(&other, f, 2, A, "other");
		cases[i].happens(f);
		begin(f, &other);
		run_batch(f, ops, 2);
		assert_status(a.end.status, cases[i].status);
		assert_string_equal(state_of(f, 1), cases[i].after);
		assert_int_equal(a.end.complete.already, cases[i].already);
		if (cases[i].body != NULL)
			assert_string_equal(body_of(f, 1), cases[i].body);
		if (cases[i].status == HPX_OK)
			assert_told(f, 1, &a.end);
		/* Nobody else's trouble; and of an end, no lease is left. */
		assert_status(other.end.status, HPX_OK);
		assert_string_equal(body_of(f, 2), "other");
		assert_int_equal(count_of("SELECT count(*) FROM hapax.lease"), 0);
	}
}

static void a_key_that_is_there_is_looked_at(void **state)
{
	struct fixture *f = *state, other = { .store = NULL };
	struct attempt a, late, new;
	struct hpx_store_op *ops[] = { &late.begin, &new.begin };

	memcpy(other.url, f->url, sizeof(f->url));
	hpx_arena_init(&other.arena, 16 << 20);
	fixture_open(&other);
	be_sure(f);
	attempt_init(&a, &other, 1, A, "theirs");
	begin(&other, &a);
	attempt_init(&late, f, 1, B, "late");
	attempt_init(&new, f, 2, B, "new");
	run_batch(f, ops, 2);
	assert_string_equal(hpx_decision_name(late.begin.decision.kind), "in_progress");
	assert_string_equal(hpx_decision_name(new.begin.decision.kind), "created");
	assert_status(run_op(&other, &a.end), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	assert_string_equal(reserve(f, 1, 2, B), "mismatch");
	assert_status(complete(f, 1, B, "not mine"), HPX_STALE);
	/* One that expired is used again. */
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve(f, 1, 2, B), "created");
	fixture_close(&other);
	hpx_arena_done(&other.arena);
}

/* ---- whoever holds it ---- */

/* Had the batch waited, it would have failed as a whole. */
static void a_row_that_is_held_is_not_waited_for(void **state)
{
	static const struct {
		const char *call, *end;
		const char *body; /* at last */
	} cases[] = {
		{ "SELECT hapax.recovery('%s')", "COMMIT", "mine" },
		{ "SELECT hapax.complete('%s', 200, '', 'theirs')", "ROLLBACK", "mine" },
		{ "SELECT hapax.complete('%s', 200, '', 'theirs')", "COMMIT", "theirs" },
		{ "SELECT hapax.advance('%s', 'charged', '')", "COMMIT", "mine" },
	};
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct attempt held, free, retry, new;
		struct hpx_store_op *ops[] = { &held.end, &free.end };
		struct hpx_store_op *begins[] = { &retry.begin, &new.begin };
		fixture_afresh(f);
		be_sure(f);
		attempt_init(&held, f, 1, A, "mine");
		attempt_init(&free, f, 2, A, "free");
		begin(f, &held);
		begin(f, &free);
		PQclear(cluster_ask(app, "BEGIN"));
		assert_string_equal(state_after(app, cases[i].call, lease_of(1, token_of(A))),
				    "00000");
		run_batch(f, ops, 2);
		assert_status(held.end.status, HPX_BUSY);
		assert_status(free.end.status, HPX_OK);
		assert_status(run_op(f, &held.end), HPX_BUSY);
		attempt_init(&retry, f, 1, B, "retry");
		attempt_init(&new, f, 3, A, "new");
		run_batch(f, begins, 2);
		assert_string_equal(hpx_decision_name(retry.begin.decision.kind), "in_progress");
		assert_string_equal(hpx_decision_name(new.begin.decision.kind), "created");
		PQclear(cluster_ask(app, cases[i].end));
		assert_status(run_op(f, &held.end), HPX_OK);
		assert_string_equal(body_of(f, 1), cases[i].body);
	}
	PQfinish(app);
}

/* ---- whatever else is in the batch ---- */

static void ops_about_one_operation_follow_each_other(void **state)
{
	struct fixture *f = *state;
	struct attempt a, retry, first, second, other;
	struct hpx_store_op renew = op_of(HPX_VERB_RENEW, 3, A);
	struct hpx_store_op find = op_of(HPX_VERB_FIND, 1, A);

	be_sure(f);
	attempt_init(&a, f, 1, A, "paid");
	attempt_init(&retry, f, 1, B, "again");
	attempt_init(&first, f, 2, A, "first");
	attempt_init(&second, f, 2, B, "second");
	attempt_init(&other, f, 3, A, "other");
	begin(f, &a);
	begin(f, &other);
	struct hpx_store_op *ops[] = { &a.end, &retry.begin, &find, &first.begin,
				       &second.begin, &renew, &other.end };
	run_batch(f, ops, sizeof(ops) / sizeof(ops[0]));
	assert_status(a.end.status, HPX_OK);
	assert_string_equal(hpx_decision_name(retry.begin.decision.kind), "replay");
	assert_span(retry.begin.reserve.replay->body, "paid");
	assert_int_equal(find.decision.record.state, HPX_STATE_COMPLETED);
	assert_string_equal(hpx_decision_name(first.begin.decision.kind), "created");
	assert_string_equal(hpx_decision_name(second.begin.decision.kind), "in_progress");
	assert_status(renew.status, HPX_OK);
	assert_status(other.end.status, HPX_OK);
	assert_string_equal(body_of(f, 3), "other");
	assert_int_equal(count_of("SELECT count(*) FROM hapax.lease"), 0);
	hpx_answer_free(retry.begin.reserve.replay);
}

static void what_is_misuse_harms_nobody_else(void **state)
{
	struct fixture *f = *state;
	struct hpx_answer nothing = { .status = 0 };
	struct attempt a, b, c;
	struct hpx_store_op *ops[] = { &a.end, &b.begin, &c.begin };

	be_sure(f);
	attempt_init(&a, f, 1, A, "");
	attempt_init(&b, f, 2, 0, "");
	attempt_init(&c, f, 3, A, "");
	begin(f, &a);
	a.end.complete.answer = &nothing;
	run_batch(f, ops, 3);
	assert_status(a.end.status, HPX_MISUSE);
	assert_status(b.begin.status, HPX_MISUSE);
	assert_status(c.begin.status, HPX_OK);
	assert_string_equal(state_of(f, 1), "in_progress");
	assert_string_equal(state_of(f, 2), "none");
	assert_string_equal(state_of(f, 3), "in_progress");
}

/* ---- a store that is not sure ---- */

static void while_it_is_unsure_it_looks(void **state)
{
	struct fixture *f = *state;
	struct attempt a, new;
	struct hpx_store_op *ops[] = { &a.end, &new.begin };

	be_sure(f);
	attempt_init(&a, f, 1, A, "paid");
	begin(f, &a);
	fixture_reopen(f);
	attempt_init(&new, f, 2, A, "new");
	run_batch(f, ops, 2);
	assert_status(a.end.status, HPX_OK);
	assert_status(new.begin.status, HPX_OK);
	assert_told(f, 1, &a.end);
	assert_string_equal(body_of(f, 1), "paid");
	/* And again, as after a failure: it was committed before. */
	fixture_reopen(f);
	run_batch(f, ops, 2);
	assert_status(a.end.status, HPX_OK);
	assert_true(a.end.complete.already);
	assert_string_equal(hpx_decision_name(new.begin.decision.kind), "created");
	assert_int_equal(new.begin.decision.record.attempt, 1);
}

/* The same op run again, on a store that is sure. */
static void what_is_run_again_is_recognised(void **state)
{
	struct fixture *f = *state;
	struct attempt a;

	be_sure(f);
	attempt_init(&a, f, 1, A, "paid");
	begin(f, &a);
	begin(f, &a);
	assert_int_equal(a.record.attempt, 1);
	assert_status(run_op(f, &a.end), HPX_OK);
	assert_status(run_op(f, &a.end), HPX_OK);
	assert_true(a.end.complete.already);
	assert_string_equal(body_of(f, 1), "paid");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(what_is_told_is_what_is_stored),
		ON_POSTGRES(the_time_is_the_databases),
		ON_POSTGRES(a_new_key_takes_one_statement),
		ON_POSTGRES(a_batch_is_one_transaction),
		ON_POSTGRES(of_an_answer_is_stored_what_is_kept),
		ON_POSTGRES(an_answer_that_was_left_over_is_replaced),
		ON_POSTGRES(large_answers_are_all_stored),
		ON_POSTGRES(the_row_counts_and_not_what_was_believed),
		ON_POSTGRES(a_key_that_is_there_is_looked_at),
		ON_POSTGRES(a_row_that_is_held_is_not_waited_for),
		ON_POSTGRES(ops_about_one_operation_follow_each_other),
		ON_POSTGRES(what_is_misuse_harms_nobody_else),
		ON_POSTGRES(while_it_is_unsure_it_looks),
		ON_POSTGRES(what_is_run_again_is_recognised),
	};
	return run_on_drivers("fast_path", tests);
}
