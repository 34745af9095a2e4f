/* Prepared statements and their calls. */
#include "store/sqlite/statement.h"

#include <string.h>

static const char *const texts[] = {
#define X(name, sql) sql,
	HPX_SQL_LIST(X)
#undef X
};

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

struct hpx_sqlite_call hpx_sqlite_call(struct hpx_sqlite_db *db, enum hpx_sql sql)
{
	struct hpx_sqlite_call call = { .db = db, .stmt = db->statements[sql] };

	if (call.stmt != NULL)
		return call;
	call.code = sqlite3_prepare_v3(db->handle, texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
				       &db->statements[sql], NULL);
	call.stmt = db->statements[sql];
	return call;
}

static void keep(struct hpx_sqlite_call *call, int code)
{
	if (call->code == SQLITE_OK)
		call->code = code;
}

void hpx_sqlite_bind_int(struct hpx_sqlite_call *call, int64_t value)
{
	if (call->code == SQLITE_OK)
		keep(call, sqlite3_bind_int64(call->stmt, ++call->index, value));
}

void hpx_sqlite_bind_null(struct hpx_sqlite_call *call)
{
	if (call->code == SQLITE_OK)
		keep(call, sqlite3_bind_null(call->stmt, ++call->index));
}

void hpx_sqlite_bind_blob(struct hpx_sqlite_call *call, const void *bytes, size_t len)
{
	if (call->code != SQLITE_OK)
		return;
	/* A NULL pointer would bind NULL, where an empty value is meant. */
	keep(call, sqlite3_bind_blob64(call->stmt, ++call->index, len != 0 ? bytes : "", len,
				       SQLITE_STATIC));
}

void hpx_sqlite_bind_text(struct hpx_sqlite_call *call, struct hpx_span text)
{
	if (call->code != SQLITE_OK)
		return;
	keep(call, sqlite3_bind_text64(call->stmt, ++call->index, text.len != 0 ? text.ptr : "",
				       text.len, SQLITE_STATIC, SQLITE_UTF8));
}

bool hpx_sqlite_next(struct hpx_sqlite_call *call)
{
	int code;

	if (call->code != SQLITE_OK)
		return false;
	code = sqlite3_step(call->stmt);
	if (code == SQLITE_ROW)
		return true;
	if (code != SQLITE_DONE)
		keep(call, code);
	return false;
}

enum hpx_status hpx_sqlite_end(struct hpx_sqlite_call *call)
{
	if (call->stmt != NULL) {
		/* The step's error again, which is kept already. */
		sqlite3_reset(call->stmt);
		sqlite3_clear_bindings(call->stmt);
	}
	return hpx_sqlite_status(call->code);
}

enum hpx_status hpx_sqlite_finish(struct hpx_sqlite_call *call)
{
	while (hpx_sqlite_next(call))
		continue;
	return hpx_sqlite_end(call);
}

enum hpx_status hpx_sqlite_do(struct hpx_sqlite_db *db, enum hpx_sql sql)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, sql);

	return hpx_sqlite_finish(&call);
}

struct hpx_span hpx_sqlite_bytes(struct hpx_sqlite_call *call, int column)
{
	int type = sqlite3_column_type(call->stmt, column);
	const void *bytes;

	if (type != SQLITE_BLOB && type != SQLITE_TEXT)
		return hpx_span(NULL, 0);
	bytes = sqlite3_column_blob(call->stmt, column);
	/* An empty BLOB comes as NULL (and one for which memory ran out: its
	 * length or checksum is then found wrong). */
	if (bytes == NULL)
		return HPX_SPAN("");
	return hpx_span(bytes, (size_t)sqlite3_column_bytes(call->stmt, column));
}

bool hpx_sqlite_fixed(struct hpx_sqlite_call *call, int column, void *out, size_t len)
{
	struct hpx_span bytes = hpx_sqlite_bytes(call, column);

	if (bytes.ptr == NULL || bytes.len != len)
		return false;
	memcpy(out, bytes.ptr, len);
	return true;
}

bool hpx_sqlite_int(struct hpx_sqlite_call *call, int column, int64_t min, int64_t max,
		    int64_t *ret_value)
{
	int64_t value = sqlite3_column_int64(call->stmt, column);

	if (sqlite3_column_type(call->stmt, column) != SQLITE_INTEGER || value < min ||
	    value > max)
		return false;
	*ret_value = value;
	return true;
}

bool hpx_sqlite_time(struct hpx_sqlite_call *call, int column, int64_t min, int64_t *ret_ms)
{
	return hpx_sqlite_int(call, column, min, HPX_SQLITE_TIME_MAX, ret_ms);
}

void hpx_sqlite_db_finalize(struct hpx_sqlite_db *db)
{
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
