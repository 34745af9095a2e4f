/* The driver of a request's steps, what keeps a request alive, and the one way to
 * wait and to go on. The diagrams are in request.h; here is what always holds:
 *
 * 1. Steps of a request never run inside a step of the same request: the wait is
 *    NOTHING while they run, and hpx_request_go is not entered then.
 * 2. A step that returns WAIT has set the wait; after DONE it is OVER, and the
 *    request is in no queue and in no wait list.
 * 3. A message resumes a request only while wait.by names it.
 * 4. Each armed message and each exchange holds the request; when the last hold
 *    goes, none is left.
 * 5. The request has at most one op at the committer besides the lease's renewal.
 * 6. The answer's state moves by hpx_request_answer_move only. */

#include "gateway/steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/recycle.h"
#include "base/status.h"

/* What one request's small things (fields, names, heads) may take together;
 * bodies are counted apart. A head of the largest size has room several times. */
#define ARENA_BYTES_MAX (1024 * 1024)

/* ---- making and ending ---- */

/* Finished requests that a shard keeps for the next ones, with their arena's chunk and
 * their small buffers: some 16 KiB each. */
#define SPARES_MAX 64

#define FOR_EACH_BUFFER(X) \
	X(head.bytes) \
	X(body.bytes) \
	X(attempt.head) \
	X(answer.head) \
	X(answer.kept_head) \
	X(answer.body)

/* All zero but for memory that is used again, and whose old bytes nobody reads. */
static void clear(struct hpx_request *request)
{
	struct hpx_arena arena = request->arena;
	struct hpx_buffer kept[] = {
#define X(member) request->member,
		FOR_EACH_BUFFER(X)
#undef X
	};
	size_t n = 0;

	*request = (struct hpx_request){ .arena = arena };
#define X(member) request->member = kept[n++];
	FOR_EACH_BUFFER(X)
#undef X
}

/* A request without anything in it, used before or not. */
static struct hpx_request *take_spare(struct hpx_shard *shard)
{
	struct hpx_request *request = shard->spares;

	HPX_ASSERT((request == NULL) == (shard->spare_count == 0));
	if (request == NULL) {
		request = calloc(1, sizeof(*request));
		if (request != NULL)
			hpx_arena_init(&request->arena, ARENA_BYTES_MAX);
		return request;
	}
	shard->spares = request->next;
	shard->spare_count--;
	clear(request);
	return request;
}

static void free_request(struct hpx_request *request)
{
#define X(member) hpx_buffer_done(&request->member);
	FOR_EACH_BUFFER(X)
#undef X
	hpx_arena_done(&request->arena);
	free(request);
}

static void keep_spare(struct hpx_shard *shard, struct hpx_request *request)
{
	if (!HPX_RECYCLES || shard->spare_count >= SPARES_MAX) {
		free_request(request);
		return;
	}
#define X(member) hpx_buffer_recycle(&request->member, request->member.max);
	FOR_EACH_BUFFER(X)
#undef X
	hpx_arena_recycle(&request->arena);
	request->next = shard->spares;
	shard->spares = request;
	shard->spare_count++;
}

void hpx_request_free_spares(struct hpx_shard *shard)
{
	for (struct hpx_request *request = shard->spares, *next; request != NULL; request = next) {
		next = request->next;
		free_request(request);
	}
	shard->spares = NULL;
	shard->spare_count = 0;
}

struct hpx_request *hpx_request_new(struct hpx_shard *shard, struct hpx_downstream *downstream,
				    const char *peer)
{
	struct hpx_request *request = take_spare(shard);
	struct hpx_settings *settings = shard->settings;
	size_t head_max = 2 * settings->head_bytes_max + 4096;

	if (request == NULL)
		return NULL;
	request->shard = shard;
	request->downstream = downstream;
	request->settings = hpx_settings_ref(settings);
	request->holds = 1;
	memcpy(request->head.peer, peer, strnlen(peer, sizeof(request->head.peer) - 1));
	hpx_request_begin(request, &request->times.whole);
	hpx_buffer_recycle(&request->body.bytes, settings->request_body_bytes_max);
	hpx_buffer_recycle(&request->attempt.head, head_max);
	hpx_buffer_recycle(&request->answer.head, head_max);
	hpx_buffer_recycle(&request->answer.kept_head, head_max);
	hpx_buffer_recycle(&request->answer.body, settings->response_body_bytes_max);

	request->next = shard->requests;
	if (request->next != NULL)
		request->next->prev = request;
	shard->requests = request;
	return request;
}

void hpx_request_hold(struct hpx_request *request)
{
	request->holds++;
}

