/* The boundary of a multipart body: found in Content-Type, and in the body. */
#ifndef HPX_CORE_MULTIPART_BOUNDARY_H
#define HPX_CORE_MULTIPART_BOUNDARY_H

#include "core/form.h"

/* The delimiter "--boundary", as it stands at the beginning of a line. */
struct hpx_multipart_boundary {
	char line[2 + HPX_MULTIPART_BOUNDARY_MAX];
	size_t len;
};

enum hpx_status hpx_multipart_boundary_read(struct hpx_span content_type,
					    struct hpx_multipart_boundary *ret_boundary);

/* A delimiter line in a body. */
struct hpx_multipart_delimiter {
	size_t at;  /* of its first dash; what precedes ends in CRLF */
	size_t end; /* behind its own CRLF */
	bool last;
	bool padded; /* white space behind the boundary, which not all readers take */
};

/* The next one at or behind `from`, which is 0 or follows a line's end.
 * HPX_NOT_FOUND: none. HPX_INVALID: a line that begins with the boundary and
 * goes on, which some readers take for a delimiter and others do not. */
enum hpx_status hpx_multipart_boundary_find(const struct hpx_multipart_boundary *boundary,
					    struct hpx_span body, size_t from,
					    struct hpx_multipart_delimiter *ret_delimiter);

#endif
