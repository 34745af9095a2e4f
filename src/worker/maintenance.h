/* The background duties of a serving process, on one thread: sweep (lost
 * leases and claims), reap (what has expired), maintain (checkpoints), and a look at the
 * store for the metrics. Writes go through the committer like everybody's. Jobs
 * are sent by the deliverer (deliver.h), unknown outcomes are asked about by the
 * reconciler (reconcile.h), each on a thread of its own. */
#ifndef HPX_WORKER_MAINTENANCE_H
#define HPX_WORKER_MAINTENANCE_H

#include "service/counters.h"
#include "store/committer.h"

struct hpx_worker;

struct hpx_worker_options {
	struct hpx_store *store;
	struct hpx_committer *committer;
	int64_t sweep_every_ms;
	int64_t reap_every_ms;
	unsigned reap_batch;
	struct hpx_service_counters *counters;
};

enum hpx_status hpx_worker_start(const struct hpx_worker_options *options,
				 struct hpx_worker **ret_worker);
/* Other intervals, from now on. */
void hpx_worker_configure(struct hpx_worker *worker, int64_t sweep_every_ms,
			  int64_t reap_every_ms, unsigned reap_batch);
/* Ends after the duty under way. */
void hpx_worker_stop(struct hpx_worker *worker);

#endif
