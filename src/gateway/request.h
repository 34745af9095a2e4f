/* One request's way through the gateway.
 *
 * A request walks through named steps; each step returns the next one, and
 * hpx_request_go is the one short loop that runs them. Bytes of the client, events of
 * the exchange with the upstream, messages to the event loop, a granted connection slot
 * and the tick enter the loop of steps; nothing enters it from inside a step.
 *
 *   ROUTE ─▶ BUILTIN ─▶ TENANT ─▶ OPERATION ─▶ FIND ─▶ FOUND ─▶ SHOW
 *     │         └▶ BODY ─▶ WEBHOOK ─▶ WEBHOOK_JOBS ─▶ WEBHOOK_RULED
 *     ├▶ PASS ─▶ PASS_ON
 *     └▶ KEY ─▶ TENANT ─▶ BODY ─▶ FINGERPRINT ─▶ LOOKUP ─▶ SLOT ─▶ RESERVE ─▶ RESERVED
 *                                      ▲            │                            │
 *                                      └─ (recipe) ─┤                         FORWARD
 *                                                   ▼                            │
 *                                                ANSWER ◀── STORED ◀── STORE ◀───┘
 *                                                   ▲          │
 *                                                   │          ▼ (the application answered
 *                                         COMMITTED_READ ◀─ COMMITTED       for itself)
 *
 * Where the key may stand in the body (`key_from`), the way begins KEY ─▶ BODY ─▶
 * KEY_IN_BODY ─▶ TENANT.
 *
 * A connection slot is the right to one connection to the upstream; for want of
 * one, a request waits in a queue before anything is reserved (wait.c). On a
 * route with `deliver: async` the way ends with the reservation: the job is in
 * it, and the answer is 202 (async.c).
 *
 * Waiting. A step that has to wait says by hpx_request_await (or _submit, or
 * _query) what for, until when, the step that takes the result and the step that
 * answers when it is late; it returns HPX_NEXT_WAIT.
 *
 *   waits for │ resumed by                          │ when late, or at the end of a drain
 *   ──────────┼─────────────────────────────────────┼────────────────────────────────────
 *   HEAD      │ the connection                      │ READ_LATE (the connection's deadline)
 *   BODY      │ hpx_request_take_body               │ READ_LATE (the connection's deadline)
 *   SLOT      │ the slot's `granted`                │ NO_SLOT, PASS_REFUSED
 *   RESERVE   │ the op's message                    │ RESERVE_LATE; the result: hpx_guard_late
 *   OTHER     │ the waiter's message                │ WAIT_OVER
 *   UPSTREAM  │ the exchange's events               │ (the exchange has timers of its own;
 *             │                                     │ a drain: hpx_attempt_abandon)
 *   STORE     │ the op's message                    │ STORE_LATE (a drain waits for the store);
 *             │                                     │ the result: hpx_settle_late
 *   FLOW      │ the exchange's events               │ (the same timers; a drain cuts it)
 *   PASS      │ the exchange's events, bytes        │ (the same)
 *   QUERY     │ the message of an op, a query of    │ the step that the waiting step names;
 *             │ the store, a subrequest, or a       │ the result is ignored
 *             │ fingerprint made by another thread  │
 *
 * A message names what it was sent for (struct hpx_resume). It resumes the request
 * only while the request waits for exactly that; otherwise the wait is over, and
 * the message is too late: that is checked in one place, `arrived` in request.c.
 *
 * A request may outlive its client (the attempt goes on) and its answer (the
 * store is still being told): it lives as long as somebody holds it. */
#ifndef HPX_GATEWAY_REQUEST_H
#define HPX_GATEWAY_REQUEST_H

#include "base/clock.h"
#include "base/crash_point.h"
#include "core/operation.h"
#include "core/outcome.h"
#include "gateway/access_line.h"
#include "gateway/downstream.h"
#include "gateway/gateway.h"
#include "gateway/store_query.h"
#include "gateway/subrequest.h"
#include "http/message.h"
#include "http/problem.h"
#include "http/target.h"
#include "http/trace_context.h"

