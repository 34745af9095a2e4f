/* Opening a connection: where to, what every session has set, and what an
 * operator should know about the server behind it. */
#include <stdio.h>
#include <stdlib.h>

#include "store/postgres/driver.h"

#define SETUP_MS 5000
#define SERVER_VERSION_MIN 130000

/* For every session. The fixed search_path, so that nobody's function or
 * operator of the same name is ever called. */
#define SET_ALL \
	"SET search_path = pg_catalog; " \
	"SET client_min_messages = warning; " \
	"SET default_transaction_isolation = 'read committed'; " \
	"SET statement_timeout = '10s'; " /* A gateway that is stopped in the middle of a batch keeps its rows  \
	 * locked no longer than this. */ \
	"SET idle_in_transaction_session_timeout = '5s'; " \
	"SET jit = off; SET plan_cache_mode = force_generic_plan; "

/* The plans are made once, perhaps when the tables are still empty, and must
 * be right when they are large. lock_timeout is shorter than deadlock_timeout:
 * where a gateway and applications wait for each other in a ring, the gateway
 * gives up before PostgreSQL picks a victim. */
#define SET_WRITER \
	"SET enable_seqscan = off; SET enable_hashjoin = off; " \
	"SET enable_mergejoin = off; " \
	"SELECT set_config('synchronous_commit', " \
	"CASE current_setting('synchronous_commit') " \
	"WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false), " \
	"set_config('lock_timeout', (SELECT least(200, setting::int / 2) " \
	"FROM pg_settings WHERE name = 'deadlock_timeout')::text, false)"

#define SET_READER "SET default_transaction_read_only = on"

/* A warning with a commit is not to be overlooked (commit.c). */
static void note_notice(void *user, const PGresult *notice)
{
	struct hpx_pg_db *db = user;
	const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity == NULL || strcmp(severity, "WARNING") == 0)
		db->warned = true;
}

static PGconn *dial(const char *url)
{
	/* What stands before the URL can be overridden in it, what stands
	 * behind cannot: writes go to the primary, whichever host that is. */
	static const char *const names[] = { "connect_timeout", "keepalives_idle",
					     "keepalives_interval", "keepalives_count",
					     "tcp_user_timeout", "application_name",
					     "dbname", "client_encoding",
					     "target_session_attrs", NULL };
	const char *const values[] = { "2", "5", "2", "3", "10000", "hapax",
				       url, "UTF8", "read-write", NULL };

	return PQconnectdbParams(names, values, 1);
}

enum hpx_status hpx_pg_check_server(const PGconn *conn, char *problem)
{
	const char *encoding = PQparameterStatus(conn, "server_encoding");

	if (PQserverVersion(conn) < SERVER_VERSION_MIN) {
		hpx_store_problem(problem, "PostgreSQL 13 or later is needed, this is %d",
				  PQserverVersion(conn) / 10000);
		return HPX_UNSUPPORTED;
	}
	if (encoding == NULL || strcmp(encoding, "UTF8") != 0) {
		hpx_store_problem(problem, "the database's encoding must be UTF8, this is %s: "
					   "create one with ENCODING 'UTF8'",
				  encoding != NULL ? encoding : "not known");
		return HPX_UNSUPPORTED;
	}
	return HPX_OK;
}

enum hpx_status hpx_pg_connect(const char *url, enum hpx_pg_role role, struct hpx_pg_db *db,
			       char *problem)
{
	enum hpx_status status;

	*db = (struct hpx_pg_db){ .conn = dial(url) };
	if (db->conn == NULL)
		return HPX_NOMEM;
	if (PQstatus(db->conn) != CONNECTION_OK) {
		hpx_pg_explain("PostgreSQL cannot be reached", PQerrorMessage(db->conn), problem);
		hpx_pg_close(db);
		return HPX_UNAVAILABLE;
	}
	PQsetNoticeReceiver(db->conn, note_notice, db);
	status = hpx_pg_check_server(db->conn, problem);
	if (status == HPX_OK && PQsetnonblocking(db->conn, 1) != 0)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		status = hpx_pg_query(db, role == HPX_PG_WRITER ? SET_ALL SET_WRITER : SET_ALL SET_READER,
				      SETUP_MS, NULL, problem);
	if (status != HPX_OK)
		hpx_pg_close(db);
	return status;
}

/* ---- for people ---- */

static const char *option_value(const PQconninfoOption *options, const char *name)
{
	for (; options->keyword != NULL; options++)
		if (strcmp(options->keyword, name) == 0)
			return options->val != NULL ? options->val : "";
	return "";
}

/* libpq's own words about a URL it cannot read may quote its password. */
enum hpx_status hpx_pg_describe(const char *url, char *out, size_t size, char *problem)
{
	PQconninfoOption *options = PQconninfoParse(url, NULL);
	const char *host, *port, *user;

	if (options == NULL) {
		hpx_store_problem(problem, "the store's address is no PostgreSQL URL: write e.g. "
					   "postgres://user@host:5432/database");
		return HPX_INVALID;
	}
	host = option_value(options, "host");
	port = option_value(options, "port");
	user = option_value(options, "user");
	if (*host == '/')
		snprintf(out, size, "postgres://%s%s/%s?host=%s", user, *user ? "@" : "",
			 option_value(options, "dbname"), host);
	else
		snprintf(out, size, "postgres://%s%s%s%s%s/%s", user, *user ? "@" : "", host,
			 *port ? ":" : "", port, option_value(options, "dbname"));
	PQconninfoFree(options);
	return HPX_OK;
}

enum hpx_status hpx_pg_judge_server(struct hpx_pg_db *db, char *warning, size_t size,
				    char *problem)
{
	PGresult *result = NULL;
	enum hpx_status status = hpx_pg_query(db,
					      "SELECT current_setting('fsync') = 'off', "
					      "current_setting('full_page_writes') = 'off', "
					      "current_setting('synchronous_standby_names') = ''",
					      SETUP_MS, &result, problem);

	if (status != HPX_OK)
		return status;
	warning[0] = '\0';
	if (*PQgetvalue(result, 0, 0) == 't' || *PQgetvalue(result, 0, 1) == 't')
		snprintf(warning, size, "fsync or full_page_writes is off: a crash of the "
					"database may repeat operations");
	else if (*PQgetvalue(result, 0, 2) == 't')
		snprintf(warning, size, "there is no synchronous standby "
					"(synchronous_standby_names is empty): a failover may "
					"repeat operations");
	PQclear(result);
	return HPX_OK;
}
