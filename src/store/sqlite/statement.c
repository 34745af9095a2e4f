/* Prepared statements and their calls. */
#include "store/sqlite/statement.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
#define X(name, sql) sql,
	HPX_SQL_LIST(X)
#undef X
};

static const char *const generation_texts[] = {
#define X(name, sql) sql,
	HPX_GENERATION_SQL_LIST(X)
#undef X
};

const char *hpx_sqlite_sql(enum hpx_sql sql)
{
	HPX_ASSERT(sql < HPX_SQL_COUNT);
	return texts[sql];
}

const char *hpx_sqlite_generation_sql(enum hpx_generation_sql sql)
{
	HPX_ASSERT(sql < HPX_GENERATION_SQL_COUNT);
	return generation_texts[sql];
}

enum hpx_status hpx_sqlite_status(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return HPX_OK;
	case SQLITE_NOMEM:
		return HPX_NOMEM;
	case SQLITE_TOOBIG:
		return HPX_TOO_LARGE;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return HPX_BUSY;
	case SQLITE_FULL:
		return HPX_FULL;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return HPX_READ_ONLY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	/* The schema's own promise does not hold: an index that lost a row. */
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
		return HPX_CORRUPT;
	case SQLITE_MISUSE:
	case SQLITE_RANGE:
		return HPX_MISUSE;
	default:
		return HPX_IO;
	}
}

struct hpx_sqlite_statement hpx_sqlite_statement(struct hpx_sqlite_db *db, enum hpx_sql sql)
{
	struct hpx_sqlite_statement stmt = { .db = db, .handle = db->statements[sql] };

	HPX_ASSERT(sql < HPX_SQL_COUNT && db->handle != NULL);
	if (stmt.handle != NULL)
		return stmt;
	stmt.code = sqlite3_prepare_v3(db->handle, texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
				       &db->statements[sql], NULL);
	stmt.handle = db->statements[sql];
	return stmt;
}

bool hpx_sqlite_number_sql(const char *sql, int64_t number, char *text, size_t size)
{
	size_t len = 0;

	HPX_ASSERT(size > 0);
	for (; *sql != '\0' && len + 24 < size; sql++)
		if (*sql == '#')
			len += (size_t)snprintf(text + len, size - len, "%lld", (long long)number);
		else
			text[len++] = *sql;
	text[len] = '\0';
	return *sql == '\0';
}

struct hpx_sqlite_statement hpx_sqlite_generation_statement(struct hpx_sqlite_db *db,
							    struct hpx_sqlite_generation *generation,
							    enum hpx_generation_sql sql)
{
	sqlite3_stmt **kept = &generation->statements[sql];
	struct hpx_sqlite_statement stmt = { .db = db, .handle = *kept };
	char text[2048];

	HPX_ASSERT(sql < HPX_GENERATION_SQL_COUNT && db->handle != NULL);
	if (stmt.handle != NULL)
		return stmt;
	bool whole = hpx_sqlite_number_sql(generation_texts[sql], generation->number, text,
					   sizeof(text));
	HPX_ASSERT(whole);
	stmt.code = sqlite3_prepare_v3(db->handle, text, -1, SQLITE_PREPARE_PERSISTENT, kept, NULL);
	stmt.handle = *kept;
	return stmt;
}

static void keep(struct hpx_sqlite_statement *stmt, int code)
{
	if (stmt->code == SQLITE_OK)
		stmt->code = code;
}

void hpx_sqlite_bind_int(struct hpx_sqlite_statement *stmt, int64_t value)
{
	if (stmt->code == SQLITE_OK)
		keep(stmt, sqlite3_bind_int64(stmt->handle, ++stmt->index, value));
}

void hpx_sqlite_bind_null(struct hpx_sqlite_statement *stmt)
{
	if (stmt->code == SQLITE_OK)
		keep(stmt, sqlite3_bind_null(stmt->handle, ++stmt->index));
}

void hpx_sqlite_bind_blob(struct hpx_sqlite_statement *stmt, const void *bytes, size_t len)
{
	if (stmt->code != SQLITE_OK)
		return;
	/* A NULL pointer would bind NULL, where an empty value is meant. */
	keep(stmt, sqlite3_bind_blob64(stmt->handle, ++stmt->index, len != 0 ? bytes : "", len,
				       SQLITE_STATIC));
}

