/* A client's connection. Bytes that arrive go to whoever wants them; what
 * nobody wants yet waits in a bounded buffer, and past the bound the socket is
 * not read. The reading loop is flat: a request that ends inside it sets the
 * mode for the next one and returns, so that a thousand pipelined requests
 * take no more stack than one. */
#include "gateway/client.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/container.h"
#include "base/log.h"
#include "gateway/request.h"
#include "gateway/respond.h"

/* Bytes that may wait for somebody to want them (one read may come on top). */
#define WAITING_BYTES_MAX (64 * 1024)
/* The rest of a refused request's body is read and dropped up to here, so
 * that the connection can be kept; a longer one ends the connection. */
#define DISCARD_BYTES_MAX (256 * 1024)

static void process(struct hpx_client *client);

static void set_deadline(struct hpx_client *client, int64_t after_ms)
{
	client->deadline_ms = hpx_loop_now_ms(&client->shard->loop) + (uint64_t)after_ms;
}

static void unlink_client(struct hpx_client *client)
{
	if (client->prev != NULL)
		client->prev->next = client->next;
	else
		client->shard->clients = client->next;
	if (client->next != NULL)
		client->next->prev = client->prev;
}

/* The connection is going: the request is told, the memory goes as soon as
 * the reading loop, if we are in it, has returned. */
static void forget(struct hpx_client *client)
{
	struct hpx_request *request = client->request;

	client->closing = true;
	client->request = NULL;
	if (request != NULL) {
		hpx_request_client_gone(request);
		hpx_request_drop(request);
	}
	if (client->processing)
		return;
	hpx_later_cancel(&client->later);
	unlink_client(client);
	hpx_buffer_done(&client->in);
	atomic_fetch_sub(&client->shard->gateway->connections, 1);
	free(client);
}

void hpx_client_close(struct hpx_client *client)
{
	if (client->closing)
		return;
	hpx_transport_close(client->transport);
	forget(client);
}

void hpx_client_abort(struct hpx_client *client)
{
	if (client->closing)
		return;
	hpx_transport_abort(client->transport);
	forget(client);
}

static void close_gently(struct hpx_client *client)
{
	if (client->closing)
		return;
	hpx_transport_close_gently(client->transport,
				   (uint64_t)client->shard->settings->send_timeout_ms);
	forget(client);
}

static void read_more(struct hpx_client *client, bool wanted)
{
	if (client->closing || client->ended || client->reading == wanted)
		return;
	client->reading = wanted;
	if (wanted)
		hpx_transport_read_start(client->transport);
	else
		hpx_transport_read_stop(client->transport);
}

void hpx_client_send(struct hpx_client *client, const struct hpx_span *pieces, size_t count)
{
	/* A broken connection is noticed by on_end; the answer is stored. */
	(void)hpx_transport_send(client->transport, pieces, count, NULL);
}

static void run_later(struct hpx_later *later)
{
	process(HPX_CONTAINER(later, struct hpx_client, later));
}

/* Whoever wants bytes now may be a request in the middle of a step: what waits is
 * offered once that has returned, and no more is read before. */
static void process_later(struct hpx_client *client)
{
	if (client->processing)
		return;
	if (client->in.len == 0 && !client->ended) {
		read_more(client, true);
		return;
	}
	client->later.run = run_later;
	hpx_loop_later(&client->shard->loop, &client->later);
}

void hpx_client_set_mode(struct hpx_client *client, enum hpx_client_mode mode)
{
	client->mode = mode;
	client->deadline_ms = 0;
	if (mode == HPX_CLIENT_BODY || mode == HPX_CLIENT_DISCARD)
		set_deadline(client, client->shard->settings->body_timeout_ms);
	if (mode != HPX_CLIENT_HELD)
		process_later(client);
}

