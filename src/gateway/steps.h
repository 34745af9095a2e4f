/* What the steps of a request offer each other, by file. The steps themselves, and
 * the order in which they run, are in request.h. */
#ifndef HPX_GATEWAY_STEPS_H
#define HPX_GATEWAY_STEPS_H

#include "gateway/request.h"
#include "gateway/respond.h"
#include "gateway/tenant.h"

/* ---- admit.c: the end of the tenant step, however the tenant was found out ---- */

/* What the request says about who sent it. */
struct hpx_tenant_source hpx_tenant_source_of(struct hpx_request *request);

/* request->identity.tenant is set. */
enum hpx_next hpx_tenant_found(struct hpx_request *request);
/* It is not known who is calling: refused, or, in observe mode, passed on. */
enum hpx_next hpx_tenant_missing(struct hpx_request *request, enum hpx_problem_code code,
				 const struct hpx_refusal *refusal);

/* ---- subrequest.c ---- */

/* Finds out the tenant; hpx_tenant_found goes on. */
enum hpx_next hpx_subrequest_ask(struct hpx_request *request);
/* The request waits no longer; harmless where it does not. */
void hpx_subrequest_leave(struct hpx_request *request);

/* ---- guard.c: up to the reservation, and the answers in memory ---- */

/* Bytes of the body; the step after it runs when request->body.whole. */
void hpx_guard_take_body(struct hpx_request *request, struct hpx_span data);
/* The stored answer, or that it was not kept. */
enum hpx_next hpx_guard_replay(struct hpx_request *request);
/* Retry-After for what is asked about at `at_ms`; 0: nobody knows when. */
unsigned hpx_guard_until_s(int64_t at_ms, int64_t now_ms);
/* The result of a RESERVE whose request was refused meanwhile: what it began is
 * failed as not executed. */
void hpx_guard_late(struct hpx_request *request);

/* The cache of answers is asked before the store, and keeps what the store said.
 * Where there is no cache, these do nothing. */
/* Before the store is asked by request->reservation.op. */
void hpx_cached_mark(struct hpx_request *request);
/* What the store gave or took since the mark: nothing but a completed record
 * with its answer (NULL: none) is kept. `judged_ms`: the op's; 0: looked at here. */
void hpx_cached_keep(struct hpx_request *request, int64_t judged_ms,
		     const struct hpx_record *record, const struct hpx_answer *answer);

/* ---- async.c: routes with `deliver: async` ----
 *
 * The request is kept as a job for a target, in the same transaction as its
 * operation, and answered with 202. Nothing is forwarded; the job's answer becomes
 * the operation's. */

/* The header lines that are kept with a job: a short list of what says how the
 * body is to be read and what answer is wanted, and what the route's
 * fingerprint names; never a credential, however it is configured. */
enum hpx_status hpx_async_headers(const struct hpx_settings *settings,
				  const struct hpx_route *route, const struct hpx_http_head *head,
				  struct hpx_buffer *out);

bool hpx_async_is(const struct hpx_request *request);
/* Fills request->reservation.job. HPX_INVALID: it can never be one, `*ret_reason` says
 * why. */
enum hpx_status hpx_async_make_job(struct hpx_request *request, const char **ret_reason);
/* The operation and its job are durable. */
enum hpx_next hpx_async_accepted(struct hpx_request *request);
/* It is on its way: the answer, if the client prefers to wait for it and it
 * comes in time, or 202. */
enum hpx_next hpx_async_pending(struct hpx_request *request);

/* Wakes whoever delivers jobs. */
void hpx_async_wake(struct hpx_gateway *gateway);

/* ---- wait.c: for another request ----
 *
 * Waiting for the end of an operation that somebody else brings about: a retry
 * while the first request is under way (refused, accepted, or kept waiting), and
 * whoever prefers to wait for what is delivered later. A waiter never becomes
 * the executor. */

/* By the route's `concurrent`. */
enum hpx_next hpx_wait_or_refuse(struct hpx_request *request);

/* How long the client prefers to wait (Prefer: wait=N), at most `most_ms`; 0:
 * not at all. */
int64_t hpx_wait_preferred(struct hpx_request *request, int64_t most_ms);
/* Waits for the end of the operation request->identity.ask.id, and then looks at it
 * again. Called again when it is still under way: then the request waits on, or
 * WAIT_OVER answers: 202 for what is delivered later, its state for who asked for
 * that, else 409, send it again. */
enum hpx_next hpx_wait_for(struct hpx_request *request, int64_t wait_ms);

/* Off the list; nothing is sent. */
void hpx_wait_leave(struct hpx_request *request);

