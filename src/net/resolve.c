/* Name resolution with a memory; see resolve.h. */
#include "net/resolve.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum state {
	UNKNOWN,
	NUMERIC, /* needs no look-up, ever */
	LOOKING,
	KNOWN,            /* until known_until_ms */
	LOOKING_ORPHANED, /* freed; the look-up under way holds the memory */
};

struct hpx_resolver {
	struct hpx_loop *loop;
	enum state state;
	uint64_t ttl_ms;
	int64_t known_until_ms;
	struct hpx_resolved resolved;
	struct hpx_resolve_wait waits; /* the list's head */
	uv_getaddrinfo_t request;
	uint16_t port;
	char host[256];
};

static void list_init(struct hpx_resolve_wait *head)
{
	head->next = head;
	head->prev = head;
}

void hpx_resolve_wait_cancel(struct hpx_resolve_wait *wait)
{
	if (wait->next == NULL)
		return;
	wait->prev->next = wait->next;
	wait->next->prev = wait->prev;
	wait->next = NULL;
	wait->prev = NULL;
}

static void add_address(struct hpx_resolver *resolver, const struct addrinfo *found)
{
	struct hpx_resolved *resolved = &resolver->resolved;
	union hpx_socket_address *address = &resolved->address[resolved->count];

	if (found->ai_family == AF_INET)
		memcpy(&address->v4, found->ai_addr, sizeof(address->v4));
	else if (found->ai_family == AF_INET6)
		memcpy(&address->v6, found->ai_addr, sizeof(address->v6));
	else
		return;
	resolved->count++;
}

static void tell_waiters(struct hpx_resolver *resolver)
{
	const struct hpx_resolved *resolved =
		resolver->state == KNOWN ? &resolver->resolved : NULL;
	struct hpx_resolve_wait now;

	/* Who asks again from within starts a new look-up. */
	list_init(&now);
	if (resolver->waits.next != &resolver->waits) {
		now = resolver->waits;
		now.next->prev = &now;
		now.prev->next = &now;
		list_init(&resolver->waits);
	}
	while (now.next != &now) {
		struct hpx_resolve_wait *wait = now.next;
		hpx_resolve_wait_cancel(wait);
		wait->on_resolved(wait, resolved);
	}
}

static void on_found(uv_getaddrinfo_t *request, int rc, struct addrinfo *found)
{
	struct hpx_resolver *resolver = request->data;

	if (resolver->state == LOOKING_ORPHANED) {
		uv_freeaddrinfo(found);
		free(resolver);
		return;
	}
	resolver->resolved.count = 0;
	for (const struct addrinfo *one = found;
	     rc == 0 && one != NULL && resolver->resolved.count < HPX_RESOLVED_MAX;
	     one = one->ai_next)
		add_address(resolver, one);
	uv_freeaddrinfo(found);
	resolver->state = resolver->resolved.count > 0 ? KNOWN : UNKNOWN;
	resolver->known_until_ms = hpx_clock_boot_ms() + (int64_t)resolver->ttl_ms;
	tell_waiters(resolver);
}

struct hpx_resolver *hpx_resolver_new(struct hpx_loop *loop,
				      const struct hpx_address *address, uint64_t ttl_ms)
{
	struct hpx_resolver *resolver = calloc(1, sizeof(*resolver));

	if (resolver == NULL)
		return NULL;
	union hpx_socket_address *first = &resolver->resolved.address[0];
	resolver->loop = loop;
	resolver->ttl_ms = ttl_ms < INT64_MAX / 2 ? ttl_ms : INT64_MAX / 2;
	resolver->port = address->port;
	resolver->request.data = resolver;
	memcpy(resolver->host, address->host, sizeof(resolver->host));
	list_init(&resolver->waits);
	if (uv_ip4_addr(address->host, address->port, &first->v4) == 0 ||
	    uv_ip6_addr(address->host, address->port, &first->v6) == 0) {
		resolver->state = NUMERIC;
		resolver->resolved.count = 1;
	}
	return resolver;
}

void hpx_resolver_free(struct hpx_resolver *resolver)
{
	if (resolver->state != LOOKING) {
		free(resolver);
		return;
	}
	resolver->state = LOOKING_ORPHANED;
	/* Cancelled or too late for that, on_found comes either way. */
	uv_cancel((uv_req_t *)&resolver->request);
}

const struct hpx_resolved *hpx_resolver_known(struct hpx_resolver *resolver)
{
	if (resolver->state == KNOWN && hpx_clock_boot_ms() >= resolver->known_until_ms)
		resolver->state = UNKNOWN;
	return resolver->state == NUMERIC || resolver->state == KNOWN ? &resolver->resolved : NULL;
}

static int look_up(struct hpx_resolver *resolver)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char port[8];

	snprintf(port, sizeof(port), "%u", (unsigned)resolver->port);
	return uv_getaddrinfo(&resolver->loop->uv, &resolver->request, on_found,
			      resolver->host, port, &hints);
}

enum hpx_status hpx_resolver_wait(struct hpx_resolver *resolver,
				  struct hpx_resolve_wait *wait)
{
	if (resolver->state != LOOKING && look_up(resolver) != 0)
		return HPX_UNAVAILABLE;
	resolver->state = LOOKING;
	wait->next = &resolver->waits;
	wait->prev = resolver->waits.prev;
	wait->prev->next = wait;
	resolver->waits.prev = wait;
	return HPX_OK;
}

void hpx_resolver_forget(struct hpx_resolver *resolver)
{
	if (resolver->state == KNOWN)
		resolver->state = UNKNOWN;
}
