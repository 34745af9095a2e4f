/* A store on a connection that stays the caller's. Each op is a savepoint in
 * whatever transaction is open: it is written whole or not at all, and is
 * committed, or not, with the caller's own rows. */
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite/driver.h"

#define SYNCHRONOUS_FULL 2

static enum hpx_status read_synchronous(sqlite3 *handle, int *ret_level)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(handle, "PRAGMA main.synchronous", -1, &stmt, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		*ret_level = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return code == SQLITE_ROW ? HPX_OK : hpx_sqlite_status(code);
}

/* A commit that a power failure undoes would make the answer a lie. */
static enum hpx_status make_durable(struct hpx_sqlite_store *s, char *problem)
{
	sqlite3 *handle = s->writer.handle;
	int level = 0;
	enum hpx_status status = read_synchronous(handle, &level);

	if (status == HPX_OK && level < SYNCHRONOUS_FULL)
		status = hpx_sqlite_status(sqlite3_exec(
			handle, "PRAGMA main.synchronous = FULL", NULL, NULL, NULL));
	if (status != HPX_OK)
		hpx_sqlite_explain(&s->writer, s->path, "cannot be made durable", problem);
	return status;
}

static enum hpx_status run_saved(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	enum hpx_status status = hpx_sqlite_do(&s->writer, HPX_SQL_SAVEPOINT);

	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_clock_check(s, &s->writer, false);
	if (status == HPX_OK)
		status = hpx_sqlite_generations_refresh(&s->writer);
	if (status == HPX_OK)
		status = hpx_sqlite_run_one(s, op);
	hpx_sqlite_leases_commit(&s->leases, false);
	if (status == HPX_OK)
		return hpx_sqlite_do(&s->writer, HPX_SQL_RELEASE);
	/* Some errors have ended the whole transaction, and the savepoint. */
	if (hpx_sqlite_do(&s->writer, HPX_SQL_UNDO) == HPX_OK)
		hpx_sqlite_do(&s->writer, HPX_SQL_RELEASE);
	return status;
}

static enum hpx_status borrowed_run(struct hpx_store *store, struct hpx_store_op **ops,
				    size_t count, char *problem)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);
	enum hpx_status status;

	if (count != 1)
		return HPX_MISUSE;
	status = run_saved(s, ops[0]);
	if (status != HPX_OK)
		hpx_sqlite_explain(&s->writer, s->path, "cannot be written", problem);
	return status;
}

static void borrowed_close(struct hpx_store *store)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);

	hpx_sqlite_db_finalize(&s->writer);
	hpx_sqlite_leases_done(&s->leases);
	free(s);
}

static const struct hpx_store_driver borrowed_driver = {
	.close = borrowed_close,
	.run = borrowed_run,
};

static void name_file(struct hpx_sqlite_store *s, sqlite3 *handle)
{
	const char *path = sqlite3_db_filename(handle, "main");

	snprintf(s->path, sizeof(s->path), "%s", path != NULL && *path != '\0' ? path : ":memory:");
	snprintf(s->base.description, sizeof(s->base.description), "sqlite:%s", s->path);
}

enum hpx_status hpx_sqlite_borrow(void *connection, struct hpx_store **ret_store,
				  char *problem)
{
	sqlite3 *handle = connection;
	struct hpx_sqlite_schema schema;
	struct hpx_sqlite_store *s;
	enum hpx_status status;

	if (!sqlite3_get_autocommit(handle)) {
		hpx_store_problem(problem, "the connection is in a transaction: take it before "
					   "BEGIN, once, and keep the handle");
		return HPX_MISUSE;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return HPX_NOMEM;
	if (hpx_sqlite_leases_init(&s->leases) != HPX_OK) {
		free(s);
		return HPX_NOMEM;
	}
	hpx_store_init(&s->base, &borrowed_driver);
	s->borrowed = true;
	hpx_sqlite_boot_id(s->boot_id);
	s->lock_fd = -1;
	s->writer.handle = handle;
	name_file(s, handle);
	status = hpx_sqlite_schema_check(&s->writer, s->path, HPX_SQLITE_NOT, &schema, problem);
	if (status == HPX_OK)
		status = make_durable(s, problem);
	if (status != HPX_OK) {
		borrowed_close(&s->base);
		return status;
	}
	*ret_store = &s->base;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_install(void *connection, char *problem)
{
	sqlite3 *handle = connection;
	struct hpx_sqlite_db db = { .handle = handle };
	const char *path = sqlite3_db_filename(handle, "main");
	struct hpx_sqlite_schema schema;
	enum hpx_status status;

	if (!sqlite3_get_autocommit(handle)) {
		hpx_store_problem(problem, "the connection is in a transaction: install before "
					   "BEGIN");
		return HPX_MISUSE;
	}
	if (path == NULL || *path == '\0')
		path = ":memory:";
	status = hpx_sqlite_schema_check(&db, path, HPX_SQLITE_BESIDE, &schema, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_schema_migrate(&db, path, HPX_SQLITE_BESIDE, &schema, problem);
	return status;
}
