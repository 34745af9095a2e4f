/* Shows how the SQLite driver treats its file: who may open it, what survives,
 * what a dead owner left, and that a row which cannot be read is never taken
 * for absent. */
#include "fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite/driver.h"

enum { BODY = 1,
       A = 11,
       B = 12,
       C = 13 };

static enum hpx_status try_open(const struct hpx_store_options *options, char *problem)
{
	struct hpx_store *store = NULL;
	enum hpx_status status = hpx_store_open(options, &store, problem);

	hpx_store_close(store);
	return status;
}

static void the_file_is_the_owners_alone(void **state)
{
	static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
	struct fixture *f = *state;
	char path[128];
	struct stat info;

	reserve(f, 1, BODY, A);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", f->path, ends[i]);
		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 0777, 0600);
	}
	snprintf(path, sizeof(path), "sqlite:%s", f->path);
	assert_string_equal(f->store->description, path);
}

static void one_server_per_file(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];
	char pid[32];

	snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
	assert_status(try_open(&options, problem), HPX_BUSY);
	assert_non_null(strstr(problem, pid));
	options.serve = false;
	assert_status(try_open(&options, problem), HPX_OK);
}

/* A child that holds the server's lock, and ends 100 ms after it says so. */
static pid_t hold_lock(struct fixture *f)
{
	char path[PATH_MAX], said = 0;
	int ends[2];

	snprintf(path, sizeof(path), "%s.lock", f->path);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX) != 0 || write(ends[1], "x", 1) != 1)
			_exit(1);
		poll(NULL, 0, 100);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &said, 1), 1);
	close(ends[0]);
	return child;
}

/* Started at once behind one that was killed, a server waits until that one is
 * gone, and does not give up because the kernel needs a moment. */
static void a_start_waits_for_the_lock(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];
	int status = -1;

	fixture_close(f);
	pid_t child = hold_lock(f);
	assert_status(try_open(&options, problem), HPX_OK);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void an_absent_file_is_an_error_unless_it_may_be_created(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];

	fixture_close(f);
	unlink(f->path);
	options.create = false;
	assert_status(try_open(&options, problem), HPX_NOT_FOUND);
	assert_non_null(strstr(problem, "hapax migrate"));
	assert_int_not_equal(access(f->path, F_OK), 0);
	fixture_open(f);
}

/* A new store and one that was lost look alike, but for the lock file. */
static void a_lost_file_is_told_of(void **state)
{
	struct fixture *f = *state;
	char lock[128];

	assert_string_equal(f->store->warning, "");
	fixture_close(f);
	unlink(f->path);
	fixture_open(f);
	assert_non_null(strstr(f->store->warning, "empty"));
	fixture_close(f);
	fixture_open(f);
	assert_string_equal(f->store->warning, "");
	fixture_close(f);
	unlink(f->path);
	snprintf(lock, sizeof(lock), "%s.lock", f->path);
	unlink(lock);
	fixture_open(f);
	assert_string_equal(f->store->warning, "");
}

static void what_is_not_ours_is_left_untouched(void **state)
{
	static const struct {
		const char *sql;
		enum hpx_status status;
		const char *word;
	} rows[] = {
		{ "CREATE TABLE customer (id)", HPX_INVALID, "not a hapax store" },
		{ "PRAGMA application_id = 77", HPX_INVALID, "not a hapax store" },
		{ "CREATE TABLE hapax_schema_version (version); "
		  "INSERT INTO hapax_schema_version VALUES (99)",
		  HPX_UNSUPPORTED, "newer" },
		{ "CREATE TABLE hapax_schema_version (version)", HPX_UNSUPPORTED, "newer" },
	};
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];

	fixture_close(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat before, after;
		unlink(f->path);
		raw_sql(f->path, rows[i].sql);
		assert_int_equal(stat(f->path, &before), 0);
		assert_status(try_open(&options, problem), rows[i].status);
		assert_non_null(strstr(problem, rows[i].word));
		assert_int_equal(stat(f->path, &after), 0);
		assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	}
	FILE *file = fopen(f->path, "w");
	assert_non_null(file);
	for (int i = 0; i < 1000; i++)
		fputs("this is no database\n", file);
	fclose(file);
	assert_status(try_open(&options, problem), HPX_INVALID);
	unlink(f->path);
	fixture_open(f);
}

