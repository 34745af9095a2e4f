/* The PostgreSQL driver, as the table of drivers sees it. */
#ifndef HPX_STORE_POSTGRES_POSTGRES_H
#define HPX_STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

extern const struct hpx_store_driver hpx_store_postgres_driver;

#endif
