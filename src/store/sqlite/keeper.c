/* Keeping the write-ahead log short beside the writer, looking at what space is
 * left, and coming back after a failure.
 *
 * PASSIVE copies what it can into the database and waits for nobody; once all
 * is copied and no reader needs the log, the writer begins it anew. Under a
 * load without a pause there is always one commit more than was copied, so
 * past WAL_RESTART_BYTES a RESTART takes the write lock for the little that is
 * left. In a large store the pages lie far apart, and much is written while one
 * PASSIVE copies: the next one has less to do, until it is little.
 *
 * The log's file does not shrink by that. Where little of the disk is free, it is
 * cut instead (TRUNCATE), so that the disk has what the log does not need. */
#include "base/clock.h"
#include "store/sqlite/driver.h"

#define WAL_CHECKPOINT_BYTES (4 << 20)
#define WAL_RESTART_BYTES (64 << 20)
#define WAL_LITTLE_BYTES (1 << 20)
#define PASSES_MAX 8
/* Where little of the disk is free, a log's file of this size is cut; the second
 * while new keys are refused for it. */
#define WAL_CUT_BYTES WAL_CHECKPOINT_BYTES
#define WAL_CUT_LOW_BYTES (256 << 10)
/* How often free space is looked at. */
#define SPACE_CHECK_MS 200
#define SPACE_CHECK_BYTES (1 << 20)
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

/* RESTART or TRUNCATE. Waits so long for whoever writes or reads, and then leaves
 * it for another time. */
static enum hpx_status restart_log(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db, int mode,
				   int busy_ms, int usual_busy_ms)
{
	enum hpx_status status;

	sqlite3_busy_timeout(db->handle, busy_ms);
	status = checkpoint(db, mode);
	sqlite3_busy_timeout(db->handle, usual_busy_ms);
	if (status == HPX_OK)
		atomic_store(&s->wal_bytes, 0);
	return status;
}

/* Whether the log's file has what the disk lacks. */
static bool is_to_be_cut(const struct hpx_sqlite_store *s)
{
	const struct hpx_store_space *space = &s->base.space;
	uint64_t most = atomic_load(&s->base.space_low) ? WAL_CUT_LOW_BYTES : WAL_CUT_BYTES;

	return atomic_load(&space->disk_bytes) < atomic_load(&space->wanted_bytes) &&
	       hpx_sqlite_file_log_bytes(s->path) > most;
}

static enum hpx_status shorten_log(struct hpx_sqlite_store *s)
{
	int64_t bytes = atomic_load(&s->wal_bytes);
	bool cut = is_to_be_cut(s);
	enum hpx_status status;
	int64_t left;

	if (bytes < WAL_CHECKPOINT_BYTES && !cut)
		return HPX_OK;
	if (bytes < WAL_RESTART_BYTES && !cut)
		return checkpoint(&s->keeper, SQLITE_CHECKPOINT_PASSIVE);
	status = copy_log(s, &left);
	if (status != HPX_OK || left > WAL_LITTLE_BYTES)
		return status;
	return restart_log(s, &s->keeper,
			   cut ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_RESTART,
			   BUSY_RESTART_MS, BUSY_KEEPER_MS);
}

/* The file's pages as of the last commit: those in no table, and all of them, the
 * ones that are only in the log included. Where that cannot be read now, none. */
static void count_pages(struct hpx_sqlite_db *db, uint64_t *ret_free_bytes, uint64_t *ret_bytes)
{
	static const char sql[] =
		"SELECT freelist_count * page_size, page_count * page_size "
		"FROM pragma_freelist_count, pragma_page_count, pragma_page_size";
	sqlite3_stmt *stmt = NULL;
	int64_t free_bytes = 0, bytes = 0;

	if (sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW) {
		free_bytes = sqlite3_column_int64(stmt, 0);
		bytes = sqlite3_column_int64(stmt, 1);
	}
	sqlite3_finalize(stmt);
	*ret_free_bytes = free_bytes > 0 ? (uint64_t)free_bytes : 0;
	*ret_bytes = bytes > 0 ? (uint64_t)bytes : 0;
}

/* By time and by what was written: large answers fill a disk between two looks. */
static bool is_space_check_due(const struct hpx_sqlite_store *s, int64_t now_ms, int64_t log_bytes)
{
	return s->free_bytes_min != 0 && (now_ms - s->space_checked_ms >= SPACE_CHECK_MS ||
					  log_bytes < s->space_checked_at ||
					  log_bytes - s->space_checked_at >= SPACE_CHECK_BYTES);
}

