/* One request's way through the gateway. It walks through named steps; each
 * step returns the next, and the driver is one short loop. A step that has to
 * wait returns HPX_NEXT_WAIT; what it waits for calls hpx_request_go later.
 *
 *   route ─▶ own path ─▶ tenant ─▶ operation ─▶ find
 *     │         └▶ body ─▶ webhook
 *     ├▶ pass-through
 *     └▶ key ─▶ tenant ─▶ body ─▶ fingerprint ─▶ lookup ─▶ slot ─▶ reserve ─▶ forward
 *                                      ▲            │                            │
 *                                      └─ (recipe) ─┴▶ answer ◀────── store ◀────┘
 *                                                         ▲             │
 *                                                         └─ committed ◀┘ (the application
 *                                                               answered for itself)
 *
 * A slot is the right to one connection to the upstream; for want of one, a
 * request waits in a queue before anything is reserved (queue.c).
 *
 * On a route with `deliver: async` the way ends with the reservation: the job is
 * in it, and the answer is 202 (async.c).
 *
 * A request may outlive its client (the attempt goes on) and its answer (the
 * store is still being told): it lives as long as somebody holds it. */
#ifndef HPX_GATEWAY_REQUEST_H
#define HPX_GATEWAY_REQUEST_H

#include "base/clock.h"
#include "base/crash_point.h"
#include "core/key.h"
#include "core/outcome.h"
#include "gateway/client.h"
#include "gateway/identity.h"
#include "gateway/looker.h"
#include "http/message.h"
#include "http/problem.h"
#include "http/target.h"

enum hpx_next {
	HPX_NEXT_ROUTE,
	HPX_NEXT_KEY,
	HPX_NEXT_TENANT,
	HPX_NEXT_BODY,
	HPX_NEXT_FINGERPRINT,
	HPX_NEXT_LOOKUP,
	HPX_NEXT_SLOT,
	HPX_NEXT_RESERVE,
	HPX_NEXT_FORWARD,
	HPX_NEXT_STORE,
	HPX_NEXT_COMMITTED,
	HPX_NEXT_ANSWER,
	HPX_NEXT_PASS,
	HPX_NEXT_PASS_ON,
	HPX_NEXT_OWN,
	HPX_NEXT_OPERATION,
	HPX_NEXT_FIND,
	HPX_NEXT_WEBHOOK,
	HPX_NEXT_COUNT,
	HPX_NEXT_WAIT, /* something will call hpx_request_go */
	HPX_NEXT_DONE, /* answered, or nobody is left to answer */
};

/* What a guarded request is waiting for; for the tick and for draining. */
enum hpx_phase {
	HPX_PHASE_READING,
	HPX_PHASE_QUEUED, /* for a connection slot; nothing has happened */
	HPX_PHASE_RESERVING,
	HPX_PHASE_WAITING,    /* for another request's answer */
	HPX_PHASE_FORWARDING, /* the attempt is under way */
	HPX_PHASE_STORING,
	HPX_PHASE_STREAMING, /* its outcome is durable, the answer flows */
	HPX_PHASE_PASSING,   /* unguarded */
	HPX_PHASE_ASKING,    /* the store or a service, and nothing is under way */
	HPX_PHASE_OVER,
};

/* Why a RESERVE may begin no attempt, besides that the request has waited for
 * another's. */
enum hpx_look_reason {
	HPX_LOOK_NONE,         /* it may begin one */
	HPX_LOOK_BEFORE_QUEUE, /* only what would begin one is to wait for a slot */
	HPX_LOOK_NO_SLOT,      /* there is no slot, and there will be none */
};

/* The request as it came. Filled by the connection (head) and by the steps ROUTE
 * and BUILTIN; valid from then to the end, and nothing in it changes later. */
struct hpx_request_head {
	char peer[48]; /* the client's address, or "unix" */
	struct hpx_buffer bytes;
	struct hpx_http_head http;
	struct hpx_http_reader reader;
	struct hpx_target target;
	struct hpx_span host;
	const struct hpx_route *route;
	const struct hpx_webhook *webhook; /* the message is for this one */
	enum hpx_next after_tenant;        /* BODY, or OPERATION */
	enum hpx_next after_body;          /* FINGERPRINT, or WEBHOOK */
	bool observed;                     /* observe mode */
};

