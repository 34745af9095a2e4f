/* The record of an operation, and the one function that changes its state.
 *
 *            reserve                   complete
 *  (none) ─────────────▶ in_progress ────────────▶ completed
 *    ▲                     ▲  │  │                    ▲
 *    │ release             │  │  │ fail               │ apply,
 *    │ (first attempt)     │  │  └──────▶ failed_     │ complete (late, same lease)
 *    └─────────────────────┼──┤           retryable   │
 *                          │  │              │  ▲     │
 *                          └──┼──────────────┘  │     │
 *                     reserve │ lose            │ unapply, fail (same lease)
 *                             └──────▶ unknown ─┴─────┘
 *
 * An operation that is delivered later (deliver: async) is accepted instead of
 * reserved, and stays pending while its job is on its way: the job's answer
 * completes it, the job's loss makes it unknown, requeue brings it back from
 * there. Abandon ends it when its time is over: completed where nothing was
 * ever sent, else unknown.
 *
 * Lose and sweep of an attempt under way lead to unknown only where the record's
 * when_lost says so; to failed_retryable, with the recovery point, where the
 * attempt may be resumed or is proved not executed by the void token. Fail and
 * release lead to unknown where the application committed a part (advance) that
 * nobody may resume.
 * Apply also completes what failed, where it turns out to have happened.
 * Conclude ends an attempt that only the application could complete.
 * Restore makes the record of an operation that happened and that this store does not
 * know, because the store is an older copy: completed at once, without an attempt.
 *
 * Invariants (the guarantees of README.md, as this file keeps them):
 *  R1  reserve is the only way into in_progress, accept the only one into
 *      pending, but for an unknown one that is requeued; both are refused on a
 *      live in_progress, pending, completed or unknown record (guarantee 2).
 *  R2  complete, fail, release, lose, renew, advance and conclude match on the
 *      lease token; an old or void token changes nothing (guarantee 6).
 *  R3  Nothing leaves completed but forget and expiry.
 *  R4  Only completed and failed_retryable expire; entering either sets the
 *      expiry to at least now + retention (guarantee 8). Of a pending record
 *      the same time says when it is abandoned. Extend moves the expiry of a
 *      record that has not expired, and never to an earlier time.
 *  R5  Leaving in_progress for failed_retryable, and unknown by unapply,
 *      makes the token void.
 *  R6  Whatever ends an attempt other than well names its last_error; an operation
 *      that is settled, attempted again or completed keeps it.
 *  R7  A restored record has no token, no stored answer and no fingerprint: its
 *      request is not known, so every retry learns that it happened and no more
 *      (guarantee 5).
 */
#ifndef HPX_CORE_RECORD_H
#define HPX_CORE_RECORD_H

#include "base/bytes.h"
#include "core/fingerprint.h"
#include "core/operation.h"

/* X(name, number in the store, text). The numbers are for ever. */
#define HPX_STATE_LIST(X) \
	X(NONE, 0, "none") \
	X(IN_PROGRESS, 1, "in_progress") \
	X(FAILED_RETRYABLE, 2, "failed_retryable") \
	X(COMPLETED, 3, "completed") \
	X(UNKNOWN, 4, "unknown") \
	X(PENDING, 5, "pending")

enum hpx_state {
#define X(name, number, text) HPX_STATE_##name = number,
	HPX_STATE_LIST(X)
#undef X
		HPX_STATE_COUNT
};

/* X(name, text, whether the lease token must match) */
#define HPX_MOVE_LIST(X) \
	X(RESERVE, "reserved", false) \
	X(COMPLETE, "completed", true) \
	X(FAIL, "not_executed", true) \
	X(RELEASE, "released", true) \
	X(LOSE, "outcome_lost", true) \
	X(RENEW, "renewed", true) \
	X(ADVANCE, "advanced", true) \
	X(CONCLUDE, "not_committed", true) \
	X(SWEEP, "lease_lost", false) \
	X(APPLY, "resolved_applied", false) \
	X(UNAPPLY, "resolved_not_applied", false) \
	X(FORGET, "forgotten", false) \
	X(ACCEPT, "accepted", false) \
	X(REQUEUE, "requeued", false) \
	X(ABANDON, "abandoned", false) \
	X(EXTEND, "extended", false) \
	X(RESTORE, "restored", false)

