/* The journal's database file: where it is, whose it is and of which version; the
 * locks by which processes keep out of each other's entries; and its SQL
 * statements. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "client/journal.h"

/* "hpxc" */
#define APPLICATION_ID 0x68707863
/* How long to wait for another process, which writes only a few rows. */
#define BUSY_MS 10000

/* `sending`: an attempt was begun and has not ended. `first_ms`: the time of the
 * first one that may have happened; 0 before it. A field without a value is a credential. */
static const char schema[] =
	"CREATE TABLE call ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" state TEXT NOT NULL CHECK (state IN ('open', 'done', 'stopped', 'gave_up')),"
	" method TEXT NOT NULL, url TEXT NOT NULL,"
	" key TEXT NOT NULL, key_header TEXT NOT NULL, key_bare INTEGER NOT NULL,"
	" body BLOB, attempts INTEGER NOT NULL, sending INTEGER NOT NULL, doubt INTEGER NOT NULL,"
	" status INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL, first_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL,"
	" remembered_ms INTEGER NOT NULL);"
	"CREATE INDEX call_unfinished ON call (id) WHERE state <> 'done';"
	"CREATE TABLE field ("
	" call INTEGER NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL,"
	" value TEXT, file TEXT, salt BLOB, digest BLOB,"
	" PRIMARY KEY (call, place)) WITHOUT ROWID;"
	"PRAGMA application_id = 1752201315;"
	"PRAGMA user_version = 1;";
_Static_assert(APPLICATION_ID == 1752201315 && HPX_JOURNAL_SCHEMA == 1, "as the schema has them");

/* ---- statements, prepared for one use: a call has a handful of them ---- */

struct hpx_statement hpx_statement(sqlite3 *db, const char *text)
{
	struct hpx_statement statement = { .db = db };

	statement.code = sqlite3_prepare_v2(db, text, -1, &statement.stmt, NULL);
	return statement;
}

void hpx_statement_bind_int(struct hpx_statement *statement, int64_t value)
{
	if (statement->code == SQLITE_OK)
		statement->code = sqlite3_bind_int64(statement->stmt, ++statement->index, value);
}

/* An empty value is bound as "": a NULL pointer would bind NULL. */
void hpx_statement_bind_blob(struct hpx_statement *statement, struct hpx_span bytes)
{
	if (statement->code == SQLITE_OK)
		statement->code = sqlite3_bind_blob64(statement->stmt, ++statement->index,
						      bytes.len > 0 ? bytes.ptr : "", bytes.len,
						      SQLITE_STATIC);
}

void hpx_statement_bind_text(struct hpx_statement *statement, const char *text)
{
	if (statement->code == SQLITE_OK)
		statement->code = sqlite3_bind_text(statement->stmt, ++statement->index, text, -1,
						    SQLITE_STATIC);
}

bool hpx_statement_next(struct hpx_statement *statement)
{
	if (statement->code != SQLITE_OK)
		return false;
	int code = sqlite3_step(statement->stmt);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		statement->code = code;
	return code == SQLITE_ROW;
}

int64_t hpx_statement_int(struct hpx_statement *statement, int column)
{
	HPX_ASSERT(column < sqlite3_column_count(statement->stmt));
	return sqlite3_column_int64(statement->stmt, column);
}

struct hpx_span hpx_statement_bytes(struct hpx_statement *statement, int column)
{
	const void *bytes = sqlite3_column_blob(statement->stmt, column);
	int len = sqlite3_column_bytes(statement->stmt, column);

	/* SQLite gives an empty value as NULL; it is not absent. */
	if (bytes == NULL && sqlite3_column_type(statement->stmt, column) != SQLITE_NULL)
		bytes = "";
	return hpx_span(bytes, len > 0 ? (size_t)len : 0);
}

int hpx_statement_end(struct hpx_statement *statement)
{
	/* sqlite3_finalize returns the last step's error, which is kept already. */
	sqlite3_finalize(statement->stmt);
	statement->stmt = NULL;
	return statement->code;
}

int hpx_statement_run(struct hpx_statement *statement)
{
	while (hpx_statement_next(statement))
		continue;
	return hpx_statement_end(statement);
}

int hpx_statement_exec(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL);
}

/* ---- the path, and the claims ---- */

