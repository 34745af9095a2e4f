/* Pass-through: a request that needs no guard, streamed both ways. */
#ifndef HPX_GATEWAY_PASS_H
#define HPX_GATEWAY_PASS_H

#include "gateway/request.h"

/* Bytes of the body; its end where request->body.whole. */
void hpx_pass_take_body(struct hpx_request *request, struct hpx_span data);

#endif
