/* A listening socket on 127.0.0.1 and a thread for each of a bounded number of
 * connections: what the demo's payments API and its flaky network stand on. */
#ifndef HPX_CLI_DEMO_SERVER_H
#define HPX_CLI_DEMO_SERVER_H

#include <pthread.h>

#include "base/span.h"
#include "base/status.h"

/* More than the retry storm needs; past it, new connections are closed. */
#define HPX_DEMO_CONNECTIONS_MAX 192

struct hpx_demo_server {
	uint16_t port;
	/* The rest is the server's own. */
	int fd;
	pthread_t acceptor;
	pthread_mutex_t lock;
	pthread_cond_t quiet; /* no connection is left */
	int fds[HPX_DEMO_CONNECTIONS_MAX];
	unsigned count;
	bool stopping;
	void (*serve)(void *user, int fd); /* on the connection's own thread */
	void *user;
};

/* Listens on `port` where it is free (0, or taken: on any other). */
enum hpx_status hpx_demo_server_start(struct hpx_demo_server *server, uint16_t port,
				      void (*serve)(void *user, int fd), void *user);
/* Breaks every connection that is open now, as a crash in the way would. */
void hpx_demo_server_cut(struct hpx_demo_server *server);
/* No connection is taken any more, the open ones are broken and waited for. */
void hpx_demo_server_stop(struct hpx_demo_server *server);

/* The wanted port if nobody listens there, otherwise a free one; 0: none. */
uint16_t hpx_demo_port(uint16_t wanted);

#endif
