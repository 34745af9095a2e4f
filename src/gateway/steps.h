/* What the steps of a request offer each other, by file. The steps themselves, and
 * the order in which they run, are in request.h. */
#ifndef HPX_GATEWAY_STEPS_H
#define HPX_GATEWAY_STEPS_H

#include "gateway/request.h"
#include "gateway/respond.h"
#include "gateway/tenant.h"

/* ---- admit.c: the end of the tenant step, however the tenant was found out ---- */

/* The parts of the request that tell who sent it. */
struct hpx_tenant_source hpx_tenant_source_of(struct hpx_request *request);

/* The step after TENANT, once request->identity.tenant is set. */
enum hpx_next hpx_tenant_found(struct hpx_request *request);
/* The caller is not known: the request is refused; in observe mode it is passed
 * on. */
enum hpx_next hpx_tenant_missing(struct hpx_request *request, enum hpx_problem_code code,
				 const struct hpx_refusal *refusal);

/* ---- limit.c: rates ----
 *
 * Each takes one of a budget of the request's caller; false: there is none left. Where
 * no such limit is configured, they only look at the settings. */

/* Before something is begun: of the tenant's and of the peer's budget, once for a
 * request. False: request->identity.new_refused says so. */
bool hpx_limit_new_keys(struct hpx_request *request);
/* The key is known: one of the tenant's replays instead of what hpx_limit_new_keys took. */
bool hpx_limit_replays(struct hpx_request *request, struct hpx_limit_met *ret_met);
/* Before the body is read: of the key's own budget. */
bool hpx_limit_key(struct hpx_request *request, struct hpx_limit_met *ret_met);
/* So much is stored as the answer of what the request began. */
void hpx_limit_stored(struct hpx_request *request, size_t bytes);
bool hpx_limit_status_reads(struct hpx_request *request, struct hpx_limit_met *ret_met);
/* 429, with the fields about the limit; counts it. Nothing is stored. */
enum hpx_next hpx_limit_refuse(struct hpx_request *request, const struct hpx_limit_met *met,
			       const char *executed);

/* ---- verified_caller.c ---- */

/* Finds the tenant by the token of the request. */
enum hpx_next hpx_verified_caller_find(struct hpx_request *request);

/* ---- limit.c: shares ----
 *
 * Take a part of what is scarce for the request's address and, where it is known, its
 * tenant; false: the caller has its share, and the refusal is counted. Given back when
 * the request is freed. */

/* The address that limits count, 0 where there is none. */
uint64_t hpx_limit_peer(struct hpx_request *request);
/* The tenant is known: the connection counts as its. */
bool hpx_share_take_connection(struct hpx_request *request);
bool hpx_share_take_body(struct hpx_request *request, size_t bytes, size_t whole);
bool hpx_share_take_waiter(struct hpx_request *request);
bool hpx_share_take_tunnel(struct hpx_request *request);
void hpx_share_give_back(struct hpx_request *request, struct hpx_held *held);

/* ---- subrequest.c ---- */

/* Finds the tenant by a subrequest; hpx_tenant_found goes on. */
enum hpx_next hpx_subrequest_ask(struct hpx_request *request);
/* The request does not wait for a subrequest any more; nothing where it did not. */
void hpx_subrequest_leave(struct hpx_request *request);

/* ---- fingerprint_work.c ---- */

/* The step FINGERPRINT from the recipe on: LOOKUP follows, at once or when a thread has
 * made the fingerprint of a large body. */
enum hpx_next hpx_fingerprint_make(struct hpx_request *request);

/* ---- guard.c: up to the reservation, and the answers in memory ---- */

/* Fills the description and the operation's id, once for a request, from the head, the
 * key and the tenant. */
enum hpx_status hpx_guard_name(struct hpx_request *request);
/* Bytes of the body. The step after BODY runs when request->body.whole. */
void hpx_guard_take_body(struct hpx_request *request, struct hpx_span data);
/* Gives the stored answer; or response_not_kept, where only its status was kept. */
enum hpx_next hpx_guard_replay(struct hpx_request *request);
/* Retry-After in seconds until the probe at `at_ms`; 0: the time is not known. */
unsigned hpx_guard_until_s(int64_t at_ms, int64_t now_ms);
/* The result of a RESERVE that came too late: its request was refused. A reservation
 * that it made is failed as not executed. */
