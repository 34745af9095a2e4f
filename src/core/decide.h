/* The decision: what a request with this key gets, given the record (or
 * none). One pure function; stores that hold the row call it inside their
 * transaction. */
#ifndef HPX_CORE_DECIDE_H
#define HPX_CORE_DECIDE_H

#include "core/policy.h"
#include "core/record.h"

/* X(name, text) — the text is the metric's label. */
#define HPX_DECISION_LIST(X) \
	X(EXECUTE, "created")       /* reserved or accepted, attempt 1 */ \
	X(EXECUTE_AGAIN, "retried") /* reserved, attempt + 1 */ \
	X(REPLAY, "replay")         /* completed: give the stored answer */ \
	X(IN_PROGRESS, "in_progress") \
	X(PENDING, "pending") /* accepted, its job is on its way */ \
	X(UNKNOWN, "unknown") \
	X(MISMATCH, "mismatch") \
	X(REFINGERPRINT, "refingerprint") /* ask again by the record's recipe */

enum hpx_decision_kind {
#define X(name, text) HPX_DECISION_##name,
	HPX_DECISION_LIST(X)
#undef X
		HPX_DECISION_COUNT
};

const char *hpx_decision_name(enum hpx_decision_kind kind);

/* What the request brings. */
struct hpx_ask {
	struct hpx_operation_id id;
	uint8_t tenant[HPX_SHA256_SIZE];
	struct hpx_token token; /* for the attempt it may start */
	uint8_t fingerprint[HPX_SHA256_SIZE];
	struct hpx_recipe_id recipe; /* by which the fingerprint was made */
	uint64_t owner;
};

struct hpx_decision {
	enum hpx_decision_kind kind;
	bool write;               /* `record` is new and must be made durable */
	struct hpx_record record; /* after the decision */
};

/* `record` NULL: there is none. Expiry is judged before the fingerprint; a
 * record whose token is the ask's own is this very reservation, made durable
 * by an earlier try. A lost lease becomes what the policy says. */
void hpx_decide(const struct hpx_record *record, const struct hpx_ask *ask,
		const struct hpx_policy *policy, const struct hpx_moment *now,
		struct hpx_decision *ret_decision);

#endif
