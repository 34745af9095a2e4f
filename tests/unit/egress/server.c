/* See server.h. */
#include "server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

static void leave(struct server *server)
{
	if (server->ssl != NULL)
		SSL_free(server->ssl);
	server->ssl = NULL;
	if (server->fd >= 0)
		close(server->fd);
	server->fd = -1;
}

static bool take_connection(struct server *server)
{
	int on = 1;

	leave(server);
	server->fd = accept(server->listening, NULL, NULL);
	if (server->fd < 0)
		return false;
	setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	server->connections++;
	return true;
}

static bool shake_hands(struct server *server)
{
	server->ssl = SSL_new(server->tls);
	return server->ssl != NULL && SSL_set_fd(server->ssl, server->fd) == 1 &&
	       SSL_accept(server->ssl) == 1;
}

static bool do_accept(struct server *server)
{
	return take_connection(server) && (server->tls == NULL || shake_hands(server));
}

static ssize_t get(struct server *server, char *bytes, size_t max)
{
	if (server->ssl != NULL)
		return SSL_read(server->ssl, bytes, (int)max);
	return recv(server->fd, bytes, max, 0);
}

/* A client may look at the certificate when the handshake is over. */
static bool accept_bad(struct server *server)
{
	char byte;

	return take_connection(server) && (!shake_hands(server) || get(server, &byte, 1) <= 0);
}

static bool put(struct server *server, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = server->ssl != NULL ? SSL_write(server->ssl, bytes, (int)len) : send(server->fd, bytes, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static bool put_pattern(struct server *server, size_t size)
{
	char bytes[251 * 64];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i % 251);
	while (size > 0) {
		size_t n = size < sizeof(bytes) ? size : sizeof(bytes);
		if (!put(server, bytes, n))
			return false;
		size -= n;
	}
	return true;
}

/* Byte by byte, so that nothing behind it is taken. */
static bool read_head(struct server *server)
{
	size_t len = 0;

	while (len + 1 < sizeof(server->head)) {
		if (get(server, server->head + len, 1) != 1)
			return false;
		server->head[++len] = '\0';
		if (len >= 4 && memcmp(server->head + len - 4, "\r\n\r\n", 4) == 0) {
			server->requests++;
			return true;
		}
	}
	return false;
}

static size_t announced(const char *head)
{
	const char *line = strcasestr(head, "\r\nContent-Length: ");

	return line == NULL ? 0 : (size_t)strtoull(line + 18, NULL, 10);
}

static bool read_request(struct server *server)
{
	static char bytes[65536];

	if (!read_head(server))
		return false;
	size_t left = announced(server->head);
	server->body_bytes = 0;
	server->in_pattern = true;
	while (left > 0) {
		ssize_t n = get(server, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
			server->in_pattern &= (unsigned char)bytes[i] ==
					      (server->body_bytes + (size_t)i) % 251;
		left -= (size_t)n;
		server->body_bytes += (size_t)n;
	}
	return true;
}

static bool read_end(struct server *server)
{
	char bytes[4096];

	while (get(server, bytes, sizeof(bytes)) > 0)
		;
	return true;
}

static bool keep(struct server *server)
{
	server->held[server->held_count++] = server->fd;
	server->fd = -1;
	return true;
}

static bool hold(struct server *server, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!take_connection(server))
			return false;
		keep(server);
	}
	return true;
}

static bool answer_held(struct server *server, const char *text)
{
	bool ok = true;

	while (ok && server->held_count > 0) {
		leave(server);
		server->fd = server->held[--server->held_count];
		ok = read_request(server) && put(server, text, strlen(text));
	}
	return ok;
}

static bool serve(struct server *server, const struct server_act *act)
{
	bool ok = true;

	for (size_t i = 0; i < act->size && ok; i++)
		ok = do_accept(server) && read_request(server) &&
		     put(server, act->text, strlen(act->text));
	return ok;
}

static bool polls(int fd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static bool do_reset(struct server *server)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(server->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	leave(server);
	return true;
}

static bool do_close(struct server *server)
{
	leave(server);
	return true;
}

static bool do_act(struct server *server, const struct server_act *act)
{
	switch (act->kind) {
	case SERVER_ACCEPT:
		return do_accept(server);
	case SERVER_ACCEPT_BAD:
		return accept_bad(server);
	case SERVER_HOLD:
		return hold(server, act->size);
	case SERVER_KEEP:
		return keep(server);
	case SERVER_ANSWER_HELD:
		return answer_held(server, act->text);
	case SERVER_SERVE:
		return serve(server, act);
	case SERVER_AWAIT:
		return polls(server->fd, TEST_PATIENCE_MS);
	case SERVER_READ:
		return read_request(server);
	case SERVER_READ_HEAD:
		return read_head(server);
	case SERVER_READ_END:
		return read_end(server);
	case SERVER_SEND:
		return put(server, act->text, strlen(act->text));
	case SERVER_SEND_BODY:
		return put_pattern(server, act->size);
	case SERVER_FAREWELL:
		return SSL_shutdown(server->ssl) >= 0;
	case SERVER_CLOSE:
		return do_close(server);
	case SERVER_RESET:
		return do_reset(server);
	case SERVER_WAIT:
		return sem_wait(&server->go) == 0;
	case SERVER_TELL:
		return sem_post(&server->told) == 0;
	case SERVER_NOBODY:
		return !polls(server->listening, 0);
	default:
		return false;
	}
}

static const char *const act_names[] = {
#define X(name) #name,
	SERVER_ACT_LIST(X)
#undef X
};

static void *play(void *arg)
{
	struct server *server = arg;

	for (const struct server_act *act = server->acts; act->kind != SERVER_END; act++) {
		if (do_act(server, act))
			continue;
		server->trouble = act_names[act->kind];
		break;
	}
	leave(server);
	while (server->held_count > 0)
		close(server->held[--server->held_count]);
	return NULL;
}

int server_listen(int backlog, unsigned *ret_port)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	*ret_port = ntohs(name.sin_port);
	return fd;
}

void server_start(struct server *server, const struct server_act *acts, SSL_CTX *tls)
{
	*server = (struct server){ .acts = acts, .fd = -1, .tls = tls };
	server->listening = server_listen(SERVER_HELD_MAX, &server->port);
	snprintf(server->url, sizeof(server->url), "http%s://127.0.0.1:%u",
		 tls != NULL ? "s" : "", server->port);
	sem_init(&server->go, 0, 0);
	sem_init(&server->told, 0, 0);
	/* All signals blocked: OpenSSL may write to whom has gone. */
	assert_status(hpx_thread_start(&server->thread, play, server), HPX_OK);
}

void server_stop(struct server *server)
{
	pthread_join(server->thread, NULL);
	close(server->listening);
	sem_destroy(&server->go);
	sem_destroy(&server->told);
	if (server->trouble != NULL)
		fail_msg("the server could not %s", server->trouble);
}

void server_go(struct server *server)
{
	sem_post(&server->go);
}

void server_wait(struct server *server)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_PATIENCE_MS / 1000;
	if (sem_timedwait(&server->told, &until) != 0)
		fail_msg("the server did not come to its TELL");
}
