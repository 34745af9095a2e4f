/* Shared by the tests of verify: a description made in one line, and a server in a
 * thread that runs a function of the test and counts what it was sent. */
#ifndef HPX_TESTS_VERIFY_HELPER_H
#define HPX_TESTS_VERIFY_HELPER_H

#include <pthread.h>

#include <openssl/ssl.h>

#include "../test.h"
#include "config/report.h"
#include "verify/run.h"

/* Reached only when something that must come does not. */
#define TEST_PATIENCE_MS 60000

/* ---- descriptions ---- */

/* Reads a description's text; fails the test when it is mistaken. */
void spec_read(struct hpx_verify_spec *spec, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The remarks of a mistaken one, into `out`; fails the test when it is not. */
void spec_mistakes(const char *text, const struct hpx_verify_flags *flags, char *out,
		   size_t size);
/* Fails with both texts when `text` does not stand in `in`. */
void assert_contains(const char *in, const char *text);

/* ---- a server ---- */

struct test_server {
	void (*serve)(struct test_server *server);
	SSL_CTX *tls; /* NULL: in the clear */
	int listening;
	unsigned port;
	pthread_t thread;
	/* One connection. */
	int fd;
	SSL *ssl;
	/* What was seen. */
	size_t connections;
	size_t bytes;    /* of the last connection */
	bool reset;      /* its end */
	char head[4096]; /* of the last request */
	size_t at_once;  /* for the test's own use */
};

/* The server is zero but for `serve` and `tls`. */
void test_server_start(struct test_server *server);
/* Until its function ends by itself; or, for one that goes on accepting, makes
 * it end. */
void test_server_wait(struct test_server *server);
void test_server_stop(struct test_server *server);
/* For the function that serves; each fails by ending the connection. */
bool test_server_accept(struct test_server *server);
/* One request by its Content-Length. */
bool test_server_read(struct test_server *server);
bool test_server_put(struct test_server *server, const char *text);
bool test_server_put_bytes(struct test_server *server, const void *bytes, size_t len);
/* Counts all that comes, to the end, and how it ended. */
void test_server_read_end(struct test_server *server);
void test_server_leave(struct test_server *server);

/* A context with a self-signed certificate, also written to `path`. */
SSL_CTX *server_certificate(const char *subject, const char *path);

#endif