void hpx_client_answered(struct hpx_client *client, bool keep)
{
	struct hpx_request *request = client->request;
	bool body_read = request->body.whole;

	HPX_CRASH_POINT(client_answered);
	hpx_counter_add(&client->shard->meter.requests, 1);
	hpx_histogram_add(&client->shard->meter.request_us,
			  (uint64_t)(hpx_clock_boot_us() - request->began_us));
	if (!keep || client->shard->draining || (client->ended && client->in.len == 0)) {
		close_gently(client);
		return;
	}
	if (!body_read) {
		/* The request stays until its body is read past. */
		client->discarded_bytes = 0;
		request->client = NULL;
		hpx_client_set_mode(client, HPX_CLIENT_DISCARD);
		return;
	}
	client->request = NULL;
	request->client = NULL;
	hpx_request_drop(request);
	client->mode = HPX_CLIENT_HEAD;
	set_deadline(client, client->shard->settings->keep_alive_ms);
	process_later(client);
}

/* A client that asks on and on without reading its answers waits. */
static bool is_clogged(const struct hpx_client *client)
{
	return hpx_transport_pending(client->transport) > HPX_RESPOND_PENDING_MAX;
}

/* The next request's head. True: something was used, look again. */
static bool take_head(struct hpx_client *client)
{
	size_t used = 0;

	if (client->in.len == 0 || is_clogged(client))
		return false;
	if (client->request == NULL) {
		client->request = hpx_request_new(client);
		if (client->request == NULL) {
			hpx_client_close(client);
			return false;
		}
		set_deadline(client, client->shard->settings->head_timeout_ms);
	}
	struct hpx_request *request = client->request;
	switch (hpx_http_read_head(&request->head.reader, hpx_buffer_span(&client->in), &request->arena,
				   &request->head.http, &used)) {
	case HPX_HTTP_MORE:
		return false;
	case HPX_HTTP_BAD:
		client->mode = HPX_CLIENT_HELD;
		client->deadline_ms = 0;
		hpx_request_go(request, HPX_NEXT_ROUTE);
		return true;
	case HPX_HTTP_DONE:
		break;
	}
	/* The head's bytes stay where they are, the request owns them now;
	 * what came behind them moves to a buffer of its own. */
	struct hpx_span rest = hpx_span_skip(hpx_buffer_span(&client->in), used);
	request->head.bytes = client->in;
	hpx_buffer_init(&client->in, client->in.max);
	if (hpx_buffer_append(&client->in, rest) != HPX_OK) {
		hpx_client_close(client);
		return false;
	}
	client->mode = HPX_CLIENT_HELD;
	client->deadline_ms = 0;
	hpx_request_go(request, HPX_NEXT_ROUTE);
	return true;
}

/* The rest of a body that nobody wants. */
static size_t discard(struct hpx_client *client, struct hpx_span bytes)
{
	struct hpx_request *request = client->request;
	size_t all = 0;

	while (all < bytes.len) {
		struct hpx_span data;
		size_t used = 0;
		enum hpx_http_progress progress = hpx_http_read_body(
			&request->head.reader, hpx_span_skip(bytes, all), &data, &used);
		all += used;
		client->discarded_bytes += used;
		if (progress == HPX_HTTP_DONE) {
			client->request = NULL;
			hpx_request_drop(request);
			client->mode = HPX_CLIENT_HEAD;
			set_deadline(client, client->shard->settings->keep_alive_ms);
			return all;
		}
		if (progress == HPX_HTTP_BAD || client->discarded_bytes > DISCARD_BYTES_MAX) {
			close_gently(client);
			return all;
		}
	}
	return all;
}

/* Offers `bytes` to whoever wants them now; returns how many were used. */
static size_t offer(struct hpx_client *client, struct hpx_span bytes)
{
	switch (client->mode) {
	case HPX_CLIENT_BODY:
	case HPX_CLIENT_TUNNEL:
		if (bytes.len > 0 && client->mode == HPX_CLIENT_BODY)
			set_deadline(client, client->shard->settings->body_timeout_ms);
		return hpx_request_feed(client->request, bytes);
	case HPX_CLIENT_DISCARD:
		return discard(client, bytes);
	default:
		return 0;
	}
}

