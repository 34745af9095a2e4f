/* Shows how unknown outcomes end, on every store that keeps an outbox: by what
 * somebody says of an operation or of a job, before or after it was lost, once
 * or twice; who asks about them, and when; and when it is left to a person. */
#include "delivery.h"

#include <sqlite3.h>

#include "cluster.h"

enum { A = 1,
       B = 2 };
#define BODY 1

static void lose(struct fixture *f, unsigned key)
{
	reserve(f, key, BODY, A);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, key, A), HPX_OK);
}

/* Behind the store's back; each %s is where its tables are. */
static void run_sql(struct fixture *f, const char *format)
{
	const char *place = fixture_is_postgres(f) ? "hapax." : "hapax_";
	char sql[512];
	sqlite3 *db = NULL;

	snprintf(sql, sizeof(sql), format, place, place);
	if (fixture_is_postgres(f)) {
		cluster_sql(sql);
		return;
	}
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void each_ruling_on_an_operation(void **state)
{
	static const struct {
		enum hpx_ruling ruling;
		const char *move, *after;
		unsigned status;
	} rows[] = {
		{ HPX_RULING_APPLIED, "settle_applied", "completed", 0 }, /* nobody saw its status */
		{ HPX_RULING_DECLINED, "settle_declined", "completed", 402 },
		{ HPX_RULING_NOT_APPLIED, "ask_again", "unknown", 0 },
		{ HPX_RULING_NOT_YET, "ask_again", "unknown", 0 },
		{ HPX_RULING_UNCLEAR, "ask_again", "unknown", 0 },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		lose(f, i);
		assert_string_equal(rule(f, i, B, 0, rows[i].ruling, true),
				    hpx_status_name(HPX_STALE));
		assert_string_equal(rule(f, i, A, 0, rows[i].ruling, true), rows[i].move);
		assert_string_equal(state_of(f, i), rows[i].after);
		assert_int_equal(record_of(f, i).status, rows[i].status);
	}
	assert_string_equal(rule(f, 99, A, 0, HPX_RULING_APPLIED, true),
			    hpx_status_name(HPX_NOT_FOUND));
	/* Nothing overrides what is completed. */
	assert_string_equal(rule(f, 0, A, 0, HPX_RULING_DECLINED, true), "stay");
	assert_int_equal(record_of(f, 0).status, 0);
	assert_non_null(strstr(body_of(f, 1), "declined"));
}

static void not_applied_counts_after_its_time_and_twice(void **state)
{
	struct fixture *f = *state;

	lose(f, 1);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_APPLIED, false), "stay");
	advance(f, SETTLE_MS);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_APPLIED, true), "ask_again");
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_APPLIED, false), "stay");
	assert_string_equal(state_of(f, 1), "unknown");
	advance(f, SETTLE_MS);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_APPLIED, true), "settle_not_applied");
	assert_string_equal(state_of(f, 1), "failed_retryable");
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
	/* The late answer of the attempt that never was writes nothing. */
	assert_status(complete(f, 1, A, "late"), HPX_STALE);
}

/* The question belongs to one time of not knowing: the next begins anew. */
static void what_is_lost_again_is_asked_anew(void **state)
{
	struct fixture *f = *state;

	lose(f, 1);
	advance(f, SETTLE_MS);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_APPLIED, true), "ask_again");
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, B), HPX_OK);
	advance(f, SETTLE_MS);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_APPLIED, true), "ask_again");
}

