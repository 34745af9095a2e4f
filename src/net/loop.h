/* One event loop: a libuv loop with its thread's inbox. Messages come from
 * other threads (the committer, the workers, other loops) without a lock:
 * pushing is one compare-and-swap, taking is one exchange. */
#ifndef HPX_NET_LOOP_H
#define HPX_NET_LOOP_H

#include <stdatomic.h>
#include <uv.h>

#include "base/status.h"

/* Embedded in whatever is sent; handled on the loop's own thread. */
struct hpx_message {
	struct hpx_message *next;
	void (*handle)(struct hpx_message *message);
};

struct hpx_loop {
	uv_loop_t uv;
	uv_async_t wake;
	_Atomic(struct hpx_message *) inbox;
	void *user;
};

enum hpx_status hpx_loop_init(struct hpx_loop *loop);
/* Runs until no handle but the inbox's is left, or hpx_loop_stop. */
void hpx_loop_run(struct hpx_loop *loop);
void hpx_loop_stop(struct hpx_loop *loop);
/* From any thread; the message stays the sender's until it is handled. Order
 * of arrival is kept. */
void hpx_loop_post(struct hpx_loop *loop, struct hpx_message *message);
/* Closes what is left and frees the loop (messages not yet handled are
 * handled first). */
void hpx_loop_done(struct hpx_loop *loop);

/* Milliseconds of the loop's clock, read once per turn. */
static inline uint64_t hpx_loop_now_ms(struct hpx_loop *loop)
{
	return uv_now(&loop->uv);
}

#endif
