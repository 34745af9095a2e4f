/* JSON in canonical form: RFC 8785 order and strings; numbers as RFC 8785
 * where an IEEE double holds them exactly, otherwise their exact decimal
 * value normalised, so that two different amounts never look the same.
 * Linear in its input, bounded in depth, no recursion. Not a general reader:
 * JSON for people and providers is Jansson's. */
#ifndef HPX_CORE_JSON_H
#define HPX_CORE_JSON_H

#include "base/buffer.h"

struct hpx_json_limits {
	unsigned depth_max;       /* nested arrays and objects */
	size_t digits_max;        /* of one number */
	unsigned exponent_max;    /* magnitude of a written exponent */
	size_t members_max;       /* members and elements in all */
};
extern const struct hpx_json_limits hpx_json_limits_default;

/* Appends the canonical form of `text` to `out`. Members named by one of the
 * `ignore` JSON pointers (RFC 6901; a pointer to an array element or a whole
 * subtree works too) are left out. HPX_INVALID: not JSON, invalid UTF-8,
 * lone surrogates, duplicate member names, or beyond a limit: the caller then
 * takes the raw bytes. `out` is then left as it was. */
enum hpx_status hpx_json_canonical(struct hpx_span text,
				   const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_buffer *out);

/* The shortest text that gives this double back, as ECMAScript prints it
 * (RFC 8785 §3.2.2.3); 0 for NaN and infinities, which JSON does not have. */
#define HPX_JSON_DOUBLE_SIZE 32
size_t hpx_json_double(double value, char out[HPX_JSON_DOUBLE_SIZE]);

#endif
