/* The client's Idempotency-Key: from the field's value to the key's bytes. */
#ifndef HPX_CORE_KEY_H
#define HPX_CORE_KEY_H

#include "base/span.h"
#include "base/status.h"

#define HPX_KEY_MAX 255

struct hpx_key {
	char bytes[HPX_KEY_MAX];
	size_t len;
};

/* Reads one field value. One that begins with `"` must be an RFC 9651 String
 * without parameters; otherwise the bare bytes are the key, without space,
 * comma or `"` (refused altogether when `strict`). 1 to 255 bytes of
 * printable ASCII after decoding. On HPX_INVALID, `*ret_reason` is a sentence
 * that tells a client's developer what to mend. */
enum hpx_status hpx_key_parse(struct hpx_span value, bool strict,
			      struct hpx_key *ret_key, const char **ret_reason);

/* The value's bytes as they are, as Stripe takes them: quotes, commas and
 * spaces within are part of the key. The same bounds hold. */
enum hpx_status hpx_key_parse_bare(struct hpx_span value, struct hpx_key *ret_key,
				   const char **ret_reason);

#endif
