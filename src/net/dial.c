/* From the name of an upstream to a connection: see dial.h. First the resolver,
 * then dialling, which tries each address with its share of the time. */
#include "net/dial.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"

enum resolver_state {
	UNKNOWN,
	NUMERIC, /* needs no look-up, ever */
	LOOKING,
	KNOWN,            /* until known_until_ms */
	LOOKING_ORPHANED, /* freed by its owner; on_found frees the memory */
};

struct hpx_resolver {
	struct hpx_loop *loop;
	enum resolver_state state;
	uint64_t ttl_ms;
	int64_t known_until_ms;
	struct hpx_resolved resolved;
	struct hpx_resolve_wait waits; /* the head of the list */
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
	HPX_ASSERT(resolved->count < HPX_RESOLVED_MAX);
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

	/* A waiter that waits again inside its callback starts a new look-up. */
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
	HPX_ASSERT(resolver->state == LOOKING);
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
	HPX_ASSERT(resolver->waits.next == &resolver->waits);
	if (resolver->state != LOOKING) {
		free(resolver);
		return;
	}
	resolver->state = LOOKING_ORPHANED;
	/* on_found comes in any case, cancelled or not. */
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
	HPX_ASSERT(resolver->state != NUMERIC && wait->next == NULL);
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

struct hpx_dial {
	const struct hpx_dial_target *target;
	uv_timer_t timer;
	uint64_t deadline_ms;
	struct hpx_resolve_wait wait;
	struct hpx_later first;       /* the first step, deferred out of the caller's call */
	struct hpx_resolved resolved; /* a copy: the resolver may look up again meanwhile */
	size_t tried;
	struct hpx_connect *connect; /* to address tried - 1 */
	struct hpx_transport *tls;   /* its handshake is under way */
	enum hpx_status failure;     /* of the last address tried */
	const char *reason;          /* of that failure, where it was TLS's; or NULL */
	void (*on_dialed)(void *user, enum hpx_status status, const char *reason,
			  struct hpx_transport *transport);
	void *user;
};

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void hpx_dial_cancel(struct hpx_dial *dial)
{
	hpx_later_cancel(&dial->first);
	hpx_resolve_wait_cancel(&dial->wait);
	if (dial->connect != NULL)
		hpx_connect_cancel(dial->connect);
	dial->connect = NULL;
	if (dial->tls != NULL)
		hpx_transport_close(dial->tls);
	dial->tls = NULL;
	uv_close((uv_handle_t *)&dial->timer, on_timer_closed);
}

static void finish(struct hpx_dial *dial, enum hpx_status status, const char *reason,
		   struct hpx_transport *transport)
{
	hpx_dial_cancel(dial);
	dial->on_dialed(dial->user, status, reason, transport);
}

static const char *reason_of(enum hpx_status status)
{
	switch (status) {
	case HPX_TIMEOUT:
		return "connecting to the upstream took too long";
	case HPX_FULL:
		return "no descriptor is left for a connection to the upstream";
	case HPX_NOMEM:
		return "no memory is left for a connection to the upstream";
	default:
		return "the upstream refused the connection or cannot be reached";
	}
}

static void try_next(struct hpx_dial *dial);

static void on_tls_done(void *user, enum hpx_status status, const char *reason)
{
	struct hpx_dial *dial = user;
	struct hpx_transport *transport = dial->tls;

	dial->tls = NULL;
	if (status == HPX_OK) {
		finish(dial, HPX_OK, "", transport);
		return;
	}
	hpx_transport_close(transport);
	dial->failure = status;
	dial->reason = reason;
	try_next(dial);
}

static void on_connected(void *user, enum hpx_status status,
			 struct hpx_transport *transport)
{
	struct hpx_dial *dial = user;
	const struct hpx_dial_target *target = dial->target;

