/* See script.h. */
#include "script.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void leave(struct script *script)
{
	if (script->fd >= 0)
		close(script->fd);
	script->fd = -1;
}

static bool do_accept(struct script *script)
{
	int on = 1;

	leave(script);
	script->fd = accept(script->listening, NULL, NULL);
	if (script->fd < 0)
		return false;
	setsockopt(script->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	script->connections++;
	return true;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

/* A peer that has heard enough may close while the rest drips. */
static bool do_drip(int fd, const char *text)
{
	for (; *text != '\0'; text++) {
		if (!send_all(fd, text, 1))
			break;
		sched_yield();
	}
	return true;
}

static bool do_send_body(int fd, size_t size)
{
	char bytes[251 * 256];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i % 251);
	while (size > 0) {
		size_t n = size < sizeof(bytes) ? size : sizeof(bytes);
		if (!send_all(fd, bytes, n))
			return false;
		size -= n;
	}
	return true;
}

/* Reads to the text `end`, byte by byte; true when it came. */
static bool read_to(int fd, const char *end, char *head, size_t size)
{
	size_t len = 0, end_len = strlen(end);

	while (len + 1 < size && recv(fd, head + len, 1, 0) == 1) {
		head[++len] = '\0';
		if (len >= end_len && memcmp(head + len - end_len, end, end_len) == 0)
			return true;
	}
	return false;
}

static bool read_bytes(int fd, size_t count)
{
	char bytes[4096];

	while (count > 0) {
		ssize_t n = recv(fd, bytes, count < sizeof(bytes) ? count : sizeof(bytes), 0);
		if (n <= 0)
			return false;
		count -= (size_t)n;
	}
	return true;
}

static bool do_read(struct script *script)
{
	char head[4096] = "";

	if (!read_to(script->fd, "\r\n\r\n", head, sizeof(head)))
		return false;
	script->requests++;
	const char *length = strstr(head, "Content-Length: ");
	return length == NULL || read_bytes(script->fd, strtoul(length + 16, NULL, 10));
}

static bool do_read_chunks(struct script *script)
{
	char line[4096];

	if (!read_to(script->fd, "\r\n\r\n", line, sizeof(line)))
		return false;
	script->requests++;
	while (read_to(script->fd, "\r\n", line, sizeof(line))) {
		size_t size = strtoul(line, NULL, 16);
		if (!read_bytes(script->fd, size + 2))
			return false;
		if (size == 0)
			return true;
		script->body_bytes += size;
	}
	return false;
}

static bool do_echo(int fd)
{
	char bytes[4096];
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		if (!send_all(fd, bytes, (size_t)n))
			return false;
	}
	return n == 0;
}

static bool do_read_end(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), 0) > 0)
		;
	return true;
}

static bool do_reset(struct script *script)
{
	test_reset(script->fd);
	script->fd = -1;
	return true;
}

static bool do_act(struct script *script, const struct script_act *act)
{
	char byte;

	switch (act->kind) {
	case SCRIPT_ACCEPT:
		return do_accept(script);
	case SCRIPT_READ:
		return do_read(script);
	case SCRIPT_READ_SOME:
		return recv(script->fd, &byte, 1, 0) == 1;
	case SCRIPT_READ_CHUNKS:
		return do_read_chunks(script);
	case SCRIPT_READ_END:
		return do_read_end(script->fd);
	case SCRIPT_SEND:
		return send_all(script->fd, act->text, strlen(act->text));
	case SCRIPT_DRIP:
		return do_drip(script->fd, act->text);
	case SCRIPT_SEND_BODY:
		return do_send_body(script->fd, act->size);
	case SCRIPT_ECHO:
		return do_echo(script->fd);
	case SCRIPT_CLOSE:
		leave(script);
		return true;
	case SCRIPT_RESET:
		return do_reset(script);
	case SCRIPT_WAIT:
		return sem_wait(&script->go) == 0;
	case SCRIPT_TELL:
		return sem_post(&script->told) == 0;
	default:
		return false;
	}
}

static const char *const act_names[] = {
#define X(name) #name,
	SCRIPT_ACT_LIST(X)
#undef X
};

static void *play(void *arg)
{
	struct script *script = arg;

	for (const struct script_act *act = script->acts; act->kind != SCRIPT_END; act++) {
		if (do_act(script, act))
			continue;
		script->trouble = act_names[act->kind];
		break;
	}
	leave(script);
	return NULL;
}

void script_start(struct script *script, const struct script_act *acts)
{
	*script = (struct script){ .acts = acts, .fd = -1 };
	script->listening = test_listen(&script->address, 16);
	sem_init(&script->go, 0, 0);
	sem_init(&script->told, 0, 0);
	assert_int_equal(pthread_create(&script->thread, NULL, play, script), 0);
}

void script_stop(struct script *script)
{
	pthread_join(script->thread, NULL);
	close(script->listening);
	sem_destroy(&script->go);
	sem_destroy(&script->told);
	if (script->trouble != NULL)
		fail_msg("the script could not %s", script->trouble);
}

void script_go(struct script *script)
{
	sem_post(&script->go);
}

void script_wait(struct script *script)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TEST_PATIENCE_MS / 1000;
	if (sem_timedwait(&script->told, &until) != 0)
		fail_msg("the script did not come to its TELL");
}
