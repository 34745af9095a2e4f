/* The maintenance of the store, on a thread of its own: sweep (lost leases and
 * claims), reap (what has expired), checkpoints, and a survey of the store for
 * the metrics. Writes go through the committer like everybody's. Jobs are sent by
 * the deliverer (deliverer.h), unknown outcomes are probed by the reconciler
 * (reconciler.h). */
#ifndef HPX_WORKER_MAINTENANCE_H
#define HPX_WORKER_MAINTENANCE_H

#include "service/service.h"

struct hpx_maintenance;

enum hpx_status hpx_maintenance_start(struct hpx_service *service,
				      struct hpx_maintenance **ret_maintenance);
/* Other intervals, from now on. */
void hpx_maintenance_reload(struct hpx_maintenance *maintenance,
			    const struct hpx_settings *settings);
/* Ends after the task under way, and frees; NULL is nothing. */
void hpx_maintenance_stop(struct hpx_maintenance *maintenance);

#endif
