/* The authorisation subrequest (`tenant: {from: subrequest}`): the caller's
 * credentials are shown to a service, which says whose they are. What it said
 * is remembered for a while under a hash of the credentials, and callers who
 * come with the same ones meanwhile wait for the one question about them. A
 * credential is never kept longer than its question takes, and never logged. */
#ifndef HPX_GATEWAY_SUBREQUEST_H
#define HPX_GATEWAY_SUBREQUEST_H

#include "egress/egress.h"
#include "gateway/request.h"
#include "gateway/tenant.h"

/* X(name) — the name is the metric's label. */
#define HPX_SUBREQUEST_LIST(X) \
	X(named) \
	X(unauthenticated) \
	X(forbidden) \
	X(unavailable) \
	X(cached) /* no question: it was known */ \
	X(shared) /* no question of its own: another's was under way */

enum hpx_subrequest_result {
#define X(name) HPX_SUBREQUEST_##name,
	HPX_SUBREQUEST_LIST(X)
#undef X
		HPX_SUBREQUEST_COUNT
};
const char *hpx_subrequest_result_name(enum hpx_subrequest_result result);

struct hpx_subrequests;

/* `egress` NULL: nobody can be asked. NULL when out of memory. */
struct hpx_subrequests *hpx_subrequests_new(struct hpx_egress *egress,
					    const struct hpx_subrequest *settings);
/* After the engine has stopped. NULL is nothing. */
void hpx_subrequests_free(struct hpx_subrequests *subrequests);
uint64_t hpx_subrequests_count(const struct hpx_subrequests *subrequests,
			       enum hpx_subrequest_result result);

/* Finds out the tenant; hpx_tenant_found goes on. */
enum hpx_next hpx_subrequest_ask(struct hpx_request *request);
/* The request waits no longer; harmless where it does not. */
void hpx_subrequest_leave(struct hpx_request *request);

/* What names the caller to the service, or may: the header lines of the question.
 * Fills the hash of the credentials too. HPX_INVALID: they are ambiguous, and
 * `*ret_reason` says why. */
enum hpx_status hpx_subrequest_credentials(const struct hpx_tenant_source *source,
					   struct hpx_buffer *out,
					   uint8_t ret_digest[HPX_SHA256_SIZE],
					   const char **ret_reason);

#endif
