/* What an update of a job, or a ruling, does to a job and to its operation: from the
 * rows as they are to what has to be written. No I/O: the rules are core's, the
 * writing is the driver's. */
#ifndef HPX_STORE_OUTBOX_CHANGE_H
#define HPX_STORE_OUTBOX_CHANGE_H

#include "store/change.h"

/* The rows as a driver found them, under its locks. Where an op is about an
 * operation itself (number 0), the job is the one whose answer is the
 * operation's, if there is one (RULE: if hpx_outbox_speaks_for): what is
 * said of the one is said of the other. The reconcile row is the job's where there is a job, else the operation's; a
 * row of another reference (`first`) is none. */
struct hpx_outbox_found {
	struct hpx_found operation; /* may be gone: its jobs outlive it */
	bool job_exists;
	bool job_readable;
	struct hpx_delivery delivery;
	bool scheduled; /* there is a reconcile row */
	struct hpx_reconcile reconcile;
	enum hpx_ruling evidence;
	bool person;
};

struct hpx_outbox_change {
	bool write_job;
	/* A person gives up a job whose row cannot be read: the row goes, and nothing else is
	 * written, because the row does not say for certain whose job it is. */
	bool remove_job;
	struct hpx_delivery delivery;
	bool write_operation;
	struct hpx_change operation; /* UPDATE only; with the answer to store */
	bool write_reconcile;
	bool remove_reconcile; /* it is settled */
	struct hpx_reconcile reconcile;
	enum hpx_ruling evidence;
	bool person; /* nobody is asked any more */
	bool of_job; /* the reconcile row is the job's */
	/* For people: what happened; always written where not NULL. */
	const char *event;
	uint32_t event_status;
};

/* Whether what becomes of the answering job becomes of the operation: the job is
 * on its way, or lost. */
bool hpx_outbox_speaks_for(const struct hpx_delivery *delivery, const struct hpx_found *operation);

/* JOB: op->job.update. Fills op->status. */
void hpx_outbox_update(const struct hpx_outbox_found *found, struct hpx_store_op *op,
		       const struct hpx_moment *now, struct hpx_outbox_change *ret_change);
/* SWEEP_JOBS: one lost claim; false where it does not move. */
bool hpx_outbox_sweep(const struct hpx_outbox_found *found, bool owner_dead,
		      const struct hpx_moment *now, struct hpx_outbox_change *ret_change);
/* CLAIM: one due job; false where it does not move. It may have become unknown
 * or dead instead of sending: only the change's state tells. `token` is the new
 * claim's. */
bool hpx_outbox_claim(const struct hpx_outbox_found *found, const struct hpx_claim *claim,
		      const struct hpx_token *token, uint64_t owner, const struct hpx_moment *now,
		      struct hpx_outbox_change *ret_change);
/* RULE: op->rule.update. Fills op->status and op->rule.update->move. */
void hpx_outbox_rule(const struct hpx_outbox_found *found, struct hpx_store_op *op,
		     const struct hpx_moment *now, struct hpx_outbox_change *ret_change);
/* ESCALATE: one that is unknown; false where it stays: a person's already, or
 * something was said of it, which settles it. */
bool hpx_outbox_escalate(const struct hpx_outbox_found *found, struct hpx_outbox_change *ret_change);
/* RESERVE that executes an async operation again, and finds its job there: it is
 * queued anew, or is on its way. HPX_CONFLICT: it is done, or cannot be read. */
enum hpx_status hpx_outbox_requeue(const struct hpx_outbox_found *found,
				   const struct hpx_moment *now,
				   struct hpx_outbox_change *ret_change);
/* RESOLVE, FORGET: the operation becomes `after` by a person's word, and the job
 * whose answer it waited for ends with it; only the job's part is filled.
 * HPX_REFUSED: the job is being sent right now, or was done. */
enum hpx_status hpx_outbox_conclude(const struct hpx_outbox_found *found, enum hpx_state after,
				    const struct hpx_moment *now,
				    struct hpx_outbox_change *ret_change);
/* REAP: a pending operation whose time is over, with its answering job: the
 * job is discarded and the operation completed with 408, or, where anything may
 * have been sent, the operation is unknown and its job goes on as it may. */
bool hpx_outbox_abandon(const struct hpx_outbox_found *found, const struct hpx_moment *now,
			struct hpx_outbox_change *ret_change);

/* What the event is called when a ruling settles an operation. Not as a person's
 * word (RESOLVE) is: those are few, and every cache drops each (removals in
 * store.h); rulings come by the thousand, about what no cache holds. */
const char *hpx_outbox_ruled_event(enum hpx_reconcile_move move);

/* The answers that hapax itself gives for an operation that it ends. */
extern const struct hpx_answer hpx_answer_abandoned; /* 408 */
extern const struct hpx_answer hpx_answer_declined;  /* 402 */

#endif
