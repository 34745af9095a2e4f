/* One new connection to an upstream. The resolver looks the upstream's name up and
 * remembers the addresses for a while; dialling tries them in their order, all
 * within one timeout, the TLS handshake included. No byte of a request is sent here. Everything runs on the loop's thread,
 * except the look-up itself, which libuv does on a thread of its pool. */
#ifndef HPX_NET_DIAL_H
#define HPX_NET_DIAL_H

#include "base/address.h"
#include "net/tls.h"

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

/* Embedded in the object that waits; zeroed before its first use. on_resolved is
 * called once, deferred, with `resolved` NULL when the name has no address. Those
 * who wait while a look-up is under way share it. */
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

/* The addresses that are known now (a numeric one always is); NULL when a look-up is
 * needed. Valid until the loop's next iteration. */
const struct hpx_resolved *hpx_resolver_known(struct hpx_resolver *resolver);
/* Waits for a look-up, and starts one where none is under way. HPX_UNAVAILABLE where
 * it could not be started; on_resolved is not called then. */
enum hpx_status hpx_resolver_wait(struct hpx_resolver *resolver, struct hpx_resolve_wait *wait);
void hpx_resolve_wait_cancel(struct hpx_resolve_wait *wait);
/* To be called when none of the addresses answered: the next dial looks up again. */
void hpx_resolver_forget(struct hpx_resolver *resolver);

struct hpx_dial;

struct hpx_dial_target {
	struct hpx_loop *loop;
	const struct hpx_address *address;
	struct hpx_resolver *resolver;
	uint64_t timeout_ms;
	struct hpx_tls *tls;  /* NULL: plain */
	const char *tls_name; /* whose certificate it must be */
};

/* on_dialed is called once, deferred, with the transport or with a status
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