	dial->connect = NULL;
	dial->failure = status;
	dial->reason = NULL;
	if (status == HPX_OK && target->tls == NULL) {
		finish(dial, HPX_OK, "", transport);
		return;
	}
	if (status == HPX_OK) {
		dial->tls = hpx_tls_connect(target->tls, transport, target->tls_name,
					    on_tls_done, dial);
		if (dial->tls != NULL)
			return;
		dial->failure = HPX_NOMEM;
	}
	try_next(dial);
}

/* The addresses that are left get equal shares of the time that is left. */
static uint64_t share_ms(const struct hpx_dial *dial)
{
	HPX_ASSERT(dial->tried < dial->resolved.count);
	uint64_t now = hpx_loop_now_ms(dial->target->loop);
	uint64_t left = dial->deadline_ms > now ? dial->deadline_ms - now : 0;

	return left / (dial->resolved.count - dial->tried);
}

static void on_time(uv_timer_t *timer)
{
	struct hpx_dial *dial = timer->data;

	if (dial->connect == NULL && dial->tls == NULL) {
		finish(dial, HPX_TIMEOUT, "resolving the upstream's name took too long",
		       NULL);
		return;
	}
	dial->reason = dial->tls != NULL ? "the upstream's TLS handshake took too long" : NULL;
	if (dial->tls != NULL)
		hpx_transport_close(dial->tls);
	else
		hpx_connect_cancel(dial->connect);
	dial->tls = NULL;
	dial->connect = NULL;
	dial->failure = HPX_TIMEOUT;
	try_next(dial);
}

static void try_next(struct hpx_dial *dial)
{
	const struct hpx_dial_target *target = dial->target;

	HPX_ASSERT(dial->connect == NULL && dial->tls == NULL && dial->tried <= dial->resolved.count);
	if (dial->tried == dial->resolved.count) {
		if (target->resolver != NULL)
			hpx_resolver_forget(target->resolver);
		finish(dial, dial->failure,
		       dial->reason != NULL ? dial->reason : reason_of(dial->failure), NULL);
		return;
	}
	uv_timer_start(&dial->timer, on_time, share_ms(dial), 0);
	dial->connect = hpx_transport_connect(
		target->loop, &dial->resolved.address[dial->tried].any,
		target->address->is_unix ? target->address->path : NULL, on_connected,
		dial);
	dial->tried++;
	if (dial->connect == NULL)
		finish(dial, HPX_NOMEM, reason_of(HPX_NOMEM), NULL);
}

static void on_resolved(struct hpx_resolve_wait *wait, const struct hpx_resolved *resolved)
{
	struct hpx_dial *dial =
		HPX_CONTAINER(wait, struct hpx_dial, wait);

	if (resolved == NULL) {
		finish(dial, HPX_UNAVAILABLE, "the upstream's name has no address", NULL);
		return;
	}
	dial->resolved = *resolved;
	try_next(dial);
}

static void begin(struct hpx_later *later)
{
	struct hpx_dial *dial =
		HPX_CONTAINER(later, struct hpx_dial, first);
	const struct hpx_dial_target *target = dial->target;

	if (target->address->is_unix) {
		dial->resolved.count = 1;
		try_next(dial);
		return;
	}
	const struct hpx_resolved *known = hpx_resolver_known(target->resolver);
	if (known != NULL)
		on_resolved(&dial->wait, known);
	else if (hpx_resolver_wait(target->resolver, &dial->wait) != HPX_OK)
		finish(dial, HPX_UNAVAILABLE, "the upstream's name cannot be looked up",
		       NULL);
}

struct hpx_dial *hpx_dial_start(const struct hpx_dial_target *target,
				void (*on_dialed)(void *user, enum hpx_status status,
						  const char *reason,
						  struct hpx_transport *transport),
				void *user)
{
	struct hpx_dial *dial = calloc(1, sizeof(*dial));

	if (dial == NULL)
		return NULL;
	dial->target = target;
	dial->on_dialed = on_dialed;
	dial->user = user;
	dial->wait.on_resolved = on_resolved;
	dial->first.run = begin;
	uv_timer_init(&target->loop->uv, &dial->timer);
	dial->timer.data = dial;
	dial->deadline_ms = hpx_loop_now_ms(target->loop) + target->timeout_ms;
	uv_timer_start(&dial->timer, on_time, target->timeout_ms, 0);
	hpx_loop_later(target->loop, &dial->first);
	return dial;
}
