/* Whom credentials belong to, as another service told it, remembered for a
 * while. Keyed by a hash of the credentials: they themselves are never kept.
 * Bounded; not for use from two threads. */
#ifndef HPX_GATEWAY_IDENTITY_H
#define HPX_GATEWAY_IDENTITY_H

#include "base/bytes.h"

enum hpx_identity_kind {
	HPX_IDENTITY_UNAVAILABLE, /* nobody could tell; never remembered */
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

/* What an answer says: its status, and its header lines ("Name: value\r\n"),
 * of which `header` names the tenant. Sent twice, too long, or with bytes that
 * are not visible ASCII, it names nobody that can be relied on: UNAVAILABLE. */
void hpx_identity_read(unsigned status, struct hpx_span headers, struct hpx_span header,
		       struct hpx_identity *ret_identity);

struct hpx_identities;

/* NULL when out of memory. At least as many entries as one set has (4). */
struct hpx_identities *hpx_identities_new(unsigned entries_max);
void hpx_identities_free(struct hpx_identities *identities);
/* False: not known, or not any more. Times are on the boot clock. */
bool hpx_identities_find(struct hpx_identities *identities,
			 const uint8_t digest[HPX_SHA256_SIZE], int64_t now_ms,
			 struct hpx_identity *ret_identity);
void hpx_identities_put(struct hpx_identities *identities, const uint8_t digest[HPX_SHA256_SIZE],
			const struct hpx_identity *identity, int64_t until_ms);

#endif
