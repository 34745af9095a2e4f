/* The reconciler's thread: looks for unknowns whose probe is due, with a reader;
 * claims those that can be probed now; sends their calls when their queue has a
 * slot; escalates those without a probe to a person.
 *
 *   IDLE ─▶ SUBMITTED ─▶ BACK ─▶ IDLE       hpx_probe_op_state, of each of the two
 *   submit, on_claimed, begin_claimed       CLAIM_UNKNOWN: move ─▶ function
 *   submit, on_escalated, end_escalation    ESCALATE
 *
 *  1. A look costs as much as there are queues, not as there are unknowns, and no
 *     part of it happens inside a write.
 *  2. What one queue does delays no other (probe_queue.c).
 *  3. A slot that comes free is used at once, as long as calls are due.
 *  4. One claim and one escalation at a time. */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "worker/probe_call.h"

#define EVERY_DEFAULT_MS 1000
/* After an escalation, so many times as long as it took belong to other writers. */
#define ESCALATE_PAUSE 4
/* No more escalated unknowns than this have a log line each. */
#define NAMED_MAX 10
/* Where another process claims from the same queue: the claim is chosen out of so
 * many times as many. */
#define WINDOW 4
/* Names of queues in the store: route patterns and targets. */
#define NAMES_BYTES_MAX ((size_t)4 << 20)

#define NO_PROBE "no probe is configured: a person or a webhook settles it"

static void log_trouble(const char *at, enum hpx_status status)
{
	if (status != HPX_OK && status != HPX_CLOSED)
		hpx_log(HPX_LOG_ERROR, "reconcile_failed", "at=%s problem=%s", at,
			hpx_status_name(status));
}

/* ---- sending what was claimed ---- */

/* With the lock held, which is let go meanwhile. */
static void send_waiting(struct hpx_reconciler *r, int64_t *wake_ms)
{
	for (struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next) {
		struct hpx_probe_call *call;

		while (!r->thread.stopping &&
		       (call = hpx_probe_queue_take(r, queue, wake_ms)) != NULL) {
			hpx_thread_unlock(&r->thread);
			hpx_probe_call_send(call);
			hpx_thread_lock(&r->thread);
		}
	}
}

static void drop_waiting(struct hpx_reconciler *r)
{
	for (struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next) {
		struct hpx_probe_call *call;

		while ((call = hpx_probe_queue_pop(queue)) != NULL) {
			hpx_thread_unlock(&r->thread);
			hpx_probe_call_drop(call);
			hpx_thread_lock(&r->thread);
		}
	}
}

/* ---- judging what was answered ---- */

/* With the lock held, which is let go meanwhile. `use`: judge or drop. */
static void end_answered(struct hpx_reconciler *r, void (*use)(struct hpx_probe_call *))
{
	while (r->answered != NULL) {
		struct hpx_probe_call *call = r->answered;

		r->answered = call->next;
		hpx_thread_unlock(&r->thread);
		use(call);
		hpx_thread_lock(&r->thread);
	}
}

/* ---- looking for what is due ---- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Takes `count` of `found` at random, to the front. */
static void shuffle(struct hpx_due *due, size_t count, size_t found)
{
	HPX_ASSERT(count <= found);
	for (size_t i = 0; i < count; i++) {
		uint64_t random;
		hpx_random(&random, sizeof(random));
		size_t other = i + (size_t)(random % (found - i));
		struct hpx_due taken = due[other];
		due[other] = due[i];
		due[i] = taken;
	}
}

/* Appends what is due in the queue to the claim. With the lock held, which is let
 * go meanwhile. */
static enum hpx_status find_due(struct hpx_reconciler *r, struct hpx_probe_queue *queue,
				size_t *claim_count)
{
	size_t left = HPX_CLAIM_MAX - *claim_count;
	size_t room = least(hpx_probe_queue_room(queue), left);
	size_t window = queue->contended ? least(room * WINDOW, left) : room;
	int64_t from_ms = queue->from_ms, lease_ms;
	struct hpx_due *due = r->claim_due + *claim_count;
	enum hpx_status status;
	size_t found = 0;

	HPX_ASSERT(*claim_count <= HPX_CLAIM_MAX && r->claim_state == HPX_PROBE_OP_IDLE);
	if (room == 0)
		return HPX_OK;
	hpx_thread_unlock(&r->thread);
	status = hpx_store_due(r->reader, hpx_span(queue->name, queue->name_len), from_ms, due,
			       window, &found);
	if (status == HPX_OK && found > room)
		shuffle(due, room, found);
	hpx_thread_lock(&r->thread);
	queue->more = status == HPX_OK && found >= window;
	found = least(found, room);
	lease_ms = hpx_probe_call_lease_ms(queue->reconcile);
	for (size_t i = 0; i < found; i++)
		due[i].lease_ms = lease_ms;
	if (found > 0 && !queue->contended)
		queue->from_ms = due[0].at_ms;
	queue->wanted = (unsigned)found;
	*claim_count += found;
	return status;
}

