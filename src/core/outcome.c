/* From an answer, or the lack of one, to what is known of the attempt. */
#include "core/outcome.h"

enum hpx_declared hpx_declared_parse(struct hpx_span value)
{
	if (value.ptr == NULL)
		return HPX_DECLARED_NOTHING;
	if (hpx_span_ieq(value, HPX_SPAN("applied")))
		return HPX_DECLARED_APPLIED;
	if (hpx_span_ieq(value, HPX_SPAN("not-applied")))
		return HPX_DECLARED_NOT_APPLIED;
	return HPX_DECLARED_UNKNOWN;
}

static enum hpx_outcome of_server_error(const struct hpx_policy *policy)
{
	switch (policy->server_error) {
	case HPX_SERVER_ERROR_RETRY:
		return HPX_OUTCOME_NOT_EXECUTED;
	case HPX_SERVER_ERROR_REPLAY:
		return HPX_OUTCOME_ANSWERED;
	case HPX_SERVER_ERROR_UNKNOWN:
		break;
	}
	return HPX_OUTCOME_UNKNOWN;
}

static enum hpx_outcome of_status(unsigned status, bool has_retry_after,
				  const struct hpx_policy *policy)
{
	switch (status) {
	case 408:
	case 425:
	case 429:
		return HPX_OUTCOME_NOT_EXECUTED;
	case 401:
	case 403:
	case 407:
	case 421:
		return HPX_OUTCOME_RELEASED;
	case 502:
	case 504:
		return HPX_OUTCOME_UNKNOWN;
	case 503:
		return has_retry_after ? HPX_OUTCOME_NOT_EXECUTED : of_server_error(policy);
	default:
		break;
	}
	if (status >= 200 && status < 500)
		return HPX_OUTCOME_ANSWERED;
	if (status >= 500 && status < 600)
		return of_server_error(policy);
	return HPX_OUTCOME_UNKNOWN; /* no number that HTTP knows */
}

enum hpx_outcome hpx_outcome_of_answer(unsigned status, bool has_retry_after,
				       enum hpx_declared declared, const struct hpx_policy *policy)
{
	switch (declared) {
	case HPX_DECLARED_APPLIED:
		return HPX_OUTCOME_ANSWERED;
	case HPX_DECLARED_NOT_APPLIED:
		return HPX_OUTCOME_NOT_EXECUTED;
	case HPX_DECLARED_UNKNOWN:
		return HPX_OUTCOME_UNKNOWN;
	case HPX_DECLARED_NOTHING:
		break;
	}
	return of_status(status, has_retry_after, policy);
}

bool hpx_outcome_is_assumed(unsigned status, bool has_retry_after, enum hpx_declared declared)
{
	return declared == HPX_DECLARED_NOTHING && status >= 500 && status < 600 && status != 502 &&
	       status != 504 && !(status == 503 && has_retry_after);
}

static const char *assumption(const struct hpx_policy *policy, bool chosen)
{
	switch (policy->server_error) {
	case HPX_SERVER_ERROR_RETRY:
		return chosen ? "server_error: retry takes a 5xx for rolled back" :
				"nobody has said what a 5xx means here; server_error: retry, the "
				"default, takes it for rolled back";
	case HPX_SERVER_ERROR_REPLAY:
		return "server_error: replay takes a 5xx for the final answer";
	case HPX_SERVER_ERROR_UNKNOWN:
		break;
	}
	return "server_error: unknown says that it may have happened";
}

const char *hpx_outcome_reason(unsigned status, bool has_retry_after, enum hpx_declared declared,
			       const struct hpx_policy *policy, bool chosen)
{
	if (declared != HPX_DECLARED_NOTHING)
		return "the upstream's Hapax-Outcome";
	if (hpx_outcome_is_assumed(status, has_retry_after, declared))
		return assumption(policy, chosen);
	if (status == 502 || status == 504)
		return "somebody behind the upstream lost an answer";
	return "the upstream's answer";
}

enum hpx_outcome hpx_outcome_of_silence(bool any_byte_left)
{
	return any_byte_left ? HPX_OUTCOME_UNKNOWN : HPX_OUTCOME_NOT_EXECUTED;
}
