/* Shows that an application meets the same operations whichever way it uses the
 * library: with connections of its own or on its own connection, on SQLite or
 * PostgreSQL; and that on its own connection they are part of its transaction. */
#include <time.h>

#include "library_fixture.h"

static char problem[HAPAX_PROBLEM_SIZE];

/* ---- an answer, once ---- */

static void an_answer_is_replayed(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation first = { .size = sizeof(first) }, later = { .size = sizeof(later) };

	assert_string_equal(begin_key(p->hapax, "k", &first), "execute");
	assert_int_equal(first.attempt, 1);
	assert_string_not_equal(first.lease, first.reference);
	assert_string_equal(begin_key(p->hapax, "k", &later), "in_progress");
	assert_string_equal(later.reference, first.reference);
	assert_result(complete_with(p->hapax, first.lease, "done", problem), HAPAX_OK, problem);
	assert_result(complete_with(p->hapax, first.lease, "other", problem), HAPAX_OK, problem);

	assert_result(hapax_begin(p->hapax, &begin, &later, problem), HAPAX_OK, problem);
	assert_int_equal(later.verdict, HAPAX_REPLAY);
	assert_int_equal(later.kept, 1);
	assert_int_equal(later.answer->status, 201);
	assert_string_equal(later.answer->headers, "Content-Type: text/plain\r\n");
	assert_int_equal(later.answer->body_len, 4);
	assert_memory_equal(later.answer->body, "done", 4);
	assert_string_equal(later.lease, "");
	assert_string_equal(later.reference, first.reference);
	hapax_operation_clear(&later);
	assert_null(later.answer);
	begin = begin_of("k", 2);
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "mismatch");
}

static void an_answer_is_kept_as_long_as_it_says(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("plain", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };
	struct hapax_answer answer = { .size = sizeof(answer), .status = 201, .retention_ms = 3600000 };

	begin.retention_ms = 1;
	assert_string_equal(begin_with(p->hapax, &begin, &operation), "execute");
	assert_result(complete_with(p->hapax, operation.lease, "soon gone", problem), HAPAX_OK, problem);
	begin.key = "long";
	assert_string_equal(begin_with(p->hapax, &begin, &operation), "execute");
	answer.retention_ms = -1;
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_INVALID, problem);
	answer.retention_ms = INT64_C(4000) * 86400000;
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_INVALID, problem);
	answer.retention_ms = 3600000;
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_OK, problem);
	/* A program that was built before the member was there has what hapax_begin says. */
	begin.key = "older";
	assert_string_equal(begin_with(p->hapax, &begin, &operation), "execute");
	answer.size = offsetof(struct hapax_answer, retention_ms);
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_OK, problem);
	for (struct timespec pause = { 0, 2000000 }; nanosleep(&pause, &pause) != 0;)
		;
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "execute");
	begin.key = "plain";
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "execute");
	begin.key = "long";
	assert_string_equal(begin_with(p->hapax, &begin, NULL), "replay");
}

static void bytes_stay_bytes(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };
	unsigned char *body = calloc(1, (size_t)16 << 20);
	size_t len = (size_t)16 << 20;

	for (size_t i = 0; i < len; i++)
		body[i] = (unsigned char)(i * 7);
	struct hapax_answer answer = {
		.size = sizeof(answer),
		.status = 599,
		.body = body,
		.body_len = len,
	};
	assert_string_equal(begin_key(p->hapax, "k", &operation), "execute");
	answer.body_len = len + 1;
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_INVALID,
		      problem);
	answer.body_len = len;
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_OK, problem);
	assert_result(hapax_begin(p->hapax, &begin, &operation, problem), HAPAX_OK, problem);
	assert_int_equal(operation.answer->status, 599);
	assert_string_equal(operation.answer->headers, "");
	assert_int_equal(operation.answer->body_len, len);
	assert_memory_equal(operation.answer->body, body, len);
	hapax_operation_clear(&operation);
	free(body);
}

/* ---- what an old lease may do: nothing ---- */