enum hpx_move {
#define X(name, text, token) HPX_MOVE_##name,
	HPX_MOVE_LIST(X)
#undef X
		HPX_MOVE_COUNT
};

/* What becomes of an attempt whose lease, or whose answer, is lost. X(name,
 * number in the store). The numbers are for ever. */
#define HPX_WHEN_LOST_LIST(X) \
	X(UNKNOWN, 0) /* nobody can tell */ \
	X(RESUME, 1)  /* it may run again, after its recovery point */ \
	X(VOID, 2)    /* only the application completes: with its token void,\
			* it has not and never can */

enum hpx_when_lost {
#define X(name, number) HPX_WHEN_LOST_##name = number,
	HPX_WHEN_LOST_LIST(X)
#undef X
		HPX_WHEN_LOST_COUNT
};

/* What the last attempt that did not end well came to. X(name, text); the text is what
 * rows, pages, lists and metrics say, for ever. It tells people, and decides nothing. */
#define HPX_LAST_ERROR_LIST(X) \
	X(NONE, "") \
	X(LEASE_LOST, "lease_lost")                     /* nobody renewed it, or its process is gone */ \
	X(UPSTREAM_UNREACHABLE, "upstream_unreachable") /* not a byte could be sent */ \
	X(UPSTREAM_RESET, "upstream_reset")             /* sent; the connection ended before the answer did */ \
	X(UPSTREAM_TIMEOUT, "upstream_timeout")         /* sent; no answer in time */ \
	X(UPSTREAM_INVALID, "upstream_invalid")         /* sent; what came back is no answer */ \
	X(NOT_SENT, "not_sent")                         /* hapax gave up before the first byte */ \
	X(INTERRUPTED, "interrupted")                   /* sent; hapax gave up before the answer */ \
	X(NOT_EXECUTED, "not_executed")                 /* the application said so */ \
	X(NOT_COMMITTED, "not_committed")               /* only the application completes, and it did not */ \
	X(OUTCOME_UNKNOWN, "outcome_unknown")           /* whoever held the lease does not know */ \
	X(DELIVERY_LOST, "delivery_lost")               /* the job that brings the answer is lost */ \
	X(STATUS_401, "status_401") \
	X(STATUS_403, "status_403") \
	X(STATUS_407, "status_407") \
	X(STATUS_408, "status_408") \
	X(STATUS_421, "status_421") \
	X(STATUS_425, "status_425") \
	X(STATUS_429, "status_429") \
	X(STATUS_500, "status_500") \
	X(STATUS_501, "status_501") \
	X(STATUS_502, "status_502") \
	X(STATUS_503, "status_503") \
	X(STATUS_504, "status_504") \
	X(STATUS_5XX, "status_5xx")     /* any other of these */ \
	X(STATUS_OTHER, "status_other") /* the upstream's Hapax-Outcome made it no success */ \
	X(OTHER, "other")               /* a row says something that this version does not know */

enum hpx_last_error {
#define X(name, text) HPX_LAST_ERROR_##name,
	HPX_LAST_ERROR_LIST(X)
#undef X
		HPX_LAST_ERROR_COUNT
};

/* The name of a recovery point travels in a header. */
#define HPX_POINT_SIZE 64

const char *hpx_state_name(enum hpx_state state);
/* HPX_STATE_COUNT where there is no such state. */
enum hpx_state hpx_state_by_name(struct hpx_span name);
const char *hpx_move_name(enum hpx_move move);
const char *hpx_last_error_name(enum hpx_last_error error);
/* OTHER where there is no such error. */
enum hpx_last_error hpx_last_error_by_name(struct hpx_span name);
/* Of an answer that did not complete its operation. */
enum hpx_last_error hpx_last_error_of_status(uint32_t status);

/* When something is decided. Wall time judges expiry, the lease clock judges
 * leases (the boot clock on SQLite, the database's own on PostgreSQL). */
