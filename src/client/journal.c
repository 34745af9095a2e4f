/* Opening the journal: whose file it is, of which version, and that what is
 * committed is on the disk. */
#include "client/journal.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/sql.h"

/* "hpxc" */
#define APPLICATION_ID 0x68707863
#define SCHEMA_VERSION 1
/* Others write a few rows and are gone. */
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
_Static_assert(APPLICATION_ID == 1752201315 && SCHEMA_VERSION == 1, "as the schema has them");

const char *hpx_entry_state_name(enum hapax_entry_state state)
{
	static const char *const names[] = {
#define X(name, text) [HAPAX_ENTRY_##name] = text,
		HPX_ENTRY_STATE_LIST(X)
#undef X
	};

	return names[state];
}

enum hapax_result hpx_journal_blame(struct hpx_journal *journal, const char *what, char *problem)
{
	int code = sqlite3_errcode(journal->db) & 0xff;

	if (code == SQLITE_NOMEM)
		return hpx_client_nomem(problem);
	return hpx_client_say(HAPAX_UNAVAILABLE, problem,
			      "the journal %s %s: %s (SQLite error %d)", journal->path, what,
			      sqlite3_errmsg(journal->db),
			      sqlite3_extended_errcode(journal->db));
}

static int read_number(sqlite3 *db, const char *text, int64_t *ret_number)
{
	struct hpx_sql sql = hpx_sql(db, text);

	if (hpx_sql_next(&sql))
		*ret_number = hpx_sql_int(&sql, 0);
	return hpx_sql_end(&sql);
}

struct identity {
	int64_t application;
	int64_t version;
	int64_t tables;
};

/* The tables first: another process may be making them meanwhile, and there must
 * be no moment at which they seem to be somebody else's. */
static int identify(sqlite3 *db, struct identity *ret_identity)
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
	return hpx_client_say(HAPAX_INVALID, problem,
			      "%s is not a journal of calls, and is left untouched: choose another "
			      "path",
			      journal->path);
}

/* Changes nothing, whosever file it is. */
static enum hapax_result check(struct hpx_journal *journal, bool *ret_empty, char *problem)
{
	struct identity identity = { 0, 0, 0 };
	int code = identify(journal->db, &identity);

	if ((code & 0xff) == SQLITE_NOTADB)
		return refuse_foreign(journal, problem);
	if (code != SQLITE_OK)
		return hpx_journal_blame(journal, "cannot be read", problem);
	*ret_empty = identity.application == 0 && identity.tables == 0;
	if (!*ret_empty && identity.application != APPLICATION_ID)
		return refuse_foreign(journal, problem);
	if (identity.version > SCHEMA_VERSION)
		return hpx_client_say(HAPAX_UNAVAILABLE, problem,
				      "the journal %s was made by a newer hapax", journal->path);
	return HAPAX_OK;
}

/* Somebody else may have been faster. */
static enum hapax_result make_schema(struct hpx_journal *journal, char *problem)
{
	bool empty;

	if (hpx_sql_exec(journal->db, "BEGIN IMMEDIATE") != SQLITE_OK)
		return hpx_journal_blame(journal, "cannot be written", problem);
	enum hapax_result result = check(journal, &empty, problem);
	if (result == HAPAX_OK && empty && hpx_sql_exec(journal->db, schema) != SQLITE_OK)
		result = hpx_journal_blame(journal, "cannot be written", problem);
	if (result == HAPAX_OK && hpx_sql_exec(journal->db, "COMMIT") != SQLITE_OK)
		result = hpx_journal_blame(journal, "cannot be written", problem);
	if (!sqlite3_get_autocommit(journal->db))
		hpx_sql_exec(journal->db, "ROLLBACK");
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

static enum hapax_result connect(struct hpx_journal *journal, char *problem)
{
	int code = sqlite3_open_v2(journal->path, &journal->db,
				   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
					   SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW |
					   SQLITE_OPEN_EXRESCODE,
				   NULL);
	bool empty;

	if (journal->db == NULL)
		return hpx_client_nomem(problem);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(journal->db, BUSY_MS);
	if (code == SQLITE_OK)
		code = hpx_sql_exec(journal->db, settings);
	if ((code & 0xff) == SQLITE_NOTADB)
		return refuse_foreign(journal, problem);
	if (code != SQLITE_OK)
		return hpx_journal_blame(journal, "cannot be opened", problem);
	enum hapax_result result = check(journal, &empty, problem);
	/* The mode is the connection's; behind the check, because it may write. */
	if (result == HAPAX_OK &&
	    hpx_sql_exec(journal->db, "PRAGMA journal_mode = TRUNCATE") != SQLITE_OK)
		result = hpx_journal_blame(journal, "cannot be opened", problem);
	if (result == HAPAX_OK && empty)
		result = make_schema(journal, problem);
	return result;
}

static enum hapax_result open_file(struct hpx_journal *journal, const char *path, char *problem)
{
	enum hapax_result result = hpx_place_find(path, journal->path, problem);

	if (result == HAPAX_OK)
		result = hpx_place_ensure(journal->path, problem);
	return result == HAPAX_OK ? connect(journal, problem) : result;
}

enum hapax_result hpx_journal_open(const char *path, struct hpx_journal **ret_journal,
				   char *problem)
{
	struct hpx_journal *journal = calloc(1, sizeof(*journal));

	if (journal == NULL)
		return hpx_client_nomem(problem);
	if (pthread_mutex_init(&journal->mutex, NULL) != 0) {
		free(journal);
		return hpx_client_nomem(problem);
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
