/* Opening a connection: what every one of ours has set, and what only the
 * writer has. */
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite/driver.h"
#include "store/sqlite_schema.h"

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
			  * (keeper.c): cut off, it would be allocated again, and
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

/* ---- the schema ---- */

/* Whose file it is, of which schema, and the steps to this program's: the whole
 * schema, then what later releases change. */

/* "hapx" */
#define APPLICATION_ID 0x68617078
/* The number of sql/sqlite/schema.sql. Those below it were never released, and
 * nothing leads on from them. */
#define SCHEMA_FIRST 7u
#define STEP_COUNT ((unsigned)(sizeof(schema_steps) / sizeof(schema_steps[0])))
#define SCHEMA_NUMBER (SCHEMA_FIRST + STEP_COUNT - 1)

unsigned hpx_sqlite_schema_number(void)
{
	return SCHEMA_NUMBER;
}

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
	int64_t version;     /* of hapax's tables; 0: there are none */
	int64_t application; /* whose the file says it is; 0: it does not */
	int64_t tables;      /* whosever they are */
};

static enum hpx_status identify(struct hpx_sqlite_db *db, struct identity *ret_identity)
{
	int64_t ours = 0;
	enum hpx_status status =
		read_number(db, "SELECT count(*) FROM sqlite_schema", &ret_identity->tables);

	if (status == HPX_OK)
		status = read_number(db, "PRAGMA application_id", &ret_identity->application);
	if (status == HPX_OK)
		status = read_number(db, "SELECT count(*) FROM sqlite_schema "
					 "WHERE name = 'hapax_schema_version'",
				     &ours);
	if (status != HPX_OK)
		return status;
	if (ours == 0)
		return HPX_OK;
	return read_number(db, "SELECT coalesce(max(version), -1) FROM hapax_schema_version",
			   &ret_identity->version);
}

