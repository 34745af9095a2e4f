/* JSON strings: checking, taking the escapes out, putting RFC 8785's in. */
#ifndef HPX_CORE_JSON_STRING_H
#define HPX_CORE_JSON_STRING_H

#include "base/buffer.h"

/* The string at the front of `*rest`, which begins with its quote: what stands
 * between the quotes, and whether there is an escape in it. Moves `*rest`
 * behind it. HPX_INVALID: no end, a control byte, a bad escape, a lone
 * surrogate, invalid UTF-8. */
enum hpx_status hpx_json_string_read(struct hpx_span *rest, struct hpx_span *ret_inside,
				     bool *ret_escaped);

/* What the inside of a string that was read means, as UTF-8 into `out`, which
 * has room for inside.len bytes. Returns the length. */
size_t hpx_json_string_decode(struct hpx_span inside, char *out);

/* With its quotes and the escapes of RFC 8785 §3.2.2.2. */
enum hpx_status hpx_json_string_write(struct hpx_span text, struct hpx_buffer *out);

/* Order by UTF-16 code units (RFC 8785 §3.2.3) of two valid UTF-8 texts. */
int hpx_json_string_cmp(struct hpx_span a, struct hpx_span b);

#endif
