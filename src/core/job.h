/* A job's delivery, and the one function that changes its state.
 *
 *             claim               deliver
 *   queued ──────────▶ sending ───────────▶ done
 *     ▲  ▲               │ │ │                ▲
 *     │  └─ postpone ────┘ │ │ reject, budget │ deliver (late, same lease), apply
 *     │     lose, sweep    │ └────▶ dead      │
 *     │     (resendable)   │                  │
 *     │                    └─────▶ unknown ───┘
 *     └── unapply ◀── (lose, sweep) ┘
 *   Apply also completes a queued job that was sent before and turns out to have
 *   happened. Retry (dead, or unknown by force, to queued) and discard are an operator's
 *   moves. Requeue follows when a client's operation is executed again.
 *
 * Invariants:
 *  J1  claim is the only way into sending; it is durable before a byte leaves.
 *  J2  deliver, postpone, lose and reject match on the claim's token.
 *  J3  Once a sending may have happened (`unsure`), another one begins only
 *      before `resend_until_ms`, while the target still knows the key; without
 *      honours_keys, never. What the target is said to honour now counts, where
 *      that is less than it was.
 *  J4  dead is what certainly did not happen, or was refused; what may have
 *      happened and cannot be sent again is unknown. A 409 to a sending after
 *      an unsure one refuses nothing: the first may still be under way.
 */
#ifndef HPX_CORE_JOB_H
#define HPX_CORE_JOB_H

#include "core/decision.h"
#include "core/operation.h"

/* X(name, number in the store, text). The numbers are for ever. */
#define HPX_JOB_STATE_LIST(X) \
	X(QUEUED, 1, "queued") \
	X(SENDING, 2, "sending") \
	X(DONE, 3, "done") \
	X(UNKNOWN, 4, "unknown") \
	X(DEAD, 5, "dead") \
	X(DISCARDED, 6, "discarded")

enum hpx_job_state {
#define X(name, number, text) HPX_JOB_##name = number,
	HPX_JOB_STATE_LIST(X)
#undef X
		HPX_JOB_STATE_COUNT
};

/* X(name, text, whether the claim's token must match) */
#define HPX_JOB_MOVE_LIST(X) \
	X(CLAIM, "job_claimed", false) \
	X(DELIVER, "job_delivered", true) \
	X(POSTPONE, "job_postponed", true) /* proved not executed */ \
	X(LOSE, "job_outcome_lost", true)  /* sent, and no answer came */ \
	X(REJECT, "job_rejected", true)    /* refused for good */ \
	X(SWEEP, "job_lease_lost", false) \
	X(APPLY, "job_resolved_applied", false) \
	X(UNAPPLY, "job_resolved_not_applied", false) \
	X(DECLINE, "job_resolved_declined", false) /* it was sent, and refused */ \
	X(RETRY, "job_retried", false)             /* a person's */ \
	X(DISCARD, "job_discarded", false)         /* a person's */ \
	X(REQUEUE, "job_requeued", false)          /* its operation is tried again */

enum hpx_job_move {
#define X(name, text, token) HPX_JOB_MOVE_##name,
	HPX_JOB_MOVE_LIST(X)
#undef X
		HPX_JOB_MOVE_COUNT
};

const char *hpx_job_state_name(enum hpx_job_state state);
/* HPX_JOB_STATE_COUNT where there is no such state. */
enum hpx_job_state hpx_job_state_by_name(struct hpx_span name);
const char *hpx_job_move_name(enum hpx_job_move move);

/* A provider's own id: visible ASCII, cut to this. */
#define HPX_PROVIDER_ID_SIZE 128
bool hpx_provider_id_valid(struct hpx_span id);

/* Where the delivery of a job stands. Wall times judge what is due and what
 * may be sent again, the lease clock judges claims. */
