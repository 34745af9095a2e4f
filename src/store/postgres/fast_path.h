/* The fast path of a batch: reservations of new keys and completions of first
 * attempts, in one round trip and without a lock beforehand. fast_path.c chooses and
 * sends them, fast_result.c reads the results. What is not eligible, or was not
 * written, takes the slow path (batch.c). */
#ifndef HPX_STORE_POSTGRES_FAST_PATH_H
#define HPX_STORE_POSTGRES_FAST_PATH_H

#include "store/postgres/driver.h"

/* An op of the batch, and what the fast path makes of it. */
struct hpx_pg_fast_op {
	struct hpx_store_op *op;         /* not to be touched once it was told */
	struct hpx_operation_id id;      /* its own copy, for the same reason */
	size_t at;                       /* in the batch */
	const struct hpx_answer *answer; /* to be stored; or NULL */
	bool eligible;                   /* it is sent; the rules say that it is one plain write */
	bool answerable;                 /* a RESERVE: where the row is there, it may be answered by what was read */
	bool written;                    /* it was written */
};

struct hpx_pg_fast_batch {
	struct hpx_pg_store *s;
	struct hpx_store_op **ops;       /* the batch; NULL once it was told */
	bool *todo;                      /* of each of them */
	struct hpx_pg_fast_op *fast_ops; /* sorted by id */
	size_t count;
	struct hpx_moment now; /* the rules', by the clock here */
	int64_t base_ms;       /* that clock */
	char *problem;
};

/* By id, for qsort and bsearch. */
static inline int hpx_pg_fast_op_order(const void *a, const void *b)
{
	const struct hpx_pg_fast_op *x = a;
	const struct hpx_pg_fast_op *y = b;

	return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* Behind the last op about the same operation. */
static inline size_t hpx_pg_fast_batch_end(const struct hpx_pg_fast_batch *batch, size_t from)
{
	size_t to = from + 1;

	while (to < batch->count &&
	       hpx_pg_fast_op_order(&batch->fast_ops[from], &batch->fast_ops[to]) == 0)
		to++;
	return to;
}

static inline bool hpx_pg_is_eligible_as(const struct hpx_pg_fast_op *fast_op, enum hpx_verb verb)
{
	return fast_op->eligible && fast_op->op->verb == verb;
}

/* As it came, for the slow path. */
static inline void hpx_pg_put_back(struct hpx_store_op *op)
{
	op->status = HPX_OK;
	op->decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
}

/* fast_result.c: the results of INSERT_ABSENT, and of the locks and COMPLETE_BELIEVED. */
void hpx_pg_take_reservations(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe);
void hpx_pg_take_completions(struct hpx_pg_fast_batch *batch, struct hpx_pg_pipe *pipe);
/* It is committed: what was written is done, the rest takes the slow path. */
void hpx_pg_fast_batch_settle(struct hpx_pg_fast_batch *batch);

#endif
