/* One event loop: a libuv loop with an inbox. One thread runs a loop. Other threads
 * (the committer, workers, other loops) send it messages, without a lock: pushing
 * is one compare-and-swap, taking all messages is one exchange. */
#ifndef HPX_NET_LOOP_H
#define HPX_NET_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/clock.h"
#include "base/status.h"

/* Embedded in the object that is sent; handled on the loop's own thread. */
struct hpx_message {
	struct hpx_message *next;
	void (*handle)(struct hpx_message *message);
};

/* A deferred call: run on this loop's own thread once the current callback has
 * returned, so that no function calls its caller back from inside itself.
 * Embedded, zeroed before its first use; costs no system call. */
struct hpx_later {
	struct hpx_later *next;
	struct hpx_later *prev;
	void (*run)(struct hpx_later *later);
};

/* The most that one read takes. All connections of a loop read into the same
 * buffer, so an idle connection has none. */
#define HPX_LOOP_READ_BYTES 65536

struct hpx_loop {
	uv_loop_t uv;
	int wake_fd; /* an eventfd: uv_async_t would let the loop spin while the
				* thread that wakes it is still in its system call */
	uv_poll_t wake;
	uv_check_t run_deferred; /* right after polling; active while a call is deferred */
	uv_idle_t no_wait;       /* keeps polling from blocking meanwhile */
	_Atomic(struct hpx_message *) inbox;
	_Atomic bool wake_owed; /* by a sender that posted unwoken into an empty inbox */
	uv_prepare_t before_poll;
	uint64_t turn;                              /* counts the times that the loop waited for events */
	int64_t boot_us;                            /* the boot clock in this turn; 0: not read yet */
	bool is_polled;                             /* deferred calls run: every event of this turn's poll was reported */
	void (*on_turn_end)(struct hpx_loop *loop); /* NULL: nothing is to be done there */
	struct hpx_later deferred;                  /* the head of the list */
	char *read_buffer;
	char *tls_buffer; /* of tls_transport.c; NULL until a connection speaks TLS */
	void *user;
};

enum hpx_status hpx_loop_init(struct hpx_loop *loop);
/* Runs until no handle but the inbox's is left, or hpx_loop_stop; may be
 * called again. */
void hpx_loop_run(struct hpx_loop *loop);
/* On the loop's own thread; from elsewhere, post a message that calls it. */
void hpx_loop_stop(struct hpx_loop *loop);
/* From any thread. The message belongs to the loop until it is handled. Messages
 * are handled in the order of their arrival. */
void hpx_loop_post(struct hpx_loop *loop, struct hpx_message *message);
/* The same without waking the loop, for a sender of many messages: it calls
 * hpx_loop_wake_owed soon, or the messages wait for another sender's. */
void hpx_loop_post_unwoken(struct hpx_loop *loop, struct hpx_message *message);
void hpx_loop_wake_owed(struct hpx_loop *loop);
/* Handles the messages that are left, closes every handle and frees the loop. Other
 * threads must have stopped posting. The memory of a handle that its owner left
 * open stays the owner's. */
void hpx_loop_done(struct hpx_loop *loop);

/* Called at the end of each turn, before the loop waits for events again; once more
 * when the loop has ended, and while hpx_loop_done handles what is left. Set before
 * the loop runs. */
void hpx_loop_set_turn_end(struct hpx_loop *loop, void (*on_turn_end)(struct hpx_loop *loop));

/* Deferred calls run in the order of these. Nothing happens where it is deferred
 * already. */
void hpx_loop_later(struct hpx_loop *loop, struct hpx_later *later);
/* Harmless where it is not deferred. */
void hpx_later_cancel(struct hpx_later *later);

/* The boot clock, read once in a turn: behind by what the turn has taken so far, never
 * ahead. For deadlines and durations; whether a lease still holds is asked of the clock
 * itself. On the loop's own thread. */
static inline int64_t hpx_loop_boot_us(struct hpx_loop *loop)
{
	if (loop->boot_us == 0)
		loop->boot_us = hpx_clock_boot_us();
	return loop->boot_us;
}

/* Milliseconds of the loop's clock, which libuv reads once per iteration. */
static inline uint64_t hpx_loop_now_ms(struct hpx_loop *loop)
{
	return uv_now(&loop->uv);
}

#endif