static void assert_all_stale(struct library_fixture *p, const char *lease)
{
	struct hapax_job job = job_of("mail", "hello");
	char point[HAPAX_POINT_SIZE];
	void *data = NULL;
	size_t len = 0;

	assert_result(complete_with(p->hapax, lease, "late", problem), HAPAX_STALE, problem);
	assert_result(hapax_fail(p->hapax, lease, problem), HAPAX_STALE, problem);
	assert_result(hapax_advance(p->hapax, lease, "late", "", 0, problem), HAPAX_STALE, problem);
	assert_result(hapax_enqueue(p->hapax, lease, &job, problem), HAPAX_STALE, problem);
	assert_result(hapax_recovery(p->hapax, lease, point, &data, &len, problem), HAPAX_STALE,
		      problem);
	assert_result(hapax_renew(p->own, lease, 1000, problem), HAPAX_STALE, problem);
	assert_result(hapax_lose(p->own, lease, problem), HAPAX_STALE, problem);
	assert_int_equal(library_rows(p, "job", "1 = 1"), 0);
}

/* A client has the reference of every answer, and hands it in as the lease. */
static void a_reference_is_no_lease(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation first = { .size = sizeof(first) }, second = { .size = sizeof(second) };

	begin_key(p->hapax, "k", &first);
	assert_string_not_equal(first.reference, first.lease);
	assert_all_stale(p, first.reference);
	assert_result(hapax_fail(p->hapax, first.lease, problem), HAPAX_OK, problem);
	assert_all_stale(p, first.reference);
	assert_string_equal(begin_key(p->hapax, "k", &second), "execute");
	assert_all_stale(p, second.reference);
	assert_result(complete_with(p->hapax, second.lease, "done", problem), HAPAX_OK, problem);
	assert_all_stale(p, second.reference);
	assert_string_equal(begin_key(p->hapax, "k", NULL), "replay");
}

static void a_failed_attempt_is_made_again(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation first = { .size = sizeof(first) }, second = { .size = sizeof(second) };

	begin_key(p->hapax, "k", &first);
	assert_result(hapax_fail(p->hapax, first.lease, problem), HAPAX_OK, problem);
	assert_all_stale(p, first.lease);
	assert_string_equal(begin_key(p->hapax, "k", &second), "execute");
	assert_int_equal(second.attempt, 2);
	assert_string_equal(second.reference, first.reference);
	assert_string_not_equal(second.lease, first.lease);
	assert_string_equal(second.point, "");
	assert_all_stale(p, first.lease);
	assert_result(complete_with(p->hapax, second.lease, "done", problem), HAPAX_OK, problem);
	assert_all_stale(p, first.lease);
}

static void a_forgotten_key_is_another_operation(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation first = { .size = sizeof(first) }, second = { .size = sizeof(second) };

	begin_key(p->hapax, "k", &first);
	library_forget(p, first.reference);
	assert_all_stale(p, first.lease);
	assert_string_equal(begin_key(p->hapax, "k", &second), "execute");
	assert_int_equal(second.attempt, 1);
	assert_string_not_equal(second.reference, first.reference);
	assert_all_stale(p, first.lease);
	assert_result(complete_with(p->hapax, second.lease, "done", problem), HAPAX_OK, problem);
}

static void what_has_ended_is_refused(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_job job = job_of("mail", "hello");
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin_key(p->hapax, "k", &operation);
	complete_with(p->hapax, operation.lease, "done", problem);
	assert_result(hapax_fail(p->hapax, operation.lease, problem), HAPAX_REFUSED, problem);
	assert_result(hapax_advance(p->hapax, operation.lease, "late", NULL, 0, problem),
		      HAPAX_REFUSED, problem);
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_REFUSED,
		      problem);
	assert_result(hapax_renew(p->own, operation.lease, 1000, problem), HAPAX_REFUSED, problem);
	assert_result(hapax_lose(p->own, operation.lease, problem), HAPAX_REFUSED, problem);
}

/* ---- leases that run out ---- */

static const struct {
	enum hapax_on_lost on_lost;
	bool advances;
	const char *verdict; /* for whoever asks next */
	const char *point;
} losses[] = {
	{ HAPAX_LOST_UNKNOWN, false, "unknown", "" },
	{ HAPAX_LOST_UNKNOWN, true, "unknown", "" },
	{ HAPAX_LOST_RESUME, false, "execute", "" },
	{ HAPAX_LOST_RESUME, true, "execute", "charged" },
	{ HAPAX_LOST_REPEAT, false, "execute", "" },
	{ HAPAX_LOST_REPEAT, true, "execute", "charged" },
};
#define LOSSES (sizeof(losses) / sizeof(losses[0]))

