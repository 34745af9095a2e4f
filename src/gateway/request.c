/* The driver of a request's steps, and what keeps a request alive. */
#include "gateway/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/container.h"
#include "base/log.h"
#include "gateway/attempt.h"
#include "gateway/cached.h"
#include "gateway/guard.h"
#include "gateway/pass.h"
#include "gateway/queue.h"
#include "gateway/respond.h"
#include "gateway/settle.h"
#include "gateway/sighting.h"
#include "gateway/subrequest.h"
#include "gateway/wait.h"

/* What one request's small things (fields, names, heads) may take together;
 * bodies are counted apart. A head of the largest size has room several times. */
#define ARENA_BYTES_MAX (1024 * 1024)

struct hpx_request *hpx_request_new(struct hpx_client *client)
{
	struct hpx_request *request = calloc(1, sizeof(*request));
	struct hpx_settings *settings = client->shard->settings;

	if (request == NULL)
		return NULL;
	request->shard = client->shard;
	request->client = client;
	request->settings = hpx_settings_ref(settings);
	request->holds = 1;
	request->head.after_tenant = HPX_NEXT_BODY;
	request->head.after_body = HPX_NEXT_FINGERPRINT;
	snprintf(request->head.peer, sizeof(request->head.peer), "%s", hpx_transport_peer(client->transport));
	request->began_us = hpx_clock_boot_us();
	hpx_arena_init(&request->arena, ARENA_BYTES_MAX);
	hpx_buffer_init(&request->body.bytes, settings->request_body_bytes_max);
	hpx_buffer_init(&request->attempt.head, 2 * settings->head_bytes_max + 4096);
	hpx_buffer_init(&request->answer.head, 2 * settings->head_bytes_max + 4096);
	hpx_buffer_init(&request->answer.kept_head, 2 * settings->head_bytes_max + 4096);
	hpx_buffer_init(&request->answer.body, settings->response_body_bytes_max);
	struct hpx_http_limits limits = { .head_bytes_max = settings->head_bytes_max,
					  .fields_max = settings->fields_max };
	hpx_http_reader_request(&request->head.reader, &limits);

	request->next = client->shard->requests;
	if (request->next != NULL)
		request->next->prev = request;
	client->shard->requests = request;
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
	HPX_ASSERT(request->attempt.exchange == NULL && !request->reservation.op_pending && !request->wait.waiting &&
		   !request->wait.look_pending && request->attempt.slot.state == HPX_SLOT_NONE);
	if (request->prev != NULL)
		request->prev->next = request->next;
	else
		request->shard->requests = request->next;
	if (request->next != NULL)
		request->next->prev = request->prev;
	hpx_later_cancel(&request->answer.head_later);
	hpx_gateway_uncharge(request->shard->gateway, request->body.charged_bytes);
	hpx_answer_free(request->reservation.stored);
	hpx_buffer_done(&request->head.bytes);
	hpx_buffer_done(&request->body.bytes);
	hpx_buffer_done(&request->attempt.head);
	hpx_buffer_done(&request->answer.head);
	hpx_buffer_done(&request->answer.kept_head);
	hpx_buffer_done(&request->answer.body);
	hpx_arena_done(&request->arena);
	hpx_settings_unref(request->settings);
	free(request);
}

static enum hpx_next (*const steps[HPX_NEXT_COUNT])(struct hpx_request *) = {
	[HPX_NEXT_ROUTE] = hpx_step_route,
	[HPX_NEXT_KEY] = hpx_step_key,
	[HPX_NEXT_TENANT] = hpx_step_tenant,
	[HPX_NEXT_BODY] = hpx_step_body,
	[HPX_NEXT_FINGERPRINT] = hpx_step_fingerprint,
	[HPX_NEXT_LOOKUP] = hpx_step_lookup,
	[HPX_NEXT_SLOT] = hpx_step_slot,
	[HPX_NEXT_RESERVE] = hpx_step_reserve,
	[HPX_NEXT_FORWARD] = hpx_step_forward,
	[HPX_NEXT_STORE] = hpx_step_store,
	[HPX_NEXT_COMMITTED] = hpx_step_committed,
	[HPX_NEXT_ANSWER] = hpx_step_answer,
	[HPX_NEXT_PASS] = hpx_step_pass,
	[HPX_NEXT_PASS_ON] = hpx_step_pass_on,
	[HPX_NEXT_OWN] = hpx_step_own,
	[HPX_NEXT_OPERATION] = hpx_step_operation,
	[HPX_NEXT_FIND] = hpx_step_find,
	[HPX_NEXT_WEBHOOK] = hpx_step_webhook,
};

