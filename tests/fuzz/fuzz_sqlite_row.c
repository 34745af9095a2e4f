/* Fuzzes what SQLite gives back: a real file with operations, an answer and a job that were
 * right, with any of their columns replaced, read by every way that leads to them. Where no
 * check was replaced too, a known id is never executed again, and no other job is sent than
 * the one that was owed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/status.h"
#include "overrides.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *count, char ***arguments);

enum { COMPLETED,
       UNKNOWN,
       PENDING,
       KEYS };

#define COLUMNS_MAX 128
#define BODY "{\"amount\":1}"

static struct hpx_store *store;
static struct hpx_store_reader *reader;
static sqlite3 *file; /* somebody else's connection */
static sqlite3_stmt *changes[COLUMNS_MAX];
static bool is_check[COLUMNS_MAX];
static size_t column_count;

static const struct hpx_policy policy = { .retention_ms = 86400000, .lease_ms = 60000 };
static const struct hpx_policy async = { .retention_ms = 86400000,
					 .lease_ms = 60000,
					 .deliver = HPX_DELIVER_ASYNC };

/* ---- asking the store ---- */

static enum hpx_status run_op(struct hpx_store_op *op)
{
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = hpx_store_run(store, &op, 1, problem);

	return status != HPX_OK ? status : op->status;
}

static struct hpx_ask ask_of(unsigned key, char token)
{
	struct hpx_ask ask = { .owner = store->owner };

	memset(ask.id.bytes, 'a' + (int)key, sizeof(ask.id.bytes));
	memset(ask.token.bytes, token, sizeof(ask.token.bytes));
	return ask;
}

static enum hpx_status reserve(unsigned key, char token, struct hpx_store_op *op)
{
	static const struct hpx_description description = {
		HPX_SPAN_INIT("tenant"), HPX_SPAN_INIT("scope"), HPX_SPAN_INIT("key"),
		HPX_SPAN_INIT("POST"), HPX_SPAN_INIT("/p"), HPX_SPAN_INIT("POST /p")
	};
	static const struct hpx_job job = { HPX_SPAN_INIT("answer"), HPX_SPAN_INIT("bank"),
					    HPX_SPAN_INIT("POST"), HPX_SPAN_INIT("/p"),
					    HPX_SPAN_INIT("A: b\r\n"), HPX_SPAN_INIT(BODY) };
	struct hpx_ask ask = ask_of(key, token);

	*op = (struct hpx_store_op){ .verb = HPX_VERB_RESERVE, .actor = HPX_SPAN("fuzz") };
	op->reserve.ask = &ask;
	op->reserve.policy = key == PENDING ? &async : &policy;
	op->reserve.description = &description;
	op->reserve.job = key == PENDING ? &job : NULL;
	enum hpx_status status = run_op(op);
	op->reserve.ask = NULL;
	return status;
}

static void check_reserve(unsigned key, bool intact)
{
	struct hpx_store_op op;
	enum hpx_status status = reserve(key, 'z', &op);

	if (status == HPX_OK && intact)
		HPX_ASSERT(op.decision.kind != HPX_DECISION_EXECUTE &&
			   op.decision.kind != HPX_DECISION_EXECUTE_AGAIN);
	if (status == HPX_OK)
		hpx_answer_free(op.reserve.replay);
}

static void check_find(unsigned key, struct hpx_arena *arena, bool intact)
{
	struct hpx_ask ask = ask_of(key, 'z');
	struct hpx_answer *answer = NULL;
	struct hpx_decision decision;
	struct hpx_entry entry;
	enum hpx_status status = hpx_store_find(reader, &ask.id, arena, &entry, &answer);

	if (status == HPX_OK && intact && answer != NULL)
		HPX_ASSERT(hpx_span_eq(answer->body, HPX_SPAN(BODY)));
	if (status == HPX_OK)
		hpx_answer_free(answer);
	answer = NULL;
	status = hpx_store_peek(reader, &ask, &policy, &decision, &answer);
	if (status == HPX_OK && intact && answer != NULL)
		HPX_ASSERT(hpx_span_eq(answer->body, HPX_SPAN(BODY)));
	if (status == HPX_OK)
		hpx_answer_free(answer);
}

