/* One exchange as a test sees it: the request, and everything that was
 * called back, written down. */
#ifndef HPX_TESTS_NET_CALL_H
#define HPX_TESTS_NET_CALL_H

#include "helper.h"
#include "net/upstream.h"

struct call {
	struct hpx_loop *loop;
	struct hpx_exchange *exchange;
	struct hpx_exchange_request request;
	struct hpx_slot slot; /* taken when it starts, unless it is held already */
	/* What happened. */
	bool done; /* on_end or on_failed */
	bool ended;
	bool failed;
	bool sent;
	bool has_head;
	unsigned ready;
	unsigned informational;
	unsigned writable;
	struct hpx_exchange_failure failure;
	unsigned status;
	enum hpx_http_framing framing;
	char field_x[32]; /* of the head's field "X" */
	size_t body_len;
	bool in_pattern; /* the body's bytes are i % 251 */
	char body[256];  /* its first bytes */
	/* What the callbacks do besides. */
	bool refuse_ready;
	char cancel_in; /* 'r' ready, 's' sent, 'i', 'h' head, 'd' data, 'w' writable */
	void (*extra)(struct call *call, char event);
	void *user;
	bool in_call; /* inside a call into the exchange */
};

/* Options that no test means to run into: long times, small pools. */
struct hpx_upstream_options call_options(const struct hpx_address *address);
/* A guarded POST of "{}" to /. */
struct call call_post(struct hpx_loop *loop);
/* Another request, ready for the wire. */
void call_set(struct call *call, const char *method, const char *head, bool guarded);
void call_start(struct call *call, struct hpx_upstream *upstream);
/* Starts, and runs the loop until it is over. */
void call_run(struct call *call, struct hpx_upstream *upstream);

/* Fail with both values. */
#define assert_ended(call, status, body) \
	call_assert_ended((call), (status), (body), __FILE__, __LINE__)
#define assert_failed(call, status, any_byte_left) \
	call_assert_failed((call), (status), (any_byte_left), __FILE__, __LINE__)
void call_assert_ended(const struct call *call, unsigned status, const char *body,
		       const char *file, int line);
void call_assert_failed(const struct call *call, enum hpx_status status, bool any_byte_left,
			const char *file, int line);

/* Runs turns until the upstream has that many connections; and idle ones. */
void call_settle(struct hpx_loop *loop, const struct hpx_upstream *upstream, unsigned open,
		 unsigned idle);

#endif
