/* One call to the store. It owns copies of everything it points to, so that it
 * outlives its caller: a caller whose time is up leaves it to the committer,
 * which goes on with it and frees it in the end. */
#ifndef HPX_LIB_CALL_H
#define HPX_LIB_CALL_H

#include "lib/handle.h"

enum hpx_call_state { HPX_CALL_AWAITED,
		      HPX_CALL_DONE,
		      HPX_CALL_ABANDONED };

struct hpx_call {
	struct hpx_store_op op;
	struct hapax *hapax;
	struct hpx_arena memory;
	/* What the op points to, where it does. */
	struct hpx_ask ask;
	struct hpx_policy policy;
	struct hpx_description description;
	struct hpx_answer answer;
	struct hpx_job job;
	pthread_mutex_t mutex;
	pthread_cond_t settled;
	enum hpx_call_state state; /* under the mutex */
	size_t held_bytes;         /* what it counts for in its handle */
};

/* NULL: out of memory. */
struct hpx_call *hpx_call_new(struct hapax *hapax, enum hpx_verb verb);
/* NULL is fine. Not after it was abandoned. */
void hpx_call_free(struct hpx_call *call);

/* A copy that lives as long as the call; false: out of memory. The span of an
 * empty text is not NULL. */
bool hpx_call_copy(struct hpx_call *call, struct hpx_span from, struct hpx_span *ret_copy);

/* Runs it and waits for its end, at most until `deadline_ms` (boot clock).
 * HPX_TIMEOUT: it was abandoned, `*call` is NULL, and the committer goes on with
 * it. HPX_UNAVAILABLE: it was not run. Any other status is the op's own; `detail`
 * (HPX_STORE_PROBLEM_SIZE) gets what the store said. May be run again. */
enum hpx_status hpx_call_run(struct hpx_call **call, int64_t deadline_ms, char *detail);

/* Nobody does what was reserved, or may have been: proved not executed. The
 * call is not the caller's any more. */
void hpx_call_give_back(struct hpx_call *call);

/* Until when a call that begins now is waited for. */
int64_t hpx_call_deadline(const struct hapax *hapax);

#endif
