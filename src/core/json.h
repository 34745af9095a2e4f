/* JSON in canonical form: RFC 8785 order and strings; numbers as RFC 8785
 * wherever its text has the value that was written, otherwise that exact
 * decimal value in the same layout, so that two different amounts never look
 * the same. Bounded in depth, n log n in its input, no recursion. Not a
 * general reader: JSON for people and providers is Jansson's. */
#ifndef HPX_CORE_JSON_H
#define HPX_CORE_JSON_H

#include "base/buffer.h"

/* All limits concern the value, not its spelling, so that a text and its
 * canonical form are both within them or both beyond. */
struct hpx_json_limits {
	unsigned depth_max;    /* nested arrays and objects */
	size_t digits_max;     /* significant digits of one number */
	unsigned exponent_max; /* magnitude of a number's decimal exponent */
	size_t members_max;    /* members and elements in all */
};
/* Part of recipe version 1: a text beyond them counts as raw bytes, so other
 * limits would give old records other fingerprints. */
extern const struct hpx_json_limits hpx_json_limits_default;

#define HPX_JSON_IGNORE_MAX 64

/* Appends the canonical form of `text` to `out`. Members named by one of the
 * `ignore` JSON pointers (RFC 6901; a pointer to an array element or a whole
 * subtree works too) are left out; a pointer that is not well formed names
 * nothing. HPX_INVALID: not JSON, invalid UTF-8, lone surrogates, duplicate
 * member names (also among what is left out), or beyond a limit: the caller
 * then takes the raw bytes. HPX_TOO_LARGE: `out` is too small, or a text of
 * 4 GiB. HPX_MISUSE: more than HPX_JSON_IGNORE_MAX pointers. After any of
 * them `out` is as it was. */
enum hpx_status hpx_json_canonical(struct hpx_span text,
				   const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_buffer *out);

/* Whether this is an RFC 6901 pointer: empty, or '/' before every token, and
 * no '~' but in ~0 and ~1. */
bool hpx_json_pointer_valid(struct hpx_span pointer);

/* The shortest text that gives this double back, as ECMAScript prints it
 * (RFC 8785 §3.2.2.3); 0 for NaN and infinities, which JSON does not have. */
#define HPX_JSON_DOUBLE_SIZE 32
size_t hpx_json_double(double value, char out[HPX_JSON_DOUBLE_SIZE]);

#endif
