/* Entries of the journal, written and read. Each write is one transaction, durable
 * when it returns. A row that is read is input like any other: what does not make
 * sense is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "client/journal.h"

/* ---- writing ---- */

static enum hapax_result begin_write(struct hpx_journal *journal, char *problem)
{
	pthread_mutex_lock(&journal->mutex);
	if (hpx_statement_exec(journal->db, "BEGIN IMMEDIATE") == SQLITE_OK)
		return HAPAX_OK;
	return hpx_journal_error(journal, "cannot be written", problem);
}

/* Commits where `result` is HAPAX_OK, rolls back otherwise, and unlocks the
 * connection. */
static enum hapax_result end_write(struct hpx_journal *journal, enum hapax_result result, char *problem)
{
	if (result == HAPAX_OK && hpx_statement_exec(journal->db, "COMMIT") != SQLITE_OK)
		result = hpx_journal_error(journal, "cannot be written", problem);
	if (!sqlite3_get_autocommit(journal->db))
		hpx_statement_exec(journal->db, "ROLLBACK");
	pthread_mutex_unlock(&journal->mutex);
	return result;
}

static int insert_call(struct hpx_journal *journal, const struct hapax_call *call)
{
	struct hpx_statement statement = hpx_statement(
		journal->db,
		"INSERT INTO call (state, method, url, key, key_header, key_bare, body, attempts,"
		" sending, doubt, status, created_ms, first_ms, changed_ms, remembered_ms)"
		" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)");

	hpx_statement_bind_text(&statement, hpx_entry_state_name(call->state));
	hpx_statement_bind_text(&statement, call->method);
	hpx_statement_bind_text(&statement, call->url);
	hpx_statement_bind_text(&statement, call->key);
	hpx_statement_bind_text(&statement, call->key_header);
	hpx_statement_bind_int(&statement, call->key_bare);
	hpx_statement_bind_blob(&statement, hpx_span(call->body, call->body_len));
	hpx_statement_bind_int(&statement, call->attempts);
	hpx_statement_bind_int(&statement, call->sending);
	hpx_statement_bind_int(&statement, call->doubt);
	hpx_statement_bind_int(&statement, call->created_ms);
	hpx_statement_bind_int(&statement, call->first_ms);
	hpx_statement_bind_int(&statement, hpx_clock_wall_ms());
	hpx_statement_bind_int(&statement, call->remembered_ms);
	return hpx_statement_run(&statement);
}

static int insert_field(struct hpx_journal *journal, int64_t id, size_t place,
			const struct hpx_call_field *field)
{
	struct hpx_statement statement = hpx_statement(
		journal->db,
		"INSERT INTO field (call, place, name, value, file, salt, digest)"
		" VALUES (?, ?, ?, ?, ?, ?, ?)");

	HPX_ASSERT(field->secret || field->value != NULL);
	hpx_statement_bind_int(&statement, id);
	hpx_statement_bind_int(&statement, (int64_t)place);
	hpx_statement_bind_text(&statement, field->name);
	hpx_statement_bind_text(&statement, field->secret ? NULL : field->value);
	hpx_statement_bind_text(&statement, field->file);
	if (field->secret) {
		hpx_statement_bind_blob(&statement, hpx_span(field->hash.salt, HPX_SALT_SIZE));
		hpx_statement_bind_blob(&statement, hpx_span(field->hash.digest, HPX_SHA256_SIZE));
	}
	return hpx_statement_run(&statement);
}

static int delete_old_entries(struct hpx_journal *journal)
{
	struct hpx_statement statement =
		hpx_statement(journal->db, "DELETE FROM call WHERE state = 'done' AND changed_ms < ?");

	hpx_statement_bind_int(&statement, hpx_clock_wall_ms() - HPX_JOURNAL_KEEP_MS);
	return hpx_statement_run(&statement);
}