static void tables_are_made_beside_an_applications_when_asked(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];

	fixture_close(f);
	unlink(f->path);
	raw_sql(f->path, "CREATE TABLE event (id); CREATE TABLE job (id); PRAGMA user_version = 41; "
			 "PRAGMA application_id = 77");
	assert_status(try_open(&options, problem), HPX_INVALID);
	assert_non_null(strstr(problem, "--beside"));
	options.install = true;
	options.serve = false;
	assert_status(try_open(&options, problem), HPX_OK);
	/* From now on it is a store like any other, and still the application's. */
	fixture_open(f);
	reserve(f, 1, BODY, A);
	complete(f, 1, A, "kept");
	assert_string_equal(body_of(f, 1), "kept");
	raw_sql(f->path, "INSERT INTO event SELECT user_version FROM pragma_user_version "
			 "WHERE user_version = 41; INSERT INTO job SELECT id FROM event");
	fixture_reopen(f);
	assert_string_equal(body_of(f, 1), "kept");
}

static void addresses_that_name_no_file_are_refused(void **state)
{
	static const struct {
		const char *url;
		enum hpx_status status;
	} rows[] = {
		{ "sqlite:", HPX_INVALID },
		{ "sqlite:/", HPX_INVALID },
		{ "sqlite:/no/such/folder/x.db", HPX_NOT_FOUND },
		{ "sqlite:/dev/null", HPX_INVALID },
		{ "mysql://x", HPX_INVALID },
		{ "", HPX_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_store_options options = { .url = hpx_span_of(rows[i].url),
						     .create = true };
		char problem[HPX_STORE_PROBLEM_SIZE];
		assert_status(try_open(&options, problem), rows[i].status);
		assert_string_not_equal(problem, "");
	}
}

static void migrate_tells_from_and_to(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];
	struct hpx_store_migration done;

	assert_status(hpx_store_migrate(&options, &done, problem), HPX_BUSY);
	fixture_close(f);
	unlink(f->path);
	assert_status(hpx_store_migrate(&options, &done, problem), HPX_OK);
	assert_int_equal(done.from, 0);
	assert_int_equal(done.to, 7);
	assert_status(hpx_store_migrate(&options, &done, problem), HPX_OK);
	assert_int_equal(done.from, 7);
	fixture_open(f);
}

static void an_older_file_is_refused(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];
	struct hpx_store_migration done;

	reserve(f, 1, BODY, A);
	fixture_close(f);
	raw_sql(f->path, "UPDATE hapax_schema_version SET version = 6");
	assert_status(try_open(&options, problem), HPX_UNSUPPORTED);
	assert_non_null(strstr(problem, "schema 6 of before the first release"));
	assert_non_null(strstr(problem, "move it away"));
	assert_status(hpx_store_migrate(&options, &done, problem), HPX_UNSUPPORTED);
	raw_sql(f->path, "UPDATE hapax_schema_version SET version = 7");
	fixture_open(f);
}

static void what_was_written_is_there_after_a_restart(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "durable");
	reserve(f, 2, BODY, A);
	act(f, HPX_VERB_FAIL, 2, A);
	reserve(f, 3, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 3, A);
	fixture_reopen(f);
	assert_string_equal(body_of(f, 1), "durable");
	assert_string_equal(state_of(f, 2), "failed_retryable");
	assert_string_equal(state_of(f, 3), "unknown");
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	assert_string_equal(reserve(f, 2, BODY, B), "retried");
	assert_string_equal(reserve(f, 3, BODY, B), "unknown");
}

