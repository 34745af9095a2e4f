/* A retry while the first request is under way: refused, accepted, or kept
 * waiting for the first one's answer. A waiter never becomes the executor. */
#ifndef HPX_GATEWAY_WAIT_H
#define HPX_GATEWAY_WAIT_H

#include "gateway/request.h"

/* By the route's `concurrent`. */
enum hpx_next hpx_wait_or_refuse(struct hpx_request *request);
/* The wait is over without an answer: 409, send it again. */
enum hpx_next hpx_wait_over(struct hpx_request *request);
/* Off the list; nothing is sent. */
void hpx_wait_leave(struct hpx_request *request);
void hpx_wait_tick(struct hpx_request *request, uint64_t now_ms);

#endif
