/* Waiting for the end of an operation that somebody else brings about: a retry
 * while the first request is under way (refused, accepted, or kept waiting), and
 * whoever prefers to wait for what is delivered later. A waiter never becomes
 * the executor. */
#ifndef HPX_GATEWAY_WAIT_H
#define HPX_GATEWAY_WAIT_H

#include "gateway/request.h"

/* By the route's `concurrent`. */
enum hpx_next hpx_wait_or_refuse(struct hpx_request *request);

/* How long the client prefers to wait (Prefer: wait=N), at most `most_ms`; 0:
 * not at all. */
int64_t hpx_wait_preferred(struct hpx_request *request, int64_t most_ms);
/* Waits for the end of the operation request->identity.ask.id, and then looks at it
 * again. Called again when it is still under way: then the request waits on, or
 * WAIT_OVER answers: 202 for what is delivered later, its state for who asked for
 * that, else 409, send it again. */
enum hpx_next hpx_wait_for(struct hpx_request *request, int64_t wait_ms);

/* Off the list; nothing is sent. */
void hpx_wait_leave(struct hpx_request *request);

#endif
