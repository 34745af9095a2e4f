/* Shows that on PostgreSQL an op that only reports what is stored is released before
 * the commit of its batch: it waits neither for new keys nor for answers. The commit
 * is held back here until all such ops are released. */
#include "application.h"

#include "store/postgres/driver.h"

#define RELEASED_MAX 16

/* Keys of what the batch writes. */
enum { NEW = 100,
       END };

/* An op and what belongs to it. */
struct held_op {
	struct hpx_ask ask;
	struct hpx_description description;
	struct hpx_answer answer;
	struct hpx_record record;
	struct hpx_store_op op;
};

static void held_op_reserve(struct held_op *t, struct fixture *f, unsigned key, unsigned body,
			    unsigned token)
{
	*t = (struct held_op){ .description = { .tenant = HPX_SPAN("tenant"),
						.key = HPX_SPAN("new") } };
	t->ask = ask_of(f->store, key, body, token);
	t->op = op_of(HPX_VERB_RESERVE, key, token);
	t->op.reserve.ask = &t->ask;
	t->op.reserve.policy = policy();
	t->op.reserve.description = &t->description;
}

/* The end of an attempt that the store gave. */
static void held_op_complete(struct held_op *t, struct fixture *f, unsigned key, const char *body)
{
	held_op_reserve(t, f, key, BODY, A);
	t->description.key = HPX_SPAN("end");
	assert_status(run_op(f, &t->op), HPX_OK);
	t->record = t->op.decision.record;
	int64_t row = t->op.reserve.row;
	t->answer = (struct hpx_answer){
		.status = 201, .kept = true, .headers = HPX_SPAN(""), .body = hpx_span_of(body)
	};
	t->op = op_of(HPX_VERB_COMPLETE, key, A);
	t->op.complete.answer = &t->answer;
	t->op.complete.believed = &t->record;
	t->op.complete.row = row;
}

/* ---- a commit that waits ---- */

/* Who was told before the end of the run, and what was committed by then. */
struct hold {
	PGconn *conn;
	size_t until; /* the commit goes on after so many */
	size_t count;
	const struct hpx_store_op *released[RELEASED_MAX];
	long committed[RELEASED_MAX];
};

#define LOCK "7"

static void note_release(void *user, struct hpx_store_op *op)
{
	struct hold *hold = user;

	assert_in_range(hold->count, 0, RELEASED_MAX - 1);
	hold->committed[hold->count] =
		atol(ask(hold->conn, "SELECT count(*) FROM hapax.operation WHERE key = 'new' "
				     "OR (key = 'end' AND state = 3)"));
	hold->released[hold->count++] = op;
	/* What it pointed to may be gone from now on. */
	if (op->verb == HPX_VERB_RESERVE)
		op->reserve.ask = NULL, op->reserve.policy = NULL, op->reserve.description = NULL;
	if (hold->count == hold->until)
		PQclear(cluster_ask(hold->conn, "SELECT pg_advisory_unlock(" LOCK ")"));
}

/* A writer's lock_timeout is not what is tested; and a test that fails shall not
 * hold up the next one for ever. */
