/* Blocking sockets with deadlines: poll(2) first, then one call that does not
 * block. Loopback only. */
#include "cli/demo_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define HEAD_MAX ((size_t)32 * 1024)
#define PIECE 8192

void hpx_demo_message_init(struct hpx_demo_message *message)
{
	*message = (struct hpx_demo_message){ 0 };
	hpx_buffer_init(&message->bytes, HEAD_MAX + PIECE);
	hpx_buffer_init(&message->body, HPX_DEMO_BODY_MAX);
	hpx_arena_init(&message->arena, HEAD_MAX);
}

void hpx_demo_message_done(struct hpx_demo_message *message)
{
	hpx_buffer_done(&message->bytes);
	hpx_buffer_done(&message->body);
	hpx_arena_done(&message->arena);
}

/* HPX_OK once the socket is ready for `events` (an error counts as ready: the
 * call that follows tells it). */
static enum hpx_status wait_for(int fd, short events, int64_t deadline_ms)
{
	for (;;) {
		int64_t left_ms = deadline_ms - hpx_clock_boot_ms();
		struct pollfd p = { .fd = fd, .events = events };

		if (left_ms <= 0)
			return HPX_TIMEOUT;
		int n = poll(&p, 1, (int)(left_ms < 60000 ? left_ms : 60000));
		if (n > 0)
			return HPX_OK;
		if (n < 0 && errno != EINTR)
			return HPX_IO;
	}
}

/* Appends what has come; HPX_CLOSED at the end of the stream. */
static enum hpx_status receive(int fd, int64_t deadline_ms, struct hpx_buffer *into)
{
	enum hpx_status status = wait_for(fd, POLLIN, deadline_ms);

	if (status == HPX_OK)
		status = hpx_buffer_reserve(into, PIECE);
	if (status != HPX_OK)
		return status;
	ssize_t n = recv(fd, into->ptr + into->len, PIECE, MSG_DONTWAIT);
	if (n == 0)
		return HPX_CLOSED;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? HPX_OK : HPX_CLOSED;
	into->len += (size_t)n;
	return HPX_OK;
}

static enum hpx_status read_head(int fd, struct hpx_http_reader *reader, int64_t deadline_ms,
				 struct hpx_demo_message *message, size_t *ret_used)
{
	for (;;) {
		switch (hpx_http_read_head(reader, hpx_buffer_span(&message->bytes),
					   &message->arena, &message->head, ret_used)) {
		case HPX_HTTP_DONE:
			return HPX_OK;
		case HPX_HTTP_BAD:
			return HPX_INVALID;
		case HPX_HTTP_MORE:
			break;
		}
		enum hpx_status status = receive(fd, deadline_ms, &message->bytes);
		if (status != HPX_OK)
			return status;
	}
}

/* Takes all body bytes that `bytes` holds. HPX_OK: the body is whole;
 * HPX_NOT_FOUND: more must come. */
static enum hpx_status take_body(struct hpx_http_reader *reader, struct hpx_span bytes,
				 struct hpx_buffer *body)
{
	for (;;) {
		struct hpx_span data = { NULL, 0 };
		size_t used = 0;
		enum hpx_http_progress progress =
			hpx_http_read_body(reader, bytes, &data, &used);

		if (progress == HPX_HTTP_BAD)
			return HPX_INVALID;
		enum hpx_status status = hpx_buffer_append(body, data);
		if (status != HPX_OK)
			return status;
		if (progress == HPX_HTTP_DONE)
			return HPX_OK;
		bytes = hpx_span_skip(bytes, used);
		if (bytes.len == 0)
			return HPX_NOT_FOUND;
	}
}

static enum hpx_status read_body(int fd, struct hpx_http_reader *reader, int64_t deadline_ms,
				 struct hpx_span first, struct hpx_demo_message *message)
{
	struct hpx_buffer piece;
	enum hpx_status status = take_body(reader, first, &message->body);

	hpx_buffer_init(&piece, PIECE);
	while (status == HPX_NOT_FOUND) {
		piece.len = 0;
		status = receive(fd, deadline_ms, &piece);
		if (status == HPX_CLOSED && hpx_http_read_end(reader) == HPX_HTTP_DONE)
			status = HPX_OK;
		else if (status == HPX_OK)
			status = piece.len == 0 ? HPX_NOT_FOUND : take_body(reader, hpx_buffer_span(&piece), &message->body);
	}
	hpx_buffer_done(&piece);
	return status;
}

static enum hpx_status read_message(int fd, struct hpx_http_reader *reader,
				    int64_t timeout_ms, struct hpx_demo_message *message)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + timeout_ms;
	size_t used = 0;
	enum hpx_status status = read_head(fd, reader, deadline_ms, message, &used);

	if (status != HPX_OK)
		return status;
	return read_body(fd, reader, deadline_ms,
			 hpx_span_skip(hpx_buffer_span(&message->bytes), used), message);
}

static const struct hpx_http_limits limits = { .head_bytes_max = HEAD_MAX,
					       .fields_max = HPX_HTTP_FIELDS_MAX };

enum hpx_status hpx_demo_read_request(int fd, int64_t timeout_ms,
				      struct hpx_demo_message *message)
{
	struct hpx_http_reader reader;

	hpx_http_reader_request(&reader, &limits);
	return read_message(fd, &reader, timeout_ms, message);
}

enum hpx_status hpx_demo_read_response(int fd, struct hpx_span request_method,
				       int64_t timeout_ms, struct hpx_demo_message *message)
{
	struct hpx_http_reader reader;

	hpx_http_reader_response(&reader, &limits, request_method);
	return read_message(fd, &reader, timeout_ms, message);
}

enum hpx_status hpx_demo_send(int fd, struct hpx_span bytes, int64_t timeout_ms)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + timeout_ms;

	while (bytes.len > 0) {
		enum hpx_status status = wait_for(fd, POLLOUT, deadline_ms);
		if (status != HPX_OK)
			return status;
		ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return HPX_CLOSED;
		if (n > 0)
			bytes = hpx_span_skip(bytes, (size_t)n);
	}
	return HPX_OK;
}

static enum hpx_status connect_within(int fd, uint16_t port, int64_t timeout_ms)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int error = 0;
	socklen_t size = sizeof(error);

	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return HPX_OK;
	if (errno != EINPROGRESS)
		return HPX_UNAVAILABLE;
	enum hpx_status status = wait_for(fd, POLLOUT, hpx_clock_boot_ms() + timeout_ms);
	if (status != HPX_OK)
		return status;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
		return HPX_UNAVAILABLE;
	return HPX_OK;
}

enum hpx_status hpx_demo_connect(uint16_t port, int64_t timeout_ms, int *ret_fd)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return HPX_IO;
	enum hpx_status status = connect_within(fd, port, timeout_ms);
	if (status != HPX_OK) {
		close(fd);
		return status;
	}
	*ret_fd = fd;
	return HPX_OK;
}