void hpx_request_drop(struct hpx_request *request)
{
	HPX_ASSERT(request->holds > 0);
	if (--request->holds > 0)
		return;
	HPX_ASSERT(request->attempt.exchange == NULL && request->attempt.slot.state == HPX_SLOT_NONE);
	HPX_ASSERT(!hpx_resume_is_armed(&request->reservation.op_done) &&
		   !hpx_resume_is_armed(&request->wait.woken) &&
		   !hpx_resume_is_armed(&request->wait.query_done) &&
		   !hpx_resume_is_armed(&request->attempt.renewed) &&
		   !hpx_resume_is_armed(&request->fingerprint.made) &&
		   !hpx_resume_is_armed(&request->identity.inquired));
	hpx_access_note(request); /* where the client left before its answer */
	if (request->prev != NULL)
		request->prev->next = request->next;
	else
		request->shard->requests = request->next;
	if (request->next != NULL)
		request->next->prev = request->prev;
	if (request->trace.on)
		hpx_request_trace_end(request);
	hpx_gateway_uncharge(request->shard->gateway, request->body.charged_bytes);
	hpx_share_give_back(request, &request->body.held);
	hpx_share_give_back(request, &request->wait.held);
	hpx_share_give_back(request, &request->pass.held);
	hpx_answer_free(request->reservation.stored);
	hpx_job_entry_free(request->wait.query.jobs);
	hpx_settings_unref(request->settings);
	keep_spare(request->shard, request);
}

/* ---- the steps ---- */

static enum hpx_next (*const steps[HPX_NEXT_COUNT])(struct hpx_request *) = {
#define X(step, function) [HPX_NEXT_##step] = hpx_step_##function,
	HPX_STEP_LIST(X)
#undef X
};

/* Nothing resumes the request any more. */
static void end(struct hpx_request *request)
{
	request->wait.kind = HPX_WAIT_OVER;
	request->wait.by = NULL;
	request->wait.deadline_ms = 0;
	hpx_wait_leave(request);
	hpx_queue_leave(request);
}

void hpx_request_go(struct hpx_request *request, enum hpx_next next)
{
	HPX_ASSERT(request->wait.kind != HPX_WAIT_NOTHING);
	hpx_request_hold(request);
	request->wait.kind = HPX_WAIT_NOTHING;
	request->wait.by = NULL;
	request->wait.deadline_ms = 0;
	while (next < HPX_NEXT_COUNT)
		next = steps[next](request);
	if (next == HPX_NEXT_DONE)
		end(request);
	HPX_ASSERT(request->wait.kind != HPX_WAIT_NOTHING);
	hpx_request_drop(request);
}

/* ---- times ---- */

void hpx_request_begin(struct hpx_request *request, struct hpx_interval *part)
{
	*part = (struct hpx_interval){ .from_us = hpx_loop_boot_us(&request->shard->loop) };
}

void hpx_request_end(struct hpx_request *request, struct hpx_interval *part)
{
	if (part->from_us != 0 && part->to_us == 0)
		part->to_us = hpx_loop_boot_us(&request->shard->loop);
}

/* ---- waiting and going on ---- */

enum hpx_next hpx_request_await(struct hpx_request *request, enum hpx_wait_kind kind,
				const struct hpx_resume *by, int64_t timeout_ms,
				enum hpx_next result, enum hpx_next late)
{
	struct hpx_request_wait *wait = &request->wait;

	HPX_ASSERT(wait->kind == HPX_WAIT_NOTHING && kind != HPX_WAIT_NOTHING);
	wait->kind = kind;
	wait->by = by;
	wait->deadline_ms = 0;
	if (timeout_ms != HPX_WAIT_NO_DEADLINE)
		wait->deadline_ms = hpx_loop_now_ms(&request->shard->loop) + (uint64_t)timeout_ms;
	wait->result = result;
	wait->late = late;
	return HPX_NEXT_WAIT;
}

/* The result of an op that the request does not wait for: what it began, or
 * completed, must not be left as it is. */
static void take_unawaited(struct hpx_request *request, const struct hpx_resume *resume)
{
	if (resume == &request->attempt.renewed) {
		hpx_attempt_renewed(request);
		return;
	}
	if (resume != &request->reservation.op_done)
		return;
	switch (request->reservation.op.verb) {
	case HPX_VERB_RESERVE:
		hpx_guard_late(request);
		break;
	case HPX_VERB_COMPLETE:
	case HPX_VERB_CONCLUDE:
	case HPX_VERB_FAIL:
	case HPX_VERB_RELEASE:
	case HPX_VERB_MARK_UNKNOWN:
		hpx_settle_late(request);
		break;
	default:
		break;
	}
}

/* Every message to a request comes here. One that the request does not wait for
 * any more resumes nothing. */
