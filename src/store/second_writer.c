/* The second writer: a thread that takes a batch of its own while the first one's is under
 * way and many ops wait, where the store has such a writer (a database whose commits wait
 * for a standby). It only helps: whatever does not go well it hands over to the first
 * thread, which runs those ops alone and knows up from down (committer.c, with the
 * invariants 1 to 7).
 *
 *  8. Ops about the same operation are never under way with both (op_queue.h). What was
 *     handed over is run before anything else is taken, by either.
 *  9. After a failure of one writer, the other doubts what it reads (recover()) before it
 *     runs an op about an operation of the batch that failed: what the one did not hear
 *     of, the other may see. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "store/committer_threads.h"

/* So many ops wait before the second writer takes any: fewer cost more CPU in two
 * transactions than the wait for the first is worth. */
#define SECOND_WAITING_MIN 32

void hpx_second_writer_wake(struct hpx_committer *c)
{
	if (c->second.store != NULL && c->is_out && c->queue.count >= SECOND_WAITING_MIN)
		pthread_cond_signal(&c->second.changed);
}

/* With the lock held. */
static void hand_over(struct hpx_committer *c, struct hpx_store_op *op)
{
	hpx_op_fifo_push(&c->second.handed_over, op);
}

/* The store took the batch: what did nothing yet is the first thread's to put off. */
static void conclude_second(struct hpx_committer *c, size_t count)
{
	struct hpx_op_fifo passing;
	struct hpx_store_op *op;

	hpx_op_fifo_init(&passing);
	for (size_t i = 0; i < count; i++) {
		op = c->second.batch[i];
		if (op == NULL)
			continue; /* released before the commit */
		if (hpx_committer_is_passing(op->status) && !hpx_verb_has(op->verb, HPX_TRAIT_ASKS))
			hpx_op_fifo_push(&passing, op);
		else
			hpx_committer_settle(c, op);
	}
	hpx_committer_tell_settled(c); /* 7 */
	hpx_thread_lock(&c->thread);
	while ((op = hpx_op_fifo_pop(&passing)) != NULL)
		hand_over(c, op);
	hpx_thread_unlock(&c->thread);
}

static void run_second(struct hpx_committer *c, size_t count, bool doubted)
{
	struct hpx_second_writer *second = &c->second;
	enum hpx_status status = HPX_OK;

	if (doubted)
		status = hpx_store_recover(second->store, NULL);
	if (status == HPX_OK)
		status = hpx_store_run(second->store, second->batch, count, NULL);
	if (status == HPX_OK) {
		conclude_second(c, count);
		return;
	}
	second->usable_ms = hpx_clock_boot_ms() + c->options.probe_ms;
	hpx_committer_tell_settled(c);
	hpx_thread_lock(&c->thread);
	second->doubted = true; /* it is recovered before it runs again */
	for (size_t i = 0; i < count; i++)
		if (second->batch[i] != NULL)
			hand_over(c, second->batch[i]);
	hpx_thread_unlock(&c->thread);
}

/* With the lock held. */
static bool is_second_wanted(const struct hpx_committer *c)
{
	return c->is_out && c->queue.count >= SECOND_WAITING_MIN &&
	       c->second.handed_over.head == NULL && atomic_load(&c->healthy) &&
	       hpx_clock_boot_ms() >= c->second.usable_ms;
}

static void *second_main(void *arg)
{
	struct hpx_committer *c = arg;
	struct hpx_second_writer *second = &c->second;
	size_t count;

	hpx_thread_lock(&c->thread);
	while (!second->stopping) {
		count = is_second_wanted(c) ?
				hpx_op_queue_take(&c->queue, HPX_WRITER_SECOND, second->batch) :
				0;
		if (count == 0) {
			pthread_cond_wait(&second->changed, &c->thread.lock);
			continue;
		}
		bool doubted = second->doubted;
		second->doubted = false;
		hpx_thread_unlock(&c->thread);
		run_second(c, count, doubted);
		hpx_thread_lock(&c->thread);
		hpx_op_queue_end(&c->queue, HPX_WRITER_SECOND);
		/* The first may be waiting for operations that were under way here. */
		hpx_thread_wake(&c->thread);
	}
	hpx_thread_unlock(&c->thread);
	return NULL;
}

enum hpx_status hpx_second_writer_start(struct hpx_committer *c)
{
	struct hpx_second_writer *second = &c->second;

	if (second->store == NULL)
		return HPX_OK;
	second->store->released = hpx_committer_released;
	second->store->released_user = c;
	second->batch = calloc(c->options.batch_max, sizeof(struct hpx_store_op *));
	if (second->batch == NULL || hpx_cond_init(&second->changed) != HPX_OK)
		goto fail;
	if (hpx_thread_start(&second->thread, second_main, c) == HPX_OK)
		return HPX_OK;
	pthread_cond_destroy(&second->changed);
fail:
	free(second->batch);
	second->batch = NULL;
	second->store = NULL;
	return HPX_NOMEM;
}

void hpx_second_writer_stop(struct hpx_committer *c)
{
	struct hpx_second_writer *second = &c->second;

	if (second->store == NULL)
		return;
	hpx_thread_lock(&c->thread);
	second->stopping = true;
	pthread_cond_signal(&second->changed);
	hpx_thread_unlock(&c->thread);
	pthread_join(second->thread, NULL);
	pthread_cond_destroy(&second->changed);
	second->store->released = NULL;
}
