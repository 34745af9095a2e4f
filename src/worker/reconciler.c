/* The reconciler's thread: looks for questions that are due, by a reader; takes
 * those that can be asked now; begins them when their lane has a slot.
 *
 * What it keeps:
 *  1. A look costs as much as there are lanes, not as there are unknowns, and
 *     nothing of it happens inside a write.
 *  2. A lane never has more questions under way than its slots, nor asks faster
 *     than its rate; what one lane does delays no other.
 *  3. A slot that comes free is used at once, as long as questions are due.
 *  4. Memory is bounded by the slots: a lane has at most eight times as many
 *     questions that the store has not heard the end of.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/log.h"
#include "base/thread.h"
#include "worker/probe_call.h"

#define EVERY_DEFAULT_MS 1000
/* Of a lane's slots: taken, and not stored yet; and taken ahead. */
#define ALIVE_SHARE 8
#define AHEAD_SHARE 4
/* After a batch of what nobody can be asked about, so many times as long as it
 * took belong to others. */
#define UNASK_PAUSE 4
/* No more of them have a log line each. */
#define NAMED_MAX 10
/* Where somebody else takes from the same lane: out of so many times as many. */
#define WINDOW 4
/* Names of lanes: route patterns and targets. */
#define LANES_BYTES_MAX ((size_t)4 << 20)

/* ---- lanes ---- */

static struct hpx_probe_lane *lane_find(const struct hpx_reconciler *r, struct hpx_span name)
{
	struct hpx_probe_lane *lane = r->lanes;

	while (lane != NULL && !hpx_span_eq(hpx_span(lane->name, lane->name_len), name))
		lane = lane->next;
	return lane;
}

static struct hpx_probe_lane *lane_find_target(const struct hpx_reconciler *r,
					       struct hpx_span target)
{
	struct hpx_span prefix = HPX_SPAN(HPX_LANE_TARGET);

	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next) {
		struct hpx_span name = hpx_span(lane->name, lane->name_len);
		if (hpx_span_starts(name, prefix) &&
		    hpx_span_eq(hpx_span_skip(name, prefix.len), target))
			return lane;
	}
	return NULL;
}

static enum hpx_status lane_add(struct hpx_reconciler *r, const char *prefix, struct hpx_span name,
				const struct hpx_reconcile_settings *how)
{
	size_t len = strlen(prefix) + name.len;
	struct hpx_probe_lane *lane = *prefix != '\0' ? lane_find_target(r, name) :
							lane_find(r, name);

	if (!how->given || !how->probe.given)
		return HPX_OK;
	if (lane == NULL) {
		lane = calloc(1, sizeof(*lane) + len + 1);
		if (lane == NULL)
			return HPX_NOMEM;
		snprintf(lane->name, len + 1, "%s%.*s", prefix, HPX_SPAN_ARG(name));
		lane->name_len = len;
		lane->waiting_end = &lane->waiting;
		lane->next = r->lanes;
		r->lanes = lane;
	}
	/* Of two routes with one pattern, the first one counts (settings.h). */
	if (lane->how == NULL)
		lane->how = how;
	return HPX_OK;
}

static void share_slots(struct hpx_reconciler *r)
{
	size_t wanted = 0;
	unsigned count = 0;

	for (const struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next)
		if (lane->how != NULL) {
			wanted += lane->how->probe.concurrency;
			count++;
		}
	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next) {
		unsigned share = wanted > HPX_QUESTIONS_MAX ? HPX_QUESTIONS_MAX / count :
							      HPX_QUESTIONS_MAX;
		lane->slots = lane->how != NULL ? lane->how->probe.concurrency : 0;
		if (lane->slots > share)
			lane->slots = share > 0 ? share : 1;
	}
}

/* With the lock held, or before the thread runs. What cannot be added for lack of
 * memory is a lane that nobody asks: its questions wait. */
static enum hpx_status make_lanes(struct hpx_reconciler *r)
{
	const struct hpx_settings *settings = r->settings;
	enum hpx_status status = HPX_OK;

	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next)
		lane->how = NULL;
	for (size_t i = 0; i < settings->route_count && status == HPX_OK; i++)
		status = lane_add(r, "", settings->routes[i].pattern,
				  &settings->routes[i].reconcile);
	if (status == HPX_OK)
		status = lane_add(r, "", settings->fallback.pattern, &settings->fallback.reconcile);
	for (size_t i = 0; i < settings->target_count && status == HPX_OK; i++)
		status = lane_add(r, HPX_LANE_TARGET, settings->targets[i].name,
				  &settings->targets[i].reconcile);
	share_slots(r);
	return status;
}

