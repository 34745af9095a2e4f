/* A fuzz input as changes to a row that was right: which column, and what is there
 * instead. Rows made of nothing but fuzz bytes would all fail at their first column. */
#ifndef HPX_TESTS_FUZZ_OVERRIDES_H
#define HPX_TESTS_FUZZ_OVERRIDES_H

#include "base/span.h"

enum override_kind { OVERRIDE_NULL,
		     OVERRIDE_INT,
		     OVERRIDE_TEXT,
		     OVERRIDE_BLOB };

struct override {
	size_t column;
	enum override_kind kind;
	int64_t number;        /* INT */
	struct hpx_span bytes; /* TEXT and BLOB; of INT the eight bytes it was read from */
};

/* Takes one off the front: a byte for the column, one for the kind, and a number of eight
 * bytes (little end first), or a length of one byte and so many. False: none is left. */
static inline bool take_override(struct hpx_span *rest, size_t columns, struct override *ret_override)
{
	if (rest->len < 3)
		return false;
	const unsigned char *at = (const unsigned char *)rest->ptr;
	struct override o = { .column = at[0] % columns, .kind = (enum override_kind)(at[1] & 3) };
	size_t len = o.kind == OVERRIDE_NULL ? 0 : o.kind == OVERRIDE_INT ? 8 :
									    at[2];

	*rest = hpx_span_skip(*rest, o.kind == OVERRIDE_INT || o.kind == OVERRIDE_NULL ? 2 : 3);
	o.bytes = hpx_span_first(*rest, len);
	for (size_t i = 0; o.kind == OVERRIDE_INT && i < o.bytes.len; i++)
		o.number = (int64_t)((uint64_t)o.number |
				     (uint64_t)(unsigned char)o.bytes.ptr[i] << (8 * i));
	*rest = hpx_span_skip(*rest, o.bytes.len);
	*ret_override = o;
	return true;
}

#endif