static void arrived(struct hpx_message *message)
{
	struct hpx_resume *resume = HPX_CONTAINER(message, struct hpx_resume, message);
	struct hpx_request *request = resume->request;

	resume->request = NULL;
	if (request->wait.by == resume)
		hpx_request_go(request, request->wait.result);
	else
		take_unawaited(request, resume);
	hpx_request_drop(request);
}

void hpx_resume_arm(struct hpx_resume *resume, struct hpx_request *request)
{
	HPX_ASSERT(resume->request == NULL);
	resume->message.handle = arrived;
	resume->request = request;
	hpx_request_hold(request);
}

void hpx_resume_post(struct hpx_resume *resume)
{
	hpx_loop_post(&resume->request->shard->loop, &resume->message);
}

void hpx_resume_post_unwoken(struct hpx_resume *resume)
{
	hpx_loop_post_unwoken(&resume->request->shard->loop, &resume->message);
}

void hpx_resume_disarm(struct hpx_resume *resume)
{
	struct hpx_request *request = resume->request;

	HPX_ASSERT(request != NULL);
	resume->request = NULL;
	hpx_request_drop(request);
}

/* On the committer's thread: only hands the op back to its loop. */
static void op_settled(struct hpx_store_op *op)
{
	struct hpx_request *request = op->user;
	hpx_resume_post_unwoken(&request->reservation.op_done);
}

void hpx_request_submit_unawaited(struct hpx_request *request)
{
	struct hpx_reservation *reservation = &request->reservation;

	hpx_resume_arm(&reservation->op_done, request);
	reservation->op.done = op_settled;
	reservation->op.user = request;
	hpx_cached_mark(request);
	hpx_shard_submit(request->shard, &reservation->op);
}

enum hpx_next hpx_request_submit(struct hpx_request *request, enum hpx_wait_kind kind,
				 enum hpx_next result, enum hpx_next late)
{
	hpx_request_submit_unawaited(request);
	return hpx_request_await(request, kind, &request->reservation.op_done,
				 request->settings->store_timeout_ms, result, late);
}

/* On the query thread. */
static void query_answered(struct hpx_store_query *query)
{
	struct hpx_request *request = query->user;
	hpx_resume_post(&request->wait.query_done);
}

enum hpx_next hpx_request_query(struct hpx_request *request, enum hpx_next result,
				enum hpx_next late)
{
	struct hpx_store_query *query = &request->wait.query;

	HPX_ASSERT(query->jobs == NULL);
	hpx_resume_arm(&request->wait.query_done, request);
	query->done = query_answered;
	query->user = request;
	hpx_query_thread_submit(request->shard->gateway->query_thread, query);
	return hpx_request_await(request, HPX_WAIT_QUERY, &request->wait.query_done,
				 request->settings->store_timeout_ms, result, late);
}

/* Leaves whatever could resume the request. */
static void stop_waiting(struct hpx_request *request, enum hpx_queued how)
{
	if (request->wait.kind == HPX_WAIT_SLOT)
		hpx_queue_give_up(request, how);
	hpx_subrequest_leave(request);
	hpx_wait_leave(request);
	request->wait.kind = HPX_WAIT_OVER;
	request->wait.by = NULL;
	request->wait.deadline_ms = 0;
}

/* The result comes too late, or the process ends. */
static void go_late(struct hpx_request *request, enum hpx_queued how)
{
	enum hpx_next late = request->wait.late;

	hpx_request_hold(request);
	stop_waiting(request, how);
	hpx_request_go(request, late);
	hpx_request_drop(request);
}

/* ---- the answer's state ---- */

#define FROM(state) (1u << HPX_ANSWER_##state)

void hpx_request_answer_move(struct hpx_request *request, enum hpx_answer_state state)
{
	static const unsigned from[HPX_ANSWER_STATE_COUNT] = {
		[HPX_ANSWER_COLLECTED] = FROM(COLLECTING),
		[HPX_ANSWER_TOO_LATE] = FROM(COLLECTING),
		[HPX_ANSWER_LOST] = FROM(COLLECTING),
		[HPX_ANSWER_HELD_BACK] = FROM(COLLECTING),
		[HPX_ANSWER_HELD_BACK_LOST] = FROM(HELD_BACK),
		[HPX_ANSWER_FLOWING] = FROM(COLLECTING) | FROM(HELD_BACK),
		[HPX_ANSWER_COMMITTED] = FROM(COLLECTED) | FROM(TOO_LATE) | FROM(LOST) |
					 FROM(HELD_BACK) | FROM(HELD_BACK_LOST),
	};

	HPX_ASSERT((from[state] & 1u << request->answer.state) != 0);
	request->answer.state = state;
}

