/* The demo's server: blocking sockets on 127.0.0.1, the project's HTTP reader, a thread
 * for each connection and one request per connection. The connection's thread closes its
 * socket under the lock, so that a cut never touches a number that the system has given
 * to another file meanwhile. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/demo.h"
#include "http/problem.h"
#include "http/write.h"

#define HEAD_MAX ((size_t)32 * 1024)
#define PIECE 8192
/* For a peer that stands still. */
#define PEER_TIMEOUT_S 5

/* ---- one request and its answer ---- */

/* Appends what has come; false at the end of the stream, or of the peer's time. */
static bool receive(int fd, struct hpx_buffer *into)
{
	ssize_t n;

	if (hpx_buffer_reserve(into, PIECE) != HPX_OK)
		return false;
	do
		n = recv(fd, into->ptr + into->len, PIECE, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	into->len += (size_t)n;
	return true;
}

static bool read_head(int fd, struct hpx_http_reader *reader, struct hpx_demo_request *request,
		      size_t *ret_used)
{
	for (;;) {
		switch (hpx_http_read_head(reader, hpx_buffer_span(&request->bytes),
					   &request->arena, &request->head, ret_used)) {
		case HPX_HTTP_DONE:
			return true;
		case HPX_HTTP_BAD:
			return false;
		case HPX_HTTP_MORE:
			if (!receive(fd, &request->bytes))
				return false;
		}
	}
}

/* `rest`: what came behind the head. `piece` holds what comes later. */
static bool read_body(int fd, struct hpx_http_reader *reader, struct hpx_span rest,
		      struct hpx_buffer *piece, struct hpx_buffer *body)
{
	for (;;) {
		struct hpx_span data = { NULL, 0 };
		size_t used = 0;
		enum hpx_http_progress progress =
			hpx_http_read_body(reader, rest, &data, &used);

		if (progress == HPX_HTTP_BAD || hpx_buffer_append(body, data) != HPX_OK)
			return false;
		if (progress == HPX_HTTP_DONE)
			return true;
		rest = hpx_span_skip(rest, used);
		if (rest.len > 0)
			continue;
		piece->len = 0;
		if (!receive(fd, piece))
			return false;
		rest = hpx_buffer_span(piece);
	}
}

static bool read_request(int fd, struct hpx_demo_request *request)
{
	const struct hpx_http_limits limits = { .head_bytes_max = HEAD_MAX,
						.fields_max = HPX_HTTP_FIELDS_MAX };
	struct hpx_http_reader reader;
	struct hpx_buffer piece;
	size_t used = 0;

	hpx_http_reader_request(&reader, &limits);
	if (!read_head(fd, &reader, request, &used))
		return false;
	hpx_buffer_init(&piece, PIECE);
	bool whole = read_body(fd, &reader, hpx_span_skip(hpx_buffer_span(&request->bytes), used),
			       &piece, &request->body);
	hpx_buffer_done(&piece);
	return whole;
}

static enum hpx_status print_answer(const struct hpx_demo_answer *answer, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_write_status_line(
		out, answer->status, hpx_span_of(hpx_reason_phrase(answer->status)));

	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_buffer_span(&answer->fields));
	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Content-Length", answer->body.len);
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Connection", "close");
	if (status == HPX_OK)
		status = hpx_write_head_end(out);
	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_buffer_span(&answer->body));
	return status;
}

/* A caller that has gone does not get its answer: that is what the demo is about. */
static void send_answer(int fd, const struct hpx_demo_answer *answer)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, HEAD_MAX + HPX_DEMO_BODY_MAX);
	if (print_answer(answer, &out) == HPX_OK) {
		struct hpx_span rest = hpx_buffer_span(&out);
		ssize_t n = 0;

		while (rest.len > 0 && (n >= 0 || errno == EINTR)) {
			n = send(fd, rest.ptr, rest.len, MSG_NOSIGNAL);
			rest = hpx_span_skip(rest, n > 0 ? (size_t)n : 0);
		}
	}
	hpx_buffer_done(&out);
}

static void serve(struct hpx_demo_server *server, int fd)
{
	const struct timeval timeout = { .tv_sec = PEER_TIMEOUT_S };
	struct hpx_demo_request request = { .head = { .status = 0 } };
	struct hpx_demo_answer answer = { .status = 0 };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	hpx_buffer_init(&request.bytes, HEAD_MAX + PIECE);
	hpx_buffer_init(&request.body, HPX_DEMO_BODY_MAX);
	hpx_arena_init(&request.arena, 2 * HEAD_MAX);
	hpx_buffer_init(&answer.fields, HEAD_MAX);
	hpx_buffer_init(&answer.body, HPX_DEMO_BODY_MAX);
	if (read_request(fd, &request))
		server->handle(server->user, &request, &answer);
	if (answer.status != 0)
		send_answer(fd, &answer);
	hpx_buffer_done(&answer.body);
	hpx_buffer_done(&answer.fields);
	hpx_arena_done(&request.arena);
	hpx_buffer_done(&request.body);
	hpx_buffer_done(&request.bytes);
}

