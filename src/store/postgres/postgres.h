/* The PostgreSQL driver, as the rest of the store sees it. */
#ifndef HPX_STORE_POSTGRES_POSTGRES_H
#define HPX_STORE_POSTGRES_POSTGRES_H

#include <libpq-fe.h>

#include "store/store.h"

extern const struct hpx_store_driver hpx_store_postgres_driver;

/* Brings the database to this program's schema, for `hapax migrate`; gateways
 * may serve it meanwhile. Gives the schema's number before (0: there was none)
 * and after, and the store's address without its password. */
enum hpx_status hpx_store_postgres_migrate(const struct hpx_store_options *options,
					   unsigned *ret_from, unsigned *ret_to,
					   char ret_description[PATH_MAX + 16], char *problem);

/* A store on a connection that stays the caller's: run() takes one op (RESERVE,
 * COMPLETE, FAIL, ADVANCE, ENQUEUE, READ_POINT), calls the SQL function that does it
 * in whatever transaction is open there, and waits like any statement of that
 * transaction. Only run and close. One thread at a time. */
enum hpx_status hpx_store_postgres_borrow(PGconn *connection, struct hpx_store **ret_store,
					  char *problem);
enum hpx_status hpx_store_postgres_install(PGconn *connection, char *problem);

#endif