enum hapax_result hpx_journal_add(struct hpx_journal *journal, struct hapax_call *call,
				  char *problem)
{
	int64_t id = 0;
	int fd = -1;

	HPX_ASSERT(call->id == 0 && call->claim_fd < 0);
	enum hapax_result result = begin_write(journal, problem);
	if (result == HAPAX_OK) {
		int code = delete_old_entries(journal);
		if (code == SQLITE_OK)
			code = insert_call(journal, call);
		id = sqlite3_last_insert_rowid(journal->db);
		for (size_t i = 0; i < call->field_count && code == SQLITE_OK; i++)
			code = insert_field(journal, id, i, &call->fields[i]);
		if (code != SQLITE_OK)
			result = hpx_journal_error(journal, "cannot be written", problem);
	}
	/* The entry is claimed before the commit, when no other process can have seen
	 * it. */
	if (result == HAPAX_OK)
		result = hpx_journal_claim(journal, id, &fd, problem);
	result = end_write(journal, result, problem);
	if (result == HAPAX_OK) {
		call->id = id;
		call->claim_fd = fd;
	} else if (fd >= 0) {
		close(fd);
	}
	return result;
}

static int update_call(struct hpx_journal *journal, const struct hapax_call *call)
{
	struct hpx_statement statement = hpx_statement(
		journal->db,
		"UPDATE call SET state = ?, attempts = ?, sending = ?, doubt = ?, status = ?,"
		" first_ms = ?, changed_ms = ? WHERE id = ?");

	hpx_statement_bind_text(&statement, hpx_entry_state_name(call->state));
	hpx_statement_bind_int(&statement, call->attempts);
	hpx_statement_bind_int(&statement, call->sending);
	hpx_statement_bind_int(&statement, call->doubt);
	hpx_statement_bind_int(&statement, call->status);
	hpx_statement_bind_int(&statement, call->first_ms);
	hpx_statement_bind_int(&statement, hpx_clock_wall_ms());
	hpx_statement_bind_int(&statement, call->id);
	return hpx_statement_run(&statement);
}

static int run_with_id(struct hpx_journal *journal, const char *text, int64_t id)
{
	struct hpx_statement statement = hpx_statement(journal->db, text);

	hpx_statement_bind_int(&statement, id);
	return hpx_statement_run(&statement);
}

/* Deletes what is not needed any more; keeps when, what, where and which key. */
static int strip_entry(struct hpx_journal *journal, int64_t id)
{
	int code = run_with_id(journal, "DELETE FROM field WHERE call = ?", id);

	if (code == SQLITE_OK)
		code = run_with_id(journal,
				   "UPDATE call SET body = NULL, url = CASE instr(url, '?') WHEN 0 THEN url"
				   " ELSE substr(url, 1, instr(url, '?') - 1) END WHERE id = ?",
				   id);
	return code;
}

enum hapax_result hpx_journal_update(struct hpx_journal *journal, const struct hapax_call *call,
				     char *problem)
{
	HPX_ASSERT(call->id > 0 && call->claim_fd >= 0);
	enum hapax_result result = begin_write(journal, problem);
	if (result != HAPAX_OK)
		return end_write(journal, result, problem);
	int code = update_call(journal, call);
	int rows = sqlite3_changes(journal->db);
	if (code == SQLITE_OK && call->state == HAPAX_ENTRY_DONE)
		code = strip_entry(journal, call->id);
	if (code != SQLITE_OK)
		result = hpx_journal_error(journal, "cannot be written", problem);
	else if (rows != 1)
		result = hpx_client_error(HAPAX_UNAVAILABLE, problem,
					  "call %lld is gone from the journal %s", (long long)call->id,
					  journal->path);
	return end_write(journal, result, problem);
}

static enum hapax_result remove_entry(struct hpx_journal *journal, int64_t id, char *problem)
{
	int code = run_with_id(journal, "DELETE FROM field WHERE call = ?", id);