struct hpx_moment {
	int64_t wall_ms;
	int64_t lease_ms;
	bool hold_expiry; /* the wall clock is not to be trusted */
};

struct hpx_record {
	struct hpx_operation_id id;
	uint8_t tenant[HPX_SHA256_SIZE]; /* SHA-256 of the tenant's name */
	struct hpx_mark mark;            /* with the id, the reference */
	struct hpx_token token;          /* the current attempt's, or void */
	uint8_t fingerprint[HPX_SHA256_SIZE];
	struct hpx_recipe_id recipe;
	enum hpx_state state;
	uint32_t attempt;
	uint32_t status;    /* of the last answer seen, 0 if none; COMPLETED and 0: it happened,
			     * and nobody saw its answer */
	bool kept;          /* completed: headers and body are stored */
	uint64_t owner;     /* the process that holds the lease */
	int64_t created_ms; /* wall */
	int64_t changed_ms; /* wall */
	int64_t expires_ms; /* wall; 0: does not expire; pending: is abandoned then */
	int64_t retention_ms;
	int64_t tombstone_ms;           /* how long a completed one is known after its expiry,
					 * without its answer; 0: until it is reaped */
	int64_t lease_until_ms;         /* lease clock */
	enum hpx_when_lost when_lost;   /* the current attempt's */
	bool advanced;                  /* it committed a part: never "not executed" */
	enum hpx_last_error last_error; /* of the last attempt that did not end well; success
					 * does not clear it */
	char point[HPX_POINT_SIZE];     /* the last recovery point; "": none */
};

/* What a move needs besides the record. */
struct hpx_move_args {
	struct hpx_moment now;
	struct hpx_token token;       /* the attempt's; for reserve, the new one */
	struct hpx_mark mark;         /* restore: of the reference */
	uint32_t status;              /* HTTP status seen, 0 if none */
	bool kept;                    /* complete, apply: the answer is stored whole */
	uint64_t owner;               /* reserve */
	int64_t lease_ms;             /* reserve, renew: how long */
	int64_t retention_ms;         /* reserve, restore; complete: at least so long, 0: the
				      * record's; otherwise the record's */
	int64_t tombstone_ms;         /* reserve, restore */
	int64_t until_ms;             /* extend: wall */
	bool owner_dead;              /* sweep: the owner is known to be gone */
	bool force;                   /* forget; abandon before its time; apply to what was
				      * thought not to have happened */
	bool sent;                    /* abandon: something may have happened */
	enum hpx_last_error error;    /* of an end that is no success; NONE: by the status, or
				      * by the move */
	enum hpx_when_lost when_lost; /* reserve */
	struct hpx_span point;        /* advance: the phase that is done; empty: as it was */
};

/* Changes `record` (state NONE stands for no record) or leaves it untouched:
 * HPX_STALE    the token is not the record's (also: there is no record);
 * HPX_REFUSED  the move is not allowed in this state (or, for sweep, the lease
 *              still holds; for forget, in_progress and unknown want force).
 * The same move again by the same lease is HPX_OK and changes nothing. A
 * record that reaches NONE is to be deleted. */
enum hpx_status hpx_record_move(struct hpx_record *record, enum hpx_move move,
				const struct hpx_move_args *args);

/* 1 to 63 bytes of visible ASCII. */
bool hpx_point_valid(struct hpx_span point);

bool hpx_record_expired(const struct hpx_record *record, const struct hpx_moment *now);
/* When nothing of a record that expires need be known any more: its expiry, or the end
 * of its tombstone. */
int64_t hpx_record_end_ms(const struct hpx_record *record);
/* A pending record whose time is over. */
bool hpx_record_overdue(const struct hpx_record *record, const struct hpx_moment *now);
bool hpx_record_lease_lost(const struct hpx_record *record, const struct hpx_moment *now);

/* False where a record that came from a store breaks what every record keeps
 * (a state that does not exist, a live lease without a token, an unknown that
 * expires …): it cannot be read, so it counts as unknown, never as absent. */
bool hpx_record_valid(const struct hpx_record *record);

#endif
