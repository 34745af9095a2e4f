/* Opening a connection: what every one of ours has set, and what only the
 * writer has. */
#include <stdio.h>

#include "store/sqlite/driver.h"

/* The server gives way to a person's command for this long; a command waits
 * longer for the server. */
#define BUSY_SERVER_MS 2000
#define BUSY_COMMAND_MS 5000

int hpx_sqlite_busy_ms(const struct hpx_sqlite_store *s)
{
	return s->serve ? BUSY_SERVER_MS : BUSY_COMMAND_MS;
}

void hpx_sqlite_explain(struct hpx_sqlite_db *db, const char *path, const char *what,
			char *problem)
{
	hpx_store_problem(problem, "%s: %s: %s (SQLite error %d)", path, what,
			  sqlite3_errmsg(db->handle), sqlite3_extended_errcode(db->handle));
}

static enum hpx_status set(struct hpx_sqlite_db *db, const char *pragma)
{
	return hpx_sqlite_status(sqlite3_exec(db->handle, pragma, NULL, NULL, NULL));
}

enum hpx_status hpx_sqlite_connect(const char *path, int flags, const char *vfs, int busy_ms,
				   struct hpx_sqlite_db *db, char *problem)
{
	enum hpx_status status;
	int code = sqlite3_open_v2(path, &db->handle,
				   flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
					   SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
				   vfs);

	status = hpx_sqlite_status(code);
	if (status == HPX_OK)
		status = hpx_sqlite_status(sqlite3_busy_timeout(db->handle, busy_ms));
	/* Whoever wrote the file's schema, it gets no say in what we run. */
	if (status == HPX_OK)
		status = set(db, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
	if (status == HPX_OK)
		return HPX_OK;
	hpx_sqlite_explain(db, path, "cannot be opened", problem);
	hpx_sqlite_db_close(db);
	return status;
}

/* Also keeps SQLite from checkpointing inside a commit, which is what a hook
 * of its own would do. */
static int note_wal(void *user, sqlite3 *handle, const char *name, int pages)
{
	struct hpx_sqlite_store *s = user;

	(void)handle;
	(void)name;
	atomic_store(&s->wal_bytes, pages * HPX_SQLITE_FRAME_BYTES);
	return SQLITE_OK;
}

void hpx_sqlite_watch_log(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db)
{
	sqlite3_wal_hook(db->handle, note_wal, s);
}

static enum hpx_status use_wal(struct hpx_sqlite_db *db, const char *path, char *problem)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db->handle, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
	bool wal = false;

	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW)
		wal = hpx_span_eq(hpx_span_of((const char *)sqlite3_column_text(stmt, 0)),
				  HPX_SPAN("wal"));
	sqlite3_finalize(stmt);
	if (code == SQLITE_ROW && !wal) {
		hpx_store_problem(problem, "%s: this file system does not allow SQLite's "
					   "write-ahead log: put the store on a local disk",
				  path);
		return HPX_UNSUPPORTED;
	}
	if (code != SQLITE_ROW)
		hpx_sqlite_explain(db, path, "cannot be opened", problem);
	return hpx_sqlite_status(code);
}

static enum hpx_status make_durable(struct hpx_sqlite_db *db, const char *path, char *problem)
{
	enum hpx_status status = use_wal(db, path, problem);

	if (status != HPX_OK)
		return status;
	/* FULL: a commit is on the disk before it returns (guarantees 1, 3). */
	status = set(db, "PRAGMA synchronous = FULL; "
			 /* Above what the log grows to until it begins anew
			  * (checkpoint.c): cut off, it would be allocated again, and
			  * each fdatasync would write that down. */
			 "PRAGMA journal_size_limit = 134217728; "
			 /* Not ON, as some systems build it: every page of a deleted
			  * answer would be written to the log once more, and a disk
			  * that is nearly full could not be emptied. */
			 "PRAGMA secure_delete = FAST; "
			 /* Enough for the inner pages of an index of ten million ids.
			  * More would cost: a commit that split a page walks them all. */
			 "PRAGMA cache_size = -8192");
	if (status != HPX_OK)
		hpx_sqlite_explain(db, path, "cannot be made durable", problem);
	return status;
}

enum hpx_status hpx_sqlite_writer_open(struct hpx_sqlite_store *s, enum hpx_sqlite_migrate may,
				       struct hpx_sqlite_schema *ret_schema, char *problem)
{
	struct hpx_sqlite_db *db = &s->writer;
	struct hpx_sqlite_schema schema;
	enum hpx_status status =
		hpx_sqlite_connect(s->path, SQLITE_OPEN_READWRITE,
				   s->serve ? hpx_sqlite_wal_vfs() : NULL,
				   hpx_sqlite_busy_ms(s), db, problem);

	if (status != HPX_OK)
		return status;
	/* Before anything that writes: the file may be somebody else's. */
	status = hpx_sqlite_schema_check(db, s->path, may, &schema, problem);
	if (status == HPX_OK)
		status = make_durable(db, s->path, problem);
	if (status == HPX_OK)
		status = hpx_sqlite_schema_migrate(db, s->path, may, &schema, problem);
	if (status != HPX_OK) {
		hpx_sqlite_db_close(db);
		return status;
	}
	hpx_sqlite_watch_log(s, db);
	*ret_schema = schema;
	return HPX_OK;
}
