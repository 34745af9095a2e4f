/* bench-slow PORT MILLISECONDS: a service whose every answer takes that long, and
 * that bears many at once: what a probe asks in the benchmark of unknowns, and
 * what stands behind the gateway there. A GET is answered 200, a GET of /tunnel
 * 101 and nothing after it, everything else 201. One thread; all answers take the same time, so that they leave in the order
 * they were asked for. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/span.h"

#define CONNECTIONS_MAX 4096
#define HEAD_BYTES_MAX 32768
#define EVENTS 64

struct client {
	char head[HEAD_BYTES_MAX];
	size_t len;
};

struct answer {
	int fd;
	struct hpx_span text;
	int64_t due_ms;
};

static struct client *clients[CONNECTIONS_MAX];
/* A connection has one request under way. */
static struct answer queue[CONNECTIONS_MAX];
static size_t queue_first, queue_count;
#define REST "Content-Type: application/json\r\nContent-Length: 3\r\n\r\n{}\n"
static const struct hpx_span found = HPX_SPAN_INIT("HTTP/1.1 200 OK\r\n" REST);
static const struct hpx_span created = HPX_SPAN_INIT("HTTP/1.1 201 Created\r\n" REST);
static const struct hpx_span switched = HPX_SPAN_INIT(
	"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");

static void drop(int fd)
{
	for (size_t i = 0; i < queue_count; i++) {
		struct answer *answer = &queue[(queue_first + i) % CONNECTIONS_MAX];
		if (answer->fd == fd)
			answer->fd = -1;
	}
	free(clients[fd]);
	clients[fd] = NULL;
	close(fd);
}

static void answer_due(int64_t now_ms)
{
	while (queue_count > 0 && queue[queue_first].due_ms <= now_ms) {
		int fd = queue[queue_first].fd;
		struct hpx_span text = queue[queue_first].text;
		queue_first = (queue_first + 1) % CONNECTIONS_MAX;
		queue_count--;
		if (fd >= 0 && write(fd, text.ptr, text.len) != (ssize_t)text.len)
			drop(fd);
	}
}

/* Whether all of a request is there; what it says of itself is believed. */
static bool is_whole(struct client *client)
{
	static const char name[] = "content-length:";
	struct hpx_span text = hpx_span(client->head, client->len);
	size_t end = 0, length = 0;

	while (end + 4 <= text.len && memcmp(text.ptr + end, "\r\n\r\n", 4) != 0)
		end++;
	if (end + 4 > text.len)
		return false;
	for (size_t i = 0; i + sizeof(name) <= end; i++)
		if (strncasecmp(text.ptr + i, name, sizeof(name) - 1) == 0)
			for (i += sizeof(name) - 1; i < end && text.ptr[i] != '\r'; i++)
				if (text.ptr[i] >= '0' && text.ptr[i] <= '9' && length < HEAD_BYTES_MAX)
					length = length * 10 + (size_t)(text.ptr[i] - '0');
	return text.len >= end + 4 + length;
}

static struct hpx_span answer_to(struct hpx_span head)
{
	if (hpx_span_starts(head, HPX_SPAN("GET /tunnel ")))
		return switched;
	return hpx_span_starts(head, HPX_SPAN("GET ")) ? found : created;
}

static void take_request(int fd, int64_t due_ms)
{
	struct client *client = clients[fd];
	ssize_t got = read(fd, client->head + client->len, sizeof(client->head) - client->len);

	if (got <= 0) {
		drop(fd);
		return;
	}
	client->len += (size_t)got;
	if (!is_whole(client)) {
		if (client->len == sizeof(client->head))
			drop(fd);
		return;
	}
	if (queue_count == CONNECTIONS_MAX) {
		drop(fd);
		return;
	}
	queue[(queue_first + queue_count++) % CONNECTIONS_MAX] =
		(struct answer){ fd, answer_to(hpx_span(client->head, client->len)), due_ms };
	client->len = 0;
}

static void take_client(int epoll, int listener)
{
	int fd = accept(listener, NULL, NULL);
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

	if (fd < 0)
		return;
	if (fd < CONNECTIONS_MAX)
		clients[fd] = calloc(1, sizeof(*clients[fd]));
	if (fd >= CONNECTIONS_MAX || clients[fd] == NULL) {
		close(fd);
		return;
	}
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		drop(fd);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1024) != 0)
		return -1;
	return fd;
}

static int serve(int listener, int64_t delay_ms)
{
	struct epoll_event events[EVENTS], event = { .events = EPOLLIN, .data = { .fd = listener } };
	int epoll = epoll_create1(0);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
		return 1;
	for (;;) {
		int64_t now_ms = hpx_clock_boot_ms();
		int64_t wait_ms = queue_count > 0 ? queue[queue_first].due_ms - now_ms : -1;
		int count = epoll_wait(epoll, events, EVENTS,
				       queue_count > 0 && wait_ms < 0 ? 0 : (int)wait_ms);
		if (count < 0 && errno != EINTR)
			return 1;
		now_ms = hpx_clock_boot_ms();
		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == listener)
				take_client(epoll, listener);
			else if (clients[events[i].data.fd] != NULL)
				take_request(events[i].data.fd, now_ms + delay_ms);
		}
		answer_due(now_ms);
	}
}

int main(int argc, char **argv)
{
	uint64_t port, delay_ms;
	int listener;

	if (argc != 3 || !hpx_span_u64(hpx_span_of(argv[1]), 65535, &port) ||
	    !hpx_span_u64(hpx_span_of(argv[2]), 60000, &delay_ms)) {
		fprintf(stderr, "bench-slow PORT MILLISECONDS\n");
		return 2;
	}
	listener = listen_on((uint16_t)port);
	if (listener < 0) {
		perror("bench-slow");
		return 1;
	}
	return serve(listener, (int64_t)delay_ms);
}
