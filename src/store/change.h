/* What one op does to one operation: from the record as a driver found it (or none)
 * to what the driver has to write. No I/O: the rules are core's, the writing is the
 * driver's, and every driver calls this between the two. */
#ifndef HPX_STORE_CHANGE_H
#define HPX_STORE_CHANGE_H

#include "store/store.h"

enum hpx_write {
	HPX_WRITE_NOTHING,
	HPX_WRITE_INSERT,  /* a new record, with the op's description */
	HPX_WRITE_REPLACE, /* the old one had expired: record and description anew, no answer */
	HPX_WRITE_UPDATE,  /* the record */
	HPX_WRITE_LEASE,   /* only lease_until_ms */
	HPX_WRITE_REMOVE,  /* the record, its answer, its lease */
};

struct hpx_change {
	enum hpx_write write;
	struct hpx_record record;              /* after the change */
	const struct hpx_answer *answer;       /* to be stored with it, or NULL */
	const struct hpx_span *data;           /* of the recovery point, to be stored; or NULL */
	const struct hpx_span *provider_id;    /* to be stored; or NULL */
	const struct hpx_route_key *route_key; /* to be stored with the record; or NULL */
	const struct hpx_job *job;             /* to be stored before anything else; or NULL */
	const char *event;                     /* a move's name, or NULL: none is written */
	bool event_once;                       /* only where the record has no such event since it was created */
	struct hpx_span reason;                /* the event's, where the op gives none */
	int64_t at_ms;                         /* the event's: wall */
};

/* Of an answer that is not kept, only the headers are stored (they may tell
 * where the resource is). */
static inline struct hpx_span hpx_change_body(const struct hpx_change *change)
{
	return change->answer->kept ? change->answer->body : HPX_SPAN("");
}

/* The record as a driver found it. */
struct hpx_found {
	bool exists;
	bool readable;            /* false: counts as unknown */
	struct hpx_record record; /* not readable: what could be made out of it */
};

/* For the verbs about one operation (RESERVE to FORGET). Fills op->status and,
 * for RESERVE, op->decision. `space_low`: no new attempt may begin. */
void hpx_change_make(const struct hpx_found *found, struct hpx_store_op *op,
		     const struct hpx_moment *now, bool space_low, struct hpx_change *ret_change);

/* A lost lease found by the sweeper, or by its owner's death; false where the
 * record does not move. */
bool hpx_change_sweep(const struct hpx_record *record, bool owner_dead,
		      const struct hpx_moment *now, struct hpx_change *ret_change);

/* The operation an op is about. */
const struct hpx_operation_id *hpx_op_id(const struct hpx_store_op *op);
/* The description that a new record gets; NULL where the op has none. */
const struct hpx_description *hpx_op_description(const struct hpx_store_op *op);
/* The job that an op brings, RESERVE's or ENQUEUE's; NULL: none. */
const struct hpx_job *hpx_op_job(const struct hpx_store_op *op);
/* A reader's decision: false where only a RESERVE can tell. */
bool hpx_change_peek(const struct hpx_found *found, const struct hpx_ask *ask,
		     const struct hpx_policy *policy, const struct hpx_moment *now,
		     struct hpx_decision *ret_decision);
/* The stored answer of a REPLAY cannot be read: the outcome counts as unknown. */
void hpx_decision_lose_answer(struct hpx_decision *decision);

#endif
