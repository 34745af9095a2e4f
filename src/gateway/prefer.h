/* Prefer: wait=N (RFC 7240 §4.3): how long a client would like to wait for
 * something that is accepted and not done yet. */
#ifndef HPX_GATEWAY_PREFER_H
#define HPX_GATEWAY_PREFER_H

#include "base/span.h"

/* Of the header's combined value. The first `wait` counts (§2); one that is no
 * number of seconds is no preference, as is a header without it: false. Longer
 * than a day counts as a day. */
bool hpx_prefer_wait(struct hpx_span prefer, int64_t *ret_ms);

#endif