	if (code == SQLITE_OK)
		code = run_with_id(journal, "DELETE FROM call WHERE id = ?", id);
	if (code != SQLITE_OK)
		return hpx_journal_error(journal, "cannot be written", problem);
	if (sqlite3_changes(journal->db) == 1)
		return HAPAX_OK;
	return hpx_client_error(HAPAX_INVALID, problem, "there is no call %lld in the journal %s",
				(long long)id, journal->path);
}

enum hapax_result hpx_journal_forget(struct hpx_journal *journal, int64_t id, char *problem)
{
	int fd = -1;
	enum hapax_result result = hpx_journal_claim(journal, id, &fd, problem);

	if (result != HAPAX_OK)
		return result;
	result = begin_write(journal, problem);
	if (result == HAPAX_OK)
		result = remove_entry(journal, id, problem);
	result = end_write(journal, result, problem);
	close(fd);
	return result;
}

/* ---- reading ---- */

/* A copy; false when out of memory. NULL stays NULL. */
static bool copy_text(struct hpx_span text, char **ret_copy)
{
	*ret_copy = text.ptr != NULL ? strndup(text.ptr, text.len) : NULL;
	return text.ptr == NULL || *ret_copy != NULL;
}

static bool copy_into(struct hpx_span text, char *out, size_t size)
{
	if (text.len == 0 || text.len >= size || memchr(text.ptr, '\0', text.len) != NULL)
		return false;
	memcpy(out, text.ptr, text.len);
	out[text.len] = '\0';
	return true;
}

static bool read_state(struct hpx_span text, enum hapax_entry_state *ret_state)
{
	for (enum hapax_entry_state state = HAPAX_ENTRY_OPEN; state <= HAPAX_ENTRY_GAVE_UP; state++)
		if (hpx_span_eq(text, hpx_span_of(hpx_entry_state_name(state)))) {
			*ret_state = state;
			return true;
		}
	return false;
}

static bool read_body(struct hpx_span body, struct hapax_call *call)
{
	if (body.len > HPX_CALL_BODY_MAX)
		return false;
	call->body = malloc(body.len + 1);
	if (call->body == NULL)
		return false;
	if (body.len > 0)
		memcpy(call->body, body.ptr, body.len);
	call->body_len = body.len;
	return true;
}

#define CALL_COLUMNS \
	"state, method, url, key, key_header, key_bare, body, attempts, sending, doubt, status," \
	" created_ms, first_ms, remembered_ms"

static bool read_call(struct hpx_statement *row, struct hapax_call *call)
{
	call->key_bare = hpx_statement_int(row, 5) != 0;
	call->attempts = (unsigned)hpx_statement_int(row, 7);
	/* An entry that is `sending` was left by a process that died: otherwise it
	 * could not be claimed. */
	call->doubt = hpx_statement_int(row, 9) != 0 || hpx_statement_int(row, 8) != 0;
	call->status = (unsigned)hpx_statement_int(row, 10);
	call->created_ms = hpx_statement_int(row, 11);
	call->first_ms = hpx_statement_int(row, 12);
	call->remembered_ms = hpx_statement_int(row, 13);
	return read_state(hpx_statement_bytes(row, 0), &call->state) &&
	       copy_into(hpx_statement_bytes(row, 1), call->method, sizeof(call->method)) &&
	       copy_into(hpx_statement_bytes(row, 3), call->key, sizeof(call->key)) &&
	       hpx_statement_bytes(row, 2).len > 0 &&
	       copy_text(hpx_statement_bytes(row, 2), &call->url) &&
	       hpx_statement_bytes(row, 4).len > 0 &&
	       copy_text(hpx_statement_bytes(row, 4), &call->key_header) &&
	       read_body(hpx_statement_bytes(row, 6), call);
}