struct hpx_probe_lane *hpx_reconciler_lane(struct hpx_reconciler *r,
					   const struct hpx_unsettled *about)
{
	struct hpx_probe_lane *lane;

	pthread_mutex_lock(&r->lock);
	lane = about->delivery.number != 0 ? lane_find_target(r, about->target) :
					     lane_find(r, about->description.route);
	pthread_mutex_unlock(&r->lock);
	return lane;
}

/* ---- questions, counted ---- */

void hpx_reconciler_enlist(struct hpx_reconciler *r, struct hpx_question *question)
{
	pthread_mutex_lock(&r->lock);
	r->question_count++;
	if (question->lane != NULL) {
		question->lane->alive++;
		question->lane->given++;
	}
	pthread_mutex_unlock(&r->lock);
}

void hpx_reconciler_queue(struct hpx_reconciler *r, struct hpx_question *question)
{
	struct hpx_probe_lane *lane = question->lane;

	pthread_mutex_lock(&r->lock);
	question->next = NULL;
	*lane->waiting_end = question;
	lane->waiting_end = &question->next;
	lane->waiting_count++;
	pthread_mutex_unlock(&r->lock);
}

static void count_under_way(struct hpx_reconciler *r, int change)
{
	atomic_fetch_add_explicit(&r->options.counters->probes_under_way.value,
				  (uint64_t)(int64_t)change, memory_order_relaxed);
}

void hpx_reconciler_freed(struct hpx_reconciler *r, struct hpx_probe_lane *lane)
{
	pthread_mutex_lock(&r->lock);
	HPX_ASSERT(lane->under_way > 0);
	lane->under_way--;
	lane->freed++;
	count_under_way(r, -1);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void hpx_reconciler_ended(struct hpx_reconciler *r, struct hpx_probe_lane *lane)
{
	pthread_mutex_lock(&r->lock);
	HPX_ASSERT(r->question_count > 0);
	r->question_count--;
	if (lane != NULL)
		lane->alive--;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

bool hpx_reconciler_is_stopping(struct hpx_reconciler *r)
{
	pthread_mutex_lock(&r->lock);
	bool stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping;
}

/* ---- asking what was taken ---- */

static struct hpx_question *pop_waiting(struct hpx_probe_lane *lane)
{
	struct hpx_question *question = lane->waiting;

	lane->waiting = question->next;
	if (lane->waiting == NULL)
		lane->waiting_end = &lane->waiting;
	lane->waiting_count--;
	return question;
}

/* A lane whose probe went by a reload asks the rest as it was taken. */
static bool may_ask(struct hpx_probe_lane *lane, int64_t *wake_ms)
{
	int64_t now_ms = hpx_clock_boot_ms(), wait_ms = 0;
	unsigned slots = lane->slots > 0 ? lane->slots : 1;
	unsigned rate = lane->how != NULL ? lane->how->probe.per_second : 1;

	if (lane->waiting == NULL || lane->under_way >= slots)
		return false;
	if (hpx_bucket_take(&lane->bucket, rate, now_ms, &wait_ms))
		return true;
	if (now_ms + wait_ms < *wake_ms)
		*wake_ms = now_ms + wait_ms;
	return false;
}

/* With the lock held, which is let go meanwhile. */
static void ask_waiting(struct hpx_reconciler *r, int64_t *wake_ms)
{
	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next)
		while (!r->stopping && may_ask(lane, wake_ms)) {
			struct hpx_question *question = pop_waiting(lane);
			lane->under_way++;
			count_under_way(r, 1);
			pthread_mutex_unlock(&r->lock);
			hpx_question_ask(question);
			pthread_mutex_lock(&r->lock);
		}
}

static void drop_waiting(struct hpx_reconciler *r)
{
	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next)
		while (lane->waiting != NULL) {
			struct hpx_question *question = pop_waiting(lane);
			pthread_mutex_unlock(&r->lock);
			hpx_question_drop(question);
			pthread_mutex_lock(&r->lock);
		}
}

/* ---- looking ---- */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many of a lane may be taken now. */
static unsigned room_of(const struct hpx_probe_lane *lane)
{
	unsigned taken = lane->under_way + lane->waiting_count;
	unsigned wanted = lane->slots + least(lane->ahead, AHEAD_SHARE * lane->slots);
	unsigned alive_max = ALIVE_SHARE * lane->slots;
	unsigned room = wanted > taken ? wanted - taken : 0;

	if (lane->how == NULL || lane->alive >= alive_max)
		return 0;
	room = least(room, alive_max - lane->alive);
	/* No more than the rate lets through within about a second. */
	unsigned rate = lane->how->probe.per_second;
	return least(room, rate > lane->waiting_count ? rate - lane->waiting_count : 0);
}