struct hpx_delivery {
	int64_t number; /* the store's, for people: job 17 */
	struct hpx_operation_id operation;
	struct hpx_mark mark; /* with it, the operation's reference */
	enum hpx_job_state state;
	bool answers;                           /* its answer is the operation's (deliver: async) */
	bool unsure;                            /* a sending may have happened */
	uint32_t attempt;                       /* sendings begun */
	uint32_t budget;                        /* of those: begun before a person's retry */
	uint32_t status;                        /* of the last answer seen, 0 if none */
	struct hpx_token token;                 /* of the claim, or void */
	uint64_t owner;                         /* the process that claimed it */
	int64_t created_ms;                     /* wall */
	int64_t changed_ms;                     /* wall */
	int64_t due_ms;                         /* wall: not sent before */
	int64_t lease_until_ms;                 /* lease clock */
	int64_t first_sent_ms;                  /* wall; 0: never */
	int64_t resend_until_ms;                /* wall; 0: never again once unsure */
	char provider_id[HPX_PROVIDER_ID_SIZE]; /* "": not known */
};

/* What a move needs besides the delivery. */
struct hpx_job_args {
	struct hpx_moment now;
	struct hpx_token token;      /* the claim's; for claim, the new one */
	uint64_t owner;              /* claim */
	int64_t lease_ms;            /* claim */
	int64_t honours_keys_ms;     /* claim: how long the target remembers; 0: not */
	uint32_t attempts_max;       /* the budget; 0: not known here */
	int64_t delay_ms;            /* until it is due again; give it with every end */
	uint32_t status;             /* HTTP status seen, 0 if none */
	struct hpx_span provider_id; /* where the answer gave one */
	bool owner_dead;             /* sweep: the owner is known to be gone */
	bool force;                  /* retry of an unknown */
	bool unsent;                 /* postpone: for our own sake, before the target was
				      * even tried: it is no attempt */
};

/* Changes `delivery` or leaves it untouched: HPX_STALE, HPX_REFUSED as for
 * records. A claim of what may not be sent any more makes it unknown (J3), or
 * dead where its budget is spent and nothing happened, and is HPX_OK: look at
 * the state. The same move again by the same claim is HPX_OK and changes
 * nothing. */
enum hpx_status hpx_job_move(struct hpx_delivery *delivery, enum hpx_job_move move,
			     const struct hpx_job_args *args);

/* Whether a claim may take it now. A time further ahead than any backoff or
 * Retry-After that is heeded is a clock that was set back, and counts as due. */
#define HPX_JOB_AHEAD_MAX_MS ((int64_t)8 * 24 * 60 * 60 * 1000)
bool hpx_job_due(const struct hpx_delivery *delivery, const struct hpx_moment *now);
/* False where what came from a store makes no delivery: it counts as unknown. */
bool hpx_job_valid(const struct hpx_delivery *delivery);

/* The key that the target is sent: the hash of the operation's reference and
 * the job's name, as 64 hexadecimal digits. */
#define HPX_JOB_KEY_SIZE 65
enum hpx_status hpx_job_key(const struct hpx_operation_id *operation,
			    const struct hpx_mark *mark, struct hpx_span name,
			    char ret_key[HPX_JOB_KEY_SIZE]);

/* ---- what an answer means ---- */

/* How far a sending came; the same words as egress. */
enum hpx_sent { HPX_SENT_NOTHING,
		HPX_SENT_NO_ANSWER,
		HPX_SENT_ANSWERED };

/* The move that follows from a sending's end: DELIVER for 2xx (and, where the
 * answer is the operation's, for whatever is a final answer of a route's:
 * other 3xx and 4xx); POSTPONE where nothing happened (nothing was sent; 408,
 * 425, 429, 503 with Retry-After; 401, 403, 407, 421: our credentials, which a
 * person mends); LOSE where nobody knows (no answer, 502, 504, what is no final
 * status at all); REJECT for what will never be taken (other 3xx, 4xx of a job
 * whose answer nobody waits for). What another 5xx means, the target's
 * `server_error` says: POSTPONE (it was rolled back), the end (it is the final
 * answer), or LOSE. */
enum hpx_job_move hpx_job_judge(enum hpx_sent sent, unsigned status, bool has_retry_after,
				bool answers, enum hpx_server_error server_error);
/* The same where the request left more than once within one sending, and the
 * answer is the last one's: "not now" and 409 say nothing of the one before. */
enum hpx_job_move hpx_job_judge_resent(enum hpx_job_move judged, unsigned status);

#endif
