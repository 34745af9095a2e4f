/* One attempt: the exchange with the upstream, and its lease. */
#ifndef HPX_GATEWAY_ATTEMPT_H
#define HPX_GATEWAY_ATTEMPT_H

#include "gateway/request.h"

/* Keeps the lease while the upstream connection lives. */
void hpx_attempt_renew(struct hpx_request *request, uint64_t now_ms);
/* The result of the renewal. */
void hpx_attempt_renewed(struct hpx_request *request);
/* Cuts the exchange; nothing more is heard of it. */
void hpx_attempt_cancel(struct hpx_request *request);
/* The process ends before the answer came: what is known is written. */
void hpx_attempt_abandon(struct hpx_request *request);

#endif
