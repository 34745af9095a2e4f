/* The SQLite driver, as the table of drivers sees it. */
#ifndef HPX_STORE_SQLITE_SQLITE_H
#define HPX_STORE_SQLITE_SQLITE_H

#include "store/store.h"

extern const struct hpx_store_driver hpx_store_sqlite_driver;

#endif
