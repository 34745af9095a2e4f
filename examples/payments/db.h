/* The shop's own connection to its database, SQLite or PostgreSQL, with
 * hapax's handle on it: what is written by either is one transaction. A
 * connection is for one thread. */
#ifndef PAYMENTS_DB_H
#define PAYMENTS_DB_H

#include <stdbool.h>

#include <hapax/hapax.h>

#define DB_CELL_SIZE 128

struct db;

/* What differs between the two; db_sqlite.c and db_postgres.c. */
struct db_driver {
	const char *prefix; /* of the URL */
	const char *begin;  /* the statement */
	bool (*open)(struct db *db, const char *url);
	void (*close)(struct db *db);
	/* Whether the connection can still be used. */
	bool (*alive)(struct db *db);
	/* Several statements without values. */
	bool (*script)(struct db *db, const char *sql);
	/* One statement, $1, $2 … being `values` up to their NULL. Of the first
	 * row, if there is one, up to `columns` cells go to `ret_row`. */
	bool (*statement)(struct db *db, const char *sql, const char *const *values,
			  int columns, char (*ret_row)[DB_CELL_SIZE], bool *ret_found);
};

struct db {
	const struct db_driver *driver;
	void *connection;    /* sqlite3 * or PGconn * */
	struct hapax *hapax; /* on this connection */
};

extern const struct db_driver db_sqlite, db_postgres;

/* Failures are told on stderr, here, once. */
bool db_open(struct db *ret_db, const char *url);
void db_close(struct db *db);
/* Opens it again where the connection was lost. */
bool db_ready(struct db *db, const char *url);
/* Makes the shop's tables where they are absent. */
bool db_install(struct db *db);

bool db_begin(struct db *db);
bool db_commit(struct db *db);
void db_rollback(struct db *db);

/* db_run(db, "UPDATE … WHERE id = $1", id); all values are text. */
#define db_run(db, sql, ...) \
	db_execute(db, sql, (const char *const[]){ __VA_ARGS__, NULL })
bool db_execute(struct db *db, const char *sql, const char *const *values);
/* The first row, if there is one. */
#define db_find(db, sql, columns, ret_row, ret_found, ...) \
	((db)->driver->statement(db, sql, (const char *const[]){ __VA_ARGS__, NULL }, \
				 columns, ret_row, ret_found))

#endif
