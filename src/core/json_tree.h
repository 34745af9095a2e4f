/* A JSON document as a flat array of nodes that name each other by place: what the
 * reader makes, and what canonical form and lookups (core/json.h) go by. */
#ifndef HPX_CORE_JSON_TREE_H
#define HPX_CORE_JSON_TREE_H

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

#define HPX_JSON_NONE UINT32_MAX

enum hpx_json_kind {
	HPX_JSON_LITERAL,
	HPX_JSON_NUMBER,
	HPX_JSON_STRING,
	HPX_JSON_ARRAY,
	HPX_JSON_OBJECT,
};

struct hpx_json_node {
	struct hpx_span name; /* of a member, without escapes */
	struct hpx_span text; /* a scalar as written; a string without escapes; of a
			       * container its bracket, where it opens */
	uint32_t parent;      /* of the root: HPX_JSON_NONE */
	uint32_t next;        /* the next in the same container */
	uint32_t first;       /* the first in this container */
	enum hpx_json_kind kind : 8;
	bool ignored : 1;
};

struct hpx_json_tree {
	struct hpx_json_node *nodes; /* the root is the first */
	size_t count;
	size_t cap;
	char *decoded; /* the strings that had escapes */
};

/* Reads the document. Members are in canonical order in their object; what
 * `ignore` names is marked. Spans point into `text` or the tree. */
enum hpx_status hpx_json_tree_read(struct hpx_span text, const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_json_tree *ret_tree);
void hpx_json_tree_done(struct hpx_json_tree *tree);
/* The member of that name of the object `of` (a node's place); HPX_JSON_NONE: there is none,
 * or `of` is no object (HPX_JSON_NONE neither). */
uint32_t hpx_json_tree_member(const struct hpx_json_tree *tree, uint32_t of, struct hpx_span name);

/* Why a document was refused, and where: an offset into its text. */
struct hpx_json_mistake {
	size_t at;
	const char *reason;
};

/* The same for a document that a person wrote: nothing is ignored, and where it is
 * HPX_INVALID, `*ret_mistake` says why. Nodes are in the order of the text. */
enum hpx_status hpx_json_tree_read_document(struct hpx_span text,
					    const struct hpx_json_limits *limits,
					    struct hpx_json_mistake *ret_mistake,
					    struct hpx_json_tree *ret_tree);

/* Appends `text` with its quotes and the escapes of RFC 8785 §3.2.2.2. */
enum hpx_status hpx_json_string_write(struct hpx_span text, struct hpx_buffer *out);

#endif