/* Takes `count` of `found` at random, to the front. */
static void shuffle(struct hpx_due *due, size_t count, size_t found)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t random;
		hpx_random(&random, sizeof(random));
		size_t other = i + (size_t)(random % (found - i));
		struct hpx_due taken = due[other];
		due[other] = due[i];
		due[i] = taken;
	}
}

/* With the lock held, which is let go meanwhile. Appends what is due in the lane. */
static enum hpx_status look_lane(struct hpx_reconciler *r, struct hpx_probe_lane *lane,
				 size_t *count)
{
	size_t room = least(room_of(lane), (unsigned)(HPX_TAKE_MAX - *count));
	size_t window = lane->contended ? least((unsigned)(room * WINDOW),
						(unsigned)(HPX_TAKE_MAX - *count)) :
					  room;
	int64_t from_ms = lane->from_ms, lease_ms;
	struct hpx_due *due = r->due + *count;
	enum hpx_status status;
	size_t found = 0;

	if (room == 0)
		return HPX_OK;
	pthread_mutex_unlock(&r->lock);
	status = hpx_store_due(r->reader, hpx_span(lane->name, lane->name_len), from_ms, due,
			       window, &found);
	if (status == HPX_OK && found > room)
		shuffle(due, room, found);
	pthread_mutex_lock(&r->lock);
	lane->more = status == HPX_OK && found >= window;
	found = found < room ? found : room;
	lease_ms = hpx_question_lease_ms(lane->how);
	for (size_t i = 0; i < found; i++)
		due[i].lease_ms = lease_ms;
	if (found > 0 && !lane->contended)
		lane->from_ms = due[0].at_ms;
	lane->wanted = (unsigned)found;
	*count += found;
	return status;
}

static void tell_trouble(const char *what, enum hpx_status status)
{
	if (status != HPX_OK && status != HPX_CLOSED)
		hpx_log(HPX_LOG_ERROR, "reconcile_failed", "at=%s problem=%s", what,
			hpx_status_name(status));
}

/* Nobody can be asked there. What was said before it was unknown settles it all
 * the same. */
static enum hpx_status look_unasked(struct hpx_reconciler *r, struct hpx_span lane,
				    size_t *take_count, size_t *unask_count)
{
	struct hpx_due *due = r->unasked + *unask_count;
	size_t found = 0, kept = 0;
	enum hpx_status status = hpx_store_due(r->reader, lane, 0, due,
					       HPX_UNASK_MAX - *unask_count, &found);

	for (size_t i = 0; i < found; i++) {
		if (!due[i].evidence) {
			due[kept++] = due[i];
		} else if (*take_count < HPX_TAKE_MAX) {
			r->due[*take_count] = due[i];
			r->due[(*take_count)++].lease_ms = hpx_question_lease_ms(NULL);
		}
	}
	*unask_count += kept;
	return status;
}

/* ---- what comes back from the store ---- */

static void back(struct hpx_reconciler *r, bool *under_way, bool *is_back)
{
	pthread_mutex_lock(&r->lock);
	*under_way = false;
	*is_back = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* On the committer's thread. */
static void taken(struct hpx_store_op *op)
{
	struct hpx_reconciler *r = HPX_CONTAINER(op, struct hpx_reconciler, take);

	back(r, &r->taking, &r->take_back);
}

static void unasked(struct hpx_store_op *op)
{
	struct hpx_reconciler *r = HPX_CONTAINER(op, struct hpx_reconciler, unask);

	back(r, &r->unasking, &r->unask_back);
}

/* With the lock held, which is let go meanwhile. */
static void submit(struct hpx_reconciler *r, struct hpx_store_op *op, enum hpx_verb verb,
		   const struct hpx_due *due, size_t count)
{
	*op = (struct hpx_store_op){
		.verb = verb,
		.actor = HPX_SPAN("reconciler"),
		.reason = verb == HPX_VERB_ESCALATE ?
				  HPX_SPAN("no probe is configured: a person or a webhook settles it") :
				  HPX_SPAN(""),
		.done = verb == HPX_VERB_ESCALATE ? unasked : taken,
	};
	if (verb == HPX_VERB_ESCALATE)
		op->escalate = (struct hpx_op_due){ .due = due, .due_count = count };
	else
		op->claim_unknown = (struct hpx_op_due){ .due = due, .due_count = count };
	pthread_mutex_unlock(&r->lock);
	hpx_committer_submit(r->options.committer, op);
	pthread_mutex_lock(&r->lock);
}

/* Whoever got fewer than it found shares the lane, and looks at a wider part of
 * it; whoever got none waits for the next look at all. */
static void judge_lanes(struct hpx_reconciler *r, enum hpx_status status)
{
	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next) {
		if (lane->wanted == 0)
			continue;
		lane->contended = status == HPX_OK && lane->given < lane->wanted;
		lane->more = lane->more && lane->given > 0;
		/* Slowly less: one claim that was quick says little. */
		lane->ahead -= (lane->ahead + 7) / 8;
		if (lane->ahead < lane->freed)
			lane->ahead = lane->freed;
		lane->wanted = 0;
	}
}

