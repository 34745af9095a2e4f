/* Reading the answer of an exchange. Heads are collected in one bounded buffer, bodies
 * are handed on at once. Bytes that come while the user has paused are held: at most
 * one read's worth. The states are in upstream_exchange.h. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/status.h"
#include "http/field.h"
#include "net/upstream_exchange.h"

/* A head is searched for in slices of this size, so that little of a body that came
 * with it is copied too. */
#define SLICE_BYTES 4096
/* The fields of one head; the reader's own bound is lower. */
#define ARENA_BYTES_MAX (64 * 1024)
/* More 1xx than this before an answer are a way to never answer. */
#define INFORMATIONAL_MAX 16
/* Reading has stopped by the time a second read could come. */
#define HELD_BYTES_MAX ((size_t)2 * HPX_LOOP_READ_BYTES)
#define KEEP_ALIVE_SECONDS_MAX 1000000
#define KEEP_ALIVE_MARGIN_MS 1000

void hpx_upstream_answer_init(struct hpx_exchange *exchange, struct hpx_span method)
{
	const struct hpx_http_limits *limits = &exchange->upstream->options.limits;

	hpx_http_reader_response(&exchange->fresh, limits, method);
	exchange->reader = exchange->fresh;
	/* Larger than the reader's bound: the reader refuses a head that is too
	 * large, and can say why. */
	hpx_buffer_recycle(&exchange->head_bytes, limits->head_bytes_max + SLICE_BYTES);
	hpx_buffer_recycle(&exchange->held, HELD_BYTES_MAX);
	exchange->arena.max_bytes = ARENA_BYTES_MAX; /* empty, or used before */
}

void hpx_upstream_answer_done(struct hpx_exchange *exchange)
{
	hpx_buffer_done(&exchange->head_bytes);
	hpx_buffer_done(&exchange->held);
	hpx_arena_done(&exchange->arena);
}

/* "Keep-Alive: timeout=5": how long the upstream keeps an idle connection, less a
 * margin: the upstream counts from an earlier moment than we do. */
static uint64_t usable_ms(const struct hpx_http_head *head)
{
	struct hpx_span rest = hpx_field_known_value(head, HPX_NAME_KEEP_ALIVE);
	struct hpx_span name = HPX_SPAN("timeout=");
	struct hpx_span item;
	uint64_t seconds;

	while (rest.len > 0 && hpx_span_split(&rest, ',', &item)) {
		item = hpx_span_trim(item);
		if (!hpx_span_istarts(item, name))
			continue;
		item = hpx_span_skip(item, name.len);
		if (!hpx_span_u64(item, KEEP_ALIVE_SECONDS_MAX, &seconds))
			continue;
		return seconds == 0 ? 0 : seconds * 1000 - KEEP_ALIVE_MARGIN_MS;
	}
	return UINT64_MAX;
}

static bool is_in_quarantine(const struct hpx_exchange *exchange)
{
	struct hpx_upstream_state *state = exchange->upstream->options.state;

	return exchange->request.guarded && state != NULL && hpx_upstream_in_quarantine(state);
}

static bool is_reusable(const struct hpx_exchange *exchange, size_t left_over)
{
	return left_over == 0 && !exchange->request.fresh && !is_in_quarantine(exchange) &&
	       exchange->request_state == HPX_UPSTREAM_REQUEST_SENT &&
	       exchange->head.keep_alive && exchange->head.framing != HPX_FRAMING_CLOSE &&
	       exchange->head.framing != HPX_FRAMING_TUNNEL;
}

static void keep_connection(struct hpx_exchange *exchange)
{
	struct hpx_conn *conn = exchange->conn;
	uint64_t took_us = (uint64_t)(hpx_loop_boot_us(exchange->upstream->loop) - exchange->used_us);

	HPX_ASSERT(exchange->request_state == HPX_UPSTREAM_REQUEST_SENT);
	exchange->any_byte_left = true;
	exchange->conn = NULL;
	conn->usable_ms = usable_ms(&exchange->head);
	hpx_conn_note_duration(conn, took_us);
	hpx_pool_keep(conn);
}

