/* TLS on a wire, by OpenSSL. Only wire.c and host.c use it. */
#ifndef HPX_VERIFY_TLS_H
#define HPX_VERIFY_TLS_H

#include "verify/wire.h"

/* The system's certificates, or the file's; HPX_INVALID: `problem` says why. */
enum hpx_status hpx_tls_context(const struct hpx_verify_spec *spec, SSL_CTX **ret_context,
				char problem[HPX_CONN_PROBLEM_SIZE]);
/* Will check that the other side is the host of that name. NULL: no memory. */
SSL *hpx_tls_new(const struct hpx_verify_host *host, int fd);

/* As the calls of wire.h. */
enum hpx_status hpx_tls_shake(struct hpx_verify_conn *conn, char problem[HPX_CONN_PROBLEM_SIZE]);
enum hpx_status hpx_tls_send(struct hpx_verify_conn *conn, struct hpx_span bytes, size_t *ret_sent);
enum hpx_status hpx_tls_receive(struct hpx_verify_conn *conn, void *bytes, size_t max,
				size_t *ret_len);
enum hpx_status hpx_tls_peek(struct hpx_verify_conn *conn);

#endif
