/* Statements, prepared for one use: a call has a handful of them. */
#include "client/sql.h"

struct hpx_sql hpx_sql(sqlite3 *db, const char *text)
{
	struct hpx_sql sql = { .db = db };

	sql.code = sqlite3_prepare_v2(db, text, -1, &sql.stmt, NULL);
	return sql;
}

void hpx_sql_bind_int(struct hpx_sql *sql, int64_t value)
{
	if (sql->code == SQLITE_OK)
		sql->code = sqlite3_bind_int64(sql->stmt, ++sql->index, value);
}

/* A NULL pointer would bind NULL, where an empty value is meant. */
void hpx_sql_bind_blob(struct hpx_sql *sql, struct hpx_span bytes)
{
	if (sql->code == SQLITE_OK)
		sql->code = sqlite3_bind_blob64(sql->stmt, ++sql->index,
						bytes.len > 0 ? bytes.ptr : "", bytes.len,
						SQLITE_STATIC);
}

void hpx_sql_bind_text(struct hpx_sql *sql, const char *text)
{
	if (sql->code == SQLITE_OK)
		sql->code = sqlite3_bind_text(sql->stmt, ++sql->index, text, -1, SQLITE_STATIC);
}

bool hpx_sql_next(struct hpx_sql *sql)
{
	if (sql->code != SQLITE_OK)
		return false;
	int code = sqlite3_step(sql->stmt);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		sql->code = code;
	return code == SQLITE_ROW;
}

int64_t hpx_sql_int(struct hpx_sql *sql, int column)
{
	return sqlite3_column_int64(sql->stmt, column);
}

struct hpx_span hpx_sql_bytes(struct hpx_sql *sql, int column)
{
	const void *bytes = sqlite3_column_blob(sql->stmt, column);
	int len = sqlite3_column_bytes(sql->stmt, column);

	/* An empty value has no pointer, and is there all the same. */
	if (bytes == NULL && sqlite3_column_type(sql->stmt, column) != SQLITE_NULL)
		bytes = "";
	return hpx_span(bytes, len > 0 ? (size_t)len : 0);
}

int hpx_sql_end(struct hpx_sql *sql)
{
	/* The step's error again, which is kept already. */
	sqlite3_finalize(sql->stmt);
	sql->stmt = NULL;
	return sql->code;
}

int hpx_sql_run(struct hpx_sql *sql)
{
	while (hpx_sql_next(sql))
		continue;
	return hpx_sql_end(sql);
}

int hpx_sql_exec(sqlite3 *db, const char *text)
{
	return sqlite3_exec(db, text, NULL, NULL, NULL);
}
