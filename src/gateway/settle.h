/* After the attempt: its outcome becomes durable, then the client is told. */
#ifndef HPX_GATEWAY_SETTLE_H
#define HPX_GATEWAY_SETTLE_H

#include "gateway/request.h"

/* The result of an op that nobody waits for any more: the client was told without
 * it, or it is an undo. */
void hpx_settle_late(struct hpx_request *request);
/* Fails the reservation as not executed; nobody waits for it. */
void hpx_settle_undo(struct hpx_request *request);

#endif
