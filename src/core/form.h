/* Query strings and form bodies, and multipart bodies, in canonical form.
 * Every text in it is written as its length in decimal, ':' and its bytes, so
 * that no content can pass for the structure around it. */
#ifndef HPX_CORE_FORM_H
#define HPX_CORE_FORM_H

#include "base/buffer.h"

/* More pairs than this are HPX_TOO_LARGE: they are sorted in memory. */
#define HPX_FORM_PAIRS_MAX 65536

/* application/x-www-form-urlencoded (and a query): pairs decoded ('+' and
 * %XX), each written as name, then '=' and value, or ';' where there was no
 * '='; sorted by name if all names are distinct, otherwise in the order they
 * came. "a" and "a=" differ; nothing between two '&' is no pair. HPX_INVALID
 * for a bad percent escape: the caller takes the raw bytes. On failure `out`
 * is as it was. */
enum hpx_status hpx_form_canonical(struct hpx_span text, struct hpx_buffer *out);

/* One name or value decoded; `out` has room for text.len bytes. HPX_INVALID
 * for a bad percent escape. */
enum hpx_status hpx_form_decode(struct hpx_span text, char *out, size_t *ret_len);

/* A multipart part has at most this many headers, as a boundary has at most
 * 70 characters (RFC 2046 §5.1.1). */
#define HPX_MULTIPART_HEADERS_MAX 32
#define HPX_MULTIPART_BOUNDARY_MAX 70

/* How much of a multipart body counts. PARTS: neither preamble nor epilogue, as
 * recipes of version 1 have it. WHOLE: both, because some readers find parts in
 * them; and a boundary with white space behind it, which some readers do not
 * take for one, makes the body HPX_INVALID. */
enum hpx_multipart_extent { HPX_MULTIPART_PARTS,
			    HPX_MULTIPART_WHOLE };

/* Any multipart type: the parts, each with its headers (names lower-cased,
 * sorted) and its content, in their order, without the boundary. A part is
 * written as name '=' value of each header, ';', content; the WHOLE begins with
 * the preamble and ends with '.' and the epilogue.
 * `content_type` is the whole field value, with the boundary parameter.
 * HPX_INVALID: no boundary, or a body that two readers might take apart
 * differently. On failure `out` is as it was. */
enum hpx_status hpx_multipart_canonical(enum hpx_multipart_extent extent,
					struct hpx_span content_type, struct hpx_span body,
					struct hpx_buffer *out);

#endif