static void each_ruling_on_a_job(void **state)
{
	static const struct {
		enum hpx_ruling ruling;
		unsigned times;
		const char *move, *job, *operation;
	} rows[] = {
		{ HPX_RULING_APPLIED, 1, "settle_applied", "done", "completed" },
		{ HPX_RULING_DECLINED, 1, "settle_declined", "dead", "completed" },
		{ HPX_RULING_NOT_APPLIED, 2, "settle_not_applied", "queued", "pending" },
		{ HPX_RULING_NOT_YET, 1, "ask_again", "unknown", "unknown" },
		{ HPX_RULING_NOT_YET, 2, "a_person", "unknown", "unknown" },
	};
	struct fixture *f = *state;

	/* By the job's number, and by the operation that it answers for. */
	for (unsigned i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned row = i / 2;
		const char *move = "";
		struct hpx_delivery d;
		fixture_afresh(f);
		accept_later(f, 1, A);
		d = claim_one(f, 0);
		assert_status(end_job(f, &d, HPX_JOB_MOVE_LOSE), HPX_OK);
		for (unsigned n = 0; n < rows[row].times; n++) {
			advance(f, SETTLE_MS);
			move = rule(f, 1, A, i % 2 ? d.number : 0, rows[row].ruling, true);
		}
		assert_string_equal(move, rows[row].move);
		assert_string_equal(job_state(f, d.number), rows[row].job);
		assert_string_equal(state_of(f, 1), rows[row].operation);
	}
}

static void evidence_is_kept_until_it_is_wanted(void **state)
{
	struct fixture *f = *state;
	struct hpx_unsettled *list;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	reserve(f, 2, BODY, A);
	d = claim_one(f, 0);
	assert_string_equal(rule(f, 1, A, d.number, HPX_RULING_APPLIED, false), "stay");
	assert_string_equal(rule(f, 1, A, d.number, HPX_RULING_APPLIED, false), "stay");
	assert_string_equal(rule(f, 2, A, 0, HPX_RULING_DECLINED, false), "stay");
	assert_string_equal(events_of(f, 1), "evidence");
	assert_string_equal(state_of(f, 1), "pending");
	assert_int_equal(count_unsettled(f), 0);
	end_job(f, &d, HPX_JOB_MOVE_LOSE);
	act(f, HPX_VERB_MARK_UNKNOWN, 2, A);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_non_null(list->next);
	assert_null(list->next->next);
	for (const struct hpx_unsettled *u = list; u != NULL; u = u->next) {
		bool job = u->delivery.number != 0;
		assert_int_equal(u->evidence, job ? HPX_RULING_APPLIED : HPX_RULING_DECLINED);
		assert_span(u->target, job ? "mailer" : "");
		assert_span(u->job_name, job ? "answer" : "");
		assert_span(u->description.route, job ? "" : "POST /payments");
	}
	hpx_unsettled_free(list);
	assert_string_equal(rule(f, 1, A, d.number, HPX_RULING_APPLIED, false), "settle_applied");
	assert_string_equal(state_of(f, 1), "completed");
}

/* Said after it was thought not to have happened, and before it is done again. */
static void what_turns_out_to_have_happened_is_not_done_again(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	/* The provider did not know it, twice; then it says that it did it. */
	accept_later(f, 1, A);
	d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_LOSE);
	for (int i = 0; i < 2; i++) {
		advance(f, SETTLE_MS);
		rule(f, 1, A, d.number, HPX_RULING_NOT_APPLIED, true);
	}
	assert_string_equal(job_state(f, d.number), "queued");
	assert_string_equal(rule(f, 1, A, d.number, HPX_RULING_APPLIED, false), "settle_applied");
	assert_string_equal(job_state(f, d.number), "done");
	assert_string_equal(state_of(f, 1), "completed");
	assert_string_equal(claim_names(f, 5), "");

	/* The same of an operation. */
	lose(f, 2);
	for (int i = 0; i < 2; i++) {
		advance(f, SETTLE_MS);
		rule(f, 2, A, 0, HPX_RULING_NOT_APPLIED, true);
	}
	assert_string_equal(state_of(f, 2), "failed_retryable");
	assert_string_equal(rule(f, 2, A, 0, HPX_RULING_DECLINED, false), "stay");
	assert_string_equal(rule(f, 2, A, 0, HPX_RULING_APPLIED, false), "settle_applied");
	assert_string_equal(state_of(f, 2), "completed");
	assert_string_equal(reserve(f, 2, BODY, B), "replay");
}

