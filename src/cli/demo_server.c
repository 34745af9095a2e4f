/* Accepting, counting and ending connections. The connection's thread closes
 * its socket under the lock, so that cut() never touches a number that the
 * system has given to somebody else meanwhile. */
#include "cli/demo_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
	struct hpx_demo_server *server;
	int fd;
};

static int bind_to(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int yes = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 128) == 0)
		return fd;
	close(fd);
	return -1;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in at = { 0 };
	socklen_t size = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		return 0;
	return ntohs(at.sin_port);
}

static int bind_near(uint16_t wanted)
{
	int fd = wanted != 0 ? bind_to(wanted) : -1;

	return fd >= 0 ? fd : bind_to(0);
}

uint16_t hpx_demo_port(uint16_t wanted)
{
	int fd = bind_near(wanted);

	if (fd < 0)
		return 0;
	uint16_t port = port_of(fd);
	close(fd);
	return port;
}

static void *run_connection(void *arg)
{
	struct connection *connection = arg;
	struct hpx_demo_server *server = connection->server;
	int fd = connection->fd;

	free(connection);
	server->serve(server->user, fd);

	pthread_mutex_lock(&server->lock);
	for (unsigned i = 0; i < server->count; i++) {
		if (server->fds[i] == fd) {
			server->fds[i] = server->fds[--server->count];
			break;
		}
	}
	close(fd);
	if (server->count == 0)
		pthread_cond_broadcast(&server->quiet);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

/* Called with the lock held; false: the connection is not taken. */
static bool start_connection(struct hpx_demo_server *server, int fd)
{
	struct connection *connection;
	pthread_t thread;

	if (server->stopping || server->count == HPX_DEMO_CONNECTIONS_MAX)
		return false;
	connection = malloc(sizeof(*connection));
	if (connection == NULL)
		return false;
	*connection = (struct connection){ server, fd };
	if (pthread_create(&thread, NULL, run_connection, connection) != 0) {
		free(connection);
		return false;
	}
	pthread_detach(thread);
	server->fds[server->count++] = fd;
	return true;
}

static void *run_acceptor(void *arg)
{
	struct hpx_demo_server *server = arg;

	for (;;) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);

		pthread_mutex_lock(&server->lock);
		bool stopping = server->stopping;
		bool taken = fd >= 0 && start_connection(server, fd);
		pthread_mutex_unlock(&server->lock);
		if (fd >= 0 && !taken)
			close(fd);
		if (stopping)
			return NULL;
		/* Out of descriptors: a moment, rather than a spinning core. */
		if (fd < 0)
			poll(NULL, 0, 10);
	}
}

enum hpx_status hpx_demo_server_start(struct hpx_demo_server *server, uint16_t port,
				      void (*serve)(void *user, int fd), void *user)
{
	*server = (struct hpx_demo_server){ .fd = bind_near(port), .serve = serve, .user = user };
	if (server->fd < 0)
		return HPX_UNAVAILABLE;
	server->port = port_of(server->fd);
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->quiet, NULL);
	if (pthread_create(&server->acceptor, NULL, run_acceptor, server) == 0)
		return HPX_OK;
	close(server->fd);
	return HPX_NOMEM;
}

static void cut_locked(struct hpx_demo_server *server)
{
	for (unsigned i = 0; i < server->count; i++)
		shutdown(server->fds[i], SHUT_RDWR);
}

void hpx_demo_server_cut(struct hpx_demo_server *server)
{
	pthread_mutex_lock(&server->lock);
	cut_locked(server);
	pthread_mutex_unlock(&server->lock);
}

void hpx_demo_server_stop(struct hpx_demo_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	pthread_mutex_unlock(&server->lock);
	/* Wakes accept(2). */
	shutdown(server->fd, SHUT_RDWR);
	pthread_join(server->acceptor, NULL);

	pthread_mutex_lock(&server->lock);
	cut_locked(server);
	while (server->count > 0)
		pthread_cond_wait(&server->quiet, &server->lock);
	pthread_mutex_unlock(&server->lock);
	close(server->fd);
	pthread_cond_destroy(&server->quiet);
	pthread_mutex_destroy(&server->lock);
}