static void directory_of(const char *path, char ret_directory[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		snprintf(ret_directory, PATH_MAX, ".");
	else
		snprintf(ret_directory, PATH_MAX, "%.*s", (int)(slash - path + 1), path);
}

/* The directory's real path and the file's name. The file itself must not be a
 * link: whoever can place one could have the requests written elsewhere. */
static enum hapax_result resolve_path(const char *given, char ret_path[PATH_MAX], char *problem)
{
	const char *slash = strrchr(given, '/');
	const char *name = slash != NULL ? slash + 1 : given;
	char directory[PATH_MAX];
	char real[PATH_MAX];

	/* Room for ".lock" and SQLite's "-journal" behind it. */
	if (*name == '\0' || strlen(given) >= PATH_MAX - 16)
		return hpx_client_error(HAPAX_INVALID, problem,
					"the journal needs the path of a file");
	directory_of(given, directory);
	if (realpath(directory, real) == NULL)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem,
					"the directory of the journal %s: %m", given);
	if (snprintf(ret_path, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) >=
	    PATH_MAX - 16)
		return hpx_client_error(HAPAX_INVALID, problem, "the journal's path is too long");
	return HAPAX_OK;
}

/* The new file's name must survive a power cut as well as its content. */
static enum hapax_result sync_directory(const char *path, char *problem)
{
	char directory[PATH_MAX];
	enum hapax_result result = HAPAX_OK;

	directory_of(path, directory);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		result = hpx_client_error(HAPAX_UNAVAILABLE, problem, "%s: %m", directory);
	if (fd >= 0)
		close(fd);
	return result;
}

static enum hapax_result create_file(const char *path, char *problem)
{
	struct stat info;

	if (lstat(path, &info) == 0) {
		if (S_ISREG(info.st_mode))
			return HAPAX_OK;
		return hpx_client_error(HAPAX_INVALID, problem,
					"the journal %s is not a regular file", path);
	}
	/* Requests are nobody else's; SQLite gives its other file the same mode. */
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno != EEXIST)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem,
					"the journal %s cannot be made: %m", path);
	if (fd >= 0)
		close(fd);
	return sync_directory(path, problem);
}

static int open_locks(const char *path)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s.lock", path);
	return open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* One byte for each entry. The lock is of the open file, not of the process, so
 * that two calls of one process exclude each other too. */
static struct flock lock_of(int64_t id)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = id, .l_len = 1 };
}

enum hapax_result hpx_journal_claim(const struct hpx_journal *journal, int64_t id, int *ret_fd,
				    char *problem)
{
	struct flock lock = lock_of(id);
	int fd = open_locks(journal->path);

	if (fd < 0)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem, "%s.lock: %m", journal->path);
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
		*ret_fd = fd;
		return HAPAX_OK;
	}
	bool held = errno == EAGAIN || errno == EACCES;
	enum hapax_result result =
		held ? hpx_client_error(HAPAX_BUSY, problem,
					"call %lld is being sent by another process", (long long)id) :
		       hpx_client_error(HAPAX_UNAVAILABLE, problem, "%s.lock: %m", journal->path);
	close(fd);
	return result;
}

bool hpx_journal_is_claimed(const struct hpx_journal *journal, int64_t id)
{
	struct flock lock = lock_of(id);
	int fd = open_locks(journal->path);

	if (fd < 0)
		return false;
	bool held = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return held;
}

/* ---- the file ---- */

const char *hpx_entry_state_name(enum hapax_entry_state state)
{
	static const char *const names[] = {
#define X(name, text) [HAPAX_ENTRY_##name] = text,
		HPX_ENTRY_STATE_LIST(X)
#undef X
	};

	HPX_ASSERT(state < sizeof(names) / sizeof(names[0]));
	return names[state];
}

enum hapax_result hpx_journal_error(struct hpx_journal *journal, const char *what, char *problem)
{
	int code = sqlite3_errcode(journal->db) & 0xff;

	if (code == SQLITE_NOMEM)
		return hpx_client_no_memory(problem);
	return hpx_client_error(HAPAX_UNAVAILABLE, problem,
				"the journal %s %s: %s (SQLite error %d)", journal->path, what,
				sqlite3_errmsg(journal->db),
				sqlite3_extended_errcode(journal->db));
}

static int read_number(sqlite3 *db, const char *text, int64_t *ret_number)
{
	struct hpx_statement statement = hpx_statement(db, text);

	if (hpx_statement_next(&statement))
		*ret_number = hpx_statement_int(&statement, 0);
	return hpx_statement_end(&statement);
}

struct journal_identity {
	int64_t application;
	int64_t version;
	int64_t tables;
};

/* The number of tables is read first: another process may be making them, and a
 * journal that is half made must not look like another program's file. */
static int identify(sqlite3 *db, struct journal_identity *ret_identity)
{
	int code = read_number(db, "SELECT count(*) FROM sqlite_schema", &ret_identity->tables);

	if (code == SQLITE_OK)
		code = read_number(db, "PRAGMA application_id", &ret_identity->application);
	if (code == SQLITE_OK)
		code = read_number(db, "PRAGMA user_version", &ret_identity->version);
	return code;
}

