/* Reads "3:abc" off the front of a canonical form; asserts that it is there. */
#ifndef HPX_TESTS_FUZZ_NETSTRING_H
#define HPX_TESTS_FUZZ_NETSTRING_H

#include "base/span.h"
#include "base/status.h"

static inline struct hpx_span take_netstring(struct hpx_span *rest)
{
	size_t colon = hpx_span_index(*rest, ':');
	uint64_t len;

	HPX_ASSERT(hpx_span_u64(hpx_span_first(*rest, colon), rest->len, &len));
	*rest = hpx_span_skip(*rest, colon + 1);
	HPX_ASSERT(len <= rest->len);
	struct hpx_span text = hpx_span_first(*rest, (size_t)len);
	*rest = hpx_span_skip(*rest, (size_t)len);
	return text;
}

static inline char take_mark(struct hpx_span *rest)
{
	HPX_ASSERT(rest->len > 0);
	char mark = rest->ptr[0];
	*rest = hpx_span_skip(*rest, 1);
	return mark;
}

#endif
