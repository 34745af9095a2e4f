/* What both databases have in common. */
#include "db.h"

#include <stdio.h>
#include <string.h>

#include "payments_schema.h"

bool db_open(struct db *ret_db, const char *url)
{
	static const struct db_driver *const drivers[] = { &db_sqlite, &db_postgres };

	*ret_db = (struct db){ 0 };
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strncmp(url, drivers[i]->prefix, strlen(drivers[i]->prefix)) != 0)
			continue;
		ret_db->driver = drivers[i];
		if (drivers[i]->open(ret_db, url))
			return true;
		db_close(ret_db);
		return false;
	}
	fprintf(stderr, "payments: the store is sqlite:PATH or postgres://…\n");
	return false;
}

void db_close(struct db *db)
{
	hapax_close(db->hapax);
	if (db->connection != NULL)
		db->driver->close(db);
	*db = (struct db){ 0 };
}

bool db_ready(struct db *db, const char *url)
{
	if (db->connection != NULL && db->driver->alive(db))
		return true;
	db_close(db);
	return db_open(db, url);
}

bool db_install(struct db *db)
{
	return db->driver->script(db, schema_steps[0]);
}

bool db_begin(struct db *db)
{
	return db->driver->script(db, db->driver->begin);
}

bool db_commit(struct db *db)
{
	return db->driver->script(db, "COMMIT");
}

void db_rollback(struct db *db)
{
	/* Where even this fails the connection is lost, and nothing was committed. */
	db->driver->script(db, "ROLLBACK");
}

bool db_execute(struct db *db, const char *sql, const char *const *values)
{
	return db->driver->statement(db, sql, values, 0, NULL, NULL);
}
