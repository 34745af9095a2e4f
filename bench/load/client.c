/* One connection: its socket, and which key comes next. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "run.h"

#define READ_MAX ((size_t)256 << 10)
#define MIXED_TURNS 10
#define MIXED_NEW 7

/* ---- the socket, with TLS or without ---- */

/* One version and one cipher, so that every server does the same work. */
SSL_CTX *client_tls(const char *ca)
{
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

	if (tls == NULL || SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(tls, "TLS_AES_128_GCM_SHA256") != 1 ||
	    SSL_CTX_load_verify_file(tls, ca) != 1) {
		SSL_CTX_free(tls);
		return NULL;
	}
	SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE);
	SSL_CTX_set_read_ahead(tls, 1);
	return tls;
}

static bool shake_hands(struct run *run, struct client *client)
{
	client->ssl = SSL_new(run->tls);
	return client->ssl != NULL && SSL_set_fd(client->ssl, client->fd) == 1 &&
	       SSL_connect(client->ssl) == 1 && fcntl(client->fd, F_SETFL, O_NONBLOCK) == 0;
}

/* As send and recv say it. */
static ssize_t tls_result(struct client *client, int result)
{
	int error = result > 0 ? SSL_ERROR_NONE : SSL_get_error(client->ssl, result);

	if (result <= 0)
		errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
	return result > 0 ? result : -1;
}

static ssize_t put_bytes(struct client *client, const char *bytes, size_t len)
{
	if (client->ssl == NULL)
		return send(client->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return tls_result(client, SSL_write(client->ssl, bytes, (int)len));
}

/* Everything that has come: what OpenSSL holds back, epoll does not know of. */
static ssize_t take_bytes(struct client *client, char *bytes, size_t max)
{
	ssize_t n, sum = 0;

	if (client->ssl == NULL)
		return recv(client->fd, bytes, max, MSG_DONTWAIT);
	do {
		n = tls_result(client, SSL_read(client->ssl, bytes + sum, (int)max - (int)sum));
		sum += n > 0 ? n : 0;
	} while (n > 0 && (size_t)sum < max && SSL_has_pending(client->ssl));
	return sum > 0 ? sum : n;
}

void client_close(struct client *client)
{
	SSL_free(client->ssl);
	client->ssl = NULL;
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

/* ---- requests ---- */

/* Caller 0 has the address that the system gives it, n has the n-th of 127.1.0.0/16. */
static bool bind_address(const struct client *client)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr = { htonl(0x7f010000u + client->caller) } };
	int on = 1;

	if (client->caller == 0)
		return true;
	return setsockopt(client->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) == 0 &&
	       bind(client->fd, (const struct sockaddr *)&from, sizeof(from)) == 0;
}

bool client_connect(struct run *run, struct client *client)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };
	int on = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	client->waiting = false;
	client->blocked = false;
	client->due_us = 0;
	if (client->fd < 0)
		return false;
	/* Connected before it is non-blocking: a server that cannot keep up with
	 * connections is waited for. */
	if (!bind_address(client) ||
	    connect(client->fd, (const struct sockaddr *)&run->plan->to, sizeof(run->plan->to)) != 0 ||
	    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
	    (run->tls != NULL && !shake_hands(run, client)) ||
	    epoll_ctl(run->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0) {
		client_close(client);
		return false;
	}
	return true;
}

static uint64_t mixed_number(struct run *run, struct client *client)
{
	unsigned turn = client->turn++ % MIXED_TURNS;

	client->retry = turn >= MIXED_NEW;
	if (client->retry)
		return client->recent[turn - MIXED_NEW];
	client->recent[turn] = run->next++;
	return client->recent[turn];
}

static uint64_t next_number(struct run *run, struct client *client)
{
	switch (run->plan->work) {
	case WORK_REPLAY:
		if (run->phase == PHASE_PRIME)
			return run->primes_sent++;
		return run->next++ % run->plan->keys;
	case WORK_MIXED:
		return mixed_number(run, client);
	case WORK_SAME:
		return 0;
	default:
		return run->next++;
	}
}

/* A connection that failed is made anew: what it asked was not answered. */
static void client_broken(struct run *run, struct client *client)
{
	client_close(client);
	run->broken++;
	if (run->plan->work != WORK_IDLE && run->phase != PHASE_OVER && client_connect(run, client))
		client_send(run, client);
}

/* Sends what is left; asks to be told when the socket takes more. */
static bool push(struct run *run, struct client *client)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };
	bool was_blocked = client->blocked;

	while (client->sent < client->request.len) {
		ssize_t n = put_bytes(client, client->request.bytes + client->sent,
				      client->request.len - client->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return false;
		client->blocked = n < 0;
		if (n < 0)
			break;
		client->sent += (size_t)n;
	}
	if (client->blocked)
		event.events |= EPOLLOUT;
	return client->blocked == was_blocked ||
	       epoll_ctl(run->epoll, EPOLL_CTL_MOD, client->fd, &event) == 0;
}

void client_write(struct run *run, struct client *client)
{
	if (!push(run, client))
		client_broken(run, client);
}

void client_send(struct run *run, struct client *client)
{
	if (run->phase == PHASE_OVER)
		return;
	if (run->phase == PHASE_PRIME && run->plan->work == WORK_REPLAY &&
	    run->primes_sent >= run->plan->keys)
		return;
	request_number(&client->request, next_number(run, client));
	response_begin(&client->response);
	client->sent = 0;
	client->waiting = true;
	client->due_us = 0;
	client->sent_us = run_now_us();
	if (!push(run, client))
		client->blocked = false; /* the read that follows finds it broken */
}

static void client_renew(struct run *run, struct client *client)
{
	client_close(client);
	run->connected_anew++;
	if (!client_connect(run, client))
		run->broken++;
}

void client_read(struct run *run, struct client *client)
{
	static _Thread_local char bytes[READ_MAX];
	ssize_t n = take_bytes(client, bytes, sizeof(bytes));
	enum response_state state;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || !client->waiting) {
		client_broken(run, client);
		return;
	}
	state = response_take(&client->response, bytes, (size_t)n);
	if (state == RESPONSE_MORE)
		return;
	if (state == RESPONSE_BROKEN) {
		client_broken(run, client);
		return;
	}
	client->waiting = false;
	run_answered(run, client, run_now_us());
	if (client->response.close)
		client_renew(run, client);
	if (client->fd < 0 || run->plan->work == WORK_IDLE)
		return;
	if (run->plan->pause_us > 0)
		client->due_us = run_now_us() + run->plan->pause_us;
	else
		client_send(run, client);
}
