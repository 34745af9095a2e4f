/* Shows that generations on SQLite open, close, settle and go without anybody's
 * operation being lost or executed again: whichever process reserves, whatever is under
 * way, and wherever the disk fails. */
#include "fixture.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk.h"
#include "store/sqlite/driver.h"

enum { BODY = 1,
       A = 11,
       B = 12,
       C = 13 };

#define SIZE 5

static struct hpx_sqlite_store *driver_of(struct fixture *f)
{
	return hpx_sqlite_of(f->store);
}

static void small(struct fixture *f)
{
	driver_of(f)->generation_operations = SIZE;
}

static void maintain(struct fixture *f)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";

	assert_status(hpx_store_maintain(f->store, problem), HPX_OK);
}

/* A number that a statement gives, as of now. */
static long ask_file(struct fixture *f, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db = NULL;
	long number;

	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	number = (long)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return number;
}

static long generations(struct fixture *f, const char *where)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM hapax_generation WHERE %s", where);
	return ask_file(f, sql);
}

static void fill(struct fixture *f, unsigned from, unsigned to)
{
	for (unsigned key = from; key < to; key++) {
		assert_string_equal(reserve(f, key, BODY, A), "created");
		assert_status(complete(f, key, A, "first"), HPX_OK);
	}
}

static void expect_answered(struct fixture *f, unsigned from, unsigned to)
{
	for (unsigned key = from; key < to; key++) {
		assert_string_equal(reserve(f, key, BODY, B), "replay");
		assert_string_equal(reserve(f, key, BODY + 1, B), "mismatch");
		assert_string_equal(body_of(f, key), "first");
	}
}

/* ---- opening and closing ---- */

static void every_key_is_found_in_whichever_generation(void **state)
{
	struct fixture *f = *state;

	small(f);
	fill(f, 0, 3 * SIZE + 2);
	assert_int_equal(generations(f, "state = 2"), 3);
	assert_int_equal(generations(f, "state = 1"), 1);
	expect_answered(f, 0, 3 * SIZE + 2);
	/* The same with filters, and after a restart that reads them. */
	for (int i = 0; i < 4; i++)
		maintain(f);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_filter"), 3);
	expect_answered(f, 0, 3 * SIZE + 2);
	fixture_reopen(f);
	small(f);
	expect_answered(f, 0, 3 * SIZE + 2);
	fill(f, 3 * SIZE + 2, 4 * SIZE + 2);
	expect_answered(f, 0, 4 * SIZE + 2);
	maintain(f);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_operation WHERE state = 3"), 4 * SIZE + 2);
}

static void a_generation_closes_by_time_where_nothing_is_inserted(void **state)
{
	struct fixture *f = *state;

	reap(f);
	assert_int_equal(generations(f, "1"), 0);
	fill(f, 0, 1);
	advance(f, RETENTION_MS / 4);
	reap(f);
	assert_int_equal(generations(f, "state = 2 AND marked = 0"), 1);
	assert_int_equal(generations(f, "state = 1"), 0);
	/* An empty one is not opened until it is needed. */
	fill(f, 1, 2);
	assert_int_equal(generations(f, "state = 1"), 1);
	expect_answered(f, 0, 2);
}

static void retentions_have_classes(void **state)
{
	static const int64_t retentions_ms[] = { 1000, 60000, 86400000, 86400001, 200000000, 1000 };
	struct fixture *f = *state;

	for (unsigned key = 0; key < sizeof(retentions_ms) / sizeof(retentions_ms[0]); key++) {
		struct hpx_ask ask = ask_of(f->store, key, BODY, A);
		struct hpx_policy policy_of_key = *policy();
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, A);
		policy_of_key.retention_ms = retentions_ms[key];
		op.reserve.ask = &ask;
		op.reserve.policy = &policy_of_key;
		assert_status(run_op(f, &op), HPX_OK);
		assert_status(complete(f, key, A, "first"), HPX_OK);
	}
	assert_int_equal(generations(f, "state = 1"), 3);
	assert_int_equal(generations(f, "class = 134217728 AND retention = 86400001"), 1);
	/* A key of another class is found all the same. */
	assert_string_equal(reserve(f, 4, BODY, B), "replay");
	assert_string_equal(reserve(f, 2, BODY, B), "replay");
}