static void a_lost_lease_becomes_what_on_lost_says(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation first = { .size = sizeof(first) }, second = { .size = sizeof(second) };
	char key[8];

	for (size_t i = 0; i < LOSSES; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		struct hapax_begin begin = begin_of(key, 1);
		begin.on_lost = losses[i].on_lost;
		assert_string_equal(begin_with(p->hapax, &begin, &first), "execute");
		if (losses[i].advances)
			assert_result(hapax_advance(p->hapax, first.lease, "charged", "ch", 2,
						    problem),
				      HAPAX_OK, problem);
		assert_string_equal(begin_with(p->hapax, &begin, NULL), "in_progress");
		library_expire_leases(p);
		assert_string_equal(begin_with(p->hapax, &begin, &second), losses[i].verdict);
		assert_string_equal(second.point, losses[i].point);
		if (second.verdict == HAPAX_EXECUTE) {
			assert_all_stale(p, first.lease);
			assert_result(complete_with(p->hapax, second.lease, "done", problem),
				      HAPAX_OK, problem);
		} else {
			/* Nobody else has a lease: the slow attempt may still tell. */
			assert_result(complete_with(p->hapax, first.lease, "late", problem),
				      HAPAX_OK, problem);
		}
		assert_string_equal(begin_with(p->hapax, &begin, NULL), "replay");
	}
}

static void a_failure_after_a_part_becomes_what_on_lost_says(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };
	char key[8];

	for (size_t i = 0; i < LOSSES; i++) {
		if (!losses[i].advances)
			continue;
		snprintf(key, sizeof(key), "k%zu", i);
		struct hapax_begin begin = begin_of(key, 1);
		struct hapax_job job = job_of("mail", "hello");
		begin.on_lost = losses[i].on_lost;
		begin_with(p->hapax, &begin, &operation);
		assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_OK,
			      problem);
		assert_result(hapax_fail(p->hapax, operation.lease, problem), HAPAX_OK, problem);
		assert_string_equal(begin_with(p->hapax, &begin, NULL), losses[i].verdict);
	}
}

/* ---- phases and jobs ---- */

static void the_next_attempt_goes_on_after_the_point(void **state)
{
	static char data[1 << 20], point[HAPAX_POINT_SIZE];
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation operation = { .size = sizeof(operation) };
	void *found = &begin;
	size_t len = 1;

	begin.on_lost = HAPAX_LOST_RESUME;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 3);
	begin_with(p->hapax, &begin, &operation);
	assert_result(hapax_recovery(p->hapax, operation.lease, point, &found, &len, problem),
		      HAPAX_OK, problem);
	assert_string_equal(point, "");
	assert_null(found);
	assert_int_equal(len, 0);
	assert_result(hapax_advance(p->hapax, operation.lease, "one", "1", 1, problem), HAPAX_OK,
		      problem);
	assert_result(hapax_advance(p->hapax, operation.lease, "two", data, sizeof(data), problem),
		      HAPAX_OK, problem);
	assert_result(hapax_fail(p->hapax, operation.lease, problem), HAPAX_OK, problem);

	assert_result(hapax_begin(p->hapax, &begin, &operation, problem), HAPAX_OK, problem);
	assert_int_equal(operation.verdict, HAPAX_EXECUTE);
	assert_int_equal(operation.attempt, 2);
	assert_string_equal(operation.point, "two");
	assert_int_equal(operation.data_len, sizeof(data));
	assert_memory_equal(operation.data, data, sizeof(data));
	assert_result(hapax_recovery(p->hapax, operation.lease, point, &found, &len, problem),
		      HAPAX_OK, problem);
	assert_string_equal(point, "two");
	assert_int_equal(len, sizeof(data));
	assert_memory_equal(found, data, sizeof(data));
	free(found);
	hapax_operation_clear(&operation);
}

