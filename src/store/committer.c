/* The committer's thread: takes what is queued, runs it in one transaction, and
 * when that fails finds out op by op what the store still takes.
 *
 *            a batch fails: run_each()            2 ops in a row fail alone,
 *   up ─────────────────▶ each op alone ──────────────────────▶ down
 *    ▲                          │ taken                           │
 *    │                          │            or recover() fails   │ probe: run_down()
 *    └──────────── go_up() ─────┴─────────────────────────────────┘ is taken
 *
 * move → function: down go_down(); up go_up(); a failed batch run_each(); a probe,
 * every `probe_ms` while down, run_down(); after every failure recover().
 *
 *  1. An op is in one place at a time: the queue, the retry list, the batch, or its
 *     submitter's hands. hpx_committer_settle() gives it back, once.
 *  2. An op that only asks (HPX_TRAIT_ASKS) is never put off: it ends with a status
 *     that says whether the store was asked. Every other op ends only when the store
 *     took it or refused it for good, or when the committer stops.
 *  3. While down the store is not asked, but by one probe at a time.
 *  4. healthy() says "down" before anybody is told of the failure, and "up" only
 *     after an op was taken: healthy is !down outside go_up() and go_down().
 *  5. One op that fails alone is that op's trouble; two in a row are the store's.
 *  6. The queue, `ended` and the deadline are shared, under the thread's lock; all
 *     else is the thread's own. Once `ended` is set nobody adds to the queue.
 *  7. The listener is told before the thread waits for anything, the store included,
 *     of every op that was settled before.
 *
 * Where the store has a second writer, its thread takes batches beside this one's and
 * hands over what does not go well (second_writer.c, which goes on with the numbers).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "store/committer_threads.h"

#define BATCH_DEFAULT 256
#define PROBE_DEFAULT_MS 250
#define REASON_DEFAULT_MS 10000
/* An op that was put off: from a fifth of a probe's interval to twenty. */
#define BACKOFF_FIRST(probe_ms) ((probe_ms) / 5 + 1)
#define BACKOFF_LAST(probe_ms) ((probe_ms)*20)
#define FAILURES_UNTIL_DOWN 2
/* ---- the end of an op ---- */

static void wake_swept(struct hpx_waitlist *waitlist, const struct hpx_op_sweep *sweep)
{
	HPX_ASSERT(sweep->count <= sweep->limit);
	for (unsigned i = 0; sweep->touched != NULL && i < sweep->count; i++)
		hpx_waitlist_wake(waitlist, &sweep->touched[i].id);
}

static void wake_waiters(struct hpx_waitlist *waitlist, const struct hpx_store_op *op)
{
	switch (op->verb) {
	case HPX_VERB_RESERVE:
		/* The lease was found lost: its attempt's answer will not come. */
		if (op->decision.write && op->decision.kind == HPX_DECISION_UNKNOWN)
			hpx_waitlist_wake(waitlist, &op->reserve.ask->id);
		break;
	case HPX_VERB_JOB:
		/* The job's answer, or its loss, may be the operation's. */
		if (op->job.after != NULL && op->job.after->delivery.answers)
			hpx_waitlist_wake(waitlist, &op->job.after->delivery.operation);
		break;
	case HPX_VERB_SWEEP:
		wake_swept(waitlist, &op->sweep);
		break;
	case HPX_VERB_SWEEP_JOBS:
		wake_swept(waitlist, &op->sweep_jobs);
		break;
	default:
		hpx_waitlist_wake(waitlist, &op->id);
		break;
	}
}

void hpx_committer_settle(struct hpx_committer *c, struct hpx_store_op *op)
{
	HPX_ASSERT(op->next == NULL); /* 1 */
	if (op->status == HPX_OK && c->options.waitlist != NULL &&
	    hpx_verb_has(op->verb, HPX_TRAIT_WAKES))
		wake_waiters(c->options.waitlist, op);
	if (op->done != NULL)
		op->done(op);
}

