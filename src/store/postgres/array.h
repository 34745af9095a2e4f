/* Arrays as binary parameters: one per column, so that one statement writes
 * a whole batch. */
#ifndef HPX_STORE_POSTGRES_ARRAY_H
#define HPX_STORE_POSTGRES_ARRAY_H

#include "base/buffer.h"
#include "core/operation.h"
#include "store/postgres/pipeline.h"

/* Element types, by PostgreSQL's own numbers, which never change. */
enum hpx_pg_type {
	HPX_PG_BOOL = 16,
	HPX_PG_BYTEA = 17,
	HPX_PG_INT8 = 20,
	HPX_PG_INT2 = 21,
	HPX_PG_INT4 = 23,
	HPX_PG_TEXT = 25,
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
/* Bytes that are not UTF-8, and NUL, become '?': this is for people. */
void hpx_pg_put_text(struct hpx_pg_columns *columns, struct hpx_span text);
void hpx_pg_put_int(struct hpx_pg_columns *columns, int64_t value);
void hpx_pg_put_null(struct hpx_pg_columns *columns);
/* How many rows are in it, and how many bytes so far. */
uint32_t hpx_pg_columns_rows(const struct hpx_pg_columns *columns);
size_t hpx_pg_columns_bytes(const struct hpx_pg_columns *columns);
/* As parameters; borrowed until they are sent. */
enum hpx_status hpx_pg_columns_param(struct hpx_pg_columns *columns, struct hpx_pg_params *params);

#endif
