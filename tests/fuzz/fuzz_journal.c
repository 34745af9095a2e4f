/* Fuzzes what the client reads back from its journal: an entry and its fields that were
 * right, with any of their columns replaced. What is read makes a call that can be looked
 * at and refused like any other, or is said to be unreadable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "client/journal.h"
#include "overrides.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *count, char ***arguments);

static struct hapax_client *client;
static struct hpx_journal *journal;
static char problem[HAPAX_PROBLEM_SIZE];

static const char *const call_columns[] = { "state", "method", "url", "key", "key_header",
					    "key_bare", "body", "attempts", "sending", "doubt",
					    "status", "created_ms", "first_ms", "changed_ms",
					    "remembered_ms" };
static const char *const field_columns[] = { "name", "value", "file", "salt", "digest", "place" };
#define CALL_COLUMNS (sizeof(call_columns) / sizeof(call_columns[0]))
#define FIELD_COLUMNS (sizeof(field_columns) / sizeof(field_columns[0]))

static void run(const char *sql)
{
	HPX_ASSERT(hpx_statement_exec(journal->db, sql) == SQLITE_OK);
}

/* The same tables without the rules that a file from elsewhere need not keep. */
static void fill(void)
{
	/* The file has no name any more, and a journal beside it can have none. */
	run("PRAGMA journal_mode = MEMORY; DROP TABLE call; DROP TABLE field;"
	    "CREATE TABLE call (id INTEGER PRIMARY KEY, state, method, url, key, key_header,"
	    " key_bare, body, attempts, sending, doubt, status, created_ms, first_ms, changed_ms,"
	    " remembered_ms);"
	    "CREATE TABLE field (call, place, name, value, file, salt, digest);"
	    "INSERT INTO call VALUES (1, 'open', 'POST', 'http://h/p?q=1', 'key-1',"
	    " 'Idempotency-Key', 0, 'body', 1, 1, 0, 0, 1000, 1000, 1000, 86400000);"
	    "INSERT INTO field VALUES (1, 0, 'X-A', 'one', NULL, NULL, NULL),"
	    " (1, 1, 'Authorization', NULL, NULL, zeroblob(16), zeroblob(32))");
}

static void remove_locks(void)
{
	char lock[sizeof(journal->path) + 8];

	snprintf(lock, sizeof(lock), "%s.lock", journal->path);
	unlink(lock);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	char folder[] = "/tmp/hapax-fuzz-XXXXXX";
	char path[64], lock[80];

	(void)count;
	(void)arguments;
	HPX_ASSERT(hapax_client_open(NULL, &client, problem) == HAPAX_OK);
	HPX_ASSERT(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/calls.db", folder);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	HPX_ASSERT(hpx_journal_open(path, &journal, problem) == HAPAX_OK);
	fill();
	/* The files are used by their descriptors, and go with the process: but for the
	 * locks, which are opened for each claim. */
	snprintf(journal->path, sizeof(journal->path), "/dev/shm/hapax-fuzz-%ld", (long)getpid());
	unlink(path);
	unlink(lock);
	rmdir(folder);
	atexit(remove_locks);
	return 0;
}

static void change(const struct override *o)
{
	bool is_call = o->column < CALL_COLUMNS;
	const char *name = is_call ? call_columns[o->column] : field_columns[o->column - CALL_COLUMNS];
	char sql[128];

	/* Of the two fields, the first or the second. */
	snprintf(sql, sizeof(sql),
		 is_call ? "UPDATE call SET %s = ?" : "UPDATE field SET %s = ? WHERE rowid = %d", name,
		 1 + (int)(o->bytes.len & 1));
	struct hpx_statement statement = hpx_statement(journal->db, sql);
	if (o->kind == OVERRIDE_INT)
		hpx_statement_bind_int(&statement, o->number);
	else if (o->kind == OVERRIDE_BLOB)
		hpx_statement_bind_blob(&statement, o->bytes);
	else if (o->kind == OVERRIDE_TEXT)
		sqlite3_bind_text(statement.stmt, 1, o->bytes.ptr, (int)o->bytes.len, SQLITE_STATIC);
	HPX_ASSERT(hpx_statement_run(&statement) == SQLITE_OK);
}

/* What becomes of a call that was read, up to its sending. */
static void check_call(const struct hapax_call *call)
{
	char key[HPX_KEY_TEXT_SIZE];
	struct hpx_buffer lines;

	HPX_ASSERT(call->id == 1 && call->claim_fd >= 0 && call->url != NULL);
	HPX_ASSERT(call->key_header != NULL && call->key[0] != '\0' && call->method[0] != '\0');
	HPX_ASSERT(call->state <= HAPAX_ENTRY_GAVE_UP);
	for (size_t i = 0; i < call->field_count; i++)
		HPX_ASSERT(call->fields[i].name != NULL &&
			   (call->fields[i].secret || call->fields[i].value != NULL));
	hpx_call_key_print(call, key);
	hpx_buffer_init(&lines, 1 << 20);
	if (hpx_call_is_complete(call, problem) == HAPAX_OK &&
	    hpx_call_lines(call, &lines) == HPX_OK &&
	    hpx_call_check(call, hpx_buffer_span(&lines), problem) == HAPAX_OK) {
		/* What goes out is lines, whatever was read: one end of line for each field. */
		struct hpx_span rest = hpx_buffer_span(&lines);
		HPX_ASSERT(memchr(rest.ptr, '\0', rest.len) == NULL);
		for (size_t i = 0; i < rest.len; i++)
			HPX_ASSERT((rest.ptr[i] == '\r') ==
				   (i + 1 < rest.len && rest.ptr[i + 1] == '\n'));
	}
	hpx_buffer_done(&lines);
}

static void check_list(void)
{
	struct hapax_entry *entries = NULL;
	size_t count = 0;

	if (hpx_journal_list(journal, true, &entries, &count, problem) != HAPAX_OK) {
		HPX_ASSERT(problem[0] != '\0');
		return;
	}
	for (size_t i = 0; i < count; i++)
		HPX_ASSERT(entries[i].url != NULL && entries[i].method != NULL && entries[i].key != NULL);
	hapax_entries_free(entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span rest = hpx_span(data, size);
	struct override o;

	run("BEGIN");
	while (take_override(&rest, CALL_COLUMNS + FIELD_COLUMNS, &o))
		change(&o);
	struct hapax_call *call = hpx_call_empty(client);
	HPX_ASSERT(call != NULL);
	if (hpx_journal_load(journal, 1, call, problem) == HAPAX_OK)
		check_call(call);
	else
		HPX_ASSERT(problem[0] != '\0' && call->claim_fd < 0);
	hapax_call_free(call);
	check_list();
	run("ROLLBACK");
	return 0;
}
