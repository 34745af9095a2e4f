/* Shows what is SQLite's own about the outbox: whose claims are lost when the
 * file is opened, what becomes of rows that cannot be read or have a flipped bit, that jobs of the
 * earlier schema are still owed, and that a claim costs the same however many
 * jobs wait. */
#include "delivery.h"

#include "store/sqlite/driver.h"

enum { A = 1,
       B = 2 };
#define BODY 1
#define HOUR_MS 3600000

static void what_a_dead_worker_claimed_is_lost_at_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	fixture_reopen(f);
	assert_string_equal(job_state(f, d.number), "unknown");
	assert_string_equal(state_of(f, 1), "unknown");
	assert_int_equal(hpx_counter_read(&f->store->lost_at_open), 1);
	accept_later(f, 2, A);
	d = claim_one(f, HOUR_MS);
	fixture_reopen(f);
	assert_string_equal(job_state(f, d.number), "queued");
	assert_string_equal(state_of(f, 2), "pending");
}

static void a_command_beside_the_server_leaves_its_claims_alone(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	struct hpx_store *beside = NULL;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	options.serve = false;
	assert_status(hpx_store_open(&options, &beside, NULL), HPX_OK);
	assert_string_equal(job_state(f, d.number), "sending");
	hpx_store_close(beside);
}

static void what_cannot_be_read_is_never_sent(void **state)
{
	static const char *const broken[] = {
		"state = 99",
		"state = 0",
		"attempt = -1",
		"budget = 5",
		"unsure = 2",
		"answers = 7",
		"status = 1000",
		"token = x'01'",
		"mark = x'0102'",
		"mark = zeroblob(16)",
		"operation = x'01'",
		"due = -5",
		"first_sent = -1",
		"path = 'no path'",
		"method = 'post it'",
		"target = ''",
		"name = ''",
		"provider_id = printf('%0200d', 1)",
		"token = x'01010101010101010101010101010101'",
	};
	struct fixture *f = *state;
	char sql[256];

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		fixture_afresh(f);
		accept_later(f, 1, A);
		snprintf(sql, sizeof(sql), "UPDATE hapax_job SET %s WHERE seq = 1", broken[i]);
		raw_sql(f->path, sql);
		accept_later(f, 2, A);
		if (strcmp(job_state(f, 1), "unreadable") != 0)
			fail_msg("%s: the job is %s", broken[i], job_state(f, 1));
		/* The others are not held up by it. */
		if (strcmp(claim_names(f, 5), "answer") != 0)
			fail_msg("%s: the wrong jobs were claimed", broken[i]);
		assert_status(person_moves(f, 1, HPX_JOB_MOVE_RETRY, true), HPX_CORRUPT);
		assert_int_equal(count_unsettled(f), 0);
		advance(f, 4 * (int64_t)RETENTION_MS);
		reap(f);
		if (strcmp(job_state(f, 1), "unreadable") != 0)
			fail_msg("%s: the job is %s", broken[i], job_state(f, 1));
		/* A person removes it, by force only. */
		assert_status(person_moves(f, 1, HPX_JOB_MOVE_DISCARD, false), HPX_CORRUPT);
		assert_status(person_moves(f, 1, HPX_JOB_MOVE_DISCARD, true), HPX_OK);
		if (strcmp(job_state(f, 1), "none") != 0)
			fail_msg("%s: the job is %s after its removal", broken[i], job_state(f, 1));
		assert_status(person_moves(f, 1, HPX_JOB_MOVE_DISCARD, true), HPX_NOT_FOUND);
	}
}

/* ---- one bit ---- */

/* SQL's flip(value): one bit is another. A value without a byte gets one. */
static void flip(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *bytes = sqlite3_value_blob(values[0]);
	int len = sqlite3_value_bytes(values[0]), type = sqlite3_value_type(values[0]);
	char changed[256] = { 1 };

	assert_int_equal(count, 1);
	if (type == SQLITE_INTEGER) {
		sqlite3_result_int64(context, sqlite3_value_int64(values[0]) ^ 2);
		return;
	}
	assert_in_range(len, 0, sizeof(changed));
	if (len > 0)
		memcpy(changed, bytes, (size_t)len);
	changed[len > 0 ? len - 1 : 0] ^= 1;
	len = len > 0 ? len : 1;
	if (type == SQLITE_TEXT)
		sqlite3_result_text(context, changed, len, SQLITE_TRANSIENT);
	else
		sqlite3_result_blob(context, changed, len, SQLITE_TRANSIENT);
}

