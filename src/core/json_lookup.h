/* One value out of a JSON document: an operation reference, a provider's id,
 * what a probe's answer says. */
#ifndef HPX_CORE_JSON_LOOKUP_H
#define HPX_CORE_JSON_LOOKUP_H

#include "base/arena.h"
#include "core/json_pointer.h"
#include "core/json_tree.h"

/* The node that the pointer numbered `which` leads to, HPX_JSON_NONE where it
 * leads nowhere. For several values of one document that is read once. */
uint32_t hpx_json_tree_at(const struct hpx_json_tree *tree,
			  const struct hpx_json_pointers *pointers, size_t which);

struct hpx_json_scalar {
	enum hpx_json_kind kind; /* neither array nor object */
	struct hpx_span text;    /* a string without escapes, another as written */
};

/* The scalar at an RFC 6901 pointer, its text copied into the arena.
 * HPX_NOT_FOUND: nothing is there, or an array or object. HPX_INVALID: not
 * JSON, or beyond hpx_json_limits_default. HPX_TOO_LARGE: the text is longer
 * than `text_max`. HPX_NOMEM: also when the arena is full. */
enum hpx_status hpx_json_lookup(struct hpx_span body, struct hpx_span pointer, size_t text_max,
				struct hpx_arena *arena, struct hpx_json_scalar *ret_scalar);

#endif