/* Said while it was being sent, and the answer was "not now", or "no". */
static void what_happened_is_not_sent_again_for_its_answer(void **state)
{
	static const enum hpx_job_move moves[] = { HPX_JOB_MOVE_POSTPONE, HPX_JOB_MOVE_REJECT };
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2; i++) {
		accept_later(f, i, A);
		struct hpx_delivery d = claim_one(f, 0);
		assert_string_equal(rule(f, i, A, d.number, HPX_RULING_APPLIED, false), "stay");
		assert_status(end_job(f, &d, moves[i]), HPX_OK);
		assert_string_equal(job_state(f, d.number), "done");
		assert_string_equal(state_of(f, i), "completed");
	}
	assert_string_equal(claim_names(f, 5), "");
}

/* The same of an operation without a job: said while it was under way, and then the attempt
 * ended as if nothing had happened. Nobody executes it again; what was said settles it. */
static void what_happened_is_not_executed_again(void **state)
{
	static const enum hpx_verb ends[] = { HPX_VERB_FAIL, HPX_VERB_RELEASE };
	struct fixture *f = *state;

	for (unsigned key = 1; key <= 2; key++) {
		reserve(f, key, BODY, A);
		assert_string_equal(rule(f, key, A, 0, HPX_RULING_APPLIED, false), "stay");
		assert_string_equal(state_of(f, key), "in_progress");
		assert_status(act(f, ends[key - 1], key, A), HPX_OK);
		assert_string_equal(reserve(f, key, BODY, B), "unknown");
		struct hpx_unsettled *list = unsettled(f, 10);
		assert_non_null(list);
		assert_string_equal(hpx_ruling_name(list->evidence), hpx_ruling_name(HPX_RULING_APPLIED));
		hpx_unsettled_free(list);
		assert_string_equal(rule(f, key, A, 0, HPX_RULING_APPLIED, true), "settle_applied");
		assert_string_equal(reserve(f, key, BODY, B), "replay");
	}
	/* An answer is an answer all the same. */
	reserve(f, 3, BODY, A);
	assert_string_equal(rule(f, 3, A, 0, HPX_RULING_APPLIED, false), "stay");
	assert_status(complete(f, 3, A, "done"), HPX_OK);
	assert_string_equal(body_of(f, 3), "done");
	assert_int_equal(count_unsettled(f), 0);
}

/* Nobody asks about what was answered all the same: what was said too soon goes with the
 * record, and leaves nothing in the file. */
static void what_was_said_goes_with_the_record(void **state)
{
	static const enum hpx_ruling said[] = { HPX_RULING_APPLIED, HPX_RULING_DECLINED };
	struct fixture *f = *state;

	for (unsigned key = 0; key < 2; key++) {
		reserve(f, key, BODY, A);
		assert_string_equal(rule(f, key, A, 0, said[key], false), "stay");
		assert_int_equal(fixture_count(f, "reconcile"), key + 1);
		assert_status(complete(f, key, A, "done"), HPX_OK);
		assert_string_equal(body_of(f, key), "done");
	}
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "none");
	assert_int_equal(fixture_count(f, "reconcile"), 0);
}

/* The first attempt was declined; of the second that says nothing. */
static void what_was_said_of_one_attempt_is_not_believed_of_the_next(void **state)
{
	struct fixture *f = *state;
	struct hpx_unsettled *list;

	reserve(f, 1, BODY, A);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_DECLINED, false), "stay");
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "retried");
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, B), HPX_OK);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_string_equal(hpx_ruling_name(list->evidence), hpx_ruling_name(HPX_RULING_UNCLEAR));
	hpx_unsettled_free(list);
}

