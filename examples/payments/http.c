/* Blocking sockets, read and written whole. */
#include "http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void set_timeouts(int fd)
{
	struct timeval wait = { .tv_sec = HTTP_TIMEOUT_S };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

int http_listen(uint16_t port)
{
	struct sockaddr_in at = loopback(port);
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

/* ---- Reading ---- */

/* Reads until the empty line; what came behind it is the body's beginning. */
static bool read_head(int fd, struct http_message *message)
{
	size_t len = 0;
	const char *end;

	do {
		ssize_t got = len < HTTP_HEAD_MAX ?
				      recv(fd, message->head + len, HTTP_HEAD_MAX - len, 0) :
				      0;

		if (got <= 0)
			return false;
		len += (size_t)got;
		end = memmem(message->head, len, "\r\n\r\n", 4);
	} while (end == NULL);

	size_t head_len = (size_t)(end - message->head) + 2;
	message->body_len = len - head_len - 2;
	memcpy(message->body, end + 4, message->body_len);
	message->head[head_len] = '\0';
	return strlen(message->head) == head_len;
}

/* Digits only: "+5", "5 " and "0x5" have been somebody's way in before. */
static bool content_length(const struct http_message *message, size_t *ret_length)
{
	char value[8];
	unsigned times = http_header(message, "Content-Length", value, sizeof(value));
	size_t length = 0;

	if (times > 1 || (times == 1 && value[0] == '\0'))
		return false;
	for (const char *at = value; *at != '\0'; at++) {
		if (*at < '0' || *at > '9')
			return false;
		length = length * 10 + (size_t)(*at - '0');
	}
	*ret_length = length;
	return length <= HTTP_BODY_MAX;
}

bool http_read(int fd, struct http_message *ret_message)
{
	struct http_message *message = ret_message;
	char coding[2];
	size_t length;

	set_timeouts(fd);
	if (!read_head(fd, message) || !content_length(message, &length) ||
	    http_header(message, "Transfer-Encoding", coding, sizeof(coding)) > 0)
		return false;
	while (message->body_len < length) {
		ssize_t got = recv(fd, message->body + message->body_len,
				   length - message->body_len, 0);

		if (got <= 0)
			return false;
		message->body_len += (size_t)got;
	}
	message->body[message->body_len] = '\0';
	return message->body_len == length;
}

/* Copies up to `end`, which must come before the line ends; where it does not,
 * or `size` does not hold it, there is nothing to serve. */
static const char *take_word(const char *from, char end, char *ret_word, size_t size)
{
	size_t len = strcspn(from, " ?\r");

	if (from[len] != end || len >= size)
		return NULL;
	memcpy(ret_word, from, len);
	ret_word[len] = '\0';
	return from + len + 1;
}

void http_request_line(const struct http_message *message, char ret_method[8], char ret_path[128])
{
	const char *rest = take_word(message->head, ' ', ret_method, 8);

	if (rest != NULL)
		rest = take_word(rest, ' ', ret_path, 128);
	if (rest == NULL || strncmp(rest, "HTTP/1.", 7) != 0)
		ret_method[0] = ret_path[0] = '\0';
}

/* Without the blanks around it; false where it does not fit. */
static bool copy_value(const char *from, const char *to, char *ret_value, size_t size)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (from < to && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	if ((size_t)(to - from) >= size)
		return false;
	memcpy(ret_value, from, (size_t)(to - from));
	ret_value[to - from] = '\0';
	return true;
}

unsigned http_header(const struct http_message *message, const char *name, char *ret_value,
		     size_t size)
{
	size_t name_len = strlen(name);
	unsigned times = 0;
	const char *line = strstr(message->head, "\r\n");

	ret_value[0] = '\0';
	while (line != NULL && line[2] != '\0') {
		const char *end = strstr(line += 2, "\r\n");

		if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':' &&
		    ++times == 1 && !copy_value(line + name_len + 1, end, ret_value, size))
			return 2;
		line = end;
	}
	return times;
}

/* ---- Writing ---- */

static bool send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		bytes += sent;
		len -= (size_t)sent;
	}
	return true;
}

void http_error(struct http_answer *answer, unsigned status, const char *text)
{
	answer->status = status;
	snprintf(answer->headers, sizeof(answer->headers), "Content-Type: application/json\r\n");
	int len = snprintf(answer->body, sizeof(answer->body), "{\"error\": \"%s\"}\n", text);
	answer->body_len = (size_t)len;
}

bool http_send(int fd, unsigned status, const char *headers, const void *body, size_t body_len)
{
	char head[128];
	int len = snprintf(head, sizeof(head),
			   "HTTP/1.1 %u Answer\r\nContent-Length: %zu\r\nConnection: close\r\n",
			   status, body_len);

	return send_all(fd, head, (size_t)len) && send_all(fd, headers, strlen(headers)) &&
	       send_all(fd, "\r\n", 2) && send_all(fd, body, body_len);
}

void http_hang_up(int fd)
{
	char rest[4096];
	size_t left = HTTP_REST_MAX;
	ssize_t got = 0;

	shutdown(fd, SHUT_WR);
	do {
		left -= (size_t)got;
		got = recv(fd, rest, sizeof(rest), 0);
	} while (got > 0 && (size_t)got < left);
	close(fd);
}

/* ---- Asking ---- */

static unsigned status_of(const struct http_message *answer)
{
	const char *digits = answer->head + 9;

	if (strncmp(answer->head, "HTTP/1.1 ", 9) != 0 || strspn(digits, "0123456789") != 3)
		return 0;
	return (unsigned)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0'));
}

static unsigned ask(int fd, const char *head, const char *body, struct http_message *ret_answer)
{
	if (!send_all(fd, head, strlen(head)) || !send_all(fd, body, strlen(body)) ||
	    !http_read(fd, ret_answer))
		return 0;
	return status_of(ret_answer);
}

unsigned http_post(uint16_t port, const char *path, const char *headers, const char *body,
		   struct http_message *ret_answer)
{
	struct sockaddr_in at = loopback(port);
	char head[1024];
	unsigned status = 0;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	set_timeouts(fd);
	int len = snprintf(head, sizeof(head),
			   "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: %zu\r\n"
			   "Content-Type: application/json\r\n%s\r\n",
			   path, (unsigned)port, strlen(body), headers);
	if ((size_t)len < sizeof(head) && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		status = ask(fd, head, body, ret_answer);
	close(fd);
	return status;
}
