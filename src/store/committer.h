/* The committer: the one thread that writes. It groups whatever is waiting
 * while the last transaction was being written: nothing waits when the store
 * is idle, and one fsync serves all that came meanwhile.
 *
 * A failing batch is run again one by one. A RESERVE, FIND or READ_POINT that fails alone
 * comes back at once with its status (the request is refused: fail closed); any
 * other op carries something that must not be lost (an answer, a proof, an
 * operator's word) and is tried again, with backoff, until the store takes it
 * or the committer stops; so is one whose row somebody else held (HPX_BUSY), or that
 * alone lacked memory (HPX_NOMEM). While the store is down, RESERVE is refused without
 * asking it (HPX_UNAVAILABLE), except for a probe every quarter of a second.
 *
 * What a RESERVE that did not succeed means: with HPX_UNAVAILABLE, HPX_CLOSED
 * or HPX_MISUSE the store was not asked, with HPX_FULL it has too little space
 * for new keys, and nothing is reserved; with any other status (a write that met
 * a full disk is HPX_IO) the reservation may be durable all the same, and the submitter
 * sends a FAIL with its token, which settles it either way (HPX_STALE: there
 * was none). */
#ifndef HPX_STORE_COMMITTER_H
#define HPX_STORE_COMMITTER_H

#include "store/store.h"
#include "store/waitlist.h"

struct hpx_committer;

struct hpx_committer_options {
	struct hpx_store *store;
	struct hpx_waitlist *waitlist; /* woken for every op that ended an attempt */
	size_t batch_max;              /* ops in one transaction; 0: 256 */
	int64_t probe_ms;              /* while down, between probes; 0: 250 */
	int64_t reason_ms;             /* while down, least time until another reason is told; 0: 10 s */
	/* Called on the committer's thread when the store goes down, is down for
	 * another reason, or comes back (status OK), with a sentence for people. May
	 * be NULL. */
	void (*changed)(void *user, enum hpx_status status, const char *problem);
	void *user;
};

enum hpx_status hpx_committer_start(const struct hpx_committer_options *options,
				    struct hpx_committer **ret_committer);
/* Hands an op over, from any thread; op->done is called once it is settled:
 * op->status OK: durable. */
void hpx_committer_submit(struct hpx_committer *committer, struct hpx_store_op *op);

/* Ops that are handed over together, in order; zeroed before the first. It belongs to
 * one thread. */
struct hpx_op_list {
	struct hpx_store_op *first;
	struct hpx_store_op *last;
	size_t count;
};

void hpx_op_list_add(struct hpx_op_list *list, struct hpx_store_op *op);
/* Submits all ops of the list, which is empty afterwards: one lock and one wake-up
 * instead of one for each op. */
void hpx_committer_submit_all(struct hpx_committer *committer, struct hpx_op_list *list);

/* Called on the committer's thread after the last `done` of ops that were settled
 * together. Whoever only notes in `done` that an op is settled acts on it here. (Ops
 * that come back with HPX_CLOSED from the submit itself are the submitter's to act
 * on.) At most one; set before the first op whose `done` relies on it, and valid until
 * hpx_committer_stop has returned. */
struct hpx_committer_listener {
	void (*settled)(struct hpx_committer_listener *listener);
};

void hpx_committer_listen(struct hpx_committer *committer,
			  struct hpx_committer_listener *listener);
/* Submits and waits; for workers and tests, never from an event loop. */
void hpx_committer_submit_wait(struct hpx_committer *committer, struct hpx_store_op *op);
/* Whether the last thing heard from the store was good. */
bool hpx_committer_healthy(const struct hpx_committer *committer);
/* Runs what is queued once more (for at most `grace_ms`), ends the rest with
 * HPX_CLOSED, and joins the thread. What is submitted afterwards ends with
 * HPX_CLOSED at once, so that everybody else can be taken down in peace. */
void hpx_committer_stop(struct hpx_committer *committer, int64_t grace_ms);
/* Only when nobody submits any more. */
void hpx_committer_free(struct hpx_committer *committer);

#endif
