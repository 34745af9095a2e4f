/* The reconciler: asks what became of operations and jobs whose outcome nobody
 * knows. One thread takes those whose next question is due, libcurl's engine
 * asks (egress.h), the committer writes what was said; what follows from it is
 * core/reconcile.h's to say.
 *
 *   taken ─▶ nobody to ask: a person
 *         ─▶ said before it was unknown: ruled at once
 *         ─▶ asked ─▶ answered ─▶ ruled
 *
 * A probe's answer says whether it happened, and is not the operation's own
 * answer: retries of what was applied are told that it happened, as with
 * `hapax keys resolve --applied --status 200`; of what was declined, that.
 *
 * Taking one keeps others from asking for a time that is longer than a question
 * takes; a question that ends without an answer of anybody's (hapax stops) is
 * simply asked again when that time is over. */
#ifndef HPX_WORKER_RECONCILER_H
#define HPX_WORKER_RECONCILER_H

#include "service/counters.h"
#include "settings/settings.h"
#include "store/committer.h"

struct hpx_reconciler;

struct hpx_reconciler_options {
	struct hpx_store *store;
	struct hpx_committer *committer;
	struct hpx_settings *settings;
	struct hpx_service_counters *counters;
	int64_t every_ms; /* between two looks; 0: 1000 */
};

enum hpx_status hpx_reconciler_start(const struct hpx_reconciler_options *options,
				     struct hpx_reconciler **ret_reconciler);
/* Other routes and probes, for questions from now on. */
void hpx_reconciler_reload(struct hpx_reconciler *reconciler, struct hpx_settings *settings);
/* Asks nothing more and forgets the questions under way. What was said may
 * still be on its way to the store: stop the committer next. */
void hpx_reconciler_stop(struct hpx_reconciler *reconciler);
/* After stop; waits until the store has taken or refused everything. */
void hpx_reconciler_free(struct hpx_reconciler *reconciler);

#endif
