/* After the attempt: its outcome becomes durable, then the client is told. */
#ifndef HPX_GATEWAY_SETTLE_H
#define HPX_GATEWAY_SETTLE_H

#include "gateway/request.h"

/* Tells the store the end of the attempt; the answer step follows. */
void hpx_settle_submit(struct hpx_request *request, enum hpx_verb verb);
/* The client waits no longer than this for the store. */
void hpx_settle_tick(struct hpx_request *request, uint64_t now_ms);

#endif