/* ---- attempts under way ---- */

static void a_generation_with_an_attempt_under_way_stays_marked(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, 0, A), end = op_of(HPX_VERB_COMPLETE, 0, A);
	struct hpx_ask ask = ask_of(f->store, 0, BODY, A);
	struct hpx_answer answer = { .status = 201, .kept = true, .body = HPX_SPAN("first") };
	struct hpx_record record;

	small(f);
	op.reserve.ask = &ask;
	assert_status(run_op(f, &op), HPX_OK);
	record = op.decision.record;
	fill(f, 1, SIZE + 1);
	reap(f);
	assert_int_equal(generations(f, "number = 1 AND state = 2 AND marked = 1"), 1);
	assert_string_equal(state_of(f, 0), "in_progress");
	/* Its answer goes into the closed generation, as its reservation told. */
	end.complete.answer = &answer;
	end.complete.believed = &record;
	end.complete.row = op.reserve.row;
	assert_status(run_op(f, &end), HPX_OK);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_answer_1 WHERE seq = 1"), 1);
	reap(f);
	assert_int_equal(generations(f, "number = 1 AND marked = 0"), 1);
	expect_answered(f, 0, SIZE + 1);
}

static void a_start_loses_what_a_dead_server_left_in_any_generation(void **state)
{
	struct fixture *f = *state;

	small(f);
	assert_string_equal(reserve(f, 0, BODY, A), "created");
	fill(f, 1, SIZE + 1);
	assert_string_equal(reserve(f, SIZE + 1, BODY, A), "created");
	/* A later attempt, which is aside. */
	assert_string_equal(reserve(f, SIZE + 2, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, SIZE + 2, A), HPX_OK);
	assert_string_equal(reserve(f, SIZE + 2, BODY, B), "retried");
	fixture_reopen(f);
	assert_string_equal(state_of(f, 0), "unknown");
	assert_string_equal(state_of(f, SIZE + 1), "unknown");
	assert_string_equal(state_of(f, SIZE + 2), "unknown");
	assert_int_equal(hpx_counter_read(&f->store->lost_at_open), 3);
	expect_answered(f, 1, SIZE + 1);
	reap(f);
	assert_int_equal(generations(f, "number = 1 AND marked = 0"), 1);
}

/* Beside the server nobody judges its attempts, however long they take. */
static void a_servers_attempt_is_in_progress_to_everybody_else(void **state)
{
	struct fixture *f = *state, other = *f;
	struct hpx_store_options options = { .url = hpx_span_of(f->url) };

	assert_string_equal(reserve(f, 1, BODY, A), "created");
	assert_status(hpx_store_open(&options, &other.store, NULL), HPX_OK);
	advance(&other, 100 * LEASE_MS);
	assert_int_equal(sweep(&other), 0);
	assert_string_equal(reserve(&other, 1, BODY, B), "in_progress");
	/* Without a server, whoever sweeps takes its lock, and finds it lost. */
	fixture_close(f);
	assert_int_equal(sweep(&other), 1);
	assert_string_equal(reserve(&other, 1, BODY, B), "unknown");
	hpx_store_close(other.store);
	fixture_open(f);
}

static void an_application_renews_a_servers_attempt(void **state)
{
	struct fixture *f = *state, other = *f;
	struct hpx_store_options options = { .url = hpx_span_of(f->url) };
	struct hpx_store_op renew = op_of(HPX_VERB_RENEW, 1, A);

	assert_string_equal(reserve(f, 1, BODY, A), "created");
	assert_status(hpx_store_open(&options, &other.store, NULL), HPX_OK);
	renew.renew.lease_ms = 3 * LEASE_MS;
	assert_status(run_op(&other, &renew), HPX_OK);
	hpx_store_close(other.store);
	advance(f, 2 * LEASE_MS);
	assert_int_equal(sweep(f), 0);
	assert_string_equal(reserve(f, 1, BODY, B), "in_progress");
	advance(f, LEASE_MS + 1000);
	assert_int_equal(sweep(f), 1);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_lease"), 0);
}

