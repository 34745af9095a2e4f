/* Writing entries. Each function is one transaction, durable when it returns. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/journal.h"
#include "client/sql.h"

static enum hapax_result begin(struct hpx_journal *journal, char *problem)
{
	pthread_mutex_lock(&journal->mutex);
	if (hpx_sql_exec(journal->db, "BEGIN IMMEDIATE") == SQLITE_OK)
		return HAPAX_OK;
	return hpx_journal_blame(journal, "cannot be written", problem);
}

/* Commits where `result` is HAPAX_OK, and lets others at the connection. */
static enum hapax_result end(struct hpx_journal *journal, enum hapax_result result, char *problem)
{
	if (result == HAPAX_OK && hpx_sql_exec(journal->db, "COMMIT") != SQLITE_OK)
		result = hpx_journal_blame(journal, "cannot be written", problem);
	if (!sqlite3_get_autocommit(journal->db))
		hpx_sql_exec(journal->db, "ROLLBACK");
	pthread_mutex_unlock(&journal->mutex);
	return result;
}

static int insert_call(struct hpx_journal *journal, const struct hapax_call *call)
{
	struct hpx_sql sql = hpx_sql(journal->db,
				     "INSERT INTO call (state, method, url, key, key_header, key_bare, body, attempts,"
				     " sending, doubt, status, created_ms, first_ms, changed_ms, remembered_ms)"
				     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)");

	hpx_sql_bind_text(&sql, hpx_entry_state_name(call->state));
	hpx_sql_bind_text(&sql, call->method);
	hpx_sql_bind_text(&sql, call->url);
	hpx_sql_bind_text(&sql, call->key);
	hpx_sql_bind_text(&sql, call->key_header);
	hpx_sql_bind_int(&sql, call->key_bare);
	hpx_sql_bind_blob(&sql, hpx_span(call->body, call->body_len));
	hpx_sql_bind_int(&sql, call->attempts);
	hpx_sql_bind_int(&sql, call->sending);
	hpx_sql_bind_int(&sql, call->doubt);
	hpx_sql_bind_int(&sql, call->created_ms);
	hpx_sql_bind_int(&sql, call->first_ms);
	hpx_sql_bind_int(&sql, hpx_clock_wall_ms());
	hpx_sql_bind_int(&sql, call->remembered_ms);
	return hpx_sql_run(&sql);
}

static int insert_field(struct hpx_journal *journal, int64_t id, size_t place,
			const struct hpx_call_field *field)
{
	struct hpx_sql sql = hpx_sql(journal->db,
				     "INSERT INTO field (call, place, name, value, file, salt, digest)"
				     " VALUES (?, ?, ?, ?, ?, ?, ?)");

	hpx_sql_bind_int(&sql, id);
	hpx_sql_bind_int(&sql, (int64_t)place);
	hpx_sql_bind_text(&sql, field->name);
	hpx_sql_bind_text(&sql, field->secret ? NULL : field->value);
	hpx_sql_bind_text(&sql, field->file);
	if (field->secret) {
		hpx_sql_bind_blob(&sql, hpx_span(field->seal.salt, sizeof(field->seal.salt)));
		hpx_sql_bind_blob(&sql, hpx_span(field->seal.digest, sizeof(field->seal.digest)));
	}
	return hpx_sql_run(&sql);
}

static int prune(struct hpx_journal *journal)
{
	struct hpx_sql sql =
		hpx_sql(journal->db, "DELETE FROM call WHERE state = 'done' AND changed_ms < ?");

	hpx_sql_bind_int(&sql, hpx_clock_wall_ms() - HPX_JOURNAL_KEEP_MS);
	return hpx_sql_run(&sql);
}

