/* Accepting connections on a loop. Running out of descriptors is libuv's
 * business: it keeps a spare one, and closes with it whom it cannot serve. */
#include "net/listener.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream.h"

#define BACKLOG 1024
/* A connection that found no memory stays with libuv, which accepts no
 * further one until it is taken; it is tried again after this long. */
#define RETRY_MS 100

struct hpx_listener {
	struct hpx_loop *loop;
	bool is_unix;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	uv_timer_t retry;
	unsigned open_handles;
	void (*on_accept)(void *user, struct hpx_transport *transport);
	void *user;
};

static void take_connection(struct hpx_listener *listener);

static void on_retry(uv_timer_t *timer)
{
	take_connection(timer->data);
}

static void take_connection(struct hpx_listener *listener)
{
	struct hpx_transport *transport = hpx_stream_new(listener->loop, listener->is_unix);

	if (transport == NULL) {
		uv_timer_start(&listener->retry, on_retry, RETRY_MS, 0);
		return;
	}
	/* Who has gone again by now is nobody's loss. */
	if (uv_accept(&listener->uv.stream, hpx_stream_uv(transport)) != 0 ||
	    hpx_stream_connected(transport) != HPX_OK) {
		hpx_transport_close(transport);
		return;
	}
	listener->on_accept(listener->user, transport);
}

static void on_connection(uv_stream_t *stream, int rc)
{
	/* A failed accept concerns one connection, which is gone. */
	if (rc == 0)
		take_connection(stream->data);
}

static void on_closed(uv_handle_t *handle)
{
	struct hpx_listener *listener = handle->data;

	if (--listener->open_handles == 0)
		free(listener);
}

void hpx_listener_stop(struct hpx_listener *listener)
{
	uv_close(&listener->uv.handle, on_closed);
	uv_close((uv_handle_t *)&listener->retry, on_closed);
}

static bool is_unix_socket(int fd)
{
	struct sockaddr_storage name = { 0 };
	socklen_t len = sizeof(name);

	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	       name.ss_family == AF_UNIX;
}

static int adopt(struct hpx_listener *listener, int fd)
{
	uv_loop_t *uv = &listener->loop->uv;
	int rc;

	if (listener->is_unix) {
		uv_pipe_init(uv, &listener->uv.pipe, 0);
		rc = uv_pipe_open(&listener->uv.pipe, fd);
	} else {
		uv_tcp_init(uv, &listener->uv.tcp);
		rc = uv_tcp_open(&listener->uv.tcp, fd);
	}
	listener->uv.handle.data = listener;
	uv_timer_init(uv, &listener->retry);
	listener->retry.data = listener;
	listener->open_handles = 2;
	if (rc != 0)
		close(fd);
	return rc;
}

enum hpx_status hpx_listener_start(struct hpx_loop *loop, int fd,
				   void (*on_accept)(void *user,
						     struct hpx_transport *transport),
				   void *user, struct hpx_listener **ret_listener)
{
	struct hpx_listener *listener = calloc(1, sizeof(*listener));

	if (listener == NULL) {
		close(fd);
		return HPX_NOMEM;
	}
	listener->loop = loop;
	listener->is_unix = is_unix_socket(fd);
	listener->on_accept = on_accept;
	listener->user = user;
	if (adopt(listener, fd) != 0 ||
	    uv_listen(&listener->uv.stream, BACKLOG, on_connection) != 0) {
		hpx_listener_stop(listener);
		return HPX_IO;
	}
	*ret_listener = listener;
	return HPX_OK;
}