static enum hapax_result refuse_foreign(struct hpx_journal *journal, char *problem)
{
	return hpx_client_error(HAPAX_INVALID, problem,
				"%s is not a journal of calls, and is left untouched: choose another "
				"path",
				journal->path);
}

/* Reads only: the file may be another program's. */
static enum hapax_result check_file(struct hpx_journal *journal, bool *ret_empty, char *problem)
{
	struct journal_identity identity = { 0, 0, 0 };
	int code = identify(journal->db, &identity);

	if ((code & 0xff) == SQLITE_NOTADB)
		return refuse_foreign(journal, problem);
	if (code != SQLITE_OK)
		return hpx_journal_error(journal, "cannot be read", problem);
	*ret_empty = identity.application == 0 && identity.tables == 0;
	if (!*ret_empty && identity.application != APPLICATION_ID)
		return refuse_foreign(journal, problem);
	if (identity.version > HPX_JOURNAL_SCHEMA)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem,
					"the journal %s was made by a newer hapax", journal->path);
	return HAPAX_OK;
}

/* Another process may have made the tables meanwhile. */
static enum hapax_result make_schema(struct hpx_journal *journal, char *problem)
{
	bool empty;

	if (hpx_statement_exec(journal->db, "BEGIN IMMEDIATE") != SQLITE_OK)
		return hpx_journal_error(journal, "cannot be written", problem);
	enum hapax_result result = check_file(journal, &empty, problem);
	if (result == HAPAX_OK && empty && hpx_statement_exec(journal->db, schema) != SQLITE_OK)
		result = hpx_journal_error(journal, "cannot be written", problem);
	if (result == HAPAX_OK && hpx_statement_exec(journal->db, "COMMIT") != SQLITE_OK)
		result = hpx_journal_error(journal, "cannot be written", problem);
	if (!sqlite3_get_autocommit(journal->db))
		hpx_statement_exec(journal->db, "ROLLBACK");
	return result;
}

/* A rollback journal, not a write-ahead log: home directories may be on a
 * network, where the latter does not work. EXTRA: a commit is on the disk before
 * it returns, and so is the end of its rollback journal. What is deleted is
 * overwritten: bodies of calls that are done are nobody's any more. */
static const char settings[] = "PRAGMA trusted_schema = OFF;"
			       "PRAGMA cell_size_check = ON;"
			       "PRAGMA secure_delete = ON;"
			       "PRAGMA synchronous = EXTRA;";

static enum hapax_result open_database(struct hpx_journal *journal, char *problem)
{
	int code = sqlite3_open_v2(journal->path, &journal->db,
				   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
					   SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW |
					   SQLITE_OPEN_EXRESCODE,
				   NULL);
	bool empty;

	if (journal->db == NULL)
		return hpx_client_no_memory(problem);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(journal->db, BUSY_MS);
	if (code == SQLITE_OK)
		code = hpx_statement_exec(journal->db, settings);
	if ((code & 0xff) == SQLITE_NOTADB)
		return refuse_foreign(journal, problem);
	if (code != SQLITE_OK)
		return hpx_journal_error(journal, "cannot be opened", problem);
	enum hapax_result result = check_file(journal, &empty, problem);
	/* The journal mode is set after the check, because setting it may write. */
	if (result == HAPAX_OK &&
	    hpx_statement_exec(journal->db, "PRAGMA journal_mode = TRUNCATE") != SQLITE_OK)
		result = hpx_journal_error(journal, "cannot be opened", problem);
	if (result == HAPAX_OK && empty)
		result = make_schema(journal, problem);
	return result;
}

static enum hapax_result open_file(struct hpx_journal *journal, const char *path, char *problem)
{
	enum hapax_result result = resolve_path(path, journal->path, problem);

	if (result == HAPAX_OK)
		result = create_file(journal->path, problem);
	return result == HAPAX_OK ? open_database(journal, problem) : result;
}

enum hapax_result hpx_journal_open(const char *path, struct hpx_journal **ret_journal,
				   char *problem)
{
	struct hpx_journal *journal = calloc(1, sizeof(*journal));

	if (journal == NULL)
		return hpx_client_no_memory(problem);
	if (pthread_mutex_init(&journal->mutex, NULL) != 0) {
		free(journal);
		return hpx_client_no_memory(problem);
	}
	enum hapax_result result = open_file(journal, path, problem);
	if (result == HAPAX_OK)
		*ret_journal = journal;
	else
		hpx_journal_close(journal);
	return result;
}

void hpx_journal_close(struct hpx_journal *journal)
{
	if (journal == NULL)
		return;
	sqlite3_close(journal->db);
	pthread_mutex_destroy(&journal->mutex);
	free(journal);
}