/* Unknowns without a probe: escalated, but for those that evidence from before they
 * were unknown settles. Without the lock. */
static enum hpx_status find_unprobed(struct hpx_reconciler *r, struct hpx_span name,
				     size_t *claim_count, size_t *escalate_count)
{
	struct hpx_due *due = r->escalate_due + *escalate_count;
	size_t found = 0, kept = 0;
	enum hpx_status status = hpx_store_due(r->reader, name, 0, due,
					       HPX_ESCALATE_MAX - *escalate_count, &found);

	for (size_t i = 0; i < found; i++) {
		if (!due[i].evidence) {
			due[kept++] = due[i];
		} else if (*claim_count < HPX_CLAIM_MAX) {
			r->claim_due[*claim_count] = due[i];
			r->claim_due[(*claim_count)++].lease_ms = hpx_probe_call_lease_ms(NULL);
		}
	}
	*escalate_count += kept;
	return status;
}

/* All queues that the store knows: those with a probe may have something due, the
 * others have no probe. With the lock held, which is let go meanwhile. */
static enum hpx_status poll_queues(struct hpx_reconciler *r, size_t *claim_count,
				   size_t *escalate_count)
{
	bool may_escalate = r->escalate_state == HPX_PROBE_OP_IDLE;
	struct hpx_lane_due *list = NULL;
	struct hpx_arena arena;
	size_t count = 0;
	enum hpx_status status;

	hpx_thread_unlock(&r->thread);
	hpx_arena_init(&arena, NAMES_BYTES_MAX);
	status = hpx_store_lanes(r->reader, &arena, &list, &count);
	hpx_thread_lock(&r->thread);
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		struct hpx_probe_queue *queue = hpx_probe_queue_find(r, list[i].name);

		if (queue != NULL && queue->reconcile != NULL) {
			queue->more = true;
			queue->from_ms = 0;
		} else if (may_escalate && *escalate_count < HPX_ESCALATE_MAX) {
			hpx_thread_unlock(&r->thread);
			status = find_unprobed(r, list[i].name, claim_count, escalate_count);
			hpx_thread_lock(&r->thread);
		}
	}
	hpx_arena_done(&arena);
	return status;
}

/* ---- claiming and escalating ---- */

static void come_back(struct hpx_reconciler *r, enum hpx_probe_op_state *state)
{
	hpx_thread_lock(&r->thread);
	HPX_ASSERT(*state == HPX_PROBE_OP_SUBMITTED);
	*state = HPX_PROBE_OP_BACK;
	hpx_thread_wake(&r->thread);
	hpx_thread_unlock(&r->thread);
}

/* Both on the committer's thread. */
static void on_claimed(struct hpx_store_op *op)
{
	struct hpx_reconciler *r = HPX_CONTAINER(op, struct hpx_reconciler, claim);

	come_back(r, &r->claim_state);
}

static void on_escalated(struct hpx_store_op *op)
{
	struct hpx_reconciler *r = HPX_CONTAINER(op, struct hpx_reconciler, escalate);

	come_back(r, &r->escalate_state);
}

/* With the lock held, which is let go meanwhile. */
static void submit(struct hpx_reconciler *r, struct hpx_store_op *op,
		   enum hpx_probe_op_state *state)
{
	HPX_ASSERT(*state == HPX_PROBE_OP_IDLE);
	*state = HPX_PROBE_OP_SUBMITTED;
	hpx_thread_unlock(&r->thread);
	hpx_committer_submit(r->service->committer, op);
	hpx_thread_lock(&r->thread);
}

static void submit_claim(struct hpx_reconciler *r, size_t count)
{
	r->claim = (struct hpx_store_op){
		.verb = HPX_VERB_CLAIM_UNKNOWN,
		.claim_unknown = { .due = r->claim_due, .due_count = count },
		.actor = HPX_SPAN("reconciler"),
		.done = on_claimed,
	};
	submit(r, &r->claim, &r->claim_state);
}