/* SQL's checks of a row: body_check(operation, headers, body), and seal(...) of all that
 * a row has otherwise, in the order of the columns here. */
#define SEALED \
	"operation, mark, token, seq, state, answers, unsure, attempt, budget, status, owner, created, " \
	"changed, due, lease_until, first_sent, resend_until, body_crc, provider_id, name, target, " \
	"method, path"
#define FIXED_COLUMNS 3
#define NUMBER_COLUMNS 15

static struct hpx_span bytes_of(sqlite3_value *value)
{
	const char *bytes = sqlite3_value_blob(value);

	return hpx_span(bytes, (size_t)sqlite3_value_bytes(value));
}

static void seal(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	for (int i = 0; i < count; i++) {
		if (i < FIXED_COLUMNS)
			hpx_sqlite_crc_fixed(&crc, bytes_of(values[i]).ptr, bytes_of(values[i]).len);
		else if (i < FIXED_COLUMNS + NUMBER_COLUMNS)
			hpx_sqlite_crc_int(&crc, sqlite3_value_int64(values[i]));
		else
			hpx_sqlite_crc_span(&crc, bytes_of(values[i]));
	}
	sqlite3_result_int64(context, hpx_sqlite_crc_end(&crc));
}

static void body_check(sqlite3_context *context, int count, sqlite3_value **values)
{
	struct hpx_job job = { .headers = bytes_of(values[1]), .body = bytes_of(values[2]) };
	struct hpx_operation_id id;

	assert_int_equal(count, 3);
	assert_int_equal(bytes_of(values[0]).len, sizeof(id.bytes));
	memcpy(id.bytes, bytes_of(values[0]).ptr, sizeof(id.bytes));
	sqlite3_result_int64(context, hpx_sqlite_job_body_crc(&id, &job));
}

/* As raw_sql, with the functions above. */
static void checked_sql(const char *path, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_create_function(db, "flip", 1, SQLITE_UTF8, NULL, flip, NULL, NULL);
	sqlite3_create_function(db, "seal", -1, SQLITE_UTF8, NULL, seal, NULL, NULL);
	sqlite3_create_function(db, "body_check", 3, SQLITE_UTF8, NULL, body_check, NULL, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

#define SEAL "UPDATE hapax_job SET body_crc = body_check(operation, headers, body); " \
	     "UPDATE hapax_job SET crc = seal(" SEALED ")"

/* How many jobs the list of unknown ones has, and how many of them cannot be read. */
static void assert_unknown_listed(struct fixture *f, const char *what, unsigned unreadable)
{
	struct hpx_job_query query = { .state = HPX_JOB_UNKNOWN, .limit = 100 };
	struct hpx_store_stats stats;
	struct hpx_job_entry *jobs = NULL;
	unsigned count = 0;

	assert_status(hpx_store_jobs(f->reader, &query, &jobs), HPX_OK);
	for (const struct hpx_job_entry *e = jobs; e != NULL; e = e->next)
		count += !e->readable;
	hpx_job_entry_free(jobs);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	if (count != unreadable || stats.dead_jobs != unreadable)
		fail_msg("%s: %u unreadable jobs on the list, %llu for a person; want %u", what, count,
			 (unsigned long long)stats.dead_jobs, unreadable);
}

static const char *const columns[] = { "operation", "mark", "name", "target", "method", "path",
				       "headers", "body", "created", "state", "answers", "unsure",
				       "attempt", "budget", "status", "token", "owner", "changed",
				       "due", "lease_until", "first_sent", "resend_until",
				       "provider_id", "body_crc", "crc" };
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

static void flip_column(struct fixture *f, const char *column)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "UPDATE hapax_job SET %s = flip(%s) WHERE seq = 1", column, column);
	checked_sql(f->path, sql);
}