void hpx_committer_tell_settled(struct hpx_committer *c)
{
	struct hpx_committer_listener *listener =
		atomic_load_explicit(&c->listener, memory_order_acquire);

	if (listener != NULL)
		listener->settled(listener);
}

void hpx_committer_released(void *user, struct hpx_store_op *op)
{
	hpx_committer_settle(user, op);
	hpx_committer_tell_settled(user);
}

static void settle_with(struct hpx_committer *c, struct hpx_store_op *op, enum hpx_status status)
{
	op->status = status;
	hpx_committer_settle(c, op);
}

static void put_off(struct hpx_committer *c, struct hpx_store_op *op)
{
	int64_t wait_ms = BACKOFF_FIRST(c->options.probe_ms);
	int64_t last_ms = BACKOFF_LAST(c->options.probe_ms);

	HPX_ASSERT(!hpx_verb_has(op->verb, HPX_TRAIT_ASKS)); /* 2 */
	for (unsigned i = 0; i < op->tries && wait_ms < last_ms; i++)
		wait_ms *= 2;
	op->tries++;
	op->due_ms = hpx_clock_boot_ms() + (wait_ms < last_ms ? wait_ms : last_ms);
	hpx_op_fifo_push(&c->retries, op);
}

static bool asks(const struct hpx_store_op *op)
{
	return hpx_verb_has(op->verb, HPX_TRAIT_ASKS);
}

bool hpx_committer_is_passing(enum hpx_status status)
{
	return status == HPX_BUSY || status == HPX_NOMEM || status == HPX_UNAVAILABLE;
}

/* The store took the batch. An op that did nothing yet carries something that must not
 * be lost. */
static void conclude(struct hpx_committer *c, struct hpx_store_op *op)
{
	if (hpx_committer_is_passing(op->status) && !asks(op))
		put_off(c, op);
	else
		hpx_committer_settle(c, op);
}

/* The op itself is what the store cannot take; another try changes nothing. */
static bool is_permanent(enum hpx_status status)
{
	return status == HPX_CORRUPT || status == HPX_TOO_LARGE || status == HPX_INVALID ||
	       status == HPX_UNSUPPORTED || status == HPX_MISUSE;
}

/* The store was asked and failed. To a RESERVE's submitter these two would say
 * that nothing was written. */
static void fail(struct hpx_committer *c, struct hpx_store_op *op, enum hpx_status status)
{
	if (asks(op))
		settle_with(c, op, status == HPX_UNAVAILABLE || status == HPX_FULL ? HPX_IO : status);
	else if (is_permanent(status))
		settle_with(c, op, status);
	else
		put_off(c, op);
}

/* The store is down and is not asked. */
static void refuse(struct hpx_committer *c, struct hpx_store_op *op)
{
	if (asks(op))
		settle_with(c, op, HPX_UNAVAILABLE);
	else
		put_off(c, op);
}

/* ---- up and down ---- */

static void tell(struct hpx_committer *c, enum hpx_status status)
{
	c->told = status;
	c->told_ms = hpx_clock_boot_ms();
	memcpy(c->told_problem, c->problem, sizeof(c->told_problem));
	if (c->options.changed != NULL)
		c->options.changed(c->options.user, status, c->problem);
}

/* A store that is down for another reason than was told last: a database that refused
 * connections and now refuses the password needs another person. Reasons that take turns
 * are not told each time. */
static bool is_news(const struct hpx_committer *c, enum hpx_status status)
{
	return (status != c->told || strcmp(c->problem, c->told_problem) != 0) &&
	       hpx_clock_boot_ms() >= c->told_ms + c->options.reason_ms;
}

static void go_down(struct hpx_committer *c, enum hpx_status status)
{
	bool was_down = c->down;

	c->probe_ms = hpx_clock_boot_ms() + c->options.probe_ms;
	atomic_store(&c->healthy, false);
	c->down = true;
	if (!was_down || is_news(c, status))
		tell(c, status);
}

