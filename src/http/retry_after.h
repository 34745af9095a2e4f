/* Retry-After (RFC 9110 §10.2.3), read as seconds from now, and HTTP dates. Writing a
 * date is hpx_clock_http_date. */
#ifndef HPX_HTTP_RETRY_AFTER_H
#define HPX_HTTP_RETRY_AFTER_H

#include "base/span.h"
#include "base/status.h"

/* Whatever is longer counts as this long: a year. */
#define HPX_RETRY_AFTER_MAX_S 31536000

/* A number of seconds, or a date (one that is past gives 0, a part of a
 * second counts whole). HPX_INVALID for anything else. */
enum hpx_status hpx_retry_after_parse(struct hpx_span value, int64_t now_wall_ms,
				      uint32_t *ret_seconds);

/* All three forms: IMF-fixdate, and the two that only old senders use. The
 * year of two digits is the one less than 50 years after now. HPX_INVALID for
 * anything else, including days that no month has. */
enum hpx_status hpx_date_parse(struct hpx_span text, int64_t now_wall_ms,
			       int64_t *ret_unix_s);

#endif