/* Mistake 6: after a crash, 409 for a day. */
static void what_a_dead_owner_left_is_lost_at_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op renew = op_of(HPX_VERB_RENEW, 1, A);

	reserve(f, 1, BODY, A);
	renew.renew.lease_ms = RETENTION_MS;
	assert_status(run_op(f, &renew), HPX_OK);
	fixture_reopen(f);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_string_equal(events_of(f, 1), "lease_lost");
	/* The late answer of that very lease still counts. */
	assert_status(complete(f, 1, A, "late"), HPX_OK);
}

static void a_command_beside_the_server_leaves_its_leases_alone(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	struct hpx_store_op forget = op_of(HPX_VERB_FORGET, 2, A);
	struct hpx_store_op *ops[] = { &forget };
	struct hpx_store *beside = NULL;

	reserve(f, 1, BODY, A);
	reserve(f, 2, BODY, A);
	options.serve = false;
	assert_status(hpx_store_open(&options, &beside, NULL), HPX_OK);
	assert_string_equal(state_of(f, 1), "in_progress");
	forget.forget.force = true;
	assert_status(hpx_store_run(beside, ops, 1, NULL), HPX_OK);
	assert_status(forget.status, HPX_OK);
	hpx_store_close(beside);
	assert_string_equal(state_of(f, 2), "none");
	assert_status(complete(f, 2, A, "too late"), HPX_STALE);
}

static void a_process_killed_after_its_commit_lost_nothing(void **state)
{
	struct fixture *f = *state;
	int status = 0;
	pid_t child;

	fixture_close(f);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		fixture_open(f);
		reserve(f, 1, BODY, A);
		complete(f, 1, A, "committed");
		reserve(f, 2, BODY, A);
		_exit(7);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 7);
	fixture_open(f);
	assert_string_equal(body_of(f, 1), "committed");
	assert_string_equal(state_of(f, 2), "unknown");
}

#define ASIDE "UPDATE hapax_aside SET "

