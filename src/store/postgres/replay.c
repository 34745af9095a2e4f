/* Retries are read on a connection of their own while the writer commits: they wait for
 * nobody's fsync, and cost the writer nothing.
 *
 * What is read there may be told only as what the writer reads may be:
 *  - the store is sure, when the read begins and when it ends: no commit before now may be
 *    lost with this primary;
 *  - the connection is to the very server that the writer has: same cluster, same start. A
 *    primary that was replaced may still answer, with what the new one never had;
 *  - since it was opened, a commit of the writer's has begun and ended without a warning.
 *    Before that, what it shows may be a commit that a cancelled wait for the standby left
 *    behind.
 * Otherwise nothing is found, and the slow path looks.
 *
 * The connection is the committer's, like the writer. When it is lost, maintain() opens the
 * next one on its own thread: the committer waits for no connection. */
#include "base/clock.h"
#include "store/postgres/driver.h"

/* Behind the record's columns. */
enum { COLUMN_BYTES = HPX_PG_DESCRIPTION_COLUMN,
       COLUMN_TOTAL,
       COLUMN_ANSWER,
       COLUMN_CLOCK };

#define TIME_MAX (INT64_MAX / 4)

/* ---- the connection ---- */

/* Under the connector's mutex, since maintain() has another thread. */
static void want_another(struct hpx_pg_store *s)
{
	hpx_pg_close(&s->replay);
	pthread_mutex_lock(&s->connector.mutex);
	if (s->connector.replay.conn != NULL) {
		hpx_pg_db_move(&s->replay, &s->connector.replay);
		s->replay_opened = s->commits_begun;
	} else {
		s->connector.replay_wanted = s->serve;
	}
	pthread_mutex_unlock(&s->connector.mutex);
}

static enum hpx_status connect_replay(struct hpx_pg_store *s, struct hpx_pg_db *db)
{
	char unread[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = hpx_pg_connect(s->url, HPX_PG_READER, db, unread);

	if (status == HPX_OK)
		status = hpx_pg_prepare(db, HPX_PG_READER, unread);
	if (status != HPX_OK)
		hpx_pg_close(db);
	return status;
}

/* Where it fails, maintain() tries again: nobody depends on it. */
void hpx_pg_replay_open(struct hpx_pg_store *s)
{
	if (connect_replay(s, &s->replay) != HPX_OK)
		s->connector.replay_wanted = true;
	s->replay_opened = s->commits_begun;
}

void hpx_pg_replay_maintain(struct hpx_pg_store *s)
{
	struct hpx_pg_connector *connector = &s->connector;
	struct hpx_pg_db db;
	bool wanted;

	pthread_mutex_lock(&connector->mutex);
	wanted = connector->replay_wanted && connector->replay.conn == NULL;
	pthread_mutex_unlock(&connector->mutex);
	if (!wanted || connect_replay(s, &db) != HPX_OK)
		return;
	pthread_mutex_lock(&connector->mutex);
	hpx_pg_db_move(&connector->replay, &db);
	connector->replay_wanted = false;
	pthread_mutex_unlock(&connector->mutex);
}

/* Whether what is read there now may be told. */
static bool is_trusted(struct hpx_pg_store *s)
{
	if (s->writer.conn == NULL || s->writer.server[0] == '\0')
		return false;
	if (s->replay.conn == NULL || PQstatus(s->replay.conn) != CONNECTION_OK ||
	    strcmp(s->replay.server, s->writer.server) != 0) {
		want_another(s);
		return false;
	}
	return !s->unsure && s->commit_sure > s->replay_opened;
}

/* ---- reading ---- */

/* An answer that was left out for its size is left to the slow path. */
static void take_answer(const PGresult *result, int at, struct hpx_pg_row *row)
{
	bool left_out = !PQgetisnull(result, at, COLUMN_BYTES) &&
			PQgetisnull(result, at, COLUMN_ANSWER);

	if (!row->found.readable || row->found.record.state != HPX_STATE_COMPLETED)
		return;
	if (left_out) {
		row->stored = false;
		return;
	}
	row->kept_status = hpx_pg_answer_read(result, at, COLUMN_ANSWER, &row->found.record, &row->kept);
	if (row->kept_status != HPX_OK && row->kept_status != HPX_CORRUPT)
		row->stored = false;
}

static void take_rows(struct hpx_pg_store *s, const PGresult *result, struct hpx_pg_batch *batch,
		      struct hpx_moment *ret_now)
{
	struct hpx_operation_id id;
	int64_t clock_ms;

	for (int at = 0; at < PQntuples(result); at++) {
		struct hpx_pg_row *row = hpx_pg_id_read(result, at, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
		if (row == NULL || !hpx_pg_int(result, at, COLUMN_CLOCK, 0, TIME_MAX, &clock_ms))
			continue;
		*ret_now = (struct hpx_moment){
			.wall_ms = clock_ms + atomic_load(&s->base.wall_shift_ms),
			.lease_ms = clock_ms + atomic_load(&s->base.lease_shift_ms),
		};
		hpx_pg_batch_take(batch, result, at);
		take_answer(result, at, row);
	}
}

static bool is_any(const struct hpx_pg_row *row)
{
	(void)row;
	return true;
}

void hpx_pg_read_replays(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			 struct hpx_moment *ret_now)
{
	char unread[HPX_STORE_PROBLEM_SIZE];
	struct hpx_pg_pipe pipe;
	PGresult *result;

	*ret_now = (struct hpx_moment){ .wall_ms = 0 };
	if (!is_trusted(s))
		return;
	pipe = hpx_pg_pipe(&s->replay, unread);
	hpx_pg_send_ids(&pipe, HPX_PG_REPLAYS, batch, is_any);
	result = hpx_pg_take(&pipe);
	if (hpx_pg_end(&pipe) == HPX_OK && result != NULL && is_trusted(s))
		take_rows(s, result, batch, ret_now);
	PQclear(result);
}