static void begin_taken(struct hpx_reconciler *r)
{
	struct hpx_unsettled *list = r->take.claim_unknown.unsettled;
	struct hpx_settings *settings = hpx_settings_ref(r->settings);

	r->take_back = false;
	r->take.claim_unknown.unsettled = NULL;
	pthread_mutex_unlock(&r->lock);
	tell_trouble("take", r->take.status);
	while (list != NULL) {
		struct hpx_unsettled *about = list;
		list = list->next;
		about->next = NULL;
		hpx_question_begin(r, settings, about);
	}
	hpx_settings_unref(settings);
	pthread_mutex_lock(&r->lock);
	judge_lanes(r, r->take.status);
}

/* Each by its name where they are few, so that an alert leads to them. */
static void log_unasked(const struct hpx_reconciler *r, unsigned count)
{
	static const char *const why = "no probe is configured: a person or a webhook settles it";
	const char *move = hpx_reconcile_name(HPX_RECONCILE_A_PERSON);
	char reference[HPX_REFERENCE_SIZE];

	if (count != r->unask.escalate.due_count || count > NAMED_MAX) {
		hpx_log(HPX_LOG_WARN, "left_to_a_person",
			"count=%u move=%s reason=\"%s\" see=\"hapax keys ls --state unknown\"",
			count, move, why);
		return;
	}
	for (size_t i = 0; i < r->unask.escalate.due_count; i++) {
		hpx_reference_print(&r->unasked[i].id, &r->unasked[i].mark, reference);
		hpx_log(HPX_LOG_WARN, "left_to_a_person",
			"operation=%s job=%lld move=%s reason=\"%s\"", reference,
			(long long)r->unasked[i].number, move, why);
	}
}

static void tell_unasked(struct hpx_reconciler *r)
{
	int64_t now_ms = hpx_clock_boot_ms();
	bool more = r->unask.status == HPX_OK && r->unask.escalate.due_count == HPX_UNASK_MAX;
	unsigned count = r->unask.status == HPX_OK ? r->unask.escalate.count : 0;

	r->unask_back = false;
	tell_trouble("unask", r->unask.status);
	if (count > 0)
		hpx_counter_add(&r->options.counters->reconciled[HPX_RECONCILED_failed], count);
	if (count > 0)
		log_unasked(r, count);
	if (more)
		r->poll_ms = now_ms + 1 + UNASK_PAUSE * (now_ms - r->unask_ms);
}

/* ---- one look ---- */

/* With the lock held, which is let go meanwhile. All lanes that the store knows:
 * those that are configured may have something, the others have nobody to ask. */
static enum hpx_status look_at_all(struct hpx_reconciler *r, size_t *take_count,
				   size_t *unask_count)
{
	bool may_unask = !r->unasking;
	struct hpx_lane_due *list = NULL;
	struct hpx_arena arena;
	size_t count = 0;
	enum hpx_status status;

	pthread_mutex_unlock(&r->lock);
	hpx_arena_init(&arena, LANES_BYTES_MAX);
	status = hpx_store_lanes(r->reader, &arena, &list, &count);
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		struct hpx_probe_lane *lane = lane_find(r, list[i].name);
		if (lane != NULL && lane->how != NULL) {
			lane->more = true;
			lane->from_ms = 0;
		} else if (may_unask && *unask_count < HPX_UNASK_MAX) {
			pthread_mutex_unlock(&r->lock);
			status = look_unasked(r, list[i].name, take_count, unask_count);
			pthread_mutex_lock(&r->lock);
		}
	}
	hpx_arena_done(&arena);
	return status;
}

