/* A connection, and a pipeline of calls on it: send several, then take their
 * results in order. An error is kept and comes out at the end, so that callers
 * need not look after every call. All values travel in binary. */
#ifndef HPX_STORE_POSTGRES_PIPELINE_H
#define HPX_STORE_POSTGRES_PIPELINE_H

#include <libpq-fe.h>

#include "base/buffer.h"
#include "base/span.h"
#include "base/status.h"
#include "core/operation.h"
#include "store/postgres/statement.h"

struct hpx_pg_db {
	PGconn *conn;    /* NULL: not connected */
	bool warned;     /* a WARNING came with the last results */
	char server[80]; /* which cluster, and which start of it */
};

/* ---- parameters ---- */

#define HPX_PG_PARAMS_MAX 30

struct hpx_pg_params {
	const char *value[HPX_PG_PARAMS_MAX];
	int length[HPX_PG_PARAMS_MAX];
	int count;
	char number[HPX_PG_PARAMS_MAX][8]; /* where single numbers are kept */
};

/* The bytes are borrowed until the call is sent. ptr NULL: SQL's NULL. */
void hpx_pg_add_bytes(struct hpx_pg_params *params, struct hpx_span bytes);
void hpx_pg_add_int8(struct hpx_pg_params *params, int64_t value);

/* ---- arrays, one per column, so that one statement writes a whole batch ---- */

/* Element types, by PostgreSQL's own numbers, which never change. */
enum hpx_pg_type {
	HPX_PG_BOOL = 16,
	HPX_PG_BYTEA = 17,
	HPX_PG_INT8 = 20,
	HPX_PG_INT2 = 21,
	HPX_PG_INT4 = 23,
	HPX_PG_TEXT = 25,
	HPX_PG_UUID = 2950,
};

/* Trouble (memory, size) is kept and comes out of columns_param. */
struct hpx_pg_array {
	struct hpx_buffer bytes;
	enum hpx_pg_type type;
	uint32_t count;
	bool has_null;
	enum hpx_status status;
};

/* The columns of one statement, filled row by row, left to right. */
struct hpx_pg_columns {
	struct hpx_pg_array array[HPX_PG_PARAMS_MAX];
	int count;
	int next; /* the column that the next value goes into */
};

void hpx_pg_columns_init(struct hpx_pg_columns *columns, const enum hpx_pg_type *types, int count);
void hpx_pg_columns_done(struct hpx_pg_columns *columns);
void hpx_pg_put_bytes(struct hpx_pg_columns *columns, struct hpx_span bytes);
/* Several in one; `status` of whoever made them: where it is not OK, nothing is sent. */
void hpx_pg_put_parts(struct hpx_pg_columns *columns, const struct hpx_span *parts, size_t count,
		      enum hpx_status status);
/* Bytes that are not UTF-8, and NUL, become '?': this is for people. */
void hpx_pg_put_text(struct hpx_pg_columns *columns, struct hpx_span text);
void hpx_pg_put_int(struct hpx_pg_columns *columns, int64_t value);
void hpx_pg_put_null(struct hpx_pg_columns *columns);
/* How many rows are in it, and how many bytes so far. */
uint32_t hpx_pg_columns_rows(const struct hpx_pg_columns *columns);
size_t hpx_pg_columns_bytes(const struct hpx_pg_columns *columns);
/* As parameters; borrowed until they are sent. */
enum hpx_status hpx_pg_columns_param(struct hpx_pg_columns *columns, struct hpx_pg_params *params);

/* ---- a pipeline ---- */

struct hpx_pg_pipe {
	struct hpx_pg_db *db;
	int64_t deadline_ms;    /* boot clock: then the connection is given up */
	enum hpx_status status; /* the first trouble */
	char *problem;          /* a sentence for people, HPX_STORE_PROBLEM_SIZE */
	unsigned waiting;       /* calls whose results were not taken yet */
	bool synced;
};

struct hpx_pg_pipe hpx_pg_pipe(struct hpx_pg_db *db, char *problem);
/* `params` NULL: none. */
void hpx_pg_send(struct hpx_pg_pipe *pipe, enum hpx_pg_statement statement,
		 const struct hpx_pg_params *params);
/* Hands to the kernel what it takes, so that large values do not pile up. */
void hpx_pg_flush(struct hpx_pg_pipe *pipe);
/* The server shall send what it has for the calls so far, before it goes on. */
void hpx_pg_ask_early(struct hpx_pg_pipe *pipe);
/* The result of the next call in order; NULL after trouble. The first of
 * these ends the sending. To be cleared by PQclear, which takes NULL. */
PGresult *hpx_pg_take(struct hpx_pg_pipe *pipe);
/* Takes and drops what is left. */
enum hpx_status hpx_pg_end(struct hpx_pg_pipe *pipe);

/* Plain SQL without parameters, several statements if need be, on a connection
 * that is not in pipeline mode yet; the last result (in text) is the caller's
 * to clear. `ret_result` may be NULL. */
enum hpx_status hpx_pg_query(struct hpx_pg_db *db, const char *sql, int64_t within_ms,
			     PGresult **ret_result, char *problem);

/* ---- columns ---- */

/* Integers of any width; false where it is NULL or out of bounds. */
bool hpx_pg_int(const PGresult *result, int row, int column, int64_t min, int64_t max,
		int64_t *ret_value);
/* ptr NULL where it is NULL; never NULL otherwise. */
struct hpx_span hpx_pg_bytes(const PGresult *result, int row, int column);
/* Exactly that many bytes, or nothing is copied. */
bool hpx_pg_fixed(const PGresult *result, int row, int column, void *out, size_t len);

/* ---- connections ---- */

/* What an SQLSTATE means here. "" or NULL: the connection is lost. */
enum hpx_status hpx_pg_status_of(const char *sqlstate);
/* Prepares all statements of a role and enters pipeline mode. */
enum hpx_status hpx_pg_prepare(struct hpx_pg_db *db, enum hpx_pg_role role, char *problem);
void hpx_pg_close(struct hpx_pg_db *db);
/* The error of a connection or a result, in one line, without line ends. */
void hpx_pg_explain(const char *what, const char *message, char *problem);

#endif
