/* A connection to the host under test: TCP, TLS by OpenSSL, bytes, and two ways
 * to end it. OpenSSL's error queue is emptied before each of its calls, because
 * SSL_get_error looks into it. */
#include "verify/verify_connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/status.h"

/* ---- TLS ---- */

static enum hpx_status refuse_tls(char *problem, const char *what, const char *cause)
{
	snprintf(problem, HPX_CONN_PROBLEM_SIZE, "%s%s", what, cause);
	return HPX_INVALID;
}

static enum hpx_status set_trust(SSL_CTX *context, const struct hpx_verify_spec *spec, char *problem)
{
	char path[4096];

	if (spec->insecure) {
		SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
		return HPX_OK;
	}
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (spec->ca_file.len == 0) {
		if (SSL_CTX_set_default_verify_paths(context) == 1)
			return HPX_OK;
		return refuse_tls(problem, "the system's certificates cannot be read; ",
				  "name a file with --cacert");
	}
	snprintf(path, sizeof(path), "%.*s", HPX_SPAN_ARG(spec->ca_file));
	if (SSL_CTX_load_verify_file(context, path) == 1)
		return HPX_OK;
	snprintf(problem, HPX_CONN_PROBLEM_SIZE, "no certificate can be read from %.*s (--cacert)",
		 HPX_SPAN_ARG(hpx_span_first(spec->ca_file, 100)));
	return HPX_INVALID;
}

static enum hpx_status tls_context(const struct hpx_verify_spec *spec, SSL_CTX **ret_context,
				   char problem[HPX_CONN_PROBLEM_SIZE])
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL) {
		refuse_tls(problem, "no memory for TLS", "");
		return HPX_NOMEM;
	}
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	enum hpx_status status = set_trust(context, spec, problem);
	if (status == HPX_OK)
		*ret_context = context;
	else
		SSL_CTX_free(context);
	ERR_clear_error();
	return status;
}

static bool is_address(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 ||
	       inet_pton(AF_INET6, name, &address) == 1;
}