static void a_question_is_asked_by_one_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct hpx_next_question question = { .at_ms = 0 };
	struct hpx_operation_id id = id_of(1);
	struct hpx_mark mark = mark_of(A);
	struct hpx_unsettled *list;

	lose(f, 1);
	assert_status(hpx_store_question(f->reader, &id, &question), HPX_OK);
	assert_int_equal(question.at_ms, 0);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_false(list->scheduled);
	assert_true(hpx_mark_eq(&list->record.mark, &mark));
	hpx_unsettled_free(list);
	assert_int_equal(count_unsettled(f), 0);
	assert_status(hpx_store_question(f->reader, &id, &question), HPX_OK);
	assert_true(question.at_ms > 0);
	assert_false(question.person);
	/* Whoever asked was not heard of again. */
	advance(f, LEASE_MS);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_true(list->scheduled);
	hpx_unsettled_free(list);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_YET, true), "ask_again");
	advance(f, SETTLE_MS + 20);
	assert_int_equal(count_unsettled(f), 1);
	/* The limit is kept. */
	for (unsigned key = 2; key < 6; key++)
		lose(f, key);
	list = unsettled(f, 3);
	assert_non_null(list->next->next);
	assert_null(list->next->next->next);
	hpx_unsettled_free(list);
	assert_int_equal(count_unsettled(f), 1);
}

/* Two that looked at the same time: each question is one's. */
static void what_two_found_is_given_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_due due[4];
	struct hpx_unsettled *list;

	for (unsigned key = 0; key < 4; key++)
		lose(f, key);
	assert_int_equal(find_due(f, due, 4), 4);
	list = take_due(f, due + 1, 2);
	assert_non_null(list);
	assert_non_null(list->next);
	assert_null(list->next->next);
	hpx_unsettled_free(list);
	list = take_due(f, due, 4);
	assert_non_null(list);
	assert_non_null(list->next);
	assert_null(list->next->next);
	hpx_unsettled_free(list);
	assert_null(take_due(f, due, 4));
	/* What was settled between the look and the taking is nobody's. */
	advance(f, LEASE_MS);
	assert_int_equal(find_due(f, due, 4), 4);
	for (unsigned key = 0; key < 4; key++)
		assert_string_equal(rule(f, key, A, 0, HPX_RULING_APPLIED, false), "settle_applied");
	assert_null(take_due(f, due, 4));
	assert_int_equal(find_due(f, due, 4), 0);
}

/* Lanes are found one by one, and each has its own order. */
static void each_lane_has_its_own_questions(void **state)
{
	struct fixture *f = *state;
	struct hpx_lane_due *lanes = NULL;
	struct hpx_due due[4];
	size_t count = 0;

	lose(f, 1);
	advance(f, 10);
	lose(f, 2);
	accept_later(f, 3, A);
	struct hpx_delivery d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_LOSE);
	assert_status(hpx_store_lanes(f->reader, &f->arena, &lanes, &count), HPX_OK);
	assert_int_equal(count, 2);
	assert_span(lanes[0].name, "POST /payments");
	assert_span(lanes[1].name, HPX_LANE_TARGET "mailer");
	assert_status(hpx_store_due(f->reader, lanes[0].name, 0, due, 4, &count), HPX_OK);
	assert_int_equal(count, 2);
	assert_int_equal(due[0].at_ms, lanes[0].at_ms);
	assert_true(due[0].at_ms < due[1].at_ms);
	struct hpx_operation_id id = id_of(1);
	assert_true(hpx_operation_id_eq(&due[0].id, &id));
	/* From where the last look ended. */
	assert_status(hpx_store_due(f->reader, lanes[0].name, due[1].at_ms, due, 4, &count), HPX_OK);
	assert_int_equal(count, 1);
	assert_status(hpx_store_due(f->reader, HPX_SPAN("POST /other"), 0, due, 4, &count), HPX_OK);
	assert_int_equal(count, 0);
}

/* Several services share a database, and have the same routes: what one of them
 * lost, another would say never happened. What an application began, or has no
 * route, is everybody's. */