/* Whatever was put off need not wait any longer. */
static void make_all_due(struct hpx_committer *c)
{
	for (struct hpx_store_op *op = c->retries.head; op != NULL; op = op->next)
		op->due_ms = 0;
}

static void go_up(struct hpx_committer *c)
{
	c->failures = 0;
	if (!c->down)
		return;
	c->down = false;
	c->problem[0] = '\0';
	make_all_due(c);
	atomic_store(&c->healthy, true);
	tell(c, HPX_OK);
}

/* After a failed run; false: the store is down. `problem` keeps the reason of
 * the run that failed unless recovering has a better one. */
static bool recover(struct hpx_committer *c)
{
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = hpx_store_recover(c->options.store, problem);

	hpx_thread_lock(&c->thread);
	c->second.doubted = true; /* 9 */
	hpx_thread_unlock(&c->thread);
	if (status == HPX_OK)
		return true;
	memcpy(c->problem, problem, sizeof(problem));
	go_down(c, status);
	return false;
}

/* ---- running ---- */

static bool run_alone(struct hpx_committer *c, struct hpx_store_op *op)
{
	enum hpx_status status = hpx_store_run(c->options.store, &op, 1, c->problem);

	if (status == HPX_OK) {
		go_up(c);
		if (op != NULL) /* it was not released before the commit */
			conclude(c, op);
		return true;
	}
	c->failures++;
	/* First the store's state, then the op's end: whoever is told of a
	 * failure finds it in healthy() already. */
	if (recover(c) && c->failures >= FAILURES_UNTIL_DOWN)
		go_down(c, status);
	if (op != NULL)
		fail(c, op, status);
	return false;
}

/* The same for one op of several, each with a transaction of its own. */
static void run_and_tell(struct hpx_committer *c, struct hpx_store_op *op)
{
	run_alone(c, op);
	hpx_committer_tell_settled(c);
}

/* The batch failed as a whole: tokens tell what of it did commit. */
static void run_each(struct hpx_committer *c, size_t count, enum hpx_status status)
{
	if (count == 1)
		c->failures++;
	recover(c);
	for (size_t i = 0; i < count; i++) {
		if (c->batch[i] == NULL)
			continue; /* released before the batch failed */
		if (c->down)
			fail(c, c->batch[i], status);
		else
			run_and_tell(c, c->batch[i]);
	}
}

static void run_batch(struct hpx_committer *c, size_t count)
{
	enum hpx_status status;

	HPX_ASSERT(!c->down); /* 3 */
	if (count == 0)
		return;
	status = hpx_store_run(c->options.store, c->batch, count, c->problem);
	if (status != HPX_OK) {
		run_each(c, count, status);
		return;
	}
	go_up(c);
	for (size_t i = 0; i < count; i++)
		if (c->batch[i] != NULL)
			conclude(c, c->batch[i]);
}

/* The first op is the probe when it is time for one; what follows goes the
 * usual way if the store took it. */
static void run_down(struct hpx_committer *c, size_t count)
{
	size_t next = 0;

	HPX_ASSERT(c->down);
	if (count > 0 && hpx_clock_boot_ms() >= c->probe_ms && recover(c))
		run_and_tell(c, c->batch[next++]);
	if (c->down) {
		for (; next < count; next++)
			refuse(c, c->batch[next]);
		return;
	}
	for (size_t i = next; i < count; i++)
		c->batch[i - next] = c->batch[i];
	run_batch(c, count - next);
}

/* What the second writer could not do, or must be put off. */
static void run_handed_over(struct hpx_committer *c, size_t count)
{
	recover(c); /* 9 */
	for (size_t i = 0; i < count; i++) {
		if (c->down)
			fail(c, c->batch[i], HPX_IO);
		else
			run_and_tell(c, c->batch[i]);
	}
	hpx_committer_tell_settled(c); /* 7 */
}

