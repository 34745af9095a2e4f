/* What the files of libhapax share: a handle, the results with their sentences, and
 * a pending store op. */
#ifndef HPX_LIB_LIB_H
#define HPX_LIB_LIB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"
#include "hapax/hapax.h"
#include "store/committer.h"

/* The longest lease, as in the gateway's option. */
#define HPX_LEASE_MAX_MS 3600000
/* The bound of the gateway's option retention. */
#define HPX_LIB_RETENTION_MAX_MS (3650 * (int64_t)86400000)

/* ---- lib_handle.c ---- */

/* A store, and for connections of its own the committer in front of it. */
struct hapax {
	struct hpx_store *store;
	struct hpx_committer *committer; /* NULL: the connection is the caller's */
	int64_t timeout_ms;
	_Atomic size_t held_bytes; /* of calls under way, awaited or not */
	pthread_mutex_t mutex;
	/* Under the mutex: what the store said of itself when it went down. */
	char trouble[HPX_STORE_PROBLEM_SIZE];
};

/* What is known of the store's trouble, "" while it is well. */
void hpx_handle_trouble(struct hapax *hapax, char ret_trouble[HPX_STORE_PROBLEM_SIZE]);

/* A struct that is not of any version: its size was not set, or it asks for what
 * this library does not know. `name` is the struct's. */
enum hapax_result hpx_lib_bad_struct(const char *name, char *problem);

enum hapax_result hpx_result_of(enum hpx_status status);

/* The sentence for people, cut to its size; `problem` may be NULL. Gives the
 * result back, so that a caller can end with it. */
enum hapax_result hpx_lib_error(enum hapax_result result, char *problem, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The sentence that fits the status; `detail` (may be NULL or "") is what the
 * store said of itself. */
enum hapax_result hpx_lib_result(enum hpx_status status, const char *detail, char *problem);

/* ---- lib_pending.c ---- */

/* A store op that a caller waits for. It owns copies of everything it points to, so
 * that it outlives its caller: a caller whose time is up leaves it to the committer,
 * which goes on with it and frees it in the end. */
enum hpx_pending_state { HPX_PENDING_AWAITED,
			 HPX_PENDING_DONE,
			 HPX_PENDING_ABANDONED };

struct hpx_pending {
	struct hpx_store_op op;
	struct hapax *hapax;
	struct hpx_arena memory;
	/* What the op points to, where it does. */
	struct hpx_ask ask;
	struct hpx_policy policy;
	struct hpx_description description;
	struct hpx_answer answer;
	struct hpx_job job;
	struct hpx_ruling_update ruling;
	pthread_mutex_t mutex;
	pthread_cond_t settled;
	enum hpx_pending_state state; /* under the mutex */
	size_t held_bytes;            /* what it counts for in its handle */
};

/* NULL: out of memory. */
struct hpx_pending *hpx_pending_new(struct hapax *hapax, enum hpx_verb verb);
/* NULL is fine. Not after it was abandoned. */
void hpx_pending_free(struct hpx_pending *pending);

/* A copy that lives as long as the op; false: out of memory. The span of an
 * empty text is not NULL. */
bool hpx_pending_copy(struct hpx_pending *pending, struct hpx_span from, struct hpx_span *ret_copy);

/* Runs it and waits for its end, at most until `deadline_ms` (boot clock).
 * HPX_TIMEOUT: it was abandoned, `*pending` is NULL, and the committer goes on with
 * it. HPX_UNAVAILABLE: it was not run. Any other status is the op's own; `detail`
 * (HPX_STORE_PROBLEM_SIZE) gets what the store said. May be run again. */
enum hpx_status hpx_pending_run(struct hpx_pending **pending, int64_t deadline_ms, char *detail);

/* Nobody does what was reserved, or may have been: proved not executed. The
 * op is not the caller's any more. */
void hpx_pending_cancel(struct hpx_pending *pending);

/* The deadline of an op that begins now. */
int64_t hpx_pending_deadline(const struct hapax *hapax);

/* ---- lib_lease.c ---- */

/* Checks the answer, and copies it into the pending op's `answer`. */
enum hapax_result hpx_lib_take_answer(struct hpx_pending *pending, const struct hapax_answer *answer,
				      char *problem);

#endif
