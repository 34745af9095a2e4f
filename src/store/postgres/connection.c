/* Opening a connection: where to, what every session has set, which server is behind it,
 * and what an operator should know about that server. And the next writer, when the
 * last one was lost. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/postgres/driver.h"

#define SETUP_MS 5000
#define SERVER_VERSION_MIN 140000

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
		hpx_store_problem(problem, "PostgreSQL 14 or later is needed, this is %d",
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

/* Which cluster this is, and which start of it: a standby that was promoted has the same
 * system identifier and another start. Where a role may not ask, the name stays empty, and
 * nothing is believed to be the same server. */
static void learn_server(struct hpx_pg_db *db)
{
	char unread[HPX_STORE_PROBLEM_SIZE];
	PGresult *result = NULL;

	if (hpx_pg_query(db,
			 "SELECT system_identifier || ' ' || extract(epoch FROM pg_postmaster_start_time()) "
			 "FROM pg_control_system()",
			 SETUP_MS, &result, unread) == HPX_OK &&
	    PQntuples(result) == 1)
		snprintf(db->server, sizeof(db->server), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
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
	if (status == HPX_OK)
		learn_server(db);
	else
		hpx_pg_close(db);
	return status;
}

void hpx_pg_db_move(struct hpx_pg_db *to, struct hpx_pg_db *from)
{
	HPX_ASSERT(from->conn != NULL);
	*to = *from;
	PQsetNoticeReceiver(to->conn, note_notice, to);
	from->conn = NULL;
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

bool hpx_pg_waits_for_standby(struct hpx_pg_db *db)
{
	char unread[HPX_STORE_PROBLEM_SIZE];
	PGresult *result = NULL;
	bool waits = hpx_pg_query(db, "SELECT current_setting('synchronous_standby_names') <> ''",
				  SETUP_MS, &result, unread) == HPX_OK &&
		     PQntuples(result) == 1 && *PQgetvalue(result, 0, 0) == 't';

	PQclear(result);
	return waits;
}

/* ---- the next writer, made on a thread of its own ----
 *
 * A host that does not answer takes its whole timeout, and meanwhile the committer has
 * requests to refuse. recover() starts the thread, gives it a moment, and takes what is
 * there. */

/* A database that is there accepts a connection within this. */
#define PATIENCE_MS 100

enum hpx_status hpx_pg_connector_init(struct hpx_pg_connector *connector)
{
	if (pthread_mutex_init(&connector->mutex, NULL) != 0)
		return HPX_NOMEM;
	if (hpx_cond_init(&connector->cond) == HPX_OK)
		return HPX_OK;
	pthread_mutex_destroy(&connector->mutex);
	return HPX_NOMEM;
}

void hpx_pg_connector_done(struct hpx_pg_connector *connector)
{
	if (connector->started)
		pthread_join(connector->thread, NULL);
	hpx_pg_close(&connector->db);
	hpx_pg_close(&connector->replay);
	pthread_cond_destroy(&connector->cond);
	pthread_mutex_destroy(&connector->mutex);
}

/* A writer that can be used, or nothing. */
static enum hpx_status connect_writer(const char *url, struct hpx_pg_db *db, char *problem)
{
	struct hpx_pg_schema schema;
	enum hpx_status status = hpx_pg_connect(url, HPX_PG_WRITER, db, problem);

	if (status != HPX_OK)
		return status;
	status = hpx_pg_schema_check(db, &schema, problem);
	if (status == HPX_OK && schema.from != schema.to) {
		hpx_store_problem(problem, "the database has schema %u and this hapax needs %u",
				  schema.from, schema.to);
		status = HPX_UNSUPPORTED;
	}
	if (status == HPX_OK)
		status = hpx_pg_prepare(db, HPX_PG_WRITER, problem);
	if (status != HPX_OK)
		hpx_pg_close(db);
	return status;
}

static void *connector_main(void *user)
{
	struct hpx_pg_store *s = user;
	struct hpx_pg_connector *connector = &s->connector;
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = connect_writer(s->url, &connector->db, problem);

	pthread_mutex_lock(&connector->mutex);
	connector->status = status;
	memcpy(connector->problem, problem, sizeof(problem));
	connector->finished = true;
	pthread_cond_signal(&connector->cond);
	pthread_mutex_unlock(&connector->mutex);
	return NULL;
}

static enum hpx_status start(struct hpx_pg_store *s)
{
	enum hpx_status status;

	if (s->connector.started)
		return HPX_OK;
	s->connector.finished = false;
	status = hpx_thread_start(&s->connector.thread, connector_main, s);
	s->connector.started = status == HPX_OK;
	return status;
}

static bool wait_finished(struct hpx_pg_connector *connector)
{
	int64_t until_ms = hpx_clock_boot_ms() + PATIENCE_MS;
	bool finished;

	pthread_mutex_lock(&connector->mutex);
	while (!connector->finished && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&connector->cond, &connector->mutex, until_ms);
	finished = connector->finished;
	pthread_mutex_unlock(&connector->mutex);
	return finished;
}

static void adopt(struct hpx_pg_store *s)
{
	HPX_ASSERT(s->writer.conn == NULL && !s->connector.started);
	hpx_pg_db_move(&s->writer, &s->connector.db);
	/* Who knows what the old connection left undecided. */
	s->unsure = true;
}

enum hpx_status hpx_pg_recover(struct hpx_store *store, char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(store);
	struct hpx_pg_connector *connector = &s->connector;
	enum hpx_status status;

	/* Something failed, here or with the other writer: what was committed is not known. */
	s->unsure = true;
	if (s->writer.conn != NULL && PQstatus(s->writer.conn) == CONNECTION_OK)
		return HPX_OK;
	hpx_pg_close(&s->writer);
	status = start(s);
	if (status != HPX_OK)
		return status;
	if (!wait_finished(connector)) {
		hpx_store_problem(problem, "PostgreSQL cannot be reached: a new connection is "
					   "under way");
		return HPX_UNAVAILABLE;
	}
	pthread_join(connector->thread, NULL);
	connector->started = false;
	if (connector->status != HPX_OK) {
		memcpy(problem, connector->problem, sizeof(connector->problem));
		return connector->status;
	}
	adopt(s);
	return HPX_OK;
}
