/* One connection: connect, handshake, bytes, and two ways to end it. */
#include "verify/wire.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "verify/tls.h"

static enum hpx_status refuse(char problem[HPX_CONN_PROBLEM_SIZE], const char *what,
			      const char *cause)
{
	snprintf(problem, HPX_CONN_PROBLEM_SIZE, "%s%s", what, cause);
	return HPX_UNAVAILABLE;
}

enum hpx_status hpx_verify_conn_open(struct hpx_verify_conn *conn, const struct hpx_verify_host *host,
				     char problem[HPX_CONN_PROBLEM_SIZE])
{
	int on = 1;

	*conn = (struct hpx_verify_conn){ .fd = -1, .wants = POLLOUT };
	conn->fd = socket(host->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return refuse(problem, "no socket: ", strerror(errno));
	/* The last bytes of a crowd are to leave when they are written. */
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (host->tls != NULL) {
		conn->ssl = hpx_tls_new(host, conn->fd);
		if (conn->ssl == NULL) {
			hpx_verify_conn_close(conn);
			return refuse(problem, "no memory for TLS", "");
		}
	}
	if (connect(conn->fd, (const struct sockaddr *)&host->address, host->address_size) == 0 ||
	    errno == EINPROGRESS)
		return HPX_OK;
	enum hpx_status status = refuse(problem, "no connection: ", strerror(errno));
	hpx_verify_conn_close(conn);
	return status;
}

/* HPX_BUSY until the socket says how connecting ended. */
static enum hpx_status finish_connect(struct hpx_verify_conn *conn, char *problem)
{
	struct pollfd p = { .fd = conn->fd, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof(error);

	if (poll(&p, 1, 0) <= 0) {
		conn->wants = POLLOUT;
		return HPX_BUSY;
	}
	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error != 0)
		return refuse(problem, "no connection: ", strerror(error));
	conn->connected = true;
	return HPX_OK;
}

enum hpx_status hpx_verify_conn_connect(struct hpx_verify_conn *conn, char problem[HPX_CONN_PROBLEM_SIZE])
{
	enum hpx_status status = conn->connected ? HPX_OK : finish_connect(conn, problem);

	if (status == HPX_OK && conn->ssl != NULL && !conn->ready)
		status = hpx_tls_shake(conn, problem);
	conn->ready = status == HPX_OK;
	return status;
}

/* What a failed call of the socket's means. */
static enum hpx_status trouble(struct hpx_verify_conn *conn, short wants)
{
	if (errno != EAGAIN && errno != EINTR)
		return HPX_IO;
	conn->wants = wants;
	return HPX_BUSY;
}

enum hpx_status hpx_verify_conn_send(struct hpx_verify_conn *conn, struct hpx_span bytes, size_t *ret_sent)
{
	if (conn->ssl != NULL)
		return hpx_tls_send(conn, bytes, ret_sent);
	ssize_t n = send(conn->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
	if (n < 0)
		return trouble(conn, POLLOUT);
	*ret_sent = (size_t)n;
	return HPX_OK;
}

enum hpx_status hpx_verify_conn_receive(struct hpx_verify_conn *conn, void *bytes, size_t max,
					size_t *ret_len)
{
	if (conn->ssl != NULL)
		return hpx_tls_receive(conn, bytes, max, ret_len);
	ssize_t n = recv(conn->fd, bytes, max, 0);
	if (n < 0)
		return trouble(conn, POLLIN);
	if (n == 0)
		return HPX_CLOSED;
	*ret_len = (size_t)n;
	return HPX_OK;
}

enum hpx_status hpx_verify_conn_peek(struct hpx_verify_conn *conn)
{
	char byte;

	if (conn->ssl != NULL)
		return hpx_tls_peek(conn);
	ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK);
	if (n < 0)
		return trouble(conn, POLLIN);
	return n == 0 ? HPX_CLOSED : HPX_OK;
}

bool hpx_verify_conn_is_flushed(const struct hpx_verify_conn *conn)
{
	int waiting = 0;

	return ioctl(conn->fd, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}

void hpx_verify_conn_close(struct hpx_verify_conn *conn)
{
	if (conn->ssl != NULL)
		SSL_free(conn->ssl);
	conn->ssl = NULL;
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
}

void hpx_verify_conn_reset(struct hpx_verify_conn *conn)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (conn->fd >= 0)
		setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	hpx_verify_conn_close(conn);
}