static void hold_init(struct hold *hold, struct fixture *f, size_t until)
{
	*hold = (struct hold){ .conn = cluster_connect(), .until = until };
	PQclear(cluster_ask(hold->conn, "SET idle_session_timeout = '20s'"));
	PQclear(cluster_ask(hold->conn, "SELECT pg_advisory_lock(" LOCK ")"));
	cluster_sql("CREATE FUNCTION hapax.hold() RETURNS trigger LANGUAGE plpgsql "
		    "SET lock_timeout = 0 AS $$ BEGIN PERFORM pg_advisory_xact_lock(" LOCK "); "
		    "RETURN NULL; END $$; "
		    "CREATE CONSTRAINT TRIGGER hold AFTER INSERT OR UPDATE ON hapax.operation "
		    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hapax.hold()");
	f->store->released = note_release;
	f->store->released_user = hold;
}

static void hold_done(struct hold *hold, struct fixture *f)
{
	f->store->released = NULL;
	cluster_sql("DROP TRIGGER hold ON hapax.operation; DROP FUNCTION hapax.hold()");
	PQfinish(hold->conn);
}

static bool was_released(const struct hold *hold, const struct hpx_store_op *op)
{
	for (size_t i = 0; i < hold->count; i++)
		if (hold->released[i] == op)
			return hold->committed[i] == 0;
	return false;
}

/* The store is sure of what it reads once it has committed something. */
static void be_sure(struct fixture *f)
{
	assert_string_equal(reserve(f, 999, BODY, A), "created");
}

static void run_turns(struct fixture *f, struct held_op *held_ops, size_t count)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store_op *ops[RELEASED_MAX];
	enum hpx_status status;

	assert_in_range(count, 1, RELEASED_MAX);
	for (size_t i = 0; i < count; i++)
		ops[i] = &held_ops[i].op;
	status = hpx_store_run(f->store, ops, count, problem);
	if (status != HPX_OK)
		fail_msg("%s: %s", hpx_status_name(status), problem);
}

static void free_turns(struct held_op *held_ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hpx_store_op_drop(&held_ops[i].op);
}

static const char *decision_of(const struct held_op *t)
{
	return t->op.status != HPX_OK ? hpx_status_name(t->op.status) : hpx_decision_name(t->op.decision.kind);
}

/* ---- which ops are released ---- */

static void is_completed(struct fixture *f, unsigned key)
{
	assert_string_equal(reserve(f, key, BODY, A), "created");
	assert_status(complete(f, key, A, "paid"), HPX_OK);
}

static void is_in_progress(struct fixture *f, unsigned key)
{
	assert_string_equal(reserve(f, key, BODY, A), "created");
}

static void is_renewed(struct fixture *f, unsigned key)
{
	assert_string_equal(reserve(f, key, BODY, A), "created");
	assert_status(act(f, HPX_VERB_RENEW, key, A), HPX_OK);
	/* Its own end has come; only the renewal keeps it. */
	cluster_sql("UPDATE hapax.operation SET lease_until = 1 "
		    "WHERE id = (SELECT id FROM hapax.lease)");
}

static void is_unknown(struct fixture *f, unsigned key)
{
	bring_to(f, key, HPX_STATE_UNKNOWN, A);
}

static void sql_about(const char *format, unsigned key)
{
	struct hpx_operation_id id = id_of(key);
	char hex[HPX_OPERATION_ID_SIZE + 1], sql[512];

	for (size_t i = 0; i < sizeof(id.bytes) / 2; i++)
		snprintf(hex + 2 * i, 3, "%02x", id.bytes[i]);
	snprintf(sql, sizeof(sql), format, hex);
	cluster_sql(sql);
}

static void is_not_whole(struct fixture *f, unsigned key)
{
	is_completed(f, key);
	sql_about("UPDATE hapax.operation SET fingerprint = 'x' WHERE id = '%s'", key);
}

static void has_a_corrupt_answer(struct fixture *f, unsigned key)
{
	is_completed(f, key);
	sql_about("UPDATE hapax.operation SET answer = overlay(answer PLACING 'paiD' FROM "
		  "octet_length(answer) - 3) WHERE id = '%s'",
		  key);
}

static void has_lost_its_answer(struct fixture *f, unsigned key)
{
	is_completed(f, key);
	sql_about("UPDATE hapax.operation SET answer = NULL WHERE id = '%s'", key);
}

static void was_not_kept(struct fixture *f, unsigned key)
{
	struct hpx_answer answer = { .status = 201, .headers = HPX_SPAN(""), .body = HPX_SPAN("") };
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, key, A);

	assert_string_equal(reserve(f, key, BODY, A), "created");
	op.complete.answer = &answer;
	assert_status(run_op(f, &op), HPX_OK);
}