/* ---- aside rows over plain ones ---- */

static void an_expired_copy_is_used_again_beside_it(void **state)
{
	struct fixture *f = *state;

	small(f);
	fill(f, 0, SIZE + 1);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve(f, 0, BODY + 1, B), "created");
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_aside WHERE generation = 1 AND number = 1"), 1);
	assert_status(complete(f, 0, B, "again"), HPX_OK);
	assert_string_equal(body_of(f, 0), "again");
	assert_status(complete(f, 0, A, "stale"), HPX_STALE);
	/* Its generation goes under it. */
	while (generations(f, "number = 1") != 0)
		reap(f);
	assert_string_equal(body_of(f, 0), "again");
	assert_string_equal(reserve(f, 0, BODY + 1, C), "replay");
	assert_string_equal(reserve(f, 1, BODY, C), "created");
	/* And it is removed without it. */
	assert_status(act(f, HPX_VERB_FORGET, 0, B), HPX_OK);
	assert_string_equal(state_of(f, 0), "none");
	assert_string_equal(reserve(f, 0, BODY, C), "created");
}

static void an_aside_row_takes_its_copy_along(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(reserve(f, 1, BODY, A), "created");
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_operation_1"), 1);
	advance(f, RETENTION_MS + 1);
	assert_int_equal(reap(f), 1);
	assert_string_equal(state_of(f, 1), "none");
	assert_string_equal(reserve(f, 1, BODY, B), "created");
	assert_status(act(f, HPX_VERB_RELEASE, 1, B), HPX_OK);
	assert_string_equal(state_of(f, 1), "none");
}

/* ---- reaping ---- */

static void a_generation_goes_when_all_of_it_has_expired(void **state)
{
	struct fixture *f = *state;
	unsigned reaped = 0;

	small(f);
	fill(f, 0, 2 * SIZE);
	advance(f, RETENTION_MS / 2);
	fill(f, 2 * SIZE, 2 * SIZE + 1);
	for (int i = 0; i < 4; i++)
		maintain(f);
	assert_int_equal(reap(f), 0);
	advance(f, RETENTION_MS / 2 + 1);
	for (int i = 0; i < 8; i++)
		reaped += reap(f);
	assert_int_equal(reaped, 2 * SIZE);
	assert_int_equal(generations(f, "1"), 1);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'hapax_operation_%' "
				     "OR name LIKE 'hapax_answer_%' OR name GLOB 'hapax_id_[0-9]*'"),
			 3);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_filter WHERE generation < 3"), 0);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_filter_part WHERE part < 3 << 16"), 0);
	expect_answered(f, 2 * SIZE, 2 * SIZE + 1);
	/* Numbers are not used again. */
	fill(f, 0, 2 * SIZE);
	assert_int_equal(ask_file(f, "SELECT min(number) FROM hapax_generation"), 3);
	maintain(f);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_operation"), 2 * SIZE + 1);
}

static void a_held_clock_reaps_no_generation(void **state)
{
	struct fixture *f = *state;

	small(f);
	fill(f, 0, SIZE + 1);
	atomic_fetch_add(&f->store->wall_shift_ms, 2 * (int64_t)RETENTION_MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(reap(f), 0);
	expect_answered(f, 0, SIZE + 1);
}

/* ---- two processes ---- */

#define RACE_KEYS 120

/* Reserves every key and completes what it was given; a byte for each that it was. */
static void race(struct fixture *f, unsigned token, uint64_t owner, uint8_t *won)
{
	for (unsigned key = 0; key < RACE_KEYS; key++) {
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token), *ops = &op;
		struct hpx_ask ask = ask_of(f->store, key, BODY, token);
		enum hpx_status status;
		ask.owner = owner;
		op.reserve.ask = &ask;
		do
			status = hpx_store_run(f->store, &ops, 1, NULL);
		while (status == HPX_BUSY);
		assert_status(status, HPX_OK);
		hpx_answer_free(op.reserve.replay);
		won[key] = op.decision.kind == HPX_DECISION_EXECUTE;
		if (won[key])
			assert_status(complete(f, key, token, "first"), HPX_OK);
	}
}

