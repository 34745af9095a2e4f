/* The shop in a PostgreSQL database, which is hapax's store as well. */
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "db.h"

static bool trouble(PGconn *connection, const char *what)
{
	fprintf(stderr, "payments: %s: %s", what, PQerrorMessage(connection));
	return false;
}

static bool run_script(struct db *db, const char *sql)
{
	PGresult *result = PQexec(db->connection, sql);
	bool fine = PQresultStatus(result) == PGRES_COMMAND_OK;

	/* A transaction that failed is "committed" by rolling it back; the
	 * command's tag is what says so. */
	if (fine && strcmp(sql, "COMMIT") == 0)
		fine = strcmp(PQcmdStatus(result), "COMMIT") == 0;
	PQclear(result);
	return fine || trouble(db->connection, "SQL");
}

static void say_nothing(void *user, const char *notice)
{
	(void)user;
	(void)notice;
}

static bool open_connection(struct db *db, const char *url)
{
	char problem[HAPAX_PROBLEM_SIZE];

	db->connection = PQconnectdb(url);
	if (PQstatus(db->connection) != CONNECTION_OK)
		return trouble(db->connection, "cannot connect");
	PQsetNoticeProcessor(db->connection, say_nothing, NULL);
	if (hapax_on_postgres(db->connection, &db->hapax, problem) == HAPAX_OK)
		return true;
	fprintf(stderr, "payments: %s\n", problem);
	return false;
}

static void close_connection(struct db *db)
{
	PQfinish(db->connection);
}

static bool is_alive(struct db *db)
{
	return PQstatus(db->connection) == CONNECTION_OK;
}

static bool run_statement(struct db *db, const char *sql, const char *const *values, int columns,
			  char (*ret_row)[DB_CELL_SIZE], bool *ret_found)
{
	int count = 0;

	while (values[count] != NULL)
		count++;
	PGresult *result = PQexecParams(db->connection, sql, count, NULL, values, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);
	bool found = status == PGRES_TUPLES_OK && PQntuples(result) > 0;

	for (int i = 0; found && i < columns; i++)
		snprintf(ret_row[i], DB_CELL_SIZE, "%s", PQgetvalue(result, 0, i));
	if (columns > 0)
		*ret_found = found;
	PQclear(result);
	return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ||
	       trouble(db->connection, "SQL");
}

/* READ COMMITTED is enough: whoever holds the operation's row is alone. */
const struct db_driver db_postgres = {
	.prefix = "postgres",
	.begin = "BEGIN",
	.open = open_connection,
	.close = close_connection,
	.alive = is_alive,
	.script = run_script,
	.statement = run_statement,
};