/* X(step, function): hpx_step_<function> runs the step. */
#define HPX_STEP_LIST(X) \
	/* admit.c */ \
	X(ROUTE, route) \
	X(KEY, key) \
	X(KEY_IN_BODY, key_in_body) /* the body is there, and may have the key */ \
	X(TENANT, tenant) \
	X(READ_LATE, read_late) /* the head or the body did not come in time */ \
	/* subrequest.c */ \
	X(IDENTIFIED, identified)                 /* the service named the caller, or not */ \
	X(TENANT_UNAVAILABLE, tenant_unavailable) /* the service did not answer in time */ \
	/* fingerprint_work.c */ \
	X(FINGERPRINTED, fingerprinted) /* by another thread */ \
	/* guard.c */ \
	X(BODY, body) \
	X(BODY_TOO_LARGE, body_too_large) \
	X(BODY_MALFORMED, body_malformed) \
	X(OVERLOADED, overloaded) /* no memory for the request */ \
	X(FINGERPRINT, fingerprint) \
	X(LOOKUP, lookup) \
	X(SLOT, slot) \
	X(NO_SLOT, no_slot) /* no connection slot in time */ \
	X(RESERVE, reserve) \
	X(RESERVED, reserved) \
	X(RESERVE_LATE, reserve_late) \
	X(STORE_UNAVAILABLE, store_unavailable) \
	X(UNKNOWN_TOLD, unknown_told) /* the outcome is unknown; the next probe is known */ \
	X(UNKNOWN_LATE, unknown_late) \
	/* wait.c */ \
	X(WAIT_OVER, wait_over) \
	/* forward.c */ \
	X(FORWARD, forward) \
	/* settle.c */ \
	X(STORE, store) \
	X(STORED, stored) \
	X(STORE_LATE, store_late) \
	X(COMMITTED, committed) \
	X(COMMITTED_READ, committed_read) \
	X(ANSWER, answer) \
	/* pass.c */ \
	X(PASS, pass) \
	X(PASS_ON, pass_on) \
	X(PASS_REFUSED, pass_refused) \
	/* builtin.c, builtin_operation.c */ \
	X(BUILTIN, builtin) \
	X(OPERATION, operation) \
	X(FIND, find) \
	X(FOUND, found) \
	X(SHOW, show) \
	X(SHOW_LATE, show_late) \
	/* webhook.c */ \
	X(WEBHOOK, webhook) \
	X(WEBHOOK_KEYED, webhook_keyed) \
	X(WEBHOOK_JOBS, webhook_jobs) \
	X(WEBHOOK_RULED, webhook_ruled) \
	X(WEBHOOK_LATE, webhook_late)

enum hpx_next {
#define X(step, function) HPX_NEXT_##step,
	HPX_STEP_LIST(X)
#undef X
		HPX_NEXT_COUNT,
	HPX_NEXT_WAIT, /* the step has said what the request waits for */
	HPX_NEXT_DONE, /* answered, or nobody is left to answer */
};

#define X(step, function) enum hpx_next hpx_step_##function(struct hpx_request *request);
HPX_STEP_LIST(X)
#undef X

/* ---- the parts of a request ---- */

/* What the request is for, apart from being passed on or guarded. */
enum hpx_purpose {
	HPX_PURPOSE_UPSTREAM,
	HPX_PURPOSE_OPERATION, /* asks what became of an operation */
	HPX_PURPOSE_WEBHOOK,   /* a provider's message */
};

/* The request as it came. The connection fills the head's bytes and fields, the
 * steps ROUTE and BUILTIN the rest; nothing changes afterwards, and all of it is
 * valid until the request is freed. */
struct hpx_request_head {
	char peer[48];                      /* the client's address, or "unix" */
	uint64_t peer_hash;                 /* of the address that limits count, by hpx_limit_peer; 0: none */
	bool peer_known;                    /* `peer_hash` is filled */
	bool secure;                        /* it came over TLS */
	bool local;                         /* from this machine, to a listener that only this machine reaches */
	struct hpx_certificate certificate; /* the client's, where it names the tenant; or empty */
	struct hpx_buffer bytes;
	struct hpx_http_head http; /* points into `bytes` and the arena */
	enum hpx_http_error error; /* the head cannot be read */
	struct hpx_target target;
	struct hpx_span host;
	const struct hpx_route *route; /* the settings'; NULL on builtin paths */
	enum hpx_purpose purpose;
	const struct hpx_webhook *webhook; /* PURPOSE_WEBHOOK: whose message it is */
	bool observed;                     /* observe mode: nothing is altered or refused */
};