static void a_job_is_owed_once(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_job job = job_of("mail", "hello"), other = job_of("mail", "bye");
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin.on_lost = HAPAX_LOST_RESUME;
	begin_with(p->hapax, &begin, &operation);
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_OK, problem);
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_OK, problem);
	assert_result(hapax_enqueue(p->hapax, operation.lease, &other, problem), HAPAX_CONFLICT,
		      problem);
	/* Over all attempts. */
	hapax_fail(p->hapax, operation.lease, problem);
	begin_with(p->hapax, &begin, &operation);
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_OK, problem);
	assert_int_equal(library_rows(p, "job", "name = 'mail' AND headers = 'Content-Type: "
						"text/plain\r\n'"),
			 1);
	other.name = "farewell";
	assert_result(hapax_enqueue(p->hapax, operation.lease, &other, problem), HAPAX_OK, problem);
	assert_int_equal(library_rows(p, "job", "1 = 1"), 2);
}

/* ---- what is not taken ---- */

static void bad_input_is_told(void **state)
{
	static char large[(1 << 20) + 1], key[HAPAX_KEY_MAX + 2];
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_job job = job_of("mail", "hello");
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin_with(p->hapax, &begin, &operation);
	for (unsigned status = 0; status < 1000; status += status == 199 ? 401 : 1) {
		struct hapax_answer answer = { .size = sizeof(answer), .status = status };
		if (status < 200 || status > 599)
			assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem),
				      HAPAX_INVALID, problem);
	}
	struct hapax_answer answer = {
		.size = sizeof(answer),
		.status = 200,
		.headers = "not a header",
	};
	assert_result(hapax_complete(p->hapax, operation.lease, &answer, problem), HAPAX_INVALID,
		      problem);
	assert_result(hapax_fail(p->hapax, "lease", problem), HAPAX_INVALID, problem);
	assert_result(hapax_advance(p->hapax, operation.lease, "a b", "", 0, problem), HAPAX_INVALID,
		      problem);
	assert_result(hapax_advance(p->hapax, operation.lease, "point", large, sizeof(large),
				    problem),
		      HAPAX_INVALID, problem);
	job.method = "post";
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_INVALID,
		      problem);
	job = job_of("\xff", "hello");
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_INVALID,
		      problem);
	memset(key, 'k', sizeof(key) - 1);
	begin.key = key;
	assert_result(hapax_begin(p->hapax, &begin, &operation, problem), HAPAX_INVALID, problem);
	begin = begin_of("k", 1);
	begin.tenant = "\xff";
	assert_result(hapax_begin(p->hapax, &begin, &operation, problem), HAPAX_INVALID, problem);
	assert_string_equal(begin_key(p->hapax, "k", NULL), "in_progress");
	assert_int_equal(library_rows(p, "job", "1 = 1"), 0);
}

static void text_is_utf8(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("\xc3\xa9t\xc3\xa9 \xe2\x82\xac", 1);
	struct hapax_operation operation = {
		.size = sizeof(operation)
	},
			       later = {
				       .size = sizeof(later),
			       };

	begin.tenant = "gr\xc3\xbc\xc3\x9f";
	assert_string_equal(begin_with(p->hapax, &begin, &operation), "execute");
	/* Whichever way it came, it is the same operation. */
	assert_string_equal(begin_with(p->own, &begin, &later), "in_progress");
	assert_string_equal(later.reference, operation.reference);
}

/* ---- in the application's transaction ---- */

static void what_is_rolled_back_did_not_happen(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_job job = job_of("mail", "hello");
	struct hapax_operation first = { .size = sizeof(first) }, second = { .size = sizeof(second) };

	library_sql(p, "BEGIN");
	assert_string_equal(begin_key(p->hapax, "k", &first), "execute");
	library_sql(p, "INSERT INTO payment VALUES ('p1')");
	assert_result(hapax_advance(p->hapax, first.lease, "paid", "1", 1, problem), HAPAX_OK,
		      problem);
	assert_result(hapax_enqueue(p->hapax, first.lease, &job, problem), HAPAX_OK, problem);
	assert_result(complete_with(p->hapax, first.lease, "done", problem), HAPAX_OK, problem);
	assert_string_equal(begin_key(p->hapax, "k", NULL), "replay");
	library_sql(p, "ROLLBACK");
	assert_int_equal(library_count(p, "SELECT count(*) FROM payment"), 0);
	assert_int_equal(library_rows(p, "operation", "1 = 1"), 0);
	assert_int_equal(library_rows(p, "job", "1 = 1"), 0);
	assert_all_stale(p, first.lease);
	assert_string_equal(begin_key(p->hapax, "k", &second), "execute");
	assert_int_equal(second.attempt, 1);
}

