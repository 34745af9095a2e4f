/* Making and using the four kinds of library fixture. */
#include "library_fixture.h"

#include <poll.h>

#include "base/clock.h"
#include "cluster.h"

#define PATIENCE_MS 60000

static void check(enum hapax_result result, const char *problem)
{
	if (result != HAPAX_OK)
		print_error("%s\n", problem);
	assert_int_equal(result, HAPAX_OK);
}

static void open_own(struct library_fixture *p, int64_t timeout_ms)
{
	struct hapax_options options = {
		.size = sizeof(options),
		.install = 1,
		.timeout_ms = timeout_ms,
	};
	char problem[HAPAX_PROBLEM_SIZE];

	check(hapax_open(p->url, &options, &p->own, problem), problem);
}

static void find_sqlite(struct library_fixture *p)
{
	char path[96], problem[HAPAX_PROBLEM_SIZE];

	fixture_folder(p->folder, sizeof(p->folder));
	snprintf(path, sizeof(path), "%s/shop.db", p->folder);
	snprintf(p->url, sizeof(p->url), "sqlite:%s", path);
	assert_int_equal(sqlite3_open(path, &p->db), SQLITE_OK);
	library_sql(p, "CREATE TABLE payment (id TEXT PRIMARY KEY)");
	if (!p->borrowed)
		return;
	check(hapax_install_sqlite(p->db, problem), problem);
	check(hapax_on_sqlite(p->db, &p->hapax, problem), problem);
}

static void find_postgres(struct library_fixture *p)
{
	char problem[HAPAX_PROBLEM_SIZE];

	cluster_url(p->url, sizeof(p->url));
	cluster_sql("DROP SCHEMA IF EXISTS hapax CASCADE; DROP TABLE IF EXISTS payment;"
		    "CREATE TABLE payment (id text PRIMARY KEY)");
	p->conn = cluster_connect();
	if (!p->borrowed)
		return;
	check(hapax_install_postgres(p->conn, problem), problem);
	check(hapax_on_postgres(p->conn, &p->hapax, problem), problem);
}

int library_setup(void **state)
{
	const char *way = *state;
	struct library_fixture *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->borrowed = way[0] == 'b';
	p->postgres = way[1] == 'p';
	if (p->postgres)
		find_postgres(p);
	else
		find_sqlite(p);
	open_own(p, 0);
	if (!p->borrowed)
		p->hapax = p->own;
	*state = p;
	return 0;
}

int library_teardown(void **state)
{
	struct library_fixture *p = *state;

	if (p->borrowed)
		hapax_close(p->hapax);
	hapax_close(p->own);
	PQfinish(p->conn);
	assert_int_equal(sqlite3_close(p->db), SQLITE_OK);
	if (!p->postgres)
		fixture_folder_remove(p->folder);
	free(p);
	return 0;
}

void library_reopen(struct library_fixture *p, int64_t timeout_ms)
{
	bool same = p->hapax == p->own;

	hapax_close(p->own);
	open_own(p, timeout_ms);
	if (same)
		p->hapax = p->own;
}

