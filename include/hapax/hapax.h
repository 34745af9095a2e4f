/* libhapax: the rules of idempotent requests, for C programs.
 *
 * Thread-safe: there is no global state. Nothing here logs, aborts or does
 * I/O. Results leave by `ret_` arguments, untouched on failure. */
#ifndef HAPAX_HAPAX_H
#define HAPAX_HAPAX_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum hapax_result {
	HAPAX_OK = 0,
	HAPAX_NOMEM,    /* out of memory */
	HAPAX_INVALID,  /* the input is malformed; the reason says how */
	HAPAX_MISUSE,   /* an argument breaks this header's contract */
};

/* "0.1.0" */
const char *hapax_version(void);

#define HAPAX_KEY_MAX 255
#define HAPAX_FINGERPRINT_SIZE 32

/* Reads the value of an Idempotency-Key field, quoted (RFC 9651) or bare.
 * The key's bytes go to `ret_key` with a NUL behind them. On HAPAX_INVALID,
 * `*ret_reason` (may be NULL) is a sentence for the client's developer. */
enum hapax_result hapax_key_parse(const char *value, size_t value_len,
				  char ret_key[HAPAX_KEY_MAX + 1], size_t *ret_len,
				  const char **ret_reason);

struct hapax_request {
	const char *method;
	const char *path;
	const char *query;          /* without '?', or NULL */
	const char *content_type;   /* or NULL */
	const void *body;
	size_t body_len;
};

/* What the request means, as 32 bytes: member order and white space of a JSON
 * body, the order of a query's distinct names and a multipart boundary do not
 * matter; every amount does. */
enum hapax_result hapax_fingerprint(const struct hapax_request *request,
				    unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