static void what_is_committed_is_replayed(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_job job = job_of("mail", "hello");
	struct hapax_operation operation = { .size = sizeof(operation) };

	assert_string_equal(begin_key(p->hapax, "k", &operation), "execute");
	library_sql(p, "BEGIN");
	library_sql(p, "INSERT INTO payment VALUES ('p1')");
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_OK, problem);
	library_sql(p, "ROLLBACK");
	assert_string_equal(begin_key(p->own, "k", NULL), "in_progress");
	library_sql(p, "BEGIN");
	library_sql(p, "INSERT INTO payment VALUES ('p2')");
	assert_result(hapax_enqueue(p->hapax, operation.lease, &job, problem), HAPAX_OK, problem);
	assert_result(complete_with(p->hapax, operation.lease, "done", problem), HAPAX_OK, problem);
	library_sql(p, "COMMIT");
	assert_string_equal(begin_key(p->own, "k", NULL), "replay");
	assert_string_equal(begin_key(p->hapax, "k", NULL), "replay");
	assert_int_equal(library_count(p, "SELECT count(*) FROM payment WHERE id = 'p2'"), 1);
	assert_int_equal(library_count(p, "SELECT count(*) FROM payment"), 1);
	assert_int_equal(library_rows(p, "job", "1 = 1"), 1);
}

/* The attempt was paused, its lease ran out, and another one is under way: its
 * transaction cannot commit the answer, so it is rolled back. */
static void a_paused_attempt_commits_nothing(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_operation first = { .size = sizeof(first) }, second = { .size = sizeof(second) };

	begin.on_lost = HAPAX_LOST_REPEAT;
	begin_with(p->hapax, &begin, &first);
	library_expire_leases(p);
	assert_string_equal(begin_with(p->own, &begin, &second), "execute");
	library_sql(p, "BEGIN");
	library_sql(p, "INSERT INTO payment VALUES ('p1')");
	assert_result(complete_with(p->hapax, first.lease, "done", problem), HAPAX_STALE, problem);
	library_sql(p, "ROLLBACK");
	assert_result(complete_with(p->own, second.lease, "second", problem), HAPAX_OK, problem);
	assert_int_equal(library_count(p, "SELECT count(*) FROM payment"), 0);
}

static void what_is_durable_at_once_needs_connections_of_its_own(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };

	begin_key(p->hapax, "k", &operation);
	assert_result(hapax_renew(p->hapax, operation.lease, 1000, problem), HAPAX_MISUSE, problem);
	assert_result(hapax_lose(p->hapax, operation.lease, problem), HAPAX_MISUSE, problem);
	assert_result(hapax_tidy(p->hapax, problem), HAPAX_MISUSE, problem);
}

/* ---- outcomes that nobody knows ---- */

static void lose(struct library_fixture *p, const char *key, struct hapax_operation *operation)
{
	struct hapax_begin begin = begin_of(key, 1);

	begin.on_lost = HAPAX_LOST_UNKNOWN;
	assert_string_equal(begin_with(p->own, &begin, operation), "execute");
	assert_result(hapax_lose(p->own, operation->lease, problem), HAPAX_OK, problem);
}

/* What was settled is replayed, marked as not the original; nothing overrides it; what
 * the store cannot judge, and what makes no sense, is refused with what to do. */
