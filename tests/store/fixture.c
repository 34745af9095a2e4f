/* How a test's store is made, and what its short verbs do. */
#include "fixture.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster.h"

void fixture_folder(char *folder, size_t size)
{
	const char *root = getenv("TMPDIR");

	if (root == NULL || *root == '\0')
		root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(folder, size, "%s/hapax-store-XXXXXX", root);
	assert_non_null(mkdtemp(folder));
}

void fixture_folder_remove(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	closedir(dir);
	assert_int_equal(rmdir(folder), 0);
}

bool fixture_is_sqlite(const struct fixture *f)
{
	return f->folder[0] != '\0';
}

bool fixture_is_postgres(const struct fixture *f)
{
	return strncmp(f->url, "postgres:", 9) == 0;
}

long fixture_count(const struct fixture *f, const char *table)
{
	bool postgres = fixture_is_postgres(f);
	char text[128];
	long count;

	snprintf(text, sizeof(text), "SELECT count(*) FROM hapax%c%s", postgres ? '.' : '_', table);
	if (postgres) {
		PGconn *conn = cluster_connect();
		PGresult *result = cluster_ask(conn, text);
		count = strtol(PQgetvalue(result, 0, 0), NULL, 10);
		PQclear(result);
		PQfinish(conn);
		return count;
	}
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	count = (long)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return count;
}

int64_t fixture_lease_ms(const struct fixture *f)
{
	return fixture_is_postgres(f) ? hpx_clock_wall_ms() : hpx_clock_boot_ms();
}

int fixture_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
	struct CMUnitTest *chosen = calloc(count, sizeof(*chosen));
	bool postgres = cluster_start();
	size_t chosen_count = 0;
	int failed;

	for (size_t i = 0; i < count; i++)
		if (postgres || strstr(tests[i].name, "(postgres)") == NULL)
			chosen[chosen_count++] = tests[i];
	failed = chosen_count == 0 ? TEST_SKIPPED :
				     _cmocka_run_group_tests(name, chosen, chosen_count, NULL, NULL);
	cluster_stop();
	free(chosen);
	return failed;
}

struct hpx_store_options fixture_options(const struct fixture *f)
{
	return (struct hpx_store_options){
		.url = hpx_span_of(f->url),
		.create = true,
		.serve = true,
		.event_retention_ms = 7 * (int64_t)RETENTION_MS,
		.job_retention_ms = 3 * (int64_t)RETENTION_MS,
		.upstream_name = HPX_SPAN("scope"),
	};
}