/* A name is also sent in the ClientHello (SNI); an address must not be. */
static bool expect_peer(SSL *ssl, const char *name)
{
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static SSL *tls_new(const struct hpx_verify_host *host, int fd)
{
	SSL *ssl = SSL_new(host->tls);

	if (ssl == NULL)
		return NULL;
	if (SSL_set_fd(ssl, fd) == 1 && expect_peer(ssl, host->name)) {
		SSL_set_connect_state(ssl);
		return ssl;
	}
	SSL_free(ssl);
	ERR_clear_error();
	return NULL;
}

/* The status for a call of OpenSSL that returned `result` (0 or below). */
static enum hpx_status status_of(struct hpx_verify_conn *conn, int result)
{
	switch (SSL_get_error(conn->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		conn->wants = POLLIN;
		return HPX_BUSY;
	case SSL_ERROR_WANT_WRITE:
		conn->wants = POLLOUT;
		return HPX_BUSY;
	case SSL_ERROR_ZERO_RETURN:
		return HPX_CLOSED;
	default:
		return HPX_IO;
	}
}

/* The certificate's fault is told first: people can mend it. */
static enum hpx_status refuse_handshake(const struct hpx_verify_conn *conn, char *problem)
{
	long result = SSL_get_verify_result(conn->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	if (result != X509_V_OK)
		refuse_tls(problem, "the certificate is not trusted: ",
			   X509_verify_cert_error_string(result));
	else
		refuse_tls(problem, "no TLS: ", reason ? reason : "the connection was closed");
	return HPX_UNAVAILABLE;
}

static enum hpx_status tls_handshake(struct hpx_verify_conn *conn, char problem[HPX_CONN_PROBLEM_SIZE])
{
	ERR_clear_error();
	int result = SSL_do_handshake(conn->ssl);
	if (result == 1)
		return HPX_OK;
	enum hpx_status status = status_of(conn, result);
	if (status != HPX_BUSY)
		status = refuse_handshake(conn, problem);
	ERR_clear_error();
	return status;
}

static enum hpx_status tls_send(struct hpx_verify_conn *conn, struct hpx_span bytes, size_t *ret_sent)
{
	ERR_clear_error();
	int result = SSL_write_ex(conn->ssl, bytes.ptr, bytes.len, ret_sent);
	if (result == 1)
		return HPX_OK;
	enum hpx_status status = status_of(conn, result);
	return status == HPX_CLOSED ? HPX_IO : status;
}

static enum hpx_status tls_receive(struct hpx_verify_conn *conn, void *bytes, size_t max,
				   size_t *ret_len)
{
	ERR_clear_error();
	int result = SSL_read_ex(conn->ssl, bytes, max, ret_len);
	return result == 1 ? HPX_OK : status_of(conn, result);
}

/* Session tickets arrive before any answer; SSL_peek reads them, and they are no byte. */
static enum hpx_status tls_peek(struct hpx_verify_conn *conn)
{
	char byte;
	size_t len;

	ERR_clear_error();
	int result = SSL_peek_ex(conn->ssl, &byte, 1, &len);
	return result == 1 ? HPX_OK : status_of(conn, result);
}

/* ---- one connection ---- */

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

	HPX_ASSERT(host->address_size > 0);
	*conn = (struct hpx_verify_conn){ .fd = -1, .wants = POLLOUT };
	conn->fd = socket(host->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return refuse(problem, "no socket: ", strerror(errno));
	/* The last bytes of a batch must leave when they are written. */
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (host->tls != NULL) {
		conn->ssl = tls_new(host, conn->fd);
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

/* HPX_BUSY until the socket reports the result of connecting. */
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

	HPX_ASSERT(conn->fd >= 0);
	if (status == HPX_OK && conn->ssl != NULL && !conn->ready)
		status = tls_handshake(conn, problem);
	conn->ready = status == HPX_OK;
	return status;
}

/* The status for a failed call on the socket. */
static enum hpx_status status_of_errno(struct hpx_verify_conn *conn, short wants)
{
	if (errno != EAGAIN && errno != EINTR)
		return HPX_IO;
	conn->wants = wants;
	return HPX_BUSY;
}

enum hpx_status hpx_verify_conn_send(struct hpx_verify_conn *conn, struct hpx_span bytes, size_t *ret_sent)
{
	HPX_ASSERT(conn->ready && bytes.len > 0);
	if (conn->ssl != NULL)
		return tls_send(conn, bytes, ret_sent);
	ssize_t n = send(conn->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
	if (n < 0)
		return status_of_errno(conn, POLLOUT);
	*ret_sent = (size_t)n;
	return HPX_OK;
}

enum hpx_status hpx_verify_conn_receive(struct hpx_verify_conn *conn, void *bytes, size_t max,
					size_t *ret_len)
{
	HPX_ASSERT(conn->ready && max > 0);
	if (conn->ssl != NULL)
		return tls_receive(conn, bytes, max, ret_len);
	ssize_t n = recv(conn->fd, bytes, max, 0);
	if (n < 0)
		return status_of_errno(conn, POLLIN);
	if (n == 0)
		return HPX_CLOSED;
	*ret_len = (size_t)n;
	return HPX_OK;
}

enum hpx_status hpx_verify_conn_peek(struct hpx_verify_conn *conn)
{
	char byte;

	HPX_ASSERT(conn->ready);
	if (conn->ssl != NULL)
		return tls_peek(conn);
	ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK);
	if (n < 0)
		return status_of_errno(conn, POLLIN);
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

/* ---- the host ---- */

enum hpx_status hpx_verify_host_init(struct hpx_verify_host *host,
				     const struct hpx_verify_spec *spec,
				     char problem[HPX_CONN_PROBLEM_SIZE])
{
	*host = (struct hpx_verify_host){ .port = spec->port };
	snprintf(host->name, sizeof(host->name), "%.*s", HPX_SPAN_ARG(spec->host));
	return spec->tls ? tls_context(spec, &host->tls, problem) : HPX_OK;
}

void hpx_verify_host_done(struct hpx_verify_host *host)
{
	if (host->tls != NULL)
		SSL_CTX_free(host->tls);
	host->tls = NULL;
}

enum hpx_status hpx_verify_host_try(const struct hpx_verify_host *host, int64_t timeout_ms,
				    char problem[HPX_CONN_PROBLEM_SIZE])
{
	int64_t deadline_ms = hpx_clock_boot_ms() + timeout_ms;
	struct hpx_verify_host plain = *host;
	struct hpx_verify_conn conn;

	plain.tls = NULL;
	enum hpx_status status = hpx_verify_conn_open(&conn, &plain, problem);
	while (status == HPX_OK && (status = hpx_verify_conn_connect(&conn, problem)) == HPX_BUSY) {
		int64_t left_ms = deadline_ms - hpx_clock_boot_ms();
		struct pollfd p = { .fd = conn.fd, .events = POLLOUT };

		status = HPX_OK;
		if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0) {
			snprintf(problem, HPX_CONN_PROBLEM_SIZE, "no connection in time");
			status = HPX_UNAVAILABLE;
		}
	}
	hpx_verify_conn_close(&conn);
	return status;
}

static enum hpx_status pin_one_of(struct hpx_verify_host *host, const struct addrinfo *list,
				  int64_t timeout_ms, char *problem)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + timeout_ms;
	enum hpx_status status = HPX_UNAVAILABLE;

	for (const struct addrinfo *at = list; at != NULL && status != HPX_OK; at = at->ai_next) {
		struct hpx_verify_host tried = *host;

		memcpy(&tried.address, at->ai_addr, at->ai_addrlen);
		tried.address_size = at->ai_addrlen;
		/* A silent address may use up half of the time that is left. */
		int64_t left_ms = deadline_ms - hpx_clock_boot_ms();
		status = hpx_verify_host_try(&tried, at->ai_next ? left_ms / 2 : left_ms, problem);
		if (status == HPX_OK)
			*host = tried;
	}
	return status;
}

enum hpx_status hpx_verify_host_find(struct hpx_verify_host *host, int64_t timeout_ms,
				     char problem[HPX_CONN_PROBLEM_SIZE])
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char port[8];

	if (host->address_size > 0)
		return HPX_OK;
	snprintf(port, sizeof(port), "%u", host->port);
	int error = getaddrinfo(host->name, port, &hints, &list);
	if (error != 0) {
		snprintf(problem, HPX_CONN_PROBLEM_SIZE, "the name cannot be looked up: %s",
			 gai_strerror(error));
		return HPX_NOT_FOUND;
	}
	enum hpx_status status = pin_one_of(host, list, timeout_ms, problem);
	HPX_ASSERT(status != HPX_OK || host->address_size > 0);
	freeaddrinfo(list);
	return status;
}
