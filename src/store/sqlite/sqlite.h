/* The SQLite driver, as the rest of the store sees it. */
#ifndef HPX_STORE_SQLITE_SQLITE_H
#define HPX_STORE_SQLITE_SQLITE_H

#include <sqlite3.h>

#include "store/store.h"

extern const struct hpx_store_driver hpx_store_sqlite_driver;

/* Brings the file to this program's schema, for `hapax migrate`; creates it
 * where options->create says so. Takes the server's lock: HPX_BUSY while a
 * hapax serves the file. Gives the schema's number before (0: it was new) and
 * after. */
enum hpx_status hpx_store_sqlite_migrate(const struct hpx_store_options *options,
					 unsigned *ret_from, unsigned *ret_to, char *problem);

/* A store on a connection that stays the caller's, outside a transaction: run()
 * takes one op, and is part of whatever transaction is open there then. Only
 * run and close. One thread at a time. */
enum hpx_status hpx_store_sqlite_borrow(sqlite3 *handle, struct hpx_store **ret_store,
					char *problem);
/* Makes the tables beside whatever else is there, or brings them up to date. */
enum hpx_status hpx_store_sqlite_install(sqlite3 *handle, char *problem);

#endif
