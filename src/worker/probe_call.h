/* Inside the reconciler: one unknown outcome, and how it is asked about. */
#ifndef HPX_WORKER_PROBE_CALL_H
#define HPX_WORKER_PROBE_CALL_H

#include <pthread.h>

#include "base/bucket.h"
#include "egress/egress.h"
#include "worker/reconciler.h"

/* Asked at once, over all lanes: where more is configured, each lane has an
 * equal share of this, and at least one slot. */
#define HPX_QUESTIONS_MAX 1024
/* One look takes no more than this, of all lanes. */
#define HPX_TAKE_MAX 512
/* What nobody can be asked about is marked in transactions of this size. */
#define HPX_UNASK_MAX 200

struct hpx_question;

/* Those who are asked by one probe: a route's, or a target's. It has slots of its
 * own, so that a slow service holds up nobody else. All but the name under the
 * reconciler's lock. */
struct hpx_probe_lane {
	struct hpx_probe_lane *next;
	const struct hpx_reconcile_settings *how; /* of reconciler->settings; NULL: nobody
						    * can be asked any more */
	unsigned slots;
	struct hpx_bucket bucket;
	unsigned under_way;                          /* asked, and not answered yet */
	unsigned alive;                              /* taken, and the store does not know the end yet */
	struct hpx_question *waiting, **waiting_end; /* taken, and not asked yet */
	unsigned waiting_count;
	/* Slots that came free while the last CLAIM_UNKNOWN was being stored: so many
	 * more are taken than can be asked now, that none stays empty meanwhile. */
	unsigned freed, ahead;
	bool more;              /* the last look found as many as it wanted */
	bool contended;         /* somebody else took some of them */
	int64_t from_ms;        /* nothing that is due lies before this */
	unsigned wanted, given; /* of the CLAIM_UNKNOWN under way */
	size_t name_len;
	char name[];
};

struct hpx_reconciler {
	struct hpx_reconciler_options options;
	struct hpx_egress *egress;
	struct hpx_store_reader *reader; /* the thread's own */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	struct hpx_settings *settings;
	struct hpx_probe_lane *lanes; /* none is ever removed */
	bool stopping;
	unsigned question_count; /* all that are alive */
	/* The CLAIM_UNKNOWN and the ESCALATE under way: the thread's, and the committer's
	 * meanwhile. */
	struct hpx_store_op take, unask;
	struct hpx_due due[HPX_TAKE_MAX], unasked[HPX_UNASK_MAX];
	bool taking, take_back;
	bool unasking, unask_back;
	int64_t unask_ms; /* boot: when it was submitted */
	/* The thread's own, boot clock: when all lanes are looked at. */
	int64_t poll_ms;
};

/* The reconciler's thread, then the engine's, then the committer's. */
struct hpx_question {
	struct hpx_question *next; /* of those that wait in their lane */
	struct hpx_reconciler *reconciler;
	struct hpx_probe_lane *lane;   /* NULL: nobody is asked */
	struct hpx_settings *settings; /* those it is asked by */
	struct hpx_unsettled *about;
	const struct hpx_reconcile_settings *how;
	int64_t ask_until_ms; /* boot: later, it is somebody else's */
	struct hpx_buffer url;
	struct hpx_egress_request request;
	int64_t about_ms; /* wall: when it was sent */
	struct hpx_ruling_update turn;
	struct hpx_store_op op;
	char reason[HPX_EGRESS_PROBLEM_SIZE + 128];
};

/* Takes `about`, and answers it, lets it wait in its lane, or drops it. */
void hpx_question_begin(struct hpx_reconciler *reconciler, struct hpx_settings *settings,
			struct hpx_unsettled *about);
/* Asks one that has a slot of its lane. */
void hpx_question_ask(struct hpx_question *question);
/* Stores what was found (rule.c); the question is gone afterwards. */
void hpx_question_rule(struct hpx_question *question, const struct hpx_received_ruling *received);
/* It is asked again later, by whoever takes it then. */
void hpx_question_drop(struct hpx_question *question);

const struct hpx_operation_id *hpx_question_id(const struct hpx_question *question);
/* The mark of the operation's reference. */
const struct hpx_mark *hpx_question_mark(const struct hpx_question *question);

/* Where the probe goes (probe.c), with a NUL. HPX_NOT_FOUND: something that the
 * template names is not known, `*ret_reason` says what. */
enum hpx_status hpx_probe_url(const struct hpx_question *question,
			      struct hpx_store_reader *reader, struct hpx_buffer *out,
			      const char **ret_reason);

/* How long taking one keeps others from asking: the second half of it is the
 * question's own. */
int64_t hpx_question_lease_ms(const struct hpx_reconcile_settings *how);

/* The bookkeeping of the reconciler. NULL: nobody is asked there. */
struct hpx_probe_lane *hpx_reconciler_lane(struct hpx_reconciler *reconciler,
					   const struct hpx_unsettled *about);
void hpx_reconciler_enlist(struct hpx_reconciler *reconciler, struct hpx_question *question);
/* It waits for a slot of its lane. */
void hpx_reconciler_queue(struct hpx_reconciler *reconciler, struct hpx_question *question);
/* Answered, or never will be: its slot is free. */
void hpx_reconciler_freed(struct hpx_reconciler *reconciler, struct hpx_probe_lane *lane);
/* Nothing of a question is left. */
void hpx_reconciler_ended(struct hpx_reconciler *reconciler, struct hpx_probe_lane *lane);
bool hpx_reconciler_is_stopping(struct hpx_reconciler *reconciler);

#endif
