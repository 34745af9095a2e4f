/* JSON in canonical form: RFC 8785 order and strings; numbers as RFC 8785
 * wherever its text has the value that was written, otherwise that exact
 * decimal value in the same layout, so that two different amounts never look
 * the same. Bounded in depth, n log n in its input, no recursion. Not a
 * general reader: JSON for people and providers is Jansson's. */
#ifndef HPX_CORE_JSON_H
#define HPX_CORE_JSON_H

#include "base/arena.h"
#include "base/buffer.h"
#include "core/json_tree.h"

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

/* The same of a selection: an object whose members are the `only` pointers in the order
 * given, each with the canonical form of the value that it leads to. A pointer that
 * leads nowhere has no member, so that absent and null differ. */
enum hpx_status hpx_json_canonical_only(struct hpx_span text, const struct hpx_json_limits *limits,
					const struct hpx_span *only, size_t only_count,
					struct hpx_buffer *out);

/* Whether this is an RFC 6901 pointer: empty, or '/' before every token, and
 * no '~' but in ~0 and ~1. */
bool hpx_json_pointer_valid(struct hpx_span pointer);

/* ---- pointers, followed while a document is read or down its tree ---- */

/* A set of pointers is one bit each: those whose tokens so far led to this
 * place, and which have more. */
struct hpx_json_pointers {
	struct hpx_span *tokens;               /* of all pointers, still escaped */
	size_t first[HPX_JSON_IGNORE_MAX + 1]; /* a pointer's first token */
	uint64_t all;
	bool whole; /* "" is among them */
};

enum hpx_status hpx_json_pointers_init(struct hpx_json_pointers *pointers,
				       const struct hpx_span *ignore, size_t ignore_count);
void hpx_json_pointers_done(struct hpx_json_pointers *pointers);

/* What of `set` goes on below the member `name` (unescaped; an index in
 * decimal for an element) of a container at `depth` (0: the document).
 * `*ret_named`: a pointer of the set ends at this member. */
uint64_t hpx_json_pointers_step(const struct hpx_json_pointers *pointers,
				uint64_t set, size_t depth,
				struct hpx_span name, bool *ret_named);

/* ---- one value out of a document ---- */

/* The node that the pointer numbered `which` leads to, HPX_JSON_NONE where it
 * leads nowhere. For several values of one document that is read once. */
uint32_t hpx_json_tree_at(const struct hpx_json_tree *tree,
			  const struct hpx_json_pointers *pointers, size_t which);

/* Appends the canonical form of the value at an RFC 6901 pointer to `out`.
 * HPX_NOT_FOUND: nothing is there. Otherwise as hpx_json_canonical. */
enum hpx_status hpx_json_select(struct hpx_span text, const struct hpx_json_limits *limits,
				struct hpx_span pointer, struct hpx_buffer *out);

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