static bool read_field(struct hpx_statement *row, struct hapax_call *call)
{
	struct hpx_call_field field = { .secret = hpx_statement_bytes(row, 1).ptr == NULL };
	struct hpx_span salt = hpx_statement_bytes(row, 3);
	struct hpx_span digest = hpx_statement_bytes(row, 4);

	if (field.secret) {
		if (salt.len != sizeof(field.hash.salt) || digest.len != sizeof(field.hash.digest))
			return false;
		memcpy(field.hash.salt, salt.ptr, salt.len);
		memcpy(field.hash.digest, digest.ptr, digest.len);
	}
	bool ok = copy_text(hpx_statement_bytes(row, 0), &field.name);
	ok = copy_text(hpx_statement_bytes(row, 1), &field.value) && ok;
	ok = copy_text(hpx_statement_bytes(row, 2), &field.file) && ok;
	return hpx_call_append(call, field) && ok;
}

static enum hapax_result read_all(struct hpx_journal *journal, int64_t id,
				  struct hapax_call *call, char *problem)
{
	struct hpx_statement row =
		hpx_statement(journal->db, "SELECT " CALL_COLUMNS " FROM call WHERE id = ?");
	struct hpx_statement field = hpx_statement(
		journal->db,
		"SELECT name, value, file, salt, digest FROM field"
		" WHERE call = ? ORDER BY place");

	hpx_statement_bind_int(&row, id);
	hpx_statement_bind_int(&field, id);
	bool found = hpx_statement_next(&row);
	bool readable = found && read_call(&row, call);
	while (readable && hpx_statement_next(&field))
		readable = read_field(&field, call);
	int code = hpx_statement_end(&row);
	int field_code = hpx_statement_end(&field);
	if (code != SQLITE_OK || field_code != SQLITE_OK)
		return hpx_journal_error(journal, "cannot be read", problem);
	if (!found)
		return hpx_client_error(HAPAX_INVALID, problem,
					"there is no call %lld in the journal %s", (long long)id,
					journal->path);
	if (!readable)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem,
					"call %lld in the journal %s cannot be read", (long long)id,
					journal->path);
	return HAPAX_OK;
}

enum hapax_result hpx_journal_load(struct hpx_journal *journal, int64_t id,
				   struct hapax_call *call, char *problem)
{
	int fd = -1;

	HPX_ASSERT(call->id == 0 && call->field_count == 0 && call->claim_fd < 0);
	enum hapax_result result = hpx_journal_claim(journal, id, &fd, problem);

	if (result != HAPAX_OK)
		return result;
	pthread_mutex_lock(&journal->mutex);
	result = read_all(journal, id, call, problem);
	pthread_mutex_unlock(&journal->mutex);
	if (result != HAPAX_OK) {
		close(fd);
		return result;
	}
	call->id = id;
	call->claim_fd = fd;
	return HAPAX_OK;
}

/* The entries and their texts are one piece of memory each: the array, and
 * behind it what it points to, freed together. */
struct entry_list {
	struct hapax_entry *entries;
	size_t count;
	size_t cap;
	struct hpx_buffer text; /* each with its NUL */
};

/* Appends the text. The result is an offset into list->text, as a pointer, until
 * pack_list knows where the text stays. */
static const char *keep_text(struct entry_list *list, struct hpx_span text, enum hpx_status *status)
{
	size_t at = list->text.len;

	if (*status == HPX_OK)
		*status = hpx_buffer_append(&list->text, text);
	if (*status == HPX_OK)
		*status = hpx_buffer_byte(&list->text, '\0');
	return (const char *)(uintptr_t)at;
}

static bool grow_list(struct entry_list *list)
{
	if (list->count < list->cap)
		return true;
	size_t cap = list->cap > 0 ? list->cap * 2 : 16;
	struct hapax_entry *more = reallocarray(list->entries, cap, sizeof(*more));
	if (more == NULL)
		return false;
	list->entries = more;
	list->cap = cap;
	return true;
}

static enum hpx_status list_row(struct hpx_journal *journal, struct hpx_statement *row,
				struct entry_list *list)
{
	enum hpx_status status = HPX_OK;
	struct hapax_entry entry = {
		.size = sizeof(entry),
		.id = hpx_statement_int(row, 0),
		.attempts = (unsigned)hpx_statement_int(row, 2),
		.status = (unsigned)hpx_statement_int(row, 5),
		.created_ms = hpx_statement_int(row, 6),
		.changed_ms = hpx_statement_int(row, 7),
	};
	bool sending = hpx_statement_int(row, 3) != 0;

