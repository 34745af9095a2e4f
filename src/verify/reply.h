/* An answer while it comes: read strictly, bounded, its body kept up to a
 * bound and hashed whole. */
#ifndef HPX_VERIFY_REPLY_H
#define HPX_VERIFY_REPLY_H

#include "base/buffer.h"
#include "verify/exchange.h"
#include "verify/secret.h"

/* Beyond it a body is counted and hashed, and its first part kept. */
#define HPX_RESPONSE_BODY_MAX ((size_t)4 << 20)
/* And what all that come at the same time may hold; what does not fit is kept in
 * its first part as well. */
#define HPX_RESPONSE_BODIES_MAX ((size_t)64 << 20)

/* What all answers of a run share. */
struct hpx_response_shared {
	size_t held_bytes;          /* of the bodies that are coming */
	struct hpx_secrets secrets; /* that none of them is shown with */
};

struct hpx_response {
	struct hpx_span method; /* of the request */
	struct hpx_http_reader reader;
	struct hpx_arena arena; /* of the head's fields */
	struct hpx_buffer head_bytes;
	struct hpx_http_head head;
	bool has_head; /* of the final answer: 1xx are passed over */
	struct hpx_buffer body;
	size_t body_bytes;
	struct hpx_response_shared *share;
	struct hpx_sha256 hash;
	const char *problem; /* after BAD */
};

/* `method` must stay. */
void hpx_response_init(struct hpx_response *answer, struct hpx_span method,
		       struct hpx_response_shared *share);
void hpx_response_done(struct hpx_response *answer);
/* DONE: it is whole. */
enum hpx_http_progress hpx_response_feed(struct hpx_response *answer, struct hpx_span bytes);
/* The stream ended. */
enum hpx_http_progress hpx_response_end(struct hpx_response *answer);
/* After DONE: into the exchange, copied into `arena`, without secrets; the hash is
 * that of the bytes that came. */
enum hpx_status hpx_response_move(struct hpx_response *answer, struct hpx_arena *arena,
				  struct hpx_verify_exchange *exchange);

#endif