static void check_lists(struct hpx_arena *arena)
{
	static const enum hpx_state states[] = { HPX_STATE_COUNT, HPX_STATE_UNKNOWN,
						 HPX_STATE_COMPLETED };
	struct hpx_job_query all = { .state = HPX_JOB_STATE_COUNT, .limit = 10 };
	struct hpx_job_entry *jobs = NULL;
	struct hpx_entry *entries = NULL;
	struct hpx_looked looked;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct hpx_query query = { .state = states[i], .limit = 10 };
		(void)hpx_store_list(reader, &query, arena, &entries, &count, &looked);
	}
	if (hpx_store_jobs(reader, &all, &jobs) == HPX_OK)
		hpx_job_entry_free(jobs);
}

/* A job that is claimed is sent. */
static void check_claim(bool intact)
{
	static const struct hpx_claim claim = { .target = HPX_SPAN_INIT("bank"),
						.room = 4,
						.lease_ms = 60000,
						.attempts_max = 3 };
	struct hpx_store_op op = { .verb = HPX_VERB_CLAIM, .actor = HPX_SPAN("fuzz") };

	memset(op.token.bytes, 'c', sizeof(op.token.bytes));
	op.claim.claims = &claim;
	op.claim.claim_count = 1;
	if (run_op(&op) != HPX_OK)
		return;
	for (const struct hpx_job_entry *job = op.claim.jobs; job != NULL && intact; job = job->next)
		HPX_ASSERT(!job->readable || (hpx_span_eq(job->job.body, HPX_SPAN(BODY)) &&
					      hpx_span_eq(job->job.path, HPX_SPAN("/p"))));
	hpx_job_entry_free(op.claim.jobs);
}

/* ---- the file ---- */

static void sql(const char *text)
{
	HPX_ASSERT(sqlite3_exec(file, text, NULL, NULL, NULL) == SQLITE_OK);
}

static void store_open(const char *url)
{
	struct hpx_store_options options = { .url = hpx_span_of(url), .create = true, .serve = true };
	char problem[HPX_STORE_PROBLEM_SIZE];

	HPX_ASSERT(hpx_store_open(&options, &store, problem) == HPX_OK);
	HPX_ASSERT(hpx_store_reader_open(store, &reader) == HPX_OK);
}

static void fill(void)
{
	static const struct hpx_answer answer = { 201, true, HPX_SPAN_INIT("A: b\r\n"),
						  HPX_SPAN_INIT(BODY) };
	struct hpx_store_op op;

	for (unsigned key = 0; key < KEYS; key++) {
		HPX_ASSERT(reserve(key, 't', &op) == HPX_OK);
		HPX_ASSERT(op.decision.kind == HPX_DECISION_EXECUTE);
		if (key == PENDING)
			continue;
		struct hpx_ask ask = ask_of(key, 't');
		struct hpx_store_op end = { .verb = key == COMPLETED ? HPX_VERB_COMPLETE :
								       HPX_VERB_MARK_UNKNOWN,
					    .id = ask.id,
					    .token = ask.token,
					    .actor = HPX_SPAN("fuzz") };
		if (key == COMPLETED)
			end.complete.answer = &answer;
		HPX_ASSERT(run_op(&end) == HPX_OK);
	}
}

/* All but the numbers of rows and what rows are found by. */
static bool is_fixed(const char *column)
{
	return strcmp(column, "seq") == 0 || strcmp(column, "id") == 0 ||
	       strcmp(column, "operation") == 0;
}

static void add_columns(const char *table)
{
	char text[256];
	sqlite3_stmt *columns = NULL;

	snprintf(text, sizeof(text), "SELECT name FROM pragma_table_info('%s')", table);
	HPX_ASSERT(sqlite3_prepare_v2(file, text, -1, &columns, NULL) == SQLITE_OK);
	while (sqlite3_step(columns) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(columns, 0);
		if (is_fixed(name))
			continue;
		HPX_ASSERT(column_count < COLUMNS_MAX);
		snprintf(text, sizeof(text), "UPDATE main.%s SET \"%s\" = ?", table, name);
		HPX_ASSERT(sqlite3_prepare_v2(file, text, -1, &changes[column_count], NULL) ==
			   SQLITE_OK);
		is_check[column_count++] = strstr(name, "crc") != NULL;
	}
	sqlite3_finalize(columns);
}