/* The body of a guarded request or a webhook's message. Filled as bytes come,
 * valid from the step after BODY to the end. */
struct hpx_request_body {
	struct hpx_buffer bytes;
	size_t charged_bytes; /* of the memory for bodies; the answer's too */
	bool whole;           /* nothing more of it comes */
};

/* Whose request it is and what it means. Filled by KEY, TENANT and FINGERPRINT
 * (or OPERATION), valid from then to the end; all of its texts are from the
 * arena or in the head. */
struct hpx_request_identity {
	struct hpx_key key;
	struct hpx_span tenant;
	struct hpx_ask ask;
	struct hpx_mark sought; /* of a reference; void: sought by key */
	struct hpx_description description;
	struct hpx_recipe recipe; /* the record's, or the route's */
	bool refingerprinted;
	/* The authorisation subrequest that the request waits for. */
	struct hpx_inquiry *inquiry; /* under the lock of subrequest.c, like the next */
	struct hpx_request *inquiry_next;
	struct hpx_message inquiry_message;
	struct hpx_identity caller; /* its result */
};

/* The reservation, and every other request to the store. */
struct hpx_reservation {
	enum hpx_look_reason look_reason;
	bool looked; /* the store said: this would begin an attempt */
	struct hpx_store_op op;
	struct hpx_message op_message;
	void (*op_came_back)(struct hpx_request *request);
	bool op_pending;
	bool gave_up; /* the client was told 503 while the store was asked */
	int64_t asked_boot_ms;
	struct hpx_cache_mark cache_mark; /* when the store was asked last */
	struct hpx_record record;
	int64_t row;               /* where its reservation is, for the store */
	struct hpx_answer *stored; /* of a replay */
	bool committed;            /* `stored` is this attempt's own, committed by the application */
	struct hpx_job job;        /* deliver: async; points into the request's head and body */
};

/* What the request waits for, and how it goes on. */
struct hpx_request_wait {
	enum hpx_phase phase;
	uint64_t deadline_ms;                                   /* loop time, 0: none */
	enum hpx_next (*too_late)(struct hpx_request *request); /* ASKING or QUEUED took too long */
	/* For a connection slot. */
	enum hpx_next after_queue;
	int64_t queued_us;
	/* For a query of the store. */
	struct hpx_look look;
	struct hpx_message look_message;
	void (*look_came_back)(struct hpx_request *request);
	bool look_pending;
	/* For the end of another request. */
	enum hpx_next look_again; /* LOOKUP, or FIND */
	unsigned applied_s;       /* of Prefer: wait; 0: none */
	struct hpx_waiter waiter;
	struct hpx_message wake_message;
	bool waiting;
	bool waited; /* it has waited for another: never the executor */
	uint64_t until_ms;
};

/* The one attempt that this request makes. */
struct hpx_attempt {
	struct hpx_slot slot; /* until the exchange takes it over */
	struct hpx_exchange *exchange;
	struct hpx_buffer head; /* the request's head for the upstream */
	int64_t forwarded_us;
	struct hpx_store_op renewal;
	struct hpx_message renewal_message;
	bool renewal_pending;
	uint64_t renew_at_ms;
	bool late; /* the lease was too old to send */
	enum hpx_outcome outcome;
	const char *outcome_reason; /* of an answer; static */
	bool outcome_assumed;       /* by server_error alone */
	struct hpx_exchange_failure failure;
};

/* The upstream's answer on its way to the client and to the store. */
struct hpx_request_answer {
	struct hpx_buffer head;      /* the fields for the client */
	struct hpx_buffer kept_head; /* the fields for the store */
	struct hpx_buffer body;
	unsigned status;
	enum hpx_http_framing framing;
	bool has_length;
	uint64_t length;
	bool ended;
	bool lost;                   /* no complete answer */
	bool streaming;              /* too large, a stream, or store: status */
	bool begun;                  /* bytes of it were handed to the client */
	bool head_waits;             /* of a flowing answer: for its first bytes */
	struct hpx_later head_later; /* no longer than this turn of the loop */
	struct hpx_answer to_store;  /* points into the buffers above */
};

/* Pass-through. */
struct hpx_request_pass {
	bool tunnel;       /* an upgrade was asked for */
	bool tunnel_ended; /* the client's direction of it */
	struct hpx_sighting *sighting;
};

