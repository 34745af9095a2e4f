/* Web origins as browsers send them in Origin: the scheme, the host, and the
 * port where it is not the scheme's own (RFC 6454 §6.2). */
#ifndef HPX_HTTP_ORIGIN_H
#define HPX_HTTP_ORIGIN_H

#include "base/span.h"

/* Whether a browser could send exactly this, "null" included: what it never
 * sends would never match. `*ret_reason` says what is wrong and what would be
 * right, as a sentence about the text. */
bool hpx_origin_valid(struct hpx_span text, const char **ret_reason);

#endif
