/* What the generator was asked to do, from the command line. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, text) */
#define WORK_LIST(X) \
	X(FIRST, "first")   /* each request has a key of its own */ \
	X(REPLAY, "replay") /* keys that were all answered before */ \
	X(GET, "get")       /* no key, no body */ \
	X(SAME, "same")     /* one key for all */ \
	X(MIXED, "mixed")   /* seven new keys, then three of the last again */ \
	X(IDLE, "idle")     /* one GET on each connection, then nothing */

enum work {
#define X(name, text) WORK_##name,
	WORK_LIST(X)
#undef X
		WORK_COUNT
};

struct plan {
	struct sockaddr_in to;
	enum work work;
	unsigned connections;
	unsigned keys; /* REPLAY: how many different ones */
	int64_t warm_us;
	int64_t measure_us;
	int64_t slice_us; /* latencies also by time, in slices of so long; 0: not */
	size_t body_bytes;
	unsigned callers; /* so many, each with an address and a credential of its own; 0: one */
	int64_t pause_us; /* of a connection, between an answer and the next request */
	const char *path;
	const char *run;    /* begins every key, so that no two runs share one */
	const char *header; /* one more field, or NULL */
	const char *tls;    /* the file with the authority to trust; NULL: without TLS */
};

/* False, with a sentence on stderr, where it cannot be understood. */
bool plan_read(int argc, char **argv, struct plan *ret_plan);

#endif