/* A person's hand leaves no check: as the driver would have written the row. */
static void mend_generation(struct fixture *f)
{
	struct hpx_sqlite_generation g = { .number = 1, .state = HPX_GENERATION_OPEN, .readable = true };
	struct hpx_sqlite_db db = { .list_version = 0 };
	sqlite3_stmt *stmt = NULL;
	int64_t *const fields[] = { &g.class_ms, &g.opened_ms, &g.closed_ms, &g.retention_ms,
				    &g.operations, &g.settled, &g.expires_ms };

	assert_int_equal(sqlite3_open(f->path, &db.handle), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db.handle, "SELECT class, opened, closed, retention, "
						       "operations, settled, expires FROM hapax_generation",
					    -1, &stmt, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	for (int i = 0; i < 7; i++)
		*fields[i] = sqlite3_column_int64(stmt, i);
	sqlite3_finalize(stmt);
	assert_status(hpx_sqlite_generation_put(&db, &g), HPX_OK);
	hpx_sqlite_db_close(&db);
}

/* Mistake 19: a corrupt record is deleted and the payment runs again. */
static void a_row_that_cannot_be_read_counts_as_unknown(void **state)
{
	static const char *const damages[] = {
		"UPDATE hapax_operation_1 SET when_lost = 3",
		"UPDATE hapax_operation_1 SET when_lost = 1",
		"UPDATE hapax_operation_1 SET token = x'00'",
		"UPDATE hapax_operation_1 SET token = zeroblob(16)",
		"UPDATE hapax_operation_1 SET rest = zeroblob(16)",
		"UPDATE hapax_operation_1 SET fingerprint = x''",
		"UPDATE hapax_operation_1 SET fingerprint = zeroblob(32)",
		"UPDATE hapax_operation_1 SET recipe = x'0102'",
		"UPDATE hapax_operation_1 SET tenant_hash = x'0102'",
		"UPDATE hapax_operation_1 SET owner = owner + 1",
		"UPDATE hapax_operation_1 SET created = created + 1",
		"UPDATE hapax_operation_1 SET retention = -1",
		"UPDATE hapax_operation_1 SET key = 'another'",
		"UPDATE hapax_operation_1 SET route = ''",
		"UPDATE hapax_operation_1 SET crc = crc + 1",
		"DELETE FROM hapax_answer_1; UPDATE hapax_generation SET marked = 0",
		"UPDATE hapax_answer_1 SET changed = changed + 1",
		"UPDATE hapax_answer_1 SET expires = expires + 1",
		"UPDATE hapax_answer_1 SET expires = -5",
		"UPDATE hapax_answer_1 SET status = 0",
		"UPDATE hapax_answer_1 SET status = 200",
		"UPDATE hapax_answer_1 SET status = 70000",
		"UPDATE hapax_answer_1 SET kept = 2",
		"UPDATE hapax_answer_1 SET kept = 0",
		"UPDATE hapax_answer_1 SET body = x'00'",
		"UPDATE hapax_answer_1 SET crc = crc + 1",
		/* A byte changes sides. */
		"UPDATE hapax_answer_1 SET headers = x'00', body = x'01', crc = 0",
		"UPDATE hapax_answer_1 SET body = CAST(headers || body AS BLOB), headers = x''",
		/* Of one that is aside. */
		ASIDE "when_lost = 3",
		ASIDE "advanced = 2",
		ASIDE "advanced = 1",
		ASIDE "last_error = 'lease_lost'",
		ASIDE "last_error = 'no such error'",
		ASIDE "point = 'two words'",
		ASIDE "token = x'00'",
		ASIDE "mark = zeroblob(16)",
		ASIDE "fingerprint = x''",
		ASIDE "recipe = x'0102'",
		ASIDE "tenant_hash = x'0102'",
		ASIDE "state = 9",
		ASIDE "state = 0",
		ASIDE "state = 4",
		ASIDE "attempt = 0",
		ASIDE "attempt = -1",
		ASIDE "attempt = 7",
		ASIDE "expires = NULL",
		ASIDE "expires = -5",
		ASIDE "retention = -1",
		ASIDE "status = 0",
		ASIDE "status = 70000",
		ASIDE "kept = 2",
		ASIDE "number = number + 1",
		ASIDE "path = '/'",
		ASIDE "headers = NULL, body = NULL",
		ASIDE "body = x'00'",
		ASIDE "answer_crc = answer_crc + 1",
		ASIDE "body = CAST(headers || body AS BLOB), headers = x''",
	};
	struct fixture *f = *state;

	for (unsigned key = 0; key < sizeof(damages) / sizeof(damages[0]); key++) {
		print_message("%s\n", damages[key]);
		bool aside = strncmp(damages[key], ASIDE, sizeof(ASIDE) - 1) == 0;
		struct hpx_store_op op = op_of(HPX_VERB_FORGET, key, A);
		struct hpx_ask ask = ask_of(f->store, key, BODY, B);
		struct hpx_decision decision = { .kind = HPX_DECISION_COUNT };
		struct hpx_answer *replay = NULL;

		fixture_afresh(f);
		reserve(f, key, BODY, A);
		if (aside) {
			assert_status(act(f, HPX_VERB_FAIL, key, A), HPX_OK);
			assert_string_equal(reserve(f, key, BODY, C), "retried");
		}
		complete(f, key, aside ? C : A, "body");
		fixture_close(f);
		raw_sql(f->path, damages[key]);
		if (strstr(damages[key], "marked") != NULL)
			mend_generation(f);
		fixture_open(f);
		if (strcmp(state_of(f, key), "unreadable") != 0)
			fail_msg("%s: %s", damages[key], state_of(f, key));
		assert_string_equal(reserve(f, key, BODY, B), "unknown");
		assert_status(hpx_store_peek(f->reader, &ask, policy(), &decision, &replay), HPX_OK);
		assert_string_equal(hpx_decision_name(decision.kind), "unknown");
		assert_null(replay);
		/* Neither the reaper nor a person without force removes it. */
		advance(f, RETENTION_MS + 1);
		reap(f);
		reap(f);
		assert_status(run_op(f, &op), HPX_CORRUPT);
		assert_string_equal(state_of(f, key), "unreadable");
		op.forget.force = true;
		assert_status(run_op(f, &op), HPX_OK);
		assert_string_equal(state_of(f, key), "none");
		assert_non_null(strstr(events_of(f, key), "forgotten"));
	}
}

static void a_broken_row_does_not_take_a_late_answer(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	raw_sql(f->path, "UPDATE hapax_operation_1 SET recipe = x'01'");
	assert_status(complete(f, 1, A, "x"), HPX_CORRUPT);
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_CORRUPT);
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep(f), 0);
	assert_string_equal(reserve(f, 1, BODY, B), "unknown");
}

