/* A client's HTTP/1 connection: reading. How it begins is client_accept.c's. Bytes that arrive go to the part that wants
 * them now (the mode). Other bytes wait in a bounded buffer; when that is full, the
 * socket is not read.
 *
 * The reading loop is flat: a request that ends inside it sets the mode for the next
 * one and returns, so that a thousand pipelined requests take no more stack than one.
 * The loop is never entered from inside a step of a request: bytes that a step wants
 * are offered after the step has returned. */
#include "gateway/client_connection.h"

#include <stdlib.h>

#include "base/status.h"
#include "gateway/request.h"

/* Bytes that may wait (one read may come on top). */
#define WAITING_BYTES_MAX (64 * 1024)
/* The rest of an answered request's body is read and dropped up to this bound, so
 * that the connection can be kept. A longer rest ends the connection. */
#define DISCARD_BYTES_MAX (256 * 1024)
/* Bytes on their way to the client. Above this bound the upstream is paused, and no
 * further request is read. */
#define PENDING_BYTES_MAX (256 * 1024)

static void process(struct hpx_connection *connection);

struct hpx_connection *hpx_connection_of(const struct hpx_downstream *downstream)
{
	return HPX_CONTAINER(downstream, struct hpx_connection, downstream);
}

void hpx_connection_set_deadline(struct hpx_connection *connection, int64_t after_ms)
{
	connection->deadline_ms = hpx_loop_now_ms(&connection->shard->loop) + (uint64_t)after_ms;
}

static void unlink_connection(struct hpx_connection *connection)
{
	if (connection->prev != NULL)
		connection->prev->next = connection->next;
	else
		connection->shard->connections = connection->next;
	if (connection->next != NULL)
		connection->next->prev = connection->prev;
}

/* The connection ends: its request is told. The memory is freed at once, or when the
 * reading loop has returned. */
void hpx_connection_forget(struct hpx_connection *connection)
{
	struct hpx_request *request = connection->downstream.request;

	connection->closing = true;
	connection->downstream.request = NULL;
	if (request != NULL) {
		hpx_request_client_gone(request);
		hpx_request_drop(request);
	}
	if (connection->processing)
		return;
	hpx_later_cancel(&connection->later);
	hpx_later_cancel(&connection->head_later);
	unlink_connection(connection);
	hpx_buffer_done(&connection->in);
	struct hpx_gateway *gateway = connection->shard->gateway;
	atomic_fetch_sub(&gateway->connections, 1);
	hpx_share_remove(&gateway->connection_shares.peers, connection->peer_hash, 1);
	if (connection->tenant_hash != 0)
		hpx_share_remove(&gateway->connection_shares.tenants, connection->tenant_hash, 1);
	free(connection);
}

void hpx_connection_close(struct hpx_connection *connection)
{
	if (connection->closing)
		return;
	hpx_transport_close(connection->transport);
	hpx_connection_forget(connection);
}

void hpx_downstream_abort(struct hpx_downstream *downstream)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);

	/* A half answer with a proper end would look whole: the connection is
	 * cut, and where only its end ends the answer, by a reset. */
	if (connection->closing)
		return;
	hpx_transport_abort(connection->transport);
	hpx_connection_forget(connection);
}

void hpx_downstream_close(struct hpx_downstream *downstream)
{
	hpx_connection_close(hpx_connection_of(downstream));
}

void hpx_connection_close_gently(struct hpx_connection *connection)
{
	if (connection->closing)
		return;
	hpx_transport_close_gently(connection->transport,
				   (uint64_t)connection->shard->settings->send_timeout_ms);
	hpx_connection_forget(connection);
}

void hpx_connection_read_more(struct hpx_connection *connection, bool wanted)
{
	if (connection->closing || connection->ended || connection->reading == wanted)
		return;
	connection->reading = wanted;
	if (wanted)
		hpx_transport_read_start(connection->transport);
	else
		hpx_transport_read_stop(connection->transport);
}

static void run_later(struct hpx_later *later)
{
	process(HPX_CONTAINER(later, struct hpx_connection, later));
}

/* Bytes are wanted, perhaps by a request in the middle of a step. Bytes that wait are
 * offered after that has returned, and no more are read before. */
