/* Base64 (RFC 4648 §4) read strictly: the standard alphabet, whole groups with
 * their padding, no unused bits set, nothing in between. So a value has one
 * spelling, which a signature is compared by. */
#ifndef HPX_CORE_BASE64_H
#define HPX_CORE_BASE64_H

#include "base/span.h"

/* Into `out`, which has room for text.len / 4 * 3 bytes; false, with `out` and
 * `*ret_len` of no meaning, where the text is not base64. Empty text is. */
bool hpx_base64_decode(struct hpx_span text, void *out, size_t *ret_len);

#endif
