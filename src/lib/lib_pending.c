/* The life of a pending store op:
 *
 *             done (committer)
 *   awaited ───────────────────▶ done ──────▶ the caller frees it
 *      │                          │ cancel
 *      │ the deadline             ▼
 *      └──────────────────────▶ abandoned ──▶ freed when it is done; one that
 *                                             reserved something becomes a FAIL
 *                                             with its token first
 *
 * Whoever takes it out of `awaited` decides, under its mutex, who frees it. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "lib/lib.h"

/* Of one op: the largest body (16 MiB), the headers, and everything else. */
#define MEMORY_MAX ((size_t)20 << 20)
/* The bound of all ops that wait for the store while it is down. */
#define HELD_BYTES_MAX ((size_t)256 << 20)

static bool init_sync(struct hpx_pending *pending)
{
	if (pthread_mutex_init(&pending->mutex, NULL) != 0)
		return false;
	if (hpx_cond_init(&pending->settled) == HPX_OK)
		return true;
	pthread_mutex_destroy(&pending->mutex);
	return false;
}

struct hpx_pending *hpx_pending_new(struct hapax *hapax, enum hpx_verb verb)
{
	struct hpx_pending *pending = calloc(1, sizeof(*pending));

	if (pending == NULL)
		return NULL;
	if (!init_sync(pending)) {
		free(pending);
		return NULL;
	}
	hpx_arena_init(&pending->memory, MEMORY_MAX);
	pending->hapax = hapax;
	pending->op.verb = verb;
	pending->op.actor = HPX_SPAN("application");
	return pending;
}

void hpx_pending_free(struct hpx_pending *pending)
{
	if (pending == NULL)
		return;
	atomic_fetch_sub(&pending->hapax->held_bytes, pending->held_bytes);
	hpx_store_op_drop(&pending->op);
	hpx_arena_done(&pending->memory);
	pthread_cond_destroy(&pending->settled);
	pthread_mutex_destroy(&pending->mutex);
	free(pending);
}

bool hpx_pending_copy(struct hpx_pending *pending, struct hpx_span from, struct hpx_span *ret_copy)
{
	*ret_copy = hpx_arena_dup(&pending->memory, from);
	return ret_copy->ptr != NULL;
}

/* With these statuses, by the committer's contract, the store was not asked. */
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
	HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
	hpx_store_op_drop(op);
	op->verb = HPX_VERB_FAIL;
	op->fail = (struct hpx_op_end){ .status_seen = 0 };
	op->reason = HPX_SPAN("the caller did not wait for its reservation");
}

/* The end of an op that nobody waits for. */
static void discard(struct hpx_pending *pending)
{
	HPX_ASSERT(pending->state == HPX_PENDING_ABANDONED);
	if (!may_have_reserved(&pending->op)) {
		hpx_pending_free(pending);
		return;
	}
	become_fail(&pending->op);
	hpx_committer_submit(pending->hapax->committer, &pending->op);
}

/* On the committer's thread, or, after it ended, on the submitter's. */
static void pending_done(struct hpx_store_op *op)
{
	struct hpx_pending *pending = HPX_CONTAINER(op, struct hpx_pending, op);

	pthread_mutex_lock(&pending->mutex);
	HPX_ASSERT(pending->state != HPX_PENDING_DONE);
	bool abandoned = pending->state == HPX_PENDING_ABANDONED;
	if (!abandoned) {
		pending->state = HPX_PENDING_DONE;
		pthread_cond_signal(&pending->settled);
	}
	pthread_mutex_unlock(&pending->mutex);
	if (abandoned)
		discard(pending);
}

/* False: the time was up, and the op is the committer's. */
static bool await(struct hpx_pending *pending, int64_t deadline_ms)
{
	pthread_mutex_lock(&pending->mutex);
	while (pending->state == HPX_PENDING_AWAITED && hpx_clock_boot_ms() < deadline_ms)
		hpx_cond_wait_until(&pending->settled, &pending->mutex, deadline_ms);
	bool done = pending->state == HPX_PENDING_DONE;
	if (!done)
		pending->state = HPX_PENDING_ABANDONED;
	pthread_mutex_unlock(&pending->mutex);
	return done;
}

static enum hpx_status run_here(struct hpx_pending *pending, char *detail)
{
	struct hpx_store_op *op = &pending->op;
	enum hpx_status status = hpx_store_run(pending->hapax->store, &op, 1, detail);

	if (status != HPX_OK)
		pending->op.status = status;
	return pending->op.status;
}

/* Counts the op's bytes. False: too many bytes wait for the store already. */
static bool count_in(struct hpx_pending *pending)
{
	size_t bytes = sizeof(*pending) + pending->memory.used_bytes;

	if (pending->held_bytes != 0)
		return true;
	if (atomic_fetch_add(&pending->hapax->held_bytes, bytes) > HELD_BYTES_MAX - bytes) {
		atomic_fetch_sub(&pending->hapax->held_bytes, bytes);
		return false;
	}
	pending->held_bytes = bytes;
	return true;
}

enum hpx_status hpx_pending_run(struct hpx_pending **pending, int64_t deadline_ms, char *detail)
{
	struct hpx_pending *running = *pending;
	struct hapax *hapax = running->hapax;

	HPX_ASSERT(running->state != HPX_PENDING_ABANDONED);
	detail[0] = '\0';
	if (hapax->committer == NULL)
		return run_here(running, detail);
	if (!count_in(running)) {
		hpx_store_problem(detail, "too much is waiting for it already");
		running->op.status = HPX_UNAVAILABLE;
		return HPX_UNAVAILABLE;
	}
	running->state = HPX_PENDING_AWAITED;
	running->op.done = pending_done;
	hpx_committer_submit(hapax->committer, &running->op);
	if (!await(running, deadline_ms)) {
		*pending = NULL;
		hpx_handle_trouble(hapax, detail);
		return HPX_TIMEOUT;
	}
	if (hpx_result_of(running->op.status) == HAPAX_UNAVAILABLE)
		hpx_handle_trouble(hapax, detail);
	return running->op.status;
}

void hpx_pending_cancel(struct hpx_pending *pending)
{
	char detail[HPX_STORE_PROBLEM_SIZE];

	if (pending->hapax->committer != NULL) {
		pending->state = HPX_PENDING_ABANDONED;
		discard(pending);
		return;
	}
	/* The FAIL runs in the caller's transaction. Where that cannot be committed
	 * any more, the reservation is gone with it. */
	if (may_have_reserved(&pending->op)) {
		become_fail(&pending->op);
		run_here(pending, detail);
	}
	hpx_pending_free(pending);
}

int64_t hpx_pending_deadline(const struct hapax *hapax)
{
	return hpx_clock_boot_ms() + hapax->timeout_ms;
}