/* What a checkpoint will still add to the file is not free, although the disk says
 * so: without it the log could never be cut again. */
void hpx_sqlite_space_check(struct hpx_sqlite_store *s)
{
	struct hpx_store_space *space = &s->base.space;
	int64_t now_ms = hpx_clock_boot_ms();
	int64_t log_bytes = atomic_load(&s->wal_bytes);
	uint64_t pages_bytes, file_bytes;

	if (!is_space_check_due(s, now_ms, log_bytes))
		return;
	s->space_checked_ms = now_ms;
	s->space_checked_at = log_bytes;
	count_pages(&s->writer, &file_bytes, &pages_bytes);
	uint64_t disk_bytes = hpx_sqlite_file_free_bytes(s->path);
	uint64_t size_bytes = hpx_sqlite_file_bytes(s->path);
	uint64_t owed_bytes = pages_bytes > size_bytes ? pages_bytes - size_bytes : 0;
	disk_bytes -= owed_bytes < disk_bytes ? owed_bytes : disk_bytes;
	enum hpx_space state = hpx_space_judge(disk_bytes, file_bytes, s->free_bytes_min);
	atomic_store(&space->wanted_bytes, s->free_bytes_min);
	atomic_store(&space->disk_bytes, disk_bytes);
	atomic_store(&space->file_bytes, file_bytes);
	atomic_store(&space->log_bytes, hpx_sqlite_file_log_bytes(s->path));
	atomic_store(&space->state, state);
	atomic_store(&s->base.space_low, state != HPX_SPACE_ENOUGH);
}

/* The writer's own try, after a full disk: whoever calls maintain() may be waiting
 * for the very op that found no room. */
void hpx_sqlite_log_cut(struct hpx_sqlite_store *s)
{
	if (hpx_sqlite_file_log_bytes(s->path) > 0)
		(void)restart_log(s, &s->writer, SQLITE_CHECKPOINT_TRUNCATE, 0,
				  hpx_sqlite_busy_ms(s));
}

static enum hpx_status keeper_open(struct hpx_sqlite_store *s, char *problem)
{
	enum hpx_status status;

	if (s->keeper.handle != NULL)
		return HPX_OK;
	status = hpx_sqlite_connect(s->path, SQLITE_OPEN_READWRITE, NULL, BUSY_KEEPER_MS, &s->keeper,
				    problem);
	/* Our own checkpoints only, and each of them, and each commit, on the disk. */
	if (status == HPX_OK)
		status = hpx_sqlite_status(sqlite3_exec(s->keeper.handle, "PRAGMA synchronous = FULL",
							NULL, NULL, NULL));
	if (status == HPX_OK)
		hpx_sqlite_watch_log(s, &s->keeper);
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
		status = hpx_sqlite_filters_make(s);
	/* For people only: what fails here fails nothing else. */
	if (status == HPX_OK && hpx_sqlite_view_make(s) == HPX_IO)
		hpx_sqlite_db_close(&s->keeper);
	if (status == HPX_OK && s->serve && s->keeper.handle != NULL)
		status = hpx_sqlite_damage_look(s, problem);
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
	restart_log(s, &s->writer, SQLITE_CHECKPOINT_RESTART, 0, hpx_sqlite_busy_ms(s));
}

