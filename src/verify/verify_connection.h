/* A connection to the one host that is verified: non-blocking bytes, in the
 * clear or over TLS. The host's address is looked up once and stays for the run;
 * no proxy, no other host. A caller that uses TLS ignores SIGPIPE. */
#ifndef HPX_VERIFY_VERIFY_CONNECTION_H
#define HPX_VERIFY_VERIFY_CONNECTION_H

#include <sys/socket.h>

#include <openssl/ssl.h>

#include "verify/spec.h"

#define HPX_CONN_PROBLEM_SIZE 160

struct hpx_verify_host {
	char name[256]; /* without brackets */
	uint16_t port;
	struct sockaddr_storage address; /* pinned */
	socklen_t address_size;          /* 0: not yet looked up */
	SSL_CTX *tls;                    /* NULL: in the clear */
};

/* Reads the certificates. HPX_INVALID: `problem` says what is wrong. */
enum hpx_status hpx_verify_host_init(struct hpx_verify_host *host,
				     const struct hpx_verify_spec *spec,
				     char problem[HPX_CONN_PROBLEM_SIZE]);
void hpx_verify_host_done(struct hpx_verify_host *host);
/* Looks the name up and pins the first address that accepts a connection (which
 * is closed again). HPX_NOT_FOUND: no such name; HPX_UNAVAILABLE: no address
 * accepts a connection within that time. Does nothing once an address is pinned. */
enum hpx_status hpx_verify_host_find(struct hpx_verify_host *host, int64_t timeout_ms,
				     char problem[HPX_CONN_PROBLEM_SIZE]);
/* Whether the pinned address accepts a connection (TCP alone), which is closed. */
enum hpx_status hpx_verify_host_try(const struct hpx_verify_host *host, int64_t timeout_ms,
				    char problem[HPX_CONN_PROBLEM_SIZE]);

struct hpx_verify_conn {
	int fd; /* -1: closed */
	SSL *ssl;
	bool connected; /* TCP */
	bool ready;     /* TCP, and TLS where the host has it */
	short wants;    /* what the last HPX_BUSY waits for: POLLIN, POLLOUT */
};

/* Begins to connect. The functions below return HPX_BUSY where they would block. */
enum hpx_status hpx_verify_conn_open(struct hpx_verify_conn *conn,
				     const struct hpx_verify_host *host,
				     char problem[HPX_CONN_PROBLEM_SIZE]);
/* HPX_OK: the connection is ready. HPX_UNAVAILABLE: `problem` says why not. */
enum hpx_status hpx_verify_conn_connect(struct hpx_verify_conn *conn,
					char problem[HPX_CONN_PROBLEM_SIZE]);
/* HPX_IO: the connection is broken. */
enum hpx_status hpx_verify_conn_send(struct hpx_verify_conn *conn, struct hpx_span bytes,
				     size_t *ret_sent);
/* HPX_CLOSED: the proper end of the stream. HPX_IO: reset, or cut off. */
enum hpx_status hpx_verify_conn_receive(struct hpx_verify_conn *conn, void *bytes, size_t max,
					size_t *ret_len);
/* HPX_OK: a byte has arrived. The byte is not consumed. */
enum hpx_status hpx_verify_conn_peek(struct hpx_verify_conn *conn);
/* Whether the peer's machine has acknowledged all that was sent. */
bool hpx_verify_conn_is_flushed(const struct hpx_verify_conn *conn);

void hpx_verify_conn_close(struct hpx_verify_conn *conn);
/* Ends the connection as a crashed client does: RST, no close_notify of TLS. */
void hpx_verify_conn_reset(struct hpx_verify_conn *conn);

#endif