/* What a request holds of shares (share.h), until it is freed. */
struct hpx_held {
	struct hpx_shares *shares; /* NULL: nothing */
	size_t by_peer;
	size_t by_tenant;
};

/* The body of a guarded request or of a webhook's message. Filled while the
 * request waits for BODY, valid from then until the request is freed. What is
 * passed on is never here. */
struct hpx_request_body {
	struct hpx_buffer bytes;
	size_t charged_bytes; /* of the memory for bodies; the answer's body too */
	struct hpx_held held; /* of that, what the request's own body has of the shares */
	bool whole;           /* nothing more of it comes */
	bool before_key;      /* read before the key is known, because it may have the key */
};

/* By which recipe the fingerprint was made. */
enum hpx_recipe_source {
	HPX_RECIPE_NONE, /* there is no fingerprint yet */
	HPX_RECIPE_ROUTE,
	HPX_RECIPE_RECORD, /* the record was made by another recipe than the route's */
};

/* A message to the request's own loop that ends one of its waits. It holds the
 * request from hpx_resume_arm until it is handled or disarmed. */
struct hpx_resume {
	struct hpx_message message;
	struct hpx_request *request; /* NULL: nothing is under way */
};

/* The limit that a request has met. */
struct hpx_limit_met {
	enum hpx_limited limit;
	int64_t wait_us; /* until there is room */
};

/* A demand on new work that the request does not meet, such as a key that is too short.
 * It may begin nothing; what is known of its key is still told. */
struct hpx_new_refused {
	enum hpx_problem_code code;
	const char *detail;         /* NULL: the request meets all demands */
	struct hpx_limit_met limit; /* of rate_limited */
};

/* Whose request it is and what it means. KEY, TENANT and FINGERPRINT fill it (or
 * OPERATION, or WEBHOOK); valid from then until the request is freed. Its texts
 * are in the head or from the arena. */
struct hpx_request_identity {
	struct hpx_key key;
	bool has_key;
	struct hpx_new_refused new_refused;
	bool new_counted;     /* taken from the budgets for new keys */
	uint64_t tenant_hash; /* as limits know it; 0: not needed so far */
	struct hpx_span tenant;
	struct hpx_ask ask;
	struct hpx_mark sought; /* of a reference; void: sought by key */
	struct hpx_description description;
	struct hpx_recipe recipe;
	enum hpx_recipe_source recipe_source;
	/* The authorisation subrequest whose result the request waits for. */
	struct hpx_inquiry *inquiry; /* under the lock of subrequest.c, like the next */
	struct hpx_request *inquiry_next;
	struct hpx_resume inquired;
	struct hpx_identity caller; /* from IDENTIFIED on */
};

/* What a RESERVE may do. A request that has waited for another one only asks,
 * whatever stands here. */
enum hpx_reserve_mode {
	HPX_RESERVE_BEGIN,            /* may begin an attempt */
	HPX_RESERVE_ASK_BEFORE_QUEUE, /* only asks: a replay never waits for a connection */
	HPX_RESERVE_BEGIN_ASKED,      /* may begin one; asked before, the store knew nothing */
	HPX_RESERVE_ASK_WITHOUT_SLOT, /* only asks: there is no slot, and there will be none */
	HPX_RESERVE_ASK_REFUSED,      /* only asks: identity.new_refused says why */
};

/* The store's view of the operation. LOOKUP or RESERVED fill record and stored
 * answer (FOUND: the record); each later op of this request updates the record.
 * `stored` is freed with the request. */
struct hpx_reservation {
	enum hpx_reserve_mode mode;
	struct hpx_store_op op; /* one at a time; the committer's between submit and `op_done` */
	struct hpx_resume op_done;
	int64_t asked_boot_ms;            /* when RESERVE was submitted */
	struct hpx_cache_mark cache_mark; /* when the store was asked last */
	struct hpx_record record;
	int64_t row;                    /* where the reservation is, for the store */
	struct hpx_answer *stored;      /* of a replay, or committed by the application */
	struct hpx_job job;             /* deliver: async; points into head, body and attempt.head */
	struct hpx_route_key route_key; /* of a route matched by key */
};

