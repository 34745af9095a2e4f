/* Which schema the database has, and the steps to this program's: all tables, then what
 * later releases change. Each step is one transaction under an advisory lock: gateways
 * that start together apply it once. The last one replaces all functions. */
#include <stdio.h>

#include "base/status.h"
#include "store/postgres/driver.h"
#include "store/postgres_schema.h"

/* The number of sql/postgres/tables.sql. Those below it were never released, and nothing
 * leads on from them. */
#define SCHEMA_FIRST 10u
/* sql/postgres/functions.sql comes first, the steps follow. */
#define FUNCTIONS schema_steps[0]
#define STEP_COUNT ((unsigned)(sizeof(schema_steps) / sizeof(schema_steps[0])) - 1)
#define SCHEMA_NUMBER (SCHEMA_FIRST + STEP_COUNT - 1)
/* "hapax" in ASCII. */
#define LOCK_SQL "SELECT pg_advisory_xact_lock(448311255416)"
#define EXISTS_SQL \
	"SELECT count(*) FROM pg_class c JOIN pg_namespace n " \
	"ON n.oid = c.relnamespace WHERE n.nspname = 'hapax' " \
	"AND c.relname = 'schema_version'"
#define VERSION_SQL "SELECT coalesce(max(version), 0) FROM hapax.schema_version"
#define NOTE_SQL "INSERT INTO hapax.schema_version (version) VALUES (%u)"
#define QUERY_MS 10000
/* A step on a large table takes its time. */
#define STEP_MS (60 * 60 * 1000)

unsigned hpx_pg_schema_number(void)
{
	return SCHEMA_NUMBER;
}

static enum hpx_status read_number(struct hpx_pg_db *db, const char *sql, unsigned *ret_number,
				   char *problem)
{
	PGresult *result = NULL;
	uint64_t number = 0;
	enum hpx_status status = hpx_pg_query(db, sql, QUERY_MS, &result, problem);

	if (status != HPX_OK)
		return status;
	if (PQntuples(result) != 1 ||
	    !hpx_span_u64(hpx_span_of(PQgetvalue(result, 0, 0)), 1000000, &number))
		status = HPX_CORRUPT;
	PQclear(result);
	if (status == HPX_OK)
		*ret_number = (unsigned)number;
	return status;
}

static enum hpx_status read_version(struct hpx_pg_db *db, unsigned *ret_version, char *problem)
{
	unsigned exists = 0;
	enum hpx_status status = read_number(db, EXISTS_SQL, &exists, problem);

	*ret_version = 0;
	if (status == HPX_OK && exists > 0)
		status = read_number(db, VERSION_SQL, ret_version, problem);
	return status;
}

static enum hpx_status judge_version(unsigned version, char *problem)
{
	if (version > 0 && version < SCHEMA_FIRST) {
		hpx_store_problem(problem, "the database has schema %u of before the first release, "
					   "and this hapax begins at %u: nothing leads from one to the "
					   "other. Use another database, or, once no key in this one can be "
					   "retried any more, DROP SCHEMA hapax CASCADE, and start again",
				  version, SCHEMA_FIRST);
		return HPX_UNSUPPORTED;
	}
	if (version <= SCHEMA_NUMBER)
		return HPX_OK;
	hpx_store_problem(problem, "the database has schema %u and this hapax knows up to %u: use "
				   "the newer program that wrote it",
			  version, SCHEMA_NUMBER);
	return HPX_UNSUPPORTED;
}

static enum hpx_status explain_rights(enum hpx_status status, char *problem)
{
	char reason[HPX_STORE_PROBLEM_SIZE];

	if (status != HPX_READ_ONLY)
		return status;
	snprintf(reason, sizeof(reason), "%s", problem);
	hpx_store_problem(problem, "the schema cannot be brought up to date: %.200s. Run `hapax "
				   "migrate --store URL` as a role that may create it",
			  reason);
	return status;
}

enum hpx_status hpx_pg_schema_check(struct hpx_pg_db *db, struct hpx_pg_schema *ret_schema,
				    char *problem)
{
	unsigned version = 0;
	enum hpx_status status = read_version(db, &version, problem);

	if (status != HPX_OK)
		return status;
	status = judge_version(version, problem);
	if (status != HPX_OK)
		return status;
	*ret_schema = (struct hpx_pg_schema){ .from = version, .to = SCHEMA_NUMBER };
	return HPX_OK;
}

/* The step that leads on from a version, and the version it leads to. */
static const char *step_after(unsigned version, unsigned *ret_version)
{
	unsigned step = version < SCHEMA_FIRST ? 0 : version - SCHEMA_FIRST + 1;

	HPX_ASSERT(step < STEP_COUNT);
	*ret_version = SCHEMA_FIRST + step;
	return schema_steps[step + 1];
}

