/* The shop in one SQLite file, which is hapax's store as well. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "db.h"

#define BUSY_MS 5000

static bool trouble(sqlite3 *file, const char *what)
{
	fprintf(stderr, "payments: %s: %s\n", what, sqlite3_errmsg(file));
	return false;
}

static bool run_script(struct db *db, const char *sql)
{
	return sqlite3_exec(db->connection, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       trouble(db->connection, "SQL");
}

static bool open_file(struct db *db, const char *url)
{
	char problem[HAPAX_PROBLEM_SIZE];
	sqlite3 *file = NULL;
	int result = sqlite3_open_v2(url + strlen(db_sqlite.prefix), &file,
				     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

	db->connection = file;
	if (result != SQLITE_OK)
		return trouble(file, "cannot open the file");
	sqlite3_busy_timeout(file, BUSY_MS);
	if (!run_script(db, "PRAGMA foreign_keys = on"))
		return false;
	if (hapax_on_sqlite(file, &db->hapax, problem) == HAPAX_OK)
		return true;
	fprintf(stderr, "payments: %s\n", problem);
	return false;
}

static void close_file(struct db *db)
{
	sqlite3_close(db->connection);
}

static bool is_alive(struct db *db)
{
	(void)db;
	return true;
}

static void take_row(sqlite3_stmt *statement, int columns, char (*ret_row)[DB_CELL_SIZE])
{
	for (int i = 0; i < columns; i++) {
		const unsigned char *text = sqlite3_column_text(statement, i);

		snprintf(ret_row[i], DB_CELL_SIZE, "%s", text ? (const char *)text : "");
	}
}

static bool bind(sqlite3_stmt *statement, const char *const *values)
{
	for (int i = 1; *values != NULL; i++, values++) {
		char name[16];

		/* To SQLite, "$1" is a name, not a number. */
		snprintf(name, sizeof(name), "$%d", i);
		if (sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, name),
				      *values, -1, SQLITE_STATIC) != SQLITE_OK)
			return false;
	}
	return true;
}

static bool run_statement(struct db *db, const char *sql, const char *const *values, int columns,
			  char (*ret_row)[DB_CELL_SIZE], bool *ret_found)
{
	sqlite3_stmt *statement = NULL;
	int result = SQLITE_ERROR;

	if (sqlite3_prepare_v2(db->connection, sql, -1, &statement, NULL) == SQLITE_OK &&
	    bind(statement, values)) {
		result = sqlite3_step(statement);
		if (columns > 0 && result == SQLITE_ROW)
			take_row(statement, columns, ret_row);
	}
	bool fine = result == SQLITE_DONE || result == SQLITE_ROW;
	if (!fine)
		trouble(db->connection, "SQL");
	else if (columns > 0)
		*ret_found = result == SQLITE_ROW;
	sqlite3_finalize(statement);
	return fine;
}

/* IMMEDIATE takes the write lock at once: a transaction that has begun is not
 * refused half way because somebody else wrote meanwhile. */
const struct db_driver db_sqlite = {
	.prefix = "sqlite:",
	.begin = "BEGIN IMMEDIATE",
	.open = open_file,
	.close = close_file,
	.alive = is_alive,
	.script = run_script,
	.statement = run_statement,
};