/* A library in a process of its own, with generations of its own size. */
static void race_beside(struct fixture *f, int fd)
{
	struct hpx_store_options options = { .url = hpx_span_of(f->url) };
	uint8_t won[RACE_KEYS];

	if (hpx_store_open(&options, &f->store, NULL) != HPX_OK)
		_exit(1);
	driver_of(f)->generation_operations = 3;
	race(f, B, 0, won);
	_exit(write(fd, won, sizeof(won)) == (ssize_t)sizeof(won) ? 0 : 1);
}

static void one_of_two_processes_wins_while_generations_come(void **state)
{
	struct fixture *f = *state;
	uint8_t ours[RACE_KEYS], theirs[RACE_KEYS];
	int ends[2], status = 0;
	pid_t child;

	fixture_close(f);
	assert_int_equal(pipe(ends), 0);
	fixture_open(f);
	fixture_close(f);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		race_beside(f, ends[1]);
	fixture_open(f);
	small(f);
	race(f, A, f->store->owner, ours);
	assert_int_equal(read(ends[0], theirs, sizeof(theirs)), sizeof(theirs));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
	for (unsigned key = 0; key < RACE_KEYS; key++)
		if (ours[key] + theirs[key] != 1)
			fail_msg("key %u: %d of the server's and %d of the library's executed", key,
				 ours[key], theirs[key]);
	expect_answered(f, 0, RACE_KEYS);
	assert_in_range(generations(f, "1"), RACE_KEYS / SIZE / 2, RACE_KEYS);
	for (int i = 0; i < RACE_KEYS; i++)
		maintain(f);
	expect_answered(f, 0, RACE_KEYS);
}

/* ---- damage ---- */

/* Changes a bit of the key that was inserted first, in the index of a generation: the
 * file is stopped, and its pages are whole to SQLite. */
static void flip_first_key(struct fixture *f, int generation)
{
	char sql[128];
	unsigned char byte;
	FILE *file;

	snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name = 'hapax_id_%d'", generation);
	long at = ask_file(f, sql) * 4096 - 8;
	file = fopen(f->path, "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, at, SEEK_SET), 0);
	assert_int_equal(fread(&byte, 1, 1, file), 1);
	byte ^= 0x10;
	assert_int_equal(fseek(file, at, SEEK_SET), 0);
	assert_int_equal(fwrite(&byte, 1, 1, file), 1);
	fclose(file);
}

static void count_line(void *user, const char *line)
{
	unsigned *lines = user;

	print_message("%s\n", line);
	++*lines;
}

static struct hpx_store_repair repair(struct fixture *f, bool accept)
{
	struct hpx_store_options options = { .url = hpx_span_of(f->url) };
	unsigned lines = 0;
	struct hpx_store_repair result = { .tell = count_line, .user = &lines };
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = hpx_store_repair(&options, accept, &result, problem);

	if (status != HPX_OK)
		fail_msg("%s: %s", hpx_status_name(status), problem);
	assert_int_equal(lines, result.damaged);
	return result;
}

/* The keeper looks at everything; what it says last. */
static enum hpx_status look_at_all(struct fixture *f)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = HPX_OK;

	for (int i = 0; i < 40 && status == HPX_OK; i++) {
		driver_of(f)->check_at_ms = 1;
		status = hpx_store_maintain(f->store, problem);
	}
	return status;
}