/* One that waits: it is not sent, and is shown to a person once it was to be sent. What
 * moved it out of the list of what is due is met by whoever walks the list it is in. */
static void a_flipped_bit_of_a_queued_job_is_noticed(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		fixture_afresh(f);
		accept_later(f, 1, A);
		flip_column(f, columns[i]);
		if (strcmp(job_state(f, 1), "unreadable") != 0)
			fail_msg("%s: the job is %s", columns[i], job_state(f, 1));
		advance(f, 10);
		if (strcmp(claim_names(f, 5), "") != 0)
			fail_msg("%s: it was claimed", columns[i]);
		assert_status(person_moves(f, 1, HPX_JOB_MOVE_RETRY, true),
			      strcmp(columns[i], "headers") == 0 || strcmp(columns[i], "body") == 0 ?
				      HPX_REFUSED :
				      HPX_CORRUPT);
		if (strcmp(columns[i], "target") == 0) /* its index was changed with it */
			continue;
		advance(f, 4 * (int64_t)RETENTION_MS);
		reap(f);
		assert_unknown_listed(f, columns[i], 1);
	}
}

/* One that is done is not taken for something else, and stays for a person to look at. */
static void a_flipped_bit_of_a_finished_job_is_noticed(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		struct hpx_delivery d;

		/* Nobody reads these of a job that is over. */
		if (strcmp(columns[i], "headers") == 0 || strcmp(columns[i], "body") == 0)
			continue;
		fixture_afresh(f);
		accept_later(f, 1, A);
		d = claim_one(f, 0);
		assert_status(end_job(f, &d, HPX_JOB_MOVE_DELIVER), HPX_OK);
		assert_string_equal(job_state(f, 1), "done");
		flip_column(f, columns[i]);
		assert_string_equal(claim_names(f, 5), "");
		advance(f, 4 * (int64_t)RETENTION_MS);
		reap(f);
		if (strcmp(job_state(f, 1), "unreadable") != 0)
			fail_msg("%s: the job is %s", columns[i], job_state(f, 1));
		assert_unknown_listed(f, columns[i], 1);
	}
}

/* People, questions and moves name a job by its number, so a row that has another one is
 * not taken for that job; and the number of one that is whole stays its own. */
static void a_flipped_bit_of_a_number_is_noticed(void **state)
{
	struct fixture *f = *state;

	accept_later(f, 1, A);
	accept_later(f, 2, A);
	raw_sql(f->path, "UPDATE hapax_job SET seq = seq + 32 WHERE seq = 1");
	assert_string_equal(job_state(f, 1), "none");
	assert_string_equal(job_state(f, 33), "unreadable");
	accept_later(f, 3, A);
	assert_string_equal(job_state(f, 34), "queued");
	advance(f, 10);
	assert_string_equal(claim_names(f, 5), "answer answer");
	assert_string_equal(job_state(f, 2), "sending");
	assert_string_equal(job_state(f, 34), "sending");
	assert_unknown_listed(f, "seq", 1);
}

/* The first value of a query, as text. */
static void assert_sql(const char *path, const char *sql, const char *want)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	const char *got;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	got = (const char *)sqlite3_column_text(stmt, 0);
	if (strcmp(got, want) != 0)
		fail_msg("%s: %s, not %s", sql, got, want);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/* Changes the row and none of its indexes, as a flipped bit of the file does. */
#define BEHIND_THE_INDEXES \
	"PRAGMA writable_schema = ON; CREATE TEMP TABLE saved AS SELECT * FROM sqlite_schema " \
	"WHERE type = 'index' AND tbl_name = 'hapax_job' AND sql IS NOT NULL; " \
	"DELETE FROM sqlite_schema WHERE name IN (SELECT name FROM saved); " \
	"PRAGMA writable_schema = RESET; UPDATE hapax_job SET %s WHERE seq = 1; " \
	"PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM saved; " \
	"PRAGMA writable_schema = RESET"

