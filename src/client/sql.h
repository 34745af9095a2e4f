/* One SQL statement from its text to its end. The first error is kept, so that
 * callers look once. */
#ifndef HPX_CLIENT_SQL_H
#define HPX_CLIENT_SQL_H

#include <sqlite3.h>

#include "base/span.h"

struct hpx_sql {
	sqlite3 *db;
	sqlite3_stmt *stmt;
	int code;  /* SQLITE_OK, or the first error */
	int index; /* of the parameter that was bound last */
};

struct hpx_sql hpx_sql(sqlite3 *db, const char *text);
/* Parameters in their order; the bytes are borrowed until the end. */
void hpx_sql_bind_int(struct hpx_sql *sql, int64_t value);
void hpx_sql_bind_blob(struct hpx_sql *sql, struct hpx_span bytes);
/* NULL binds NULL. */
void hpx_sql_bind_text(struct hpx_sql *sql, const char *text);
/* Whether there is a row. */
bool hpx_sql_next(struct hpx_sql *sql);
/* Of the row; NULL counts as 0 and as ptr NULL. Until the next row. */
int64_t hpx_sql_int(struct hpx_sql *sql, int column);
struct hpx_span hpx_sql_bytes(struct hpx_sql *sql, int column);
/* Ends it and gives SQLITE_OK or the first error. */
int hpx_sql_end(struct hpx_sql *sql);
/* All rows, then the end. */
int hpx_sql_run(struct hpx_sql *sql);

int hpx_sql_exec(sqlite3 *db, const char *text);

#endif