static void process(struct hpx_committer *c, size_t count)
{
	HPX_ASSERT(count <= c->options.batch_max);
	HPX_ASSERT(atomic_load(&c->healthy) == !c->down); /* 4 */
	if (count == 0)
		return;
	if (c->down)
		run_down(c, count);
	else
		run_batch(c, count);
	hpx_committer_tell_settled(c); /* 7 */
}

/* The batch of the first thread is no longer under way. */
static void end_batch(struct hpx_committer *c)
{
	if (c->second.store == NULL)
		return;
	hpx_thread_lock(&c->thread);
	hpx_op_queue_end(&c->queue, HPX_WRITER_FIRST);
	c->is_out = false;
	hpx_thread_unlock(&c->thread);
}

/* ---- the loop ---- */

static int64_t next_due_ms(const struct hpx_committer *c)
{
	int64_t due_ms = INT64_MAX;

	for (const struct hpx_store_op *op = c->retries.head; op != NULL; op = op->next)
		if (op->due_ms < due_ms)
			due_ms = op->due_ms;
	return due_ms;
}

/* Waits until there is something to do and takes what is queued. */
static size_t take_queued(struct hpx_committer *c)
{
	size_t count;

	hpx_thread_lock(&c->thread);
	for (;;) {
		if (c->second.handed_over.head != NULL) {
			count = 0;
			break;
		}
		count = hpx_op_queue_take(&c->queue, HPX_WRITER_FIRST, c->batch);
		if (count > 0 || c->thread.stopping)
			break;
		int64_t due_ms = next_due_ms(c);
		if (due_ms <= hpx_clock_boot_ms())
			break;
		hpx_thread_wait(&c->thread, due_ms);
	}
	if (c->thread.stopping && !c->last_pass) {
		c->last_pass = true;
		make_all_due(c);
	}
	c->is_out = count > 0;
	hpx_second_writer_wake(c);
	hpx_thread_unlock(&c->thread);
	return count;
}

/* 8: from here on the second writer may take ops again, but none about these operations. */
static size_t take_handed_over(struct hpx_committer *c)
{
	struct hpx_store_op *op;
	size_t count = 0;

	if (c->second.store == NULL)
		return 0;
	hpx_thread_lock(&c->thread);
	while (count < c->options.batch_max &&
	       (op = hpx_op_fifo_pop(&c->second.handed_over)) != NULL) {
		hpx_op_queue_begin(&c->queue, HPX_WRITER_FIRST, op);
		c->batch[count++] = op;
	}
	c->is_out = count > 0;
	hpx_thread_unlock(&c->thread);
	return count;
}

/* An op whose operation the second writer has under way waits for its next turn. */
static size_t take_due(struct hpx_committer *c)
{
	int64_t now_ms = hpx_clock_boot_ms();
	struct hpx_op_fifo rest;
	size_t count = 0;
	struct hpx_store_op *op;

	if (c->retries.head == NULL)
		return 0;
	hpx_op_fifo_init(&rest);
	hpx_thread_lock(&c->thread);
	while ((op = hpx_op_fifo_pop(&c->retries)) != NULL) {
		if (count == c->options.batch_max || op->due_ms > now_ms) {
			hpx_op_fifo_push(&rest, op);
		} else if (!hpx_op_queue_is_free(&c->queue, HPX_WRITER_FIRST, op)) {
			op->due_ms = now_ms + BACKOFF_FIRST(c->options.probe_ms);
			hpx_op_fifo_push(&rest, op);
		} else {
			hpx_op_queue_begin(&c->queue, HPX_WRITER_FIRST, op);
			c->batch[count++] = op;
		}
	}
	c->is_out = count > 0;
	hpx_thread_unlock(&c->thread);
	if (rest.head != NULL)
		c->retries = rest;
	return count;
}

