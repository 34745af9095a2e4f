/* The deliverer: jobs that are due are claimed, sent to their targets, and what
 * became of each is stored. One thread claims, libcurl's engine sends
 * (egress.h), the committer writes.
 *
 *   claim durable ─▶ sent ─▶ answered ─▶ stored
 *   (deliverer.c)  (sending.c)  (judge.c)  (told.c)
 *
 * What it keeps:
 *  1. A claim is durable before a byte leaves, and the first byte leaves within
 *     half of its lease, or not at all.
 *  2. The lease is longer than a sending can take, with the time that the store
 *     may need before and after: a claim is never renewed, because a sending
 *     that is still alive cannot have lost it.
 *  3. No more is claimed than can be sent now: memory does not grow with the
 *     queue. Each target has its own slots, and none can take the last one of
 *     another: a slow target holds up nobody else.
 *  4. What was claimed and not sent is given back; what cannot even be given
 *     back, because the store is gone, is the sweeper's.
 */
#ifndef HPX_WORKER_DELIVERER_H
#define HPX_WORKER_DELIVERER_H

#include "service/counters.h"
#include "settings/settings.h"
#include "store/committer.h"

struct hpx_deliverer;

struct hpx_deliverer_options {
	struct hpx_store *store;
	struct hpx_committer *committer;
	struct hpx_settings *settings; /* its targets; they stay until it ends */
	struct hpx_service_counters *counters;
	int64_t poll_ms; /* between two looks; 0: 250 */
};

enum hpx_status hpx_deliverer_start(const struct hpx_deliverer_options *options,
				    struct hpx_deliverer **ret_deliverer);
/* Other routes and bounds, from the next claim on. Targets cannot change. */
void hpx_deliverer_reload(struct hpx_deliverer *deliverer, struct hpx_settings *settings);
/* A job was stored: looks at once. From any thread. */
void hpx_deliverer_wake(struct hpx_deliverer *deliverer);
/* Claims nothing more, and lets what is under way go on for `grace_ms`; what
 * has not ended then is lost (sent) or given back (not sent). What became of
 * each may still be on its way to the store: stop the committer next. */
void hpx_deliverer_stop(struct hpx_deliverer *deliverer, int64_t grace_ms);
/* After stop; waits until the store has taken or refused everything. */
void hpx_deliverer_free(struct hpx_deliverer *deliverer);

#endif
