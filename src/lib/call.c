/* A call's life:
 *
 *             done (committer)
 *   awaited ───────────────────▶ done ──────▶ the caller frees it
 *      │                          │ give_back
 *      │ the deadline             ▼
 *      └──────────────────────▶ abandoned ──▶ freed when it is done; one that
 *                                             reserved something becomes a FAIL
 *                                             with its token first
 *
 * Whoever takes it out of `awaited` decides, under its mutex, who frees it. */
#include "lib/call.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/thread.h"
#include "lib/result.h"

/* The largest body with the largest headers, and the rest. */
#define MEMORY_MAX ((size_t)20 << 20)
/* While the store is down, abandoned calls wait for it; not any number of them. */
#define HELD_BYTES_MAX ((size_t)256 << 20)

static bool init_sync(struct hpx_call *call)
{
	if (pthread_mutex_init(&call->mutex, NULL) != 0)
		return false;
	if (hpx_cond_init(&call->settled) == HPX_OK)
		return true;
	pthread_mutex_destroy(&call->mutex);
	return false;
}

struct hpx_call *hpx_call_new(struct hapax *hapax, enum hpx_verb verb)
{
	struct hpx_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	if (!init_sync(call)) {
		free(call);
		return NULL;
	}
	hpx_arena_init(&call->memory, MEMORY_MAX);
	call->hapax = hapax;
	call->op.verb = verb;
	call->op.actor = HPX_SPAN("application");
	return call;
}

void hpx_call_free(struct hpx_call *call)
{
	if (call == NULL)
		return;
	atomic_fetch_sub(&call->hapax->held_bytes, call->held_bytes);
	hpx_store_op_drop(&call->op);
	hpx_arena_done(&call->memory);
	pthread_cond_destroy(&call->settled);
	pthread_mutex_destroy(&call->mutex);
	free(call);
}

bool hpx_call_copy(struct hpx_call *call, struct hpx_span from, struct hpx_span *ret_copy)
{
	*ret_copy = hpx_arena_dup(&call->memory, from);
	return ret_copy->ptr != NULL;
}

/* By the committer's contract: with these the store was not asked. */
static bool was_asked(enum hpx_status status)
{
	return status != HPX_UNAVAILABLE && status != HPX_CLOSED && status != HPX_MISUSE;
}

static bool may_have_reserved(const struct hpx_store_op *op)
{
	if (op->verb != HPX_VERB_RESERVE)
		return false;
	if (op->status != HPX_OK)
		return was_asked(op->status);
	return op->decision.kind == HPX_DECISION_EXECUTE ||
	       op->decision.kind == HPX_DECISION_EXECUTE_AGAIN;
}

static void become_fail(struct hpx_store_op *op)
{
	hpx_store_op_drop(op);
	op->verb = HPX_VERB_FAIL;
	op->fail = (struct hpx_op_end){ .status_seen = 0 };
	op->reason = HPX_SPAN("the caller did not wait for its reservation");
}

/* The end of a call that nobody waits for. */
static void bury(struct hpx_call *call)
{
	if (!may_have_reserved(&call->op)) {
		hpx_call_free(call);
		return;
	}
	become_fail(&call->op);
	hpx_committer_submit(call->hapax->committer, &call->op);
}

/* On the committer's thread, or, after it ended, on the submitter's. */
static void call_done(struct hpx_store_op *op)
{
	struct hpx_call *call = HPX_CONTAINER(op, struct hpx_call, op);

	pthread_mutex_lock(&call->mutex);
	bool abandoned = call->state == HPX_CALL_ABANDONED;
	if (!abandoned) {
		call->state = HPX_CALL_DONE;
		pthread_cond_signal(&call->settled);
	}
	pthread_mutex_unlock(&call->mutex);
	if (abandoned)
		bury(call);
}

/* False: the time was up, and the call is the committer's. */
static bool await(struct hpx_call *call, int64_t deadline_ms)
{
	pthread_mutex_lock(&call->mutex);
	while (call->state == HPX_CALL_AWAITED && hpx_clock_boot_ms() < deadline_ms)
		hpx_cond_wait_until(&call->settled, &call->mutex, deadline_ms);
	bool done = call->state == HPX_CALL_DONE;
	if (!done)
		call->state = HPX_CALL_ABANDONED;
	pthread_mutex_unlock(&call->mutex);
	return done;
}

static enum hpx_status run_here(struct hpx_call *call, char *detail)
{
	struct hpx_store_op *op = &call->op;
	enum hpx_status status = hpx_store_run(call->hapax->store, &op, 1, detail);

	if (status != HPX_OK)
		call->op.status = status;
	return call->op.status;
}

/* False: too much is waiting for the store already. */
static bool count_in(struct hpx_call *call)
{
	size_t bytes = sizeof(*call) + call->memory.used_bytes;

	if (call->held_bytes != 0)
		return true;
	if (atomic_fetch_add(&call->hapax->held_bytes, bytes) > HELD_BYTES_MAX - bytes) {
		atomic_fetch_sub(&call->hapax->held_bytes, bytes);
		return false;
	}
	call->held_bytes = bytes;
	return true;
}

enum hpx_status hpx_call_run(struct hpx_call **call, int64_t deadline_ms, char *detail)
{
	struct hpx_call *running = *call;
	struct hapax *hapax = running->hapax;

	detail[0] = '\0';
	if (hapax->committer == NULL)
		return run_here(running, detail);
	if (!count_in(running)) {
		hpx_store_problem(detail, "too much is waiting for it already");
		running->op.status = HPX_UNAVAILABLE;
		return HPX_UNAVAILABLE;
	}
	running->state = HPX_CALL_AWAITED;
	running->op.done = call_done;
	hpx_committer_submit(hapax->committer, &running->op);
	if (!await(running, deadline_ms)) {
		*call = NULL;
		hpx_handle_trouble(hapax, detail);
		return HPX_TIMEOUT;
	}
	if (hpx_result_of(running->op.status) == HAPAX_UNAVAILABLE)
		hpx_handle_trouble(hapax, detail);
	return running->op.status;
}

void hpx_call_give_back(struct hpx_call *call)
{
	char detail[HPX_STORE_PROBLEM_SIZE];

	if (call->hapax->committer != NULL) {
		call->state = HPX_CALL_ABANDONED;
		bury(call);
		return;
	}
	/* In the caller's transaction, which may be past saving: then nothing
	 * of the reservation is left either. */
	if (may_have_reserved(&call->op)) {
		become_fail(&call->op);
		run_here(call, detail);
	}
	hpx_call_free(call);
}

int64_t hpx_call_deadline(const struct hapax *hapax)
{
	return hpx_clock_boot_ms() + hapax->timeout_ms;
}