/* The key whose place in the index is lost is not taken for a new one. */
static void a_damaged_index_refuses_new_keys_until_it_is_repaired(void **state)
{
	struct fixture *f = *state;

	for (int closed = 0; closed < 2; closed++) {
		fixture_afresh(f);
		small(f);
		fill(f, 0, closed ? SIZE + 1 : 3);
		assert_status(look_at_all(f), HPX_OK);
		fixture_close(f);
		flip_first_key(f, 1);
		fixture_open(f);
		/* Of a closed generation the keeper finds it; until then the list of ids
		 * speaks against the index, and new keys are taken. */
		if (closed) {
			assert_string_equal(reserve(f, 0, BODY, B), "UNAVAILABLE");
			fill(f, 40, 41);
			assert_status(look_at_all(f), HPX_CORRUPT);
		}
		assert_string_equal(reserve(f, 0, BODY, B), "UNAVAILABLE");
		assert_string_equal(reserve(f, 50, BODY, B), "UNAVAILABLE");
		expect_answered(f, 1, 3);
		/* It is not forgotten by a start. */
		fixture_reopen(f);
		assert_true(f->store->warning[0] != '\0');
		assert_string_equal(reserve(f, 50, BODY, B), "UNAVAILABLE");
		assert_int_equal(repair(f, false).damaged, 1);
		fixture_close(f);
		assert_int_equal(repair(f, true).mended, 1);
		assert_int_equal(repair(f, false).damaged, 0);
		fixture_open(f);
		expect_answered(f, 0, 3);
		fill(f, 50, 51);
	}
}

/* A closed generation as a start finds it, whose filter lets the key pass. */
static void let_pass(struct fixture *f, unsigned key)
{
	struct hpx_sqlite_filters *filters = &driver_of(f)->filters;
	struct hpx_operation_id id = id_of(key);

	assert_int_equal(filters->items[filters->count - 1].generation, 1);
	assert_non_null(filters->items[filters->count - 1].stored);
	hpx_id_filter_add(filters->items[filters->count - 1].stored, id.bytes);
}

static void fill_closed(struct fixture *f)
{
	fixture_afresh(f);
	small(f);
	fill(f, 0, SIZE + 1);
	maintain(f);
	assert_int_equal(ask_file(f, "SELECT count(*) FROM hapax_filter_part"), 1);
}

/* Right after a start, before anything was compared: the list of ids tells. */
static void a_new_key_that_a_filter_lets_pass_is_new(void **state)
{
	struct fixture *f = *state;

	fill_closed(f);
	fixture_reopen(f);
	let_pass(f, 50);
	fill(f, 50, 51);
	expect_answered(f, 0, SIZE + 1);
}

/* A list that cannot be believed proves nothing; neither does the index, until it was
 * compared with its table. */
static void a_damaged_list_of_ids_proves_nothing(void **state)
{
	static const char *const damages[] = {
		"DELETE FROM hapax_filter_part",
		"UPDATE hapax_filter_part SET crc = crc + 1",
		"UPDATE hapax_filter_part SET ids = zeroblob(length(ids))",
		"UPDATE hapax_filter_part SET ids = substr(ids, 17)",
		"UPDATE hapax_filter_part SET part = part + 1",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		print_message("%s\n", damages[i]);
		fill_closed(f);
		fixture_close(f);
		raw_sql(f->path, damages[i]);
		fixture_open(f);
		let_pass(f, 50);
		assert_string_equal(reserve(f, 50, BODY, A), "UNAVAILABLE");
		expect_answered(f, 0, SIZE + 1);
		fill(f, 51, 52);
		assert_status(look_at_all(f), HPX_OK);
		fill(f, 50, 51);
	}
}

/* What a person removed stays in the list of a closed generation. */
static void a_removed_key_is_new_once_its_index_was_compared(void **state)
{
	struct fixture *f = *state;

	fill_closed(f);
	assert_status(act(f, HPX_VERB_FORGET, 0, A), HPX_OK);
	fill(f, 0, 1);
	assert_status(act(f, HPX_VERB_FORGET, 1, A), HPX_OK);
	fixture_reopen(f);
	assert_string_equal(reserve(f, 1, BODY, A), "UNAVAILABLE");
	assert_status(look_at_all(f), HPX_OK);
	fill(f, 1, 2);
	expect_answered(f, 0, SIZE + 1);
}