static void submit_escalation(struct hpx_reconciler *r, size_t count)
{
	r->escalate = (struct hpx_store_op){
		.verb = HPX_VERB_ESCALATE,
		.escalate = { .due = r->escalate_due, .due_count = count },
		.actor = HPX_SPAN("reconciler"),
		.reason = HPX_SPAN(NO_PROBE),
		.done = on_escalated,
	};
	r->escalate_ms = hpx_clock_boot_ms();
	submit(r, &r->escalate, &r->escalate_state);
}

/* A queue that got fewer than it found shares its unknowns with another process,
 * and looks at a wider part of them; a queue that got none waits for the next look
 * at all queues. */
static void judge_claim(struct hpx_reconciler *r, enum hpx_status status)
{
	for (struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next) {
		if (queue->wanted == 0)
			continue;
		queue->contended = status == HPX_OK && queue->gotten < queue->wanted;
		queue->more = queue->more && queue->gotten > 0;
		/* Slowly less: one claim that was quick says little. */
		queue->ahead -= (queue->ahead + 7) / 8;
		if (queue->ahead < queue->freed)
			queue->ahead = queue->freed;
		queue->wanted = 0;
	}
}

/* With the lock held, which is let go meanwhile. */
static void begin_claimed(struct hpx_reconciler *r)
{
	struct hpx_unsettled *list = r->claim.claim_unknown.unsettled;
	struct hpx_settings *settings = hpx_settings_ref(r->settings);

	r->claim_state = HPX_PROBE_OP_IDLE;
	r->claim.claim_unknown.unsettled = NULL;
	hpx_thread_unlock(&r->thread);
	log_trouble("take", r->claim.status);
	while (list != NULL) {
		struct hpx_unsettled *unknown = list;
		list = list->next;
		unknown->next = NULL;
		hpx_probe_call_begin(r, settings, unknown);
	}
	hpx_settings_unref(settings);
	hpx_thread_lock(&r->thread);
	judge_claim(r, r->claim.status);
}

/* Each unknown by its name where they are few, so that an alert leads to them. */
static void log_escalated(const struct hpx_reconciler *r, unsigned count)
{
	const char *move = hpx_reconcile_name(HPX_RECONCILE_A_PERSON);
	char reference[HPX_REFERENCE_SIZE];

	if (count != r->escalate.escalate.due_count || count > NAMED_MAX) {
		hpx_log(HPX_LOG_WARN, "left_to_a_person",
			"count=%u move=%s reason=\"%s\" see=\"hapax keys ls --state unknown\"",
			count, move, NO_PROBE);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct hpx_due *due = &r->escalate_due[i];

		hpx_reference_print(&due->id, &due->mark, reference);
		hpx_log(HPX_LOG_WARN, "left_to_a_person",
			"operation=%s job=%lld move=%s reason=\"%s\"", reference,
			(long long)due->number, move, NO_PROBE);
	}
}

static void end_escalation(struct hpx_reconciler *r)
{
	const struct hpx_store_op *op = &r->escalate;
	int64_t now_ms = hpx_clock_boot_ms();
	unsigned count = op->status == HPX_OK ? op->escalate.count : 0;

	r->escalate_state = HPX_PROBE_OP_IDLE;
	log_trouble("unask", op->status);
	hpx_counter_add(&r->service->counters.reconciled[HPX_RECONCILED_failed], count);
	if (count > 0)
		log_escalated(r, count);
	if (op->status == HPX_OK && op->escalate.due_count == HPX_ESCALATE_MAX) /* there is more */
		r->poll_ms = now_ms + 1 + ESCALATE_PAUSE * (now_ms - r->escalate_ms);
}

/* ---- the thread ---- */

/* With the lock held, which is let go meanwhile. */
static void look(struct hpx_reconciler *r)
{
	size_t claim_count = 0, escalate_count = 0;
	enum hpx_status status = HPX_OK;

	if (hpx_clock_boot_ms() >= r->poll_ms) {
		r->poll_ms = hpx_clock_boot_ms() + r->every_ms;
		status = poll_queues(r, &claim_count, &escalate_count);
	}
	for (struct hpx_probe_queue *queue = r->queues; queue != NULL && status == HPX_OK;
	     queue = queue->next) {
		queue->wanted = queue->gotten = queue->freed = 0;
		if (queue->more)
			status = find_due(r, queue, &claim_count);
	}
	log_trouble("look", status);
	if (claim_count > 0)
		submit_claim(r, claim_count);
	if (escalate_count > 0)
		submit_escalation(r, escalate_count);
}