static void process_later(struct hpx_connection *connection)
{
	if (connection->processing)
		return;
	if (connection->in.len == 0 && !connection->ended) {
		hpx_connection_read_more(connection, true);
		return;
	}
	connection->later.run = run_later;
	hpx_loop_later(&connection->shard->loop, &connection->later);
}

static void judge_body_from(struct hpx_connection *connection, uint64_t now_ms)
{
	connection->body_began_ms = now_ms;
	connection->body_window_ms = now_ms;
	connection->body_window_bytes = 0;
}

void hpx_connection_set_mode(struct hpx_connection *connection, enum hpx_connection_mode mode)
{
	/* Between two requests there is none, and only then. */
	HPX_ASSERT((connection->downstream.request == NULL) ==
		   (mode == HPX_CONNECTION_HEAD || mode == HPX_CONNECTION_DISCARD));
	connection->mode = mode;
	connection->deadline_ms = 0;
	if (mode == HPX_CONNECTION_BODY || mode == HPX_CONNECTION_DISCARD)
		hpx_connection_set_deadline(connection, connection->shard->settings->body_timeout_ms);
	if (mode == HPX_CONNECTION_BODY)
		judge_body_from(connection, hpx_loop_now_ms(&connection->shard->loop));
	if (mode == HPX_CONNECTION_HEAD)
		hpx_connection_set_deadline(connection, connection->shard->settings->keep_alive_ms);
	if (mode != HPX_CONNECTION_HELD)
		process_later(connection);
}

void hpx_downstream_read(struct hpx_downstream *downstream, enum hpx_downstream_reading reading)
{
	static const enum hpx_connection_mode modes[] = {
		[HPX_DOWNSTREAM_HOLD] = HPX_CONNECTION_HELD,
		[HPX_DOWNSTREAM_BODY] = HPX_CONNECTION_BODY,
		[HPX_DOWNSTREAM_TUNNEL] = HPX_CONNECTION_TUNNEL,
	};

	HPX_ASSERT(downstream->request != NULL);
	hpx_connection_set_mode(hpx_connection_of(downstream), modes[reading]);
}

bool hpx_downstream_is_ended(const struct hpx_downstream *downstream)
{
	return hpx_connection_of(downstream)->ended;
}

/* The client sends requests without reading its answers: its next request waits. */
static bool is_clogged(const struct hpx_connection *connection)
{
	return hpx_transport_pending(connection->transport) > PENDING_BYTES_MAX;
}

bool hpx_downstream_is_full(const struct hpx_downstream *downstream)
{
	return is_clogged(hpx_connection_of(downstream));
}

/* What the request must know of its connection. */
static bool note_client(struct hpx_connection *connection)
{
	const struct hpx_settings *settings = connection->shard->settings;
	const struct hpx_address *address = &settings->listeners[connection->listener].address;
	struct hpx_request *request = connection->downstream.request;
	struct hpx_certificate found;

	request->head.secure = hpx_transport_is_secure(connection->transport);
	request->head.local = hpx_address_is_local(address) && hpx_peer_is_local(request->head.peer);
	if (settings->tenant.from != HPX_TENANT_CERTIFICATE ||
	    !hpx_transport_certificate(connection->transport,
				       (enum hpx_certificate_name)settings->tenant.certificate, &found))
		return true;
	request->head.certificate.name = hpx_arena_dup(&request->arena, found.name);
	request->head.certificate.authority = hpx_arena_dup(&request->arena, found.authority);
	return request->head.certificate.name.ptr != NULL &&
	       request->head.certificate.authority.ptr != NULL;
}

static bool begin_request(struct hpx_connection *connection)
{
	const struct hpx_settings *settings = connection->shard->settings;
	struct hpx_http_limits limits = { .head_bytes_max = settings->head_bytes_max,
					  .fields_max = settings->fields_max };

	connection->downstream.request = hpx_request_new(connection->shard, &connection->downstream,
							 hpx_transport_peer(connection->transport));
	if (connection->downstream.request == NULL || !note_client(connection))
		return false;
	connection->downstream.request->head.peer_hash = connection->peer_hash;
	connection->downstream.request->head.peer_known = connection->peer_hash != 0;
	hpx_http_reader_request(&connection->reader, &limits);
	hpx_connection_set_deadline(connection, settings->head_timeout_ms);
	return true;
}

