/* Connecting a plain transport. */
#include <stdlib.h>

#include "base/container.h"
#include "net/stream.h"

struct hpx_connect {
	uv_connect_t request;
	struct hpx_later failed; /* it failed at once; told later all the same */
	struct hpx_transport *transport;
	/* NULL once the user gave up. */
	void (*on_connected)(void *user, enum hpx_status status,
			     struct hpx_transport *transport);
	void *user;
	int error;
};

static enum hpx_status status_of(int rc)
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

static void finish(struct hpx_connect *connect, int rc)
{
	struct hpx_connect done = *connect;
	enum hpx_status status = status_of(rc);

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
		finish(connect, rc);
}

static void tell_failed(struct hpx_later *later)
{
	struct hpx_connect *connect =
		HPX_CONTAINER(later, struct hpx_connect, failed);

	finish(connect, connect->error);
}

static int begin(struct hpx_connect *connect, const struct sockaddr *address,
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
	connect->failed.run = tell_failed;
	connect->on_connected = on_connected;
	connect->user = user;
	connect->error = begin(connect, address, unix_path);
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