void library_sql(struct library_fixture *p, const char *sql)
{
	char *message = NULL;

	if (p->postgres) {
		PQclear(cluster_ask(p->conn, sql));
		return;
	}
	if (sqlite3_exec(p->db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
}

long library_count(struct library_fixture *p, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	long count;

	if (p->postgres) {
		PGresult *result = cluster_ask(p->conn, sql);
		count = atol(PQgetvalue(result, 0, 0));
		PQclear(result);
		return count;
	}
	assert_int_equal(sqlite3_prepare_v2(p->db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	count = (long)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return count;
}

long library_rows(struct library_fixture *p, const char *table, const char *where)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s%s WHERE %s",
		 p->postgres ? "hapax." : "hapax_", table, where);
	return library_count(p, sql);
}

void library_expire_leases(struct library_fixture *p)
{
	library_sql(p, p->postgres ? "UPDATE hapax.operation SET lease_until = 1" :
				     "UPDATE hapax_lease SET until = 1");
}

void library_forget(struct library_fixture *p, const char *reference)
{
	struct hpx_store_options options = { .url = hpx_span_of(p->url) };
	struct hpx_store_op op = { .verb = HPX_VERB_FORGET,
				   .forget.force = true,
				   .actor = HPX_SPAN("a person"),
				   .reason = HPX_SPAN("a test") };
	struct hpx_store_op *ops = &op;
	struct hpx_store *store = NULL;

	assert_true(hpx_reference_parse(hpx_span_of(reference), &op.id, &op.mark));
	assert_status(hpx_store_open(&options, &store, NULL), HPX_OK);
	assert_status(hpx_store_run(store, &ops, 1, NULL), HPX_OK);
	assert_status(op.status, HPX_OK);
	hpx_store_close(store);
}

void library_assert_result(enum hapax_result got, enum hapax_result want, const char *problem,
			   const char *file, int line)
{
	if (got == want && (problem[0] == '\0') == (want == HAPAX_OK))
		return;
	print_error("got %s (\"%s\"), want %s\n", hapax_result_name(got), problem,
		    hapax_result_name(want));
	_fail(file, line);
}

struct hapax_begin begin_of(const char *key, unsigned body)
{
	static const unsigned char fingerprints[4][HAPAX_FINGERPRINT_SIZE] = { { 1 }, { 2 }, { 3 }, { 4 } };

	return (struct hapax_begin){
		.size = sizeof(struct hapax_begin),
		.tenant = "tenant",
		.scope = "POST /payments",
		.key = key,
		.fingerprint = fingerprints[body % 4],
	};
}

const char *begin_with(struct hapax *hapax, const struct hapax_begin *begin,
		       struct hapax_operation *ret_operation)
{
	static const char *const names[] = {
		[HAPAX_EXECUTE] = "execute",
		[HAPAX_REPLAY] = "replay",
		[HAPAX_IN_PROGRESS] = "in_progress",
		[HAPAX_UNKNOWN] = "unknown",
		[HAPAX_MISMATCH] = "mismatch",
	};
	char problem[HAPAX_PROBLEM_SIZE];
	struct hapax_operation operation = { .size = sizeof(operation) };
	enum hapax_result result = hapax_begin(hapax, begin, &operation, problem);

	if (result != HAPAX_OK)
		return hapax_result_name(result);
	const char *name = names[operation.verdict];
	assert_true((operation.verdict == HAPAX_EXECUTE) == (operation.lease[0] != '\0'));
	if (ret_operation != NULL) {
		*ret_operation = operation;
		ret_operation->memory = ret_operation->data = NULL;
		ret_operation->answer = NULL;
	}
	hapax_operation_clear(&operation);
	return name;
}

const char *begin_key(struct hapax *hapax, const char *key, struct hapax_operation *ret_operation)
{
	struct hapax_begin begin = begin_of(key, 1);

	return begin_with(hapax, &begin, ret_operation);
}

void begin_until_execute(struct hapax *hapax, const struct hapax_begin *begin)
{
	int64_t until_ms = hpx_clock_boot_ms() + PATIENCE_MS;
	const char *name;

	while (strcmp(name = begin_with(hapax, begin, NULL), "execute") != 0 &&
	       hpx_clock_boot_ms() < until_ms)
		poll(NULL, 0, 2);
	assert_string_equal(name, "execute");
}

enum hapax_result complete_with(struct hapax *hapax, const char *lease, const char *body,
				char *problem)
{
	struct hapax_answer answer = {
		.size = sizeof(answer),
		.status = 201,
		.headers = "Content-Type: text/plain\nDate: now",
		.body = body,
		.body_len = strlen(body),
	};

	return hapax_complete(hapax, lease, &answer, problem);
}

struct hapax_job job_of(const char *name, const char *body)
{
	return (struct hapax_job){
		.size = sizeof(struct hapax_job),
		.name = name,
		.target = "mailer",
		.method = "POST",
		.path = "/send?to=x",
		.headers = "Content-Type: text/plain",
		.body = body,
		.body_len = strlen(body),
	};
}
