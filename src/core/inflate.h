/* Bodies under Content-Encoding: what they are when decoded. */
#ifndef HPX_CORE_INFLATE_H
#define HPX_CORE_INFLATE_H

#include "base/buffer.h"

/* Appends the body without its coding, which is one of gzip, x-gzip and
 * deflate (with or without the zlib wrapper). HPX_UNSUPPORTED: another coding
 * or several; HPX_INVALID: not a whole stream, or something behind it;
 * HPX_TOO_LARGE: more than `out` may hold. On failure `out` is as it was. */
enum hpx_status hpx_inflate(struct hpx_span coding, struct hpx_span body,
			    struct hpx_buffer *out);

#endif