/* A webhook's message. */
struct hpx_request_hook {
	struct hpx_ruling_turn ruling;
	enum hpx_job_state job_state; /* of the job it is about, before */
};

struct hpx_request {
	struct hpx_shard *shard;
	struct hpx_client *client; /* NULL once the caller is gone or answered */
	struct hpx_settings *settings;
	struct hpx_request *prev, *next; /* in shard->requests */
	unsigned holds;
	struct hpx_arena arena;
	int64_t began_us;
	struct hpx_request_head head;
	struct hpx_request_body body;
	struct hpx_request_identity identity;
	struct hpx_reservation reservation;
	struct hpx_request_wait wait;
	struct hpx_attempt attempt;
	struct hpx_request_answer answer;
	struct hpx_request_pass pass;
	struct hpx_request_hook hook;
};

/* Made when the first byte of a head arrives; the client holds it. */
struct hpx_request *hpx_request_new(struct hpx_client *client);
void hpx_request_hold(struct hpx_request *request);
void hpx_request_drop(struct hpx_request *request);
/* Runs steps from `next` until one waits or is done. */
void hpx_request_go(struct hpx_request *request, enum hpx_next next);

/* The body's bytes, and its end, as the client sends them. Returns how many
 * were used; fewer when the upstream has to catch up first. */
size_t hpx_request_feed(struct hpx_request *request, struct hpx_span bytes);
/* The head or the body did not come in time. */
void hpx_request_timed_out(struct hpx_request *request);
/* The caller is gone: what may go on goes on. */
void hpx_request_client_gone(struct hpx_request *request);
/* Room again in the client's socket. */
void hpx_request_client_drained(struct hpx_request *request);
void hpx_request_tick(struct hpx_request *request, uint64_t now_ms);
/* Draining is over: what is still under way is written as unknown. */
void hpx_request_abandon(struct hpx_request *request);

/* Hands request->reservation.op to the committer. When it is settled, `came_back` runs on
 * the request's own loop; the request lives at least until then. */
void hpx_request_submit(struct hpx_request *request,
			void (*came_back)(struct hpx_request *request));

/* From here on, something is asked that nothing under way depends on: when it
 * takes longer, or the process ends, `too_late` answers instead, and what comes
 * back finds another phase. Whoever is gone meanwhile is forgotten. */
void hpx_request_asks(struct hpx_request *request, int64_t timeout_ms,
		      enum hpx_next (*too_late)(struct hpx_request *request));
/* Hands request->wait.look to the looker; as hpx_request_submit. What it found is
 * freed when `came_back` returns. */
void hpx_request_look(struct hpx_request *request,
		      void (*came_back)(struct hpx_request *request));

/* Adds to the memory for bodies on this request's account, if all of them
 * together stay within `bytes_max`. */
bool hpx_request_charge(struct hpx_request *request, size_t bytes, size_t bytes_max);

/* The steps, by file. */
enum hpx_next hpx_step_route(struct hpx_request *request); /* admit.c */
enum hpx_next hpx_step_key(struct hpx_request *request);
enum hpx_next hpx_step_tenant(struct hpx_request *request);
enum hpx_next hpx_step_body(struct hpx_request *request); /* guard.c */
enum hpx_next hpx_step_fingerprint(struct hpx_request *request);
enum hpx_next hpx_step_lookup(struct hpx_request *request);
enum hpx_next hpx_step_slot(struct hpx_request *request);
enum hpx_next hpx_step_reserve(struct hpx_request *request);
enum hpx_next hpx_step_forward(struct hpx_request *request); /* forward.c */
enum hpx_next hpx_step_store(struct hpx_request *request);   /* settle.c */
enum hpx_next hpx_step_committed(struct hpx_request *request);
enum hpx_next hpx_step_answer(struct hpx_request *request);
enum hpx_next hpx_step_pass(struct hpx_request *request); /* pass.c */
enum hpx_next hpx_step_pass_on(struct hpx_request *request);
enum hpx_next hpx_step_own(struct hpx_request *request);       /* own.c */
enum hpx_next hpx_step_operation(struct hpx_request *request); /* own_operation.c */
enum hpx_next hpx_step_find(struct hpx_request *request);
enum hpx_next hpx_step_webhook(struct hpx_request *request); /* webhook.c */

#endif
