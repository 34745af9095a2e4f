/* Routes with `deliver: async`: the request is kept as a job for a target, in
 * the same transaction as its operation, and answered with 202. Nothing is
 * forwarded; the job's answer becomes the operation's. */
#ifndef HPX_GATEWAY_ASYNC_H
#define HPX_GATEWAY_ASYNC_H

#include "gateway/request.h"

/* The header lines that are kept with a job: a short list of what says how the
 * body is to be read and what answer is wanted, and what the route's
 * fingerprint names; never a credential, however it is configured. */
enum hpx_status hpx_async_headers(const struct hpx_settings *settings,
				  const struct hpx_route *route, const struct hpx_http_head *head,
				  struct hpx_buffer *out);

bool hpx_async_is(const struct hpx_request *request);
/* Fills request->reservation.job. HPX_INVALID: it can never be one, `*ret_reason` says
 * why. */
enum hpx_status hpx_async_make_job(struct hpx_request *request, const char **ret_reason);
/* The operation and its job are durable. */
enum hpx_next hpx_async_accepted(struct hpx_request *request);
/* It is on its way: the answer, if the client prefers to wait for it and it
 * comes in time, or 202. */
enum hpx_next hpx_async_pending(struct hpx_request *request);

/* Wakes whoever delivers jobs. */
void hpx_async_wake(struct hpx_gateway *gateway);

#endif
