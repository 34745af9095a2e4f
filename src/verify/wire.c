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

static enum hpx_status refuse(char problem[HPX_WIRE_PROBLEM_SIZE], const char *what,
			      const char *cause)
{
	snprintf(problem, HPX_WIRE_PROBLEM_SIZE, "%s%s", what, cause);
	return HPX_UNAVAILABLE;
}

enum hpx_status hpx_wire_open(struct hpx_wire *wire, const struct hpx_wire_host *host,
			      char problem[HPX_WIRE_PROBLEM_SIZE])
{
	int on = 1;

	*wire = (struct hpx_wire){ .fd = -1, .wants = POLLOUT };
	wire->fd = socket(host->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (wire->fd < 0)
		return refuse(problem, "no socket: ", strerror(errno));
	/* The last bytes of a crowd are to leave when they are written. */
	setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (host->tls != NULL) {
		wire->ssl = hpx_tls_new(host, wire->fd);
		if (wire->ssl == NULL) {
			hpx_wire_close(wire);
			return refuse(problem, "no memory for TLS", "");
		}
	}
	if (connect(wire->fd, (const struct sockaddr *)&host->address, host->address_size) == 0 ||
	    errno == EINPROGRESS)
		return HPX_OK;
	enum hpx_status status = refuse(problem, "no connection: ", strerror(errno));
	hpx_wire_close(wire);
	return status;
}

/* HPX_BUSY until the socket says how connecting ended. */
static enum hpx_status finish_connect(struct hpx_wire *wire, char *problem)
{
	struct pollfd p = { .fd = wire->fd, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof(error);

	if (poll(&p, 1, 0) <= 0) {
		wire->wants = POLLOUT;
		return HPX_BUSY;
	}
	if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error != 0)
		return refuse(problem, "no connection: ", strerror(error));
	wire->connected = true;
	return HPX_OK;
}

enum hpx_status hpx_wire_connect(struct hpx_wire *wire, char problem[HPX_WIRE_PROBLEM_SIZE])
{
	enum hpx_status status = wire->connected ? HPX_OK : finish_connect(wire, problem);

	if (status == HPX_OK && wire->ssl != NULL && !wire->ready)
		status = hpx_tls_shake(wire, problem);
	wire->ready = status == HPX_OK;
	return status;
}

/* What a failed call of the socket's means. */
static enum hpx_status trouble(struct hpx_wire *wire, short wants)
{
	if (errno != EAGAIN && errno != EINTR)
		return HPX_IO;
	wire->wants = wants;
	return HPX_BUSY;
}

enum hpx_status hpx_wire_send(struct hpx_wire *wire, struct hpx_span bytes, size_t *ret_sent)
{
	if (wire->ssl != NULL)
		return hpx_tls_send(wire, bytes, ret_sent);
	ssize_t n = send(wire->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
	if (n < 0)
		return trouble(wire, POLLOUT);
	*ret_sent = (size_t)n;
	return HPX_OK;
}

enum hpx_status hpx_wire_receive(struct hpx_wire *wire, void *bytes, size_t max,
				 size_t *ret_len)
{
	if (wire->ssl != NULL)
		return hpx_tls_receive(wire, bytes, max, ret_len);
	ssize_t n = recv(wire->fd, bytes, max, 0);
	if (n < 0)
		return trouble(wire, POLLIN);
	if (n == 0)
		return HPX_CLOSED;
	*ret_len = (size_t)n;
	return HPX_OK;
}

enum hpx_status hpx_wire_peek(struct hpx_wire *wire)
{
	char byte;

	if (wire->ssl != NULL)
		return hpx_tls_peek(wire);
	ssize_t n = recv(wire->fd, &byte, 1, MSG_PEEK);
	if (n < 0)
		return trouble(wire, POLLIN);
	return n == 0 ? HPX_CLOSED : HPX_OK;
}

bool hpx_wire_is_flushed(const struct hpx_wire *wire)
{
	int waiting = 0;

	return ioctl(wire->fd, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}

void hpx_wire_close(struct hpx_wire *wire)
{
	if (wire->ssl != NULL)
		SSL_free(wire->ssl);
	wire->ssl = NULL;
	if (wire->fd >= 0)
		close(wire->fd);
	wire->fd = -1;
}

void hpx_wire_reset(struct hpx_wire *wire)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (wire->fd >= 0)
		setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	hpx_wire_close(wire);
}
