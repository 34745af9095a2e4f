/* Inside the deliverer: a target's slots, and one job under way. */
#ifndef HPX_WORKER_OUTGOING_H
#define HPX_WORKER_OUTGOING_H

#include <pthread.h>

#include "egress/egress.h"
#include "worker/deliverer.h"

/* One target. All but the first two under the deliverer's lock. */
struct hpx_lane {
	const struct hpx_job_target *target;
	struct hpx_target_counters *counters;
	struct hpx_breaker breaker;
	unsigned under_way; /* handed over to be sent, no end yet */
};

struct hpx_deliverer {
	struct hpx_deliverer_options options;
	struct hpx_settings *settings; /* of the start: the targets' */
	struct hpx_egress *egress;
	struct hpx_store_reader *reader; /* the thread's own */
	struct hpx_lane *lanes;
	size_t lane_count;
	unsigned sendings_max;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	struct hpx_settings *current;
	bool stopping;
	bool thread_over;
	bool woken;
	unsigned under_way; /* of all lanes */
	unsigned alive;     /* claimed, and the store does not know the end yet */
	/* The claim under way: the thread's, and the committer's meanwhile. */
	struct hpx_store_op claim;
	struct hpx_claim *claims;
	bool claiming;
	bool claim_back;
	int64_t claim_ms; /* boot clock, before it was submitted */
};

/* A job under way; the deliverer's thread, then the engine's, then the
 * committer's. */
struct hpx_sending {
	struct hpx_deliverer *deliverer;
	struct hpx_lane *lane;
	struct hpx_job_entry *entry;
	bool status_only; /* keep: status */
	struct hpx_buffer url;
	struct hpx_buffer method;
	struct hpx_buffer headers;
	struct hpx_egress_request request;
	/* What becomes of it. */
	struct hpx_arena arena;
	struct hpx_buffer kept_headers;
	struct hpx_answer answer;
	struct hpx_job_update turn;
	struct hpx_store_op op;
	char reason[HPX_EGRESS_PROBLEM_SIZE + 128];
};

/* Takes the entry. NULL: out of memory, the entry is still the caller's. */
struct hpx_sending *hpx_sending_new(struct hpx_deliverer *deliverer, struct hpx_lane *lane,
				    struct hpx_job_entry *entry);
void hpx_sending_free(struct hpx_sending *sending);

/* Sends it: the first byte by that time of the boot clock, or not at all. */
void hpx_sending_begin(struct hpx_sending *sending, int64_t send_until_ms,
		       size_t answer_bytes_max);
/* Nothing was sent, and not for the target's sake: back into the queue, due at
 * once. It has cost no attempt. */
void hpx_sending_return(struct hpx_sending *sending, const char *why);

/* From the end of the exchange to sending->turn and ->reason (judge.c). */
void hpx_sending_judge(struct hpx_sending *sending);
/* Whether this end tells against the target's health. */
bool hpx_sending_blames(const struct hpx_egress_request *request);

/* Hands the turn to the store; the sending is gone when it is stored (told.c). */
void hpx_sending_store(struct hpx_sending *sending);

bool hpx_deliverer_is_stopping(struct hpx_deliverer *deliverer);
/* A slot is free again: the target has answered, or never will. `ended` NULL:
 * that says nothing of the target. */
void hpx_deliverer_freed(struct hpx_deliverer *deliverer, struct hpx_lane *lane,
			 const struct hpx_egress_request *ended);
/* A sending ended: the store knows, or never will. */
void hpx_deliverer_ended(struct hpx_deliverer *deliverer);

#endif
