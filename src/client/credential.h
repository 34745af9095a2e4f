/* Credentials: which fields are some, and what the journal keeps of one. Never
 * the value: a salted hash tells whether the same one is given again, because
 * with another one the API would take the key for another caller's, and do it
 * a second time. */
#ifndef HPX_CLIENT_CREDENTIAL_H
#define HPX_CLIENT_CREDENTIAL_H

#include "base/bytes.h"

#define HPX_SALT_SIZE 16

struct hpx_seal {
	uint8_t salt[HPX_SALT_SIZE];
	uint8_t digest[HPX_SHA256_SIZE];
};

bool hpx_credential_is(struct hpx_span name);

/* A new salt, and the hash over it, the name and the value. */
enum hpx_status hpx_seal_make(struct hpx_span name, struct hpx_span value,
			      struct hpx_seal *ret_seal);
/* HPX_CONFLICT: it is another value. */
enum hpx_status hpx_seal_check(const struct hpx_seal *seal, struct hpx_span name,
			       struct hpx_span value);

#endif