/* The client sends no more, and nothing whole is left of what it sent. */
static bool is_over(const struct hpx_client *client)
{
	if (!client->ended || is_clogged(client))
		return false;
	return client->mode == HPX_CLIENT_HEAD || client->mode == HPX_CLIENT_BODY ||
	       client->mode == HPX_CLIENT_DISCARD;
}

/* A head may be longer than what otherwise waits; its reader has the bound. */
static bool wants_more(const struct hpx_client *client)
{
	return client->in.len < WAITING_BYTES_MAX ||
	       (client->mode == HPX_CLIENT_HEAD && !is_clogged(client));
}

/* Goes through what waits in `in` as long as somebody takes some of it. */
static void process(struct hpx_client *client)
{
	bool more = true;

	HPX_ASSERT(!client->processing);
	client->processing = true;
	while (more && !client->closing) {
		if (client->mode == HPX_CLIENT_HEAD) {
			more = take_head(client);
			continue;
		}
		enum hpx_client_mode mode = client->mode;
		size_t used = offer(client, hpx_buffer_span(&client->in));
		if (client->closing)
			break;
		hpx_buffer_consume(&client->in, used);
		more = used > 0 || client->mode != mode;
	}
	client->processing = false;
	if (client->closing) {
		forget(client);
		return;
	}
	if (client->in.len == 0)
		hpx_buffer_done(&client->in);
	if (is_over(client)) {
		close_gently(client);
		return;
	}
	read_more(client, wants_more(client));
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct hpx_client *client = user;

	/* A body that streams through is not copied on its way. */
	if (client->in.len == 0 && client->mode != HPX_CLIENT_HEAD) {
		client->processing = true;
		size_t used = offer(client, bytes);
		client->processing = false;
		if (client->closing) {
			forget(client);
			return;
		}
		bytes = hpx_span_skip(bytes, used);
	}
	if (hpx_buffer_append(&client->in, bytes) != HPX_OK) {
		hpx_client_close(client);
		return;
	}
	process(client);
}

static void on_end(void *user, enum hpx_status status)
{
	struct hpx_client *client = user;

	client->ended = true;
	client->reading = false;
	client->moved_ms = hpx_loop_now_ms(&client->shard->loop);
	if (status != HPX_CLOSED) {
		hpx_client_close(client);
		return;
	}
	/* It has finished sending, and may still want the answers to what it
	 * sent; one that is gone altogether is noticed when they are sent. */
	process(client);
}

static void on_drain(void *user)
{
	struct hpx_client *client = user;

	if (client->request != NULL)
		hpx_request_client_drained(client->request);
	else
		process(client);
}

static const struct hpx_transport_events client_events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drain = on_drain,
};

/* Over the bound: an answer that needs no request to have been read. */
static void turn_away(struct hpx_shard *shard, struct hpx_transport *transport)
{
	struct hpx_problem problem = { .code = HPX_PROBLEM_overloaded };
	struct hpx_buffer body, head;

	hpx_buffer_init(&body, 4096);
	hpx_buffer_init(&head, 1024);
	if (hpx_problem_print(&problem, &body) == HPX_OK &&
	    hpx_buffer_printf(&head,
			      "HTTP/1.1 503 Service Unavailable\r\n"
			      "Content-Type: application/problem+json\r\n"
			      "Content-Length: %zu\r\nCache-Control: no-store\r\n"
			      "Link: </.hapax/problems/overloaded>; rel=\"describedby\"\r\n"
			      "Retry-After: 1\r\nConnection: close\r\n\r\n",
			      body.len) == HPX_OK) {
		struct hpx_span pieces[] = { hpx_buffer_span(&head), hpx_buffer_span(&body) };
		(void)hpx_transport_send(transport, pieces, 2, NULL);
	}
	hpx_buffer_done(&body);
	hpx_buffer_done(&head);
	hpx_counter_add(&shard->meter.problems[HPX_PROBLEM_overloaded], 1);
	hpx_transport_close_gently(transport, (uint64_t)shard->settings->send_timeout_ms);
}