/* The buffer with the head's bytes becomes the request's. Bytes behind the head move
 * to a buffer of their own. */
static bool hand_over_head(struct hpx_connection *connection, size_t used)
{
	struct hpx_request *request = connection->downstream.request;
	struct hpx_span rest = hpx_span_skip(hpx_buffer_span(&connection->in), used);

	HPX_ASSERT(used <= connection->in.len);
	request->summary.bytes_in = used;
	/* In exchange, the connection gets the buffer that the request was made with. */
	struct hpx_buffer spare = request->head.bytes;
	request->head.bytes = connection->in;
	hpx_buffer_recycle(&spare, connection->in.max);
	connection->in = spare;
	connection->body_read = request->head.http.framing == HPX_FRAMING_NONE ||
				(request->head.http.framing == HPX_FRAMING_LENGTH &&
				 request->head.http.content_length == 0);
	request->body.whole = connection->body_read;
	connection->keep = request->head.http.keep_alive;
	return hpx_buffer_append(&connection->in, rest) == HPX_OK;
}

/* Reads the next request's head. True: bytes were used, and the loop goes on. */
static bool take_head(struct hpx_connection *connection)
{
	size_t used = 0;

	if (connection->in.len == 0 || is_clogged(connection))
		return false;
	if (connection->downstream.request == NULL && !begin_request(connection)) {
		hpx_connection_close(connection);
		return false;
	}
	struct hpx_request *request = connection->downstream.request;
	switch (hpx_http_read_head(&connection->reader, hpx_buffer_span(&connection->in),
				   &request->arena, &request->head.http, &used)) {
	case HPX_HTTP_MORE:
		return false;
	case HPX_HTTP_BAD:
		request->head.error = connection->reader.error;
		connection->keep = false;
		break;
	case HPX_HTTP_DONE:
		if (!hand_over_head(connection, used)) {
			hpx_connection_close(connection);
			return false;
		}
		break;
	}
	hpx_connection_set_mode(connection, HPX_CONNECTION_HELD);
	hpx_request_go(request, HPX_NEXT_ROUTE);
	return true;
}

/* Gives the current request its body, as long as the request takes it. */
static size_t read_body(struct hpx_connection *connection, struct hpx_span bytes)
{
	size_t all = 0;

	HPX_ASSERT(connection->downstream.request != NULL && !connection->body_read);
	if (bytes.len > 0)
		hpx_connection_set_deadline(connection, connection->shard->settings->body_timeout_ms);
	while (all < bytes.len && connection->mode == HPX_CONNECTION_BODY && !connection->closing) {
		struct hpx_request *request = connection->downstream.request;
		struct hpx_span data = { NULL, 0 };
		size_t used = 0;
		enum hpx_http_progress progress = hpx_http_read_body(
			&connection->reader, hpx_span_skip(bytes, all), &data, &used);
		all += used;
		connection->body_window_bytes += used;
		request->summary.bytes_in += used;
		connection->body_read = progress == HPX_HTTP_DONE;
		if (progress == HPX_HTTP_BAD)
			hpx_request_body_malformed(request, connection->reader.error);
		else
			hpx_request_take_body(request, data, connection->body_read);
	}
	return all;
}

/* Reads past the rest of the body of an answered request. */
static size_t discard(struct hpx_connection *connection, struct hpx_span bytes)
{
	size_t all = 0;

	HPX_ASSERT(connection->downstream.request == NULL);
	while (all < bytes.len) {
		struct hpx_span data;
		size_t used = 0;
		enum hpx_http_progress progress = hpx_http_read_body(
			&connection->reader, hpx_span_skip(bytes, all), &data, &used);
		all += used;
		connection->discarded_bytes += used;
		if (progress == HPX_HTTP_DONE) {
			hpx_connection_set_mode(connection, HPX_CONNECTION_HEAD);
			return all;
		}
		if (progress == HPX_HTTP_BAD || connection->discarded_bytes > DISCARD_BYTES_MAX) {
			hpx_connection_close_gently(connection);
			return all;
		}
	}
	return all;
}