bool hpx_request_answer_is_lost(const struct hpx_request *request)
{
	enum hpx_answer_state state = request->answer.state;

	return state == HPX_ANSWER_LOST || state == HPX_ANSWER_TOO_LATE ||
	       state == HPX_ANSWER_HELD_BACK_LOST;
}

bool hpx_request_answer_is_held_back(const struct hpx_request *request)
{
	enum hpx_answer_state state = request->answer.state;

	return state == HPX_ANSWER_HELD_BACK || state == HPX_ANSWER_HELD_BACK_LOST;
}

/* ---- events from the downstream and the loop ---- */

bool hpx_request_charge(struct hpx_request *request, size_t bytes, size_t bytes_max)
{
	if (!hpx_gateway_charge(request->shard->gateway, bytes, bytes_max))
		return false;
	request->body.charged_bytes += bytes;
	return true;
}

void hpx_request_take_body(struct hpx_request *request, struct hpx_span data, bool last)
{
	/* A refusal ends the downstream's hold. */
	hpx_request_hold(request);
	request->body.whole = last;
	if (request->wait.kind == HPX_WAIT_PASS)
		hpx_pass_take_body(request, data);
	else
		hpx_guard_take_body(request, data);
	hpx_request_drop(request);
}

void hpx_request_body_malformed(struct hpx_request *request, enum hpx_http_error error)
{
	request->head.error = error;
	/* Half a request is on its way up: it must not look whole. */
	if (request->wait.kind == HPX_WAIT_PASS)
		hpx_downstream_close(request->downstream);
	else
		hpx_request_go(request, HPX_NEXT_BODY_MALFORMED);
}

void hpx_request_client_drained(struct hpx_request *request)
{
	if (request->attempt.exchange != NULL && (request->wait.kind == HPX_WAIT_PASS ||
						  request->wait.kind == HPX_WAIT_FLOW))
		hpx_exchange_resume(request->attempt.exchange);
}

void hpx_request_timed_out(struct hpx_request *request)
{
	/* An upload through us that stopped: the upstream has half a request, so
	 * there is no answer to wait for. */
	if (request->attempt.exchange != NULL)
		hpx_downstream_close(request->downstream);
	else
		hpx_request_go(request, HPX_NEXT_READ_LATE);
}

void hpx_request_answered(struct hpx_request *request)
{
	hpx_request_end(request, &request->times.whole);
	hpx_meter_answered(&request->shard->meter, request->head.route, request->summary.status,
			   hpx_interval_us(&request->times.whole));
	hpx_access_note(request);
}

void hpx_request_client_gone(struct hpx_request *request)
{
	request->downstream = NULL;
	hpx_request_end(request, &request->times.whole);
	switch (request->wait.kind) {
	case HPX_WAIT_PASS:
	case HPX_WAIT_FLOW:
		/* Nothing more will be stored: let the upstream know. */
		hpx_attempt_cancel(request);
		hpx_observe_end(request);
		request->wait.kind = HPX_WAIT_OVER;
		break;
	case HPX_WAIT_SLOT:
		hpx_observe_end(request);
		stop_waiting(request, HPX_QUEUED_left);
		break;
	case HPX_WAIT_OTHER:
	case HPX_WAIT_QUERY:
	case HPX_WAIT_HEAD:
	case HPX_WAIT_BODY:
		stop_waiting(request, HPX_QUEUED_left);
		break;
	case HPX_WAIT_RESERVE:
	case HPX_WAIT_UPSTREAM:
	case HPX_WAIT_STORE:
		/* The attempt goes on, and its answer is stored. */
		break;
	case HPX_WAIT_NOTHING: /* the step that runs will find out */
	case HPX_WAIT_OVER:
		break;
	}
}

void hpx_request_tick(struct hpx_request *request, uint64_t now_ms)
{
	const struct hpx_request_wait *wait = &request->wait;

	if (wait->kind == HPX_WAIT_UPSTREAM)
		hpx_attempt_renew(request, now_ms);
	else if (wait->deadline_ms != 0 && now_ms >= wait->deadline_ms &&
		 !hpx_queue_is_granted(request))
		go_late(request, HPX_QUEUED_timed_out);
}

void hpx_request_abandon(struct hpx_request *request)
{
	hpx_request_hold(request);
	switch (request->wait.kind) {
	case HPX_WAIT_SLOT:
	case HPX_WAIT_RESERVE:
	case HPX_WAIT_OTHER:
	case HPX_WAIT_QUERY:
		go_late(request, HPX_QUEUED_left);
		break;
	case HPX_WAIT_UPSTREAM:
		hpx_attempt_abandon(request);
		break;
	case HPX_WAIT_STORE:
		break;
	default:
		if (request->downstream != NULL)
			hpx_downstream_close(request->downstream);
		break;
	}
	hpx_request_drop(request);
}
