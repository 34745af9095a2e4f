/* Header lines as an application gives them with its answer or its job, and as
 * they are stored. PostgreSQL does the same in SQL (hapax.kept_headers); a test
 * compares the two. */
#ifndef HPX_HTTP_KEPT_H
#define HPX_HTTP_KEPT_H

#include "base/buffer.h"

/* What is kept of them, at most. */
#define HPX_KEPT_BYTES_MAX 65536

/* Appends "Name: value" lines, each with CR LF behind it. What belongs to one
 * delivery, or is hapax's to say, is left out; so are empty lines. `lines` end
 * with CR LF or LF, the last may end without. HPX_INVALID: a line that is no
 * header, or text that is not UTF-8; HPX_TOO_LARGE: past the buffer's bound. */
enum hpx_status hpx_kept_lines(struct hpx_span lines, struct hpx_buffer *out);

#endif
