/* Reads answers off a connection: the status, and where the answer ends. It
 * believes what it reads; it is for servers on this machine, never for strangers. */
#ifndef BENCH_RESPONSE_H
#define BENCH_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESPONSE_HEAD_MAX 3072

struct response {
	char head[RESPONSE_HEAD_MAX];
	size_t head_len;
	uint64_t body_left;
	unsigned status; /* 0: the head is not complete yet */
	bool close;      /* the server ends the connection after this one */
};

enum response_state { RESPONSE_MORE,
		      RESPONSE_DONE,
		      RESPONSE_BROKEN };

void response_begin(struct response *response);
/* Bytes after the end of an answer are BROKEN: nothing was asked yet. */
enum response_state response_take(struct response *response, const char *bytes, size_t len);

#endif
