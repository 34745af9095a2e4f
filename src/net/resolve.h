/* The socket addresses behind an upstream's name, looked up off the loop's
 * thread and remembered for a while. Those who ask while a look-up is under
 * way share it. */
#ifndef HPX_NET_RESOLVE_H
#define HPX_NET_RESOLVE_H

#include "base/address.h"
#include "net/loop.h"

/* More addresses than this are not tried within one connect timeout. */
#define HPX_RESOLVED_MAX 8

union hpx_socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct hpx_resolved {
	union hpx_socket_address address[HPX_RESOLVED_MAX];
	size_t count;
};

/* Embedded in whoever waits; zeroed before its first use. on_resolved is
 * called later, once, with `resolved` NULL when the name has no address. */
struct hpx_resolve_wait {
	struct hpx_resolve_wait *next;
	struct hpx_resolve_wait *prev;
	void (*on_resolved)(struct hpx_resolve_wait *wait, const struct hpx_resolved *resolved);
};

struct hpx_resolver;

/* NULL when out of memory. */
struct hpx_resolver *hpx_resolver_new(struct hpx_loop *loop, const struct hpx_address *address,
				      uint64_t ttl_ms);
/* Nobody may wait any more. */
void hpx_resolver_free(struct hpx_resolver *resolver);

/* What is known now (a numeric address always is), NULL when a look-up is
 * needed. Valid until the loop's next turn. */
const struct hpx_resolved *hpx_resolver_known(struct hpx_resolver *resolver);
/* Waits for a look-up, starting one where none is under way; HPX_UNAVAILABLE
 * where it could not be started (on_resolved is not called then). */
enum hpx_status hpx_resolver_wait(struct hpx_resolver *resolver, struct hpx_resolve_wait *wait);
void hpx_resolve_wait_cancel(struct hpx_resolve_wait *wait);
/* None of the addresses answered: look again next time. */
void hpx_resolver_forget(struct hpx_resolver *resolver);

#endif
