/* Inside the reconciler: one unknown outcome, and how it is asked about. */
#ifndef HPX_WORKER_QUESTION_H
#define HPX_WORKER_QUESTION_H

#include <pthread.h>

#include "egress/egress.h"
#include "worker/reconcile.h"

/* Under way at once; and, so that one slow service does not hold up what is
 * asked of others, at one URL. */
#define HPX_QUESTIONS_MAX 64
#define HPX_QUESTIONS_EACH_MAX 16

struct hpx_question;

struct hpx_reconciler {
	struct hpx_reconciler_options options;
	struct hpx_egress *egress;
	struct hpx_store_reader *reader;   /* the thread's own */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	struct hpx_settings *settings;
	bool stopping;
	struct hpx_question *questions;    /* all that are alive */
	unsigned question_count;
	/* The look under way: the thread's, and the committer's meanwhile. */
	struct hpx_store_op look;
	bool looking;
};

/* The reconciler's thread, then the engine's, then the committer's. */
struct hpx_question {
	struct hpx_question *next, *prev;
	struct hpx_reconciler *reconciler;
	struct hpx_settings *settings;     /* those it is asked by */
	struct hpx_unsettled *about;
	const struct hpx_reconcile_settings *how;
	const char *asked_url;             /* the service's; NULL: nobody is asked */
	struct hpx_buffer url;
	struct hpx_egress_request request;
	int64_t about_ms;                  /* wall: when it was sent */
	struct hpx_ruling_turn turn;
	struct hpx_store_op op;
	char reason[HPX_EGRESS_PROBLEM_SIZE + 128];
};

/* Takes `about`, and answers, asks or drops it. */
void hpx_question_begin(struct hpx_reconciler *reconciler, struct hpx_settings *settings,
			struct hpx_unsettled *about);
/* Stores what was found (rule.c); the question is gone afterwards. */
void hpx_question_rule(struct hpx_question *question, const struct hpx_finding *finding);
/* A person has to look: nobody can be asked (rule.c). */
void hpx_question_unask(struct hpx_question *question);
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

/* The bookkeeping of the reconciler; false where this URL has its share. */
bool hpx_reconciler_enlist(struct hpx_reconciler *reconciler, struct hpx_question *question);
/* Off the list; and, when nothing of it is left, said so. */
void hpx_reconciler_strike(struct hpx_reconciler *reconciler, struct hpx_question *question);
void hpx_reconciler_ended(struct hpx_reconciler *reconciler);
bool hpx_reconciler_is_stopping(struct hpx_reconciler *reconciler);

#endif
