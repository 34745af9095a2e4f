/* The next writer connection, made on a thread of its own: a host that does
 * not answer takes its whole timeout, and meanwhile the committer has requests
 * to refuse. recover() starts it, gives it a moment, and takes what is there. */
#include "base/clock.h"
#include "base/thread.h"
#include "store/postgres/driver.h"

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

/* libpq's handle keeps a pointer to where notices go. */
static void adopt(struct hpx_pg_store *s)
{
	PQnoticeReceiver receiver = PQsetNoticeReceiver(s->connector.db.conn, NULL, NULL);

	HPX_ASSERT(s->writer.conn == NULL && !s->connector.started);
	s->writer = s->connector.db;
	PQsetNoticeReceiver(s->writer.conn, receiver, &s->writer);
	s->connector.db.conn = NULL;
	/* Who knows what the old connection left undecided. */
	s->unsure = true;
}

enum hpx_status hpx_pg_recover(struct hpx_store *store, char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(store);
	struct hpx_pg_connector *connector = &s->connector;
	enum hpx_status status;

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
