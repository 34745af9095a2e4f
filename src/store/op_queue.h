/* The ops that wait for a writer, in order of arrival. There is one writer, or a second
 * one beside it, each with a batch of its own under way. Whatever they do at once:
 *
 *  1. Ops about the same operation are never under way with both writers.
 *  2. Ops about the same operation are taken in order of arrival.
 *
 * With one writer both are true of any queue, and nothing is spent on them. The queue has
 * no lock: its owner does (committer.c). */
#ifndef HPX_STORE_OP_QUEUE_H
#define HPX_STORE_OP_QUEUE_H

#include "store/store.h"

/* A list that is added to at its end. */
struct hpx_op_fifo {
	struct hpx_store_op *head;
	struct hpx_store_op **tail;
};

void hpx_op_fifo_init(struct hpx_op_fifo *fifo);
void hpx_op_fifo_push(struct hpx_op_fifo *fifo, struct hpx_store_op *op);
/* NULL: it is empty. */
struct hpx_store_op *hpx_op_fifo_pop(struct hpx_op_fifo *fifo);

enum hpx_writer { HPX_WRITER_FIRST,
		  HPX_WRITER_SECOND,
		  HPX_WRITER_COUNT };

/* Operations, by the first eight bytes of their ids: two that share these are one here,
 * and one of the two waits without need. */
struct hpx_op_set {
	uint64_t *slots; /* 0: free */
	size_t slot_count;
	size_t count;
};

struct hpx_op_queue {
	struct hpx_op_fifo waiting;
	size_t count;
	size_t batch_max;
	bool has_second;
	struct hpx_op_set under_way[HPX_WRITER_COUNT];
	struct hpx_op_set passed; /* by the take that goes on: they stay in the queue */
};

/* `batch_max` ops at most are taken at once. */
enum hpx_status hpx_op_queue_init(struct hpx_op_queue *queue, size_t batch_max, bool has_second);
void hpx_op_queue_done(struct hpx_op_queue *queue);
/* A chain of ops, in order; `last` is its end. */
void hpx_op_queue_add(struct hpx_op_queue *queue, struct hpx_store_op *first,
		      struct hpx_store_op *last, size_t count);
/* Into `batch`, which has room for `batch_max`; how many. The first writer takes any op
 * whose operation is not under way with the second; the second takes reservations and
 * completions only. They are under way until hpx_op_queue_end(). */
size_t hpx_op_queue_take(struct hpx_op_queue *queue, enum hpx_writer writer,
			 struct hpx_store_op **batch);
void hpx_op_queue_end(struct hpx_op_queue *queue, enum hpx_writer writer);
/* For ops that come from elsewhere than the queue: whether the other writer has the
 * operation under way, and that this one has. */
bool hpx_op_queue_is_free(const struct hpx_op_queue *queue, enum hpx_writer writer,
			  const struct hpx_store_op *op);
void hpx_op_queue_begin(struct hpx_op_queue *queue, enum hpx_writer writer,
			const struct hpx_store_op *op);

#endif