void hpx_request_go(struct hpx_request *request, enum hpx_next next)
{
	hpx_request_hold(request);
	while (next < HPX_NEXT_COUNT)
		next = steps[next](request);
	if (next == HPX_NEXT_DONE) {
		request->wait.phase = HPX_PHASE_OVER;
		hpx_wait_leave(request);
		hpx_queue_leave(request);
	}
	hpx_request_drop(request);
}

static void op_came_back(struct hpx_message *message)
{
	struct hpx_request *request = HPX_CONTAINER(message, struct hpx_request, reservation.op_message);

	request->reservation.op_pending = false;
	request->wait.deadline_ms = 0;
	request->reservation.op_came_back(request);
	hpx_request_drop(request);
}

/* On the committer's thread: only hands the op back to its loop. */
static void op_settled(struct hpx_store_op *op)
{
	struct hpx_request *request = op->user;
	hpx_loop_post(&request->shard->loop, &request->reservation.op_message);
}

void hpx_request_submit(struct hpx_request *request,
			void (*came_back)(struct hpx_request *request))
{
	request->reservation.op.done = op_settled;
	request->reservation.op.user = request;
	request->reservation.op_message.handle = op_came_back;
	request->reservation.op_came_back = came_back;
	request->reservation.op_pending = true;
	hpx_request_hold(request);
	hpx_cached_mark(request);
	hpx_committer_submit(request->shard->service->committer, &request->reservation.op);
}

void hpx_request_asks(struct hpx_request *request, int64_t timeout_ms,
		      enum hpx_next (*too_late)(struct hpx_request *request))
{
	request->wait.phase = HPX_PHASE_ASKING;
	request->wait.deadline_ms =
		hpx_loop_now_ms(&request->shard->loop) + (uint64_t)timeout_ms;
	request->wait.too_late = too_late;
}

static void stop_asking(struct hpx_request *request)
{
	request->wait.deadline_ms = 0;
	request->wait.phase = HPX_PHASE_OVER;
	hpx_subrequest_leave(request);
	hpx_wait_leave(request);
}

static void ask_no_more(struct hpx_request *request)
{
	hpx_request_hold(request);
	stop_asking(request);
	hpx_request_go(request, request->wait.too_late(request));
	hpx_request_drop(request);
}

static void look_came_back(struct hpx_message *message)
{
	struct hpx_request *request = HPX_CONTAINER(message, struct hpx_request, wait.look_message);

	request->wait.look_pending = false;
	if (request->wait.phase == HPX_PHASE_ASKING) {
		request->wait.deadline_ms = 0;
		request->wait.look_came_back(request);
	}
	hpx_job_entry_free(request->wait.look.jobs);
	request->wait.look.jobs = NULL;
	hpx_request_drop(request);
}

/* On the looker's thread. */
static void looked(struct hpx_look *look)
{
	struct hpx_request *request = look->user;
	hpx_loop_post(&request->shard->loop, &request->wait.look_message);
}

void hpx_request_look(struct hpx_request *request,
		      void (*came_back)(struct hpx_request *request))
{
	request->wait.look.done = looked;
	request->wait.look.user = request;
	request->wait.look_message.handle = look_came_back;
	request->wait.look_came_back = came_back;
	request->wait.look_pending = true;
	hpx_request_hold(request);
	hpx_looker_submit(request->shard->gateway->looker, &request->wait.look);
}

