/* The authorisation subrequest (`tenant: {from: subrequest}`): a service gets the
 * caller's credentials and names the caller. Its answer is cached for a while under a
 * hash of the credentials. Requests with the same credentials share one subrequest. A
 * credential is never kept longer than its subrequest takes, and never logged. */
#ifndef HPX_GATEWAY_SUBREQUEST_H
#define HPX_GATEWAY_SUBREQUEST_H

#include "egress/egress.h"
#include "gateway/tenant.h"

/* X(name) — the name is the metric's label. */
#define HPX_SUBREQUEST_LIST(X) \
	X(named) \
	X(unauthenticated) \
	X(forbidden) \
	X(unavailable) \
	X(cached) /* no subrequest: the identity was cached */ \
	X(shared) /* no subrequest of its own: another request's was under way */

enum hpx_subrequest_result {
#define X(name) HPX_SUBREQUEST_##name,
	HPX_SUBREQUEST_LIST(X)
#undef X
		HPX_SUBREQUEST_COUNT
};
const char *hpx_subrequest_result_name(enum hpx_subrequest_result result);

/* ---- identities: whom credentials belong to, as the service told it ----
 *
 * Remembered for a while under a hash of the credentials: they themselves are never
 * kept. Bounded; not for use from two threads. */

enum hpx_identity_kind {
	HPX_IDENTITY_UNAVAILABLE, /* the service did not tell; never cached */
	HPX_IDENTITY_NAMED,
	HPX_IDENTITY_UNAUTHENTICATED, /* 401, or a 2xx that names nobody */
	HPX_IDENTITY_FORBIDDEN,       /* 403 */
};

/* A tenant's name as the service gives it: 1 to 255 bytes. */
#define HPX_IDENTITY_NAME_MAX 255

struct hpx_identity {
	enum hpx_identity_kind kind;
	uint8_t name_len;
	char name[HPX_IDENTITY_NAME_MAX];
};

/* Reads the service's answer: its status, and its header lines ("Name: value\r\n"),
 * of which `header` names the tenant. UNAVAILABLE where that header is there twice,
 * too long, or has bytes that are not visible ASCII: then the name cannot be relied
 * on. */
void hpx_identity_read(unsigned status, struct hpx_span headers, struct hpx_span header,
		       struct hpx_identity *ret_identity);

struct hpx_identities;

/* NULL when out of memory. Holds at least one set of entries (4). */
struct hpx_identities *hpx_identities_new(unsigned entries_max);
void hpx_identities_free(struct hpx_identities *identities);
/* False: not cached, or too old. Times are on the boot clock. */
bool hpx_identities_find(struct hpx_identities *identities,
			 const uint8_t digest[HPX_SHA256_SIZE], int64_t now_ms,
			 struct hpx_identity *ret_identity);
void hpx_identities_put(struct hpx_identities *identities, const uint8_t digest[HPX_SHA256_SIZE],
			const struct hpx_identity *identity, int64_t until_ms);

/* ---- subrequests ---- */

struct hpx_subrequests;

/* `egress` NULL: every subrequest fails. NULL when out of memory. */
struct hpx_subrequests *hpx_subrequests_new(struct hpx_egress *egress,
					    const struct hpx_subrequest *settings);
/* After the engine has stopped. NULL is nothing. */
void hpx_subrequests_free(struct hpx_subrequests *subrequests);
uint64_t hpx_subrequests_count(const struct hpx_subrequests *subrequests,
			       enum hpx_subrequest_result result);

/* Writes the header lines of the subrequest: all headers that name the caller, or
 * may. Fills the hash of the credentials too. HPX_INVALID: the credentials are
 * ambiguous, and `*ret_reason` says why. */
enum hpx_status hpx_subrequest_credentials(const struct hpx_tenant_source *source,
					   struct hpx_buffer *out,
					   uint8_t ret_digest[HPX_SHA256_SIZE],
					   const char **ret_reason);

#endif