/* ---- connections ---- */

struct demo_connection {
	struct hpx_demo_server *server;
	int fd;
};

/* With the lock held. */
static void forget_connection(struct hpx_demo_server *server, int fd)
{
	unsigned i = 0;

	while (i < server->count && server->fds[i] != fd)
		i++;
	HPX_ASSERT(i < server->count);
	server->fds[i] = server->fds[--server->count];
	if (server->count == 0)
		pthread_cond_broadcast(&server->quiet);
}

static void *run_connection(void *arg)
{
	struct demo_connection connection = *(struct demo_connection *)arg;

	free(arg);
	serve(connection.server, connection.fd);
	pthread_mutex_lock(&connection.server->lock);
	forget_connection(connection.server, connection.fd);
	close(connection.fd);
	pthread_mutex_unlock(&connection.server->lock);
	return NULL;
}

/* With the lock held; false: the connection is not taken. */
static bool start_connection(struct hpx_demo_server *server, int fd)
{
	struct demo_connection *connection;
	pthread_t thread;

	HPX_ASSERT(server->count <= HPX_DEMO_CONNECTIONS_MAX);
	if (server->stopping || server->count == HPX_DEMO_CONNECTIONS_MAX)
		return false;
	connection = malloc(sizeof(*connection));
	if (connection == NULL)
		return false;
	*connection = (struct demo_connection){ server, fd };
	if (pthread_create(&thread, NULL, run_connection, connection) != 0) {
		free(connection);
		return false;
	}
	pthread_detach(thread);
	server->fds[server->count++] = fd;
	return true;
}

static void *run_acceptor(void *arg)
{
	struct hpx_demo_server *server = arg;

	for (;;) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);

		pthread_mutex_lock(&server->lock);
		bool stopping = server->stopping;
		bool taken = fd >= 0 && start_connection(server, fd);
		pthread_mutex_unlock(&server->lock);
		if (fd >= 0 && !taken)
			close(fd);
		if (stopping)
			return NULL;
		/* Out of descriptors: a moment, rather than a spinning core. */
		if (fd < 0)
			poll(NULL, 0, 10);
	}
}

/* ---- the listening socket ---- */

static int bind_to(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int yes = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 128) == 0)
		return fd;
	close(fd);
	return -1;
}

static int bind_near(uint16_t wanted)
{
	int fd = wanted != 0 ? bind_to(wanted) : -1;

	return fd >= 0 ? fd : bind_to(0);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in at = { 0 };
	socklen_t size = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		return 0;
	return ntohs(at.sin_port);
}

uint16_t hpx_demo_port(uint16_t wanted)
{
	int fd = bind_near(wanted);

	if (fd < 0)
		return 0;
	uint16_t port = port_of(fd);
	close(fd);
	return port;
}

enum hpx_status hpx_demo_server_start(struct hpx_demo_server *server, uint16_t port)
{
	HPX_ASSERT(server->handle != NULL && server->count == 0);
	server->fd = bind_near(port);
	if (server->fd < 0)
		return HPX_UNAVAILABLE;
	server->port = port_of(server->fd);
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->quiet, NULL);
	if (pthread_create(&server->acceptor, NULL, run_acceptor, server) == 0)
		return HPX_OK;
	close(server->fd);
	return HPX_NOMEM;
}

static void cut_locked(struct hpx_demo_server *server)
{
	for (unsigned i = 0; i < server->count; i++)
		shutdown(server->fds[i], SHUT_RDWR);
}

void hpx_demo_server_cut(struct hpx_demo_server *server)
{
	pthread_mutex_lock(&server->lock);
	cut_locked(server);
	pthread_mutex_unlock(&server->lock);
}

void hpx_demo_server_stop(struct hpx_demo_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	pthread_mutex_unlock(&server->lock);
	/* Wakes accept(2). */
	shutdown(server->fd, SHUT_RDWR);
	pthread_join(server->acceptor, NULL);

	pthread_mutex_lock(&server->lock);
	cut_locked(server);
	while (server->count > 0)
		pthread_cond_wait(&server->quiet, &server->lock);
	pthread_mutex_unlock(&server->lock);
	close(server->fd);
	pthread_cond_destroy(&server->quiet);
	pthread_mutex_destroy(&server->lock);
}