/* A bit of any byte of the rows' pages: the operation is unknown, answered right, or
 * refused; never executed again, and never answered wrongly. */
static void whichever_bit_of_a_row_is_flipped(void **state)
{
	static const char *const tables[] = { "hapax_operation_1", "hapax_answer_1" };
	struct fixture *f = *state;

	for (unsigned i = 0; i < 2 * 160; i++) {
		char sql[128];
		unsigned char byte;
		struct hpx_store_options options = fixture_options(f);
		fixture_afresh(f);
		fill(f, 0, 2);
		fixture_close(f);
		snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", tables[i % 2]);
		long at = ask_file(f, sql) * 4096 - 1 - (long)(i / 2) * 3;
		FILE *file = fopen(f->path, "r+b");
		assert_non_null(file);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		assert_int_equal(fread(&byte, 1, 1, file), 1);
		byte ^= (unsigned char)(1 << i % 8);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		assert_int_equal(fwrite(&byte, 1, 1, file), 1);
		fclose(file);
		options.create = false;
		if (hpx_store_open(&options, &f->store, NULL) == HPX_OK) {
			assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
			for (unsigned key = 0; key < 2; key++) {
				struct hpx_ask ask = ask_of(f->store, key, BODY, B);
				struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, B), *ops = &op;
				op.reserve.ask = &ask;
				if (hpx_store_run(f->store, &ops, 1, NULL) != HPX_OK)
					break;
				bool right = op.status != HPX_OK || op.decision.kind == HPX_DECISION_UNKNOWN ||
					     (op.decision.kind == HPX_DECISION_REPLAY && op.reserve.replay != NULL &&
					      hpx_span_eq(op.reserve.replay->body, HPX_SPAN("first")));
				hpx_answer_free(op.reserve.replay);
				if (!right)
					fail_msg("byte %ld of %s, key %u: %s", at, tables[i % 2], key,
						 hpx_decision_name(op.decision.kind));
			}
			fixture_close(f);
		}
		fixture_folder_remove(f->folder);
		fixture_folder(f->folder, sizeof(f->folder));
		snprintf(f->path, sizeof(f->path), "%s/hapax.db", f->folder);
		snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
		fixture_open(f);
	}
}

/* ---- the disk fails ---- */

static bool has_failed(enum hpx_status status)
{
	return status != HPX_OK;
}

/* As the committer does: again, after a recovery, until the store takes it. */
static void insist(struct fixture *f, struct hpx_store_op *op)
{
	struct hpx_store_op *ops = op;
	int tries = 0;

	while (has_failed(hpx_store_run(f->store, &ops, 1, NULL))) {
		hpx_store_recover(f->store, NULL);
		assert_true(tries++ < 20);
	}
	assert_status(op->status, HPX_OK);
}

static void insist_on_key(struct fixture *f, unsigned key)
{
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, A), end = op_of(HPX_VERB_COMPLETE, key, A);
	struct hpx_ask ask = ask_of(f->store, key, BODY, A);
	struct hpx_answer answer = { .status = 201, .kept = true, .body = HPX_SPAN("first") };

	op.reserve.ask = &ask;
	insist(f, &op);
	assert_string_equal(hpx_decision_name(op.decision.kind), "created");
	end.complete.answer = &answer;
	insist(f, &end);
}

static void insist_on_reaping(struct fixture *f)
{
	struct hpx_store_op op = op_of(HPX_VERB_REAP, 0, 0);

	op.reap.limit = 3;
	insist(f, &op);
}

/* Closing, filtering and reaping, with a disk that fails once on the way. */
static void live_through(struct fixture *f)
{
	small(f);
	for (unsigned key = 0; key < 2 * SIZE + 1; key++) {
		insist_on_key(f, key);
		hpx_store_maintain(f->store, NULL);
	}
	insist_on_reaping(f);
	advance(f, RETENTION_MS + 1);
	insist_on_key(f, 100);
	for (int i = 0; i < 6; i++) {
		insist_on_reaping(f);
		hpx_store_maintain(f->store, NULL);
	}
}