static void a_person_mends_a_broken_row_by_force(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_RESOLVE, 1, A);
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("mended") };

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "lost");
	raw_sql(f->path, "UPDATE hapax_answer_1 SET body = x'00'");
	op.resolve.applied = true;
	op.resolve.answer = &answer;
	assert_status(run_op(f, &op), HPX_CORRUPT);
	op.resolve.force = true;
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	assert_string_equal(body_of(f, 1), "mended");
}

static void broken_rows_are_on_the_list_of_unknowns(void **state)
{
	struct fixture *f = *state;
	struct hpx_query query = { .state = HPX_STATE_UNKNOWN, .limit = 10 };
	struct hpx_looked looked;
	struct hpx_entry *entries = NULL;
	size_t count = 0;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "x");
	raw_sql(f->path, "UPDATE hapax_operation_1 SET fingerprint = x'00'");
	assert_status(hpx_store_list(f->reader, &query, &f->arena, &entries, &count, &looked), HPX_OK);
	assert_int_equal(count, 1);
	assert_false(entries[0].readable);
	assert_span(entries[0].description.key, "key-1");
}

static void a_clock_found_wrong_at_start_holds_expiry(void **state)
{
	static const struct {
		const char *sql;
		bool held;
	} rows[] = {
		{ "UPDATE hapax_clock SET ahead = ahead + 100000", true },
		{ "UPDATE hapax_clock SET ahead = ahead - 100000", true },
		{ "UPDATE hapax_clock SET ahead = ahead + 50000", false },
		{ "UPDATE hapax_clock SET ahead = -9223372036854775807 - 1", true },
		/* Another boot: only a wall clock that went back is wrong. */
		{ "UPDATE hapax_clock SET boot = 'x', ahead = 0", false },
		{ "UPDATE hapax_clock SET boot = 'x', seen = seen + 100000", true },
		{ "UPDATE hapax_clock SET boot = 'x', seen = seen + 50000", false },
		{ "DELETE FROM hapax_clock", false },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		reserve(f, (unsigned)i, BODY, A);
		fixture_close(f);
		raw_sql(f->path, rows[i].sql);
		fixture_open(f);
		if (atomic_load(&f->store->expiry_held) != rows[i].held)
			fail_msg("%s: want held %d", rows[i].sql, rows[i].held);
		assert_status(act(f, HPX_VERB_ACCEPT_CLOCK, 0, 0), HPX_OK);
		fixture_reopen(f);
		assert_false(atomic_load(&f->store->expiry_held));
	}
}

static void a_person_accepts_the_clock_beside_the_server(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	struct hpx_store_op op = op_of(HPX_VERB_ACCEPT_CLOCK, 0, 0);
	struct hpx_store_op *ops[] = { &op };
	struct hpx_store *beside = NULL;

	fixture_close(f);
	raw_sql(f->path, "UPDATE hapax_clock SET ahead = ahead + 100000");
	fixture_open(f);
	assert_true(atomic_load(&f->store->expiry_held));
	options.serve = false;
	assert_status(hpx_store_open(&options, &beside, NULL), HPX_OK);
	assert_status(hpx_store_run(beside, ops, 1, NULL), HPX_OK);
	hpx_store_close(beside);
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_false(atomic_load(&f->store->expiry_held));
}

