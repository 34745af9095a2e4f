/* HTTP dates, read (RFC 9110 §5.6.7). Writing one is hpx_clock_http_date. */
#ifndef HPX_HTTP_DATE_H
#define HPX_HTTP_DATE_H

#include "base/span.h"
#include "base/status.h"

/* All three forms: IMF-fixdate, and the two that only old senders use. The
 * year of two digits is the one less than 50 years after now. HPX_INVALID for
 * anything else, including days that no month has. */
enum hpx_status hpx_date_parse(struct hpx_span text, int64_t now_wall_ms,
			       int64_t *ret_unix_s);

#endif