static void expect_lived(struct fixture *f)
{
	fixture_reopen(f);
	advance(f, RETENTION_MS + 1);
	expect_answered(f, 100, 101);
	for (int i = 0; i < 12; i++)
		reap(f);
	for (unsigned key = 0; key < 2 * SIZE + 1; key++)
		assert_string_equal(reserve(f, key, BODY, C), "created");
	assert_int_equal(ask_file(f, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
}

static void whichever_call_of_the_disk_fails(void **state)
{
	static const struct disk_plan plans[] = {
		{ .call = DISK_WRITE, .code = SQLITE_IOERR_WRITE, .done = DISK_UNDONE },
		{ .call = DISK_WRITE, .code = SQLITE_FULL, .done = DISK_HALF_DONE },
		{ .call = DISK_SYNC, .code = SQLITE_IOERR_FSYNC, .done = DISK_DONE },
		{ .call = DISK_READ, .code = SQLITE_IOERR_READ, .done = DISK_UNDONE },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		bool failed = true;
		/* Every call at first, then every seventh: they repeat. */
		for (unsigned nth = 1; failed; nth += nth < 20 ? 1 : 7) {
			struct disk_plan plan = plans[i];
			plan.nth = nth;
			plan.length = 1;
			fixture_afresh(f);
			disk_arm(&plan);
			live_through(f);
			failed = disk_disarm();
			expect_lived(f);
		}
	}
}

/* The process dies at the n-th write or sync; the next one finds everything. */
static void whichever_call_is_the_last_of_a_process(void **state)
{
	struct fixture *f = *state;
	bool died = true;

	for (unsigned nth = 1; died; nth += nth < 20 ? 3 : 13) {
		struct disk_plan plan = { .call = DISK_WRITE, .code = DISK_DIES, .nth = nth, .length = 1 };
		int status = 0;
		fixture_afresh(f);
		fixture_close(f);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			disk_arm(&plan);
			fixture_open(f);
			live_through(f);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		died = WIFSIGNALED(status);
		fixture_open(f);
		/* What is there is answered right, or unknown; the rest is new. */
		for (unsigned key = 0; key < 2 * SIZE + 1; key++) {
			const char *found = reserve(f, key, BODY, C);
			if (strcmp(found, "replay") == 0)
				assert_string_equal(body_of(f, key), "first");
			else if (strcmp(found, "unknown") != 0 && strcmp(found, "created") != 0)
				fail_msg("write %u, key %u: %s", nth, key, found);
		}
		assert_int_equal(ask_file(f, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(every_key_is_found_in_whichever_generation),
		ON_SQLITE(a_generation_closes_by_time_where_nothing_is_inserted),
		ON_SQLITE(retentions_have_classes),
		ON_SQLITE(a_generation_with_an_attempt_under_way_stays_marked),
		ON_SQLITE(a_start_loses_what_a_dead_server_left_in_any_generation),
		ON_SQLITE(a_servers_attempt_is_in_progress_to_everybody_else),
		ON_SQLITE(an_application_renews_a_servers_attempt),
		ON_SQLITE(an_expired_copy_is_used_again_beside_it),
		ON_SQLITE(an_aside_row_takes_its_copy_along),
		ON_SQLITE(a_generation_goes_when_all_of_it_has_expired),
		ON_SQLITE(a_held_clock_reaps_no_generation),
		ON_SQLITE(one_of_two_processes_wins_while_generations_come),
		ON_SQLITE(a_damaged_index_refuses_new_keys_until_it_is_repaired),
		ON_SQLITE(a_new_key_that_a_filter_lets_pass_is_new),
		ON_SQLITE(a_damaged_list_of_ids_proves_nothing),
		ON_SQLITE(a_removed_key_is_new_once_its_index_was_compared),
		ON_SQLITE(whichever_bit_of_a_row_is_flipped),
		ON_SQLITE(whichever_call_of_the_disk_fails),
		ON_SQLITE(whichever_call_is_the_last_of_a_process),
	};
	disk_register();
	return cmocka_run_group_tests_name("generation", tests, NULL, NULL);
}