bool hpx_request_charge(struct hpx_request *request, size_t bytes, size_t bytes_max)
{
	if (!hpx_gateway_charge(request->shard->gateway, bytes, bytes_max))
		return false;
	request->body.charged_bytes += bytes;
	return true;
}

size_t hpx_request_feed(struct hpx_request *request, struct hpx_span bytes)
{
	size_t used;

	/* A refusal inside ends the client's hold. */
	hpx_request_hold(request);
	used = request->wait.phase == HPX_PHASE_PASSING ? hpx_pass_feed(request, bytes) :
							  hpx_guard_feed(request, bytes);
	hpx_request_drop(request);
	return used;
}

void hpx_request_client_drained(struct hpx_request *request)
{
	if (request->attempt.exchange != NULL && (request->wait.phase == HPX_PHASE_PASSING ||
						  request->wait.phase == HPX_PHASE_STREAMING))
		hpx_exchange_resume(request->attempt.exchange);
}

void hpx_request_timed_out(struct hpx_request *request)
{
	if (request->attempt.exchange != NULL) {
		/* An upload through us that stopped: the upstream has half a
		 * request, so there is no answer to wait for. */
		hpx_client_close(request->client);
		return;
	}
	hpx_request_hold(request);
	hpx_respond_refuse(request, HPX_PROBLEM_request_timeout, NULL, HPX_RESPOND_CLOSE);
	request->wait.phase = HPX_PHASE_OVER;
	hpx_request_drop(request);
}

void hpx_request_client_gone(struct hpx_request *request)
{
	request->client = NULL;
	switch (request->wait.phase) {
	case HPX_PHASE_PASSING:
	case HPX_PHASE_STREAMING:
		/* Nothing more will be stored: let the upstream know. */
		hpx_attempt_cancel(request);
		hpx_sighting_over(request);
		request->wait.phase = HPX_PHASE_OVER;
		break;
	case HPX_PHASE_WAITING:
		hpx_wait_leave(request);
		request->wait.phase = HPX_PHASE_OVER;
		break;
	case HPX_PHASE_QUEUED:
		hpx_sighting_over(request);
		hpx_queue_leave(request);
		break;
	case HPX_PHASE_ASKING:
		stop_asking(request);
		break;
	default:
		/* Reading: abandoned with its connection. Reserving, forwarding,
		 * storing: the attempt goes on and its answer is stored. */
		break;
	}
}

void hpx_request_tick(struct hpx_request *request, uint64_t now_ms)
{
	switch (request->wait.phase) {
	case HPX_PHASE_WAITING:
		hpx_wait_tick(request, now_ms);
		break;
	case HPX_PHASE_FORWARDING:
		hpx_attempt_renew(request, now_ms);
		break;
	case HPX_PHASE_QUEUED:
		hpx_queue_tick(request, now_ms);
		break;
	case HPX_PHASE_RESERVING:
	case HPX_PHASE_STORING:
		hpx_settle_tick(request, now_ms);
		break;
	case HPX_PHASE_ASKING:
		if (request->wait.deadline_ms != 0 && now_ms >= request->wait.deadline_ms)
			ask_no_more(request);
		break;
	default:
		break;
	}
}

void hpx_request_abandon(struct hpx_request *request)
{
	hpx_request_hold(request);
	switch (request->wait.phase) {
	case HPX_PHASE_QUEUED:
		hpx_queue_abandon(request);
		break;
	case HPX_PHASE_RESERVING:
		if (!request->reservation.gave_up)
			hpx_guard_give_up(request);
		break;
	case HPX_PHASE_WAITING:
		hpx_wait_leave(request);
		hpx_request_go(request, hpx_wait_over(request));
		break;
	case HPX_PHASE_FORWARDING:
		hpx_attempt_abandon(request);
		break;
	case HPX_PHASE_STORING:
		break;
	case HPX_PHASE_ASKING:
		ask_no_more(request);
		break;
	default:
		if (request->client != NULL)
			hpx_client_close(request->client);
		break;
	}
	hpx_request_drop(request);
}