static bool has_room(const struct hpx_reconciler *r)
{
	for (const struct hpx_probe_queue *queue = r->queues; queue != NULL; queue = queue->next)
		if (hpx_probe_queue_wants_more(queue))
			return true;
	return false;
}

static bool is_look_due(const struct hpx_reconciler *r)
{
	return r->claim_state == HPX_PROBE_OP_IDLE &&
	       (hpx_clock_boot_ms() >= r->poll_ms || has_room(r));
}

static void *run(void *user)
{
	struct hpx_reconciler *r = user;

	hpx_thread_lock(&r->thread);
	while (!r->thread.stopping) {
		int64_t wake_ms = INT64_MAX;
		send_waiting(r, &wake_ms);
		if (r->thread.stopping)
			break;
		if (r->answered != NULL)
			end_answered(r, hpx_probe_call_judge);
		else if (r->escalate_state == HPX_PROBE_OP_BACK)
			end_escalation(r);
		else if (r->claim_state == HPX_PROBE_OP_BACK)
			begin_claimed(r);
		else if (is_look_due(r))
			look(r);
		else if (r->claim_state == HPX_PROBE_OP_SUBMITTED || wake_ms < r->poll_ms)
			hpx_thread_wait(&r->thread, wake_ms);
		else
			hpx_thread_wait(&r->thread, r->poll_ms);
	}
	drop_waiting(r);
	end_answered(r, hpx_probe_call_drop);
	hpx_thread_unlock(&r->thread);
	return NULL;
}

/* ---- start and stop ---- */

static void dispose(struct hpx_reconciler *r)
{
	hpx_egress_free(r->egress);
	hpx_store_reader_close(r->reader);
	hpx_unsettled_free(r->claim.claim_unknown.unsettled);
	hpx_probe_queues_free(r);
	hpx_settings_unref(r->settings);
	hpx_thread_done(&r->thread);
	free(r);
}

static enum hpx_status start_engine(struct hpx_reconciler *r)
{
	struct hpx_egress_options options = { .running_max = HPX_PROBE_CALLS_MAX };
	enum hpx_status status = hpx_egress_start(&options, &r->egress);

	if (status != HPX_OK)
		return status;
	status = hpx_thread_run(&r->thread, run, r);
	if (status != HPX_OK)
		hpx_egress_stop(r->egress, 0);
	return status;
}

enum hpx_status hpx_reconciler_start(struct hpx_service *service, int64_t every_ms,
				     struct hpx_reconciler **ret_reconciler)
{
	struct hpx_reconciler *r = calloc(1, sizeof(*r));
	enum hpx_status status = HPX_NOMEM;

	if (r == NULL)
		return status;
	if (hpx_thread_init(&r->thread) != HPX_OK) {
		free(r);
		return status;
	}
	r->service = service;
	r->every_ms = every_ms > 0 ? every_ms : EVERY_DEFAULT_MS;
	r->settings = hpx_settings_ref(service->settings);
	status = hpx_probe_queues_make(r);
	if (status == HPX_OK)
		status = hpx_store_reader_open(service->store, &r->reader);
	if (status == HPX_OK)
		status = start_engine(r);
	if (status == HPX_OK)
		*ret_reconciler = r;
	else
		dispose(r);
	return status;
}

void hpx_reconciler_reload(struct hpx_reconciler *r, struct hpx_settings *settings)
{
	struct hpx_settings *before;

	hpx_thread_lock(&r->thread);
	before = r->settings;
	r->settings = hpx_settings_ref(settings);
	log_trouble("reload", hpx_probe_queues_make(r));
	hpx_thread_unlock(&r->thread);
	hpx_settings_unref(before);
}

void hpx_reconciler_stop(struct hpx_reconciler *r)
{
	if (r == NULL)
		return;
	hpx_thread_stop(&r->thread);
	hpx_egress_stop(r->egress, 0);
}

void hpx_reconciler_free(struct hpx_reconciler *r)
{
	if (r == NULL)
		return;
	hpx_thread_lock(&r->thread);
	while (r->claim_state == HPX_PROBE_OP_SUBMITTED ||
	       r->escalate_state == HPX_PROBE_OP_SUBMITTED || r->call_count > 0)
		hpx_thread_wait(&r->thread, INT64_MAX);
	hpx_thread_unlock(&r->thread);
	dispose(r);
}
