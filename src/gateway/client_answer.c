/* Answers as HTTP/1 writes them: Content-Length or chunks, Connection, and one write
 * for head and body where both are there. */
#include "gateway/client_connection.h"

#include "base/log.h"
#include "base/status.h"
#include "gateway/request.h"
#include "http/write.h"

static void send_pieces(struct hpx_connection *connection, const struct hpx_span *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++)
		connection->downstream.request->summary.bytes_out += pieces[i].len;
	/* A broken connection is noticed by on_end; the answer is stored. */
	(void)hpx_transport_send(connection->transport, pieces, count, NULL);
}

void hpx_downstream_continue(struct hpx_downstream *downstream)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);
	struct hpx_span go_on = HPX_SPAN("HTTP/1.1 100 Continue\r\n\r\n");

	/* Bytes of the body are here: the client did not wait. */
	if (downstream->request->head.http.expect_continue && connection->in.len == 0)
		send_pieces(connection, &go_on, 1);
}

void hpx_downstream_make_last(struct hpx_downstream *downstream)
{
	hpx_connection_of(downstream)->keep = false;
}

static const struct hpx_http_head *asked(const struct hpx_connection *connection)
{
	return &connection->downstream.request->head.http;
}

static bool has_no_body(const struct hpx_connection *connection, unsigned status)
{
	return status == 204 || status == 304 ||
	       hpx_span_eq(asked(connection)->method, HPX_SPAN("HEAD"));
}

/* The client sends no more, and everything that it sent was read. */
static bool is_read_up(const struct hpx_connection *connection)
{
	return connection->ended && connection->in.len == 0;
}

static enum hpx_status write_connection(const struct hpx_connection *connection,
					struct hpx_buffer *out)
{
	if (!connection->keep)
		return HPX_WRITE_FIELD(out, "Connection", HPX_SPAN("close"));
	if (asked(connection)->minor == 0)
		return HPX_WRITE_FIELD(out, "Connection", HPX_SPAN("keep-alive"));
	return HPX_OK;
}

/* The whole answer is out. The connection goes on with the next request, or ends. */
static void end_answer(struct hpx_connection *connection)
{
	struct hpx_request *request = connection->downstream.request;

	HPX_ASSERT(request->downstream == &connection->downstream && connection->head.len == 0);
	HPX_CRASH_POINT(client_answered);
	hpx_request_answered(request);
	if (!connection->keep || connection->shard->draining || is_read_up(connection)) {
		hpx_connection_close_gently(connection);
		return;
	}
	connection->downstream.request = NULL;
	request->downstream = NULL;
	hpx_request_drop(request);
	connection->discarded_bytes = 0;
	hpx_connection_set_mode(connection, connection->body_read ? HPX_CONNECTION_HEAD : HPX_CONNECTION_DISCARD);
}

/* Whether the connection can go on after a whole answer. A body that waits for 100
 * Continue may still come or not, so the connection ends there. */
static bool can_go_on(const struct hpx_connection *connection)
{
	bool body_in_doubt = asked(connection)->expect_continue && !connection->body_read;

	return !body_in_doubt && connection->downstream.request->settings->keep_alive_ms > 0 &&
	       !connection->shard->draining && !is_read_up(connection);
}

void hpx_downstream_answer(struct hpx_downstream *downstream, struct hpx_buffer *lines,
			   unsigned http_status, struct hpx_span body)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);
	enum hpx_status status = HPX_OK;

	connection->keep = connection->keep && can_go_on(connection);
	if (http_status != 204 && http_status != 304)
		status = HPX_WRITE_FIELD_U64(lines, "Content-Length", body.len);
	if (status == HPX_OK)
		status = write_connection(connection, lines);
	if (status == HPX_OK)
		status = hpx_write_head_end(lines);
	if (status != HPX_OK) {
		hpx_log(HPX_LOG_ERROR, "answer_not_written", "status=%u problem=%s", http_status,
			hpx_status_name(status));
		hpx_connection_close(connection);
		return;
	}
	struct hpx_span pieces[] = { hpx_buffer_span(lines), body };
	downstream->request->summary.status = http_status;
	send_pieces(connection, pieces, has_no_body(connection, http_status) ? 1 : 2);
	end_answer(connection);
}