/* With the lock held, which is let go meanwhile. */
static void look(struct hpx_reconciler *r)
{
	size_t take_count = 0, unask_count = 0;
	enum hpx_status status = HPX_OK;

	if (hpx_clock_boot_ms() >= r->poll_ms) {
		r->poll_ms = hpx_clock_boot_ms() + r->options.every_ms;
		status = look_at_all(r, &take_count, &unask_count);
	}
	for (struct hpx_probe_lane *lane = r->lanes; lane != NULL && status == HPX_OK;
	     lane = lane->next) {
		lane->wanted = lane->given = lane->freed = 0;
		if (lane->more)
			status = look_lane(r, lane, &take_count);
	}
	tell_trouble("look", status);
	if (take_count > 0) {
		r->taking = true;
		submit(r, &r->take, HPX_VERB_CLAIM_UNKNOWN, r->due, take_count);
	}
	if (unask_count > 0) {
		r->unasking = true;
		r->unask_ms = hpx_clock_boot_ms();
		submit(r, &r->unask, HPX_VERB_ESCALATE, r->unasked, unask_count);
	}
}

/* A slot stands empty, or a look is worth its while. */
static bool wants_more(const struct hpx_probe_lane *lane)
{
	unsigned room = lane->more ? room_of(lane) : 0;

	return room > 0 && ((lane->waiting == NULL && lane->under_way < lane->slots) ||
			    room >= (lane->slots + 1) / 2);
}

static bool has_room(const struct hpx_reconciler *r)
{
	for (const struct hpx_probe_lane *lane = r->lanes; lane != NULL; lane = lane->next)
		if (wants_more(lane))
			return true;
	return false;
}

static void *run(void *user)
{
	struct hpx_reconciler *r = user;

	pthread_mutex_lock(&r->lock);
	while (!r->stopping) {
		int64_t wake_ms = INT64_MAX;
		ask_waiting(r, &wake_ms);
		if (r->stopping)
			break;
		if (r->unask_back)
			tell_unasked(r);
		else if (r->take_back)
			begin_taken(r);
		else if (!r->taking && (hpx_clock_boot_ms() >= r->poll_ms || has_room(r)))
			look(r);
		else
			hpx_cond_wait_until(&r->changed, &r->lock,
					    r->taking || wake_ms < r->poll_ms ? wake_ms : r->poll_ms);
	}
	drop_waiting(r);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---- start and stop ---- */

static void dispose(struct hpx_reconciler *r)
{
	hpx_egress_free(r->egress);
	if (r->reader != NULL)
		hpx_store_reader_close(r->reader);
	hpx_unsettled_free(r->take.claim_unknown.unsettled);
	while (r->lanes != NULL) {
		struct hpx_probe_lane *next = r->lanes->next;
		free(r->lanes);
		r->lanes = next;
	}
	hpx_settings_unref(r->settings);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static enum hpx_status start_engine(struct hpx_reconciler *r)
{
	struct hpx_egress_options options = { .running_max = HPX_QUESTIONS_MAX };
	enum hpx_status status = hpx_egress_start(&options, &r->egress);

	if (status != HPX_OK)
		return status;
	status = hpx_thread_start(&r->thread, run, r);
	if (status != HPX_OK)
		hpx_egress_stop(r->egress, 0);
	return status;
}

enum hpx_status hpx_reconciler_start(const struct hpx_reconciler_options *options,
				     struct hpx_reconciler **ret_reconciler)
{
	struct hpx_reconciler *r = calloc(1, sizeof(*r));
	enum hpx_status status;

	if (r == NULL)
		return HPX_NOMEM;
	r->options = *options;
	if (r->options.every_ms <= 0)
		r->options.every_ms = EVERY_DEFAULT_MS;
	r->settings = hpx_settings_ref(options->settings);
	pthread_mutex_init(&r->lock, NULL);
	status = hpx_cond_init(&r->changed);
	if (status == HPX_OK)
		status = make_lanes(r);
	if (status == HPX_OK)
		status = hpx_store_reader_open(options->store, &r->reader);
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

	pthread_mutex_lock(&r->lock);
	before = r->settings;
	r->settings = hpx_settings_ref(settings);
	tell_trouble("reload", make_lanes(r));
	pthread_mutex_unlock(&r->lock);
	hpx_settings_unref(before);
}

void hpx_reconciler_stop(struct hpx_reconciler *r)
{
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	hpx_egress_stop(r->egress, 0);
}

void hpx_reconciler_free(struct hpx_reconciler *r)
{
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	while (r->taking || r->unasking || r->question_count > 0)
		hpx_cond_wait_until(&r->changed, &r->lock, INT64_MAX);
	pthread_mutex_unlock(&r->lock);
	dispose(r);
}
