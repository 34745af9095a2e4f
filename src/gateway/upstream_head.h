/* The request's head as the upstream gets it. */
#ifndef HPX_GATEWAY_UPSTREAM_HEAD_H
#define HPX_GATEWAY_UPSTREAM_HEAD_H

#include "gateway/request.h"

/* Fills request->attempt.head. Guarded: identity encoding, a Content-Length, and
 * what the upstream is told of the operation. Otherwise the framing is as it
 * came, and an upgrade (never to h2c) is passed on. */
enum hpx_status hpx_upstream_head_write(struct hpx_request *request, bool guarded);

#endif
