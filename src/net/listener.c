/* Listening sockets. First how they are made, before any loop runs: plain system
 * calls, and a sentence with the remedy when one fails. Then accepting connections
 * on a loop. Running out of descriptors is libuv's business: it keeps a spare one,
 * and closes with it the connections that it cannot serve. */
#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status.h"
#include "net/transport_driver.h"

#define BACKLOG 1024
#define TYPE_FLAGS (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
/* The bits that the mode of a unix socket, 0660, must not have. */
#define UNIX_UMASK 0117

static enum hpx_status explain(int error, const struct hpx_address *address, char *problem)
{
	const char *remedy = "";

	if (error == EADDRINUSE)
		remedy = "; another process listens there: stop it or choose another port";
	else if (error == EACCES)
		remedy = "; this needs the right to it: choose a port above 1023, or a "
			 "folder this user may write to";
	else if (error == EADDRNOTAVAIL)
		remedy = "; no interface of this machine has that address";
	snprintf(problem, HPX_PROBLEM_SIZE, "cannot listen on %s: %s%s", address->text,
		 uv_strerror(uv_translate_sys_error(error)), remedy);
	return error == EADDRINUSE ? HPX_BUSY : HPX_IO;
}

/* `share`: other sockets of this user may be bound to the same port. Returns
 * the descriptor, or the negative errno. */
static int open_tcp(const struct sockaddr *address, socklen_t len, bool share)
{
	int on = 1;
	int fd = socket(address->sa_family, TYPE_FLAGS, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    (!share || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0) &&
	    bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int error = errno;
	close(fd);
	return -error;
}

static enum hpx_status open_host(const struct hpx_address *address, bool share, int *ret_fd,
				 char *problem)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char port[8];
	int fd = -EADDRNOTAVAIL;

	snprintf(port, sizeof(port), "%u", (unsigned)address->port);
	int rc = getaddrinfo(address->host, port, &hints, &found);
	if (rc != 0) {
		snprintf(problem, HPX_PROBLEM_SIZE, "cannot listen on %s: %s",
			 address->text, gai_strerror(rc));
		return HPX_UNAVAILABLE;
	}
	for (struct addrinfo *one = found; one != NULL && fd < 0; one = one->ai_next)
		fd = open_tcp(one->ai_addr, one->ai_addrlen, share);
	freeaddrinfo(found);
	if (fd < 0)
		return explain(-fd, address, problem);
	*ret_fd = fd;
	return HPX_OK;
}

static int bind_unix(int fd, const struct sockaddr_un *name)
{
	mode_t before = umask(UNIX_UMASK);
	int rc = bind(fd, (const struct sockaddr *)name, sizeof(*name));
	int error = errno;

	umask(before);
	return rc == 0 ? 0 : error;
}

/* A socket file outlives its process. A connection shows whether a process still
 * listens: refused means that none does. Returns 0 or the errno to report. */
static int remove_stale(const struct sockaddr_un *name)
{
	struct stat found;

	if (lstat(name->sun_path, &found) != 0)
		return errno == ENOENT ? 0 : errno;
	if (!S_ISSOCK(found.st_mode))
		return EEXIST;
	int fd = socket(AF_UNIX, TYPE_FLAGS, 0);
	if (fd < 0)
		return errno;
	int rc = connect(fd, (const struct sockaddr *)name, sizeof(*name));
	int error = errno;
	close(fd);
	if (rc == 0 || error == EAGAIN)
		return EADDRINUSE;
	if (error != ECONNREFUSED)
		return error;
	return unlink(name->sun_path) == 0 ? 0 : errno;
}

static enum hpx_status open_unix(const struct hpx_address *address, int *ret_fd,
				 char *problem)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int error;

	memcpy(name.sun_path, address->path, sizeof(name.sun_path));
	int fd = socket(AF_UNIX, TYPE_FLAGS, 0);
	if (fd < 0)
		return explain(errno, address, problem);
	error = bind_unix(fd, &name);
	if (error == EADDRINUSE) {
		error = remove_stale(&name);
		if (error == 0)
			error = bind_unix(fd, &name);
	}
	if (error == 0 && listen(fd, BACKLOG) != 0)
		error = errno;
	if (error != 0) {
		close(fd);
		return explain(error, address, problem);
	}
	*ret_fd = fd;
	return HPX_OK;
}

enum hpx_status hpx_listener_open(const struct hpx_address *address, int *ret_fd,
				  char *problem)
{
	if (address->is_unix)
		return open_unix(address, ret_fd, problem);
	return open_host(address, true, ret_fd, problem);
}

enum hpx_status hpx_listener_probe(const struct hpx_address *address, char *problem)
{
	int fd;

	if (address->is_unix || address->port == 0)
		return HPX_OK;
	enum hpx_status status = open_host(address, false, &fd, problem);
	if (status == HPX_OK)
		close(fd);
	return status;
}

enum hpx_status hpx_listener_open_beside(int fd, int *ret_fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		return HPX_IO;
	int other = name.ss_family == AF_UNIX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : open_tcp((struct sockaddr *)&name, len, true);
	if (other < 0)
		return HPX_IO;
	*ret_fd = other;
	return HPX_OK;
}

