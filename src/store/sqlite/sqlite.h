/* The SQLite driver, as the rest of the store sees it. */
#ifndef HPX_STORE_SQLITE_SQLITE_H
#define HPX_STORE_SQLITE_SQLITE_H

#include "store/store.h"

extern const struct hpx_store_driver hpx_store_sqlite_driver;

/* Brings the file to this program's schema, for `hapax migrate`; creates it
 * where options->create says so. Takes the server's lock: HPX_BUSY while a
 * hapax serves the file. Gives the schema's number before (0: it was new) and
 * after. */
enum hpx_status hpx_store_sqlite_migrate(const struct hpx_store_options *options,
					 unsigned *ret_from, unsigned *ret_to, char *problem);

#endif