static void each_service_sees_its_own_questions(void **state)
{
	static const struct {
		const char *scope, *route;
		bool seen;
	} rows[] = {
		{ "scope", "POST /payments", true },
		{ "scope POST /payments", "POST /payments", true },
		{ "scope route POST /payments", "POST /payments", true },
		{ "scopes POST /payments", "POST /payments", false },
		{ "scop", "POST /payments", false },
		{ "refunds", "POST /payments", false },
		{ "refunds POST /payments", "POST /payments", false },
		{ "refunds route scope POST /payments", "POST /payments", false },
		{ "refunds POST /other", "POST /other", false },
		{ "whatever it says", "application", true },
		{ "", "application", true },
		{ "", "", true },
	};
	enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
	struct fixture *f = *state;
	struct hpx_lane_due *lanes = NULL;
	struct hpx_due due[COUNT];
	size_t lane_count = 0, count = 0;
	bool seen[COUNT] = { false };

	for (unsigned i = 0; i < COUNT; i++) {
		char sql[256];
		reserve(f, i, BODY, A);
		snprintf(sql, sizeof(sql), "UPDATE hapax.operation SET scope = '%s', route = '%s' "
					   "WHERE key = 'key-%u'",
			 rows[i].scope, rows[i].route, i);
		cluster_sql(sql);
		assert_status(act(f, HPX_VERB_MARK_UNKNOWN, i, A), HPX_OK);
	}
	assert_status(hpx_store_lanes(f->reader, &f->arena, &lanes, &lane_count), HPX_OK);
	assert_int_equal(lane_count, 3);
	assert_span(lanes[0].name, "?");
	assert_span(lanes[1].name, "POST /payments");
	assert_span(lanes[2].name, "application");
	for (size_t l = 0; l < lane_count; l++) {
		assert_status(hpx_store_due(f->reader, lanes[l].name, 0, due, COUNT, &count), HPX_OK);
		for (size_t d = 0; d < count; d++)
			for (unsigned i = 0; i < COUNT; i++) {
				struct hpx_operation_id id = id_of(i);
				seen[i] = seen[i] || hpx_operation_id_eq(&due[d].id, &id);
			}
	}
	for (unsigned i = 0; i < COUNT; i++)
		if (seen[i] != rows[i].seen)
			fail_msg("\"%s\" of \"%s\": %d", rows[i].scope, rows[i].route, seen[i]);
	/* Another service's lane is empty, and a person finds all of them. */
	assert_status(hpx_store_due(f->reader, HPX_SPAN("POST /other"), 0, due, COUNT, &count), HPX_OK);
	assert_int_equal(count, 0);
	struct hpx_store_stats stats;
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.operations[HPX_STATE_UNKNOWN], COUNT);
}

/* Rows that make no sense must not stand at the head of a lane for ever. */
static void what_cannot_be_asked_about_leaves_its_lane(void **state)
{
	struct fixture *f = *state;
	struct hpx_due due[4];
	struct hpx_store_stats stats;

	lose(f, 1);
	lose(f, 2);
	assert_int_equal(find_due(f, due, 4), 2);
	/* One is unreadable, one is not unknown any more, behind the store's back. */
	run_sql(f, fixture_is_postgres(f) ?
			   "UPDATE %soperation SET fingerprint = substr(fingerprint, 1, 5) WHERE key = 'key-1'" :
			   "UPDATE %saside SET fingerprint = substr(fingerprint, 1, 5) WHERE key = 'key-1'");
	run_sql(f, fixture_is_postgres(f) ? "UPDATE %sreconcile SET mark = id WHERE id IN "
					    "(SELECT id FROM %soperation WHERE key = 'key-2')" :
					    "UPDATE %sreconcile SET mark = substr(id, 1, 16) WHERE id IN "
					    "(SELECT id FROM %soperation WHERE key = 'key-2')");
	assert_null(take_due(f, due, 2));
	assert_int_equal(find_due(f, due, 4), 0);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.dead_operations, 1);
}

/* What a job says is what its operation becomes: it is asked about once. */
static void an_operation_that_its_job_speaks_for_is_not_asked_about(void **state)
{
	struct fixture *f = *state;
	struct hpx_unsettled *list;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_LOSE);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_null(list->next);
	assert_int_equal(list->delivery.number, d.number);
	hpx_unsettled_free(list);
	/* A job that a person discards leaves the question to its operation. */
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_DISCARD, false), HPX_OK);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_int_equal(list->delivery.number, 0);
	hpx_unsettled_free(list);
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_APPLIED, true), "settle_applied");
	assert_string_equal(state_of(f, 1), "completed");
}

