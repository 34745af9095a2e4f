/* The bytes of one sending, and what of its head people may see. */
#ifndef HPX_VERIFY_REQUEST_H
#define HPX_VERIFY_REQUEST_H

#include "base/buffer.h"
#include "verify/run.h"

struct hpx_request_bytes {
	struct hpx_span method;
	struct hpx_span bytes; /* head and body */
	size_t head_bytes;
	struct hpx_span shown_head; /* without credentials */
	struct hpx_span body;
	char key[HPX_VERIFY_KEY_SIZE]; /* for people */
};

/* A request of the body's size, a head of at most 64 KiB. */
#define HPX_REQUEST_HEAD_MAX ((size_t)64 * 1024)

/* All from `arena`. HPX_INVALID: something in it cannot stand in a request
 * (a line end in a key or header). */
enum hpx_status hpx_request_bytes_build(const struct hpx_verify_spec *spec,
					const struct hpx_request_variant *variant, struct hpx_arena *arena,
					struct hpx_request_bytes *ret_request);

/* The head with "(left out)" for the values of Authorization,
 * Proxy-Authorization, Cookie, X-Api-Key, of the second tenant's headers and of
 * those whose template names a variable of the environment. */
struct hpx_span hpx_redact_head(const struct hpx_verify_spec *spec, struct hpx_span head,
				struct hpx_arena *arena);
/* The same for the fields of an answer: Set-Cookie and the like. */
bool hpx_redact_is_secret(const struct hpx_verify_spec *spec, struct hpx_span name);

#define HPX_REDACTED "(left out)"

#endif