/* The row is one thing, its index entries another: nothing of either is left, other jobs go
 * on, and neither the operation that it was of nor the one that it names now is touched. */
static void a_damaged_job_is_removed_with_its_index_entries(void **state)
{
	static const char *const damages[] = { "target = 'nailer'", "state = 3", "due = due + 2",
					       "provider_id = 'x'", "answers = 0" };
	struct fixture *f = *state;
	char sql[1024];

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		fixture_afresh(f);
		accept_later(f, 1, A);
		accept_later(f, 2, A);
		raw_sql(f->path, "INSERT INTO hapax_reconcile SELECT operation, mark, seq, 'x', 0, 0, 0, 0, 0, 0, 1 "
				 "FROM hapax_job WHERE seq = 1");
		snprintf(sql, sizeof(sql), BEHIND_THE_INDEXES, damages[i]);
		raw_sql(f->path, sql);
		assert_string_equal(job_state(f, 1), "unreadable");
		assert_status(person_moves(f, 1, HPX_JOB_MOVE_DISCARD, true), HPX_OK);
		assert_string_equal(job_state(f, 1), "none");
		assert_unknown_listed(f, damages[i], 0);
		assert_sql(f->path, "PRAGMA integrity_check", "ok");
		assert_sql(f->path, "SELECT (SELECT count(*) FROM hapax_job_unreadable) + "
				    "(SELECT count(*) FROM hapax_reconcile)",
			   "0");
		assert_string_equal(state_of(f, 1), "pending");
		advance(f, 10);
		assert_string_equal(claim_names(f, 5), "answer");
		assert_string_equal(job_state(f, 2), "sending");
		/* Whose answer it was is not known to anybody: that operation is for a person
		 * when its time is over. */
		advance(f, 4 * (int64_t)RETENTION_MS);
		reap(f);
		assert_string_equal(state_of(f, 1), "unknown");
	}
}

/* A damaged page may lead to another table's rows: they count as jobs that cannot be read,
 * and are not removed, by force neither. */
static void a_row_of_another_table_is_not_removed(void **state)
{
	struct fixture *f = *state;

	accept_later(f, 1, A);
	raw_sql(f->path, "CREATE TABLE other (number INTEGER PRIMARY KEY, id BLOB, text TEXT); "
			 "INSERT INTO other VALUES (7, zeroblob(32), 'kept'); PRAGMA writable_schema = ON; "
			 "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'other') "
			 "WHERE name = 'hapax_job' AND type = 'table'; PRAGMA writable_schema = RESET");
	assert_string_equal(job_state(f, 7), "unreadable");
	assert_status(person_moves(f, 7, HPX_JOB_MOVE_DISCARD, true), HPX_INVALID);
	assert_sql(f->path, "SELECT text FROM other", "kept");
}

/* Of a job whose body alone is damaged the rest is true: it is discarded as any other, and
 * is on no list then. */
static void a_job_with_a_damaged_body_is_discarded(void **state)
{
	struct fixture *f = *state;

	accept_later(f, 1, A);
	flip_column(f, "body");
	advance(f, 10);
	assert_string_equal(claim_names(f, 5), "");
	assert_unknown_listed(f, "body", 1);
	assert_status(person_moves(f, 1, HPX_JOB_MOVE_DISCARD, false), HPX_OK);
	assert_unknown_listed(f, "body", 0);
	assert_string_equal(state_of(f, 1), "completed");
}

static void an_earlier_job_that_cannot_be_read_keeps_the_order(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	owe(f, 1, A, "first");
	owe(f, 1, A, "second");
	raw_sql(f->path, "UPDATE hapax_job SET state = 99 WHERE seq = 1");
	assert_string_equal(claim_names(f, 5), "");
}

/* ---- many jobs ---- */

#define MANY \
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %u) " \
	"INSERT INTO hapax_job (operation, mark, name, target, method, path, headers, body, " \
	"created, changed, due, body_crc, crc) SELECT randomblob(32), randomblob(16), 'many', 'mailer', " \
	"'POST', '/', '', x'', 1, 1, i, 0, 0 FROM n; " SEAL

