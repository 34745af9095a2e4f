/* Inside the reconciler: the queue of a probe, and one probe call. */
#ifndef HPX_WORKER_PROBE_CALL_H
#define HPX_WORKER_PROBE_CALL_H

#include "base/thread.h"
#include "core/pacing.h"
#include "egress/egress.h"
#include "service/tracer.h"
#include "worker/reconciler.h"

/* Calls under way over all queues: where more is configured, each queue has an
 * equal share of this, and at least one slot. */
#define HPX_PROBE_CALLS_MAX 1024
/* One claim takes no more than this, over all queues. */
#define HPX_CLAIM_MAX 512
/* Unknowns without a probe are escalated in transactions of this size. */
#define HPX_ESCALATE_MAX 200

struct hpx_probe_call;

/* The unknowns that one probe is for: a route's, or a target's. Each queue has
 * slots of its own, so that a slow service holds up no other. All members but the
 * name under the reconciler's lock. */
struct hpx_probe_queue {
	struct hpx_probe_queue *next;
	/* Of reconciler->settings; NULL: a reload took the probe away. */
	const struct hpx_reconcile_settings *reconcile;
	unsigned slots;
	struct hpx_bucket bucket;                      /* of the rate */
	unsigned under_way;                            /* sent, and not answered yet */
	unsigned alive;                                /* claimed, and the store has no ruling yet */
	struct hpx_probe_call *waiting, **waiting_end; /* claimed, and not sent yet */
	unsigned waiting_count;
	/* `freed` slots came free while the last claim was being stored. `ahead` follows
	 * it: so many more are claimed than can be sent now, so that no slot is empty
	 * during a claim. */
	unsigned freed, ahead;
	bool more;               /* the last look found as many as it wanted */
	bool contended;          /* another process claimed some of them */
	int64_t from_ms;         /* nothing due lies before this */
	unsigned wanted, gotten; /* by the claim under way */
	size_t name_len;
	char name[];
};

/* An op of the reconciler: the thread's while IDLE and BACK, the committer's while
 * SUBMITTED. */
enum hpx_probe_op_state { HPX_PROBE_OP_IDLE,
			  HPX_PROBE_OP_SUBMITTED,
			  HPX_PROBE_OP_BACK };

struct hpx_reconciler {
	struct hpx_service *service;
	int64_t every_ms;
	struct hpx_egress *egress;
	struct hpx_store_reader *reader; /* the thread's own */
	struct hpx_thread thread;
	/* Under the thread's lock. */
	struct hpx_settings *settings;
	struct hpx_probe_queue *queues;  /* none is ever removed */
	struct hpx_probe_call *answered; /* calls that the thread has to judge */
	unsigned call_count;             /* calls that are alive */
	enum hpx_probe_op_state claim_state, escalate_state;
	struct hpx_store_op claim, escalate; /* CLAIM_UNKNOWN, ESCALATE */
	struct hpx_due claim_due[HPX_CLAIM_MAX], escalate_due[HPX_ESCALATE_MAX];
	/* The thread's own, boot clock. */
	int64_t escalate_ms; /* when the ESCALATE was submitted */
	int64_t poll_ms;     /* when all queues are looked at next */
};

enum hpx_probe_call_state { HPX_PROBE_CALL_CLAIMED,  /* the reconciler's thread has it */
			    HPX_PROBE_CALL_SENT,     /* the engine's thread */
			    HPX_PROBE_CALL_ANSWERED, /* the reconciler's thread has it again */
			    HPX_PROBE_CALL_RULING,   /* the committer's thread */
};

/* One unknown outcome that was claimed. */
struct hpx_probe_call {
	enum hpx_probe_call_state state;
	struct hpx_probe_call *next; /* of those that wait in the queue, or were answered */
	struct hpx_reconciler *reconciler;
	struct hpx_probe_queue *queue;             /* NULL: no probe is configured */
	struct hpx_settings *settings;             /* that the probe is made by */
	bool by_client_key;                        /* the probe names the operation by its key */
	char amount[HPX_ROUTE_KEY_AMOUNT_MAX + 1]; /* of the request, where it is found by its key; or "" */
	const struct hpx_reconcile_settings *reconcile;
	struct hpx_unsettled *unknown;
	int64_t send_until_ms; /* boot: later, another process may claim it */
	struct hpx_buffer url, headers;
	struct hpx_egress_request request;
	struct hpx_trace_call trace;
	int64_t sent_ms; /* wall */
	/* The operation's answer, where the probe's rule makes one. */
	struct hpx_buffer answer_headers, answer_body;
	struct hpx_answer answer;
	struct hpx_ruling_update update;
	struct hpx_store_op op;
	char reason[HPX_EGRESS_PROBLEM_SIZE + 128];
};

/* ---- one call (probe_call.c) ---- */

/* Takes `unknown` over: rules at once, waits in its queue, or is dropped. */
void hpx_probe_call_begin(struct hpx_reconciler *reconciler, struct hpx_settings *settings,
			  struct hpx_unsettled *unknown);
/* Sends a call that has a slot of its queue. */
void hpx_probe_call_send(struct hpx_probe_call *call);
/* Rules by the answer of a call by the client's key, if the key is still one operation's. */
void hpx_probe_call_judge(struct hpx_probe_call *call);
/* Ends the call without a ruling: whoever claims the unknown next makes another. */
void hpx_probe_call_drop(struct hpx_probe_call *call);
/* How long a claim keeps other processes from probing. The first half is for the
 * way to the probe, the second half for the call itself. */
int64_t hpx_probe_call_lease_ms(const struct hpx_reconcile_settings *reconcile);

/* ---- queues (probe_queue.c); with the lock held unless it says otherwise ---- */

/* One queue for each probe of the settings. */
enum hpx_status hpx_probe_queues_make(struct hpx_reconciler *reconciler);
void hpx_probe_queues_free(struct hpx_reconciler *reconciler);
struct hpx_probe_queue *hpx_probe_queue_find(const struct hpx_reconciler *reconciler,
					     struct hpx_span name);
/* The queue of an unknown, which gets the call; NULL: there is no probe. Takes the
 * lock. */
struct hpx_probe_queue *hpx_probe_queue_enter(struct hpx_reconciler *reconciler,
					      const struct hpx_unsettled *unknown);
/* The call waits for a slot. Takes the lock. */
void hpx_probe_queue_push(struct hpx_probe_call *call);
struct hpx_probe_call *hpx_probe_queue_pop(struct hpx_probe_queue *queue);
/* The first waiting call takes a slot, where slots and rate allow it; else NULL,
 * and `*wake_ms` is at most the time of the boot clock when the rate does. */
struct hpx_probe_call *hpx_probe_queue_take(struct hpx_reconciler *reconciler,
					    struct hpx_probe_queue *queue, int64_t *wake_ms);
/* The call was answered, or never will be: its slot is free. Takes the lock. */
void hpx_probe_queue_slot_free(struct hpx_probe_call *call);
/* A call of that queue (NULL: of none) is freed. Takes the lock. */
void hpx_probe_queue_leave(struct hpx_reconciler *reconciler, struct hpx_probe_queue *queue);
/* How many more may be claimed now. */
unsigned hpx_probe_queue_room(const struct hpx_probe_queue *queue);
/* A slot is empty, or enough are for a claim to be worth it. */
bool hpx_probe_queue_wants_more(const struct hpx_probe_queue *queue);

#endif
