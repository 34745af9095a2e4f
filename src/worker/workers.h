/* The workers of a process, started and stopped together: the maintenance of the
 * store (maintenance.h), the deliverer of jobs (deliverer.h) and the reconciler of
 * unknown outcomes (reconciler.h). `hapax serve` runs them beside its gateway,
 * `hapax work` runs nothing else. */
#ifndef HPX_WORKER_WORKERS_H
#define HPX_WORKER_WORKERS_H

#include "service/service.h"

struct hpx_workers {
	struct hpx_maintenance *maintenance;
	struct hpx_deliverer *deliverer;   /* NULL: this process delivers nothing */
	struct hpx_reconciler *reconciler; /* NULL: this process probes nothing */
	bool stopped;
};

/* With `external`, jobs are delivered and unknown outcomes probed, too. On an
 * error, the workers that were started go on until hpx_workers_stop. */
enum hpx_status hpx_workers_start(struct hpx_workers *workers, struct hpx_service *service,
				  bool external);
void hpx_workers_reload(struct hpx_workers *workers, struct hpx_settings *settings);
/* There is a new job; `workers` is a struct hpx_workers. From any thread. */
void hpx_workers_wake(void *workers);

/* No job is begun any more. Does not wait: what stops the workers comes later. */
void hpx_workers_stop_claiming(struct hpx_workers *workers);
/* Begins nothing more; deliveries under way may go on for `grace_ms`. Their
 * results may still be on the way to the store: hpx_service_stop_writing is next,
 * then hpx_workers_done. Both may be called for workers that never started. */
void hpx_workers_stop(struct hpx_workers *workers, int64_t grace_ms);
void hpx_workers_done(struct hpx_workers *workers);

#endif
