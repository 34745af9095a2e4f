/* What a run is made of, for the files of this folder that are its verbs. */
#ifndef HPX_VERIFY_STATE_H
#define HPX_VERIFY_STATE_H

#include "verify/flight.h"
#include "verify/run.h"
#include "verify/shell.h"

/* What one row may hold: intents, requests, whole answers. */
#define HPX_RUN_ROW_BYTES_MAX ((size_t)256 << 20)
/* What the log may hold; bodies only up to the smaller bound, so that heads are
 * kept long after. */
#define HPX_RUN_LOG_BYTES_MAX ((size_t)96 << 20)
#define HPX_RUN_LOG_BODIES_MAX ((size_t)64 << 20)

struct hpx_verify {
	const struct hpx_verify_spec *spec;
	struct hpx_arena row_arena;
	const char *row;
	enum hpx_dialect dialect;
	/* Bounds. */
	int64_t began_ms;
	uint64_t requests; /* sent so far */
	bool log_full;
	char over_requests[96]; /* what is said then */
	char over_time[96];
	int stop_fd; /* readable: a person stops the run; -1: none */
	bool stopped;
	/* Chance. */
	uint64_t random;
	uint64_t n_first;
	uint64_t n;
	/* The one host, and what is under way to it. */
	struct hpx_verify_host host;
	bool host_ready;
	struct hpx_inflight *live;       /* a list */
	struct hpx_inflight not_started; /* given for what was not begun; never in the list */
	size_t live_count;
	struct hpx_response_shared share;
	/* The log. */
	struct hpx_arena log;
	struct hpx_verify_exchange **exchanges;
	size_t exchange_count;
	size_t exchange_cap;
	size_t kept;                       /* so many are in the log's own memory */
	struct hpx_verify_exchange unsent; /* given for what was not sent */
	/* The server under test, where we start it. */
	struct hpx_shell server;
};

/* ---- log.c ---- */

/* The next exchange, counted; NULL: no memory, and the run is over. */
struct hpx_verify_exchange *hpx_verify_log_add(struct hpx_verify *run);
/* What the row's exchanges need of the row's memory, into the log's. */
void hpx_verify_log_keep(struct hpx_verify *run);
/* Not sent, and why. */
const struct hpx_verify_exchange *hpx_verify_log_unsent(struct hpx_verify *run, const char *why);

/* ---- drive.c ---- */

/* Moves all that is under way until `is_done` says so, or for that long
 * (below 0: without end; what is under way has its own). */
void hpx_verify_poll(struct hpx_verify *run, bool (*is_done)(void *user), void *user,
		     int64_t timeout_ms);
/* Passes that time, as the run's bounds allow. */
void hpx_verify_poll_for(struct hpx_verify *run, int64_t ms);

#endif
