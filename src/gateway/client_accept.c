/* How a client's connection begins: within the bound on connections, with the PROXY header
 * of a load balancer where the listener expects one, then TLS where it speaks that. From
 * there on it is client_connection.c's. */
#include <stdlib.h>

#include "base/log.h"
#include "base/status.h"
#include "gateway/client_connection.h"
#include "gateway/respond.h"
#include "net/proxy_header.h"
#include "net/tls.h"

/* Bytes that may wait, as in client_connection.c. */
#define WAITING_BYTES_MAX (64 * 1024)
/* At most one line in this time for each loop. */
#define REFUSED_LOG_MS 10000

/* Connections that are turned away with an answer, a second: each stays open for up to
 * two seconds so that its client can read it. */
#define TURNED_AWAY_PER_SECOND 100

/* Too many connections: 503, before any request is read. A crowd is only closed: its
 * descriptors are needed. So is a connection that would begin with a handshake, which
 * costs more than the answer that says why. */
static void turn_away(struct hpx_shard *shard, struct hpx_transport *transport, bool tls)
{
	static const struct hpx_transport_events no_events;
	struct hpx_problem problem = { .code = HPX_PROBLEM_overloaded };
	struct hpx_buffer body, head;
	struct hpx_span type;
	int64_t wait_ms;

	hpx_transport_attach(transport, &no_events, NULL);
	hpx_counter_add(&shard->meter.problems[HPX_PROBLEM_overloaded], 1);
	if (tls || !hpx_bucket_take(&shard->turned_away, TURNED_AWAY_PER_SECOND,
				    (int64_t)hpx_loop_now_ms(&shard->loop), &wait_ms)) {
		hpx_transport_close(transport);
		return;
	}
	hpx_buffer_init(&body, 4096);
	hpx_buffer_init(&head, 1024);
	if (hpx_problem_print_as(shard->settings->errors, &problem, &body, &type) == HPX_OK &&
	    hpx_buffer_printf(&head,
			      "HTTP/1.1 503 Service Unavailable\r\n"
			      "Content-Type: %.*s\r\n"
			      "Content-Length: %zu\r\nCache-Control: no-store\r\n"
			      "Link: </.hapax/problems/overloaded>; rel=\"describedby\"\r\n"
			      "Retry-After: %u\r\nConnection: close\r\n\r\n",
			      HPX_SPAN_ARG(type), body.len, hpx_respond_spread(shard, 1)) == HPX_OK) {
		struct hpx_span pieces[] = { hpx_buffer_span(&head), hpx_buffer_span(&body) };
		(void)hpx_transport_send(transport, pieces, 2, NULL);
	}
	hpx_buffer_done(&body);
	hpx_buffer_done(&head);
	hpx_transport_close_gently(transport, (uint64_t)shard->settings->send_timeout_ms);
}

/* A connection of anybody is one of few at first. */
#define LEAST_CONNECTIONS 8

/* The address as limits count it; 0 for a unix socket or a trusted peer, whose requests
 * may come from many. */
static uint64_t peer_hash_of(const struct hpx_shard *shard, const char *peer)
{
	uint8_t network[16];

	if (hpx_peer_trusted(shard->settings, peer) || !hpx_peer_network(hpx_span_of(peer), network))
		return 0;
	return hpx_caller_hash(&shard->gateway->caller_seed,
			       hpx_span((const char *)network, sizeof(network)));
}

static struct hpx_scarce connections_of(const struct hpx_shard *shard)
{
	unsigned whole = shard->settings->connections_max;

	return (struct hpx_scarce){ .in_use = atomic_load(&shard->gateway->connections),
				    .whole = whole,
				    .least = whole < 4 * LEAST_CONNECTIONS ? 1 : LEAST_CONNECTIONS };
}

bool hpx_downstream_take_share(struct hpx_downstream *downstream, uint64_t tenant)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);
	struct hpx_shares *shares = &connection->shard->gateway->connection_shares;
	struct hpx_scarce connections = connections_of(connection->shard);

	if (connection->tenant_hash != 0)
		return true;
	if (connection->peer_hash != 0 &&
	    !hpx_share_allows_tenant(shares, tenant, 1, &connections))
		return false;
	connection->tenant_hash = tenant;
	hpx_share_add(&shares->tenants, tenant, 1);
	return true;
}

/* Closes a connection that has no right to this listener, or does not begin as it must. */
static void refuse_proxy(struct hpx_connection *connection, const char *reason)
{
	struct hpx_shard *shard = connection->shard;
	uint64_t now_ms = hpx_loop_now_ms(&shard->loop);

	hpx_counter_add(&shard->meter.proxy_refused, 1);
	if (now_ms >= shard->proxy_log_ms) {
		shard->proxy_log_ms = now_ms + REFUSED_LOG_MS;
		hpx_log(HPX_LOG_WARN, "proxy_header_refused", "peer=%s listen=%s reason=\"%s\"",
			hpx_transport_peer(connection->transport),
			shard->settings->listeners[connection->listener].address.text, reason);
	}
	hpx_connection_close(connection);
}