#define X(name, sql) [HPX_SQL_##name] = sql,
static const char *const texts[] = { HPX_SQL_LIST(X) };
#undef X

/* What it costs to find the first ten, in steps of SQLite's machine. */
static int steps_of_a_claim(const char *path)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	int steps;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, texts[HPX_SQL_JOBS_DUE], -1, &stmt, NULL),
			 SQLITE_OK);
	sqlite3_bind_text(stmt, 1, "mailer", -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, 0);
	sqlite3_bind_int64(stmt, 3, INT64_MAX);
	for (int i = 0; i < 10; i++)
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return steps;
}

static void a_claim_costs_the_same_however_many_wait(void **state)
{
	struct fixture *f = *state;
	unsigned total = 0, claims = 0, taken;
	char sql[1024];
	int few, many;

	snprintf(sql, sizeof(sql), MANY, 10u);
	checked_sql(f->path, sql);
	few = steps_of_a_claim(f->path);
	snprintf(sql, sizeof(sql), MANY, 9990u);
	checked_sql(f->path, sql);
	many = steps_of_a_claim(f->path);
	assert_string_equal(job_state(f, 1), "queued");
	if (many > few + few / 10)
		fail_msg("10 of 10 jobs: %d steps, 10 of 10000: %d", few, many);
	do {
		struct hpx_job_entry *jobs = claim(f, 100, 0);
		taken = 0;
		for (const struct hpx_job_entry *e = jobs; e != NULL; e = e->next)
			taken++;
		hpx_job_entry_free(jobs);
		total += taken;
		claims += taken > 0;
	} while (taken > 0);
	assert_int_equal(total, 10000);
	assert_int_equal(claims, 100);
}

static void a_claim_walks_the_index_of_what_is_due(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	char text[4096];
	const char *plan;

	snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", texts[HPX_SQL_JOBS_DUE]);
	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	plan = (const char *)sqlite3_column_text(stmt, 3);
	if (strstr(plan, "USING INDEX hapax_job_due (target=? AND due>? AND due<?)") == NULL)
		fail_msg("%s", plan);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		if (strstr((const char *)sqlite3_column_text(stmt, 3), "TEMP B-TREE") != NULL)
			fail_msg("it sorts");
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/* Times that were written by a clock that was far ahead. */
static void a_clock_that_was_set_back_delays_no_job(void **state)
{
	struct fixture *f = *state;

	accept_later(f, 1, A);
	accept_later(f, 2, A);
	/* A day is heeded; twenty are more than anybody may ask for. */
	checked_sql(f->path, "UPDATE hapax_job SET due = due + 86400000 WHERE seq = 1; "
			     "UPDATE hapax_job SET due = due + 20 * 86400000 WHERE seq = 2; " SEAL);
	assert_int_equal(claim_one(f, 0).number, 2);
	assert_string_equal(claim_names(f, 5), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(what_a_dead_worker_claimed_is_lost_at_once),
		ON_SQLITE(a_command_beside_the_server_leaves_its_claims_alone),
		ON_SQLITE(what_cannot_be_read_is_never_sent),
		ON_SQLITE(a_flipped_bit_of_a_queued_job_is_noticed),
		ON_SQLITE(a_flipped_bit_of_a_finished_job_is_noticed),
		ON_SQLITE(a_flipped_bit_of_a_number_is_noticed),
		ON_SQLITE(a_damaged_job_is_removed_with_its_index_entries),
		ON_SQLITE(a_row_of_another_table_is_not_removed),
		ON_SQLITE(a_job_with_a_damaged_body_is_discarded),
		ON_SQLITE(an_earlier_job_that_cannot_be_read_keeps_the_order),
		ON_SQLITE(a_claim_costs_the_same_however_many_wait),
		ON_SQLITE(a_claim_walks_the_index_of_what_is_due),
		ON_SQLITE(a_clock_that_was_set_back_delays_no_job),
	};
	return run_on_drivers("outbox_file", tests);
}
