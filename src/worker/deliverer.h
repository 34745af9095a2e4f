/* The deliverer sends jobs that are due to their targets and stores the result of
 * each delivery. One thread claims (deliverer.c), libcurl's engine sends
 * (outgoing.c, egress.h), the committer writes.
 *
 *   due ─▶ claimed ─▶ sent ─▶ answered ─▶ stored: done, queued, unknown or dead
 *             └▶ returned: queued, due at once
 *
 *  1. A claim is durable before a byte leaves. The first byte leaves within the
 *     first half of the claim's lease, or not at all.
 *  2. The lease is longer than a delivery can take, with the time that the store
 *     may need before and after. A claim is never renewed: a delivery that is
 *     still alive cannot have lost its claim.
 *  3. No more is claimed than can be sent now: memory does not grow with the
 *     outbox. Each target has slots of its own, and none can take the last one of
 *     another: a slow target holds up no other.
 *  4. A job that was claimed and not sent is returned. A job that cannot even be
 *     returned, because the store is gone, is left to the sweep. */
#ifndef HPX_WORKER_DELIVERER_H
#define HPX_WORKER_DELIVERER_H

#include "service/service.h"

struct hpx_deliverer;

/* Delivers to the targets of the service's settings, which stay until the
 * deliverer ends. `poll_ms` is the time between two claims; 0: 250. */
enum hpx_status hpx_deliverer_start(struct hpx_service *service, int64_t poll_ms,
				    struct hpx_deliverer **ret_deliverer);
/* Other routes and bounds, from the next claim on. Targets cannot change. */
void hpx_deliverer_reload(struct hpx_deliverer *deliverer, struct hpx_settings *settings);
/* A job was stored: claims at once. From any thread. */
void hpx_deliverer_wake(struct hpx_deliverer *deliverer);
/* Claims nothing more; deliveries under way go on. Does not wait. */
void hpx_deliverer_stop_claiming(struct hpx_deliverer *deliverer);
/* Claims nothing more, and lets deliveries under way go on for `grace_ms`. A
 * delivery that has not ended then is lost (sent) or returned (not sent). The
 * results may still be on the way to the store: stop the committer next. NULL is
 * nothing, here and below. */
void hpx_deliverer_stop(struct hpx_deliverer *deliverer, int64_t grace_ms);
/* After stop; waits until the store has taken or refused every result. */
void hpx_deliverer_free(struct hpx_deliverer *deliverer);

#endif
