/* Whose file it is, of which schema, and the steps to this program's. */
#include <stdio.h>

#include "store/sqlite/driver.h"
#include "store/sqlite_schema.h"

/* "hapx" */
#define APPLICATION_ID 0x68617078
#define SCHEMA_NUMBER ((unsigned)(sizeof(schema_steps) / sizeof(schema_steps[0])))

static enum hpx_status read_number(struct hpx_sqlite_db *db, const char *sql, int64_t *ret_number)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		*ret_number = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return code == SQLITE_ROW ? HPX_OK : hpx_sqlite_status(code);
}

struct identity {
	int64_t application;
	int64_t version;
	int64_t tables;
};

static enum hpx_status identify(struct hpx_sqlite_db *db, struct identity *ret_identity)
{
	enum hpx_status status = read_number(db, "PRAGMA application_id", &ret_identity->application);

	if (status == HPX_OK)
		status = read_number(db, "PRAGMA user_version", &ret_identity->version);
	if (status == HPX_OK)
		status = read_number(db, "SELECT count(*) FROM sqlite_schema", &ret_identity->tables);
	return status;
}

static enum hpx_status exec(struct hpx_sqlite_db *db, const char *sql)
{
	return hpx_sqlite_status(sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

static enum hpx_status apply_steps(struct hpx_sqlite_db *db, unsigned from)
{
	char pragmas[96];
	enum hpx_status status = HPX_OK;

	for (unsigned i = from; i < SCHEMA_NUMBER && status == HPX_OK; i++)
		status = exec(db, schema_steps[i]);
	if (status != HPX_OK)
		return status;
	snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %u",
		 APPLICATION_ID, SCHEMA_NUMBER);
	return exec(db, pragmas);
}

/* All steps are one transaction: a crash leaves the old schema or the new. */
enum hpx_status hpx_sqlite_schema_migrate(struct hpx_sqlite_db *db, const char *path,
					  const struct hpx_sqlite_schema *schema, char *problem)
{
	enum hpx_status status;

	if (schema->from == schema->to)
		return HPX_OK;
	status = exec(db, "BEGIN IMMEDIATE");
	if (status == HPX_OK)
		status = apply_steps(db, schema->from);
	if (status == HPX_OK)
		status = exec(db, "COMMIT");
	if (status == HPX_OK)
		return HPX_OK;
	hpx_sqlite_explain(db, path, "the schema cannot be brought up to date", problem);
	if (!sqlite3_get_autocommit(db->handle))
		exec(db, "ROLLBACK");
	return status;
}

static enum hpx_status judge(const struct identity *identity, const char *path, bool may_migrate,
			     char *problem)
{
	bool is_new = identity->application == 0 && identity->version == 0 &&
		      identity->tables == 0;

	if (!is_new && identity->application != APPLICATION_ID) {
		hpx_store_problem(problem, "%s is not a hapax store, and is left untouched: "
				  "choose another path", path);
		return HPX_INVALID;
	}
	if (identity->version > SCHEMA_NUMBER || identity->version < 0) {
		hpx_store_problem(problem, "%s has schema %lld and this hapax knows up to %u: "
				  "use the newer program that wrote it", path,
				  (long long)identity->version, SCHEMA_NUMBER);
		return HPX_UNSUPPORTED;
	}
	if (identity->version < SCHEMA_NUMBER && !may_migrate) {
		hpx_store_problem(problem, "%s has schema %lld and this hapax needs %u: run "
				  "`hapax migrate`, or start `hapax serve`", path,
				  (long long)identity->version, SCHEMA_NUMBER);
		return HPX_UNSUPPORTED;
	}
	return HPX_OK;
}

enum hpx_status hpx_sqlite_schema_check(struct hpx_sqlite_db *db, const char *path,
					bool may_migrate, struct hpx_sqlite_schema *ret_schema,
					char *problem)
{
	struct identity identity = { 0, 0, 0 };
	enum hpx_status status = identify(db, &identity);

	if (status == HPX_CORRUPT && (sqlite3_errcode(db->handle) & 0xff) == SQLITE_NOTADB) {
		hpx_store_problem(problem, "%s is not a hapax store, and is left untouched: "
				  "choose another path", path);
		return HPX_INVALID;
	}
	if (status != HPX_OK) {
		hpx_sqlite_explain(db, path, "cannot be read", problem);
		return status;
	}
	status = judge(&identity, path, may_migrate, problem);
	if (status == HPX_OK)
		*ret_schema = (struct hpx_sqlite_schema){ .from = (unsigned)identity.version,
							  .to = SCHEMA_NUMBER };
	return status;
}