/* The answer is complete. `left_over`: the number of bytes behind it, which are stray. */
static void complete(struct hpx_exchange *exchange, size_t left_over)
{
	struct hpx_upstream_state *state = exchange->upstream->options.state;

	HPX_ASSERT(!hpx_exchange_is_gone(exchange) &&
		   exchange->answer_state != HPX_UPSTREAM_ANSWER_HEAD);
	if (exchange->request.guarded)
		HPX_CRASH_POINT(answer_end);
	if (state != NULL)
		hpx_upstream_note_reached(state);
	if (left_over > 0)
		hpx_pool_stray(&exchange->upstream->pool);
	if (is_reusable(exchange, left_over))
		keep_connection(exchange);
	hpx_exchange_end(exchange);
	exchange->events->on_end(exchange->user);
}

static bool refuse(struct hpx_exchange *exchange, const char *reason)
{
	hpx_exchange_fail(exchange, HPX_INVALID, reason);
	return false;
}

/* A 1xx: reported, and the reader begins again. */
static bool take_informational(struct hpx_exchange *exchange)
{
	if (++exchange->informational > INFORMATIONAL_MAX)
		return refuse(exchange, "the upstream sent too many 1xx");
	if (exchange->events->on_informational != NULL)
		exchange->events->on_informational(exchange->user, &exchange->head);
	exchange->head_bytes.len = 0;
	exchange->reader = exchange->fresh;
	hpx_arena_recycle(&exchange->arena);
	return true;
}

static bool take_tunnel(struct hpx_exchange *exchange)
{
	if (exchange->request.guarded || exchange->request_state != HPX_UPSTREAM_REQUEST_SENT)
		return refuse(exchange, "the upstream switched protocols unasked");
	exchange->answer_state = HPX_UPSTREAM_ANSWER_TUNNEL;
	exchange->request_state = HPX_UPSTREAM_REQUEST_OPEN;
	exchange->request.streamed = true;
	exchange->head_seen = true;
	exchange->events->on_head(exchange->user, &exchange->head);
	return true;
}

static bool take_final(struct hpx_exchange *exchange)
{
	exchange->answer_state = HPX_UPSTREAM_ANSWER_BODY;
	exchange->head_seen = true;
	/* An answer that comes before the whole request is out: after a refusal the
	 * upstream does not want the rest. After a success it may be working on the
	 * body as it comes, and needs the rest. */
	if (exchange->request_state != HPX_UPSTREAM_REQUEST_SENT && exchange->head.status >= 300)
		exchange->request_state = HPX_UPSTREAM_REQUEST_STOPPED;
	if (exchange->request.guarded)
		HPX_CRASH_POINT(answer_head);
	exchange->events->on_head(exchange->user, &exchange->head);
	return true;
}

static bool take_head(struct hpx_exchange *exchange)
{
	HPX_ASSERT(exchange->answer_state == HPX_UPSTREAM_ANSWER_HEAD && !exchange->head_seen);
	if (exchange->head.framing == HPX_FRAMING_TUNNEL)
		return take_tunnel(exchange);
	if (exchange->head.status < 200)
		return take_informational(exchange);
	return take_final(exchange);
}

/* read_head, read_body and read_some take bytes off the front, and return whether to
 * go on. */
static bool read_head(struct hpx_exchange *exchange, struct hpx_span *bytes)
{
	struct hpx_span slice = hpx_span_first(*bytes, SLICE_BYTES);
	size_t before = exchange->head_bytes.len;
	size_t used;

	if (slice.len == 0)
		return false;
	if (hpx_buffer_append(&exchange->head_bytes, slice) != HPX_OK) {
		hpx_exchange_fail(exchange, HPX_NOMEM, "no memory is left for the answer");
		return false;
	}
	switch (hpx_http_read_head(&exchange->reader,
				   hpx_buffer_span(&exchange->head_bytes), &exchange->arena,
				   &exchange->head, &used)) {
	case HPX_HTTP_DONE:
		/* The bytes behind the head in this slice are read from where they
		 * came; the head's own bytes stay in head_bytes. */
		HPX_ASSERT(used >= before);
		*bytes = hpx_span_skip(*bytes, used - before);
		return take_head(exchange);
	case HPX_HTTP_MORE:
		*bytes = hpx_span_skip(*bytes, slice.len);
		return bytes->len > 0;
	default:
		return refuse(exchange, hpx_http_error_text(exchange->reader.error));
	}
}

