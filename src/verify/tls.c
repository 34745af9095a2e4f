/* OpenSSL's results as statuses. Its error queue is emptied before each call,
 * because SSL_get_error looks into it. */
#include "verify/tls.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

static enum hpx_status refuse(char *problem, const char *what, const char *cause)
{
	snprintf(problem, HPX_CONN_PROBLEM_SIZE, "%s%s", what, cause);
	return HPX_INVALID;
}

static enum hpx_status trust(SSL_CTX *context, const struct hpx_verify_spec *spec, char *problem)
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
		return refuse(problem, "the system's certificates cannot be read; ",
			      "name a file with --cacert");
	}
	snprintf(path, sizeof(path), "%.*s", HPX_SPAN_ARG(spec->ca_file));
	if (SSL_CTX_load_verify_file(context, path) == 1)
		return HPX_OK;
	snprintf(problem, HPX_CONN_PROBLEM_SIZE, "no certificate can be read from %.*s (--cacert)",
		 HPX_SPAN_ARG(hpx_span_first(spec->ca_file, 100)));
	return HPX_INVALID;
}

enum hpx_status hpx_tls_context(const struct hpx_verify_spec *spec, SSL_CTX **ret_context,
				char problem[HPX_CONN_PROBLEM_SIZE])
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (context == NULL) {
		refuse(problem, "no memory for TLS", "");
		return HPX_NOMEM;
	}
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	enum hpx_status status = trust(context, spec, problem);
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

/* A name goes into the hello as well (SNI); an address must not. */
static bool expect(SSL *ssl, const char *name)
{
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

SSL *hpx_tls_new(const struct hpx_verify_host *host, int fd)
{
	SSL *ssl = SSL_new(host->tls);

	if (ssl == NULL)
		return NULL;
	if (SSL_set_fd(ssl, fd) == 1 && expect(ssl, host->name)) {
		SSL_set_connect_state(ssl);
		return ssl;
	}
	SSL_free(ssl);
	ERR_clear_error();
	return NULL;
}

/* What a call that gave `result` (not above 0) means. */
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

/* The certificate's fault first: it is what people can mend. */
static enum hpx_status refuse_shake(const struct hpx_verify_conn *conn, char *problem)
{
	long verdict = SSL_get_verify_result(conn->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	if (verdict != X509_V_OK)
		refuse(problem, "the certificate is not trusted: ",
		       X509_verify_cert_error_string(verdict));
	else
		refuse(problem, "no TLS: ", reason ? reason : "the connection was closed");
	return HPX_UNAVAILABLE;
}

enum hpx_status hpx_tls_shake(struct hpx_verify_conn *conn, char problem[HPX_CONN_PROBLEM_SIZE])
{
	ERR_clear_error();
	int result = SSL_do_handshake(conn->ssl);
	if (result == 1)
		return HPX_OK;
	enum hpx_status status = status_of(conn, result);
	if (status != HPX_BUSY)
		status = refuse_shake(conn, problem);
	ERR_clear_error();
	return status;
}

enum hpx_status hpx_tls_send(struct hpx_verify_conn *conn, struct hpx_span bytes, size_t *ret_sent)
{
	ERR_clear_error();
	int result = SSL_write_ex(conn->ssl, bytes.ptr, bytes.len, ret_sent);
	if (result == 1)
		return HPX_OK;
	enum hpx_status status = status_of(conn, result);
	return status == HPX_CLOSED ? HPX_IO : status;
}

enum hpx_status hpx_tls_receive(struct hpx_verify_conn *conn, void *bytes, size_t max,
				size_t *ret_len)
{
	ERR_clear_error();
	int result = SSL_read_ex(conn->ssl, bytes, max, ret_len);
	return result == 1 ? HPX_OK : status_of(conn, result);
}

/* Session tickets come before any answer; they are read here and are none. */
enum hpx_status hpx_tls_peek(struct hpx_verify_conn *conn)
{
	char byte;
	size_t len;

	ERR_clear_error();
	int result = SSL_peek_ex(conn->ssl, &byte, 1, &len);
	return result == 1 ? HPX_OK : status_of(conn, result);
}
