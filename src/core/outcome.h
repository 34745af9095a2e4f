/* The outcome of an attempt: what is known of it, by how far the request
 * went and what was answered. */
#ifndef HPX_CORE_OUTCOME_H
#define HPX_CORE_OUTCOME_H

#include "base/span.h"
#include "core/decision.h"

enum hpx_outcome {
	HPX_OUTCOME_ANSWERED,     /* → completed */
	HPX_OUTCOME_NOT_EXECUTED, /* proved → failed_retryable */
	HPX_OUTCOME_RELEASED,     /* not executed; a first attempt leaves no record */
	HPX_OUTCOME_UNKNOWN,      /* → unknown */
};

/* The outcome that the upstream declares with the header Hapax-Outcome. */
enum hpx_declared { HPX_DECLARED_NOTHING,
		    HPX_DECLARED_APPLIED,
		    HPX_DECLARED_NOT_APPLIED,
		    HPX_DECLARED_UNKNOWN };

/* A value that is none of the three words counts as `unknown`: the upstream
 * meant to say something, and a guess could repeat a payment. */
enum hpx_declared hpx_declared_parse(struct hpx_span value);

enum hpx_outcome hpx_outcome_of_answer(unsigned status, bool has_retry_after,
				       enum hpx_declared declared, const struct hpx_policy *policy);
/* The reason of an outcome, as a sentence for the log. `chosen`: the configuration sets
 * server_error; otherwise the sentence names it as the default. */
const char *hpx_outcome_reason(unsigned status, bool has_retry_after, enum hpx_declared declared,
			       const struct hpx_policy *policy, bool chosen);
/* Whether the outcome is nothing but the route's `server_error`. */
bool hpx_outcome_is_assumed(unsigned status, bool has_retry_after, enum hpx_declared declared);
/* No complete answer came. */
enum hpx_outcome hpx_outcome_of_silence(bool any_byte_left);

#endif
