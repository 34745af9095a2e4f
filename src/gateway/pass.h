/* Pass-through: a request that needs no guard, streamed both ways. */
#ifndef HPX_GATEWAY_PASS_H
#define HPX_GATEWAY_PASS_H

#include "gateway/request.h"

/* Bytes of the body, or of a tunnel; fewer are used when the upstream has to
 * catch up first. */
size_t hpx_pass_feed(struct hpx_request *request, struct hpx_span bytes);

#endif
