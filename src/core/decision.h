/* The decision: what a request with this key gets, given the record (or none) and the
 * route's policy: the choices that are left to the operator. One pure function;
 * stores that hold the row call it inside their transaction. */
#ifndef HPX_CORE_DECISION_H
#define HPX_CORE_DECISION_H

#include "core/record.h"

/* ---- the policy ---- */

enum hpx_key_rule { HPX_KEY_REQUIRED,
		    HPX_KEY_OPTIONAL,
		    HPX_KEY_IGNORE };
enum hpx_scope_rule { HPX_SCOPE_PATH,
		      HPX_SCOPE_ROUTE,
		      HPX_SCOPE_TENANT };
/* A 5xx other than 502, 503 with Retry-After, 504. */
enum hpx_server_error { HPX_SERVER_ERROR_RETRY,
			HPX_SERVER_ERROR_REPLAY,
			HPX_SERVER_ERROR_UNKNOWN };
/* A lease, or an answer, that was lost. `resume` goes on after the last recovery
 * point; it needs an upstream that is fenced or honours keys itself. */
enum hpx_on_lost { HPX_ON_LOST_UNKNOWN,
		   HPX_ON_LOST_RESUME };
/* Whose word ends an attempt: the upstream's HTTP answer, or only what the
 * application committed in its own transaction. */
enum hpx_completes { HPX_COMPLETES_UPSTREAM,
		     HPX_COMPLETES_APPLICATION };
/* A retry while the first request is under way. */
enum hpx_concurrent { HPX_CONCURRENT_CONFLICT,
		      HPX_CONCURRENT_WAIT,
		      HPX_CONCURRENT_ACCEPTED };
/* now: the request goes upstream and its answer comes back; async: it is kept
 * as a job for a target, and answered with 202. */
enum hpx_deliver { HPX_DELIVER_NOW,
		   HPX_DELIVER_ASYNC };
/* A key whose operation happened and has expired: it is executed as a new one, or
 * refused for as long as that can be seen. */
enum hpx_expired { HPX_EXPIRED_EXECUTE,
		   HPX_EXPIRED_REFUSE };
enum hpx_keep { HPX_KEEP_ANSWER,
		HPX_KEEP_STATUS };

/* Whether a request may go over a connection that has carried others. */
enum hpx_reuse { HPX_REUSE_ALLOW,
		 HPX_REUSE_NEVER };

struct hpx_policy {
	enum hpx_key_rule key;
	enum hpx_scope_rule scope;
	enum hpx_server_error server_error;
	enum hpx_on_lost on_lost;
	enum hpx_completes completes;
	bool fenced;             /* the upstream refuses what an old attempt still sends */
	int64_t honours_keys_ms; /* how long the upstream itself remembers keys; 0: not */
	enum hpx_concurrent concurrent;
	enum hpx_keep keep;
	enum hpx_reuse reuse;
	enum hpx_deliver deliver;
	enum hpx_expired expired;
	int64_t retention_ms;
	int64_t retention_max_ms; /* how far the upstream may extend it; 0: not at all */
	int64_t tombstone_ms;     /* how long a key is known after its expiry; 0: until it is reaped */
	int64_t lease_ms;
	int64_t wait_ms;
};

const char *hpx_key_rule_name(enum hpx_key_rule rule);
const char *hpx_scope_rule_name(enum hpx_scope_rule rule);
const char *hpx_server_error_name(enum hpx_server_error choice);
const char *hpx_on_lost_name(enum hpx_on_lost choice);
const char *hpx_completes_name(enum hpx_completes choice);
const char *hpx_concurrent_name(enum hpx_concurrent choice);
const char *hpx_deliver_name(enum hpx_deliver choice);
const char *hpx_keep_name(enum hpx_keep choice);
const char *hpx_expired_name(enum hpx_expired choice);

/* ---- the decision ---- */

/* X(name, text) — the text is the metric's label. */
#define HPX_DECISION_LIST(X) \
	X(EXECUTE, "created")       /* reserved or accepted, attempt 1 */ \
	X(EXECUTE_AGAIN, "retried") /* reserved, attempt + 1 */ \
	X(REPLAY, "replay")         /* completed: give the stored answer */ \
	X(IN_PROGRESS, "in_progress") \
	X(PENDING, "pending") /* accepted, its job is on its way */ \
	X(UNKNOWN, "unknown") \
	X(MISMATCH, "mismatch") \
	X(EXPIRED, "expired")             /* it happened, its answer has expired, and it is not executed again */ \
	X(REFINGERPRINT, "refingerprint") /* ask again by the record's recipe */

enum hpx_decision_kind {
#define X(name, text) HPX_DECISION_##name,
	HPX_DECISION_LIST(X)
#undef X
		HPX_DECISION_COUNT
};

const char *hpx_decision_name(enum hpx_decision_kind kind);

/* What the request brings to the decision. */
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
	bool after_expiry;        /* EXECUTE: the key's operation happened before, and has expired */
	bool lost;                /* the earlier attempt's lease was found lost, with `write` */
	struct hpx_record record; /* after the decision */
};

/* `record` NULL: there is none. Expiry is judged before the fingerprint; a
 * record whose token is the ask's own is this very reservation, made durable
 * by an earlier try. A lost lease becomes what the policy says. */
void hpx_decide(const struct hpx_record *record, const struct hpx_ask *ask,
		const struct hpx_policy *policy, const struct hpx_moment *now,
		struct hpx_decision *ret_decision);

#endif
