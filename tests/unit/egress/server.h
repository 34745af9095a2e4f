/* A server that does exactly what a script says, in a thread of its own, with
 * blocking sockets, over TLS where it is given a certificate; and writes down
 * what it was asked. */
#ifndef HPX_TESTS_EGRESS_SERVER_H
#define HPX_TESTS_EGRESS_SERVER_H

#include <pthread.h>
#include <semaphore.h>

#include <openssl/ssl.h>

#include "../test.h"

/* Long enough for the slowest build on the slowest machine: reached only when
 * something that must come does not. */
#define TEST_PATIENCE_MS 60000

#define SERVER_HELD_MAX 64

#define SERVER_ACT_LIST(X) \
	X(END)         /* of the script */ \
	X(ACCEPT)      /* closes the connection before; with TLS, shakes hands */ \
	X(ACCEPT_BAD)  /* no handshake, or no byte behind it, must come */ \
	X(HOLD)        /* accepts `size` connections before any is answered */ \
	X(KEEP)        /* leaves the connection open until the end */ \
	X(ANSWER_HELD) /* one request on each, each with the text */ \
	X(SERVE)       /* `size` connections, one request each, with the text */ \
	X(AWAIT)       /* until bytes have come, which are not read */ \
	X(READ)        /* one whole request, by its Content-Length */ \
	X(READ_HEAD) \
	X(READ_END)  /* to the end of the stream */ \
	X(SEND)      /* the text */ \
	X(SEND_BODY) /* `size` bytes of the pattern i % 251 */ \
	X(FAREWELL)  /* the closing alert of TLS */ \
	X(CLOSE) \
	X(RESET) \
	X(WAIT)   /* for server_go */ \
	X(TELL)   /* lets server_wait return */ \
	X(NOBODY) /* nobody else is waiting to be accepted */

enum server_act_kind {
#define X(name) SERVER_##name,
	SERVER_ACT_LIST(X)
#undef X
};

struct server_act {
	enum server_act_kind kind;
	const char *text;
	size_t size;
};

struct server {
	const struct server_act *acts;
	SSL_CTX *tls; /* NULL: in the clear */
	SSL *ssl;
	int listening;
	int fd;
	int held[SERVER_HELD_MAX];
	size_t held_count;
	pthread_t thread;
	sem_t go;
	sem_t told;
	unsigned port;
	char url[64]; /* without a path */
	/* To be looked at after server_stop. */
	unsigned connections;
	unsigned requests;
	size_t body_bytes;   /* of the last request */
	bool in_pattern;     /* the body is i % 251 */
	char head[4096];     /* of the last request */
	const char *trouble; /* an act that could not be done */
};

/* The acts must stay until server_stop. */
void server_start(struct server *server, const struct server_act *acts, SSL_CTX *tls);
/* Waits for the script's end; fails the test when an act failed. */
void server_stop(struct server *server);
void server_go(struct server *server);
void server_wait(struct server *server);

/* A socket that listens on 127.0.0.1, and its port; with a negative backlog it
 * only holds the port. */
int server_listen(int backlog, unsigned *ret_port);

/* A context with a fresh self-signed certificate for that address or name
 * ("IP:127.0.0.1"), which is also written to `path` as PEM. */
SSL_CTX *server_certificate(const char *subject, const char *path);

#endif
