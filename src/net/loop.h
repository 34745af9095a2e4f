/* One event loop: a libuv loop with its thread's inbox. Messages come from
 * other threads (the committer, the workers, other loops) without a lock:
 * pushing is one compare-and-swap, taking is one exchange. */
#ifndef HPX_NET_LOOP_H
#define HPX_NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/status.h"

/* Embedded in whatever is sent; handled on the loop's own thread. */
struct hpx_message {
	struct hpx_message *next;
	void (*handle)(struct hpx_message *message);
};

/* Something to do on this loop's own thread once the current callback has
 * returned: how a call avoids calling its caller back from inside itself.
 * Embedded, zeroed before its first use; costs no system call. */
struct hpx_later {
	struct hpx_later *next;
	struct hpx_later *prev;
	void (*run)(struct hpx_later *later);
};

/* What one read takes at most. All connections of a loop read into the same
 * buffer, so an idle one costs none. */
#define HPX_LOOP_READ_BYTES 65536

struct hpx_loop {
	uv_loop_t uv;
	int wake_fd; /* an eventfd: uv_async_t would let the loop spin while the
				* thread that wakes it is still in its system call */
	uv_poll_t wake;
	uv_check_t turn_end; /* runs what was put off, right after polling */
	uv_idle_t no_wait;   /* keeps polling from blocking while there is any */
	_Atomic(struct hpx_message *) inbox;
	struct hpx_later laters; /* the list's head */
	char *read_buffer;
	void *user;
};

enum hpx_status hpx_loop_init(struct hpx_loop *loop);
/* Runs until no handle but the inbox's is left, or hpx_loop_stop; may be
 * called again. */
void hpx_loop_run(struct hpx_loop *loop);
/* On the loop's own thread; from elsewhere, post a message that calls it. */
void hpx_loop_stop(struct hpx_loop *loop);
/* From any thread; the message stays the sender's until it is handled. Order
 * of arrival is kept. */
void hpx_loop_post(struct hpx_loop *loop, struct hpx_message *message);
/* Closes what is left and frees the loop (messages not yet handled are
 * handled first). Other threads must have stopped posting. The memory of a
 * handle that its owner left open stays the owner's. */
void hpx_loop_done(struct hpx_loop *loop);

/* In order of calling; nothing happens when it is waiting already. */
void hpx_loop_later(struct hpx_loop *loop, struct hpx_later *later);
/* Harmless when it is not waiting. */
void hpx_later_cancel(struct hpx_later *later);

/* Milliseconds of the loop's clock, read once per turn. */
static inline uint64_t hpx_loop_now_ms(struct hpx_loop *loop)
{
	return uv_now(&loop->uv);
}

#endif
