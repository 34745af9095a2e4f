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

/* entry.c. Each leaves a sentence where it fails. */
/* Writes a new call down and claims it: sets its id and claim_fd. */
enum hapax_result hpx_journal_add(struct hpx_journal *journal, struct hapax_call *call,
				  char *problem);
/* Where the call stands now. */
enum hapax_result hpx_journal_update(struct hpx_journal *journal, const struct hapax_call *call,
				     char *problem);
enum hapax_result hpx_journal_forget(struct hpx_journal *journal, int64_t id, char *problem);

/* entry_read.c. Claims the entry and reads it into an empty call. */
enum hapax_result hpx_journal_load(struct hpx_journal *journal, int64_t id,
				   struct hapax_call *call, char *problem);
enum hapax_result hpx_journal_list(struct hpx_journal *journal, bool all,
				   struct hapax_entry **ret_entries, size_t *ret_count,
				   char *problem);

/* place.c. Where the file is, and who is at an entry. */
enum hapax_result hpx_place_find(const char *given, char ret_path[PATH_MAX], char *problem);
enum hapax_result hpx_place_ensure(const char *path, char *problem);
/* HAPAX_BUSY: another process (or call) has it. */
enum hapax_result hpx_place_claim(const char *path, int64_t id, int *ret_fd, char *problem);
bool hpx_place_is_claimed(const char *path, int64_t id);

/* journal.c. What SQLite says, as a result. */
enum hapax_result hpx_journal_blame(struct hpx_journal *journal, const char *what, char *problem);

/* The names of enum hapax_entry_state, as the file has them. */
#define HPX_ENTRY_STATE_LIST(X) \
	X(OPEN, "open") \
	X(DONE, "done") \
	X(STOPPED, "stopped") \
	X(GAVE_UP, "gave_up")
const char *hpx_entry_state_name(enum hapax_entry_state state);

#endif