/* ---- wait.c: for a connection slot ----
 *
 * A request and its slot: the right to one connection to the upstream, or a
 * place in the queue for it. Nothing is reserved and nothing has happened while
 * a request is queued. */

/* Takes a slot at once; false where none is free. */
bool hpx_queue_take(struct hpx_request *request, enum hpx_slot_kind kind);
/* Takes a place in the queue (the wait is SLOT then); false where that is full.
 * The request goes on with `granted` when it has its slot, or with `late` when
 * `timeouts.queue` is over or the process ends. */
bool hpx_queue_enter(struct hpx_request *request, enum hpx_slot_kind kind, enum hpx_next granted,
		     enum hpx_next late);
/* Gives back the slot, if the request has one. */
void hpx_queue_leave(struct hpx_request *request);
/* Gives up the place in the queue; `result` says why. */
void hpx_queue_give_up(struct hpx_request *request, enum hpx_queued result);
/* The slot has come, and the request is told of it within this turn of the loop. */
bool hpx_queue_is_granted(const struct hpx_request *request);
/* The loop's figures for /metrics. */
void hpx_queue_measure(struct hpx_shard *shard);

/* How long a client would like to wait (Prefer: wait=N, RFC 7240 §4.3). Of the header's combined value. The first `wait` counts (§2); one that is no
 * number of seconds is no preference, as is a header without it: false. Longer
 * than a day counts as a day. */
bool hpx_prefer_wait(struct hpx_span prefer, int64_t *ret_ms);

/* ---- forward.c: the attempt ---- */

/* Keeps the lease while the upstream connection lives. */
void hpx_attempt_renew(struct hpx_request *request, uint64_t now_ms);
/* The result of the renewal. */
void hpx_attempt_renewed(struct hpx_request *request);
/* Cuts the exchange; nothing more is heard of it. */
void hpx_attempt_cancel(struct hpx_request *request);
/* The process ends before the answer came: what is known is written. */
void hpx_attempt_abandon(struct hpx_request *request);

/* Fills request->attempt.head. Guarded: identity encoding, a Content-Length, and
 * what the upstream is told of the operation. Otherwise the framing is as it
 * came, and an upgrade (never to h2c) is passed on. */
enum hpx_status hpx_upstream_head_write(struct hpx_request *request, bool guarded);

/* ---- settle.c: the end of the attempt ---- */

/* The result of an op that nobody waits for any more: the client was told without
 * it, or it is an undo. */
void hpx_settle_late(struct hpx_request *request);
/* Fails the reservation as not executed; nobody waits for it. */
void hpx_settle_undo(struct hpx_request *request);

/* ---- pass.c: pass-through ---- */

/* Bytes of the body; its end where request->body.whole. */
void hpx_pass_take_body(struct hpx_request *request, struct hpx_span data);

/* ---- pass.c: observed keys and tenants ----
 *
 * Keys and tenants that passed lately, in memory only and bounded: for observe mode
 * (what would have happened) and for hapax_tenant_changed_total (the same request
 * under another tenant: a sign of renewed credentials). Nothing here decides
 * anything; a key that is forgotten only makes a count smaller. */

struct hpx_observed_keys *hpx_observed_keys_new(void);
void hpx_observed_keys_free(struct hpx_observed_keys *observed_keys);

/* Observe mode: an operation passes; its raw body counts as its fingerprint. */
void hpx_observe_begin(struct hpx_request *request);
void hpx_observe_end(struct hpx_request *request);

/* A new operation is executed: was the same seen under another tenant? */
void hpx_observe_tenant_change(struct hpx_request *request);

/* ---- builtin.c, builtin_operation.c: paths under /.hapax/, never forwarded ---- */

#define HPX_BUILTIN_ROOT "/.hapax"

bool hpx_builtin_is(struct hpx_span path);
/* A refusal on a builtin path. */
enum hpx_next hpx_builtin_refuse(struct hpx_request *request, enum hpx_problem_code code,
				 const char *detail);

/* 202 with the operation's place: what is under way or delivered later. */
void hpx_operation_accepted(struct hpx_request *request);
/* The operation in request->reservation.record, with its jobs. */
enum hpx_next hpx_operation_show(struct hpx_request *request);

/* What an operation's caller may know of it, as JSON: no key, no body, nobody's
 * tenant. `jobs` may be NULL; those of another use of the same key are left
 * out. */
enum hpx_status hpx_operation_print(const struct hpx_record *record,
				    const struct hpx_job_entry *jobs,
				    const struct hpx_next_question *question,
				    struct hpx_buffer *out);

#endif