static void low_space_refuses_new_attempts_only(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "x");
	reserve(f, 2, BODY, A);
	act(f, HPX_VERB_FAIL, 2, A);
	fixture_close(f);
	options.free_bytes_min = UINT64_MAX - 1;
	assert_status(hpx_store_open(&options, &f->store, NULL), HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
	assert_string_equal(reserve(f, 1, BODY, B), "replay");
	assert_string_equal(reserve(f, 2, BODY, B), "FULL");
	assert_string_equal(reserve(f, 3, BODY, B), "FULL");
	assert_true(atomic_load(&f->store->space_low));
	assert_string_equal(state_of(f, 2), "failed_retryable");
	assert_string_equal(state_of(f, 3), "none");
}

static void what_counts_as_space(void **state)
{
	static const struct {
		uint64_t disk, file, wanted;
		enum hpx_space space;
	} rows[] = {
		{ 100, 0, 100, HPX_SPACE_ENOUGH },
		{ 99, 0, 100, HPX_SPACE_LOW },
		{ 99, 1, 100, HPX_SPACE_ENOUGH },
		{ 25, 74, 100, HPX_SPACE_LOW },
		{ 25, 75, 100, HPX_SPACE_ENOUGH },
		/* The log needs a quarter, whatever is free inside the file. */
		{ 24, UINT64_MAX, 100, HPX_SPACE_LOG_LOW },
		{ 0, UINT64_MAX, 0, HPX_SPACE_ENOUGH },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, HPX_SPACE_ENOUGH },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum hpx_space got = hpx_space_judge(rows[i].disk, rows[i].file, rows[i].wanted);
		if (got != rows[i].space)
			fail_msg("row %zu: got %d, want %d", i, got, rows[i].space);
	}
}

/* Otherwise its file stays as large as it ever was, up to 128 MiB. */
static void low_space_cuts_the_log(void **state)
{
	static char body[200001];
	struct fixture *f = *state;
	struct hpx_sqlite_store *s = hpx_sqlite_of(f->store);

	memset(body, 'x', sizeof(body) - 1);
	for (unsigned key = 0; key < 30; key++) {
		reserve(f, key, BODY, A);
		complete(f, key, A, body);
	}
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_true(hpx_sqlite_file_log_bytes(f->path) > 4 << 20);
	s->free_bytes_min = UINT64_MAX - 1;
	assert_string_equal(reserve(f, 100, BODY, A), "FULL");
	assert_int_equal(atomic_load(&f->store->space.state), HPX_SPACE_LOG_LOW);
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_int_equal(hpx_sqlite_file_log_bytes(f->path), 0);
	assert_string_equal(reserve(f, 29, BODY, A), "replay");
}

/* What expired leaves pages that the next records are written into. */
static void free_pages_are_counted(void **state)
{
	static char body[200001];
	struct fixture *f = *state;
	struct hpx_sqlite_store *s = hpx_sqlite_of(f->store);

	memset(body, 'x', sizeof(body) - 1);
	for (unsigned key = 0; key < 10; key++) {
		reserve(f, key, BODY, A);
		complete(f, key, A, body);
		act(f, HPX_VERB_FORGET, key, A);
	}
	s->free_bytes_min = 1;
	s->space_checked_ms = 0;
	assert_string_equal(reserve(f, 100, BODY, A), "created");
	assert_true(atomic_load(&f->store->space.file_bytes) > 100000);
	assert_true(atomic_load(&f->store->space.disk_bytes) > 0);
}

static void a_deleted_file_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct hpx_ask ask = ask_of(f->store, 1, BODY, A);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 1, A);
	struct hpx_store_op *ops[] = { &op };
	char problem[HPX_STORE_PROBLEM_SIZE];

	unlink(f->path);
	op.reserve.ask = &ask;
	assert_status(hpx_store_run(f->store, ops, 1, problem), HPX_IO);
	assert_non_null(strstr(problem, "deleted"));
	assert_status(hpx_store_recover(f->store, problem), HPX_NOT_FOUND);
	assert_non_null(strstr(problem, "put the file back"));
	assert_status(hpx_store_run(f->store, ops, 1, problem), HPX_IO);
	assert_int_not_equal(access(f->path, F_OK), 0);
}