/* HTTP begins, or TLS before it. `first`: bytes behind a PROXY header. */
static void begin_http(struct hpx_connection *connection, struct hpx_span first)
{
	struct hpx_tls *tls = connection->shard->service->tls.listeners[connection->listener];

	if (tls != NULL) {
		connection->transport = hpx_tls_accept(tls, connection->transport, first);
		first = hpx_span_skip(first, first.len);
	}
	if (connection->transport == NULL) {
		hpx_connection_forget(connection);
		return;
	}
	connection->in.len = 0;
	connection->reading = false;
	hpx_transport_attach(connection->transport, &hpx_connection_events, connection);
	hpx_connection_read_more(connection, true);
	if (first.len > 0)
		hpx_connection_events.on_data(connection, first);
}

/* The client has another address than its connection. False: that address has its share of
 * the connections already. */
static bool take_peer(struct hpx_connection *connection, const char *name)
{
	struct hpx_shard *shard = connection->shard;
	struct hpx_shares *shares = &shard->gateway->connection_shares;
	struct hpx_scarce connections = connections_of(shard);
	uint64_t peer = peer_hash_of(shard, name);

	hpx_transport_set_peer(connection->transport, name);
	if (!hpx_share_allows_peer(shares, peer, 1, &connections)) {
		hpx_meter_limited(&shard->meter, hpx_span("", 0), HPX_LIMITED_share_connections);
		return false;
	}
	hpx_share_remove(&shares->peers, connection->peer_hash, 1);
	connection->peer_hash = peer;
	hpx_share_add(&shares->peers, peer, 1);
	return true;
}

static void on_proxy_data(void *user, struct hpx_span bytes)
{
	struct hpx_connection *connection = user;
	struct hpx_proxy_header header;

	if (hpx_buffer_append(&connection->in, bytes) != HPX_OK) {
		hpx_connection_close(connection);
		return;
	}
	struct hpx_span all = hpx_buffer_span(&connection->in);
	switch (hpx_proxy_header_read(all, &header)) {
	case HPX_PROXY_MORE:
		return;
	case HPX_PROXY_BAD:
		refuse_proxy(connection, "it does not begin with a PROXY header");
		return;
	case HPX_PROXY_DONE:
		break;
	}
	if (header.peer[0] != '\0' && !take_peer(connection, header.peer)) {
		hpx_connection_close(connection);
		return;
	}
	/* The bytes behind the header move to a buffer of their own. */
	struct hpx_buffer begun = connection->in;
	hpx_buffer_init(&connection->in, begun.max);
	hpx_transport_read_stop(connection->transport);
	begin_http(connection, hpx_span_skip(hpx_buffer_span(&begun), header.bytes));
	hpx_buffer_done(&begun);
}

static void on_proxy_end(void *user, enum hpx_status status)
{
	(void)status;
	hpx_connection_close(user);
}

static const struct hpx_transport_events proxy_events = { on_proxy_data, on_proxy_end, NULL };

static struct hpx_connection *new_connection(struct hpx_shard *shard, unsigned listener,
					     struct hpx_transport *transport)
{
	struct hpx_connection *connection = calloc(1, sizeof(*connection));

	if (connection == NULL)
		return NULL;
	connection->shard = shard;
	connection->transport = transport;
	connection->listener = listener;
	connection->next = shard->connections;
	if (connection->next != NULL)
		connection->next->prev = connection;
	shard->connections = connection;
	hpx_buffer_init(&connection->in, shard->settings->head_bytes_max + WAITING_BYTES_MAX +
						 HPX_LOOP_READ_BYTES);
	return connection;
}

void hpx_connection_accept(struct hpx_shard *shard, unsigned listener,
			   struct hpx_transport *transport)
{
	const struct hpx_listener_settings *settings = &shard->settings->listeners[listener];
	struct hpx_gateway *gateway = shard->gateway;
	uint64_t peer = peer_hash_of(shard, hpx_transport_peer(transport));
	struct hpx_scarce connections = connections_of(shard);

	if (!hpx_share_allows_peer(&gateway->connection_shares, peer, 1, &connections)) {
		hpx_meter_limited(&shard->meter, hpx_span("", 0), HPX_LIMITED_share_connections);
		turn_away(shard, transport, hpx_tls_given(&settings->tls));
		return;
	}
	if (atomic_fetch_add(&gateway->connections, 1) >= shard->settings->connections_max) {
		atomic_fetch_sub(&gateway->connections, 1);
		turn_away(shard, transport, hpx_tls_given(&settings->tls));
		return;
	}
	struct hpx_connection *connection = new_connection(shard, listener, transport);
	if (connection == NULL) {
		atomic_fetch_sub(&gateway->connections, 1);
		hpx_transport_close(transport);
		return;
	}
	connection->peer_hash = peer;
	hpx_share_add(&gateway->connection_shares.peers, peer, 1);
	hpx_connection_set_deadline(connection, shard->settings->head_timeout_ms);
	if (!settings->proxy_protocol) {
		begin_http(connection, HPX_SPAN(""));
		return;
	}
	hpx_transport_attach(transport, &proxy_events, connection);
	if (!hpx_peer_trusted(shard->settings, hpx_transport_peer(transport)))
		refuse_proxy(connection, "this listener takes connections of trusted_peers only");
	else
		hpx_connection_read_more(connection, true);
}