/* The next step, unless somebody else applied it while we waited. */
static enum hpx_status apply_next(struct hpx_pg_db *db, unsigned *version, char *problem)
{
	char note[96];
	unsigned found = 0;
	enum hpx_status status = hpx_pg_query(
		db, "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; "
		    "SET LOCAL idle_in_transaction_session_timeout = 0; " LOCK_SQL,
		STEP_MS, NULL, problem);

	if (status == HPX_OK)
		status = read_version(db, &found, problem);
	if (status == HPX_OK && found == *version) {
		status = hpx_pg_query(db, step_after(found, &found), STEP_MS, NULL, problem);
		if (status == HPX_OK && found == SCHEMA_NUMBER)
			status = hpx_pg_query(db, FUNCTIONS, STEP_MS, NULL, problem);
		snprintf(note, sizeof(note), NOTE_SQL, found);
		if (status == HPX_OK)
			status = hpx_pg_query(db, note, QUERY_MS, NULL, problem);
	}
	if (status == HPX_OK)
		status = hpx_pg_query(db, "COMMIT", STEP_MS, NULL, problem);
	if (status == HPX_OK)
		*version = found;
	return status;
}

enum hpx_status hpx_pg_schema_migrate(struct hpx_pg_db *db, struct hpx_pg_schema *ret_schema,
				      char *problem)
{
	unsigned version;
	enum hpx_status status = hpx_pg_schema_check(db, ret_schema, problem);

	if (status != HPX_OK)
		return status;
	version = ret_schema->from;
	while (status == HPX_OK && version < SCHEMA_NUMBER)
		status = apply_next(db, &version, problem);
	return explain_rights(status, problem);
}

/* ---- on somebody else's connection ---- */

/* For this transaction alone. The steps must mean the same whatever the session
 * is set to, and wait as long as they must. */
#define BEGIN_INSTALL \
	"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; " \
	"SET LOCAL client_min_messages = warning; " \
	"SET LOCAL search_path = pg_catalog; " \
	"SET LOCAL standard_conforming_strings = on; " \
	"SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; " \
	"SET LOCAL synchronous_commit = on; " LOCK_SQL

/* `ret_number` may be NULL. */
static enum hpx_status exec(PGconn *conn, const char *sql, unsigned *ret_number, char *problem)
{
	PGresult *result = PQexec(conn, sql);
	ExecStatusType kind = PQresultStatus(result);
	enum hpx_status status = HPX_OK;
	uint64_t number = 0;

	if (kind != PGRES_COMMAND_OK && kind != PGRES_TUPLES_OK)
		status = hpx_pg_borrowed_fault(conn, result, problem);
	else if (ret_number != NULL &&
		 (PQntuples(result) != 1 ||
		  !hpx_span_u64(hpx_span_of(PQgetvalue(result, 0, 0)), 1000000, &number)))
		status = HPX_CORRUPT;
	else if (ret_number != NULL)
		*ret_number = (unsigned)number;
	PQclear(result);
	return status;
}

static enum hpx_status install_steps(PGconn *conn, unsigned version, char *problem)
{
	char note[96];
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && version < SCHEMA_NUMBER) {
		status = exec(conn, step_after(version, &version), NULL, problem);
		if (status == HPX_OK && version == SCHEMA_NUMBER)
			status = exec(conn, FUNCTIONS, NULL, problem);
		snprintf(note, sizeof(note), NOTE_SQL, version);
		if (status == HPX_OK)
			status = exec(conn, note, NULL, problem);
	}
	return status;
}

static enum hpx_status install(PGconn *conn, char *problem)
{
	unsigned version = 0;
	enum hpx_status status = exec(conn, BEGIN_INSTALL, NULL, problem);

	if (status == HPX_OK)
		status = exec(conn, EXISTS_SQL, &version, problem);
	if (status == HPX_OK && version > 0)
		status = exec(conn, VERSION_SQL, &version, problem);
	if (status == HPX_OK)
		status = judge_version(version, problem);
	if (status == HPX_OK)
		status = install_steps(conn, version, problem);
	if (status == HPX_OK)
		status = exec(conn, "COMMIT", NULL, problem);
	return status;
}

enum hpx_status hpx_pg_install(void *connection, char *problem)
{
	enum hpx_status status = hpx_pg_judge_borrowed(connection, problem);

	if (status == HPX_OK)
		status = hpx_pg_check_server(connection, problem);
	if (status == HPX_OK && PQtransactionStatus(connection) != PQTRANS_IDLE) {
		hpx_store_problem(problem, "the schema is installed outside a transaction");
		status = HPX_MISUSE;
	}
	if (status != HPX_OK)
		return status;
	status = install(connection, problem);
	if (PQstatus(connection) == CONNECTION_OK &&
	    PQtransactionStatus(connection) != PQTRANS_IDLE)
		PQclear(PQexec(connection, "ROLLBACK"));
	return explain_rights(status, problem);
}