	if (!read_state(hpx_statement_bytes(row, 1), &entry.state))
		return HPX_CORRUPT;
	entry.busy = entry.state != HAPAX_ENTRY_DONE &&
		     hpx_journal_is_claimed(journal, entry.id);
	entry.doubt = hpx_statement_int(row, 4) != 0 || sending;
	entry.method = keep_text(list, hpx_statement_bytes(row, 8), &status);
	entry.url = keep_text(list, hpx_statement_bytes(row, 9), &status);
	entry.key = keep_text(list, hpx_statement_bytes(row, 10), &status);
	if (status == HPX_OK && !grow_list(list))
		status = HPX_NOMEM;
	if (status == HPX_OK)
		list->entries[list->count++] = entry;
	return status;
}

/* Moves the texts behind the array, and lets the entries point there and to each
 * other. NULL: out of memory. */
static struct hapax_entry *pack_list(struct entry_list *list)
{
	size_t size = list->count * sizeof(*list->entries);
	char *memory = malloc(size + list->text.len);

	if (memory == NULL)
		return NULL;
	struct hapax_entry *entries = (struct hapax_entry *)(void *)memory;
	memcpy(memory, list->entries, size);
	if (list->text.len > 0)
		memcpy(memory + size, list->text.ptr, list->text.len);
	for (size_t i = 0; i < list->count; i++) {
		entries[i].next = i + 1 < list->count ? &entries[i + 1] : NULL;
		entries[i].method = memory + size + (uintptr_t)entries[i].method;
		entries[i].url = memory + size + (uintptr_t)entries[i].url;
		entries[i].key = memory + size + (uintptr_t)entries[i].key;
	}
	return entries;
}

static enum hapax_result read_list(struct hpx_journal *journal, bool all, struct entry_list *list,
				   char *problem)
{
	struct hpx_statement row = hpx_statement(
		journal->db,
		"SELECT id, state, attempts, sending, doubt, status, created_ms, changed_ms, method,"
		" url, key FROM call WHERE ? OR state <> 'done' ORDER BY state = 'done', id LIMIT ?");
	enum hpx_status status = HPX_OK;

	hpx_statement_bind_int(&row, all);
	hpx_statement_bind_int(&row, HPX_JOURNAL_LIST_MAX);
	while (status == HPX_OK && hpx_statement_next(&row))
		status = list_row(journal, &row, list);
	if (hpx_statement_end(&row) != SQLITE_OK)
		return hpx_journal_error(journal, "cannot be read", problem);
	if (status == HPX_CORRUPT)
		return hpx_client_error(HAPAX_UNAVAILABLE, problem,
					"the journal %s has a row that cannot be read", journal->path);
	return status == HPX_OK ? HAPAX_OK : hpx_client_no_memory(problem);
}

enum hapax_result hpx_journal_list(struct hpx_journal *journal, bool all,
				   struct hapax_entry **ret_entries, size_t *ret_count,
				   char *problem)
{
	struct entry_list list = { .count = 0 };
	struct hapax_entry *entries = NULL;

	hpx_buffer_init(&list.text, (size_t)HPX_JOURNAL_LIST_MAX * 2 * HPX_CALL_URL_MAX);
	pthread_mutex_lock(&journal->mutex);
	enum hapax_result result = read_list(journal, all, &list, problem);
	pthread_mutex_unlock(&journal->mutex);
	if (result == HAPAX_OK && list.count > 0) {
		entries = pack_list(&list);
		if (entries == NULL)
			result = hpx_client_no_memory(problem);
	}
	if (result == HAPAX_OK) {
		*ret_entries = entries;
		*ret_count = list.count;
	}
	hpx_buffer_done(&list.text);
	free(list.entries);
	return result;
}