void hpx_guard_late(struct hpx_request *request);

/* The cache of answers; where there is none, these do nothing. Called before the
 * store is asked by request->reservation.op: */
void hpx_cached_mark(struct hpx_request *request);
/* Keeps a completed record with its answer (NULL: none) that the store gave or took
 * since the mark; nothing else is kept. `judged_ms` is the op's; 0: read on this
 * loop. */
void hpx_cached_keep(struct hpx_request *request, int64_t judged_ms,
		     const struct hpx_record *record, const struct hpx_answer *answer);

/* ---- async.c: routes with `deliver: async` ----
 *
 * The request is kept as a job for a target, in the same transaction as its
 * operation, and answered with 202. Nothing is forwarded; the job's answer becomes
 * the operation's. */

/* The header lines that a job keeps: those that say how to read the body and which
 * answer is wanted, and those of the route's fingerprint. Never a credential, however
 * it is configured. */
enum hpx_status hpx_async_headers(const struct hpx_settings *settings,
				  const struct hpx_route *route, const struct hpx_http_head *head,
				  struct hpx_buffer *out);

bool hpx_async_is(const struct hpx_request *request);
/* Fills request->reservation.job. HPX_INVALID: the request can never be a job, and
 * `*ret_reason` says why. */
enum hpx_status hpx_async_make_job(struct hpx_request *request, const char **ret_reason);
/* The operation and its job are durable. */
enum hpx_next hpx_async_accepted(struct hpx_request *request);
/* The job is under way: the client gets its answer, if the client prefers to wait and
 * the answer comes in time, or 202. */
enum hpx_next hpx_async_pending(struct hpx_request *request);

/* Wakes the deliverer of jobs. */
void hpx_async_wake(struct hpx_gateway *gateway);

/* ---- wait.c: for another request ----
 *
 * Waiting for the end of an operation that another request or the deliverer brings
 * about. A waiter never becomes the executor. */

/* A retry while the first request is under way: refused, accepted or kept waiting, by
 * the route's `concurrent`. */
enum hpx_next hpx_wait_or_refuse(struct hpx_request *request);

/* How long the client prefers to wait (Prefer: wait=N), at most `most_ms`; 0:
 * not at all. */
int64_t hpx_wait_preferred(struct hpx_request *request, int64_t most_ms);
/* Waits for the end of the operation request->identity.ask.id, and then looks at it
 * again. Called again when the operation is still under way: the request waits on, or
 * WAIT_OVER answers: 202 for a request that is delivered later, the state for a
 * request that asked for it, else 409. */
enum hpx_next hpx_wait_for(struct hpx_request *request, int64_t wait_ms);

/* Leaves the wait list; nothing is sent. */
void hpx_wait_leave(struct hpx_request *request);

/* ---- wait.c: for a connection slot ----
 *
 * The slot of a request: the right to one connection to the upstream, or a place in
 * the queue for it. Nothing is reserved and nothing has happened while a request is
 * queued. */

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
/* The slot was granted; the request hears of it within this turn of the loop. */
bool hpx_queue_is_granted(const struct hpx_request *request);
/* Sets the loop's figures for /metrics. */
void hpx_queue_measure(struct hpx_shard *shard);

/* Reads the combined value of Prefer: how long the client would like to wait (wait=N,
 * RFC 7240 §4.3). The first `wait` counts (§2). False: there is none, or its value is
 * no number of seconds. More than a day counts as a day. */
bool hpx_prefer_wait(struct hpx_span prefer, int64_t *ret_ms);

/* ---- forward.c: the attempt ---- */

/* Renews the lease when it is due, while the exchange is under way. */
void hpx_attempt_renew(struct hpx_request *request, uint64_t now_ms);
/* The result of the renewal. */
void hpx_attempt_renewed(struct hpx_request *request);
/* Cuts the exchange, if there is one; no event of it comes any more. */
void hpx_attempt_cancel(struct hpx_request *request);
/* The process ends before the answer came: the outcome as it is known now is
 * written. */
void hpx_attempt_abandon(struct hpx_request *request);

/* Fills request->attempt.head. Guarded: identity encoding, a Content-Length, and the
 * fields about the operation. Otherwise the framing is as it came, and an upgrade
 * (never to h2c) is passed on. */
