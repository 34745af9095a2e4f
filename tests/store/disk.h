/* A disk that fails on purpose: a SQLite VFS in front of the real one, which
 * lets the n-th read, write, truncation or sync fail, before it was done, half
 * way or after; or the process die there. Registered as the default, so that the driver needs no hook. */
#ifndef HPX_TESTS_STORE_DISK_H
#define HPX_TESTS_STORE_DISK_H

#include <stdbool.h>

enum disk_call { DISK_READ,
		 DISK_WRITE,
		 DISK_TRUNCATE,
		 DISK_SYNC,
		 DISK_CALLS };

/* How much of the call that fails is done all the same; half of a write only. */
enum disk_done { DISK_UNDONE,
		 DISK_DONE,
		 DISK_HALF_DONE };

/* Instead of a code: the process is killed. */
#define DISK_DIES (-1)
/* As `nth`: counts, and lets nothing fail. */
#define DISK_NEVER 0xffffffffu

struct disk_plan {
	enum disk_call call;
	int code; /* what SQLite is told */
	enum disk_done done;
	unsigned nth;    /* 0: nothing fails */
	unsigned length; /* how many in a row */
};

void disk_register(void);
/* Begins to count anew. Not while another thread uses the disk. */
void disk_arm(const struct disk_plan *plan);
/* Whether anything failed since. */
bool disk_disarm(void);
/* How many of the plan's calls there were since it was armed. */
unsigned disk_calls(void);
/* Whether the disk says that a torn write spares what lies beside it (it does,
 * until told otherwise). If not, SQLite fills up the log to whole sectors. */
void disk_powersafe(bool is);

#endif