static void close_all(struct hpx_sqlite_store *s)
{
	HPX_ASSERT(s->broken);
	hpx_sqlite_db_close(&s->writer);
	pthread_mutex_lock(&s->keeper_mutex);
	hpx_sqlite_db_close(&s->keeper);
	pthread_mutex_unlock(&s->keeper_mutex);
	atomic_fetch_add(&s->reopened, 1);
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
	status = hpx_sqlite_file_ensure(s->path, false, problem);
	if (status == HPX_NOT_FOUND)
		hpx_store_problem(problem, "%s is gone: put the file back; without it, retries of "
					   "earlier requests cannot be recognised",
				  s->path);
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

/* ---- the view ---- */

/* The view `hapax_operation`: all operations with the columns that people ask for, for
 * whoever opens the file with SQLite's own shell; `hapax_idempotency_keys` is made of it
 * once for all, in the schema. hapax itself never reads either. The first is
 * made anew by the keeper when generations have come or gone, in a transaction of its
 * own; where that fails, nothing else does. */

/* SQLite joins at most 500 parts in one view. */
#define GENERATIONS_MAX 400
#define VIEW_BYTES_MAX ((size_t)1 << 20)

/* As sql/sqlite/schema.sql makes it first. */
#define ASIDE_PART \
	"CREATE VIEW hapax_operation AS SELECT id, state, attempt, status, created, changed, " \
	"expires, tenant, scope, key, method, path, route, generation, 'aside' AS place, " \
	"fingerprint, point, CASE kept WHEN 1 THEN body END AS body, (SELECT l.until " \
	"FROM hapax_lease l WHERE o.state = 1 AND l.token = o.token AND l.id = o.id) " \
	"AS lease_until, (SELECT min(q.ask_at) FROM hapax_reconcile q WHERE o.state = 4 " \
	"AND q.id = o.id AND q.mark = o.mark AND q.person = 0 AND q.ask_at > 0 AND (q.job = 0 " \
	"OR EXISTS (SELECT 1 FROM hapax_job j WHERE j.seq = q.job AND j.answers = 1 " \
	"AND j.state = 4))) AS ask_at, last_error FROM hapax_aside o"

#define GENERATION_PART \
	" UNION ALL SELECT CAST(o.id || o.rest AS BLOB), CASE WHEN a.seq IS NULL THEN 1 ELSE 3 END, " \
	"1, coalesce(a.status, 0), o.created, coalesce(a.changed, o.created), a.expires, o.tenant, " \
	"o.scope, o.key, o.method, o.path, o.route, #, 'plain', o.fingerprint, '', " \
	"CASE a.kept WHEN 1 THEN a.body END, (SELECT l.until FROM hapax_lease l WHERE a.seq IS NULL " \
	"AND l.token = o.token AND l.id = CAST(o.id || o.rest AS BLOB)), NULL, '' FROM hapax_operation_# o " \
	"LEFT JOIN hapax_answer_# a ON a.seq = o.seq WHERE NOT EXISTS (SELECT 1 FROM hapax_aside s " \
	"WHERE s.generation = # AND s.generation > 0 AND s.number = o.seq) " \
	"AND o.seq > (SELECT moved FROM hapax_generation WHERE number = #)"

static enum hpx_status write_text(const struct hpx_sqlite_db *db, struct hpx_buffer *text)
{
	enum hpx_status status = hpx_buffer_append(text, hpx_span_of(ASIDE_PART));
	size_t parts = 0;
	char part[2048];

	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		const struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state == HPX_GENERATION_DEAD || parts++ >= GENERATIONS_MAX)
			continue;
		bool whole = hpx_sqlite_number_sql(GENERATION_PART, g->number, part, sizeof(part));
		HPX_ASSERT(whole);
		status = hpx_buffer_append(text, hpx_span_of(part));
	}
	return status == HPX_OK ? hpx_buffer_append(text, hpx_span("", 1)) : status;
}

static enum hpx_status is_made(struct hpx_sqlite_db *db, const char *text, bool *ret_made)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_VIEW);

	*ret_made = hpx_sqlite_next(&stmt) &&
		    hpx_span_eq(hpx_sqlite_bytes(&stmt, 0), hpx_span_of(text));
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status make_view(struct hpx_sqlite_db *db, const char *text)
{
	enum hpx_status status = hpx_sqlite_status(
		sqlite3_exec(db->handle, "DROP VIEW IF EXISTS hapax_operation", NULL, NULL, NULL));

	if (status == HPX_OK)
		status = hpx_sqlite_status(sqlite3_exec(db->handle, text, NULL, NULL, NULL));
	return status;
}

static enum hpx_status renew_view(struct hpx_sqlite_db *db)
{
	struct hpx_buffer text;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);
	bool made = true;

	hpx_buffer_init(&text, VIEW_BYTES_MAX);
	if (status == HPX_OK)
		status = write_text(db, &text);
	if (status == HPX_OK)
		status = is_made(db, hpx_buffer_span(&text).ptr, &made);
	if (status == HPX_OK && !made)
		status = make_view(db, hpx_buffer_span(&text).ptr);
	hpx_buffer_done(&text);
	return status;
}

enum hpx_status hpx_sqlite_view_make(struct hpx_sqlite_store *s)
{
	struct hpx_sqlite_db *db = &s->keeper;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);

	if (status != HPX_OK || db->list_version == s->view_version)
		return status;
	status = hpx_sqlite_do(db, HPX_SQL_BEGIN_WRITE);
	if (status != HPX_OK)
		return status;
	status = renew_view(db);
	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_COMMIT);
	if (status == HPX_OK) {
		s->view_version = db->list_version;
		return HPX_OK;
	}
	if (!sqlite3_get_autocommit(db->handle))
		hpx_sqlite_do(db, HPX_SQL_ROLLBACK);
	hpx_sqlite_generations_forget(db);
	return status;
}
