/* What the committer's two threads share: the first (committer.c), which does everything,
 * and the second writer (second_writer.c), which only some stores have. */
#ifndef HPX_STORE_COMMITTER_THREADS_H
#define HPX_STORE_COMMITTER_THREADS_H

#include <stdatomic.h>

#include "base/thread.h"
#include "store/committer.h"
#include "store/op_queue.h"

/* The second writer and its thread. */
struct hpx_second_writer {
	struct hpx_store *store; /* NULL: there is none */
	pthread_t thread;
	pthread_cond_t changed; /* with the committer's lock */
	/* Under that lock. */
	struct hpx_op_fifo handed_over; /* to the first thread, to be run alone */
	bool stopping;
	bool doubted; /* by a failure of the first */
	/* The thread's own. */
	struct hpx_store_op **batch;
	int64_t usable_ms; /* boot clock: after a failure, when it is tried again */
};

struct hpx_committer {
	struct hpx_committer_options options;
	struct hpx_thread thread;
	/* Under the thread's lock. */
	struct hpx_op_queue queue;
	bool is_out; /* the first thread has a batch under way */
	bool ended;
	int64_t deadline_ms;
	/* The thread's own. */
	struct hpx_op_fifo retries;
	struct hpx_store_op **batch;
	bool last_pass; /* `stopping` was seen before this pass began */
	bool down;
	unsigned failures; /* ops in a row that failed alone */
	int64_t probe_ms;  /* when the store is asked again */
	char problem[HPX_STORE_PROBLEM_SIZE];
	/* What `changed` was told last, and when. */
	enum hpx_status told;
	int64_t told_ms;
	char told_problem[HPX_STORE_PROBLEM_SIZE];
	struct hpx_watcher *watcher; /* NULL: nobody else ends attempts */
	/* For anybody. */
	_Atomic bool healthy;
	_Atomic(struct hpx_committer_listener *) listener;
	struct hpx_second_writer second;
};

/* ---- committer.c, for both threads ---- */

/* Afterwards the op belongs to its submitter again. */
void hpx_committer_settle(struct hpx_committer *c, struct hpx_store_op *op);
void hpx_committer_tell_settled(struct hpx_committer *c);
/* A driver lets an op go before its batch is committed; `user` is the committer. */
void hpx_committer_released(void *user, struct hpx_store_op *op);
/* The op did nothing, for a reason that passes: somebody else holds its row, there was
 * no memory for it, or its table is yet to be checked. */
bool hpx_committer_is_passing(enum hpx_status status);

/* ---- second_writer.c ---- */

/* Nothing where the store has no second writer. */
enum hpx_status hpx_second_writer_start(struct hpx_committer *c);
/* Before the first thread is stopped: what is handed over is still run. */
void hpx_second_writer_stop(struct hpx_committer *c);
/* With the lock held: it is wanted, whenever it is idle. */
void hpx_second_writer_wake(struct hpx_committer *c);

#endif