static enum hpx_status exec(struct hpx_sqlite_db *db, const char *sql)
{
	return hpx_sqlite_status(sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

/* The page ends with the template of a generation, which is no part of the schema. */
static const char *find_template(void)
{
	const char *text = strstr(schema_steps[0], "\n-- The template of a generation");

	HPX_ASSERT(text != NULL);
	return text;
}

static enum hpx_status make_first(struct hpx_sqlite_db *db)
{
	size_t len = (size_t)(find_template() - schema_steps[0]);
	char *sql = strndup(schema_steps[0], len);
	enum hpx_status status = sql != NULL ? exec(db, sql) : HPX_NOMEM;

	free(sql);
	return status;
}

/* Its comments are left out: they hold no statement, and no number. */
enum hpx_status hpx_sqlite_generation_make(struct hpx_sqlite_db *db, int64_t number)
{
	const char *from = find_template();
	char bare[4096], sql[4096];
	size_t len = 0;

	while (*from != '\0') {
		if (from[0] == '\n' && from[1] == '-' && from[2] == '-') {
			from += 1 + strcspn(from + 1, "\n");
			continue;
		}
		HPX_ASSERT(len + 1 < sizeof(bare));
		bare[len++] = *from++;
	}
	bare[len] = '\0';
	bool whole = hpx_sqlite_number_sql(bare, number, sql, sizeof(sql));
	HPX_ASSERT(whole);
	return exec(db, sql);
}

static enum hpx_status apply_steps(struct hpx_sqlite_db *db, const struct identity *identity)
{
	char note[96];
	enum hpx_status status = HPX_OK;
	unsigned from = identity->version == 0 ? 0 : (unsigned)identity->version - SCHEMA_FIRST + 1;

	for (unsigned i = from; i < STEP_COUNT && status == HPX_OK; i++)
		status = i == 0 ? make_first(db) : exec(db, schema_steps[i]);
	snprintf(note, sizeof(note), "INSERT INTO hapax_schema_version (version) VALUES (%u)",
		 SCHEMA_NUMBER);
	if (status == HPX_OK)
		status = exec(db, note);
	/* Only where the file is ours alone: what file(1) may say of it. */
	snprintf(note, sizeof(note), "PRAGMA application_id = %d", APPLICATION_ID);
	if (status == HPX_OK && identity->tables == 0 && identity->application == 0)
		status = exec(db, note);
	return status;
}

static enum hpx_status judge(const struct identity *identity, const char *path,
			     enum hpx_sqlite_migrate may, char *problem)
{
	bool foreign = identity->version == 0 &&
		       (identity->tables != 0 || identity->application != 0);

	if (foreign && may != HPX_SQLITE_BESIDE) {
		hpx_store_problem(problem, "%s is not a hapax store, and is left untouched: choose "
					   "another path, or have hapax's tables made beside those in it "
					   "with `hapax migrate --beside --store sqlite:%s`",
				  path, path);
		return HPX_INVALID;
	}
	if (identity->version > SCHEMA_NUMBER || identity->version < 0) {
		hpx_store_problem(problem, "%s has schema %lld and this hapax knows up to %u: "
					   "use the newer program that wrote it",
				  path,
				  (long long)identity->version, SCHEMA_NUMBER);
		return HPX_UNSUPPORTED;
	}
	if (identity->version > 0 && identity->version < SCHEMA_FIRST) {
		hpx_store_problem(problem, "%s has schema %lld of before the first release, and this "
					   "hapax begins at %u: nothing leads from one to the other. Choose "
					   "another path, or, once no key in this file can be retried any "
					   "more, move it away, and start again",
				  path,
				  (long long)identity->version, SCHEMA_FIRST);
		return HPX_UNSUPPORTED;
	}
	if (identity->version < SCHEMA_NUMBER && may == HPX_SQLITE_NOT) {
		hpx_store_problem(problem, "%s has schema %lld and this hapax needs %u: run "
					   "`hapax migrate --store sqlite:%s`, or start `hapax serve`",
				  path, (long long)identity->version, SCHEMA_NUMBER, path);
		return HPX_UNSUPPORTED;
	}
	return HPX_OK;
}

/* Somebody else may have been faster since the file was looked at. */
static enum hpx_status migrate_locked(struct hpx_sqlite_db *db, const char *path,
				      enum hpx_sqlite_migrate may, char *problem)
{
	struct identity identity = { 0, 0, 0 };
	enum hpx_status status = identify(db, &identity);

	if (status == HPX_OK)
		status = judge(&identity, path, may, problem);
	if (status == HPX_OK && identity.version < SCHEMA_NUMBER)
		status = apply_steps(db, &identity);
	return status;
}

/* All steps are one transaction: a crash leaves the old schema or the new. */
enum hpx_status hpx_sqlite_schema_migrate(struct hpx_sqlite_db *db, const char *path,
					  enum hpx_sqlite_migrate may,
					  const struct hpx_sqlite_schema *schema, char *problem)
{
	enum hpx_status status;

	if (schema->from == schema->to)
		return HPX_OK;
	status = exec(db, "BEGIN IMMEDIATE");
	if (status == HPX_OK)
		status = migrate_locked(db, path, may, problem);
	if (status == HPX_OK)
		status = exec(db, "COMMIT");
	if (status == HPX_OK)
		return HPX_OK;
	if (problem[0] == '\0')
		hpx_sqlite_explain(db, path, "the schema cannot be brought up to date", problem);
	if (!sqlite3_get_autocommit(db->handle))
		exec(db, "ROLLBACK");
	return status;
}

enum hpx_status hpx_sqlite_schema_check(struct hpx_sqlite_db *db, const char *path,
					enum hpx_sqlite_migrate may,
					struct hpx_sqlite_schema *ret_schema, char *problem)
{
	struct identity identity = { 0, 0, 0 };
	enum hpx_status status = identify(db, &identity);

	if (status == HPX_CORRUPT && (sqlite3_errcode(db->handle) & 0xff) == SQLITE_NOTADB) {
		hpx_store_problem(problem, "%s is not a hapax store, and is left untouched: "
					   "choose another path",
				  path);
		return HPX_INVALID;
	}
	if (status != HPX_OK) {
		hpx_sqlite_explain(db, path, "cannot be read", problem);
		return status;
	}
	status = judge(&identity, path, may, problem);
	if (status == HPX_OK)
		*ret_schema = (struct hpx_sqlite_schema){ .from = (unsigned)identity.version,
							  .to = SCHEMA_NUMBER };
	return status;
}
