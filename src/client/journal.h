/* The journal: what was intended, written down before it is sent. One SQLite
 * file, which any number of processes use at once.
 *
 * 1. A call is durable, with its key, before its first attempt begins; and so is
 *    each attempt's beginning (`sending`).
 * 2. An entry that is `sending` and that nobody has claimed was left by a process
 *    that died: it is in doubt.
 * 3. An entry is claimed by whoever sends it: a lock on one byte of a file beside
 *    the journal, which the system takes back when the process is gone. It is
 *    claimed before anybody else can see it.
 * 4. A credential's value is in no entry, and an entry that is done has neither
 *    body nor headers nor query. */
#ifndef HPX_CLIENT_JOURNAL_H
#define HPX_CLIENT_JOURNAL_H

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>

#include "client/client.h"

/* How long an entry that is done is kept. */
#define HPX_JOURNAL_KEEP_MS (30 * (int64_t)86400000)
#define HPX_JOURNAL_LIST_MAX 10000
/* The number of its schema, as the file says it (PRAGMA user_version). */
#define HPX_JOURNAL_SCHEMA 1

struct hpx_journal {
	pthread_mutex_t mutex; /* of all that follows */
	sqlite3 *db;
	char path[PATH_MAX];
};

/* Makes the file where it is absent (mode 0600), not its directory. */
enum hapax_result hpx_journal_open(const char *path, struct hpx_journal **ret_journal,
				   char *problem);
/* NULL is nothing. */
void hpx_journal_close(struct hpx_journal *journal);

/* ---- journal_entry.c: each leaves a sentence where it fails ---- */

/* Writes a new call down and claims it: sets its id and claim_fd. */
enum hapax_result hpx_journal_add(struct hpx_journal *journal, struct hapax_call *call,
				  char *problem);
/* Where the call stands now. */
enum hapax_result hpx_journal_update(struct hpx_journal *journal, const struct hapax_call *call,
				     char *problem);
enum hapax_result hpx_journal_forget(struct hpx_journal *journal, int64_t id, char *problem);

/* Claims the entry and reads it into an empty call. */
enum hapax_result hpx_journal_load(struct hpx_journal *journal, int64_t id,
				   struct hapax_call *call, char *problem);
enum hapax_result hpx_journal_list(struct hpx_journal *journal, bool all,
				   struct hapax_entry **ret_entries, size_t *ret_count,
				   char *problem);

/* ---- journal_file.c ---- */

/* Claims an entry for this call: `*ret_fd` is a lock that ends when it is closed.
 * HAPAX_BUSY: another process (or call) has it. */
enum hapax_result hpx_journal_claim(const struct hpx_journal *journal, int64_t id, int *ret_fd,
				    char *problem);
bool hpx_journal_is_claimed(const struct hpx_journal *journal, int64_t id);

/* What SQLite says, as a result. */
enum hapax_result hpx_journal_error(struct hpx_journal *journal, const char *what, char *problem);

/* ---- one SQL statement from its text to its end ---- */

/* The first error is kept, so that callers look once. */
struct hpx_statement {
	sqlite3 *db;
	sqlite3_stmt *stmt;
	int code;  /* SQLITE_OK, or the first error */
	int index; /* of the parameter that was bound last */
};

struct hpx_statement hpx_statement(sqlite3 *db, const char *text);
/* Parameters in their order; the bytes are borrowed until the end. */
void hpx_statement_bind_int(struct hpx_statement *statement, int64_t value);
void hpx_statement_bind_blob(struct hpx_statement *statement, struct hpx_span bytes);
/* NULL binds NULL. */
void hpx_statement_bind_text(struct hpx_statement *statement, const char *text);
/* Whether there is a row. */
bool hpx_statement_next(struct hpx_statement *statement);
/* Columns of the row; NULL counts as 0 and as ptr NULL. Until the next row. */
int64_t hpx_statement_int(struct hpx_statement *statement, int column);
struct hpx_span hpx_statement_bytes(struct hpx_statement *statement, int column);
/* Ends it and gives SQLITE_OK or the first error. */
int hpx_statement_end(struct hpx_statement *statement);
/* All rows, then the end. */
int hpx_statement_run(struct hpx_statement *statement);
/* Statements without parameters or rows. */
int hpx_statement_exec(sqlite3 *db, const char *text);

/* The names of enum hapax_entry_state, as the file has them. */
#define HPX_ENTRY_STATE_LIST(X) \
	X(OPEN, "open") \
	X(DONE, "done") \
	X(STOPPED, "stopped") \
	X(GAVE_UP, "gave_up")
const char *hpx_entry_state_name(enum hapax_entry_state state);

#endif
