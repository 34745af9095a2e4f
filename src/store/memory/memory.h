/* The memory driver: the same contract, kept in the process and gone with it.
 * It is the reference that the suite compares every other driver with, and
 * what tests use that need no file. */
#ifndef HPX_STORE_MEMORY_MEMORY_H
#define HPX_STORE_MEMORY_MEMORY_H

#include "store/store.h"

extern const struct hpx_store_driver hpx_store_memory_driver;

#endif
