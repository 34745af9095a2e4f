/* Query strings and form bodies, and multipart bodies, in canonical form. */
#ifndef HPX_CORE_FORM_H
#define HPX_CORE_FORM_H

#include "base/buffer.h"

/* application/x-www-form-urlencoded (and a query): pairs decoded ('+' and
 * %XX), each written as length-prefixed name and value; sorted by name if all
 * names are distinct, otherwise in the order they came. "a" and "a=" differ.
 * HPX_INVALID for a bad percent escape: the caller takes the raw bytes. */
enum hpx_status hpx_form_canonical(struct hpx_span text, struct hpx_buffer *out);

/* multipart/*: the parts, each with its headers (names lower-cased, sorted)
 * and its content, length-prefixed, in their order, without the boundary,
 * preamble and epilogue. `content_type` is the whole field value, with the
 * boundary parameter. HPX_INVALID: no boundary, or not a well-formed body. */
enum hpx_status hpx_multipart_canonical(struct hpx_span content_type,
					struct hpx_span body, struct hpx_buffer *out);

#endif
