/* Keeping the write-ahead log short beside the writer, and coming back after
 * a failure.
 *
 * PASSIVE copies what it can into the database and waits for nobody; once all
 * is copied and no reader needs the log, the writer begins it anew. Under a
 * load without a pause there is always one commit more than was copied, so
 * past WAL_RESTART_BYTES a RESTART takes the write lock for the little that is
 * left. In a large store the pages lie far apart, and much is written while one
 * PASSIVE copies: the next one has less to do, until it is little. */
#include "store/sqlite/driver.h"

#define WAL_CHECKPOINT_BYTES (4 << 20)
#define WAL_RESTART_BYTES (64 << 20)
#define WAL_LITTLE_BYTES (1 << 20)
#define PASSES_MAX 8
/* Where nobody calls maintain(), the writer does it itself. */
#define WAL_BOUND_BYTES (256 << 20)
#define BUSY_KEEPER_MS 100
/* A RESTART has the write lock while it waits for readers. */
#define BUSY_RESTART_MS 10

static enum hpx_status checkpoint(struct hpx_sqlite_db *db, int mode)
{
	return hpx_sqlite_status(sqlite3_wal_checkpoint_v2(db->handle, "main", mode, NULL, NULL));
}

/* PASSIVE, until little was written meanwhile; `*ret_left` is that. */
static enum hpx_status copy_log(struct hpx_sqlite_store *s, int64_t *ret_left)
{
	enum hpx_status status = HPX_OK;
	int64_t left = INT64_MAX;
	int frames, copied = 0;

	for (int pass = 0; pass < PASSES_MAX && left > WAL_LITTLE_BYTES && status == HPX_OK; pass++) {
		status = hpx_sqlite_status(sqlite3_wal_checkpoint_v2(
			s->keeper.handle, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied));
		left = atomic_load(&s->wal_bytes) - copied * HPX_SQLITE_FRAME_BYTES;
	}
	*ret_left = left;
	return status;
}

/* Waits so long for whoever writes or reads, and then leaves it for another time. */
static enum hpx_status restart_log(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				   int busy_ms, int usual_busy_ms)
{
	enum hpx_status status;

	sqlite3_busy_timeout(db->handle, busy_ms);
	status = checkpoint(db, SQLITE_CHECKPOINT_RESTART);
	sqlite3_busy_timeout(db->handle, usual_busy_ms);
	if (status == HPX_OK)
		atomic_store(&s->wal_bytes, 0);
	return status;
}

static enum hpx_status shorten_log(struct hpx_sqlite_store *s)
{
	int64_t bytes = atomic_load(&s->wal_bytes);
	enum hpx_status status;
	int64_t left;

	if (bytes < WAL_CHECKPOINT_BYTES)
		return HPX_OK;
	if (bytes < WAL_RESTART_BYTES)
		return checkpoint(&s->keeper, SQLITE_CHECKPOINT_PASSIVE);
	status = copy_log(s, &left);
	if (status != HPX_OK || left > WAL_LITTLE_BYTES)
		return status;
	return restart_log(s, &s->keeper, BUSY_RESTART_MS, BUSY_KEEPER_MS);
}

static enum hpx_status keeper_open(struct hpx_sqlite_store *s, char *problem)
{
	enum hpx_status status;

	if (s->keeper.handle != NULL)
		return HPX_OK;
	status = hpx_sqlite_connect(s->path, SQLITE_OPEN_READWRITE, NULL, BUSY_KEEPER_MS, &s->keeper,
				    problem);
	/* Our own checkpoints only, and each of them on the disk. */
	if (status == HPX_OK)
		status = hpx_sqlite_status(
			sqlite3_exec(s->keeper.handle,
				     "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL",
				     NULL, NULL, NULL));
	return status;
}

enum hpx_status hpx_sqlite_maintain(struct hpx_store *store, char *problem)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);
	enum hpx_status status;

	pthread_mutex_lock(&s->keeper_mutex);
	status = keeper_open(s, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_clock_check(s, &s->keeper, s->serve);
	if (status == HPX_OK)
		status = shorten_log(s);
	if (status == HPX_OK && s->serve)
		status = hpx_sqlite_known_read(&s->known, &s->keeper);
	/* A busy log is next time's work, not a failure. */
	if (status == HPX_BUSY)
		status = HPX_OK;
	if (status != HPX_OK) {
		if (problem[0] == '\0')
			hpx_sqlite_explain(&s->keeper, s->path, "cannot be checkpointed", problem);
		hpx_sqlite_db_close(&s->keeper);
	}
	pthread_mutex_unlock(&s->keeper_mutex);
	return status;
}

/* Readers are not waited for: whoever writes would wait for them too. What cannot
 * be done now is tried again when there is that much more of it; a broken disk shows
 * in the next commit. */
void hpx_sqlite_wal_bound(struct hpx_sqlite_store *s)
{
	int64_t bytes = atomic_load(&s->wal_bytes);

	if (bytes < s->wal_tried_bytes)
		s->wal_tried_bytes = 0; /* it began anew */
	if (bytes < WAL_BOUND_BYTES || bytes - s->wal_tried_bytes < WAL_RESTART_BYTES)
		return;
	s->wal_tried_bytes = bytes;
	restart_log(s, &s->writer, 0, hpx_sqlite_busy_ms(s));
}

static void close_all(struct hpx_sqlite_store *s)
{
	hpx_sqlite_db_close(&s->writer);
	pthread_mutex_lock(&s->keeper_mutex);
	hpx_sqlite_db_close(&s->keeper);
	pthread_mutex_unlock(&s->keeper_mutex);
	atomic_fetch_add(&s->generation, 1);
}

/* Everything is opened anew, and the log must reach the database, synced and
 * emptied, before anything goes on: that writes the pages again which a failed
 * fsync may have dropped, and leaves no frame of a commit that was reported as
 * failed. The file is not created here: an absent one is a loss to be told. */
enum hpx_status hpx_sqlite_recover(struct hpx_store *store, char *problem)
{
	struct hpx_sqlite_store *s = hpx_sqlite_of(store);
	struct hpx_sqlite_schema schema;
	enum hpx_status status;

	if (!s->broken)
		return HPX_OK;
	close_all(s);
	status = hpx_sqlite_place_ensure(s->path, false, problem);
	if (status == HPX_NOT_FOUND)
		hpx_store_problem(problem, "%s is gone: put the file back; without it, retries of "
				  "earlier requests cannot be recognised", s->path);
	if (status == HPX_OK)
		status = hpx_sqlite_writer_open(s, HPX_SQLITE_NOT, &schema, problem);
	if (status != HPX_OK)
		return status;
	status = checkpoint(&s->writer, SQLITE_CHECKPOINT_TRUNCATE);
	if (status != HPX_OK) {
		hpx_sqlite_explain(&s->writer, s->path, "cannot be checkpointed", problem);
		hpx_sqlite_db_close(&s->writer);
		return status;
	}
	atomic_store(&s->wal_bytes, 0);
	s->checked_ms = 0;
	s->broken = false;
	return HPX_OK;
}
