/* The two clocks. Wall time says when something expires, for people and
 * across restarts; the boot clock (monotonic, counts through suspend) says
 * how long something took and whether a lease still holds. */
#ifndef HPX_BASE_CLOCK_H
#define HPX_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct hpx_now {
	int64_t wall_ms;
	int64_t boot_ms;
};

struct hpx_now hpx_clock_now(void);
int64_t hpx_clock_wall_ms(void);
int64_t hpx_clock_wall_us(void);
int64_t hpx_clock_boot_ms(void);
int64_t hpx_clock_boot_us(void);

#define HPX_RFC3339_SIZE 32
/* "2026-11-15T21:06:55.123Z"; the fraction is left out when it is zero. */
void hpx_clock_rfc3339(int64_t wall_ms, char out[HPX_RFC3339_SIZE]);

/* RFC 3339, as people type it too: "2026-11-15" (midnight), "2026-11-15T21:06:55Z" or with
 * an offset ("+01:00"); UTC where none is given. False for anything else. */
bool hpx_clock_parse_rfc3339(struct hpx_span text, int64_t *ret_wall_ms);

#define HPX_HTTP_DATE_SIZE 32
/* "Sun, 06 Nov 1994 08:49:37 GMT", the IMF-fixdate of RFC 9110 §5.6.7. */
void hpx_clock_http_date(int64_t wall_ms, char out[HPX_HTTP_DATE_SIZE]);

#endif