/* Offers `bytes` by the mode; returns how many were used. */
static size_t offer(struct hpx_connection *connection, struct hpx_span bytes)
{
	HPX_ASSERT(connection->processing);
	switch (connection->mode) {
	case HPX_CONNECTION_BODY:
		return read_body(connection, bytes);
	case HPX_CONNECTION_TUNNEL:
		connection->downstream.request->summary.bytes_in += bytes.len;
		hpx_request_take_tunnel(connection->downstream.request, bytes);
		return bytes.len;
	case HPX_CONNECTION_DISCARD:
		return discard(connection, bytes);
	default:
		return 0;
	}
}

/* The client sends no more, and no complete message is left of the bytes that it
 * sent. */
static bool is_over(const struct hpx_connection *connection)
{
	if (!connection->ended || is_clogged(connection))
		return false;
	return connection->mode == HPX_CONNECTION_HEAD || connection->mode == HPX_CONNECTION_BODY ||
	       connection->mode == HPX_CONNECTION_DISCARD;
}

/* Whether the socket is to be read. A head may be longer than the bound for waiting
 * bytes: its reader has a bound of its own. */
static bool wants_more(const struct hpx_connection *connection)
{
	return connection->in.len < WAITING_BYTES_MAX ||
	       (connection->mode == HPX_CONNECTION_HEAD && !is_clogged(connection));
}

/* A connection without waiting bytes has no buffer: one for the whole shard goes from
 * connection to connection. */
static void give_buffer_back(struct hpx_connection *connection)
{
	struct hpx_buffer *spare = &connection->shard->spare_in;

	hpx_buffer_recycle(&connection->in, connection->in.max);
	if (connection->in.cap > spare->cap) {
		struct hpx_buffer smaller = *spare;
		*spare = connection->in;
		connection->in = smaller;
		connection->in.max = spare->max;
	}
	hpx_buffer_done(&connection->in);
}

static void borrow_buffer(struct hpx_connection *connection)
{
	struct hpx_buffer *spare = &connection->shard->spare_in;
	size_t max = connection->in.max;

	if (connection->in.cap > 0 || spare->cap == 0 || spare->cap > max)
		return;
	connection->in = *spare;
	connection->in.max = max;
	hpx_buffer_init(spare, max);
}

/* The reading loop: offers the bytes in `in` as long as some of them are used. */
static void process(struct hpx_connection *connection)
{
	bool more = true;

	HPX_ASSERT(!connection->processing);
	connection->processing = true;
	while (more && !connection->closing) {
		if (connection->mode == HPX_CONNECTION_HEAD) {
			more = take_head(connection);
			continue;
		}
		enum hpx_connection_mode mode = connection->mode;
		size_t used = offer(connection, hpx_buffer_span(&connection->in));
		if (connection->closing)
			break;
		hpx_buffer_consume(&connection->in, used);
		more = used > 0 || connection->mode != mode;
	}
	connection->processing = false;
	if (connection->closing) {
		hpx_connection_forget(connection);
		return;
	}
	if (connection->in.len == 0)
		give_buffer_back(connection);
	if (is_over(connection)) {
		hpx_connection_close_gently(connection);
		return;
	}
	hpx_connection_read_more(connection, wants_more(connection));
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct hpx_connection *connection = user;

	/* A body that streams through is not copied on its way. */
	if (connection->in.len == 0 && connection->mode != HPX_CONNECTION_HEAD) {
		connection->processing = true;
		size_t used = offer(connection, bytes);
		connection->processing = false;
		if (connection->closing) {
			hpx_connection_forget(connection);
			return;
		}
		bytes = hpx_span_skip(bytes, used);
	}
	if (bytes.len > 0)
		borrow_buffer(connection);
	if (hpx_buffer_append(&connection->in, bytes) != HPX_OK) {
		hpx_connection_close(connection);
		return;
	}
	process(connection);
}

static void on_end(void *user, enum hpx_status status)
{
	struct hpx_connection *connection = user;

	connection->ended = true;
	connection->reading = false;
	connection->moved_ms = hpx_loop_now_ms(&connection->shard->loop);
	if (status != HPX_CLOSED) {
		hpx_connection_close(connection);
		return;
	}
	/* It has finished sending, and may still want the answers to what it
	 * sent; one that is gone altogether is noticed when they are sent. */
	process(connection);
}

static void on_drain(void *user)
{
	struct hpx_connection *connection = user;

	if (connection->downstream.request != NULL)
		hpx_request_client_drained(connection->downstream.request);
	else
		process(connection);
}