static void what_nobody_can_be_asked_about_is_a_persons(void **state)
{
	struct fixture *f = *state;
	struct hpx_next_question question;
	struct hpx_operation_id id = id_of(1);
	struct hpx_store_stats stats;

	reserve(f, 1, BODY, A);
	assert_int_equal(unask(f, 1, 0), 0);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, A), HPX_OK);
	assert_int_equal(unask(f, 2, 0), 0);
	assert_int_equal(unask(f, 1, 0), 1);
	assert_int_equal(unask(f, 1, 0), 0);
	assert_string_equal(events_of(f, 1), "outcome_lost left_to_a_person");
	assert_int_equal(count_unsettled(f), 0);
	/* What settles nothing leaves it with the person. */
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_NOT_YET, false), "stay");
	advance(f, LEASE_MS);
	assert_int_equal(count_unsettled(f), 0);
	assert_status(hpx_store_question(f->reader, &id, &question), HPX_OK);
	assert_true(question.person);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.dead_operations, 1);
	/* A webhook may still know. */
	assert_string_equal(rule(f, 1, A, 0, HPX_RULING_APPLIED, false), "settle_applied");
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.dead_operations, 0);
}

/* Its operation was forgotten, or expired: what is owed is still owed. */
static void a_job_outlives_its_operation(void **state)
{
	struct fixture *f = *state;
	struct hpx_unsettled *list;
	struct hpx_delivery d;

	reserve(f, 1, BODY, A);
	owe(f, 1, A, "receipt");
	complete(f, 1, A, "done");
	advance(f, RETENTION_MS);
	reap(f);
	assert_string_equal(state_of(f, 1), "none");
	d = claim_one(f, 0);
	assert_false(d.answers);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_LOSE), HPX_OK);
	list = unsettled(f, 10);
	assert_non_null(list);
	assert_int_equal(list->delivery.number, d.number);
	assert_int_equal(list->record.state, HPX_STATE_NONE);
	assert_true(hpx_mark_eq(&list->delivery.mark, &d.mark));
	hpx_unsettled_free(list);
	assert_string_equal(rule(f, 1, A, d.number, HPX_RULING_APPLIED, false), "settle_applied");
	assert_string_equal(job_state(f, d.number), "done");
	assert_non_null(strstr(events_of(f, 1), "job_resolved_applied"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_OUTBOXES(each_ruling_on_an_operation),
		ON_OUTBOXES(not_applied_counts_after_its_time_and_twice),
		ON_OUTBOXES(what_is_lost_again_is_asked_anew),
		ON_OUTBOXES(each_ruling_on_a_job),
		ON_OUTBOXES(evidence_is_kept_until_it_is_wanted),
		ON_OUTBOXES(what_turns_out_to_have_happened_is_not_done_again),
		ON_OUTBOXES(what_happened_is_not_sent_again_for_its_answer),
		ON_OUTBOXES(what_happened_is_not_executed_again),
		ON_OUTBOXES(what_was_said_goes_with_the_record),
		ON_OUTBOXES(what_was_said_of_one_attempt_is_not_believed_of_the_next),
		ON_OUTBOXES(a_question_is_asked_by_one_at_a_time),
		ON_OUTBOXES(what_two_found_is_given_once),
		ON_OUTBOXES(each_lane_has_its_own_questions),
		ON_POSTGRES(each_service_sees_its_own_questions),
		ON_OUTBOXES(what_cannot_be_asked_about_leaves_its_lane),
		ON_OUTBOXES(an_operation_that_its_job_speaks_for_is_not_asked_about),
		ON_OUTBOXES(what_nobody_can_be_asked_about_is_a_persons),
		ON_OUTBOXES(a_job_outlives_its_operation),
	};
	return run_on_drivers("unsettled", tests);
}
