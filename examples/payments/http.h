/* Just enough HTTP/1.1 for an example, for both sides of a connection: one
 * exchange each, bodies with a Content-Length and no other framing, a bound on
 * every size and every wait. A real service has a real HTTP library here. */
#ifndef PAYMENTS_HTTP_H
#define PAYMENTS_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX 16384
#define HTTP_BODY_MAX 65536
#define HTTP_REST_MAX (1 << 20)
#define HTTP_TIMEOUT_S 5

struct http_message {
	char head[HTTP_HEAD_MAX + 1]; /* first line and fields, each with CR LF; a NUL behind */
	char body[HTTP_BODY_MAX + 1]; /* a NUL behind */
	size_t body_len;
};

struct http_answer {
	unsigned status;
	char headers[512]; /* lines, each with CR LF */
	char body[2048];
	size_t body_len;
};

/* On 127.0.0.1; -1 on failure, with errno. */
int http_listen(uint16_t port);

/* A whole message; false: the peer left, was too slow, or sent what is not
 * spoken here. */
bool http_read(int fd, struct http_message *ret_message);

/* The request line's method and path. A target that does not fit, or has a
 * query, is a path that nothing is served at: "". */
void http_request_line(const struct http_message *message, char ret_method[8], char ret_path[128]);

/* How often the field is there; `ret_value` is its first value, "" where there
 * is none. A value of `size` bytes or more counts as two: it cannot be used. */
unsigned http_header(const struct http_message *message, const char *name, char *ret_value,
		     size_t size);

/* Sets a short JSON answer of {"error": text}. */
void http_error(struct http_answer *answer, unsigned status, const char *text);

/* Closes a connection of which not everything was read. To close at once would
 * reset it, and the client would lose the answer. Reads HTTP_REST_MAX at most. */
void http_hang_up(int fd);

bool http_send(int fd, unsigned status, const char *headers, const void *body, size_t body_len);

/* POST to 127.0.0.1: the answer's status, or 0 where no whole answer came. */
unsigned http_post(uint16_t port, const char *path, const char *headers, const char *body,
		   struct http_message *ret_answer);

#endif
