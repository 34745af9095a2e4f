/* Inside the deliverer: the queue of a target, and one job on its way out. */
#ifndef HPX_WORKER_OUTGOING_H
#define HPX_WORKER_OUTGOING_H

#include "base/thread.h"
#include "egress/egress.h"
#include "service/tracer.h"
#include "worker/deliverer.h"

/* A target with its slots. All but the first two members under the deliverer's
 * lock. The jobs that wait are in the store. */
struct hpx_target_queue {
	const struct hpx_job_target *target;
	struct hpx_target_counters *counters;
	struct hpx_breaker breaker;
	unsigned under_way; /* handed to the engine, and not ended yet */
};

/* The CLAIM: the thread's while IDLE and BACK, the committer's while SUBMITTED. */
enum hpx_claim_state { HPX_CLAIM_IDLE,
		       HPX_CLAIM_SUBMITTED,
		       HPX_CLAIM_BACK };

struct hpx_deliverer {
	struct hpx_service *service;
	int64_t poll_ms;
	struct hpx_settings *settings; /* of the start: the targets are theirs */
	struct hpx_egress *egress;
	struct hpx_store_reader *reader; /* the thread's own */
	struct hpx_target_queue *queues;
	size_t queue_count;
	unsigned outgoing_max;
	struct hpx_thread thread;
	/* Under the thread's lock. */
	struct hpx_settings *current;
	bool thread_over; /* a claim that comes back later is the committer's to return */
	bool woken;
	unsigned under_way; /* of all queues */
	unsigned alive;     /* claimed, and the store does not have the result yet */
	enum hpx_claim_state claim_state;
	struct hpx_store_op claim;
	struct hpx_claim *claims;
	int64_t claim_ms; /* boot clock, before the claim was submitted */
};

enum hpx_outgoing_state { HPX_OUTGOING_CLAIMED, /* the deliverer's thread has it */
			  HPX_OUTGOING_SENT,    /* the engine's thread */
			  HPX_OUTGOING_STORING, /* the committer's thread */
};

/* One job on its way out. */
struct hpx_outgoing {
	enum hpx_outgoing_state state;
	struct hpx_deliverer *deliverer;
	struct hpx_target_queue *queue;
	struct hpx_job_entry *entry;
	bool status_only; /* keep: status */
	struct hpx_buffer url;
	struct hpx_buffer method;
	struct hpx_buffer headers;
	struct hpx_egress_request request;
	struct hpx_trace_call trace;
	/* The result. */
	struct hpx_arena arena;
	struct hpx_buffer kept_headers;
	struct hpx_answer answer;
	struct hpx_job_update update;
	struct hpx_store_op op;
	char reason[HPX_EGRESS_PROBLEM_SIZE + 128];
};

/* Takes the entry over. NULL: out of memory, the entry is still the caller's. */
struct hpx_outgoing *hpx_outgoing_new(struct hpx_deliverer *deliverer,
				      struct hpx_target_queue *queue, struct hpx_job_entry *entry);
/* Sends the job: the first byte by that time of the boot clock, or not at all. The
 * outgoing job frees itself when its result is stored; so does the next. */
void hpx_outgoing_send(struct hpx_outgoing *outgoing, int64_t send_until_ms,
		       size_t answer_bytes_max);
/* Nothing was sent, and not because of the target: the job is queued again, due
 * at once. That costs no attempt. */
void hpx_outgoing_return(struct hpx_outgoing *outgoing, const char *why);

/* The slot of an outgoing job is free: the target has answered, or never will.
 * `ended` is how; NULL: that says nothing of the target. */
void hpx_deliverer_slot_free(struct hpx_deliverer *deliverer, struct hpx_target_queue *queue,
			     const struct hpx_egress_request *ended);
/* The store has the result of an outgoing job, or never will. */
void hpx_deliverer_ended(struct hpx_deliverer *deliverer);

#endif