static bool read_body(struct hpx_exchange *exchange, struct hpx_span *bytes)
{
	struct hpx_span data = { NULL, 0 };
	size_t used = 0;
	enum hpx_http_progress progress =
		hpx_http_read_body(&exchange->reader, *bytes, &data, &used);

	if (progress == HPX_HTTP_BAD)
		return refuse(exchange, hpx_http_error_text(exchange->reader.error));
	*bytes = hpx_span_skip(*bytes, used);
	if (progress == HPX_HTTP_DONE)
		exchange->answer_state = HPX_UPSTREAM_ANSWER_WHOLE;
	if (data.len > 0)
		exchange->events->on_data(exchange->user, data);
	return progress == HPX_HTTP_DONE || (used > 0 && bytes->len > 0);
}

static bool read_some(struct hpx_exchange *exchange, struct hpx_span *bytes)
{
	struct hpx_span all = *bytes;

	switch (exchange->answer_state) {
	case HPX_UPSTREAM_ANSWER_HEAD:
		return read_head(exchange, bytes);
	case HPX_UPSTREAM_ANSWER_BODY:
		return read_body(exchange, bytes);
	case HPX_UPSTREAM_ANSWER_TUNNEL:
		*bytes = hpx_span_skip(all, all.len);
		if (all.len > 0)
			exchange->events->on_data(exchange->user, all);
		return false;
	case HPX_UPSTREAM_ANSWER_WHOLE:
		complete(exchange, bytes->len);
		return false;
	default:
		return false;
	}
}

/* Reads until the bytes are used, the user pauses, or the exchange is over. Returns
 * the bytes that are left. */
static struct hpx_span read_all(struct hpx_exchange *exchange, struct hpx_span bytes)
{
	bool more = true;

	while (more && !exchange->paused)
		more = read_some(exchange, &bytes) && !hpx_exchange_is_gone(exchange);
	return bytes;
}

/* The last byte of the request may be out while on_sent is still deferred. on_sent
 * comes first, or the answer would look early. */
static void finish_sending(struct hpx_exchange *exchange)
{
	if (exchange->request_state == HPX_UPSTREAM_REQUEST_SENDING &&
	    hpx_transport_pending(exchange->conn->transport) == 0)
		hpx_upstream_request_continue(exchange);
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct hpx_exchange *exchange = user;

	finish_sending(exchange);
	if (hpx_exchange_is_gone(exchange))
		return;
	struct hpx_span left = read_all(exchange, bytes);
	if (hpx_exchange_is_gone(exchange))
		return;
	if (left.len > 0 && hpx_buffer_append(&exchange->held, left) != HPX_OK) {
		hpx_exchange_fail(exchange, HPX_NOMEM, "no memory is left for the answer");
		return;
	}
	hpx_exchange_reset_deadline(exchange);
}

void hpx_upstream_answer_continue(struct hpx_exchange *exchange)
{
	struct hpx_span held =
		exchange->held.len > 0 ? hpx_buffer_span(&exchange->held) : HPX_SPAN("");
	struct hpx_span left = read_all(exchange, held);

	if (hpx_exchange_is_gone(exchange))
		return;
	if (held.len > 0)
		hpx_buffer_consume(&exchange->held, held.len - left.len);
	if (!exchange->paused)
		hpx_transport_read_start(exchange->conn->transport);
	hpx_exchange_reset_deadline(exchange);
}

static void on_end(void *user, enum hpx_status status)
{
	struct hpx_exchange *exchange = user;

	finish_sending(exchange);
	/* The answer is complete: a pause only holds the user's on_end back. */
	if (hpx_exchange_is_gone(exchange) || exchange->answer_state == HPX_UPSTREAM_ANSWER_WHOLE)
		return;
	if (status != HPX_CLOSED)
		hpx_exchange_fail(exchange, HPX_IO, "the connection to the upstream broke");
	else if (exchange->answer_state == HPX_UPSTREAM_ANSWER_HEAD)
		hpx_exchange_fail(exchange, HPX_CLOSED,
				  "the upstream closed the connection without an answer");
	else if (exchange->answer_state == HPX_UPSTREAM_ANSWER_TUNNEL ||
		 hpx_http_read_end(&exchange->reader) == HPX_HTTP_DONE)
		complete(exchange, 0);
	else
		hpx_exchange_fail(exchange, HPX_CLOSED,
				  "the upstream closed the connection within its answer");
}

static void on_drain(void *user)
{
	hpx_upstream_request_drained(user);
}

const struct hpx_transport_events hpx_upstream_answer_events = { on_data, on_end, on_drain };