void hpx_downstream_informational(struct hpx_downstream *downstream, struct hpx_buffer *lines)
{
	if (asked(hpx_connection_of(downstream))->minor == 0 || hpx_write_head_end(lines) != HPX_OK)
		return;
	struct hpx_span piece = hpx_buffer_span(lines);
	send_pieces(hpx_connection_of(downstream), &piece, 1);
}

/* Sends pieces of a flowing answer, the head before them where it still waits:
 * an answer that comes whole from the upstream leaves in one write. */
static void send_flowing(struct hpx_connection *connection, const struct hpx_span *pieces, size_t count)
{
	struct hpx_span all[4] = { connection->head };
	size_t first = connection->head.len > 0 ? 1 : 0;

	HPX_ASSERT(count <= 3);
	for (size_t i = 0; i < count; i++)
		all[first + i] = pieces[i];
	connection->head.len = 0;
	hpx_later_cancel(&connection->head_later);
	send_pieces(connection, all, first + count);
}

/* No byte of the body came in this turn of the loop: the head leaves alone. */
static void send_head_alone(struct hpx_later *later)
{
	struct hpx_connection *connection = HPX_CONTAINER(later, struct hpx_connection, head_later);

	HPX_ASSERT(connection->head.len > 0);
	send_flowing(connection, NULL, 0);
}

static enum hpx_status write_flowing_framing(const struct hpx_connection *connection,
					     const struct hpx_downstream_head *head)
{
	enum hpx_status status = HPX_OK;

	if (connection->chunked)
		status = HPX_WRITE_FIELD(head->lines, "Transfer-Encoding", HPX_SPAN("chunked"));
	else if (head->has_length && head->status != 204)
		status = HPX_WRITE_FIELD_U64(head->lines, "Content-Length", head->length);
	if (status == HPX_OK && head->framing != HPX_FRAMING_TUNNEL)
		status = write_connection(connection, head->lines);
	return status == HPX_OK ? hpx_write_head_end(head->lines) : status;
}

void hpx_downstream_begin(struct hpx_downstream *downstream, const struct hpx_downstream_head *head)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);
	bool no_length = head->framing == HPX_FRAMING_CHUNKED || head->framing == HPX_FRAMING_CLOSE;

	HPX_ASSERT(connection->head.len == 0);
	connection->chunked = no_length && asked(connection)->minor > 0;
	/* HTTP/1.0 has no other end for it than the connection's. */
	if ((no_length && !connection->chunked) || connection->shard->draining)
		connection->keep = false;
	if (write_flowing_framing(connection, head) != HPX_OK) {
		hpx_connection_close(connection);
		return;
	}
	downstream->request->summary.status = head->status;
	connection->head = hpx_buffer_span(head->lines);
	connection->head_later.run = send_head_alone;
	hpx_loop_later(&connection->shard->loop, &connection->head_later);
}

void hpx_downstream_body(struct hpx_downstream *downstream, struct hpx_span bytes)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);
	struct hpx_chunk chunk;

	if (connection->chunked) {
		hpx_chunk_frame(bytes, &chunk);
		send_flowing(connection, chunk.pieces, 3);
	} else {
		send_flowing(connection, &bytes, 1);
	}
}

void hpx_downstream_finish(struct hpx_downstream *downstream)
{
	struct hpx_connection *connection = hpx_connection_of(downstream);
	struct hpx_span last = HPX_SPAN("0\r\n\r\n");
	bool has_last = connection->chunked &&
			!has_no_body(connection, downstream->request->answer.status);

	if (has_last || connection->head.len > 0)
		send_flowing(connection, &last, has_last ? 1 : 0);
	end_answer(connection);
}
