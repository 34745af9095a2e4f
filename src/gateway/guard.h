/* What the guarded steps offer each other. */
#ifndef HPX_GATEWAY_GUARD_H
#define HPX_GATEWAY_GUARD_H

#include "gateway/request.h"

/* Bytes of the body; the step after it runs when request->body.whole. */
void hpx_guard_take_body(struct hpx_request *request, struct hpx_span data);
/* What the decision means for this request. */
enum hpx_next hpx_guard_decided(struct hpx_request *request, const struct hpx_decision *decision);
/* The stored answer, or that it was not kept. */
enum hpx_next hpx_guard_replay(struct hpx_request *request);
/* 409 idempotency_outcome_unknown, with the time of the next question. */
enum hpx_next hpx_guard_unknown(struct hpx_request *request);
/* Retry-After for what is asked about at `at_ms`; 0: nobody knows when. */
unsigned hpx_guard_until_s(int64_t at_ms, int64_t now_ms);
/* The result of a RESERVE whose request was refused meanwhile: what it began is
 * failed as not executed. */
void hpx_guard_late(struct hpx_request *request);

#endif