/* What a key may be, and what a retry of it is told. */
static const struct {
	void (*make)(struct fixture *f, unsigned key);
	unsigned body; /* of the retries' requests */
	const char *decision;
	const char *replay; /* its body; NULL: none */
} cases[] = {
	{ is_completed, BODY, "replay", "paid" },
	{ is_completed, BODY + 1, "mismatch", NULL },
	{ is_in_progress, BODY, "in_progress", NULL },
	{ is_renewed, BODY, "in_progress", NULL },
	{ is_unknown, BODY, "unknown", NULL },
	{ is_not_whole, BODY, "unknown", NULL },
	{ has_a_corrupt_answer, BODY, "unknown", NULL },
	{ has_lost_its_answer, BODY, "unknown", NULL },
	{ was_not_kept, BODY, "replay", NULL },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void make_cases(struct fixture *f)
{
	be_sure(f);
	for (unsigned i = 0; i < CASES; i++)
		cases[i].make(f, i);
}

static void assert_case(size_t i, const struct held_op *t, const struct hold *hold)
{
	const struct hpx_answer *replay = t->op.reserve.replay;

	print_message("case %zu\n", i);
	assert_true(was_released(hold, &t->op));
	assert_string_equal(decision_of(t), cases[i].decision);
	assert_int_equal(replay != NULL, cases[i].replay != NULL);
	if (cases[i].replay != NULL)
		assert_span(replay->body, cases[i].replay);
}

static void whoever_retries_does_not_wait_for_a_new_key(void **state)
{
	struct fixture *f = *state;
	struct held_op held_ops[CASES + 1];
	struct hold hold;

	make_cases(f);
	hold_init(&hold, f, CASES);
	for (unsigned i = 0; i < CASES; i++)
		held_op_reserve(&held_ops[i], f, i, cases[i].body, B);
	held_op_reserve(&held_ops[CASES], f, NEW, BODY, A);
	run_turns(f, held_ops, CASES + 1);
	for (size_t i = 0; i < CASES; i++)
		assert_case(i, &held_ops[i], &hold);
	assert_string_equal(decision_of(&held_ops[CASES]), "created");
	assert_false(was_released(&hold, &held_ops[CASES].op));
	assert_string_equal(state_of(f, NEW), "in_progress");
	free_turns(held_ops, CASES);
	hold_done(&hold, f);
}

static void nor_for_an_answer_that_is_stored(void **state)
{
	struct fixture *f = *state;
	struct held_op held_ops[CASES + 1];
	struct hold hold;

	make_cases(f);
	held_op_complete(&held_ops[CASES], f, END, "end");
	hold_init(&hold, f, CASES);
	for (unsigned i = 0; i < CASES; i++)
		held_op_reserve(&held_ops[i], f, i, cases[i].body, B);
	run_turns(f, held_ops, CASES + 1);
	for (size_t i = 0; i < CASES; i++)
		assert_case(i, &held_ops[i], &hold);
	assert_status(held_ops[CASES].op.status, HPX_OK);
	assert_string_equal(body_of(f, END), "end");
	free_turns(held_ops, CASES);
	hold_done(&hold, f);
}

static void several_retries_of_one_key_are_all_released(void **state)
{
	for (unsigned i = 0; i < CASES; i++) {
		struct fixture *f = *state;
		struct held_op held_ops[4];
		struct hold hold;
		fixture_afresh(f);
		be_sure(f);
		cases[i].make(f, i);
		hold_init(&hold, f, 3);
		for (unsigned n = 0; n < 3; n++)
			held_op_reserve(&held_ops[n], f, i, cases[i].body, B + n);
		held_op_reserve(&held_ops[3], f, NEW, BODY, A);
		run_turns(f, held_ops, 4);
		for (unsigned n = 0; n < 3; n++)
			assert_case(i, &held_ops[n], &hold);
		assert_string_equal(decision_of(&held_ops[3]), "created");
		free_turns(held_ops, 4);
		hold_done(&hold, f);
	}
}

/* Neither of them inserts by the fast path. */
static void nor_does_a_look_or_an_asynchronous_retry_wait(void **state)
{
	static const struct hpx_job job = { .name = HPX_SPAN("j"), .target = HPX_SPAN("t"), .method = HPX_SPAN("POST"), .path = HPX_SPAN("/"), .headers = HPX_SPAN(""), .body = HPX_SPAN("") };
	struct fixture *f = *state;
	struct hpx_policy later = *policy();
	struct held_op held_ops[4];
	struct hold hold;

	be_sure(f);
	is_completed(f, 1);
	is_completed(f, 2);
	later.deliver = HPX_DELIVER_ASYNC;
	held_op_reserve(&held_ops[0], f, 1, BODY, B);
	held_ops[0].op.reserve.look = true;
	held_op_reserve(&held_ops[1], f, 2, BODY, B);
	held_ops[1].op.reserve.policy = &later;
	held_ops[1].op.reserve.job = &job;
	held_op_reserve(&held_ops[2], f, 3, BODY, B);
	held_ops[2].op.reserve.look = true;
	held_op_reserve(&held_ops[3], f, NEW, BODY, A);
	hold_init(&hold, f, 2);
	run_turns(f, held_ops, 4);
	for (size_t i = 0; i < 2; i++) {
		assert_true(was_released(&hold, &held_ops[i].op));
		assert_string_equal(decision_of(&held_ops[i]), "replay");
	}
	assert_status(held_ops[2].op.status, HPX_NOT_FOUND);
	assert_string_equal(state_of(f, 3), "none");
	assert_string_equal(decision_of(&held_ops[3]), "created");
	free_turns(held_ops, 4);
	hold_done(&hold, f);
}

/* By the end of the run; a replay of what the batch itself stores among them. */
static void what_rests_on_the_batch_waits_for_it(void **state)
{
	struct fixture *f = *state;
	struct held_op held_ops[5];
	struct hold hold;

	be_sure(f);
	is_completed(f, 1);
	is_in_progress(f, 2);
	held_op_complete(&held_ops[0], f, END, "end");
	held_op_reserve(&held_ops[1], f, END, BODY, B);
	held_op_reserve(&held_ops[2], f, NEW, BODY, A);
	held_op_reserve(&held_ops[3], f, 2, BODY, A); /* its own attempt, run again */
	held_op_reserve(&held_ops[4], f, 1, BODY, B);
	hold_init(&hold, f, 1);
	run_turns(f, held_ops, 5);
	assert_true(was_released(&hold, &held_ops[4].op));
	for (size_t i = 0; i < 4; i++)
		assert_false(was_released(&hold, &held_ops[i].op));
	assert_status(held_ops[0].op.status, HPX_OK);
	assert_string_equal(decision_of(&held_ops[1]), "replay");
	assert_span(held_ops[1].op.reserve.replay->body, "end");
	assert_string_equal(decision_of(&held_ops[2]), "created");
	assert_string_equal(decision_of(&held_ops[3]), "created");
	assert_int_equal(held_ops[3].op.decision.record.attempt, 1);
	free_turns(held_ops, 5);
	hold_done(&hold, f);
}

/* ---- who is not ---- */

static void an_expired_key_is_used_again_once(void **state)
{
	struct fixture *f = *state;
	struct held_op held_ops[5];
	struct hold hold;

	be_sure(f);
	is_completed(f, 1);
	is_completed(f, 2);
	advance(f, RETENTION_MS + 1);
	is_completed(f, 3);
	hold_init(&hold, f, 1);
	held_op_reserve(&held_ops[0], f, 1, BODY + 1, B);
	held_op_reserve(&held_ops[1], f, 1, BODY + 1, B + 1);
	held_op_reserve(&held_ops[2], f, 2, BODY, B);
	held_op_reserve(&held_ops[3], f, 3, BODY, B);
	held_op_reserve(&held_ops[4], f, NEW, BODY, A);
	run_turns(f, held_ops, 5);
	assert_string_equal(decision_of(&held_ops[0]), "created");
	assert_string_equal(decision_of(&held_ops[1]), "in_progress");
	assert_string_equal(decision_of(&held_ops[2]), "created");
	assert_string_equal(decision_of(&held_ops[3]), "replay");
	assert_string_equal(decision_of(&held_ops[4]), "created");
	assert_true(was_released(&hold, &held_ops[3].op));
	assert_false(was_released(&hold, &held_ops[0].op));
	assert_true(hpx_token_eq(&held_ops[1].op.decision.record.token, &held_ops[0].ask.token));
	assert_string_equal(state_of(f, 1), "in_progress");
	assert_string_equal(state_of(f, 2), "in_progress");
	free_turns(held_ops, 5);
	hold_done(&hold, f);
}

static void a_lease_that_ran_out_is_written_down(void **state)
{
	struct fixture *f = *state;
	struct held_op held_ops[2];

	be_sure(f);
	is_in_progress(f, 1);
	advance(f, LEASE_MS + 1);
	held_op_reserve(&held_ops[0], f, 1, BODY, B);
	held_op_reserve(&held_ops[1], f, NEW, BODY, A);
	run_turns(f, held_ops, 2);
	assert_string_equal(decision_of(&held_ops[0]), "unknown");
	assert_string_equal(decision_of(&held_ops[1]), "created");
	assert_string_equal(state_of(f, 1), "unknown");
}

/* ---- large answers ---- */

static char *large(size_t size)
{
	char *body = malloc(size + 1);

	assert_non_null(body);
	memset(body, 'x', size);
	body[size] = '\0';
	return body;
}

/* The bound is 4 MiB; the first always comes. What is left out comes behind the
 * commit, and whole. */
static void large_answers_come_as_far_as_they_fit(void **state)
{
	static const struct {
		size_t size;
		size_t early; /* of five retries */
	} rows[] = { { 1500000, 2 }, { 5000000, 1 }, { 4194304, 1 }, { 1000, 5 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *body = large(rows[i].size);
		struct held_op held_ops[6];
		struct hold hold;
		size_t early = 0;
		fixture_afresh(f);
		be_sure(f);
		for (unsigned key = 0; key < 5; key++) {
			assert_string_equal(reserve(f, key, BODY, A), "created");
			assert_status(complete(f, key, A, body), HPX_OK);
			held_op_reserve(&held_ops[key], f, key, BODY, B);
		}
		held_op_reserve(&held_ops[5], f, NEW, BODY, A);
		hold_init(&hold, f, rows[i].early);
		run_turns(f, held_ops, 6);
		for (unsigned key = 0; key < 5; key++) {
			early += was_released(&hold, &held_ops[key].op);
			assert_string_equal(decision_of(&held_ops[key]), "replay");
			assert_int_equal(held_ops[key].op.reserve.replay->body.len, rows[i].size);
			assert_memory_equal(held_ops[key].op.reserve.replay->body.ptr, body, rows[i].size);
		}
		assert_int_equal(early, rows[i].early);
		assert_string_equal(decision_of(&held_ops[5]), "created");
		free_turns(held_ops, 6);
		hold_done(&hold, f);
		free(body);
	}
}

/* ---- what fails afterwards ---- */

/* What was told was read from what is committed. */
static void a_commit_that_fails_takes_nothing_back(void **state)
{
	struct fixture *f = *state;
	struct held_op held_ops[2];
	struct hpx_store_op *ops[] = { &held_ops[0].op, &held_ops[1].op };
	struct hold hold;

	be_sure(f);
	is_completed(f, 1);
	held_op_reserve(&held_ops[0], f, 1, BODY, B);
	held_op_reserve(&held_ops[1], f, NEW, BODY, A);
	hold_init(&hold, f, 1);
	cluster_sql("CREATE OR REPLACE FUNCTION hapax.hold() RETURNS trigger LANGUAGE plpgsql "
		    "SET lock_timeout = 0 AS $$ BEGIN PERFORM pg_advisory_xact_lock(" LOCK "); "
		    "RAISE EXCEPTION 'no'; END $$");
	assert_status(hpx_store_run(f->store, ops, 2, NULL), HPX_IO);
	assert_null(ops[0]);
	assert_ptr_equal(ops[1], &held_ops[1].op);
	assert_true(was_released(&hold, &held_ops[0].op));
	assert_string_equal(decision_of(&held_ops[0]), "replay");
	assert_span(held_ops[0].op.reserve.replay->body, "paid");
	assert_string_equal(state_of(f, NEW), "none");
	free_turns(held_ops, 1);
	hold_done(&hold, f);
	/* The store goes on. */
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
}

/* ---- what is read beside the commit, and may not be told ---- */

struct early {
	struct hpx_pg_store *s;
	bool is; /* told while a commit was under way */
};

static void note_early(void *user, struct hpx_store_op *op)
{
	struct early *early = user;

	(void)op;
	early->is = early->s->commit_sure < early->s->commits_begun;
}

/* A retry and a new key in one batch: whether the retry was told before the end of the
 * commit. */
static bool is_told_early(struct fixture *f, unsigned new_key)
{
	struct early early = { .s = hpx_pg_of(f->store) };
	struct held_op held_ops[2];

	f->store->released = note_early;
	f->store->released_user = &early;
	held_op_reserve(&held_ops[0], f, 1, BODY, B);
	held_op_reserve(&held_ops[1], f, new_key, BODY, A);
	run_turns(f, held_ops, 2);
	f->store->released = NULL;
	assert_string_equal(decision_of(&held_ops[0]), "replay");
	assert_string_equal(decision_of(&held_ops[1]), "created");
	free_turns(held_ops, 2);
	return early.is;
}

static void be_ready(struct fixture *f)
{
	be_sure(f);
	is_completed(f, 1);
	assert_true(is_told_early(f, 100));
}

/* Its connection is lost. maintain() opens another, and that one is believed only after a
 * commit that began later. */
static void a_new_connection_is_believed_after_a_later_commit(void **state)
{
	struct fixture *f = *state;
	struct hpx_pg_store *s = hpx_pg_of(f->store);

	be_ready(f);
	hpx_pg_close(&s->replay);
	assert_false(is_told_early(f, 101));
	assert_false(is_told_early(f, 102)); /* nobody opened another */
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_false(is_told_early(f, 103)); /* opened while this commit was under way */
	assert_false(is_told_early(f, 104)); /* it ended; none has begun and ended since */
	assert_true(is_told_early(f, 105));
}

/* The server is another one, or another start of it: a primary that was replaced. */
static void another_server_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct hpx_pg_store *s = hpx_pg_of(f->store);

	be_ready(f);
	s->replay.server[0] ^= 1;
	assert_false(is_told_early(f, 101));
	assert_null(s->replay.conn); /* it is of no use any more */
	s->writer.server[0] ^= 1;
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	for (unsigned i = 0; i < 4; i++)
		assert_false(is_told_early(f, 102 + i));
}

/* Where the role may not ask which server it is, nothing is believed. */
static void a_server_without_a_name_is_not_believed(void **state)
{
	struct fixture *f = *state;
	struct hpx_pg_store *s = hpx_pg_of(f->store);

	be_ready(f);
	s->replay.server[0] = s->writer.server[0] = '\0';
	assert_false(is_told_early(f, 101));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(whoever_retries_does_not_wait_for_a_new_key),
		ON_POSTGRES(nor_for_an_answer_that_is_stored),
		ON_POSTGRES(several_retries_of_one_key_are_all_released),
		ON_POSTGRES(nor_does_a_look_or_an_asynchronous_retry_wait),
		ON_POSTGRES(what_rests_on_the_batch_waits_for_it),
		ON_POSTGRES(an_expired_key_is_used_again_once),
		ON_POSTGRES(a_lease_that_ran_out_is_written_down),
		ON_POSTGRES(large_answers_come_as_far_as_they_fit),
		ON_POSTGRES(a_commit_that_fails_takes_nothing_back),
		ON_POSTGRES(a_new_connection_is_believed_after_a_later_commit),
		ON_POSTGRES(another_server_is_not_believed),
		ON_POSTGRES(a_server_without_a_name_is_not_believed),
	};
	return run_on_drivers("early_release", tests);
}