enum hapax_result hpx_journal_add(struct hpx_journal *journal, struct hapax_call *call,
				  char *problem)
{
	enum hapax_result result = begin(journal, problem);
	int64_t id = 0;
	int fd = -1;

	if (result == HAPAX_OK) {
		int code = prune(journal);
		if (code == SQLITE_OK)
			code = insert_call(journal, call);
		id = sqlite3_last_insert_rowid(journal->db);
		for (size_t i = 0; i < call->field_count && code == SQLITE_OK; i++)
			code = insert_field(journal, id, i, &call->fields[i]);
		if (code != SQLITE_OK)
			result = hpx_journal_blame(journal, "cannot be written", problem);
	}
	/* Before the commit: nobody else can have seen it yet. */
	if (result == HAPAX_OK)
		result = hpx_place_claim(journal->path, id, &fd, problem);
	result = end(journal, result, problem);
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
	struct hpx_sql sql = hpx_sql(journal->db,
				     "UPDATE call SET state = ?, attempts = ?, sending = ?, doubt = ?, status = ?,"
				     " first_ms = ?, changed_ms = ? WHERE id = ?");

	hpx_sql_bind_text(&sql, hpx_entry_state_name(call->state));
	hpx_sql_bind_int(&sql, call->attempts);
	hpx_sql_bind_int(&sql, call->sending);
	hpx_sql_bind_int(&sql, call->doubt);
	hpx_sql_bind_int(&sql, call->status);
	hpx_sql_bind_int(&sql, call->first_ms);
	hpx_sql_bind_int(&sql, hpx_clock_wall_ms());
	hpx_sql_bind_int(&sql, call->id);
	return hpx_sql_run(&sql);
}

static int by_id(struct hpx_journal *journal, const char *text, int64_t id)
{
	struct hpx_sql sql = hpx_sql(journal->db, text);

	hpx_sql_bind_int(&sql, id);
	return hpx_sql_run(&sql);
}

/* What a person wants to know stays: when, what, where, which key. */
static int strip(struct hpx_journal *journal, int64_t id)
{
	int code = by_id(journal, "DELETE FROM field WHERE call = ?", id);

	if (code == SQLITE_OK)
		code = by_id(journal,
			     "UPDATE call SET body = NULL, url = CASE instr(url, '?') WHEN 0 THEN url"
			     " ELSE substr(url, 1, instr(url, '?') - 1) END WHERE id = ?",
			     id);
	return code;
}

enum hapax_result hpx_journal_update(struct hpx_journal *journal, const struct hapax_call *call,
				     char *problem)
{
	enum hapax_result result = begin(journal, problem);

	if (result != HAPAX_OK)
		return end(journal, result, problem);
	int code = update_call(journal, call);
	int rows = sqlite3_changes(journal->db);
	if (code == SQLITE_OK && call->state == HAPAX_ENTRY_DONE)
		code = strip(journal, call->id);
	if (code != SQLITE_OK)
		result = hpx_journal_blame(journal, "cannot be written", problem);
	else if (rows != 1)
		result = hpx_client_say(HAPAX_UNAVAILABLE, problem,
					"call %lld is gone from the journal %s", (long long)call->id,
					journal->path);
	return end(journal, result, problem);
}

static enum hapax_result remove_entry(struct hpx_journal *journal, int64_t id, char *problem)
{
	int code = by_id(journal, "DELETE FROM field WHERE call = ?", id);

	if (code == SQLITE_OK)
		code = by_id(journal, "DELETE FROM call WHERE id = ?", id);
	if (code != SQLITE_OK)
		return hpx_journal_blame(journal, "cannot be written", problem);
	if (sqlite3_changes(journal->db) == 1)
		return HAPAX_OK;
	return hpx_client_say(HAPAX_INVALID, problem, "there is no call %lld in the journal %s",
			      (long long)id, journal->path);
}

enum hapax_result hpx_journal_forget(struct hpx_journal *journal, int64_t id, char *problem)
{
	int fd = -1;
	enum hapax_result result = hpx_place_claim(journal->path, id, &fd, problem);

	if (result != HAPAX_OK)
		return result;
	result = begin(journal, problem);
	if (result == HAPAX_OK)
		result = remove_entry(journal, id, problem);
	result = end(journal, result, problem);
	close(fd);
	return result;
}
