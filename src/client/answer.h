/* What came back, and what is to be made of it. */
#ifndef HPX_CLIENT_ANSWER_H
#define HPX_CLIENT_ANSWER_H

#include "client/client.h"
#include "core/retry.h"

/* The answer becomes the call's, in place of an earlier one; false when out of
 * memory. */
bool hpx_answer_take(struct hapax_call *call, struct hpx_egress_request *request);

/* Of an attempt whose answer, if there is one, was taken. */
struct hpx_retry_facts hpx_answer_facts(const struct hapax_call *call,
					const struct hpx_egress_request *request);

/* Fills the outcome from where the call stands; its kind is the sender's. */
void hpx_answer_outcome(struct hapax_call *call);

#endif