/* While stopping: nothing is left, or the grace is over after a whole pass. */
static bool is_over(struct hpx_committer *c)
{
	bool over;

	if (!c->last_pass)
		return false;
	hpx_thread_lock(&c->thread);
	over = (c->queue.count == 0 && c->retries.head == NULL &&
		c->second.handed_over.head == NULL) ||
	       hpx_clock_boot_ms() >= c->deadline_ms;
	c->ended = over;
	hpx_thread_unlock(&c->thread);
	return over;
}

/* While stopping there is nothing to wait for in the queue, but an op that
 * was put off has its time. */
static void pause_for_retries(struct hpx_committer *c)
{
	if (!c->last_pass || c->retries.head == NULL)
		return;
	hpx_thread_lock(&c->thread);
	if (c->queue.count == 0 && c->second.handed_over.head == NULL) {
		int64_t due_ms = next_due_ms(c);
		hpx_thread_wait(&c->thread,
				due_ms < c->deadline_ms ? due_ms : c->deadline_ms);
	}
	hpx_thread_unlock(&c->thread);
}

static void close_all(struct hpx_committer *c, struct hpx_op_fifo *fifo)
{
	struct hpx_store_op *op;

	while ((op = hpx_op_fifo_pop(fifo)) != NULL)
		settle_with(c, op, HPX_CLOSED);
}

static void *committer_main(void *arg)
{
	struct hpx_committer *c = arg;
	size_t count;

	do {
		process(c, take_queued(c));
		end_batch(c);
		count = take_handed_over(c);
		if (count > 0)
			run_handed_over(c, count);
		end_batch(c);
		process(c, take_due(c));
		end_batch(c);
		pause_for_retries(c);
	} while (!is_over(c));
	HPX_ASSERT(c->last_pass); /* 6: `ended` is set, nobody else touches the queue */
	close_all(c, &c->second.handed_over);
	close_all(c, &c->queue.waiting);
	close_all(c, &c->retries);
	hpx_committer_tell_settled(c);
	return NULL;
}

/* ---- from other threads ---- */

static bool start_threads(struct hpx_committer *c)
{
	struct hpx_store *store = c->options.store;

	if (c->options.waitlist != NULL && hpx_store_can(store, HPX_STORE_SHARED) &&
	    hpx_watcher_start(store, c->options.waitlist, &c->watcher) != HPX_OK)
		return false;
	if (hpx_second_writer_start(c) != HPX_OK)
		goto fail;
	if (hpx_thread_run(&c->thread, committer_main, c) == HPX_OK)
		return true;
	hpx_second_writer_stop(c);
fail:
	hpx_watcher_stop(c->watcher);
	return false;
}

enum hpx_status hpx_committer_start(const struct hpx_committer_options *options,
				    struct hpx_committer **ret_committer)
{
	struct hpx_committer *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return HPX_NOMEM;
	c->options = *options;
	if (c->options.batch_max == 0)
		c->options.batch_max = BATCH_DEFAULT;
	if (c->options.probe_ms <= 0)
		c->options.probe_ms = PROBE_DEFAULT_MS;
	if (c->options.reason_ms <= 0)
		c->options.reason_ms = REASON_DEFAULT_MS;
	hpx_op_fifo_init(&c->retries);
	hpx_op_fifo_init(&c->second.handed_over);
	c->second.store = c->options.store->second;
	atomic_store(&c->healthy, true);
	c->options.store->released = hpx_committer_released;
	c->options.store->released_user = c;
	c->batch = calloc(c->options.batch_max, sizeof(struct hpx_store_op *));
	if (c->batch == NULL ||
	    hpx_op_queue_init(&c->queue, c->options.batch_max, c->second.store != NULL) != HPX_OK)
		goto fail;
	if (hpx_thread_init(&c->thread) != HPX_OK)
		goto fail_queue;
	if (!start_threads(c))
		goto fail_thread;
	*ret_committer = c;
	return HPX_OK;
fail_thread:
	hpx_thread_done(&c->thread);
fail_queue:
	hpx_op_queue_done(&c->queue);
fail:
	free(c->second.batch);
	free(c->batch);
	free(c);
	return HPX_NOMEM;
}

