/* Making one connection to an upstream: its name is resolved, its addresses
 * are tried in their order, all within one time. No byte is sent here. */
#ifndef HPX_NET_DIAL_H
#define HPX_NET_DIAL_H

#include "net/resolve.h"
#include "net/transport.h"

struct hpx_dial;

struct hpx_dial_target {
	struct hpx_loop *loop;
	const struct hpx_address *address;
	struct hpx_resolver *resolver;
	uint64_t timeout_ms;
};

/* on_dialed is called once, later, with the transport or with a status
 * (UNAVAILABLE, TIMEOUT, FULL, NOMEM) and a static sentence. The target must
 * stay until then. NULL when out of memory. */
struct hpx_dial *hpx_dial_start(const struct hpx_dial_target *target,
				void (*on_dialed)(void *user, enum hpx_status status,
						  const char *reason,
						  struct hpx_transport *transport),
				void *user);
/* on_dialed is not called any more. */
void hpx_dial_cancel(struct hpx_dial *dial);

#endif
