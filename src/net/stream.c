/* The plain transport: a libuv TCP or pipe handle, and how it is connected.
 * Reading goes into the loop's one buffer. Sending tries the socket first and
 * queues only the bytes that the socket did not take. */
#include "net/transport_driver.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/status.h"

/* Pieces handed to one writev; a head with its body needs two. */
#define BATCH 16
#define JOINED_MAX 2048

struct stream {
	struct hpx_transport base;
	struct hpx_later broken; /* reports a failed send once the send has returned */
	bool shut;
	uv_shutdown_t shutdown;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
};

/* A copy of the bytes that the socket did not take. */
struct queued {
	uv_write_t request;
	char bytes[];
};

static struct stream *stream_of(struct hpx_transport *transport)
{
	return (struct stream *)transport;
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
	struct stream *stream = handle->data;

	(void)suggested;
	*ret_buf = uv_buf_init(stream->base.loop->read_buffer, HPX_LOOP_READ_BYTES);
}

/* libuv reports an end of stream by itself when the poll that brought the last
 * bytes also said "hung up". A reset says that too. Taken for an end, a reset
 * would make half of an answer look whole; so the socket itself is asked. */
static bool is_clean_end(const struct stream *stream)
{
	uv_os_fd_t fd;
	char byte;

	return uv_fileno(&stream->uv.handle, &fd) == 0 &&
	       recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_read(uv_stream_t *uv, ssize_t n, const uv_buf_t *buf)
{
	struct stream *stream = uv->data;

	if (n > 0)
		hpx_transport_emit_data(&stream->base, hpx_span(buf->base, (size_t)n));
	else if (n == UV_EOF && stream->base.phase == HPX_TRANSPORT_OPEN &&
		 is_clean_end(stream))
		hpx_transport_emit_end(&stream->base, HPX_CLOSED);
	else if (n < 0)
		hpx_transport_emit_end(&stream->base, HPX_IO);
}

static void tell_broken(struct hpx_later *later)
{
	struct stream *stream =
		HPX_CONTAINER(later, struct stream, broken);

	hpx_transport_emit_end(&stream->base, HPX_IO);
}

static void read_start(struct hpx_transport *transport)
{
	struct stream *stream = stream_of(transport);

	/* Fails only for a handle that is not connected or is closing. */
	if (uv_read_start(&stream->uv.stream, give_buffer, on_read) != 0)
		hpx_loop_later(transport->loop, &stream->broken);
}

static void read_stop(struct hpx_transport *transport)
{
	uv_read_stop(&stream_of(transport)->uv.stream);
}

/* A send failed. Bytes that the peer sent before it closed may still wait to be
 * read (an early answer). So while the user reads, the end is reported by the
 * reader, behind those bytes. */
static void break_off(struct stream *stream)
{
	HPX_ASSERT(stream->base.phase < HPX_TRANSPORT_BREAKING);
	stream->base.phase = HPX_TRANSPORT_BREAKING;
	if (!stream->base.reading)
		hpx_loop_later(stream->base.loop, &stream->broken);
}

static void on_written(uv_write_t *request, int rc)
{
	struct stream *stream = request->handle->data;

	free(request->data);
	if (stream->base.phase >= HPX_TRANSPORT_BREAKING)
		return;
	if (rc < 0)
		break_off(stream);
	else if (stream->uv.stream.write_queue_size == 0)
		hpx_transport_emit_drain(&stream->base);
}

/* One write is cheaper than a writev of two: small pieces are put together. */
static unsigned join(uv_buf_t *bufs, unsigned n, size_t bytes, char *joined)
{
	size_t at = 0;

	if (n < 2 || bytes > JOINED_MAX)
		return n;
	for (unsigned i = 0; i < n; i++) {
		memcpy(joined + at, bufs[i].base, bufs[i].len);
		at += bufs[i].len;
	}
	bufs[0] = (uv_buf_t){ .base = joined, .len = bytes };
	return 1;
}

/* Writes until the socket takes no more. */
static int try_pieces(struct stream *stream, const struct hpx_span *pieces, size_t count,
		      size_t *taken)
{
	uv_buf_t bufs[BATCH];
	char joined[JOINED_MAX];

	while (count > 0) {
		unsigned n = 0;
		size_t bytes = 0;
		for (; count > 0 && n < BATCH; pieces++, count--) {
			if (pieces->len == 0)
				continue;
			bufs[n++] = (uv_buf_t){ .base = (char *)pieces->ptr,
						.len = pieces->len };
			bytes += pieces->len;
		}
		n = join(bufs, n, bytes, joined);
		int written = n > 0 ? uv_try_write(&stream->uv.stream, bufs, n) : 0;
		if (written < 0)
			return written == UV_EAGAIN ? 0 : written;
		*taken += (size_t)written;
		if ((size_t)written < bytes)
			return 0;
	}
	return 0;
}

/* Copies all but the first `skip` bytes of the pieces. */
static void copy_rest(char *to, const struct hpx_span *pieces, size_t count, size_t skip)
{
	for (size_t i = 0; i < count; i++) {
		size_t over = skip < pieces[i].len ? skip : pieces[i].len;
		skip -= over;
		if (pieces[i].len == over)
			continue;
		memcpy(to, pieces[i].ptr + over, pieces[i].len - over);
		to += pieces[i].len - over;
	}
	HPX_ASSERT(skip == 0);
}

static enum hpx_status queue_rest(struct stream *stream, const struct hpx_span *pieces,
				  size_t count, size_t skip, size_t rest)
{
	struct queued *queued = malloc(sizeof(*queued) + rest);

	if (queued == NULL)
		return HPX_NOMEM;
	copy_rest(queued->bytes, pieces, count, skip);
	queued->request.data = queued;
	uv_buf_t buf = { .base = queued->bytes, .len = rest };
	if (uv_write(&queued->request, &stream->uv.stream, &buf, 1, on_written) != 0) {
		free(queued);
		return HPX_IO;
	}
	stream->base.accepted += rest;
	return HPX_OK;
}

static enum hpx_status stream_send(struct hpx_transport *transport,
				   const struct hpx_span *pieces, size_t count)
{
	struct stream *stream = stream_of(transport);
	size_t total = 0, taken = 0;

	for (size_t i = 0; i < count; i++)
		total += pieces[i].len;
	if (stream->uv.stream.write_queue_size == 0 &&
	    try_pieces(stream, pieces, count, &taken) != 0) {
		transport->accepted += taken;
		break_off(stream);
		return HPX_IO;
	}
	HPX_ASSERT(taken <= total);
	transport->accepted += taken;
	if (taken == total)
		return HPX_OK;
	enum hpx_status status = queue_rest(stream, pieces, count, taken, total - taken);
	if (status != HPX_OK) {
		/* The socket itself is not broken, so no reader would ever see an end. */
		transport->phase = HPX_TRANSPORT_BREAKING;
		hpx_transport_read_stop(transport);
		hpx_loop_later(transport->loop, &stream->broken);
	}
	return status;
}

static size_t stream_pending(const struct hpx_transport *transport)
{
	return ((const struct stream *)transport)->uv.stream.write_queue_size;
}

static void on_shut(uv_shutdown_t *request, int rc)
{
	/* A connection that could not be shut down is broken: reading and writing
	 * report that. */
	(void)request;
	(void)rc;
}

static void stream_shutdown(struct hpx_transport *transport)
{
	struct stream *stream = stream_of(transport);

	if (stream->shut)
		return;
	stream->shut = true;
	/* ENOTCONN, where the peer has reset the connection: see on_shut. */
	(void)uv_shutdown(&stream->shutdown, &stream->uv.stream, on_shut);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void stream_close(struct hpx_transport *transport)
{
	struct stream *stream = stream_of(transport);

	hpx_later_cancel(&stream->broken);
	uv_close(&stream->uv.handle, on_closed);
}

/* A unix socket has no reset: there the peer sees only that the end is missing. */
static void stream_abort(struct hpx_transport *transport)
{
	struct stream *stream = stream_of(transport);

	hpx_later_cancel(&stream->broken);
	if (stream->uv.handle.type != UV_TCP || stream->shut ||
	    uv_tcp_close_reset(&stream->uv.tcp, on_closed) != 0)
		uv_close(&stream->uv.handle, on_closed);
}

static bool stream_is_stale(struct hpx_transport *transport)
{
	uv_os_fd_t fd;
	char byte;

	if (uv_fileno(&stream_of(transport)->uv.handle, &fd) != 0)
		return true;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static bool stream_has_bytes(struct hpx_transport *transport)
{
	uv_os_fd_t fd;
	char byte;

	return uv_fileno(&stream_of(transport)->uv.handle, &fd) == 0 &&
	       recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

size_t hpx_stream_read_now(struct hpx_transport *transport, char *out, size_t size)
{
	uv_os_fd_t fd;

	HPX_ASSERT(size > 0);
	if (uv_fileno(&stream_of(transport)->uv.handle, &fd) != 0)
		return 0;
	ssize_t n = recv(fd, out, size, MSG_DONTWAIT);
	return n > 0 ? (size_t)n : 0;
}

static const struct hpx_transport_driver stream_driver = {
	.read_start = read_start,
	.read_stop = read_stop,
	.send = stream_send,
	.pending = stream_pending,
	.shutdown = stream_shutdown,
	.close = stream_close,
	.abort = stream_abort,
	.is_stale = stream_is_stale,
	.has_bytes = stream_has_bytes,
};

struct hpx_transport *hpx_stream_new(struct hpx_loop *loop, bool is_unix)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return NULL;
	stream->base.driver = &stream_driver;
	stream->base.loop = loop;
	stream->broken.run = tell_broken;
	strcpy(stream->base.peer, is_unix ? "unix" : "unknown");
	/* Neither opens a socket yet, so neither can fail. */
	if (is_unix)
		uv_pipe_init(&loop->uv, &stream->uv.pipe, 0);
	else
		uv_tcp_init(&loop->uv, &stream->uv.tcp);
	stream->uv.handle.data = stream;
	return &stream->base;
}

uv_stream_t *hpx_stream_uv(struct hpx_transport *transport)
{
	return &stream_of(transport)->uv.stream;
}

/* IPv4 within IPv6 ("::ffff:10.0.0.1", on a socket that serves both) is
 * shown as what it is, so that a list of trusted peers needs one form. */
static void name_peer(const struct sockaddr_storage *peer, char out[HPX_PEER_SIZE])
{
	char text[INET6_ADDRSTRLEN];
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
	int rc = UV_EINVAL;

	if (peer->ss_family == AF_INET)
		rc = uv_ip4_name((const struct sockaddr_in *)peer, text, sizeof(text));
	else if (peer->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		rc = uv_inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof(text));
	else if (peer->ss_family == AF_INET6)
		rc = uv_ip6_name(v6, text, sizeof(text));
	if (rc == 0)
		snprintf(out, HPX_PEER_SIZE, "%s", text);
}

enum hpx_status hpx_stream_connected(struct hpx_transport *transport)
{
	struct stream *stream = stream_of(transport);
	struct sockaddr_storage peer = { 0 }, self = { 0 };
	int peer_len = sizeof(peer), self_len = sizeof(self);

	if (stream->uv.handle.type != UV_TCP)
		return HPX_OK;
	if (uv_tcp_nodelay(&stream->uv.tcp, 1) != 0 ||
	    uv_tcp_getpeername(&stream->uv.tcp, (struct sockaddr *)&peer, &peer_len) != 0 ||
	    uv_tcp_getsockname(&stream->uv.tcp, (struct sockaddr *)&self, &self_len) != 0)
		return HPX_IO;
	name_peer(&peer, transport->peer);
	if (peer_len == self_len && memcmp(&peer, &self, (size_t)peer_len) == 0)
		return HPX_IO;
	return HPX_OK;
}

struct hpx_connect {
	uv_connect_t request;
	struct hpx_later failed; /* connecting failed at once; reported by a deferred call */
	struct hpx_transport *transport;
	/* NULL once the user has cancelled. */
	void (*on_connected)(void *user, enum hpx_status status,
			     struct hpx_transport *transport);
	void *user;
	int error;
};

static enum hpx_status status_of_connect(int rc)
{
	switch (rc) {
	case 0:
		return HPX_OK;
	case UV_ETIMEDOUT:
		return HPX_TIMEOUT;
	case UV_EMFILE:
	case UV_ENFILE:
		return HPX_FULL;
	default:
		return HPX_UNAVAILABLE;
	}
}

static void finish_connect(struct hpx_connect *connect, int rc)
{
	HPX_ASSERT(connect->on_connected != NULL);
	struct hpx_connect done = *connect;
	enum hpx_status status = status_of_connect(rc);

	free(connect);
	if (status == HPX_OK && hpx_stream_connected(done.transport) != HPX_OK)
		status = HPX_UNAVAILABLE;
	if (status != HPX_OK) {
		hpx_transport_close(done.transport);
		done.transport = NULL;
	}
	done.on_connected(done.user, status, done.transport);
}

static void on_connect(uv_connect_t *request, int rc)
{
	struct hpx_connect *connect = request->data;

	if (connect->on_connected == NULL)
		free(connect);
	else
		finish_connect(connect, rc);
}

static void tell_connect_failed(struct hpx_later *later)
{
	struct hpx_connect *connect =
		HPX_CONTAINER(later, struct hpx_connect, failed);

	finish_connect(connect, connect->error);
}

static int begin_connect(struct hpx_connect *connect, const struct sockaddr *address,
			 const char *unix_path)
{
	uv_stream_t *stream = hpx_stream_uv(connect->transport);

	connect->request.data = connect;
	if (unix_path == NULL)
		return uv_tcp_connect(&connect->request, (uv_tcp_t *)stream, address,
				      on_connect);
	uv_pipe_connect(&connect->request, (uv_pipe_t *)stream, unix_path, on_connect);
	return 0;
}

struct hpx_connect *
hpx_transport_connect(struct hpx_loop *loop, const struct sockaddr *address,
		      const char *unix_path,
		      void (*on_connected)(void *user, enum hpx_status status,
					   struct hpx_transport *transport),
		      void *user)
{
	struct hpx_connect *connect = calloc(1, sizeof(*connect));

	if (connect == NULL)
		return NULL;
	connect->transport = hpx_stream_new(loop, unix_path != NULL);
	if (connect->transport == NULL) {
		free(connect);
		return NULL;
	}
	connect->failed.run = tell_connect_failed;
	connect->on_connected = on_connected;
	connect->user = user;
	connect->error = begin_connect(connect, address, unix_path);
	if (connect->error != 0)
		hpx_loop_later(loop, &connect->failed);
	return connect;
}

void hpx_connect_cancel(struct hpx_connect *connect)
{
	connect->on_connected = NULL;
	hpx_transport_close(connect->transport);
	/* Otherwise closing calls on_connect, which frees. */
	if (connect->error != 0) {
		hpx_later_cancel(&connect->failed);
		free(connect);
	}
}