enum hpx_wait_kind {
	HPX_WAIT_HEAD,     /* for the rest of its head; no step has run */
	HPX_WAIT_NOTHING,  /* steps are running */
	HPX_WAIT_BODY,     /* for its body */
	HPX_WAIT_SLOT,     /* for a connection slot; nothing has happened */
	HPX_WAIT_RESERVE,  /* for the store's decision */
	HPX_WAIT_OTHER,    /* for another request's answer */
	HPX_WAIT_UPSTREAM, /* the attempt is under way */
	HPX_WAIT_STORE,    /* for its outcome to be durable */
	HPX_WAIT_FLOW,     /* its outcome is durable, the answer flows */
	HPX_WAIT_PASS,     /* unguarded, both ways flow */
	HPX_WAIT_QUERY,    /* for the store or a service, and nothing depends on it */
	HPX_WAIT_OVER,     /* no more: answered, or the client is gone */
};

/* What the request waits for, and how it goes on. Written by hpx_request_await and
 * hpx_request_go only. */
struct hpx_request_wait {
	enum hpx_wait_kind kind;
	const struct hpx_resume *by; /* the message that ends it; NULL: something else does */
	uint64_t deadline_ms;        /* loop time, 0: none */
	enum hpx_next result;        /* the step that takes the result */
	enum hpx_next late;          /* the step that answers without it */
	/* QUERY, where it is one of the store; its result is freed with the request. */
	struct hpx_store_query query;
	struct hpx_resume query_done;
	/* OTHER: valid from the first hpx_wait_for until the request is over. */
	struct hpx_waiter waiter;
	struct hpx_resume woken; /* armed: in the wait list, or woken */
	uint64_t until_ms;
	struct hpx_held held; /* OTHER: a place among the waiters */
	unsigned applied_s;   /* of Prefer: wait; 0: none */
	bool waited;          /* has waited for another request: never the executor */
};

/* The one attempt that this request makes. SLOT fills the slot, FORWARD the rest;
 * the exchange lives until on_end, on_failed or hpx_attempt_cancel. A request
 * that is passed on has slot, exchange and head only. */
struct hpx_attempt {
	struct hpx_slot slot; /* until the exchange takes it over */
	struct hpx_exchange *exchange;
	struct hpx_buffer head;      /* for the upstream; async: the job's header lines */
	struct hpx_store_op renewal; /* of the lease */
	struct hpx_resume renewed;
	uint64_t renew_at_ms;
	/* Known when the answer's head has come, or the answer is lost. */
	enum hpx_outcome outcome;
	const char *outcome_reason; /* of an answer; static */
	bool outcome_assumed;       /* by server_error alone */
	struct hpx_exchange_failure failure;
};

/* The upstream's answer. hpx_request_answer_move checks the moves:
 *
 *   COLLECTING ─▶ COLLECTED
 *       ├──────▶ TOO_LATE
 *       ├──────▶ LOST
 *       ├──────▶ HELD_BACK ─▶ HELD_BACK_LOST
 *       │            ▼
 *       └────────▶ FLOWING                     any but FLOWING ─▶ COMMITTED */
enum hpx_answer_state {
	HPX_ANSWER_COLLECTING,     /* as far as it has come, in `body` */
	HPX_ANSWER_COLLECTED,      /* whole */
	HPX_ANSWER_TOO_LATE,       /* the lease was too old to send anything */
	HPX_ANSWER_LOST,           /* no complete answer: attempt.failure says why */
	HPX_ANSWER_HELD_BACK,      /* will not be kept whole; waits for its outcome to be durable */
	HPX_ANSWER_HELD_BACK_LOST, /* the same, and the rest of it does not come */
	HPX_ANSWER_FLOWING,        /* its head was handed to the client */
	HPX_ANSWER_COMMITTED,      /* the application committed its own: reservation.stored */
	HPX_ANSWER_STATE_COUNT
};

/* Filled by the exchange's events, from the answer's head on; the buffers stay
 * until the request is freed, because the store may still read them. */
struct hpx_request_answer {
	enum hpx_answer_state state;
	struct hpx_buffer head;      /* for the client */
	struct hpx_buffer kept_head; /* the fields for the store */
	struct hpx_buffer body;
	unsigned status;
	int64_t retention_ms; /* by Hapax-Retention: to be kept so long; 0: as the route says */
	enum hpx_http_framing framing;
	bool has_length;
	uint64_t length;
	struct hpx_answer to_store; /* points into the buffers above */
};