void hpx_client_accept(struct hpx_shard *shard, struct hpx_transport *transport)
{
	struct hpx_gateway *gateway = shard->gateway;
	static const struct hpx_transport_events no_events;

	if (atomic_fetch_add(&gateway->connections, 1) >= shard->settings->connections_max) {
		atomic_fetch_sub(&gateway->connections, 1);
		hpx_transport_attach(transport, &no_events, NULL);
		turn_away(shard, transport);
		return;
	}
	struct hpx_client *client = calloc(1, sizeof(*client));
	if (client == NULL) {
		atomic_fetch_sub(&gateway->connections, 1);
		hpx_transport_close(transport);
		return;
	}
	client->shard = shard;
	client->transport = transport;
	client->next = shard->clients;
	if (client->next != NULL)
		client->next->prev = client;
	shard->clients = client;
	hpx_buffer_init(&client->in, shard->settings->head_bytes_max + WAITING_BYTES_MAX +
					     HPX_LOOP_READ_BYTES);
	hpx_transport_attach(transport, &client_events, client);
	set_deadline(client, shard->settings->head_timeout_ms);
	read_more(client, true);
}

/* Too slow with a head or a body: told so, and nothing was sent on. */
static void time_out(struct hpx_client *client)
{
	client->deadline_ms = 0;
	if (client->request == NULL || client->mode == HPX_CLIENT_DISCARD) {
		hpx_client_close(client);
		return;
	}
	hpx_request_timed_out(client->request);
}

/* Bytes wait for a client that takes none: after a while it is let go, and
 * with it whatever it holds up. */
static bool is_stalled(struct hpx_client *client, uint64_t now_ms)
{
	uint64_t taken = hpx_transport_taken(client->transport);

	if (hpx_transport_pending(client->transport) == 0 || taken != client->taken_seen ||
	    client->stall_ms == 0) {
		client->taken_seen = taken;
		client->stall_ms = now_ms;
		return false;
	}
	return now_ms - client->stall_ms >= (uint64_t)client->shard->settings->send_timeout_ms;
}

/* A client that has finished sending and is sent nothing may be gone without
 * our ever finding out: it does not hold its upstream for ever. */
static bool is_forsaken(struct hpx_client *client, uint64_t now_ms)
{
	bool passing = client->request != NULL && client->request->wait.kind == HPX_WAIT_PASS;

	if (!client->ended || !passing ||
	    client->moved_bytes != hpx_transport_taken(client->transport)) {
		client->moved_bytes = hpx_transport_taken(client->transport);
		client->moved_ms = now_ms;
		return false;
	}
	return now_ms - client->moved_ms >= (uint64_t)client->shard->settings->send_timeout_ms;
}

static void end_idle(struct hpx_client *client)
{
	if (hpx_transport_pending(client->transport) > 0)
		close_gently(client);
	else
		hpx_client_close(client); /* nothing is on its way */
}

void hpx_client_tick(struct hpx_client *client, uint64_t now_ms)
{
	if (client->request == NULL && hpx_transport_pending(client->transport) > 0)
		set_deadline(client, client->shard->settings->keep_alive_ms); /* not idle yet */
	if (is_stalled(client, now_ms) || is_forsaken(client, now_ms))
		hpx_client_close(client);
	else if (client->deadline_ms != 0 && now_ms >= client->deadline_ms)
		time_out(client);
	else if (client->shard->draining && client->request == NULL && client->in.len == 0)
		end_idle(client);
}
