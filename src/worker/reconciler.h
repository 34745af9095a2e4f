/* The reconciler finds out what became of operations and jobs whose outcome is
 * unknown. One thread claims those whose next probe is due (reconciler.c),
 * libcurl's engine sends the probes (probe_call.c, egress.h), the committer writes
 * the rulings. What follows from a ruling is decided by core/reconcile.h.
 *
 *   due ─▶ claimed ─▶ evidence from before it was unknown: ruled at once
 *      │          └─▶ probed ─▶ answered ─▶ ruled: settled, or probed again later
 *      └▶ no probe is configured: escalated to a person
 *
 * A probe's answer says whether the operation was executed; it is not the answer of
 * the operation. A retry of an applied operation is told that it happened, as with
 * `hapax keys resolve --applied --status 200`; of a declined one, that.
 *
 * A claim keeps other processes from probing for longer than a probe takes. A probe
 * that ends without an answer because hapax stops is made again when that time is
 * over. */
#ifndef HPX_WORKER_RECONCILER_H
#define HPX_WORKER_RECONCILER_H

#include "service/service.h"

struct hpx_reconciler;

/* `every_ms` is the time between two looks at the whole store; 0: 1000. */
enum hpx_status hpx_reconciler_start(struct hpx_service *service, int64_t every_ms,
				     struct hpx_reconciler **ret_reconciler);
/* Other routes and probes, for calls from now on. */
void hpx_reconciler_reload(struct hpx_reconciler *reconciler, struct hpx_settings *settings);
/* Probes nothing more and drops the calls under way. Rulings may still be on the
 * way to the store: stop the committer next. NULL is nothing, here and below. */
void hpx_reconciler_stop(struct hpx_reconciler *reconciler);
/* After stop; waits until the store has taken or refused every ruling. */
void hpx_reconciler_free(struct hpx_reconciler *reconciler);

#endif