enum hpx_tunnel {
	HPX_TUNNEL_NONE,
	HPX_TUNNEL_ASKED, /* an upgrade was asked for */
	HPX_TUNNEL_OPEN,
	HPX_TUNNEL_CLIENT_ENDED, /* the client sends no more, the upstream may */
};

/* A request that is passed on; from PASS to the end of its exchange. */
struct hpx_request_pass {
	enum hpx_tunnel tunnel;
	struct hpx_held held;              /* a tunnel */
	struct hpx_observed_key *observed; /* observe mode; from the arena */
};

/* A webhook's message; from WEBHOOK to its answer. */
struct hpx_request_webhook {
	struct hpx_ruling_update ruling;
	enum hpx_job_state job_state; /* of the job it is about, before the ruling */
};

/* The fingerprint of a large body, while a thread makes it. */
struct hpx_request_fingerprint {
	uv_work_t work;
	struct hpx_request *next; /* in shard->fingerprints */
	struct hpx_resume made;
	enum hpx_status status;
};

/* From when to when something lasted, in microseconds of the boot clock as the loop reads
 * it once in a turn (hpx_loop_boot_us). `from_us` is 0: it was not begun; `to_us` is 0: it
 * has not ended. */
struct hpx_interval {
	int64_t from_us;
	int64_t to_us;
};

/* How long it lasted; 0 where it was not begun or has not ended. */
static inline uint64_t hpx_interval_us(const struct hpx_interval *interval)
{
	return interval->to_us > interval->from_us ? (uint64_t)(interval->to_us - interval->from_us) : 0;
}

/* Where the time of a request went. The steps fill it where they begin and end a wait, so
 * that it costs no clock and no system call of its own. What is in none of the parts is
 * the reading of head and body, and the wait for another request's answer. */
struct hpx_request_times {
	/* From the first byte of the head until the whole answer was handed to the
	 * connection; without one, until the client was gone. */
	struct hpx_interval whole;
	/* In the queue for a connection slot. Not begun where a slot was free. */
	struct hpx_interval queue;
	/* From the RESERVE until the store's decision, or until that was late. The last
	 * RESERVE, where there were several. Not begun where LOOKUP knew the answer. */
	struct hpx_interval reserve;
	/* The exchange with the upstream, guarded or passed on: from asking for a
	 * connection until the end of the answer, or its failure. */
	struct hpx_interval upstream;
	/* From handing the outcome to the store until it is durable, or until that was
	 * late; with the reading of an answer that the application committed itself. */
	struct hpx_interval complete;
};

/* What the access log and the metrics tell of a request, besides its parts: filled where
 * it happens, read when the request is over. */
struct hpx_request_summary {
	enum hpx_did did; /* as far as one step knows it: did_of in access_line.c decides */
	unsigned status;  /* of the answer that the client was sent; 0: none */
	bool refused;     /* by hapax, with `code` */
	enum hpx_problem_code code;
	uint64_t bytes_in;  /* of the head and the body, as they came */
	uint64_t bytes_out; /* of all answers, 1xx included */
	bool noted;         /* its line is made */
};

/* The trace that the request belongs to. ROUTE fills the contexts where traces are on; the
 * spans are made when the request is freed. */
struct hpx_request_trace {
	bool on;
	bool has_parent;
	struct hpx_trace_context parent;  /* the client's, where has_parent */
	struct hpx_trace_context context; /* of the request's own span */
	uint8_t upstream[HPX_TRACE_SPAN_ID_SIZE];
	struct hpx_trace_context link; /* the first execution, where this is a replay */
	const char *decision;          /* static; NULL: none was made */
};

struct hpx_request {
	struct hpx_shard *shard;
	struct hpx_downstream *downstream; /* NULL once the client is gone or answered */
	struct hpx_settings *settings;
	struct hpx_request *prev, *next; /* in shard->requests */
	unsigned holds;
	struct hpx_arena arena;
	struct hpx_request_times times;
	struct hpx_request_summary summary;
	struct hpx_request_head head;
	struct hpx_request_body body;
	struct hpx_request_identity identity;
	struct hpx_request_fingerprint fingerprint;
	struct hpx_reservation reservation;
	struct hpx_request_wait wait;
	struct hpx_attempt attempt;
	struct hpx_request_answer answer;
	struct hpx_request_pass pass;
	struct hpx_request_webhook webhook;
	struct hpx_request_trace trace;
};