static void the_log_is_checkpointed_beside_the_writer(void **state)
{
	static char body[200001];
	struct fixture *f = *state;
	struct stat info;
	char wal[128];

	memset(body, 'x', sizeof(body) - 1);
	snprintf(wal, sizeof(wal), "%s-wal", f->path);
	for (unsigned key = 0; key < 200; key++) {
		reserve(f, key, BODY, A);
		complete(f, key, A, body);
		if (key % 10 == 9)
			assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	}
	assert_int_equal(stat(wal, &info), 0);
	/* 40 MB were written; without checkpoints the log would hold them. */
	assert_in_range(info.st_size, 0, 10 << 20);
}

/* Somebody who reads for long keeps the log from beginning anew. Nobody who writes
 * waits for that, although the log is beyond every bound. */
static void a_reader_that_lingers_delays_no_write(void **state)
{
	enum { BEYOND = 1400,
	       MORE = 5 };
	static char body[200001];
	struct fixture *f = *state;
	sqlite3 *reader;
	int64_t began_ms;

	memset(body, 'x', sizeof(body) - 1);
	reserve(f, 0, BODY, A);
	assert_int_equal(sqlite3_open(f->path, &reader), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM hapax_operation_1", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	for (unsigned key = 1; key < BEYOND; key++) {
		reserve(f, key, BODY, A);
		complete(f, key, A, body);
	}
	began_ms = hpx_clock_boot_ms();
	for (unsigned key = BEYOND; key < BEYOND + MORE; key++)
		reserve(f, key, BODY, A);
	/* Each of them waited two seconds for the reader. */
	assert_in_range(hpx_clock_boot_ms() - began_ms, 0, 5000);
	sqlite3_close(reader);
	/* And once it is gone, the log is written down again. */
	for (unsigned key = BEYOND + MORE; key < BEYOND + 2 * MORE; key++)
		reserve(f, key, BODY, A);
	assert_status(hpx_store_maintain(f->store, NULL), HPX_OK);
	assert_in_range(hpx_sqlite_of(f->store)->wal_bytes, 0, 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(the_file_is_the_owners_alone),
		ON_SQLITE(one_server_per_file),
		ON_SQLITE(a_start_waits_for_the_lock),
		ON_SQLITE(an_absent_file_is_an_error_unless_it_may_be_created),
		ON_SQLITE(a_lost_file_is_told_of),
		ON_SQLITE(what_is_not_ours_is_left_untouched),
		ON_SQLITE(tables_are_made_beside_an_applications_when_asked),
		cmocka_unit_test(addresses_that_name_no_file_are_refused),
		ON_SQLITE(migrate_tells_from_and_to),
		ON_SQLITE(an_older_file_is_refused),
		ON_SQLITE(what_was_written_is_there_after_a_restart),
		ON_SQLITE(what_a_dead_owner_left_is_lost_at_once),
		ON_SQLITE(a_command_beside_the_server_leaves_its_leases_alone),
		ON_SQLITE(a_process_killed_after_its_commit_lost_nothing),
		ON_SQLITE(a_row_that_cannot_be_read_counts_as_unknown),
		ON_SQLITE(a_broken_row_does_not_take_a_late_answer),
		ON_SQLITE(a_person_mends_a_broken_row_by_force),
		ON_SQLITE(broken_rows_are_on_the_list_of_unknowns),
		ON_SQLITE(a_clock_found_wrong_at_start_holds_expiry),
		ON_SQLITE(a_person_accepts_the_clock_beside_the_server),
		ON_SQLITE(low_space_refuses_new_attempts_only),
		ON_SQLITE(what_counts_as_space),
		ON_SQLITE(low_space_cuts_the_log),
		ON_SQLITE(free_pages_are_counted),
		ON_SQLITE(a_deleted_file_is_noticed),
		ON_SQLITE(the_log_is_checkpointed_beside_the_writer),
		ON_SQLITE(a_reader_that_lingers_delays_no_write),
	};
	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