enum hpx_status hpx_forward_write_head(struct hpx_request *request, bool guarded);

/* ---- request_trace.c: traces ----
 *
 * The first does nothing where traces are off, and the others nothing where it did nothing. */

/* Finds the trace that the request belongs to, or begins one. Its head is read. */
void hpx_request_trace_begin(struct hpx_request *request);
/* The id of the trace, for the access log: also that of the client's, where traces are off.
 * Empty where there is none. The head is readable. */
#define HPX_TRACE_ID_TEXT_SIZE (2 * HPX_TRACE_ID_SIZE + 1)
void hpx_request_trace_print(const struct hpx_request *request, char out[HPX_TRACE_ID_TEXT_SIZE]);
/* Whether a field of the request with that name is written anew for the upstream, or not at
 * all. Observe mode alters nothing. */
bool hpx_request_trace_replaces(const struct hpx_request *request, enum hpx_field_name known);
/* The traceparent for the upstream; "": none is added. */
struct hpx_span hpx_request_trace_upstream(struct hpx_request *request,
					   char out[HPX_TRACEPARENT_SIZE]);
/* The same for a job, in the lines of its headers. */
enum hpx_status hpx_request_trace_job(struct hpx_request *request, struct hpx_buffer *lines);
/* Adds to the headers of an answer that is stored which trace it comes from. */
void hpx_request_trace_keep(struct hpx_request *request, struct hpx_buffer *lines);
/* The request is over: its spans are handed to the tracer. */
void hpx_request_trace_end(struct hpx_request *request);

/* ---- settle.c: the end of the attempt ---- */

/* The result of an op that came too late, or of an undo: the client has its
 * answer. */
void hpx_settle_late(struct hpx_request *request);
/* Fails the reservation as not executed; nobody waits for it. */
void hpx_settle_undo(struct hpx_request *request);

/* ---- pass.c: pass-through ---- */

/* Bytes of the body; the last ones where request->body.whole. */
void hpx_pass_take_body(struct hpx_request *request, struct hpx_span data);

/* ---- pass.c: observed keys and tenants ----
 *
 * Keys and tenants that passed lately, in memory only and bounded: for observe mode
 * (what would have happened) and for hapax_tenant_changed_total (the same request
 * under another tenant: a sign of renewed credentials), and operations whose keys
 * were used for another request, so that each is logged once. Nothing here decides
 * anything; a key that is forgotten makes a count smaller, or a log line come again. */

struct hpx_observed_keys *hpx_observed_keys_new(void);
void hpx_observed_keys_free(struct hpx_observed_keys *observed_keys);

/* Observe mode: an operation passes; its raw body counts as its fingerprint. */
void hpx_observe_begin(struct hpx_request *request);
void hpx_observe_end(struct hpx_request *request);

/* A new operation is executed: counts it if the same request came from another
 * tenant. */
void hpx_observe_tenant_change(struct hpx_request *request);
/* The request has the key of another one: the first time for an operation, it is logged, and
 * noted in the operation's history without waiting for the store. */
void hpx_observe_misuse(struct hpx_request *request);

/* ---- builtin.c, builtin_operation.c: paths under /.hapax/, never forwarded ---- */

#define HPX_BUILTIN_ROOT "/.hapax"

bool hpx_builtin_is(struct hpx_span path);

/* 202 with the location of the operation: it is under way, or delivered later. */
void hpx_operation_accepted(struct hpx_request *request);
/* Shows the operation in request->reservation.record, with its jobs. */
enum hpx_next hpx_operation_show(struct hpx_request *request);

/* Prints the parts of an operation that its caller may see, as JSON: no key, no body,
 * no tenant. `jobs` may be NULL; jobs of another use of the same key are left out. */
enum hpx_status hpx_operation_print(const struct hpx_record *record,
				    const struct hpx_job_entry *jobs,
				    const struct hpx_next_question *question,
				    struct hpx_buffer *out);

/* ---- request_key.c ---- */

/* The key from headers and query, or from the body, into request->identity. HPX_OK also
 * where there is none. HPX_INVALID: `*ret_reason` says what is wrong with it. */
enum hpx_status hpx_request_key_in_head(struct hpx_request *request, const char **ret_reason);
enum hpx_status hpx_request_key_in_body(struct hpx_request *request, const char **ret_reason);

#endif