/* Frees the finished requests that a shard has kept for the next ones. */
void hpx_request_free_spares(struct hpx_shard *shard);

/* ---- what brings a request on; all on its loop's thread ---- */

/* Made when the first byte of a head arrives; the downstream holds it. NULL when
 * out of memory. */
struct hpx_request *hpx_request_new(struct hpx_shard *shard, struct hpx_downstream *downstream,
				    const char *peer);
void hpx_request_hold(struct hpx_request *request);
void hpx_request_drop(struct hpx_request *request);
/* Runs steps from `next` until one waits or is done. */
void hpx_request_go(struct hpx_request *request, enum hpx_next next);

/* While the downstream reads BODY: bytes of the body (or none), the last ones. */
void hpx_request_take_body(struct hpx_request *request, struct hpx_span data, bool last);
void hpx_request_body_malformed(struct hpx_request *request, enum hpx_http_error error);
/* While the downstream reads TUNNEL; no bytes: the client has ended it. */
void hpx_request_take_tunnel(struct hpx_request *request, struct hpx_span bytes);
/* The head or the body did not come in time. */
void hpx_request_timed_out(struct hpx_request *request);
/* The caller is gone: what may go on goes on. */
void hpx_request_client_gone(struct hpx_request *request);
/* The downstream is not full any more. */
void hpx_request_client_drained(struct hpx_request *request);
void hpx_request_tick(struct hpx_request *request, uint64_t now_ms);
/* The whole answer was handed to the connection. */
void hpx_request_answered(struct hpx_request *request);
/* Draining is over: what is still under way is written as unknown. */
void hpx_request_abandon(struct hpx_request *request);

/* ---- for steps ---- */

#define HPX_WAIT_NO_DEADLINE (-1)
/* The request waits, at most `timeout_ms`; the step returns what this returns.
 * Without a deadline `late` is used at the end of a drain only. */
enum hpx_next hpx_request_await(struct hpx_request *request, enum hpx_wait_kind kind,
				const struct hpx_resume *by, int64_t timeout_ms,
				enum hpx_next result, enum hpx_next late);
/* Hands request->reservation.op to the committer and awaits it as long as
 * `timeouts.store` says; the request lives at least until the op is done. */
enum hpx_next hpx_request_submit(struct hpx_request *request, enum hpx_wait_kind kind,
				 enum hpx_next result, enum hpx_next late);
/* The same, and nobody waits for it. */
void hpx_request_submit_unawaited(struct hpx_request *request);
/* Hands request->wait.query to the query thread and awaits it (QUERY), as long as
 * `timeouts.store` says. */
enum hpx_next hpx_request_query(struct hpx_request *request, enum hpx_next result,
				enum hpx_next late);

/* Notes in request->times that a part begins, or ends. The first end counts: what has
 * ended, and what was not begun, stays as it is. */
void hpx_request_begin(struct hpx_request *request, struct hpx_interval *part);
void hpx_request_end(struct hpx_request *request, struct hpx_interval *part);

/* From now on the message holds the request. */
void hpx_resume_arm(struct hpx_resume *resume, struct hpx_request *request);
/* From any thread, once: sends the armed message. */
void hpx_resume_post(struct hpx_resume *resume);
/* The same in the `done` of an op that hpx_shard_submit took: the loop is woken when
 * all ops of the batch are settled. */
void hpx_resume_post_unwoken(struct hpx_resume *resume);
/* The message is not sent, and will not be. */
void hpx_resume_disarm(struct hpx_resume *resume);
static inline bool hpx_resume_is_armed(const struct hpx_resume *resume)
{
	return resume->request != NULL;
}

void hpx_request_answer_move(struct hpx_request *request, enum hpx_answer_state state);
/* There is no complete answer. */
bool hpx_request_answer_is_lost(const struct hpx_request *request);
/* The answer is (or would have been) given as it flows; it is not stored. */
bool hpx_request_answer_is_held_back(const struct hpx_request *request);

/* Adds to the memory for bodies on this request's account, if all of them
 * together stay within `bytes_max`. */
bool hpx_request_charge(struct hpx_request *request, size_t bytes, size_t bytes_max);

#endif