void hpx_listener_unlink(const struct hpx_address *address)
{
	if (address->is_unix)
		unlink(address->path);
}

uint16_t hpx_listener_port(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		return 0;
	if (name.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&name)->sin_port);
	if (name.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
	return 0;
}

/* A connection for which there was no memory stays with libuv, which accepts no
 * other until that one is taken. This long until the next try. */
#define RETRY_MS 100

struct hpx_listener {
	struct hpx_loop *loop;
	bool is_unix;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} uv;
	uv_timer_t retry;
	unsigned open_handles;
	int descriptor_max; /* a connection above it takes a descriptor that is kept free */
	void (*on_accept)(void *user, struct hpx_transport *transport);
	void (*on_exhausted)(void *user); /* NULL: nobody wants to know */
	void *user;
};

static void take_connection(struct hpx_listener *listener);

static void on_retry(uv_timer_t *timer)
{
	take_connection(timer->data);
}

/* The system gives the lowest free number, so the number says how many are in use. */
static bool takes_kept_descriptor(const struct hpx_listener *listener, struct hpx_transport *transport)
{
	uv_os_fd_t fd;

	return uv_fileno((const uv_handle_t *)hpx_stream_uv(transport), &fd) == 0 &&
	       fd > listener->descriptor_max;
}

static void tell_exhausted(const struct hpx_listener *listener)
{
	if (listener->on_exhausted != NULL)
		listener->on_exhausted(listener->user);
}

static void take_connection(struct hpx_listener *listener)
{
	struct hpx_transport *transport = hpx_stream_new(listener->loop, listener->is_unix);

	if (transport == NULL) {
		uv_timer_start(&listener->retry, on_retry, RETRY_MS, 0);
		return;
	}
	/* A client that is gone again by now needs no answer. */
	if (uv_accept(&listener->uv.stream, hpx_stream_uv(transport)) != 0 ||
	    hpx_stream_connected(transport) != HPX_OK) {
		hpx_transport_close(transport);
		return;
	}
	if (takes_kept_descriptor(listener, transport)) {
		hpx_transport_close(transport);
		tell_exhausted(listener);
		return;
	}
	listener->on_accept(listener->user, transport);
}

static void on_connection(uv_stream_t *stream, int rc)
{
	/* A failed accept concerns one connection, which is gone. */
	if (rc == 0)
		take_connection(stream->data);
	else if (rc == UV_EMFILE || rc == UV_ENFILE)
		tell_exhausted(stream->data);
}

static void on_closed(uv_handle_t *handle)
{
	struct hpx_listener *listener = handle->data;

	HPX_ASSERT(listener->open_handles > 0);
	if (--listener->open_handles == 0)
		free(listener);
}

void hpx_listener_stop(struct hpx_listener *listener)
{
	uv_close(&listener->uv.handle, on_closed);
	uv_close((uv_handle_t *)&listener->retry, on_closed);
}

static bool is_unix_socket(int fd)
{
	struct sockaddr_storage name = { 0 };
	socklen_t len = sizeof(name);

	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	       name.ss_family == AF_UNIX;
}

static int adopt(struct hpx_listener *listener, int fd)
{
	uv_loop_t *uv = &listener->loop->uv;
	int rc;

	if (listener->is_unix) {
		uv_pipe_init(uv, &listener->uv.pipe, 0);
		rc = uv_pipe_open(&listener->uv.pipe, fd);
	} else {
		uv_tcp_init(uv, &listener->uv.tcp);
		rc = uv_tcp_open(&listener->uv.tcp, fd);
	}
	listener->uv.handle.data = listener;
	uv_timer_init(uv, &listener->retry);
	listener->retry.data = listener;
	listener->open_handles = 2;
	if (rc != 0)
		close(fd);
	return rc;
}

enum hpx_status hpx_listener_start(struct hpx_loop *loop, int fd,
				   void (*on_accept)(void *user,
						     struct hpx_transport *transport),
				   void *user, struct hpx_listener **ret_listener)
{
	struct hpx_listener *listener = calloc(1, sizeof(*listener));

	if (listener == NULL) {
		close(fd);
		return HPX_NOMEM;
	}
	listener->loop = loop;
	listener->is_unix = is_unix_socket(fd);
	listener->descriptor_max = INT_MAX;
	listener->on_accept = on_accept;
	listener->user = user;
	if (adopt(listener, fd) != 0 ||
	    uv_listen(&listener->uv.stream, BACKLOG, on_connection) != 0) {
		hpx_listener_stop(listener);
		return HPX_IO;
	}
	*ret_listener = listener;
	return HPX_OK;
}

void hpx_listener_keep_free(struct hpx_listener *listener, unsigned kept_free,
			    void (*on_exhausted)(void *user))
{
	struct rlimit limit;

	listener->on_exhausted = on_exhausted;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
		return;
	int most = (int)limit.rlim_cur - 1;
	listener->descriptor_max = most > (int)kept_free ? most - (int)kept_free : 0;
}

uint64_t hpx_descriptors_raise(uint64_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	rlim_t before = limit.rlim_cur;
	if (before >= wanted)
		return before;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : (rlim_t)wanted;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}
