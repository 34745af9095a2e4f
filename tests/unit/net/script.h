/* An upstream that does exactly what a script says, in a thread of its own,
 * with blocking sockets; and counts what it was asked. */
#ifndef HPX_TESTS_NET_SCRIPT_H
#define HPX_TESTS_NET_SCRIPT_H

#include <pthread.h>
#include <semaphore.h>

#include "helper.h"

#define SCRIPT_ACT_LIST(X) \
	X(END)         /* of the script */ \
	X(ACCEPT)      /* closes the connection before, if it is open */ \
	X(READ)        /* one whole request, by its Content-Length */ \
	X(READ_SOME)   /* at least one byte */ \
	X(READ_CHUNKS) /* to the end of a chunked body */ \
	X(READ_END)    /* to the end of the stream */ \
	X(SEND)        /* the text */ \
	X(DRIP)        /* the text, byte by byte */ \
	X(SEND_BODY)   /* `size` bytes of the pattern i % 251 */ \
	X(ECHO)        /* until the end of the stream */ \
	X(CLOSE) \
	X(RESET) \
	X(WAIT) /* for script_go */ \
	X(TELL) /* lets script_wait return */

enum script_act_kind {
#define X(name) SCRIPT_##name,
	SCRIPT_ACT_LIST(X)
#undef X
};

struct script_act {
	enum script_act_kind kind;
	const char *text;
	size_t size;
};

struct script {
	struct hpx_address address;
	const struct script_act *acts;
	int listening;
	int fd;
	pthread_t thread;
	sem_t go;
	sem_t told;
	/* To be looked at after script_stop. */
	unsigned connections;
	unsigned requests;
	size_t body_bytes;   /* of chunked requests */
	const char *trouble; /* an act that could not be done */
};

/* The acts must stay until script_stop. */
void script_start(struct script *script, const struct script_act *acts);
/* Waits for the script's end; fails the test when an act failed. */
void script_stop(struct script *script);
void script_go(struct script *script);
void script_wait(struct script *script);

#endif