void hpx_op_list_add(struct hpx_op_list *list, struct hpx_store_op *op)
{
	HPX_ASSERT((list->first == NULL) == (list->count == 0));
	op->tries = 0;
	op->next = NULL;
	*(list->first != NULL ? &list->last->next : &list->first) = op;
	list->last = op;
	list->count++;
}

/* Nobody takes them any more. */
static void refuse_all(struct hpx_committer *c, struct hpx_store_op *first)
{
	for (struct hpx_store_op *op = first, *next; op != NULL; op = next) {
		next = op->next;
		op->next = NULL;
		settle_with(c, op, HPX_CLOSED);
	}
}

void hpx_committer_submit_all(struct hpx_committer *committer, struct hpx_op_list *list)
{
	struct hpx_store_op *first = list->first;
	bool ended;

	if (first == NULL)
		return;
	hpx_thread_lock(&committer->thread);
	ended = committer->ended;
	if (!ended) {
		hpx_op_queue_add(&committer->queue, first, list->last, list->count);
		hpx_second_writer_wake(committer);
	}
	hpx_thread_unlock(&committer->thread);
	*list = (struct hpx_op_list){ .first = NULL };
	/* After the lock, so that the thread that wakes finds it free. */
	if (ended)
		refuse_all(committer, first);
	else
		hpx_thread_wake(&committer->thread);
}

void hpx_committer_submit(struct hpx_committer *committer, struct hpx_store_op *op)
{
	struct hpx_op_list list = { .first = NULL };

	hpx_op_list_add(&list, op);
	hpx_committer_submit_all(committer, &list);
}

void hpx_committer_listen(struct hpx_committer *committer,
			  struct hpx_committer_listener *listener)
{
	HPX_ASSERT(atomic_load(&committer->listener) == NULL);
	atomic_store_explicit(&committer->listener, listener, memory_order_release);
}

struct waiting {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool done;
};

static void waiting_done(struct hpx_store_op *op)
{
	struct waiting *waiting = op->user;

	pthread_mutex_lock(&waiting->mutex);
	waiting->done = true;
	pthread_cond_signal(&waiting->cond);
	pthread_mutex_unlock(&waiting->mutex);
}

void hpx_committer_submit_wait(struct hpx_committer *committer, struct hpx_store_op *op)
{
	struct waiting waiting = { .done = false };
	void (*done)(struct hpx_store_op *) = op->done;
	void *user = op->user;

	pthread_mutex_init(&waiting.mutex, NULL);
	pthread_cond_init(&waiting.cond, NULL);
	op->done = waiting_done;
	op->user = &waiting;
	hpx_committer_submit(committer, op);
	pthread_mutex_lock(&waiting.mutex);
	while (!waiting.done)
		pthread_cond_wait(&waiting.cond, &waiting.mutex);
	pthread_mutex_unlock(&waiting.mutex);
	pthread_cond_destroy(&waiting.cond);
	pthread_mutex_destroy(&waiting.mutex);
	op->done = done;
	op->user = user;
}

bool hpx_committer_healthy(const struct hpx_committer *committer)
{
	return atomic_load(&((struct hpx_committer *)committer)->healthy);
}

void hpx_committer_stop(struct hpx_committer *committer, int64_t grace_ms)
{
	if (committer == NULL)
		return;
	hpx_thread_lock(&committer->thread);
	committer->deadline_ms = hpx_clock_boot_ms() + grace_ms;
	hpx_thread_unlock(&committer->thread);
	hpx_second_writer_stop(committer);
	hpx_thread_stop(&committer->thread);
	hpx_watcher_stop(committer->watcher);
	committer->watcher = NULL;
	committer->options.store->released = NULL;
}

void hpx_committer_free(struct hpx_committer *committer)
{
	if (committer == NULL)
		return;
	hpx_thread_done(&committer->thread);
	hpx_op_queue_done(&committer->queue);
	free(committer->second.batch);
	free(committer->batch);
	free(committer);
}
