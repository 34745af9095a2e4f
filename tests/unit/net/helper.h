/* What the tests of this folder share: a loop with a watchdog, plain sockets
 * for the other side, and a transport whose events are written down. */
#ifndef HPX_TESTS_NET_HELPER_H
#define HPX_TESTS_NET_HELPER_H

#include "../test.h"

#include "net/listener.h"

/* Long enough for the slowest build on the slowest machine: reached only when
 * something that must come does not. */
#define TEST_PATIENCE_MS 60000

/* Runs turns of the loop until `*flag`; fails the test when it does not come. */
#define run_until(loop, flag) test_run_until((loop), (flag), #flag, __FILE__, __LINE__)
void test_run_until(struct hpx_loop *loop, const bool *flag, const char *what,
		    const char *file, int line);

/* "127.0.0.1:0" or a fresh unix path. */
struct hpx_address test_address(bool is_unix);
/* A blocking socket connected to what `fd` listens on. */
int test_connect(int listening_fd);
/* A blocking socket that listens on 127.0.0.1, with its address. */
int test_listen(struct hpx_address *ret_address, int backlog);
void test_write(int fd, const char *text);
/* Reads to the end of the stream or an error; the text is the caller's. */
char *test_read_all(int fd, size_t *ret_len);
/* Closes with a reset instead of an end of stream. */
void test_reset(int fd);

/* Waits until the kernel has that for the transport's socket, without letting
 * the loop see it: POLLIN, POLLHUP. */
void test_await(struct hpx_transport *transport, short event);

/* An accepted transport, and what happened to it. */
struct test_side {
	struct hpx_loop *loop;
	struct hpx_transport *transport;
	struct hpx_listener *listener;
	int client; /* the other end, plain */
	struct hpx_address address;
	bool accepted;
	bool got_data;
	bool ended;
	bool drained;
	unsigned ends;
	enum hpx_status end_status;
	size_t data_len;
	char data[256]; /* the first bytes of what came */
	/* The callback in which the transport closes itself: 'd', 'e', 'r'. */
	char close_in;
	bool in_call; /* a call into the transport is under way */
};

void test_side_open(struct test_side *side, struct hpx_loop *loop, bool is_unix);
/* Closes whatever is still open. */
void test_side_close(struct test_side *side);

#endif