void fixture_open(struct fixture *f)
{
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = hpx_store_open(&options, &f->store, problem);

	if (status != HPX_OK)
		print_error("%s\n", problem);
	assert_status(status, HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
}

void fixture_close(struct fixture *f)
{
	hpx_store_reader_close(f->reader);
	hpx_store_close(f->store);
	f->reader = NULL;
	f->store = NULL;
}

void fixture_reopen(struct fixture *f)
{
	fixture_close(f);
	fixture_open(f);
}

/* Where the store of this driver is; what was there is gone. */
static void find_place(struct fixture *f, const char *driver)
{
	snprintf(f->url, sizeof(f->url), "memory:");
	if (strcmp(driver, "sqlite") == 0) {
		fixture_folder(f->folder, sizeof(f->folder));
		snprintf(f->path, sizeof(f->path), "%s/hapax.db", f->folder);
		snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
	} else if (strcmp(driver, "postgres") == 0) {
		cluster_url(f->url, sizeof(f->url));
		cluster_sql("DROP SCHEMA IF EXISTS hapax CASCADE");
	}
}

void fixture_afresh(struct fixture *f)
{
	const char *driver = fixture_is_postgres(f) ? "postgres" : "memory";

	fixture_close(f);
	if (fixture_is_sqlite(f)) {
		fixture_folder_remove(f->folder);
		driver = "sqlite";
	}
	find_place(f, driver);
	fixture_open(f);
	hpx_arena_done(&f->arena);
}

int fixture_setup(void **state)
{
	const char *driver = *state;
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	find_place(f, driver);
	hpx_arena_init(&f->arena, 16 << 20);
	fixture_open(f);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	fixture_close(f);
	hpx_arena_done(&f->arena);
	if (fixture_is_sqlite(f))
		fixture_folder_remove(f->folder);
	free(f);
	return 0;
}

struct hpx_operation_id id_of(unsigned key)
{
	struct hpx_operation_id id;
	char text[16];

	snprintf(text, sizeof(text), "key-%u", key);
	assert_status(hpx_operation_id(HPX_SPAN("tenant"), HPX_SPAN("scope"), hpx_span_of(text),
				       &id),
		      HPX_OK);
	return id;
}

struct hpx_token token_of(unsigned number)
{
	struct hpx_token token = { { 0 } };

	memcpy(token.bytes, &number, sizeof(number));
	return token;
}

struct hpx_mark mark_of(unsigned number)
{
	struct hpx_token token = token_of(number);
	struct hpx_mark mark;

	assert_status(hpx_mark_make(&token, &mark), HPX_OK);
	return mark;
}

const struct hpx_policy *policy(void)
{
	static const struct hpx_policy usual = { .retention_ms = RETENTION_MS,
						 .lease_ms = LEASE_MS };
	return &usual;
}

struct hpx_ask ask_of(const struct hpx_store *store, unsigned key, unsigned body, unsigned token)
{
	struct hpx_ask ask = { .id = id_of(key), .token = token_of(token), .owner = store->owner };

	memset(ask.tenant, 't', sizeof(ask.tenant));
	memset(ask.recipe.bytes, 'r', sizeof(ask.recipe.bytes));
	memcpy(ask.fingerprint, &body, sizeof(body));
	return ask;
}

struct hpx_store_op op_of(enum hpx_verb verb, unsigned key, unsigned token)
{
	struct hpx_store_op op = {
		.verb = verb,
		.id = id_of(key),
		.token = token_of(token),
		.mark = mark_of(token),
		.actor = HPX_SPAN("test"),
	};

	if (verb == HPX_VERB_RESERVE)
		op.reserve.policy = policy();
	if (verb == HPX_VERB_RENEW)
		op.renew.lease_ms = LEASE_MS;
	return op;
}

void op_answers(struct hpx_store_op *op, const struct hpx_answer *answer)
{
	if (op->verb == HPX_VERB_COMPLETE)
		op->complete.answer = answer;
	if (op->verb == HPX_VERB_RESOLVE)
		op->resolve.answer = answer;
}

void op_forces(struct hpx_store_op *op, bool force)
{
	if (op->verb == HPX_VERB_RESOLVE)
		op->resolve.force = force;
	if (op->verb == HPX_VERB_FORGET)
		op->forget.force = force;
}

enum hpx_status run_op(struct fixture *f, struct hpx_store_op *op)
{
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = hpx_store_run(f->store, &op, 1, problem);

	if (status != HPX_OK)
		print_error("%s: %s\n", hpx_verb_name(op->verb), problem);
	assert_status(status, HPX_OK);
	return op->status;
}

void raw_sql(const char *path, const char *sql)
{
	sqlite3 *handle = NULL;
	char *message = NULL;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	if (sqlite3_exec(handle, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
	sqlite3_close(handle);
}

const char *reserve(struct fixture *f, unsigned key, unsigned body, unsigned token)
{
	struct hpx_ask ask = ask_of(f->store, key, body, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);
	char name[16];
	struct hpx_description description = { .tenant = HPX_SPAN("tenant"),
					       .scope = HPX_SPAN("scope"),
					       .method = HPX_SPAN("POST"),
					       .path = HPX_SPAN("/payments"),
					       .route = HPX_SPAN("POST /payments") };

	snprintf(name, sizeof(name), "key-%u", key);
	description.key = hpx_span_of(name);
	op.reserve.ask = &ask;
	op.reserve.description = &description;
	if (run_op(f, &op) != HPX_OK)
		return hpx_status_name(op.status);
	hpx_answer_free(op.reserve.replay);
	return hpx_decision_name(op.decision.kind);
}

enum hpx_status act(struct fixture *f, enum hpx_verb verb, unsigned key, unsigned token)
{
	struct hpx_store_op op = op_of(verb, key, token);

	return run_op(f, &op);
}

enum hpx_status complete(struct fixture *f, unsigned key, unsigned token, const char *body)
{
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, key, token);
	struct hpx_answer answer = { .status = 201,
				     .kept = body != NULL,
				     .headers = HPX_SPAN("Content-Type: text/plain\r\n"),
				     .body = hpx_span_of(body) };

	op.complete.answer = &answer;
	return run_op(f, &op);
}

enum hpx_status resolve(struct fixture *f, unsigned key, unsigned first, bool applied)
{
	struct hpx_store_op op = op_of(HPX_VERB_RESOLVE, key, first);

	op.resolve.applied = applied;
	return run_op(f, &op);
}

void bring_to(struct fixture *f, unsigned key, enum hpx_state state, unsigned token)
{
	if (state == HPX_STATE_NONE)
		return;
	assert_string_equal(reserve(f, key, 1, token), "created");
	if (state == HPX_STATE_COMPLETED)
		assert_status(complete(f, key, token, "first"), HPX_OK);
	else if (state == HPX_STATE_FAILED_RETRYABLE)
		assert_status(act(f, HPX_VERB_FAIL, key, token), HPX_OK);
	else if (state == HPX_STATE_UNKNOWN)
		assert_status(act(f, HPX_VERB_MARK_UNKNOWN, key, token), HPX_OK);
	assert_string_equal(state_of(f, key), hpx_state_name(state));
}

unsigned sweep(struct fixture *f)
{
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP, 0, 0);

	op.sweep.limit = 100;
	assert_status(run_op(f, &op), HPX_OK);
	return op.sweep.count;
}

unsigned reap(struct fixture *f)
{
	struct hpx_store_op op = op_of(HPX_VERB_REAP, 0, 0);

	op.reap.limit = 100;
	assert_status(run_op(f, &op), HPX_OK);
	return op.reap.count;
}

void reap_all(struct fixture *f)
{
	bool more = true;

	for (unsigned i = 0; i < 200 && more; i++) {
		struct hpx_store_op op = op_of(HPX_VERB_REAP, 0, 0);
		op.reap.limit = 7;
		assert_status(run_op(f, &op), HPX_OK);
		more = op.reap.more || op.reap.count > 0;
	}
	assert_false(more);
}

void advance(struct fixture *f, int64_t ms)
{
	atomic_fetch_add(&f->store->wall_shift_ms, ms);
	atomic_fetch_add(&f->store->lease_shift_ms, ms);
}

static enum hpx_status find(struct fixture *f, unsigned key, struct hpx_entry *entry,
			    struct hpx_answer **answer)
{
	struct hpx_operation_id id = id_of(key);

	return hpx_store_find(f->reader, &id, &f->arena, entry, answer);
}

const char *state_of(struct fixture *f, unsigned key)
{
	struct hpx_entry entry;
	enum hpx_status status = find(f, key, &entry, NULL);

	if (status == HPX_NOT_FOUND)
		return "none";
	assert_status(status, HPX_OK);
	return entry.readable ? hpx_state_name(entry.record.state) : "unreadable";
}

struct hpx_record record_of(struct fixture *f, unsigned key)
{
	struct hpx_entry entry;

	assert_status(find(f, key, &entry, NULL), HPX_OK);
	return entry.record;
}

const char *events_of(struct fixture *f, unsigned key)
{
	struct hpx_operation_id id = id_of(key);
	struct hpx_span text = HPX_SPAN("");
	struct hpx_event *events = NULL;
	size_t count = 0;

	assert_status(hpx_store_events(f->reader, &id, &f->arena, &events, &count), HPX_OK);
	for (size_t i = 0; i < count; i++)
		text = hpx_arena_printf(&f->arena, "%.*s%s%.*s", HPX_SPAN_ARG(text),
					i > 0 ? " " : "", HPX_SPAN_ARG(events[i].what));
	return text.ptr;
}

const char *body_of(struct fixture *f, unsigned key)
{
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	struct hpx_span copy = { NULL, 0 };

	assert_status(find(f, key, &entry, &answer), HPX_OK);
	if (answer != NULL)
		copy = hpx_arena_dup(&f->arena, answer->body);
	hpx_answer_free(answer);
	return copy.ptr;
}

/* ---- questions ---- */

unsigned unask(struct fixture *f, unsigned key, int64_t number)
{
	struct hpx_due due = { .id = id_of(key), .number = number };
	struct hpx_store_op op = op_of(HPX_VERB_ESCALATE, 0, 0);

	op.escalate.due = &due;
	op.escalate.due_count = 1;
	assert_status(run_op(f, &op), HPX_OK);
	return op.escalate.count;
}

size_t find_due(struct fixture *f, struct hpx_due *due, size_t max)
{
	struct hpx_lane_due *lanes = NULL;
	size_t lane_count = 0, count = 0;

	assert_status(hpx_store_lanes(f->reader, &f->arena, &lanes, &lane_count), HPX_OK);
	for (size_t i = 0; i < lane_count; i++) {
		size_t found = 0;
		assert_status(hpx_store_due(f->reader, lanes[i].name, 0, due + count, max - count,
					    &found),
			      HPX_OK);
		count += found;
	}
	for (size_t i = 0; i < count; i++)
		due[i].lease_ms = LEASE_MS;
	return count;
}

struct hpx_unsettled *take_due(struct fixture *f, const struct hpx_due *due, size_t count)
{
	struct hpx_store_op op = op_of(HPX_VERB_CLAIM_UNKNOWN, 0, 0);

	op.claim_unknown.due = due;
	op.claim_unknown.due_count = count;
	assert_status(run_op(f, &op), HPX_OK);
	return op.claim_unknown.unsettled;
}

struct hpx_unsettled *unsettled(struct fixture *f, unsigned limit)
{
	struct hpx_due due[100];

	assert_in_range(limit, 1, 100);
	return take_due(f, due, find_due(f, due, limit));
}

unsigned count_unsettled(struct fixture *f)
{
	struct hpx_unsettled *list = unsettled(f, 100);
	unsigned count = 0;

	for (const struct hpx_unsettled *u = list; u != NULL; u = u->next)
		count++;
	hpx_unsettled_free(list);
	return count;
}