const struct hpx_transport_events hpx_connection_events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drain = on_drain,
};

/* The head or the body did not come in time. Nothing was sent to the upstream. */
static void time_out(struct hpx_connection *connection)
{
	connection->deadline_ms = 0;
	if (connection->downstream.request == NULL)
		hpx_connection_close(connection);
	else
		hpx_request_timed_out(connection->downstream.request);
}

/* A body's rate is judged every ten seconds, or as often as `timeouts.body` says. */
#define RATE_WINDOW_MS 10000

/* Whether less of the body has come than limits.body_rate asks for. */
static bool is_trickling(struct hpx_connection *connection, uint64_t now_ms)
{
	const struct hpx_settings *settings = connection->shard->settings;
	uint64_t window_ms = settings->body_timeout_ms < RATE_WINDOW_MS ?
				     (uint64_t)settings->body_timeout_ms :
				     RATE_WINDOW_MS;
	uint64_t past_ms = now_ms - connection->body_window_ms;

	if (past_ms < window_ms)
		return false;
	bool slow = connection->body_window_bytes * 1000 < settings->body_rate_min * past_ms;
	connection->body_window_ms = now_ms;
	connection->body_window_bytes = 0;
	return slow;
}

/* Whether a body comes too slowly: below the least rate, or, where it is held in memory,
 * for too long in all. A body that streams through may take its time. */
static bool is_body_late(struct hpx_connection *connection, uint64_t now_ms)
{
	const struct hpx_request *request = connection->downstream.request;

	if (connection->mode != HPX_CONNECTION_BODY || request == NULL)
		return false;
	if (request->wait.kind == HPX_WAIT_BODY &&
	    now_ms - connection->body_began_ms >=
		    (uint64_t)connection->shard->settings->whole_body_timeout_ms)
		return true;
	return is_trickling(connection, now_ms);
}

/* Whether the client has read nothing for too long while bytes wait for it. Such a
 * client would hold its upstream connection for ever. */
static bool is_stalled(struct hpx_connection *connection, uint64_t now_ms)
{
	uint64_t taken = hpx_transport_taken(connection->transport);

	if (hpx_transport_pending(connection->transport) == 0 || taken != connection->taken_seen ||
	    connection->stall_ms == 0) {
		connection->taken_seen = taken;
		connection->stall_ms = now_ms;
		return false;
	}
	return now_ms - connection->stall_ms >= (uint64_t)connection->shard->settings->send_timeout_ms;
}

/* Whether a client that sends no more, and is sent nothing, has been silent for too
 * long: it may be gone without any notice, and must not hold its upstream connection
 * for ever. */
static bool is_forsaken(struct hpx_connection *connection, uint64_t now_ms)
{
	const struct hpx_request *request = connection->downstream.request;
	bool passing = request != NULL && request->wait.kind == HPX_WAIT_PASS;

	if (!connection->ended || !passing ||
	    connection->moved_bytes != hpx_transport_taken(connection->transport)) {
		connection->moved_bytes = hpx_transport_taken(connection->transport);
		connection->moved_ms = now_ms;
		return false;
	}
	return now_ms - connection->moved_ms >= (uint64_t)connection->shard->settings->send_timeout_ms;
}

static void end_idle(struct hpx_connection *connection)
{
	if (hpx_transport_pending(connection->transport) > 0)
		hpx_connection_close_gently(connection);
	else
		hpx_connection_close(connection); /* nothing is on its way */
}

void hpx_connection_tick(struct hpx_connection *connection, uint64_t now_ms)
{
	bool between = connection->downstream.request == NULL &&
		       connection->mode == HPX_CONNECTION_HEAD;

	if (between && hpx_transport_pending(connection->transport) > 0)
		hpx_connection_set_deadline(connection, connection->shard->settings->keep_alive_ms); /* not idle yet */
	if (is_stalled(connection, now_ms) || is_forsaken(connection, now_ms))
		hpx_connection_close(connection);
	else if ((connection->deadline_ms != 0 && now_ms >= connection->deadline_ms) ||
		 is_body_late(connection, now_ms))
		time_out(connection);
	else if (connection->shard->draining && between && connection->in.len == 0)
		end_idle(connection);
}