void hpx_sqlite_bind_text(struct hpx_sqlite_statement *stmt, struct hpx_span text)
{
	if (stmt->code != SQLITE_OK)
		return;
	keep(stmt, sqlite3_bind_text64(stmt->handle, ++stmt->index, text.len != 0 ? text.ptr : "",
				       text.len, SQLITE_STATIC, SQLITE_UTF8));
}

bool hpx_sqlite_next(struct hpx_sqlite_statement *stmt)
{
	int code;

	if (stmt->code != SQLITE_OK)
		return false;
	code = sqlite3_step(stmt->handle);
	if (code == SQLITE_ROW)
		return true;
	if (code != SQLITE_DONE)
		keep(stmt, code);
	return false;
}

enum hpx_status hpx_sqlite_end(struct hpx_sqlite_statement *stmt)
{
	if (stmt->handle != NULL) {
		/* The step's error again, which is kept already. */
		sqlite3_reset(stmt->handle);
		sqlite3_clear_bindings(stmt->handle);
	}
	return hpx_sqlite_status(stmt->code);
}

enum hpx_status hpx_sqlite_finish(struct hpx_sqlite_statement *stmt)
{
	while (hpx_sqlite_next(stmt))
		continue;
	return hpx_sqlite_end(stmt);
}

enum hpx_status hpx_sqlite_do(struct hpx_sqlite_db *db, enum hpx_sql sql)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	return hpx_sqlite_finish(&stmt);
}

struct hpx_span hpx_sqlite_bytes(struct hpx_sqlite_statement *stmt, int column)
{
	int type = sqlite3_column_type(stmt->handle, column);
	const void *bytes;

	if (type != SQLITE_BLOB && type != SQLITE_TEXT)
		return hpx_span(NULL, 0);
	bytes = sqlite3_column_blob(stmt->handle, column);
	/* An empty BLOB comes as NULL (and one for which memory ran out: its
	 * length or checksum is then found wrong). */
	if (bytes == NULL)
		return HPX_SPAN("");
	return hpx_span(bytes, (size_t)sqlite3_column_bytes(stmt->handle, column));
}

bool hpx_sqlite_fixed(struct hpx_sqlite_statement *stmt, int column, void *out, size_t len)
{
	struct hpx_span bytes = hpx_sqlite_bytes(stmt, column);

	if (bytes.ptr == NULL || bytes.len != len)
		return false;
	memcpy(out, bytes.ptr, len);
	return true;
}

bool hpx_sqlite_int(struct hpx_sqlite_statement *stmt, int column, int64_t min, int64_t max,
		    int64_t *ret_value)
{
	int64_t value = sqlite3_column_int64(stmt->handle, column);

	if (sqlite3_column_type(stmt->handle, column) != SQLITE_INTEGER || value < min ||
	    value > max)
		return false;
	*ret_value = value;
	return true;
}

bool hpx_sqlite_time(struct hpx_sqlite_statement *stmt, int column, int64_t min, int64_t *ret_ms)
{
	return hpx_sqlite_int(stmt, column, min, HPX_SQLITE_TIME_MAX, ret_ms);
}

void hpx_sqlite_generations_free(struct hpx_sqlite_generation *generations, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int sql = 0; sql < HPX_GENERATION_SQL_COUNT; sql++)
			sqlite3_finalize(generations[i].statements[sql]);
	free(generations);
}

void hpx_sqlite_db_finalize(struct hpx_sqlite_db *db)
{
	hpx_sqlite_generations_free(db->generations, db->generation_count);
	db->generations = NULL;
	db->generation_count = 0;
	db->list_version = 0;
	for (int i = 0; i < HPX_SQL_COUNT; i++) {
		sqlite3_finalize(db->statements[i]);
		db->statements[i] = NULL;
	}
	db->handle = NULL;
}

void hpx_sqlite_db_close(struct hpx_sqlite_db *db)
{
	sqlite3 *handle = db->handle;

	hpx_sqlite_db_finalize(db);
	sqlite3_close(handle);
}
