/* Times as people give them on a command line. */
#ifndef HPX_CLI_WHEN_H
#define HPX_CLI_WHEN_H

#include "base/span.h"

/* "2026-11-15" (midnight), "2026-11-15T21:06:55Z" or with an offset ("+01:00");
 * UTC where none is given. */
bool hpx_when_parse(struct hpx_span text, int64_t *ret_wall_ms);

#endif