static void an_unknown_outcome_is_settled(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };
	struct hapax_operation replayed = { .size = sizeof(replayed) };
	struct hapax_begin begin = begin_of("k", 1);
	struct hapax_answer answer = { .size = sizeof(answer), .status = 201, .headers = "Location: /p/1\r\nIdempotent-Reconstructed: no\r\n", .body = "paid", .body_len = 4 };
	struct hapax_settlement settlement = { .size = sizeof(settlement), .ruling = HAPAX_NOT_APPLIED };
	enum hapax_settled settled = HAPAX_IGNORED;

	lose(p, "k", &operation);
	settlement.reference = operation.reference;
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_REFUSED, problem);
	assert_non_null(strstr(problem, "settle_after"));
	settlement.answer = &answer;
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_INVALID, problem);
	settlement.ruling = HAPAX_DECLINED;
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_INVALID, problem);
	settlement.ruling = HAPAX_APPLIED;
	settlement.reason = "the export has it";
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_OK, problem);
	assert_int_equal(settled, HAPAX_SETTLED);
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_OK, problem);
	assert_int_equal(settled, HAPAX_IGNORED);
	assert_result(hapax_begin(p->hapax, &begin, &replayed, problem), HAPAX_OK, problem);
	assert_int_equal(replayed.verdict, HAPAX_REPLAY);
	assert_int_equal(replayed.answer->status, 201);
	assert_string_equal(replayed.answer->headers,
			    "Location: /p/1\r\nIdempotent-Reconstructed: true\r\n");
	assert_memory_equal(replayed.answer->body, "paid", 4);
	hapax_operation_clear(&replayed);
	library_forget(p, operation.reference);
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_STALE, problem);
	settlement.reference = "x";
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_INVALID, problem);
	settlement.ruling = (enum hapax_ruling)3;
	assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_MISUSE, problem);
}

static void a_providers_id_is_kept_with_the_operation(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };

	assert_string_equal(begin_key(p->hapax, "k", &operation), "execute");
	assert_result(hapax_provider_id(p->hapax, operation.lease, "two words", problem), HAPAX_INVALID, problem);
	assert_result(hapax_provider_id(p->hapax, operation.lease, NULL, problem), HAPAX_MISUSE, problem);
	assert_result(hapax_provider_id(p->hapax, operation.reference, "ch_1", problem), HAPAX_STALE, problem);
	assert_result(hapax_provider_id(p->hapax, operation.lease, "ch_1", problem), HAPAX_OK, problem);
	assert_int_equal(library_rows(p, "provider", "provider_id = 'ch_1'"), 1);
	library_forget(p, operation.reference);
	assert_int_equal(library_rows(p, "provider", "true"), 0);
}

static void a_settlement_is_part_of_the_transaction(void **state)
{
	struct library_fixture *p = *state;
	struct hapax_operation operation = { .size = sizeof(operation) };
	struct hapax_settlement settlement = { .size = sizeof(settlement), .ruling = HAPAX_DECLINED };
	struct hapax_begin begin = begin_of("k", 1);
	enum hapax_settled settled = HAPAX_IGNORED;

	lose(p, "k", &operation);
	settlement.reference = operation.reference;
	for (int round = 0; round < 2; round++) {
		library_sql(p, "BEGIN");
		assert_result(hapax_settle(p->hapax, &settlement, &settled, problem), HAPAX_OK, problem);
		assert_int_equal(settled, HAPAX_SETTLED);
		library_sql(p, round == 0 ? "ROLLBACK" : "COMMIT");
		assert_string_equal(begin_with(p->own, &begin, NULL), round == 0 ? "unknown" : "replay");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVERY_WAY(an_answer_is_replayed),
		EVERY_WAY(an_answer_is_kept_as_long_as_it_says),
		EVERY_WAY(bytes_stay_bytes),
		EVERY_WAY(a_reference_is_no_lease),
		EVERY_WAY(a_failed_attempt_is_made_again),
		EVERY_WAY(a_forgotten_key_is_another_operation),
		EVERY_WAY(what_has_ended_is_refused),
		EVERY_WAY(a_lost_lease_becomes_what_on_lost_says),
		EVERY_WAY(a_failure_after_a_part_becomes_what_on_lost_says),
		EVERY_WAY(the_next_attempt_goes_on_after_the_point),
		EVERY_WAY(a_job_is_owed_once),
		EVERY_WAY(bad_input_is_told),
		EVERY_WAY(text_is_utf8),
		EVERY_WAY(an_unknown_outcome_is_settled),
		EVERY_WAY(a_providers_id_is_kept_with_the_operation),
		BORROWED(a_settlement_is_part_of_the_transaction),
		BORROWED(what_is_rolled_back_did_not_happen),
		BORROWED(what_is_committed_is_replayed),
		BORROWED(a_paused_attempt_commits_nothing),
		BORROWED(what_is_durable_at_once_needs_connections_of_its_own),
	};
	return run_on_drivers("library", tests);
}
