/* Whole HTTP messages over blocking loopback sockets, for the demo's API, its
 * network and its client. Every wait has an end, every message a bound. */
#ifndef HPX_CLI_DEMO_WIRE_H
#define HPX_CLI_DEMO_WIRE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "http/message.h"

/* Enough for a full ledger. */
#define HPX_DEMO_BODY_MAX ((size_t)1024 * 1024 + 8192)

/* One message as it came; `head` points into `bytes`. */
struct hpx_demo_message {
	struct hpx_http_head head;
	struct hpx_buffer bytes;
	struct hpx_buffer body;
	struct hpx_arena arena;
};

void hpx_demo_message_init(struct hpx_demo_message *message);
void hpx_demo_message_done(struct hpx_demo_message *message);

/* HPX_CLOSED: the peer left before a whole message was there. HPX_TIMEOUT,
 * HPX_INVALID and HPX_TOO_LARGE as their names say. */
enum hpx_status hpx_demo_read_request(int fd, int64_t timeout_ms,
				      struct hpx_demo_message *message);
enum hpx_status hpx_demo_read_response(int fd, struct hpx_span request_method,
				       int64_t timeout_ms, struct hpx_demo_message *message);

enum hpx_status hpx_demo_send(int fd, struct hpx_span bytes, int64_t timeout_ms);

/* To 127.0.0.1. */
enum hpx_status hpx_demo_connect(uint16_t port, int64_t timeout_ms, int *ret_fd);

#endif
