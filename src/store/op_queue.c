/* The queue in front of the writers, and which operations each of them has under way. */
#include "store/op_queue.h"

#include <stdlib.h>

#include "base/status.h"
#include "store/change.h"

/* How many ops the second writer passes by at most in one look: the first one's are
 * waiting as well, and the lock is held meanwhile. */
#define PASSED_MAX(queue) (2 * (queue)->batch_max)
/* A set is at most a quarter full. */
#define SLOTS_PER_OPERATION 4

/* ---- a list ---- */

void hpx_op_fifo_init(struct hpx_op_fifo *fifo)
{
	fifo->head = NULL;
	fifo->tail = &fifo->head;
}

void hpx_op_fifo_push(struct hpx_op_fifo *fifo, struct hpx_store_op *op)
{
	op->next = NULL;
	*fifo->tail = op;
	fifo->tail = &op->next;
}

struct hpx_store_op *hpx_op_fifo_pop(struct hpx_op_fifo *fifo)
{
	struct hpx_store_op *op = fifo->head;

	if (op == NULL)
		return NULL;
	fifo->head = op->next;
	if (fifo->head == NULL)
		fifo->tail = &fifo->head;
	op->next = NULL;
	return op;
}

/* ---- a set of operations ---- */

static enum hpx_status set_init(struct hpx_op_set *set, size_t max)
{
	set->slot_count = 1;
	while (set->slot_count < SLOTS_PER_OPERATION * max)
		set->slot_count *= 2;
	set->count = 0;
	set->slots = calloc(set->slot_count, sizeof(*set->slots));
	return set->slots != NULL ? HPX_OK : HPX_NOMEM;
}

static void set_clear(struct hpx_op_set *set)
{
	if (set->count > 0)
		memset(set->slots, 0, set->slot_count * sizeof(*set->slots));
	set->count = 0;
}

/* 0: the op is about no operation, or about many. Ids are hashes: their bytes need no
 * hashing. */
static uint64_t prefix_of(const struct hpx_store_op *op)
{
	uint64_t prefix;

	memcpy(&prefix, hpx_op_id(op)->bytes, sizeof(prefix));
	return prefix;
}

/* Where the operation stands, or would. */
static size_t slot_of(const struct hpx_op_set *set, uint64_t prefix)
{
	size_t slot = prefix & (set->slot_count - 1);

	while (set->slots[slot] != 0 && set->slots[slot] != prefix)
		slot = (slot + 1) & (set->slot_count - 1);
	return slot;
}

static bool set_has(const struct hpx_op_set *set, const struct hpx_store_op *op)
{
	uint64_t prefix = set->count > 0 ? prefix_of(op) : 0;

	return prefix != 0 && set->slots[slot_of(set, prefix)] != 0;
}

static void set_add(struct hpx_op_set *set, const struct hpx_store_op *op)
{
	uint64_t prefix = prefix_of(op);
	size_t slot;

	if (prefix == 0)
		return;
	slot = slot_of(set, prefix);
	set->count += set->slots[slot] == 0;
	HPX_ASSERT(set->count <= set->slot_count / 2);
	set->slots[slot] = prefix;
}

/* ---- the queue ---- */

enum hpx_status hpx_op_queue_init(struct hpx_op_queue *queue, size_t batch_max, bool has_second)
{
	*queue = (struct hpx_op_queue){ .batch_max = batch_max, .has_second = has_second };
	hpx_op_fifo_init(&queue->waiting);
	if (!has_second)
		return HPX_OK;
	if (set_init(&queue->under_way[HPX_WRITER_FIRST], batch_max) == HPX_OK &&
	    set_init(&queue->under_way[HPX_WRITER_SECOND], batch_max) == HPX_OK &&
	    set_init(&queue->passed, PASSED_MAX(queue)) == HPX_OK)
		return HPX_OK;
	hpx_op_queue_done(queue);
	return HPX_NOMEM;
}

void hpx_op_queue_done(struct hpx_op_queue *queue)
{
	free(queue->under_way[HPX_WRITER_FIRST].slots);
	free(queue->under_way[HPX_WRITER_SECOND].slots);
	free(queue->passed.slots);
}

void hpx_op_queue_add(struct hpx_op_queue *queue, struct hpx_store_op *first,
		      struct hpx_store_op *last, size_t count)
{
	HPX_ASSERT(first != NULL && last->next == NULL && count > 0);
	*queue->waiting.tail = first;
	queue->waiting.tail = &last->next;
	queue->count += count;
}

static enum hpx_writer other_of(enum hpx_writer writer)
{
	return writer == HPX_WRITER_FIRST ? HPX_WRITER_SECOND : HPX_WRITER_FIRST;
}

bool hpx_op_queue_is_free(const struct hpx_op_queue *queue, enum hpx_writer writer,
			  const struct hpx_store_op *op)
{
	return !queue->has_second || !set_has(&queue->under_way[other_of(writer)], op);
}

void hpx_op_queue_begin(struct hpx_op_queue *queue, enum hpx_writer writer,
			const struct hpx_store_op *op)
{
	if (queue->has_second)
		set_add(&queue->under_way[writer], op);
}

/* 1 and 2. What the second takes is what makes a batch large; every other verb is rare,
 * or about more than one operation. */
static bool may_take(const struct hpx_op_queue *queue, enum hpx_writer writer,
		     const struct hpx_store_op *op)
{
	if (writer == HPX_WRITER_SECOND && op->verb != HPX_VERB_RESERVE &&
	    op->verb != HPX_VERB_COMPLETE)
		return false;
	return hpx_op_queue_is_free(queue, writer, op) && !set_has(&queue->passed, op);
}

static size_t take_all(struct hpx_op_queue *queue, struct hpx_store_op **batch)
{
	size_t count = 0;

	while (count < queue->batch_max && queue->waiting.head != NULL)
		batch[count++] = hpx_op_fifo_pop(&queue->waiting);
	return count;
}

/* Takes what may be taken, and leaves the rest in its order. */
static size_t take_some(struct hpx_op_queue *queue, enum hpx_writer writer,
			struct hpx_store_op **batch)
{
	struct hpx_store_op **link = &queue->waiting.head;
	size_t count = 0;

	set_clear(&queue->passed);
	while (*link != NULL && count < queue->batch_max &&
	       queue->passed.count < PASSED_MAX(queue)) {
		struct hpx_store_op *op = *link;
		if (!may_take(queue, writer, op)) {
			set_add(&queue->passed, op);
			link = &op->next;
			continue;
		}
		*link = op->next;
		op->next = NULL;
		batch[count++] = op;
	}
	if (*link == NULL)
		queue->waiting.tail = link;
	return count;
}

size_t hpx_op_queue_take(struct hpx_op_queue *queue, enum hpx_writer writer,
			 struct hpx_store_op **batch)
{
	bool alone = !queue->has_second ||
		     (writer == HPX_WRITER_FIRST && queue->under_way[HPX_WRITER_SECOND].count == 0);
	size_t count = alone ? take_all(queue, batch) : take_some(queue, writer, batch);

	HPX_ASSERT(count <= queue->count);
	queue->count -= count;
	for (size_t i = 0; i < count; i++)
		hpx_op_queue_begin(queue, writer, batch[i]);
	return count;
}

void hpx_op_queue_end(struct hpx_op_queue *queue, enum hpx_writer writer)
{
	if (queue->has_second)
		set_clear(&queue->under_way[writer]);
}
