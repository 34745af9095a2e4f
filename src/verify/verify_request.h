/* The bytes of one request, and what of requests and answers may be shown. */
#ifndef HPX_VERIFY_VERIFY_REQUEST_H
#define HPX_VERIFY_VERIFY_REQUEST_H

#include "base/buffer.h"
#include "verify/run.h"

struct hpx_verify_request_bytes {
	struct hpx_span method;
	struct hpx_span bytes; /* head and body */
	size_t head_bytes;
	struct hpx_span shown_head; /* without credentials */
	struct hpx_span body;
	char key[HPX_VERIFY_KEY_SIZE]; /* for people */
};

#define HPX_REQUEST_HEAD_MAX ((size_t)64 * 1024)

/* All from `arena`. HPX_INVALID: a value cannot stand in a request (a line end in
 * a key or header). */
enum hpx_status hpx_verify_request_build(const struct hpx_verify_spec *spec,
					 const struct hpx_verify_variant *variant,
					 struct hpx_arena *arena,
					 struct hpx_verify_request_bytes *ret_request);

/* ---- secret headers ---- */

#define HPX_REDACTED "(left out)"

/* Whether the value of this header, of a request or an answer, is a secret:
 * Authorization, Cookie, Set-Cookie and the like, the second tenant's headers, and
 * those whose template names a variable of the environment. */
bool hpx_redact_is_secret(const struct hpx_verify_spec *spec, struct hpx_span name);
/* The head of a request with HPX_REDACTED for the values of secret headers. */
struct hpx_span hpx_redact_head(const struct hpx_verify_spec *spec, struct hpx_span head,
				struct hpx_arena *arena);

/* ---- credentials in answers ---- */

/* Shorter ones would be found in anything. */
#define HPX_SECRET_BYTES_MIN 8
#define HPX_SECRETS_MAX 256

/* The credentials that a run sends. Some servers repeat in their answers what they
 * were sent, and reports are passed on. */
struct hpx_secrets {
	struct hpx_arena arena;
	struct hpx_span values[HPX_SECRETS_MAX];
	size_t count;
};

/* The words of all values of secret headers. HPX_TOO_LARGE: there are more than
 * can be searched for. */
enum hpx_status hpx_secrets_init(struct hpx_secrets *secrets, const struct hpx_verify_spec *spec);
void hpx_secrets_done(struct hpx_secrets *secrets);
/* A copy of `text`, of the same length, with a star for each byte of a secret. ptr
 * NULL: no memory. */
struct hpx_span hpx_secrets_hide(const struct hpx_secrets *secrets, struct hpx_span text,
				 struct hpx_arena *arena);

#endif