static const char *const tables[] = { "hapax_aside", "hapax_operation_1", "hapax_answer_1",
				      "hapax_job" };
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* Kept as they are now, for each run. */
static void keep_rows(void)
{
	char text[128];

	for (size_t i = 0; i < TABLES; i++) {
		snprintf(text, sizeof(text), "CREATE TEMP TABLE kept_%s AS SELECT * FROM main.%s",
			 tables[i], tables[i]);
		sql(text);
		add_columns(tables[i]);
	}
}

static void put_back(void)
{
	char text[160];

	for (size_t i = 0; i < TABLES; i++) {
		snprintf(text, sizeof(text),
			 "DELETE FROM main.%s; INSERT INTO main.%s SELECT * FROM kept_%s", tables[i],
			 tables[i], tables[i]);
		sql(text);
	}
	sql("DELETE FROM hapax_reconcile; DELETE FROM hapax_event; DELETE FROM hapax_lease;"
	    "DELETE FROM hapax_job_unreadable; DELETE FROM hapax_history");
}

static char folder[] = "/dev/shm/hapax-fuzz-XXXXXX";

static void remove_folder(void)
{
	static const char *const ends[] = { "", "-wal", "-shm", ".lock" };
	char path[64];

	hpx_store_reader_close(reader);
	hpx_store_close(store);
	for (size_t i = 0; i < column_count; i++)
		sqlite3_finalize(changes[i]);
	sqlite3_close(file);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s/h.db%s", folder, ends[i]);
		unlink(path);
	}
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	char url[64];

	(void)count;
	(void)arguments;
	HPX_ASSERT(mkdtemp(folder) != NULL);
	snprintf(url, sizeof(url), "sqlite:%s/h.db", folder);
	store_open(url);
	fill();
	hpx_store_reader_close(reader);
	hpx_store_close(store);
	HPX_ASSERT(sqlite3_open(url + 7, &file) == SQLITE_OK);
	/* Damage keeps to no type, and leaves NULL where there was something. */
	sql("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET"
	    " sql = replace(replace(sql, ') STRICT', ')'), ' NOT NULL', '')"
	    " WHERE name IN ('hapax_aside', 'hapax_operation_1', 'hapax_answer_1', 'hapax_job');"
	    "PRAGMA writable_schema = RESET");
	store_open(url);
	atexit(remove_folder);
	sqlite3_busy_timeout(file, 5000);
	sql("PRAGMA synchronous = OFF");
	keep_rows();
	return 0;
}

/* False: another rule of the table forbids it, and the row stays as it was. */
static bool change(const struct override *o)
{
	sqlite3_stmt *stmt = changes[o->column];

	if (o->kind == OVERRIDE_INT)
		sqlite3_bind_int64(stmt, 1, o->number);
	else if (o->kind == OVERRIDE_TEXT)
		sqlite3_bind_text(stmt, 1, o->bytes.ptr, (int)o->bytes.len, SQLITE_STATIC);
	else if (o->kind == OVERRIDE_BLOB)
		sqlite3_bind_blob(stmt, 1, o->bytes.ptr, (int)o->bytes.len, SQLITE_STATIC);
	bool done = sqlite3_step(stmt) == SQLITE_DONE;
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span rest = hpx_span(data, size);
	struct hpx_arena arena;
	struct override o;
	bool intact = true;

	sql("BEGIN IMMEDIATE");
	put_back();
	for (int i = 0; i < 8 && take_override(&rest, column_count, &o); i++)
		if (change(&o))
			intact &= !is_check[o.column];
	sql("COMMIT");
	hpx_arena_init(&arena, 1 << 20);
	for (unsigned key = 0; key < KEYS; key++)
		check_find(key, &arena, intact);
	check_lists(&arena);
	check_claim(intact);
	for (unsigned key = 0; key < KEYS; key++)
		check_reserve(key, intact);
	hpx_arena_done(&arena);
	return 0;
}
