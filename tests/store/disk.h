/* A disk that fails on purpose: a SQLite VFS in front of the real one, which
 * lets the n-th read, write, truncation or sync fail, before it was done or
 * after. Registered as the default, so that the driver needs no hook. */
#ifndef HPX_TESTS_STORE_DISK_H
#define HPX_TESTS_STORE_DISK_H

#include <stdbool.h>

enum disk_call { DISK_READ, DISK_WRITE, DISK_TRUNCATE, DISK_SYNC, DISK_CALLS };

struct disk_plan {
	enum disk_call call;
	int code;           /* what SQLite is told */
	bool after;         /* it was done all the same */
	unsigned nth;       /* 0: nothing fails */
	unsigned length;    /* how many in a row */
};

void disk_register(void);
/* Begins to count anew. Not while another thread uses the disk. */
void disk_arm(const struct disk_plan *plan);
/* Whether anything failed since. */
bool disk_disarm(void);

#endif
